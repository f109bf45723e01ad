/* See gen.h. Agents are small machines; each step one of them that can go on is chosen. */
#include "tests/unit/protocols/gen.h"

#include <stdio.h>
#include <string.h>

#define MAX_AGENTS 24
#define MAX_CALLS  6

enum phase { BEGIN, ASK, SPEAK, REPLIED, RUN_CALLS, WAIT, END, OVER };
struct agent {
    enum phase phase;
    int stage, visit, parent, parent_call, depth, rounds, pieces, attempt;
    char path[256]; /* the members that say where its events belong */
    char ids[64];
    long long reply;
    int n_calls, open_call; /* of the reply; -1: none is open */
    struct {
        char id[64];
        const char *tool;
        int child; /* -1: none; the agent that was asked */
        bool started, done, client;
    } calls[MAX_CALLS];
    int counted;
    bool muted, structured;
};

struct maker {
    struct gen *g;
    struct rv_rand r;
    struct agent agents[MAX_AGENTS];
    int n_agents, seq;
    long long call_ids;
    bool side_by_side, waits_for_client;
};

static uint64_t below(struct maker *m, uint64_t n)
{
    return rv_rand_below(m->r, n);
}

static void event(struct maker *m, const char *type, const struct agent *a, const char *rest)
{
    m->seq++;
    rv_buf_printf(&m->g->script, "{\"seq\":%d,\"type\":\"%s\",\"time\":\"2026-01-01T00:00:%02d.%03dZ\"%s%s}\n", m->seq,
                  type, m->seq / 100 % 60, m->seq % 1000, a->path, rest);
}

static void delta(struct maker *m, const struct agent *a, const char *kind, const char *rest)
{
    rv_buf_printf(&m->g->script, "{\"type\":\"delta\",\"kind\":\"%s\"%s%s,\"call_id\":%lld}\n", kind, a->path, rest,
                  a->reply);
}

static int add_agent(struct maker *m, int stage, int visit, int parent, int parent_call)
{
    if (m->n_agents == MAX_AGENTS)
        return -1;
    struct agent *a = &m->agents[m->n_agents];
    *a = (struct agent){.stage = stage,
                        .visit = visit,
                        .parent = parent,
                        .parent_call = parent_call,
                        .open_call = -1,
                        .depth = parent < 0 ? 0 : m->agents[parent].depth + 1,
                        .rounds = 1 + (int)below(m, 3),
                        .muted = below(m, 12) == 0,
                        .structured = below(m, 10) == 0};
    rv_buf path = RV_BUF_INIT(sizeof a->path - 1);
    rv_buf_printf(&path, ",\"stage\":\"s%d\",\"visit\":%d", stage, visit);
    if (parent >= 0)
        rv_buf_printf(&path, ",\"agent\":\"a%d\",\"depth\":%d,\"parent_tool_call_id\":\"%s\"", (int)below(m, 3),
                      a->depth, m->agents[parent].calls[parent_call].id);
    memcpy(a->path, rv_buf_cstr(&path), path.len + 1);
    rv_buf_fini(&path);
    rv_str ids = rv_utf8_cut(rv_str_of(parent < 0 ? "call" : m->agents[parent].calls[parent_call].id), 40);
    memcpy(a->ids, ids.ptr, ids.len);
    return m->n_agents++;
}

/* --- a reply --- */

static void ask(struct maker *m, struct agent *a)
{
    char rest[200];

    a->reply = ++m->call_ids;
    a->attempt++;
    a->n_calls = 0;
    a->open_call = -1;
    a->pieces = (int)below(m, 9);
    if ((size_t)a->reply >= GEN_MAX_REPLIES)
        a->rounds = 0;
    else
        m->g->n_replies = (size_t)a->reply;
    snprintf(rest, sizeof rest, ",\"call_id\":%lld,\"role\":\"default\",\"model\":\"m%d\",\"attempt\":%d", a->reply,
             (int)below(m, 3), a->attempt);
    event(m, "llm_call_start", a, rest);
    a->phase = SPEAK;
}

static void speak_text(struct maker *m, struct agent *a, const char *kind)
{
    static const char *const words[] = {"one ",       " two", "three\\n\\n",   "\\u00e9t\\u00e9",
                                        "\\\"q\\\" ", "  ",   "\\ud83d\\ude00"};
    const char *muted = a->muted ? ",\"muted\":true" : "";
    char rest[200], piece[100];

    snprintf(piece, sizeof piece, "%s<%lld.%d>", words[below(m, RV_COUNT(words))], a->reply, a->pieces);
    snprintf(rest, sizeof rest, ",\"text\":\"%s\"%s", piece, muted);
    delta(m, a, kind, rest);
    if (a->muted || strcmp(kind, "text") != 0 || (size_t)a->reply >= GEN_MAX_REPLIES)
        return;
    rv_buf quoted = RV_BUF_INIT(400);
    json_object *value = NULL;
    rv_buf_printf(&quoted, "\"%s\"", piece);
    if (rv_json_parse(rv_buf_str(&quoted), NULL, &value, NULL) == 0)
        rv_buf_add_str(&m->g->texts[a->reply], rv_json_str(value));
    json_object_put(value);
    rv_buf_fini(&quoted);
}

static void begin_call(struct maker *m, struct agent *a)
{
    static const char *const tools[] = {"search", "ask_agent", "client_pick", "write"};
    char rest[200];
    int i = a->n_calls++;

    a->calls[i].tool = tools[below(m, RV_COUNT(tools))];
    if (a->depth >= 3 && strcmp(a->calls[i].tool, "ask_agent") == 0)
        a->calls[i].tool = "search";
    a->calls[i].client = a->depth == 0 && strcmp(a->calls[i].tool, "client_pick") == 0;
    a->calls[i].child = -1;
    a->calls[i].started = a->calls[i].done = false;
    if (below(m, 8) > 0 || a->counted == 0 || i > 0) /* else the same id as before: another attempt */
        a->counted++;
    memset(a->calls[i].id, 0, sizeof a->calls[i].id);
    rv_buf id = RV_BUF_INIT(sizeof a->calls[i].id - 1);
    rv_buf_printf(&id, "%s_%d", a->ids, a->counted);
    memcpy(a->calls[i].id, rv_buf_cstr(&id), id.len);
    rv_buf_fini(&id);
    snprintf(rest, sizeof rest, ",\"index\":%d,\"id\":\"%s\",\"name\":\"%s\"", i, a->calls[i].id, a->calls[i].tool);
    delta(m, a, "tool_call_start", rest);
    a->open_call = i;
    if (below(m, 4) > 0) {
        snprintf(rest, sizeof rest, ",\"index\":%d,\"text\":\"{\\\"q\\\":\"", i);
        delta(m, a, "tool_call_arguments", rest);
        snprintf(rest, sizeof rest, ",\"index\":%d,\"text\":\"%d}\"", i, i);
        delta(m, a, "tool_call_arguments", rest);
    }
    if (below(m, 3) > 0) {
        snprintf(rest, sizeof rest, ",\"index\":%d", i);
        delta(m, a, "tool_call_end", rest);
    }
}

static void speak(struct maker *m, struct agent *a)
{
    if (a->pieces-- <= 0) {
        a->phase = REPLIED;
        return;
    }
    switch (below(m, 8)) {
    case 0:
        speak_text(m, a, "thinking");
        break;
    case 1:
    case 2:
        if (a->n_calls < MAX_CALLS && a->rounds > 1)
            begin_call(m, a);
        break;
    default:
        speak_text(m, a, "text");
    }
}

static void replied(struct maker *m, struct agent *a)
{
    bool failed = below(m, 10) == 0;
    char rest[200];

    snprintf(rest, sizeof rest,
             failed ? ",\"call_id\":%lld,\"status\":\"error\",\"error\":\"it broke\""
                    : ",\"call_id\":%lld,\"status\":\"success\",\"input_tokens\":10,\"output_tokens\":3",
             a->reply);
    event(m, "llm_result", a, rest);
    if (failed)
        event(m, "retry", a, ",\"attempt\":1,\"wait_ms\":5,\"error\":\"it broke\"");
    a->rounds--;
    a->phase = failed && a->attempt < 4 ? ASK : a->n_calls > 0 && !failed ? RUN_CALLS : END;
}

/* --- calls --- */

static void start_calls(struct maker *m, int self)
{
    struct agent *a = &m->agents[self];
    char rest[400];

    for (int i = 0; i < a->n_calls; i++) {
        if (a->calls[i].client) {
            m->waits_for_client = true;
            continue;
        }
        if (below(m, 6) > 0) {
            snprintf(rest, sizeof rest,
                     ",\"call_id\":%lld,\"tool\":\"%s\",\"step_id\":\"%s\",\"attempt\":1,\"arguments\":{\"q\":%d}",
                     ++m->call_ids, a->calls[i].tool, a->calls[i].id, i);
            event(m, "tool_call_start", a, rest);
        }
        a->calls[i].started = true;
        if (strcmp(a->calls[i].tool, "ask_agent") == 0)
            a->calls[i].child = add_agent(m, a->stage, a->visit, self, i);
    }
    a->phase = WAIT;
}

static void give_result(struct maker *m, struct agent *a, int i)
{
    static const char *const results[] = {
        ",\"status\":\"success\",\"result\":{\"found\":true}", ",\"status\":\"success\",\"result\":\"plain\"",
        ",\"status\":\"error\",\"error\":\"no\",\"error_type\":\"ToolError\",\"code\":\"tool_failed\"",
        ",\"status\":\"success\",\"result_preview\":\"{\\\"a\\\":\",\"result_ref\":{\"bytes\":20000}",
        ",\"status\":\"success\",\"result\":null"};
    char rest[400];

    if (below(m, 6) == 0)
        event(m, "action", a, ",\"action_type\":\"observation\",\"payload\":{\"confidence\":0.5},\"tool\":\"action\"");
    snprintf(rest, sizeof rest, ",\"tool\":\"%s\",\"step_id\":\"%s\",\"arguments\":{\"q\":%d}%s", a->calls[i].tool,
             a->calls[i].id, i, results[below(m, RV_COUNT(results))]);
    event(m, "tool_result", a, rest);
    a->calls[i].done = true;
}

static void wait(struct maker *m, struct agent *a)
{
    int left = 0, at = (int)below(m, MAX_CALLS);

    for (int n = 0; n < MAX_CALLS; n++) {
        int i = (at + n) % MAX_CALLS;
        if (i >= a->n_calls || a->calls[i].done || a->calls[i].client)
            continue;
        left++;
        if (a->calls[i].child >= 0 && m->agents[a->calls[i].child].phase != OVER)
            continue;
        give_result(m, a, i);
        return;
    }
    if (left > 0)
        return;
    a->phase = m->waits_for_client ? OVER : a->rounds > 0 ? ASK : END;
}

/* --- the beginning and the end of an agent --- */

static void begin(struct maker *m, struct agent *a)
{
    if (a->depth > 0 && below(m, 8) > 0)
        event(m, "agent_started", a, "");
    else if (a->depth == 0)
        event(m, "stage_started", a, "");
    a->phase = ASK;
}

static void end(struct maker *m, struct agent *a)
{
    char rest[200];

    if (a->structured && a->depth == 0)
        delta(m, a, "text", ",\"text\":\"{\\\"a\\\":1}\"");
    if (a->structured && a->depth == 0 && (size_t)a->reply < GEN_MAX_REPLIES)
        rv_buf_puts(&m->g->texts[a->reply], "{\"a\":1}");
    if (a->structured) {
        snprintf(rest, sizeof rest,
                 ",\"tool\":\"boss\",\"step_id\":\"boss_structured_output\",\"status\":\"success\",\"structured\":true,"
                 "\"result\":{\"a\":1}");
        event(m, "tool_result", a, rest);
    }
    bool failed = below(m, 8) == 0;
    a->phase = OVER;
    if (a->depth > 0 && below(m, 20) == 0) /* its end is only seen by the result of its call */
        return;
    event(m, a->depth > 0 ? "agent_completed" : "stage_completed", a,
          failed ? ",\"status\":\"error\",\"error\":\"x\",\"code\":\"model_failed\",\"output\":null"
                 : ",\"status\":\"success\",\"output\":{\"response\":\"ok\"}");
}

static void step(struct maker *m, int self)
{
    struct agent *a = &m->agents[self];

    switch (a->phase) {
    case BEGIN:
        begin(m, a);
        break;
    case ASK:
        ask(m, a);
        break;
    case SPEAK:
        speak(m, a);
        break;
    case REPLIED:
        replied(m, a);
        break;
    case RUN_CALLS:
        start_calls(m, self);
        break;
    case WAIT:
        wait(m, a);
        break;
    case END:
        end(m, a);
        break;
    case OVER:
        break;
    }
}

static bool all_over(const struct maker *m)
{
    for (int i = 0; i < m->n_agents; i++)
        if (m->agents[i].phase != OVER)
            return false;
    return true;
}

static void write_end(struct maker *m, bool stopped)
{
    static const char *const stops[] = {"cancelled", "failed", "terminated", "interrupted"};
    const char *status = stopped ? stops[below(m, RV_COUNT(stops))] : "completed";

    for (int i = 0; i < m->n_agents && strcmp(status, "interrupted") == 0; i++)
        if (m->agents[i].depth == 0 && m->agents[i].phase != OVER)
            event(m, "stage_completed", &m->agents[i], ",\"status\":\"skipped\",\"output\":null");
    if (strcmp(status, "interrupted") == 0)
        rv_buf_puts(&m->g->script,
                    "{\"seq\":1,\"type\":\"interrupt_pending\",\"stage\":\"s0\",\"kind\":\"confirmation\",\"id\":"
                    "\"int_1\",\"question\":\"May it?\",\"message\":null,\"data\":{\"step_id\":\"call_1\","
                    "\"tool\":\"write\"},\"expires_at\":\"2026-01-02T00:00:00.000000Z\"}\n"
                    "{\"type\":\"question\",\"id\":\"int_2\",\"kind\":\"clarification\",\"question\":\"Which?\"}\n");
    rv_buf_printf(&m->g->script, "{\"type\":\"end\",\"status\":\"%s\",\"text\":\"<answer>\",\"latency_ms\":5}\n",
                  status);
    m->g->status = status;
}

void gen_make(uint64_t seed, struct gen *out)
{
    struct rv_rand_state state;
    struct maker m = {0};

    m.r = rv_rand_seeded(&state, seed);
    *out = (struct gen){.script = RV_BUF_INIT((size_t)8 << 20)};
    for (size_t i = 0; i < GEN_MAX_REPLIES; i++)
        out->texts[i] = RV_BUF_INIT((size_t)1 << 20);
    m.g = out;
    m.side_by_side = below(&m, 3) == 0;
    bool is_stopped = below(&m, 4) == 0;
    int stages = 1 + (int)below(&m, 3), budget = is_stopped ? (int)below(&m, 120) : 2000;
    rv_buf_puts(&out->script,
                "{\"run_id\":\"env_1\",\"session_id\":\"t1\",\"model\":\"m\",\"created_ms\":1760000000000,\"steps\":"
                "true,\"usage\":true,\"events\":true,\"metadata\":true,\"client_tools\":[\"client_pick\"]}\n");
    rv_buf_puts(&out->script, "{\"seq\":0,\"type\":\"pipeline_started\",\"pipeline\":\"p\"}\n");
    for (int s = 0; s < stages && budget > 0 && !m.waits_for_client; s++) {
        add_agent(&m, m.side_by_side ? s : (int)below(&m, 2), s + 1, -1, -1);
        if (m.side_by_side && s + 1 < stages)
            continue;
        while (!all_over(&m) && budget-- > 0)
            step(&m, (int)below(&m, (uint64_t)m.n_agents));
        if (!all_over(&m))
            is_stopped = true;
    }
    write_end(&m, is_stopped || (!all_over(&m)));
}

void gen_fini(struct gen *g)
{
    rv_buf_fini(&g->script);
    for (size_t i = 0; i < GEN_MAX_REPLIES; i++)
        rv_buf_fini(&g->texts[i]);
}

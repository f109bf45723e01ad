/* The conversation that a run may be a turn of: made up before, kept by the run's own steps, and read back at the end.
 * What is kept is looked at when the step that keeps it is journaled. */
#include "coreengine/sim/sim_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SESSION       "session"
#define USER          "someone"
#define HAS_SESSION   600 /* per mille of the runs with a stage that joins conversations */
#define MAX_TURNS     3   /* earlier ones: enough for a history with an order, and each costs time of every seed */
#define ROWS_PER_TURN 4   /* question, call, result, answer */
#define MAX_ID        48  /* bytes of a made-up id: a word, two numbers and a NUL */

static const struct rv_store_scope scope = {.user = USER};

static bool joins(const struct rv_pipeline *p, size_t stage)
{
    return p->agents[stage].declared.doc && p->agents[stage].session.joins;
}

static void row_fini(struct sim_row *row)
{
    free(row->id);
    free(row->parent);
    free(row->call);
}

void sim_session_fini(struct sim_session *c)
{
    for (size_t i = 0; i < c->n_rows; i++)
        row_fini(&c->rows[i]);
    free(c->rows);
    free(c->has_turn);
    json_object_put(c->conversation.history);
    json_object_put(c->conversation.moments);
    *c = (struct sim_session){0};
}

/* --- before --- */

/* A person asks, perhaps a tool is called, the agent answers. */
static int add_turn(struct sim_seed *s, size_t turn, struct sim_rng *r, rv_err **err)
{
    static const char call[] = "{\"name\":\"look\",\"id\":\"call_1\",\"arguments\":{}}";
    static const char result[] = "{\"name\":\"look\",\"id\":\"call_1\"}";
    static const char *const types[ROWS_PER_TURN] = {"user", "tool_call", "tool_response", "assistant"};
    struct rv_message rows[ROWS_PER_TURN] = {{.id = NULL}};
    char ids[ROWS_PER_TURN][MAX_ID];
    json_object *words[ROWS_PER_TURN] = {NULL};
    bool calls = sim_below(r, 2) == 1, is_short = false;
    size_t n = 0;

    for (size_t i = 0; i < ROWS_PER_TURN; i++) {
        bool is_call = i == 1 || i == 2;
        if (is_call && !calls)
            continue;
        words[n] = sim_words(r, 20);
        is_short = is_short || !words[n];
        snprintf(ids[n], sizeof ids[n], "10000000-0000-4000-8000-%06zu%06zu", turn, n);
        rows[n] = (struct rv_message){.id = ids[n],
                                      .type = types[i],
                                      .has_content = i != 1,
                                      .content = i == 1 ? (rv_str){NULL, 0} : rv_json_str(words[n]),
                                      .tool_calls = i == 1   ? rv_str_of(call)
                                                    : i == 2 ? rv_str_of(result)
                                                             : (rv_str){NULL, 0},
                                      .token_count = RV_UNSET,
                                      .input_tokens = RV_UNSET,
                                      .output_tokens = RV_UNSET,
                                      .cost_micro_usd = RV_UNSET,
                                      .latency_ms = RV_UNSET};
        n++;
    }
    const struct rv_turn t = {.session = SESSION, .rows = rows, .n_rows = n};
    int rc = is_short ? RV_FAIL(err, RV_E_NOMEM, "make up a conversation")
                      : rv_store_add_messages(s->store, &scope, &t, s->now_us, err);
    for (size_t i = 0; i < RV_COUNT(words); i++)
        json_object_put(words[i]);
    s->session.n_before += (int64_t)n;
    return rc;
}

static int make(struct sim_seed *s, rv_err **err)
{
    const struct rv_session_row fresh = {
        .id = SESSION, .tenant = RV_STORE_TENANT, .user = USER, .created_us = s->now_us};
    struct rv_conversation *c = &s->session.conversation;
    struct sim_rng r = sim_rng_of(sim_bits(&s->tape));
    int rc = rv_store_ensure_session(s->store, &fresh, NULL, err);

    for (size_t i = 0, n = sim_below(&r, MAX_TURNS + 1); i < n && rc == 0; i++)
        rc = add_turn(s, i, &r, err);
    *c = (struct rv_conversation){
        .context = {.user_id = USER, .tenant_id = RV_STORE_TENANT, .session_id = SESSION},
        .keeps = true,
        .upto_seq = s->session.n_before,
        .history_opts = RV_HISTORY_OPTS_INIT,
    };
    if (sim_below(&r, 3) == 2) {
        c->has_routing = true;
        c->routing = RV_ROUTING_INIT;
        rv_routing_activate(&c->routing, "somebody", 0);
    }
    return rc < 0 ? rc : rv_journal_read_history(s->store, &scope, c, &c->history, c->history_hash, err);
}

int sim_session_begin(struct sim_seed *s, rv_err **err)
{
    const struct rv_pipeline *p = s->subject->pipeline;
    bool may = false;

    for (size_t i = 0; i < p->n_agents; i++)
        may = may || joins(p, i);
    if (!may || !sim_chance(&s->tape, HAS_SESSION))
        return 0;
    s->session.has_turn = calloc(p->n_agents, sizeof *s->session.has_turn);
    if (!s->session.has_turn)
        return RV_FAIL(err, RV_E_NOMEM, "make up a conversation");
    s->session.exists = true;
    return make(s, err);
}

void sim_session_agent_ended(struct sim_seed *s, int stage)
{
    s->session.n_agents += s->session.exists && joins(s->subject->pipeline, (size_t)stage);
}

/* --- what a step keeps --- */

static void wrong(struct sim_seed *s, const struct rv_message *m, const char *what)
{
    sim_break(s, RV_SIM_KEEPS_ROWS, "row %s (%s) of the session %s", m->id, m->type, what);
}

/* Is there such a row among those from `first` on? Rows of one agent are told by the call that asked it. */
static size_t count(const struct sim_session *c, size_t first, int type, const char *call, const char *parent)
{
    size_t n = 0;

    for (size_t i = first; i < c->n_rows; i++) {
        const struct sim_row *row = &c->rows[i];
        bool same = !parent || (row->parent ? strcmp(row->parent, parent) == 0 : parent[0] == '\0');
        n += row->type == type && row->call && same && strcmp(row->call, call) == 0;
    }
    return n;
}

static int add_row(struct sim_seed *s, const struct rv_message *m, rv_err **err)
{
    struct sim_session *c = &s->session;
    json_object *calls = NULL;
    const char *id = NULL;

    if (!rv_has_room(&c->rows, &c->cap_rows, c->n_rows + 1, sizeof *c->rows))
        return RV_FAIL(err, RV_E_NOMEM, "note a row");
    int rc = m->tool_calls.len ? rv_json_parse(m->tool_calls, NULL, &calls, err) : 0;
    if (rc < 0)
        return rc;
    struct sim_row *row = &c->rows[c->n_rows];
    *row = (struct sim_row){.type = rv_message_type_of(rv_str_of(m->type)), .id = rv_str_dup(rv_str_of(m->id))};
    c->n_rows++;
    bool has_call = calls && rv_json_get_text(calls, "id", &id);
    row->call = has_call ? rv_str_dup(rv_str_of(id)) : NULL;
    row->parent = m->parent_call_id ? rv_str_dup(rv_str_of(m->parent_call_id)) : NULL;
    bool is_words = rv_str_is(m->metadata, "{\"before_calls\":true}"); /* and not the answer */
    c->n_answers += row->type == RV_MESSAGE_ASSISTANT && row->parent && !is_words;
    bool is_whole = row->id && (row->call || !has_call) && (row->parent || !m->parent_call_id);
    json_object_put(calls);
    return is_whole ? 0 : RV_FAIL(err, RV_E_NOMEM, "note a row");
}

/* A row in its turn, whose rows begin at `first`; it is the newest. */
static void check_row(struct sim_seed *s, const struct rv_message *m, size_t first)
{
    const struct sim_session *c = &s->session;
    const struct sim_row *row = &c->rows[c->n_rows - 1];
    const char *parent = row->parent ? row->parent : "";
    bool is_call = row->type == RV_MESSAGE_TOOL_CALL, is_result = row->type == RV_MESSAGE_TOOL_RESPONSE;

    if (row->type == RV_UNSET)
        wrong(s, m, "is of no kind");
    for (size_t i = 0; i + 1 < c->n_rows; i++)
        if (strcmp(c->rows[i].id, row->id) == 0)
            wrong(s, m, "has the id of another one");
    if ((is_call || is_result) && (!row->call || !row->call[0]))
        wrong(s, m, "names no call");
    if (row->parent && count(c, first, RV_MESSAGE_TOOL_CALL, row->parent, NULL) == 0)
        wrong(s, m, "belongs to a call that is not there");
    if (is_call && row->call && !row->parent && count(c, first, RV_MESSAGE_TOOL_CALL, row->call, parent) > 1)
        wrong(s, m, "is a call with the id of another one");
    if (is_result && row->call &&
        count(c, first, RV_MESSAGE_TOOL_RESPONSE, row->call, parent) >
            count(c, first, RV_MESSAGE_TOOL_CALL, row->call, parent))
        wrong(s, m, "is the result of no call");
}

/* Each call of a turn that ended well has its result; so have those of agents that did. */
static void check_results(struct sim_seed *s, const struct rv_turn *t, size_t first)
{
    const struct sim_session *c = &s->session;

    for (size_t i = first; i < c->n_rows && !s->is_broken; i++) {
        const struct sim_row *row = &c->rows[i];
        const struct rv_message *m = &t->rows[i - first];
        const char *parent = row->parent ? row->parent : "";
        if (row->type == RV_MESSAGE_TOOL_CALL && row->call && (!m->status || strcmp(m->status, "completed") == 0) &&
            count(c, first, RV_MESSAGE_TOOL_RESPONSE, row->call, parent) !=
                count(c, first, RV_MESSAGE_TOOL_CALL, row->call, parent))
            wrong(s, m, "is a call without a result");
    }
}

/* A question, what was done, an answer that says what it all took; or the calls of a chain that followed. */
static void check_shape(struct sim_seed *s, const struct rv_effect *e, const struct rv_turn *t)
{
    const struct rv_message *head = t->n_rows ? &t->rows[0] : NULL, *tail = head ? &t->rows[t->n_rows - 1] : NULL;
    bool is_chain = s->session.has_turn[e->stage] && t->n_rows == 2 && strcmp(head->type, "tool_call") == 0;

    if (!head)
        sim_break(s, RV_SIM_KEEPS_ROWS, "a turn without rows is kept");
    else if (is_chain && strcmp(tail->type, "tool_response") != 0)
        wrong(s, tail, "ends a chain and is not a result");
    else if (!is_chain && strcmp(head->type, "user") != 0)
        wrong(s, head, "begins a turn");
    else if (!is_chain && (strcmp(tail->type, "assistant") != 0 || tail->parent_call_id))
        wrong(s, tail, "ends a turn");
    for (size_t i = 1; !is_chain && i + 1 < t->n_rows && !s->is_broken; i++)
        if (!t->rows[i].parent_call_id &&
            (strcmp(t->rows[i].type, "user") == 0 ||
             (strcmp(t->rows[i].type, "assistant") == 0 && strcmp(t->rows[i + 1].type, "tool_call") != 0)))
            wrong(s, &t->rows[i], "stands in the middle of a turn");
    if (!is_chain && tail) {
        const struct rv_usage took = {.input_tokens = tail->input_tokens,
                                      .output_tokens = tail->output_tokens,
                                      .cost_micro_usd = tail->cost_micro_usd};
        rv_usage_add(&s->session.kept, &took);
        s->session.has_turn[e->stage] = true;
        s->tally->n_turns++;
    }
}

static int keep(struct sim_seed *s, const struct rv_effect *e, rv_err **err)
{
    const struct rv_turn *t = e->turn;
    size_t first = s->session.n_rows;
    int rc = 0;

    if (!s->session.exists) {
        sim_break(s, RV_SIM_KEEPS_ROWS, "rows are kept, and the run belongs to no session");
        return 0;
    }
    for (size_t i = 0; i < t->n_rows && rc == 0; i++) {
        rc = add_row(s, &t->rows[i], err);
        if (rc == 0 && !s->is_broken)
            check_row(s, &t->rows[i], first);
    }
    s->tally->n_rows += (int64_t)t->n_rows;
    if (rc == 0 && strcmp(t->session, SESSION) != 0)
        sim_break(s, RV_SIM_KEEPS_ROWS, "rows are kept for session \"%s\"", t->session);
    if (rc == 0)
        check_shape(s, e, t);
    if (rc == 0)
        check_results(s, t, first);
    return rc;
}

int sim_session_step(struct sim_seed *s, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < s->fx.n && rc == 0 && !s->is_broken; i++)
        if (s->fx.items[i].kind == RV_EFFECT_KEEP)
            rc = keep(s, &s->fx.items[i], err);
    return rc;
}

/* --- afterwards --- */

static int compare_row(void *self, const struct rv_message *m, rv_err **err)
{
    struct sim_seed *s = self;
    const struct sim_session *c = &s->session;
    int64_t at = m->seq - 1 - c->n_before;

    (void)err;
    if (at < 0)
        return 0;
    if ((size_t)at >= c->n_rows)
        wrong(s, m, "was kept by no step");
    else if (strcmp(c->rows[at].id, m->id) != 0)
        wrong(s, m, "is not the one that was kept there");
    return 0;
}

/* What the next turn is told keeps the rules of providers: results follow their calls, in their order. */
static void check_messages(struct sim_seed *s, json_object *messages)
{
    size_t n = messages ? json_object_array_length(messages) : 0, at = 0;

    while (at < n && !s->is_broken) {
        json_object *calls = rv_json_get_arr(json_object_array_get_idx(messages, at++), "tool_calls");
        for (size_t i = 0; calls && i < json_object_array_length(calls) && !s->is_broken; i++, at++) {
            const char *id = "-";
            json_object *m = at < n ? json_object_array_get_idx(messages, at) : NULL;
            const char *want = rv_json_text_or(json_object_array_get_idx(calls, i), "id", "");
            if (!m || !rv_json_get_text(m, "tool_call_id", &id) || strcmp(id, want) != 0)
                sim_break(s, RV_SIM_KEEPS_ROWS, "the next turn would be told of call %s without its result", want);
        }
    }
}

static int check_next_turn(struct sim_seed *s, int64_t n_rows, rv_err **err)
{
    struct rv_conversation next = {
        .context = s->session.conversation.context, .upto_seq = n_rows, .history_opts = RV_HISTORY_OPTS_INIT};
    json_object *messages = NULL;
    char hash[RV_HASH_MAX];

    int rc = rv_journal_read_history(s->store, &scope, &next, &messages, hash, err);
    if (rc < 0)
        return sim_unexpected(s, RV_SIM_KEEPS_ROWS, rc, "the session cannot be continued", err);
    check_messages(s, messages);
    json_object_put(messages);
    return 0;
}

/* All that was spent is in the turns, where all stages that spend join the session; and each has its turn. */
static void check_turns(struct sim_seed *s)
{
    const struct rv_pipeline *p = s->subject->pipeline;
    const struct rv_usage *kept = &s->session.kept, *told = &s->watch.told;
    bool all = true;

    for (size_t i = 0; i < p->n_agents; i++) {
        all = all && joins(p, i);
        if (joins(p, i) && s->watch.visits[i] > 0 && !s->session.has_turn[i])
            sim_break(s, RV_SIM_KEEPS_ROWS, "stage \"%s\" took its turn, and the session has no row",
                      p->agents[i].name);
    }
    if (s->session.n_answers != s->session.n_agents)
        sim_break(s, RV_SIM_KEEPS_ROWS,
                  "%lld agents that were asked have ended, and the session has what %lld of them said",
                  (long long)s->session.n_agents, (long long)s->session.n_answers);
    if (all && (kept->input_tokens != told->input_tokens || kept->output_tokens != told->output_tokens ||
                kept->cost_micro_usd != told->cost_micro_usd))
        sim_break(s, RV_SIM_KEEPS_ROWS,
                  "the turns say that they took %lld + %lld tokens and %lld micro-USD, the events %lld + %lld and %lld",
                  (long long)kept->input_tokens, (long long)kept->output_tokens, (long long)kept->cost_micro_usd,
                  (long long)told->input_tokens, (long long)told->output_tokens, (long long)told->cost_micro_usd);
}

int sim_session_verify(struct sim_seed *s, rv_err **err)
{
    const struct rv_message_filter filter = {.with_children = true};
    struct sim_session *c = &s->session;
    struct rv_session_row row = {0};

    if (!c->exists)
        return 0;
    int rc = rv_store_get_session(s->store, &scope, SESSION, &row, err);
    if (rc < 0)
        return sim_unexpected(s, RV_SIM_KEEPS_ROWS, rc, "the session is not in the store", err);
    int64_t n = row.n_messages;
    rv_session_row_fini(&row);
    if (n != c->n_before + (int64_t)c->n_rows)
        sim_break(s, RV_SIM_KEEPS_ROWS, "the session has %lld rows more than before, steps have kept %zu",
                  (long long)(n - c->n_before), c->n_rows);
    rc =
        rv_store_read_messages(s->store, &scope, &(const struct rv_messages_of){SESSION, &filter}, compare_row, s, err);
    if (rc == 0 && !s->is_broken)
        rc = check_next_turn(s, n, err);
    if (rc == 0 && !s->is_broken && s->run && rv_run_status(s->run) != RV_RUN_INTERRUPTED && !s->is_parked)
        check_turns(s);
    return rc;
}

/* What asked agents, tools, hooks, policies, mocks and routing functions answer: what their protocol allows, and now
 * and then what it does not. A failure or a late answer of a tool says little about whether the tool did its work. */
#include "coreengine/sim/sim_internal.h"
#include "envelope/envelope.h"

#include <stdio.h>
#include <string.h>

/* --- the question --- */

/* Mostly an agent that exists; sometimes the asking agent, an unknown name, or no name. */
static const char *whom(const struct sim_seed *s, const char *self, struct sim_rng *r)
{
    static const char *const others[] = {"nobody", "no name!", ""};
    uint32_t how = sim_below(r, 16);

    if (how == 15)
        return others[sim_below(r, RV_COUNT(others))];
    if (how >= 13)
        return self;
    return s->subject->n_agents ? s->subject->agents[sim_below(r, (uint32_t)s->subject->n_agents)].name : "nobody";
}

static void put_time(struct sim_rng *r, rv_buf *b)
{
    static const char *const times[] = {"60", "1",  "2",   "30",       "86400", "1e3", "9007199254740993",
                                        "0",  "-1", "1.5", "\"soon\"", "null"};
    uint32_t i = sim_below(r, 2) ? sim_below(r, RV_COUNT(times)) : sim_below(r, 4);

    rv_buf_printf(b, ",\"timeout_seconds\":%s", times[i]);
}

static int put_data(struct sim_rng *r, rv_buf *b, rv_err **err)
{
    json_object *v = NULL, *data = NULL;
    int rc = sim_any(r, 0, &v, err);

    if (rc == 0 && !json_object_is_type(v, json_type_object) && sim_below(r, 8) < 7) {
        data = json_object_new_object();
        rc = data ? rv_json_set_ref(data, "value", v, err) : RV_FAIL(err, RV_E_NOMEM, "make a question");
    }
    if (rc == 0) {
        rv_buf_puts(b, ",\"input_data\":");
        rv_json_write(data ? data : v, b);
    }
    json_object_put(data);
    json_object_put(v);
    return rc;
}

/* What may stand beside the name and the text. */
static int put_rest(struct sim_rng *r, rv_buf *b, rv_err **err)
{
    static const char *const users[] = {"\"\"", "\"someone\"", "\"somebody-else\"", "7"};
    int rc = 0;

    if (sim_below(r, 4) == 3)
        rc = put_data(r, b, err);
    if (rc == 0 && sim_below(r, 3) == 2)
        put_time(r, b);
    if (rc == 0 && sim_below(r, 5) == 4)
        rv_buf_printf(b, ",\"structured_output_override\":%s", sim_below(r, 2) ? "false" : "true");
    if (rc == 0 && sim_below(r, 20) == 19)
        rv_buf_printf(b, ",\"user_id\":%s", users[sim_below(r, RV_COUNT(users))]);
    if (rc == 0 && sim_below(r, 40) == 39)
        rv_buf_puts(b, ",\"unasked\":true");
    return rc;
}

int sim_ask_arguments(struct sim_seed *s, const char *self, struct sim_rng *r, rv_buf *text, rv_err **err)
{
    json_object *name = json_object_new_string(whom(s, self, r)), *words = sim_words(r, 6);
    int rc = name && words ? 0 : RV_FAIL(err, RV_E_NOMEM, "make a question");

    if (rc == 0) {
        rv_buf_puts(text, "{\"agent_name\":");
        rv_json_write(name, text);
        if (sim_below(r, 24) < 23) {
            rv_buf_puts(text, ",\"input_text\":");
            rv_json_write(words, text);
        }
        rc = put_rest(r, text, err);
        rv_buf_putc(text, '}');
    }
    json_object_put(name);
    json_object_put(words);
    return rc < 0 ? rc : rv_buf_check(text, "arguments", err);
}

/* --- the document --- */

static const struct rv_sim_agent *find(const struct sim_seed *s, const char *name)
{
    for (size_t i = 0; i < s->subject->n_agents; i++)
        if (strcmp(s->subject->agents[i].name, name) == 0)
            return &s->subject->agents[i];
    return NULL;
}

/* An answer that the look-up of agents never gives, but a damaged store might. */
static void put_odd_document(struct sim_rng *r, rv_buf *b)
{
    static const char *const odd[] = {
        "{}",
        "[]",
        "null",
        "no json",
        "{\"agent_document\":7}",
        "{\"agent_document\":\"\"}",
        "{\"agent_document\":\"type: object\"}",
        "{\"agent_document\":\"type: object\\nname: another\\ndescription: Somebody else.\"}",
        "{\"agent_document\":\"name: [\"}",
        "{\"agent_document\":\"type: object\\ntools: [{name: no_such_tool}]\"}"};
    rv_buf_puts(b, odd[sim_below(r, RV_COUNT(odd))]);
}

static int sim_ask_answer(struct sim_seed *s, const struct rv_effect *e, bool spoils, struct sim_rng *r,
                          struct sim_outcome *o, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = e->request_len + 1, .what = "question to an agent"};
    json_object *args = NULL;
    char why[RV_CONTEXT_MAX_TEXT];
    rv_jw w = rv_jw_on(&o->text);

    int rc = rv_json_parse((rv_str){e->request, e->request_len}, &opts, &args, err);
    if (rc < 0)
        return rc;
    const char *name = rv_json_text_or(args, "agent_name", "");
    const struct rv_sim_agent *a = find(s, name);
    if (spoils) {
        put_odd_document(r, &o->text);
    } else if (!a || !a->document.ptr) { /* as coreengine/engine/ask.c says it */
        snprintf(why, sizeof why,
                 a ? "Agent '%.128s' cannot be used: its document has faults" : "Agent '%.128s' not found", name);
        sim_outcome_fail(o, a ? rv_error_agent : rv_error_not_found, false, why);
    } else {
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "agent", name);
        rv_jw_kv_str(&w, "agent_document", a->document);
        rv_jw_obj_end(&w);
    }
    json_object_put(args);
    return rv_buf_check(&o->text, "the document of an agent", err);
}

/* --- tools --- */

#define HAPPENS_ANYWAY 400 /* per mille of failures that took effect all the same */

static void fail(struct sim_seed *s, struct sim_outcome *o)
{
    static const struct {
        const char *type, *text;
        bool retryable;
    } faults[] = {
        {rv_error_execution, "disk full", false},       {rv_error_execution, "connection reset", true},
        {rv_error_not_found, "no such thing", false},   {rv_error_tool, "busy", true},
        {rv_error_validation, "that cannot be", false},
    };
    size_t i = sim_draw(&s->tape, RV_COUNT(faults));

    sim_outcome_fail(o, faults[i].type, faults[i].retryable, faults[i].text);
}

static void put_odd_result(struct sim_rng *r, rv_buf *b)
{
    static const char *const odd[] = {"{}",
                                      "[]",
                                      "null",
                                      "7",
                                      "{\"status\": \"failed\", \"message\": \"it did not work\"}",
                                      "{\"status\": \"success\"}",
                                      "{\"error\": {\"code\": 5}}",
                                      "{\"status\": 3, \"data\": [1]}",
                                      "no json",
                                      "{\"data\": \"text\"}"};
    rv_buf_clear(b);
    rv_buf_puts(b, odd[sim_below(r, RV_COUNT(odd))]);
}

static int put_result(const struct rv_tool_info *info, struct sim_rng *r, rv_buf *b, rv_err **err)
{
    json_object *v = NULL;
    bool fits = false;
    rv_jw w = rv_jw_on(b);
    int rc = info && info->output_json ? sim_value(info->output_json, info->output, r, &v, &fits, err) : 0;

    if (rc == 0 && !(info && info->output_json)) {
        v = json_object_new_object();
        rc = v ? rv_json_set_take(v, "note", sim_words(r, 4), err) : RV_FAIL(err, RV_E_NOMEM, "make a result");
    }
    if (rc == 0 && json_object_is_type(v, json_type_object) && sim_below(r, 2) == 0) {
        rv_jw_value(&w, v); /* as it is */
    } else if (rc == 0) {
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "status", "success");
        rv_jw_kv_value(&w, "data", v);
        rv_jw_obj_end(&w);
    }
    json_object_put(v);
    return rc < 0 ? rc : rv_buf_check(b, "tool result", err);
}

int sim_tool_answer(struct sim_seed *s, const struct rv_effect *e, struct sim_outcome *o, rv_err **err)
{
    static const enum rv_sim_fault kinds[] = {RV_SIM_TOOL_ERROR, RV_SIM_TOOL_TIMEOUT, RV_SIM_TOOL_REPLY};
    const struct rv_catalog *c = s->subject->catalog;
    const struct rv_tool_info *info = c ? c->tool(c->self, rv_str_of(e->name)) : NULL;
    size_t fault = sim_inject(s, kinds, RV_COUNT(kinds));
    struct sim_rng r = sim_rng_of(sim_bits(&s->tape));
    bool found = false, anyway = sim_chance(&s->tape, HAPPENS_ANYWAY);
    int rc = 0;

    if (e->origin && fault)
        s->tally->n_agent_faults++;
    if (fault == 1) {
        fail(s, o);
    } else if (fault == 2) {
        sim_outcome_fail(o, rv_error_timeout, true, "no answer in time");
    } else {
        rc = sim_script_answer(s, e, RV_SCRIPT_TOOL, o, &found, err);
        if (rc == 0 && !found && strcmp(e->name, SIM_ASK_AGENT) == 0)
            rc = sim_ask_answer(s, e, fault == 3, &r, o, err);
        else if (rc == 0 && !found)
            rc = put_result(info, &r, &o->text, err);
        if (rc == 0 && fault == 3 && !o->failed && strcmp(e->name, SIM_ASK_AGENT) != 0)
            put_odd_result(&r, &o->text);
    }
    o->takes_effect = !o->failed || anyway;
    return rc;
}

/* --- hooks, policies, mocks and routing functions --- */

#define SCRIPT_ENTRY "script" /* the mock of a stage that a script plays */

/* {metadata: {key: value}}: what a hook may change without harm. */
static int put_metadata(struct sim_seed *s, struct sim_rng *r, rv_jw *w, rv_err **err)
{
    json_object *v = NULL;
    int rc = sim_any(r, 1, &v, err);

    if (rc < 0)
        return rc;
    rv_jw_key(w, "envelope");
    rv_jw_obj(w);
    rv_jw_key(w, "metadata");
    rv_jw_obj(w);
    size_t n = s->hints->n_metadata;
    rv_jw_kv_value(w, n ? s->hints->metadata[sim_below(r, (uint32_t)n)] : "seen", v);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
    json_object_put(v);
    return 0;
}

static int put_output(struct sim_seed *s, int stage, struct sim_rng *r, rv_jw *w, rv_err **err)
{
    json_object *v = NULL;
    int rc = sim_output(s, stage, r, &v, err);

    if (rc == 0)
        rv_jw_value(w, v);
    json_object_put(v);
    return rc;
}

static bool is_post(const struct rv_effect *e)
{
    return strstr(e->request, "\"hook\":\"post_process\"") != NULL;
}

/* What a hook around a call says: what fits its place, or nothing. */
static const char *around_call(const struct rv_effect *e, struct sim_rng *r)
{
    static const struct {
        const char *mark, *replies[5];
    } places[] = {
        {"\"hook\":\"before_model\"",
         {"{\"action\":\"continue\"}", "{\"action\":\"replace\",\"request\":{\"prompt\":\"another prompt\"}}",
          "{\"action\":\"replace\",\"request\":{\"options\":{\"temperature\":0.5,\"num_predict\":20}}}",
          "{\"action\":\"answer\",\"reply\":{\"output\":{\"total\":0}}}",
          "{\"action\":\"block\",\"reason\":\"a made-up reason\"}"}},
        {"\"hook\":\"after_model\"",
         {"{\"action\":\"continue\"}", "{\"action\":\"replace\",\"reply\":{\"text\":\"other words\"}}",
          "{\"action\":\"replace\",\"reply\":{\"output\":{\"total\":7}}}", "{}",
          "{\"action\":\"block\",\"reason\":\"a made-up reason\"}"}},
        {"\"hook\":\"before_tool\"",
         {"{\"action\":\"continue\"}", "{\"action\":\"answer\",\"result\":{\"data\":{\"made\":\"up\"}}}", "{}", "",
          "{\"action\":\"block\",\"reason\":\"a made-up reason\"}"}},
        {"\"hook\":\"after_tool\"",
         {"{\"action\":\"continue\"}", "{\"action\":\"replace\",\"result\":{\"data\":{\"made\":\"up\"}}}", "{}",
          "{\"action\":\"replace\",\"result\":{\"status\":\"error\",\"error\":\"made up\"}}",
          "{\"action\":\"block\",\"reason\":\"a made-up reason\"}"}},
    };

    for (size_t i = 0; i < RV_COUNT(places); i++)
        if (strstr(e->request, places[i].mark))
            return sim_below(r, 2) ? "" : places[i].replies[sim_below(r, RV_COUNT(places[i].replies))];
    return NULL;
}

static int hook(struct sim_seed *s, const struct rv_effect *e, struct sim_rng *r, rv_jw *w, rv_err **err)
{
    int rc = 0;

    rv_jw_obj(w);
    if (is_post(e) && sim_below(r, 4) < 3) {
        rv_jw_key(w, "output");
        rc = put_output(s, e->stage, r, w, err);
    }
    if (rc == 0 && sim_below(r, 3) == 2)
        rc = put_metadata(s, r, w, err);
    rv_jw_obj_end(w);
    return rc;
}

static void policy(struct sim_rng *r, rv_jw *w)
{
    static const char *const words[] = {"allow", "allow", "allow", "deny", "confirm"};
    const char *word = words[sim_below(r, RV_COUNT(words))];

    rv_jw_obj(w);
    rv_jw_kv_text(w, "decision", word);
    if (sim_below(r, 2))
        rv_jw_kv_text(w, "reason", "a made-up reason");
    rv_jw_obj_end(w);
}

static void route(struct sim_seed *s, struct sim_rng *r, rv_jw *w)
{
    const struct rv_pipeline *p = s->subject->pipeline;
    uint32_t to = sim_below(r, (uint32_t)p->n_agents + 6);

    rv_jw_obj(w);
    if (to >= 4 && to < p->n_agents + 4)
        rv_jw_kv_text(w, "next", p->agents[to - 4].name);
    else if (to == 1)
        rv_jw_kv_text(w, "terminate", "enough");
    else if (to == 2)
        rv_jw_kv_text(w, "next", "clarification");
    else if (to == 3)
        rv_jw_kv_text(w, "next", "confirmation");
    else if (to > 0)
        rv_jw_kv_text(w, "next", "end");
    rv_jw_obj_end(w);
}

static int scripted_mock(struct sim_seed *s, const struct rv_effect *e, struct sim_rng *r, rv_jw *w, rv_err **err)
{
    rv_jw_obj(w);
    rv_jw_key(w, "output");
    int rc = put_output(s, e->stage, r, w, err);
    if (rc == 0 && sim_below(r, 8) == 7) {
        rv_jw_key(w, "raise");
        rv_jw_obj(w);
        rv_jw_kv_text(w, "kind", rv_interrupt_kind_text((enum rv_interrupt_kind)sim_below(r, RV_N_INTERRUPT)));
        rv_jw_kv_text(w, "message", "a made-up question");
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
    return rc;
}

static void illegal(struct sim_rng *r, rv_buf *b)
{
    static const char *const odd[] = {"[]",
                                      "null",
                                      "7",
                                      "no json",
                                      "{\"unknown\": 1}",
                                      "{\"output\": 5}",
                                      "{\"envelope\": {\"envelope_id\": \"other\"}}",
                                      "{\"envelope\": {\"agent_hop_count\": 0}}",
                                      "{\"envelope\": {\"max_llm_calls\": 1000000}}",
                                      "{\"decision\": \"perhaps\"}",
                                      "{\"next\": \"no_such_stage\"}"};
    rv_buf_clear(b);
    rv_buf_puts(b, odd[sim_below(r, RV_COUNT(odd))]);
}

static int legal(struct sim_seed *s, const struct rv_effect *e, struct sim_rng *r, rv_buf *b, rv_err **err)
{
    const char *around = NULL;
    rv_jw w = rv_jw_on(b);
    int rc = 0;

    if (e->entry == RV_NAME_POLICY)
        policy(r, &w);
    else if (e->entry == RV_NAME_ROUTE)
        route(s, r, &w);
    else if (e->entry == RV_NAME_MOCK && strcmp(e->name, SCRIPT_ENTRY) == 0)
        rc = scripted_mock(s, e, r, &w, err);
    else if (e->entry == RV_NAME_HOOK && (around = around_call(e, r)))
        rv_buf_puts(b, around);
    else if (e->entry == RV_NAME_MOCK)
        rc = put_output(s, e->stage, r, &w, err);
    else
        rc = hook(s, e, r, &w, err);
    return rc < 0 ? rc : rv_buf_check(b, "answer", err);
}

int sim_hook_answer(struct sim_seed *s, const struct rv_effect *e, struct sim_outcome *o, rv_err **err)
{
    static const enum rv_sim_fault kinds[] = {RV_SIM_HOOK_ERROR, RV_SIM_HOOK_REPLY};
    size_t fault = sim_inject(s, kinds, RV_COUNT(kinds));
    struct sim_rng r = sim_rng_of(sim_bits(&s->tape));
    bool found = false;
    int rc = 0;

    if (fault == 1) {
        bool late = sim_below(&r, 2) == 1;
        sim_outcome_fail(o, late ? rv_error_timeout : rv_error_execution, false,
                         late ? "no answer in time" : "it failed");
        return 0;
    }
    if (e->entry == RV_NAME_MOCK && strcmp(e->name, SCRIPT_ENTRY) == 0)
        rc = sim_script_answer(s, e, RV_SCRIPT_STAGE, o, &found, err);
    else if (e->entry == RV_NAME_HOOK)
        rc = sim_script_answer(s, e, RV_SCRIPT_HOOK, o, &found, err);
    if (rc == 0 && !found)
        rc = legal(s, e, &r, &o->text, err);
    if (rc == 0 && fault == 2 && !o->failed)
        illegal(&r, &o->text);
    return rc;
}

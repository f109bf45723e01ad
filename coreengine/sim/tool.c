/* What a tool answers, and whether it did what it was asked for: a failure or a late answer says little about that. */
#include "coreengine/sim/sim_internal.h"

#include <string.h>

#define HAPPENS_ANYWAY 400 /* per mille of failures that took effect all the same */

static void fail(struct sim_seed *s, struct sim_outcome *o)
{
    static const struct {
        const char *type, *text;
        bool retryable;
    } faults[] = {
        {"ExecutionError", "disk full", false},        {"ExecutionError", "connection reset", true},
        {"NotFoundError", "no such thing", false},     {"ToolError", "busy", true},
        {"ValidationError", "that can not be", false},
    };
    size_t i = sim_draw(&s->tape, RV_COUNT(faults));

    sim_outcome_fail(o, faults[i].type, faults[i].retryable, faults[i].text);
}

static void put_odd(struct sim_rng *r, rv_buf *b)
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
        sim_outcome_fail(o, "TimeoutError", true, "no answer in time");
    } else {
        rc = sim_script_answer(s, e, RV_SCRIPT_TOOL, (rv_str){e->request, e->request_len}, o, &found, err);
        if (rc == 0 && !found && strcmp(e->name, SIM_ASK_AGENT) == 0)
            rc = sim_ask_answer(s, e, fault == 3, &r, o, err);
        else if (rc == 0 && !found)
            rc = put_result(info, &r, &o->text, err);
        if (rc == 0 && fault == 3 && !o->failed && strcmp(e->name, SIM_ASK_AGENT) != 0)
            put_odd(&r, &o->text);
    }
    o->takes_effect = !o->failed || anyway;
    return rc;
}

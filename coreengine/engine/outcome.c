/* Calls that may have happened: a non_idempotent tool call was started by a process that died. The engine asks the
 * capability's probe, if there is one; if the probe cannot tell, the engine asks a person. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/engine_internal.h"

void rv_call_forget_asked(struct call *c)
{
    if (!c->asked)
        return;
    free(c->asked->request);
    free(c->asked->owned_name);
    free(c->asked->key);
    free(c->asked);
    c->asked = NULL;
}

/* The outcome stays unknown: the core asks a person. */
static void unknown(struct call *c)
{
    rv_buf_fini(&c->text);
    c->text = RV_BUF_INIT(RV_ENGINE_MAX_ERROR);
    c->failed = false;
    c->unknown = true;
    c->due_us = rv_engine_now_us(c->x->engine);
    rv_due_moved(&c->x->engine->due, c);
}

/* The effect becomes the call's own, so that it can be made after all. */
static int keep(struct call *c, struct rv_effect *e, rv_err **err)
{
    c->asked = malloc(sizeof *c->asked);
    if (!c->asked)
        return RV_FAIL(err, RV_E_NOMEM, "ask what became of a call");
    *c->asked = *e;
    e->request = NULL;
    e->owned_name = NULL;
    e->key = NULL;
    return 0;
}

/* A probe has as long as it says, and not longer than the call it asks about. */
static void bound_probe(rv_exec *x, struct call *c)
{
    const struct rv_entry_info *info = x->under.entry(x->under.self, RV_NAME_PROBE, rv_str_of(c->name));
    int64_t until_us = info && info->timeout_ms > 0 ? c->started_us + info->timeout_ms * 1000 : 0;

    if (until_us && (!c->deadline_us || until_us < c->deadline_us))
        c->deadline_us = until_us;
}

/* {key, arguments, stage, started_at} */
static int probe(rv_exec *x, struct call *c, rv_err **err)
{
    rv_buf args = RV_BUF_INIT(2 * RV_JSON_MAX_BYTES);
    struct rv_effect ask = *c->asked;
    char started[RV_TIME_MAX];
    rv_jw w = rv_jw_on(&args);

    bound_probe(x, c);
    rv_time_format(c->asked->at_us, started);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "key", c->asked->key);
    rv_jw_key(&w, "arguments");
    rv_jw_raw(&w, (rv_str){c->asked->request, c->asked->request_len});
    rv_jw_kv_text(&w, "stage", x->opts.pipeline->agents[c->stage].name);
    rv_jw_kv_text(&w, "started_at", started);
    rv_jw_obj_end(&w);
    int rc = rv_buf_check(&args, "question to a probe", err);
    ask.kind = RV_EFFECT_CALL_HOOK;
    ask.entry = RV_NAME_PROBE;
    ask.request = rc == 0 ? rv_buf_steal(&args, &ask.request_len) : NULL;
    if (rc == 0 && !ask.request)
        rc = RV_FAIL(err, RV_E_NOMEM, "ask a probe");
    if (rc == 0)
        rc = rv_call_capability(x, c, &ask, err);
    free(ask.request);
    rv_buf_fini(&args);
    return rc;
}

int rv_call_find_outcome(rv_exec *x, struct call *c, struct rv_effect *e, rv_err **err)
{
    const struct rv_tool_info *info = x->under.tool(x->under.self, rv_str_of(e->name));

    RV_LOG(x->engine->opts.log, WARN, "call.outcome_unknown", RV_F_TEXT("tool", e->name),
           RV_F_I64("call_id", e->call_id), RV_F_TEXT("key", e->key ? e->key : ""));
    /* what a probe does not see yet may still come of an owner who lives */
    bool settled = rv_exec_now_us(x) >= x->under_way_until_us;
    if (!e->key || !x->opts.plugins || !info || !info->has_probe || !settled) {
        unknown(c);
        return 0;
    }
    int rc = keep(c, e, err);
    return rc < 0 ? rc : probe(x, c, err);
}

/* It did not happen: make the call. */
static bool make_it(struct call *c)
{
    rv_exec *x = c->x;
    struct rv_effect e = *c->asked;
    rv_err *err = NULL;

    free(c->asked);
    c->asked = NULL;
    rv_buf_fini(&c->text);
    c->text = RV_BUF_INIT(RV_ENGINE_MAX_ERROR);
    c->due_us = c->started_us = rv_engine_now_us(x->engine);
    c->deadline_us = e.deadline_us ? rv_exec_due_us(x, e.deadline_us) : 0; /* it was the probe's */
    rv_due_moved(&x->engine->due, c);
    int rc = rv_lease_check(x, &err);
    if (rc == 0)
        rc = rv_call_make_tool(c, &e, &err);
    free(e.request);
    free(e.owned_name);
    free(e.key);
    if (rc < 0)
        rv_exec_break(x, rc, err);
    return false;
}

bool rv_call_probed(struct call *c)
{
    const struct rv_json_opts opts = {.what = "answer of a probe"};
    json_object *answer = NULL, *result;
    bool happened = false;

    if (!c->failed)
        RV_IGNORE(rv_json_parse(rv_buf_str(&c->text), &opts, &answer, NULL), "what can not be read says nothing");
    if (!answer || !rv_json_get_bool(answer, "happened", &happened)) {
        json_object_put(answer);
        rv_call_forget_asked(c);
        unknown(c);
        return true;
    }
    if (!happened) {
        json_object_put(answer);
        return make_it(c);
    }
    rv_call_forget_asked(c);
    rv_buf_fini(&c->text);
    c->text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    result = rv_json_get_obj(answer, "result");
    if (result)
        rv_json_write(result, &c->text);
    else
        rv_buf_puts(&c->text, "{}");
    json_object_put(answer);
    return true;
}

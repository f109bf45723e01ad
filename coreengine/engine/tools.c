/* The tools of a run: its sources, composed into the catalog that the core decides by, and the calls of its tools. The
 * source of a tool answers; nothing here knows which kind it is. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/services_internal.h"
#include "envelope/envelope.h"

#define PROGRESS_US        (250 * RV_US_PER_MS) /* between two events of a call: a person reads no faster */
#define MAX_PROGRESS       200                  /* events of one call: a tool may report without end */
#define MAX_PROGRESS_WORDS 500                  /* bytes of its text in an event: it is one line of a client's page */
#define MAX_PROGRESS_LINE  ((size_t)8 << 10)    /* bytes of the event: MAX_PROGRESS_WORDS, ids and escapes */

/* --- sources --- */

void engine_run_tools_init(struct run_tools *t, const struct rv_exec_opts *o, rv_engine *e)
{
    const struct rv_tool_workers workers = engine_pool(e);
    struct rv_catalog under = o->plugins ? rv_plugins_catalog(o->plugins) : rv_catalog_empty;
    size_t n = 0;

    under.tool = rv_catalog_empty.tool; /* their source has them */
    under.tool_name = NULL;
    t->sources[n++] = engine_ask_tools_init(&t->asked, o, e ? e->opts.log : NULL);
    if (o->plugins)
        t->sources[n++] = rv_plugin_tools_init(&t->capabilities, o->plugins, &workers);
    if (o->script) {
        t->script = rv_script_tools(o->script);
        t->sources[n++] = &t->script;
    }
    if (o->mcp) {
        t->mcp = rv_mcp_tools_source(o->mcp, &workers);
        t->sources[n++] = &t->mcp;
    }
    t->set = (struct rv_tool_set){.under = o->catalog ? *o->catalog : under,
                                  .is_whole = o->catalog != NULL,
                                  .sources = t->sources,
                                  .n_sources = n};
}

void engine_run_tools_fini(struct run_tools *t)
{
    for (size_t i = 0; i < t->set.n_sources; i++)
        rv_tool_source_close(t->sources[i]);
    if (t->attached)
        rv_mcp_pool_detach(t->attached);
    t->attached = NULL;
}

/* --- calls --- */

static void take_reply(struct call *c, struct rv_tool_reply *reply)
{
    c->failed = reply->failed;
    c->retryable = reply->retryable;
    c->reports_error = reply->reports_error;
    c->asks = reply->asks;
    c->code = reply->code;
    snprintf(c->error_type, sizeof c->error_type, "%s", reply->error_type ? reply->error_type : "");
    rv_buf_fini(&c->text);
    c->text = reply->text;
    rv_buf_fini(&c->partial);
    c->partial = reply->partial;
    reply->text = reply->partial = RV_BUF_INIT(0);
    if (reply->after_us > 0) {
        c->delay_us = reply->after_us;
        engine_call_schedule(c);
    } else {
        engine_call_answered(c);
    }
}

static void done(struct rv_tool_call *t, struct rv_tool_reply *reply)
{
    take_reply((struct call *)((char *)t - offsetof(struct call, tool)), reply);
}

/* What a tool says of its progress is for observers only: it is told as often as a person can read it. */
static void progressed(struct rv_tool_call *t, const struct rv_tool_progress *p)
{
    struct call *c = (struct call *)((char *)t - offsetof(struct call, tool));
    rv_buf line = RV_BUF_INIT(MAX_PROGRESS_LINE);
    int64_t now_us = rv_engine_now_us(c->x->engine);
    char time[RV_TIME_MAX];
    rv_jw w = rv_jw_on(&line);

    if (c->n_progress >= MAX_PROGRESS || (c->n_progress > 0 && now_us - c->progress_us < PROGRESS_US) ||
        !engine_observes(c->x))
        return;
    c->n_progress++;
    c->progress_us = now_us;
    rv_time_format(now_us, time);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "type", rv_emit_text(RV_EMIT_TOOL_PROGRESS));
    rv_jw_kv_text(&w, "time", time);
    rv_jw_kv_bool(&w, "kept", false);
    rv_jw_kv_text(&w, "stage", c->x->opts.pipeline->agents[c->stage].name);
    rv_jw_kv_int(&w, "call_id", c->call_id);
    rv_jw_kv_text(&w, "tool", c->name);
    rv_jw_key(&w, "progress");
    rv_jw_double(&w, p->progress);
    if (p->total > 0) {
        rv_jw_key(&w, "total");
        rv_jw_double(&w, p->total);
    }
    if (p->text.len > 0)
        rv_jw_kv_str(&w, "message", rv_utf8_cut(p->text, MAX_PROGRESS_WORDS));
    rv_jw_obj_end(&w);
    if (line.rc == 0)
        engine_observe_unkept(c->x, RV_EMIT_TOOL_PROGRESS, rv_buf_str(&line));
    rv_buf_fini(&line);
}

/* Answers of MCP servers come on the engine's loop. */
static int attach_mcp(rv_exec *x, rv_err **err)
{
    rv_mcp_pool *pool = rv_mcp_tools_pool(x->opts.mcp);

    if (!pool)
        return 0; /* the source says so */
    if (x->engine->opts.virtual_time)
        return RV_FAIL(err, RV_E_STATE, "MCP servers are not called in simulated time: a script can play their tools");
    int rc = engine_loop_ensure(x->engine, err);
    if (rc == 0)
        rc = rv_mcp_pool_attach(pool, engine_loop_uv(x->engine->loop), err);
    if (rc == 0 && !x->engine->opts.loop) /* a loop of the engine, which ends before the connections do */
        x->tools.attached = pool;
    return rc;
}

static int call_source(struct rv_tool_source *s, struct call *c, const struct rv_effect *e, rv_err **err)
{
    rv_exec *x = c->x;
    const struct rv_envelope *env = rv_run_envelope(x->run);
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    const struct rv_context context = engine_call_who(c);
    struct rv_trace_headers trace;
    bool has_trace = exec_trace(x, c->call_id, &trace);

    c->tool = (struct rv_tool_call){.tool = c->name,
                                    .args = {e->request, e->request_len},
                                    .input = {e->about, e->about_len},
                                    .stage = x->opts.pipeline->agents[c->stage].name,
                                    .agent = engine_effect_who(x->opts.pipeline, e),
                                    .visit = e->visit,
                                    .index = e->index,
                                    .branch = engine_effect_branch(e),
                                    .run_id = f->envelope_id,
                                    .call_id = c->call_id,
                                    .user_id = rv_envelope_user(env),
                                    .session_id = f->session_id,
                                    .key = e->key ? e->key : "",
                                    .context = &context,
                                    .traceparent = has_trace ? trace.parent : NULL,
                                    .tracestate = has_trace ? trace.state : NULL,
                                    .is_beside = e->is_beside,
                                    .wants_result = e->wants_result,
                                    .models_left = e->models_left,
                                    .money_left = e->money_left,
                                    .timeout_ms = c->deadline_us ? (c->deadline_us - c->started_us) / RV_US_PER_MS : 0,
                                    .done = done,
                                    .progress = progressed};
    int rc = s == &x->tools.mcp ? attach_mcp(x, err) : 0;
    if (rc == 0)
        rc = rv_tool_source_call(s, &c->tool, err);
    if (rc == 0 && engine_call_is_under_way(c))
        engine_call_await(c);
    return rc;
}

/* NULL: nothing can answer. */
static struct rv_tool_source *source_of(rv_exec *x, const char *tool)
{
    struct rv_tool_source *s = rv_tool_set_find(&x->tools.set, rv_str_of(tool)).source;

    return s || !x->opts.plugins ? s : &x->tools.capabilities.source; /* it answers that it does not have the tool */
}

static int make_call(struct rv_tool_source *s, struct call *c, const struct rv_effect *e, rv_err **err)
{
    rv_exec *x = c->x;
    struct rv_script_reply kept;

    engine_health_bind(c, s);
    if (!rv_run_checks_breakers(x->run) && engine_health_blocks(c)) {
        engine_health_unbind(c);
        engine_call_fail(c, rv_error_tool, true, "tool \"%s\" is blocked: it failed %d times within %d s", c->name,
                         RV_BREAKER_ERRORS, (int)(RV_BREAKER_WINDOW_US / RV_US_PER_S));
        return 0;
    }
    if (s && s->stands_in && engine_kept_take(x, c->call_id, &kept)) {
        struct rv_tool_reply reply = rv_script_tool_reply(&kept);
        take_reply(c, &reply);
        return 0;
    }
    if (!s) {
        engine_call_fail(c, rv_error_not_found, false, "no capability is loaded that has tool \"%s\"", c->name);
        return 0;
    }
    int rc = call_source(s, c, e, err);
    if (rc == RV_E_NOT_FOUND)
        engine_health_unbind(c); /* a reply that the script lacks is not a failure of the tool */
    return rc < 0 ? engine_call_fail_with(c, rv_error_execution, rc, err) : 0;
}

/* --- calls that may have happened: a non_idempotent tool call was started by a process that died. The engine asks the
 * capability's probe, if there is one; if the probe cannot tell, the engine asks a person --- */

void engine_call_forget_asked(struct call *c)
{
    if (!c->asked)
        return;
    rv_effect_fini(c->asked);
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
    engine_due_moved(&c->x->engine->due, c);
}

/* The effect becomes the call's own, so that it can be made after all. */
static int keep(struct call *c, struct rv_effect *e, rv_err **err)
{
    c->asked = malloc(sizeof *c->asked);
    if (!c->asked)
        return RV_FAIL(err, RV_E_NOMEM, "ask about the outcome of a call");
    *c->asked = *e;
    e->request = NULL;
    e->owned_name = NULL;
    e->key = NULL;
    e->path = e->label = e->about = NULL;
    e->ids = NULL;
    e->turn = NULL;
    return 0;
}

/* A probe has the time that it declares, at most that of the call that it asks about. */
static void bound_probe(rv_exec *x, struct call *c)
{
    const struct rv_entry_info *info = x->under.entry(x->under.self, RV_NAME_PROBE, rv_str_of(c->name));
    int64_t until_us = info && info->timeout_ms > 0 ? c->started_us + info->timeout_ms * RV_US_PER_MS : 0;

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
        rc = engine_call_capability(x, c, &ask, err);
    free(ask.request);
    rv_buf_fini(&args);
    return rc;
}

/* Find out about a started non_idempotent call: by its probe, or by asking a person. */
static int find_outcome(rv_exec *x, struct call *c, struct rv_effect *e, rv_err **err)
{
    const struct rv_tool_info *info = x->under.tool(x->under.self, rv_str_of(e->name));

    RV_LOG(x->log, WARN, "call.outcome_unknown", RV_F_TEXT("stage", engine_call_stage(c)), RV_F_I64("visit", e->visit),
           RV_F_I64("call_id", e->call_id), RV_F_TEXT("tool", e->name), RV_F_TEXT("key", e->key ? e->key : ""));
    /* an owner that still lives may yet make the call that the probe does not see */
    bool settled = exec_now_us(x) >= x->under_way_until_us;
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
    c->deadline_us = e.deadline_us ? exec_due_us(x, e.deadline_us) : 0; /* it was the probe's */
    engine_due_moved(&x->engine->due, c);
    int rc = engine_lease_check(x, &err);
    if (rc == 0)
        rc = make_call(source_of(x, e.name), c, &e, &err);
    rv_effect_fini(&e);
    if (rc < 0)
        exec_break(x, rc, err);
    return false;
}

bool engine_call_probed(struct call *c)
{
    const struct rv_json_opts opts = {.what = "answer of a probe"};
    json_object *answer = NULL, *result;
    bool happened = false;

    if (!c->failed)
        RV_IGNORE(rv_json_parse(rv_buf_str(&c->text), &opts, &answer, NULL),
                  "an answer that cannot be read says nothing");
    if (!answer || !rv_json_get_bool(answer, "happened", &happened)) {
        json_object_put(answer);
        engine_call_forget_asked(c);
        unknown(c);
        return true;
    }
    if (!happened) {
        json_object_put(answer);
        return make_it(c);
    }
    engine_call_forget_asked(c);
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

int engine_call_tool(struct call *c, struct rv_effect *e, rv_err **err)
{
    struct rv_tool_source *s = source_of(c->x, e->name);
    bool once = e->effect_class == RV_EFFECT_NON_IDEMPOTENT;

    if (once && c->x->recovers && !(s && s->stands_in))
        return find_outcome(c->x, c, e, err);
    int rc = once ? engine_lease_check(c->x, err) : 0;
    return rc < 0 ? rc : make_call(s, c, e, err);
}

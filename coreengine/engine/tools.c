/* The tools of a run: its sources, composed into the catalog that the core decides by, and the calls of its tools. The
 * source of a tool answers; nothing here knows which kind it is. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/engine/engine_internal.h"

/* --- the engine's workers, as sources use them --- */

static int begin_work(void *self, struct rv_tool_work *w, rv_err **err)
{
    rv_engine *e = self;

    if (w->never_blocks) {
        int64_t begun_us = rv_watch_begin();
        w->run(w);
        rv_watch_end(e, begun_us, "tool", w->tool);
        w->done(w);
        w->free(w);
        return 0;
    }
    int rc = rv_engine_ensure_pool(e, err);
    if (rc < 0)
        return rc;
    struct job *j = calloc(1, sizeof *j);
    if (!j)
        return RV_FAIL(err, RV_E_NOMEM, "call a tool");
    j->work = w;
    rc = rv_pool_submit(e->pool, j, err);
    if (rc < 0) {
        free(j);
        return rc;
    }
    w->host = j;
    return 0;
}

static void give_up_work(void *self, struct rv_tool_work *w)
{
    rv_engine *e = self;

    atomic_store(&w->cancelled, true);
    rv_pool_give_up(e->pool, w->host);
}

/* --- sources --- */

void rv_run_tools_init(struct run_tools *t, const struct rv_exec_opts *o, rv_engine *e)
{
    const struct rv_tool_workers workers = {begin_work, give_up_work, e};
    struct rv_catalog under = o->plugins ? rv_plugins_catalog(o->plugins) : rv_catalog_empty;
    size_t n = 0;

    under.tool = rv_catalog_empty.tool; /* their source has them */
    under.tool_name = NULL;
    t->sources[n++] = rv_ask_tools_init(&t->asked, o, e ? e->opts.log : NULL);
    if (o->plugins)
        t->sources[n++] = rv_plugin_tools_init(&t->capabilities, o->plugins, &workers);
    if (o->script) {
        t->script = rv_script_tools(o->script);
        t->sources[n++] = &t->script;
    }
    t->set = (struct rv_tool_set){.under = o->catalog ? *o->catalog : under,
                                  .is_whole = o->catalog != NULL,
                                  .sources = t->sources,
                                  .n_sources = n};
}

void rv_run_tools_fini(struct run_tools *t)
{
    for (size_t i = 0; i < t->set.n_sources; i++)
        rv_tool_source_close(t->sources[i]);
}

/* --- calls --- */

static void take_reply(struct call *c, struct rv_tool_reply *reply)
{
    rv_engine *e = c->x->engine;

    c->failed = reply->failed;
    c->retryable = reply->retryable;
    c->reports_error = reply->reports_error;
    c->code = reply->code;
    snprintf(c->error_type, sizeof c->error_type, "%s", reply->error_type ? reply->error_type : "");
    rv_buf_fini(&c->text);
    c->text = reply->text;
    rv_buf_fini(&c->partial);
    c->partial = reply->partial;
    reply->text = reply->partial = RV_BUF_INIT(0);
    if (reply->after_us > 0) {
        c->delay_us = reply->after_us;
        rv_call_schedule(c);
    } else if (!e->opts.virtual_time) {
        c->due_us = rv_engine_now_us(e);
        rv_due_moved(&e->due, c);
    }
}

static void done(struct rv_tool_call *t, struct rv_tool_reply *reply)
{
    take_reply((struct call *)((char *)t - offsetof(struct call, tool)), reply);
}

static int call_source(struct rv_tool_source *s, struct call *c, const struct rv_effect *e, rv_err **err)
{
    rv_exec *x = c->x;
    const struct rv_envelope *env = rv_run_envelope(x->run);
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    const struct rv_context context = rv_call_who(c);

    c->tool = (struct rv_tool_call){.tool = c->name,
                                    .args = {e->request, e->request_len},
                                    .stage = x->opts.pipeline->agents[c->stage].name,
                                    .agent = rv_effect_who(x->opts.pipeline, e),
                                    .visit = e->visit,
                                    .run_id = f->envelope_id,
                                    .user_id = rv_envelope_user(env),
                                    .session_id = f->session_id,
                                    .key = e->key ? e->key : "",
                                    .context = &context,
                                    .timeout_ms = c->deadline_us ? (c->deadline_us - c->started_us) / 1000 : 0,
                                    .done = done};
    int rc = rv_tool_source_call(s, &c->tool, err);
    if (rc == 0 && rv_call_is_under_way(c))
        rv_call_await(c);
    return rc;
}

/* NULL: nothing can answer. */
static struct rv_tool_source *source_of(rv_exec *x, const char *tool)
{
    struct rv_tool_source *s = rv_tool_set_find(&x->tools.set, rv_str_of(tool)).source;

    return s || !x->opts.plugins ? s : &x->tools.capabilities.source; /* which says what it does not have */
}

static int make_call(struct rv_tool_source *s, struct call *c, const struct rv_effect *e, rv_err **err)
{
    rv_exec *x = c->x;
    struct rv_script_reply kept;
    int health = s && s->is_engines ? -1 : rv_tool_watch(x->engine, c->name);

    if (!rv_run_minds_breakers(x->run) && rv_tool_is_blocked(x->engine, health)) {
        rv_call_fail(c, "ToolError", true, "tool \"%s\" is blocked: it failed %d times within %d s", c->name,
                     RV_BREAKER_ERRORS, (int)(RV_BREAKER_WINDOW_US / 1000000));
        return 0;
    }
    c->health = health;
    if (s && s->stands_in && rv_kept_take(x, c->call_id, &kept)) {
        struct rv_tool_reply reply = rv_script_tool_reply(&kept);
        take_reply(c, &reply);
        return 0;
    }
    if (!s) {
        rv_call_fail(c, "NotFoundError", false, "no capability is loaded that has tool \"%s\"", c->name);
        return 0;
    }
    int rc = call_source(s, c, e, err);
    if (rc == RV_E_NOT_FOUND)
        c->health = -1; /* a hole in the script says nothing about the tool */
    return rc < 0 ? rv_call_fail_with(c, "ExecutionError", rc, err) : 0;
}

int rv_call_make_tool(struct call *c, const struct rv_effect *e, rv_err **err)
{
    return make_call(source_of(c->x, e->name), c, e, err);
}

int rv_call_tool(struct call *c, struct rv_effect *e, rv_err **err)
{
    struct rv_tool_source *s = source_of(c->x, e->name);
    bool once = e->effect_class == RV_EFFECT_NON_IDEMPOTENT;

    if (once && c->x->recovers && !(s && s->stands_in))
        return rv_call_find_outcome(c->x, c, e, err);
    int rc = once ? rv_lease_check(c->x, err) : 0;
    return rc < 0 ? rc : make_call(s, c, e, err);
}

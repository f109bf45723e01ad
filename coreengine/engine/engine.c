/* The engine and its runs as callers see them: made, started, waited for, cancelled, freed. */
#include <stdlib.h>
#include <unistd.h>

#include "coreengine/engine/engine_internal.h"

#define LOOK_EVERY 64 /* turns without a sleep between two looks at signals and descriptors */

int rv_engine_new(const struct rv_engine_opts *opts, rv_engine **out, rv_err **err)
{
    rv_engine *e;

    if (opts->loop && opts->virtual_time)
        return RV_FAIL(err, RV_E_INVALID, "make an engine: simulated time needs no loop and cannot use one");
    e = calloc(1, sizeof *e);
    if (!e)
        return RV_FAIL(err, RV_E_NOMEM, "make an engine");
    e->opts = *opts;
    e->clock = opts->clock.now_us ? opts->clock : rv_clock_system();
    e->virtual_us = opts->virtual_start_us;
    atomic_init(&e->cancel_all, false);
    int rc = e->opts.handle_signals ? rv_signals_watch(e, err) : 0;
    if (rc < 0) {
        free(e);
        return rc;
    }
    rc = e->opts.loop ? rv_loop_ensure(e, err) : 0;
    if (rc == 0)
        rc = rv_writer_start(e, err);
    if (rc < 0) {
        rv_engine_free(e);
        return rc;
    }
    *out = e;
    return 0;
}

void rv_engine_free(rv_engine *e)
{
    if (!e)
        return;
    for (rv_exec *x = e->execs, *next; x; x = next) {
        next = x->next;
        rv_keep_wait(x);
        rv_call_free_all(x);
        x->over = true;
        x->engine = NULL;
        x->prev = x->next = NULL;
    }
    rv_signals_unwatch(e);
    rv_leases_free(e);
    rv_writer_free(e->writer);
    rv_models_free(e);
    rv_pool_free(e->pool);
    rv_loop_free(e->loop);
    rv_due_fini(&e->due);
    for (size_t i = 0; i < e->n_tools; i++)
        free(e->tools[i].name);
    free(e->tools);
    rv_index_fini(&e->tool_index);
    free(e);
}

bool rv_engine_settle(rv_engine *e, int64_t wait_ms)
{
    struct pool *pool = e->pool;
    return !pool || rv_pool_settle(pool, wait_ms * 1000);
}

int64_t rv_engine_now_us(const rv_engine *e)
{
    return e->opts.virtual_time ? e->virtual_us : e->clock.now_us(e->clock.self);
}

size_t rv_engine_workers(const rv_engine *e)
{
    size_t n = e->opts.workers ? e->opts.workers : RV_ENGINE_WORKERS;

    return n > RV_ENGINE_MAX_WORKERS ? RV_ENGINE_MAX_WORKERS : n;
}

void rv_engine_cancel_all(rv_engine *e)
{
    atomic_store(&e->cancel_all, true); /* first, so that a loop that is just being made sees it */
    struct shell_loop *loop = e->loop;
    struct pool *pool = e->pool;
    if (loop)
        rv_loop_wake(loop);
    else if (pool)
        rv_pool_poke(pool);
}

void rv_engine_forget_cancel(rv_engine *e)
{
    atomic_store(&e->cancel_all, false);
}

void rv_engine_signalled(rv_engine *e)
{
    struct shell_loop *loop = e->loop;

    atomic_store(&e->cancel_all, true);
    if (loop)
        rv_loop_wake(loop);
}

/* --- runs --- */

int64_t rv_exec_now_us(rv_exec *x)
{
    int64_t now_us = rv_engine_now_us(x->engine) + x->ahead_us;

    if (now_us > x->last_us)
        x->last_us = now_us;
    return x->last_us;
}

int64_t rv_exec_due_us(const rv_exec *x, int64_t run_us)
{
    return run_us > x->ahead_us ? run_us - x->ahead_us : run_us;
}

/* Takes env on every path. */
static int new_run(rv_exec *x, rv_envelope *env, rv_err **err)
{
    const struct rv_exec_opts *o = &x->opts;
    const struct rv_run_opts opts = {.rules = o->rules,
                                     .mode = o->mode,
                                     .use_mocks = o->use_mocks,
                                     .scripted_stages = x->scripted,
                                     .emits = rv_observes(x),
                                     .saves = o->saves,
                                     .conversation = o->conversation,
                                     .max_parallel = o->max_parallel ? o->max_parallel : RV_ENGINE_MAX_PARALLEL};

    return rv_run_new(o->pipeline, &x->catalog, &opts, env, &x->run, err);
}

static int prepare(rv_exec *x, rv_err **err)
{
    const struct rv_exec_opts *o = &x->opts;
    size_t n = o->pipeline->n_agents;

    x->under = o->plugins ? rv_plugins_catalog(o->plugins) : rv_catalog_empty;
    rv_run_tools_init(&x->tools, o, x->engine);
    x->catalog = rv_tool_set_catalog(&x->tools.set);
    if (!o->script)
        return 0;
    x->scripted = calloc(n ? n : 1, sizeof *x->scripted);
    if (!x->scripted)
        return RV_FAIL(err, RV_E_NOMEM, "start a run");
    rv_script_stages(o->script, o->pipeline, x->scripted);
    return 0;
}

/* The texts of a step that was not written are kept for the caller that waits for them. */
static void save_unkept(rv_exec *x)
{
    for (size_t i = 0; i < x->effects.n; i++) {
        struct rv_effect *e = &x->effects.items[i];
        if (e->kind != RV_EFFECT_KEEP)
            continue;
        free(x->unkept);
        x->unkept = e->request;
        x->unkept_len = e->request_len;
        e->request = NULL;
    }
}

rv_str rv_exec_unkept(const rv_exec *x)
{
    return (rv_str){x->unkept, x->unkept ? x->unkept_len : 0};
}

void rv_exec_unkept_by(rv_exec *x, rv_err **err)
{
    x->is_unkept = true;
    save_unkept(x);
    rv_err_hint(err, "nothing was done that its journal does not have; `reeve runs recover %s` goes on with the run",
                rv_journal_run(x->opts.journal));
}

static int keep(rv_exec *x, const struct rv_event *ev, rv_err **err)
{
    int rc;

    if (rv_keeps_aside(x)) {
        rc = rv_keep_aside(x, ev, err);
    } else {
        rv_lease_limit_wait(x->engine);
        rc = rv_journal_step(x->opts.journal, ev, &x->effects, x->run, err);
        rv_lease_free_wait(x->engine);
        if (rc == 0)
            rv_lease_proved(x);
    }
    if (rc < 0)
        rv_exec_unkept_by(x, err);
    return rc;
}

static int step(rv_exec *x, const struct rv_event *ev, rv_err **err)
{
    if (x->opts.on_input)
        x->opts.on_input(x->opts.self, ev);
    int rc = rv_run_step(x->run, ev, &x->effects, err);
    return rc < 0 || !x->opts.journal ? rc : keep(x, ev, err);
}

int rv_exec_step(rv_exec *x, const struct rv_event *ev, rv_err **err)
{
    struct rv_event told = *ev;
    json_object *blocked = NULL;

    int rc = rv_tools_blocked(x, &blocked, err);
    told.blocked = blocked;
    if (rc == 0)
        rc = step(x, &told, err);
    json_object_put(blocked);
    return rc;
}

int rv_exec_begin(rv_exec *x, rv_err **err)
{
    if (x->is_keeping) /* they are performed when it is kept */
        return 0;
    return rv_call_new(x, CALL_BEGIN, rv_engine_now_us(x->engine), 0) ? 0 : RV_FAIL(err, RV_E_NOMEM, "start a run");
}

static int first_step(rv_exec *x, const struct rv_response *response, rv_err **err)
{
    struct rv_event ev = {.kind = RV_EVENT_START, .now_us = rv_exec_now_us(x)};

    if (response) {
        ev.kind = RV_EVENT_ANSWER;
        ev.response = *response;
    }
    int rc = rv_exec_step(x, &ev, err);
    return rc < 0 ? rc : rv_exec_begin(x, err);
}

int rv_exec_new(rv_engine *e, const struct rv_exec_opts *opts, rv_exec **out, rv_err **err)
{
    rv_exec *x = calloc(1, sizeof *x);

    if (!x)
        return RV_FAIL(err, RV_E_NOMEM, "start a run");
    x->engine = e;
    x->opts = *opts;
    x->answers = opts->answer_from_script && opts->script;
    if (opts->journal)
        rv_journal_hold(opts->journal, x->answers || opts->holds);
    x->number = e->n_started++;
    x->status = RV_RUN_RUNNING;
    x->next = e->execs;
    if (x->next)
        x->next->prev = x;
    e->execs = x;
    e->n_live++;
    if (e->opts.loop)
        rv_loop_hold(e->loop);
    int rc = prepare(x, err);
    if (rc < 0) {
        rv_exec_free(x);
        return rc;
    }
    *out = x;
    return 0;
}

int rv_engine_start(rv_engine *e, const struct rv_exec_opts *opts, rv_envelope *env, const struct rv_response *response,
                    rv_exec **out, rv_err **err)
{
    rv_exec *x = NULL;

    int rc = rv_exec_new(e, opts, &x, err);
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    for (size_t i = 0; i < opts->pipeline->n_agents && rc == 0 && !response; i++)
        rc = rv_exec_check_stage(&x->opts, &x->catalog, x->scripted, (int)i, err);
    if (rc < 0) {
        rv_envelope_free(env);
        rv_exec_free(x);
        return rc;
    }
    rc = new_run(x, env, err);
    if (rc == 0)
        rc = first_step(x, response, err);
    if (rc < 0) {
        if (x->is_unkept && err && !e->opts.loop) /* a host is told nothing before this returns */
            rv_exec_tell_end(x, *err);
        rv_exec_free(x);
        return rc;
    }
    *out = x;
    return 0;
}

int rv_engine_wait(rv_engine *e, rv_exec *x, rv_err **err)
{
    bool is_virtual = e->opts.virtual_time;

    while (!x->over) {
        int rc =
            x->calls || x->cancel_asked || x->is_keeping ? 0 : RV_FAIL(err, RV_E_INTERNAL, "the run waits for nothing");
        if (rc == 0 && !rv_engine_turn(e) && !is_virtual)
            rc = rv_loop_run(e, true, err);
        else if (rc == 0 && ++e->n_turns % LOOK_EVERY == 0 && e->loop)
            rc = rv_loop_run(e, false, err);
        if (rc < 0)
            return rc;
    }
    if (x->rc == 0)
        return 0;
    if (err) {
        *err = x->err;
        x->err = NULL;
    }
    return x->rc;
}

void rv_exec_end(rv_exec *x)
{
    rv_engine *e = x->engine;

    if (x->over)
        return;
    x->over = x->is_untold = true;
    e->n_live--;
    e->n_untold++;
}

int rv_exec_answer(rv_exec *x, const struct rv_response *response, rv_err **err)
{
    rv_engine *e = x->engine;
    struct rv_event ev = {.kind = RV_EVENT_ANSWER, .response = *response};

    if (!e || !x->over || x->rc < 0 || x->status != RV_RUN_INTERRUPTED)
        return RV_FAIL(err, RV_E_STATE, "the run waits for no answer");
    if (x->opts.journal && !x->answers && !x->opts.holds)
        return RV_FAIL(err, RV_E_STATE, "run \"%s\" was given up when it paused; open its journal again",
                       rv_journal_run(x->opts.journal));
    ev.now_us = rv_exec_now_us(x);
    int rc = rv_exec_step(x, &ev, err);
    if (rc == 0)
        rc = rv_exec_begin(x, err);
    if (rc < 0) {
        if (x->is_unkept || rc == RV_E_NOMEM) /* what the core was told cannot be undone */
            x->rc = rc;
        return rc;
    }
    e->n_untold -= x->is_untold;
    x->over = x->is_untold = false;
    x->status = RV_RUN_RUNNING;
    e->n_live++;
    if (e->opts.loop)
        rv_loop_hold(e->loop);
    return 0;
}

void rv_exec_break(rv_exec *x, int rc, rv_err *err)
{
    rv_call_free_all(x);
    if (x->is_keeping) {
        x->is_broken = true;
        x->rc = rc;
        rv_err_free(x->err);
        x->err = err;
        return;
    }
    rv_effects_clear(&x->effects);
    rv_exec_end(x);
    rv_exec_tell_end(x, err);
    if (rc == RV_E_NOMEM || rc == RV_E_INTERNAL)
        x->status = RV_RUN_FAILED;
    x->rc = rc;
    rv_err_free(x->err);
    x->err = err;
}

void rv_exec_read_on(rv_exec *x)
{
    for (struct call *c = x->calls; c; c = c->next)
        rv_model_read_on(c);
}

void rv_exec_cancel(rv_exec *x)
{
    if (x->over)
        return;
    x->cancel_asked = true;
    x->engine->any_cancel = true;
}

bool rv_exec_is_over(const rv_exec *x)
{
    return x->over;
}

enum rv_run_status rv_exec_status(const rv_exec *x)
{
    return x->status;
}

const rv_err *rv_exec_failure(const rv_exec *x)
{
    return x->run ? rv_run_failure(x->run) : NULL;
}

const rv_envelope *rv_exec_envelope(const rv_exec *x)
{
    return x->run ? rv_run_envelope(x->run) : NULL;
}

rv_envelope *rv_exec_steal_envelope(rv_exec *x)
{
    return x->run ? rv_run_steal_envelope(x->run) : NULL;
}

void rv_exec_free(rv_exec *x)
{
    if (!x)
        return;
    if (x->engine) {
        rv_keep_wait(x);
        rv_call_free_all(x);
        x->engine->n_live -= !x->over;
        x->engine->n_untold -= x->is_untold;
        if (x->prev)
            x->prev->next = x->next;
        else
            x->engine->execs = x->next;
        if (x->next)
            x->next->prev = x->prev;
    }
    rv_run_tools_fini(&x->tools);
    rv_run_free(x->run);
    rv_conversation_free(x->conversation);
    rv_effects_fini(&x->effects);
    free(x->unkept);
    rv_kept_free(x->kept);
    free(x->scripted);
    rv_err_free(x->err);
    free(x);
}

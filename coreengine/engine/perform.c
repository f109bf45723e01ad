/* Effects become answers: from the script, from a capability on a worker, or a failure that says why none of them can.
 * This file does not call the core: every answer goes through the queue, even an immediate one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/stuck_internal.h"
#include "envelope/envelope.h"

/* --- models --- */

static int model_failed(struct call *c, int rc, enum rv_llm_error kind, rv_err **err)
{
    rc = engine_call_fail_with(c, rv_error_llm, rc, err);
    c->answer.error_kind = (int)kind;
    return rc;
}

static void no_provider(struct call *c, const char *provider, const char *model)
{
    if (provider && strcmp(provider, "scripted") == 0)
        engine_call_fail(c, rv_error_llm, false,
                         "model role \"%s\" has the scripted provider, and there is no script: give one with --script",
                         c->name);
    else if (provider)
        engine_call_fail(
            c, rv_error_llm, false,
            "model role \"%s\" is %s:%s, which takes real time, and this run's time is simulated: a script can "
            "answer for it, or `reeve test --live` asks it",
            c->name, provider, model ? model : "");
    else
        engine_call_fail(c, rv_error_llm, false,
                         "model role \"%s\" has no model: name one under models, or answer for it with --script",
                         c->name);
    c->answer.error_kind = RV_LLM_ERROR_BAD_REQUEST;
}

/* A provider of a capability that does not know what attachments are would answer as if there were none. */
static bool takes(const rv_exec *x, const char *provider, json_object *request)
{
    const struct rv_entry_info *info = NULL;

    if (!rv_json_get_arr(request, "attachments"))
        return true;
    if (x->opts.plugins) {
        struct rv_catalog catalog = rv_plugins_catalog(x->opts.plugins);
        info = catalog.entry(catalog.self, RV_NAME_PROVIDER, rv_str_of(provider));
    }
    return !info || info->takes_attachments; /* NULL: the call fails by itself */
}

/* Who answers, if not the script. */
static int call_provider(rv_exec *x, struct call *c, struct rv_effect *e, json_object *request, rv_err **err)
{
    const char *provider = rv_json_text_or(request, "provider", NULL);
    const char *model = rv_json_text_or(request, "model", NULL);

    if (provider && rv_provider_is_capability(provider)) {
        if (takes(x, provider, request)) {
            if (x->opts.on_payload)
                x->opts.on_payload(x->opts.self, c->call_id, provider, (rv_str){e->request, e->request_len});
            return engine_call_capability(x, c, e, err);
        }
        engine_call_fail(c, rv_error_llm, false, "provider \"%s\" takes no attachments, and the request has some",
                         provider);
        c->answer.error_kind = RV_LLM_ERROR_BAD_REQUEST;
        return 0;
    }
    if (!provider || strcmp(provider, "scripted") == 0 || x->engine->opts.virtual_time) {
        no_provider(c, provider, model);
        return 0;
    }
    int rc = engine_model_ask(c, request, err);
    return rc < 0 ? model_failed(c, rc, RV_LLM_ERROR_CONNECTION, err) : 0;
}

/* Returns told, which ending the call returned. Where the script has no reply, the code says that it is the script that
 * failed, not the model or the stage. */
static int script_failed(struct call *c, int rc, int told)
{
    if (rc == RV_E_NOT_FOUND)
        c->code = rv_failure_text(RV_FAILURE_SCRIPT_NO_ENTRY);
    return told;
}

static int call_model(rv_exec *x, struct call *c, struct rv_effect *e, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = e->request_len + 1, .what = "model request"};
    json_object *request = NULL;

    if (engine_script_plays(x, e)) {
        int rc = engine_call_script(c, e, err);
        return rc < 0 ? script_failed(c, rc, model_failed(c, rc, RV_LLM_ERROR_BAD_REQUEST, err)) : 0;
    }
    int rc = rv_json_parse((rv_str){e->request, e->request_len}, &opts, &request, err);
    if (rc == 0)
        rc = call_provider(x, c, e, request, err);
    json_object_put(request);
    return rc;
}

/* --- capabilities --- */

/* Of a call of a model; NULL: there is no such role. */
static const struct rv_model_config *role_of(const rv_exec *x, const struct rv_effect *e)
{
    return rv_pipeline_find_model(e->pipeline ? e->pipeline : x->opts.pipeline, rv_str_of(e->name));
}

/* The entry that is called: of a model role, its provider. */
static const char *entry_of(const rv_exec *x, const struct rv_effect *e)
{
    if (e->kind != RV_EFFECT_CALL_LLM)
        return e->name;
    const struct rv_model_config *model = role_of(x, e);
    return model ? model->provider : "";
}

/* What a provider is told: the request, and the keys of its role that are its own. They may be secrets, so that they
 * are in no journal and no recording of the request. */
static rv_str args_of(const rv_exec *x, const struct rv_effect *e, rv_buf *text)
{
    const rv_str request = {e->request, e->request_len};
    const struct rv_model_config *model = e->kind == RV_EFFECT_CALL_LLM ? role_of(x, e) : NULL;

    if (!model || !model->options)
        return request;
    rv_buf_add(text, request.ptr, request.len - 1); /* an object that has members */
    rv_buf_puts(text, ",\"settings\":");
    rv_json_write(model->options, text);
    rv_buf_putc(text, '}');
    return rv_buf_str(text);
}

/* Of an answer; 0 is "not measured": simulated time stands still meanwhile. */
static int64_t took_us(const struct call *c)
{
    const rv_engine *e = c->x->engine;
    int64_t us = rv_engine_now_us(e) - c->started_us;

    return us > 0 || e->opts.virtual_time ? us : 1;
}

/* The call has ended: take over its answer. */
static void entry_done(struct rv_plugin_work *w)
{
    struct call *c = w->self;

    c->work = NULL;
    c->failed = w->failure != NULL;
    c->code = w->failure ? rv_plugin_failure_code(w->failure) : NULL;
    rv_err_free(c->causes);
    c->causes = w->failure;
    w->failure = NULL;
    rv_buf_fini(&c->text);
    if (w->llm) {
        c->llm = w->llm;
        w->llm = NULL;
        engine_call_take_llm(c, c->llm);
        c->answer.latency_us = took_us(c);
    } else if (c->causes) {
        snprintf(c->error_type, sizeof c->error_type, "%s", rv_plugin_error_type(c->causes));
        c->text = RV_BUF_INIT(RV_ENGINE_MAX_ERROR);
        rv_err_write_chain(c->causes, &c->text);
    } else {
        c->text = w->reply;
        w->reply = RV_BUF_INIT(0);
    }
    engine_call_answered(c);
}

/* The work has copies of all texts: a call that was given up may outlast its run. */
static struct rv_plugin_work *new_work(rv_exec *x, struct call *c, const struct rv_effect *e)
{
    const struct rv_envelope *env = rv_run_envelope(x->run);
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    char *context = engine_call_context(c);
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(e->request_len + RV_JSON_MAX_BYTES);
    const struct rv_plugin_call what = {.kind = e->kind == RV_EFFECT_CALL_LLM ? RV_NAME_PROVIDER : e->entry,
                                        .name = entry_of(x, e),
                                        .args = args_of(x, e, &text),
                                        .run_id = f->envelope_id,
                                        .call_id = e->call_id,
                                        .stage = x->opts.pipeline->agents[c->stage].name,
                                        .user_id = rv_envelope_user(env),
                                        .session_id = f->session_id,
                                        .idempotency_key = e->key ? e->key : "",
                                        .context = context,
                                        .timeout_ms =
                                            c->deadline_us ? (c->deadline_us - c->started_us) / RV_US_PER_MS : 0,
                                        .on_emit = engine_pool_take_piece};
    struct rv_plugin_work *w =
        context && text.rc == 0 ? rv_plugin_work_new(x->opts.plugins, &what, entry_done, c) : NULL;

    free(context);
    return w;
}

int engine_call_capability(rv_exec *x, struct call *c, const struct rv_effect *e, rv_err **err)
{
    if (!x->opts.plugins) {
        engine_call_fail(c, rv_error_not_found, false, "no capability is loaded that has %s \"%s\"", c->what, c->name);
        return 0;
    }
    struct rv_plugin_work *w = c->work = new_work(x, c, e);
    if (!w)
        return RV_FAIL(err, RV_E_NOMEM, "call %s \"%s\"", c->what, c->name);
    const struct rv_tool_workers workers = engine_pool(x->engine);
    int rc = workers.begin(workers.self, &w->work, err);
    if (rc < 0) {
        c->work = NULL;
        w->work.free(&w->work);
        return engine_call_fail_with(c, rv_error_execution, rc, err);
    }
    if (c->work) /* it has not answered yet */
        engine_call_await(c);
    return 0;
}

static int call_hook(rv_exec *x, struct call *c, struct rv_effect *e, rv_err **err)
{
    if (!engine_script_plays(x, e))
        return engine_call_capability(x, c, e, err);
    int rc = engine_call_script(c, e, err);
    return rc < 0 ? script_failed(c, rc, engine_call_fail_with(c, rv_error_processing, rc, err)) : 0;
}

static const char *what_of(const struct rv_effect *e)
{
    if (e->kind == RV_EFFECT_CALL_LLM)
        return "model role";
    if (e->kind == RV_EFFECT_CALL_TOOL)
        return "tool";
    return rv_name_kind_text(e->entry);
}

/* No more than the entry allows itself: the stage has more time left. */
static bool has_own_limit(const rv_exec *x, const struct call *c, const struct rv_effect *e)
{
    if (!x->opts.plugins || e->kind != RV_EFFECT_CALL_HOOK)
        return false;
    const struct rv_catalog catalog = rv_plugins_catalog(x->opts.plugins);
    const struct rv_entry_info *info = catalog.entry(catalog.self, e->entry, rv_str_of(e->name));
    return info && info->timeout_ms > 0 && c->allowed_us == info->timeout_ms * RV_US_PER_MS;
}

static int start_call(rv_exec *x, struct rv_effect *e, rv_err **err)
{
    struct call *c = engine_call_new(x, CALL_ANSWER, rv_engine_now_us(x->engine), e->call_id);

    if (c)
        c->name = rv_str_dup(rv_str_of(e->name));
    if (!c || !c->name)
        return RV_FAIL(err, RV_E_NOMEM, "make a call");
    c->stage = e->stage;
    c->visit = e->visit;
    c->agent = e->agent;
    c->origin = e->origin;
    c->is_budgeted = e->money_left >= 0;
    c->is_muted = e->is_hidden;
    c->mutes_calls = e->hides_calls;
    c->ids_upto = e->ids_upto;
    c->ids = e->ids ? json_object_get(e->ids) : NULL;
    if (e->pipeline)
        c->pipeline = e->pipeline;
    c->deadline_us = e->deadline_us ? exec_due_us(x, e->deadline_us) : 0;
    c->allowed_us = e->deadline_us && !x->recovers ? e->deadline_us - x->last_us : 0;
    c->has_own_limit = has_own_limit(x, c, e);
    c->is_once = e->kind == RV_EFFECT_CALL_TOOL && e->effect_class == RV_EFFECT_NON_IDEMPOTENT;
    c->what = what_of(e);
    if (e->kind == RV_EFFECT_CALL_LLM) {
        c->event = RV_EVENT_LLM_DONE;
        return x->engine->gate(c, e, call_model, err);
    }
    c->event = e->kind == RV_EFFECT_CALL_TOOL ? RV_EVENT_TOOL_DONE : RV_EVENT_HOOK_DONE;
    return e->kind == RV_EFFECT_CALL_TOOL ? engine_call_tool(c, e, err) : call_hook(x, c, e, err);
}

/* --- the rest --- */

static int arm_timer(rv_exec *x, const struct rv_effect *e, rv_err **err)
{
    struct call *c = engine_call_new(x, CALL_ANSWER, exec_due_us(x, e->at_us), e->call_id);

    if (!c)
        return RV_FAIL(err, RV_E_NOMEM, "arm a timer");
    c->event = RV_EVENT_TIMER;
    return 0;
}

static void cancel_call(rv_exec *x, int64_t call_id)
{
    struct call *c = engine_call_find(x, call_id);
    if (c)
        engine_call_free(c);
}

/* The run waits, and the script answers. An answer that comes after the expiry of a question comes too late: that one
 * has expired then. */
static int resume_later(rv_exec *x, const struct rv_response *response, int64_t delay_ms, rv_err **err)
{
    int64_t due_us = rv_engine_now_us(x->engine) + delay_ms * RV_US_PER_MS, expiry_us = rv_run_next_expiry(x->run);
    bool expires = expiry_us != 0 && (response->expired || exec_due_us(x, expiry_us) <= due_us);
    struct call *c = engine_call_new(x, CALL_RESUME, expires ? exec_due_us(x, expiry_us) : due_us, 0);

    if (!c)
        return RV_FAIL(err, RV_E_NOMEM, "answer an interrupt");
    c->response = *response;
    if (expires)
        RV_IGNORE(!rv_run_find_due_question(x->run, expiry_us, c->question, &c->response), "it is due then");
    return 0;
}

bool exec_is_told(const rv_exec *x)
{
    const struct call *c = x->calls;

    while (c && c->kind != CALL_TOLD)
        c = c->next;
    return c;
}

int exec_pause(rv_exec *x, rv_err **err)
{
    bool is_held = x->opts.holds || !x->opts.journal; /* it can be answered here */
    bool waits = x->status == RV_RUN_INTERRUPTED && !x->cancel_asked;

    exec_end(x);
    int64_t expiry_us = waits && is_held ? rv_run_next_expiry(x->run) : 0;
    if (expiry_us && !engine_call_new(x, CALL_EXPIRE, exec_due_us(x, expiry_us), 0))
        return RV_FAIL(err, RV_E_NOMEM, "wait for the expiry of a question");
    return 0;
}

/* Answers that the host gave while the run worked are told when it has paused, too. */
static void drop_calls(rv_exec *x, bool but_told)
{
    for (struct call *c = x->calls, *next; c; c = next) {
        next = c->next;
        if (!but_told || c->kind != CALL_TOLD)
            engine_call_free(c);
    }
}

static int finish(rv_exec *x, enum rv_run_status status, rv_err **err)
{
    struct rv_response response;
    int64_t delay_ms = 0;
    bool waits = status == RV_RUN_INTERRUPTED && !x->cancel_asked;

    drop_calls(x, waits);
    x->expiry_us = 0;
    x->status = status;
    if (exec_is_told(x))
        return 0;
    int rc = waits && x->answers
                 ? rv_script_on_wait(x->opts.script, rv_run_envelope(x->run), rv_run_question_stage(x->run), err)
                 : 0;
    if (rc < 0)
        return rc;
    if (waits && x->answers && rv_script_answer(x->opts.script, &response, &delay_ms))
        return resume_later(x, &response, delay_ms, err);
    return exec_pause(x, err);
}

/* Of questions of branches while others run. */
static int watch_expiry(rv_exec *x, rv_err **err)
{
    int64_t expiry_us = rv_run_next_expiry(x->run);

    if (expiry_us == x->expiry_us)
        return 0;
    for (struct call *c = x->calls, *next; c; c = next) {
        next = c->next;
        if (c->kind == CALL_EXPIRE)
            engine_call_free(c);
    }
    x->expiry_us = expiry_us;
    if (expiry_us && !engine_call_new(x, CALL_EXPIRE, exec_due_us(x, expiry_us), 0))
        return RV_FAIL(err, RV_E_NOMEM, "wait for the expiry of a question");
    return 0;
}

static int perform(rv_exec *x, struct rv_effect *e, rv_err **err)
{
    const struct rv_exec_opts *o = &x->opts;

    switch (e->kind) {
    case RV_EFFECT_CALL_LLM:
    case RV_EFFECT_CALL_TOOL:
    case RV_EFFECT_CALL_HOOK:
        return start_call(x, e, err);
    case RV_EFFECT_CANCEL_CALL:
        cancel_call(x, e->call_id);
        return 0;
    case RV_EFFECT_ARM_TIMER:
        return arm_timer(x, e, err);
    case RV_EFFECT_EMIT:
        engine_observe(x, e);
        return 0;
    case RV_EFFECT_SAVE:
        if (o->on_state)
            o->on_state(o->self, (rv_str){e->request, e->request_len});
        return 0;
    case RV_EFFECT_KEEP: /* the journal has it */
    case RV_EFFECT_ARTIFACT:
        return 0;
    case RV_EFFECT_FINISH:
        return finish(x, e->status, err);
    }
    return 0;
}

/* Of a run that is handed over: a call that may be repeated is in the journal, and the process that goes on with the
 * run makes it. A journal does not tell whether a call was begun; so one that must not be repeated is made here. */
static bool is_left(const rv_exec *x, const struct rv_effect *e)
{
    if (!x->hands_over)
        return false;
    switch (e->kind) {
    case RV_EFFECT_CALL_LLM:
    case RV_EFFECT_CALL_HOOK:
    case RV_EFFECT_ARM_TIMER:
        return true;
    case RV_EFFECT_CALL_TOOL:
        return e->effect_class != RV_EFFECT_NON_IDEMPOTENT;
    case RV_EFFECT_CANCEL_CALL:
    case RV_EFFECT_EMIT:
    case RV_EFFECT_SAVE:
    case RV_EFFECT_KEEP:
    case RV_EFFECT_ARTIFACT:
    case RV_EFFECT_FINISH:
        break;
    }
    return false;
}

void exec_perform(rv_exec *x)
{
    rv_err *err = NULL;
    int rc = 0;

    for (size_t i = 0; i < x->effects.n && rc == 0; i++) {
        if (x->opts.on_effect)
            x->opts.on_effect(x->opts.self, &x->effects, &x->effects.items[i]);
        if (!is_left(x, &x->effects.items[i]))
            rc = perform(x, &x->effects.items[i], &err);
    }
    rv_effects_fini(&x->effects); /* a waiting run does not keep memory for its next step */
    x->recovers = false;
    engine_observe_bounds(x);
    if (rc == 0 && !rv_run_is_finished(x->run) && (x->n_asked > 0 || rv_run_n_asked(x->run) > 0))
        rc = watch_expiry(x, &err);
    if (rc == 0 && !x->over && rv_run_n_asked(x->run) != x->n_asked) {
        x->n_asked = rv_run_n_asked(x->run);
        x->engine->n_asking += !x->is_asking;
        x->is_asking = true;
    }
    if (rc < 0)
        exec_break(x, exec_explain(x, rc, &err), err);
}

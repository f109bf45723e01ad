/* One run of an engine: checked, started, told events, answered, cancelled, ended. With a journal each step is kept
 * before the effects are performed that it asked for. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/stuck_internal.h"

/* --- before a run begins: each stage has what answers it. A stage that calls a model needs one, a stage that runs the
 * tools of a plan needs a source of tools (rule 5.1). Stages that a script or a mock answers need neither. What a stage
 * may call is not looked at here: access that allows nothing gives denied results --- */

/* Left out because the environment does not name it; an error route says that the author counts on that. */
static const struct rv_chosen_model *left_out_of(const struct rv_pipeline *p, const char *role)
{
    size_t n;
    const struct rv_chosen_model *chosen = rv_pipeline_chosen_models(p, &n);

    for (size_t i = 0; i < n; i++)
        if (!chosen[i].provider && strcmp(chosen[i].role, role) == 0)
            return &chosen[i];
    return NULL;
}

static int check_model(const struct rv_exec_opts *o, const struct rv_agent *a, rv_err **err)
{
    const struct rv_model_config *model = rv_pipeline_find_model(o->pipeline, rv_str_of(a->model.role));
    const struct rv_src *src = a->places.model_role.line > 0 ? &a->places.model_role : &a->places.name;
    const struct rv_chosen_model *left_out = model ? NULL : left_out_of(o->pipeline, a->model.role);
    bool needs_script = model && strcmp(model->provider, "scripted") == 0;
    int rc;

    if ((o->script && (needs_script || rv_script_has_models(o->script))) || (model && !needs_script) ||
        (left_out && a->routing.error_next[0]))
        return 0;
    if (needs_script) {
        rc = RV_FAIL_AT(err, src, RV_E_INVALID,
                        "agent \"%s\": model_role \"%s\" is played by a script, and the run has no script", a->name,
                        a->model.role);
        rv_err_set_hint(err, "give the script with --script FILE, or another model under models");
    } else if (left_out) {
        rc = left_out->missing
                 ? RV_FAIL_AT(err, src, RV_E_INVALID,
                              "agent \"%s\": model_role \"%s\" is left out, because the variable %s is not set",
                              a->name, a->model.role, left_out->missing)
                 : RV_FAIL_AT(err, src, RV_E_INVALID,
                              "agent \"%s\": model_role \"%s\" is left out, because a variable that it names was "
                              "not set",
                              a->name, a->model.role);
        rv_err_set_hint(err,
                        "set the variable, answer for the stage with --script FILE, or give the stage an error_next");
    } else {
        rc = RV_FAIL_AT(err, src, RV_E_INVALID, "agent \"%s\": model_role \"%s\" resolves to no model", a->name,
                        a->model.role);
        rv_err_set_hint(err,
                        "name one, for example models: {%.200s: provider:model}, or answer for the stage with --script "
                        "FILE",
                        a->model.role[0] ? a->model.role : "default");
    }
    return rc;
}

static int check_tools(const struct rv_exec_opts *o, const struct rv_catalog *catalog, const struct rv_agent *a,
                       rv_err **err)
{
    bool any =
        catalog->tool_name ? catalog->tool_name(catalog->self, 0) != NULL : o->plugins || o->script || o->catalog;

    if (any || o->find_agent)
        return 0;
    int rc = RV_FAIL_AT(err, &a->places.name, RV_E_INVALID,
                        "agent \"%s\": has_tools is on, and the run has no tools at all", a->name);
    rv_err_set_hint(err, "name a capability that brings tools under capabilities, or play them with --script FILE");
    return rc;
}

static int check_stage(const struct rv_exec_opts *o, const struct rv_catalog *catalog, const bool *scripted, int stage,
                       rv_err **err)
{
    const struct rv_visit_shared shared = {
        .pipeline = o->pipeline, .scripted_stages = scripted, .use_mocks = o->use_mocks || o->pipeline->mock};
    const struct rv_agent *a = &o->pipeline->agents[stage];

    if (rv_stage_is_mocked(&shared, stage))
        return 0;
    if (a->has_llm)
        return check_model(o, a, err);
    return a->has_tools ? check_tools(o, catalog, a, err) : 0;
}

int rv_exec_check(const struct rv_exec_opts *o, rv_findings *findings, rv_err **err)
{
    const struct rv_pipeline *p = o->pipeline;
    struct run_tools tools;
    bool *scripted = calloc(p->n_agents + 1, sizeof *scripted);

    if (!scripted)
        return RV_FAIL(err, RV_E_NOMEM, "check a pipeline");
    engine_run_tools_init(&tools, o, NULL);
    const struct rv_catalog catalog = rv_tool_set_catalog(&tools.set);
    if (o->script)
        rv_script_mark_stages(o->script, p, scripted);
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        rv_err *fault = NULL;
        int rc = check_stage(o, &catalog, scripted, (int)i, &fault);
        if (rc < 0)
            rv_findings_add_err(findings, RV_SEVERITY_ERROR, &a->places.name, fault);
        rv_err_free(fault);
    }
    free(scripted);
    return rv_findings_check(findings, err);
}

/* --- steps --- */

static int64_t run_time_us(const rv_exec *x)
{
    int64_t now_us = rv_engine_now_us(x->engine) + x->ahead_us;

    return now_us > x->last_us ? now_us : x->last_us;
}

int64_t exec_now_us(rv_exec *x)
{
    x->last_us = run_time_us(x);
    return x->last_us;
}

int64_t exec_due_us(const rv_exec *x, int64_t run_us)
{
    return run_us > x->ahead_us ? run_us - x->ahead_us : run_us;
}

void exec_bind_log(rv_exec *x, const char *run)
{
    const struct rv_field fields[] = {RV_F_TEXT("run_id", run), RV_F_TEXT("pipeline", x->opts.pipeline->name)};

    if (!x->log)
        x->log = rv_log_bind(x->engine->opts.log, fields, RV_COUNT(fields));
}

/* Takes env on every path. */
static int new_run(rv_exec *x, rv_envelope *env, rv_err **err)
{
    const struct rv_exec_opts *o = &x->opts;
    const struct rv_run_opts opts = {.rules = o->rules,
                                     .mode = o->mode,
                                     .use_mocks = o->use_mocks,
                                     .scripted_stages = x->scripted,
                                     .scripted_inner = x->scripted_inner,
                                     .is_script_blind = rv_script_is_blind(o->script),
                                     .emits = engine_observes(x),
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
    engine_run_tools_init(&x->tools, o, x->engine);
    x->catalog = rv_tool_set_catalog(&x->tools.set);
    if (!o->script)
        return 0;
    x->scripted = calloc(n ? n : 1, sizeof *x->scripted);
    if (!x->scripted)
        return RV_FAIL(err, RV_E_NOMEM, "start a run");
    rv_script_mark_stages(o->script, o->pipeline, x->scripted);
    return rv_script_find_inner_stages(o->script, o->pipeline, &x->scripted_inner, err);
}

const struct rv_turn *rv_exec_unkept(const rv_exec *x)
{
    return x->unkept;
}

/* Does it follow from what was asked for, and not from the machine, the store or another process? */
static bool is_of_the_step(int rc)
{
    return rc == RV_E_INVALID || rc == RV_E_PARSE || rc == RV_E_LIMIT || rc == RV_E_INTERNAL;
}

bool exec_note_stuck(rv_exec *x, int rc, const rv_err *err)
{
    bool is_kept = x->opts.journal && rv_journal_is_kept(x->opts.journal);

    x->is_stuck = is_kept && !x->is_rowless && !x->is_answer && is_of_the_step(rc) && !rv_err_is(err, RV_E_NOMEM);
    return x->is_stuck;
}

int exec_explain(rv_exec *x, int rc, rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(rv_run_envelope(x->run));

    if (rc == RV_E_NOMEM)
        return rc;
    exec_note_stuck(x, rc, err ? *err : NULL);
    return RV_WRAP(err, rc, "run \"%s\" of pipeline \"%s\", at stage \"%.200s\"", f->envelope_id,
                   x->opts.pipeline->name, f->current_stage);
}

bool exec_ends_later(rv_exec *x, rv_err **err)
{
    if (!x->is_stuck || !engine_call_new(x, CALL_STUCK, rv_engine_now_us(x->engine), 0))
        return false;
    rv_effects_clear(&x->effects); /* nothing of a refused step is kept or performed */
    rv_err_free(x->err);
    x->err = rv_err_steal(err);
    return true;
}

static void drop_rows(struct rv_effects *all)
{
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++)
        if (all->items[i].kind == RV_EFFECT_KEEP)
            rv_effect_fini(&all->items[i]);
        else
            all->items[n++] = all->items[i];
    all->n = n;
}

static int step(rv_exec *x, const struct rv_event *ev, rv_err **err)
{
    if (x->opts.on_input)
        x->opts.on_input(x->opts.self, ev);
    x->is_answer = ev->kind == RV_EVENT_ANSWER;
    int rc = rv_run_step(x->run, ev, &x->effects, err);
    if (rc < 0 && !x->is_answer) /* a refused answer changes nothing */
        return exec_explain(x, rc, err);
    if (x->is_rowless)
        drop_rows(&x->effects);
    return rc < 0 || !x->opts.journal ? rc : engine_keep(x, ev, err);
}

int exec_step(rv_exec *x, const struct rv_event *ev, rv_err **err)
{
    struct rv_event told = *ev;
    json_object *blocked = NULL;

    int rc = engine_health_blocked(x, &blocked, err);
    told.blocked = blocked;
    if (ev->kind == RV_EVENT_ANSWER)
        told.response.asker = rv_run_get_question_stage(x->run, ev->response.interrupt_id);
    if (rc == 0)
        rc = step(x, &told, err);
    json_object_put(blocked);
    return rc;
}

int exec_begin(rv_exec *x, rv_err **err)
{
    if (x->is_keeping) /* they are performed when it is kept */
        return 0;
    return engine_call_new(x, CALL_BEGIN, rv_engine_now_us(x->engine), 0) ? 0 : RV_FAIL(err, RV_E_NOMEM, "start a run");
}

static int first_step(rv_exec *x, const struct rv_response *response, rv_err **err)
{
    struct rv_event ev = {.kind = RV_EVENT_START, .now_us = exec_now_us(x)};

    if (response) {
        ev.kind = RV_EVENT_ANSWER;
        ev.response = *response;
    }
    int rc = exec_step(x, &ev, err);
    return rc < 0 ? rc : exec_begin(x, err);
}

int exec_new(rv_engine *e, const struct rv_exec_opts *opts, rv_exec **out, rv_err **err)
{
    const struct rv_store_scope all = {0};
    rv_exec *x = calloc(1, sizeof *x);

    if (x)
        x->engine = e;
    if (x && opts->takes_journal)
        x->own = engine_own_new(x, &all, rv_journal_run(opts->journal));
    if (!x || (opts->takes_journal && !x->own)) {
        if (opts->takes_journal)
            rv_journal_free(opts->journal);
        free(x);
        return RV_FAIL(err, RV_E_NOMEM, "start a run");
    }
    if (x->own)
        x->own->journal = opts->journal;
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
        engine_loop_hold(e->loop);
    int rc = prepare(x, err);
    if (rc == 0)
        rc = engine_subscribers_init(x, err);
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

    int rc = exec_new(e, opts, &x, err);
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    for (size_t i = 0; i < opts->pipeline->n_agents && rc == 0 && !response; i++)
        rc = check_stage(&x->opts, &x->catalog, x->scripted, (int)i, err);
    if (rc < 0) {
        rv_envelope_free(env);
        rv_exec_free(x);
        return rc;
    }
    exec_bind_log(x, rv_envelope_fields(env)->envelope_id);
    rv_err *why = NULL;
    rc = new_run(x, env, &why);
    if (rc == 0)
        rc = first_step(x, response, &why);
    if (rc < 0) {
        if (x->is_unkept && !e->opts.loop) /* a host is told nothing before this returns */
            rv_exec_tell_end(x, why);
        rv_exec_free(x);
        return rv_err_pass(err, why);
    }
    *out = x;
    return 0;
}

void exec_end(rv_exec *x)
{
    if (x->over)
        return;
    x->over = true;
    if (!engine_subscribers_hold(x))
        exec_tell_over(x);
}

void exec_tell_over(rv_exec *x)
{
    x->is_untold = true;
    x->engine->n_live--;
    x->engine->n_untold++;
}

/* Should it be open again, the host is told again. id ptr NULL: the first one. */
static void forget_told(rv_exec *x, rv_str id)
{
    char key[RV_ID_MAX];

    if (!id.ptr || id.len >= sizeof key) {
        json_object_put(x->told);
        x->told = NULL;
    } else if (x->told) {
        memcpy(key, id.ptr, id.len);
        key[id.len] = '\0';
        json_object_object_del(x->told, key);
    }
}

static bool is_told_already(const rv_exec *x, const char *id)
{
    for (const struct call *c = x->calls; c; c = c->next)
        if (c->kind == CALL_TOLD && rv_str_is(c->response.interrupt_id, id))
            return true;
    return false;
}

int exec_tell_later(rv_exec *x, const struct rv_response *response, rv_err **err)
{
    struct rv_response told = *response;
    char id[RV_ID_MAX];

    int rc = rv_run_check_branch_answer(x->run, response, exec_now_us(x), id, err);
    if (rc < 0)
        return rc;
    if (is_told_already(x, id))
        return RV_FAIL(err, RV_E_STATE, "question \"%s\" has an answer already", id);
    struct call *c = engine_call_new(x, CALL_TOLD, rv_engine_now_us(x->engine), 0);
    if (!c)
        return RV_FAIL(err, RV_E_NOMEM, "answer a question");
    told.interrupt_id = rv_str_of(id);
    rc = engine_response_copy(&told, &c->response, err);
    if (rc < 0)
        engine_call_free(c);
    else
        forget_told(x, told.interrupt_id);
    return rc;
}

static int fail_stolen(rv_err **err)
{
    int rc = RV_FAIL(err, RV_E_STATE, "the run has no envelope: rv_exec_steal_envelope() took it");

    rv_err_set_hint(err, "start it again with that envelope and the answer: rv_engine_start()");
    return rc;
}

int rv_exec_answer(rv_exec *x, const struct rv_response *response, rv_err **err)
{
    rv_engine *e = x->engine;
    struct rv_event ev = {.kind = RV_EVENT_ANSWER, .response = *response};

    if (x->is_stuck)
        return RV_FAIL(err, RV_E_STATE, "the run ends: the engine cannot go on with it");
    if (e && x->is_opening)
        return engine_own_answer(x->own, response, err);
    if (e && !x->over)
        return exec_tell_later(x, response, err);
    if (!e || !x->over || x->rc < 0 || x->status != RV_RUN_INTERRUPTED)
        return RV_FAIL(err, RV_E_STATE, "the run waits for no answer");
    if (!rv_exec_envelope(x))
        return fail_stolen(err);
    if (x->opts.journal && !x->answers && !x->opts.holds)
        return RV_FAIL(err, RV_E_STATE, "run \"%s\" was given up when it paused; open its journal again",
                       rv_journal_run(x->opts.journal));
    ev.now_us = exec_now_us(x);
    int rc = exec_step(x, &ev, err);
    if (rc == 0)
        engine_call_free_all(x); /* the expiry of what was asked */
    if (rc == 0)
        rc = exec_begin(x, err);
    if (rc < 0) {
        if (x->is_unkept || rc == RV_E_NOMEM) /* what the core was told cannot be undone */
            x->rc = rc;
        return rc;
    }
    if (x->is_held) /* it did not count as over yet */
        engine_subscribers_go_on(x);
    else
        e->n_live++;
    e->n_untold -= x->is_untold;
    x->over = x->is_untold = false;
    forget_told(x, response->interrupt_id);
    x->status = RV_RUN_RUNNING;
    if (e->opts.loop)
        engine_loop_hold(e->loop);
    return 0;
}

int rv_exec_check_answer(const rv_exec *x, const struct rv_response *response, rv_err **err)
{
    if (!x->engine || !x->run || x->status != RV_RUN_INTERRUPTED)
        return RV_FAIL(err, RV_E_STATE, "the run waits for no answer");
    if (!rv_exec_envelope(x))
        return fail_stolen(err);
    return rv_run_check_answer(x->run, response, run_time_us(x), err);
}

void exec_break(rv_exec *x, int rc, rv_err *err)
{
    engine_call_free_all(x);
    if (x->is_keeping) {
        x->is_broken = true;
        x->rc = rc;
        rv_err_free(x->err);
        x->err = err;
        return;
    }
    rv_effects_clear(&x->effects);
    if (exec_ends_later(x, &err))
        return;
    exec_end(x);
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
        engine_model_read_on(c);
}

void rv_exec_cancel(rv_exec *x)
{
    if (x->over)
        return;
    x->cancel_asked = true;
    x->engine->any_cancel = true;
}

bool rv_exec_has_ended(const rv_exec *x)
{
    return x->over && !x->is_held;
}

int64_t rv_exec_last_seq(const rv_exec *x)
{
    return x->run ? rv_run_counters(x->run).next_seq - 1 : 0;
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
    return x->run && x->over ? rv_run_steal_envelope(x->run) : NULL;
}

/* The step under way is written first: then step_done() comes back here. */
static void free_later(rv_exec *x)
{
    x->is_freed = true;
    engine_call_free_all(x);
    x->opts.observer = (struct rv_observer){0};
    x->opts.on_piece = NULL;
    x->opts.on_payload = NULL;
    x->opts.on_state = NULL;
    x->opts.on_input = NULL;
    x->opts.on_effect = NULL;
}

static void leave_engine(rv_exec *x)
{
    rv_engine *e = x->engine;

    if (x->is_opening)
        engine_own_orphan(x->own);
    else
        engine_keep_wait(x);
    if (x->own && !x->is_opening)
        engine_own_end(x->own);
    engine_call_free_all(x);
    e->n_live -= !x->over || x->is_held;
    engine_subscribers_stop(x);
    e->n_untold -= x->is_untold;
    e->n_asking -= x->is_asking;
    if (x->prev)
        x->prev->next = x->next;
    else
        e->execs = x->next;
    if (x->next)
        x->next->prev = x->prev;
}

void rv_exec_free(rv_exec *x)
{
    if (!x)
        return;
    if (x->engine && x->is_keeping && x->opts.on_free) {
        free_later(x);
        return;
    }
    void (*on_free)(void *self) = x->opts.on_free;
    void *self = x->opts.self;
    if (x->engine)
        leave_engine(x);
    engine_run_tools_fini(&x->tools);
    engine_tool_records_fini(&x->played);
    rv_log_free(x->log);
    rv_run_free(x->run);
    rv_conversation_free(x->conversation);
    rv_effects_fini(&x->effects);
    json_object_put(x->told);
    rv_turn_free(x->unkept);
    engine_kept_free(x->kept);
    free(x->scripted);
    json_object_put(x->scripted_inner);
    free(x->refused);
    rv_err_free(x->err);
    free(x);
    if (on_free)
        on_free(self);
}

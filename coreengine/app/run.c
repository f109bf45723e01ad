/* One run as a front drives it: kept when it is new (its bundle, the first record of its journal), with the session
 * that it belongs to, watched, recorded, its run files brought up to date. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/chat.h"
#include "coreengine/app/past.h"
#include "coreengine/app/recover.h"
#include "coreengine/app/testing.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what is kept before it begins --- */

int64_t app_lease_us(const struct rv_app *app)
{
    return app->lease_us ? app->lease_us : RV_LEASE_DEFAULT_US;
}

int rv_app_bundle_write(const struct rv_app_loaded *l, rv_buf *out, rv_err **err)
{
    struct rv_app_tools tools;
    json_object *lists = NULL;
    int rc = app_tools_init(&tools, l, err);

    if (rc < 0)
        return rc;
    const struct rv_catalog catalog = app_tools_catalog(&tools);
    const struct rv_known_names names = app_tools_names(&tools);
    if (tools.mcp)
        rc = rv_mcp_catalog_write(tools.mcp, NULL, &lists, err);
    char base[PATH_MAX];
    const struct rv_bundle_source from = {.pipeline = l->pipeline,
                                          .catalog = &catalog,
                                          .names = &names,
                                          .script = l->script,
                                          .mcp = lists,
                                          .base = realpath(l->pipeline->dir, base)};

    if (rc == 0)
        rc = rv_bundle_write(&from, out, NULL, err);
    json_object_put(lists);
    app_tools_fini(&tools);
    return rc;
}

int app_put_bundle(struct rv_app_run *run, char hash[RV_STORE_HASH_MAX], rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_BUNDLE);

    int rc = rv_app_bundle_write(run->loaded, &text, err);
    if (rc == 0)
        rc = rv_store_put_blob(run->store, rv_buf_str(&text), hash, err);
    rv_buf_fini(&text);
    return rc;
}

int app_scripted_stages(const struct rv_app_loaded *l, bool **out, rv_err **err)
{
    *out = NULL;
    if (!l->script)
        return 0;
    *out = calloc(l->pipeline->n_agents + 1, sizeof **out);
    if (!*out)
        return RV_FAIL(err, RV_E_NOMEM, "keep a run");
    rv_script_mark_stages(l->script, l->pipeline, *out);
    return 0;
}

int app_register_run_agents(const struct rv_app_run *run, rv_err **err)
{
    const struct rv_agents_opts opts = {
        .store = run->store, .plugins = run->loaded->plugins, .registers = true, .log = run->app->log};
    const char *name, *capability;
    rv_agents *agents = NULL;
    rv_str text;
    size_t n;

    if (!opts.plugins || !rv_plugins_agent_at(opts.plugins, 0, &name, &text, &capability))
        return 0;
    int rc = rv_agents_new(&opts, &agents, err);
    if (rc == 0)
        rc = rv_agents_register(agents, &run->app->scope, &n, err);
    rv_agents_free(agents);
    return rc;
}

/* In a group. */
static int create(struct rv_app_run *run, const struct rv_app_begin *begin, struct rv_journal_start *start,
                  rv_err **err)
{
    struct rv_clock clock = rv_clock_system();
    int rc = 0;

    start->now_us = clock.now_us(clock.self); /* the lease begins when other writers are waited for */
    if (begin->limits)
        rc = app_limits_count(begin->limits, run->store, begin->counts, start->now_us, run->app->log, err);
    return rc == 0 ? rv_journal_create(run->store, start, &run->journal, err) : rc;
}

static int create_whole(struct rv_app_run *run, const struct rv_app_begin *begin, struct rv_journal_start *start,
                        rv_err **err)
{
    int rc;

    do {
        rc = rv_store_begin(run->store, err);
        if (rc == 0)
            rc = rv_store_end(run->store, create(run, begin, start, err), err);
        if (rc < 0) { /* of the run that was not made */
            rv_journal_free(run->journal);
            run->journal = NULL;
        }
    } while (rc < 0 && rv_store_wait_again(run->store, err));
    return rc;
}

int app_keep(struct rv_app_run *run, const rv_envelope *env, const struct rv_app_begin *begin, rv_err **err)
{
    const struct rv_app_loaded *l = run->loaded;
    char hash[RV_STORE_HASH_MAX];
    bool *scripted = NULL;
    json_object *inner = NULL;
    struct rv_journal_start start = {.tenant = run->app->scope.tenant,
                                     .bundle = begin->bundle ? begin->bundle : hash,
                                     .pipeline = l->pipeline,
                                     .env = env,
                                     .owner = run->owner[0] ? run->owner : NULL,
                                     .lease_us = app_lease_us(run->app),
                                     .parent = begin->parent,
                                     .parent_seq = begin->parent_seq};

    int rc = app_register_run_agents(run, err);
    if (rc == 0 && !begin->bundle)
        rc = app_put_bundle(run, hash, err);
    if (rc == 0)
        rc = app_scripted_stages(l, &scripted, err);
    if (rc == 0 && l->script)
        rc = rv_script_find_inner_stages(l->script, l->pipeline, &inner, err);
    start.begin = (struct rv_journal_begin){
        .mode = run->mode,
        .continues = begin->parent != NULL,
        .use_mocks = run->use_mocks,
        .has_script = l->script != NULL,
        .answers_from_script = l->script != NULL,
        .is_script_blind = rv_script_is_blind(l->script),
        .scripted = scripted,
        .scripted_inner = inner,
        .max_parallel = RV_ENGINE_MAX_PARALLEL,
        .script_at = begin->script_at,
        .conversation = begin->conversation,
        .task = run->task,
        .request = run->request,
    };
    if (rc == 0)
        rc = begin->in_group ? create(run, begin, &start, err) : create_whole(run, begin, &start, err);
    free(scripted);
    json_object_put(inner);
    if (rc == RV_E_EXISTS)
        rv_err_set_hint(err, "leave envelope_id out of the state, or keep this run elsewhere");
    return rc < 0 ? RV_WRAP(err, rc, "keep the run") : 0;
}

/* --- a run that belongs to a session --- */

struct rv_app_conversation {
    struct rv_conversation conversation;
    struct rv_session_row row;
    json_object *metadata;
    char model[RV_CONTEXT_MAX_TEXT]; /* of the pipeline; the context borrows it */
};

static void conversation_free(struct rv_app_conversation *c)
{
    if (!c)
        return;
    json_object_put(c->conversation.history);
    json_object_put(c->conversation.moments);
    json_object_put(c->metadata);
    rv_session_row_fini(&c->row);
    free(c);
}

static const struct rv_conversation *conversation_of(const struct rv_app_conversation *c)
{
    return c ? &c->conversation : NULL;
}

/* What tools are told as the default model: that of the pipeline, else that of chats. */
static const char *model_of(struct rv_app_conversation *c, const struct rv_pipeline *p, const char *of_chats)
{
    const struct rv_model_config *m = rv_pipeline_find_model(p, RV_STR_LIT("default"));

    if (!m || snprintf(c->model, sizeof c->model, "%s:%s", m->provider, m->model) >= (int)sizeof c->model)
        return of_chats;
    return c->model;
}

static int fill(struct rv_app_conversation *c, const struct rv_app_run *run, const char *id, rv_err **err)
{
    const struct rv_store_scope scope = run->app->scope;
    const char *user = scope.user ? scope.user : "", *tenant = scope.tenant ? scope.tenant : RV_STORE_TENANT;
    const struct rv_store_scope own = {.tenant = tenant, .user = user};
    const struct rv_session_row fresh = {
        .id = id, .tenant = tenant, .user = user, .mode = "workflow", .created_us = rv_app_now_us()};
    struct rv_chat_settings settings;

    int rc = rv_chat_settings_read(&settings, err);
    if (rc == 0)
        rc = rv_store_ensure_session(run->store, &fresh, &c->row, err);
    if (rc == 0)
        rc = rv_json_parse(c->row.metadata, NULL, &c->metadata, err);
    if (rc < 0)
        return rc;
    c->conversation = (struct rv_conversation){
        .context = {.user_id = user[0] ? user : NULL,
                    .tenant_id = tenant,
                    .session_id = id,
                    .default_model = model_of(c, run->loaded->pipeline, settings.default_model),
                    .client_id = run->app->client},
        .session_name = c->row.name,
        .session_metadata = c->metadata,
        .keeps = true,
        .upto_seq = c->row.n_messages,
        .history_opts = rv_chat_shared_history_opts(&settings, run->loaded->pipeline),
        .moment_opts = settings.moments,
        .moment_token_threshold = settings.moment_token_threshold,
        .moment_summariser = settings.moment_summariser};
    rc = rv_conversation_check(&c->conversation, err);
    return rc < 0 ? rc
                  : rv_journal_read_history(run->store, &own, &c->conversation, &c->conversation.history,
                                            c->conversation.history_hash, err);
}

static int converse(const struct rv_app_run *run, struct rv_app_conversation **out, rv_err **err)
{
    const char *id = run->session;

    *out = NULL;
    if (!id || !id[0] || !run->store || !rv_app_has_agents(run->loaded->pipeline))
        return 0;
    struct rv_app_conversation *c = calloc(1, sizeof *c);
    if (!c)
        return RV_FAIL(err, RV_E_NOMEM, "go on with a session");
    int rc = fill(c, run, id, err);
    if (rc < 0) {
        conversation_free(c);
        return RV_WRAP(err, rc, "go on with session \"%s\"", id);
    }
    *out = c;
    return 0;
}

/* --- the run --- */

int app_run_prepare(struct rv_app_run *run, rv_err **err)
{
    if (run->state)
        return 0;
    run->state = calloc(1, sizeof *run->state);
    if (!run->state)
        return RV_FAIL(err, RV_E_NOMEM, "prepare a run");
    return rv_app_quotas_open(run->app, &run->state->quotas, err);
}

int rv_app_run_open(struct rv_app_run *run, rv_err **err)
{
    int rc = app_run_prepare(run, err);

    if (rc < 0)
        return rc;
    rv_owner_make_name(run->owner);
    run->store = run->loaded->agent_store; /* one handle: what is written for its agents is part of its transactions */
    if (run->store)
        return 0;
    rc = rv_app_store_open(run->app, RV_APP_STORE_MAKE, &run->store, err);
    run->state->closes_store = rc == 0;
    return rc;
}

static int keep_new(struct rv_app_run *run, const char *bundle, const rv_envelope *env, bool in_group,
                    enum rv_quota_kind counts, rv_err **err)
{
    conversation_free(run->state->conversation); /* of a group that is repeated */
    int rc = converse(run, &run->state->conversation, err);
    const struct rv_app_begin begin = {.conversation = conversation_of(run->state->conversation),
                                       .bundle = bundle,
                                       .in_group = in_group,
                                       .limits = &run->state->limits,
                                       .counts = counts};

    app_limits_set(&run->state->limits, run->state->quotas, run->app->scope.tenant, rv_envelope_user(env));
    return rc < 0 ? rc : app_keep(run, env, &begin, err);
}

int rv_app_run_keep(struct rv_app_run *run, const rv_envelope *env, rv_err **err)
{
    return keep_new(run, NULL, env, false, RV_QUOTA_RUNS, err);
}

int app_run_keep_in_group(struct rv_app_run *run, const rv_envelope *env, rv_err **err)
{
    return keep_new(run, NULL, env, true, RV_QUOTA_RUNS, err);
}

int app_run_keep_counted(struct rv_app_run *run, const rv_envelope *env, enum rv_quota_kind counts, rv_err **err)
{
    return keep_new(run, NULL, env, true, counts, err);
}

int app_run_keep_bundled(struct rv_app_run *run, const char *bundle, const rv_envelope *env, rv_err **err)
{
    return keep_new(run, bundle, env, true, RV_QUOTA_RUNS, err);
}

/* --- what happens while it goes on --- */

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct rv_app_run *run = self;

    if (run->observer.on_event)
        run->observer.on_event(run->observer.self, e, line);
    if (run->recorder)
        rv_recorder_note_event(run->recorder, e, line);
}

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    const struct rv_app_observer *o = &((struct rv_app_run *)self)->observer;

    return o->on_delta(o->self, from, d);
}

static void on_payload(void *self, int64_t call_id, const char *provider, rv_str body)
{
    const struct rv_app_observer *o = &((struct rv_app_run *)self)->observer;

    o->on_payload(o->self, call_id, provider, body);
}

static void on_piece(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    rv_recorder_note_delta(((struct rv_app_run *)self)->recorder, from->stage, from->call_id, d, rv_app_now_us());
}

static void on_input(void *self, const struct rv_event *ev)
{
    rv_recorder_note_input(((struct rv_app_run *)self)->recorder, ev);
}

static void on_state(void *self, rv_str state)
{
    struct rv_app_run *run = self;
    const char *paths[] = {run->save, run->run_file};
    const struct rv_runfile file = {.rules = run->rules, .pipeline = run->pipeline_path, .script = run->script_path};

    for (size_t i = 0; i < RV_COUNT(paths); i++)
        if (paths[i] && !run->save_err)
            RV_IGNORE(rv_runfile_write(paths[i], &file, state, &run->save_err), "reported when the run is over");
}

/* What the run can call, for the run that plays the recording. */
static void record_tools(const struct rv_app_run *run, const struct rv_exec_opts *x)
{
    struct rv_catalog catalog = x->plugins ? rv_plugins_catalog(x->plugins) : rv_catalog_empty;

    if (x->script)
        catalog = rv_script_catalog(x->script, &catalog);
    rv_recorder_hide(run->recorder, x->pipeline);
    rv_recorder_note_tools(run->recorder, x->pipeline, x->catalog ? x->catalog : &catalog);
}

static void fill_in(struct rv_app_run *run, struct rv_exec_opts *x)
{
    x->pipeline = run->loaded->pipeline;
    x->plugins = run->loaded->plugins;
    x->script = run->loaded->script;
    x->mcp = run->loaded->mcp;
    x->journal = run->journal;
    x->tenant = run->app->scope.tenant;
    x->quotas = app_limits_exec(&run->state->limits);
    x->conversation = conversation_of(run->state->conversation);
    if (run->loaded->agents) {
        x->find_agent = rv_app_find_agent;
        x->find_self = run->loaded;
    }
    x->rules = run->rules;
    x->mode = run->mode;
    x->use_mocks = run->use_mocks;
    x->answer_from_script = x->script != NULL;
    x->self = x->observer.self = run;
    if (run->observer.on_event || run->recorder)
        x->observer.on_event = on_event;
    if (run->observer.on_delta)
        x->observer.on_delta = on_delta;
    if (run->observer.on_payload)
        x->on_payload = on_payload;
    if (run->recorder) {
        x->on_input = on_input;
        x->on_piece = on_piece;
        record_tools(run, x);
    }
    if (run->save || run->run_file) {
        x->saves = RV_SAVES_SOME;
        x->on_state = on_state;
    }
}

/* Takes env on every path. */
static int begin(struct rv_app_run *run, const struct rv_exec_opts *x, rv_envelope *env,
                 const struct rv_response *response, rv_err **err)
{
    const struct rv_store_scope *scope = &run->app->scope;

    if (!run->state->continues)
        return rv_engine_start(run->engine, x, env, response, &run->exec, err);
    int rc = run->state->cancels ? rv_engine_continue_cancel(run->engine, x, scope, &run->exec, err)
                                 : rv_engine_continue(run->engine, x, scope, response, &run->exec, err);
    if (rc < 0)
        return rc;
    rc = rv_store_commit(run->store, err);
    if (rc < 0)
        rv_exec_tell_end(run->exec, *err);
    return rc;
}

/* It waits for an answer, and no other process has it. False: it is left so, for the reason that is logged. */
static bool take_again(struct rv_app_run *run)
{
    rv_journal *waited = run->journal;
    bool is_wanted = false;
    rv_err *err = NULL;

    int rc = rv_journal_release(waited, &err);
    if (rc == 0)
        rc = rv_app_is_to_be_cancelled(run->store, &run->app->scope, rv_journal_run(waited), &is_wanted, &err);
    if (rc == 0 && is_wanted && !run->state->id && !(run->state->id = rv_str_dup(rv_str_of(rv_journal_run(waited)))))
        rc = RV_FAIL(&err, RV_E_NOMEM, "cancel a run");
    if (rc == 0 && is_wanted) {
        run->state->early.fence = 0; /* it was given back when the journal was opened */
        rc = rv_app_take_over(run, &err);
    }
    if (rc < 0) {
        rv_store_rollback(run->store);
        run->journal = waited;
        rv_app_log_uncancelled(run->app->log, rv_journal_run(waited), err);
    }
    if (rc < 0 || !is_wanted)
        return false;
    rv_exec_free(run->exec);
    run->exec = NULL;
    rv_journal_free(waited);
    return true;
}

/* Who asked that it be cancelled while it was driven left that to this process, and its engine does not look any more
 * when the run has begun to wait. */
static int end_as_asked(struct rv_app_run *run, const struct rv_exec_opts *opts, rv_err **err)
{
    struct rv_exec_opts x = *opts;

    if (!run->journal || rv_exec_status(run->exec) != RV_RUN_INTERRUPTED || !take_again(run))
        return 0;
    run->state->continues = run->state->cancels = true;
    x.journal = run->journal;
    x.conversation = NULL; /* the journal has it, and the rest */
    x.mode = RV_UNSET;
    x.use_mocks = false;
    x.rules = 0;
    int rc = begin(run, &x, NULL, NULL, err);
    return rc < 0 ? rc : rv_engine_wait(run->engine, run->exec, err);
}

/* The use of a run that is not kept would not be counted: it is refused where a quota applies. */
static int check_uncounted(struct rv_app_run *run, const rv_envelope *env, rv_err **err)
{
    struct rv_app_limits *l = &run->state->limits;

    app_limits_set(l, run->state->quotas, run->app->scope.tenant, env ? rv_envelope_user(env) : run->app->scope.user);
    return app_limits_exec(l) ? app_limits_refuse(l, err) : 0;
}

int app_run_drive_with(struct rv_app_run *run, rv_envelope *env, const struct rv_response *response,
                       const struct rv_exec_services *services, rv_err **err)
{
    const struct rv_engine_opts opts = {.workers = run->workers,
                                        .handle_signals = run->handle_signals,
                                        .log = run->app->log,
                                        .store = run->store,
                                        .owner = run->owner[0] ? run->owner : NULL,
                                        .lease_us = run->app->lease_us};
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    struct rv_catalog catalog;

    int rc = run->journal ? 0 : check_uncounted(run, env, err);
    if (rc == 0)
        rc = rv_engine_new(&opts, &run->engine, err);
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    if (run->loaded->bundle) {
        catalog = rv_bundle_catalog(run->loaded->bundle);
        x.catalog = &catalog;
    }
    fill_in(run, &x);
    x.services = run->journal ? services : NULL;
    rc = begin(run, &x, env, response, err);
    if (rc == 0)
        rc = rv_engine_wait(run->engine, run->exec, err);
    return rc == 0 ? end_as_asked(run, &x, err) : rc;
}

/* --- its end --- */

int rv_app_run_keep_file(struct rv_app_run *run, rv_buf *path, rv_err **err)
{
    const struct rv_runfile file = {.rules = run->rules, .pipeline = run->pipeline_path, .script = run->script_path};
    const rv_envelope *env = rv_exec_envelope(run->exec);
    rv_buf state = RV_BUF_INIT(RV_APP_MAX_TEXT);

    if (run->save || run->run_file) { /* it is there */
        rv_buf_puts(path, run->save ? run->save : run->run_file);
        return rv_buf_check(path, "path", err);
    }
    rv_envelope_write_state(env, &state);
    int rc = rv_buf_check(&state, "state", err);
    if (rc == 0)
        rc = rv_runfile_make_path(rv_envelope_fields(env)->envelope_id, path, err);
    if (rc == 0)
        rc = rv_runfile_write(rv_buf_cstr(path), &file, rv_buf_str(&state), err);
    rv_buf_fini(&state);
    return rc;
}

static void let_go(struct rv_app_run *run)
{
    struct rv_app_early *early = &run->state->early;

    rv_journal_free(early->journal);
    if (early->fence)
        RV_IGNORE(rv_store_release(run->store, run->state->id, early->fence, NULL),
                  "the lease ends by itself, only later");
}

void rv_app_run_fini(struct rv_app_run *run)
{
    rv_exec_free(run->exec);
    rv_app_engine_free(run->loaded, run->engine);
    if (run->state) {
        if (run->state->continues)
            rv_store_rollback(run->store); /* nothing to do, unless it did not come to a commit */
        rv_journal_free(run->journal);
        let_go(run);
        conversation_free(run->state->conversation);
        if (run->state->closes_store)
            rv_store_close(run->store);
        rv_quotas_free(run->state->quotas);
        rv_app_services_fini(&run->state->services);
        free(run->state->id);
        free(run->state);
    }
    rv_err_free(run->save_err);
    memset(run, 0, sizeof *run);
}

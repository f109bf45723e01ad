/* A run in one call: load, check, keep, drive with the services of the program, read what it came to. */
#include "coreengine/app/app_internal.h"

#include <stdlib.h>
#include <string.h>

static int envelope_of(const struct rv_app *app, const struct rv_app_job *job, rv_envelope **out, rv_err **err)
{
    struct rv_clock clock = rv_clock_system();
    json_object *state = NULL;
    int rc = job->state ? rv_json_dup(job->state, &state, err) : 0;

    if (rc == 0 && !state && !(state = json_object_new_object()))
        rc = RV_FAIL(err, RV_E_NOMEM, "make an envelope");
    if (rc == 0 && job->input)
        rc = rv_json_set_text(state, "raw_input", job->input, err);
    if (rc == 0 && app->scope.user)
        rc = rv_json_set_text(state, "user_id", app->scope.user, err);
    if (rc == 0 && job->session)
        rc = rv_json_set_text(state, "session_id", job->session, err);
    if (rc == 0)
        rc = rv_envelope_load(state, rv_rand_system(), clock.now_us(clock.self), out, err);
    json_object_put(state);
    return rc;
}

bool rv_app_state_is_runs_own(rv_str key)
{
    static const char *const begun[] = {
        "current_stage", "stage_order",   "parallel_mode",       "status",    "terminated",      "termination_reason",
        "completed_at",  "active_stages", "completed_stage_set", "suspended", "terminal_reason", "interrupt_pending",
        "interrupt",     "failed_stages"};

    for (size_t i = 0; i < RV_COUNT(begun); i++)
        if (rv_str_is(key, begun[i]))
            return true;
    return false;
}

bool rv_app_has_answer(enum rv_run_status status, const rv_envelope *env)
{
    bool ended = status == RV_RUN_COMPLETED || status == RV_RUN_TERMINATED;
    return ended && !rv_envelope_fields(env)->interrupt_pending && !rv_envelope_was_denied(env);
}

static int read_result(struct rv_app_run *run, struct rv_app_result *out, rv_err **err)
{
    rv_str answer;

    *out = (struct rv_app_result){.status = rv_exec_status(run->exec), .envelope = rv_exec_steal_envelope(run->exec)};
    if (!out->envelope)
        return RV_FAIL(err, RV_E_NOMEM, "read the result of a run");
    if (!rv_app_has_answer(out->status, out->envelope) ||
        !rv_envelope_find_final_response(out->envelope, &run->loaded->pipeline->response, &answer))
        return 0;
    out->answer = rv_str_dup(answer);
    if (out->answer)
        return 0;
    rv_app_result_fini(out);
    return RV_FAIL(err, RV_E_NOMEM, "read the result of a run");
}

int rv_app_run_drive(struct rv_app_run *run, rv_envelope *env, const struct rv_response *response, rv_err **err)
{
    int rc = app_run_prepare(run, err);

    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    return app_run_drive_with(run, env, response, rv_app_services_init(&run->state->services, run->app), err);
}

/* Takes env on every path. */
static int keep_and_drive(struct rv_app_run *run, rv_envelope *env, rv_err **err)
{
    int rc = run->app->no_store ? 0 : rv_app_run_open(run, err);

    if (rc == 0 && run->store)
        rc = rv_app_run_keep(run, env, err);
    if (rc == 0)
        return rv_app_run_drive(run, env, NULL, err);
    rv_envelope_free(env);
    return rc;
}

int rv_app_run(const struct rv_app *app, const struct rv_app_job *job, struct rv_app_result *out, rv_err **err)
{
    const struct rv_app_load_opts opts = {.script = job->script, .connects = true, .keeps = !app->no_store};
    struct rv_app_loaded loaded;
    struct rv_app_run run = {.app = app,
                             .loaded = &loaded,
                             .mode = job->mode,
                             .use_mocks = job->use_mocks,
                             .session = job->session,
                             .workers = job->workers,
                             .observer = job->observer};
    rv_envelope *env = NULL;

    int rc = rv_app_load(app, job->pipeline, &opts, &loaded, err);
    if (rc < 0)
        return rc;
    rc = app_check_all(&loaded, job->use_mocks, err);
    if (rc < 0)
        rc = RV_WRAP(err, rc, "load pipeline \"%s\"", job->pipeline);
    if (rc == 0)
        rc = envelope_of(app, job, &env, err);
    if (rc == 0)
        rc = keep_and_drive(&run, env, err);
    if (rc == 0)
        rc = read_result(&run, out, err);
    rv_app_run_fini(&run);
    rv_app_loaded_fini(&loaded);
    return rc;
}

static int go_on(struct rv_app_run *run, rv_store *store, const char *word, const struct rv_response *response,
                 struct rv_app_loaded *loaded, rv_err **err)
{
    struct rv_run_row row;

    int rc = rv_app_find_run(store, &run->app->scope, word, &row, err);
    if (rc < 0)
        return rc;
    if (row.status == RV_RUN_INTERRUPTED)
        rc = rv_app_continue(run, store, row.id, RV_APP_ANSWER, loaded, err);
    else
        rc = RV_FAIL(err, RV_E_STATE, "run \"%s\" does not wait for an answer: its status is %s", row.id,
                     rv_run_status_text(row.status));
    rv_run_row_fini(&row);
    if (rc == 0)
        rc = app_findings_error(loaded->findings, err);
    if (rc == 0)
        rc = rv_app_take_over(run, err);
    return rc < 0 ? rc : rv_app_run_drive(run, NULL, response, err);
}

/* The answer came too late: the run goes on by that. */
static int go_on_late(const struct rv_app *app, const char *run_word, const struct rv_app_observer *observer)
{
    struct rv_app_result result;
    int rc = rv_app_answer(app, run_word, NULL, observer, &result,
                           RV_CODE_ONLY("the answer is refused as late in any case; `runs recover` finds the run"));

    if (rc == 0)
        rv_app_result_fini(&result);
    return rc;
}

int rv_app_answer(const struct rv_app *app, const char *run_word, const struct rv_response *response,
                  const struct rv_app_observer *observer, struct rv_app_result *out, rv_err **err)
{
    struct rv_app_loaded loaded = {0};
    struct rv_app_run run = {.app = app, .loaded = &loaded, .mode = RV_UNSET};
    rv_store *store = NULL;

    if (observer)
        run.observer = *observer;
    int rc = rv_app_store_open(app, RV_APP_STORE_CHANGE, &store, err);
    if (rc == 0)
        rc = go_on(&run, store, run_word, response, &loaded, err);
    bool is_late = rc == RV_E_TIMEOUT && response;
    if (rc == 0)
        rc = read_result(&run, out, err);
    rv_app_run_fini(&run);
    rv_app_loaded_fini(&loaded);
    rv_store_close(store);
    if (is_late)
        RV_IGNORE(go_on_late(app, run_word, observer), "a question that cannot expire is left as it is");
    return rc;
}

void rv_app_result_fini(struct rv_app_result *r)
{
    rv_envelope_free(r->envelope);
    free(r->answer);
    memset(r, 0, sizeof *r);
}

/* From an ask to a job: what it needs is copied on the loop, the rest happens on the thread that asks. */
#include "coreengine/app/services/services_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app_internal.h"
#include "coreengine/app/memory.h"
#include "coreengine/app/past.h"

/* --- The service `moments.put`: a moment of this user with the session that goes with it --- */

static int put_moment(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"moment", "session", "description"};
    struct rv_app_moment_session what = {
        .moment = rv_json_get_obj(a->args, "moment"), .now_us = rv_app_now_us(), .rand = rv_rand_system()};
    char session[RV_STORE_MAX_ID + 1];
    json_object *row = NULL;
    const char *id = NULL;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    if (rc == 0 && !what.moment)
        rc = RV_FAIL(err, RV_E_INVALID, "it needs \"moment\", an object");
    if (rc == 0)
        rc = app_ask_text(a, "session", false, &what.session, err);
    if (rc == 0)
        rc = app_ask_text(a, "description", false, &what.description, err);
    if (rc == 0)
        rc = rv_app_put_moment(a->store, &a->app.scope, &what, session, &row, err);
    if (rc == 0 && !rv_json_get_text(row, "id", &id))
        rc = RV_FAIL(err, RV_E_INTERNAL, "a moment without an id");
    if (rc == 0) {
        rv_jw_kv_text(w, "id", id);
        rv_jw_kv_text(w, "session", session);
    }
    json_object_put(row);
    return rc;
}

/* --- the services --- */

#define MAX_SCRIPT ((size_t)16 << 20) /* bytes of a script of test answers: it is in memory */

/* Sorted as in coreengine/tools/services.c. To answer another service, add a row. */
static const struct row {
    const char *name;
    int (*serve)(const struct app_ask *a, rv_jw *w, rv_err **err); /* writes the members of the answer */
    bool needs_none;                                               /* no store */
} rows[] = {
    {"agents.save", app_agents_save, false},
    {"dreaming.gather", app_dreaming_gather, false},
    {"entities.delete", app_entities_delete, false},
    {"entities.find", app_entities_find, false},
    {"entities.get", app_entities_get, false},
    {"entities.lookup", app_entities_lookup, false},
    {"entities.merge_edges", app_entities_merge_edges, false},
    {"entities.merge_metadata", app_entities_merge_metadata, false},
    {"entities.put", app_entities_put, false},
    {"files.read", app_files_read, true},
    {"models.call", app_models_call, false},
    {"moments.put", put_moment, false},
    {"query", app_query, false},
    {"quotas.take", app_quotas_take, false},
    {"schedules.add", app_schedules_add, false},
    {"schedules.cancel", app_schedules_cancel, false},
    {"schedules.list", app_schedules_list, false},
    {"tasks.add", app_tasks_add, false},
};

struct rv_app_scratch {
    pthread_mutex_t lock; /* guards `store`; leaf: opening a store in memory takes no lock of ours */
    rv_store *store;      /* NULL: nothing was asked yet; owned */
};

struct job {
    struct rv_service_job job; /* first: a pointer to it is one to this */
    const struct row *row;
    char *store, *sync, *quotas, *files, *tenant, *user, *key, *args, *capability, *entry, *run_id, *script,
        *script_name;        /* owned; sync, quotas, files, tenant and those of a script may be NULL */
    rv_app_scratch *scratch; /* borrowed; NULL: the store of the program */
    rv_app_handles *handles; /* kept; NULL: there is a scratch */
};

static void job_free(struct rv_service_job *job)
{
    struct job *j = (struct job *)job;

    if (j->handles)
        app_handles_leave(j->handles);
    free(j->store);
    free(j->sync);
    free(j->quotas);
    free(j->files);
    free(j->tenant);
    free(j->user);
    free(j->key);
    free(j->args);
    free(j->capability);
    free(j->entry);
    free(j->run_id);
    free(j->script);
    free(j->script_name);
    free(j);
}

/* The scratch store of a test is made by the first request; other requests wait for it. */
static int open_store(const struct job *j, struct app_ask *a, rv_err **err)
{
    static const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    int rc = 0;

    if (!j->scratch)
        return app_handles_take(j->handles, &a->app, &a->store, err);
    pthread_mutex_lock(&j->scratch->lock);
    if (!j->scratch->store)
        rc = rv_store_open("memory:", &opts, &j->scratch->store, err);
    a->store = j->scratch->store;
    if (rc < 0)
        pthread_mutex_unlock(&j->scratch->lock);
    return rc;
}

static int serve(const struct job *j, struct app_ask *a, rv_buf *answer, rv_err **err)
{
    rv_jw w = rv_jw_on(answer);
    int rc = j->row->needs_none ? 0 : open_store(j, a, err);

    if (rc < 0)
        return rc;
    rv_jw_obj(&w);
    rc = j->row->serve(a, &w, err);
    rv_jw_obj_end(&w);
    if (j->row->needs_none)
        return rc;
    if (j->scratch)
        pthread_mutex_unlock(&j->scratch->lock);
    else
        app_handles_give_take(j->handles, &a->app, a->store, rc);
    return rc;
}

static int run(struct rv_service_job *job, rv_buf *answer, rv_err **err)
{
    const struct job *j = (struct job *)job;
    struct app_ask a = {.app = {.store = j->store,
                                .sync = j->sync,
                                .quotas = j->quotas,
                                .files = j->files,
                                .scope = {.tenant = j->tenant, .user = j->user}},
                        .key = j->key,
                        .capability = j->capability,
                        .entry = j->entry,
                        .run_id = j->run_id,
                        .script = j->script,
                        .script_name = j->script_name,
                        .is_test = j->scratch != NULL};
    int rc = rv_json_parse(rv_str_of(j->args), NULL, &a.args, err);

    if (rc == 0)
        rc = serve(j, &a, answer, err);
    json_object_put(a.args);
    return rc;
}

static char *copy(const char *text)
{
    return text ? rv_str_dup(rv_str_of(text)) : NULL;
}

/* The script is the loop's, the job runs on another thread. */
static int copy_script(struct job *j, const struct rv_service_ask *ask, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(MAX_SCRIPT);
    const char *name = NULL;

    if (!ask->script || j->row->serve != app_models_call || !rv_script_has_models(ask->script))
        return 0;
    int rc = rv_script_write_source(ask->script, &name, &text, err);
    if (rc < 0)
        return rc;
    j->script = rv_str_dup(rv_buf_str(&text));
    j->script_name = copy(name);
    return j->script && j->script_name ? 0 : RV_FAIL(err, RV_E_NOMEM, "serve a capability");
}

static int new_job(const struct rv_app_services *s, const struct row *row, const struct rv_service_ask *ask,
                   struct job **out, rv_err **err)
{
    const struct rv_app *app = s->app;
    const char *files = app->files ? app->files : app_env("REEVE_FILES");
    RV_AUTO(rv_buf_fini) rv_buf path = RV_BUF_INIT(4096);
    int rc = s->scratch || row->needs_none ? 0 : rv_app_find_store_path(app, &path, err);

    if (rc < 0)
        return rc;
    struct job *j = calloc(1, sizeof *j);
    if (!j)
        return RV_FAIL(err, RV_E_NOMEM, "serve a capability");
    j->job = (struct rv_service_job){run, job_free};
    j->row = row;
    j->scratch = s->scratch;
    j->handles = s->handles;
    if (j->handles)
        app_handles_keep(j->handles);
    j->store = rv_str_dup(rv_buf_str(&path));
    j->sync = copy(app->sync);
    j->quotas = copy(app->quotas);
    j->files = copy(files);
    j->tenant = copy(app->scope.tenant);
    j->user = copy(ask->user_id);
    j->key = copy(ask->key);
    j->args = rv_str_dup(ask->args);
    j->capability = copy(ask->capability);
    j->entry = copy(ask->entry);
    j->run_id = copy(ask->run_id ? ask->run_id : "");
    rc = copy_script(j, ask, err);
    if (rc < 0) {
        job_free(&j->job);
        return rc;
    }
    if (!j->capability || !j->entry || !j->run_id || !j->store || !j->user || !j->key || !j->args ||
        !j->sync != !app->sync || !j->quotas != !app->quotas || !j->files != !files ||
        !j->tenant != !app->scope.tenant) {
        job_free(&j->job);
        return RV_FAIL(err, RV_E_NOMEM, "serve a capability");
    }
    *out = j;
    return 0;
}

static int make(void *self, const struct rv_service_ask *ask, json_object *args, struct rv_service_job **out,
                rv_err **err)
{
    struct rv_app_services *s = self;
    struct job *j = NULL;
    size_t i = 0;

    (void)args; /* the job reads its own copy: a tree of JSON is one thread's */
    while (i < RV_COUNT(rows) && strcmp(rows[i].name, ask->service) != 0)
        i++;
    if (i == RV_COUNT(rows))
        return RV_FAIL(err, RV_E_NOT_FOUND, "service \"%s\" is not answered by this program", ask->service);
    if (s->app->no_store && !s->scratch && !rows[i].needs_none)
        return RV_FAIL(err, RV_E_STATE, "service \"%s\" needs a store, and this run has none", ask->service);
    if (!s->scratch && !s->handles && !(s->handles = rv_app_handles_new()))
        return RV_FAIL(err, RV_E_NOMEM, "serve a capability");
    int rc = new_job(s, &rows[i], ask, &j, err);
    if (rc == 0)
        *out = &j->job;
    return rc;
}

const struct rv_exec_services *rv_app_services_init(struct rv_app_services *s, const struct rv_app *app)
{
    *s = (struct rv_app_services){.exec = {make, s}, .app = app};
    return &s->exec;
}

const struct rv_exec_services *rv_app_services_init_shared(struct rv_app_services *s, const struct rv_app *app,
                                                           rv_app_handles *handles)
{
    rv_app_services_init(s, app);
    s->handles = handles;
    s->shares = true;
    return &s->exec;
}

const struct rv_exec_services *rv_app_services_init_scratch(struct rv_app_services *s, const struct rv_app *app,
                                                            rv_app_scratch *scratch)
{
    rv_app_services_init(s, app);
    s->scratch = scratch;
    return &s->exec;
}

rv_app_scratch *rv_app_scratch_new(void)
{
    rv_app_scratch *scratch = calloc(1, sizeof *scratch);

    if (scratch)
        pthread_mutex_init(&scratch->lock, NULL);
    return scratch;
}

void rv_app_scratch_free(rv_app_scratch *scratch)
{
    if (!scratch)
        return;
    rv_store_close(scratch->store);
    pthread_mutex_destroy(&scratch->lock);
    free(scratch);
}

/* A new schedule of runs: it keeps the bundle of its pipeline. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/past.h"
#include "coreengine/app/schedules.h"
#include "coreengine/app/schedules/schedules_internal.h"
#include "coreengine/app/work.h"

static void write_begin(const struct rv_app_run *run, json_object *state, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_value(&w, RV_SCHEDULE_STATE, state);
    if (run->mode != RV_UNSET)
        rv_jw_kv_int(&w, RV_SCHEDULE_MODE, run->mode);
    if (run->use_mocks)
        rv_jw_kv_bool(&w, RV_SCHEDULE_MOCKS, true);
    if (run->session && run->session[0])
        rv_jw_kv_text(&w, RV_SCHEDULE_SESSION, run->session);
    rv_jw_obj_end(&w);
}

/* In a group. */
static int put(struct rv_app_run *run, const struct rv_app_schedule *s, const struct rv_needs *needs,
               struct rv_schedule_row *row, char id[RV_ID_MAX], rv_err **err)
{
    char hash[RV_STORE_HASH_MAX];
    int rc = rv_app_put_bundle(run, hash, err);

    row->bundle = hash;
    if (rc == 0)
        rc = rv_schedule_add(run->store, s, needs, row, id, err);
    row->bundle = NULL;
    return rc;
}

/* The bundle and the row that refers to it, together: a sweep between them would delete the bundle. */
static int keep(struct rv_app_run *run, const struct rv_app_schedule *s, const struct rv_needs *needs,
                struct rv_schedule_row *row, char id[RV_ID_MAX], rv_err **err)
{
    int rc;

    if (rv_store_in_group(run->store))
        return put(run, s, needs, row, id, err);
    do {
        rc = rv_store_begin(run->store, err);
        if (rc == 0)
            rc = rv_store_end(run->store, put(run, s, needs, row, id, err), err);
    } while (rc < 0 && rv_store_again(run->store, err));
    return rc;
}

int rv_app_schedule_runs(struct rv_app_run *run, json_object *state, const struct rv_app_schedule *s,
                         char id[RV_ID_MAX], rv_err **err)
{
    struct rv_schedule_row row = {.tenant = run->app->scope.tenant,
                                  .type = RV_TASK_OF_RUN,
                                  .pipeline = run->loaded->pipeline->name,
                                  .max_retries = RV_TASK_MAX_RETRIES}; /* a run has bounds of its own */
    struct rv_needs needs = {NULL, 0};
    rv_buf begin = RV_BUF_INIT(RV_SCHEDULE_MAX_STATE);

    write_begin(run, state, &begin);
    row.payload = rv_buf_str(&begin);
    int rc = rv_buf_check(&begin, "state of a schedule", err);
    if (rc == 0)
        rc = rv_needs_of_loaded(run->loaded, &needs, err);
    if (rc == 0)
        rc = rv_schedule_labels(s, &needs, err);
    if (rc == 0)
        rc = keep(run, s, &needs, &row, id, err);
    rv_needs_fini(&needs);
    rv_buf_fini(&begin);
    return rc < 0 ? RV_WRAP(err, rc, "schedule \"%s\"", s->name) : 0;
}

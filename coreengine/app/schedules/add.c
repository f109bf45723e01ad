/* A new schedule: what its tasks will be is settled now, so that firing it can fail by little. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/past.h"
#include "coreengine/app/schedules.h"
#include "coreengine/app/schedules/schedules_internal.h"
#include "coreengine/app/work.h"

#include <string.h>

/* The first instant. */
static int first_time(const struct rv_app_schedule *s, int64_t now_us, int64_t *out, rv_err **err)
{
    struct rv_app_times t;

    int rc = rv_app_times_open(&s->when, now_us, &t, err);
    if (rc < 0)
        return rc;
    if (t.is_once)
        *out = t.at_us;
    else
        rc = rv_cron_next(&t.cron, t.zone, now_us, out, err);
    rv_app_times_fini(&t);
    return rc;
}

/* Keep it: the first instant is computed here. row has what differs from one kind to another. */
static int add_row(rv_store *store, const struct rv_app_schedule *s, const struct rv_needs *needs,
                   struct rv_schedule_row *row, char id[RV_ID_MAX], rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_STORE_MAX_OFFERS);
    rv_jw w = rv_jw_on(&text);

    rv_id_make(rv_rand_system(), RV_SCHEDULE_PREFIX, id);
    rv_needs_write(needs, &w);
    row->id = id;
    row->user = s->user;
    row->name = s->name;
    row->is_once = s->when.at != NULL;
    row->expr = row->is_once ? s->when.at : s->when.cron;
    row->zone = s->when.zone ? s->when.zone : rv_zone_name(rv_zone_utc());
    row->priority = s->priority;
    row->created_us = rv_app_now_us();
    row->needs = rv_buf_str(&text);
    int rc = rv_buf_check(&text, "needs of a schedule", err);
    if (rc == 0)
        rc = first_time(s, row->created_us, &row->next_us, err);
    if (rc == 0)
        rc = rv_store_add_schedule(store, row, err);
    if (rc == RV_E_EXISTS)
        rv_err_set_hint(err, "choose another name, or end that one: reeve schedules cancel");
    rv_buf_fini(&text);
    return rc;
}

static int labels_of(const struct rv_app_schedule *s, struct rv_needs *needs, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < s->n_labels; i++)
        rc = rv_needs_add_label(needs, s->labels[i], err);
    return rc;
}

/* --- tasks --- */

static int check_payload(rv_str payload, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_SCHEDULE_MAX_STATE, .what = "payload"};
    json_object *o = NULL;
    int rc = payload.len > 0 ? rv_json_parse(payload, &opts, &o, err) : 0;

    if (rc == 0 && payload.len > 0 && !json_object_is_type(o, json_type_object))
        rc = RV_FAIL(err, RV_E_INVALID, "the payload is not a JSON object");
    if (rc == 0 && o && json_object_object_get_ex(o, RV_SCHEDULE_MEMBER, NULL))
        rc = RV_FAIL(err, RV_E_INVALID, "the payload has a member \"" RV_SCHEDULE_MEMBER "\", which each firing sets");
    json_object_put(o);
    return rc;
}

int rv_app_schedule_tasks(const struct rv_app *app, rv_store *store, const struct rv_app_scheduled_task *task,
                          const struct rv_app_schedule *s, char id[RV_ID_MAX], rv_err **err)
{
    struct rv_schedule_row row = {
        .tenant = app->scope.tenant, .type = task->type, .payload = task->payload, .max_retries = task->max_retries};
    struct rv_needs needs = {NULL, 0};
    int rc = check_payload(task->payload, err);

    if (rc == 0 && strcmp(task->type, RV_TASK_OF_RUN) == 0)
        rc = RV_FAIL(err, RV_E_INVALID, "tasks of type \"" RV_TASK_OF_RUN "\" are runs: give a pipeline instead");
    if (rc == 0)
        rc = labels_of(s, &needs, err);
    if (rc == 0)
        rc = add_row(store, s, &needs, &row, id, err);
    rv_needs_fini(&needs);
    return rc < 0 ? RV_WRAP(err, rc, "schedule \"%s\"", s->name) : 0;
}

/* --- schedules of runs: such a schedule keeps the bundle of its pipeline --- */

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
    int rc = app_put_bundle(run, hash, err);

    row->bundle = hash;
    if (rc == 0)
        rc = add_row(run->store, s, needs, row, id, err);
    row->bundle = NULL;
    return rc;
}

/* The bundle and the row that refers to it, together: a sweep between them would delete the bundle. */
static int keep(struct rv_app_run *run, const struct rv_app_schedule *s, const struct rv_needs *needs,
                struct rv_schedule_row *row, char id[RV_ID_MAX], rv_err **err)
{
    int rc;

    if (rv_store_is_in_group(run->store))
        return put(run, s, needs, row, id, err);
    do {
        rc = rv_store_begin(run->store, err);
        if (rc == 0)
            rc = rv_store_end(run->store, put(run, s, needs, row, id, err), err);
    } while (rc < 0 && rv_store_wait_again(run->store, err));
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
        rc = rv_needs_build(run->loaded, &needs, err);
    if (rc == 0)
        rc = labels_of(s, &needs, err);
    if (rc == 0)
        rc = keep(run, s, &needs, &row, id, err);
    rv_needs_fini(&needs);
    rv_buf_fini(&begin);
    return rc < 0 ? RV_WRAP(err, rc, "schedule \"%s\"", s->name) : 0;
}

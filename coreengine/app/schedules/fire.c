/* Firing what is due. Each firing is one transaction: the schedule moves on, and the run or the task is there. It can
 * be tried by any number of processes at once; the store lets one of them through.
 *
 * A schedule that cannot be fired (its zone is unknown here, its bundle is damaged) is put off, with the reason, so
 * that the others have their turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app_internal.h"
#include "coreengine/app/past.h"
#include "coreengine/app/schedules.h"
#include "coreengine/app/schedules/schedules_internal.h"
#include "coreengine/app/work.h"

#define MAX_KEY     ((size_t)1 << 10) /* bytes of the key that makes a firing happen once: two ids and a time */
#define JITTER_PART 10                /* of the time until a second try, at most */
#define SKIPPED     "no process looked at it within 24 hours"

struct due {
    char *id, *tenant;
    int64_t next_us;
};
struct firing {
    const struct rv_app *app;
    rv_store *store;
    int64_t now_us;
    const struct rv_schedule_row *row;
    struct rv_app_plan plan;
    bool is_mine;
};

/* --- what it makes --- */

/* {"id": ..., "name": ..., "planned_at": ...} */
static int say_schedule(const struct firing *f, json_object *o, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    char planned[RV_TIME_MAX];

    rv_time_format(f->plan.planned_us, planned);
    json_object *said = rv_json_build(&b, o, RV_SCHEDULE_MEMBER, json_object_new_object());
    if (b.rc < 0)
        return b.rc;
    rv_json_build_text(&b, said, "id", f->row->id);
    rv_json_build_text(&b, said, "name", f->row->name);
    rv_json_build_text(&b, said, "planned_at", planned);
    return b.rc;
}

static int fire_with(struct firing *f, const struct rv_needs *needs, struct rv_new_task *task, const char *made,
                     rv_err **err)
{
    char id[RV_ID_MAX];
    const struct rv_fire fire = {
        .id = f->row->id,
        .expected_us = f->row->next_us,
        .next_us = f->plan.next_us,
        .now = {.planned_us = f->plan.planned_us, .since_us = f->plan.since_us, .at_us = f->now_us, .made = made},
        .task = task};

    rv_id_make(rv_rand_system(), "task_", id);
    task->id = id;
    task->tenant = f->row->tenant;
    task->user = f->row->user[0] ? f->row->user : NULL;
    task->type = f->row->type;
    task->tier = f->row->tier;
    task->needs = (const char *const *)needs->items;
    task->n_needs = needs->n;
    task->priority = f->row->priority;
    task->max_retries = f->row->max_retries;
    task->now_us = f->now_us;
    return rv_store_fire_schedule(f->store, &fire, &f->is_mine, err);
}

static int fire_task(struct firing *f, const struct rv_needs *needs, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_TASK_MAX_JSON, .what = "payload of a schedule"};
    rv_buf payload = RV_BUF_INIT(RV_TASK_MAX_JSON);
    struct rv_new_task task = {0};
    char planned[RV_TIME_MAX], key[RV_STORE_MAX_ID + RV_TIME_MAX + 2];
    json_object *o = NULL;

    rv_time_format(f->plan.planned_us, planned);
    snprintf(key, sizeof key, "%s/%s", f->row->id, planned);
    int rc = rv_json_parse(f->row->payload, &opts, &o, err);
    if (rc == 0)
        rc = say_schedule(f, o, err);
    if (rc == 0) {
        rv_json_write(o, &payload);
        rc = rv_buf_check(&payload, "payload of a task", err);
    }
    task.key = key;
    task.payload = rv_buf_str(&payload);
    if (rc == 0)
        rc = fire_with(f, needs, &task, NULL, err);
    json_object_put(o);
    rv_buf_fini(&payload);
    return rc;
}

/* --- runs --- */

/* One id for a schedule and an instant: the run cannot be there twice, whatever its processes believe. */
static int run_id(const struct firing *f, char id[RV_ID_MAX], rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_KEY);
    char hash[RV_HASH_MAX];

    rv_buf_printf(&text, "%s %lld", f->row->id, (long long)f->plan.planned_us);
    int rc = rv_buf_check(&text, "id of a run", err);
    if (rc == 0) {
        rv_hash_format(rv_buf_str(&text), hash);
        snprintf(id, RV_ID_MAX, "env_%.16s", hash);
    }
    rv_buf_fini(&text);
    return rc;
}

static int begin_state(const struct firing *f, const char *id, json_object *begin, rv_envelope **out, rv_err **err)
{
    json_object *state = rv_json_get_obj(begin, RV_SCHEDULE_STATE), *metadata;
    struct rv_json_build b = {.err = err};

    if (!state)
        return RV_FAIL(err, RV_E_IO, "what the runs of the schedule begin with is damaged");
    int rc = rv_json_set_text(state, "envelope_id", id, err);
    metadata = rv_json_get_obj(state, "metadata");
    if (rc == 0 && !metadata) {
        metadata = rv_json_build(&b, state, "metadata", json_object_new_object());
        rc = b.rc;
    }
    if (rc == 0)
        rc = say_schedule(f, metadata, err);
    return rc < 0 ? rc : rv_envelope_load(state, rv_rand_system(), f->now_us, out, err);
}

static void write_run(const char *id, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, RV_TASK_OF_RUN, id);
    rv_jw_obj_end(&w);
}

/* In a group. */
static int fire_and_keep(struct firing *f, const struct rv_needs *needs, struct rv_app_run *run, const rv_envelope *env,
                         rv_err **err)
{
    const char *id = rv_envelope_fields(env)->envelope_id;
    rv_buf payload = RV_BUF_INIT(MAX_KEY);
    struct rv_new_task task = {.key = id};

    write_run(id, &payload);
    int rc = rv_buf_check(&payload, "payload of a task", err);
    task.payload = rv_buf_str(&payload);
    if (rc == 0)
        rc = fire_with(f, needs, &task, id, err);
    if (rc == 0 && f->is_mine)
        rc = app_run_keep_bundled(run, f->row->bundle, env, err);
    rv_buf_fini(&payload);
    return rc;
}

static int mode_of(json_object *begin)
{
    json_object *v = NULL;

    if (!json_object_object_get_ex(begin, RV_SCHEDULE_MODE, &v) || !json_object_is_type(v, json_type_int))
        return RV_UNSET;
    int64_t mode = json_object_get_int64(v);
    return mode == RV_MODE_PARALLEL || mode == RV_MODE_SEQUENTIAL ? (int)mode : RV_UNSET;
}

static int make_run(struct firing *f, const struct rv_needs *needs, json_object *begin, struct rv_app_loaded *loaded,
                    const rv_envelope *env, rv_err **err)
{
    struct rv_app app = *f->app;
    const char *session = NULL;
    bool use_mocks = false;
    int rc;

    app.scope = (struct rv_store_scope){.tenant = f->row->tenant, .user = f->row->user[0] ? f->row->user : NULL};
    rv_json_get_text(begin, RV_SCHEDULE_SESSION, &session);
    rv_json_get_bool(begin, RV_SCHEDULE_MOCKS, &use_mocks);
    do {
        struct rv_app_run run = {.app = &app,
                                 .loaded = loaded,
                                 .mode = mode_of(begin),
                                 .use_mocks = use_mocks,
                                 .session = session,
                                 .store = f->store};
        f->is_mine = false;
        rc = app_run_prepare(&run, err);
        if (rc == 0)
            rc = rv_store_begin(f->store, err);
        if (rc == 0)
            rc = rv_store_end(f->store, fire_and_keep(f, needs, &run, env, err), err);
        rv_app_run_fini(&run);
    } while (rc < 0 && rv_store_wait_again(f->store, err));
    return rc;
}

static int fire_run(struct firing *f, const struct rv_needs *needs, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_TASK_MAX_JSON, .what = "state of a schedule"};
    struct rv_run_row row = {.bundle = f->row->bundle};
    struct rv_app_loaded loaded;
    char id[RV_ID_MAX] = "";
    json_object *begin = NULL;
    rv_envelope *env = NULL;

    int rc = run_id(f, id, err);
    row.id = id;
    if (rc == 0)
        rc = app_open_bundle(f->app, f->store, &row, 0, &loaded, err);
    if (rc < 0)
        return rc;
    rc = rv_json_parse(f->row->payload, &opts, &begin, err);
    if (rc < 0 && rc != RV_E_NOMEM)
        rc = RV_WRAP(err, RV_E_IO, "what the runs of the schedule begin with is damaged");
    if (rc == 0)
        rc = begin_state(f, id, begin, &env, err);
    if (rc == 0)
        rc = make_run(f, needs, begin, &loaded, env, err);
    rv_envelope_free(env);
    json_object_put(begin);
    rv_app_loaded_fini(&loaded);
    return rc;
}

/* --- one schedule --- */

static int skip(struct firing *f, rv_err **err)
{
    const struct rv_fire fire = {
        .id = f->row->id,
        .expected_us = f->row->next_us,
        .next_us = f->plan.next_us,
        .now = {
            .planned_us = f->plan.planned_us, .since_us = f->plan.since_us, .at_us = f->now_us, .skipped = SKIPPED}};

    return rv_store_fire_schedule(f->store, &fire, &f->is_mine, err);
}

static int fire_row(struct firing *f, rv_zones *zones, rv_err **err)
{
    struct rv_needs needs = {NULL, 0};
    struct rv_app_times times;

    int rc = rv_app_times_build(f->row, zones, &times, err);
    if (rc < 0)
        return rc;
    rc = rv_app_times_plan(&times, f->row->next_us, f->now_us, &f->plan, err);
    if (rc == 0 && f->plan.is_late)
        rc = skip(f, err);
    else if (rc == 0)
        rc = rv_needs_read(f->row->needs, &needs, err);
    if (rc == 0 && !f->plan.is_late)
        rc = f->row->bundle ? fire_run(f, &needs, err) : fire_task(f, &needs, err);
    rv_needs_fini(&needs);
    rv_app_times_fini(&times);
    return rc;
}

static void log_it(const struct firing *f)
{
    char planned[RV_TIME_MAX];

    rv_time_format(f->plan.planned_us, planned);
    if (f->plan.is_late)
        RV_LOG(f->app->log, INFO, "schedule.skipped", RV_F_TEXT("tenant", f->row->tenant),
               RV_F_TEXT("schedule_id", f->row->id), RV_F_TEXT("schedule", f->row->name),
               RV_F_TEXT("planned_at", planned));
    else
        RV_LOG(f->app->log, INFO, "schedule.fired", RV_F_TEXT("tenant", f->row->tenant),
               RV_F_TEXT("schedule_id", f->row->id), RV_F_TEXT("schedule", f->row->name),
               RV_F_TEXT("planned_at", planned));
}

/* Takes why. */
static int put_off(const struct firing *f, const struct due *due, rv_err *why, rv_err **err)
{
    int64_t wait_us = RV_SCHEDULE_RETRY_US, spread_us = wait_us / JITTER_PART;
    rv_buf text = RV_BUF_INIT(RV_TASK_MAX_ERROR);

    wait_us += (int64_t)rv_rand_below(rv_rand_system(), (uint64_t)spread_us);
    rv_err_write_chain(why, &text);
    RV_LOG(f->app->log, WARN, "schedule.failed", RV_F_TEXT("tenant", due->tenant), RV_F_TEXT("schedule_id", due->id),
           RV_F_ERR("error", why));
    rv_err_free(why);
    int rc = rv_store_postpone_schedule(f->store, due->id,
                                        &(const struct rv_postponement){.expected_us = due->next_us,
                                                                        .until_us = f->now_us + wait_us,
                                                                        .why = rv_buf_cstr(&text)},
                                        f->now_us, err);
    rv_buf_fini(&text);
    return rc;
}

/* It may have changed since it was listed. */
static int look_at(struct firing *f, const struct due *due, rv_zones *zones, rv_err **err)
{
    const struct rv_store_scope scope = {.tenant = due->tenant};
    struct rv_schedule_row row = {0};
    rv_err *why = NULL;

    int rc = rv_store_get_schedule(f->store, &scope, due->id, &row, &why);
    if (rc == RV_E_NOT_FOUND) { /* it was cancelled */
        rv_err_free(why);
        return 0;
    }
    if (rc < 0)
        rv_err_pass(err, why);
    f->row = &row;
    if (rc == 0 && row.next_us == due->next_us && row.look_us <= f->now_us)
        rc = fire_row(f, zones, err);
    if (rc == 0 && f->is_mine)
        log_it(f);
    f->row = NULL;
    rv_schedule_row_fini(&row);
    return rc;
}

static int fire_one(struct firing *f, const struct due *due, rv_zones *zones, struct rv_app_fired *out, rv_err **err)
{
    rv_err *why = NULL;

    f->is_mine = false;
    int rc = look_at(f, due, zones, &why);
    if (rc == 0) {
        *(!f->is_mine ? &out->n_lost : f->plan.is_late ? &out->n_skipped : &out->n_fired) += 1;
        return 0;
    }
    out->n_failed++;
    return put_off(f, due, why, err);
}

/* --- all that are due --- */

struct picked {
    struct due *items; /* owned, with their texts */
    size_t n;
};

static int pick(void *self, const struct rv_due_schedule *due, rv_err **err)
{
    struct picked *p = self;
    struct due *d = &p->items[p->n];

    if (!due->id[0] || !due->tenant[0]) /* damaged, and not to be named; `reeve store check` tells */
        return 0;
    *d = (struct due){
        .id = rv_str_dup(rv_str_of(due->id)), .tenant = rv_str_dup(rv_str_of(due->tenant)), .next_us = due->next_us};
    p->n++;
    return d->id && d->tenant ? 0 : RV_FAIL(err, RV_E_NOMEM, "list schedules that are due");
}

int rv_app_fire_due(const struct rv_app *app, rv_store *store, const struct rv_firing_round *look,
                    struct rv_app_fired *out, rv_err **err)
{
    struct firing f = {.app = app, .store = store, .now_us = look->now_us};
    struct picked picked = {.items = calloc((size_t)look->max + 1, sizeof *picked.items)};
    rv_err *first = NULL;

    *out = (struct rv_app_fired){0};
    int rc = picked.items ? rv_store_list_due_schedules(store, look->now_us, look->max, pick, &picked, err)
                          : RV_FAIL(err, RV_E_NOMEM, "list schedules that are due");
    for (size_t i = 0; i < picked.n && rc >= 0; i++) {
        rv_err *why = NULL;
        if (fire_one(&f, &picked.items[i], look->zones, out, &why) == 0)
            continue;
        if (first)
            rv_err_free(why);
        else
            first = why;
    }
    if (first) {
        rc = rv_err_code(first);
        rv_err_pass(err, first);
    }
    for (size_t i = 0; i < picked.n; i++) {
        free(picked.items[i].id);
        free(picked.items[i].tenant);
    }
    free(picked.items);
    return rc < 0 ? RV_WRAP(err, rc, "fire schedules") : 0;
}

/* The services that queue work: tasks.add, schedules.add, schedules.list and schedules.cancel. Work of type `run` is
 * not theirs to queue: a pipeline is chosen by people. */
#include <stdio.h>
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/schedules.h"
#include "coreengine/app/services/services_internal.h"

/* --- tasks --- */

/* The same call with the same arguments is the same task, however often the engine makes it. */
static int key_of(const struct app_ask *a, const char *type, rv_str payload, char *out, size_t size, rv_err **err)
{
    const char *given = NULL;
    struct rv_hash h;
    char hash[RV_HASH_MAX];
    int rc = app_ask_text(a, "key", false, &given, err);

    if (rc < 0)
        return rc;
    if (given && strlen(given) >= size)
        return RV_FAIL(err, RV_E_INVALID, "\"key\" is longer than %zu bytes", size - 1);
    if (!given && !*a->key)
        return RV_FAIL(err, RV_E_INVALID, "it needs \"key\": the call that asks has none, and may be made again");
    rv_hash_init(&h);
    rv_hash_add(&h, rv_str_of(type));
    rv_hash_add(&h, RV_STR_LIT("\n"));
    rv_hash_add(&h, payload);
    rv_hash_finish_hex(&h, hash);
    snprintf(out, size, given ? "%s%.0s" : "%s/%.16s", given ? given : a->key, hash);
    return 0;
}

static int check_type(const char *type, rv_err **err)
{
    return strcmp(type, RV_TASK_OF_RUN) == 0
               ? RV_FAIL(err, RV_E_INVALID, "tasks of type \"" RV_TASK_OF_RUN "\" are runs, which people queue")
               : 0;
}

static int enqueue(const struct app_ask *a, const char *type, rv_str payload, rv_jw *w, rv_err **err)
{
    char id[RV_ID_MAX], key[RV_KEY_MAX + 32];
    struct rv_enqueued out;
    struct rv_new_task task = {.id = id,
                               .tenant = a->app.scope.tenant,
                               .user = *a->app.scope.user ? a->app.scope.user : NULL,
                               .type = type,
                               .key = key,
                               .payload = payload,
                               .max_retries = RV_UNSET,
                               .now_us = rv_app_now_us()};
    int rc = key_of(a, type, payload, key, sizeof key, err);

    rv_id_make(rv_rand_system(), "task_", id);
    if (rc == 0)
        rc = rv_store_enqueue(a->store, &task, &out, err);
    if (rc < 0)
        return rc;
    rv_jw_kv_text(w, "task", out.id);
    rv_jw_kv_bool(w, "is_new", out.is_new);
    return 0;
}

int app_tasks_add(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"type", "payload", "key"};
    RV_AUTO(rv_buf_fini) rv_buf payload = RV_BUF_INIT(RV_TASK_MAX_JSON);
    const char *type = NULL;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    if (rc == 0)
        rc = app_ask_text(a, "type", true, &type, err);
    if (rc == 0)
        rc = check_type(type, err);
    if (rc == 0)
        rc = app_ask_payload(a, &payload, err);
    return rc == 0 ? enqueue(a, type, rv_buf_str(&payload), w, err) : rc;
}

/* --- schedules --- */

static int write_one(void *self, const struct rv_schedule_row *row, rv_err **err)
{
    const struct rv_app_schedule_view view = {.row = row};

    return rv_app_schedule_write(&view, self, err);
}

int app_schedules_list(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    int rc = app_ask_check(a, NULL, 0, err);

    if (rc < 0)
        return rc;
    rv_jw_key(w, "schedules");
    rv_jw_arr(w);
    rc = rv_store_list_schedules(a->store, &a->app.scope, write_one, w, err);
    rv_jw_arr_end(w);
    return rc;
}

int app_schedules_cancel(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"schedule"};
    const char *word = NULL;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    (void)w; /* a command */
    if (rc == 0)
        rc = app_ask_text(a, "schedule", true, &word, err);
    return rc == 0 ? rv_store_delete_schedule(a->store, &a->app.scope, word, err) : rc;
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* The name is taken: by the same schedule, which an earlier attempt of this call has added? */
static int same_one(const struct app_ask *a, const struct rv_app_schedule *s, const char *type, rv_str payload,
                    char id[RV_ID_MAX], rv_err **err)
{
    struct rv_schedule_row row;
    rv_err *why = NULL;

    int rc = rv_store_get_schedule(a->store, &a->app.scope, s->name, &row, &why);
    if (rc < 0 && rc != RV_E_NOT_FOUND) {
        rv_err_free(rv_err_steal(err));
        return rv_err_pass(err, why);
    }
    if (rc < 0) { /* another user's */
        rv_err_free(why);
        return RV_E_EXISTS;
    }
    const char *zone = s->when.zone ? s->when.zone : rv_zone_name(rv_zone_utc());
    bool is_same = row.next_us != 0 && same_text(row.type, type) && rv_str_eq(row.payload, payload) &&
                   same_text(row.expr, s->when.at ? s->when.at : s->when.cron) && same_text(row.zone, zone);
    if (is_same)
        snprintf(id, RV_ID_MAX, "%s", row.id);
    rv_schedule_row_fini(&row);
    if (!is_same)
        return RV_E_EXISTS;
    rv_err_free(rv_err_steal(err));
    return 0;
}

/* In place of the user's schedule of that name; everything, or nothing. */
static int replace(const struct app_ask *a, const struct rv_app_schedule *s, const char *type, rv_str payload,
                   char id[RV_ID_MAX], rv_err **err)
{
    int rc;

    do {
        rc = rv_store_begin(a->store, err);
        if (rc < 0)
            continue;
        rc = rv_store_delete_schedule(a->store, &a->app.scope, s->name, err);
        if (rc == RV_E_NOT_FOUND) { /* another user's */
            rv_err_free(rv_err_steal(err));
            rc = RV_FAIL(err, RV_E_EXISTS, "the name \"%s\" is taken", s->name);
        }
        if (rc == 0)
            rc = rv_app_schedule_tasks(&a->app, a->store, &(struct rv_app_scheduled_task){type, payload, RV_UNSET}, s,
                                       id, err);
        rc = rv_store_end(a->store, rc, err);
    } while (rc < 0 && rv_store_wait_again(a->store, err));
    return rc;
}

struct room {
    const char *name; /* of the schedule to be added */
    int64_t n;        /* schedules of other names that have not ended */
};

static int count_one(void *self, const struct rv_schedule_row *row, rv_err **err)
{
    struct room *r = self;

    (void)err;
    r->n += row->next_us != 0 && strcmp(row->name, r->name) != 0;
    return 0;
}

/* A schedule that has the name already, from an earlier attempt or to be replaced, needs no room of its own. */
static int check_room(const struct app_ask *a, const char *name, rv_err **err)
{
    struct room r = {.name = name};
    int rc = rv_store_list_schedules(a->store, &a->app.scope, count_one, &r, err);

    if (rc == 0 && r.n >= RV_APP_MAX_SCHEDULES)
        rc = RV_FAIL(err, RV_E_LIMIT, "this user has %d schedules, which is the most: cancel one of them first",
                     RV_APP_MAX_SCHEDULES);
    return rc;
}

/* When it fires first: of its row, since the one that was there may have gone on. */
static int write_next(const struct app_ask *a, const char *id, rv_jw *w, rv_err **err)
{
    struct rv_schedule_row row;
    char time[RV_TIME_MAX];
    int rc = rv_store_get_schedule(a->store, &a->app.scope, id, &row, err);

    if (rc < 0)
        return rc;
    rv_time_format(row.next_us, time);
    rv_jw_kv_text(w, "next_at", time);
    rv_schedule_row_fini(&row);
    return 0;
}

static int add(const struct app_ask *a, const struct rv_app_schedule *s, const char *type, rv_jw *w, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf payload = RV_BUF_INIT(RV_SCHEDULE_MAX_STATE);
    char id[RV_ID_MAX] = "";
    bool is_new = true, replaces = false;
    int rc = app_ask_payload(a, &payload, err);

    if (rc == 0 && json_object_object_get_ex(a->args, "replace", NULL) &&
        !rv_json_get_bool(a->args, "replace", &replaces))
        rc = RV_FAIL(err, RV_E_INVALID, "\"replace\" is not true or false");
    if (rc == 0)
        rc = check_room(a, s->name, err);
    if (rc == 0)
        rc = rv_app_schedule_tasks(&a->app, a->store,
                                   &(struct rv_app_scheduled_task){type, rv_buf_str(&payload), RV_UNSET}, s, id, err);
    if (rc == RV_E_EXISTS) {
        rc = same_one(a, s, type, rv_buf_str(&payload), id, err);
        is_new = false;
    }
    if (rc == RV_E_EXISTS && replaces) {
        rv_err_free(rv_err_steal(err));
        rc = replace(a, s, type, rv_buf_str(&payload), id, err);
        is_new = true;
    }
    if (rc < 0)
        return rc;
    rv_jw_kv_text(w, "schedule", id);
    rv_jw_kv_bool(w, "is_new", is_new);
    return write_next(a, id, w, err);
}

int app_schedules_add(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"name", "type", "payload", "cron", "at", "zone", "replace"};
    struct rv_app_schedule s = {.user = *a->app.scope.user ? a->app.scope.user : NULL};
    const char *type = NULL;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    if (rc == 0)
        rc = app_ask_text(a, "name", true, &s.name, err);
    if (rc == 0)
        rc = app_ask_text(a, "type", true, &type, err);
    if (rc == 0)
        rc = app_ask_text(a, "cron", false, &s.when.cron, err);
    if (rc == 0)
        rc = app_ask_text(a, "at", false, &s.when.at, err);
    if (rc == 0)
        rc = app_ask_text(a, "zone", false, &s.when.zone, err);
    if (rc == 0 && !s.when.cron == !s.when.at)
        rc = RV_FAIL(err, RV_E_INVALID, "it needs either \"cron\" or \"at\"");
    if (rc == 0)
        rc = check_type(type, err);
    return rc == 0 ? add(a, &s, type, w, err) : rc;
}

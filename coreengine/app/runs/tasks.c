/* Tasks of the queue for programs: as JSON, and by the beginning of their id. */
#include "coreengine/app/rows.h"

#include <string.h>

/* The store has checked that it is an object. */
static void put_object(rv_jw *w, const char *key, rv_str json)
{
    rv_jw_key(w, key);
    rv_jw_raw(w, json.ptr ? json : RV_STR_LIT("null"));
}

static void put_members(const struct rv_task_row *row, rv_jw *w)
{
    rv_jw_kv_text(w, "id", row->id);
    rv_jw_kv_text(w, "task_type", row->type);
    rv_jw_kv_text(w, "status", rv_task_status_text(row->status));
    rv_jw_kv_text(w, "tier", row->tier);
    rv_jw_kv_text(w, "tenant_id", row->tenant);
    rv_jw_kv_text(w, "user_id", row->user);
    rv_jw_kv_text(w, "idempotency_key", row->key);
    rv_jw_kv_int(w, "priority", row->priority);
    rv_jw_kv_int(w, "attempt", row->attempt);
    rv_jw_kv_int(w, "retry_count", row->retry_count);
    rv_jw_kv_int(w, "max_retries", row->max_retries);
    rv_jw_kv_bool(w, "cancel_requested", row->cancel_requested);
    put_object(w, "payload", row->payload);
    put_object(w, "result", row->result);
    rv_jw_kv_text(w, "error", row->error);
    rv_jw_kv_text(w, "claimed_by", row->worker);
    rv_app_put_time(w, "scheduled_at", row->scheduled_us);
    rv_app_put_time(w, "claimed_at", row->claimed_us);
    rv_app_put_time(w, "lease_until", row->lease_until_us);
    rv_app_put_time(w, "started_at", row->started_us);
    rv_app_put_time(w, "completed_at", row->completed_us);
    rv_app_put_time(w, "created_at", row->created_us);
    rv_app_put_time(w, "updated_at", row->updated_us);
}

void rv_app_task_write(const struct rv_task_row *row, rv_jw *w)
{
    rv_jw_obj(w);
    put_members(row, w);
    rv_jw_obj_end(w);
}

static int put_event(void *self, const struct rv_task_event *e, rv_err **err)
{
    rv_jw *w = self;

    (void)err;
    rv_jw_obj(w);
    rv_jw_kv_int(w, "seq", e->seq);
    rv_jw_kv_text(w, "event", e->kind);
    rv_app_put_time(w, "at", e->at_us);
    rv_jw_kv_int(w, "attempt", e->attempt);
    rv_jw_kv_text(w, "worker", e->worker);
    rv_jw_kv_text(w, "text", e->text);
    if (e->retry > 0) {
        rv_jw_kv_int(w, "retry", e->retry);
        rv_jw_kv_int(w, "max_retries", e->max_retries);
    }
    if (e->next_us > 0)
        rv_app_put_time(w, "next_attempt", e->next_us);
    rv_jw_obj_end(w);
    return 0;
}

int rv_app_task_write_whole(rv_store *store, const struct rv_store_scope *scope, const struct rv_task_row *row,
                            rv_jw *w, rv_err **err)
{
    int rc;

    rv_jw_obj(w);
    put_members(row, w);
    rv_jw_key(w, "events");
    rv_jw_arr(w);
    rc = rv_store_list_task_events(store, scope, row->id, put_event, w, err);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
    return rc;
}

void rv_app_lane_write(const struct rv_task_lane *lane, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "tenant_id", lane->tenant);
    rv_jw_kv_int(w, "class", lane->class_id);
    rv_jw_kv_text(w, "tier", lane->tier);
    rv_jw_kv_int(w, "pending", lane->n_pending);
    rv_jw_kv_int(w, "processing", lane->n_processing);
    rv_jw_kv_int(w, "weight", lane->share.weight);
    rv_jw_key(w, "cap");
    if (lane->share.cap > 0)
        rv_jw_int(w, lane->share.cap);
    else
        rv_jw_null(w);
    rv_jw_obj_end(w);
}

/* The ids that begin as the word does. */
struct matches {
    char id[RV_STORE_MAX_ID + 1]; /* the first one */
    int n;
};

static int match(void *self, const struct rv_task_row *row, rv_err **err)
{
    struct matches *m = self;

    (void)err;
    if (m->n++ == 0)
        memcpy(m->id, row->id, strlen(row->id) + 1); /* the store keeps no longer ones */
    return 0;
}

int rv_app_find_task(rv_store *store, const struct rv_store_scope *scope, const char *word, struct rv_task_row *out,
                     rv_err **err)
{
    const struct rv_task_filter filter = {.id_prefix = word, .limit = 2};
    struct matches found = {.n = 0};
    rv_err *why = NULL;
    int rc = rv_store_get_task(store, scope, word, out, &why);

    if (rc != RV_E_NOT_FOUND) {
        rv_err_pass(err, why);
        return rc;
    }
    rv_err_free(why);
    rc = rv_store_list_tasks(store, scope, &filter, match, &found, err);
    if (rc == 0 && found.n > 1)
        return RV_FAIL(err, RV_E_INVALID, "several tasks have an id that begins with \"%s\"", word);
    if (rc == 0 && found.n == 0) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "there is no task \"%s\"", word);
        rv_err_set_hint(err, "`reeve tasks list` shows the ids; with --tenant or --user only theirs");
    }
    return rc < 0 ? rc : rv_store_get_task(store, scope, found.id, out, err);
}

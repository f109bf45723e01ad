/* Schedules for programs: as JSON, with their next times and last firings. */
#include "coreengine/app/rows.h"
#include "coreengine/app/schedules.h"

static int put_times(const struct rv_app_schedule_view *v, rv_jw *w, rv_err **err)
{
    int64_t us = v->after_us;
    char text[RV_TIME_MAX];
    int rc = 0;

    rv_jw_key(w, "next");
    rv_jw_arr(w);
    for (size_t i = 0; v->times && i < v->n_times && rc == 0; i++) {
        rc = rv_app_times_next(v->times, us, &us, err);
        if (rc < 0 || us == 0)
            break;
        rv_zone_format(v->times->zone, us, text);
        rv_jw_text(w, text);
    }
    rv_jw_arr_end(w);
    return rc;
}

int rv_app_schedule_write(const struct rv_app_schedule_view *v, rv_jw *w, rv_err **err)
{
    const struct rv_schedule_row *row = v->row;
    int rc = 0;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", row->id);
    rv_jw_kv_text(w, "name", row->name);
    rv_jw_kv_text(w, "status", row->next_us > 0 ? "active" : "ended");
    rv_jw_kv_text(w, "cron", row->is_once ? NULL : row->expr);
    rv_jw_kv_text(w, "at", row->is_once ? row->expr : NULL);
    rv_jw_kv_text(w, "zone", row->zone);
    rv_jw_kv_text(w, "task_type", row->type);
    rv_jw_kv_text(w, "pipeline", row->pipeline);
    rv_jw_kv_text(w, "tier", row->tier);
    rv_jw_key(w, "needs");
    rv_jw_raw(w, row->needs);
    rv_jw_key(w, "payload");
    rv_jw_raw(w, row->payload);
    rv_jw_kv_int(w, "priority", row->priority);
    rv_jw_kv_int(w, "max_retries", row->max_retries);
    rv_jw_kv_text(w, "tenant_id", row->tenant);
    rv_jw_kv_text(w, "user_id", row->user);
    rv_app_put_time(w, "next_at", row->next_us);
    rv_app_put_time(w, "last_at", row->last_us);
    rv_jw_kv_int(w, "fired", row->n_fired);
    rv_jw_kv_int(w, "skipped", row->n_skipped);
    rv_jw_kv_text(w, "error", row->error);
    rv_app_put_time(w, "created_at", row->created_us);
    rv_app_put_time(w, "updated_at", row->updated_us);
    if (v->n_times > 0)
        rc = put_times(v, w, err);
    if (v->firings)
        rv_jw_kv_value(w, "firings", v->firings);
    rv_jw_obj_end(w);
    return rc;
}

struct firings {
    const struct rv_schedule_row *row;
    json_object *list; /* owned */
};

static int take_firing(void *self, const struct rv_firing *f, rv_err **err)
{
    struct firings *list = self;
    struct rv_json_build b = {.err = err};
    json_object *o = rv_json_build(&b, list->list, NULL, json_object_new_object());

    if (b.rc < 0)
        return b.rc;
    rv_app_build_time(&b, o, "planned_at", f->planned_us);
    if (f->since_us < f->planned_us)
        rv_app_build_time(&b, o, "missed_since", f->since_us);
    rv_app_build_time(&b, o, "at", f->at_us);
    if (f->made)
        rv_json_build_text(&b, o, list->row->bundle ? "run" : "task", f->made);
    else
        rv_json_build_text(&b, o, "skipped", f->skipped);
    return b.rc;
}

int rv_app_build_firings(rv_store *store, const struct rv_store_scope *scope, const struct rv_schedule_row *row,
                         int64_t limit, json_object **out, rv_err **err)
{
    struct firings list = {.row = row, .list = json_object_new_array()};

    if (!list.list)
        return RV_FAIL(err, RV_E_NOMEM, "list firings");
    int rc = rv_store_list_firings(store, scope, &(const struct rv_firing_filter){.word = row->id, .limit = limit},
                                   take_firing, &list, err);
    if (rc < 0)
        json_object_put(list.list);
    else
        *out = list.list;
    return rc;
}

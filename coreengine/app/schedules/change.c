/* A schedule that is to fire at other times. */
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/schedules.h"

/* In a group. */
static int change(rv_store *store, const struct rv_store_scope *scope, const char *word, const struct rv_app_when *when,
                  int64_t priority, rv_err **err)
{
    int64_t now_us = rv_app_now_us(), next_us = 0;
    struct rv_schedule_row row;
    struct rv_app_times times;
    int rc = rv_store_get_schedule(store, scope, word, &row, err);

    if (rc < 0)
        return rc;
    struct rv_schedule_row fresh = row;
    bool has_expr = when->cron || when->at;
    const struct rv_app_when then = {.cron = when->cron                ? when->cron
                                             : has_expr || row.is_once ? NULL
                                                                       : row.expr,
                                     .at = when->at                   ? when->at
                                           : has_expr || !row.is_once ? NULL
                                                                      : row.expr,
                                     .zone = when->zone ? when->zone : row.zone};
    rc = rv_app_times_open(&then, now_us, &times, err);
    if (rc == 0) {
        rc = rv_app_times_next(&times, now_us, &next_us, err);
        rv_app_times_fini(&times);
    }
    fresh.is_once = then.at != NULL;
    fresh.expr = then.at ? then.at : then.cron;
    fresh.zone = then.zone;
    fresh.next_us = next_us;
    fresh.user = row.user[0] ? row.user : NULL;
    fresh.priority = priority == RV_UNSET ? row.priority : priority;
    if (rc == 0)
        rc = rv_store_delete_schedule(store, scope, row.id, err);
    if (rc == 0)
        rc = rv_store_add_schedule(store, &fresh, err);
    rv_schedule_row_fini(&row);
    return rc;
}

int rv_app_schedule_change(rv_store *store, const struct rv_store_scope *scope, const char *word,
                           const struct rv_app_when *when, int64_t priority, rv_err **err)
{
    int rc;

    do {
        rc = rv_store_begin(store, err);
        if (rc == 0)
            rc = rv_store_end(store, change(store, scope, word, when, priority, err), err);
    } while (rc < 0 && rv_store_again(store, err));
    return rc < 0 ? RV_WRAP(err, rc, "change schedule \"%s\"", word) : 0;
}

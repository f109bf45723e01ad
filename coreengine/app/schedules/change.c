/* A schedule that is to fire at other times. */
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/schedules.h"

/* Does `when` say something that the schedule does not say already? A time may be relative to now: it is always new. */
static bool differs(const struct rv_schedule_row *row, const struct rv_app_when *when)
{
    return when->at || (when->cron && (row->is_once || strcmp(when->cron, row->expr) != 0)) ||
           (when->zone && strcmp(when->zone, row->zone) != 0);
}

static int new_times(const struct rv_schedule_row *row, const struct rv_app_when *when,
                     struct rv_schedule_change *change, rv_err **err)
{
    bool has_expr = when->cron || when->at;
    struct rv_app_when then = {.zone = when->zone ? when->zone : row->zone};
    struct rv_app_times times;

    change->is_once = has_expr ? when->at != NULL : row->is_once;
    change->expr = when->at ? when->at : when->cron ? when->cron : row->expr;
    change->zone = then.zone;
    *(change->is_once ? &then.at : &then.cron) = change->expr;
    int rc = rv_app_times_open(&then, change->now_us, &times, err);
    if (rc < 0)
        return rc;
    rc = rv_app_times_next(&times, change->now_us, &change->next_us, err);
    rv_app_times_fini(&times);
    return rc;
}

/* In a group. A firing that another process does meanwhile stays. */
static int change_it(rv_store *store, const struct rv_store_scope *scope, const char *word,
                     const struct rv_app_when *when, const int64_t *priority, rv_err **err)
{
    struct rv_schedule_change change = {.priority = priority, .now_us = rv_app_now_us()};
    struct rv_schedule_row row;
    int rc = rv_store_get_schedule(store, scope, word, &row, err);

    if (rc < 0)
        return rc;
    if (differs(&row, when))
        rc = new_times(&row, when, &change, err);
    if (rc == 0)
        rc = rv_store_change_schedule(store, scope, row.id, &change, err);
    rv_schedule_row_fini(&row);
    return rc;
}

int rv_app_change_schedule(rv_store *store, const struct rv_store_scope *scope, const char *word,
                           const struct rv_app_when *when, const int64_t *priority, rv_err **err)
{
    int rc;

    do {
        rc = rv_store_begin(store, err);
        if (rc == 0)
            rc = rv_store_end(store, change_it(store, scope, word, when, priority, err), err);
    } while (rc < 0 && rv_store_wait_again(store, err));
    return rc < 0 ? RV_WRAP(err, rc, "change schedule \"%s\"", word) : 0;
}

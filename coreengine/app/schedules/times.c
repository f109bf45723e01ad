/* When a schedule fires: the instants that its text means, and the one that is fired when some were missed. */
#include "coreengine/app/schedules.h"
#include "coreengine/calendar/calendar.h"

/* --- instants --- */

static int find_zone(struct rv_app_times *t, rv_zones *zones, const char *name, rv_err **err)
{
    if (!zones && !(zones = t->zones = rv_zones_new(NULL)))
        return RV_FAIL(err, RV_E_NOMEM, "read a time zone");
    t->zone = rv_zone_utc();
    return name ? rv_zones_get(zones, rv_str_of(name), &t->zone, err) : 0;
}

int rv_app_times_open(const struct rv_app_when *when, int64_t now_us, struct rv_app_times *out, rv_err **err)
{
    const struct rv_src in_cron = {"--cron", 1, 1}, in_at = {"--at", 1, 1};
    struct rv_app_times t = {.is_once = when->at != NULL};
    struct rv_when at = {0};

    int rc = find_zone(&t, NULL, when->zone, err);
    if (rc == 0 && t.is_once)
        rc = rv_when_parse(rv_str_of(when->at), t.zone, now_us, &in_at, &at, err);
    else if (rc == 0)
        rc = rv_cron_parse(rv_str_of(when->cron), &in_cron, &t.cron, err);
    t.at_us = at.us;
    if (rc < 0)
        rv_app_times_fini(&t);
    else
        *out = t;
    return rc;
}

int rv_app_times_build(const struct rv_schedule_row *row, rv_zones *zones, struct rv_app_times *out, rv_err **err)
{
    struct rv_app_times t = {.is_once = row->is_once, .at_us = row->next_us};

    int rc = find_zone(&t, zones, row->zone, row->is_once ? NULL : err);
    if (row->is_once && rc < 0 && t.zone) /* its instant is known without */
        rc = 0;
    if (rc == 0 && !row->is_once)
        rc = rv_cron_parse(rv_str_of(row->expr), NULL, &t.cron, err);
    if (rc < 0)
        rv_app_times_fini(&t);
    else
        *out = t;
    return rc;
}

void rv_app_times_fini(struct rv_app_times *t)
{
    rv_zones_free(t->zones);
    *t = (struct rv_app_times){.zones = NULL};
}

int rv_app_times_next(const struct rv_app_times *t, int64_t after_us, int64_t *out_us, rv_err **err)
{
    rv_err *why = NULL;

    *out_us = 0;
    if (t->is_once) {
        *out_us = t->at_us > after_us ? t->at_us : 0;
        return 0;
    }
    int rc = rv_cron_next(&t->cron, t->zone, after_us, out_us, &why);
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(why);
        *out_us = 0;
        return 0;
    }
    if (rc < 0)
        rv_err_pass(err, why);
    else
        rv_err_free(why);
    return rc;
}

/* --- what was missed --- */

/* The last instant up to now_us, given one of them. */
static int last_until(const struct rv_app_times *t, int64_t first_us, int64_t now_us, int64_t *out_us, rv_err **err)
{
    int64_t next_us = first_us;
    int rc = 0;

    while (rc == 0 && next_us > 0 && next_us <= now_us) {
        *out_us = next_us;
        rc = rv_app_times_next(t, next_us, &next_us, err);
    }
    return rc;
}

int rv_app_times_plan(const struct rv_app_times *t, int64_t next_us, int64_t now_us, struct rv_app_plan *out,
                      rv_err **err)
{
    const int64_t too_late_us = now_us - RV_SCHEDULE_LATE_US;
    struct rv_app_plan p = {.planned_us = next_us, .since_us = next_us};
    int64_t first_us = next_us;
    int rc = 0;

    if (!t->is_once && next_us <= too_late_us) /* those of the last day alone are looked at, however many there were */
        rc = rv_app_times_next(t, too_late_us, &first_us, err);
    if (rc == 0 && !t->is_once)
        rc = last_until(t, first_us, now_us, &p.planned_us, err);
    if (rc == 0 && !t->is_once)
        rc = rv_app_times_next(t, now_us, &p.next_us, err);
    p.is_late = p.planned_us <= too_late_us;
    if (rc == 0)
        *out = p;
    return rc;
}

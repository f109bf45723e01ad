/* Filters: when a cron expression matches. */
#include "coreengine/calendar/calendar.h"
#include "coreengine/app/fn/fn_internal.h"

#define MAX_TIMES 1000 /* of one schedule: a reader needs a few; more is an error */

static int write_times(const struct rv_cron *cron, const rv_zone *zone, int64_t after_us, int64_t n, rv_jw *out,
                       rv_err **err)
{
    char text[RV_TIME_MAX];
    int rc = 0;

    rv_jw_arr(out);
    for (int64_t i = 0; i < n && rc == 0; i++) {
        rc = rv_cron_next(cron, zone, after_us, &after_us, err);
        if (rc == 0) {
            rv_zone_format(zone, after_us, text);
            rv_jw_text(out, text);
        }
    }
    rv_jw_arr_end(out);
    return rc;
}

static int cron_times(json_object *in, rv_jw *out, rv_err **err)
{
    rv_str name = app_fn_str(in, "zone"), after = app_fn_str(in, "after");
    json_object *n = app_fn_any(in, "n");
    int64_t count = n ? json_object_get_int64(n) : 5, after_us;
    struct rv_clock clock = rv_clock_system();
    const rv_zone *zone = rv_zone_utc();
    rv_zones *zones;
    struct rv_cron cron;

    after_us = clock.now_us(clock.self);
    if (count < 1 || count > MAX_TIMES)
        return RV_FAIL(err, RV_E_INVALID, "n is %lld, not 1 to %d", (long long)count, MAX_TIMES);
    int rc = rv_cron_parse(app_fn_str(in, "cron"), NULL, &cron, err);
    if (rc == 0 && after.ptr)
        rc = rv_time_parse(after, &after_us, err);
    if (rc < 0)
        return rc;
    if (!(zones = rv_zones_new(NULL)))
        return RV_FAIL(err, RV_E_NOMEM, "read a time zone");
    rc = name.ptr ? rv_zones_get(zones, name, &zone, err) : 0;
    if (rc == 0)
        rc = write_times(&cron, zone, after_us, count, out, err);
    rv_zones_free(zones);
    return rc;
}

static const struct rv_fn items[] = {
    {"cron_times", "{cron: word, zone?: word, after?: word, n?: int}", "list of times",
     "the next n (default 5) matches of a cron expression after a time (default now), on the clocks of a time zone "
     "(default UTC)",
     cron_times},
};
const struct rv_fn_group app_fn_group_calendar = {items, RV_COUNT(items)};

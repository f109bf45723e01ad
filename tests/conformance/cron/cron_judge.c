/* Reads lines [expression, zone, after] and answers one line of JSON for each: {"matches": the next ones, "fixed":
 * whether the expression has fixed times, "changes": [when, from which offset, to which] of the clocks around}, or
 * {"error": why}. Times are in milliseconds, offsets in seconds. */
#include <stdio.h>

#include "coreengine/calendar/calendar.h"
#include "coreengine/calendar/calendar_internal.h"
#include "tests/conformance/judge.h"

#define N_MATCHES 6

static int next_matches(json_object *row, rv_jw *w, rv_err **err)
{
    static rv_zones *zones;
    const rv_zone *zone = NULL;
    struct rv_cron cron;
    int64_t after_us = json_object_get_int64(json_object_array_get_idx(row, 2)) * 1000, us = after_us, t_s;
    int rc = rv_cron_parse(rv_str_of(json_object_get_string(json_object_array_get_idx(row, 0))), NULL, &cron, err);

    if (!zones)
        zones = rv_zones_new(NULL);
    if (rc == 0)
        rc = rv_zones_get(zones, rv_str_of(json_object_get_string(json_object_array_get_idx(row, 1))), &zone, err);
    if (rc < 0)
        return rc;
    rv_jw_key(w, "matches");
    rv_jw_arr(w);
    for (int i = 0; rc == 0 && i < N_MATCHES; i++) {
        rc = rv_cron_next(&cron, zone, us, &us, err);
        rv_jw_int(w, us / 1000);
    }
    rv_jw_arr_end(w);
    rv_jw_kv_bool(w, "fixed", cron.has_fixed_times);
    rv_jw_key(w, "changes");
    rv_jw_arr(w);
    for (t_s = after_us / RV_US_PER_S - 3 * RV_S_PER_DAY; t_s < us / RV_US_PER_S + 3 * RV_S_PER_DAY;) {
        struct zone_span span = calendar_zone_span_at(zone, t_s);
        if (span.until_s == INT64_MAX)
            break;
        t_s = span.until_s;
        rv_jw_arr(w);
        rv_jw_int(w, t_s * 1000);
        rv_jw_int(w, span.offset_s);
        rv_jw_int(w, calendar_zone_span_at(zone, t_s).offset_s);
        rv_jw_arr_end(w);
    }
    rv_jw_arr_end(w);
    return rc;
}

void judge(json_object *row)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&text);
    rv_err *err = NULL;

    rv_jw_obj(&w);
    if (next_matches(row, &w, &err) < 0)
        rv_jw_kv_text(&w, "error", rv_err_text(err));
    rv_jw_obj_end(&w);
    puts(rv_buf_cstr(&text));
    rv_err_free(err);
}

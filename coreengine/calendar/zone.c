/* A zone in memory: its name, offsets of instants, instants of local times. Pure.
 *
 * All questions are answered by spans, the stretches of time between two changes of the clocks. */
#include "coreengine/calendar/calendar.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/calendar/calendar_internal.h"

/* Within these, an offset can be added to a time without a look at the bounds of int64_t. */
#define FARTHEST_US (INT64_MAX - 2 * RV_S_PER_DAY * RV_US_PER_S)

static const struct rv_zone utc = {.name = "UTC"};

const rv_zone *rv_zone_utc(void)
{
    return &utc;
}

const char *rv_zone_name(const rv_zone *zone)
{
    return zone->name;
}

void rv_zone_free(rv_zone *zone)
{
    if (zone != &utc)
        free(zone);
}

static bool is_name_byte(char c)
{
    return rv_is_letter(c) || rv_is_digit(c) || c == '_' || c == '+' || c == '-' || c == '/';
}

int rv_zone_check_name(rv_str name, rv_err **err)
{
    size_t i = 0;
    int rc;

    while (i < name.len && is_name_byte(name.ptr[i]))
        i++;
    if (name.len == 0 || name.len > RV_ZONE_MAX_NAME || i < name.len || name.ptr[0] == '/' ||
        name.ptr[name.len - 1] == '/' || memmem(name.ptr, name.len, "//", 2)) {
        rc = RV_FAIL(err, RV_E_INVALID, "\"%.*s\" is not the name of a time zone",
                     RV_STR_ARG(rv_utf8_cut(name, RV_ZONE_MAX_NAME)));
        rv_err_set_hint(err, "use a name of the tz database such as UTC, Europe/Berlin or America/New_York");
        return rc;
    }
    if (name.len > 6 && memcmp(name.ptr, "right/", 6) == 0) {
        rc = RV_FAIL(err, RV_E_INVALID, "time zone \"%.*s\" counts leap seconds, as no clock does", RV_STR_ARG(name));
        rv_err_set_hint(err, "use \"%.*s\"", (int)name.len - 6, name.ptr + 6);
        return rc;
    }
    return 0;
}

struct zone_span calendar_zone_span_at(const rv_zone *zone, int64_t t_s)
{
    size_t low = 0, high = zone->n_changes; /* changes[low - 1].at_s <= t_s < changes[high].at_s */
    struct zone_span span;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->changes[middle].at_s <= t_s)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < zone->n_changes)
        return (struct zone_span){
            .from_s = low ? zone->changes[low - 1].at_s : INT64_MIN,
            .until_s = zone->changes[low].at_s,
            .offset_s = low ? zone->changes[low - 1].offset_s : zone->first_s,
        };
    span = calendar_zone_rule_span(&zone->rule, t_s);
    if (low && span.from_s < zone->changes[low - 1].at_s)
        span.from_s = zone->changes[low - 1].at_s;
    return span;
}

int rv_zone_offset_s(const rv_zone *zone, int64_t us)
{
    return calendar_zone_span_at(zone, calendar_floor_div(us, RV_US_PER_S)).offset_s;
}

static int64_t clamp(int64_t us)
{
    return us > FARTHEST_US ? FARTHEST_US : us < -FARTHEST_US ? -FARTHEST_US : us;
}

int rv_zone_from_local(const rv_zone *zone, int64_t local_us, int64_t out_us[2])
{
    int64_t local_s, fraction_us, t_s, gap_end_s = INT64_MIN;
    struct zone_span span;
    int n = 0;

    local_us = clamp(local_us);
    local_s = calendar_floor_div(local_us, RV_US_PER_S);
    fraction_us = local_us - local_s * RV_US_PER_S;
    /* Every instant that can read local_s is in one of these spans, and before the first the clocks read less. */
    for (t_s = local_s - ZONE_MAX_OFFSET_S; t_s <= local_s - ZONE_MIN_OFFSET_S; t_s = span.until_s) {
        int64_t at_s;
        span = calendar_zone_span_at(zone, t_s);
        at_s = local_s - span.offset_s;
        if (at_s >= span.from_s && at_s < span.until_s)
            out_us[n++ ? 1 : 0] = at_s * RV_US_PER_S + fraction_us;
        else if (gap_end_s == INT64_MIN && at_s < span.from_s)
            gap_end_s = span.from_s;
    }
    if (n == 0) {
        assert(gap_end_s != INT64_MIN); /* the clocks read less, then more, and never this */
        out_us[0] = gap_end_s * RV_US_PER_S;
    }
    return n > 2 ? 2 : n;
}

static char *put_two_digits(char *to, char before, int value)
{
    *to++ = before;
    *to++ = (char)('0' + value / 10);
    *to++ = (char)('0' + value % 10);
    return to;
}

void rv_zone_format(const rv_zone *zone, int64_t us, char out[RV_TIME_MAX])
{
    int offset_s = rv_zone_offset_s(zone, us), size = offset_s < 0 ? -offset_s : offset_s;
    char *end = out + sizeof "2026-03-29T03:00:00" - 1;

    rv_time_format(clamp(us) + offset_s * RV_US_PER_S, out);
    if (zone == &utc) {
        *end++ = 'Z';
    } else {
        end = put_two_digits(end, offset_s < 0 ? '-' : '+', size / 3600);
        end = put_two_digits(end, ':', size / 60 % 60);
        if (size % 60)
            end = put_two_digits(end, ':', size % 60);
    }
    *end = '\0';
}

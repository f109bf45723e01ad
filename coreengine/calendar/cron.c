/* The next match of a cron expression. Pure.
 *
 * Matches are found on the clocks of the zone, as minutes since 1970-01-01 00:00 there, and then turned into instants.
 * How depends on the expression. Fixed times (30 2 * * *) stand for appointments: each comes once, at the first instant
 * at which the clocks show that time or, where they skip it, a later one. Repeating ones (every half hour) stand for
 * intervals: each instant at which the clocks show such a time matches. */
#include "coreengine/calendar/calendar.h"

#include "coreengine/calendar/calendar_internal.h"

#define S_PER_MIN   60            /* seconds of a minute, the smallest step of an expression */
#define MIN_PER_DAY INT64_C(1440) /* minutes of a day */
/* RV_CRON_MAX_YEARS in minutes: an expression that fits no day of them never fires */
#define MAX_SEARCH_MIN ((RV_CRON_MAX_YEARS * INT64_C(365) + RV_CRON_MAX_YEARS / 4 + 1) * MIN_PER_DAY)

static bool has_day(const struct rv_cron *c, const struct rv_date *date, int64_t days)
{
    bool by_day = c->days >> date->day & 1, by_weekday = c->weekdays >> calendar_weekday_of_days(days) & 1;

    if (c->any_day || c->any_weekday)
        return by_day && by_weekday; /* the sets of "*" are full */
    return by_day || by_weekday;
}

/* The first minute of a day, from the given one on, that matches; -1: none. */
static int minute_of_day(const struct rv_cron *c, int from)
{
    uint64_t minutes = c->minutes >> from % 60 << from % 60;

    for (int hour = from / 60; hour < 24; hour++) {
        if (c->hours >> hour & 1 && minutes)
            return hour * 60 + __builtin_ctzll(minutes);
        minutes = c->minutes;
    }
    return -1;
}

/* The first match from <= m <= last on the clocks. */
static bool next_on_clocks(const struct rv_cron *c, int64_t from, int64_t last, int64_t *out)
{
    int64_t days = calendar_floor_div(from, MIN_PER_DAY);
    int begin = (int)(from - days * MIN_PER_DAY), minute;

    for (; days * MIN_PER_DAY <= last; begin = 0) {
        struct rv_date date = rv_date_of_days(days);
        if (!(c->months >> date.month & 1)) {
            days += rv_date_month_days(date.year, date.month) - date.day + 1;
            continue;
        }
        minute = has_day(c, &date, days) ? minute_of_day(c, begin) : -1;
        if (minute >= 0) {
            *out = days * MIN_PER_DAY + minute;
            return *out <= last;
        }
        days++;
    }
    return false;
}

/* Times on the clocks up to that of after_us are over: the clocks have shown them or a later one. */
static bool next_fixed(const struct rv_cron *c, const rv_zone *zone, int64_t after_us, int64_t *out_us)
{
    int64_t now = calendar_floor_div(after_us + rv_zone_offset_s(zone, after_us) * RV_US_PER_S, RV_US_PER_MIN);
    int64_t instants[2], last = now + MAX_SEARCH_MIN;

    while (next_on_clocks(c, now + 1, last, &now)) {
        RV_IGNORE(rv_zone_from_local(zone, now * RV_US_PER_MIN, instants), "the first is the first of any number");
        if (instants[0] > after_us) { /* else it is shown for the second time */
            *out_us = instants[0];
            return true;
        }
    }
    return false;
}

/* The spans of one offset, one by one: in each, clocks and instants go at the same pace. */
static bool next_repeating(const struct rv_cron *c, const rv_zone *zone, int64_t after_us, int64_t *out_us)
{
    int64_t after_s = calendar_floor_div(after_us, RV_US_PER_S), last_s = after_s + MAX_SEARCH_MIN * S_PER_MIN;
    struct zone_span span = calendar_zone_span_at(zone, after_s);
    int64_t from = calendar_floor_div(after_s + span.offset_s, S_PER_MIN) + 1, found;

    for (;;) {
        int64_t until_s = span.until_s > last_s ? last_s : span.until_s;
        if (next_on_clocks(c, from, calendar_floor_div(until_s + span.offset_s - 1, S_PER_MIN), &found)) {
            *out_us = (found * S_PER_MIN - span.offset_s) * RV_US_PER_S;
            return true;
        }
        if (span.until_s > last_s)
            return false;
        span = calendar_zone_span_at(zone, span.until_s);
        from = -calendar_floor_div(-(span.from_s + span.offset_s), S_PER_MIN); /* rounded up */
    }
}

int rv_cron_next(const struct rv_cron *cron, const rv_zone *zone, int64_t after_us, int64_t *out_us, rv_err **err)
{
    char after[RV_TIME_MAX];
    int64_t found_us;
    bool found = false;

    if (after_us < CALENDAR_FIRST_US)
        after_us = CALENDAR_FIRST_US;
    if (after_us < CALENDAR_LAST_US)
        found = cron->has_fixed_times ? next_fixed(cron, zone, after_us, &found_us)
                                      : next_repeating(cron, zone, after_us, &found_us);
    if (found && found_us <= CALENDAR_LAST_US) {
        *out_us = found_us;
        return 0;
    }
    rv_zone_format(zone, after_us, after);
    return RV_FAIL(err, RV_E_NOT_FOUND, "no time matches the cron expression within %d years after %s",
                   RV_CRON_MAX_YEARS, after);
}

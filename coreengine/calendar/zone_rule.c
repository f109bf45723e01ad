/* The POSIX rule at the end of a TZif file, such as "CET-1CEST,M3.5.0,M10.5.0/3": offsets and daylight-saving time for
 * all years after those that the file lists. Pure.
 *
 * RFC 9636 extends POSIX: names in <>, and times of change from a week before 00:00 to a week after. */
#include <string.h>

#include "coreengine/calendar/calendar_internal.h"

#define MAX_HOURS       24  /* of an offset: as POSIX has it for TZ */
#define MAX_CHANGE_HOUR 167 /* of the time of a change: a week less an hour, by RFC 8536 */

/* --- reading --- */

static char peek(rv_str s)
{
    return s.len ? s.ptr[0] : '\0';
}

static void skip(rv_str *s, size_t n)
{
    s->ptr += n;
    s->len -= n;
}

static bool take(rv_str *s, char c)
{
    if (peek(*s) != c)
        return false;
    skip(s, 1);
    return true;
}

static bool take_number(rv_str *s, int max, int *out)
{
    int value = 0;

    if (!rv_is_digit(peek(*s)))
        return false;
    while (rv_is_digit(peek(*s))) {
        value = value * 10 + (s->ptr[0] - '0');
        if (value > max)
            return false;
        skip(s, 1);
    }
    *out = value;
    return true;
}

/* "CET", "<+0330>": which one it is does not matter here. */
static bool take_name(rv_str *s)
{
    bool is_quoted = take(s, '<');
    size_t n = 0;

    while (n < s->len &&
           (rv_is_letter(s->ptr[n]) || (is_quoted && (rv_is_digit(s->ptr[n]) || s->ptr[n] == '+' || s->ptr[n] == '-'))))
        n++;
    skip(s, n);
    return n >= 3 && (!is_quoted || take(s, '>'));
}

/* [+-]hours[:minutes[:seconds]], in seconds. */
static bool take_time(rv_str *s, int max_hours, int *out_s)
{
    int sign = take(s, '-') ? -1 : 1, hours, minutes = 0, seconds = 0;

    if (sign == 1)
        RV_IGNORE(!take(s, '+'), "a sign may be left out");
    if (!take_number(s, max_hours, &hours))
        return false;
    if (take(s, ':') && (!take_number(s, 59, &minutes) || (take(s, ':') && !take_number(s, 59, &seconds))))
        return false;
    *out_s = sign * (hours * 3600 + minutes * 60 + seconds);
    return true;
}

/* ,M3.5.0 or ,J60 or ,59, each with /time; without it 02:00. */
static bool take_day(rv_str *s, struct zone_day *out)
{
    *out = (struct zone_day){.kind = ZONE_DAY_COUNTED, .time_s = 2 * 3600};
    if (!take(s, ','))
        return false;
    if (take(s, 'M')) {
        out->kind = ZONE_DAY_WEEKDAY;
        if (!take_number(s, 12, &out->month) || !take(s, '.') || !take_number(s, 5, &out->week) || !take(s, '.') ||
            !take_number(s, 6, &out->n) || out->month == 0 || out->week == 0)
            return false;
    } else {
        if (take(s, 'J'))
            out->kind = ZONE_DAY_JULIAN;
        if (!take_number(s, 365, &out->n) || (out->kind == ZONE_DAY_JULIAN && out->n == 0))
            return false;
    }
    return !take(s, '/') || take_time(s, MAX_CHANGE_HOUR, &out->time_s);
}

bool calendar_zone_rule_parse(rv_str text, struct zone_rule *out)
{
    struct zone_rule rule = {0};

    if (!take_name(&text) || !take_time(&text, MAX_HOURS, &rule.std_s))
        return false;
    rule.std_s = -rule.std_s; /* POSIX counts from the clock to UTC */
    rule.dst_s = rule.std_s + 3600;
    if (text.len) {
        rule.has_dst = true;
        if (!take_name(&text))
            return false;
        if (peek(text) != ',') {
            if (!take_time(&text, MAX_HOURS, &rule.dst_s))
                return false;
            rule.dst_s = -rule.dst_s;
        }
        if (!take_day(&text, &rule.start) || !take_day(&text, &rule.end) || text.len)
            return false;
    }
    *out = rule;
    return true;
}

/* --- applying --- */

static int64_t day_in_year(const struct zone_day *day, int64_t year)
{
    int64_t first = rv_date_days(year, day->kind == ZONE_DAY_WEEKDAY ? day->month : 1, 1), days;

    if (day->kind == ZONE_DAY_COUNTED)
        return first + day->n;
    if (day->kind == ZONE_DAY_JULIAN) /* as if there were no 29 February */
        return first + day->n - 1 + (day->n >= 60 && rv_date_month_days(year, 2) == 29);
    days = first + (day->n - calendar_weekday_of_days(first) + 7) % 7 + (day->week - 1) * 7;
    return days >= first + rv_date_month_days(year, day->month) ? days - 7 : days;
}

/* A change at at_s, seen from t_s: is it the last one before, or the next one? Of two at once the later call counts. */
static void fit(struct zone_span *span, int64_t t_s, int64_t at_s, int offset_s)
{
    if (at_s > t_s) {
        if (at_s < span->until_s)
            span->until_s = at_s;
    } else if (at_s >= span->from_s) {
        span->from_s = at_s;
        span->offset_s = offset_s;
    }
}

struct zone_span calendar_zone_rule_span(const struct zone_rule *rule, int64_t t_s)
{
    struct zone_span span = {INT64_MIN, INT64_MAX, rule->std_s};
    int64_t year;

    if (!rule->has_dst)
        return span;
    /* A change can be a week and a day outside of its year. The end comes first: where daylight-saving time ends as it
     * begins again, it does not end. */
    year = rv_date_of_days(calendar_floor_div(t_s, RV_S_PER_DAY)).year;
    for (int64_t y = year - 2; y <= year + 2; y++) {
        fit(&span, t_s, day_in_year(&rule->end, y) * RV_S_PER_DAY + rule->end.time_s - rule->dst_s, rule->std_s);
        fit(&span, t_s, day_in_year(&rule->start, y) * RV_S_PER_DAY + rule->start.time_s - rule->std_s, rule->dst_s);
    }
    return span;
}

/* What the files of this module share: how a zone is kept, and the spans in which its offset stays the same. */
#ifndef RV_CALENDAR_INTERNAL_H
#define RV_CALENDAR_INTERNAL_H

#include "coreengine/calendar/calendar.h"

/* The years 1 to 9999: other times cannot be written (RFC 3339). */
#define CALENDAR_FIRST_US (-719162 * RV_S_PER_DAY * RV_US_PER_S)
#define CALENDAR_LAST_US  (2932897 * RV_S_PER_DAY * RV_US_PER_S - 1) /* the end of the year 9999 */

/* Bounds that RFC 9636 gives offsets from UTC: more than 25 hours behind, less than 26 ahead. */
#define ZONE_MIN_OFFSET_S (-25 * 3600)
#define ZONE_MAX_OFFSET_S (26 * 3600) /* RFC 8536, section 3.2: an offset is less than 26 hours east */

/* The day of a year, and the time on it, when clocks change by a rule. */
struct zone_day {
    enum { ZONE_DAY_JULIAN, ZONE_DAY_COUNTED, ZONE_DAY_WEEKDAY } kind; /* "J60", "59", "M3.5.0" */
    int month, week, n; /* n: the day of the year, or of the week with month and week (5 is the last) */
    int time_s;         /* from 00:00 of that day on the clocks as they are before; up to a week off */
};

/* What holds from the last change that a file lists: the POSIX rule at its end. */
struct zone_rule {
    int std_s, dst_s; /* offsets from UTC */
    bool has_dst;
    struct zone_day start, end; /* of daylight-saving time */
};

struct rv_zone {
    char name[RV_ZONE_MAX_NAME + 1];
    int first_s; /* the offset before the first change */
    struct zone_rule rule;
    size_t n_changes;
    struct zone_change {
        int64_t at_s; /* ascending */
        int offset_s; /* from then on; of the last change the rule decides */
    } changes[];
};

/* Seconds from_s <= t < until_s with one offset. INT64_MIN and INT64_MAX: without an end. */
struct zone_span {
    int64_t from_s, until_s;
    int offset_s;
};

/** The span of an instant. */
struct zone_span calendar_zone_span_at(const rv_zone *zone, int64_t t_s);

/** Read the rule; false: not of a form of RFC 9636. */
bool calendar_zone_rule_parse(rv_str text, struct zone_rule *out);
/** The span of an instant if the rule had always been in force. */
struct zone_span calendar_zone_rule_span(const struct zone_rule *rule, int64_t t_s);

/** The place of a character of a text that begins at src. */
static inline struct rv_src calendar_place_in(struct rv_src src, rv_str text, const char *at)
{
    src.col += (int)rv_utf8_count((rv_str){text.ptr, (size_t)(at - text.ptr)});
    return src;
}

/** Rounded down. */
static inline int64_t calendar_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/** 0..6, Sunday is 0. */
static inline int calendar_weekday_of_days(int64_t days)
{
    return (int)(days + 4 - calendar_floor_div(days + 4, 7) * 7);
}

#endif

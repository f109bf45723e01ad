/* Cron expressions: five fields or a macro, and the next instant that one matches in a time zone.
 *
 * docs/reference/schedules.md has the rules, with what happens where clocks are set forward or back. */
#ifndef RV_CALENDAR_CRON_H
#define RV_CALENDAR_CRON_H

#include "coreengine/calendar/zone.h"

#define RV_CRON_MAX_TEXT  1024 /* bytes of an expression */
#define RV_CRON_MAX_YEARS 8    /* the longest wait between two matches: 29 February, 2096 to 2104 */

/* A compiled expression: a value, to be copied. Bit n of a set is the value n. */
struct rv_cron {
    uint64_t minutes; /* 0..59 */
    uint32_t hours;   /* 0..23 */
    uint32_t days;    /* 1..31 */
    uint16_t months;  /* 1..12 */
    uint8_t weekdays; /* 0..6, Sunday is 0 */
    bool any_day;     /* the field is "*": the other one decides. If neither is, either may match. */
    bool any_weekday;
    bool has_fixed_times; /* no "*" in minute and hour: each time of a day once, whatever its clocks do */
};

/** Compile an expression.
 * @param src  where text begins, for the place of an error; NULL: line 1, column 1 of no file
 * @return 0, RV_E_PARSE (the text has no such form), RV_E_INVALID (a value out of range, a date that no year has),
 *         RV_E_LIMIT (more than RV_CRON_MAX_TEXT bytes). The error has the place in text and a legal value near it. */
RV_MUST_CHECK int rv_cron_parse(rv_str text, const struct rv_src *src, struct rv_cron *out, rv_err **err);

/** The first match strictly after after_us. RV_E_NOT_FOUND: none within RV_CRON_MAX_YEARS, or none before the year
 * 10000. Pure: the same zone gives the same answer. */
RV_MUST_CHECK int rv_cron_next(const struct rv_cron *cron, const rv_zone *zone, int64_t after_us, int64_t *out_us,
                               rv_err **err);

#endif

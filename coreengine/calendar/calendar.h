/* Time zones, cron expressions, and times of day (no I/O, but for reading tzdata). */
#ifndef RV_CALENDAR_CALENDAR_H
#define RV_CALENDAR_CALENDAR_H

#include "coreengine/base/base.h"

/* Time zones: the offset of a zone at an instant, and the instants that a time on its clocks stands for.
 *
 * Zones come from the tzdata of the system (TZif files, RFC 9636); UTC is built in and needs no file. `_us` are
 * microseconds since 1970-01-01 UTC. `local_us` are microseconds since 1970-01-01 00:00 on the clocks of the zone. */

#define RV_ZONE_MAX_NAME  64                 /* bytes; tzdata has shorter ones */
#define RV_ZONE_MAX_BYTES ((size_t)16 << 10) /* bytes: the largest file of tzdata 2025b has 3,592 */

typedef struct rv_zone rv_zone; /* immutable: threads may share it */

/** RV_E_INVALID unless name can be that of a zone: 1..RV_ZONE_MAX_NAME bytes of [A-Za-z0-9_+/-], relative, and not
 * below right/, whose files count leap seconds. Says nothing about whether there is such a file. */
RV_MUST_CHECK int rv_zone_check_name(rv_str name, rv_err **err);

/** The zone in the bytes of a TZif file of version 2 or later; rv_zone_free() it. RV_E_PARSE: not such a file, or
 * damaged. RV_E_LIMIT: more than RV_ZONE_MAX_BYTES. */
RV_MUST_CHECK int rv_zone_parse(rv_str name, rv_str bytes, rv_zone **out, rv_err **err);
void rv_zone_free(rv_zone *zone);

const rv_zone *rv_zone_utc(void); /* static */
const char *rv_zone_name(const rv_zone *zone);

/** Seconds that the clocks of the zone are ahead of UTC at an instant; negative in the west. */
int rv_zone_offset_s(const rv_zone *zone, int64_t us);

/** The instants at which the clocks show local_us, and how many they are.
 * @return 0: the clocks skip it, out_us[0] is the end of the gap, the first instant at which they show a later time.
 *         1: out_us[0]. 2: they show it twice, first at out_us[0], last at out_us[1]. */
int rv_zone_from_local(const rv_zone *zone, int64_t local_us, int64_t out_us[2]);

/** The time on the clocks and their offset, to the second: "2026-03-29T03:00:00+02:00"; of UTC "...Z". */
void rv_zone_format(const rv_zone *zone, int64_t us, char out[RV_TIME_MAX]);

/* Zones by name, from a folder of tzdata. Not thread-safe: one thread, or a lock of the caller. */
typedef struct rv_zones rv_zones;
/** dir: NULL for /usr/share/zoneinfo. NULL: no memory. */
rv_zones *rv_zones_new(const char *dir);
void rv_zones_free(rv_zones *zones);
/** The zone of a name: read at first use, and again once its file has changed (tzdata is updated while processes run).
 * @param out  borrowed until rv_zones_get() is called with the same name or zones is freed
 * @return 0, RV_E_INVALID (rv_zone_check_name()), RV_E_NOT_FOUND (with the nearest name, or that tzdata is missing),
 *         RV_E_PARSE, RV_E_LIMIT, RV_E_IO, RV_E_NOMEM */
RV_MUST_CHECK int rv_zones_get(rv_zones *zones, rv_str name, const rv_zone **out, rv_err **err);

/* Cron expressions: five fields or a macro, and the next instant that one matches in a time zone.
 *
 * docs/reference/schedules.md has the rules, with what happens where clocks are set forward or back. */

#define RV_CRON_MAX_TEXT  1024 /* bytes of an expression: a person writes some dozen */
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

/* The time of a schedule that fires once: a date and time in ISO 8601, with an offset or on the clocks of a zone. */

struct rv_when {
    int64_t us;       /* the instant */
    int64_t local_us; /* the time as it was written, on the clocks that the writer meant */
};

/** Read a time: YYYY-MM-DD (its midnight), YYYY-MM-DD[T or space]HH:MM[:SS[.fraction]] or YYYYMMDDTHHMMSS, each time
 * followed by Z, an offset +HH:MM or nothing, which means the clocks of `zone`.
 *
 * A time that the clocks show twice is the first of the two; one that they skip is an error.
 * @param now_us  a time that is not after it is an error
 * @param src     where text begins, for the place of an error; NULL: line 1, column 1 of no file
 * @return 0, RV_E_PARSE (not of this form), RV_E_INVALID (a date or time that does not exist), RV_E_STATE (not after
 *         now_us). The error has the place in text and a legal value near it. */
RV_MUST_CHECK int rv_when_parse(rv_str text, const rv_zone *zone, int64_t now_us, const struct rv_src *src,
                                struct rv_when *out, rv_err **err);

#endif

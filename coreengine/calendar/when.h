/* The time of a schedule that fires once: a date and time in ISO 8601, with an offset or on the clocks of a zone. */
#ifndef RV_CALENDAR_WHEN_H
#define RV_CALENDAR_WHEN_H

#include "coreengine/calendar/zone.h"

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

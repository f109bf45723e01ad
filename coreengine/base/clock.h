/* Time, randomness and ids, all replaceable: tests and replays bring their own. Dates, and ends of waits. */
#ifndef RV_BASE_CLOCK_H
#define RV_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "coreengine/base/buf.h"

/* Times are microseconds since 1970-01-01 UTC in an int64_t, named `_us`. A clock never goes back. */
struct rv_clock {
    int64_t (*now_us)(void *self);
    void *self; /* borrowed */
};
/** Wall time. It follows a sleep and a step of the system's clock of a second forward, none back. Thread-safe. */
struct rv_clock rv_clock_system(void);

/* Spans of time, as factors: 5 * RV_US_PER_MIN is five minutes in microseconds. */
#define RV_NS_PER_MS   INT64_C(1000000)
#define RV_US_PER_MS   INT64_C(1000)
#define RV_US_PER_S    INT64_C(1000000)
#define RV_US_PER_MIN  (60 * RV_US_PER_S)
#define RV_US_PER_HOUR (60 * RV_US_PER_MIN)
#define RV_US_PER_DAY  (24 * RV_US_PER_HOUR)
#define RV_S_PER_DAY   INT64_C(86400)
#define RV_NEVER       INT64_MAX /* a time that does not come: no timer, no limit */

/* A source of random bytes. */
struct rv_rand {
    void (*fill)(void *self, void *bytes, size_t len);
    void *self; /* borrowed */
};
struct rv_rand rv_rand_system(void); /* the kernel's; thread-safe */
/* Deterministic (xoshiro256**), for tests, simulation and replay. State is the caller's. */
struct rv_rand_state {
    uint64_t s[4];
};
struct rv_rand rv_rand_seeded(struct rv_rand_state *state, uint64_t seed);
uint64_t rv_rand_u64(struct rv_rand r);
/** Uniform in [0, n); n > 0. */
uint64_t rv_rand_below(struct rv_rand r, uint64_t n);

#define RV_ID_MAX 32 /* bytes, with the NUL: "env_" and 16 digits, or longer prefixes */
/** prefix + 16 lower-case hex characters, e.g. "env_0123456789abcdef". prefix is at most 8 bytes. */
void rv_id_make(struct rv_rand r, const char *prefix, char out[RV_ID_MAX]);

/* UUIDs of RFC 9562, in lower case. */
#define RV_UUID_MAX 37 /* bytes, with the NUL */
/** 16 bytes with a version and the variant of the RFC put in, as hex with hyphens. */
void rv_uuid_format(const unsigned char bytes[16], int version, char out[RV_UUID_MAX]);
/** A random one: version 4. */
void rv_uuid_make(struct rv_rand r, char out[RV_UUID_MAX]);
/** Tells whether text is a UUID of any version, in either case. out: the same in lower case, else not written; NULL:
 * not wanted. */
bool rv_uuid_read(rv_str text, char out[RV_UUID_MAX]);

/* A date of the Gregorian calendar, also before its time. Days are counted from 1970-01-01. */
struct rv_date {
    int64_t year;
    int month, day; /* from 1 */
};
int64_t rv_date_days(int64_t year, int month, int day);
struct rv_date rv_date_of_days(int64_t days);
int rv_date_month_days(int64_t year, int month); /* 28..31; month 1..12 */

#define RV_TIME_MAX 40 /* bytes of an RFC 3339 time, with the NUL */
/** RFC 3339, UTC: "2026-11-21T21:05:00.123456Z" (always six digits). Years 0001..9999; others are clamped. */
void rv_time_format(int64_t us, char out[RV_TIME_MAX]);
/** Reads RFC 3339 with any offset and 0..9 fraction digits (cut to microseconds). RV_E_PARSE. */
RV_MUST_CHECK int rv_time_parse(rv_str text, int64_t *out_us, rv_err **err);
/** The same for a text that may be something else. False: it is not a time, and *out_us stays. */
RV_MUST_CHECK bool rv_time_read(rv_str text, int64_t *out_us);
/** Reads a day such as 2026-02-24: *out_us is its beginning in UTC. False: it is not one, and *out_us as before. */
bool rv_day_parse(rv_str text, int64_t *out_us);

/* --- The end of a wait for a condition: of pthread_cond_timedwait() with CLOCK_MONOTONIC --- */
/** So many microseconds from now on, at most a day. */
struct timespec rv_deadline_in(int64_t us);

#endif

/* The cases of this suite, and what they share. */
#ifndef RV_TESTS_CALENDAR_SUITES_H
#define RV_TESTS_CALENDAR_SUITES_H

#include <check.h>

#include "coreengine/calendar/calendar.h"

TCase *zone_case(void);
TCase *zone_file_case(void);
TCase *system_case(void);
TCase *cron_read_case(void);
TCase *cron_case(void);
TCase *when_case(void);

/** A zone of the system. Ends the test if there is none. Lives as long as the process. */
const rv_zone *zone_named(const char *name);
/** RFC 3339 to microseconds. Ends the test if it is not. */
int64_t instant(const char *text);

/* A TZif file in the making: 64-bit times, as zic writes them. */
struct tzif {
    char version;
    uint32_t n_leaps;
    struct {
        int64_t at_s;
        unsigned char type;
    } changes[8];
    uint32_t n_changes;
    int32_t offsets[4];
    uint32_t n_offsets;
    const char *rule; /* with its line feeds */
};
/** The bytes of the file; free() what it is given. */
rv_str tzif_bytes(const struct tzif *file);

#endif

/* The gate of SQL against files of statements: hostile.txt and portable.txt. */
#ifndef RV_TESTS_CONFORMANCE_REM_SUITES_H
#define RV_TESTS_CONFORMANCE_REM_SUITES_H

#include <check.h>

#include "coreengine/rem/rem.h"

TCase *hostile_case(void);
TCase *portable_case(void);

#define NOW_US INT64_C(1774951200000000) /* 2026-03-31T10:00:00Z */

struct rv_rem_sql_opts strict_options(enum rv_rem_backend backend);
/** Each line of a file of this folder that is neither empty nor begins with "#"; the lines are cut out of the text. */
void each_line(const char *name, void (*each)(void *self, char *line), void *self);

#endif

/* How a test program runs what it has. */
#ifndef RV_KIT_SUITES_H
#define RV_KIT_SUITES_H

#include <check.h>
#include <stddef.h>

#include "coreengine/base/base.h" /* RV_COUNT */

/** Run it and free it; what main() returns. CK_VERBOSITY, CK_RUN_CASE and Check's other variables count. */
int rv_kit_run(Suite *suite);
/** The same of many. Each is made by its function. */
int rv_kit_run_suites(Suite *(*const suites[])(void), size_t n);
/** The same of one suite with these cases. */
int rv_kit_run_cases(const char *name, TCase *(*const cases[])(void), size_t n);

#endif

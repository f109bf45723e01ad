/* How a test program runs what it has: in the order in which it is written, or, with REEVE_SHUFFLE=number in the
 * environment, in one that follows from that number: suites, cases and their tests (the rounds of a loop stay in
 * theirs). A failure prints the number; with it the order is the same again. */
#ifndef RV_KIT_SUITES_H
#define RV_KIT_SUITES_H

#include <check.h>
#include <stddef.h>

#include "coreengine/base/base.h" /* RV_COUNT */

#define RV_KIT_MAX_SUITES 128 /* of a program, and cases of a suite */

/** Run it and free it; what main() returns. CK_VERBOSITY, CK_RUN_CASE and Check's other variables count. */
int rv_kit_run(Suite *suite);
/** The same of many. Each is made by its function. */
int rv_kit_run_suites(Suite *(*const suites[])(void), size_t n);
/** The same of one suite with these cases. */
int rv_kit_run_cases(const char *name, TCase *(*const cases[])(void), size_t n);

#endif

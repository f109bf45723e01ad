#ifndef RV_TESTS_SCRIPT_SUITES_H
#define RV_TESTS_SCRIPT_SUITES_H

#include <check.h>

#include "coreengine/tools/script/script.h"

Suite *read_suite(void);
Suite *next_suite(void);
Suite *catalog_suite(void);
Suite *source_suite(void);

/** A script from text; its findings as text go to *findings (free() it) if that is not NULL, else there must be none.
 * The document is kept until the next call. */
rv_script *script_of(const char *text, char **findings);

#endif

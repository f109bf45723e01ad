/* The test cases of this program, and what they share. */
#ifndef RV_TESTS_UNIT_YAML_SUITES_H
#define RV_TESTS_UNIT_YAML_SUITES_H

#include <check.h>

#include "coreengine/lang/lang.h"

TCase *scalars_case(void);
TCase *reader_case(void);
TCase *keys_case(void);
TCase *findings_case(void);
TCase *table_case(void);
TCase *format_case(void);
TCase *format_many_case(void);

/** The findings of a text as printed, file name "t.yaml"; free() it. *out (may be NULL) gets the document. */
char *findings_of(rv_str text, rv_yaml **out);

#endif

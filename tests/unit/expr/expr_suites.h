/* The test cases of this program, one per file. */
#ifndef RV_TESTS_EXPR_SUITES_H
#define RV_TESTS_EXPR_SUITES_H

#include <check.h>

TCase *eval_case(void);
TCase *compile_case(void);
TCase *limits_case(void);
TCase *template_case(void);
TCase *scope_case(void);
TCase *docs_case(void);
TCase *pattern_case(void);

#endif

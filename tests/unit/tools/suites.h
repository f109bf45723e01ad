/* The test cases of the files in this folder. */
#ifndef RV_TESTS_TOOLS_SUITES_H
#define RV_TESTS_TOOLS_SUITES_H

#include <check.h>

TCase *access_case(void);
TCase *catalog_case(void);
TCase *content_case(void);
TCase *health_case(void);
TCase *normalize_case(void);
TCase *result_case(void);
TCase *result_data_case(void);
TCase *schema_case(void);
TCase *schema_compile_case(void);
TCase *set_case(void);
TCase *step_result_case(void);
TCase *pipeline_schemas_case(void);

#endif

/* The cases of this suite. */
#ifndef RV_TESTS_UNIT_PLAN_SUITES_H
#define RV_TESTS_UNIT_PLAN_SUITES_H

#include "tests/kit/suites.h"

TCase *output_case(void);
TCase *argument_case(void);
TCase *resolve_case(void);
TCase *format_case(void);
TCase *catalog_case(void);
TCase *validate_case(void);
TCase *shape_case(void);
TCase *artifact_case(void);
TCase *property_case(void);

#endif

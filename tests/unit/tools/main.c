#include "tests/kit/suites.h"
#include "tests/unit/tools/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {access_case, catalog_case,     health_case,           normalize_case,
                                            result_case, result_data_case, schema_case,           schema_compile_case,
                                            set_case,    step_result_case, pipeline_schemas_case, content_case};

    return rv_kit_run_cases("tools", cases, RV_COUNT(cases));
}

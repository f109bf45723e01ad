#include "tests/kit/suites.h"
#include "tests/unit/provider/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {table_case,    endpoint_case, hints_case,  statuses_case, retry_case,
                                            fallback_case, breaker_case,  places_case, rates_case,    secrets_case};

    return rv_kit_run_cases("provider", cases, RV_COUNT(cases));
}

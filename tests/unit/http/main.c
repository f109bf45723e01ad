#include "tests/kit/suites.h"
#include "world.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {load_case, request_case, answers_case, broken_case, limits_case, hold_case,
                                            life_case, names_case,   tls_case,     h2_case,     egress_case};

    return rv_kit_run_cases("http", cases, RV_COUNT(cases));
}

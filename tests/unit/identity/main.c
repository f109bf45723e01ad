#include "tests/kit/suites.h"
#include "tests/unit/identity/world.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {bytes_case, jwt_case, jwks_case, net_case,
                                            auth_case,  ask_case, cors_case, rate_case};

    return rv_kit_run_cases("identity", cases, RV_COUNT(cases));
}

#include "tests/unit/httpd/world.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {requests_case};

    return rv_kit_run_cases("httpd", cases, RV_COUNT(cases));
}

#include "tests/unit/run/suites.h"

TCase *growth_case(void)
{
    return tcase_create("growth");
}

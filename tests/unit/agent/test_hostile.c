#include "tests/unit/agent/suites.h"

TCase *hostile_case(void)
{
    return tcase_create("hostile");
}

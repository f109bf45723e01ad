#include "tests/unit/agent/suites.h"

TCase *tools_case(void)
{
    return tcase_create("tools");
}

#include "tests/unit/agent/suites.h"

TCase *hooks_case(void)
{
    return tcase_create("hooks");
}

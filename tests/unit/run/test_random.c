#include "tests/unit/run/suites.h"

TCase *random_case(void)
{
    return tcase_create("random");
}

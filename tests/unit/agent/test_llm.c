#include "tests/unit/agent/suites.h"

TCase *llm_case(void)
{
    return tcase_create("llm");
}

#include "tests/kit/suites.h"
#include "tests/unit/context/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {context_case,      headers_case,      ids_case,        routing_case,
                                            conversation_case, instructions_case, spaced_json_case};

    return rv_kit_run_cases("context", cases, RV_COUNT(cases));
}

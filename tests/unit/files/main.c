#include "tests/kit/suites.h"
#include "tests/unit/files/sandbox.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {parts_case,  confinement_case, tools_case,
                                            search_case, hooks_case,       ask_docs_case};

    return rv_kit_run_cases("files", cases, RV_COUNT(cases));
}

#include "expr_suites.h"
#include "tests/kit/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {eval_case,  compile_case, limits_case, template_case,
                                            scope_case, docs_case,    pattern_case};

    return rv_kit_run_cases("expr", cases, RV_COUNT(cases));
}

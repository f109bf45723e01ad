#include "tests/kit/suites.h"
#include "tests/unit/match/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {keys_case,  grams_case, terms_case, vectors_case,
                                            embed_case, pages_case, edges_case};

    return rv_kit_run_cases("match", cases, RV_COUNT(cases));
}

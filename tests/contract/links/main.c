#include <string.h>

#include "tests/contract/links/world.h"
#include "tests/kit/suites.h"

int main(int argc, char **argv)
{
    static TCase *(*const cases[])(void) = {links_case};

    if (argc > 1 && strcmp(argv[1], PEER_ARGUMENT) == 0)
        return peer_run();
    return rv_kit_run_cases("links", cases, RV_COUNT(cases));
}

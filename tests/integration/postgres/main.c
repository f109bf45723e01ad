#include "tests/integration/postgres/world.h"
#include "tests/kit/suites.h"

int main(void)
{
    static Suite *(*const suites[])(void) = {lost_suite,    server_suite, values_suite,
                                             address_suite, schema_suite, listen_suite};

    rv_kit_postgres();
    return rv_kit_run_suites(suites, RV_COUNT(suites));
}

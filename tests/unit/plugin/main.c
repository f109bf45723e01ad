#include "tests/kit/suites.h"
#include "tests/unit/plugin/suites.h"

int main(void)
{
    static Suite *(*const suites[])(void) = {
        path_suite,     load_suite,          call_suite,        catalog_suite,  hello_suite,
        isolated_suite, hostile_child_suite, probe_suite,       provider_suite, provider_reply_suite,
        echo_suite,     agents_suite,        attachments_suite, ask_suite,      pool_suite};

    return rv_kit_run_suites(suites, RV_COUNT(suites));
}

#include "tests/kit/suites.h"
#include "tests/unit/cli/suites.h"

int main(void)
{
    static Suite *(*const suites[])(void) = {record_suite,     record_property_suite, tally_suite,    chat_sink_suite,
                                             chat_calls_suite, tables_suite,          lines_suite,    yaml_text_suite,
                                             top_suite,        markdown_suite,        terminal_suite, watch_suite};

    return rv_kit_run_suites(suites, RV_COUNT(suites));
}

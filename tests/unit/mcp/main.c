#include "tests/unit/mcp/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {message_case,      lines_case,         http_case,         oauth_case,
                                            pins_case,         client_case,        client_end_case,   tools_case,
                                            server_case,       client_elicit_case, client_roots_case, client_task_case,
                                            client_sample_case};

    return rv_kit_run_cases("mcp", cases, RV_COUNT(cases));
}

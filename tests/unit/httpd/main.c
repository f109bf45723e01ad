#include <signal.h>

#include "tests/unit/httpd/world.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {requests_case, smuggling_case, streams_case, limits_case,
                                            life_case,     wheel_case,     random_case,  tls_case};

    (void)signal(SIGPIPE, SIG_IGN); /* as the host of the server does */
    return rv_kit_run_cases("httpd", cases, RV_COUNT(cases));
}

/* The cases of this suite. */
#ifndef RV_TESTS_UNIT_MCP_SUITES_H
#define RV_TESTS_UNIT_MCP_SUITES_H

#include "tests/kit/suites.h"

TCase *message_case(void);
TCase *lines_case(void);
TCase *http_case(void);
TCase *oauth_case(void);
TCase *pins_case(void);
TCase *client_case(void);
TCase *client_end_case(void);
TCase *client_elicit_case(void);
TCase *client_roots_case(void);
TCase *client_sample_case(void);
TCase *client_task_case(void);
TCase *tools_case(void);
TCase *server_case(void);

#endif

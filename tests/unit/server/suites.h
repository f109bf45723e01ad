/* The suites of the server's pure parts. */
#ifndef RV_TESTS_UNIT_SERVER_SUITES_H
#define RV_TESTS_UNIT_SERVER_SUITES_H

#include <check.h>

TCase *pieces_case(void);
TCase *reason_case(void);
TCase *routes_case(void);
TCase *stream_case(void);
TCase *view_case(void);

#endif

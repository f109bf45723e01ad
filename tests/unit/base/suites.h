/* The test cases of base, one per source file of this folder. */
#ifndef RV_TESTS_UNIT_BASE_SUITES_H
#define RV_TESTS_UNIT_BASE_SUITES_H

#include <check.h>

TCase *err_case(void);
TCase *bytes_case(void);
TCase *index_case(void);
TCase *address_case(void);
TCase *frames_case(void);
TCase *file_case(void);
TCase *json_read_case(void);
TCase *json_scan_case(void);
TCase *json_write_case(void);
TCase *json_numbers_case(void);
TCase *json_tree_case(void);
TCase *clock_case(void);
TCase *log_case(void);
TCase *liveness_case(void);
TCase *cipher_case(void);
TCase *rsa_case(void);
TCase *sign_case(void);
TCase *library_case(void);
TCase *system_case(void);

#endif

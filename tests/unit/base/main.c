#include "tests/kit/suites.h"
#include "tests/unit/base/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {
        err_case,       bytes_case,      index_case,        address_case,   frames_case, file_case, json_read_case,
        json_scan_case, json_write_case, json_numbers_case, json_tree_case, clock_case,  log_case,  liveness_case,
        cipher_case,    rsa_case,        sign_case,         library_case,   system_case};

    return rv_kit_run_cases("base", cases, RV_COUNT(cases));
}

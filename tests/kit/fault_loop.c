#include "tests/kit/fault_loop.h"

#include <check.h>

#include "coreengine/base/base.h"
#include "tests/kit/fault.h"

void rv_fault_each(const struct rv_fault_scenario *scenario, size_t more_than)
{
    ck_assert_int_eq(scenario->run(), 0); /* libraries set themselves up at first use */
    for (size_t n = 0;; n++) {
        rv_fault_arm(n);
        int rc = scenario->run();
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            ck_assert_msg(rv_fault_count() > more_than || !rv_fault_works(), "%s: only %zu allocations", scenario->name,
                          rv_fault_count());
            return;
        }
        ck_assert_msg(rc == RV_E_NOMEM, "%s, allocation %zu: %s", scenario->name, n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0, "%s, allocation %zu: %ld blocks leak", scenario->name, n,
                      rv_fault_balance());
    }
}

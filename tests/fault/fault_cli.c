/* Every allocation of the table of usage fails once: no crash, no leak, and never a table with holes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/cli/cli.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"

static struct rv_agent_config stages[] = {{.name = "plan"}, {.name = "write"}};
static const struct rv_pipeline pipeline = {.agents = stages, .n_agents = RV_COUNT(stages)};

/* Gives the code of the writing; without memory for the tally itself there is no table. */
static int tally(rv_buf *out)
{
    const struct rv_cli_spent spent = {
        .is_told = true,
        .usage = {.calls = 1, .input_tokens = 1000, .output_tokens = 7, .cost_micro_usd = 12},
        .latency_ms = 20,
        .first_ms = 5,
    };
    rv_cli_tally *t = rv_cli_tally_new(&pipeline);

    rv_cli_tally_add(t, 0, &spent);
    rv_cli_tally_add(t, 1, &spent);
    rv_cli_tally_write(t, NULL, false, out);
    rv_cli_tally_free(t);
    return t ? out->rc : RV_E_NOMEM;
}

START_TEST(a_table_is_whole_or_says_that_it_is_not)
{
    rv_buf whole = RV_BUF_INIT(1 << 16);
    size_t n;

    ck_assert_int_eq(tally(&whole), 0);
    for (n = 0;; n++) {
        rv_buf text = RV_BUF_INIT(1 << 16);
        rv_fault_arm(n);
        int rc = tally(&text);
        bool is_whole = rc == 0 && strcmp(rv_buf_cstr(&text), rv_buf_cstr(&whole)) == 0;
        rv_buf_fini(&text);
        bool fired = rv_fault_disarm();
        ck_assert_int_eq(rv_fault_balance(), 0);
        ck_assert(is_whole == !fired);
        ck_assert_int_eq(rc, fired ? RV_E_NOMEM : 0);
        if (!fired)
            break;
    }
    ck_assert(n > 5 || !rv_fault_works());
    rv_buf_fini(&whole);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_cli");
    TCase *c = tcase_create("loops");
    SRunner *runner;

    tcase_add_test(c, a_table_is_whole_or_says_that_it_is_not);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

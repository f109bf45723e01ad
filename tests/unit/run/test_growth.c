/* What a run saves grows with its stages; `tests/bench/growth` counts what a stage costs. */
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/run/suites.h"

enum shape { CHAIN, CHAIN_PARALLEL, FAN_OUT, LAYERS, FAILING_CHAIN, N_SHAPES };

static void write_stages(rv_buf *b, enum shape shape, int n)
{
    rv_buf_printf(b, "name: t\nmax_agent_hops: %d\nmax_llm_calls: 10\ndefault_run_mode: %s\nagents:\n", 2 * n,
                  shape == CHAIN ? "sequential" : "parallel");
    for (int i = 0; i < n; i++) {
        rv_buf_printf(b, "  - {name: s%d, stage_order: %d", i, i);
        if (shape == CHAIN && i + 1 < n)
            rv_buf_printf(b, ", default_next: s%d", i + 1);
        if (shape == CHAIN_PARALLEL && i > 0)
            rv_buf_printf(b, ", requires: [s%d]", i - 1);
        if (shape == FAN_OUT && i > 0)
            rv_buf_printf(b, ", requires: [s0]");
        if (shape == LAYERS && i >= 10)
            rv_buf_printf(b, ", requires: [s%d, s%d], after: [s%d]", i / 10 * 10 - 10, i / 10 * 10 - 1,
                          i / 10 * 10 - 5);
        if (shape == FAILING_CHAIN && i == 0)
            rv_buf_puts(b, ", required_output_fields: [v], error_next: end");
        if (shape == FAILING_CHAIN && i > 0)
            rv_buf_printf(b, ", requires: [s%d]", i - 1);
        rv_buf_puts(b, "}\n");
    }
}

/* As bytes: what a state says takes as long as it is. */
START_TEST(all_saves_together_are_a_few_last_ones)
{
    const int sizes[] = {4, 100, 1000};

    for (size_t i = 0; i < RV_COUNT(sizes); i++) {
        rv_buf yaml = RV_BUF_INIT((size_t)1 << 20);
        write_stages(&yaml, (enum shape)_i, sizes[i]);
        struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
        d->opts.saves = RV_SAVES_SOME;
        d->keep = false;
        ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
        ck_assert_uint_le(d->save_bytes, 12 * strlen(d->last_save));
        if (sizes[i] == 4 && _i == CHAIN)
            ck_assert_uint_eq(d->n_saves, 5); /* a short run is saved after each stage */
        if (sizes[i] == 1000 && _i == CHAIN)
            ck_assert_uint_ge(d->n_saves, 30); /* and a long one is never far from its last save */
        drive_free(d);
        rv_buf_fini(&yaml);
    }
}
END_TEST

TCase *growth_case(void)
{
    TCase *tc = tcase_create("growth");

    tcase_add_loop_test(tc, all_saves_together_are_a_few_last_ones, 0, N_SHAPES);
    return tc;
}

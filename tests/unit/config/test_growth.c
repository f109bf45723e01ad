/* Loading takes time in proportion to the file, sound or full of faults. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/unit/config/world.h"

static void sound(rv_buf *b, int n)
{
    rv_buf_puts(b, "name: x\nagents:\n");
    for (int i = 0; i < n; i++)
        rv_buf_printf(b, "  - {name: stage_%d, requires: [stage_%d], prompt_key: p%d, default_next: stage_%d}\n", i,
                      i ? i - 1 : n - 1 + n, i % 50, i + 1 < n ? i + 1 : 0);
    rv_buf_printf(b, "  - {name: stage_%d}\nprompts:\n", n - 1 + n);
    for (int i = 0; i < 50; i++)
        rv_buf_printf(b, "  p%d: \"{{stage_%d}} {{raw_input}}\"\n", i, i);
}

static void faulty(rv_buf *b, int n)
{
    rv_buf_puts(b, "name: x\nagents:\n");
    for (int i = 0; i < n; i++)
        rv_buf_printf(b, "  - {name: stage_%d, requires: [stgae_%d, stage_0], nmae: x, default_next: nowhere_%d}\n", i,
                      i, i);
}

static const struct {
    void (*make)(rv_buf *b, int n);
} shapes[] = {{sound}, {faulty}};

static double seconds_for(void (*make)(rv_buf *b, int n), int n)
{
    rv_buf b = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    struct timespec from;
    struct timespec to;
    struct loaded l;

    make(&b, n);
    ck_assert_int_eq(b.rc, 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    l = load_text(rv_buf_cstr(&b), ".");
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    ck_assert_ptr_nonnull(l.p);
    ck_assert_uint_ge(l.p->n_agents, (size_t)n);
    loaded_fini(&l);
    rv_buf_fini(&b);
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

START_TEST(load_time_grows_with_the_file)
{
    double small = seconds_for(shapes[_i].make, 1000);
    double large = seconds_for(shapes[_i].make, 9000);

    /* quadratic growth would be 81 times; the slack is for sanitizers and a busy machine */
    ck_assert_msg(large < 30 * small + 0.2, "1000 agents: %.4f s, 9000 agents: %.4f s", small, large);
    ck_assert_msg(large < 5, "9000 agents: %.4f s", large);
    if (getenv("REEVE_TIMES"))
        printf("1000 agents: %.4f s, 9000 agents: %.4f s\n", small, large);
}
END_TEST

TCase *growth_case(void)
{
    TCase *tc = tcase_create("growth");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, load_time_grows_with_the_file, 0, RV_COUNT(shapes));
    return tc;
}

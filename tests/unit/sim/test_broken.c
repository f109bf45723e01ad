/* A process that does wrong is caught, and what it did is cut down to the bone. */
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/sim/suites.h"

static struct rv_sim_report run(const char *path, const struct sim_tamper *tamper)
{
    struct rv_sim_report r;
    struct subjects s;
    rv_err *err = NULL;

    subjects_init(&s, path, 2);
    struct rv_sim_opts o = subjects_opts(&s, 2000);
    if (sim_run_tampered(&o, tamper, &r, &err) < 0)
        ck_abort_msg("%s", rv_kit_err_take(err));
    subjects_fini(&s);
    return r;
}

/* Recovery takes every call of which nobody knows for one that may be made again. */
static int repeat_everything(void *self, struct sim_seed *s, struct rv_replayed *r, rv_err **err)
{
    (void)self;
    (void)s;
    (void)err;
    for (size_t i = 0; i < r->open.n; i++)
        r->open.items[i].effect_class = RV_EFFECT_SAFE;
    return 0;
}

/* Recovery loses the last call. */
static int forget_one(void *self, struct sim_seed *s, struct rv_replayed *r, rv_err **err)
{
    (void)self;
    (void)s;
    (void)err;
    if (r->open.n > 0)
        r->open.items[r->open.n - 1].kind = RV_EFFECT_SAVE;
    return 0;
}

/* Recovery makes up another key. */
static int other_key(void *self, struct sim_seed *s, struct rv_replayed *r, rv_err **err)
{
    (void)self;
    (void)s;
    (void)err;
    for (size_t i = 0; i < r->open.n; i++)
        if (r->open.items[i].key && r->open.items[i].attempt > 1)
            r->open.items[i].key[0] = 'X';
    return 0;
}

/* Recovery makes other arguments of a call. */
static int other_arguments(void *self, struct sim_seed *s, struct rv_replayed *r, rv_err **err)
{
    (void)self;
    (void)s;
    (void)err;
    for (size_t i = 0; i < r->open.n; i++)
        if (r->open.items[i].kind == RV_EFFECT_CALL_TOOL && r->open.items[i].request_len > 2)
            r->open.items[i].request[1] = ' ';
    return 0;
}

static const struct {
    int (*tamper)(void *self, struct sim_seed *s, struct rv_replayed *r, rv_err **err);
    enum rv_sim_invariant breaks;
} tampers[] = {
    {repeat_everything, RV_SIM_KEEPS_ONCE},
    {forget_one, RV_SIM_KEEPS_ENDS},
    {other_key, RV_SIM_KEEPS_NO_REPEAT},
    {other_arguments, RV_SIM_KEEPS_NO_REPEAT},
};

START_TEST(a_recovery_that_does_wrong_is_caught_and_cut_down)
{
    const struct sim_tamper tamper = {tampers[_i].tamper, NULL};
    struct rv_sim_report r = run(RV_SOURCE_DIR "/tests/sim/effects.yaml", &tamper);

    ck_assert(r.has_failure);
    ck_assert_msg(r.failure.invariant == tampers[_i].breaks, "invariant %d: %s", (int)r.failure.invariant,
                  r.failure.text);
    ck_assert_uint_lt(r.failure.n_decisions, r.failure.n_before);
    ck_assert_uint_le(r.failure.n_decisions, 12);
    ck_assert_ptr_nonnull(strstr(r.failure.trace, "BROKEN: "));
    ck_assert_ptr_nonnull(strstr(r.failure.trace, "the process dies"));
    rv_sim_report_fini(&r);
}
END_TEST

START_TEST(the_failure_is_the_same_with_any_number_of_threads)
{
    const struct sim_tamper tamper = {repeat_everything, NULL};
    struct rv_sim_report a, b;
    struct subjects one, four;
    subjects_init(&one, RV_SOURCE_DIR "/tests/sim/effects.yaml", 1);
    subjects_init(&four, RV_SOURCE_DIR "/tests/sim/effects.yaml", 4);
    struct rv_sim_opts o = subjects_opts(&one, 400), threads = subjects_opts(&four, 400);

    ck_assert_int_eq(sim_run_tampered(&o, &tamper, &a, NULL), 0);
    ck_assert_int_eq(sim_run_tampered(&threads, &tamper, &b, NULL), 0);
    ck_assert(a.has_failure && b.has_failure);
    ck_assert_uint_eq(a.failure.seed, b.failure.seed);
    ck_assert_str_eq(a.failure.trace, b.failure.trace);
    rv_sim_report_fini(&a);
    rv_sim_report_fini(&b);
    subjects_fini(&one);
    subjects_fini(&four);
}
END_TEST

START_TEST(a_run_that_does_not_end_is_cut)
{
    struct rv_sim_report r;
    struct subjects s;
    subjects_init(&s, RV_SOURCE_DIR "/pipelines/loop.yaml", 1);
    struct rv_sim_opts o = subjects_opts(&s, 100);

    o.max_steps = 2;
    ck_assert_int_eq(rv_sim_run(&o, &r, NULL), 0);
    ck_assert(r.has_failure);
    ck_assert_int_eq(r.failure.invariant, RV_SIM_KEEPS_ENDS);
    rv_sim_report_fini(&r);
    subjects_fini(&s);
}
END_TEST

START_TEST(what_can_not_be_simulated_is_refused)
{
    struct rv_sim_opts o = RV_SIM_OPTS_INIT;
    struct rv_sim_report r;

    ck_assert_int_eq(rv_sim_run(&o, &r, NULL), RV_E_INVALID);
}
END_TEST

TCase *broken_case(void)
{
    TCase *tc = tcase_create("broken");

    if (rv_kit_stride(2) == 1) /* a sanitizer sees no more in them than in the next one */
        tcase_add_loop_test(tc, a_recovery_that_does_wrong_is_caught_and_cut_down, 0, (int)RV_COUNT(tampers));
    tcase_add_test(tc, the_failure_is_the_same_with_any_number_of_threads);
    tcase_add_test(tc, a_run_that_does_not_end_is_cut);
    tcase_add_test(tc, what_can_not_be_simulated_is_refused);
    return tc;
}

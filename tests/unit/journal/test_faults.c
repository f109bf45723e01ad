/* A store that fails at each of its fault points: before an operation, and after it took effect. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/journal/live.h"
#include "tests/unit/journal/suites.h"

static rv_store *store;

static void open_store(void)
{
    if (rv_store_open("memory:", NULL, &store, NULL) < 0)
        rv_kit_die("no store");
}

static void close_store(void)
{
    rv_store_close(store);
    store = NULL;
}

struct fault {
    int left; /* points to pass before the failure */
    bool fired;
    char point[64];
};

static int at(void *self, const char *point, rv_err **err)
{
    struct fault *f = self;

    if (f->fired || f->left-- > 0)
        return 0;
    f->fired = true;
    snprintf(f->point, sizeof f->point, "%s", point);
    return RV_FAIL(err, RV_E_IO, "injected at %s", point);
}

/* Journal a run whose store fails at the n-th point; true when it never came to that. */
static bool run_with_fault(int n, const struct live *good)
{
    struct fault f = {.left = n};
    struct played got;
    rv_err *err = NULL;

    struct live *l = live_new(store, live_pipelines[3], 7, RV_UNSET);
    l->is_calm = true;
    rv_store_set_faults(store, (struct rv_store_faults){at, &f});
    struct rv_event ev = {.kind = RV_EVENT_START, .now_us = l->now_us};
    int rc = live_step(l, &ev, &err);
    while (rc == 0 && l->n_calls > 0)
        rc = live_reply(l, l->calls[0].kind == RV_EFFECT_CALL_TOOL ? "{}" : "{\"steps\":[{\"tool\":\"put\"}],\"v\":0}",
                        &err);
    rv_store_set_faults(store, (struct rv_store_faults){0});
    if (rc < 0) {
        live_must_say(rc, RV_E_IO, &err, "injected");
        ev.kind = RV_EVENT_CANCEL;
        live_must_say(rv_journal_step(l->j, &ev, &l->fx, l->run, &err), RV_E_STATE, &err, "recover the run");
        int64_t before = l->shots[l->n_shots - 1].seq;
        ck_assert_int_eq(play(l, 0, false, &got, NULL), 0);
        if (strcmp(f.point, "append") == 0)
            ck_assert_int_eq(got.r.seq, before);
        if (strcmp(f.point, "append.done") == 0)
            ck_assert_int_gt(got.r.seq, before);
        const struct shot *want = good->shots;
        while (want->seq < got.r.seq)
            want++;
        char *state = live_state(got.r.run);
        ck_assert_str_eq(state, want->state); /* a whole step, or none of it */
        free(state);
        played_fini(&got);
    }
    live_free(l);
    return !f.fired;
}

/* Proves 8.2/save: Every step is kept before anything of it is done */
START_TEST(a_step_that_failed_is_the_last)
{
    struct live *good = live_new(store, live_pipelines[3], 7, RV_UNSET);
    int n = 0;

    good->is_calm = true;
    live_start(good);
    while (good->n_calls > 0)
        ck_assert_int_eq(
            live_reply(good,
                       good->calls[0].kind == RV_EFFECT_CALL_TOOL ? "{}" : "{\"steps\":[{\"tool\":\"put\"}],\"v\":0}",
                       NULL),
            0);
    rv_journal_free(good->j);
    good->j = NULL;
    do {
        close_store();
        open_store();
    } while (!run_with_fault(n++, good));
    ck_assert_int_gt(n, 8);
    live_free(good);
}
END_TEST

START_TEST(taking_over_may_fail_and_be_tried_again)
{
    const struct rv_store_scope scope = live_scope();
    bool more = true;

    for (int n = 0; more; n++) {
        struct fault f = {.left = n};
        rv_journal *j = NULL;
        rv_err *err = NULL;
        close_store();
        open_store();
        struct live *l = live_new(store, live_pipelines[1], 1, RV_UNSET);
        live_start(l);
        rv_journal_free(l->j);
        l->j = NULL;
        rv_store_set_faults(store, (struct rv_store_faults){at, &f});
        int rc = rv_journal_open(store, &scope, LIVE_RUN,
                                 &(struct rv_journal_claim){.owner = "there/2", .now_us = l->now_us}, &j, &err);
        rv_store_set_faults(store, (struct rv_store_faults){0});
        more = f.fired;
        if (f.fired)
            live_must_say(rc, RV_E_IO, &err, "injected");
        rv_journal_free(j);
        l->now_us += RV_LEASE_DEFAULT_US + 1; /* a claim whose answer was lost ends by itself */
        ck_assert_int_eq(rv_journal_open(store, &scope, LIVE_RUN,
                                         &(struct rv_journal_claim){.owner = "there/3", .now_us = l->now_us}, &l->j,
                                         NULL),
                         0);
        struct played got;
        ck_assert_int_eq(play(l, 0, false, &got, NULL), 0);
        char *state = live_state(got.r.run);
        ck_assert_str_eq(state, l->shots[l->n_shots - 1].state);
        ck_assert_uint_eq(got.r.open.n, 1);
        free(state);
        played_fini(&got);
        live_free(l);
    }
}
END_TEST

TCase *faults_case(void)
{
    TCase *tc = tcase_create("faults");

    tcase_add_checked_fixture(tc, open_store, close_store);
    tcase_add_test(tc, a_step_that_failed_is_the_last);
    tcase_add_test(tc, taking_over_may_fail_and_be_tried_again);
    return tc;
}

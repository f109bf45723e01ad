/* The wheel against a list: any order of setting, removing and time passing. */
#include <stdlib.h>
#include <time.h>

#include "coreengine/http/http_internal.h"
#include "tests/unit/httpd/world.h"

#define N 200

static struct rv_wheel wheel;
static struct rv_wheel_entry entries[N];
static int64_t dues[N]; /* RV_NEVER: not in it */

static void must_give_what_is_due(int64_t now)
{
    struct rv_wheel_entry *e;

    while ((e = httpd_wheel_pop(&wheel, now))) {
        size_t i = (size_t)(e - entries);
        ck_assert_int_le(dues[i], now);
        ck_assert_int_eq(e->due_us, dues[i]);
        dues[i] = RV_NEVER;
    }
    for (size_t i = 0; i < N; i++)
        ck_assert_int_gt(dues[i], now);
}

static int64_t first_due(void)
{
    int64_t first = RV_NEVER;

    for (size_t i = 0; i < N; i++)
        first = dues[i] < first ? dues[i] : first;
    return first;
}

START_TEST(gives_each_entry_when_it_is_due)
{
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 7);
    int64_t now = 1700000000000000;

    httpd_wheel_init(&wheel, now);
    memset(entries, 0, sizeof entries);
    for (size_t i = 0; i < N; i++)
        dues[i] = RV_NEVER;
    for (int step = 0; step < rv_kit_sample(20000, 2000000); step++) {
        size_t i = rv_rand_below(r, N);
        uint64_t what = rv_rand_below(r, 10);
        if (what == 0) {
            httpd_wheel_remove(&wheel, &entries[i]);
            dues[i] = RV_NEVER;
        } else if (what < 6) {
            dues[i] = now + 1 + (int64_t)rv_rand_below(r, what == 1 ? 1000000000 : 2000000);
            httpd_wheel_set(&wheel, &entries[i], dues[i]);
        } else {
            now += (int64_t)rv_rand_below(r, what == 9 ? 400000000 : 300000);
            must_give_what_is_due(now);
        }
        int64_t next = httpd_wheel_next_us(&wheel), first = first_due();
        if (first == RV_NEVER)
            ck_assert_int_eq(next, RV_NEVER);
        else
            ck_assert_int_le(next, first + RV_WHEEL_TICK_US);
    }
}
END_TEST

START_TEST(gives_an_entry_of_the_past_at_once)
{
    struct rv_wheel_entry e = {0};

    httpd_wheel_init(&wheel, 5000000000);
    httpd_wheel_set(&wheel, &e, 1);
    ck_assert_ptr_eq(httpd_wheel_pop(&wheel, 5000000000), &e);
    ck_assert_ptr_null(httpd_wheel_pop(&wheel, 5000000000));
    httpd_wheel_remove(&wheel, &e);
    ck_assert_int_eq(httpd_wheel_next_us(&wheel), RV_NEVER);
}
END_TEST

/* Each pop looks at what is due, not at all that shares its slot: a millisecond of the processor. The square of their
 * number would take half a minute. */
START_TEST(entries_of_a_later_round_cost_nothing_for_each_that_is_due)
{
    const size_t n = 200000;
    const int64_t round_us = RV_WHEEL_SLOTS * RV_WHEEL_TICK_US, due_us = 5 * round_us;
    struct rv_wheel_entry *many = calloc(2 * n, sizeof *many), *e;
    size_t n_given = 0;

    ck_assert_ptr_nonnull(many);
    httpd_wheel_init(&wheel, due_us - RV_WHEEL_TICK_US);
    for (size_t i = 0; i < n; i++)
        httpd_wheel_set(&wheel, &many[i], due_us + round_us);
    for (size_t i = n; i < 2 * n; i++)
        httpd_wheel_set(&wheel, &many[i], due_us);
    clock_t began = clock();
    while ((e = httpd_wheel_pop(&wheel, due_us)))
        n_given += e->due_us == due_us && clock() - began < 5 * CLOCKS_PER_SEC;
    ck_assert_uint_eq(n_given, n);
    while ((e = httpd_wheel_pop(&wheel, due_us + round_us)))
        n_given++;
    ck_assert_uint_eq(n_given, 2 * n);
    ck_assert_int_eq(httpd_wheel_next_us(&wheel), RV_NEVER);
    free(many);
}
END_TEST

START_TEST(an_entry_that_was_found_due_can_be_removed_or_set_again)
{
    struct rv_wheel_entry e[3] = {{0}};

    httpd_wheel_init(&wheel, 5000000000);
    for (size_t i = 0; i < RV_COUNT(e); i++)
        httpd_wheel_set(&wheel, &e[i], 5000000000);
    ck_assert_ptr_eq(httpd_wheel_pop(&wheel, 5000000000), &e[0]);
    ck_assert_int_le(httpd_wheel_next_us(&wheel), 5000000000);
    httpd_wheel_remove(&wheel, &e[1]);
    httpd_wheel_set(&wheel, &e[2], 9000000000);
    ck_assert_ptr_null(httpd_wheel_pop(&wheel, 5000000000));
    ck_assert_ptr_eq(httpd_wheel_pop(&wheel, 9000000000), &e[2]);
    ck_assert_int_eq(httpd_wheel_next_us(&wheel), RV_NEVER);
}
END_TEST

TCase *wheel_case(void)
{
    TCase *tc = tcase_create("wheel");

    tcase_add_test(tc, gives_each_entry_when_it_is_due);
    tcase_add_test(tc, gives_an_entry_of_the_past_at_once);
    tcase_add_test(tc, entries_of_a_later_round_cost_nothing_for_each_that_is_due);
    tcase_add_test(tc, an_entry_that_was_found_due_can_be_removed_or_set_again);
    return tc;
}

/* The wheel against a list: any order of setting, removing and time passing. */
#include "coreengine/http/http_internal.h"
#include "tests/unit/httpd/world.h"

#define N 200

static struct rv_wheel wheel;
static struct rv_wheel_entry entries[N];
static int64_t dues[N]; /* RV_HTTPD_NEVER: not in it */

static void must_give_what_is_due(int64_t now)
{
    struct rv_wheel_entry *e;

    while ((e = rv_wheel_pop(&wheel, now))) {
        size_t i = (size_t)(e - entries);
        ck_assert_int_le(dues[i], now);
        ck_assert_int_eq(e->due_us, dues[i]);
        dues[i] = RV_HTTPD_NEVER;
    }
    for (size_t i = 0; i < N; i++)
        ck_assert_int_gt(dues[i], now);
}

static int64_t first_due(void)
{
    int64_t first = RV_HTTPD_NEVER;

    for (size_t i = 0; i < N; i++)
        first = dues[i] < first ? dues[i] : first;
    return first;
}

START_TEST(gives_each_entry_when_it_is_due)
{
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 7);
    int64_t now = 1700000000000000;

    rv_wheel_init(&wheel, now);
    memset(entries, 0, sizeof entries);
    for (size_t i = 0; i < N; i++)
        dues[i] = RV_HTTPD_NEVER;
    for (int step = 0; step < rv_kit_sample(20000, 2000000); step++) {
        size_t i = rv_rand_below(r, N);
        uint64_t what = rv_rand_below(r, 10);
        if (what == 0) {
            rv_wheel_remove(&wheel, &entries[i]);
            dues[i] = RV_HTTPD_NEVER;
        } else if (what < 6) {
            dues[i] = now + 1 + (int64_t)rv_rand_below(r, what == 1 ? 1000000000 : 2000000);
            rv_wheel_set(&wheel, &entries[i], dues[i]);
        } else {
            now += (int64_t)rv_rand_below(r, what == 9 ? 400000000 : 300000);
            must_give_what_is_due(now);
        }
        int64_t next = rv_wheel_next_us(&wheel), first = first_due();
        if (first == RV_HTTPD_NEVER)
            ck_assert_int_eq(next, RV_HTTPD_NEVER);
        else
            ck_assert_int_le(next, first + RV_WHEEL_TICK_US);
    }
}
END_TEST

START_TEST(gives_an_entry_of_the_past_at_once)
{
    struct rv_wheel_entry e = {0};

    rv_wheel_init(&wheel, 5000000000);
    rv_wheel_set(&wheel, &e, 1);
    ck_assert_ptr_eq(rv_wheel_pop(&wheel, 5000000000), &e);
    ck_assert_ptr_null(rv_wheel_pop(&wheel, 5000000000));
    rv_wheel_remove(&wheel, &e);
    ck_assert_int_eq(rv_wheel_next_us(&wheel), RV_HTTPD_NEVER);
}
END_TEST

TCase *wheel_case(void)
{
    TCase *tc = tcase_create("wheel");

    tcase_add_test(tc, gives_each_entry_when_it_is_due);
    tcase_add_test(tc, gives_an_entry_of_the_past_at_once);
    return tc;
}

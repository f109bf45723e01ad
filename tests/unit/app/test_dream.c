/* Which dreamings are queued: one for each dreamer and each user that did something. */
#include <string.h>

#include "coreengine/app/memory.h"
#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

#define T0 INT64_C(1750000000000000)

static const struct rv_store_scope ada = {NULL, "ada"};

static rv_store *open_store(void)
{
    rv_store *store;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
    return store;
}

/* What is queued for a dreamer; NULL: the tenant's. n: the code, or the number of new tasks. */
static void want(rv_store *store, const struct rv_store_scope *scope, const char *agent, int64_t n)
{
    const struct rv_app_dream what = {.agent = agent, .day_us = T0};
    struct rv_dream_queued done = {.n_new = -1};

    int rc = rv_app_dream_enqueue(store, scope, &what, T0, &done, NULL);
    ck_assert_int_eq(rc < 0 ? rc : done.n_new, n);
}

START_TEST(two_dreamers_whose_long_names_end_differently_have_a_task_each)
{
    char one[130], other[130], longer[130];
    rv_store *store = open_store();

    memset(one, 'a', sizeof one);
    one[128] = '\0';
    memcpy(other, one, sizeof one);
    other[127] = 'b';
    memset(longer, 'a', sizeof longer - 1);
    longer[129] = '\0';
    want(store, &ada, one, 1);
    want(store, &ada, other, 1);
    want(store, &ada, one, 0); /* it is there already */
    want(store, &ada, longer, RV_E_INVALID);
    want(store, &ada, "not a name", RV_E_INVALID);
    rv_store_close(store);
}
END_TEST

TCase *dream_case(void)
{
    TCase *tc = tcase_create("dream");

    tcase_add_test(tc, two_dreamers_whose_long_names_end_differently_have_a_task_each);
    return tc;
}

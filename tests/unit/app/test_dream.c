/* Which dreamings are queued: one for each dreamer and each user that did something. */
#include <stdio.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/store/store.h"
#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

#define T0 INT64_C(1750000000000000)

static const struct rv_store_scope everyone = {NULL, NULL}, ada = {NULL, "ada"};

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

static void add_session(rv_store *store, int i, const char *user, const char *mode, int64_t at_us)
{
    char id[32];

    snprintf(id, sizeof id, "s%d", i);
    const struct rv_session_row fresh = {
        .id = id, .tenant = RV_STORE_TENANT, .user = user, .mode = mode, .created_us = at_us};
    ck_assert_int_eq(rv_store_ensure_session(store, &fresh, NULL, NULL), 0);
}

/* Ada touched more sessions than once were looked at; Ben's was touched before all of them. */
START_TEST(the_user_of_the_oldest_session_is_found_behind_many_others)
{
    int n = rv_kit_sample(200, 100001);
    rv_store *store = open_store();

    add_session(store, 0, "ben", NULL, T0 - 1000);
    ck_assert_int_eq(rv_store_begin(store, NULL), 0);
    for (int i = 1; i <= n; i++)
        add_session(store, i, i % 2 ? "ada" : "eve", NULL, T0);
    ck_assert_int_eq(rv_store_end(store, 0, NULL), 0);
    want(store, &everyone, NULL, 3);
    rv_store_close(store);
}
END_TEST

/* More than once were allowed. What is queued already is not queued again. */
START_TEST(each_of_many_users_has_a_task)
{
    enum { MANY = 10001 };
    rv_store *store = open_store();
    char user[32];

    ck_assert_int_eq(rv_store_begin(store, NULL), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(user, sizeof user, "user%d", i);
        add_session(store, i, user, NULL, T0);
    }
    ck_assert_int_eq(rv_store_end(store, 0, NULL), 0);
    want(store, &(struct rv_store_scope){NULL, "user7"}, NULL, 1);
    want(store, &everyone, NULL, MANY - 1);
    want(store, &everyone, NULL, 0);
    rv_store_close(store);
}
END_TEST

/* A dreamer works in a session of the user each day; 200 of them hid what the user had said before. */
START_TEST(sessions_of_dreamers_hide_none_of_the_user)
{
    rv_store *store = open_store();
    struct rv_dream_chunks done;

    add_session(store, 0, "ada", NULL, T0 - 1000);
    for (int i = 1; i <= 201; i++)
        add_session(store, i, "ada", RV_DREAM_MODE, T0);
    ck_assert_int_eq(rv_app_dream_make_chunks(store, &ada, T0 + 1, &done, NULL), 0);
    ck_assert_int_eq(done.n_checked, 1);
    for (int i = 202; i <= 201 + RV_DREAM_SESSIONS; i++)
        add_session(store, i, "ada", NULL, T0);
    ck_assert_int_eq(rv_app_dream_make_chunks(store, &ada, T0 + 1, &done, NULL), 0);
    ck_assert_int_eq(done.n_checked, RV_DREAM_SESSIONS);
    rv_store_close(store);
}
END_TEST

TCase *dream_case(void)
{
    TCase *tc = tcase_create("dream");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, two_dreamers_whose_long_names_end_differently_have_a_task_each);
    tcase_add_test(tc, the_user_of_the_oldest_session_is_found_behind_many_others);
    tcase_add_test(tc, each_of_many_users_has_a_task);
    tcase_add_test(tc, sessions_of_dreamers_hide_none_of_the_user);
    return tc;
}

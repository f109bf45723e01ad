/* Calls at the same time that change the same rows: each call's change is there in the end. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/p8/data.h"

#define N_CALLERS 3
#define N_EACH    4

/* Another process with the same store: it gets in between the reads and the writes of a call. */
static struct data *other;
static const char *before, *tool, *args; /* the service, and what the other one does before it */
static int n_left;                       /* so often */

static void begin_other(struct data *d, struct data *at, bool isolated, const char *key)
{
    data_begin(d, isolated);
    free(d->path);
    d->path = rv_str_dup(rv_str_of(at->path));
    ck_assert_ptr_nonnull(d->path);
    d->app.store = d->path;
    d->key = key;
}

static void intrude(struct data *d, const char *service)
{
    (void)d;
    if (strcmp(service, before) != 0 || n_left == 0)
        return;
    n_left--;
    data_has(other, tool, args, "\"status\":");
    ck_assert_ptr_null(strstr(rv_buf_cstr(&other->room.reply), "\"status\":\"error\""));
}

/* The session of a call, with some metadata. */
static void make_session(struct data *d)
{
    const struct rv_session_row row = {
        .id = "talk", .tenant = RV_STORE_TENANT, .user = "ada", .name = "Talk", .created_us = 1};
    rv_store *store = NULL;

    ck_assert_int_eq(rv_store_open(d->path, NULL, &store, NULL), 0);
    ck_assert_int_eq(rv_store_ensure_session(store, &row, NULL, NULL), 0);
    rv_store_close(store);
}

static const char *plots_in(struct data *d)
{
    char *rows = data_find(d, NULL, "ada", "sessions");
    static char names[200];

    names[0] = '\0';
    for (const char *at = rows; (at = strstr(at, "\"title\":\"")); at += 9)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%.1s", at + 9);
    free(rows);
    return names;
}

START_TEST(plots_that_are_saved_at_the_same_time_are_all_kept)
{
    struct data d, second;
    bool isolated = _i & 1, in_session = _i & 2;

    data_begin(&d, isolated);
    begin_other(&second, &d, isolated, "call-2");
    if (in_session) {
        make_session(&d);
        d.session = second.session = "talk";
    }
    other = &second;
    d.before_ask = intrude;
    before = "entities.put";
    tool = "save_plot";
    args = "{\"title\": \"B\", \"source\": \"graph B\", \"topic_tags\": [\"b\"]}";
    n_left = 1;
    data_has(&d, "save_plot", "{\"title\": \"A\", \"source\": \"graph A\", \"topic_tags\": [\"a\"]}",
             "\"plot_count\":2,");
    ck_assert_int_eq(n_left, 0);
    data_has(&d, "get_moments", "{}", "\"summary\":\"Research (2): B, A\"");
    data_has(&d, "get_moments", "{}", "\"topic_tags\":[\"a\",\"b\"]");
    data_has(&d, "get_moments", "{}", "\"count\":1,");
    if (in_session)
        ck_assert_str_eq(plots_in(&d), "BA");
    args = "{\"title\": \"C\", \"source\": \"graph C\"}";
    second.key = "call-3";
    n_left = 2; /* the second writes what is there already, which changes nothing and refuses nothing */
    d.key = "call-4";
    data_has(&d, "save_plot", "{\"title\": \"D\", \"source\": \"graph D\"}", "\"plot_count\":4,");
    ck_assert_int_eq(n_left, 0);
    data_has(&d, "get_moments", "{}", "\"summary\":\"Research (4): B, A, C, D\"");
    data_end(&second);
    data_end(&d);
}
END_TEST

START_TEST(a_plot_is_removed_beside_one_that_is_saved)
{
    struct data d, second;
    char id[16] = "", what[64];

    data_begin(&d, _i);
    begin_other(&second, &d, _i, "call-2");
    const char *at = strstr(data_call(&d, "save_plot", "{\"title\": \"A\", \"source\": \"graph A\"}"), "plot_id");
    memcpy(id, at + 10, 8);
    other = &second;
    d.before_ask = intrude;
    before = "entities.put";
    tool = "save_plot";
    args = "{\"title\": \"B\", \"source\": \"graph B\"}";
    n_left = 1;
    snprintf(what, sizeof what, "{\"plot_id\": \"%s\"}", id);
    data_has(&d, "remove_plot", what, "\"removed_title\":\"A\",\"remaining_count\":1");
    data_has(&d, "get_moments", "{}", "\"summary\":\"Research (1): B\"");
    data_end(&second);
    data_end(&d);
}
END_TEST

START_TEST(lists_of_a_profile_are_united_with_what_there_is_then)
{
    struct data d, second;

    data_begin(&d, _i);
    begin_other(&second, &d, _i, "call-2");
    data_put(&d, "users",
             "[{\"name\": \"Ada\", \"email\": \"ada@x.org\", \"user_id\": \"ada\", \"metadata\": {\"interests\": "
             "[\"maps\"]}}]");
    other = &second;
    d.before_ask = intrude;
    before = "entities.merge_metadata";
    tool = "update_user_metadata";
    args = "{\"metadata\": {\"interests\": [\"tea\"]}, \"list_mode\": \"union\"}";
    n_left = 1;
    data_has(&d, "update_user_metadata", "{\"metadata\": {\"interests\": [\"chess\"]}, \"list_mode\": \"union\"}",
             "\"interests\":[\"maps\",\"tea\",\"chess\"]");
    n_left = 1;
    args = "{\"metadata\": {\"facts\": {\"born\": 1815}}}";
    data_has(&d, "update_user_metadata", "{\"metadata\": {\"interests\": []}}", "\"facts\":{\"born\":1815}");
    data_end(&second);
    data_end(&d);
}
END_TEST

/* Others that never stop: the call ends, and says so. */
START_TEST(a_call_gives_up_when_others_are_always_faster)
{
    struct data d;

    data_begin(&d, _i);
    data_put(&d, "users", "[{\"name\": \"Ada\", \"email\": \"ada@x.org\", \"user_id\": \"ada\"}]");
    d.stale = "entities.merge_metadata";
    data_has(&d, "update_user_metadata", "{\"metadata\": {\"interests\": [\"chess\"]}, \"list_mode\": \"union\"}",
             "\"code\":\"conflict\"");
    ck_assert_int_gt(d.n_asked, 20);
    ck_assert_int_lt(d.n_asked, 200);
    data_end(&d);
}
END_TEST

struct caller {
    struct data d;
    char keys[N_EACH][16];
    int number;
};

static void *save_many(void *arg)
{
    struct caller *c = arg;

    for (int i = 0; i < N_EACH; i++) {
        char plot[100];
        snprintf(c->keys[i], sizeof c->keys[i], "call-%d-%d", c->number, i);
        snprintf(plot, sizeof plot, "{\"title\": \"P\", \"source\": \"%d %d\"}", c->number, i);
        c->d.key = c->keys[i];
        data_has(&c->d, "save_plot", plot, "\"status\":\"success\"");
    }
    return NULL;
}

START_TEST(callers_on_many_threads_lose_no_plot)
{
    static struct caller callers[N_CALLERS];
    pthread_t threads[N_CALLERS];
    char want[64];

    for (int i = 0; i < N_CALLERS; i++) {
        callers[i].number = i;
        if (i == 0)
            data_begin(&callers[i].d, _i);
        else
            begin_other(&callers[i].d, &callers[0].d, _i, "");
    }
    for (int i = 0; i < N_CALLERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, save_many, &callers[i]), 0);
    for (int i = 0; i < N_CALLERS; i++)
        pthread_join(threads[i], NULL);
    snprintf(want, sizeof want, "\"summary\":\"Research (%d): P, P, ", N_CALLERS * N_EACH);
    data_has(&callers[0].d, "get_moments", "{}", want);
    for (int i = N_CALLERS; i-- > 0;)
        data_end(&callers[i].d);
}
END_TEST

TCase *at_once_case(void)
{
    TCase *tc = tcase_create("at_once");

    tcase_add_loop_test(tc, plots_that_are_saved_at_the_same_time_are_all_kept, 0, 4);
    tcase_add_loop_test(tc, a_plot_is_removed_beside_one_that_is_saved, 0, 2);
    tcase_add_loop_test(tc, lists_of_a_profile_are_united_with_what_there_is_then, 0, 2);
    tcase_add_loop_test(tc, a_call_gives_up_when_others_are_always_faster, 0, 2);
    tcase_add_loop_test(tc, callers_on_many_threads_lose_no_plot, 0, 2);
    return tc;
}

/* Limits of what a user has: what is refused at one, what is not, and what the tool says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/store.h"
#include "tests/unit/p8/data.h"

#define SOON  INT64_C(7226582400000000) /* 2199-01-01T00:00:00Z */
#define LATER "\"crontab\": \"2199-04-15\"}"

/* Schedules of ada, n of them; ended ones have fired. */
static void fill(struct data *d, int n, const char *prefix, bool ended)
{
    rv_store *store = NULL;
    rv_err *err = NULL;

    ck_assert_msg(rv_store_open(d->path, NULL, &store, &err) == 0, "%s", rv_err_text(err));
    ck_assert_int_eq(rv_store_begin(store, NULL), 0);
    for (int i = 0; i < n; i++) {
        char id[32], name[32];
        snprintf(id, sizeof id, "sched_%s%d", prefix, i);
        snprintf(name, sizeof name, "%s%d", prefix, i);
        const struct rv_schedule_row row = {.id = id,
                                            .user = "ada",
                                            .name = name,
                                            .is_once = true,
                                            .expr = "2199-01-01",
                                            .zone = "UTC",
                                            .type = "notify",
                                            .max_retries = RV_UNSET,
                                            .created_us = 1,
                                            .next_us = ended ? 1 : SOON};
        ck_assert_msg(rv_store_add_schedule(store, &row, &err) == 0, "%s", rv_err_text(err));
        const struct rv_fire late = {
            .id = id, .expected_us = 1, .now = {.planned_us = 1, .since_us = 1, .at_us = 2, .skipped = "late"}};
        bool is_mine = false;
        if (ended)
            ck_assert_msg(rv_store_fire_schedule(store, &late, &is_mine, &err) == 0 && is_mine, "%s", rv_err_text(err));
    }
    ck_assert_int_eq(rv_store_end(store, 0, NULL), 0);
    rv_store_close(store);
}

START_TEST(a_reminder_can_be_replaced_at_the_limit)
{
    struct data d;

    data_begin(&d, _i);
    data_has(&d, "remind_me", "{\"name\": \"tea\", \"description\": \"d\", " LATER, "\"status\":\"success\"");
    fill(&d, RV_APP_MAX_SCHEDULES - 1, "s", false);
    data_has(&d, "remind_me", "{\"name\": \"tea\", \"description\": \"d\", " LATER, "\"status\":\"success\"");
    data_has(&d, "remind_me", "{\"name\": \"tea\", \"description\": \"other\", " LATER, "\"status\":\"success\"");
    data_has(&d, "remind_me", "{\"name\": \"milk\", \"description\": \"d\", " LATER, "this user has 1000 schedules");
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&d.room.reply), "\"code\":\"quota\""));
    d.user = "bob";
    data_has(&d, "remind_me", "{\"name\": \"milk\", \"description\": \"d\", " LATER, "\"status\":\"success\"");
    data_end(&d);
}
END_TEST

START_TEST(reminders_that_are_over_do_not_count)
{
    struct data d;

    data_begin(&d, false);
    fill(&d, RV_APP_MAX_SCHEDULES, "s", true);
    data_has(&d, "remind_me", "{\"name\": \"tea\", \"description\": \"d\", " LATER, "\"status\":\"success\"");
    data_end(&d);
}
END_TEST

START_TEST(a_reminder_that_is_too_large_is_not_called_a_wrong_time)
{
    rv_buf args = RV_BUF_INIT((size_t)4 << 20);
    struct data d;

    data_begin(&d, _i);
    rv_buf_puts(&args, "{\"name\": \"tea\", \"description\": \"");
    for (int i = 0; i < 200000; i++)
        rv_buf_puts(&args, "\\u0001");
    rv_buf_puts(&args, "\", " LATER);
    data_has(&d, "remind_me", rv_buf_cstr(&args), "\"code\":\"bad_arguments\"");
    ck_assert_msg(strstr(rv_buf_cstr(&d.room.reply), "larger than") && !strstr(rv_buf_cstr(&d.room.reply), "crontab"),
                  "%s", rv_buf_cstr(&d.room.reply));
    rv_buf_fini(&args);
    data_end(&d);
}
END_TEST

/* How a service answers: "ok", or the code of why not. */
static const char *asked(struct data *d, const char *args)
{
    rv_buf answer = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;
    int rc = data_ask(d, "quotas.take", args, &answer, &err);

    rv_err_free(err);
    rv_buf_fini(&answer);
    return rv_code_text(rc);
}

/* The engine makes a call again after a crash, with the same key. */
START_TEST(a_call_that_is_made_again_counts_once)
{
    const char one[] = "{\"kind\": \"web_searches\"}", more[] = "{\"kind\": \"web_searches\", \"key\": \"b\"}";
    struct data d;

    data_begin(&d, false);
    char *path = rv_kit_path(d.room.dir, "quotas.yaml");
    rv_kit_write(path, "plans:\n  free: {quotas: {web_searches: {day: 2}}}\ndefault: free\n");
    d.app.quotas = path;
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(asked(&d, one), "ok");
    ck_assert_str_eq(asked(&d, more), "ok"); /* another one of the same call */
    ck_assert_str_eq(asked(&d, more), "ok");
    d.key = "call-2";
    ck_assert_str_eq(asked(&d, one), "quota_exceeded");
    d.user = "bob";
    ck_assert_str_eq(asked(&d, one), "ok");
    d.user = "ada";
    d.key = "";
    ck_assert_str_eq(asked(&d, one), "invalid_argument");
    d.key = "call-1";
    ck_assert_str_eq(asked(&d, one), "ok");
    free(path);
    data_end(&d);
}
END_TEST

static int see_secret(void *self, json_object *row, rv_err **err)
{
    const char *text = json_object_to_json_string(row);

    (void)err;
    *(int *)self += !strstr(text, "Research") && strstr(text, "\"encrypted\":");
    return 0;
}

/* Readers get ciphertext in the mode client; agents, and so their tools, are told the plain text. */
START_TEST(tools_work_with_what_is_encrypted_for_clients)
{
    const struct rv_store_scope ada = {NULL, "ada"};
    char id[RV_ENCRYPTION_ID];
    rv_store *store = NULL;
    rv_err *err = NULL;
    int n_secret = 0;
    struct data d;

    setenv("REEVE_ENCRYPTION_KEY", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", 1);
    data_begin(&d, _i);
    ck_assert_msg(rv_app_store_open(&d.app, RV_APP_STORE_CHANGE, &store, &err) == 0, "%s", rv_err_text(err));
    ck_assert_msg(rv_store_set_encryption(store, RV_STORE_TENANT,
                                          &(const struct rv_encryption_choice){.mode = RV_ENCRYPTION_CLIENT}, 1, id,
                                          &err) == 0,
                  "%s", rv_err_text(err));
    rv_store_close(store);
    data_has(&d, "save_plot", "{\"title\": \"A\", \"source\": \"a\"}", "\"plot_count\":1,");
    d.key = "call-2";
    data_has(&d, "save_plot", "{\"title\": \"B\", \"source\": \"b\"}", "\"plot_count\":2,");
    data_has(&d, "get_moments", "{}", "\"summary\":\"Research (2): A, B\"");
    ck_assert_msg(rv_app_store_open(&d.app, RV_APP_STORE_CHANGE, &store, &err) == 0, "%s", rv_err_text(err));
    ck_assert_int_eq(rv_store_find_entities(store, &ada, &(const struct rv_entities_of){"moments", NULL}, see_secret,
                                            &n_secret, NULL),
                     0);
    ck_assert_int_eq(n_secret, 1);
    rv_store_close(store);
    data_end(&d);
    unsetenv("REEVE_ENCRYPTION_KEY");
}
END_TEST

TCase *limits_case(void)
{
    TCase *tc = tcase_create("limits");

    tcase_add_loop_test(tc, a_reminder_can_be_replaced_at_the_limit, 0, 2);
    tcase_add_test(tc, reminders_that_are_over_do_not_count);
    tcase_add_loop_test(tc, a_reminder_that_is_too_large_is_not_called_a_wrong_time, 0, 2);
    tcase_add_test(tc, a_call_that_is_made_again_counts_once);
    tcase_add_loop_test(tc, tools_work_with_what_is_encrypted_for_clients, 0, 2);
    return tc;
}

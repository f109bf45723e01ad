/* A run by its name: what the store says is passed on, also to a caller that wants the code alone. And lists of rows
 * that are not whole: callers are told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coreengine/app/app.h"
#include "coreengine/store/store.h"
#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

static int is_locked(void *self, const char *point, rv_err **err)
{
    (void)self;
    return strcmp(point, "get_run") == 0 ? RV_FAIL(err, RV_E_TIMEOUT, "the store is locked") : 0;
}

START_TEST(a_caller_without_interest_in_the_reason_is_told_the_code)
{
    static const struct rv_store_scope all = {NULL, NULL};
    struct rv_run_row row;
    rv_store *store;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
    rv_store_set_faults(store, (struct rv_store_faults){is_locked, NULL});
    ck_assert_int_eq(rv_app_find_run(store, &all, "run_1", &row, NULL), RV_E_TIMEOUT);
    ck_assert_int_eq(rv_app_find_run(store, &all, "run_1", &row, &err), RV_E_TIMEOUT);
    ck_assert_str_eq(rv_err_text(err), "the store is locked");
    rv_err_free(err);
    rv_store_close(store);
}
END_TEST

/* Agents are registered by who reads, too. Only a store that cannot be written to by this reader is left for later. */
START_TEST(a_store_that_cannot_be_opened_to_write_is_no_success)
{
    static const struct {
        const char *sync;
        int rc;
    } cases[] = {{"off", 0}, {"never", RV_E_INVALID}};
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "runs.db"), *agent = rv_kit_path(dir, "writer.yaml");

    rv_kit_write(agent, "name: writer\ndescription: You write.\n");
    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        const struct rv_app app = {.store = path, .sync = cases[i].sync, .schema_dir = dir, .capability = ""};
        rv_store *store = NULL;
        rv_err *err = NULL;
        unlink(path);
        ck_assert_int_eq(rv_store_open(path, NULL, &store, NULL), 0);
        int rc = rv_app_register_agents(&app, store, &err);
        ck_assert_msg(rc == cases[i].rc, "sync %s: %d: %s", cases[i].sync, rc, rv_err_text(err));
        rv_err_free(err);
        rv_store_close(store);
    }
    free(path);
    free(agent);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

static void put_files(rv_store *store, int n)
{
    static const struct rv_store_scope all = {NULL, NULL};
    char name[20];

    for (int i = 0; i < n; i++) {
        json_object *row = json_object_new_object();
        snprintf(name, sizeof name, "file%d", i);
        json_object_object_add(row, "name", json_object_new_string(name));
        const struct rv_entities_put put = {.kind = "files", .rows = &row, .n_rows = 1, .now_us = rv_app_now_us()};
        ck_assert_int_eq(rv_store_put_entities(store, &all, &put, NULL, NULL), 0);
        json_object_put(row);
    }
}

START_TEST(a_list_that_is_not_whole_says_so)
{
    static const struct rv_store_scope all = {NULL, NULL};
    static const rv_str few = RV_STR_LIT("SELECT name FROM files"),
                        many = RV_STR_LIT("SELECT a.name FROM files a, files b, files c, files d");
    json_object *rows = NULL;
    bool has_more = true;
    rv_store *store;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
    put_files(store, 11);
    ck_assert_int_eq(rv_app_select(store, &all, few, &rows, &has_more, NULL), 0);
    ck_assert(!has_more && json_object_array_length(rows) == 11);
    json_object_put(rows);
    ck_assert_int_eq(rv_app_select(store, &all, many, &rows, &has_more, NULL), 0);
    ck_assert(has_more && json_object_array_length(rows) == RV_APP_MAX_SELECT);
    json_object_put(rows);
    rows = NULL;
    ck_assert_int_eq(rv_app_select(store, &all, many, &rows, NULL, &err), RV_E_LIMIT);
    ck_assert_str_eq(rv_err_text(err), "there are more than 10000 rows");
    ck_assert_ptr_null(rows);
    rv_err_free(err);
    rv_store_close(store);
}
END_TEST

/* The n-th look into the store fails. */
struct nth {
    int at, n;
    bool fired;
};

static int fail_nth(void *self, const char *point, rv_err **err)
{
    struct nth *f = self;

    if (f->n++ != f->at)
        return 0;
    f->fired = true;
    return RV_FAIL(err, RV_E_IO, "the disk says no at %s", point);
}

/* A store that cannot be read says nothing about a question: no one is told that it does not exist. */
START_TEST(a_store_that_fails_is_not_a_question_that_is_missing)
{
    static const struct rv_store_scope all = {NULL, NULL};
    struct nth f = {.fired = true};
    char bundle[RV_HASH_MAX];
    const struct rv_store_new_run run = {.id = "env_1",
                                         .user = "",
                                         .session = "",
                                         .pipeline = "say",
                                         .bundle = bundle,
                                         .status = RV_RUN_RUNNING,
                                         .stage = "a",
                                         .now_us = rv_app_now_us()};
    struct rv_run_row row;
    rv_store *store;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
    ck_assert_int_eq(rv_store_put_blob(store, RV_STR_LIT("not a bundle"), bundle, NULL), 0);
    ck_assert_int_eq(rv_store_create_run(store, &run, NULL), 0);
    ck_assert_int_eq(rv_store_get_run(store, &all, "env_1", &row, NULL), 0);
    rv_store_set_faults(store, (struct rv_store_faults){fail_nth, &f});
    for (f.at = 0; f.fired; f.at++) {
        struct rv_app_question q;
        rv_err *err = NULL;
        f.fired = false;
        f.n = 0;
        int rc = rv_app_find_question(store, &all, &row, RV_STR_LIT("q_1"), &q, &err);
        ck_assert_msg(rc == (f.fired ? RV_E_IO : RV_E_STATE), "%d: %s", f.at, rv_err_text(err));
        rv_app_question_fini(&q);
        rv_err_free(err);
    }
    ck_assert_int_ge(f.at, 5); /* questions, interrupts, journal, run, and none */
    rv_run_row_fini(&row);
    rv_store_close(store);
}
END_TEST

static const struct {
    int below, top;
    bool is;
} verdicts[] = {{0, RV_E_STATE, true},      {RV_E_INVALID, RV_E_IO, true}, {RV_E_PARSE, RV_E_IO, true},
                {0, RV_E_IO, false},        {0, RV_E_UNAVAILABLE, false},  {0, RV_E_DISK, false},
                {0, RV_E_FILES, false},     {0, RV_E_THREADS, false},      {0, RV_E_NOMEM, false},
                {0, RV_E_NOT_FOUND, false}, {0, RV_E_VERSION, false},      {0, RV_E_TIMEOUT, false}};

START_TEST(only_a_difference_is_a_verdict)
{
    rv_err *err = NULL;

    if (verdicts[_i].below)
        RV_IGNORE(RV_FAIL(&err, verdicts[_i].below, "why"), "wrapped");
    RV_IGNORE(RV_WRAP(&err, verdicts[_i].top, "replay"), "looked at");
    ck_assert_int_eq(rv_app_is_difference(err), verdicts[_i].is);
    rv_err_free(err);
}
END_TEST

TCase *find_case(void)
{
    TCase *tc = tcase_create("find");

    tcase_add_test(tc, a_caller_without_interest_in_the_reason_is_told_the_code);
    tcase_add_test(tc, a_store_that_cannot_be_opened_to_write_is_no_success);
    tcase_add_test(tc, a_list_that_is_not_whole_says_so);
    tcase_add_test(tc, a_store_that_fails_is_not_a_question_that_is_missing);
    tcase_add_loop_test(tc, only_a_difference_is_a_verdict, 0, RV_COUNT(verdicts));
    return tc;
}

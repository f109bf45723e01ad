/* Looks at a store: what is listed, what is read once and not again, what ended is counted once. */
#include <check.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

static const char asks[] = "name: asks\nmodels: {default: openai:gpt-4.1-mini}\nagents:\n"
                           "  - {name: plan, has_llm: true, model_role: default, prompt_key: plan, default_next: ask}\n"
                           "  - {name: ask, ask: {question: 'Go on?'}, default_next: end}\n"
                           "prompts: {plan: 'hi'}\n";
static const char script[] = "models:\n  plan: [{json: {a: 1}, usage: {input_tokens: 1000, output_tokens: 100}}]\n";

static char *dir, *store_path;
static struct rv_app app;
static rv_store *store;
static rv_app_top *top;

static void run_one(void)
{
    char *pipeline_path = rv_kit_path(dir, "asks.yaml"), *script_path = rv_kit_path(dir, "script.yaml");
    struct rv_app_job job = RV_APP_JOB_INIT;
    struct rv_app_result result;

    rv_kit_write(pipeline_path, asks);
    rv_kit_write(script_path, script);
    job.pipeline = pipeline_path;
    job.script = script_path;
    ck_assert_int_eq(rv_app_run(&app, &job, &result, NULL), 0);
    ck_assert_int_eq(result.status, RV_RUN_INTERRUPTED);
    rv_app_result_fini(&result);
    free(pipeline_path);
    free(script_path);
}

static void set_up(void)
{
    dir = rv_kit_tmpdir();
    store_path = rv_kit_path(dir, "runs.db");
    app = (struct rv_app){.store = store_path, .sync = "off", .capability = ""};
    run_one();
    ck_assert_int_eq(rv_store_open(store_path, &(struct rv_store_opts){.read_only = true}, &store, NULL), 0);
    ck_assert_int_eq(rv_app_top_new(store, &(struct rv_store_scope){0}, &top, NULL), 0);
}

static void tear_down(void)
{
    rv_app_top_free(top);
    rv_store_close(store);
    free(store_path);
    rv_kit_tmpdir_remove(dir);
}

static const struct rv_app_top_snapshot *look(void)
{
    const struct rv_app_top_snapshot *out = NULL;

    ck_assert_int_eq(rv_app_top_read(top, rv_app_now_us(), RV_APP_TOP_BY_STATE, &out, NULL), 0);
    return out;
}

static void change(const char *sql)
{
    sqlite3 *db = NULL;

    ck_assert_int_eq(sqlite3_open(store_path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

START_TEST(a_run_that_waits_is_a_row_until_it_is_over)
{
    struct rv_response yes = {.choice = RV_STR_LIT("yes")};
    struct rv_app_result result;

    for (int i = 0; i < 2; i++) { /* what was read is not counted again */
        const struct rv_app_top_snapshot *l = look();
        ck_assert_uint_eq(l->n, 1);
        ck_assert_uint_eq(l->n_waiting, 1);
        ck_assert_int_eq(l->rows[0].waits, RV_APP_TOP_ANSWER);
        ck_assert_str_eq(l->rows[0].text, "Go on?");
        ck_assert(l->rows[0].is_read && !l->rows[0].is_damaged);
        ck_assert_int_eq(l->used.input_tokens, 1000);
        ck_assert_int_eq(l->used.cost_micro_usd, 560);
        ck_assert_int_eq(l->rates.tokens, 1100);
        ck_assert_int_eq(l->rates.n_ended, 0);
    }
    ck_assert_int_eq(rv_app_answer(&app, "last", &yes, NULL, &result, NULL), 0);
    ck_assert_int_eq(result.status, RV_RUN_COMPLETED);
    rv_app_result_fini(&result);
    for (int i = 0; i < 2; i++) {
        const struct rv_app_top_snapshot *l = look();
        ck_assert_uint_eq(l->n, 0);
        ck_assert_int_eq(l->rates.n_ended, 1);
        ck_assert_int_eq(l->rates.tokens, 1100);
        ck_assert(!l->rates.is_partial);
    }
}
END_TEST

START_TEST(a_run_that_ended_before_the_first_look_counts)
{
    struct rv_response yes = {.choice = RV_STR_LIT("yes")};
    struct rv_app_result result;

    ck_assert_int_eq(rv_app_answer(&app, "last", &yes, NULL, &result, NULL), 0);
    rv_app_result_fini(&result);
    for (int i = 0; i < 2; i++) {
        const struct rv_app_top_snapshot *l = look();
        ck_assert_int_eq(l->rates.n_ended, 1);
        ck_assert_int_eq(l->rates.tokens, 1100);
        ck_assert_int_eq(l->rates.cost_micro_usd, 560);
    }
}
END_TEST

START_TEST(a_damaged_journal_is_a_row_that_says_so)
{
    change("DELETE FROM records WHERE seq = 2");
    const struct rv_app_top_snapshot *l = look();

    ck_assert_uint_eq(l->n, 1);
    ck_assert(l->rows[0].is_damaged && !l->rows[0].is_read);
    ck_assert_int_eq(l->used.input_tokens, 0);
}
END_TEST

START_TEST(a_deleted_run_is_forgotten)
{
    ck_assert_uint_eq(look()->n, 1);
    change("PRAGMA foreign_keys = ON; DELETE FROM runs");
    ck_assert_uint_eq(look()->n, 0);
    ck_assert_int_eq(look()->rates.n_ended, 0);
}
END_TEST

/* A store with more runs than a look has rows for: the newest are listed, and the look says that there are more. */
START_TEST(a_look_has_a_bounded_number_of_rows)
{
    change("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 450) "
           "INSERT INTO runs (id, tenant, user, session, pipeline, bundle, parent_seq, status, stage, created_us,"
           " updated_us, expires_us, n_records, fence, lease_until_us, cancel, n_pending) "
           "SELECT 'run_' || i, tenant, user, session, pipeline, bundle, 0, iif(i <= 230, 'interrupted', 'completed'),"
           " stage, created_us + i, updated_us, 0, 9, 1, 0, 0, 0 FROM runs, n");
    const struct rv_app_top_snapshot *l = look();

    ck_assert_uint_eq(l->n, RV_APP_TOP_MAX_ROWS);
    ck_assert(l->more);
    ck_assert_str_eq(l->rows[0].id, "run_31"); /* the oldest of the newest 200 */
    ck_assert_int_eq(l->rates.n_ended, 220);
}
END_TEST

START_TEST(an_answer_to_a_damaged_question_is_refused)
{
    static const char *const broken[] = {"{\"data\":", "[1]"};
    static const struct rv_store_scope all = {NULL, NULL};
    struct rv_app_question q;
    struct rv_run_row row;
    rv_err *err = NULL;
    char *sql = sqlite3_mprintf("UPDATE pending SET body = CAST(%Q AS BLOB)", broken[_i]);

    ck_assert_int_eq(rv_app_find_run(store, &all, "last", &row, NULL), 0);
    ck_assert_int_eq(rv_app_find_question(store, &all, &row, (rv_str){NULL, 0}, &q, &err), 0);
    ck_assert(!q.is_damaged && q.data);
    rv_app_question_fini(&q);
    change(sql);
    ck_assert_int_eq(rv_app_find_question(store, &all, &row, (rv_str){NULL, 0}, &q, &err), RV_E_IO);
    ck_assert_msg(strstr(rv_err_text(err), "is damaged in the store"), "%s", rv_err_text(err));
    ck_assert(q.is_damaged);
    rv_app_question_fini(&q);
    rv_err_free(err);
    rv_run_row_fini(&row);
    sqlite3_free(sql);
}
END_TEST

START_TEST(rows_are_sorted_as_asked)
{
    ck_assert_str_eq(rv_app_top_sort_text(RV_APP_TOP_BY_COST), "cost");
    run_one();
    change("UPDATE runs SET pipeline = 'zebra' WHERE key = 1; UPDATE runs SET status = 'running' WHERE key = 1");
    for (size_t i = 0; i < RV_N_APP_TOP_SORTS; i++) {
        const struct rv_app_top_snapshot *l = NULL;
        ck_assert_int_eq(rv_app_top_read(top, rv_app_now_us(), (enum rv_app_top_sort)i, &l, NULL), 0);
        ck_assert_uint_eq(l->n, 2);
        bool waiting_first = i == RV_APP_TOP_BY_STATE || i == RV_APP_TOP_BY_PIPELINE;
        ck_assert_str_eq(l->rows[waiting_first ? 1 : 0].pipeline, "zebra");
    }
}
END_TEST

TCase *top_case(void)
{
    TCase *tc = tcase_create("top");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_run_that_waits_is_a_row_until_it_is_over);
    tcase_add_test(tc, a_run_that_ended_before_the_first_look_counts);
    tcase_add_test(tc, a_damaged_journal_is_a_row_that_says_so);
    tcase_add_test(tc, a_deleted_run_is_forgotten);
    tcase_add_test(tc, a_look_has_a_bounded_number_of_rows);
    tcase_add_test(tc, rows_are_sorted_as_asked);
    tcase_add_loop_test(tc, an_answer_to_a_damaged_question_is_refused, 0, 2);
    return tc;
}

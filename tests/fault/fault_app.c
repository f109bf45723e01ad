/* Every allocation of a run in one call fails once: no crash, no leak, and the code is RV_E_NOMEM, unless the run can
 * go on without. */
#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static const char pipeline[] = "name: small\nmodels: {default: scripted}\nagents:\n"
                               "  - {name: a, has_llm: true, model_role: default}\n"
                               "response: {output_key: a, field: text}\n";
static const char script[] = "models: {a: [{json: {text: hi}}]}\n";

static int scenario(const char *pipeline_path, const char *script_path)
{
    const struct rv_app app = {.no_store = true, .capability = ""};
    struct rv_app_job job = RV_APP_JOB_INIT;
    struct rv_app_result result = {0};
    rv_err *err = NULL;

    job.pipeline = pipeline_path;
    job.script = script_path;
    job.input = "x";
    int rc = rv_app_run(&app, &job, &result, &err);
    if (rc == 0 && result.status != RV_RUN_COMPLETED) /* a stage had no memory: the run says so */
        rc = RV_E_NOMEM;
    rv_app_result_fini(&result);
    rv_err_free(err);
    return rc;
}

START_TEST(any_allocation_may_fail)
{
    char *dir = rv_kit_tmpdir(), *pipeline_path = rv_kit_path(dir, "p.yaml"), *script_path = rv_kit_path(dir, "s.yaml");
    size_t n, n_lived = 0;

    rv_kit_write(pipeline_path, pipeline);
    rv_kit_write(script_path, script);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(scenario(pipeline_path, script_path), 0);
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 160 + 1);
    for (n = rv_kit_first(step);; n += step) {
        rv_fault_arm(n);
        int rc = scenario(pipeline_path, script_path);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %d", n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
        n_lived += rc == 0;
    }
    ck_assert(n > 100 || !rv_fault_works());
    ck_assert_uint_le(n_lived, n / 20);
    free(pipeline_path);
    free(script_path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* --- quotas: a run that counts, and what it used --- */

static const char quotas[] = "default: free\nplans: {free: {quotas: {tokens: {day: 100000}, runs: {day: 1000}}, rates:"
                             " {model_calls: {hour: 1000}}}}\nusers: {ann: free}\n";

static void see(void *self, const struct rv_app_usage *row)
{
    *(int64_t *)self += row->used;
}

static int count(const char *file, const char *store_path, int64_t *used)
{
    const struct rv_app app = {.quotas = file};
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    struct rv_quota_limit limits[RV_QUOTA_MAX_LIMITS];
    struct rv_quota_answer answer;
    rv_quotas *q = NULL;
    rv_store *store = NULL;
    rv_err *err = NULL;

    int rc = rv_app_quotas_open(&app, &q, &err);
    struct rv_quota_ask ask = {.user = "ann", .limits = limits, .run = "r", .fence = 1, .call_id = 1};
    ask.n_limits = rv_quotas_collect_limits(q, NULL, "ann", limits);
    ask.counts[RV_QUOTA_RUNS] = ask.counts[RV_QUOTA_MODEL_CALLS] = 1;
    ask.reserves[RV_QUOTA_TOKENS] = 100;
    ask.now_us = INT64_C(1700000000000000);
    if (rc == 0)
        rc = rv_store_open(store_path, &opts, &store, &err);
    if (rc == 0)
        rc = rv_store_reserve(store, &ask, &answer, &err);
    if (rc == 0)
        rc = rv_store_settle(store, &(struct rv_settlement){"r", 1, 1, (int64_t[RV_N_QUOTA]){10}}, NULL, &err);
    if (rc == 0)
        rc = rv_app_list_usage(
            &(const struct rv_app_usage_of){q, store, &(struct rv_store_scope){NULL, "ann"}, ask.now_us}, see, used,
            &err);
    rv_store_close(store);
    rv_quotas_free(q);
    rv_err_free(err);
    return rc;
}

START_TEST(any_allocation_of_what_quotas_do_may_fail)
{
    char *dir = rv_kit_tmpdir(), *file = rv_kit_path(dir, "quotas.yaml");
    int64_t used = 0;
    size_t n;

    rv_kit_write(file, quotas);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(count(file, "memory:", &used), 0);
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 160 + 1);
    ck_assert_int_eq(used, 12); /* a run, a call, ten tokens */
    for (n = rv_kit_first(step);; n += step) {
        rv_fault_arm(n);
        int rc = count(file, "memory:", &used);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %d", n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
    }
    ck_assert(n > 100 || !rv_fault_works());
    free(file);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* --- looks at a store with a run that waits, one that is over, and one that ends between two looks --- */

static const char waits[] = "name: waits\nmodels: {default: scripted}\nagents:\n"
                            "  - {name: a, has_llm: true, model_role: default, prompt_key: p, default_next: ask}\n"
                            "  - {name: ask, ask: {question: 'Go on?'}, default_next: end}\n"
                            "prompts: {p: 'hi'}\n";

static void keep_run(const char *store_path, const char *pipeline_path, const char *script_path)
{
    const struct rv_app app = {.store = store_path, .sync = "off", .capability = ""};
    struct rv_app_job job = RV_APP_JOB_INIT;
    struct rv_app_result result;

    job.pipeline = pipeline_path;
    job.script = script_path;
    ck_assert_int_eq(rv_app_run(&app, &job, &result, NULL), 0);
    rv_app_result_fini(&result);
}

/* The run that ends: by now it has a record more than a look has read, as if another process had ended it. */
#define ENDS                                                                                                           \
    "UPDATE runs SET status = 'completed', n_records = n_records + 1 WHERE id ="                                       \
    " (SELECT max(id) FROM runs WHERE pipeline = 'waits')"
#define WAITS_AGAIN                                                                                                    \
    "UPDATE runs SET status = 'interrupted', n_records = n_records - 1 WHERE status = 'completed'"                     \
    " AND pipeline = 'waits'"

static void change(sqlite3 *db, const char *sql)
{
    rv_fault_pause();
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    rv_fault_go_on();
}

static int look_twice(rv_store *store, sqlite3 *db, rv_buf *out)
{
    const struct rv_store_scope all = {0};
    const struct rv_app_top_snapshot *look = NULL;
    rv_app_top *top = NULL;
    rv_jw w = rv_jw_on(out);
    rv_err *err = NULL;

    int rc = rv_app_top_new(store, &all, &top, &err);
    for (int i = 0; i < 2 && rc == 0; i++) {
        if (i > 0)
            change(db, ENDS);
        rc = rv_app_top_read(top, rv_app_now_us(), RV_APP_TOP_BY_STATE, &look, &err);
    }
    if (rc == 0)
        rv_app_top_write(look, &w);
    rv_app_top_free(top);
    rv_err_free(err);
    change(db, WAITS_AGAIN);
    return rc < 0 ? rc : out->rc;
}

static int look_without(size_t n, rv_store *store, sqlite3 *db, bool *fired, long *lost)
{
    rv_buf text = RV_BUF_INIT(1 << 20);

    rv_fault_arm(n);
    int rc = look_twice(store, db, &text);
    *fired = rv_fault_disarm();
    *lost = rv_fault_lost(text.ptr != NULL);
    /* A run is not called damaged for want of memory. */
    ck_assert_msg(rc < 0 || !strstr(rv_buf_cstr(&text), "damaged"), "allocation %zu: %s", n, rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return rc;
}

START_TEST(any_allocation_of_a_look_may_fail)
{
    char *dir = rv_kit_tmpdir(), *pipeline_path = rv_kit_path(dir, "p.yaml"), *waits_path = rv_kit_path(dir, "w.yaml"),
         *script_path = rv_kit_path(dir, "s.yaml"), *store_path = rv_kit_path(dir, "runs.db");
    const struct rv_store_opts opts = {.read_only = true};
    rv_store *store = NULL;
    sqlite3 *db = NULL;
    size_t n, n_lived = 0;

    rv_kit_write(pipeline_path, pipeline);
    rv_kit_write(waits_path, waits);
    rv_kit_write(script_path, script);
    keep_run(store_path, pipeline_path, script_path);
    keep_run(store_path, waits_path, script_path);
    keep_run(store_path, waits_path, script_path);
    ck_assert_int_eq(sqlite3_open(store_path, &db), SQLITE_OK);
    ck_assert_int_eq(rv_store_open(store_path, &opts, &store, NULL), 0);
    rv_buf text = RV_BUF_INIT(1 << 20);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(look_twice(store, db, &text), 0);
    rv_fault_disarm();
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), "\"waiting\":1")); /* the other one ended */
    rv_buf_fini(&text);
    const size_t step = rv_kit_step(rv_fault_count() / 160 + 1);
    for (n = rv_kit_first(step);; n += step) {
        bool fired = false;
        long lost = 0;
        int rc = look_without(n, store, db, &fired, &lost);
        if (lost != 0) /* once SQLite keeps two blocks: where memory for a sort lacks first */
            rc = look_without(n, store, db, &fired, &lost);
        ck_assert_msg(lost == 0, "allocation %zu: %ld blocks", n, lost);
        if (!fired) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %d", n, rc);
        n_lived += rc == 0;
    }
    ck_assert(n > 100 || !rv_fault_works());
    ck_assert_uint_le(n_lived, n / 20);
    rv_store_close(store);
    sqlite3_close(db);
    free(pipeline_path);
    free(waits_path);
    free(script_path);
    free(store_path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* --- tests: which of them changed, and those of a matrix --- */

static const char tested[] = "name: tested\nmodels: {default: scripted}\nagents:\n"
                             "  - {name: a, has_llm: true, model_role: default, prompt_key: q}\n"
                             "prompts: {q: {file: q.md}}\n"
                             "tests:\n"
                             "  - {name: one, script: s.yaml, expect: {status: completed}}\n"
                             "  - {name: two, matrix: {prompts: {short: {q: Say it.}}}, script: s.yaml,"
                             " expect: {status: completed}}\n";

/* As `reeve test --changed` does: what passed is known by its hashes, and the rest runs. */
static int run_changed(const char *path)
{
    const struct rv_app app = {.no_store = true, .capability = ""};
    const struct rv_app_load_opts load = {.tests = true};
    const struct rv_test_opts opts = {0};
    struct rv_test_changes *changes = NULL;
    struct rv_test_choice sum = {0};
    struct rv_app_loaded l;
    rv_err *err = NULL;
    int rc = rv_app_load(&app, path, &load, &l, &err);

    if (rc < 0) {
        rv_err_free(err);
        return rc;
    }
    rc = rv_findings_n(l.findings) > 0 ? RV_E_INVALID : rv_test_changes_open(&app, &l, NULL, &changes, &err);
    for (size_t i = 0; rc == 0 && i < l.pipeline->n_tests; i++) {
        struct rv_test_report report = {0};
        if (!rv_test_changes_choose(changes, i, &sum))
            continue;
        rc = rv_test_run(&app, &l, i, &opts, &report, &err);
        if (rc == 0)
            rv_test_changes_note(changes, i, rv_test_has_passed(&report));
        if (rc == 0 && !rv_test_has_passed(&report)) /* its run had no memory, and says so */
            rc = RV_E_NOMEM;
        rv_test_report_fini(&report);
    }
    if (rc == 0)
        rc = rv_test_changes_keep(changes, &err);
    rv_test_changes_free(changes);
    rv_app_loaded_fini(&l);
    rv_err_free(err);
    return rc;
}

START_TEST(any_allocation_of_changed_tests_may_fail)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "p.yaml"), *script_path = rv_kit_path(dir, "s.yaml"),
         *prompt_path = rv_kit_path(dir, "q.md"), *state = rv_kit_path(dir, "state");
    size_t n;

    ck_assert_int_eq(setenv("XDG_STATE_HOME", state, 1), 0);
    rv_kit_write(path, tested);
    rv_kit_write(script_path, script);
    rv_kit_write(prompt_path, "Say something.");
    ck_assert_int_eq(run_changed(path), 0);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(run_changed(path), 0); /* nothing runs: what passed is known */
    rv_fault_disarm();
    const size_t n_known = rv_fault_count();
    rv_kit_write(prompt_path, "Say something else."); /* and both run again */
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(run_changed(path), 0);
    rv_fault_disarm();
    ck_assert(rv_fault_count() > n_known || !rv_fault_works());
    const size_t step = rv_kit_step(rv_fault_count() / 160 + 1);
    for (n = rv_kit_first(step);; n += step) {
        char text[64];
        snprintf(text, sizeof text, "Say %zu.", n);
        rv_kit_write(prompt_path, text);
        rv_fault_arm(n);
        int rc = run_changed(path);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %d", n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
    }
    ck_assert(n > 100 || !rv_fault_works());
    free(path);
    free(script_path);
    free(prompt_path);
    free(state);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_app");
    TCase *tc = tcase_create("app");

    tcase_add_test(tc, any_allocation_may_fail);
    tcase_add_test(tc, any_allocation_of_what_quotas_do_may_fail);
    tcase_add_test(tc, any_allocation_of_a_look_may_fail);
    tcase_add_test(tc, any_allocation_of_changed_tests_may_fail);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}

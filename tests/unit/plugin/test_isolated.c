/* `isolation: process`: nobody who looks at a capability from the engine's side can tell where its code runs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/kit/kit.h"
#include "tests/unit/plugin/suites.h"

START_TEST(a_faulty_plugin_is_refused_for_the_same_reason_in_a_process_of_its_own)
{
    const struct load_fault *fault = &load_faults[_i];
    rv_plugins *p = new_set(NULL);
    rv_err *err = NULL;
    size_t n = 0;

    ck_assert_int_eq(load_isolated(p, fault->name, NULL, &err), fault->rc);
    ck_assert_msg(strstr(error_text(err), fault->says) != NULL, "\"%s\" is not in: %s", fault->says, error_text(err));
    ck_assert_ptr_nonnull(strstr(error_text(err), "qa.yaml:3:5"));
    rv_err_free(err);
    rv_plugins_names(p).list(p, RV_NAME_TOOL, &n);
    ck_assert_uint_eq(n, 0);
    rv_plugins_free(p);
}
END_TEST

static const char *const answers[] = {
    "good",
    "identity",
    "garbage",
    "not_object",
    "not_utf8",
    "trailing",
    "twice_a_key",
    "null_reply",
    "silent",
    "mute_failure",
    "two_replies",
    "reply_and_fail",
    "reply_then_code",
    "huge",
    "deep",
    "null_failure",
    "proper_failure",
    "odd_failure",
    "fail_returns_zero",
    "fails_twice",
    "long_failure",
    "formatted_failure",
    "context",
    "reads_cancel",
};

START_TEST(a_call_ends_to_the_letter_as_it_does_in_the_engines_process)
{
    rv_plugins *here = new_set(NULL), *there = new_set(NULL);
    const struct rv_plugin_call call = {.kind = RV_NAME_TOOL,
                                        .name = answers[_i],
                                        .args = RV_STR_LIT("{\"a\": [1, 2.50, \"\\u00e4\"]}"),
                                        .run_id = "r1",
                                        .stage = "s1",
                                        .user_id = "u1",
                                        .session_id = "x1",
                                        .idempotency_key = "k1",
                                        .context = "{\"tenant_id\": \"t1\", \"is_eval\": true}",
                                        .timeout_ms = 25000};
    rv_buf out_here = RV_BUF_INIT((size_t)16 << 20), out_there = RV_BUF_INIT((size_t)16 << 20);
    rv_err *err_here = NULL, *err_there = NULL;
    char text[16384];

    must_load(here, "answers");
    must_isolate(there, "answers");
    int rc = rv_plugins_call(here, &call, &out_here, &err_here);
    ck_assert_int_eq(rv_plugins_call(there, &call, &out_there, &err_there), rc);
    ck_assert_str_eq(rv_buf_cstr(&out_there), rv_buf_cstr(&out_here));
    ck_assert_str_eq(rv_plugin_error_type(err_there), rv_plugin_error_type(err_here));
    snprintf(text, sizeof text, "%s", error_text(err_here));
    ck_assert_str_eq(error_text(err_there), text);
    rv_err_free(err_here);
    rv_err_free(err_there);
    rv_buf_fini(&out_here);
    rv_buf_fini(&out_there);
    rv_plugins_free(here);
    rv_plugins_free(there);
}
END_TEST

static const struct {
    const char *capability, *config, *tool, *args;
} real[] = {
    {"hello", NULL, "greet", "{\"name\": \"x\"}"},
    {"hello", NULL, "greet", "{}"},
    {"files", "{\"roots\": [\".\"]}", "read_file", "{\"path\": \"LICENSE\"}"},
    {"files", "{\"roots\": [\".\"]}", "list_files", "{\"path\": \"tests/plugins\"}"},
    {"files", "{\"roots\": [\".\"]}", "read_file", "{\"path\": \"../outside\"}"},
    {"needs_config", "{\"root\": \"docs\"}", "nothing", "{}"},
};

START_TEST(a_real_capability_answers_the_same_bytes_in_both)
{
    rv_plugins *here = new_set(NULL), *there = new_set(NULL);
    rv_buf out_here = RV_BUF_INIT((size_t)16 << 20), out_there = RV_BUF_INIT((size_t)16 << 20);
    rv_buf json_here = RV_BUF_INIT(1 << 20), json_there = RV_BUF_INIT(1 << 20);
    rv_jw w_here = rv_jw_on(&json_here), w_there = rv_jw_on(&json_there);
    rv_err *err = NULL;

    int loaded = load_named(here, real[_i].capability, real[_i].config, &err);
    ck_assert_msg(loaded == 0, "%s", error_text(err));
    ck_assert_int_eq(load_isolated(there, real[_i].capability, real[_i].config, NULL), 0);
    int rc = call_entry(here, RV_NAME_TOOL, real[_i].tool, real[_i].args, &out_here, NULL);
    ck_assert_int_ne(rc, RV_E_NOT_FOUND);
    ck_assert_int_eq(call_entry(there, RV_NAME_TOOL, real[_i].tool, real[_i].args, &out_there, NULL), rc);
    ck_assert_uint_eq(out_there.len, out_here.len);
    ck_assert_str_eq(rv_buf_cstr(&out_there), rv_buf_cstr(&out_here));
    rv_plugins_write_json(here, &w_here);
    rv_plugins_write_json(there, &w_there);
    ck_assert_str_eq(rv_buf_cstr(&json_there), rv_buf_cstr(&json_here));
    rv_buf_fini(&out_here);
    rv_buf_fini(&out_there);
    rv_buf_fini(&json_here);
    rv_buf_fini(&json_there);
    rv_plugins_free(here);
    rv_plugins_free(there);
}
END_TEST

struct lines {
    char text[4096];
};

static void keep_line(void *self, enum rv_log_level level, rv_str line)
{
    struct lines *lines = self;
    size_t len = strlen(lines->text);

    (void)level;
    snprintf(lines->text + len, sizeof lines->text - len, "%.*s\n", RV_STR_ARG(line));
}

START_TEST(what_it_logs_arrives_in_the_engines_log)
{
    struct lines lines = {""};
    const struct rv_log_opts opts = {
        .level = RV_LOG_INFO, .format = RV_LOG_JSON, .fd = -1, .line = keep_line, .line_self = &lines};
    rv_log *log = rv_log_new(&opts);
    rv_plugins *p = new_set(log);
    rv_buf out = RV_BUF_INIT(4096);

    must_isolate(p, "answers");
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "logs", "{}", &out, NULL), 0);
    ck_assert_ptr_nonnull(strstr(lines.text, "look ? here"));
    ck_assert_ptr_nonnull(strstr(lines.text, "worse"));
    ck_assert_ptr_nonnull(strstr(lines.text, "\"capability\":\"answers\""));
    ck_assert_ptr_nonnull(strstr(lines.text, "\"call_id\":7"));
    rv_buf_fini(&out);
    rv_plugins_free(p);
    rv_log_free(log);
}
END_TEST

START_TEST(a_program_that_is_no_host_is_an_error)
{
    static const struct {
        const char *program, *says;
        int rc;
    } programs[] = {
        {"/nonexistent/reeve", "/nonexistent/reeve", RV_E_NOT_FOUND},
        {"/bin/false", "ended with status 1 while it was loaded", RV_E_PLUGIN},
    };
    static const char *const dirs[] = {HOSTILE_DIR};

    for (size_t i = 0; i < RV_COUNT(programs); i++) {
        const struct rv_plugins_opts opts = {dirs, 1, "tests", NULL, programs[i].program, NULL};
        rv_plugins *p = NULL;
        rv_err *err = NULL;
        ck_assert_int_eq(rv_plugins_new(&opts, &p, NULL), 0);
        ck_assert_int_eq(load_isolated(p, "good", NULL, &err), programs[i].rc);
        ck_assert_msg(strstr(error_text(err), programs[i].says) != NULL, "%s", error_text(err));
        rv_err_free(err);
        rv_plugins_free(p);
    }
}
END_TEST

#define N_THREADS 8

struct caller {
    rv_plugins *plugins;
    const char *tool, *args;
    int rounds, n_good;
};

static void *call_often(void *self)
{
    struct caller *c = self;

    for (int i = 0; i < c->rounds; i++) {
        rv_buf out = RV_BUF_INIT(4096);
        c->n_good += call_entry(c->plugins, RV_NAME_TOOL, c->tool, c->args, &out, NULL) == 0;
        rv_buf_fini(&out);
    }
    return NULL;
}

static void run_threads(rv_plugins *p, const char *tool, const char *args, int rounds)
{
    pthread_t threads[N_THREADS];
    struct caller callers[N_THREADS];

    for (int i = 0; i < N_THREADS; i++) {
        callers[i] = (struct caller){p, tool, args, rounds, 0};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(callers[i].n_good, rounds);
    }
}

START_TEST(calls_from_several_threads_overlap)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "place"), args[512];
    rv_plugins *p = new_set(NULL);

    must_isolate(p, "slow");
    must_isolate(p, "answers");
    run_threads(p, "identity", "{\"a\": 1}", 50);
    snprintf(args, sizeof args, "{\"at\": \"%s\"}", path);
    run_threads(p, "gather", args, 1); /* the first does not end before another one is there */
    rv_plugins_free(p);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

Suite *isolated_suite(void)
{
    Suite *s = suite_create("plugin isolated");
    TCase *tc = tcase_create("isolated");

    tcase_add_loop_test(tc, a_faulty_plugin_is_refused_for_the_same_reason_in_a_process_of_its_own, 0,
                        (int)n_load_faults);
    tcase_add_loop_test(tc, a_call_ends_to_the_letter_as_it_does_in_the_engines_process, 0, RV_COUNT(answers));
    tcase_add_loop_test(tc, a_real_capability_answers_the_same_bytes_in_both, 0, RV_COUNT(real));
    tcase_add_test(tc, what_it_logs_arrives_in_the_engines_log);
    tcase_add_test(tc, a_program_that_is_no_host_is_an_error);
    tcase_add_test(tc, calls_from_several_threads_overlap);
    suite_add_tcase(s, tc);
    return s;
}

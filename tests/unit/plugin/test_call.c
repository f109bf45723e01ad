/* Calls: what a plugin may say, what it may not, and what it is told. */
#include "tests/kit/kit.h"
#include "tests/unit/plugin/suites.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *tool;
    int rc;
    const char *says, *type;
} answers[] = {
    {"good", 0, " {\"ok\": true} ", NULL},
    {"identity", 0, "{\"a\": [1, 2.50]}", NULL},
    {"garbage", RV_E_PLUGIN, "not JSON", NULL},
    {"not_object", RV_E_PLUGIN, "a value of type array, not an object", NULL},
    /* Proves 11.6 */
    {"not_utf8", RV_E_PLUGIN, "not JSON", NULL},
    {"trailing", RV_E_PLUGIN, "not JSON", NULL},
    {"twice_a_key", RV_E_PLUGIN, "not JSON", NULL},
    {"null_reply", RV_E_PLUGIN, "null pointer", NULL},
    {"silent", RV_E_PLUGIN, "without an answer", NULL},
    {"mute_failure", RV_E_PLUGIN, "returned 7 without saying why", NULL},
    {"two_replies", RV_E_PLUGIN, "answered 2 times", NULL},
    {"reply_and_fail", RV_E_PLUGIN, "answered and failed", NULL},
    {"reply_then_code", RV_E_PLUGIN, "returned 3", NULL},
    {"huge", RV_E_PLUGIN, "larger than 8388608 bytes", NULL},
    {"deep", RV_E_PLUGIN, "not JSON", NULL},
    {"null_failure", RV_E_TOOL, "does not say why", "ExecutionError"},
    {"proper_failure", RV_E_TOOL, "no file \"x\"", "NotFoundError"},
    /* Proves W38/plugins: Error texts of plugins are cut, valid UTF-8, without control characters */
    {"odd_failure", RV_E_TOOL, "bad ? bytes [31m", "ExecutionError"},
    {"formatted_failure", RV_E_TOOL, "7 is not a name", "ValidationError"},
    {"fail_returns_zero", RV_E_TOOL, "too slow", "TimeoutError"},
    {"fails_twice", RV_E_TOOL, "the cause", "FirstError"},
    /* Proves W38/plugins */
    {"long_failure", RV_E_TOOL, "yyyy", "ExecutionError"},
};

/* Proves W26/plugins: Whatever a plugin returns is an answer or an error value, never a crash
 * Proves 6.3/null: No answer, a null and text that is not JSON are errors of the tool */
START_TEST(an_answer_is_passed_on_or_is_an_error_that_says_what_is_wrong)
{
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT((size_t)16 << 20);
    rv_err *err = NULL;

    must_load(p, "answers");
    rv_buf_puts(&out, "before:");
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, answers[_i].tool, "{\"a\": [1, 2.50]}", &out, &err), answers[_i].rc);
    if (answers[_i].rc == 0) {
        ck_assert_ptr_null(err);
        ck_assert_str_eq(rv_buf_cstr(&out) + strlen("before:"), answers[_i].says);
    } else {
        ck_assert_str_eq(rv_buf_cstr(&out), "before:"); /* nothing of a bad answer remains */
        ck_assert_int_eq(rv_err_code(err), answers[_i].rc);
        ck_assert_msg(strstr(error_text(err), answers[_i].says) != NULL, "%s", error_text(err));
        if (answers[_i].type)
            ck_assert_str_eq(rv_plugin_error_type(err), answers[_i].type);
        else
            ck_assert_ptr_nonnull(strstr(error_text(err), answers[_i].tool));
    }
    rv_err_free(err);
    rv_buf_clear(&out);
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "good", "{}", &out, NULL), 0);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_failure_keeps_its_type_through_a_wrap)
{
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT(4096);
    rv_err *err = NULL;
    int rc;

    must_load(p, "answers");
    rc = call_entry(p, RV_NAME_TOOL, "proper_failure", "{}", &out, &err);
    ck_assert_int_eq(RV_WRAP(&err, rc, "stage \"read\""), RV_E_TOOL);
    ck_assert_str_eq(rv_plugin_error_type(err), "NotFoundError");
    ck_assert_str_eq(rv_plugin_error_type(NULL), "ExecutionError");
    rv_err_free(err);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

/* Proves 8.1/ctx: A call carries identity, idempotency key, deadline and cancellation */
START_TEST(a_call_carries_its_context)
{
    const atomic_bool cancelled = true;
    const struct rv_plugin_call call = {.kind = RV_NAME_TOOL,
                                        .name = "context",
                                        .args = RV_STR_LIT("{}"),
                                        .run_id = "r1",
                                        .stage = "s1",
                                        .user_id = "u1",
                                        .session_id = "x1",
                                        .idempotency_key = "k1",
                                        .context = "{\"tenant_id\": \"t\\u00e41\"}",
                                        .timeout_ms = 250};
    struct rv_plugin_call bare = {.kind = RV_NAME_TOOL, .name = "context"};
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT(4096);

    must_load(p, "answers");
    ck_assert_int_eq(rv_plugins_call(p, &call, &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"name\": \"context\", \"run\": \"r1\", \"stage\": \"s1\", \"user\": \"u1\", "
                                        "\"session\": \"x1\", \"key\": \"k1\", \"timeout_ms\": 250, \"context\": "
                                        "{\"tenant_id\": \"t\\u00e41\"}}");
    rv_buf_clear(&out);
    ck_assert_int_eq(rv_plugins_call(p, &bare, &out, NULL), 0); /* what is unknown is "", never a null pointer */
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"name\": \"context\", \"run\": \"\", \"stage\": \"\", \"user\": \"\", "
                                        "\"session\": \"\", \"key\": \"\", \"timeout_ms\": 0, \"context\": {}}");
    rv_buf_clear(&out);
    bare.name = "reads_cancel";
    ck_assert_int_eq(rv_plugins_call(p, &bare, &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"cancelled\": false}");
    rv_buf_clear(&out);
    bare.cancelled = &cancelled;
    ck_assert_int_eq(rv_plugins_call(p, &bare, &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"cancelled\": true}");
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

static const struct {
    enum rv_name_kind kind;
    const char *name;
    int rc;
    const char *hint;
} names[] = {
    {RV_NAME_HOOK, "answers.identity", 0, NULL},
    {RV_NAME_HOOK, "identity", RV_E_NOT_FOUND, NULL},
    {RV_NAME_HOOK, "answers.identify", RV_E_NOT_FOUND, "answers.identity"},
    {RV_NAME_TOOL, "answers.good", RV_E_NOT_FOUND, NULL},
    {RV_NAME_TOOL, "goood", RV_E_NOT_FOUND, "good"},
    {RV_NAME_MOCK, "answers.identity", RV_E_NOT_FOUND, NULL},
    {RV_NAME_PROMPT, "answers.ask", RV_E_NOT_FOUND, NULL},
};

/* Proves 8.1, 8.1/unresolved */
START_TEST(names_are_bare_for_tools_and_qualified_for_the_rest)
{
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT(4096);
    rv_err *err = NULL;

    must_load(p, "answers");
    ck_assert_int_eq(call_entry(p, names[_i].kind, names[_i].name, "{}", &out, &err), names[_i].rc);
    if (names[_i].hint)
        ck_assert_ptr_nonnull(strstr(error_text(err), names[_i].hint));
    rv_err_free(err);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

static void hear(void *self, const struct rv_tool_progress *p)
{
    rv_buf_printf(self, "%g of %g \"%.*s\"\n", p->progress, p->total, (int)p->text.len, p->text.ptr);
}

/* Here and in a process of its own; of a hook nothing is told. */
START_TEST(a_tool_says_how_far_it_is)
{
    rv_buf heard = RV_BUF_INIT(4096), out = RV_BUF_INIT(4096);
    const struct rv_plugin_call call = {.kind = _i % 2 ? RV_NAME_HOOK : RV_NAME_TOOL,
                                        .name = _i % 2 ? "answers.far" : "far",
                                        .args = RV_STR_LIT("{}"),
                                        .on_progress = hear,
                                        .progress_self = &heard};
    rv_plugins *p = new_set(NULL);

    if (_i < 2)
        must_load(p, "answers");
    else
        must_isolate(p, "answers");
    ck_assert_int_eq(rv_plugins_call(p, &call, &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&heard), _i % 2 ? "" : "1 of 4 \"one [2J?\"\n2 of 0 \"\"\n");
    rv_buf_fini(&heard);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(an_answer_beyond_the_callers_ceiling_is_an_error)
{
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT(4);

    must_load(p, "answers");
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "good", "{}", &out, NULL), RV_E_LIMIT);
    rv_buf_fini(&out);
    rv_plugins_free(p);
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

START_TEST(what_a_plugin_logs_is_cleaned_and_says_where_it_is_from)
{
    struct lines lines = {""};
    const struct rv_log_opts opts = {
        .level = RV_LOG_INFO, .format = RV_LOG_JSON, .fd = -1, .line = keep_line, .line_self = &lines};
    rv_log *log = rv_log_new(&opts);
    rv_plugins *p = new_set(log);
    rv_buf out = RV_BUF_INIT(4096);

    must_load(p, "answers");
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

static int n_lines_with(const struct rv_kit_log *kl, const char *text)
{
    int n = 0;

    for (size_t i = 0; i < kl->n_lines; i++)
        n += strstr(kl->lines[i], text) != NULL;
    return n;
}

START_TEST(a_plugin_that_logs_in_a_loop_has_so_many_lines_a_second)
{
    struct rv_kit_log kl;

    rv_kit_log_init(&kl, RV_LOG_INFO, RV_LOG_JSON);
    rv_plugins *p = new_set(kl.log);
    rv_buf out = RV_BUF_INIT(4096);

    must_load(p, "answers");
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "floods", "{}", &out, NULL), 0);
    ck_assert_int_eq(n_lines_with(&kl, "\"again\""), 100);
    ck_assert_int_eq(n_lines_with(&kl, "left_out"), 0);
    kl.clock.us += 1000000;
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "floods", "{}", &out, NULL), 0);
    ck_assert_int_eq(n_lines_with(&kl, "\"again\""), 200);
    ck_assert_int_eq(n_lines_with(&kl, "\"capability\":\"answers\",\"lines\":150"), 1);
    rv_plugins_free(p); /* what was not told yet is told now */
    ck_assert_int_eq(n_lines_with(&kl, "\"capability\":\"answers\",\"lines\":150"), 2);
    rv_buf_fini(&out);
    rv_kit_log_fini(&kl);
}
END_TEST

Suite *call_suite(void)
{
    Suite *s = suite_create("plugin call");
    TCase *tc = tcase_create("call");

    tcase_add_loop_test(tc, a_tool_says_how_far_it_is, 0, 4);
    tcase_add_loop_test(tc, an_answer_is_passed_on_or_is_an_error_that_says_what_is_wrong, 0, RV_COUNT(answers));
    tcase_add_test(tc, a_failure_keeps_its_type_through_a_wrap);
    tcase_add_test(tc, a_call_carries_its_context);
    tcase_add_loop_test(tc, names_are_bare_for_tools_and_qualified_for_the_rest, 0, RV_COUNT(names));
    tcase_add_test(tc, an_answer_beyond_the_callers_ceiling_is_an_error);
    tcase_add_test(tc, what_a_plugin_logs_is_cleaned_and_says_where_it_is_from);
    tcase_add_test(tc, a_plugin_that_logs_in_a_loop_has_so_many_lines_a_second);
    suite_add_tcase(s, tc);
    return s;
}

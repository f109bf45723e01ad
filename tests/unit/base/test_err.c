#include "coreengine/base/base.h"
#include "tests/kit/kit.h"
#include "tests/unit/base/suites.h"

#include <stdlib.h>
#include <string.h>

/* The chain of the example in the documentation of this module. */
static rv_err *example(void)
{
    const struct rv_src src = {"qa.yaml", 14, 12};
    rv_err *err = NULL;
    int rc = RV_FAIL_AT(&err, &src, RV_E_NOT_FOUND, "unknown agent \"%s\"", "plnner");

    rv_err_set_hint(&err, "agents defined here: %s", "planner, critic");
    rc = RV_WRAP(&err, rc, "stage \"plan\"");
    rc = RV_WRAP(&err, rc, "load pipeline \"qa.yaml\"");
    ck_assert_int_eq(rc, RV_E_NOT_FOUND);
    return err;
}

static char *printed(const rv_err *err, bool debug)
{
    rv_buf b = RV_BUF_INIT(1 << 20);

    rv_err_write_text(err, debug, &b);
    return rv_buf_steal(&b, NULL);
}

START_TEST(prints_a_chain_on_one_line_with_code_place_and_hint)
{
    char *text = rv_kit_err_take(example());

    ck_assert_str_eq(
        text, "load pipeline \"qa.yaml\": stage \"plan\": unknown agent \"plnner\"  [not_found]  (qa.yaml:14:12)\n"
              "  hint: agents defined here: planner, critic\n");
    free(text);
}
END_TEST

START_TEST(debug_prints_one_line_per_link_with_its_source_line)
{
    rv_err *err = example();
    char *text = printed(err, true);
    const char *second = strchr(text, '\n');

    ck_assert_ptr_nonnull(strstr(text, "load pipeline \"qa.yaml\"  [not_found]  at "));
    ck_assert_ptr_nonnull(strstr(text, "test_err.c:"));
    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_eq(strstr(second, "\n  by: stage \"plan\"  [not_found]  at "), second);
    ck_assert_ptr_nonnull(strstr(text, "unknown agent \"plnner\"  [not_found]  (qa.yaml:14:12)  at "));
    ck_assert_ptr_nonnull(strstr(text, "hint: agents defined here: planner, critic\n"));
    free(text);
    rv_err_free(err);
}
END_TEST

START_TEST(writes_a_chain_as_json)
{
    rv_err *err = example();
    rv_buf b = RV_BUF_INIT(4096);
    rv_jw w = rv_jw_on(&b);

    rv_err_write_json(err, &w);
    ck_assert_str_eq(
        rv_buf_cstr(&b),
        "{\"code\":\"not_found\",\"message\":\"load pipeline \\\"qa.yaml\\\": stage \\\"plan\\\": unknown agent "
        "\\\"plnner\\\"\",\"place\":{\"file\":\"qa.yaml\",\"line\":14,\"col\":12},"
        "\"hint\":\"agents defined here: planner, critic\",\"causes\":["
        "{\"code\":\"not_found\",\"message\":\"stage \\\"plan\\\"\"},"
        "{\"code\":\"not_found\",\"message\":\"unknown agent \\\"plnner\\\"\","
        "\"place\":{\"file\":\"qa.yaml\",\"line\":14,\"col\":12},\"hint\":\"agents defined here: planner, critic\"}]}");
    rv_buf_fini(&b);
    rv_err_free(err);
}
END_TEST

START_TEST(is_finds_a_code_anywhere_in_the_chain)
{
    rv_err *err = NULL;

    RV_FAIL(&err, RV_E_TIMEOUT, "deadline passed");
    RV_WRAP(&err, RV_E_TOOL, "tool \"x\"");
    ck_assert_int_eq(rv_err_code(err), RV_E_TOOL);
    ck_assert(rv_err_is(err, RV_E_TIMEOUT));
    ck_assert(rv_err_is(err, RV_E_TOOL));
    ck_assert(!rv_err_is(err, RV_E_IO));
    ck_assert_str_eq(rv_err_text(rv_err_cause(err)), "deadline passed");
    ck_assert_ptr_null(rv_err_cause(rv_err_cause(err)));
    rv_err_free(err);
}
END_TEST

START_TEST(a_caller_without_interest_gets_the_code_only)
{
    ck_assert_int_eq(RV_FAIL(NULL, RV_E_IO, "x"), RV_E_IO);
    ck_assert_int_eq(RV_WRAP(NULL, RV_E_IO, "x"), RV_E_IO);
    rv_err_set_hint(NULL, "x");
    rv_err_free(NULL);
    ck_assert_int_eq(rv_err_code(NULL), 0);
    ck_assert_str_eq(rv_err_text(NULL), "");
    ck_assert_ptr_null(rv_err_hint_text(NULL));
}
END_TEST

START_TEST(a_later_hint_replaces_the_earlier_one)
{
    rv_err *err = NULL;

    RV_FAIL(&err, RV_E_INVALID, "x");
    rv_err_set_hint(&err, "one");
    rv_err_set_hint(&err, "two");
    ck_assert_str_eq(rv_err_hint_text(err), "two");
    rv_err_free(err);
}
END_TEST

START_TEST(long_text_is_cut_between_characters)
{
    rv_err *err = NULL;
    char *text = malloc(9001);
    size_t i;

    ck_assert_ptr_nonnull(text);
    for (i = 0; i < 9000; i += 3)
        memcpy(text + i, "\xE2\x82\xAC", 3);
    text[9000] = '\0';
    RV_FAIL(&err, RV_E_INVALID, "%s", text);
    ck_assert_uint_eq(strlen(rv_err_text(err)), 4095);
    ck_assert(rv_utf8_valid(rv_str_of(rv_err_text(err)), NULL));
    rv_err_free(err);
    free(text);
}
END_TEST

START_TEST(quoted_bytes_cannot_break_utf8_or_steer_a_terminal)
{
    rv_err *err = NULL;
    char *text;

    RV_FAIL(&err, RV_E_INVALID, "name \"%s\"",
            "a\xE2\x80\xAE\xE2\x81\xA9\xE2\x81\xAA\xFF\x1b[31m\xC2\x9B"
            "0m");
    ck_assert(rv_utf8_valid(rv_str_of(rv_err_text(err)), NULL));
    text = rv_kit_err_take(err);
    ck_assert_str_eq(text, "name \"a\\u202e\\u2069\xE2\x81\xAA?\\x1b[31m\\x9b0m\"  [invalid_argument]\n");
    free(text);
}
END_TEST

START_TEST(an_endless_chain_stops_growing)
{
    rv_err *err = NULL;
    const rv_err *link;
    int i, n = 0;

    for (i = 0; i < 1000; i++)
        RV_WRAP(&err, RV_E_INTERNAL, "link %d", i);
    for (link = err; link; link = rv_err_cause(link))
        n++;
    ck_assert_int_le(n, 100);
    ck_assert_str_eq(rv_err_text(err), "link 31");
    rv_err_free(err);
}
END_TEST

START_TEST(a_chain_takes_the_place_of_the_last_link)
{
    rv_err *err = NULL, *chain = NULL;
    rv_buf b = RV_BUF_INIT(4096);

    RV_IGNORE(RV_FAIL(&err, RV_E_STATE, "ask: refused"), "");
    RV_IGNORE(RV_WRAP(&err, RV_E_LIMIT, "no call is left"), "");
    RV_IGNORE(RV_FAIL(&chain, RV_E_PROVIDER, "refused"), "");
    RV_IGNORE(RV_WRAP(&chain, RV_E_PROVIDER, "ask"), "");
    rv_err_replace_last(&err, chain);
    rv_err_write_chain(err, &b);
    ck_assert_str_eq(rv_buf_cstr(&b), "no call is left: ask: refused");
    rv_err_replace_last(&err, NULL);
    ck_assert_int_eq(rv_err_code(rv_err_cause(err)), RV_E_PROVIDER);
    rv_err_free(err);
    err = chain = NULL;
    for (int i = 0; i < 100; i++)
        RV_IGNORE(RV_WRAP(&err, RV_E_INTERNAL, "link %d", i), "");
    RV_IGNORE(RV_FAIL(&chain, RV_E_PROVIDER, "refused"), "");
    RV_IGNORE(RV_WRAP(&chain, RV_E_PROVIDER, "ask"), "");
    rv_err_replace_last(&err, chain); /* would be too long */
    rv_err_replace_last(NULL, NULL);
    ck_assert(!rv_err_is(err, RV_E_PROVIDER));
    rv_err_free(err);
    rv_buf_fini(&b);
}
END_TEST

/* Proves 10/codes: Errors have codes from one list */
START_TEST(a_cause_is_passed_on_or_goes)
{
    rv_err *err = NULL, *cause = NULL;

    ck_assert_int_eq(RV_FAIL(&cause, RV_E_LIMIT, "too long"), RV_E_LIMIT);
    ck_assert_int_eq(rv_err_pass(&err, cause), RV_E_LIMIT);
    ck_assert_ptr_eq(err, cause);
    cause = rv_err_steal(&err);
    ck_assert_ptr_null(err);
    ck_assert_ptr_null(rv_err_steal(&err));
    ck_assert_ptr_null(rv_err_steal(NULL));
    ck_assert_int_eq(rv_err_pass(NULL, cause), RV_E_LIMIT); /* asan sees whether it is freed */
    ck_assert_int_eq(rv_err_pass(&err, NULL), 0);
    ck_assert_ptr_null(err);
}
END_TEST

START_TEST(every_code_has_a_text)
{
    ck_assert_str_eq(rv_code_text(0), "ok");
    ck_assert_str_eq(rv_code_text(RV_E_NOMEM), "no_memory");
    ck_assert_str_eq(rv_code_text(RV_E_INTERNAL), "internal_error");
    ck_assert_str_eq(rv_code_text(7), "internal_error");
    ck_assert_str_eq(rv_code_text(-4711), "internal_error");
}
END_TEST

TCase *err_case(void)
{
    TCase *tc = tcase_create("err");

    tcase_add_test(tc, prints_a_chain_on_one_line_with_code_place_and_hint);
    tcase_add_test(tc, debug_prints_one_line_per_link_with_its_source_line);
    tcase_add_test(tc, writes_a_chain_as_json);
    tcase_add_test(tc, is_finds_a_code_anywhere_in_the_chain);
    tcase_add_test(tc, a_caller_without_interest_gets_the_code_only);
    tcase_add_test(tc, a_later_hint_replaces_the_earlier_one);
    tcase_add_test(tc, long_text_is_cut_between_characters);
    tcase_add_test(tc, quoted_bytes_cannot_break_utf8_or_steer_a_terminal);
    tcase_add_test(tc, an_endless_chain_stops_growing);
    tcase_add_test(tc, a_cause_is_passed_on_or_goes);
    tcase_add_test(tc, a_chain_takes_the_place_of_the_last_link);
    tcase_add_test(tc, every_code_has_a_text);
    return tc;
}

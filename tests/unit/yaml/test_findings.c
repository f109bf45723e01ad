/* The list itself: order, forms, limits, safety of what is printed. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/yaml/suites.h"

START_TEST(prints_sorted_by_place_and_stable)
{
    rv_findings *f = rv_findings_new();
    const struct rv_src places[] = {{"b.yaml", 1, 1}, {"a.yaml", 10, 2}, {"a.yaml", 9, 9}, {"a.yaml", 10, 1}};
    rv_buf b = RV_BUF_INIT(1 << 16);

    for (size_t i = 0; i < RV_COUNT(places); i++)
        rv_findings_add(f, i == 2 ? RV_SEVERITY_WARNING : RV_SEVERITY_ERROR, &places[i], i == 1 ? "do it" : NULL,
                        "n%zu", i);
    rv_findings_add(f, RV_SEVERITY_CRITICAL, &places[3], NULL, "same place, later");
    rv_findings_add(f, RV_SEVERITY_ERROR, NULL, NULL, "no place");
    rv_findings_sort(f);
    rv_findings_write_text(f, false, &b);
    ck_assert_str_eq(rv_buf_cstr(&b), "error: no place\n"
                                      "a.yaml:9:9: warning: n2\n"
                                      "a.yaml:10:1: error: n3\n"
                                      "a.yaml:10:1: error: same place, later\n"
                                      "a.yaml:10:2: error: n1\n  hint: do it\n"
                                      "b.yaml:1:1: error: n0\n");
    ck_assert_uint_eq(rv_findings_n_errors(f), 5);
    rv_buf_clear(&b);
    rv_findings_write_text(f, true, &b);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "\033[31merror:\033[0m no place"));
    rv_buf_fini(&b);
    rv_findings_free(f);
}
END_TEST

/* A script of many tests is read once for each of them. */
START_TEST(keeps_what_is_found_twice_at_a_place_once)
{
    const struct rv_src place = {"a.yaml", 3, 4}, other = {"a.yaml", 3, 5}, elsewhere = {"b.yaml", 3, 4};
    rv_findings *f = rv_findings_new();

    for (int i = 0; i < 300; i++)
        rv_findings_add(f, RV_SEVERITY_ERROR, &place, "do it", "wrong");
    ck_assert_uint_eq(rv_findings_n(f), 1);
    ck_assert_uint_eq(rv_findings_n_errors(f), 1);
    rv_findings_add(f, RV_SEVERITY_ERROR, &other, "do it", "wrong");
    rv_findings_add(f, RV_SEVERITY_ERROR, &elsewhere, "do it", "wrong");
    rv_findings_add(f, RV_SEVERITY_WARNING, &place, "do it", "wrong");
    rv_findings_add(f, RV_SEVERITY_ERROR, &place, "do it", "as wrong");
    ck_assert_uint_eq(rv_findings_n(f), 5);
    rv_findings_add(f, RV_SEVERITY_ERROR, NULL, NULL, "no place"); /* may be of two places */
    rv_findings_add(f, RV_SEVERITY_ERROR, NULL, NULL, "no place");
    ck_assert_uint_eq(rv_findings_n(f), 7);
    ck_assert_uint_eq(rv_findings_n_errors(f), 6);
    rv_findings_free(f);
}
END_TEST

START_TEST(writes_json)
{
    rv_findings *f = rv_findings_new();
    rv_buf b = RV_BUF_INIT(1 << 16);
    rv_jw w = rv_jw_on(&b);

    rv_findings_add(f, RV_SEVERITY_WARNING, &(struct rv_src){"a.yaml", 3, 4}, "h", "t");
    rv_findings_write_json(f, &w);
    ck_assert_str_eq(rv_buf_cstr(&b), "[{\"severity\":\"warning\",\"file\":\"a.yaml\",\"line\":3,\"column\":4,"
                                      "\"message\":\"t\",\"hint\":\"h\"}]");
    rv_buf_fini(&b);
    rv_findings_free(f);
}
END_TEST

START_TEST(takes_errors_with_their_deepest_place_and_hint)
{
    rv_findings *f = rv_findings_new();
    const struct rv_src given = {"a.yaml", 1, 1};
    const struct rv_src own = {"a.yaml", 5, 6};
    rv_err *err = NULL;
    struct rv_finding x;

    RV_IGNORE(RV_FAIL_AT(&err, &own, RV_E_PARSE, "inner"), "it is the point");
    rv_err_set_hint(&err, "try");
    RV_IGNORE(RV_WRAP(&err, RV_E_PARSE, "outer"), "it is the point");
    rv_findings_add_err(f, RV_SEVERITY_ERROR, &given, err);
    x = rv_findings_at(f, 0);
    ck_assert_str_eq(x.text, "outer: inner");
    ck_assert_str_eq(x.hint, "try");
    ck_assert_int_eq(x.src.line, 5);
    rv_err_free(err);
    rv_findings_free(f);
}
END_TEST

START_TEST(shows_control_characters_and_broken_text_harmlessly)
{
    rv_findings *f = rv_findings_new();
    char *text = malloc(10000);

    rv_findings_add(f, RV_SEVERITY_ERROR, &(struct rv_src){"a\033.yaml", 1, 1}, "a\nb",
                    "x\033[2Jy\xffz\xc3\xa4 \xe2\x80\xae \xe2\x81\xa6 \xe2\x80\xaf");
    ck_assert_str_eq(rv_findings_at(f, 0).text, "x\\x1b[2Jy?z\xc3\xa4 \\u202e \\u2066 \xe2\x80\xaf");
    ck_assert_str_eq(rv_findings_at(f, 0).hint, "a\\nb");
    ck_assert_str_eq(rv_findings_at(f, 0).src.file, "a\\x1b.yaml");
    memset(text, 'a', 9999);
    text[9999] = 0;
    rv_findings_add(f, RV_SEVERITY_ERROR, NULL, NULL, "%s", text);
    ck_assert_uint_lt(strlen(rv_findings_at(f, 1).text), 2100);
    free(text);
    rv_findings_free(f);
}
END_TEST

START_TEST(counts_what_it_does_not_keep)
{
    rv_findings *f = rv_findings_new();
    rv_buf b = RV_BUF_INIT(1 << 16);

    for (int i = 0; i < RV_FINDINGS_MAX + 3; i++)
        rv_findings_add(f, RV_SEVERITY_ERROR, NULL, NULL, "x");
    ck_assert_uint_eq(rv_findings_n(f), RV_FINDINGS_MAX);
    ck_assert_uint_eq(rv_findings_n_errors(f), RV_FINDINGS_MAX + 3);
    ck_assert_int_eq(rv_findings_check(f, NULL), 0);
    rv_findings_write_text(f, false, &b);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "3 further findings are not shown\n"));
    rv_buf_fini(&b);
    rv_findings_free(f);
}
END_TEST

TCase *findings_case(void)
{
    TCase *tc = tcase_create("findings");

    tcase_add_test(tc, prints_sorted_by_place_and_stable);
    tcase_add_test(tc, keeps_what_is_found_twice_at_a_place_once);
    tcase_add_test(tc, writes_json);
    tcase_add_test(tc, takes_errors_with_their_deepest_place_and_hint);
    tcase_add_test(tc, shows_control_characters_and_broken_text_harmlessly);
    tcase_add_test(tc, counts_what_it_does_not_keep);
    return tc;
}

/* The text of a query: which keys it asks for, and what is said of one that asks for nothing (p8-data 8). */
#include <string.h>

#include "coreengine/app/query.h"
#include "tests/kit/kit.h"
#include "tests/unit/cli/suites.h"

static const struct {
    const char *text, *keys; /* with '|' between */
} good[] = {
    {"LOOKUP a", "a"},
    {"lookup a", "a"},
    {" \t LookUp  a \n", "a"},
    {"REM LOOKUP session-1-msg-2", "session-1-msg-2"},
    {"rem lookup a", "a"},
    {"LOOKUP a,b", "a|b"},
    {"LOOKUP a , b ,, c,", "a|b|c"},
    {"LOOKUP Sarah   Chen, b", "Sarah Chen|b"},
    {"LOOKUP \"a, b\", c", "a, b|c"},
    {"LOOKUP 'a, b'", "a, b"},
    {"LOOKUP what's new", "what's new"}, /* a quote opens only where a word begins */
    {"LOOKUP \"say \\\"x\\\" \\\\ \\n\"", "say \"x\" \\ \\n"},
    {"LOOKUP 'a\\'", "a\\"}, /* nothing is escaped in single quotes */
    {"LOOKUP \"a\"b", "ab"},
    {"LOOKUP LOOKUP", "LOOKUP"},
    {"LOOKUP a LIMIT 5", "a LIMIT 5"},
    {"LOOKUP Z\xc3\xbcrich", "Z\xc3\xbcrich"},
};

/* Proves p8.20/query */
START_TEST(keys_are_what_stands_between_commas)
{
    rv_buf keys = RV_BUF_INIT(1 << 16);
    struct rv_query q;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_query_parse(rv_str_of(good[_i].text), &q, &err), 0);
    for (size_t i = 0; i < q.n_keys; i++)
        rv_buf_printf(&keys, "%s%s", i ? "|" : "", rv_buf_cstr(&q.keys[i]));
    ck_assert_str_eq(rv_buf_cstr(&keys), good[_i].keys);
    rv_buf_fini(&keys);
    rv_query_fini(&q);
}
END_TEST

static const struct {
    const char *text, *says;
} bad[] = {
    {"", "the query is empty"},
    {"  ", "the query is empty"},
    {"REM", "the query is empty"},
    {"LOOKUP", "LOOKUP requires at least one key"},
    {"LOOKUP ,", "LOOKUP requires at least one key"},
    {"LOOKUP \"\"", "LOOKUP requires at least one key"},
    {"LOOKUP \"a", "is not closed"},
    {"LOOKUP b, 'a", "is not closed"},
    {"SEARCH a", "SEARCH is not available yet"},
    {"fuzzy a", "FUZZY is not available yet"},
    {"Traverse a", "TRAVERSE is not available yet"},
    {"SQL SELECT 1", "SQL is not available yet"},
    {"LOOKUPS a", "unknown mode \"LOOKUPS\""},
    {"\"LOOKUP\" a", "unknown mode"},
    {"LOOKUP \xff", "not valid UTF-8"},
};

START_TEST(what_can_not_be_asked_is_said)
{
    struct rv_query q;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_query_parse(rv_str_of(bad[_i].text), &q, &err), RV_E_INVALID);
    ck_assert_msg(strstr(rv_err_text(err), bad[_i].says) != NULL, "%s", rv_err_text(err));
    rv_err_free(err);
}
END_TEST

START_TEST(keys_are_counted_and_capped)
{
    rv_buf many = RV_BUF_INIT(1 << 20), one = RV_BUF_INIT(1 << 20);
    struct rv_query q;
    rv_err *err = NULL;

    rv_buf_puts(&many, "LOOKUP ");
    for (int i = 0; i < RV_QUERY_MAX_KEYS; i++)
        rv_buf_puts(&many, "k,");
    ck_assert_int_eq(rv_query_parse(rv_buf_str(&many), &q, &err), 0);
    ck_assert_uint_eq(q.n_keys, RV_QUERY_MAX_KEYS);
    rv_query_fini(&q);
    rv_buf_puts(&many, "k");
    ck_assert_int_eq(rv_query_parse(rv_buf_str(&many), &q, &err), RV_E_LIMIT);
    rv_err_free(err);
    err = NULL;
    rv_buf_puts(&one, "LOOKUP ");
    for (int i = 0; i < 100000; i++)
        rv_buf_putc(&one, 'k');
    ck_assert_int_eq(rv_query_parse(rv_buf_str(&one), &q, &err), RV_E_LIMIT);
    rv_err_free(err);
    rv_buf_fini(&many);
    rv_buf_fini(&one);
}
END_TEST

Suite *query_text_suite(void)
{
    Suite *s = suite_create("query text");
    TCase *tc = tcase_create("keys");

    tcase_add_loop_test(tc, keys_are_what_stands_between_commas, 0, RV_COUNT(good));
    tcase_add_loop_test(tc, what_can_not_be_asked_is_said, 0, RV_COUNT(bad));
    tcase_add_test(tc, keys_are_counted_and_capped);
    suite_add_tcase(s, tc);
    return s;
}

/* The object in a model's reply (rule 5.6, W30): what is found and what is refused. `tests/bench/growth` counts what
 * hostile text costs. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/agent/agent.h"
#include "tests/kit/kit.h"
#include "tests/unit/agent/suites.h"

static const struct {
    const char *text, *required, *want; /* want NULL: refused with `error` in the text */
    const char *error;
} cases[] = {
    /* the whole text */
    {"{\"a\":1}", NULL, "{\"a\":1}", NULL},
    {" \r\n\t{\"a\":1}\n ", NULL, "{\"a\":1}", NULL},
    {"\xEF\xBB\xBF {\"a\":1}", NULL, "{\"a\":1}", NULL},
    {"{}", NULL, "{}", NULL},
    {"{}", "a", "{}", NULL}, /* whether fields are missing is rule 5.7's question */
    {"", NULL, NULL, "empty"},
    {"\xEF\xBB\xBF", NULL, NULL, "empty"},
    {"  \n ", NULL, NULL, "empty"},
    {"null", NULL, NULL, "not an object"},
    {"true", NULL, NULL, "not an object"},
    {"12", NULL, NULL, "not an object"},
    {"\"{\\\"a\\\":1}\"", NULL, NULL, "not an object"},
    {"[{\"a\":1}]", NULL, NULL, "not an object"},
    {"[]", NULL, NULL, "not an object"},
    /* prose and fences */
    {"no braces at all", NULL, NULL, "no JSON object"},
    {"Sure! {\"a\":1} Hope it helps.", NULL, "{\"a\":1}", NULL},
    {"```json\n{\"a\":1}\n```", NULL, "{\"a\":1}", NULL},
    {"```\n{\"a\":{\"b\":[1,2]}}\n```\ntext", NULL, "{\"a\":{\"b\":[1,2]}}", NULL},
    {"} {\"a\":1}", NULL, "{\"a\":1}", NULL},
    {"}}}{{{ {word} {\"a\":1} }{", NULL, "{\"a\":1}", NULL},
    {"use {name} and { name : x } then {\"a\":1}", NULL, "{\"a\":1}", NULL},
    {"{'a':1} {\"a\":2}", NULL, "{\"a\":2}", NULL},
    {"{{\"a\":1}}", NULL, "{\"a\":1}", NULL},
    {"{\"quoted\"} {\"a\":1}", NULL, "{\"a\":1}", NULL},
    {"{\"quoted {\"a\":1}", NULL, "{\"a\":1}", NULL},
    {"[1,2] {\"a\":1}", NULL, "{\"a\":1}", NULL},
    {"answer: [{\"a\":1},{\"a\":2}]", NULL, "{\"a\":1}", NULL},
    {"null {\"a\":1}", NULL, "{\"a\":1}", NULL},
    /* braces and quotes inside strings */
    {"x {\"a\":\"}\"} y", NULL, "{\"a\":\"}\"}", NULL},
    {"x {\"a\":\"{\",\"b\":\"\\\"}\"} y", NULL, "{\"a\":\"{\",\"b\":\"\\\"}\"}", NULL},
    {"x {\"a\":\"\\\\\"} y", NULL, "{\"a\":\"\\\\\"}", NULL},
    /* drafts and required fields */
    {"draft {\"x\":1} final {\"answer\":2}", NULL, "{\"x\":1}", NULL},
    {"draft {\"x\":1} final {\"answer\":2}", "answer", "{\"answer\":2}", NULL},
    {"{\"x\":1}{\"answer\":2}{\"answer\":3}", "answer", "{\"answer\":2}", NULL},
    {"{\"x\":1} {\"y\":2}", "answer", "{\"x\":1}", NULL},
    {"{\"answer\":null} {\"answer\":2}", "answer", "{\"answer\":null}", NULL},
    {"{\"in\":{\"answer\":1}} {\"answer\":2}", "answer", "{\"answer\":2}", NULL},
    /* meant as an object, but broken: skipped as a whole */
    {"{\"a\":1,} {\"b\":2}", NULL, "{\"b\":2}", NULL},
    {"{\"a\":{\"in\":1}, oops} {\"b\":2}", NULL, "{\"b\":2}", NULL},
    {"{\"a\":tru, \"in\":{\"x\":1}}", NULL, NULL, "is broken: line 1, column 9: expected \"true\", found ','"},
    {"{\"a\":\"}\" oops {\"in\":1}} {\"b\":2}", NULL, "{\"b\":2}", NULL},
    {"{\"a\":oops {\"in\":1}", NULL, NULL, "is broken: line 1, column 6: expected a value, found 'o'"},
    {"{\"ok\":1} {\"a\":oops {\"in\":1}", NULL, "{\"ok\":1}", NULL},
    {"{\"a\":01} {\"b\":2}", NULL, "{\"b\":2}", NULL},
    {"{\"a\":NaN} {\"b\":2}", NULL, "{\"b\":2}", NULL},
    /* the place is that of the whole reply, in characters; what looks like an object goes before braces of prose */
    {" \n\xC3\xA9 {name}: {\"a\":1,}\n", NULL, NULL,
     "is broken: line 2, column 18: expected a key in double quotes, found '}'"},
    {"use {name}", NULL, NULL, "is broken: line 1, column 6: expected a key in double quotes, found 'n'"},
    {"{'a':1}", NULL, NULL, "is broken: line 1, column 2: expected a key in double quotes, found a single quote"},
    {"{\"a\":1,} {\"b\":oops}", NULL, NULL, "is broken: line 1, column 8: "},
    /* cut off */
    {"{\"a\":1", NULL, NULL,
     "truncated inside an object: line 1, column 7: expected ',' or '}', found the end of the text"},
    {"{", NULL, NULL, "truncated"},
    {"text {\"a", NULL, NULL, "truncated"},
    {"text {\"a\":{\"b\":[1,", NULL, NULL, "truncated"},
    {"{\"a\":{\"in\":1}", NULL, NULL, "truncated"},
    {"{\"ok\":1} and {\"a\":{\"in\":1}", NULL, "{\"ok\":1}", NULL},
    {"{\"x\":1} and {\"answer\":2", "answer", "{\"x\":1}", NULL},
    /* values */
    {"{\"a\":1,\"a\":2}", NULL, "{\"a\":2}", NULL},
    {"{\"n\":9223372036854775807}", NULL, "{\"n\":9223372036854775807}", NULL},
    {"{\"n\":-9223372036854775808}", NULL, "{\"n\":-9223372036854775808}", NULL},
    {"{\"n\":1.0,\"i\":1}", NULL, "{\"n\":1.0,\"i\":1}", NULL},
    {"x {\"a\":\"\\ud83d\\ude00\"} y", NULL, "{\"a\":\"\xF0\x9F\x98\x80\"}", NULL},
    {"{\"a\":\"\xff\"} {\"b\":1}", NULL, "{\"b\":1}", NULL},
    {"\xff\xfe {\"b\":1}", NULL, "{\"b\":1}", NULL},
    {"{\"a\":\"\\ud83d\"} {\"b\":1}", NULL, "{\"b\":1}", NULL},
};

/* Proves 5.6/whole: A reply that is one JSON value is the answer if it is an object, else an error
 * Proves 5.6/scan: Otherwise the first complete object counts that has all required fields, else the first; fences,
 * prose, stray braces and braces in strings do no harm
 * Proves 5.6/broken: A broken object is passed over as a whole, and a reply that was cut off says so
 * Proves W30: Finding objects in replies understands strings, drafts, arrays, null, cut replies and large integers
 * Proves 11.3 */
START_TEST(finds_what_the_reply_means)
{
    const char *required[] = {cases[_i].required};
    json_object *found = NULL;
    rv_err *err = NULL;
    int rc = rv_extract_object(rv_str_of(cases[_i].text), required, cases[_i].required ? 1 : 0, RV_RULES_NEWEST, &found,
                               &err);

    if (cases[_i].want) {
        ck_assert_msg(rc == 0, "%s: %s", cases[_i].text, rv_err_text(err));
        char *text = rv_kit_text(found);
        ck_assert_str_eq(text, cases[_i].want);
        free(text);
        json_object_put(found);
    } else {
        ck_assert_msg(rc == RV_E_PARSE, "%s: %d", cases[_i].text, rc);
        ck_assert_msg(strstr(rv_err_text(err), cases[_i].error) != NULL, "%s: %s", cases[_i].text, rv_err_text(err));
        ck_assert_msg(strstr(rv_err_text(err), "no JSON object") != NULL, "%s", rv_err_text(err));
        ck_assert_ptr_null(found);
        rv_err_free(err);
    }
}
END_TEST

/* Proves 5.6/limits, W30 */
START_TEST(a_number_too_large_for_64_bits_becomes_a_double)
{
    json_object *found = NULL, *n;

    ck_assert_int_eq(rv_extract_object(RV_STR_LIT("x {\"n\":123456789012345678901234567890}"), NULL, 0, RV_RULES_NEWEST,
                                       &found, NULL),
                     0);
    n = json_object_object_get(found, "n");
    ck_assert(json_object_is_type(n, json_type_double));
    ck_assert_double_eq(json_object_get_double(n), 123456789012345678901234567890.0);
    json_object_put(found);
}
END_TEST

static char *nested(size_t depth, const char *before)
{
    rv_buf b = RV_BUF_INIT((size_t)1 << 24);

    rv_buf_puts(&b, before);
    for (size_t i = 0; i < depth; i++)
        rv_buf_puts(&b, "{\"k\":");
    rv_buf_puts(&b, "1");
    for (size_t i = 0; i < depth; i++)
        rv_buf_puts(&b, "}");
    return rv_buf_steal(&b, NULL);
}

/* Proves 5.6/limits: Nesting ends at 256, text at 8 MiB; the last of equal keys wins; integers keep 64 bits, larger
 * ones become doubles; the time grows with the length */
START_TEST(nesting_of_256_is_read_and_257_is_a_syntax_error)
{
    static const char *const before[] = {"", "text "};

    for (size_t i = 0; i < 2; i++) {
        char *ok = nested(256, before[i]), *deep = nested(257, before[i]);
        json_object *found = NULL;
        ck_assert_int_eq(rv_extract_object(rv_str_of(ok), NULL, 0, RV_RULES_NEWEST, &found, NULL), 0);
        json_object_put(found);
        found = NULL;
        /* the outermost had a key: it is skipped as a whole, its inner objects are never used */
        rv_err *err = NULL;
        ck_assert_int_eq(rv_extract_object(rv_str_of(deep), NULL, 0, RV_RULES_NEWEST, &found, &err), RV_E_PARSE);
        ck_assert_ptr_null(found);
        ck_assert_msg(strstr(rv_err_text(err), "nesting is too deep (read are 256 levels") != NULL, "%s",
                      rv_err_text(err));
        rv_err_free(err);
        free(ok);
        free(deep);
    }
}
END_TEST

/* Proves 5.6/limits */
START_TEST(text_above_8_mib_is_refused)
{
    size_t n = RV_JSON_MAX_BYTES + 1;
    char *text = malloc(n);
    json_object *found = NULL;

    memset(text, ' ', n);
    memcpy(text, "{}", 2);
    ck_assert_int_eq(rv_extract_object((rv_str){text, n}, NULL, 0, RV_RULES_NEWEST, &found, NULL), RV_E_LIMIT);
    ck_assert_int_eq(rv_extract_object((rv_str){text, n - 1}, NULL, 0, RV_RULES_NEWEST, &found, NULL), 0);
    json_object_put(found);
    free(text);
}
END_TEST

/* The event of a failure, and so the journal, has its text: runs of older rules keep the text that they had. */
START_TEST(runs_of_older_rules_keep_the_text_of_the_failure)
{
    static const char *const replies[][2] = {
        {"{\"a\":1,}", "no JSON object found in the model reply"},
        {"{\"a\":1", "no JSON object found: the model reply is truncated inside an object"},
    };

    for (size_t i = 0; i < RV_COUNT(replies); i++) {
        json_object *found = NULL;
        rv_err *old = NULL, *now = NULL;
        ck_assert_int_eq(rv_extract_object(rv_str_of(replies[i][0]), NULL, 0, RV_RULES_7, &found, &old), RV_E_PARSE);
        ck_assert_int_eq(rv_extract_object(rv_str_of(replies[i][0]), NULL, 0, RV_RULES_8, &found, &now), RV_E_PARSE);
        ck_assert_str_eq(rv_err_text(old), replies[i][1]);
        ck_assert_str_ne(rv_err_text(now), replies[i][1]);
        rv_err_free(old);
        rv_err_free(now);
    }
}
END_TEST

TCase *extract_case(void)
{
    TCase *tc = tcase_create("extract");

    tcase_add_loop_test(tc, finds_what_the_reply_means, 0, RV_COUNT(cases));
    tcase_add_test(tc, a_number_too_large_for_64_bits_becomes_a_double);
    tcase_add_test(tc, nesting_of_256_is_read_and_257_is_a_syntax_error);
    tcase_add_test(tc, text_above_8_mib_is_refused);
    tcase_add_test(tc, runs_of_older_rules_keep_the_text_of_the_failure);
    return tc;
}

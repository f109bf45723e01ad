/* The functions of the header of plugins that read and write JSON. fuzz_sdk compares them with the engine's parser. */
#include <locale.h>
#include <math.h>
#include <string.h>

#include "capabilities/sdk/capability.h"
#include "tests/kit/suites.h"

static const char text[] = "{\"envelope\": {\"raw_input\": \"hi\", \"a.b\": 1}, \"hits\": [{\"name\": \"x\"}, [7, 8]], "
                           "\"\": {\"\\u0061\": true}, \"none\": null, \"raw_input\": \"outer\"}";

static const struct {
    const char *path, *value; /* NULL: absent */
} paths[] = {
    {"", text},
    {"envelope.raw_input", "\"hi\""},
    {"raw_input", "\"outer\""}, /* not the one inside */
    {"hits.0.name", "\"x\""},
    {"hits.1.1", "8"},
    {"hits.2", NULL},
    {"hits.00", NULL},
    {"hits.-1", NULL},
    {"hits.name", NULL},
    {"none", "null"},
    {"none.x", NULL},
    {"envelope.raw_input.0", NULL},
    {".a", "true"}, /* an empty name, and a name that is written with an escape */
    {"envelope.a.b", NULL},
    {"env", NULL},
    {"envelopes", NULL},
};

START_TEST(get_finds_the_value_at_a_path)
{
    const char *value = rv_cap_get(text, paths[_i].path);

    ck_assert_int_eq(value != NULL, paths[_i].value != NULL);
    if (value)
        ck_assert_mem_eq(value, paths[_i].value, strlen(paths[_i].value));
    ck_assert_ptr_null(rv_cap_get(NULL, "a"));
}
END_TEST

static const struct {
    const char *json;
    size_t size;
    long rc;
    const char *want;
} texts[] = {
    {"\"abc\"", 4, 3, "abc"},
    {"\"abc\"", 3, -1, ""}, /* never cut */
    {"\"abc\"", 0, -1, NULL},
    {"\"\"", 1, 0, ""},
    {" \"a\"", 8, 1, "a"},
    {"\"\\u00e9\\ud83d\\ude00\\n\\/\"", 16, 8, "\xc3\xa9\xf0\x9f\x98\x80\n/"},
    {"\"\\u20ac\"", 8, 3, "\xe2\x82\xac"},
    {"\"a\\u0000b\"", 8, -1, ""},
    {"\"\\ud83d\"", 8, -1, ""},
    {"\"\\ude00\"", 8, -1, ""},
    {"\"\\ud83dx\"", 8, -1, ""},
    {"\"\\u12g4\"", 8, -1, ""},
    {"\"\\x\"", 8, -1, ""},
    {"\"a", 8, -1, ""},
    {"\"a\\", 8, -1, ""},
    {"7", 8, -1, ""},
    {NULL, 8, -1, ""},
};

START_TEST(str_gives_a_whole_text_or_none)
{
    char out[32] = "unset";

    ck_assert_int_eq(rv_cap_str(texts[_i].json, out, texts[_i].size), texts[_i].rc);
    if (texts[_i].want)
        ck_assert_str_eq(out, texts[_i].want);
    else
        ck_assert_str_eq(out, "unset");
    char *copy = rv_cap_strdup(texts[_i].json);
    if (texts[_i].rc >= 0)
        ck_assert_str_eq(copy, texts[_i].want);
    free(copy);
}
END_TEST

static const struct {
    const char *json;
    int rc;
    int64_t want;
} whole[] = {
    {"0", 0, 0},
    {"-0", 0, 0},
    {"9223372036854775807", 0, INT64_MAX},
    {"-9223372036854775808", 0, INT64_MIN},
    {"9223372036854775808", -1, 0},
    {"-9223372036854775809", -1, 0},
    {"1.0", 0, 1},
    {"-2e3", 0, -2000},
    {"1.5", -1, 0},
    {"1e300", -1, 0},
    {"\"1\"", -1, 0},
    {"true", -1, 0},
    {NULL, -1, 0},
};

START_TEST(int_gives_a_whole_number_or_none)
{
    int64_t n = 4711;

    ck_assert_int_eq(rv_cap_int(whole[_i].json, &n), whole[_i].rc);
    ck_assert_int_eq(n, whole[_i].rc == 0 ? whole[_i].want : 4711);
}
END_TEST

START_TEST(num_and_bool_look_at_the_type)
{
    double number = 7;
    int yes = 7;

    ck_assert_int_eq(rv_cap_num("-1.25e1", &number), 0);
    ck_assert_double_eq(number, -12.5);
    ck_assert_int_eq(rv_cap_num("12abc", &number), -1);
    ck_assert_int_eq(rv_cap_num("\"1\"", &number), -1);
    ck_assert_double_eq(number, -12.5);
    ck_assert_int_eq(rv_cap_bool(" false", &yes), 0);
    ck_assert_int_eq(yes, 0);
    ck_assert_int_eq(rv_cap_bool("true", &yes), 0);
    ck_assert_int_eq(yes, 1);
    ck_assert_int_eq(rv_cap_bool("0", &yes), -1);
    ck_assert_int_eq(yes, 1);
    ck_assert_int_eq(rv_cap_type("{}"), '{');
    ck_assert_int_eq(rv_cap_type("}"), 0);
    ck_assert_int_eq(rv_cap_type(NULL), 0);
}
END_TEST

START_TEST(each_tells_keys_and_indexes)
{
    struct rv_cap_iter i = rv_cap_each("{\"a\": [1], \"b\\n\": {}}");
    char key[8];

    ck_assert_int_eq(rv_cap_next(&i), 1);
    ck_assert_int_eq(rv_cap_str(i.key, key, sizeof key), 1);
    ck_assert_uint_eq(rv_cap_size(i.value), 3);
    ck_assert_int_eq(rv_cap_next(&i), 1);
    ck_assert_int_eq(rv_cap_str(i.key, key, sizeof key), 2);
    ck_assert_uint_eq(i.index, 1);
    ck_assert_int_eq(rv_cap_next(&i), 0);
    ck_assert_int_eq(rv_cap_next(&i), 0);
    i = rv_cap_each("7");
    ck_assert_int_eq(rv_cap_next(&i), 0);
    i = rv_cap_each(NULL);
    ck_assert_int_eq(rv_cap_next(&i), 0);
}
END_TEST

START_TEST(what_is_written_is_escaped_and_closed)
{
    struct rv_cap_out out = RV_CAP_OUT;
    char wide[400];

    memset(wide, 'w', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    rv_cap_put_str(&out, "a\"", "x\"\\\n\x01\xc3\xa9");
    rv_cap_put_str(&out, "none", NULL);
    rv_cap_begin(&out, "list", '[');
    rv_cap_put_int(&out, NULL, INT64_MIN);
    rv_cap_put_num(&out, NULL, 0.1);
    rv_cap_put_bool(&out, NULL, 1);
    rv_cap_begin(&out, NULL, '{');
    rv_cap_end(&out);
    rv_cap_put_json(&out, NULL, "{\"k\": 1}, behind");
    rv_cap_end(&out);
    rv_cap_put_strf(&out, "f", "%d%%", 5);
    rv_cap_begin(&out, "open", '[');
    ck_assert_str_eq(rv_cap_text(&out), "{\"a\\\"\":\"x\\\"\\\\\\n\\u0001\xc3\xa9\",\"none\":null,\"list\":["
                                        "-9223372036854775808,0.10000000000000001,true,{},{\"k\": 1}],\"f\":\"5%\","
                                        "\"open\":[]}");
    rv_cap_out_fini(&out);
    ck_assert_str_eq(rv_cap_text(&out), "{}");
    rv_cap_out_fini(&out);
    rv_cap_put_strf(&out, "wide", "%s", wide);
    ck_assert_uint_eq(strlen(rv_cap_text(&out)), strlen(wide) + strlen("{\"wide\":\"\"}"));
    rv_cap_out_fini(&out);
}
END_TEST

/* Each mistake is kept, and nothing that follows hides it. */
static void item_with_key(struct rv_cap_out *out)
{
    rv_cap_begin(out, "l", '[');
    rv_cap_put_int(out, "k", 1);
}

static void member_without_key(struct rv_cap_out *out)
{
    rv_cap_put_int(out, NULL, 1);
}

static void too_many_ends(struct rv_cap_out *out)
{
    rv_cap_put_int(out, "a", 1);
    rv_cap_end(out);
    rv_cap_end(out);
}

static void after_the_end(struct rv_cap_out *out)
{
    rv_cap_end(out);
    rv_cap_put_int(out, "a", 1);
}

static void not_json(struct rv_cap_out *out)
{
    rv_cap_put_json(out, "a", "}");
}

static void infinite(struct rv_cap_out *out)
{
    rv_cap_put_num(out, "a", (double)INFINITY);
}

static void not_a_number(struct rv_cap_out *out)
{
    rv_cap_put_num(out, "a", -(double)NAN);
}

static void too_deep(struct rv_cap_out *out)
{
    for (int i = 0; i < 64; i++)
        rv_cap_begin(out, "a", '{');
}

static const struct {
    void (*write)(struct rv_cap_out *out);
    const char *says;
} mistakes[] = {
    {item_with_key, "an item of a list has a key"},
    {member_without_key, "a member of an object has no key"},
    {too_many_ends, "more is ended than was begun"},
    {after_the_end, "a value comes after the end"},
    {not_json, "a value is not JSON"},
    {infinite, "a number is not finite"},
    {not_a_number, "a number is not finite"},
    {too_deep, "the answer has more than 64 levels"},
};

START_TEST(a_mistake_is_kept)
{
    struct rv_cap_out out = RV_CAP_OUT;

    mistakes[_i].write(&out);
    rv_cap_put_str(&out, "more", "x");
    rv_cap_end(&out);
    ck_assert_ptr_null(rv_cap_text(&out));
    ck_assert_str_eq(out.failed, mistakes[_i].says);
    rv_cap_out_fini(&out);
}
END_TEST

/* Numbers are those of JSON, however the locale writes them. uselocale() gives this thread a comma, where the machine
 * has such a locale. */
START_TEST(an_answer_has_a_bound)
{
    struct rv_cap_out out = RV_CAP_OUT;

    rv_cap_begin(&out, "items", '[');
    for (int i = 0; i < 1000000 && !out.failed; i++)
        rv_cap_put_str(&out, NULL, "some text of a loop that does not end");
    ck_assert_ptr_null(rv_cap_text(&out));
    ck_assert_str_eq(out.failed, "the answer is too large");
    ck_assert_uint_le(out.len, RV_CAP_MAX_TEXT);
    rv_cap_out_fini(&out);
}
END_TEST

START_TEST(a_locale_changes_no_number)
{
    static const char *const names[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"};
    struct rv_cap_out out = RV_CAP_OUT;
    double number = 0;

    if (!setlocale(LC_NUMERIC, names[_i]))
        return;
    ck_assert_int_eq(rv_cap_num("1.5", &number), 0);
    ck_assert_double_eq(number, 1.5);
    rv_cap_put_num(&out, "n", 1.5);
    ck_assert_str_eq(rv_cap_text(&out), "{\"n\":1.5}");
    rv_cap_out_fini(&out);
    setlocale(LC_NUMERIC, "C");
}
END_TEST

static Suite *json_suite(void)
{
    Suite *s = suite_create("json");
    TCase *tc = tcase_create("json");

    tcase_add_loop_test(tc, get_finds_the_value_at_a_path, 0, RV_COUNT(paths));
    tcase_add_loop_test(tc, str_gives_a_whole_text_or_none, 0, RV_COUNT(texts));
    tcase_add_loop_test(tc, int_gives_a_whole_number_or_none, 0, RV_COUNT(whole));
    tcase_add_test(tc, num_and_bool_look_at_the_type);
    tcase_add_test(tc, each_tells_keys_and_indexes);
    tcase_add_test(tc, what_is_written_is_escaped_and_closed);
    tcase_add_test(tc, an_answer_has_a_bound);
    tcase_add_loop_test(tc, a_mistake_is_kept, 0, RV_COUNT(mistakes));
    tcase_add_loop_test(tc, a_locale_changes_no_number, 0, 5);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return rv_kit_run(json_suite());
}

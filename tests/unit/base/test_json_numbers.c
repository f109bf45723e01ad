/* One rule for numbers: what was written is read as the same number, and written again as the same text. */
#include "coreengine/base/base.h"
#include "tests/kit/kit.h"
#include "tests/unit/base/suites.h"

#include <json-c/json_object.h>
#include <stdlib.h>
#include <string.h>

enum is { INT, UINT, DOUBLE };

#define NINES "999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999"

static const struct {
    const char *text, *again; /* again NULL: the same text */
    enum is is;
} numbers[] = {
    {"0", NULL, INT},
    {"-0", "0", INT},
    {"9007199254740993", NULL, INT}, /* 2^53+1 */
    {"9223372036854775807", NULL, INT},
    {"-9223372036854775808", NULL, INT},
    {"9223372036854775808", NULL, UINT},
    {"18446744073709551615", NULL, UINT},
    {"-9223372036854775809", NULL, DOUBLE},
    {"18446744073709551616", NULL, DOUBLE},
    {"123456789012345678901234567890", NULL, DOUBLE},
    {"1" NINES NINES NINES, NULL, DOUBLE},              /* 298 digits */
    {"1" NINES NINES NINES "0000000000", NULL, DOUBLE}, /* 308 digits */
    {"-0.0", NULL, DOUBLE},
    {"1.0", NULL, DOUBLE},
    {"1.10", NULL, DOUBLE},
    {"0.1", NULL, DOUBLE},
    {"1e0", NULL, DOUBLE},
    {"1E+2", NULL, DOUBLE},
    {"1e-400", NULL, DOUBLE},
    {"-5e-324", NULL, DOUBLE},
    {"1.7976931348623157e308", NULL, DOUBLE},
};

static json_object *read_number(const char *text)
{
    json_object *v = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(text), NULL, &v, NULL), 0);
    ck_assert_ptr_nonnull(v);
    return v;
}

static void check_again(json_object *v, const char *want)
{
    char *text = rv_kit_text(v);
    json_object *again = read_number(text);

    ck_assert_str_eq(text, want);
    ck_assert(json_object_get_type(again) == json_object_get_type(v));
    ck_assert(rv_json_equal(v, again));
    if (json_object_is_type(v, json_type_double)) {
        double a = json_object_get_double(v), b = json_object_get_double(again);
        ck_assert(memcmp(&a, &b, sizeof a) == 0); /* the sign of zero, too */
    }
    free(text);
    json_object_put(again);
}

START_TEST(what_was_written_is_read_as_the_same_number)
{
    json_object *v = read_number(numbers[_i].text), *copy = NULL;
    const char *want = numbers[_i].again ? numbers[_i].again : numbers[_i].text;

    ck_assert_int_eq(json_object_get_type(v), numbers[_i].is == DOUBLE ? json_type_double : json_type_int);
    ck_assert(rv_json_is_int(v) == (numbers[_i].is == INT));
    check_again(v, want);
    ck_assert_int_eq(rv_json_dup(v, &copy, NULL), 0);
    check_again(copy, want);
    json_object_put(copy);
    json_object_put(v);
}
END_TEST

START_TEST(out_of_the_range_of_doubles_is_an_error)
{
    static const char *const texts[] = {"1e400", "-1e400", "2" NINES NINES NINES "99999999999", "[1e309]"};
    json_object *v = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(texts[_i]), NULL, &v, &err), RV_E_PARSE);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "the number is out of range"));
    rv_err_free(err);
}
END_TEST

/* Digits of every length and random doubles: a writer that knows no text of theirs writes one that is read as them. */
START_TEST(random_numbers_come_back)
{
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 7);

    for (int n = 0; n < 20000; n++) {
        char text[64];
        size_t len = 1 + (size_t)rv_rand_below(r, 40), at = 0;
        uint64_t bits = rv_rand_u64(r);
        double d;

        if (rv_rand_below(r, 2))
            text[at++] = '-';
        text[at++] = (char)('1' + rv_rand_below(r, 9));
        for (size_t i = 1; i < len; i++)
            text[at++] = (char)('0' + rv_rand_below(r, 10));
        text[at] = '\0';
        json_object *v = read_number(text);
        check_again(v, text);
        json_object_put(v);

        memcpy(&d, &bits, sizeof d);
        v = rv_json_new_double(d);
        if (!v) /* no number */
            continue;
        char *made = rv_kit_text(v);
        check_again(v, made);
        ck_assert_ptr_nonnull(strpbrk(made, ".e"));
        free(made);
        json_object_put(v);
    }
}
END_TEST

TCase *json_numbers_case(void)
{
    TCase *tc = tcase_create("json_numbers");

    tcase_add_loop_test(tc, what_was_written_is_read_as_the_same_number, 0, (int)RV_COUNT(numbers));
    tcase_add_loop_test(tc, out_of_the_range_of_doubles_is_an_error, 0, 4);
    tcase_add_test(tc, random_numbers_come_back);
    return tc;
}

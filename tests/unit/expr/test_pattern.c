/* Patterns: where ECMA-262 and PCRE2 differ, what is refused and why, and what a match may cost. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"
#include "expr_suites.h"
#include "tests/kit/kit.h"

static const struct {
    const char *pattern, *text;
    bool matches;
} cases[] = {
    {"", "anything", true},
    {"b", "abc", true}, /* anywhere */
    {"^b", "abc", false},
    {"a$", "a\n", false}, /* $ is the end of the text, not the end of a line before it */
    {"a.c", "a\nc", false},
    {"a.c",
     "a\xe2\x80\xa8"
     "c",
     false}, /* U+2028 */
    {"^a.c$",
     "a\xf0\x9f\x98\x80"
     "c",
     true}, /* one character, not four bytes */
    {"^\\s$", "\xc2\xa0", true},
    {"^\\S$", "\xc2\xa0", false},
    {"^[\\S]$", "\xc2\xa0", false},
    {"^[^\\S]$", "\xef\xbb\xbf", true}, /* U+FEFF */
    {"^\\d$", "\xd9\xa3", false},       /* an Arabic digit: \d is ASCII */
    {"^\\w$", "\xc3\xa9", false},
    {"^\\u00e9\\x41\\u{1F600}$",
     "\xc3\xa9"
     "A\xf0\x9f\x98\x80",
     true},
    {"^\\ud83d\\ude00$", "\xf0\x9f\x98\x80", true},
    {"^\\v$", "\n", false},
    {"^\\v$", "\v", true},
    {"^[\\b]$", "\b", true},
    {"^\\cA$", "\x01", true},
    {"[]", "a", false},
    {"^[^]$", "\n", true},
    {"^[[:alpha:]]$", "a]", true}, /* a class of [ : a l p h, and ] */
    {"^[a-]$", "-", true},
    {"^[\\w-.]+$", "a-b.c", true},
    {"^a{,2}$", "a{,2}", true},
    {"^a{2}$", "aa", true},
    {"^}]{$", "}]{", true},
    {"^(?<year>\\d{4})-\\k<year>$", "2026-2026", true},
    {"^(a)|b\\1$", "b", true}, /* a group that took no part matches nothing */
    {"^\\p{Letter}\\p{Lu}\\P{Nd}$", "\xc3\xa9\xc3\x89x", true},
    {"^\\p{General_Category=Decimal_Number}\\p{Script=Greek}$", "5\xce\xb1", true},
    {"(?<=\\$)\\d+(?!%)", "$50", true},
    {"^(?:a|b){2,3}?$", "aba", true},
    {"^a#b c$", "a#b c", true},
    {"^\\@\\_\\-\\/$", "@_-/", true},
    {"^\\0$", "", false},
};

START_TEST(pattern_matches_as_in_ecma_262)
{
    rv_pattern *p = NULL;
    rv_err *err = NULL;
    bool found;

    ck_assert_msg(rv_pattern_new(rv_str_of(cases[_i].pattern), &p, &err) == 0, "%s: %s", cases[_i].pattern,
                  rv_err_text(err));
    ck_assert_int_eq(rv_pattern_test(p, rv_str_of(cases[_i].text), NULL, &found, &err), 0);
    ck_assert_msg(found == cases[_i].matches, "%s on %s", cases[_i].pattern, cases[_i].text);
    rv_pattern_free(p);
}
END_TEST

static const struct {
    const char *pattern, *text;
} refused[] = {
    {"a++", "pattern \"a++\", byte 3: nothing to repeat"},
    {"(*ACCEPT)", "pattern \"(*ACCEPT)\", byte 2: nothing to repeat"},
    {"(?i)a",
     "pattern \"(?i)a\", byte 1: ECMA-262 has the groups (...), (?:...), (?=...), (?!...), (?<=...), (?<!...), "
     "(?<name>...)"},
    {"\\Aa", "pattern \"\\Aa\", byte 1: \\A is not an escape of ECMA-262"},
    {"a\\", "pattern \"a\\\", byte 2: the pattern ends with a backslash"},
    {"[a", "pattern \"[a\", byte 1: the class does not end: ] is missing"},
    {"[\\B]", "pattern \"[\\B]\", byte 2: \\B is not an escape of ECMA-262"},
    {"(a)\\2", "pattern \"(a)\\2\", byte 4: there are 1 groups"},
    {"\\u12", "pattern \"\\u12\", byte 1: \\u needs four hexadecimal digits or {digits}"},
    {"\\u{110000}", "pattern \"\\u{110000}\", byte 1: \\u{...} needs hexadecimal digits, at most 10FFFF"},
    {"\\ud83d", "pattern \"\\ud83d\", byte 1: half a surrogate pair can match nothing in UTF-8"},
    {"\\x4", "pattern \"\\x4\", byte 1: \\x needs two hexadecimal digits"},
    {"\\01", "pattern \"\\01\", byte 1: octal escapes are not allowed; write \\x and two hexadecimal digits"},
    {"\\c1", "pattern \"\\c1\", byte 1: \\c needs a letter"},
    {"\\pL", "pattern \"\\pL\", byte 1: \\p needs a name in braces, such as \\p{Letter}"},
    {"\\p{L,x}", "pattern \"\\p{L,x}\", byte 1: the name of a property has letters, digits, _ and = only"},
    {"(?<1a>x)", "pattern \"(?<1a>x)\", byte 1: the name of a group has 1 to 32 ASCII letters, digits and _"},
    {"\\\xc3\xa9", "pattern \"\\\xc3\xa9\", byte 1: a backslash escapes ASCII characters only"},
    {"(?<=a*)b", "pattern \"(?<=a*)b\": lookbehind assertion is not fixed length"},
};

START_TEST(what_is_no_pattern_is_refused_with_its_place)
{
    rv_pattern *p = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_pattern_new(rv_str_of(refused[_i].pattern), &p, &err), RV_E_PARSE);
    ck_assert_ptr_null(p);
    ck_assert_str_eq(rv_err_text(err), refused[_i].text);
    rv_err_free(err);
}
END_TEST

/* Each would take longer than the age of the universe, or the stack. */
static const char *const slow[] = {
    "^(a+)+$", "^(a|aa)+$",        "^(a|a?)+$",         "^(.*a){20}$",
    "(a*)*b",  "(a+)*(a+)*(a+)*!", "^(?:a?){40}a{40}$", "(?=(a+)+!)a",
};

START_TEST(pattern_that_tries_too_much_ends_with_a_limit)
{
    char text[4001];
    rv_pattern *p = NULL;
    rv_err *err = NULL;
    size_t steps = SIZE_MAX;
    bool found;

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 2] = 'c';
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(rv_pattern_new(rv_str_of(slow[_i]), &p, &err), 0);
    int rc = rv_pattern_test(p, rv_str_of(text), &steps, &found, &err);
    ck_assert(rc == RV_E_LIMIT || (rc == 0 && !found)); /* some are known to fail by a character that is missing */
    ck_assert_uint_le(SIZE_MAX - steps, RV_PATTERN_STEPS + 4 * sizeof text);
    rv_err_free(err);
    rv_pattern_free(p);
}
END_TEST

START_TEST(matches_share_the_steps_of_their_caller)
{
    size_t steps = 100;
    rv_pattern *p = NULL;
    rv_err *err = NULL;
    bool found = false;
    int rc = 0, n = 0;

    ck_assert_int_eq(rv_pattern_new(RV_STR_LIT("^(a|b)+$"), &p, NULL), 0);
    for (; rc == 0; n++)
        rc = rv_pattern_test(p, RV_STR_LIT("abab"), &steps, &found, &err);
    ck_assert_int_eq(rc, RV_E_LIMIT);
    ck_assert_int_gt(n, 3);
    ck_assert_int_lt(n, 30);
    rv_err_free(err);
    rv_pattern_free(p);
}
END_TEST

START_TEST(long_pattern_and_wrong_bytes_are_errors)
{
    char text[RV_PATTERN_MAX_BYTES + 2];
    rv_pattern *p = NULL;
    bool found;

    memset(text, 'a', sizeof text);
    ck_assert_int_eq(rv_pattern_new((rv_str){text, RV_PATTERN_MAX_BYTES + 1}, &p, NULL), RV_E_LIMIT);
    ck_assert_int_eq(rv_pattern_new((rv_str){text, RV_PATTERN_MAX_BYTES}, &p, NULL), 0);
    ck_assert_int_eq(rv_pattern_test(p, RV_STR_LIT("\xff"), NULL, &found, NULL), RV_E_INVALID);
    rv_pattern_free(p);
}
END_TEST

TCase *pattern_case(void)
{
    TCase *tc = tcase_create("pattern");

    tcase_add_loop_test(tc, pattern_matches_as_in_ecma_262, 0, RV_COUNT(cases));
    tcase_add_loop_test(tc, what_is_no_pattern_is_refused_with_its_place, 0, RV_COUNT(refused));
    tcase_add_loop_test(tc, pattern_that_tries_too_much_ends_with_a_limit, 0, RV_COUNT(slow));
    tcase_add_test(tc, matches_share_the_steps_of_their_caller);
    tcase_add_test(tc, long_pattern_and_wrong_bytes_are_errors);
    return tc;
}

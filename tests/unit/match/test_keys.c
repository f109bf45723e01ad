/* Keys of names: the table of p8-data 1.6, and what holds for all texts. */
#include <locale.h>
#include <stdlib.h>
#include <wctype.h>

#include "coreengine/match/match_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/match/suites.h"

#define N_RANDOM 20000

int32_t some_character(struct numbers *r)
{
    static const struct rune_range ranges[] = {
        {' ', '~'},       {' ', '~'},       {'a', 'z'},       {0xa0, 0x24f},      {0x300, 0x36f},     {0x370, 0x3ff},
        {0x400, 0x52f},   {0x5d0, 0x5ea},   {0x620, 0x65f},   {0x900, 0x97f},     {0xe00, 0xe5b},     {0x1100, 0x11ff},
        {0x1e00, 0x1fff}, {0x2000, 0x206f}, {0x2100, 0x218f}, {0x24b0, 0x24ff},   {0x3040, 0x30ff},   {0x4e00, 0x4fff},
        {0xac00, 0xad00}, {0xfb00, 0xfb4f}, {0xff00, 0xffef}, {0x10400, 0x1044f}, {0x1f300, 0x1f6ff},
    };
    const struct rune_range *range = &ranges[next_below(r, RV_COUNT(ranges))];

    return range->first + (int32_t)next_below(r, (size_t)(range->last - range->first) + 1);
}

void some_text(struct numbers *r, size_t max, rv_buf *out)
{
    size_t n = next_below(r, max + 1);
    char bytes[4];

    rv_buf_clear(out);
    for (size_t i = 0; i < n; i++)
        rv_buf_add(out, bytes, match_rune_write(some_character(r), bytes));
}

static const char *key_of(rv_str name, rv_buf *out)
{
    rv_buf_clear(out);
    rv_match_write_key(name, out);
    ck_assert_int_eq(out->rc, 0);
    return rv_buf_cstr(out);
}

static const struct {
    const char *name, *key;
} keys[] = {
    /* 1.6, its table */
    {"Hello World", "hello-world"},
    {"my_entity_name", "my-entity-name"},
    {"  hello   world  ", "hello-world"},
    {"a--b__c  d", "a-b-c-d"},
    {"Test (v2.0) \u2014 final!", "test-v20-final"},
    {"foo/bar.baz", "foobarbaz"},
    {" _x_ ", "-x-"},
    {"C++ Notes", "c-notes"},
    /* 1.6, Q9: letters of all scripts stay */
    {"\u00dcn\u00efcode Name", "\u00fcn\u00efcode-name"},
    {"\u65e5\u672c\u8a9e", "\u65e5\u672c\u8a9e"},
    {"\u0420\u0443\u0441\u0441\u043a\u0438\u0439_\u0422\u0435\u043a\u0441\u0442",
     "\u0440\u0443\u0441\u0441\u043a\u0438\u0439-\u0442\u0435\u043a\u0441\u0442"},
    {"Cafe\u0301", "caf\u00e9"},                  /* NFC */
    {"A\u030angstrom", "\u00e5ngstrom"},          /* NFC, then one case */
    {"\u0e17\u0e35\u0e48", "\u0e17\u0e35\u0e48"}, /* vowel signs and tones stay */
    {"\u0301x", "x"},                             /* a mark without its letter does not */
    {"e\u2014\u0301", "e"},
    {"\u0130", "i"},
    {"\u3007\u3000\u3007", "\u3007-\u3007"}, /* an ideographic space, and a digit of category Nl */
    /* nothing is left */
    {"", ""},
    {"\u2014!?", ""},
    {"\u200b\ufe0f", ""},
    {"\xff\xfe", ""},
    {"a\xff"
     "b\xc3",
     "ab"},
};

/* Proves p8-data.1.6: A name has one key: its letters and digits in one case, runs of blanks and underscores as a
 * hyphen; letters of all scripts stay */
START_TEST(a_name_has_its_key)
{
    rv_buf out = RV_BUF_INIT(1000);

    ck_assert_str_eq(key_of(rv_str_of(keys[_i].name), &out), keys[_i].key);
    rv_buf_fini(&out);
}
END_TEST

/* Proves p8-data.23/4: The key of a key is itself, and names that differ in case, spaces or runs of marks share one */
START_TEST(the_key_of_a_key_is_itself)
{
    struct numbers r = {_i + 1};
    rv_buf text = RV_BUF_INIT(10000), once = RV_BUF_INIT(10000), twice = RV_BUF_INIT(10000);

    for (int i = 0; i < N_RANDOM / 4; i++) {
        some_text(&r, 24, &text);
        key_of(rv_buf_str(&text), &once);
        ck_assert_str_eq(key_of(rv_buf_str(&once), &twice), rv_buf_cstr(&once));
    }
    rv_buf_fini(&text);
    rv_buf_fini(&once);
    rv_buf_fini(&twice);
}
END_TEST

/* Another way to write the name: other cases, other runs of blanks, "-" and "_", spaces around it. */
static void vary(struct numbers *r, rv_str text, rv_buf *out)
{
    static const char *const runs[] = {"-", "_", " ", "--", "_-", "  ", " _ "};
    char bytes[4];

    rv_buf_clear(out);
    rv_buf_puts(out, next_below(r, 2) ? "  " : "");
    for (size_t i = 0, n; i < text.len; i += n) {
        int32_t c = match_rune_at(text, i, &n);
        int32_t other = (int32_t)(next_below(r, 2) ? towupper((wint_t)c) : towlower((wint_t)c));
        if (c == ' ' || c == '-' || c == '_')
            rv_buf_puts(out, runs[next_below(r, RV_COUNT(runs))]);
        else
            rv_buf_add(out, bytes, match_rune_write(match_rune_is_mark(c) ? c : other, bytes));
    }
    rv_buf_puts(out, next_below(r, 2) ? "   " : "");
}

/* Spaces at the ends of the name itself are trimmed, so the name begins and ends otherwise.
 * Proves p8-data.23/4 */
START_TEST(names_that_differ_in_case_and_runs_share_a_key)
{
    struct numbers r = {_i + 77};
    rv_buf text = RV_BUF_INIT(10000), varied = RV_BUF_INIT(10000), a = RV_BUF_INIT(10000), b = RV_BUF_INIT(10000);

    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
    for (int i = 0; i < N_RANDOM / 4; i++) {
        some_text(&r, 20, &text);
        rv_str name = rv_buf_str(&text);
        while (name.len > 0 && strchr(" -_", name.ptr[0]))
            name.ptr++, name.len--;
        while (name.len > 0 && strchr(" -_", name.ptr[name.len - 1]))
            name.len--;
        vary(&r, name, &varied);
        ck_assert_str_eq(key_of(name, &a), key_of(rv_buf_str(&varied), &b));
    }
    rv_buf_fini(&text);
    rv_buf_fini(&varied);
    rv_buf_fini(&a);
    rv_buf_fini(&b);
}
END_TEST

/* Greek has two small letters for one capital, German a small one without: each pair is one letter of a key. */
START_TEST(all_forms_of_a_letter_are_one)
{
    for (int32_t step = (int32_t)rv_kit_stride(7), c = (int32_t)rv_kit_first(7) % step; c < 0x110000; c += step) {
        int32_t folded = match_rune_fold(c);
        ck_assert_int_eq(match_rune_fold(folded), folded);
        ck_assert_int_eq(match_rune_fold(match_rune_lower(c)), folded);
    }
}
END_TEST

/* The C library has Unicode 14, utf8proc 15 or later: what is newer is not compared. */
START_TEST(letters_and_digits_are_those_of_the_c_library)
{
    size_t n_differ = 0, n_known = 0;

    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
    for (int32_t c = 0; c < 0x110000; c++) {
        if (!iswprint((wint_t)c) && !iswcntrl((wint_t)c))
            continue;
        n_known++;
        n_differ += match_rune_is_word(c) != (iswalnum((wint_t)c) != 0);
        if (match_rune_is_word(c))
            n_differ += match_rune_lower(c) != (int32_t)towlower((wint_t)c);
    }
    ck_assert_uint_gt(n_known, 140000);
    ck_assert_uint_eq(n_differ, 0);
}
END_TEST

/* Thousands of accents on one letter take no longer than as many letters. */
START_TEST(a_run_of_marks_is_cut)
{
    rv_buf text = RV_BUF_INIT(RV_MATCH_MAX_TEXT), out = RV_BUF_INIT(RV_MATCH_MAX_TEXT);

    rv_buf_puts(&text, "a");
    while (text.len < 500000)
        rv_buf_puts(&text, "\u0315\u0300\u035c\u0345");
    key_of(rv_buf_str(&text), &out);
    ck_assert_uint_lt(out.len, 31 * 4);
    rv_buf_fini(&text);
    rv_buf_fini(&out);
}
END_TEST

START_TEST(a_name_that_is_too_long_is_refused)
{
    char *text = calloc(RV_MATCH_MAX_TEXT + 2, 1);
    rv_buf out = RV_BUF_INIT(RV_MATCH_MAX_TEXT * 2);

    memset(text, 'a', RV_MATCH_MAX_TEXT + 1);
    key_of((rv_str){text, RV_MATCH_MAX_TEXT}, &out);
    ck_assert_uint_eq(out.len, RV_MATCH_MAX_TEXT);
    rv_match_write_key(rv_str_of(text), &out);
    ck_assert_int_eq(out.rc, RV_E_LIMIT);
    rv_buf_fini(&out);
    free(text);
}
END_TEST

TCase *keys_case(void)
{
    TCase *c = tcase_create("keys");

    tcase_add_loop_test(c, a_name_has_its_key, 0, RV_COUNT(keys));
    tcase_add_loop_test(c, the_key_of_a_key_is_itself, 0, 4);
    tcase_add_loop_test(c, names_that_differ_in_case_and_runs_share_a_key, 0, 4);
    tcase_add_test(c, all_forms_of_a_letter_are_one);
    tcase_add_test(c, letters_and_digits_are_those_of_the_c_library);
    tcase_add_test(c, a_run_of_marks_is_cut);
    tcase_add_test(c, a_name_that_is_too_long_is_refused);
    return c;
}

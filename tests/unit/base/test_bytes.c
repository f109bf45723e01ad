#include "coreengine/base/base.h"
#include "tests/unit/base/suites.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *bytes;
    size_t len, bad; /* bad == len: valid */
} utf8[] = {
    {"", 0, 0},
    {"abc", 3, 3},
    {"\xC3\xA9", 2, 2},
    {"\xE2\x82\xAC", 3, 3},
    {"\xF0\x9F\x98\x80", 4, 4},
    {"\xF4\x8F\xBF\xBF", 4, 4}, /* U+10FFFF */
    {"\xED\x9F\xBF", 3, 3},     /* the last before the surrogates */
    {"a\xC0\x80", 3, 1},        /* overlong NUL */
    {"\xC1\xBF", 2, 0},         /* overlong */
    {"\xE0\x9F\xBF", 3, 0},     /* overlong */
    {"\xF0\x8F\xBF\xBF", 4, 0}, /* overlong */
    {"\xED\xA0\x80", 3, 0},     /* surrogate */
    {"\xED\xBF\xBF", 3, 0},     /* surrogate */
    {"\xF4\x90\x80\x80", 4, 0}, /* above U+10FFFF */
    {"\xF5\x80\x80\x80", 4, 0}, /* above U+10FFFF */
    {"\x80", 1, 0},             /* a continuation alone */
    {"ab\xE2\x82", 4, 2},       /* cut off */
    {"\xC3(", 2, 0},            /* continuation missing */
    {"\xFE", 1, 0},
    {"\xFF", 1, 0},
};

START_TEST(utf8_is_judged_strictly)
{
    size_t bad = utf8[_i].len;
    bool valid = rv_utf8_valid((rv_str){utf8[_i].bytes, utf8[_i].len}, &bad);

    ck_assert_int_eq(valid, utf8[_i].bad == utf8[_i].len);
    ck_assert_uint_eq(bad, utf8[_i].bad);
}
END_TEST

static const struct {
    const char *text;
    size_t max, want;
} cuts[] = {
    {"abc", 2, 2},          {"abc", 9, 3},      {"a\xE2\x82\xAC", 3, 1},     {"a\xE2\x82\xAC", 4, 4},
    {"\xC3\xA9", 1, 0},     {"\xC3\xA9", 0, 0}, {"\xF0\x9F\x98\x80z", 3, 0}, {"\xF0\x9F\x98\x80z", 4, 4},
    {"\x80\x80\x80", 2, 2}, /* broken anyway: not shortened further */
};

START_TEST(cut_keeps_characters_whole)
{
    ck_assert_uint_eq(rv_utf8_cut(rv_str_of(cuts[_i].text), cuts[_i].max).len, cuts[_i].want);
}
END_TEST

START_TEST(views_compare_and_trim)
{
    ck_assert(rv_str_eq(rv_str_of(NULL), RV_STR_LIT("")));
    ck_assert(!rv_str_eq(RV_STR_LIT("a"), RV_STR_LIT("ab")));
    ck_assert(rv_text_eq("a", "a") && rv_text_eq(NULL, NULL));
    ck_assert(!rv_text_eq("a", "b") && !rv_text_eq("", NULL) && !rv_text_eq(NULL, ""));
    ck_assert(rv_str_is(rv_str_trim(RV_STR_LIT(" \t\n\v x y \r\f")), "x y"));
    ck_assert_uint_eq(rv_str_trim(RV_STR_LIT("  \n")).len, 0);
}
END_TEST

START_TEST(dup_keeps_embedded_nuls)
{
    char *copy = rv_str_dup((rv_str){"a\0b", 3});

    ck_assert_ptr_nonnull(copy);
    ck_assert_mem_eq(copy, "a\0b", 4);
    free(copy);
}
END_TEST

START_TEST(a_buffer_takes_exactly_its_ceiling)
{
    rv_buf b = RV_BUF_INIT(10);
    rv_err *err = NULL;

    rv_buf_puts(&b, "01234");
    rv_buf_printf(&b, "%d", 56789);
    ck_assert_int_eq(rv_buf_check(&b, "x", NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&b), "0123456789");
    rv_buf_putc(&b, 'a');
    ck_assert_int_eq(rv_buf_check(&b, "reply", &err), RV_E_LIMIT);
    ck_assert_str_eq(rv_err_text(err), "reply is longer than 10 bytes");
    rv_err_free(err);
    rv_buf_fini(&b);
}
END_TEST

START_TEST(a_failed_append_sticks_until_cleared)
{
    rv_buf b = RV_BUF_INIT(4);

    rv_buf_puts(&b, "abcde");
    rv_buf_puts(&b, "f");
    ck_assert_str_eq(rv_buf_cstr(&b), "");
    ck_assert_ptr_null(rv_buf_steal(&b, NULL));
    rv_buf_clear(&b);
    rv_buf_puts(&b, "f");
    ck_assert_int_eq(rv_buf_check(&b, "x", NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&b), "f");
    rv_buf_fini(&b);
}
END_TEST

START_TEST(a_buffer_grows_over_many_appends)
{
    rv_buf b = RV_BUF_INIT(SIZE_MAX);
    int i;

    for (i = 0; i < 10000; i++)
        rv_buf_printf(&b, "%04d", i % 10000);
    ck_assert_uint_eq(b.len, 40000);
    ck_assert_int_eq(strncmp(b.ptr + 39996, "9999", 5), 0);
    rv_buf_truncate(&b, 8);
    ck_assert_str_eq(rv_buf_cstr(&b), "00000001");
    rv_buf_fini(&b);
    ck_assert_ptr_null(b.ptr);
    rv_buf_fini(&b);
}
END_TEST

START_TEST(stealing_hands_over_the_bytes)
{
    rv_buf b = RV_BUF_INIT(16);
    size_t len = 99;
    char *bytes = rv_buf_steal(&b, &len);

    ck_assert_str_eq(bytes, "");
    ck_assert_uint_eq(len, 0);
    free(bytes);
    rv_buf_puts(&b, "xyz");
    bytes = rv_buf_steal(&b, &len);
    ck_assert_str_eq(bytes, "xyz");
    ck_assert_uint_eq(b.len, 0);
    rv_buf_puts(&b, "again");
    ck_assert_str_eq(rv_buf_cstr(&b), "again");
    free(bytes);
    rv_buf_fini(&b);
}
END_TEST

START_TEST(an_arena_gives_zeroed_aligned_memory_up_to_its_ceiling)
{
    rv_arena *a = rv_arena_new(100000);
    size_t total = 0, size;
    char *text;

    ck_assert_ptr_nonnull(a);
    for (size = 1; total < 60000; size = size * 3 % 9973) {
        unsigned char *p = rv_arena_alloc(a, size);
        size_t i;
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % _Alignof(max_align_t), 0);
        for (i = 0; i < size; i++)
            ck_assert_uint_eq(p[i], 0);
        memset(p, 0xAA, size);
        total += size;
    }
    text = rv_arena_dup(a, (rv_str){"ab\0c", 4});
    ck_assert_mem_eq(text, "ab\0c", 5);
    ck_assert_ptr_null(rv_arena_alloc(a, 50000));
    ck_assert_ptr_null(rv_arena_alloc(a, SIZE_MAX));
    ck_assert_ptr_nonnull(rv_arena_alloc(a, 0));
    rv_arena_free(a);
    rv_arena_free(NULL);
}
END_TEST

TCase *bytes_case(void)
{
    TCase *tc = tcase_create("bytes");

    tcase_add_loop_test(tc, utf8_is_judged_strictly, 0, RV_COUNT(utf8));
    tcase_add_loop_test(tc, cut_keeps_characters_whole, 0, RV_COUNT(cuts));
    tcase_add_test(tc, views_compare_and_trim);
    tcase_add_test(tc, dup_keeps_embedded_nuls);
    tcase_add_test(tc, a_buffer_takes_exactly_its_ceiling);
    tcase_add_test(tc, a_failed_append_sticks_until_cleared);
    tcase_add_test(tc, a_buffer_grows_over_many_appends);
    tcase_add_test(tc, stealing_hands_over_the_bytes);
    tcase_add_test(tc, an_arena_gives_zeroed_aligned_memory_up_to_its_ceiling);
    return tc;
}

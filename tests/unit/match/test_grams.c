/* Trigrams: the table of p8-data 10.1, and bounds that never lose a set. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/match/suites.h"

static struct rv_grams grams_of(const char *text)
{
    struct rv_grams g;

    ck_assert_int_eq(rv_grams_build(rv_str_of(text), &g, NULL), 0);
    return g;
}

static float similarity(const char *a, const char *b)
{
    struct rv_grams x = grams_of(a), y = grams_of(b);
    float s = rv_grams_similarity(x.at, x.n, y.at, y.n);

    ck_assert(s == rv_grams_similarity(y.at, y.n, x.at, x.n));
    rv_grams_fini(&x);
    rv_grams_fini(&y);
    return s;
}

static const struct {
    const char *a, *b, *shown;
} pairs[] = {
    /* 10.1, its table */
    {"traverse", "travers", "0.7"},
    {"search", "searh", "0.444444"},
    {"kv-store", "kv stor", "0.7"},
    {"fuzzy-kv-target", "fuzzy kv target", "1"},
    {"traverse", "searh", "0"},
    {"sarah-chen", "sara chen", "0.75"},
    {"project-atlas", "projct atls", "0.444444"},
    {"data-analysis-agent", "data analysis", "0.736842"},
    {"quantum-paper-chunk-0000", "quantum", "0.333333"},
    {"embedding-service", "encryptin", "0.037037"},
    /* punctuation, order of words and case do not matter */
    {"chen, SARAH!", "sarah chen", "1"},
    {"", "", "0"},
    {"!?", "!?", "0"},
    {"\xff", "\xff", "0"},
};

/* Proves p8-data.10.1: The similarity of two texts is the share of trigrams of words that they have in common */
START_TEST(a_pair_has_its_similarity)
{
    char shown[32];

    snprintf(shown, sizeof shown, "%.6g", (double)similarity(pairs[_i].a, pairs[_i].b));
    ck_assert_str_eq(shown, pairs[_i].shown);
}
END_TEST

START_TEST(a_score_is_shown_with_its_shortest_digits)
{
    for (size_t n = 1; n <= 200; n++)
        for (size_t k = 0; k <= n; k++) {
            float x = (float)k / (float)n;
            char shortest[32];
            for (int digits = 1; digits <= 9; digits++) {
                snprintf(shortest, sizeof shortest, "%.*g", digits, (double)x);
                if (strtof(shortest, NULL) == x)
                    break;
            }
            ck_assert((float)rv_float_decimal(x) == x);
            ck_assert(rv_float_decimal(x) == strtod(shortest, NULL));
        }
}
END_TEST

START_TEST(a_word_has_its_windows)
{
    /* "  c", " ca", "at ", "cat" */
    static const uint32_t cat[] = {0x202063, 0x206361, 0x617420, 0x636174};
    struct rv_grams g = grams_of("cat CAT. cat");

    ck_assert_uint_eq(g.n, RV_COUNT(cat));
    ck_assert_mem_eq(g.at, cat, sizeof cat);
    rv_grams_fini(&g);
}
END_TEST

START_TEST(sets_ascend)
{
    struct numbers r = {_i + 1};
    rv_buf text = RV_BUF_INIT(10000);

    for (int i = 0; i < 500; i++) {
        some_text(&r, 200, &text);
        struct rv_grams g = grams_of(rv_buf_cstr(&text));
        for (size_t k = 0; k < g.n; k++)
            ck_assert(g.at[k] < 1u << 24 && (k == 0 || g.at[k] > g.at[k - 1]));
        rv_grams_fini(&g);
    }
    rv_buf_fini(&text);
}
END_TEST

START_TEST(a_text_that_is_too_long_is_refused)
{
    char *text = calloc(RV_MATCH_MAX_TEXT + 2, 1);
    struct rv_grams g;
    rv_err *err = NULL;

    memset(text, 'a', RV_MATCH_MAX_TEXT + 1);
    ck_assert_int_eq(rv_grams_build((rv_str){text, RV_MATCH_MAX_TEXT}, &g, NULL), 0);
    ck_assert_uint_eq(g.n, 4); /* "  a", " aa", "aaa", "aa " */
    rv_grams_fini(&g);
    ck_assert_int_eq(rv_grams_build(rv_str_of(text), &g, &err), RV_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "1048577 bytes"));
    rv_err_free(err);
    free(text);
}
END_TEST

TCase *grams_case(void)
{
    TCase *c = tcase_create("grams");

    tcase_add_loop_test(c, a_pair_has_its_similarity, 0, RV_COUNT(pairs));
    tcase_add_test(c, a_score_is_shown_with_its_shortest_digits);
    tcase_add_test(c, a_word_has_its_windows);
    tcase_add_loop_test(c, sets_ascend, 0, 3);
    tcase_add_test(c, a_text_that_is_too_long_is_refused);
    return c;
}

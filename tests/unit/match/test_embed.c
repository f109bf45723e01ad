/* Embeddings without a model: the worked value of p8-data 13, and what is alike (Q11). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/match/vectors_internal.h"
#include "tests/unit/match/suites.h"

static double cosine(const float *a, const float *b, size_t dims)
{
    return match_vector_cosine_of(a, match_vector_length(a, dims), b, match_vector_length(b, dims), dims);
}

static void embed(const char *provider, const char *text, size_t dims, float *out)
{
    ck_assert_int_eq(rv_embed_text(rv_str_of(provider), rv_str_of(text), dims, out, NULL), 0);
}

/* 13
 * Proves p8-data.13/local: The provider local hashes the text into a vector of length 1 */
START_TEST(local_is_the_worked_value)
{
    static const double worked[] = {-0.0971466, -0.6154289, -0.1974967};
    float v[8];

    embed("local", "hello", 8, v);
    for (size_t i = 0; i < RV_COUNT(worked); i++)
        ck_assert(fabs((double)v[i] - worked[i]) < 6e-8);
}
END_TEST

/* 13, Q11: "cosine of `hello` and `hello world` is -0.0003" */
START_TEST(local_finds_only_equal_texts)
{
    float a[RV_EMBED_LOCAL_DIMS], b[RV_EMBED_LOCAL_DIMS];
    char shown[32];

    embed("local", "hello", RV_EMBED_LOCAL_DIMS, a);
    embed("local", "hello world", RV_EMBED_LOCAL_DIMS, b);
    snprintf(shown, sizeof shown, "%.4f", cosine(a, b, RV_EMBED_LOCAL_DIMS));
    ck_assert_str_eq(shown, "-0.0003");
    ck_assert(fabs(match_vector_length(a, RV_EMBED_LOCAL_DIMS) - 1) < 1e-6);
}
END_TEST

static double likeness(const char *a, const char *b)
{
    float x[RV_EMBED_NGRAM_DIMS], y[RV_EMBED_NGRAM_DIMS];

    embed("hash-ngram", a, RV_EMBED_NGRAM_DIMS, x);
    embed("hash-ngram", b, RV_EMBED_NGRAM_DIMS, y);
    ck_assert(fabs(match_vector_length(x, RV_EMBED_NGRAM_DIMS) - 1) < 1e-6);
    return cosine(x, y, RV_EMBED_NGRAM_DIMS);
}

static const struct {
    const char *a, *b;
    double least, most;
} pairs[] = {
    {"the quick brown fox", "The Quick, Brown Fox!", 1 - 1e-6, 1},
    {"fox brown quick the", "the quick brown fox", 1 - 1e-6, 1},
    {"hello", "hello world", 0.6, 0.99},
    {"embedding vectors", "vector embeddings", 0.55, 0.99},
    {"database migration", "migrating the databases", 0.3, 0.95},
    {"\u65e5\u672c\u8a9e\u306e\u6587\u7ae0", "\u65e5\u672c\u8a9e", 0.2, 0.95},
    {"graph traversal depth", "chocolate cake recipe", -0.25, 0.25},
    {"project atlas budget", "quarterly tax report", -0.25, 0.25},
};

/* 13, Q11: texts that share words or parts of words are above the minimum similarity of a search, others below.
 * Proves p8-data.13/hash-ngram: Without a server texts that share words are near each other */
START_TEST(ngrams_of_like_texts_are_near)
{
    double found = likeness(pairs[_i].a, pairs[_i].b);

    ck_assert_msg(found >= pairs[_i].least && found <= pairs[_i].most, "\"%s\" and \"%s\": %.3f", pairs[_i].a,
                  pairs[_i].b, found);
}
END_TEST

START_TEST(a_text_without_words_has_no_direction)
{
    float v[RV_EMBED_NGRAM_DIMS];

    embed("hash-ngram", "!? \xff", RV_EMBED_NGRAM_DIMS, v);
    ck_assert(match_vector_length(v, RV_EMBED_NGRAM_DIMS) == 0);
}
END_TEST

START_TEST(other_providers_and_sizes_are_refused)
{
    float v[4];
    rv_err *err = NULL;

    ck_assert_int_eq(rv_embed_text(RV_STR_LIT("openai"), RV_STR_LIT("x"), 4, v, &err), RV_E_INVALID);
    ck_assert_ptr_nonnull(strstr(rv_err_hint_text(err), "hash-ngram"));
    rv_err_free(err);
    ck_assert_int_eq(rv_embed_text(RV_STR_LIT("local"), RV_STR_LIT("x"), 0, v, NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_embed_text(RV_STR_LIT("local"), RV_STR_LIT("x"), RV_VECTOR_MAX_DIMS + 1, v, NULL),
                     RV_E_INVALID);
    char *text = calloc(RV_MATCH_MAX_TEXT + 1, 1);
    ck_assert_int_eq(rv_embed_text(RV_STR_LIT("local"), (rv_str){text, RV_MATCH_MAX_TEXT + 1}, 4, v, NULL), RV_E_LIMIT);
    free(text);
}
END_TEST

TCase *embed_case(void)
{
    TCase *c = tcase_create("embed");

    tcase_add_test(c, local_is_the_worked_value);
    tcase_add_test(c, local_finds_only_equal_texts);
    tcase_add_loop_test(c, ngrams_of_like_texts_are_near, 0, RV_COUNT(pairs));
    tcase_add_test(c, a_text_without_words_has_no_direction);
    tcase_add_test(c, other_providers_and_sizes_are_refused);
    return c;
}

/* Words, BM25 and the fusion of ranks. */
#include <math.h>
#include <stdlib.h>

#include "coreengine/match/match_internal.h"
#include "tests/unit/match/suites.h"

static struct rv_terms terms_of(const char *text)
{
    struct rv_terms t;

    ck_assert_int_eq(rv_terms_build(rv_str_of(text), &t, NULL), 0);
    return t;
}

static void check_terms(const char *text, const char *expected)
{
    struct rv_terms t = terms_of(text);
    rv_buf shown = RV_BUF_INIT(10000);

    for (size_t i = 0; i < t.n; i++)
        rv_buf_printf(&shown, "%s%.*s:%u", i ? " " : "", RV_STR_ARG(t.at[i].text), t.at[i].count);
    ck_assert_str_eq(rv_buf_cstr(&shown), expected);
    rv_buf_fini(&shown);
    rv_terms_fini(&t);
}

START_TEST(words_are_counted_in_the_order_of_bytes)
{
    check_terms("The cat, the Cat's hat; 3 HATS", "3:1 cat:2 hat:1 hats:1 s:1 the:2");
    check_terms("caf\u00e9 CAFE\u0301 cafe", "cafe:1 caf\u00e9:2");
    check_terms("kv_store kv-store", "kv:2 store:2");
    check_terms("\u0939\u093f\u0928\u094d\u0926\u0940", "\u0939\u093f\u0928\u094d\u0926\u0940:1");
    check_terms("\ud55c\uad6d\uc5b4", "\ud55c\uad6d\uc5b4:1");
    check_terms("\xff !", "");
}
END_TEST

/* Chinese and Japanese are written without spaces: each pair of characters is a word. */
START_TEST(text_without_spaces_has_pairs_for_words)
{
    check_terms("\u65e5\u672c\u8a9e", "\u65e5\u672c:1 \u672c\u8a9e:1");
    check_terms("\u65e5 x\u672c\u8a9e\u30c6\u30ad9", "9:1 x:1 \u30c6\u30ad:1 \u65e5:1 \u672c\u8a9e:1 \u8a9e\u30c6:1");
}
END_TEST

START_TEST(words_and_texts_have_limits)
{
    char *text = calloc(RV_TERMS_MAX_WORDS * 2 + 1000, 1);
    struct rv_terms t;

    memset(text, 'x', RV_TERM_MAX_CHARS + 1); /* a word that is too long counts as its beginning */
    text[RV_TERM_MAX_CHARS + 1] = ' ';
    memset(text + RV_TERM_MAX_CHARS + 2, 'x', RV_TERM_MAX_CHARS);
    t = terms_of(text);
    ck_assert_uint_eq(t.n, 1);
    ck_assert_uint_eq(t.at[0].text.len, RV_TERM_MAX_CHARS);
    ck_assert_uint_eq(t.at[0].count, 2);
    rv_terms_fini(&t);
    for (size_t i = 0; i < RV_TERMS_MAX_WORDS + 10; i++)
        memcpy(text + 2 * i, "a ", 2);
    t = terms_of(text);
    ck_assert_uint_eq(t.length, RV_TERMS_MAX_WORDS);
    ck_assert_uint_eq(t.at[0].count, RV_TERMS_MAX_WORDS);
    rv_terms_fini(&t);
    free(text);
}
END_TEST

/* Scores of texts for a query. */
static void rank(const char *query, const char *const *texts, size_t n, double *scores)
{
    struct rv_terms q = terms_of(query), terms[8];
    struct rv_lexical_doc docs[8];

    for (size_t i = 0; i < n; i++) {
        terms[i] = terms_of(texts[i]);
        docs[i] = (struct rv_lexical_doc){&terms[i], -1};
    }
    rv_lexical_rank(&q, docs, n);
    for (size_t i = 0; i < n; i++) {
        scores[i] = docs[i].score;
        rv_terms_fini(&terms[i]);
    }
    rv_terms_fini(&q);
}

/* Proves p8-data.12.3: Words are ranked by BM25, by the same function on all stores */
START_TEST(bm25_is_the_formula)
{
    static const char *const texts[] = {"a a b", "b c", "c"};
    double scores[3], idf = log(1 + 2.5 / 1.5);

    rank("a", texts, 3, scores); /* 6 words in 3 texts: 2 on average */
    ck_assert(fabs(scores[0] - idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 1.5))) < 1e-12);
    ck_assert(scores[1] == 0 && scores[2] == 0);
}
END_TEST

START_TEST(rare_words_and_short_texts_win)
{
    static const char *const texts[] = {"red house", "red fox", "red car", "the fox is in the woods today"};
    double scores[4];

    rank("red fox", texts, 4, scores);
    ck_assert(scores[1] > scores[3] && scores[3] > 0);
    ck_assert(scores[1] > scores[0] && scores[0] == scores[2]);
}
END_TEST

/* A score depends on the texts that are passed, and on no others. */
START_TEST(repeated_words_of_a_query_count_once)
{
    static const char *const texts[] = {"red fox", "blue"};
    double once[2], often[2];

    rank("red", texts, 2, once);
    rank("red RED red", texts, 2, often);
    ck_assert(once[0] == often[0] && once[0] > 0);
}
END_TEST

START_TEST(logarithms_are_right)
{
    struct numbers r = {5};

    ck_assert(match_log(1) == 0);
    for (int i = 0; i < 100000; i++) {
        double x = ldexp(1 + (double)(next_number(&r) >> 12) * 0x1p-52, (int)next_below(&r, 2000) - 1060);
        ck_assert(fabs(match_log(x) - log(x)) <= 1e-15 * (1 + fabs(log(x))));
    }
}
END_TEST

static size_t fuse(const struct rv_ranking *lists, size_t n_lists, size_t n_items, struct rv_fused *out)
{
    size_t n = 0;

    ck_assert_int_eq(rv_fuse_ranks(lists, n_lists, n_items, out, &n, NULL), 0);
    return n;
}

/* 12.3
 * Proves p8-data.12.3/hybrid: A hybrid rank is the sum of 1 / (60 + rank) over the lists */
START_TEST(fused_ranks_are_sums_of_reciprocals)
{
    static const size_t vectors[] = {2, 0, 1}, words[] = {0, 3};
    const struct rv_ranking lists[] = {{vectors, 3}, {words, 2}};
    struct rv_fused out[5];

    ck_assert_uint_eq(fuse(lists, 2, 5, out), 4);
    ck_assert(out[0].item == 0 && out[0].score == 1.0 / 62 + 1.0 / 61);
    ck_assert(out[1].item == 2 && out[1].score == 1.0 / 61);
    ck_assert(out[2].item == 3 && out[2].score == 1.0 / 62);
    ck_assert(out[3].item == 1 && out[3].score == 1.0 / 63);
}
END_TEST

START_TEST(equal_sums_are_equal_in_any_order)
{
    static const size_t a[] = {0, 1, 2}, b[] = {1, 2, 0}, c[] = {2, 0, 1};
    const struct rv_ranking lists[] = {{c, 3}, {a, 3}, {b, 3}};
    struct rv_fused out[3];

    ck_assert_uint_eq(fuse(lists, 3, 3, out), 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(out[i].item, i);
}
END_TEST

TCase *terms_case(void)
{
    TCase *c = tcase_create("terms");

    tcase_add_test(c, words_are_counted_in_the_order_of_bytes);
    tcase_add_test(c, text_without_spaces_has_pairs_for_words);
    tcase_add_test(c, words_and_texts_have_limits);
    tcase_add_test(c, bm25_is_the_formula);
    tcase_add_test(c, rare_words_and_short_texts_win);
    tcase_add_test(c, repeated_words_of_a_query_count_once);
    tcase_add_test(c, logarithms_are_right);
    tcase_add_test(c, fused_ranks_are_sums_of_reciprocals);
    tcase_add_test(c, equal_sums_are_equal_in_any_order);
    return c;
}

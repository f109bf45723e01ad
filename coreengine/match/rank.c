/* Ranks: BM25 over a set of documents, and several lists made into one.
 *
 * CMakeLists.txt compiles this folder without contraction of a * b + c, so that each operation is rounded once and
 * scores have the same bits everywhere; an order that depends on them is the same, too. */
#include <stdlib.h>

#include "coreengine/match/match_internal.h"

#define K1 1.2  /* of BM25, its usual value: how soon a repeated word adds nothing */
#define B  0.75 /* of BM25, its usual value: how much a long text counts less */

/* x = m * 2^e with m from sqrt(1/2) to sqrt(2); then log m = 2 artanh((m - 1) / (m + 1)), a series in odd powers. */
double match_log(double x)
{
    const double ln2 = 0.69314718055994530942, root_half = 0.70710678118654752440;
    uint64_t bits;
    int e;

    memcpy(&bits, &x, sizeof bits);
    if ((bits >> 52 & 0x7ff) == 0) /* below the normal numbers */
        return match_log(x * 18014398509481984.0) - 54 * ln2;
    e = (int)(bits >> 52 & 0x7ff) - 1022;
    bits = (bits & UINT64_C(0x800fffffffffffff)) | UINT64_C(0x3fe0000000000000); /* 1/2 <= m < 1 */
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m < root_half) {
        m *= 2;
        e--;
    }
    double t = (m - 1) / (m + 1), square = t * t, sum = 0; /* |t| < 0.172 */
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return 2 * t * sum + e * ln2;
}

static const struct rv_word *find(const struct rv_terms *terms, rv_str word)
{
    size_t from = 0, until = terms->n;

    while (from < until) {
        size_t mid = from + (until - from) / 2;
        rv_str w = terms->at[mid].text;
        int order = memcmp(w.ptr, word.ptr, w.len < word.len ? w.len : word.len);
        if (order == 0 && w.len == word.len)
            return &terms->at[mid];
        if (order < 0 || (order == 0 && w.len < word.len))
            from = mid + 1;
        else
            until = mid;
    }
    return NULL;
}

double rv_lexical_rarity(size_t n, size_t n_with)
{
    return match_log(1 + ((double)(n - n_with) + 0.5) / ((double)n_with + 0.5));
}

double rv_lexical_part(double rarity, double count, double length)
{
    return rarity * (count * (K1 + 1)) / (count + K1 * (1 - B + B * length));
}

double rv_lexical_most(double rarity)
{
    return rarity * (K1 + 1);
}

static void add_term(rv_str word, struct rv_lexical_doc *docs, size_t n, double average)
{
    size_t n_with = 0;

    for (size_t i = 0; i < n; i++)
        n_with += find(docs[i].terms, word) != NULL;
    if (n_with == 0)
        return;
    double rarity = rv_lexical_rarity(n, n_with);
    for (size_t i = 0; i < n; i++) {
        const struct rv_word *term = find(docs[i].terms, word);
        if (!term)
            continue;
        docs[i].score += rv_lexical_part(rarity, term->count, (double)docs[i].terms->length / average);
    }
}

void rv_lexical_rank(const struct rv_terms *query, struct rv_lexical_doc *docs, size_t n)
{
    double total = 0;

    for (size_t i = 0; i < n; i++) {
        docs[i].score = 0;
        total += (double)docs[i].terms->length;
    }
    if (total > 0)
        for (size_t k = 0; k < query->n; k++)
            add_term(query->at[k].text, docs, n, total / (double)n);
}

/* Scores of one item differ in their last bit by the order of its lists; in units of 2^-52 they do not. */
struct sum {
    struct rv_fused fused;
    uint64_t exact;
};

static int better(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;

    if (x->exact != y->exact)
        return x->exact < y->exact ? 1 : -1;
    return (x->fused.item > y->fused.item) - (x->fused.item < y->fused.item);
}

int rv_fuse_ranks(const struct rv_ranking *lists, size_t n_lists, size_t n_items, struct rv_fused *out, size_t *n_out,
                  rv_err **err)
{
    struct sum *sums = calloc(n_items + 1, sizeof *sums);

    if (!sums)
        return RV_FAIL(err, RV_E_NOMEM, "fuse ranks");
    for (size_t i = 0; i < n_items; i++)
        sums[i].fused.item = i;
    for (size_t l = 0; l < n_lists; l++)
        for (size_t i = 0; i < lists[l].n; i++) {
            struct sum *s = &sums[lists[l].items[i]];
            s->exact += (UINT64_C(1) << 52) / (RV_FUSE_K + i + 1);
            s->fused.score += 1.0 / (double)(RV_FUSE_K + i + 1);
        }
    if (n_items > 1)
        qsort(sums, n_items, sizeof *sums, better);
    for (*n_out = 0; *n_out < n_items && sums[*n_out].exact > 0; ++*n_out)
        out[*n_out] = sums[*n_out].fused;
    free(sums);
    return 0;
}

/* Embeddings without a model. `local` is a hash of the whole text. `hash-ngram` adds up a feature for each word and for
 * each part of a word (three to five characters): texts that share words, or parts of words, are alike. */
#include <math.h>
#include <stdlib.h>

#include "coreengine/match/vectors_internal.h"

/* --- local --- */

/* The text, its SHA-512, the SHA-512 of that, ...: each as 32 numbers. */
static void embed_local(rv_str text, size_t dims, float *out)
{
    unsigned char digest[64];
    double sum = 0;

    rv_sha512_make(text, digest);
    for (size_t i = 0; i < dims; i++) {
        if (i > 0 && i % 32 == 0)
            rv_sha512_make((rv_str){(const char *)digest, sizeof digest}, digest);
        unsigned u = digest[i % 32 * 2] | (unsigned)digest[i % 32 * 2 + 1] << 8;
        double x = u / 32767.5 - 1;
        sum += x * x;
        out[i] = (float)x;
    }
    double length = sqrt(sum);
    for (size_t i = 0; i < dims; i++)
        out[i] = (float)(out[i] / length);
}

/* --- hash-ngram --- */

#define MIN_PART 3 /* characters of the shortest part of a word */
#define MAX_PART 5 /* characters of the longest */
/* A feature counts with its weight times (1 + log of how often it occurs). Parts say less than words. The weights are
 * those, of five pairs, that rank the decisions of this tree best by their titles: the right one is first for 47 of 60
 * and among the first five for 58. Changing one makes all stored vectors of this provider worthless. */
#define WORD_WEIGHT 1.0
#define PART_WEIGHT 0.35 /* of all parts of a word, where the word counts 1 */
#define SHORT_WORD  3    /* characters: "the", "of", "is" */
#define SHORT_SHARE 0.2  /* of the weight, for words that are so short */

/* Sums of weights in units of 2^-32, so that they are the same in whatever order words come. */
struct sums {
    int64_t *at; /* owned; dims of them */
    size_t dims;
};

static int64_t units_of(double weight)
{
    return (int64_t)(weight * 4294967296.0 + 0.5);
}

/* FNV-1a, and a last step that spreads it over all bits. */
static uint64_t hash_of(char kind, const char *bytes, size_t n)
{
    uint64_t h = rv_fnv_add(rv_fnv_add(RV_FNV_START, (rv_str){&kind, 1}), (rv_str){bytes, n});

    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return h ^ h >> 33;
}

static void add(struct sums *s, uint64_t hash, int64_t units)
{
    s->at[(hash >> 1) % s->dims] += hash & 1 ? units : -units;
}

/* The parts of "<word>". */
static void add_parts(struct sums *s, const char *padded, const size_t *starts, size_t n_chars, int64_t units)
{
    for (size_t size = MIN_PART; size <= MAX_PART; size++)
        for (size_t i = 0; i + size <= n_chars; i++)
            add(s, hash_of('p', padded + starts[i], starts[i + size] - starts[i]), units);
}

static void add_word(struct sums *s, const struct rv_word *term)
{
    char padded[RV_TERM_MAX_CHARS * 4 + 2];
    size_t starts[RV_TERM_MAX_CHARS + 3], n_chars = 0, len = 0;
    double weight = 1 + (term->count > 1 ? match_log(term->count) : 0);

    padded[len++] = '<';
    memcpy(padded + len, term->text.ptr, term->text.len);
    len += term->text.len;
    padded[len++] = '>';
    for (size_t i = 0, n; i < len; i += n) {
        RV_IGNORE(match_rune_at((rv_str){padded, len}, i, &n), "its length is wanted");
        starts[n_chars++] = i;
    }
    starts[n_chars] = len;
    if (n_chars <= SHORT_WORD + 2)
        weight *= SHORT_SHARE;
    add(s, hash_of('w', term->text.ptr, term->text.len), units_of(weight * WORD_WEIGHT));
    add_parts(s, padded, starts, n_chars, units_of(weight * PART_WEIGHT));
}

static void write_unit(const struct sums *s, float *out)
{
    double square = 0;

    for (size_t i = 0; i < s->dims; i++)
        square += (double)s->at[i] * (double)s->at[i];
    double length = sqrt(square);
    for (size_t i = 0; i < s->dims; i++)
        out[i] = length > 0 ? (float)((double)s->at[i] / length) : 0;
}

static int embed_ngram(rv_str text, size_t dims, float *out, rv_err **err)
{
    struct rv_terms terms;
    int rc = rv_terms_build(text, &terms, err);

    if (rc < 0)
        return rc;
    struct sums s = {calloc(dims, sizeof *s.at), dims};
    if (s.at) {
        for (size_t i = 0; i < terms.n; i++)
            add_word(&s, &terms.at[i]);
        write_unit(&s, out);
    }
    bool ok = s.at != NULL;
    free(s.at);
    rv_terms_fini(&terms);
    return ok ? 0 : RV_FAIL(err, RV_E_NOMEM, "embed a text");
}

int rv_embed_text(rv_str provider, rv_str text, size_t dims, float *out, rv_err **err)
{
    bool is_local = rv_str_is(provider, RV_EMBED_LOCAL);

    if (!is_local && !rv_str_is(provider, RV_EMBED_NGRAM)) {
        int rc = RV_FAIL(err, RV_E_INVALID, "\"%.*s\" does not embed texts without a model", RV_STR_ARG(provider));
        rv_err_set_hint(err, "use " RV_EMBED_NGRAM ", or " RV_EMBED_LOCAL " in tests");
        return rc;
    }
    if (dims < 1 || dims > RV_VECTOR_MAX_DIMS)
        return RV_FAIL(err, RV_E_INVALID, "a vector of %zu dimensions: use 1 to %d", dims, RV_VECTOR_MAX_DIMS);
    if (text.len > RV_MATCH_MAX_TEXT)
        return RV_FAIL(err, RV_E_LIMIT, "a text of %zu bytes is too long to embed (at most %zu)", text.len,
                       RV_MATCH_MAX_TEXT);
    if (!is_local)
        return embed_ngram(text, dims, out, err);
    embed_local(text, dims, out);
    return 0;
}

/* Vectors of 32-bit floats: products, a matrix of many that is searched for the nearest, and embeddings that need no
 * model. */
#ifndef RV_MATCH_VECTORS_H
#define RV_MATCH_VECTORS_H

#include "coreengine/match/match.h"

#define RV_VECTOR_MAX_DIMS 8192 /* the largest models have half as many */

/** The sum of a[i] * b[i]. One order of additions on every machine: 16 partial sums, sum k of the elements k, k + 16,
 * ..., added in pairs at the end; so the result does not depend on the width of the processor's registers. */
float rv_vector_dot(const float *a, const float *b, size_t dims);
/** False if an element is infinite or not a number. */
bool rv_vector_is_finite(const float *v, size_t dims);

/* A matrix of rows of the same number of dimensions, to be searched by one thread at a time. Rows have the numbers in
 * which they were added. */
typedef struct rv_matrix rv_matrix;
/** @param dims  1 to RV_VECTOR_MAX_DIMS. NULL: no memory */
rv_matrix *rv_matrix_new(size_t dims);
void rv_matrix_free(rv_matrix *m);
size_t rv_matrix_dims(const rv_matrix *m);
/** Add a row, and say its number. RV_E_INVALID (an element is not finite), RV_E_NOMEM */
RV_MUST_CHECK int rv_matrix_add(rv_matrix *m, const float *v, size_t *row, rv_err **err);
/** A removed row matches nothing. */
void rv_matrix_remove(rv_matrix *m, size_t row);

/* What it points to is borrowed for the call. */
struct rv_vector_query {
    const float *vector; /* of as many dimensions as the matrix */
    size_t limit;        /* at most so many hits */
    double min_score;    /* a score equal to it is enough */
    /* Which rows are searched: bit row % 64 of word row / 64; NULL: all. Then, if given, `admit` is asked too. */
    const uint64_t *rows;
    bool (*admit)(void *self, size_t row);
    /* Which of two rows with equal scores comes first: negative for a, positive for b. NULL: the lower number. */
    int (*order)(void *self, size_t a, size_t b);
    void *self;
};
struct rv_vector_hit {
    size_t row;
    double score; /* cosine */
};
/** From so many rows on 8-bit copies of the rows are compared first, and exactly only those that can be hits by the
 * bounds of the rounding: hits and scores are the same as those of comparing all. */
#define RV_MATRIX_COARSE_ROWS 20000
/** The nearest rows, best first. Rows of zeros, and a query of zeros, never match.
 * @param hits  room for query->limit; @param n  how many there are
 * @return 0, RV_E_INVALID (the query is not finite), RV_E_NOMEM */
RV_MUST_CHECK int rv_matrix_search(rv_matrix *m, const struct rv_vector_query *query, struct rv_vector_hit *hits,
                                   size_t *n, rv_err **err);

/* --- embeddings without a model --- */

#define RV_EMBED_LOCAL      "local"      /* a hash of the whole text: only equal texts are alike; for tests */
#define RV_EMBED_NGRAM      "hash-ngram" /* words and their parts, hashed: texts that share words are alike */
#define RV_EMBED_NGRAM_DIMS 384          /* numbers of a vector of the built-in n-grams */
#define RV_EMBED_LOCAL_DIMS 1536         /* numbers of a vector of the built-in words */

/** The vector of a text, of length 1; all zeros if hash-ngram finds no letter or digit in it.
 * @param provider  one of the two names
 * @param dims      1 to RV_VECTOR_MAX_DIMS
 * @return 0, RV_E_INVALID (another provider, dims), RV_E_LIMIT (RV_MATCH_MAX_TEXT), RV_E_NOMEM */
RV_MUST_CHECK int rv_embed_text(rv_str provider, rv_str text, size_t dims, float *out, rv_err **err);

#endif

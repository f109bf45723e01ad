/* What makes two texts alike: keys of names, trigrams, words, ranks, and the arithmetic of vectors. vectors.h has the
 * vectors, pages.h what is made of a page (chunks, links, edges).
 *
 * Everything here is a function of its arguments: no I/O, no clock, no locale, nothing kept between calls. Results are
 * equal on every machine: floating point uses only operations that IEEE 754 rounds correctly (+ - * / and square root),
 * in one fixed order, compiled without contraction; logarithms are computed here and not by the C library.
 *
 * Texts should be UTF-8. A byte that is not part of a valid sequence counts as one character that is neither a letter
 * nor a digit. Letters and digits are those of Unicode (utf8proc): categories L, Nl and Nd, and the marks and symbols
 * that Unicode calls alphabetic. */
#ifndef RV_MATCH_H
#define RV_MATCH_H

#include "coreengine/base/base.h"

#define RV_MATCH_MAX_TEXT ((size_t)1 << 20) /* bytes of one text; more is RV_E_LIMIT */

/* --- keys --- */

/** Append the key of a name: trim spaces, drop all but letters, digits, white space, "-" and "_", put one "-" for each
 * run of white space, "_" and "-", lower-case. Beyond ASCII the letters and digits of Unicode stay, with the marks that
 * follow them, in NFC and in one case: the lower case of the upper case, so that two names that differ in case only
 * share a key. Idempotent. Nothing is appended if nothing is left of the name: its key is then the id of the entity.
 * Sticky: RV_E_LIMIT for a name of more than RV_MATCH_MAX_TEXT bytes, RV_E_NOMEM; check out at the end. */
void rv_match_key(rv_str name, rv_buf *out);

/* --- trigrams, as pg_trgm of PostgreSQL has them in a database with the ctype C.UTF-8 --- */

/* The trigrams of a text: ascending, each once, below 2^24. A window of three ASCII characters is their bytes, first in
 * the highest place; any other is 24 bits of a CRC. */
struct rv_grams {
    uint32_t *at; /* owned; NULL when n is 0 */
    size_t n;
};
/** @param out  overwritten; rv_grams_fini() it. RV_E_LIMIT (RV_MATCH_MAX_TEXT), RV_E_NOMEM */
RV_MUST_CHECK int rv_grams_of(rv_str text, struct rv_grams *out, rv_err **err);
void rv_grams_fini(struct rv_grams *grams); /* fine on a zeroed one, and afterwards it is one */
/** The similarity of two sets of n and m trigrams that share some of them: shared / (n + m - shared), 0 to 1, as a
 * 32-bit float. 0 if either is empty. */
float rv_grams_score(size_t shared, size_t n, size_t m);
/** The decimal number with the fewest digits that is that float: what people and JSON are shown, 0.7 and not
 * 0.699999988. */
double rv_float_decimal(float x);
/** Both at once. */
float rv_grams_similarity(const uint32_t *a, size_t n, const uint32_t *b, size_t m);

/* --- words, for full text --- */

#define RV_TERM_MAX_CHARS  64    /* of a word; the rest of a longer one is not looked at */
#define RV_TERMS_MAX_WORDS 50000 /* of a text; those after them are not looked at */

/* A word of a text: a run of letters, digits and the marks after them, in NFC, in the case of keys. Of Han, Hiragana
 * and Katakana, which are written without spaces, each pair of neighbours is a word, and a character without one. */
struct rv_word {
    rv_str text;
    uint32_t count; /* how often it occurs */
};
/* The words of a text, in the order of their bytes, each once. */
struct rv_terms {
    struct rv_word *at; /* owned */
    size_t n;
    size_t length; /* words of the text, with repetitions */
    char *bytes;   /* owned: of the words */
};
/** @param out  overwritten; rv_terms_fini() it. RV_E_LIMIT (RV_MATCH_MAX_TEXT), RV_E_NOMEM */
RV_MUST_CHECK int rv_terms_of(rv_str text, struct rv_terms *out, rv_err **err);
void rv_terms_fini(struct rv_terms *terms); /* fine on a zeroed one, and afterwards it is one */

/* --- ranks --- */

struct rv_lexical_doc {
    const struct rv_terms *terms; /* borrowed */
    double score;                 /* out: 0 if it has no word of the query */
};
/** Score documents for a query by BM25 (k1 1.2, b 0.75). How rare a word is and how long documents are is counted over
 * docs[0..n) alone, so that a score says nothing about documents that are not among them: pass those that the caller
 * may see. Each word of the query counts once. */
void rv_lexical_rank(const struct rv_terms *query, struct rv_lexical_doc *docs, size_t n);
/** The parts of that sum, for callers that have counts: how much a word says that n_with of n documents have, and what
 * it adds to the score of a document that has it count times. length: its words, as a multiple of the average. */
double rv_lexical_rarity(size_t n, size_t n_with);
double rv_lexical_part(double rarity, double count, double length);
/** The limit of a part for a word that stands in a document any number of times. */
double rv_lexical_most(double rarity);

#define RV_FUSE_K 60 /* the usual constant: the first few ranks differ little */
struct rv_fused {
    size_t item;
    double score;
};
/* One list, best first: items are the caller's numbers, each at most once in a list. */
struct rv_ranking {
    const size_t *items;
    size_t n;
};
/** Reciprocal rank fusion: the score of an item is the sum of 1 / (RV_FUSE_K + rank) over the lists that have it, where
 * the best of a list has rank 1. Highest score first; of equal ones the lower number first.
 * @param n_items  items are below it
 * @param out      room for n_items; the number written is returned in *n_out */
RV_MUST_CHECK int rv_fuse_ranks(const struct rv_ranking *lists, size_t n_lists, size_t n_items, struct rv_fused *out,
                                size_t *n_out, rv_err **err);

#endif

/* What makes two texts alike: keys of names, trigrams, words, ranks, and vectors; and what is made of a
 * page: chunks, links, edges.
 *
 * Everything here is a function of its arguments: no I/O, no clock, no locale, nothing kept between calls. Results are
 * equal on every machine: floating point uses only operations that IEEE 754 rounds correctly (+ - * / and square root),
 * in one fixed order, compiled without contraction; logarithms are computed here and not by the C library.
 *
 * Texts should be UTF-8. A byte that is not part of a valid sequence counts as one character that is neither a letter
 * nor a digit. Letters and digits are those of Unicode (utf8proc): categories L, Nl and Nd, and the marks and symbols
 * that Unicode calls alphabetic. */
#ifndef RV_MATCH_MATCH_H
#define RV_MATCH_MATCH_H

#include "coreengine/base/base.h"

#define RV_MATCH_MAX_TEXT ((size_t)1 << 20) /* bytes of one text; more is RV_E_LIMIT: the time grows with it */

/* --- keys --- */

/** Append the key of a name: trim spaces, drop all but letters, digits, white space, "-" and "_", put one "-" for each
 * run of white space, "_" and "-", lower-case. Beyond ASCII the letters and digits of Unicode stay, with the marks that
 * follow them, in NFC and in one case: the lower case of the upper case, so that two names that differ in case only
 * share a key. Idempotent. Nothing is appended if nothing is left of the name: its key is then the id of the entity.
 * Sticky: RV_E_LIMIT for a name of more than RV_MATCH_MAX_TEXT bytes, RV_E_NOMEM; check out at the end. */
void rv_match_write_key(rv_str name, rv_buf *out);

/* --- trigrams, as pg_trgm of PostgreSQL has them in a database with the ctype C.UTF-8 --- */

/* The trigrams of a text: ascending, each once, below 2^24. A window of three ASCII characters is their bytes, first in
 * the highest place; any other is 24 bits of a CRC. */
struct rv_grams {
    uint32_t *at; /* owned; NULL when n is 0 */
    size_t n;
};
/** @param out  overwritten; rv_grams_fini() it. RV_E_LIMIT (RV_MATCH_MAX_TEXT), RV_E_NOMEM */
RV_MUST_CHECK int rv_grams_build(rv_str text, struct rv_grams *out, rv_err **err);
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

#define RV_TERM_MAX_CHARS  64    /* of a word; the rest is not looked at: real words are shorter */
#define RV_TERMS_MAX_WORDS 50000 /* of a text; those after them are not looked at: a book has as many */

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
RV_MUST_CHECK int rv_terms_build(rv_str text, struct rv_terms *out, rv_err **err);
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
/* One list, best first: items are the caller's numbers, each at most once; borrowed. */
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

/* Vectors of 32-bit floats: products, a matrix of many that is searched for the nearest, and embeddings that need no
 * model. */

#define RV_VECTOR_MAX_DIMS 8192 /* numbers of a vector: the largest models have half as many */

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

/* What is made of a page: its name, its chunks, the edges that its links stand for; and how edges are merged. */

/* --- chunks --- */

#define RV_CHUNK_CHARS   1500 /* of a piece, unless told otherwise: about 400 tokens */
#define RV_CHUNK_OVERLAP 200  /* characters that a piece repeats of the one before, unless told otherwise */

/** The most characters that neighbouring chunks of so many may share: less than half of them, so that no character is
 * in three. */
size_t rv_chunk_max_overlap(size_t max_chars);

struct rv_chunks {
    rv_str *at; /* owned; the texts are borrowed from the text that was cut */
    size_t n;
};
/** Cut a text into chunks of at most max_chars characters (code points), none of which is cut. A chunk ends, if its
 * second half has such a place, behind the last empty line, else behind the last end of a sentence (. ! ? and
 * white space, or their ideographic forms, or a line feed), else behind the last white space, else where it is full.
 * The next one begins `overlap` characters before that end, or behind the first white space after that point.
 * A text that has no more than max_chars characters is one chunk; an empty one, or one of white space, is none.
 * @param out  overwritten; rv_chunks_fini() it
 * @return 0, RV_E_INVALID (max_chars 0, or overlap above rv_chunk_max_overlap()), RV_E_NOMEM */
RV_MUST_CHECK int rv_chunks_build(rv_str text, size_t max_chars, size_t overlap, struct rv_chunks *out, rv_err **err);
void rv_chunks_fini(struct rv_chunks *chunks);

/* --- names and links --- */

/** Append the name of a page: its file name without folders and without its last extension; README takes the name of
 * its folder, if the path has one. */
void rv_page_write_name(rv_str path, rv_buf *out);
/** An array of edges {target, relation: "links_to", weight: 1.0}, one for each page that a page of Markdown links to,
 * in order of first appearance. A link is [text](target) or [text](<target> "title") outside of code (fences, `spans`),
 * not a picture, whose target is not a place elsewhere (with a scheme such as https:, or a host) or within the page
 * (#...). The edge's target is the name of the page, without query and fragment, %XX decoded.
 * @param path  of the page, for targets such as ../README.md; may be empty
 * @param out   owned by the caller. RV_E_LIMIT (a page of more than RV_PAGE_MAX_BYTES), RV_E_NOMEM */
#define RV_PAGE_MAX_BYTES ((size_t)8 << 20) /* of a page: as any JSON text */
#define RV_PAGE_MAX_LINKS 1000 /* edges of one page; links after them are not looked at: a row has as many edges */
RV_MUST_CHECK int rv_page_build_links(rv_str markdown, rv_str path, json_object **out, rv_err **err);

/* --- edges --- */

#define RV_EDGE_RELATION "related" /* of an edge that names none */
#define RV_EDGES_MAX     10000     /* of one entity: a traversal reads them all */

/** Merge the edges of an entity with new ones: arrays of {target, relation?, weight?, ...}. Two edges are the same if
 * the keys of their targets and their relations are. Of those the one with the greatest weight (absent: 1.0) is kept
 * whole, the first of equal ones, at the place of the first. Weights are clamped to 0..1. What is not an edge (not an
 * object, no text as target, a relation that is not text, a weight that is not a number) is left out.
 * @param existing, more  arrays, or strings that contain one as JSON (a fault of older writers, repaired here); NULL:
 * empty
 * @param out        a new array, owned by the caller; neither input is changed
 * @param n_refused  how many elements of `more` were left out; may be NULL
 * @return 0, RV_E_INVALID (an input is not an array), RV_E_LIMIT (more than RV_EDGES_MAX edges), RV_E_NOMEM */
RV_MUST_CHECK int rv_edges_merge(json_object *existing, json_object *more, json_object **out, size_t *n_refused,
                                 rv_err **err);
/** The relation of an edge; RV_EDGE_RELATION if it is absent, null or empty. Borrowed. */
rv_str rv_edge_relation(json_object *edge);

#endif

/* SEARCH and FUZZY: which rows are alike a text. Results are JSON as queries give it (p8-data 9), with the same bytes
 * on every database: stores propose rows, and scores, their order and ties are decided in C. */
#ifndef RV_KNOWLEDGE_SEARCH_H
#define RV_KNOWLEDGE_SEARCH_H

#include "coreengine/store/search.h"
#include "coreengine/store/store.h"

/* --- FUZZY --- */
struct rv_knowledge_fuzzy {
    rv_str text;      /* as typed, UTF-8 */
    double threshold; /* 0 to 1; a score equal to it is enough */
    size_t limit;     /* 1 to RV_SEARCH_MAX_LIMIT */
};
/** Rows of all kinds whose key or summary is spelled like the text.
 * @param out  an array of {entity_type, similarity_score, data: {id, key, type, summary, metadata, graph_edges}}, best
 *             first, then newest first, then by id; owned by the caller
 * @return 0 (also if nothing is alike), RV_E_INVALID (text, threshold, limit), RV_E_LIMIT, RV_E_NOMEM, RV_E_IO */
RV_MUST_CHECK int rv_knowledge_fuzzy(rv_store *s, const struct rv_store_scope *scope,
                                     const struct rv_knowledge_fuzzy *query, json_object **out, rv_err **err);

/* --- SEARCH --- */

/* How rows are ranked. */
enum rv_knowledge_rank {
    RV_RANK_COSINE,  /* by the vectors of the provider; by words alone if no row of the table has such a vector */
    RV_RANK_HYBRID,  /* by vectors and by words, the two lists fused by reciprocal rank */
    RV_RANK_LEXICAL, /* by words alone */
};

/* What makes vectors when the provider is a server. */
struct rv_knowledge_embedder {
    /** The vectors of n texts, none of which is empty: *values has n rows of *dims, is the caller's and is freed by
     * free(). It may block. */
    int (*embed)(void *self, const char *provider, const rv_str *texts, size_t n, float **values, size_t *dims,
                 rv_err **err);
    void *self; /* borrowed for the call */
};

/* What it points to is borrowed for the call. */
struct rv_knowledge_search {
    rv_str text;           /* UTF-8 */
    rv_str table;          /* the name of a kind that has an embedded field */
    rv_str category;       /* ptr NULL: any; of tables without that column passed over */
    double min_similarity; /* 0 to 1: of the cosine */
    size_t limit;          /* 1 to RV_SEARCH_MAX_LIMIT */
    enum rv_knowledge_rank rank;
    const char *provider; /* NULL: that of the store */
    /* NULL: rows are ranked by words if the provider is not one that works without a server. */
    const struct rv_knowledge_embedder *embedder;
};
/** Rows of one table that are about what the text is about.
 * @param out       an array of {entity_type, similarity_score, data}, data being the whole row; owned by the caller.
 *                  Rows that were found by their words have match: "lexical" behind the score, which is then 0 to 1 and
 *                  not a cosine. With RV_RANK_HYBRID each row has match: "vector", "lexical" or "both", and rank_score
 *                  (the fused one, by which they are ordered); similarity_score is the cosine, null where there is none
 * @param warnings  may be NULL; else an array of texts is put there, owned by the caller: the provider failed, the
 * table is too large to be searched fast
 * @return 0 (also if nothing is found), RV_E_INVALID (text, table, numbers, dimensions), RV_E_NOMEM, RV_E_IO */
RV_MUST_CHECK int rv_knowledge_search(rv_store *s, const struct rv_store_scope *scope,
                                      const struct rv_knowledge_search *query, json_object **out,
                                      json_object **warnings, rv_err **err);

/* --- Work at embeddings --- */
/* What it points to is borrowed for the call. */
struct rv_knowledge_embed {
    const char *provider; /* NULL: that of the store; another one becomes the store's, and its rows are queued */
    size_t limit;         /* rows at most; 0: until nothing is left */
    size_t batch;         /* texts of one call; 0: 20 */
    const struct rv_knowledge_embedder *embedder;
    struct rv_clock clock;
    bool is_again; /* work of this process was done before: rows that lack a vector are in the queue already */
};
struct rv_knowledge_embedded {
    int64_t processed, skipped, failed;
};
/** Embed what is queued. Rows whose text has not changed are counted as skipped. A call of the provider that fails
 * counts an attempt of each of its rows; rows fail after three.
 * @param why  may be NULL; else the last failure of the provider is put there, owned by the caller; NULL: none
 * @return 0, or what the store fails with; RV_E_INVALID: the provider needs an embedder and none is given */
RV_MUST_CHECK int rv_knowledge_embed(rv_store *s, const struct rv_knowledge_embed *work,
                                     struct rv_knowledge_embedded *out, rv_err **why, rv_err **err);

#endif

/* Queries of the REM dialect (coreengine/rem), answered from a store: LOOKUP, TRAVERSE, SQL and the searches.
 *
 * Every row that is read, on the way as well as in the result, is one that the scope may see; what it does not see is
 * as if it did not exist. Both databases give equal results. */
#ifndef RV_KNOWLEDGE_KNOWLEDGE_H
#define RV_KNOWLEDGE_KNOWLEDGE_H

#include "coreengine/rem/rem.h"
#include "coreengine/store/store.h"

/* SEARCH and FUZZY: which rows are alike a text. Results are JSON as queries give it (p8-data 9), with the same bytes
 * on every database: stores propose rows, and scores, their order and ties are decided in C. */

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
RV_MUST_CHECK int rv_knowledge_search_fuzzy(rv_store *s, const struct rv_store_scope *scope,
                                            const struct rv_knowledge_fuzzy *query, json_object **out, rv_err **err);

/* --- SEARCH --- */

/* How rows are ranked. */
enum rv_knowledge_rank {
    RV_RANK_COSINE,  /* by the vectors of the provider; by words alone if no row of the table has such a vector */
    RV_RANK_HYBRID,  /* by vectors and by words, the two lists fused by reciprocal rank */
    RV_RANK_LEXICAL, /* by words alone */
};

/* Vectors of texts, a row for each. */
struct rv_knowledge_vectors {
    float *values; /* owned; freed by free() */
    size_t dims;   /* of one row */
};
/* What makes vectors when the provider is a server. */
struct rv_knowledge_embedder {
    /** The vectors of n texts, none of which is empty; the caller's. It may block. */
    int (*embed)(void *self, const char *provider, const rv_str *texts, size_t n, struct rv_knowledge_vectors *out,
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

/* --- Queries --- */
#define RV_KNOWLEDGE_MAX_ROWS  500                 /* of TRAVERSE: each is read from the store */
#define RV_KNOWLEDGE_MAX_BYTES ((size_t)256 << 20) /* of all results, as JSON, by default: they are in memory */
/* Of one statement of SQL: */
#define RV_KNOWLEDGE_SQL_ROWS  200
#define RV_KNOWLEDGE_SQL_MS    5000 /* of one statement, unless the caller says it */
#define RV_KNOWLEDGE_CELL_KIB  16   /* of a text of a result of SQL; what is longer is cut */
#define RV_KNOWLEDGE_SQL_CELL  ((size_t)RV_KNOWLEDGE_CELL_KIB << 10) /* the same in bytes */
#define RV_KNOWLEDGE_SQL_BYTES ((size_t)4 << 20)                     /* of all rows */

/* What it points to is borrowed for the call. */
struct rv_knowledge_opts {
    int64_t now_us; /* now() of SQL; 0: the clock */
    enum rv_rem_natural natural;
    enum rv_knowledge_rank rank;                  /* of a SEARCH that does not say it */
    const struct rv_knowledge_embedder *embedder; /* of SEARCH, as struct rv_knowledge_search has it */
    int64_t sql_ms;                               /* of one statement of SQL; 0: RV_KNOWLEDGE_SQL_MS */
    size_t max_bytes; /* of the results as JSON: rows that do not fit are left out; 0: RV_KNOWLEDGE_MAX_BYTES */
};

/* Why a query has no answer, for programs. */
struct rv_knowledge_fault {
    const char *word; /* of RV_REM_FAULTS or RV_KNOWLEDGE_FAULTS; NULL: the store failed, or memory ran out. Static */
    int line, col;    /* of the query, from 1; 0: it has no place */
};
/* Faults beside those of RV_REM_FAULTS: constant, word, code of the error value, meaning. */
#define RV_KNOWLEDGE_FAULTS(X)                                                                                         \
    X(SQL_ERROR, "sql_error", RV_E_INVALID, "the database refuses the statement")                                      \
    X(TIMEOUT, "timeout", RV_E_TIMEOUT, "the statement took longer than it may")                                       \
    X(TOO_LARGE, "too_large", RV_E_LIMIT, "a value, or what the statement needs to compute it, is too large")

/* Borrowed for the call. */
struct rv_knowledge_query {
    rv_str text;
    const struct rv_knowledge_opts *opts; /* may be NULL */
};
/** Answer a query.
 *
 *  *out is an object: `mode` ("LOOKUP"), `results` (a list, see below), `warnings` (a list of texts), `truncated`
 * (true: a limit left rows out).
 *  - LOOKUP: {entity_type, data}, data being the whole row, in the order of the keys. A key that means nothing adds
 *    nothing.
 *  - TRAVERSE: {depth, entity_key, entity_type, entity_id, rel_type, rel_weight, path, entity_record}, breadth first.
 *  - SEARCH, FUZZY: as above.
 *  - SQL: each row as an object, its columns in their order. 1 and 0 are true and false.
 *  @param out    on success the object; the caller's
 *  @param fault  may be NULL; filled in on failure
 *  @return 0, a code of one of the two lists of faults, or what the store fails with */
RV_MUST_CHECK int rv_knowledge_query(rv_store *store, const struct rv_store_scope *scope,
                                     const struct rv_knowledge_query *query, json_object **out,
                                     struct rv_knowledge_fault *fault, rv_err **err);

#endif

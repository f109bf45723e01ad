/* The part of the store that finds rows: by names that are spelled alike, words, vectors, with the queue of rows whose
 * vectors have to be made; and by a statement that others wrote.
 *
 * Beside each row of a kind that has a key the store keeps its tokens: the trigrams of its key and of its summary, the
 * words of its name and of its embedded field. They are written in the transaction of the row, and a row of ciphertext
 * has those of its key alone. A handle keeps what it has searched in memory, one index for each tenant and purpose, and
 * before each search reads the rows that changed since. Only rows that the scope sees are ranked or counted. */
#ifndef RV_STORE_SEARCH_H
#define RV_STORE_SEARCH_H

#include "coreengine/rem/rem.h"
#include "coreengine/store/entities.h"

#define RV_SEARCH_MAX_LIMIT 1000                /* hits of one search: each is put into its place among all */
#define RV_SEARCH_MAX_TEXT  ((size_t)64 << 10)  /* bytes of a query: each of its words is looked up */
#define RV_SEARCH_SLOW_ROWS 50000               /* rows with vectors; callers warn above it */
#define RV_EMBED_MAX_TEXT   ((size_t)24000)     /* bytes that are embedded of one row: what models take */
#define RV_EMBED_MAX_NAME   200                 /* bytes of a provider: it is a key of rows */
#define RV_EMBED_MAX_TRIES  3                   /* of one row, then it is left without a vector: each can cost */
#define RV_EMBED_LEASE_US   (5 * RV_US_PER_MIN) /* five minutes after a claim others may claim the row */
#define RV_EMBED_MAX_BATCH  256                 /* rows of one claim: one request for embeddings takes their texts */

struct rv_search_hit {
    const struct rv_kind *kind; /* static */
    int64_t row;                /* rv_store_load_entity() */
    double score;
};
struct rv_search_hits {
    struct rv_search_hit *at; /* owned; best first, of equal ones the newest first, then by id */
    size_t n;
    size_t n_rows; /* that were ranked: in scope, with a vector or with words */
};
void rv_search_hits_fini(struct rv_search_hits *hits);

struct rv_name_search {
    rv_str text;
    double threshold; /* 0 to 1; 0: all rows */
    size_t limit;
};
/** Rows of all kinds by the trigram similarity of their key or summary, the greater one, with the text. RV_E_INVALID,
 * RV_E_LIMIT, RV_E_NOMEM */
RV_MUST_CHECK int rv_store_search_names(rv_store *s, const struct rv_store_scope *scope,
                                        const struct rv_name_search *query, struct rv_search_hits *out, rv_err **err);

/** The key and the summary of a row, as the index of names has them. RV_E_NOT_FOUND: no such row, or the scope does not
 *  see it. */
RV_MUST_CHECK int rv_store_read_key(rv_store *s, const struct rv_store_scope *scope, const struct rv_search_hit *hit,
                                    rv_buf *key, rv_buf *summary, rv_err **err);

/* What it points to is borrowed for the call. */
struct rv_search_rows {
    const char *kind;
    rv_str category; /* ptr NULL: any; of kinds without that column passed over */
    size_t limit;
    /* By vectors. */
    const char *provider;
    const float *vector;
    size_t dims;
    double min_score;
};
/** Rows of one kind by the cosine of their vector and that of the query. RV_E_INVALID: the vectors of the provider have
 *  other dimensions. */
RV_MUST_CHECK int rv_store_search_vectors(rv_store *s, const struct rv_store_scope *scope,
                                          const struct rv_search_rows *rows, struct rv_search_hits *out, rv_err **err);
/** Rows of one kind by BM25 over the words of the text, as a share (0 to 1) of the most that a row can score. Rows in
 *  scope and category are what is counted. */
RV_MUST_CHECK int rv_store_search_words(rv_store *s, const struct rv_store_scope *scope,
                                        const struct rv_search_rows *rows, rv_str text, struct rv_search_hits *out,
                                        rv_err **err);

/* --- Vectors and their queue --- */

/** Append the provider of the store: hash-ngram unless another one was set. */
RV_MUST_CHECK int rv_store_read_embedding_provider(rv_store *s, rv_buf *out, rv_err **err);
/** Set the provider, and queue all rows that it has not embedded. */
RV_MUST_CHECK int rv_store_set_embedding_provider(rv_store *s, const char *provider, int64_t now_us, rv_err **err);
/** Whether this process makes the vectors of a provider itself, when a row is written. */
bool rv_embedding_is_local(const char *provider);

/* A row to embed. */
struct rv_embedding {
    int64_t key, row;
    const struct rv_kind *kind; /* static */
    const char *text;           /* owned by the list; "": nothing to embed */
    char hash[RV_HASH_MAX];
    bool is_current; /* its vector has that hash */
    int attempts;    /* this one counts; from 0 again with each text and provider */
    int64_t claimed_us;
};
struct rv_embeddings_claimed {
    struct rv_embedding *at; /* owned */
    size_t n;
};
void rv_embeddings_claimed_fini(struct rv_embeddings_claimed *list);
/** Claim up to limit of the oldest rows of the queue, all tenants', for five minutes. */
RV_MUST_CHECK int rv_store_claim_embeddings(rv_store *s, const char *provider, size_t limit, int64_t now_us,
                                            struct rv_embeddings_claimed *out, rv_err **err);
struct rv_vector {        /* borrowed */
    const char *provider; /* that made it */
    const float *values;
    size_t dims;
};
/** Keep the vector of a row and take the row from the queue; nothing happens if it was deleted or changed meanwhile, or
 *  claimed by another process after the lease. */
RV_MUST_CHECK int rv_store_put_vector(rv_store *s, const struct rv_embedding *row, const struct rv_vector *vector,
                                      int64_t now_us, rv_err **err);
/** Nothing is to be done for it. */
RV_MUST_CHECK int rv_store_skip_embedding(rv_store *s, const struct rv_embedding *row, rv_err **err);
/** Back into the queue, or failed after RV_EMBED_MAX_TRIES: *failed. */
RV_MUST_CHECK int rv_store_fail_embedding(rv_store *s, const struct rv_embedding *row, const char *why, bool *failed,
                                          rv_err **err);

/* --- SQL that others wrote: one statement that reads, over the rows that a scope sees. A statement comes from
 * rv_rem_write_sql() (coreengine/rem), which lets nothing through but a subset that reads the tables of
 * rv_rem_tables(). Here those tables come to be: each is a part of a WITH clause, computed first and in full
 * (MATERIALIZED), with the rows of the scope alone; no condition, function or cast of the statement is ever applied to
 * another row. Tenant and user are parameters of the statement, which has none of its own. In PostgreSQL the URL's
 * "query_role" names a role for these statements alone. --- */
enum rv_cell_type { RV_CELL_NULL, RV_CELL_INT, RV_CELL_REAL, RV_CELL_TEXT };
struct rv_cell {
    enum rv_cell_type type;
    int64_t number;
    double real; /* finite */
    rv_str text; /* UTF-8 */
};
struct rv_store_ask {
    const struct rv_rem_sql *sql; /* for the database of this store; borrowed */
    int64_t max_rows, max_ms;
    size_t max_cell;  /* bytes of a text; what is longer is cut */
    size_t max_bytes; /* of all cells together */
    /** The names of the columns, once, before the first row; there may be two of one name. */
    int (*on_columns)(void *self, const char *const *names, size_t n, rv_err **err);
    /** A row; borrowed. Not 0: it ends there; RV_STORE_ENOUGH ends it well, a code is passed on. */
    int (*on_row)(void *self, const struct rv_cell *cells, size_t n, rv_err **err);
    void *self; /* borrowed for the call */
};
struct rv_store_asked {
    bool has_more;  /* rows that the limits left out */
    bool cut_cells; /* a text was longer than max_cell */
};
/** Carry the statement out.
 *  @return RV_E_INVALID (the database refuses it: its text says why), RV_E_TIMEOUT (max_ms), RV_E_LIMIT (a value or its
 *  memory became too large), RV_E_STATE (within a group), RV_E_IO, RV_E_NOMEM */
RV_MUST_CHECK int rv_store_ask(rv_store *s, const struct rv_store_scope *scope, const struct rv_store_ask *ask,
                               struct rv_store_asked *out, rv_err **err);

#endif

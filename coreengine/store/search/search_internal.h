/* Shared by the files of searching: tokens.c writes what rows are found by, search/refresh.c keeps it in memory
 * and reads what changed, search.c ranks, embeddings.c is the queue of vectors. */
#ifndef RV_STORE_SEARCH_INTERNAL_H
#define RV_STORE_SEARCH_INTERNAL_H

#include "coreengine/match/match.h"
#include "coreengine/store/entities/entities_internal.h"
#include "coreengine/store/search.h"

/* --- tokens.c --- */
/** What the row (k->whole) is found by, in its transaction; key and summary are those of the index of names. The vector
 * of a provider that needs no server is made at once; for others the row is queued when its text changed. */
RV_MUST_CHECK int store_tokens_put(struct sql_store *st, const struct rv_key_source *k, rv_str key, rv_str summary,
                                   rv_err **err);
RV_MUST_CHECK int store_tokens_drop(struct sql_store *st, const char *kind, int64_t row, rv_err **err);
RV_MUST_CHECK int store_tokens_drop_all(struct sql_store *st, rv_err **err);
/** The row changed without its tokens: its vector did. */
RV_MUST_CHECK int store_tokens_touch(struct sql_store *st, const char *kind, int64_t row, rv_err **err);
RV_MUST_CHECK int store_tokens_copy_provider(struct sql_store *from, struct sql_store *to, rv_err **err);
/** The text of a row that is embedded, and its hash ("": there is none). Borrowed from whole. */
rv_str store_tokens_text(const struct rv_kind *kind, json_object *whole, char hash[RV_HASH_MAX]);
/** The provider of the store, kept with the connection. */
RV_MUST_CHECK int store_tokens_provider(struct sql_store *st, bool again, const char **out, rv_err **err);
struct rv_embedded_row { /* in the table of its kind; the hash of the text that was embedded; borrowed */
    const char *kind;
    int64_t row;
    const char *hash;
};
RV_MUST_CHECK int store_vector_keep(struct sql_store *st, const struct rv_embedded_row *of,
                                    const struct rv_vector *vector, int64_t now_us, rv_err **err);
/** Compare what is kept beside a row with what it says: kept is a row of SQL_INDEX_PAGE for that provider. *what: what
 *  differs, as a text of its own ("other trigrams than ..."); NULL: nothing. Static */
struct rv_found_by {            /* what a row is found by; borrowed */
    const struct rv_kind *kind; /* static */
    json_object *whole;         /* the row */
    rv_str key, summary;
};
RV_MUST_CHECK int store_tokens_compare(const struct rv_found_by *row, const char *provider, rv_sql_stmt *kept,
                                       const char **what, rv_err **err);
/** Before the tokens of all rows are written again: drop vectors that cannot be those of their rows. */
RV_MUST_CHECK int store_vectors_mend(struct sql_store *st, rv_err **err);
/** Behind that: drop vectors and places in the queue whose rows are gone. */
RV_MUST_CHECK int store_vectors_drop_lost(struct sql_store *st, rv_err **err);
/** Whether bytes are a vector of dims elements. */
bool store_vector_is_whole(rv_str bytes, int64_t dims);
/** The 32-bit hash by which a word is found. */
uint32_t store_word_hash(rv_str word);

/* --- search/refresh.c: what a handle has in memory --- */

/* From 64-bit numbers to 32-bit ones. */
struct rv_number_map {
    uint64_t *keys;   /* owned; key + 1, 0: free */
    uint32_t *values; /* owned */
    size_t n, cap;
};

enum rv_index_of { RV_INDEX_NAMES, RV_INDEX_WORDS, RV_INDEX_VECTORS, RV_N_INDEXES };

#define RV_INDEX_MAX_DOCS ((size_t)1 << 24) /* rows: a posting has 24 bits for one, and 8 for what it counts */

struct rv_index_doc {
    const struct rv_kind *kind; /* static */
    int64_t row, created_us;
    char *id;          /* owned */
    uint32_t category; /* the number of its text; 0: none */
    uint32_t size[2];  /* NAMES: trigrams of the key and of the summary; WORDS: words, with repetitions */
    bool is_dead;
};
struct rv_posting_list {
    uint32_t *at; /* owned */
    uint32_t n, cap;
};
struct rv_search_index {
    enum rv_index_of of;
    char *tenant, *provider;    /* owned; provider of VECTORS */
    char *owner;                /* whose rows, owned; "": those without an owner, NULL: all rows */
    const struct rv_kind *kind; /* NULL: all; static */
    int64_t since;              /* the mark of what was read; 0: nothing yet */
    int64_t used;               /* when it was used last, in searches */
    struct rv_index_doc *docs;  /* owned */
    size_t n, cap, n_dead;
    struct rv_number_map rows;  /* from kind and row to the doc */
    struct rv_number_map texts; /* from hashes of categories to their numbers */
    char **names;               /* owned, by number - 1 */
    size_t n_names, names_cap;
    struct rv_number_map terms;    /* from a trigram or the hash of a word to its list */
    struct rv_posting_list *lists; /* owned */
    size_t n_lists, lists_cap;
    rv_matrix *matrix; /* of VECTORS, rows as docs; NULL while there is none; owned */
};
/** The number of a text, 0 for "" and NULL. make: give it one. UINT32_MAX: it has none, or no memory (make). */
uint32_t store_doc_text(struct rv_search_index *x, rv_str text, bool make);
const struct rv_posting_list *store_doc_list(const struct rv_search_index *x, uint32_t term);

/* --- search/refresh.c --- */
/* An index that is searched. A user's rows and those without an owner are two indexes, so that rows of other users are
 * neither read nor passed over: how much there is of them does not change how long a search takes. */
struct rv_search_indexes {
    struct rv_search_index *at[2]; /* borrowed from the handle until the next call */
    size_t n;
};
/* Which indexes: of names, of words, or of the vectors of a provider. Borrowed for the call. */
struct rv_index_key {
    enum rv_index_of of;
    const struct rv_kind *kind; /* NULL: all */
    const char *provider;       /* of vectors */
};
/** The indexes for that purpose of what the scope sees, as the rows are now. */
RV_MUST_CHECK int store_search_indexes_get(rv_store *s, const struct rv_store_scope *scope,
                                           const struct rv_index_key *key, struct rv_search_indexes *out, rv_err **err);
struct rv_search_cache;
void store_search_cache_free(struct rv_search_cache *cache);

#endif

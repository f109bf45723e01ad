/* Queries of the REM dialect (coreengine/rem), answered from a store: LOOKUP, TRAVERSE, SQL and the searches.
 *
 * Every row that is read, on the way as well as in the result, is one that the scope may see; what it does not see is
 * as if it did not exist. Both databases give equal results. */
#ifndef RV_KNOWLEDGE_H
#define RV_KNOWLEDGE_H

#include "coreengine/knowledge/search.h"
#include "coreengine/rem/rem.h"
#include "coreengine/store/store.h"

#define RV_KNOWLEDGE_MAX_ROWS  500                 /* of TRAVERSE */
#define RV_KNOWLEDGE_MAX_BYTES ((size_t)256 << 20) /* of all results, as JSON, when the caller gives no other limit */
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

/** Answer a query.
 *
 *  *out is an object: `mode` ("LOOKUP"), `results` (a list, see below), `warnings` (a list of texts), `truncated`
 * (true: a limit left rows out).
 *  - LOOKUP: {entity_type, data}, data being the whole row, in the order of the keys. A key that means nothing adds
 *    nothing.
 *  - TRAVERSE: {depth, entity_key, entity_type, entity_id, rel_type, rel_weight, path, entity_record}, breadth first.
 *  - SEARCH, FUZZY: as search.h says.
 *  - SQL: each row as an object, its columns in their order. 1 and 0 are true and false.
 *  @param opts   may be NULL
 *  @param out    on success the object; the caller's
 *  @param fault  may be NULL; filled in on failure
 *  @return 0, a code of one of the two lists of faults, or what the store fails with */
RV_MUST_CHECK int rv_knowledge_query(rv_store *store, const struct rv_store_scope *scope, rv_str text,
                                     const struct rv_knowledge_opts *opts, json_object **out,
                                     struct rv_knowledge_fault *fault, rv_err **err);

#endif

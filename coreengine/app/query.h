/* Queries: rows of the store by their keys. */
#ifndef RV_APP_QUERY_H
#define RV_APP_QUERY_H

#include "coreengine/store/store.h"

#define RV_QUERY_MAX_KEYS 100
struct rv_query {
    rv_buf keys[RV_QUERY_MAX_KEYS];
    size_t n_keys;
};
/** "LOOKUP KEY[, KEY...]", or "REM LOOKUP ..." as shortened messages have it. RV_E_INVALID says what is there. */
RV_MUST_CHECK int rv_query_parse(rv_str text, struct rv_query *out, rv_err **err);
void rv_query_fini(struct rv_query *q);

/** The rows that have these keys, as an array of {entity_type, data}; the caller puts it. Case, blanks and punctuation
 *  are ignored where no row has exactly that key. Rows that do not exist, or belong to other users, are left out. */
RV_MUST_CHECK int rv_query_look_up(rv_store *store, const struct rv_store_scope *scope, const struct rv_query *q,
                                   json_object **out, rv_err **err);

#endif

/* The text of a query. */
#ifndef RV_APP_QUERY_H
#define RV_APP_QUERY_H

#include "coreengine/base/base.h"

#define RV_QUERY_MAX_KEYS 100
struct rv_query {
    rv_buf keys[RV_QUERY_MAX_KEYS];
    size_t n_keys;
};
/** "LOOKUP KEY[, KEY...]", or "REM LOOKUP ..." as shortened messages have it. RV_E_INVALID says what is there. */
RV_MUST_CHECK int rv_query_parse(rv_str text, struct rv_query *out, rv_err **err);
void rv_query_fini(struct rv_query *q);

#endif

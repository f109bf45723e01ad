/* What SEARCH and FUZZY share. */
#ifndef RV_KNOWLEDGE_SEARCH_INTERNAL_H
#define RV_KNOWLEDGE_SEARCH_INTERNAL_H

#include "coreengine/knowledge/search.h"
#include "coreengine/store/entities.h"

/** The row of a hit; *out stays NULL if another process has deleted it meanwhile. */
RV_MUST_CHECK int rv_hit_load(rv_store *s, const struct rv_store_scope *scope, const struct rv_search_hit *hit,
                              json_object **out, rv_err **err);
/** Whether a failure says only that something is gone: then it is forgotten, else it is passed on. */
RV_MUST_CHECK int rv_hit_is_gone(int rc, rv_err *why, rv_err **err);

#endif

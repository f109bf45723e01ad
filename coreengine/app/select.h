/* Figures that the rows of a store give: statements of our own over the rows that a scope sees. */
#ifndef RV_APP_SELECT_H
#define RV_APP_SELECT_H

#include "coreengine/app/app.h"

#define RV_APP_MAX_SELECT 10000 /* rows */

/** Carry out a statement of the subset of docs/reference/rem.md. *out: an array of objects, the caller's, of at most
 *  RV_APP_MAX_SELECT rows. *has_more: the statement has further rows; has_more NULL: that is RV_E_LIMIT. RV_E_INVALID,
 *  RV_E_TIMEOUT, RV_E_LIMIT, RV_E_IO, RV_E_NOMEM. */
RV_MUST_CHECK int rv_app_select(rv_store *store, const struct rv_store_scope *scope, rv_str sql, json_object **out,
                                bool *has_more, rv_err **err);

/* usage_by.c: what answers took */
struct rv_app_usage_by {
    bool user, agent, model;    /* by which it is grouped; none: one row for all */
    int64_t since_us, until_us; /* when the answers were made: from, and before; 0: any */
};
/** Read "user,agent,model" or some of the words. RV_E_INVALID names the word. */
RV_MUST_CHECK int rv_app_usage_by_parse(const char *words, struct rv_app_usage_by *out, rv_err **err);
/** Answers of agents that the store has: an array of {user_id?, agent_name?, model?, answers, input_tokens,
 *  output_tokens, latency_ms}, sorted, the caller's. Sums of tokens and of time. */
RV_MUST_CHECK int rv_app_usage_grouped(rv_store *store, const struct rv_store_scope *scope,
                                       const struct rv_app_usage_by *by, json_object **out, rv_err **err);

#endif

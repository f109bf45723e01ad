/* What the files of top share: the run that is read from its journal, record by record, and what a minute had. */
#ifndef RV_TOP_INTERNAL_H
#define RV_TOP_INTERNAL_H

#include "coreengine/app/past.h"
#include "coreengine/app/top.h"

#define RV_TOP_BUCKETS   61 /* seconds of the span, and the one that has begun */
#define RV_TOP_MAX_CALLS 16 /* calls of one run that are told apart: a line has no room for more */
#define RV_TOP_MAX_NAME  80 /* bytes: a column of a terminal has no room for more */

/* What ended and was taken, second by second. */
struct top_minute {
    struct {
        int64_t second, n_ended, tokens, cost_micro_usd;
    } buckets[RV_TOP_BUCKETS];
};
void top_minute_ended(struct top_minute *m, int64_t at_us);
void top_minute_sum(const struct top_minute *m, int64_t from_us, int64_t now_us, struct rv_app_top_rates *out);

/* Pipelines of runs, opened once. */
struct top_bundle {
    char hash[RV_HASH_MAX];
    rv_bundle *bundle; /* owned */
    struct rv_catalog catalog;
    size_t n_users;
};
#define RV_TOP_MAX_BUNDLES 32 /* that are kept while no run uses them: each holds files of a pipeline in memory */
struct top_bundles {
    struct top_bundle **items; /* owned */
    size_t n, cap;
};
void top_bundles_fini(struct top_bundles *b);

struct top_call {
    int64_t id, since_us;
    enum rv_app_top_wait kind;
    char name[RV_TOP_MAX_NAME + 1];
};
/* A run with what its journal says so far. */
struct top_run {
    char id[RV_STORE_MAX_ID + 1];
    int64_t n_read, seq; /* records; the last one that was looked at */
    bool is_damaged;
    struct top_call calls[RV_TOP_MAX_CALLS];
    size_t n_calls, n_more; /* n_more: that did not fit */
    int64_t llm_calls;
    struct rv_usage used;
    rv_follower *follower;     /* NULL: begins again with the first record; owned */
    struct top_bundle *bundle; /* that the follower uses; NULL: none; borrowed from the list of bundles */
    struct top_minute *minute; /* borrowed; new records are counted there */
    int64_t counted;           /* records that were */
    unsigned seen;             /* number of the last look that listed it */
};
/** Read the records that it does not have. What is wrong with the journal becomes is_damaged. RV_E_NOMEM, and what the
 *  store says of itself. */
RV_MUST_CHECK int top_run_read(struct top_run *r, rv_store *store, const struct rv_store_scope *scope,
                               const struct rv_run_row *row, struct top_bundles *bundles, rv_err **err);
/** It is not expected to grow soon: what is needed to go on from here is given back. */
void top_run_rest(struct top_run *r);

void top_sort(struct rv_app_top_row *rows, size_t n, enum rv_app_top_sort sort);

#endif

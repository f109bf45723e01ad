/* Questions of runs, open and over: one row for each question that a run waited with, kept after its answer until it is
 * pruned or its run is deleted. The journal remains the truth of a run; these rows are for lists and statistics. A
 * question that was answered while other branches still ran, so that its run never waited with it, has no row. */
#ifndef RV_STORE_INTERRUPTS_H
#define RV_STORE_INTERRUPTS_H

#include "coreengine/store/runs.h"

/* Texts are borrowed for the call that gets it. */
struct rv_interrupt_row {
    const char *run, *id, *tenant, *user, *session, *kind, *stage;
    rv_str text, reason; /* what is asked, while it is open; why it was cancelled, ptr NULL: no reason */
    enum rv_interrupt_status status;
    int64_t created_us, expires_us, ended_us; /* expires 0: never; ended 0: the run still waits with it */
};
/* What it points to is borrowed for the call. */
struct rv_interrupt_filter {
    const char *run, *session, *kind; /* NULL: any */
    unsigned statuses;                /* bits 1u << enum rv_interrupt_status; 0: all */
    bool open_only;                   /* only those that runs still wait with */
    int64_t limit;                    /* 0: no limit */
};
/** Oldest first. each (row borrowed) as for rv_store_list_runs(). RV_E_INVALID: a text of the filter is malformed. */
RV_MUST_CHECK int rv_store_list_interrupts(rv_store *s, const struct rv_store_scope *scope,
                                           const struct rv_interrupt_filter *filter,
                                           int (*each)(void *self, const struct rv_interrupt_row *row, rv_err **err),
                                           void *self, rv_err **err);
/* How many of one kind have one status. */
struct rv_interrupt_count {
    const char *kind; /* borrowed for the call that gets it */
    enum rv_interrupt_status status;
    int64_t n, n_open;     /* n_open: runs still wait with them (those that expired may be among them) */
    int64_t oldest_us;     /* when the oldest of them was asked */
    int64_t answer_sum_us; /* resolved: the waits of all of them together */
};
/** By kind, then status; of the filter, limit is ignored. */
RV_MUST_CHECK int
rv_store_count_interrupts(rv_store *s, const struct rv_store_scope *scope, const struct rv_interrupt_filter *filter,
                          int (*each)(void *self, const struct rv_interrupt_count *count, rv_err **err), void *self,
                          rv_err **err);
/** Mark those that are due as expired; *n: how many. tenant NULL: of all tenants. Their runs still wait with them. */
RV_MUST_CHECK int rv_store_expire_interrupts(rv_store *s, const char *tenant, int64_t now_us, int64_t *n, rv_err **err);
/** Delete at most max that ended before that, and keep their runs. */
RV_MUST_CHECK int rv_store_prune_interrupts(rv_store *s, const char *tenant, int64_t before_us, int64_t max, int64_t *n,
                                            rv_err **err);

#endif

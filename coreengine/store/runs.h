/* The part of the store for runs: their journals, who owns them, snapshots, the questions that they wait with, blobs.
 */
#ifndef RV_STORE_RUNS_H
#define RV_STORE_RUNS_H

#include "coreengine/conversation/conversation.h"
#include "coreengine/store/handle.h"
#include "envelope/envelope.h"

/* Texts are borrowed, or in the memory of `own`. */
struct rv_run_row {
    const char *id, *tenant, *user, *session;
    const char *pipeline; /* its name */
    const char *bundle;   /* hash of what it was started with */
    const char *parent;   /* run it was forked from; NULL: none */
    int64_t parent_seq;   /* up to which record */
    enum rv_run_status status;
    const char *stage;                          /* where it stands */
    int64_t created_us, updated_us, expires_us; /* expires: the earliest end of a pending interrupt; 0: none */
    int64_t n_records;                          /* seq of the last one */
    const char *owner;                          /* NULL: none */
    int64_t fence, lease_until_us;
    bool cancel_requested;
    int64_t n_pending; /* interrupts that wait for an answer */
    char *own;         /* the texts' memory; NULL when they are borrowed */
};
void rv_run_row_fini(struct rv_run_row *row);
/** Tells whether a run of that status is finished for good. (Interrupted ones wait, ready and running ones go on.) */
bool rv_run_status_is_final(enum rv_run_status status);

/* One entry of a journal: a small body and at most one large value. */
struct rv_record {
    int64_t seq;  /* from 1, without gaps */
    int kind;     /* the journal's */
    rv_str body;  /* UTF-8 */
    rv_str value; /* UTF-8; ptr NULL: none. With its body longer than RV_STORE_INLINE_MAX: kept once for equal ones */
};
/* An interrupt that waits for an answer: a view for lists, derived from the journal. Texts are borrowed for the call
 * that gets it. */
struct rv_pending {
    const char *run, *id, *kind, *stage, *user; /* when written, run and user are the run's own and are ignored here */
    rv_str text;                                /* what is asked */
    rv_str body;                                /* the whole interrupt as JSON */
    int64_t created_us, expires_us;             /* expires 0: never */
};

/* Where a run stands after a write of its owner: with it the next write need not look for the run's row, whose fence
 * and number of records tell whether it is still so. */
struct rv_store_last {
    int64_t key; /* of the row; 0: not known */
    enum rv_run_status status;
    bool asks; /* it has questions, or may have */
    char tenant[RV_STORE_MAX_ID + 1];
};
/* A new run with its first records and its first owner, in one transaction. What it points to is borrowed for the call.
 */
struct rv_store_new_run {
    const char *id, *tenant, *user, *session, *pipeline, *bundle, *parent; /* tenant, parent may be NULL */
    int64_t parent_seq;
    enum rv_run_status status;
    const char *stage; /* where it stands; borrowed, as all texts here */
    const char *owner; /* NULL: the run has no owner; the fence is 1 in any case */
    int64_t now_us, lease_until_us;
    const struct rv_record *records; /* seq 1..n_records */
    size_t n_records;
    struct rv_store_last *next; /* out, for the first append; may be NULL */
};
/** RV_E_EXISTS (the id is taken), RV_E_NOT_FOUND (no such bundle), RV_E_INVALID (an id or text is malformed). */
RV_MUST_CHECK int rv_store_create_run(rv_store *s, const struct rv_store_new_run *run, rv_err **err);

/* Everything that one step writes: records, status, pending interrupts, rows of sessions. What it points to is borrowed
 * for the call. */
struct rv_store_append {
    const char *run; /* id; borrowed for the call, as all texts here */
    int64_t fence;
    const struct rv_record *records; /* the first seq must be the run's n_records + 1, the rest follow */
    size_t n_records;
    int64_t now_us;
    enum rv_run_status status;
    const char *stage;                /* where the run stands then */
    bool set_pending;                 /* replace the run's pending interrupts by these */
    const struct rv_pending *pending; /* n_pending of them; borrowed for the call */
    size_t n_pending;
    struct {
        bool is_set;    /* with set_pending: the step has settled one of them */
        const char *id; /* NULL: the only one */
        enum rv_interrupt_status status;
        rv_str reason; /* ptr NULL: none */
    } settled;
    bool release; /* the owner is done with it: the lease ends with this write */
    const struct rv_turn
        *turns; /* what the step adds to sessions, in the same transaction; as rv_store_add_messages()
                   in the scope of the run's tenant and user, but a session that is not there is made, and one of
                   the owner's that was deleted takes nothing: its run goes on to its end without it */
    size_t n_turns;
    const struct rv_store_last *last; /* of the write before; may be NULL */
    struct rv_store_last *next;       /* out, for the next one: not before this one is committed; may be NULL */
};
/** RV_E_STATE: fenced off (names the present owner), or another seq than the run's next. RV_E_NOT_FOUND. Whatever is
 *  refused, nothing of the append is written. */
RV_MUST_CHECK int rv_store_append(rv_store *s, const struct rv_store_append *a, rv_err **err);
/** RV_E_NOT_FOUND also for a run outside the scope. `out` owns its texts: rv_run_row_fini(). */
RV_MUST_CHECK int rv_store_get_run(rv_store *s, const struct rv_store_scope *scope, const char *id,
                                   struct rv_run_row *out, rv_err **err);
/* What it points to is borrowed for the call. */
struct rv_run_filter {
    unsigned statuses;              /* bits 1u << enum rv_run_status; 0: all */
    const char *pipeline, *session; /* NULL: any */
    const char *id_prefix;          /* NULL: any */
    int64_t lease_before_us;        /* > 0: only runs whose lease ended before that, or that have no owner */
    int64_t updated_before_us;      /* > 0: only runs not touched since */
    bool of_deleted_sessions;       /* only runs whose owner has deleted their session */
    int record_kind;                /* > 0: only runs whose journal has a record of that kind */
    bool oldest_first;              /* by created_us, then id; else newest first */
    int64_t limit;                  /* 0: no limit */
};
/** Calls each for every match (row borrowed for the call). each returns 0, or a code that ends the walk and is passed
 * on. each must not use the store. */
RV_MUST_CHECK int rv_store_list_runs(rv_store *s, const struct rv_store_scope *scope,
                                     const struct rv_run_filter *filter,
                                     int (*each)(void *self, const struct rv_run_row *row, rv_err **err), void *self,
                                     rv_err **err);
/* Records of a run. */
struct rv_record_range {
    const char *run;    /* borrowed for the call */
    int64_t from, upto; /* upto 0: to the end */
};
/** These in order; body and value are borrowed for the call; each as above. */
RV_MUST_CHECK int rv_store_read(rv_store *s, const struct rv_store_scope *scope, const struct rv_record_range *range,
                                int (*each)(void *self, const struct rv_record *r, rv_err **err), void *self,
                                rv_err **err);
/** Pending interrupts of a run, or of all runs (run NULL), oldest first; each as above. */
RV_MUST_CHECK int rv_store_list_pending(rv_store *s, const struct rv_store_scope *scope, const char *run,
                                        int (*each)(void *self, const struct rv_pending *p, rv_err **err), void *self,
                                        rv_err **err);
/* A run, as a list showed it. */
struct rv_run_seen {
    enum rv_run_status status;
    int64_t updated_us;
};
/** Delete a run with its journal, pending rows and snapshot. seen: only if it is still as it was listed; NULL: however
 * it is. RV_E_STATE while a lease on it lasts; RV_E_NOT_FOUND also if it is not as it was seen. */
RV_MUST_CHECK int rv_store_delete_run(rv_store *s, const struct rv_store_scope *scope, const char *run,
                                      const struct rv_run_seen *seen, int64_t now_us, rv_err **err);

/* --- Ownership --- */
struct rv_store_claim { /* borrowed for the call */
    const char *owner;  /* who wants it */
    const char *dead;   /* an owner that is known to live no more: its lease counts as ended; may be NULL */
    int64_t now_us, until_us;
};
/** Become the owner. *fence is one more than any before. RV_E_STATE: a lease lasts (the text names its owner and end),
 * even if it is the same owner's. */
RV_MUST_CHECK int rv_store_claim(rv_store *s, const struct rv_store_scope *scope, const char *run,
                                 const struct rv_store_claim *claim, int64_t *fence, rv_err **err);
/** The same, and the run's status and counts: from now on no other process writes the run. */
struct rv_store_claimed {
    int64_t fence, n_records;
    enum rv_run_status status;
};
/** Make claim->owner the owner of the run; out->fence is what its writes name from now on.
 *  @return RV_E_NOT_FOUND (the scope sees no such run), RV_E_STATE (the lease of another owner has not ended: the text
 * says whose), RV_E_INVALID (the claim) */
RV_MUST_CHECK int rv_store_claim_run(rv_store *s, const struct rv_store_scope *scope, const char *run,
                                     const struct rv_store_claim *claim, struct rv_store_claimed *out, rv_err **err);
/** Extend every lease of that owner that has not been taken over. None is cut short. */
RV_MUST_CHECK int rv_store_renew(rv_store *s, const char *owner, int64_t until_us, rv_err **err);
/** Give it up. Fine if it was taken over meanwhile; RV_E_NOT_FOUND if it was deleted. */
RV_MUST_CHECK int rv_store_release(rv_store *s, const char *run, int64_t fence, rv_err **err);
/** Ask the owner of the run to cancel it. RV_E_STATE when the run is over. The end of the run clears the flag. */
RV_MUST_CHECK int rv_store_request_cancel(rv_store *s, const struct rv_store_scope *scope, const char *run,
                                          int64_t now_us, rv_err **err);
/** Runs of that owner that are to be cancelled; each gets the run's id. */
RV_MUST_CHECK int rv_store_list_cancels(rv_store *s, const char *owner,
                                        int (*each)(void *self, const char *run, rv_err **err), void *self,
                                        rv_err **err);

/* --- Snapshots: what makes recovery faster and may be deleted at any time. One a run, the newest. --- */
/** RV_E_STATE: fenced off, or seq is not written yet. One that is older than the present one is not kept. */
RV_MUST_CHECK int rv_store_put_snapshot(rv_store *s, const char *run, int64_t fence, int64_t seq, rv_str body,
                                        rv_err **err);
/** *seq 0: there is none. Appended to out. */
RV_MUST_CHECK int rv_store_get_snapshot(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t *seq,
                                        rv_buf *out, rv_err **err);

/* --- Runs that no process drives. Rows are borrowed for the call; each as rv_store_list_runs(). --- */
/** Owners of runs that are under way. */
RV_MUST_CHECK int rv_store_list_owners(rv_store *s, int (*each)(void *self, const char *owner, rv_err **err),
                                       void *self, rv_err **err);
/* Which runs that no process drives are listed. What it points to is borrowed for the call. */
struct rv_left_filter {
    const char *owner; /* NULL: those that began and have none, and those whose owner let the lease end */
    int64_t now_us;
    int64_t limit;          /* at most so many */
    const char *but_prefix; /* without those whose ids begin so; NULL: all */
    int64_t after_us;       /* with after_id: those behind this one in the order of the list */
    const char *after_id;   /* NULL: from the first */
};
/** Runs under way that no process drives, in the order of created_us and id. A run of which a task of type "run" waits
 * or is done is not among them. */
RV_MUST_CHECK int rv_store_list_left(rv_store *s, const struct rv_left_filter *filter,
                                     int (*each)(void *self, const struct rv_run_row *row, rv_err **err), void *self,
                                     rv_err **err);
/** Runs that wait with a question that has expired, the last to expire first (then by id), without such a task. The
 * owner of the filter does not count. */
RV_MUST_CHECK int rv_store_list_expired(rv_store *s, const struct rv_left_filter *filter,
                                        int (*each)(void *self, const struct rv_run_row *row, rv_err **err), void *self,
                                        rv_err **err);

/* --- Questions of runs, open and over: one row for each question that a run waited with, kept after its answer until
 * it is pruned or its run is deleted. The journal remains the truth of a run; these rows are for lists and statistics.
 * A question that was answered while other branches still ran, so that its run never waited with it, has no row. --- */
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

/* --- Blobs: bytes, such as bundles, by the SHA-256 of their content --- */
/** Dated by the system's clock; writing an existing blob renews its date: see rv_store_sweep(). */
RV_MUST_CHECK int rv_store_put_blob(rv_store *s, rv_str data, char hash[RV_STORE_HASH_MAX], rv_err **err);
/** Appended to out. RV_E_NOT_FOUND; RV_E_INVALID when the bytes are not those of the hash. */
RV_MUST_CHECK int rv_store_get_blob(rv_store *s, const char *hash, rv_buf *out, rv_err **err);

#endif

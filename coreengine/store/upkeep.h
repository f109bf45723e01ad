/* The part of the store that is about a store as a whole: counting, checking, cleaning, copying it into another one,
 * whatever databases keep them; and what version a store has, without opening it. */
#ifndef RV_STORE_UPKEEP_H
#define RV_STORE_UPKEEP_H

#include "coreengine/store/handle.h"

struct rv_store_stats {
    int64_t runs, records, blobs, pending, snapshots;
    int64_t sessions, messages, schemas; /* that can be seen: without what was deleted */
    int64_t tasks;
    int64_t bytes; /* that the file takes, with what waits beside it; memory: its pages */
    int64_t schema;
};
/** Counts over all tenants. What the database says; RV_E_NOMEM. */
RV_MUST_CHECK int rv_store_read_stats(rv_store *s, struct rv_store_stats *out, rv_err **err);
/** Drop blobs that no run refers to and give the space back. A blob younger than grace_us (before now_us) stays: a run
 *  may be about to refer to it. *freed (may be NULL): bytes the file became smaller by. */
RV_MUST_CHECK int rv_store_sweep(rv_store *s, int64_t now_us, int64_t grace_us, int64_t *freed, rv_err **err);
/** Check the whole store: pages, indexes, hashes of blobs, gapless journals and sessions, sums of tokens, checksums of
 *  schemas. RV_E_INVALID lists the faults. */
RV_MUST_CHECK int rv_store_check(rv_store *s, rv_err **err);
/** A consistent copy, as a file of SQLite, while others go on writing; the file must not exist. Named by a path or
 *  "sqlite:PATH". */
RV_MUST_CHECK int rv_store_backup(rv_store *s, const char *url, rv_err **err);

/* --- Copying --- */
#define RV_STORE_MAX_TABLES 32 /* of a database; the schema has fewer */

/* What a copy has of one table. */
struct rv_store_table {
    const char *name;       /* static */
    int64_t n_rows;         /* in both stores */
    int64_t n_copied;       /* by this call; the others were there before */
    int64_t bytes;          /* of all its rows: 8 for a number, those of a text */
    char hash[RV_HASH_MAX]; /* SHA-256 of its rows in the order of their keys, the same in every database */
};
struct rv_store_copied {
    struct rv_store_table tables[RV_STORE_MAX_TABLES];
    size_t n_tables;
    bool is_resumed;        /* an earlier call had begun it */
    bool has_restarted;     /* `from` had changed since: what was there was deleted, and copied again */
    char hash[RV_HASH_MAX]; /* of the tables' hashes */
};
enum rv_store_copy_phase {
    RV_STORE_COPY_COMPARES,
    RV_STORE_COPY_WRITES,
    RV_STORE_COPY_VERIFIES,
    RV_N_STORE_COPY_PHASES
};
struct rv_store_copy_progress {
    enum rv_store_copy_phase phase;
    const char *table;     /* static */
    int64_t n_rows, bytes; /* of this table, so far; WRITES: committed */
};
/* A run that has an owner whose lease lasts; in fields: what it means is the caller's to say. Borrowed for the call. */
struct rv_store_leased {
    const char *what;  /* "run", "task" */
    const char *id;    /* of the run or task */
    const char *owner; /* or worker */
    int64_t until_us;
};
struct rv_store_copy_opts {
    int64_t now_us;
    bool is_backup; /* runs keep their fences and leases, as a copy of a file's pages has them */
    /* Called for each run and task of `from` that has an owner or a worker whose lease lasts; a code ends the copy
     * before it began. NULL: they do not matter. */
    int (*on_leased)(void *self, const struct rv_store_leased *l, rv_err **err);
    /* After each transaction, and now and then while rows are read; a code ends the copy. It may not use the stores.
     * NULL: not called. */
    int (*on_progress)(void *self, const struct rv_store_copy_progress *p, rv_err **err);
    void *self; /* borrowed for the call */
};
/** Copy all rows that belong to runs, conversations and the queue; what belongs to processes (workers, duties) stays.
 *
 *  `from` is read in one snapshot, while others may write to it. `to` must have been opened with takes_copy. It must be
 *  empty, or hold an unfinished copy of `from`: until the copy is finished no other handle can open it. A call that
 *  failed, or whose process was killed, is repeated: it compares what is there with `from`, and goes on behind it, or,
 *  when that has changed, deletes it and begins again. At the end each table of `to` is read and compared; then,
 *  in one transaction, each run that has an owner gets a higher fence and no lease (not in a backup), and `to` can be
 *  used.
 *
 *  Memory: about three times the largest row.
 *  @return RV_E_STATE: `to` is not empty, holds the copy of another store, or another process copies into it too;
 *  RV_E_INVALID: a text that the other database cannot keep (with its table and row), or rows of `from` that do not
 *  belong together; RV_E_DENIED: `to` is read-only; what on_leased and on_progress gave; and what reading and writing
 *  say */
RV_MUST_CHECK int rv_store_copy(rv_store *from, rv_store *to, const struct rv_store_copy_opts *opts,
                                struct rv_store_copied *out, rv_err **err);

/** The runs and tasks that on_leased would be called for now: to refuse a copy before its target is made. */
RV_MUST_CHECK int rv_store_list_leased(rv_store *from, const struct rv_store_copy_opts *opts, rv_err **err);

/* The version of a store's tables. */
struct rv_store_version {
    bool is_there;        /* false: the file or schema does not exist, or is empty */
    int64_t has, current; /* of the store; that this program writes */
};
/** Look at it and change nothing. RV_E_INVALID: it is not a store. A version that is too new is not an error here. */
RV_MUST_CHECK int rv_store_read_version(const char *url, struct rv_store_version *out, rv_err **err);

#endif

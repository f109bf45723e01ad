/* A handle of a store: how it is opened, who is meant by a call, several writes as one. */
#ifndef RV_STORE_HANDLE_H
#define RV_STORE_HANDLE_H

#include "coreengine/base/base.h"

typedef struct rv_store rv_store;

/* A record's body and value together: when they are longer, the value is kept once, by its hash. What a page of SQLite
 * has room for beside three others; more would take a page of its own. */
#define RV_STORE_INLINE_MAX ((size_t)960)
#define RV_STORE_MAX_VALUE  ((size_t)256 << 20) /* one value or blob: no reply, state or bundle has more */
/* One record's body: the calls of a reply, twice escaped, and what its provider wants back stand in it. */
#define RV_STORE_MAX_BODY     ((size_t)96 << 20)
#define RV_STORE_MAX_QUESTION ((size_t)1 << 20)  /* one pending row's text, and its body: lists stay small */
#define RV_STORE_MAX_META     ((size_t)1 << 20)  /* the metadata of a session: it is read and written as a whole */
#define RV_STORE_MAX_PARTS    ((size_t)16 << 20) /* that of a message: its pictures and files are there in base64 */
#define RV_STORE_HASH_MAX     RV_HASH_MAX
#define RV_STORE_MAX_ID       200 /* bytes of an id of a run, tenant, user, owner: it stands in command lines */
#define RV_STORE_TENANT       "default"

enum rv_store_sync {
    RV_STORE_SYNC_FULL,   /* each commit survives a power cut; the default */
    RV_STORE_SYNC_NORMAL, /* survives the death of the process; a power cut may take the last commits, never the file */
    RV_STORE_SYNC_OFF,    /* for tests and scratch files */
    RV_N_STORE_SYNCS
};
/* Of several handles, for a host that says whether it can serve. Any thread. */
struct rv_store_health {
    int refused; /* code of the last write that the disk or its rights refused: RV_E_DISK, RV_E_IO or RV_E_DENIED. 0:
                  * there was none since rv_store_probe() succeeded. Writes that succeed do not clear it: a disk may
                  * have room for a short one only. By __atomic_load_n() and the like: C++ reads this header, too. */
    uint64_t path, file; /* hashes of the first file that was opened: its path, and what was found there. A handle that
                          * is opened later does not make it again, and refuses another one. 0: none was */
};
struct rv_store_opts {
    enum rv_store_sync sync;
    int64_t busy_ms; /* how long to wait for other writers; 0: 60000 */
    bool read_only;  /* nothing is created, migrated or written: writes are RV_E_DENIED */
    bool must_exist; /* RV_E_NOT_FOUND instead of a new file */
    struct rv_keyring
        *ring; /* master keys (encryption.h), for what is encrypted; the store takes a reference. NULL: none */
    struct rv_store_health *health; /* borrowed; outlives the handle and those reopened from it; NULL: it is not kept */
    bool takes_copy; /* for rv_store_copy(): an unfinished copy may be in it, which is RV_E_STATE otherwise */
};
/** Open or create. url: "memory:", "sqlite:PATH", a path, or "postgres://..." (also "postgresql://...") with what libpq
 *  takes and the parameters "schema" and "query_role" (see search.h). A fresh file or schema gets the current tables,
 * older ones are migrated forward in one transaction, newer ones are refused.
 *  @return RV_E_NOT_FOUND, RV_E_UNAVAILABLE (the system or the server refused it, or it was locked longer than busy_ms:
 *  the cause is RV_E_IO or RV_E_TIMEOUT), RV_E_DISK, RV_E_FILES, RV_E_VERSION (newer; says both versions), RV_E_DENIED
 *  (password, rights of the file or of its folder),
 *  RV_E_INVALID (a URL that cannot be read; not a store, or damaged), RV_E_STATE (a
 * copy that did not end, see upkeep.h) */
RV_MUST_CHECK int rv_store_open(const char *url, const struct rv_store_opts *opts, rv_store **out, rv_err **err);
/** True if it keeps everything in memory: then it has this one handle, and ends with it. */
bool rv_store_is_memory(const rv_store *s);
/** Another handle on the same store with the same options and fault points, for another thread. RV_E_STATE: this one
 * keeps everything in memory, where writing waits for nothing. */
RV_MUST_CHECK int rv_store_reopen(const rv_store *s, rv_store **out, rv_err **err);
void rv_store_close(rv_store *s); /* NULL is fine */
/** Write as much as a turn of a chat does, and take it away again. Success clears the health. Errors as of a write. */
RV_MUST_CHECK int rv_store_probe(rv_store *s, rv_err **err);
const char *rv_store_url(const rv_store *s); /* as it may be shown, without a password */
/** SQLite keeps no count of the memory that it takes, which spares 5 % of the instructions of a step. For programs of
 * our own, before their first thread and store: it is a setting of the whole process. */
void rv_store_spare_counts(void);
bool rv_store_is_postgres(const char *url); /* no file */
/** Append a URL as it may be shown: one of PostgreSQL without its password. */
void rv_store_show_url(const char *url, rv_buf *out);
/** Later writes survive a crash of the process, but a power cut only with a later write of this process that does: for
 * what is of no use, and was told to no client, before that one. Until it is called with false; a store may ignore it.
 */
void rv_store_defer_sync(rv_store *s, bool defers);
/** Set how long later writes wait for other writers, instead of busy_ms: the owner of a lease waits no longer than the
 * lease lasts. 0: busy_ms again. */
void rv_store_set_wait(rv_store *s, int64_t ms);

/* The rows that a call may see. Every read of runs, sessions, messages and schemas takes a scope. Texts are borrowed
 * for the call. */
struct rv_store_scope {
    const char *tenant; /* NULL: RV_STORE_TENANT */
    const char *user;   /* NULL: all users of the tenant (an operator); "": only data without an owner */
};

/* --- Groups --- */
/** Several appends as one transaction (a group commit): nothing of them is durable before the commit. On failure of
 *  commit all are gone. An append that is refused in between leaves the others as they were. Every other
 *  write may be part of a group, too; upkeep may not (RV_E_STATE). When a write fails half-way, for want of space or
 *  memory, the whole group is rolled back, and further writes and the commit say so with that code. */
RV_MUST_CHECK int rv_store_begin(rv_store *s, rv_err **err);
RV_MUST_CHECK int rv_store_commit(rv_store *s, rv_err **err);
void rv_store_rollback(rv_store *s);
/** Commit when rc is 0, else roll back and pass rc on. Since begin waits for other writers, what is to be dated, such
 * as a lease, is dated between the two. */
RV_MUST_CHECK int rv_store_end(rv_store *s, int rc, rv_err **err);

bool rv_store_is_in_group(const rv_store *s);
/** In a group: until it ends, no other group of any process holds that name. Waits for one that does; what it has
 *  written can be read then. RV_E_STATE: no group is open. */
RV_MUST_CHECK int rv_store_hold_name(rv_store *s, const char *name, rv_err **err);
/** Does every other writer wait while a transaction is open? Then long work is cut into short transactions, with
 * pauses. */
bool rv_store_has_one_writer(const rv_store *s);
/** After rv_store_begin() or rv_store_commit() failed: the group wrote nothing, and the same group may succeed
 * now, because another process was in the way or the connection to the database broke. Waits a little, longer each
 * time, and forgets *err; false when there is no point in it, or the time for waiting is over. Never with SQLite. */
bool rv_store_wait_again(rv_store *s, rv_err **err);

/* --- Hearing of work --- */
/** Be notified of what there is for workers: tasks, and requests to cancel, that others commit from now on. Call it
 * before each wait. *fd: readable as soon as there may be a notification, valid until the next call; -1: the store
 * cannot tell (SQLite, databases without LISTEN), or its server is away, so the caller looks from time to time.
 * RV_E_NOMEM. */
RV_MUST_CHECK int rv_store_listen(rv_store *s, int *fd, rv_err **err);
/** Whether a notification came since the last call, or may have been missed while the connection was lost. Does not
 * wait. */
RV_MUST_CHECK int rv_store_was_notified(rv_store *s, bool *heard, rv_err **err);

/* --- Fault points: every operation passes "<op>" before it begins and "<op>.done" after it took effect, op being the
 * function's name without rv_store_. A hook that returns a code fails the operation with it: before, nothing happened;
 * after, it did, and the caller does not know (a reply that got lost). For tests. */
struct rv_store_faults {
    int (*at)(void *self, const char *point, rv_err **err);
    void *self; /* borrowed; outlives the store */
};
void rv_store_set_faults(rv_store *s, struct rv_store_faults faults); /* at NULL: none */

#endif

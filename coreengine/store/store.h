/* The store keeps runs, their journals and the data that belongs to them; an acknowledged write is never lost.
 *
 * It knows rows and bytes, not their meaning: coreengine/store/journal writes and reads the records. Two
 * places, one implementation: SQLite in a file, and SQLite in memory. Every call that changes something is one
 * transaction, durable when it returns; a call that fails has changed nothing. A handle belongs to one thread; many
 * handles and processes may use one file.
 *
 * A run has at most one owner, who holds a lease. Each hand-over raises the run's fence; a write with an older fence is
 * refused, however late its process wakes up. */
#ifndef RV_STORE_H
#define RV_STORE_H

#include "coreengine/conversation/messages.h"
#include "envelope/terms.h"

typedef struct rv_store rv_store;

/* A record's body and value together: when they are longer, the value is kept once, by its hash. What a page of SQLite
 * has room for beside three others; more would take a page of its own. */
#define RV_STORE_INLINE_MAX ((size_t)960)
#define RV_STORE_MAX_VALUE  ((size_t)256 << 20) /* one value or blob */
/* One record's body: the calls of a reply, twice escaped, and what its provider wants back stand in it. */
#define RV_STORE_MAX_BODY     ((size_t)96 << 20)
#define RV_STORE_MAX_QUESTION ((size_t)1 << 20) /* one pending row's text, and its body */
#define RV_STORE_MAX_META     ((size_t)1 << 20) /* the metadata of a session, or of a message */
#define RV_STORE_HASH_MAX     RV_HASH_MAX
#define RV_STORE_MAX_ID       200 /* bytes of a run id, tenant, user, owner or interrupt id */
#define RV_STORE_TENANT       "default"

enum rv_store_sync {
    RV_STORE_SYNC_FULL,   /* each commit survives a power cut; the default */
    RV_STORE_SYNC_NORMAL, /* survives the death of the process; a power cut may take the last commits, never the file */
    RV_STORE_SYNC_OFF,    /* for tests and scratch files */
};
struct rv_store_opts {
    enum rv_store_sync sync;
    int64_t busy_ms; /* how long to wait for other writers; 0: 60000 */
    bool read_only;  /* nothing is created, migrated or written: writes are RV_E_DENIED */
    bool must_exist; /* RV_E_NOT_FOUND instead of a new file */
};
/** Open or create. url: "memory:", "sqlite:PATH" or a path. A fresh file gets the current schema, an older one is
 *  migrated forward in one transaction, a newer one is refused.
 *  @return RV_E_NOT_FOUND, RV_E_IO (with the path and the system's reason), RV_E_VERSION (newer; says both versions),
 *  RV_E_INVALID (not a store, or damaged; hint names `reeve gc --check`), RV_E_TIMEOUT (locked longer than busy_ms) */
RV_MUST_CHECK int rv_store_open(const char *url, const struct rv_store_opts *opts, rv_store **out, rv_err **err);
/** Another handle on the same store with the same options and fault points, for another thread. RV_E_STATE: this one
 * keeps everything in memory, where writing waits for nothing. */
RV_MUST_CHECK int rv_store_reopen(const rv_store *s, rv_store **out, rv_err **err);
void rv_store_close(rv_store *s); /* NULL is fine */
const char *rv_store_url(const rv_store *s);
/** Set how long later writes wait for other writers, instead of busy_ms: the owner of a lease waits no longer than the
 * lease lasts. 0: busy_ms again. */
void rv_store_set_wait(rv_store *s, int64_t ms);

/* The rows that a call may see. Every read of runs, sessions, messages and schemas takes a scope. */
struct rv_store_scope {
    const char *tenant; /* NULL: RV_STORE_TENANT */
    const char *user;   /* NULL: all users of the tenant (an operator); "": only data without an owner */
};

/* --- Runs --- */
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

/* One entry of a journal: a small body and at most one large value. */
struct rv_record {
    int64_t seq;  /* from 1, without gaps */
    int kind;     /* the journal's */
    rv_str body;  /* UTF-8 */
    rv_str value; /* UTF-8; ptr NULL: none. With its body longer than RV_STORE_INLINE_MAX: kept once for equal ones */
};
/* An interrupt that waits for an answer: a view for lists, derived from the journal. */
struct rv_pending {
    const char *run, *id, *kind, *stage, *user; /* when written, run and user are the run's own and are ignored here */
    rv_str text;                                /* what is asked */
    rv_str body;                                /* the whole interrupt as JSON */
    int64_t created_us, expires_us;             /* expires 0: never */
};

/* A new run with its first records and its first owner, in one transaction. */
struct rv_store_new_run {
    const char *id, *tenant, *user, *session, *pipeline, *bundle, *parent; /* tenant, parent may be NULL */
    int64_t parent_seq;
    enum rv_run_status status;
    const char *stage;
    const char *owner; /* NULL: the run has no owner; the fence is 1 in any case */
    int64_t now_us, lease_until_us;
    const struct rv_record *records; /* seq 1..n_records */
    size_t n_records;
};
/** RV_E_EXISTS (the id is taken), RV_E_NOT_FOUND (no such bundle), RV_E_INVALID (an id or text is malformed). */
RV_MUST_CHECK int rv_store_create_run(rv_store *s, const struct rv_store_new_run *run, rv_err **err);

/* Everything that one step writes: records, status, pending interrupts, rows of sessions. */
struct rv_store_append {
    const char *run;
    int64_t fence;
    const struct rv_record *records; /* the first seq must be the run's n_records + 1, the rest follow */
    size_t n_records;
    int64_t now_us;
    enum rv_run_status status;
    const char *stage;
    bool set_pending; /* replace the run's pending interrupts by these */
    const struct rv_pending *pending;
    size_t n_pending;
    bool release; /* the owner is done with it: the lease ends with this write */
    const struct rv_turn
        *turns; /* what the step adds to sessions, in the same transaction; as rv_store_add_messages()
                   in the scope of the run's tenant and user, but a session that is not there is made, and one of
                   the owner's that was deleted takes nothing: its run goes on to its end without it */
    size_t n_turns;
};
/** RV_E_STATE: fenced off (names the present owner), or another seq than the run's next. RV_E_NOT_FOUND. Whatever is
 *  refused, nothing of the append is written. */
RV_MUST_CHECK int rv_store_append(rv_store *s, const struct rv_store_append *a, rv_err **err);
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

bool rv_store_in_group(const rv_store *s);
/** RV_E_NOT_FOUND also for a run outside the scope. `out` owns its texts: rv_run_row_fini(). */
RV_MUST_CHECK int rv_store_get_run(rv_store *s, const struct rv_store_scope *scope, const char *id,
                                   struct rv_run_row *out, rv_err **err);
struct rv_run_filter {
    unsigned statuses;              /* bits 1u << enum rv_run_status; 0: all */
    const char *pipeline, *session; /* NULL: any */
    const char *id_prefix;          /* NULL: any */
    int64_t lease_before_us;        /* > 0: only runs whose lease ended before that, or that have no owner */
    int64_t updated_before_us;      /* > 0: only runs not touched since */
    bool of_deleted_sessions;       /* only runs whose owner has deleted their session */
    bool oldest_first;              /* by created_us, then id; else newest first */
    int64_t limit;                  /* 0: no limit */
};
/** Calls each for every match (row borrowed for the call). each returns 0, or a code that ends the walk and is passed
 * on. each must not use the store. */
RV_MUST_CHECK int rv_store_list_runs(rv_store *s, const struct rv_store_scope *scope,
                                     const struct rv_run_filter *filter,
                                     int (*each)(void *self, const struct rv_run_row *row, rv_err **err), void *self,
                                     rv_err **err);
/** Records from..upto (upto 0: to the end) in order; body and value are borrowed for the call; each as above. */
RV_MUST_CHECK int rv_store_read(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t from,
                                int64_t upto, int (*each)(void *self, const struct rv_record *r, rv_err **err),
                                void *self, rv_err **err);
/** Pending interrupts of a run, or of all runs (run NULL), oldest first; each as above. */
RV_MUST_CHECK int rv_store_list_pending(rv_store *s, const struct rv_store_scope *scope, const char *run,
                                        int (*each)(void *self, const struct rv_pending *p, rv_err **err), void *self,
                                        rv_err **err);
/** Delete a run with its journal, pending rows and snapshot. RV_E_STATE while a lease on it lasts. */
RV_MUST_CHECK int rv_store_delete_run(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t now_us,
                                      rv_err **err);

/* --- Sessions and their messages --- */
/* A session id is unique among the sessions of one tenant and user: other users may have a session of the same id, and
 * no user can find out. Rows may have no user: a scope with user "" sees only those, with NULL (an operator) all rows,
 * and with a name only the rows of that user. A session outside the scope is always RV_E_NOT_FOUND; an id that an
 * operator gives and that several users have is RV_E_INVALID. */
#define RV_SESSION_STATUSES(X)                                                                                         \
    X(ACTIVE, "active", "the conversation goes on")                                                                    \
    X(ARCHIVED, "archived", "kept to be read; a new message is taken all the same")
#define RV_SESSION_CONST(n, t, m) RV_SESSION_##n,
enum rv_session_status { RV_SESSION_STATUSES(RV_SESSION_CONST) RV_N_SESSION_STATUSES };
const char *rv_session_status_text(enum rv_session_status status);
int rv_session_status_of(rv_str text); /* RV_UNSET: another word */

struct rv_session_row {
    const char *id, *tenant, *user; /* user "": none */
    const char *name, *description, *agent_name, *mode;
    const char *status;               /* a word of the list above */
    int64_t total_tokens, n_messages; /* messages: also the seq of the last one */
    rv_str metadata;                  /* JSON object */
    int64_t created_us, updated_us;
    char *own; /* the texts' memory; NULL when they are borrowed */
};
void rv_session_row_fini(struct rv_session_row *row);
/** The session of that id, or a new one as `fresh` says (name NULL: "chat-<id>", mode NULL: "chat", status NULL:
 * "active"; id, tenant and user must be given). RV_E_EXISTS: the owner had one of that id and deleted it. out (may be
 * NULL) owns its texts. */
RV_MUST_CHECK int rv_store_ensure_session(rv_store *s, const struct rv_session_row *fresh, struct rv_session_row *out,
                                          rv_err **err);
RV_MUST_CHECK int rv_store_get_session(rv_store *s, const struct rv_store_scope *scope, const char *id,
                                       struct rv_session_row *out, rv_err **err);
struct rv_session_change {
    const char *name, *mode;   /* NULL: as it is */
    const char *status;        /* NULL: unchanged */
    json_object *metadata;     /* shallow-merged: members replace members; NULL: as it is */
    const char *const *remove; /* members of metadata that go */
    size_t n_remove;
    int64_t now_us;
};
RV_MUST_CHECK int rv_store_change_session(rv_store *s, const struct rv_store_scope *scope, const char *id,
                                          const struct rv_session_change *change, rv_err **err);
struct rv_session_filter {
    const char *agent_name, *name_contains; /* NULL: any; ASCII case does not matter */
    const char *status;                     /* NULL: any */
    int64_t since_us;                       /* touched since */
    int64_t offset, limit;                  /* limit 0: no limit */
};
/** Last touched first. each as rv_store_list_runs(). */
RV_MUST_CHECK int rv_store_list_sessions(rv_store *s, const struct rv_store_scope *scope,
                                         const struct rv_session_filter *filter,
                                         int (*each)(void *self, const struct rv_session_row *row, rv_err **err),
                                         void *self, rv_err **err);
/** Delete a session: it and its messages cannot be read any more, and its id stays taken for its owner. It cannot be
 * restored. The first sweep that finds all its runs finished deletes the messages: a run that is recovered until then
 * needs them. */
RV_MUST_CHECK int rv_store_delete_session(rv_store *s, const struct rv_store_scope *scope, const char *id,
                                          int64_t now_us, rv_err **err);

struct rv_message_filter {
    int64_t from_seq, upto_seq; /* 0: from the first, to the last */
    bool newest_first;
    bool with_children; /* also the rows of delegated agents */
    bool with_deleted;  /* also of a session that was deleted: what a run was told, for its replay */
    int64_t told_us;    /* with_deleted: also messages that were deleted after that moment */
    int64_t limit;      /* 0: no limit */
};
/** Messages of a session (borrowed for the call). each returns 0, RV_STORE_ENOUGH to end the walk well, or a code that
 *  is passed on. */
#define RV_STORE_ENOUGH 1
RV_MUST_CHECK int rv_store_read_messages(rv_store *s, const struct rv_store_scope *scope, const char *session,
                                         const struct rv_message_filter *filter,
                                         int (*each)(void *self, const struct rv_message *m, rv_err **err), void *self,
                                         rv_err **err);
/** One message is not seen any more. The numbers of the others stay, and so do the session's counts of messages and of
 * tokens, which were used. Its words go with the first sweep that finds no unfinished run of the session.
 * RV_E_NOT_FOUND: no such session in the scope, or no such message. */
RV_MUST_CHECK int rv_store_delete_message(rv_store *s, const struct rv_store_scope *scope, const char *session,
                                          int64_t seq, int64_t now_us, rv_err **err);
/** Rows that no run wrote, in one transaction: the session must be there. Their seq is given here (in order), the
 *  session's tokens grow by their token_count (of rows without parent_call_id), its name and metadata change as the
 *  turn says. A row whose id the session has already is passed over, whatever else it says. token_count RV_UNSET: the
 *  estimate; created_us 0: now. Tokens, money and time may be RV_UNSET otherwise, and come back so. RV_E_LIMIT: the
 *  metadata would be longer than RV_STORE_MAX_META. */
RV_MUST_CHECK int rv_store_add_messages(rv_store *s, const struct rv_store_scope *scope, const struct rv_turn *turn,
                                        int64_t now_us, rv_err **err);

/* --- Schemas: agent documents, by name. One may be everybody's (user "") or one user's own. --- */
struct rv_schema_row {
    const char *id; /* may be NULL when it is put: a UUID that follows from name and user. Once given it stays */
    const char *tenant, *user; /* when put, NULL: RV_STORE_TENANT, everybody's */
    const char *name, *kind, *version, *description;
    rv_str content;                   /* the prompt */
    rv_str json_schema;               /* the flat document, JSON */
    rv_str document;                  /* the text it was made from, byte for byte */
    const char *source;               /* "person", "built-in", "file": who put it */
    const char *place;                /* of a file, its path; of a built-in, its capability; NULL */
    char checksum[RV_STORE_HASH_MAX]; /* SHA-256 of document; given by the store */
    int64_t created_us, updated_us;
    char *own;
};
void rv_schema_row_fini(struct rv_schema_row *row);
enum rv_schema_put {
    RV_SCHEMA_PUT, /* a person's word: replaces what is there, and revives what was deleted */
    /* On first use, never a person's: only where there is none, or one that was registered too and now has another
     * checksum. What a person put stands, and when it was deleted, it stays deleted: nothing registers in its place.
     * What registered and was deleted registers again. */
    RV_SCHEMA_REGISTER,
};
/** *changed (may be NULL): something was written. RV_E_DENIED: the given id is that of another user's row; RV_E_EXISTS:
 *  of one with another kind or name. */
RV_MUST_CHECK int rv_store_put_schema(rv_store *s, const struct rv_schema_row *row, enum rv_schema_put how,
                                      int64_t now_us, bool *changed, rv_err **err);
/** The user's own one of that kind and name, else everybody's (scope user "" or NULL: that). RV_E_NOT_FOUND. */
RV_MUST_CHECK int rv_store_find_schema(rv_store *s, const struct rv_store_scope *scope, const char *kind,
                                       const char *name, struct rv_schema_row *out, rv_err **err);
/** All that the scope sees (user NULL: of all users), by name, a user's own before everybody's. kind NULL: any. */
RV_MUST_CHECK int rv_store_list_schemas(rv_store *s, const struct rv_store_scope *scope, const char *kind,
                                        int (*each)(void *self, const struct rv_schema_row *row, rv_err **err),
                                        void *self, rv_err **err);
/** The user's own (scope user ""  or NULL: everybody's). RV_E_NOT_FOUND: there is none that may be deleted so. */
RV_MUST_CHECK int rv_store_delete_schema(rv_store *s, const struct rv_store_scope *scope, const char *kind,
                                         const char *name, int64_t now_us, rv_err **err);
/** A number that differs from any earlier one after any change to schemas, by whatever process. What is read in a group
 *  that changed schemas holds only when the group is committed. */
RV_MUST_CHECK int rv_store_schemas_version(rv_store *s, int64_t *out, rv_err **err);

/* --- Ownership --- */
struct rv_store_claim {
    const char *owner; /* who wants it */
    const char *dead;  /* an owner that is known to live no more: its lease counts as ended; may be NULL */
    int64_t now_us, until_us;
};
/** Become the owner. *fence is one more than any before. RV_E_STATE: a lease lasts (the text names its owner and end),
 * even if it is the same owner's. */
RV_MUST_CHECK int rv_store_claim(rv_store *s, const struct rv_store_scope *scope, const char *run,
                                 const struct rv_store_claim *claim, int64_t *fence, rv_err **err);
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

/* --- Blobs and bundles: bytes by the SHA-256 of their content --- */
/** Dated by the system's clock; writing an existing blob renews its date: see rv_store_sweep(). */
RV_MUST_CHECK int rv_store_put_blob(rv_store *s, rv_str data, char hash[RV_STORE_HASH_MAX], rv_err **err);
/** Appended to out. RV_E_NOT_FOUND; RV_E_INVALID when the bytes are not those of the hash. */
RV_MUST_CHECK int rv_store_get_blob(rv_store *s, const char *hash, rv_buf *out, rv_err **err);

/* --- Snapshots: what makes recovery faster and may be deleted at any time. One a run, the newest. --- */
/** RV_E_STATE: fenced off, or seq is not written yet. One that is older than the present one is not kept. */
RV_MUST_CHECK int rv_store_put_snapshot(rv_store *s, const char *run, int64_t fence, int64_t seq, rv_str body,
                                        rv_err **err);
/** *seq 0: there is none. Appended to out. */
RV_MUST_CHECK int rv_store_get_snapshot(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t *seq,
                                        rv_buf *out, rv_err **err);
RV_MUST_CHECK int rv_store_drop_snapshots(rv_store *s, rv_err **err);

/* --- Upkeep --- */
struct rv_store_stats {
    int64_t runs, records, blobs, pending, snapshots;
    int64_t sessions, messages, schemas; /* that can be seen: without what was deleted */
    int64_t bytes;                       /* that the file takes, with what waits beside it; memory: its pages */
    int64_t schema;
};
RV_MUST_CHECK int rv_store_stats(rv_store *s, struct rv_store_stats *out, rv_err **err);
/** Drop blobs that no run refers to and give the space back. A blob younger than grace_us (before now_us) stays: a run
 *  may be about to refer to it. *freed (may be NULL): bytes the file became smaller by. */
RV_MUST_CHECK int rv_store_sweep(rv_store *s, int64_t now_us, int64_t grace_us, int64_t *freed, rv_err **err);
/** Check the whole store: pages, indexes, hashes of blobs, gapless journals and sessions, sums of tokens, checksums of
 *  schemas. RV_E_INVALID lists the faults. */
RV_MUST_CHECK int rv_store_check(rv_store *s, rv_err **err);
/** A consistent copy while others go on writing; the file must not exist. */
RV_MUST_CHECK int rv_store_backup(rv_store *s, const char *path, rv_err **err);

/* --- Fault points: every operation passes "<op>" before it begins and "<op>.done" after it took effect, op being the
 * function's name without rv_store_. A hook that returns a code fails the operation with it: before, nothing happened;
 * after, it did, and the caller does not know (a reply that got lost). For tests. */
struct rv_store_faults {
    int (*at)(void *self, const char *point, rv_err **err);
    void *self;
};
void rv_store_set_faults(rv_store *s, struct rv_store_faults faults); /* at NULL: none */

#endif

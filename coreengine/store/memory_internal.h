/* The memory store's parts. What of a run can change is one struct mem_state, replaced as a whole; what was replaced
 * goes to the undo log, so that a failed call, a failed group and a rollback are the same thing: undo back to a mark.
 * Texts, records, snapshots and lists of pending interrupts never change once made and are counted references. */
#ifndef RV_STORE_MEMORY_INTERNAL_H
#define RV_STORE_MEMORY_INTERNAL_H

#include "coreengine/store/store_internal.h"

struct mem_store;

/* A hash table of things that begin with this; chains, so that taking one out and putting it back needs no memory. */
struct mem_node {
    struct mem_node *next;
    uint64_t hash;
    const char *name; /* NUL-terminated; belongs to the thing */
};
struct mem_table {
    struct mem_node **buckets; /* owned; a power of two */
    size_t n, n_buckets;
};
RV_MUST_CHECK int rv_mem_table_reserve(struct mem_table *t); /* room for one more; RV_E_NOMEM */
void rv_mem_table_add(struct mem_table *t, struct mem_node *node, const char *name);
void rv_mem_table_remove(struct mem_table *t, struct mem_node *node);
struct mem_node *rv_mem_table_find(const struct mem_table *t, const char *name); /* NULL: none */
struct mem_node *rv_mem_table_next(const struct mem_node *node); /* of the same name, where names may stand twice */

struct mem_text {
    size_t refs, len;
    char text[];
};
struct mem_blob {
    struct mem_node node; /* by its hash */
    size_t refs;          /* records and runs; 0: only the next sweep's grace keeps it */
    int64_t created_us;
    size_t len;
    char hash[RV_HASH_MAX];
    char bytes[];
};
struct mem_record {
    int kind;
    bool has_value;
    size_t body_len, value_len;
    struct mem_blob *blob; /* counted; NULL: the value, if any, follows the body */
    char bytes[];
};
struct mem_pending {
    size_t refs, n;
    struct rv_pending items[]; /* the texts follow */
};

struct mem_state {
    enum rv_run_status status;
    int64_t updated_us, expires_us, n_records, fence, lease_until_us;
    bool cancel_requested;
    struct mem_text *stage;      /* counted, as the three below */
    struct mem_text *owner;      /* NULL: none */
    struct mem_pending *pending; /* NULL: none */
    struct mem_text *snapshot;   /* NULL: none */
    int64_t snapshot_seq;
};
struct mem_run {
    struct mem_node node; /* by its id */
    struct mem_run *prev, *next;
    struct mem_state state;
    struct mem_record **records; /* state.n_records of them */
    size_t cap;
    struct mem_blob *bundle; /* counted */
    int64_t created_us, parent_seq;
    const char *tenant, *user, *session, *pipeline, *parent; /* in own */
    char *own;
};

struct mem_message {
    struct mem_node node; /* by its id, within the session */
    struct rv_message row;
    char *own;          /* the row's texts */
    int64_t deleted_us; /* 0: it is not */
};
struct mem_session_state {
    struct mem_text *name, *mode, *metadata; /* counted */
    int64_t total_tokens, n_messages, updated_us;
    enum rv_session_status status;
    bool is_deleted;
};
struct mem_session {
    struct mem_node node; /* by its id */
    struct mem_session *prev, *next;
    struct mem_session_state state;
    struct rv_session_row head;    /* the fields that do not change; the others are in the state */
    struct mem_message **messages; /* state.n_messages of them */
    size_t cap;
    struct mem_table ids;
};
struct mem_schema {
    struct mem_schema *next;
    struct rv_schema_row row; /* owned; replaced as a whole */
    bool is_deleted;
};

enum mem_undo_kind {
    MEM_UNDO_STATE,
    MEM_UNDO_CREATED,
    MEM_UNDO_DELETED,
    MEM_UNDO_BLOB,
    MEM_UNDO_SESSION,
    MEM_UNDO_SESSION_MADE,
    MEM_UNDO_MESSAGE, /* it was not deleted */
    MEM_UNDO_SCHEMA,
    MEM_UNDO_SCHEMA_MADE,
};
struct mem_undo {
    struct mem_undo *before;
    enum mem_undo_kind kind;
    struct mem_run *run;
    struct mem_state state;
    struct mem_blob *blob;
    struct mem_session *session;
    struct mem_session_state session_state;
    struct mem_message *message;
    struct mem_schema *schema;
    struct mem_schema old_schema; /* its row is owned */
};

struct mem_store {
    struct mem_table runs, blobs, sessions;
    struct mem_run *first;             /* all runs, newest made first */
    struct mem_session *first_session; /* all sessions, newest made first */
    struct mem_schema *first_schema;   /* all schemas, newest made first */
    int64_t n_schema_changes;          /* also those that were undone */
    struct mem_undo *undo;             /* newest first; empty between calls unless a group is open */
    struct mem_undo *spare;
    bool in_group;
};

/* memory_state.c */
struct mem_text *rv_mem_text_new(rv_str s); /* NULL: no memory */
void rv_mem_text_unref(struct mem_text *t);
void rv_mem_pending_unref(struct mem_pending *p);
struct mem_state rv_mem_state_dup(const struct mem_state *st);
void rv_mem_state_fini(struct mem_state *st);
/** Set *slot to a text that says s; keeps the old one if it says that already. */
RV_MUST_CHECK int rv_mem_set_text(struct mem_text **slot, rv_str s, rv_err **err);
/** Replace the run's state by *st, which is taken in any case. */
RV_MUST_CHECK int rv_mem_put_state(struct mem_store *m, struct mem_run *run, struct mem_state *st, rv_err **err);
RV_MUST_CHECK int rv_mem_note(struct mem_store *m, enum mem_undo_kind kind, struct mem_run *run, struct mem_blob *blob,
                              rv_err **err);
void rv_mem_link(struct mem_store *m, struct mem_run *run); /* the table has room */
void rv_mem_unlink(struct mem_store *m, struct mem_run *run);
void rv_mem_run_free(struct mem_run *run); /* not linked any more */
/** End a call that began when the log stood at mark: undo it if rc says so, forget the log unless a group is open. */
int rv_mem_end(struct mem_store *m, const struct mem_undo *mark, int rc);
void rv_mem_undo_to(struct mem_store *m, const struct mem_undo *mark);
void rv_mem_forget(struct mem_store *m);

/* memory_owner.c */
/** The run, if the writer still owns it. */
RV_MUST_CHECK int rv_mem_find_fenced(struct mem_store *m, const char *id, int64_t fence, struct mem_run **out,
                                     rv_err **err);
void rv_mem_disown(struct mem_state *st);
bool rv_mem_is_leased(const struct mem_run *run, int64_t now_us);
int rv_mem_claim(void *self, const struct rv_store_scope *scope, const char *id, const struct rv_store_claim *claim,
                 int64_t *fence, rv_err **err);
int rv_mem_renew(void *self, const char *owner, int64_t until_us, rv_err **err);
int rv_mem_release(void *self, const char *id, int64_t fence, rv_err **err);
int rv_mem_request_cancel(void *self, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err);
int rv_mem_put_snapshot(void *self, const char *id, int64_t fence, int64_t seq, rv_str body, rv_err **err);
int rv_mem_drop_snapshots(void *self, rv_err **err);

/* memory_sessions.c */
/** The session, if the scope sees it. */
struct mem_session *rv_mem_see_session(struct mem_store *m, const struct rv_store_scope *scope, const char *id);
/** The session, if it was deleted and the scope saw it before. */
struct mem_session *rv_mem_see_deleted_session(struct mem_store *m, const struct rv_store_scope *scope, const char *id);
/** Why there is none to be seen: RV_E_NOT_FOUND, or RV_E_INVALID when it could be several users'. */
int rv_mem_fail_unseen_session(const struct mem_store *m, const struct rv_store_scope *scope, const char *id,
                               rv_err **err);
RV_MUST_CHECK int rv_mem_make_session(struct mem_store *m, const struct rv_session_row *fresh, struct mem_session **out,
                                      rv_err **err);
/** Its state may be changed in place from now on, and messages added: the log knows what to go back to. */
RV_MUST_CHECK int rv_mem_touch_session(struct mem_store *m, struct mem_session *s, rv_err **err);
/** Merge that into its metadata; touched before. */
RV_MUST_CHECK int rv_mem_merge(struct mem_session *s, json_object *patch, const char *const *remove, size_t n_remove,
                               rv_err **err);
void rv_mem_undo_session(struct mem_store *m, struct mem_undo *u);
void rv_mem_session_state_fini(struct mem_session_state *st);
void rv_mem_sessions_free(struct mem_store *m);
/** Forget what sessions that were deleted held, as far as none of their runs is unfinished. */
RV_MUST_CHECK int rv_mem_purge_sessions(struct mem_store *m, rv_err **err);
int rv_mem_ensure_session(void *self, const struct rv_session_row *fresh, struct rv_session_row *out, rv_err **err);
int rv_mem_get_session(void *self, const struct rv_store_scope *scope, const char *id, struct rv_session_row *out,
                       rv_err **err);
int rv_mem_change_session(void *self, const struct rv_store_scope *scope, const char *id,
                          const struct rv_session_change *change, rv_err **err);
int rv_mem_list_sessions(void *self, const struct rv_store_scope *scope, const struct rv_session_filter *filter,
                         rv_each_session *each, void *ctx, rv_err **err);
int rv_mem_delete_session(void *self, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err);

/* memory_messages.c */
void rv_mem_drop_messages(struct mem_session *s, int64_t from); /* from that index to the last */
RV_MUST_CHECK int rv_mem_keep_turns(struct mem_store *m, const struct mem_run *run, const struct rv_store_append *a,
                                    rv_err **err);
int rv_mem_delete_message(void *self, const struct rv_store_scope *scope, const char *session, int64_t seq,
                          int64_t now_us, rv_err **err);
/** The words of messages that were deleted. */
void rv_mem_drop_words(struct mem_session *s);
int rv_mem_read_messages(void *self, const struct rv_store_scope *scope, const char *session,
                         const struct rv_message_filter *filter, rv_each_message *each, void *ctx, rv_err **err);
int rv_mem_add_messages(void *self, const struct rv_store_scope *scope, const struct rv_turn *turn, int64_t now_us,
                        rv_err **err);

/* memory_schemas.c */
void rv_mem_undo_schema(struct mem_store *m, struct mem_undo *u);
void rv_mem_schemas_free(struct mem_store *m);
int rv_mem_put_schema(void *self, const struct rv_schema_row *row, enum rv_schema_put how, int64_t now_us,
                      bool *changed, rv_err **err);
int rv_mem_find_schema(void *self, const struct rv_store_scope *scope, const char *kind, const char *name,
                       struct rv_schema_row *out, rv_err **err);
int rv_mem_list_schemas(void *self, const struct rv_store_scope *scope, const char *kind, rv_each_schema *each,
                        void *ctx, rv_err **err);
int rv_mem_delete_schema(void *self, const struct rv_store_scope *scope, const char *kind, const char *name,
                         int64_t now_us, rv_err **err);
int rv_mem_schemas_version(void *self, int64_t *out, rv_err **err);

/* memory_values.c */
RV_MUST_CHECK int rv_mem_blob_of(struct mem_store *m, rv_str data, const char *hash, int64_t now_us,
                                 struct mem_blob **out, rv_err **err);
RV_MUST_CHECK int rv_mem_record_new(struct mem_store *m, const struct rv_record *r, int64_t now_us,
                                    struct mem_record **out, rv_err **err);
void rv_mem_record_free(struct mem_record *r);
RV_MUST_CHECK int rv_mem_pending_new(const struct rv_pending *items, size_t n, struct mem_pending **out, rv_err **err);
int rv_mem_put_blob(void *self, rv_str data, const char *hash, int64_t now_us, rv_err **err);
int rv_mem_get_blob(void *self, const char *hash, rv_buf *out, rv_err **err);
int rv_mem_stats(void *self, struct rv_store_stats *out, rv_err **err);
int rv_mem_sweep(void *self, int64_t now_us, int64_t grace_us, int64_t *freed, rv_err **err);
int rv_mem_check(void *self, rv_err **err);

/* memory_read.c */
struct mem_run *rv_mem_find(struct mem_store *m, const struct rv_store_scope *scope, const char *id);
int rv_mem_get_run(void *self, const struct rv_store_scope *scope, const char *id, struct rv_run_row *out,
                   rv_err **err);
int rv_mem_list_runs(void *self, const struct rv_store_scope *scope, const struct rv_run_filter *filter,
                     rv_each_run *each, void *ctx, rv_err **err);
int rv_mem_read(void *self, const struct rv_store_scope *scope, const char *run, int64_t from, int64_t upto,
                rv_each_record *each, void *ctx, rv_err **err);
int rv_mem_list_pending(void *self, const struct rv_store_scope *scope, const char *run, rv_each_pending *each,
                        void *ctx, rv_err **err);
int rv_mem_list_cancels(void *self, const char *owner, rv_each_id *each, void *ctx, rv_err **err);
int rv_mem_get_snapshot(void *self, const struct rv_store_scope *scope, const char *run, int64_t *seq, rv_buf *out,
                        rv_err **err);

#endif

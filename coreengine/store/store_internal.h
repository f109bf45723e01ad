/* Shared by the front and the implementations. The front (store.c, store_args.c) has checked every argument before an
 * implementation sees it: scopes are given and name their tenant, ids and texts are whole and within their limits,
 * records follow each other, times are not negative. */
#ifndef RV_STORE_INTERNAL_H
#define RV_STORE_INTERNAL_H

#include "coreengine/store/store.h"

#define RV_STORE_MAX_TEXT    1024               /* bytes of a session, pipeline, stage or kind */
#define RV_STORE_MAX_URL     4096               /* bytes; what the system takes as a path */
#define RV_STORE_MAX_WRITE   ((size_t)100000)   /* records of one call: a step writes a handful, a fork's tail a few */
#define RV_STORE_MAX_PENDING ((size_t)10000)    /* interrupts of one run that wait at the same time */
#define RV_STORE_MAX_TURNS   ((size_t)1000)     /* of one append */
#define RV_STORE_MAX_ROWS    ((size_t)100000)   /* messages of one turn */
#define RV_STORE_MAX_COUNT   (INT64_C(1) << 40) /* tokens, micro-dollars or milliseconds of one message */

typedef int rv_each_run(void *self, const struct rv_run_row *row, rv_err **err);
typedef int rv_each_record(void *self, const struct rv_record *r, rv_err **err);
typedef int rv_each_pending(void *self, const struct rv_pending *p, rv_err **err);
typedef int rv_each_session(void *self, const struct rv_session_row *row, rv_err **err);
typedef int rv_each_message(void *self, const struct rv_message *m, rv_err **err);
typedef int rv_each_schema(void *self, const struct rv_schema_row *row, rv_err **err);
typedef int rv_each_id(void *self, const char *run, rv_err **err);

/* One per implementation; no slot is NULL. As the functions of store.h, where they differ it is said. */
struct rv_store_ops {
    void (*close)(void *self);
    void (*set_wait)(void *self, int64_t ms); /* NULL: the store has a single writer */
    int (*create_run)(void *self, const struct rv_store_new_run *run, rv_err **err);
    int (*append)(void *self, const struct rv_store_append *a, rv_err **err);
    int (*begin)(void *self, rv_err **err);  /* never inside a group */
    int (*commit)(void *self, rv_err **err); /* only inside one, which ends in any case */
    void (*rollback)(void *self);            /* only inside a group, which ends in any case */
    int (*get_run)(void *self, const struct rv_store_scope *scope, const char *id, struct rv_run_row *out,
                   rv_err **err);
    int (*list_runs)(void *self, const struct rv_store_scope *scope, const struct rv_run_filter *filter,
                     rv_each_run *each, void *ctx, rv_err **err);
    int (*read)(void *self, const struct rv_store_scope *scope, const char *run, int64_t from, int64_t upto,
                rv_each_record *each, void *ctx, rv_err **err); /* upto: INT64_MAX for the end */
    int (*list_pending)(void *self, const struct rv_store_scope *scope, const char *run, rv_each_pending *each,
                        void *ctx, rv_err **err);
    int (*delete_run)(void *self, const struct rv_store_scope *scope, const char *run, int64_t now_us, rv_err **err);
    int (*ensure_session)(void *self, const struct rv_session_row *fresh, struct rv_session_row *out,
                          rv_err **err); /* fresh is complete; out may be NULL */
    int (*get_session)(void *self, const struct rv_store_scope *scope, const char *id, struct rv_session_row *out,
                       rv_err **err);
    int (*change_session)(void *self, const struct rv_store_scope *scope, const char *id,
                          const struct rv_session_change *change, rv_err **err);
    int (*list_sessions)(void *self, const struct rv_store_scope *scope, const struct rv_session_filter *filter,
                         rv_each_session *each, void *ctx, rv_err **err);
    int (*delete_session)(void *self, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err);
    int (*delete_message)(void *self, const struct rv_store_scope *scope, const char *session, int64_t seq,
                          int64_t now_us, rv_err **err);
    int (*read_messages)(void *self, const struct rv_store_scope *scope, const char *session,
                         const struct rv_message_filter *filter, rv_each_message *each, void *ctx,
                         rv_err **err); /* from and upto are given; what each returns is passed on */
    int (*add_messages)(void *self, const struct rv_store_scope *scope, const struct rv_turn *turn, int64_t now_us,
                        rv_err **err);
    int (*put_schema)(void *self, const struct rv_schema_row *row, enum rv_schema_put how, int64_t now_us,
                      bool *changed, rv_err **err); /* row is complete; its id is NULL when the caller gave none */
    int (*find_schema)(void *self, const struct rv_store_scope *scope, const char *kind, const char *name,
                       struct rv_schema_row *out, rv_err **err);
    int (*list_schemas)(void *self, const struct rv_store_scope *scope, const char *kind, rv_each_schema *each,
                        void *ctx, rv_err **err);
    int (*delete_schema)(void *self, const struct rv_store_scope *scope, const char *kind, const char *name,
                         int64_t now_us, rv_err **err);
    int (*schemas_version)(void *self, int64_t *out, rv_err **err);
    int (*claim)(void *self, const struct rv_store_scope *scope, const char *run, const struct rv_store_claim *claim,
                 int64_t *fence, rv_err **err);
    int (*renew)(void *self, const char *owner, int64_t until_us, rv_err **err);
    int (*release)(void *self, const char *run, int64_t fence, rv_err **err);
    int (*request_cancel)(void *self, const struct rv_store_scope *scope, const char *run, int64_t now_us,
                          rv_err **err);
    int (*list_cancels)(void *self, const char *owner, rv_each_id *each, void *ctx, rv_err **err);
    int (*put_blob)(void *self, rv_str data, const char *hash, int64_t now_us, rv_err **err); /* now: the system's */
    int (*get_blob)(void *self, const char *hash, rv_buf *out, rv_err **err); /* need not compare with the hash */
    int (*put_snapshot)(void *self, const char *run, int64_t fence, int64_t seq, rv_str body, rv_err **err);
    int (*get_snapshot)(void *self, const struct rv_store_scope *scope, const char *run, int64_t *seq, rv_buf *out,
                        rv_err **err);
    int (*drop_snapshots)(void *self, rv_err **err);
    int (*stats)(void *self, struct rv_store_stats *out, rv_err **err);
    int (*sweep)(void *self, int64_t now_us, int64_t grace_us, int64_t *freed, rv_err **err);
    int (*check)(void *self, rv_err **err);
    int (*backup)(void *self, const char *path, rv_err **err);
};

/* memory.c, sqlite.c */
extern const struct rv_store_ops rv_store_sqlite_ops;
RV_MUST_CHECK int rv_store_sqlite_open(const char *path, const struct rv_store_opts *opts, void **out, rv_err **err);

/* store_args.c: RV_E_INVALID or RV_E_LIMIT that names the argument. */
RV_MUST_CHECK int rv_store_check_id(const char *kind, const char *id, rv_err **err);
/** Check that a new id has no control characters. id may be NULL. */
RV_MUST_CHECK int rv_store_check_new_id(const char *kind, const char *id, rv_err **err);
RV_MUST_CHECK int rv_store_check_scope(const struct rv_store_scope *scope, struct rv_store_scope *out, rv_err **err);
RV_MUST_CHECK int rv_store_check_new_run(const struct rv_store_new_run *run, rv_err **err);
RV_MUST_CHECK int rv_store_check_append(const struct rv_store_append *a, rv_err **err);
RV_MUST_CHECK int rv_store_check_filter(const struct rv_run_filter *filter, rv_err **err);
RV_MUST_CHECK int rv_store_check_hash(const char *hash, rv_err **err);
RV_MUST_CHECK int rv_store_check_text(const char *kind, const char *text, size_t max, rv_err **err);
RV_MUST_CHECK int rv_store_check_bytes(const char *kind, rv_str s, size_t max, rv_err **err);
RV_MUST_CHECK int rv_store_check_time(const char *kind, int64_t us, rv_err **err);

/* store_args_rows.c: the same for rows */
RV_MUST_CHECK int rv_store_check_object(const char *kind, rv_str json, size_t max,
                                        rv_err **err); /* JSON; may be empty */
RV_MUST_CHECK int rv_store_check_session(const struct rv_session_row *row, rv_err **err);
RV_MUST_CHECK int rv_store_check_change(const struct rv_session_change *change, rv_err **err);
RV_MUST_CHECK int rv_store_check_sessions(const struct rv_session_filter *filter, rv_err **err);
RV_MUST_CHECK int rv_store_check_messages(const struct rv_message_filter *filter, rv_err **err);
RV_MUST_CHECK int rv_store_check_turn(const struct rv_turn *turn, rv_err **err);
RV_MUST_CHECK int rv_store_check_schema(const struct rv_schema_row *row, enum rv_schema_put how, rv_err **err);

/* store_row.c: what both implementations say and do alike. */
/* The texts of a row, for code that treats them alike. */
struct rv_row_texts {
    const char **texts[16]; /* NULL texts stay NULL */
    rv_str *strs[4];        /* the same; a copy has a NUL behind it */
    size_t n_texts, n_strs;
};
/** Copy them all into one block, which free() frees, and let the row point there. NULL: no memory, nothing changed. */
char *rv_store_pack(const struct rv_row_texts *row);
RV_MUST_CHECK int rv_run_row_copy(const struct rv_run_row *row, struct rv_run_row *out); /* RV_E_NOMEM */
bool rv_store_status_is_final(enum rv_run_status status);
int rv_store_fail_no_run(const char *run, rv_err **err);
int rv_store_fail_no_message(const char *session, int64_t seq, rv_err **err);
int rv_store_fail_fenced(const char *run, int64_t fence, int64_t present, const char *owner, rv_err **err);
int rv_store_fail_seq(const char *run, int64_t n_records, int64_t seq, rv_err **err);
int rv_store_fail_leased(const char *run, const char *owner, int64_t until_us, rv_err **err);
int rv_store_fail_taken(const char *run, rv_err **err);
int rv_store_fail_no_bundle(const char *run, const char *bundle, rv_err **err);
int rv_store_fail_over(const char *run, enum rv_run_status status, rv_err **err);
int rv_store_fail_snapshot(const char *run, int64_t n_records, int64_t seq, rv_err **err);

/* store_rules.c: what sessions, messages and schemas are like, once for both implementations. */
RV_MUST_CHECK int rv_session_row_copy(const struct rv_session_row *row, struct rv_session_row *out); /* RV_E_NOMEM */
RV_MUST_CHECK int rv_schema_row_copy(const struct rv_schema_row *row, struct rv_schema_row *out);    /* RV_E_NOMEM */
bool rv_store_sees_session(const struct rv_store_scope *scope, const struct rv_session_row *row);
#define RV_STORE_NAME_ROOM (RV_STORE_MAX_ID + 8)
/** The session that a turn makes; name is where its name goes, unless the turn has one. Borrows from all of them. */
struct rv_session_row rv_store_session_of(const struct rv_turn *turn, const struct rv_store_scope *owner,
                                          int64_t now_us, char name[RV_STORE_NAME_ROOM]);
void rv_store_session_name(const char *id, char name[RV_STORE_NAME_ROOM]); /* "chat-<id>" */
/** The stored form of a message: its tokens, time and run are filled in where they are missing. */
struct rv_message rv_store_message_of(const struct rv_message *m, const char *run, int64_t now_us);
/** Append the JSON text of `old` (a JSON object or nothing) with the members of patch (NULL: none) put in, and those of
 *  remove taken out. RV_E_LIMIT; RV_E_INVALID: old is damaged. */
RV_MUST_CHECK int rv_store_merge(rv_str old, json_object *patch, const char *const *remove, size_t n_remove,
                                 rv_buf *out, rv_err **err);
#define RV_STORE_SCHEMA_PERSON "person"
/** Tells whether `given` replaces the existing row (NULL: none). */
bool rv_store_schema_changes(const struct rv_schema_row *given, enum rv_schema_put how,
                             const struct rv_schema_row *present, bool is_deleted);
int rv_store_fail_no_session(const char *id, rv_err **err);
int rv_store_fail_session_deleted(const char *id, rv_err **err);   /* RV_E_EXISTS */
int rv_store_fail_ambiguous_session(const char *id, rv_err **err); /* RV_E_INVALID */
int rv_store_fail_no_schema(const char *kind, const char *name, rv_err **err);
int rv_store_fail_schema_id(const char *id, bool is_another_users, rv_err **err);

#endif

/* Shared by the files of the store. Each public function checks its arguments, enters, does its work between, and
 * leaves; statements are in sql_internal.h. */
#ifndef RV_STORE_INTERNAL_H
#define RV_STORE_INTERNAL_H

#include "coreengine/store/sql/sql_internal.h"

#define RV_STORE_MAX_TEXT   1024 /* bytes of a session, pipeline, stage or kind: they are keys of indexes */
#define RV_STORE_MAX_URL    4096 /* bytes; what the system takes as a path */
#define RV_STORE_MAX_NUMBER (INT64_C(1) << 61) /* of a row: more is damage, and sums must not overflow */
#define RV_STORE_DIGEST     32                 /* bytes of SHA-256 */

struct rv_store {
    struct sql_store *sql;     /* owned */
    char *url;                 /* as it may be shown; owned */
    char *source;              /* as it was given: it may have a password; owned */
    struct rv_store_opts opts; /* as it was opened */
    const char *op;            /* under way, or the last one; static */
    bool in_group;
    bool is_writing; /* between store_enter_write() and store_repeats() */
    bool is_walking; /* a read is under way, and its callback may not use the store */
    struct rv_store_faults faults;
    struct rv_search_cache *searched; /* owned: what searches keep in memory (search/refresh.c) */
};

/* store.c. op: the function's name without rv_store_, in words. */
/** rc: of the check of the arguments, which is passed on with the name of the operation. Else the call is refused if it
 * does not fit, passes the fault point, and (a write) opens its transaction. Not 0: the function returns that. */
RV_MUST_CHECK int store_enter_read(rv_store *s, int rc, const char *op, rv_err **err);
RV_MUST_CHECK int store_enter_write(rv_store *s, int rc, const char *op, rv_err **err);
/** A write is committed, or undone when *rc is not 0; *rc says whether that succeeded. true: nothing was written
 * because another process was in the way or the connection broke, and the work is to be done once more. */
RV_MUST_CHECK bool store_repeats(rv_store *s, int *rc, rv_err **err);
/** End it. If it went well, pass the point behind it. */
RV_MUST_CHECK int store_leave_read(rv_store *s, int rc, rv_err **err);
RV_MUST_CHECK int store_leave_write(rv_store *s, int rc, rv_err **err);

/* copy.c */
struct rv_store_copied;
struct rv_store_copy_opts;
RV_MUST_CHECK int store_copy_rows(struct sql_store *from, struct sql_store *to, const struct rv_store_copy_opts *opts,
                                  struct rv_store_copied *out, rv_err **err);
RV_MUST_CHECK int store_copy_list_leased(struct sql_store *from, const struct rv_store_copy_opts *opts, rv_err **err);
/** Append what the table "about" says under that name; nothing when it does not. */
RV_MUST_CHECK int store_about_get(struct sql_store *st, const char *name, rv_buf *out, rv_err **err);
int store_fail_half(struct sql_store *st, const char *from, rv_err **err);

/* args.c: RV_E_INVALID or RV_E_LIMIT that names the argument. */
void store_blob_hex(const unsigned char digest[RV_STORE_DIGEST], char out[RV_HASH_MAX]);
RV_MUST_CHECK int store_check_id(const char *kind, const char *id, rv_err **err);
/** Check that a new id has no control characters. id may be NULL. */
RV_MUST_CHECK int store_check_new_id(const char *kind, const char *id, rv_err **err);
RV_MUST_CHECK int store_check_scope(const struct rv_store_scope *scope, struct rv_store_scope *out, rv_err **err);
/** The scope, which names its tenant afterwards, and an id. */
RV_MUST_CHECK int store_check_scoped(const struct rv_store_scope *scope, const char *kind, const char *id,
                                     struct rv_store_scope *out, rv_err **err);
RV_MUST_CHECK int store_check_hash(const char *hash, rv_err **err);
RV_MUST_CHECK int store_check_text(const char *kind, const char *text, size_t max, rv_err **err);
/** May be NULL; if it is there, it says something. */
RV_MUST_CHECK int store_check_optional(const char *kind, const char *text, size_t max, rv_err **err);
RV_MUST_CHECK int store_check_bytes(const char *kind, rv_str s, size_t max, rv_err **err);
RV_MUST_CHECK int store_check_time(const char *kind, int64_t us, rv_err **err);
RV_MUST_CHECK int store_check_object(const char *kind, rv_str json, size_t max, rv_err **err); /* may be empty */
RV_MUST_CHECK int store_check_members(const char *kind, json_object *v, rv_err **err);         /* may be NULL */

/** The end of the ids that begin with the prefix (see args.c); "": there is none. */
void store_prefix_end(const char *prefix, char end[RV_STORE_MAX_ID + 2]);
/** RV_E_IO: what was read cannot be; with the place, and how to find what else is damaged. */
int store_damaged(const struct sql_store *st, rv_err **err, const char *fmt, ...) RV_PRINTF(3, 4);
/** RV_E_IO: one of them is not a number that an object of that kind ("run") can have. */
RV_MUST_CHECK int store_check_numbers(const struct sql_store *st, const char *kind, const char *id,
                                      const int64_t *numbers, size_t n, rv_err **err);
/* The texts of a row, for code that treats them alike. What it points to is borrowed from the row. */
struct rv_row_texts {
    const char **texts[16]; /* NULL texts stay NULL */
    rv_str *strs[4];        /* the same; a copy has a NUL behind it */
    size_t n_texts, n_strs;
};
/** Copy them all into one block, which free() frees, and let the row point there. NULL: no memory, nothing changed. */
char *store_pack(const struct rv_row_texts *row);
/** Append the JSON text of `old` (a JSON object or nothing) with the members of patch (NULL: none) put in, and those of
 *  remove taken out. RV_E_LIMIT; RV_E_INVALID: old is damaged. */
RV_MUST_CHECK int store_merge(rv_str old, json_object *patch, const char *const *remove, size_t n_remove, rv_buf *out,
                              rv_err **err);

typedef int rv_each_run(void *self, const struct rv_run_row *row, rv_err **err);
typedef int rv_each_record(void *self, const struct rv_record *r, rv_err **err);
typedef int rv_each_pending(void *self, const struct rv_pending *p, rv_err **err);
typedef int rv_each_session(void *self, const struct rv_session_row *row, rv_err **err);
typedef int rv_each_message(void *self, const struct rv_message *m, rv_err **err);
typedef int rv_each_schema(void *self, const struct rv_schema_row *row, rv_err **err);
typedef int rv_each_id(void *self, const char *run, rv_err **err);

/* runs.c */
struct found_run {
    int64_t key, fence, n_records, lease_until_us, n_pending, n_open;
    enum rv_run_status status;
    bool is_owned;
    char owner[RV_STORE_MAX_ID + 1], tenant[RV_STORE_MAX_ID + 1];
};
/** RV_E_NOT_FOUND. scope NULL: any. */
RV_MUST_CHECK int store_run_find(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                                 struct found_run *out, rv_err **err);
/** The same, and RV_E_STATE when the run has another fence. */
RV_MUST_CHECK int store_run_find_fenced(struct sql_store *st, const char *id, int64_t fence, struct found_run *out,
                                        rv_err **err);
int store_fail_no_run(const char *run, rv_err **err);
int store_fail_leased(const char *run, const char *owner, int64_t until_us, rv_err **err);

/* interrupts.c */
typedef int rv_each_interrupt(void *self, const struct rv_interrupt_row *row, rv_err **err);
typedef int rv_each_interrupt_count(void *self, const struct rv_interrupt_count *count, rv_err **err);
/** What a step with set_pending changes, after the pending rows were written. */
RV_MUST_CHECK int store_interrupts_keep(struct sql_store *st, const struct found_run *run,
                                        const struct rv_store_append *a, rv_err **err);

/* webhooks.c */
/** Queue what tells that the run ended or waits, when this step is the one that did that; after the status was written.
 */
RV_MUST_CHECK int store_webhooks_keep(struct sql_store *st, const struct found_run *run,
                                      const struct rv_store_append *a, rv_err **err);

/* runs_read.c */
/** A row of RV_SQL_RUN. The texts stay valid until the statement moves; hash is where the bundle's name goes. */
RV_MUST_CHECK int store_run_row_of(struct sql_store *st, rv_sql_stmt *stmt, char hash[RV_HASH_MAX],
                                   struct rv_run_row *out, rv_err **err);

/* kinds.c */
const char *store_kind_type_text(enum rv_kind_type type); /* "text", "list of objects" */
bool store_kind_encrypts(const struct rv_kind *kind, const char *field);

/* quotas_time.c */
/* A window of a rate. Bucket i counts what happened in the tenths of the window whose number is i modulo 10; `head` is
 * the number of the newest tenth that counts something. */
struct rv_rate_window {
    int64_t head, n[RV_RATE_BUCKETS];
};
/** Drop what has left the window by now. A clock that went back changes nothing. */
void store_rate_move(struct rv_rate_window *w, enum rv_quota_span span, int64_t now_us);
int64_t store_rate_count(const struct rv_rate_window *w);
/** When, at the earliest, `n` more fit under the limit, if nothing else happens; 0: they never do. */
int64_t store_rate_fits_us(const struct rv_rate_window *w, enum rv_quota_span span, int64_t limit, int64_t n);

/* quotas_read.c */
int store_quota_kind_of(rv_str word); /* RV_UNSET: another word */
bool store_quota_has_span(bool is_rate, enum rv_quota_span span);
int64_t store_rate_us(enum rv_quota_span span); /* length of a window */
/** The columns head, n0 to n9 of a row, from the first on. */
RV_MUST_CHECK int store_rate_read(struct sql_store *st, rv_sql_stmt *stmt, int first, struct rv_rate_window *w,
                                  rv_err **err);

/* upkeep.c */
RV_MUST_CHECK int store_upkeep_stats(struct sql_store *st, struct rv_store_stats *out, rv_err **err);
RV_MUST_CHECK int store_upkeep_sweep(struct sql_store *st, int64_t now_us, int64_t grace_us, int64_t *freed,
                                     rv_err **err);
/* Of a database whose pages cannot be copied, into a new file of SQLite; a backup that failed is deleted. */
RV_MUST_CHECK int store_upkeep_back_up(struct sql_store *from, const char *path, rv_err **err);

/* What a check of the store found. */
#define RV_REPORT_BYTES 3500 /* an error's text has room for that; the count says how much more there is */
#define RV_REPORT_LINE  300  /* bytes of one problem: several have room, whatever the rows say of themselves */
struct rv_report {
    struct sql_store *st; /* borrowed */
    rv_buf text;          /* a line for each problem */
    size_t line;          /* where the last one begins */
    bool is_shown;        /* the last one has a line */
    int n, n_shown;       /* problems; those of them that have a line */
    int n_index;          /* those that a new index mends */
};
void store_report_add(struct rv_report *r, rv_str problem);
void store_report_add_more(struct rv_report *r, rv_str more);          /* of the problem that was added last */
void store_report_add_damage(struct rv_report *r, const char *damage); /* what the database says: once */
void store_report_add_index(struct rv_report *r, rv_str problem);
bool store_report_is_full(const struct rv_report *r);

/* upkeep/check.c */
RV_MUST_CHECK int store_upkeep_check(struct sql_store *st, rv_err **err);

/* blobs.c */
/** The blob's key; it is added if it is not there. *out 0: it is not there and data.ptr is NULL. */
RV_MUST_CHECK int store_blob_key(struct sql_store *st, rv_str data, const char *hash, int64_t now_us, int64_t *out,
                                 rv_err **err);

/* sessions.c */
const char *store_session_status_text(enum rv_session_status status);
struct found_session {
    int64_t key;
    bool is_deleted;
    struct rv_session_row row; /* borrowed from the statement */
};
/* Which session it is, with texts of its own. */
struct rv_session_at {
    int64_t key;
    char tenant[RV_STORE_MAX_ID + 1], user[RV_STORE_MAX_ID + 1], id[RV_STORE_MAX_ID + 1];
};
void store_session_at(const struct found_session *found, struct rv_session_at *out);
/* Hint where an operator's id is that of several users. */
#define RV_STORE_SAY_WHOSE "say whose it is: --user NAME, or the parameter `user` of a request"
/** Find a session in the scope. Returns 1 when found, 0 when the scope has no session of that id. A deleted session is
 * found only when there is no other. The row is valid until sql_done() of *stmt, which is the caller's in any case.
 * RV_E_INVALID: several users have that id. */
RV_MUST_CHECK int store_session_find(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                                     rv_sql_stmt **stmt, struct found_session *out, rv_err **err);
/** As that; RV_E_NOT_FOUND when there is none, or it was deleted. */
RV_MUST_CHECK int store_session_see(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                                    rv_sql_stmt **stmt, struct found_session *out, rv_err **err);
/** The same with texts of its own: rv_session_row_fini(&out->row) in any case, so out starts zeroed. */
RV_MUST_CHECK int store_session_see_own(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                                        struct found_session *out, rv_err **err);
RV_MUST_CHECK int store_session_add(struct sql_store *st, const struct rv_session_row *fresh, int64_t *key,
                                    rv_err **err);
#define RV_STORE_NAME_ROOM (RV_STORE_MAX_ID + 8)                        /* bytes of an id with a short prefix */
void store_session_name(const char *id, char name[RV_STORE_NAME_ROOM]); /* "chat-<id>" */
int store_fail_no_session(const char *id, rv_err **err);

/* messages.c */
RV_MUST_CHECK int store_check_turn(const struct rv_turn *turn, rv_err **err);
/** Messages of a session, as rv_store_read_messages(); upto_seq must be given. */
RV_MUST_CHECK int store_messages_walk(struct sql_store *st, const struct rv_session_at *session,
                                      const struct rv_message_filter *f, rv_each_message *each, void *ctx,
                                      rv_err **err);
/** The turns of an append to the run of that key, in its transaction. */
RV_MUST_CHECK int store_turns_keep(struct sql_store *st, int64_t run, const struct rv_store_append *a, rv_err **err);

/* moments.c */
/** As rv_store_build_moment(), in the transaction that writes a turn. It succeeds if no chunk can be made. */
RV_MUST_CHECK int store_moments_after_turn(struct sql_store *st, const struct rv_store_scope *owner,
                                           const struct rv_turn *turn, int64_t now_us, rv_err **err);
/** A message of the session was deleted (seq), or the session is (0): its chunks do not keep the words. found: with its
 *  own copies of the texts. */
RV_MUST_CHECK int store_moments_forget(struct sql_store *st, const struct found_session *found, int64_t seq,
                                       int64_t now_us, rv_err **err);

#endif

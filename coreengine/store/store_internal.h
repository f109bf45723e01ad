/* What the front and the implementations share. The front (store.c, store_args.c) has checked every argument before an
 * implementation sees it: scopes are given and name their tenant, ids and texts are whole and within their limits,
 * records follow each other, times are not negative. */
#ifndef RV_STORE_INTERNAL_H
#define RV_STORE_INTERNAL_H

#include "coreengine/store/store.h"

#define RV_STORE_MAX_TEXT    1024             /* bytes of a session, pipeline, stage or kind */
#define RV_STORE_MAX_URL     4096             /* bytes; what the system takes as a path */
#define RV_STORE_MAX_WRITE   ((size_t)100000) /* records of one call: a step writes a handful, a fork's tail a few */
#define RV_STORE_MAX_PENDING ((size_t)10000)  /* interrupts of one run that wait at the same time */

typedef int rv_each_run(void *self, const struct rv_run_row *row, rv_err **err);
typedef int rv_each_record(void *self, const struct rv_record *r, rv_err **err);
typedef int rv_each_pending(void *self, const struct rv_pending *p, rv_err **err);
typedef int rv_each_id(void *self, const char *run, rv_err **err);

/* One per implementation; no slot is NULL. As the functions of store.h, where they differ it is said. */
struct rv_store_ops {
    void (*close)(void *self);
    int (*create_run)(void *self, const struct rv_store_new_run *run, rv_err **err);
    int (*append)(void *self, const struct rv_store_append *a, rv_err **err);
    int (*begin)(void *self, rv_err **err);  /* never inside a group */
    int (*commit)(void *self, rv_err **err); /* only inside one, which ends in any case */
    void (*rollback)(void *self);            /* likewise */
    int (*get_run)(void *self, const struct rv_store_scope *scope, const char *id, struct rv_run_row *out,
                   rv_err **err);
    int (*list_runs)(void *self, const struct rv_store_scope *scope, const struct rv_run_filter *filter,
                     rv_each_run *each, void *ctx, rv_err **err);
    int (*read)(void *self, const struct rv_store_scope *scope, const char *run, int64_t from, int64_t upto,
                rv_each_record *each, void *ctx, rv_err **err); /* upto: INT64_MAX for the end */
    int (*list_pending)(void *self, const struct rv_store_scope *scope, const char *run, rv_each_pending *each,
                        void *ctx, rv_err **err);
    int (*delete_run)(void *self, const struct rv_store_scope *scope, const char *run, int64_t now_us, rv_err **err);
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
extern const struct rv_store_ops rv_store_memory_ops;
extern const struct rv_store_ops rv_store_sqlite_ops;
RV_MUST_CHECK int rv_store_memory_open(void **out, rv_err **err);
RV_MUST_CHECK int rv_store_sqlite_open(const char *path, const struct rv_store_opts *opts, void **out, rv_err **err);

/* store_args.c: RV_E_INVALID or RV_E_LIMIT that names the argument. */
RV_MUST_CHECK int rv_store_check_id(const char *kind, const char *id, rv_err **err);
RV_MUST_CHECK int rv_store_check_scope(const struct rv_store_scope *scope, struct rv_store_scope *out, rv_err **err);
RV_MUST_CHECK int rv_store_check_new_run(const struct rv_store_new_run *run, rv_err **err);
RV_MUST_CHECK int rv_store_check_append(const struct rv_store_append *a, rv_err **err);
RV_MUST_CHECK int rv_store_check_filter(const struct rv_run_filter *filter, rv_err **err);
RV_MUST_CHECK int rv_store_check_hash(const char *hash, rv_err **err);

/* store_row.c: what both implementations say and do alike. */
RV_MUST_CHECK int rv_run_row_copy(const struct rv_run_row *row, struct rv_run_row *out); /* RV_E_NOMEM */
bool rv_store_status_is_final(enum rv_run_status status);
int rv_store_fail_no_run(const char *run, rv_err **err);
int rv_store_fail_fenced(const char *run, int64_t fence, int64_t present, const char *owner, rv_err **err);
int rv_store_fail_seq(const char *run, int64_t n_records, int64_t seq, rv_err **err);
int rv_store_fail_leased(const char *run, const char *owner, int64_t until_us, rv_err **err);
int rv_store_fail_taken(const char *run, rv_err **err);
int rv_store_fail_no_bundle(const char *run, const char *bundle, rv_err **err);
int rv_store_fail_over(const char *run, enum rv_run_status status, rv_err **err);
int rv_store_fail_snapshot(const char *run, int64_t n_records, int64_t seq, rv_err **err);

#endif

/* Blobs by their hash, and snapshots. */
#include "coreengine/store/sqlite_internal.h"

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void digest_of(const char *hash, unsigned char digest[RV_SQL_DIGEST])
{
    for (size_t i = 0; i < RV_SQL_DIGEST; i++)
        digest[i] = (unsigned char)(digit(hash[2 * i]) << 4 | digit(hash[2 * i + 1]));
}

void rv_sql_digest_hex(const unsigned char digest[RV_SQL_DIGEST], char out[RV_HASH_MAX])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < RV_SQL_DIGEST; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[RV_HASH_MAX - 1] = 0;
}

static int find_blob(struct sql_store *st, const unsigned char digest[RV_SQL_DIGEST], int64_t *out, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_FIND_BLOB, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_blob(st, stmt, 1, digest, RV_SQL_DIGEST);
    rc = rv_sql_step(st, stmt, "look for a blob", err);
    *out = rc == 1 ? sqlite3_column_int64(stmt, 0) : 0;
    rv_sql_done(stmt);
    return rc < 0 ? rc : 0;
}

int rv_sql_blob_key(struct sql_store *st, rv_str data, const char *hash, int64_t now_us, int64_t *out, rv_err **err)
{
    unsigned char digest[RV_SQL_DIGEST];
    sqlite3_stmt *stmt = NULL;
    int rc;

    digest_of(hash, digest);
    rc = find_blob(st, digest, out, err);
    if (rc < 0 || *out != 0 || !data.ptr)
        return rc;
    rc = rv_sql_use(st, SQL_ADD_BLOB, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_blob(st, stmt, 1, digest, sizeof digest);
    rv_sql_int(st, stmt, 2, now_us);
    rv_sql_blob(st, stmt, 3, data.ptr, data.len);
    rc = rv_sql_run(st, stmt, "write a blob", err);
    *out = sqlite3_last_insert_rowid(st->db);
    return rc;
}

/* An existing blob gets a new date: a caller is about to refer to it, and its grace period begins again. */
static int put(struct sql_store *st, rv_str data, const char *hash, int64_t now_us, rv_err **err)
{
    rv_str given = {data.ptr ? data.ptr : "", data.len};
    sqlite3_stmt *stmt = NULL;
    int64_t key = 0;
    int rc = rv_sql_blob_key(st, given, hash, now_us, &key, err);

    if (rc == 0)
        rc = rv_sql_use(st, SQL_TOUCH_BLOB, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, key);
    rv_sql_int(st, stmt, 2, now_us);
    return rv_sql_run(st, stmt, "date a blob", err);
}

int rv_sql_put_blob(void *self, rv_str data, const char *hash, int64_t now_us, rv_err **err)
{
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "put a blob", err);

    if (rc < 0)
        return rc;
    return rv_sql_end_write(st, put(st, data, hash, now_us, err), "put a blob", err);
}

int rv_sql_get_blob(void *self, const char *hash, rv_buf *out, rv_err **err)
{
    struct sql_store *st = self;
    unsigned char digest[RV_SQL_DIGEST];
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_GET_BLOB, &stmt, err);

    if (rc < 0)
        return rc;
    digest_of(hash, digest);
    rv_sql_blob(st, stmt, 1, digest, sizeof digest);
    rc = rv_sql_step(st, stmt, "read a blob", err);
    if (rc == 1)
        rv_buf_add_str(out, rv_sql_bytes(stmt, 0));
    rv_sql_done(stmt);
    if (rc == 0)
        return RV_FAIL(err, RV_E_NOT_FOUND, "no blob %s", hash);
    return rc < 0 ? rc : 0;
}

static int put_snapshot(struct sql_store *st, const char *run, int64_t fence, int64_t seq, rv_str body, rv_err **err)
{
    struct sql_found found;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_find_fenced(st, run, fence, &found, err);

    if (rc == 0 && seq > found.n_records)
        rc = rv_store_fail_snapshot(run, found.n_records, seq, err);
    if (rc == 0)
        rc = rv_sql_use(st, SQL_PUT_SNAPSHOT, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, found.key);
    rv_sql_int(st, stmt, 2, seq);
    rv_sql_blob(st, stmt, 3, body.ptr, body.len);
    return rv_sql_run(st, stmt, "write a snapshot", err);
}

int rv_sql_put_snapshot(void *self, const char *run, int64_t fence, int64_t seq, rv_str body, rv_err **err)
{
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "put a snapshot", err);

    if (rc < 0)
        return rc;
    return rv_sql_end_write(st, put_snapshot(st, run, fence, seq, body, err), "put a snapshot", err);
}

int rv_sql_get_snapshot(void *self, const struct rv_store_scope *scope, const char *run, int64_t *seq, rv_buf *out,
                        rv_err **err)
{
    struct sql_store *st = self;
    struct sql_found found;
    sqlite3_stmt *stmt = NULL;
    bool began = false;
    int rc = rv_sql_begin_read(st, &began, err);

    if (rc == 0)
        rc = rv_sql_find(st, scope, run, &found, err);
    if (rc == 0)
        rc = rv_sql_use(st, SQL_GET_SNAPSHOT, &stmt, err);
    if (rc == 0) {
        rv_sql_int(st, stmt, 1, found.key);
        rc = rv_sql_step(st, stmt, "read a snapshot", err);
    }
    if (rc == 1) {
        *seq = sqlite3_column_int64(stmt, 0);
        rv_buf_add_str(out, rv_sql_bytes(stmt, 1));
    }
    rv_sql_done(stmt);
    rv_sql_end_read(st, began);
    return rc < 0 ? rc : 0;
}

int rv_sql_drop_snapshots(void *self, rv_err **err)
{
    struct sql_store *st = self;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_begin_write(st, "drop snapshots", err);

    if (rc < 0)
        return rc;
    rc = rv_sql_use(st, SQL_DROP_SNAPSHOTS, &stmt, err);
    if (rc == 0)
        rc = rv_sql_run(st, stmt, "drop snapshots", err);
    return rv_sql_end_write(st, rc, "drop snapshots", err);
}

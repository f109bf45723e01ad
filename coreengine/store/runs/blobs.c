/* Blobs: bytes by the SHA-256 of their content. Their table has the digest as bytes; hex is for people. */
#include <string.h>

#include "coreengine/store/store_internal.h"

#include "coreengine/base/base.h"

static void digest_of(const char *hash, unsigned char digest[RV_STORE_DIGEST])
{
    for (size_t i = 0; i < RV_STORE_DIGEST; i++)
        digest[i] = (unsigned char)(rv_hex_digit(hash[2 * i]) << 4 | rv_hex_digit(hash[2 * i + 1]));
}

static int find_blob(struct sql_store *st, const unsigned char digest[RV_STORE_DIGEST], int64_t *out, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_FIND_BLOB);
    int rc;

    sql_blob(stmt, 1, digest, RV_STORE_DIGEST);
    rc = sql_step(stmt, "look for a blob", err);
    *out = rc == 1 ? sql_int_at(stmt, 0) : 0;
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

int store_blob_key(struct sql_store *st, rv_str data, const char *hash, int64_t now_us, int64_t *out, rv_err **err)
{
    unsigned char digest[RV_STORE_DIGEST];
    int rc;

    digest_of(hash, digest);
    rc = find_blob(st, digest, out, err);
    if (rc < 0 || *out != 0 || !data.ptr)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_BLOB);
    sql_blob(stmt, 1, digest, sizeof digest);
    sql_int(stmt, 2, now_us);
    sql_blob(stmt, 3, data.ptr, data.len);
    return sql_run_new(stmt, out, "write a blob", err);
}

/* An existing blob gets a new date: a caller is about to refer to it, and its grace period begins again. */
static int put(struct sql_store *st, rv_str data, const char *hash, int64_t now_us, rv_err **err)
{
    rv_str given = {data.ptr ? data.ptr : "", data.len};
    int64_t key = 0;
    int rc = store_blob_key(st, given, hash, now_us, &key, err);

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_TOUCH_BLOB);
    sql_int(stmt, 1, key);
    sql_int(stmt, 2, now_us);
    return sql_run(stmt, "date a blob", err);
}

int rv_store_put_blob(rv_store *s, rv_str data, char hash[RV_STORE_HASH_MAX], rv_err **err)
{
    struct rv_clock clock = rv_clock_system();
    char name[RV_HASH_MAX];
    int rc = 0;

    if (!data.ptr && data.len > 0)
        rc = RV_FAIL(err, RV_E_INVALID, "a length and no bytes");
    else if (data.len > RV_STORE_MAX_VALUE)
        rc = RV_FAIL(err, RV_E_LIMIT, "%zu bytes, more than %zu", data.len, RV_STORE_MAX_VALUE);
    else
        rv_hash_format(data, name); /* before other writers have to wait */
    if ((rc = store_enter_write(s, rc, "put blob", err)) != 0)
        return rc;
    do
        rc = put(s->sql, data, name, clock.now_us(clock.self), err);
    while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0)
        memcpy(hash, name, sizeof name);
    return rc;
}

static int get(struct sql_store *st, const char *hash, rv_buf *out, rv_err **err)
{
    unsigned char digest[RV_STORE_DIGEST];
    rv_sql_stmt *stmt = sql_use(st, SQL_GET_BLOB);
    int rc;

    digest_of(hash, digest);
    sql_blob(stmt, 1, digest, sizeof digest);
    rc = sql_step(stmt, "read a blob", err);
    if (rc == 1)
        rv_buf_add_str(out, sql_str_at(stmt, 0));
    sql_done(stmt);
    if (rc == 0)
        return RV_FAIL(err, RV_E_NOT_FOUND, "no blob %s", hash);
    return rc < 0 ? rc : rv_buf_check(out, "blob", err);
}

int rv_store_get_blob(rv_store *s, const char *hash, rv_buf *out, rv_err **err)
{
    char found[RV_HASH_MAX];
    size_t before = out->len;
    int rc = store_enter_read(s, store_check_hash(hash, err), "get blob", err);

    if (rc != 0)
        return rc;
    rc = get(s->sql, hash, out, err);
    if (rc == 0) {
        rv_hash_format((rv_str){out->ptr ? out->ptr + before : "", out->len - before}, found);
        if (strcmp(found, hash) != 0) {
            rc = RV_FAIL(err, RV_E_IO, "blob %s is damaged: its bytes have the hash %s", hash, found);
            rv_err_set_hint(err, "`reeve store check` lists what else is");
        }
    }
    rc = store_leave_read(s, rc, err);
    if (rc != 0 && out->rc == 0)
        rv_buf_truncate(out, before);
    return rc;
}

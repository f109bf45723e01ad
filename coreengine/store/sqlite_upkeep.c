/* What keeps the file small, counted and copied. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coreengine/store/sqlite_internal.h"

#define SWEEP_BLOBS 1000 /* looked at with the write lock held, so that others get their turn */
#define BACKUP_MODE 0600
#define CUT_WAIT_MS 200

/* The file and its log; in memory its pages. */
static int64_t bytes_of(struct sql_store *st)
{
    rv_buf wal = RV_BUF_INIT(RV_STORE_MAX_URL + 16);
    struct stat info;
    int64_t bytes = 0;

    if (st->is_memory)
        return rv_sql_number(st, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", &bytes,
                             "count", NULL) < 0
                   ? 0
                   : bytes;
    if (stat(st->path, &info) == 0)
        bytes = (int64_t)info.st_size;
    rv_buf_printf(&wal, "%s-wal", st->path);
    if (wal.rc == 0 && stat(rv_buf_cstr(&wal), &info) == 0)
        bytes += (int64_t)info.st_size;
    rv_buf_fini(&wal);
    return bytes;
}

int rv_sql_stats(void *self, struct rv_store_stats *out, rv_err **err)
{
    struct sql_store *st = self;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_STATS, &stmt, err);

    if (rc < 0)
        return rc;
    rc = rv_sql_step(st, stmt, "count", err);
    if (rc == 1) {
        out->runs = sqlite3_column_int64(stmt, 0);
        out->records = sqlite3_column_int64(stmt, 1);
        out->blobs = sqlite3_column_int64(stmt, 2);
        out->pending = sqlite3_column_int64(stmt, 3);
        out->snapshots = sqlite3_column_int64(stmt, 4);
        out->sessions = sqlite3_column_int64(stmt, 5);
        out->messages = sqlite3_column_int64(stmt, 6);
        out->schemas = sqlite3_column_int64(stmt, 7);
        out->bytes = bytes_of(st);
        out->schema = rv_sql_n_schema;
    }
    rv_sql_done(stmt);
    return rc < 0 ? rc : 0;
}

static int sweep_blobs(struct sql_store *st, int64_t after, int64_t born_before_us, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_begin_write(st, "sweep", err);

    if (rc < 0)
        return rc;
    rc = rv_sql_use(st, SQL_SWEEP, &stmt, err);
    if (rc == 0) {
        rv_sql_int(st, stmt, 1, after);
        rv_sql_int(st, stmt, 2, after + SWEEP_BLOBS);
        rv_sql_int(st, stmt, 3, born_before_us);
        rc = rv_sql_run(st, stmt, "sweep", err);
    }
    return rv_sql_end_write(st, rc, "sweep", err);
}

static int last_blob(struct sql_store *st, int64_t *out, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_LAST_BLOB, &stmt, err);

    if (rc < 0)
        return rc;
    rc = rv_sql_step(st, stmt, "sweep", err);
    *out = rc == 1 ? sqlite3_column_int64(stmt, 0) : 0;
    rv_sql_done(stmt);
    return rc < 0 ? rc : 0;
}

/* Move the free pages to the end and cut them off, a few at a time. */
static int give_back(struct sql_store *st, rv_err **err)
{
    int64_t free_pages = 0, before;
    int rc = rv_sql_number(st, "PRAGMA freelist_count", &free_pages, "sweep", err);

    do {
        before = free_pages;
        if (rc == 0 && free_pages > 0)
            rc = rv_sql_exec(st, "PRAGMA incremental_vacuum(4096)", "give space back", err);
        if (rc == 0 && free_pages > 0)
            rc = rv_sql_number(st, "PRAGMA freelist_count", &free_pages, "sweep", err);
    } while (rc == 0 && free_pages > 0 && free_pages < before);
    return rc;
}

/* The words of messages that were deleted, the messages of sessions that were, and what their rows say. */
static int purge_sessions(struct sql_store *st, rv_err **err)
{
    static const enum sql_id steps[] = {SQL_PURGE_WORDS, SQL_PURGE_MESSAGES, SQL_PURGE_SESSIONS};
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_begin_write(st, "sweep", err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < RV_COUNT(steps) && rc == 0; i++) {
        rc = rv_sql_use(st, steps[i], &stmt, err);
        if (rc == 0)
            rc = rv_sql_run(st, stmt, "sweep", err);
    }
    return rv_sql_end_write(st, rc, "sweep", err);
}

int rv_sql_sweep(void *self, int64_t now_us, int64_t grace_us, int64_t *freed, rv_err **err)
{
    struct sql_store *st = self;
    int64_t before = bytes_of(st), last = 0, after;
    int rc = last_blob(st, &last, err);

    for (int64_t key = 0; key < last && rc == 0; key += SWEEP_BLOBS)
        rc = sweep_blobs(st, key, now_us - grace_us, err);
    if (rc == 0)
        rc = purge_sessions(st, err);
    if (rc == 0)
        rc = give_back(st, err);
    if (rc < 0)
        return rc;
    /* A reader that is under way keeps the log from being cut; then the next checkpoint does it. Writers would wait for
     * that reader, too, so not long. */
    rv_sql_set_wait(st, CUT_WAIT_MS);
    rc = sqlite3_wal_checkpoint_v2(st->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    rv_sql_set_wait(st, 0);
    if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY && (rc & 0xff) != SQLITE_LOCKED)
        return rv_sql_fail(st, rc, "write the log back", err);
    after = bytes_of(st);
    *freed = before > after ? before - after : 0;
    return 0;
}

static int fail_file(const char *path, const char *what, rv_err **err)
{
    int reason = errno;

    return RV_FAIL(err, reason == EEXIST ? RV_E_EXISTS : RV_E_IO, "\"%s\": %s: %s", path, what, strerror(reason));
}

static int sync_path(const char *path, int flags, rv_err **err)
{
    int fd = open(path, flags | O_CLOEXEC), rc = 0;

    if (fd < 0)
        return fail_file(path, "open the copy", err);
    if (fsync(fd) < 0)
        rc = fail_file(path, "write the copy to the disk", err);
    close(fd);
    return rc;
}

static int sync_folder(const char *path, rv_err **err)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? rv_str_dup((rv_str){path, (size_t)(slash - path) + 1}) : rv_str_dup(RV_STR_LIT("."));
    int rc = folder ? sync_path(folder, O_RDONLY | O_DIRECTORY, err) : RV_FAIL(err, RV_E_NOMEM, "sync a folder");

    free(folder);
    return rc;
}

/* All pages in one step: a read transaction keeps the copy consistent, and in WAL mode writers do not wait for it. */
static int copy_pages(struct sql_store *st, struct sql_store *to, rv_err **err)
{
    sqlite3_backup *copy;
    int rc = sqlite3_open_v2(to->path, &to->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc != SQLITE_OK)
        return rv_sql_fail(to, rc, "open the copy", err);
    copy = sqlite3_backup_init(to->db, "main", st->db, "main");
    if (!copy)
        return rv_sql_fail(to, sqlite3_errcode(to->db), "copy", err);
    rc = sqlite3_backup_step(copy, -1);
    rc = sqlite3_backup_finish(copy) == SQLITE_OK && rc == SQLITE_DONE ? SQLITE_OK : rc;
    return rc == SQLITE_OK ? 0 : rv_sql_fail(to, rc, "copy", err);
}

int rv_sql_backup(void *self, const char *path, rv_err **err)
{
    struct sql_store *st = self;
    struct sql_store to = {.busy_ms = st->busy_ms};
    size_t size = strlen(path) + 3;
    int rc = 0;

    to.path = malloc(size);
    if (!to.path)
        return RV_FAIL(err, RV_E_NOMEM, "back up to \"%s\"", path);
    snprintf(to.path, size, "%s%s", *path == '/' ? "" : "./", path);
    if (mknod(to.path, S_IFREG | BACKUP_MODE, 0) < 0) {
        rc = fail_file(to.path, "make the copy", err);
        free(to.path);
        return rc;
    }
    rc = copy_pages(st, &to, err);
    sqlite3_close(to.db);
    if (rc == 0)
        rc = sync_path(to.path, O_RDONLY, err);
    if (rc == 0)
        rc = sync_folder(to.path, err);
    if (rc < 0)
        unlink(to.path);
    free(to.path);
    return rc;
}

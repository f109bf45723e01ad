/* Opening and closing a store that is one SQLite file in WAL mode, or a database in memory. Beside the file are "-wal"
 * (commits that are not yet in the file) and "-shm" (the index of "-wal", shared by the processes that have the store
 * open). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "coreengine/store/sqlite/sqlite_internal.h"
#include "coreengine/store/upkeep.h"

#define FILE_MODE 0600  /* only the user may read it */
#define BUSY_MS   60000 /* a minute: a write takes milliseconds, so even hundreds of processes get their turn */
/* The log is written back into the file when it has this many pages (4 MiB), and is cut back to this size after. */
#define SETTINGS                                                                                                       \
    "PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 8388608; PRAGMA foreign_keys = ON;"                 \
    " PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON"

static int fail_errno(const char *path, const char *what, rv_err **err)
{
    int reason = errno;

    if (rv_code_of_system(reason) == RV_E_NOT_FOUND) /* of a folder above it; callers take it for "there is no store" */
        return RV_FAIL(err, RV_E_IO, "\"%s\": %s: %s", path, what, strerror(reason));
    return RV_FAIL_SYSTEM(err, reason, "\"%s\": %s", path, what);
}

/* A folder above the file is missing, or is there and takes no files, as /proc. It is not made: a path that is misspelt
 * would become another store. */
static int no_folder(const char *path, rv_err **err)
{
    char *folder = rv_str_dup(rv_str_of(path)), *above = NULL;
    struct stat info;
    char *slash = folder ? strrchr(folder, '/') : NULL;

    if (slash)
        *slash = '\0';
    if (!slash || !(above = rv_str_dup(rv_str_of(folder)))) {
        free(folder);
        return RV_FAIL(err, folder ? RV_E_IO : RV_E_NOMEM, "\"%s\": a folder above the file does not exist", path);
    }
    if (folder[0] && stat(folder, &info) == 0) {
        int rc = RV_FAIL(err, RV_E_IO, "no file can be made in the folder \"%s\"", folder);
        rv_err_set_hint(err, "name a file in a folder of a disk: this one is made by the system");
        free(folder);
        free(above);
        return rc;
    }
    for (slash = strrchr(above, '/'); slash && slash != above; slash = strrchr(above, '/')) {
        *slash = '\0';
        if (stat(above, &info) == 0)
            break;
    }
    int rc = RV_FAIL(err, RV_E_IO, "the folder \"%s\" of the store does not exist", folder);
    rv_err_set_hint(err, "check the path (\"%s\" exists), or make the folder: mkdir -p \"%s\"",
                    slash && slash != above ? above
                    : above[0] == '/'       ? "/"
                                            : ".",
                    folder);
    free(folder);
    free(above);
    return rc;
}

/* Make sure that there is a regular file. The file is made without being opened: closing a descriptor would drop the
 * locks that other handles of this process hold. */
static int prepare_file(struct sqlite *st, const struct rv_store_opts *opts, rv_err **err)
{
    struct stat info;

    if (stat(st->base.path, &info) == 0) {
        if (S_ISDIR(info.st_mode)) {
            RV_FAIL(err, RV_E_INVALID, "\"%s\" is a folder", st->base.path);
            rv_err_set_hint(err, "name a file in the folder");
            return RV_E_INVALID;
        }
        if (!S_ISREG(info.st_mode)) {
            RV_FAIL(err, RV_E_INVALID, "\"%s\" is not a regular file", st->base.path);
            rv_err_set_hint(err, "a store needs a file that can be read and written at any position");
            return RV_E_INVALID;
        }
        /* SQLite takes a file of one byte for an empty one, and would write over it. */
        return info.st_size == 1 ? sqlite_fail(st, SQLITE_NOTADB, "open", err) : 0;
    }
    if (errno != ENOENT)
        return fail_errno(st->base.path, "look at the file", err);
    if (opts->must_exist || opts->read_only)
        return RV_FAIL(err, RV_E_NOT_FOUND, "there is no file \"%s\"", st->base.path);
    if (mknod(st->base.path, S_IFREG | FILE_MODE, 0) == 0 || errno == EEXIST)
        return 0;
    return errno == ENOENT ? no_folder(st->base.path, err) : fail_errno(st->base.path, "make the file", err);
}

static int connect_to(struct sqlite *st, const char *name, int flags, rv_err **err)
{
    int rc = sqlite3_open_v2(name, &st->link->db, flags | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_extended_result_codes(st->link->db, 1);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_handler(st->link->db, sqlite_wait_turn, st);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(st->link->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return rc == SQLITE_OK ? 0 : sqlite_fail(st, rc, "open", err);
}

void sqlite_disconnect(struct sqlite_link *l)
{
    for (size_t i = 0; i < SQL_N_STATEMENTS; i++) {
        sqlite3_finalize(l->stmts[i].native);
        l->stmts[i].native = NULL;
    }
    sqlite_drop_spare(l);
    sqlite3_close(l->db); /* all statements are gone, so closing cannot be refused */
    l->db = NULL;
}

static void disconnect(struct sqlite *st)
{
    sqlite3_close(st->asks);
    st->asks = NULL;
    sqlite_disconnect(&st->own);
}

int sqlite_set_sync(struct sqlite *st, enum rv_store_sync sync, rv_err **err)
{
    static const char *const pragmas[] = {
        [RV_STORE_SYNC_FULL] = "PRAGMA synchronous = FULL",
        [RV_STORE_SYNC_NORMAL] = "PRAGMA synchronous = NORMAL",
        [RV_STORE_SYNC_OFF] = "PRAGMA synchronous = OFF",
    };
    RV_EACH_HAS_ROW(pragmas, RV_N_STORE_SYNCS);

    return sqlite_exec(st, pragmas[sync], "set up", err);
}

int sqlite_connect(struct sqlite *st, rv_err **err)
{
    int rc = connect_to(st, st->base.path, SQLITE_OPEN_READWRITE, err);

    if (rc == 0)
        rc = sqlite_exec(st, SETTINGS, "set up", err);
    return rc < 0 ? rc : sqlite_set_sync(st, st->sync, err);
}

/* On a read-only medium the shared index of the log cannot be made, and is not needed. */
static bool is_on_read_only_medium(const char *path)
{
    struct statvfs info;

    return statvfs(path, &info) == 0 && (info.f_flag & ST_RDONLY);
}

/* This process can write neither the file nor its folder, and no process has the file open. The index could not be made
 * here either. A writer that begins just now disturbs this reader, not the store. */
static bool is_put_away(const char *path)
{
    rv_buf log = RV_BUF_INIT(2 * (size_t)RV_STORE_MAX_URL), folder = RV_BUF_INIT(2 * (size_t)RV_STORE_MAX_URL);
    const char *slash = strrchr(path, '/'); /* there is one: see sqlite_open() */

    rv_buf_printf(&log, "%s-wal", path);
    rv_buf_add(&folder, path, (size_t)(slash - path) + 1);
    bool is = log.rc == 0 && folder.rc == 0 && access(path, W_OK) != 0 && access(rv_buf_cstr(&folder), W_OK) != 0 &&
              access(rv_buf_cstr(&log), F_OK) != 0;
    rv_buf_fini(&log);
    rv_buf_fini(&folder);
    return is;
}

static int connect_immutable(struct sqlite *st, rv_err **err)
{
    static const char hex[] = "0123456789ABCDEF";
    rv_buf uri = RV_BUF_INIT(4 * (size_t)RV_STORE_MAX_URL);
    int rc;

    rv_buf_puts(&uri, "file:");
    for (const char *at = st->base.path; *at; at++) {
        if (strchr("?#%", *at))
            rv_buf_add(&uri, (char[]){'%', hex[(unsigned char)*at >> 4], hex[*at & 15]}, 3);
        else
            rv_buf_putc(&uri, *at);
    }
    rv_buf_puts(&uri, "?immutable=1");
    rc = rv_buf_check(&uri, "name of the file", err);
    if (rc == 0)
        rc = connect_to(st, rv_buf_cstr(&uri), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err);
    rv_buf_fini(&uri);
    return rc;
}

/* Turning a fresh file into WAL mode takes a lock that SQLite does not wait for when two processes want it at once. */
static int enter_wal(struct sqlite *st, rv_err **err)
{
    for (int n = 0;; n++) {
        bool is_wal = false;
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(st->link->db, "PRAGMA journal_mode = WAL", -1, &stmt, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW)
            is_wal = rv_str_is(sqlite_str_at(stmt, 0), "wal");
        if (rc != SQLITE_ROW && !((rc & 0xff) == SQLITE_BUSY && sqlite_wait_turn(st, n))) {
            rc = sqlite_fail(st, rc, "use a write-ahead log", err);
            sqlite3_finalize(stmt);
            return rc;
        }
        sqlite3_finalize(stmt);
        if (is_wal)
            return 0;
        if (rc == SQLITE_ROW)
            return RV_FAIL(err, RV_E_IO, "\"%s\": this file system cannot hold a write-ahead log", st->base.path);
    }
}

static int set_up(struct sqlite *st, enum rv_store_sync sync, rv_err **err)
{
    int rc = sqlite_exec(st, SETTINGS, "set up", err);

    if (rc == 0)
        rc = sqlite_set_sync(st, sync, err);
    if (rc == 0)
        rc = sqlite_bring_forward(st, sqlite_tables, store_sqlite_schema, RV_SQLITE_SCHEMA, err);
    /* Only now it is known to be ours. A file that is not stays as it is. */
    if (rc == 0 && !st->read_only && !st->is_memory)
        rc = enter_wal(st, err);
    if (rc == RV_E_IO && (sqlite3_errcode(st->link->db) & 0xff) == SQLITE_CORRUPT) { /* trying again does not help */
        rv_err_free(rv_err_steal(err));                                              /* it names the file, too */
        rc = RV_FAIL(err, RV_E_INVALID, "\"%s\": the file is damaged: %s", st->base.path, sqlite3_errmsg(st->link->db));
        rv_err_set_hint(err, "restore the file from a backup");
    }
    return rc;
}

/* A process that died while making the file left a journal that only a writer can roll back. A failure here loses
 * nothing: opening the file then says why. */
static void undo_what_was_begun(struct sqlite *st)
{
    rv_buf journal = RV_BUF_INIT(2 * (size_t)RV_STORE_MAX_URL);

    rv_buf_printf(&journal, "%s-journal", st->base.path);
    if (journal.rc == 0 && access(rv_buf_cstr(&journal), F_OK) == 0 &&
        connect_to(st, st->base.path, SQLITE_OPEN_READWRITE,
                   RV_CODE_ONLY("opening the store, which follows, says what is wrong with the file")) == 0)
        RV_IGNORE(sqlite_exec(st, "SELECT count(*) FROM sqlite_schema", "look", NULL), "opening says what is wrong");
    disconnect(st);
    rv_buf_fini(&journal);
}

static int open_plain(struct sqlite *st, const struct rv_store_opts *opts, rv_err **err)
{
    bool is_fixed = opts->read_only && (is_on_read_only_medium(st->base.path) || is_put_away(st->base.path));
    int rc;

    if (opts->read_only && !is_fixed)
        undo_what_was_begun(st);
    if (is_fixed)
        rc = connect_immutable(st, err);
    else
        rc = connect_to(st, st->base.path, opts->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE, err);
    if (rc == 0 && !opts->read_only && sqlite3_db_readonly(st->link->db, "main") == 1) { /* SQLite makes do with that */
        rc = RV_FAIL(err, RV_E_DENIED, "\"%s\" cannot be written to", st->base.path);
        rv_err_set_hint(err, "the file and its folder must both be writable; or open it for reading only");
    }
    return rc;
}

static int open_file(struct sqlite *st, const struct rv_store_opts *opts, rv_err **err)
{
    int rc = open_plain(st, opts, err);

    if (rc == 0)
        rc = set_up(st, opts->sync, err);
    return rc < 0 || opts->read_only ? rc : sqlite_join(st, err);
}

/* A database that only this handle sees and that ends with it: no file, no lock, no log. */
static int open_memory(struct sqlite *st, rv_err **err)
{
    int rc = connect_to(st, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);

    return rc < 0 ? rc : set_up(st, RV_STORE_SYNC_OFF, err);
}

static void close_it(struct sql_store *base)
{
    sqlite_rollback(base); /* it may be closed within a group */
    sqlite_leave((struct sqlite *)base);
    disconnect((struct sqlite *)base);
    free(base->path);
    free(base);
}

static void set_wait(struct sql_store *base, int64_t ms)
{
    ((struct sqlite *)base)->wait_ms = ms;
}

static void defer_sync(struct sql_store *base, bool defers)
{
    ((struct sqlite *)base)->defers_sync = defers;
}

const struct sql_driver sqlite_driver = {
    .name = "SQLite",
    .has_one_writer = true,
    .close = close_it,
    .set_wait = set_wait,
    .defer_sync = defer_sync,
    .use = sqlite_use,
    .prepare = sqlite_prepare,
    .finish = sqlite_finish,
    .reset = sqlite_reset,
    .step = sqlite_step,
    .run = sqlite_run,
    .column = sqlite_column,
    .use_rows = sqlite_use_rows,
    .add_row = sqlite_add_row,
    .end_rows = sqlite_end_rows,
    .begin_read = sqlite_begin_read,
    .end_read = sqlite_end_read,
    .begin_write = sqlite_begin_write,
    .end_write = sqlite_end_write,
    .begin_part = sqlite_begin_part,
    .end_part = sqlite_end_part,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .ask = sqlite_ask,
    .schema = RV_SQLITE_SCHEMA,
    .size = sqlite_size,
    .give_back = sqlite_give_back,
    .scrub = sqlite_scrub,
    .backup = sqlite_backup,
    .check = sqlite_check,
    .damage = sqlite_damage,
};

static struct sqlite *new_store(const char *path, const struct rv_store_opts *opts, rv_err **err)
{
    struct sqlite *st = calloc(1, sizeof *st);
    const char *name = path ? path : "memory:";
    size_t size = strlen(name) + 3;

    if (!st || !(st->base.path = malloc(size))) {
        free(st);
        RV_IGNORE(RV_FAIL(err, RV_E_NOMEM, "open \"%s\"", name), "NULL says it");
        return NULL;
    }
    st->base.driver = &sqlite_driver;
    st->link = &st->own;
    st->sync = opts->sync;
    /* SQLite gives some names a meaning of their own, such as ":memory:"; none begins like this. */
    snprintf(st->base.path, size, "%s%s", !path || *path == '/' ? "" : "./", name);
    st->is_memory = !path;
    st->read_only = path && opts->read_only; /* in memory the front alone refuses writes */
    st->busy_ms = opts->busy_ms == 0 ? BUSY_MS : opts->busy_ms > INT32_MAX ? INT32_MAX : opts->busy_ms;
    return st;
}

int sqlite_look(const char *path, struct rv_store_version *out, rv_err **err)
{
    static const struct rv_store_opts opts = {.read_only = true};
    struct sqlite *st = new_store(path, &opts, err);
    rv_err *why = NULL;

    if (!st)
        return RV_E_NOMEM;
    *out = (struct rv_store_version){.current = RV_SQLITE_SCHEMA};
    int rc = prepare_file(st, &opts, &why);
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(why);
        close_it(&st->base);
        return 0;
    }
    if (rc == 0)
        rc = open_plain(st, &opts, &why);
    if (rc == 0)
        rc = sqlite_read_version(st, out, &why);
    close_it(&st->base);
    if (rc < 0)
        rv_err_pass(err, why);
    else
        rv_err_free(why);
    return rc;
}

/* --- which file: handles that are opened later do not make it again, and refuse another one --- */

static uint64_t add_hash(uint64_t hash, const void *bytes, size_t n)
{
    for (const unsigned char *p = bytes; n-- > 0; p++)
        hash = (hash ^ *p) * UINT64_C(1099511628211); /* FNV-1a */
    return hash | 1;                                  /* 0 is none */
}

static uint64_t name_of(const char *path)
{
    return add_hash(1, path, strlen(path));
}

/* The file that handles with that health have. 0: this is the first one, or another store. */
static uint64_t file_before(const struct rv_store_health *h, const char *path)
{
    bool is_same = h && path && __atomic_load_n(&h->path, __ATOMIC_SEQ_CST) == name_of(path);

    return is_same ? __atomic_load_n(&h->file, __ATOMIC_SEQ_CST) : 0;
}

static int fail_other_file(struct rv_store_health *h, const char *path, rv_err **err)
{
    __atomic_store_n(&h->refused, RV_E_IO, __ATOMIC_SEQ_CST);
    RV_FAIL(err, RV_E_IO, "\"%s\" was removed or replaced while this process used it", path);
    rv_err_set_hint(err, "start this process again, with the file in its place");
    return RV_E_IO;
}

static int check_same_file(struct rv_store_health *h, const char *path, rv_err **err)
{
    uint64_t name = name_of(path), no_path = 0, was = 0;
    struct stat st;

    if (!h || stat(path, &st) != 0)
        return 0;
    __atomic_compare_exchange_n(&h->path, &no_path, name, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    if (no_path != 0 && no_path != name)
        return 0; /* another store */
    uint64_t is = add_hash(add_hash(1, &st.st_dev, sizeof st.st_dev), &st.st_ino, sizeof st.st_ino);
    __atomic_compare_exchange_n(&h->file, &was, is, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return was == 0 || was == is ? 0 : fail_other_file(h, path, err);
}

int sqlite_open(const char *path, const struct rv_store_opts *opts, struct sql_store **out, rv_err **err)
{
    uint64_t before = file_before(opts->health, path);
    struct rv_store_opts how = *opts;
    rv_err *why = NULL;

    how.must_exist = opts->must_exist || before != 0;
    struct sqlite *st = new_store(path, &how, err);
    if (!st)
        return RV_E_NOMEM;
    int rc = path ? prepare_file(st, &how, &why) : open_memory(st, &why);
    if (rc == 0 && path)
        rc = open_file(st, &how, &why);
    if (rc == 0 && path)
        rc = check_same_file(opts->health, path, &why);
    if (rc == 0)
        *out = &st->base;
    else
        close_it(&st->base);
    if (rc != RV_E_NOT_FOUND || before == 0)
        return rv_err_pass(err, why);
    rv_err_free(why);
    return fail_other_file(opts->health, path, err);
}

void rv_store_spare_counts(void)
{
    RV_IGNORE(sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0), "once SQLite is in use it keeps its counts");
}

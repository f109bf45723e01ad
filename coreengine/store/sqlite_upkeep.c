/* What keeps a file of SQLite whole and small: measured, cut, copied, checked. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coreengine/store/sqlite_internal.h"

#define BACKUP_MODE  0600
#define CUT_WAIT_MS  200
#define MAX_REPORT   700 /* bytes: an error's text has room for that; the count says how much more there is */
#define MAX_PROBLEMS 100

/* The file and its log; in memory its pages. */
int64_t rv_sqlite_size(struct sql_store *base)
{
    struct sqlite *st = (struct sqlite *)base;
    rv_buf wal = RV_BUF_INIT(RV_STORE_MAX_URL + 16);
    struct stat info;
    int64_t bytes = 0;

    if (st->is_memory)
        return rv_sqlite_number(st, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", &bytes,
                                "count", NULL) < 0
                   ? 0
                   : bytes;
    if (stat(st->base.path, &info) == 0)
        bytes = (int64_t)info.st_size;
    rv_buf_printf(&wal, "%s-wal", st->base.path);
    if (wal.rc == 0 && stat(rv_buf_cstr(&wal), &info) == 0)
        bytes += (int64_t)info.st_size;
    rv_buf_fini(&wal);
    return bytes;
}

/* Move the free pages to the end and cut them off, a few at a time. */
static int cut_pages(struct sqlite *st, rv_err **err)
{
    int64_t free_pages = 0, before;
    int rc = rv_sqlite_number(st, "PRAGMA freelist_count", &free_pages, "sweep", err);

    do {
        before = free_pages;
        if (rc == 0 && free_pages > 0)
            rc = rv_sqlite_exec(st, "PRAGMA incremental_vacuum(4096)", "give space back", err);
        if (rc == 0 && free_pages > 0)
            rc = rv_sqlite_number(st, "PRAGMA freelist_count", &free_pages, "sweep", err);
    } while (rc == 0 && free_pages > 0 && free_pages < before);
    return rc;
}

int rv_sqlite_give_back(struct sql_store *base, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;
    int rc = cut_pages(st, err);

    if (rc < 0)
        return rc;
    /* A reader that is under way keeps the log from being cut; then the next checkpoint does it. Writers would wait for
     * that reader, too, so not long. */
    st->wait_ms = CUT_WAIT_MS;
    rc = sqlite3_wal_checkpoint_v2(st->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    st->wait_ms = 0;
    if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY && (rc & 0xff) != SQLITE_LOCKED)
        return rv_sqlite_fail(st, rc, "write the log back", err);
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
static int copy_pages(struct sqlite *st, struct sqlite *to, rv_err **err)
{
    sqlite3_backup *copy;
    int rc = sqlite3_open_v2(to->base.path, &to->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc != SQLITE_OK)
        return rv_sqlite_fail(to, rc, "open the copy", err);
    copy = sqlite3_backup_init(to->db, "main", st->db, "main");
    if (!copy)
        return rv_sqlite_fail(to, sqlite3_errcode(to->db), "copy", err);
    rc = sqlite3_backup_step(copy, -1);
    rc = sqlite3_backup_finish(copy) == SQLITE_OK && rc == SQLITE_DONE ? SQLITE_OK : rc;
    return rc == SQLITE_OK ? 0 : rv_sqlite_fail(to, rc, "copy", err);
}

int rv_sqlite_backup(struct sql_store *base, const char *path, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;
    struct sqlite to = {.busy_ms = st->busy_ms};
    size_t size = strlen(path) + 3;
    int rc = 0;

    to.base.path = malloc(size);
    if (!to.base.path)
        return RV_FAIL(err, RV_E_NOMEM, "back up to \"%s\"", path);
    snprintf(to.base.path, size, "%s%s", *path == '/' ? "" : "./", path);
    if (mknod(to.base.path, S_IFREG | BACKUP_MODE, 0) < 0) {
        rc = fail_file(to.base.path, "make the copy", err);
        free(to.base.path);
        return rc;
    }
    rc = copy_pages(st, &to, err);
    sqlite3_close(to.db);
    if (rc == 0)
        rc = sync_path(to.base.path, O_RDONLY, err);
    if (rc == 0)
        rc = sync_folder(to.base.path, err);
    if (rc < 0)
        unlink(to.base.path);
    free(to.base.path);
    return rc;
}

/* --- Is the file whole? What SQLite can tell, and what only the store knows: blobs by their hash, journals by their
 * numbers. Everything is looked at in one read transaction, while others may write. --- */

struct report {
    struct sqlite *st;
    rv_buf text;
    int n;
};

static void complain(struct report *r, rv_str problem)
{
    if (r->n++ > 0 && r->text.len < MAX_REPORT)
        rv_buf_puts(&r->text, "; ");
    if (r->text.len < MAX_REPORT)
        rv_buf_add_str(&r->text, rv_utf8_cut(problem, MAX_REPORT - r->text.len));
}

/* SQLite complains about a page that there was no memory for (its code 7) like about one that is damaged. */
static bool is_for_want_of_memory(rv_str problem)
{
    static const char *const marks[] = {"error code=7", "error code 7"};
    const char *end = problem.ptr + problem.len;

    if (problem.len == 0 || problem.ptr[0] != '*') /* it is not SQLite that speaks */
        return false;
    for (size_t i = 0; i < RV_COUNT(marks); i++) {
        const char *at = memmem(problem.ptr, problem.len, marks[i], strlen(marks[i]));
        at = at ? at + strlen(marks[i]) : NULL;
        if (at && (at == end || *at == '\n'))
            return true;
    }
    return false;
}

/* Each row of the query is a problem, its first column says which. A page that cannot be read is a problem, too. */
static int ask(struct report *r, const char *sql, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(r->st->db, sql, -1, &stmt, NULL);

    while (rc == SQLITE_OK && r->n < MAX_PROBLEMS) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        rv_str problem = rv_sqlite_str_at(stmt, 0);
        if (is_for_want_of_memory(problem)) {
            rc = SQLITE_NOMEM;
            break;
        }
        if (!rv_str_is(problem, "ok"))
            complain(r, problem);
        rc = SQLITE_OK;
    }
    if ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB) {
        complain(r, rv_str_of(sqlite3_errmsg(r->st->db)));
        rc = SQLITE_DONE;
    }
    rc = rc == SQLITE_DONE || rc == SQLITE_OK ? 0 : rv_sqlite_fail(r->st, rc, "check", err);
    sqlite3_finalize(stmt);
    return rc;
}

static int check_blob(struct report *r, sqlite3_stmt *stmt, rv_err **err)
{
    rv_str digest = rv_sqlite_str_at(stmt, 0);
    char name[RV_HASH_MAX] = "?", found[RV_HASH_MAX];

    if (digest.len == RV_STORE_DIGEST)
        rv_blob_hex((const unsigned char *)digest.ptr, name);
    rv_hash_of(rv_sqlite_str_at(stmt, 1), found);
    if (strcmp(name, found) != 0) {
        complain(r, RV_STR_LIT("the bytes of a blob are not those of its hash "));
        rv_buf_puts(&r->text, name);
    }
    (void)err;
    return 0;
}

static int check_document(struct report *r, sqlite3_stmt *stmt, rv_err **err)
{
    char found[RV_HASH_MAX];

    rv_hash_of(rv_sqlite_str_at(stmt, 1), found);
    if (!rv_str_is(rv_sqlite_str_at(stmt, 0), found)) {
        complain(r, RV_STR_LIT("the document of a schema is not that of its checksum: "));
        rv_buf_add_str(&r->text, rv_sqlite_str_at(stmt, 2));
    }
    (void)err;
    return 0;
}

/* The columns behind the first are JSON objects, or null. Not asked in SQL: there, for want of memory, a text counts as
 * no JSON. */
static int check_objects(struct report *r, sqlite3_stmt *stmt, rv_err **err)
{
    for (int i = 1; i < sqlite3_column_count(stmt); i++) {
        rv_str json = rv_sqlite_str_at(stmt, i);
        rv_err *why = NULL;
        int rc = json.ptr ? rv_store_check_object("text", json, RV_STORE_MAX_BODY, &why) : 0;
        bool lacks = rc < 0 && rv_err_is(why, RV_E_NOMEM);
        rv_err_free(why);
        if (lacks)
            return RV_FAIL(err, RV_E_NOMEM, "check");
        if (rc == 0 && (!json.ptr || json.len > 0))
            continue;
        complain(r, rv_sqlite_str_at(stmt, 0));
        rv_buf_printf(&r->text, " has %s that is no JSON object", sqlite3_column_name(stmt, i));
    }
    return 0;
}

typedef int look_fn(struct report *r, sqlite3_stmt *stmt, rv_err **err);

/* Look at each row of the query. */
static int look_at(struct report *r, const char *sql, look_fn *each, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(r->st->db, sql, -1, &stmt, NULL);

    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW && r->n < MAX_PROBLEMS) {
        rc = each(r, stmt, err);
        if (rc < 0) {
            sqlite3_finalize(stmt);
            return rc;
        }
    }
    if ((rc & 0xff) == SQLITE_CORRUPT) { /* the pages were complained about already, or are now */
        complain(r, rv_str_of(sqlite3_errmsg(r->st->db)));
        rc = SQLITE_DONE;
    }
    rc = rc == SQLITE_DONE || rc == SQLITE_OK || rc == SQLITE_ROW ? 0 : rv_sqlite_fail(r->st, rc, "check", err);
    sqlite3_finalize(stmt);
    return rc;
}

static const char *const questions[] = {
    "PRAGMA integrity_check(100)",
    "SELECT 'a row of ' || \"table\" || ' refers to one of ' || parent || ' that is not there'"
    " FROM pragma_foreign_key_check",
    "SELECT 'run \"' || r.id || '\" should have ' || r.n_records || ' records and has ' || count(s.seq) || ', the last "
    "'"
    " || coalesce(max(s.seq), 0) FROM runs r LEFT JOIN records s ON s.run = r.key GROUP BY r.key"
    " HAVING count(s.seq) <> r.n_records OR coalesce(max(s.seq), 0) <> r.n_records"
    " OR coalesce(min(s.seq), 1) <> 1",
    "SELECT 'run \"' || r.id || '\" should have ' || r.n_pending || ' pending interrupts and has ' || count(p.n)"
    " FROM runs r LEFT JOIN pending p ON p.run = r.key GROUP BY r.key HAVING count(p.n) <> r.n_pending",
    "SELECT 'session \"' || s.id || '\" should have ' || s.n_messages || ' messages and has ' || count(m.seq)"
    " || ', the last ' || coalesce(max(m.seq), 0) FROM sessions s LEFT JOIN messages m ON m.session = s.key"
    " GROUP BY s.key HAVING count(m.seq) <> s.n_messages OR coalesce(max(m.seq), 0) <> s.n_messages"
    " OR coalesce(min(m.seq), 1) <> 1",
    "SELECT 'session \"' || s.id || '\" should have ' || s.total_tokens || ' tokens and has '"
    " || coalesce(sum(m.token_count), 0) FROM sessions s LEFT JOIN messages m ON m.session = s.key"
    " AND m.parent_call_id IS NULL GROUP BY s.key HAVING coalesce(sum(m.token_count), 0) <> s.total_tokens",
    "SELECT 'message ' || m.seq || ' of session \"' || s.id || '\" has a number that can not be'"
    " FROM messages m JOIN sessions s ON s.key = m.session WHERE min(m.token_count, m.created_us,"
    " coalesce(m.input_tokens, 0), coalesce(m.output_tokens, 0), coalesce(m.cost_micro_usd, 0),"
    " coalesce(m.latency_ms, 0)) < 0",
    "SELECT 'the counter of schemas is missing' WHERE NOT EXISTS (SELECT 1 FROM counters WHERE name = 'schemas')",
    "SELECT 'lane ' || l.key || ' of tenant \"' || l.tenant || '\" counts ' || l.n_pending || ' pending and '"
    " || l.n_processing || ' processing tasks and has ' || count(CASE t.status WHEN 'pending' THEN 1 END) || ' and '"
    " || count(CASE t.status WHEN 'processing' THEN 1 END) FROM lanes l LEFT JOIN tasks t ON t.lane = l.key"
    " AND t.status IN ('pending', 'processing') GROUP BY l.key"
    " HAVING count(CASE t.status WHEN 'pending' THEN 1 END) <> l.n_pending"
    " OR count(CASE t.status WHEN 'processing' THEN 1 END) <> l.n_processing",
    "SELECT 'lane ' || key || ' of tenant \"' || tenant || '\" has a number that cannot be' FROM lanes"
    " WHERE vt < 0 OR weight < 1 OR cap < 1",
    "SELECT 'task \"' || t.id || '\" is in the lane of tenant \"' || l.tenant || '\"' FROM tasks t"
    " JOIN lanes l ON l.key = t.lane WHERE l.tenant <> t.tenant",
    "SELECT 'task \"' || t.id || '\" should have ' || t.n_events || ' events and has ' || count(e.seq)"
    " || ', the last ' || coalesce(max(e.seq), 0) FROM tasks t LEFT JOIN task_events e ON e.task = t.key"
    " GROUP BY t.key HAVING count(e.seq) <> t.n_events OR coalesce(max(e.seq), 0) <> t.n_events",
    "SELECT 'task \"' || id || '\" is ' || status || ' and has a worker, a lease, an end or a number that does not fit'"
    " FROM tasks WHERE (status = 'processing') <> (worker IS NOT NULL) OR (status = 'processing') <> (lease_until_us > "
    "0)"
    " OR (status IN ('completed', 'failed', 'cancelled')) <> (completed_us > 0) OR retry_count > max_retries"
    " OR attempt < 0 OR retry_count < 0 OR created_us < 0 OR updated_us < 0 OR scheduled_us < 0 OR started_us < 0"
    " OR completed_us < 0 OR claimed_us < 0 OR lease_until_us < 0",
};

/* Numbers that make a row of runs unreadable, see rv_store_check_numbers(). */
static int check_rows(struct report *r, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(4096);

    rv_buf_puts(&sql,
                "SELECT 'run \"' || id || '\" has a status or a number that can not be' FROM runs WHERE status NOT "
                "IN (''");
    for (int i = 0; i < RV_N_RUN; i++)
        rv_buf_printf(&sql, ", '%s'", rv_run_status_text((enum rv_run_status)i));
    rv_buf_puts(&sql, ") OR min(parent_seq, created_us, updated_us, expires_us, n_records, fence, lease_until_us, "
                      "n_pending) < 0 OR ");
    rv_buf_printf(&sql,
                  "max(parent_seq, created_us, updated_us, expires_us, n_records, fence, lease_until_us, n_pending) > "
                  "%lld",
                  (long long)RV_STORE_MAX_NUMBER);
    int rc = rv_buf_check(&sql, "query", err);
    if (rc == 0)
        rc = ask(r, rv_buf_cstr(&sql), err);
    rv_buf_fini(&sql);
    return rc;
}

/* The status of a task is one of the words. */
static int check_tasks(struct report *r, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(1024);

    rv_buf_puts(&sql, "SELECT 'task \"' || id || '\" has a status that cannot be' FROM tasks WHERE status NOT IN (''");
    for (int i = 0; i < RV_N_TASK; i++)
        rv_buf_printf(&sql, ", '%s'", rv_task_status_text((enum rv_task_status)i));
    rv_buf_puts(&sql, ")");
    int rc = rv_buf_check(&sql, "query", err);
    if (rc == 0)
        rc = ask(r, rv_buf_cstr(&sql), err);
    rv_buf_fini(&sql);
    return rc;
}

static int check_sessions(struct report *r, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(1024);

    rv_buf_printf(&sql,
                  "SELECT 'session \"' || id || '\" has a number that can not be' FROM sessions"
                  " WHERE min(total_tokens, n_messages, created_us, updated_us) < 0"
                  " OR max(total_tokens, n_messages, created_us, updated_us) > %lld",
                  (long long)RV_STORE_MAX_NUMBER);
    int rc = rv_buf_check(&sql, "query", err);
    if (rc == 0)
        rc = ask(r, rv_buf_cstr(&sql), err);
    rv_buf_fini(&sql);
    return rc;
}

static const struct {
    const char *sql;
    look_fn *each;
} looks[] = {
    {"SELECT hash, data FROM blobs", check_blob},
    {"SELECT checksum, document, name FROM schemas", check_document},
    {"SELECT 'schema \"' || name || '\"', json_schema FROM schemas", check_objects},
    {"SELECT 'session \"' || id || '\"', metadata FROM sessions", check_objects},
    {"SELECT 'task \"' || id || '\"', payload, result FROM tasks", check_objects},
    {"SELECT 'message ' || m.seq || ' of session \"' || s.id || '\"', m.tool_calls, m.metadata FROM messages m"
     " JOIN sessions s ON s.key = m.session WHERE m.tool_calls IS NOT NULL OR m.metadata IS NOT NULL",
     check_objects},
};

int rv_sqlite_check(struct sql_store *base, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;
    struct report r = {.st = st, .text = RV_BUF_INIT(2 * MAX_REPORT)};
    bool began = false;
    int rc = rv_sqlite_begin_read(base, &began, err);

    for (size_t i = 0; i < RV_COUNT(questions) && rc == 0; i++)
        rc = ask(&r, questions[i], err);
    if (rc == 0)
        rc = check_rows(&r, err);
    if (rc == 0)
        rc = check_sessions(&r, err);
    if (rc == 0)
        rc = check_tasks(&r, err);
    for (size_t i = 0; i < RV_COUNT(looks) && rc == 0; i++)
        rc = look_at(&r, looks[i].sql, looks[i].each, err);
    rv_sqlite_end_read(base, began);
    if (rc == 0)
        rc = rv_buf_check(&r.text, "list of damages", err);
    if (rc == 0 && r.n > 0) {
        rc = RV_FAIL(err, RV_E_INVALID, "\"%s\" is damaged (%d%s): %s", st->base.path, r.n,
                     r.n >= MAX_PROBLEMS ? " or more" : "", rv_buf_cstr(&r.text));
        rv_err_hint(err, "restore the file from a backup");
    }
    rv_buf_fini(&r.text);
    return rc;
}

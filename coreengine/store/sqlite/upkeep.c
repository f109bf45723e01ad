/* Maintenance of a file of SQLite: measure, shrink, copy, check. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coreengine/store/sqlite/sqlite_internal.h"

#define BACKUP_MODE 0600 /* only the user may read it */
#define CUT_WAIT_MS 200  /* for readers of the log; then it is cut the next time */

/* The file and its log; in memory its pages. */
int64_t sqlite_size(struct sql_store *base)
{
    struct sqlite *st = (struct sqlite *)base;
    rv_buf wal = RV_BUF_INIT(RV_STORE_MAX_URL + 16);
    struct stat info;
    int64_t bytes = 0;

    if (st->is_memory)
        return sqlite_number(st, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", &bytes,
                             "count", RV_CODE_ONLY("0 is the documented answer when the size is not known")) < 0
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
    int rc = sqlite_number(st, "PRAGMA freelist_count", &free_pages, "sweep", err);

    do {
        before = free_pages;
        if (rc == 0 && free_pages > 0)
            rc = sqlite_exec(st, "PRAGMA incremental_vacuum(256)", "give space back", err);
        if (rc == 0 && free_pages > 0)
            store_upkeep_pause(&st->base);
        if (rc == 0 && free_pages > 0)
            rc = sqlite_number(st, "PRAGMA freelist_count", &free_pages, "sweep", err);
    } while (rc == 0 && free_pages > 0 && free_pages < before);
    return rc;
}

int sqlite_give_back(struct sql_store *base, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;
    int rc = cut_pages(st, err);

    if (rc < 0)
        return rc;
    /* A reader that is under way keeps the log from being cut; then the next checkpoint does it. Writers would wait for
     * that reader, too, so not long. */
    st->wait_ms = CUT_WAIT_MS;
    rc = sqlite3_wal_checkpoint_v2(st->link->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    st->wait_ms = 0;
    if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY && (rc & 0xff) != SQLITE_LOCKED)
        return sqlite_fail(st, rc, "write the log back", err);
    return 0;
}

static int fail_file(const char *path, const char *what, rv_err **err)
{
    int reason = errno;

    return RV_FAIL_SYSTEM(err, reason, "\"%s\": %s", path, what);
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
    int rc = sqlite3_open_v2(to->base.path, &to->link->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc != SQLITE_OK)
        return sqlite_fail(to, rc, "open the copy", err);
    copy = sqlite3_backup_init(to->link->db, "main", st->link->db, "main");
    if (!copy)
        return sqlite_fail(to, sqlite3_errcode(to->link->db), "copy", err);
    rc = sqlite3_backup_step(copy, -1);
    rc = sqlite3_backup_finish(copy) == SQLITE_OK && rc == SQLITE_DONE ? SQLITE_OK : rc;
    return rc == SQLITE_OK ? 0 : sqlite_fail(to, rc, "copy", err);
}

int sqlite_make(const char *path, rv_err **err)
{
    return mknod(path, S_IFREG | BACKUP_MODE, 0) < 0 ? fail_file(path, "make the copy", err) : 0;
}

void sqlite_remove(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};

    for (size_t i = 0; i < RV_COUNT(ends); i++) {
        rv_buf name = RV_BUF_INIT(2 * (size_t)RV_STORE_MAX_URL);
        rv_buf_printf(&name, "%s%s", path, ends[i]);
        if (name.rc == 0)
            unlink(rv_buf_cstr(&name));
        rv_buf_fini(&name);
    }
}

int sqlite_backup(struct sql_store *base, const char *path, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;
    struct sqlite to = {.busy_ms = st->busy_ms, .link = &to.own};
    size_t size = strlen(path) + 3;
    int rc = 0;

    to.base.path = malloc(size);
    if (!to.base.path)
        return RV_FAIL(err, RV_E_NOMEM, "back up to \"%s\"", path);
    snprintf(to.base.path, size, "%s%s", *path == '/' ? "" : "./", path);
    rc = sqlite_make(to.base.path, err);
    if (rc < 0) {
        free(to.base.path);
        return rc;
    }
    rc = copy_pages(st, &to, err);
    sqlite3_close(to.link->db);
    if (rc == 0)
        rc = sync_path(to.base.path, O_RDONLY, err);
    if (rc == 0)
        rc = sync_folder(to.base.path, err);
    if (rc < 0)
        unlink(to.base.path);
    free(to.base.path);
    return rc;
}

/* Pages and the log still have what rows had before they were rewritten: the file is written again. Others must not be
 * using it at that moment. */
int sqlite_scrub(struct sql_store *base, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;
    int rc = sqlite_exec(st, "VACUUM", "write the file again", err);

    return rc < 0 || st->is_memory ? rc
                                   : sqlite_exec(st, "PRAGMA wal_checkpoint(TRUNCATE)", "write the file again", err);
}

/* --- Is the file whole? What SQLite can tell; upkeep.c asks the rest. --- */

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

static const char unreadable[] = "a page that a table or an index needs cannot be read";

static bool is_damage(int rc)
{
    return (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB;
}

const char *sqlite_damage(struct sql_store *base)
{
    struct sqlite *st = (struct sqlite *)base;

    return is_damage(sqlite3_errcode(st->link->db)) ? unreadable : NULL;
}

/* What follows the words in the line. */
static bool has_words(rv_str line, const char *words, rv_str *rest)
{
    size_t len = strlen(words);
    const char *at = memmem(line.ptr, line.len, words, len);

    if (at)
        *rest = (rv_str){at + len, line.len - (size_t)(at - line.ptr) - len};
    return at != NULL;
}

/* SQLite names trees, cells and bytes of the file, of which a person knows nothing. What it says of one page becomes
 * one problem: the rows of that page are lost. */
static void write_problem(rv_str line, rv_buf *b)
{
    rv_str rest, unused;
    size_t n = 0;

    if (has_words(line, "freelist:", &rest)) {
        rv_buf_puts(b, "the list of free pages is damaged");
    } else if (has_words(line, " page ", &rest) || has_words(line, "Page ", &rest)) {
        while (n < rest.len && rest.ptr[n] >= '0' && rest.ptr[n] <= '9')
            n++;
        rv_buf_printf(b, "page %.*s of the file %s", (int)n, rest.ptr,
                      has_words(line, " never used", &unused) ? "belongs to no table" : "is damaged");
    } else if (has_words(line, " in index ", &rest) || has_words(line, " from index ", &rest)) {
        rv_buf_printf(b, "index %.*s does not fit its table", RV_STR_ARG(rest));
    } else if (has_words(line, "image is malformed", &rest)) {
        rv_buf_puts(b, unreadable);
    } else {
        rv_buf_add_str(b, line);
    }
}

/* A row of the check has one line, or all lines of a database behind its name. */
static void add_problems(struct rv_report *r, rv_str rows)
{
    rv_buf said = RV_BUF_INIT(RV_REPORT_BYTES);

    while (rows.len > 0) {
        const char *newline = memchr(rows.ptr, '\n', rows.len);
        rv_str line = {rows.ptr, newline ? (size_t)(newline - rows.ptr) : rows.len};
        size_t taken = line.len + (newline != NULL);
        rows = (rv_str){rows.ptr + taken, rows.len - taken};
        if (line.len == 0 || line.ptr[0] == '*') /* the database's name */
            continue;
        rv_buf_clear(&said);
        write_problem(line, &said);
        store_report_add_damage(r, rv_buf_cstr(&said));
        if (said.rc < 0 && r->text.rc == 0) /* a file is not whole for want of memory */
            r->text.rc = said.rc;
    }
    rv_buf_fini(&said);
}

/* Each row of the query is a problem, its first column says which. A page that cannot be read is a problem, too. */
static int ask(struct rv_report *r, const char *sql, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)r->st;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(st->link->db, sql, -1, &stmt, NULL);

    while (rc == SQLITE_OK && !store_report_is_full(r)) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        rv_str problem = sqlite_str_at(stmt, 0);
        if (is_for_want_of_memory(problem)) {
            rc = SQLITE_NOMEM;
            break;
        }
        if (!rv_str_is(problem, "ok"))
            add_problems(r, problem);
        rc = SQLITE_OK;
    }
    if (is_damage(rc)) {
        add_problems(r, rv_str_of(sqlite3_errmsg(st->link->db)));
        rc = SQLITE_DONE;
    }
    rc = rc == SQLITE_DONE || rc == SQLITE_OK ? 0 : sqlite_fail(st, rc, "check", err);
    sqlite3_finalize(stmt);
    return rc;
}

int sqlite_check(struct sql_store *base, struct rv_report *report, rv_err **err)
{
    int rc = ask(report, "PRAGMA integrity_check(100)", err);

    (void)base;
    return rc < 0 ? rc
                  : ask(report,
                        "SELECT 'a row of ' || \"table\" || ' refers to one of ' || parent || ' that is not there'"
                        " FROM pragma_foreign_key_check",
                        err);
}

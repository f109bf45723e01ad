/* Is the file whole? What SQLite can tell, and what only the store knows: blobs by their hash, journals by their
 * numbers. Everything is looked at in one read transaction, while others may write. */
#include <string.h>

#include "coreengine/store/sqlite_internal.h"

#define MAX_REPORT   700 /* bytes: an error's text has room for that; the count says how much more there is */
#define MAX_PROBLEMS 100

struct report {
    struct sql_store *st;
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

/* Each row of the query is a problem, its first column says which. A page that can not be read is one, too. */
static int ask(struct report *r, const char *sql, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(r->st->db, sql, -1, &stmt, NULL);

    while (rc == SQLITE_OK && r->n < MAX_PROBLEMS) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        rv_str problem = rv_sql_bytes(stmt, 0);
        if (!rv_str_is(problem, "ok"))
            complain(r, problem);
        rc = SQLITE_OK;
    }
    if ((rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB) {
        complain(r, rv_str_of(sqlite3_errmsg(r->st->db)));
        rc = SQLITE_DONE;
    }
    rc = rc == SQLITE_DONE || rc == SQLITE_OK ? 0 : rv_sql_fail(r->st, rc, "check", err);
    sqlite3_finalize(stmt);
    return rc;
}

static void check_blob(struct report *r, sqlite3_stmt *stmt)
{
    rv_str digest = rv_sql_bytes(stmt, 0);
    char name[RV_HASH_MAX] = "?", found[RV_HASH_MAX];

    if (digest.len == RV_SQL_DIGEST)
        rv_sql_digest_hex((const unsigned char *)digest.ptr, name);
    rv_hash_of(rv_sql_bytes(stmt, 1), found);
    if (strcmp(name, found) != 0) {
        complain(r, RV_STR_LIT("the bytes of a blob are not those of its hash "));
        rv_buf_puts(&r->text, name);
    }
}

static void check_document(struct report *r, sqlite3_stmt *stmt)
{
    char found[RV_HASH_MAX];

    rv_hash_of(rv_sql_bytes(stmt, 1), found);
    if (!rv_str_is(rv_sql_bytes(stmt, 0), found)) {
        complain(r, RV_STR_LIT("the document of a schema is not that of its checksum: "));
        rv_buf_add_str(&r->text, rv_sql_bytes(stmt, 2));
    }
}

/* Look at each row of the query. */
static int look_at(struct report *r, const char *sql, void (*each)(struct report *r, sqlite3_stmt *stmt), rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(r->st->db, sql, -1, &stmt, NULL);

    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW && r->n < MAX_PROBLEMS) {
        each(r, stmt);
        rc = SQLITE_OK;
    }
    if ((rc & 0xff) == SQLITE_CORRUPT) { /* the pages were complained about already, or are now */
        complain(r, rv_str_of(sqlite3_errmsg(r->st->db)));
        rc = SQLITE_DONE;
    }
    rc = rc == SQLITE_DONE || rc == SQLITE_OK || rc == SQLITE_ROW ? 0 : rv_sql_fail(r->st, rc, "check", err);
    sqlite3_finalize(stmt);
    return rc;
}

/* json_type() refuses what is no JSON, so that has to be asked first. */
#define IS_OBJECT(column) "CASE WHEN json_valid(" column ") THEN json_type(" column ") = 'object' ELSE 0 END"

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
    "SELECT 'session \"' || id || '\" has metadata that is no JSON object' FROM sessions"
    " WHERE NOT " IS_OBJECT("metadata"),
    "SELECT 'message ' || m.seq || ' of session \"' || s.id || '\" has a number that can not be, or tool_calls or"
    " metadata that is no JSON object' FROM messages m JOIN sessions s ON s.key = m.session"
    " WHERE min(m.token_count, m.created_us, coalesce(m.input_tokens, 0), coalesce(m.output_tokens, 0),"
    " coalesce(m.cost_micro_usd, 0), coalesce(m.latency_ms, 0)) < 0 OR NOT (m.tool_calls IS NULL OR " IS_OBJECT(
        "m.tool_calls") ") OR NOT (m.metadata IS NULL OR " IS_OBJECT("m.metadata") ")",
    "SELECT 'schema \"' || name || '\" has a json_schema that is no JSON object' FROM schemas"
    " WHERE NOT " IS_OBJECT("json_schema"),
    "SELECT 'the counter of schemas is missing' WHERE NOT EXISTS (SELECT 1 FROM counters WHERE name = 'schemas')",
};

/* What a row of runs can not be read with, see rv_sql_check_numbers(). */
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
                  (long long)RV_SQL_MAX_NUMBER);
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
                  (long long)RV_SQL_MAX_NUMBER);
    int rc = rv_buf_check(&sql, "query", err);
    if (rc == 0)
        rc = ask(r, rv_buf_cstr(&sql), err);
    rv_buf_fini(&sql);
    return rc;
}

int rv_sql_check(void *self, rv_err **err)
{
    struct sql_store *st = self;
    struct report r = {.st = st, .text = RV_BUF_INIT(2 * MAX_REPORT)};
    bool began = false;
    int rc = rv_sql_begin_read(st, &began, err);

    for (size_t i = 0; i < RV_COUNT(questions) && rc == 0; i++)
        rc = ask(&r, questions[i], err);
    if (rc == 0)
        rc = check_rows(&r, err);
    if (rc == 0)
        rc = check_sessions(&r, err);
    if (rc == 0)
        rc = look_at(&r, "SELECT hash, data FROM blobs", check_blob, err);
    if (rc == 0)
        rc = look_at(&r, "SELECT checksum, document, name FROM schemas", check_document, err);
    rv_sql_end_read(st, began);
    if (rc == 0)
        rc = rv_buf_check(&r.text, "list of damages", err);
    if (rc == 0 && r.n > 0) {
        rc = RV_FAIL(err, RV_E_INVALID, "\"%s\" is damaged (%d%s): %s", st->path, r.n,
                     r.n >= MAX_PROBLEMS ? " or more" : "", rv_buf_cstr(&r.text));
        rv_err_hint(err, "restore the file from a backup");
    }
    rv_buf_fini(&r.text);
    return rc;
}

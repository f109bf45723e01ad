/* Statements of PostgreSQL: the common texts in its words, their rows read whole or (walks) a page at a time. */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/postgres/postgres_internal.h"

#define MAX_TEXT  8192 /* bytes of a statement of ours with its marks as $1, $2: the longest has a few thousand */
#define PAGE      ((size_t)1 << 20) /* bytes of rows that a page of a walk should have */
#define SOME_ROWS 16                /* of FETCH_SOME, with which a walk begins */
#define MANY_ROWS 256               /* of FETCH_MANY */

/* --- Texts --- */

static const char *const texts[PG_N_STATEMENTS] = {
#define X(name, text) [SQL_##name] = (text),
    RV_SQL_STATEMENTS(X)
#undef X
#define X(name, text) [PG_##name] = (text),
        RV_PG_STATEMENTS(X)
#undef X
};

#define OWN_CHANGE "CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)"
/* Where PostgreSQL needs another text. */
static const struct {
    int id;
    const char *text;
} others[] = {
    {SQL_BEGIN_READ, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
    {SQL_BEGIN_WRITE, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"},
    {SQL_HOLD_NAME, "SELECT CAST(pg_advisory_xact_lock(hashtextextended(?1, 0)) AS TEXT)"},
    /* Two that add equal bytes at the same time have one blob. */
    {SQL_ADD_BLOB, "INSERT INTO blobs (hash, created_us, data) VALUES (?1, ?2, ?3)"
                   " ON CONFLICT (hash) DO UPDATE SET created_us = blobs.created_us"},
    /* Rows are locked in one order, so that two of these cannot wait for each other. */
    {SQL_RENEW, "UPDATE runs SET lease_until_us = ?2 WHERE key IN (SELECT key FROM runs WHERE owner = ?1"
                " AND lease_until_us < ?2 ORDER BY key FOR UPDATE)"},
    {SQL_NODES, RV_SQL_NODES_OF("= ANY (ARRAY(SELECT json_array_elements_text(CAST(?3 AS json))))")},
    /* Writers do not wait for each other to number their changes: see RV_SQL_CHANGE. */
    {SQL_SET_TOKENS, RV_SQL_SET_TOKENS(OWN_CHANGE)},
    {SQL_DROP_TOKENS, RV_SQL_DROP_TOKENS(OWN_CHANGE)},
    {SQL_TOUCH_TOKENS, RV_SQL_TOUCH_TOKENS(OWN_CHANGE)},
    {SQL_TOKENS_MARK, "SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)"},
};

/* Rows that a writing transaction reads first are locked here; SQLite has locked the whole file. */
static const struct {
    enum sql_id id;
    int locked;
} locks[] = {{SQL_FIND, PG_FIND_LOCKED},
             {SQL_FIND_SESSION, PG_FIND_SESSION_LOCKED},
             {SQL_SAME_SCHEMA, PG_SAME_SCHEMA_LOCKED},
             {SQL_LOCK_SCHEMAS, PG_LOCK_SCHEMAS_LOCKED},
             {SQL_SAME_ENTITY, PG_SAME_ENTITY_LOCKED},
             {SQL_ENTITY_BY_ID, PG_ENTITY_BY_ID_LOCKED}};

/* Statements that are carried out for many rows of arguments at once. */
static const struct {
    enum sql_id id;
    int rows;
} manys[] = {{SQL_CLAIM_TASK, PG_CLAIM_TASK_ROWS},
             {SQL_COMPLETE_TASK, PG_COMPLETE_TASK_ROWS},
             {SQL_PROMOTE_TASK, PG_PROMOTE_TASK_ROWS},
             {SQL_ADD_EVENT, PG_ADD_EVENT_ROWS}};

/* Long results. */
static const enum sql_id walks[] = {SQL_READ,       SQL_MESSAGES,     SQL_MESSAGES_NEWEST, SQL_PENDING,
                                    SQL_PENDING_OF, SQL_LIST_SCHEMAS, SQL_CANCELS,         SQL_VERSIONS};

static bool is_walk(int id)
{
    for (size_t i = 0; i < RV_COUNT(walks); i++)
        if (id == (int)walks[i])
            return true;
    return id < 0;
}

static const char *text_of(int id, const char **end)
{
    *end = "";
    for (size_t i = 0; i < RV_COUNT(locks); i++)
        if (locks[i].locked == id) {
            *end = " FOR UPDATE";
            return texts[locks[i].id];
        }
    for (size_t i = 0; i < RV_COUNT(manys); i++)
        if (manys[i].rows == id)
            return texts[manys[i].id];
    for (size_t i = 0; i < RV_COUNT(others); i++)
        if (others[i].id == id)
            return others[i].text;
    return texts[id];
}

int store_pg_rows_of(enum sql_id id)
{
    size_t i = 0;

    while (manys[i].id != id) /* each that is asked for is there */
        i++;
    return manys[i].rows;
}

static bool begins(const char *at, const char *word)
{
    return strncmp(at, word, strlen(word)) == 0;
}

/* "?7" as "$k", k counting the arguments in the order of their first use. */
static const char *put_argument(struct postgres_stmt *stmt, const char *at, rv_buf *out)
{
    char *end;
    int arg = (int)strtol(at + 1, &end, 10), k = 0;

    while (k < stmt->n_params && stmt->arg[k] != arg)
        k++;
    if (k == stmt->n_params)
        stmt->arg[stmt->n_params++] = arg;
    rv_buf_printf(out, "$%d", k + 1);
    return end;
}

static void put_text(struct postgres_stmt *stmt, const char *at, rv_buf *out)
{
    while (*at) {
        if (*at == '?') {
            at = put_argument(stmt, at, out);
        } else if (begins(at, "/*! ")) { /* for databases with several writers, see sql/queue_internal.h */
            at += strlen("/*! ");
        } else if (begins(at, " */")) {
            at += strlen(" */");
        } else if (begins(at, "instr(")) {
            rv_buf_puts(out, "strpos(");
            at += strlen("instr(");
        } else if (begins(at, "lower(?")) { /* as in SQLite: only ASCII, in any language of the database */
            rv_buf_puts(out, "lower(");
            at = put_argument(stmt, at + strlen("lower("), out);
            rv_buf_puts(out, " COLLATE \"C\"");
        } else {
            rv_buf_putc(out, *at++);
        }
    }
}

static int translate(struct postgres_stmt *stmt, const char *text, const char *end, rv_err **err)
{
    rv_buf out = RV_BUF_INIT(MAX_TEXT);

    stmt->n_params = 0;
    stmt->is_walk = is_walk(stmt->id) && (stmt->id >= 0 || begins(text, "SELECT"));
    if (stmt->is_walk)
        rv_buf_puts(&out, "DECLARE walk NO SCROLL CURSOR FOR ");
    if (stmt->many)
        store_pg_put_rows_text(stmt, text, &out);
    else
        put_text(stmt, text, &out);
    rv_buf_puts(&out, stmt->wants_key ? " RETURNING key" : end);
    int rc = rv_buf_check(&out, "statement", err);
    if (rc == 0)
        stmt->text = rv_buf_steal(&out, NULL);
    rv_buf_fini(&out);
    return rc;
}

int store_pg_translate(struct postgres_stmt *stmt, rv_err **err)
{
    const char *end;

    if (stmt->text)
        return 0;
    const char *text = text_of(stmt->id, &end);
    return translate(stmt, text, end, err);
}

struct postgres_stmt *store_pg_stmt(struct postgres *st, int id)
{
    struct postgres_stmt *stmt = &st->stmts[id];

    stmt->id = id;
    stmt->base.st = &st->base;
    return stmt;
}

rv_sql_stmt *postgres_use(struct sql_store *base, enum sql_id id)
{
    struct postgres *st = (struct postgres *)base;

    for (size_t i = 0; i < RV_COUNT(locks) && st->transaction == PG_WRITING; i++)
        if (locks[i].id == id)
            return &store_pg_stmt(st, locks[i].locked)->base;
    return &store_pg_stmt(st, (int)id)->base;
}

rv_sql_stmt *postgres_prepare(struct sql_store *base, const rv_buf *sql)
{
    struct postgres_stmt *stmt = calloc(1, sizeof *stmt);

    if (!stmt)
        return NULL;
    stmt->base.st = base;
    stmt->id = -++((struct postgres *)base)->n_texts;
    if (translate(stmt, rv_buf_cstr(sql), "",
                  RV_CODE_ONLY("NULL is want of memory to all callers, and texts of statements are bounded")) < 0) {
        free(stmt);
        return NULL;
    }
    return &stmt->base;
}

static struct postgres *store_of(const rv_sql_stmt *stmt)
{
    return (struct postgres *)stmt->st;
}

static void drop_rows(struct postgres *st, struct postgres_stmt *stmt)
{
    st->pq->clear(stmt->rows);
    stmt->rows = NULL;
}

/* A cursor that is left goes with the next statement. */
void postgres_reset(rv_sql_stmt *base)
{
    struct postgres *st = store_of(base);
    struct postgres_stmt *stmt = (struct postgres_stmt *)base;

    drop_rows(st, stmt);
    if (stmt->is_open && stmt->owns_reading)
        store_pg_abandon(st);
    else if (stmt->is_open && st->conn && st->transaction != PG_IDLE && !st->is_spoilt)
        RV_IGNORE(store_pg_send_id(st, PG_CLOSE_WALK, "end a walk", NULL), "what follows on the connection fails, too");
    stmt->is_open = stmt->owns_reading = false;
}

/* Its preparation may have been sent, and not answered yet. */
void postgres_finish(rv_sql_stmt *base)
{
    struct postgres *st = store_of(base);
    struct postgres_stmt *stmt = (struct postgres_stmt *)base;

    postgres_reset(base);
    for (int i = st->n_read; i < st->n_sent; i++)
        if (st->sent[i].prepares == stmt)
            st->sent[i].prepares = NULL;
    free(stmt->text);
    free(stmt);
}

/* --- Rows --- */

static void take_rows(struct postgres *st, struct postgres_stmt *stmt)
{
    drop_rows(st, stmt);
    stmt->rows = st->asked;
    stmt->row = 0;
    st->asked = NULL;
}

static int ask(struct postgres *st, struct postgres_stmt *stmt, const char *what, rv_err **err)
{
    int rc = 0;

    if (stmt->is_walk && st->transaction == PG_IDLE) {
        rc = store_pg_open_reading(st, err);
        stmt->owns_reading = rc == 0;
    }
    if (rc == 0)
        rc = store_pg_send(st, stmt, what, err);
    if (rc == 0 && stmt->is_walk)
        rc = store_pg_send_id(st, PG_FETCH_SOME, what, err);
    if (rc == 0)
        rc = store_pg_settle(st, true, err);
    stmt->is_open = rc == 0 && stmt->is_walk;
    stmt->n_asked = SOME_ROWS;
    if (rc < 0 && stmt->owns_reading) {
        store_pg_abandon(st);
        stmt->owns_reading = false;
    }
    return rc;
}

/* A statement that only reads, and whose rows were not given to the caller yet, is repeated on another connection. */
static int ask_again(struct postgres *st, struct postgres_stmt *stmt, bool was_reading, const char *what, rv_err **err)
{
    int rc = store_pg_ready(st, err);

    if (rc == 0 && was_reading)
        rc = store_pg_open_reading(st, err);
    return rc < 0 ? rc : ask(st, stmt, what, err);
}

static int first_rows(struct postgres *st, struct postgres_stmt *stmt, const char *what, rv_err **err)
{
    bool is_alone = st->transaction == PG_IDLE, was_reading = st->transaction == PG_READING && st->is_first;
    rv_err *why = NULL;
    int rc = store_pg_translate(stmt, &why);

    st->retry = PG_RETRY_NOT;
    if (rc == 0)
        rc = is_alone ? ask_again(st, stmt, false, what, &why) : ask(st, stmt, what, &why);
    while (rc < 0 && (is_alone || was_reading) && st->retry == PG_RETRY_LOST && postgres_again(&st->base)) {
        rv_err_free(why);
        why = NULL;
        rc = ask_again(st, stmt, was_reading, what, &why);
    }
    if (rc == 0 && (is_alone || was_reading))
        store_pg_done_trying(st);
    rv_err_pass(err, why);
    st->is_first = st->is_first && rc < 0;
    return rc;
}

static size_t bytes_of(struct postgres *st, const PGresult *rows)
{
    size_t n = 1;

    for (int i = 0; i < st->pq->ntuples(rows); i++)
        for (int k = 0; k < st->pq->nfields(rows); k++)
            n += (size_t)st->pq->getlength(rows, i, k);
    return n;
}

/* As many rows as make a page, going by those that came last. */
static int next_page(struct postgres *st, struct postgres_stmt *stmt, const char *what, rv_err **err)
{
    int n = st->pq->ntuples(stmt->rows); /* 0: the caller has seen the end, and asks once more */
    size_t each = bytes_of(st, stmt->rows) / (size_t)(n > 0 ? n : 1) + 1;
    int id = each > PAGE / SOME_ROWS ? PG_FETCH_ONE : each > PAGE / MANY_ROWS ? PG_FETCH_SOME : PG_FETCH_MANY;
    bool is_last = n < stmt->n_asked;

    drop_rows(st, stmt);
    if (is_last)
        return 0;
    stmt->n_asked = id == PG_FETCH_ONE ? 1 : id == PG_FETCH_SOME ? SOME_ROWS : MANY_ROWS;
    int rc = store_pg_send_id(st, id, what, err);
    if (rc == 0)
        rc = store_pg_settle(st, true, err);
    if (rc == 0)
        take_rows(st, stmt);
    return rc;
}

int postgres_step(rv_sql_stmt *base, const char *what, rv_err **err)
{
    struct postgres *st = store_of(base);
    struct postgres_stmt *stmt = (struct postgres_stmt *)base;
    int rc = 0;

    if (!base->is_running) {
        rc = first_rows(st, stmt, what, err);
        if (rc == 0)
            take_rows(st, stmt);
        base->is_running = rc == 0;
    } else if (stmt->rows && ++stmt->row >= st->pq->ntuples(stmt->rows) && stmt->is_open) {
        rc = next_page(st, stmt, what, err);
    }
    if (rc < 0)
        return rc;
    return stmt->rows && stmt->row < st->pq->ntuples(stmt->rows);
}

int postgres_run(rv_sql_stmt *base, enum sql_wants wants, int64_t *out, const char *what, rv_err **err)
{
    struct postgres *st = store_of(base);
    struct postgres_stmt *stmt = (struct postgres_stmt *)base;
    bool is_marked = false;
    int rc;

    stmt->wants_key = wants == SQL_WANTS_KEY;
    rc = store_pg_send(st, stmt, what, err);
    if (rc == 0 && wants != SQL_WANTS_NOTHING)
        rc = store_pg_settle(st, true, err);
    if (rc == 0 && wants == SQL_WANTS_COUNT) {
        *out = strtoll(st->pq->cmdTuples(st->asked), NULL, 10);
        is_marked = *out == 0; /* nothing was changed */
    }
    if (rc == 0 && wants == SQL_WANTS_KEY) {
        take_rows(st, stmt);
        is_marked = st->pq->ntuples(stmt->rows) == 0;
        *out = is_marked ? 0 : sql_int_at(base, 0);
        drop_rows(st, stmt);
        if (!is_marked && *out == 0)
            rc = RV_FAIL(err, RV_E_INTERNAL, "\"%s\": %s: no key", st->base.path, what);
    }
    st->n_changes += !is_marked;
    return rc;
}

/* --- Columns: binary, as the server keeps them --- */

static int64_t number_at(const char *at, int len)
{
    uint64_t n = 0;

    for (int i = 0; i < len && i < 8; i++)
        n = n << 8 | (unsigned char)at[i];
    if (len == 4)
        return (int32_t)(uint32_t)n;
    return len == 2 ? (int16_t)(uint16_t)n : (int64_t)n;
}

void postgres_column(const rv_sql_stmt *base, int i, enum sql_type type, struct sql_value *out, bool *lacked)
{
    const struct postgres_stmt *stmt = (const struct postgres_stmt *)base;
    const struct rv_pq *pq = store_of(base)->pq;

    (void)lacked; /* the row is in memory, and a NUL is behind each column */
    if (!stmt->rows || pq->getisnull(stmt->rows, stmt->row, i))
        return;
    const char *at = pq->getvalue(stmt->rows, stmt->row, i);
    int len = pq->getlength(stmt->rows, stmt->row, i);
    out->type = type;
    if (type == SQL_INT)
        out->number = number_at(at, len);
    else
        out->bytes = (rv_str){at, (size_t)len};
}

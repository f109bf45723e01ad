/* Statements and their values, whatever database carries them out. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/sql/driver_internal.h"

void sql_close(struct sql_store *st)
{
    free(st->embeds);
    if (st->vault)
        st->vault_free(st->vault);
    rv_keyring_unref(st->ring);
    st->driver->close(st);
}

void sql_set_wait(struct sql_store *st, int64_t ms)
{
    st->driver->set_wait(st, ms);
}

const char *sql_path(const struct sql_store *st)
{
    return st->path;
}

int sql_compare(const struct sql_store *st, int64_t version, int current, bool read_only, rv_err **err)
{
    if (version < 0)
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" has schema version %lld, which there never was", st->path,
                       (long long)version);
    if (version > current) {
        RV_FAIL(err, RV_E_VERSION, "\"%s\" has schema version %lld, this program knows versions up to %d", st->path,
                (long long)version, current);
        rv_err_set_hint(err, "use the newer program that wrote it");
        return RV_E_VERSION;
    }
    if (version < current && read_only) {
        RV_FAIL(err, RV_E_VERSION, "\"%s\" has schema version %lld, this program reads version %d", st->path,
                (long long)version, current);
        rv_err_set_hint(err, "open it once for writing, which brings it forward");
        return RV_E_VERSION;
    }
    return version < current;
}

/* --- Texts that statements own --- */

struct sql_text {
    struct sql_text *next;
    rv_buf text;
};

static void free_texts(struct sql_text **list)
{
    while (*list) {
        struct sql_text *t = *list;
        *list = t->next;
        if (t->text.ptr)
            rv_wipe(t->text.ptr, t->text.cap);
        rv_buf_fini(&t->text);
        free(t);
    }
}

static void forget_texts(rv_sql_stmt *stmt)
{
    free_texts(&stmt->bound);
    free_texts(&stmt->opened);
    rv_err_free(stmt->failed);
    stmt->failed = NULL;
    stmt->failed_rc = 0;
}

/* Those of columns last until the step; an argument that could not be made is told now. */
static int check_texts(rv_sql_stmt *stmt, rv_err **err)
{
    free_texts(&stmt->opened);
    if (stmt->failed_rc < 0 && err)
        rv_err_pass(err, rv_err_steal(&stmt->failed));
    return stmt->failed_rc;
}

rv_buf *sql_text_of(rv_sql_stmt *stmt, bool is_argument, size_t max)
{
    struct sql_text *t = calloc(1, sizeof *t), **list = is_argument ? &stmt->bound : &stmt->opened;

    if (!t)
        return NULL;
    t->text = RV_BUF_INIT(max);
    t->next = *list;
    *list = t;
    return &t->text;
}

/* --- Statements --- */

rv_sql_stmt *sql_use(struct sql_store *st, enum sql_id id)
{
    return st->driver->use(st, id);
}

rv_sql_stmt *sql_prepare(struct sql_store *st, const rv_buf *sql)
{
    return sql->rc < 0 ? NULL : st->driver->prepare(st, sql);
}

void sql_done(rv_sql_stmt *stmt)
{
    if (!stmt)
        return;
    stmt->st->driver->reset(stmt);
    forget_texts(stmt);
    memset(stmt->args, 0, (size_t)stmt->n_args * sizeof *stmt->args);
    stmt->n_args = 0;
    stmt->is_running = false;
}

void sql_finish(rv_sql_stmt *stmt)
{
    if (!stmt)
        return;
    forget_texts(stmt);
    stmt->st->driver->finish(stmt);
}

void sql_bind(rv_sql_stmt *stmt, int i, struct sql_value v)
{
    if (!stmt)
        return;
    stmt->args[i - 1] = v;
    if (i > stmt->n_args)
        stmt->n_args = i;
}

void sql_int(rv_sql_stmt *stmt, int i, int64_t v)
{
    sql_bind(stmt, i, (struct sql_value){.type = SQL_INT, .number = v});
}

void store_sql_text(rv_sql_stmt *stmt, int i, const char *text)
{
    sql_bind(stmt, i, (struct sql_value){.type = SQL_TEXT, .bytes = {text, text ? strlen(text) : 0}});
}

void sql_str(rv_sql_stmt *stmt, int i, rv_str s)
{
    sql_bind(stmt, i, (struct sql_value){.type = SQL_STR, .bytes = s});
}

void sql_blob(rv_sql_stmt *stmt, int i, const void *bytes, size_t len)
{
    sql_bind(stmt, i, (struct sql_value){.type = SQL_BLOB, .bytes = {len > 0 ? bytes : "", len}});
}

int sql_step(rv_sql_stmt *stmt, const char *what, rv_err **err)
{
    int rc = stmt ? check_texts(stmt, err) : RV_FAIL(err, RV_E_NOMEM, "%s", what);

    return rc < 0 ? rc : stmt->st->driver->step(stmt, what, err);
}

static int run(rv_sql_stmt *stmt, enum sql_wants wants, int64_t *out, const char *what, rv_err **err)
{
    int rc = stmt ? check_texts(stmt, err) : RV_FAIL(err, RV_E_NOMEM, "%s", what);

    if (rc == 0)
        rc = stmt->st->driver->run(stmt, wants, out, what, err);
    sql_done(stmt);
    return rc;
}

int sql_run(rv_sql_stmt *stmt, const char *what, rv_err **err)
{
    return run(stmt, SQL_WANTS_NOTHING, NULL, what, err);
}

int sql_run_new(rv_sql_stmt *stmt, int64_t *key, const char *what, rv_err **err)
{
    return run(stmt, SQL_WANTS_KEY, key, what, err);
}

int sql_run_counted(rv_sql_stmt *stmt, int64_t *n_rows, const char *what, rv_err **err)
{
    return run(stmt, SQL_WANTS_COUNT, n_rows, what, err);
}

int sql_run_key(struct sql_store *st, enum sql_id id, int64_t key, const char *what, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, id);

    sql_int(stmt, 1, key);
    return sql_run(stmt, what, err);
}

/* --- Many rows --- */

rv_sql_stmt *sql_use_rows(struct sql_store *st, enum sql_id id)
{
    return st->driver->use_rows(st, id);
}

int sql_add_row(const struct sql_rows *rows, rv_err **err)
{
    int rc = rows->stmt ? check_texts(rows->stmt, err) : RV_FAIL(err, RV_E_NOMEM, "%s", rows->what);

    return rc < 0 ? rc : rows->stmt->st->driver->add_row(rows, err);
}

int sql_end_rows(const struct sql_rows *rows, int rc, rv_err **err)
{
    if (!rows->stmt)
        return rc < 0 ? rc : RV_FAIL(err, RV_E_NOMEM, "%s", rows->what);
    rc = rows->stmt->st->driver->end_rows(rows, rc, err);
    sql_done(rows->stmt);
    return rc;
}

/* --- Columns --- */

static struct sql_value column(const rv_sql_stmt *stmt, int i, enum sql_type type, bool *lacked)
{
    struct sql_value v = {.type = SQL_NULL};

    stmt->st->driver->column(stmt, i, type, &v, lacked);
    return v;
}

int64_t sql_int_at(const rv_sql_stmt *stmt, int i)
{
    return column(stmt, i, SQL_INT, NULL).number;
}

bool sql_is_null(const rv_sql_stmt *stmt, int i)
{
    return column(stmt, i, SQL_INT, NULL).type == SQL_NULL;
}

const char *sql_text_at(const rv_sql_stmt *stmt, int i, bool *lacked)
{
    return column(stmt, i, SQL_TEXT, lacked).bytes.ptr;
}

rv_str sql_str_at(const rv_sql_stmt *stmt, int i)
{
    return column(stmt, i, SQL_STR, NULL).bytes;
}

struct sql_value sql_value_at(const rv_sql_stmt *stmt, int i, enum sql_type type)
{
    struct sql_value v = column(stmt, i, type == SQL_TEXT ? SQL_STR : type, NULL);

    if (v.type == SQL_STR)
        v.type = type;
    return v;
}

/* --- Transactions --- */

int sql_begin_read(struct sql_store *st, bool *began, rv_err **err)
{
    return st->driver->begin_read(st, began, err);
}

void sql_end_read(struct sql_store *st, bool began)
{
    st->driver->end_read(st, began);
}

int sql_begin_write(struct sql_store *st, const char *what, rv_err **err)
{
    free(st->embeds); /* another process may have set another provider since */
    st->embeds = NULL;
    st->n_begun += !st->in_group;
    return st->driver->begin_write(st, what, err);
}

int sql_end_write(struct sql_store *st, int rc, const char *what, rv_err **err)
{
    return st->driver->end_write(st, rc, what, err);
}

int sql_begin_part(struct sql_store *st, rv_err **err)
{
    return st->driver->begin_part(st, err);
}

int sql_end_part(struct sql_store *st, int rc, rv_err **err)
{
    return st->driver->end_part(st, rc, err);
}

int sql_begin(struct sql_store *st, rv_err **err)
{
    st->n_begun++;
    return st->driver->begin(st, err);
}

int sql_commit(struct sql_store *st, rv_err **err)
{
    return st->driver->commit(st, err);
}

void sql_rollback(struct sql_store *st)
{
    st->driver->rollback(st);
}

bool sql_again(struct sql_store *st, rv_err **err)
{
    if (!st->driver->again || !st->driver->again(st))
        return false;
    rv_err_free(rv_err_steal(err));
    return true;
}

void sql_tell(struct sql_store *st)
{
    if (st->driver->tell)
        st->driver->tell(st);
}

void sql_may_be_lost(struct sql_store *st)
{
    if (st->driver->may_be_lost && !st->in_group)
        st->driver->may_be_lost(st);
}

/* Copying a store into another one. What the other one has of a table is always its first rows, because rows are added
 * in the order of their keys, some in a transaction: so those rows themselves say how far the copy got. A mark in the
 * table "about" keeps everybody else away until all is there. */
#include <stdio.h>
#include <string.h>

#include "coreengine/store/search/search_internal.h"
#include "coreengine/store/sql/driver_internal.h"
#include "coreengine/store/upkeep.h"
#include "coreengine/store/upkeep/tables_internal.h"

#define BATCH_ROWS  2000      /* of one transaction: a copy that is interrupted goes on behind it */
#define BATCH_BYTES (4 << 20) /* of one transaction, for the same reason */
#define LOOK_ROWS   50000     /* that are read between two calls of on_progress */
#define DIFFERS     1         /* what is there is not what `from` begins with */

struct copy {
    struct sql_store *from, *to;
    const struct rv_store_copy_opts *opts;
    struct rv_store_copied *out;
    char id[RV_ID_MAX];     /* of this call */
    struct rv_rows_sum sum; /* of the present table in `from` */
};

static int tell(const struct copy *c, enum rv_store_copy_phase phase, const struct sql_table *t,
                const struct rv_rows_sum *sum, rv_err **err)
{
    const struct rv_store_copy_progress p = {.phase = phase, .table = t->name, .n_rows = sum->n, .bytes = sum->bytes};

    return c->opts->on_progress ? c->opts->on_progress(c->opts->self, &p, err) : 0;
}

/* A statement of `to` that is put together, and gives no rows. */
static int run_text(const struct copy *c, const char *text, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);

    rv_buf_puts(&sql, text);
    rv_sql_stmt *stmt = sql_prepare(c->to, &sql);
    int rc = sql_run(stmt, "copy", err);
    sql_finish(stmt);
    rv_buf_fini(&sql);
    return rc;
}

/* --- Marks --- */

int store_about_get(struct sql_store *st, const char *name, rv_buf *out, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_ABOUT);

    store_sql_text(stmt, 1, name);
    int rc = sql_step(stmt, "look at the store", err);
    if (rc == 1)
        rv_buf_add_str(out, sql_str_at(stmt, 0));
    sql_done(stmt);
    return rc < 0 ? rc : rv_buf_check(out, "text about the store", err);
}

static int set_about(const struct copy *c, const char *name, const char *value, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(c->to, SQL_SET_ABOUT);

    store_sql_text(stmt, 1, name);
    store_sql_text(stmt, 2, value);
    return sql_run(stmt, "mark the copy", err);
}

int store_fail_half(struct sql_store *st, const char *from, rv_err **err)
{
    RV_FAIL(err, RV_E_STATE, "\"%s\" has an unfinished copy of \"%s\" and cannot be used", sql_path(st), from);
    rv_err_set_hint(err, "`reeve store copy` with the same two stores finishes it");
    return RV_E_STATE;
}

/* The call that began last has the mark; it waits for a transaction of the one before. */
static int check_mark(const struct copy *c, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(c->to, SQL_STILL_COPIES);
    int64_t n = 0;

    store_sql_text(stmt, 1, c->id);
    int rc = sql_run_counted(stmt, &n, "copy", err);
    if (rc == 0 && n != 1)
        rc = RV_FAIL(err, RV_E_STATE, "\"%s\": another process continues this copy", sql_path(c->to));
    return rc;
}

static int begin_batch(const struct copy *c, rv_err **err)
{
    int rc = sql_begin_write(c->to, "copy", err);

    if (rc < 0)
        return rc;
    rc = c->to->driver->be_patient ? c->to->driver->be_patient(c->to, err) : 0;
    if (rc == 0)
        rc = check_mark(c, err);
    return rc < 0 ? sql_end_write(c->to, rc, "copy", err) : 0;
}

/* --- Before the first row --- */

static int each_leased(struct sql_store *from, const struct rv_store_copy_opts *opts, enum sql_id id, const char *what,
                       rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(from, id);
    bool lacked = false;
    int rc;

    sql_int(stmt, 1, opts->now_us);
    while ((rc = sql_step(stmt, "look for leases", err)) == 1) {
        const struct rv_store_leased l = {.what = what,
                                          .id = sql_text_at(stmt, 0, &lacked),
                                          .owner = sql_text_at(stmt, 1, &lacked),
                                          .until_us = sql_int_at(stmt, 2)};
        if (lacked)
            rc = RV_FAIL(err, RV_E_NOMEM, "look for leases");
        else if (l.id && l.owner)
            rc = opts->on_leased(opts->self, &l, err);
        if (rc < 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int store_copy_list_leased(struct sql_store *from, const struct rv_store_copy_opts *opts, rv_err **err)
{
    int rc = opts->on_leased ? each_leased(from, opts, SQL_LEASED_RUNS, "run", err) : 0;

    return rc < 0 || !opts->on_leased ? rc : each_leased(from, opts, SQL_LEASED_TASKS, "task", err);
}

static int check_empty(const struct copy *c, rv_err **err)
{
    for (size_t i = 0; i < store_n_tables; i++) {
        const struct sql_table *t = &store_tables[i];
        struct rv_rows rows;
        if (t->is_seeded)
            continue;
        store_rows_begin(&rows, c->to, t);
        int rc = store_rows_next(&rows, err);
        store_rows_end(&rows);
        if (rc < 0)
            return rc;
        if (rc == 1) {
            RV_FAIL(err, RV_E_STATE, "\"%s\" is not empty: its table \"%s\" has rows", sql_path(c->to), t->name);
            rv_err_set_hint(err, "a store is copied into one that does not exist yet, or is empty");
            return RV_E_STATE;
        }
    }
    return 0;
}

struct marks {
    rv_buf id, to_id, copy_of, copy_from, copied_of;
};

static int read_marks(const struct copy *c, struct marks *m, rv_err **err)
{
    const struct {
        struct sql_store *st;
        const char *name;
        rv_buf *out;
    } reads[] = {{c->from, "id", &m->id},
                 {c->to, "id", &m->to_id},
                 {c->to, "copy_of", &m->copy_of},
                 {c->to, "copy_from", &m->copy_from},
                 {c->to, "copied_of", &m->copied_of}};
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(reads); i++)
        rv_buf_init(reads[i].out, 2 * (size_t)RV_STORE_MAX_URL);
    for (size_t i = 0; i < RV_COUNT(reads) && rc == 0; i++)
        rc = store_about_get(reads[i].st, reads[i].name, reads[i].out, err);
    return rc;
}

static void marks_fini(struct marks *m)
{
    rv_buf_fini(&m->id);
    rv_buf_fini(&m->to_id);
    rv_buf_fini(&m->copy_of);
    rv_buf_fini(&m->copy_from);
    rv_buf_fini(&m->copied_of);
}

static int fail_finished(const struct copy *c, rv_err **err)
{
    RV_FAIL(err, RV_E_STATE, "\"%s\" already has a finished copy of \"%s\"", sql_path(c->to), sql_path(c->from));
    rv_err_set_hint(err, "name another store to copy to, or delete that one first");
    return RV_E_STATE;
}

static int check_marks(const struct copy *c, struct marks *m, rv_err **err)
{
    const char *to = sql_path(c->to), *id = rv_buf_cstr(&m->id);

    if (!*id)
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" lacks its id in the table \"about\"", sql_path(c->from));
    if (strcmp(id, rv_buf_cstr(&m->to_id)) == 0)
        return RV_FAIL(err, RV_E_STATE, "\"%s\" and \"%s\" are the same store, or copies of the same file",
                       sql_path(c->from), to);
    if (m->copy_of.len > 0 && strcmp(id, rv_buf_cstr(&m->copy_of)) != 0)
        return store_fail_half(c->to, rv_buf_cstr(&m->copy_from), err);
    if (m->copy_of.len == 0 && strcmp(id, rv_buf_cstr(&m->copied_of)) == 0)
        return fail_finished(c, err);
    return m->copy_of.len > 0 ? 0 : check_empty(c, err);
}

static int drop_seeds(const struct copy *c, rv_err **err)
{
    char sql[80];
    int rc = 0;

    for (size_t i = 0; i < store_n_tables && rc == 0; i++) {
        snprintf(sql, sizeof sql, "DELETE FROM %s", store_tables[i].name);
        rc = store_tables[i].is_seeded ? run_text(c, sql, err) : 0;
    }
    return rc;
}

/* In one transaction, and written before it looks: of two that begin, the second one waits for the first at this row,
 * in a database with several writers, too, and then finds its marks. */
static int try_mark(const struct copy *c, rv_err **err)
{
    struct marks m = {0};
    int rc = sql_begin_write(c->to, "begin the copy", err);

    if (rc < 0)
        return rc;
    rc = set_about(c, "copy_by", c->id, err);
    if (rc == 0)
        rc = read_marks(c, &m, err);
    if (rc == 0)
        rc = check_marks(c, &m, err);
    c->out->is_resumed = rc == 0 && m.copy_of.len > 0;
    if (rc == 0 && !c->out->is_resumed)
        rc = drop_seeds(c, err);
    if (rc == 0)
        rc = set_about(c, "copy_of", rv_buf_cstr(&m.id), err);
    if (rc == 0)
        rc = set_about(c, "copy_from", sql_path(c->from), err);
    marks_fini(&m);
    return sql_end_write(c->to, rc, "begin the copy", err);
}

static int mark(const struct copy *c, rv_err **err)
{
    int rc;

    do
        rc = try_mark(c, err);
    while (rc < 0 && sql_again(c->to, err));
    return rc;
}

/* --- Rows --- */

/* Each value with its kind and its length in front, so that no two rows look alike. */
static void sum_add(struct rv_rows_sum *s, const struct rv_rows *row)
{
    for (int i = 0; i < row->table->n_columns; i++) {
        const struct sql_value *v = &row->values[i];
        uint64_t n = v->type == SQL_INT ? (uint64_t)v->number : v->bytes.len;
        unsigned char head[9] = {v->type == SQL_NULL ? 0 : v->type == SQL_INT ? 1 : 2};
        for (int k = 0; k < 8; k++)
            head[1 + k] = (unsigned char)(n >> 8 * k);
        rv_hash_add(&s->hash, (rv_str){(const char *)head, v->type == SQL_NULL ? 1 : sizeof head});
        s->bytes += v->type == SQL_INT ? 8 : 0;
        if (v->type == SQL_NULL || v->type == SQL_INT)
            continue;
        rv_hash_add(&s->hash, v->bytes);
        s->bytes += (int64_t)v->bytes.len;
    }
    s->n++;
}

/* Sum up rows of a table; at most n (negative: all). 1: that many, 0: there are no more. */
static int sum_rows(const struct copy *c, struct rv_rows *rows, enum rv_store_copy_phase phase, int64_t n,
                    struct rv_rows_sum *sum, rv_err **err)
{
    int rc = 1;

    while (rc == 1 && (n < 0 || sum->n < n)) {
        rc = store_rows_next(rows, err);
        if (rc == 1)
            sum_add(sum, rows);
        int told = rc == 1 && sum->n % LOOK_ROWS == 0 ? tell(c, phase, rows->table, sum, err) : 0;
        rc = told < 0 ? told : rc;
    }
    return rc;
}

static void sum_init(struct rv_rows_sum *s)
{
    rv_hash_init(&s->hash);
    s->n = s->bytes = 0;
}

/* What `to` has of a table. */
static int sum_there(const struct copy *c, const struct sql_table *t, enum rv_store_copy_phase phase,
                     struct rv_rows_sum *sum, rv_err **err)
{
    struct rv_rows rows;
    bool began = false;

    sum_init(sum);
    int rc = sql_begin_read(c->to, &began, err);
    if (rc < 0)
        return rc;
    rc = c->to->driver->be_patient ? c->to->driver->be_patient(c->to, err) : 0;
    store_rows_begin(&rows, c->to, t);
    if (rc == 0)
        rc = sum_rows(c, &rows, phase, -1, sum, err);
    store_rows_end(&rows);
    sql_end_read(c->to, began);
    return rc;
}

static void sum_hex(const struct rv_rows_sum *s, char out[RV_HASH_MAX])
{
    struct rv_hash hash = s->hash;

    rv_hash_finish_hex(&hash, out);
}

/* Read as many rows of `from` as `to` has. */
static int compare(struct copy *c, struct rv_rows *rows, rv_err **err)
{
    struct rv_rows_sum there;
    char here_hex[RV_HASH_MAX], there_hex[RV_HASH_MAX];
    int rc = c->out->is_resumed ? sum_there(c, rows->table, RV_STORE_COPY_COMPARES, &there, err) : 0;

    if (rc < 0 || !c->out->is_resumed || there.n == 0)
        return rc;
    rc = sum_rows(c, rows, RV_STORE_COPY_COMPARES, there.n, &c->sum, err);
    if (rc < 0)
        return rc;
    sum_hex(&c->sum, here_hex);
    sum_hex(&there, there_hex);
    return rc == 0 || strcmp(here_hex, there_hex) != 0 ? DIFFERS : 0;
}

/* PostgreSQL says of such a text neither where it is nor, when statements wait in a queue, that it was this one. */
static int check_texts(const struct copy *c, const struct rv_rows *rows, rv_err **err)
{
    for (int i = 0; i < rows->table->n_columns; i++) {
        const struct sql_value *v = &rows->values[i];
        size_t bad = 0;
        if (v->type != SQL_TEXT)
            continue;
        bool has_nul = v->bytes.len > 0 && memchr(v->bytes.ptr, 0, v->bytes.len);
        if (!has_nul && rv_utf8_valid(v->bytes, &bad))
            continue;
        rv_buf key = RV_BUF_INIT(1000);
        store_rows_write_key(rows, &key);
        RV_FAIL(err, RV_E_INVALID, "\"%s\": table \"%s\", row %s: the column \"%s\" %s, which %s cannot keep",
                sql_path(c->from), rows->table->name, rv_buf_cstr(&key), rows->table->columns[i].name,
                has_nul ? "contains a NUL character" : "is not valid UTF-8", c->to->driver->name);
        rv_err_set_hint(err, "correct or delete that row, then repeat the command");
        rv_buf_fini(&key);
        return RV_E_INVALID;
    }
    return 0;
}

static int insert(const struct copy *c, const struct rv_rows *rows, rv_sql_stmt *stmt, rv_err **err)
{
    int rc = c->to->driver->refuses_bytes ? check_texts(c, rows, err) : 0;

    for (int i = 0; i < rows->table->n_columns && rc == 0 && stmt; i++)
        sql_bind(stmt, i + 1, rows->values[i]);
    return rc < 0 ? rc : sql_run(stmt, "copy", err);
}

static rv_sql_stmt *prepare_insert(const struct copy *c, const struct sql_table *t)
{
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);

    rv_buf_printf(&sql, "INSERT INTO %s (", t->name);
    for (int i = 0; i < t->n_columns; i++)
        rv_buf_printf(&sql, "%s\"%s\"", i ? ", " : "", t->columns[i].name);
    rv_buf_puts(&sql, ") VALUES (");
    for (int i = 0; i < t->n_columns; i++)
        rv_buf_printf(&sql, "%s?%d", i ? ", " : "", i + 1);
    rv_buf_puts(&sql, ")");
    rv_sql_stmt *stmt = sql_prepare(c->to, &sql);
    rv_buf_fini(&sql);
    return stmt;
}

/* The present row of `from`, and some behind it, in one transaction. 1: there are more. */
static int copy_batch(struct copy *c, struct rv_rows *rows, rv_err **err)
{
    struct rv_rows_sum before = c->sum;
    int rc = begin_batch(c, err), more = 1;

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = prepare_insert(c, rows->table); /* a statement belongs to the connection of its transaction */
    while (rc == 0 && more == 1) {
        rc = insert(c, rows, stmt, err);
        if (rc < 0)
            break;
        sum_add(&c->sum, rows);
        more = store_rows_next(rows, err);
        rc = more < 0 ? more : 0;
        if (c->sum.n - before.n >= BATCH_ROWS || c->sum.bytes - before.bytes >= BATCH_BYTES)
            break;
    }
    sql_finish(stmt);
    rc = sql_end_write(c->to, rc, "copy", err);
    if (rc == 0)
        rc = tell(c, RV_STORE_COPY_WRITES, rows->table, &c->sum, err);
    return rc < 0 ? rc : more;
}

static int write_rows(struct copy *c, struct rv_rows *rows, struct rv_store_table *out, rv_err **err)
{
    int64_t n_before = c->sum.n;
    int rc = store_rows_next(rows, err);

    while (rc == 1)
        rc = copy_batch(c, rows, err);
    out->n_copied = c->sum.n - n_before;
    if (rc == RV_E_INTERNAL) {
        rc = RV_WRAP(err, RV_E_INVALID, "the rows of \"%s\" do not belong together", sql_path(c->from));
        rv_err_set_hint(err, "`reeve store check` lists the damage");
    }
    return rc < 0 ? RV_WRAP(err, rc, "copy the table \"%s\"", rows->table->name) : 0;
}

static int copy_table(struct copy *c, const struct sql_table *t, struct rv_store_table *out, rv_err **err)
{
    struct rv_rows rows;

    sum_init(&c->sum);
    store_rows_begin(&rows, c->from, t);
    int rc = compare(c, &rows, err);
    if (rc == 0)
        rc = write_rows(c, &rows, out, err);
    store_rows_end(&rows);
    out->name = t->name;
    out->n_rows = c->sum.n;
    out->bytes = c->sum.bytes;
    sum_hex(&c->sum, out->hash);
    return rc;
}

/* --- All tables --- */

static int empty_tables(const struct copy *c, rv_err **err)
{
    char sql[80];
    int rc = 0;

    for (size_t i = store_n_tables; i-- > 0 && rc == 0;) {
        rc = begin_batch(c, err);
        snprintf(sql, sizeof sql, "DELETE FROM %s", store_tables[i].name);
        if (rc == 0)
            rc = sql_end_write(c->to, run_text(c, sql, err), "delete the old copy", err);
    }
    return rc;
}

static int copy_tables(struct copy *c, rv_err **err)
{
    struct rv_store_copied *out = c->out;
    int rc = 0;

    out->n_tables = 0;
    while (out->n_tables < store_n_tables && rc == 0) {
        struct rv_store_table *t = &out->tables[out->n_tables];
        *t = (struct rv_store_table){0};
        rc = copy_table(c, &store_tables[out->n_tables++], t, err);
    }
    if (rc != DIFFERS)
        return rc;
    out->is_resumed = false;
    out->has_restarted = true;
    rc = empty_tables(c, err);
    return rc < 0 ? rc : copy_tables(c, err);
}

static int verify(const struct copy *c, rv_err **err)
{
    struct rv_hash all;
    int rc = 0;

    rv_hash_init(&all);
    for (size_t i = 0; i < store_n_tables && rc == 0; i++) {
        const struct rv_store_table *t = &c->out->tables[i];
        struct rv_rows_sum there;
        char hex[RV_HASH_MAX];
        rc = sum_there(c, &store_tables[i], RV_STORE_COPY_VERIFIES, &there, err);
        if (rc < 0)
            break;
        sum_hex(&there, hex);
        if (strcmp(hex, t->hash) != 0) {
            RV_FAIL(err, RV_E_INVALID, "\"%s\": the table \"%s\" has %lld rows that are not the %lld of \"%s\"",
                    sql_path(c->to), t->name, (long long)there.n, (long long)t->n_rows, sql_path(c->from));
            rv_err_set_hint(err, "another program changed the copy; repeat the command: it copies again what differs");
            return RV_E_INVALID;
        }
        rv_hash_add(&all, rv_str_of(hex));
    }
    rv_hash_finish_hex(&all, c->out->hash);
    return rc;
}

static int end_tables(struct sql_store *to, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < store_n_tables && rc == 0 && to->driver->end_table; i++)
        rc = to->driver->end_table(to, store_tables[i].name,
                                   store_tables[i].is_numbered ? store_tables[i].columns[0].name : NULL, err);
    return rc;
}

static int finish(const struct copy *c, rv_err **err)
{
    rv_buf id = RV_BUF_INIT(RV_STORE_MAX_URL);
    int rc = begin_batch(c, err);

    if (rc < 0)
        return rc;
    rc = store_about_get(c->to, "copy_of", &id, err);
    if (rc == 0 && !c->opts->is_backup)
        rc = sql_run(sql_use(c->to, SQL_NEW_FENCES), "finish the copy", err);
    if (rc == 0)
        rc = end_tables(c->to, err);
    if (rc == 0)
        rc = set_about(c, "copied_of", rv_buf_cstr(&id), err);
    if (rc == 0)
        rc = store_tokens_copy_provider(c->from, c->to, err);
    if (rc == 0)
        rc = sql_run(sql_use(c->to, SQL_DROP_COPY_MARK), "finish the copy", err);
    rv_buf_fini(&id);
    return sql_end_write(c->to, rc, "finish the copy", err);
}

/* Within the snapshot of `from`. */
static int copy_all(struct copy *c, rv_err **err)
{
    int rc = c->from->driver->be_patient ? c->from->driver->be_patient(c->from, err) : 0;

    if (rc == 0)
        rc = store_copy_list_leased(c->from, c->opts, err);
    if (rc == 0)
        rc = mark(c, err);
    if (rc == 0)
        rc = copy_tables(c, err);
    if (rc == 0)
        rc = verify(c, err);
    return rc < 0 ? rc : finish(c, err);
}

int store_copy_rows(struct sql_store *from, struct sql_store *to, const struct rv_store_copy_opts *opts,
                    struct rv_store_copied *out, rv_err **err)
{
    struct copy c = {.from = from, .to = to, .opts = opts, .out = out};
    bool began = false;

    memset(out, 0, sizeof *out);
    rv_id_make(rv_rand_system(), "copy_", c.id);
    int rc = sql_begin_read(from, &began, err);
    if (rc < 0)
        return rc;
    rc = copy_all(&c, err);
    sql_end_read(from, began);
    return rc;
}

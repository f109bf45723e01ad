/* SQL: the gate of coreengine/rem decides what a statement may be, the store carries it out over the rows of the scope;
 * here rows become objects. Two columns of one name get numbers, since an object has each name once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/knowledge/knowledge_internal.h"

struct reading {
    struct asking *a;
    char **names; /* owned */
    size_t n;
};

static bool is_taken(const struct reading *r, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(r->names[i], name) == 0)
            return true;
    return false;
}

static int on_columns(void *self, const char *const *names, size_t n, rv_err **err)
{
    struct reading *r = self;
    char other[300];

    r->names = calloc(n + 1, sizeof *r->names);
    for (size_t i = 0; r->names && i < n; i++) {
        snprintf(other, sizeof other, "%.*s", RV_STR_ARG(rv_utf8_cut(rv_str_of(names[i]), 200)));
        for (int k = 2; is_taken(r, i, other); k++)
            snprintf(other, sizeof other, "%.*s_%d", RV_STR_ARG(rv_utf8_cut(rv_str_of(names[i]), 200)), k);
        r->names[i] = rv_str_dup(rv_str_of(other));
        if (!r->names[i])
            return RV_FAIL(err, RV_E_NOMEM, "read columns");
        r->n = i + 1;
    }
    return r->names ? 0 : RV_FAIL(err, RV_E_NOMEM, "read columns");
}

static int set_cell(json_object *row, const char *name, const struct rv_cell *c, rv_err **err)
{
    switch (c->type) {
    case RV_CELL_INT:
        return rv_json_set_int(row, name, c->number, err);
    case RV_CELL_REAL:
        return rv_json_set_take(row, name, rv_json_new_double(c->real), err);
    case RV_CELL_TEXT:
        return rv_json_set_str(row, name, c->text, err);
    case RV_CELL_NULL:
        break;
    }
    return rv_json_set_null(row, name, err);
}

static int on_row(void *self, const struct rv_cell *cells, size_t n, rv_err **err)
{
    struct reading *r = self;
    json_object *row = json_object_new_object();
    bool is_full = false;
    int rc = row ? 0 : RV_FAIL(err, RV_E_NOMEM, "read a row");

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = set_cell(row, r->names[i], &cells[i], err);
    if (rc < 0) {
        json_object_put(row);
        return rc;
    }
    rc = knowledge_asking_add_take(r->a, row, &is_full, err);
    return rc == 0 && is_full ? RV_STORE_ENOUGH : rc;
}

static int carry_out(struct asking *a, const struct rv_rem_sql *sql, rv_err **err)
{
    struct reading r = {.a = a};
    struct rv_store_asked asked = {false, false};
    const struct rv_store_ask ask = {.sql = sql,
                                     .max_rows = RV_KNOWLEDGE_SQL_ROWS,
                                     .max_ms = a->opts->sql_ms > 0 ? a->opts->sql_ms : RV_KNOWLEDGE_SQL_MS,
                                     .max_cell = RV_KNOWLEDGE_SQL_CELL,
                                     .max_bytes = RV_KNOWLEDGE_SQL_BYTES,
                                     .on_columns = on_columns,
                                     .on_row = on_row,
                                     .self = &r};
    int rc = rv_store_ask(a->store, a->scope, &ask, &asked, err);

    for (size_t i = 0; i < r.n; i++)
        free(r.names[i]);
    free(r.names);
    a->is_truncated = a->is_truncated || asked.has_more || asked.cut_cells;
    if (rc == 0 && asked.cut_cells)
        rc = knowledge_asking_warn(
            a, RV_STR_LIT("texts of more than " RV_LIMIT_TEXT(RV_KNOWLEDGE_CELL_KIB) " KiB are cut"), err);
    if (rc == RV_E_TIMEOUT || rc == RV_E_LIMIT || rc == RV_E_INVALID)
        a->fault->word = knowledge_asking_fault_text(rc == RV_E_TIMEOUT ? RV_KNOWLEDGE_TIMEOUT
                                                     : rc == RV_E_LIMIT ? RV_KNOWLEDGE_TOO_LARGE
                                                                        : RV_KNOWLEDGE_SQL_ERROR);
    return rc;
}

static int64_t now_us(void)
{
    struct rv_clock clock = rv_clock_system();

    return clock.now_us(clock.self);
}

int knowledge_asking_sql(struct asking *a, rv_err **err)
{
    struct rv_rem_sql sql = {0};
    struct rv_rem_fault why = {0};
    struct rv_rem_sql_opts opts = {.policy = RV_REM_STRICT,
                                   .backend =
                                       rv_store_is_postgres(rv_store_url(a->store)) ? RV_REM_POSTGRES : RV_REM_SQLITE,
                                   .may_explain = !a->scope || !a->scope->user,
                                   .now_us = a->opts->now_us > 0 ? a->opts->now_us : now_us(),
                                   .src = &a->q->sql_src};

    opts.tables = rv_rem_tables(&opts.n_tables);
    int rc = rv_rem_write_sql(a->q->sql, &opts, &sql, &why, err);
    if (rc < 0) {
        if (why.code != RV_REM_OK)
            *a->fault = (struct rv_knowledge_fault){rv_rem_fault_text(why.code), why.line, why.col};
        return rc;
    }
    rc = carry_out(a, &sql, err);
    rv_rem_sql_fini(&sql);
    return rc;
}

/* Statements of our own over the rows of a scope, by the same gate as those of others: equal results on both databases.
 */
#include "coreengine/app/entities.h"

#include <stdlib.h>

#include "coreengine/app/past.h"
#include "coreengine/store/store.h"

#define MAX_MS    30000              /* half a minute: a person waits; then the query is ended */
#define MAX_CELL  ((size_t)64 << 10) /* bytes of one value: a person reads its beginning; the rest is cut */
#define MAX_BYTES ((size_t)64 << 20) /* of all rows: they are in memory until they are printed; more is an error */

struct reading {
    json_object *rows; /* owned */
    char **names;      /* owned, and each of them */
    size_t n;
};

static int on_columns(void *self, const char *const *names, size_t n, rv_err **err)
{
    struct reading *r = self;

    r->names = calloc(n + 1, sizeof *r->names);
    for (; r->names && r->n < n; r->n++)
        if (!(r->names[r->n] = rv_str_dup(rv_str_of(names[r->n]))))
            return RV_FAIL(err, RV_E_NOMEM, "read columns");
    return r->names ? 0 : RV_FAIL(err, RV_E_NOMEM, "read columns");
}

static int on_row(void *self, const struct rv_cell *cells, size_t n, rv_err **err)
{
    struct reading *r = self;
    json_object *row = json_object_new_object();
    int rc = row ? 0 : RV_FAIL(err, RV_E_NOMEM, "read a row");

    for (size_t i = 0; i < n && i < r->n && rc == 0; i++) {
        const struct rv_cell *c = &cells[i];
        if (c->type == RV_CELL_INT)
            rc = rv_json_set_int(row, r->names[i], c->number, err);
        else if (c->type == RV_CELL_REAL)
            rc = rv_json_set_take(row, r->names[i], rv_json_new_double(c->real), err);
        else if (c->type == RV_CELL_TEXT)
            rc = rv_json_set_str(row, r->names[i], c->text, err);
        else
            rc = rv_json_set_null(row, r->names[i], err);
    }
    if (rc < 0) {
        json_object_put(row);
        return rc;
    }
    return rv_json_push_take(r->rows, row, err);
}

int rv_app_select(rv_store *store, const struct rv_store_scope *scope, rv_str text, json_object **out, bool *has_more,
                  rv_err **err)
{
    struct reading r = {.rows = json_object_new_array()};
    struct rv_rem_sql sql = {0};
    struct rv_rem_fault fault = {0};
    struct rv_store_asked asked = {.has_more = false};
    struct rv_rem_sql_opts opts = {.policy = RV_REM_STRICT,
                                   .backend =
                                       rv_store_is_postgres(rv_store_url(store)) ? RV_REM_POSTGRES : RV_REM_SQLITE,
                                   .now_us = rv_app_now_us()};

    opts.tables = rv_rem_tables(&opts.n_tables);
    int rc = r.rows ? rv_rem_write_sql(text, &opts, &sql, &fault, err) : RV_FAIL(err, RV_E_NOMEM, "read rows");
    if (rc == 0) {
        const struct rv_store_ask ask = {.sql = &sql,
                                         .max_rows = RV_APP_MAX_SELECT,
                                         .max_ms = MAX_MS,
                                         .max_cell = MAX_CELL,
                                         .max_bytes = MAX_BYTES,
                                         .on_columns = on_columns,
                                         .on_row = on_row,
                                         .self = &r};
        rc = rv_store_ask(store, scope, &ask, &asked, err);
        rv_rem_sql_fini(&sql);
    }
    for (size_t i = 0; i < r.n; i++)
        free(r.names[i]);
    free(r.names);
    if (rc == 0 && asked.has_more && !has_more)
        rc = RV_FAIL(err, RV_E_LIMIT, "there are more than %zu rows", json_object_array_length(r.rows));
    if (rc < 0) {
        json_object_put(r.rows);
        return rc;
    }
    *out = r.rows;
    if (has_more)
        *has_more = asked.has_more;
    return 0;
}

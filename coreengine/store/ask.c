/* Carrying out a statement that others wrote: what both databases have in common, the limits of rows and bytes. */
#include "coreengine/store/ask.h"

#include "coreengine/store/ask_internal.h"

int rv_ask_columns(struct rv_asking_rows *r, const char *const *names, size_t n, rv_err **err)
{
    return r->ask->on_columns ? r->ask->on_columns(r->ask->self, names, n, err) : 0;
}

int rv_ask_row(struct rv_asking_rows *r, struct rv_cell *cells, size_t n, rv_err **err)
{
    size_t bytes = 0;

    if (r->n == r->ask->max_rows) {
        r->out->has_more = true;
        return RV_STORE_ENOUGH;
    }
    for (size_t i = 0; i < n; i++) {
        struct rv_cell *c = &cells[i];
        if (c->type == RV_CELL_TEXT && c->text.len > r->ask->max_cell) {
            c->text = rv_utf8_cut(c->text, r->ask->max_cell);
            r->out->cut_cells = true;
        }
        bytes += c->type == RV_CELL_TEXT ? c->text.len + 1 : 8;
    }
    if (bytes > r->ask->max_bytes - r->bytes) {
        r->out->has_more = true;
        return RV_STORE_ENOUGH;
    }
    r->bytes += bytes;
    r->n++;
    return r->ask->on_row(r->ask->self, cells, n, err);
}

int rv_store_ask(rv_store *s, const struct rv_store_scope *scope, const struct rv_store_ask *ask,
                 struct rv_store_asked *out, rv_err **err)
{
    struct rv_store_scope sc;
    struct rv_store_asked got = {false, false};
    struct rv_asking_rows rows = {.ask = ask, .out = &got};
    int rc = rv_store_check_scope(scope, &sc, err);

    if (rc == 0 && s->in_group)
        rc = RV_FAIL(err, RV_E_STATE, "a statement cannot be part of a group");
    if (rc == 0 && (ask->max_rows < 1 || ask->max_ms < 1 || ask->max_cell < 4))
        rc = RV_FAIL(err, RV_E_INVALID, "a statement needs limits of its rows, time and cells");
    if ((rc = rv_store_enter_read(s, rc, "ask", err)) != 0)
        return rc;
    rc = s->sql->driver->ask(s->sql, &sc, &rows, err);
    if (rc == 0)
        *out = got;
    return rv_store_leave_read(s, rc, err);
}

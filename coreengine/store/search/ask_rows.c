/* Rows of a statement that others wrote: both databases pass them here, where they are cut to the limits. */
#include "coreengine/store/search/ask_internal.h"

int store_ask_columns(struct rv_asking_rows *r, const char *const *names, size_t n, rv_err **err)
{
    return r->ask->on_columns ? r->ask->on_columns(r->ask->self, names, n, err) : 0;
}

int store_ask_row(struct rv_asking_rows *r, struct rv_cell *cells, size_t n, rv_err **err)
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

int store_ask_fail_long(rv_err **err)
{
    RV_FAIL(err, RV_E_LIMIT, "a value of the statement is longer than " RV_ASK_VALUE " bytes");
    rv_err_set_hint(err, "shorten texts: left(content, 1000)");
    return RV_E_LIMIT;
}

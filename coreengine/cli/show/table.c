/* Columns for people. */
#include "coreengine/cli/show/table_internal.h"

#include "coreengine/cli/cli.h"
#include "coreengine/cli/show/width_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>

#define MAX_CELL_BYTES ((size_t)1024) /* of one cell: several lines of a terminal; the rest is cut */
/* of all cells in memory: widths are known at the end; more is an error */
#define MAX_TABLE_BYTES ((size_t)256 << 20)
#define MORE            "..."
#define WIDTH           40                 /* of a column of a query */
#define KEPT            37                 /* of a longer value, before MORE */
#define MAX_CELL        ((size_t)16 << 20) /* bytes before a value is cut: as RV_ENTITY_MAX_BYTES */

struct cell {
    const char *text; /* in the arena */
    size_t width;
};
struct rv_cli_table {
    const struct rv_cli_column *columns;
    size_t n_columns;
    rv_arena *arena;    /* dies with the table */
    struct cell *cells; /* owned */
    size_t n, cap;
    bool failed;
};

rv_cli_table *cli_table_new(const struct rv_cli_column *columns, size_t n)
{
    rv_cli_table *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    *t = (rv_cli_table){.columns = columns, .n_columns = n, .arena = rv_arena_new(MAX_TABLE_BYTES)};
    if (t->arena)
        return t;
    free(t);
    return NULL;
}

void cli_table_free(rv_cli_table *t)
{
    if (!t)
        return;
    rv_arena_free(t->arena);
    free(t->cells);
    free(t);
}

void cli_table_add(rv_cli_table *t, rv_str cell)
{
    const struct rv_cli_column *column = &t->columns[t->n % t->n_columns];
    rv_buf text = RV_BUF_INIT(2 * MAX_CELL_BYTES);

    if (!rv_has_room(&t->cells, &t->cap, t->n + 1, sizeof *t->cells)) {
        t->failed = true;
        return;
    }
    cli_write_preview(cell, MAX_CELL_BYTES, &text);
    if (column->most && cli_width(rv_buf_str(&text)) > column->most) {
        rv_buf_truncate(&text, cli_fitting(rv_buf_str(&text), column->most - (sizeof MORE - 1)).len);
        rv_buf_puts(&text, MORE);
    }
    struct cell *c = &t->cells[t->n++];
    *c = (struct cell){rv_arena_dup(t->arena, rv_buf_str(&text)), cli_width(rv_buf_str(&text))};
    t->failed |= !c->text;
    rv_buf_fini(&text);
}

void cli_table_add_text(rv_cli_table *t, const char *cell)
{
    cli_table_add(t, rv_str_of(cell ? cell : "-"));
}

void cli_table_add_int(rv_cli_table *t, int64_t n)
{
    rv_buf text = RV_BUF_INIT(64);

    rv_app_write_count(&text, n);
    cli_table_add(t, rv_buf_str(&text));
    rv_buf_fini(&text);
}

static void write_cell(const struct rv_cli_column *column, size_t width, rv_str text, rv_buf *b)
{
    size_t used = cli_width(text), blanks = width > used ? width - used : 0;

    for (size_t i = 0; column->right && i < blanks; i++)
        rv_buf_putc(b, ' ');
    rv_buf_add_str(b, text);
    for (size_t i = 0; !column->right && i < blanks; i++)
        rv_buf_putc(b, ' ');
}

static void end_line(rv_buf *b)
{
    while (b->len && b->ptr[b->len - 1] == ' ')
        rv_buf_truncate(b, b->len - 1);
    rv_buf_putc(b, '\n');
}

static size_t widest(const rv_cli_table *t, size_t column)
{
    size_t width = cli_width(rv_str_of(t->columns[column].head));

    for (size_t i = column; i < t->n; i += t->n_columns)
        width = t->cells[i].width > width ? t->cells[i].width : width;
    return width;
}

int cli_table_write(const rv_cli_table *t, bool bold_heads, rv_buf *b, rv_err **err)
{
    size_t *widths = calloc(t->n_columns, sizeof *widths);

    if (!widths || t->failed) {
        free(widths);
        return RV_FAIL(err, RV_E_NOMEM, "write a table");
    }
    for (size_t c = 0; c < t->n_columns; c++)
        widths[c] = widest(t, c);
    rv_buf_puts(b, t->n && bold_heads ? "\033[1m" : "");
    for (size_t c = 0; t->n && c < t->n_columns; c++) {
        write_cell(&t->columns[c], widths[c], rv_str_of(t->columns[c].head), b);
        rv_buf_puts(b, c + 1 < t->n_columns ? "  " : "");
    }
    if (t->n)
        end_line(b);
    rv_buf_puts(b, t->n && bold_heads ? "\033[0m" : "");
    for (size_t i = 0; i < t->n; i++) {
        size_t c = i % t->n_columns;
        write_cell(&t->columns[c], widths[c], rv_str_of(t->cells[i].text), b);
        if (c + 1 < t->n_columns)
            rv_buf_puts(b, "  ");
        else
            end_line(b);
    }
    free(widths);
    return 0;
}

/* --- rows of a query (p8 20): one column for each member that any row has --- */

static void write_column(rv_str text, bool is_last, rv_buf *b)
{
    rv_buf shown = RV_BUF_INIT(MAX_CELL);
    size_t width = rv_utf8_count(text);
    bool is_cut = width > WIDTH;

    if (is_cut) {
        text = rv_utf8_first(text, KEPT);
        width = KEPT + 3;
    }
    cli_write_preview(text, text.len, &shown);
    rv_buf_add_str(b, rv_buf_str(&shown));
    rv_buf_puts(b, is_cut ? MORE : "");
    for (size_t i = width; !is_last && i < WIDTH; i++)
        rv_buf_putc(b, ' ');
    rv_buf_puts(b, is_last ? "\n" : " | ");
    rv_buf_fini(&shown);
}

static void write_value(json_object *value, bool is_last, rv_buf *b)
{
    rv_buf text = RV_BUF_INIT(MAX_CELL);

    if (json_object_is_type(value, json_type_string)) {
        write_column(rv_json_str(value), is_last, b);
    } else {
        if (value)
            rv_json_write(value, &text);
        write_column(rv_buf_str(&text), is_last, b);
    }
    rv_buf_fini(&text);
}

static int add_columns(json_object *members, json_object *columns, rv_err **err)
{
    int rc = 0;

    if (!members)
        return 0;
    json_object_object_foreach (members, key, value) {
        if (strcmp(key, "data") == 0 && json_object_is_type(value, json_type_object))
            rc = rc < 0 ? rc : add_columns(value, columns, err);
        else if (rc == 0 && !json_object_object_get_ex(columns, key, NULL))
            rc = rv_json_set_bool(columns, key, true, err);
    }
    return rc;
}

/* The names of all columns, in the order in which rows bring them. */
static int collect_columns(json_object *rows, json_object *columns, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < json_object_array_length(rows) && rc == 0; i++)
        rc = add_columns(json_object_array_get_idx(rows, i), columns, err);
    return rc;
}

static void write_row(json_object *columns, json_object *row, rv_buf *b)
{
    size_t left = json_object_object_length(columns);

    json_object_object_foreach (columns, key, unused) {
        json_object *value = NULL;
        (void)unused;
        if (!json_object_object_get_ex(row, key, &value))
            json_object_object_get_ex(rv_json_get_obj(row, "data"), key, &value);
        write_value(value, --left == 0, b);
    }
}

int cli_query_write_table(json_object *rows, rv_buf *b, rv_err **err)
{
    json_object *columns;

    if (json_object_array_length(rows) == 0) {
        rv_buf_puts(b, "(no results)\n");
        return 0;
    }
    columns = json_object_new_object();
    int rc = columns ? collect_columns(rows, columns, err) : RV_FAIL(err, RV_E_NOMEM, "write a table");
    if (rc == 0) {
        size_t left = json_object_object_length(columns);
        json_object_object_foreach (columns, key, unused) {
            (void)unused;
            write_column(rv_str_of(key), --left == 0, b);
        }
    }
    for (size_t i = 0; rc == 0 && i < json_object_array_length(rows); i++)
        write_row(columns, json_object_array_get_idx(rows, i), b);
    json_object_put(columns);
    return rc;
}

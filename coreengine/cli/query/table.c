/* Rows of a query as a table (p8 20): one column for each member that any row has, 40 characters wide. */
#include "coreengine/cli/query/query.h"

#include "coreengine/cli/runs/runs.h"

#include <json-c/linkhash.h>
#include <string.h>

#define WIDTH     40
#define KEPT      37 /* of a longer value, before "..." */
#define MAX_BYTES ((size_t)16 << 20)

static size_t width_of(rv_str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    return n;
}

static void write_cell(rv_str text, bool is_last, rv_buf *b)
{
    rv_buf shown = RV_BUF_INIT(MAX_BYTES);
    size_t width = width_of(text), at = 0;

    if (width > WIDTH) {
        for (size_t n = 0; n <= KEPT; at++)
            n += ((unsigned char)text.ptr[at] & 0xc0) != 0x80;
        text.len = at - 1;
        width = KEPT + 3;
    }
    rv_cli_write_preview(text, text.len, &shown);
    rv_buf_add_str(b, rv_buf_str(&shown));
    rv_buf_puts(b, at ? "..." : "");
    for (size_t i = width; !is_last && i < WIDTH; i++)
        rv_buf_putc(b, ' ');
    rv_buf_puts(b, is_last ? "\n" : " | ");
    rv_buf_fini(&shown);
}

static void write_value(json_object *value, bool is_last, rv_buf *b)
{
    rv_buf text = RV_BUF_INIT(MAX_BYTES);

    if (json_object_is_type(value, json_type_string)) {
        write_cell(rv_json_str(value), is_last, b);
    } else {
        if (value)
            rv_json_write(value, &text);
        write_cell(rv_buf_str(&text), is_last, b);
    }
    rv_buf_fini(&text);
}

/* The names of all columns, in the order in which rows bring them. */
static int collect_columns(json_object *rows, json_object *columns, rv_err **err)
{
    int rc = rv_json_set_bool(columns, "entity_type", true, err);

    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        json_object *data = rv_json_get_obj(json_object_array_get_idx(rows, i), "data");
        json_object_object_foreach (data, key, value) {
            (void)value;
            if (rc == 0 && !json_object_object_get_ex(columns, key, NULL))
                rc = rv_json_set_bool(columns, key, true, err);
        }
    }
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

int rv_query_write_table(json_object *rows, rv_buf *b, rv_err **err)
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
            write_cell(rv_str_of(key), --left == 0, b);
        }
    }
    for (size_t i = 0; rc == 0 && i < json_object_array_length(rows); i++)
        write_row(columns, json_object_array_get_idx(rows, i), b);
    json_object_put(columns);
    return rc;
}

/* Tables of CSV, of JSON and lines of JSON, and of YAML. Pure: the caller brings the text. */
#include "coreengine/lang/lang.h"

#include <stdlib.h>
#include <string.h>

/* --- what all kinds share --- */

static rv_str rest_of(rv_str s, size_t n)
{
    return (rv_str){s.ptr + n, s.len - n};
}

struct builder {
    const char *name;
    json_object *rows; /* owned */
    int *lines;        /* owned */
    size_t n, cap;
};

/* Takes row on every path. */
static int add_row_take(struct builder *b, json_object *row, int line, rv_err **err)
{
    const struct rv_src src = {b->name, line, 1};

    if (b->n == RV_TABLE_MAX_ROWS) {
        json_object_put(row);
        return RV_FAIL_AT(err, &src, RV_E_LIMIT, "a table has at most %d rows", RV_TABLE_MAX_ROWS);
    }
    if (!rv_has_room(&b->lines, &b->cap, b->n + 1, sizeof *b->lines)) {
        json_object_put(row);
        return RV_FAIL(err, RV_E_NOMEM, "read a table");
    }
    b->lines[b->n++] = line;
    return rv_json_push_take(b->rows, row, err);
}

/* --- CSV --- */

struct csv {
    struct builder *out;
    const char *text; /* its beginning */
    rv_str rest;
    int line;
    rv_buf cell;
    bool quoted;
    json_object *names; /* array; owned */
};

enum csv_end { CSV_COMMA, CSV_LINE, CSV_TEXT };

static enum csv_end end_of_cell(struct csv *c)
{
    rv_str *t = &c->rest;

    if (t->len == 0)
        return CSV_TEXT;
    if (t->ptr[0] == ',') {
        *t = rest_of(*t, 1);
        return CSV_COMMA;
    }
    *t = rest_of(*t, t->ptr[0] == '\r' ? 2 : 1);
    c->line++;
    return CSV_LINE;
}

static bool at_line_end(rv_str t)
{
    return t.len > 0 && (t.ptr[0] == '\n' || (t.len > 1 && t.ptr[0] == '\r' && t.ptr[1] == '\n'));
}

/* Of what is read next, in characters from 1. */
static int column_of(const struct csv *c)
{
    const char *at = c->rest.ptr;
    int n = 1;

    while (at > c->text && at[-1] != '\n') {
        at--;
        n += ((unsigned char)*at & 0xC0) != 0x80;
    }
    return n;
}

static int quoted_cell(struct csv *c, rv_err **err)
{
    const struct rv_src begin = {c->out->name, c->line, column_of(c)};
    rv_str *t = &c->rest;

    *t = rest_of(*t, 1);
    for (;;) {
        if (t->len == 0) {
            int rc = RV_FAIL_AT(err, &begin, RV_E_PARSE, "a quoted cell does not end");
            rv_err_set_hint(err, "a quote inside a quoted cell is written twice");
            return rc;
        }
        if (t->ptr[0] == '"' && !(t->len > 1 && t->ptr[1] == '"'))
            break;
        c->line += t->ptr[0] == '\n';
        rv_buf_putc(&c->cell, t->ptr[0]);
        *t = rest_of(*t, t->ptr[0] == '"' ? 2 : 1);
    }
    *t = rest_of(*t, 1);
    if (t->len > 0 && t->ptr[0] != ',' && !at_line_end(*t)) {
        const struct rv_src src = {c->out->name, c->line, column_of(c)};
        int rc = RV_FAIL_AT(err, &src, RV_E_PARSE, "a comma is missing behind a quoted cell");
        rv_err_set_hint(err, "a quote inside a quoted cell is written twice");
        return rc;
    }
    return 0;
}

static int read_cell(struct csv *c, enum csv_end *end, rv_err **err)
{
    rv_str *t = &c->rest;
    int rc = 0;

    rv_buf_clear(&c->cell);
    c->quoted = t->len > 0 && t->ptr[0] == '"';
    if (c->quoted) {
        rc = quoted_cell(c, err);
    } else {
        while (t->len > 0 && t->ptr[0] != ',' && !at_line_end(*t)) {
            rv_buf_putc(&c->cell, t->ptr[0]);
            *t = rest_of(*t, 1);
        }
    }
    if (rc == 0)
        rc = rv_buf_check(&c->cell, "cell", err);
    if (rc == 0)
        *end = end_of_cell(c);
    return rc;
}

/* NULL: out of memory. */
static json_object *value_of_cell(const struct csv *c)
{
    const struct rv_json_opts opts = {.max_bytes = RV_TABLE_MAX_BYTES};
    rv_str text = rv_buf_str(&c->cell);
    json_object *v = NULL;

    int rc = c->quoted || text.len == 0
                 ? RV_E_PARSE
                 : rv_json_parse(text, &opts, &v,
                                 RV_CODE_ONLY("a cell that is not JSON is text; want of memory is NULL to the caller"));
    if (rc == RV_E_NOMEM)
        return NULL;
    if (rc == 0 && (json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double) ||
                    json_object_is_type(v, json_type_boolean)))
        return v;
    json_object_put(v);
    return json_object_new_string_len(text.len ? text.ptr : "", (int)text.len);
}

static int read_names(struct csv *c, rv_err **err)
{
    const struct rv_src src = {c->out->name, 1, 1};
    enum csv_end end = CSV_COMMA;
    int rc = 0;

    while (rc == 0 && end == CSV_COMMA) {
        rc = read_cell(c, &end, err);
        if (rc == 0 && c->cell.len == 0)
            rc = RV_FAIL_AT(err, &src, RV_E_INVALID, "column %zu has no name", json_object_array_length(c->names) + 1);
        for (size_t i = 0; rc == 0 && i < json_object_array_length(c->names); i++)
            if (rv_str_eq(rv_json_str(json_object_array_get_idx(c->names, i)), rv_buf_str(&c->cell)))
                rc = RV_FAIL_AT(err, &src, RV_E_INVALID, "two columns are called \"%s\"", rv_buf_cstr(&c->cell));
        if (rc == 0 && json_object_array_length(c->names) == RV_TABLE_MAX_COLUMNS)
            rc = RV_FAIL_AT(err, &src, RV_E_LIMIT, "a table has at most %d columns", RV_TABLE_MAX_COLUMNS);
        if (rc == 0)
            rc = rv_json_push_take(c->names, json_object_new_string_len(rv_buf_cstr(&c->cell), (int)c->cell.len), err);
    }
    return rc;
}

static int read_row(struct csv *c, rv_err **err)
{
    const struct rv_src src = {c->out->name, c->line, 1};
    json_object *row = json_object_new_object();
    size_t n_names = json_object_array_length(c->names), n = 0;
    enum csv_end end = CSV_COMMA;
    int rc = row ? 0 : RV_FAIL(err, RV_E_NOMEM, "read a table");

    for (; rc == 0 && end == CSV_COMMA; n++) {
        rc = read_cell(c, &end, err);
        if (rc == 0 && n < n_names)
            rc = rv_json_set_take(row, json_object_get_string(json_object_array_get_idx(c->names, n)), value_of_cell(c),
                                  err);
    }
    if (rc == 0 && n != n_names) {
        rc = RV_FAIL_AT(err, &src, RV_E_PARSE, "the row has %zu cell%s, the first line names %zu column%s", n,
                        n == 1 ? "" : "s", n_names, n_names == 1 ? "" : "s");
        rv_err_set_hint(err, "a cell with a comma in it stands in double quotes");
    }
    if (rc < 0) {
        json_object_put(row);
        return rc;
    }
    return add_row_take(c->out, row, src.line, err);
}

static int read_csv(rv_str text, struct builder *b, rv_err **err)
{
    const struct rv_src src = {b->name, 1, 1};
    struct csv c = {.out = b, .rest = rv_utf8_unmark(text), .line = 1, .cell = RV_BUF_INIT(RV_TABLE_MAX_BYTES)};
    int rc = 0;

    if (rv_str_trim(c.rest).len == 0) {
        rc = RV_FAIL_AT(err, &src, RV_E_INVALID, "the table is empty");
        rv_err_set_hint(err, "the first line names the columns, for example: question,answer");
        return rc;
    }
    c.text = c.rest.ptr;
    c.names = json_object_new_array();
    if (!c.names)
        rc = RV_FAIL(err, RV_E_NOMEM, "read a table");
    if (rc == 0)
        rc = read_names(&c, err);
    while (rc == 0 && c.rest.len > 0) {
        if (at_line_end(c.rest))
            RV_IGNORE(end_of_cell(&c), "an empty line is not a row");
        else
            rc = read_row(&c, err);
    }
    json_object_put(c.names);
    rv_buf_fini(&c.cell);
    return rc;
}

/* --- lines of JSON --- */

static int read_lines(rv_str text, struct builder *b, rv_err **err)
{
    int rc = 0;

    for (int line = 1; rc == 0 && text.len > 0; line++) {
        const char *nl = memchr(text.ptr, '\n', text.len);
        size_t n = nl ? (size_t)(nl - text.ptr) : text.len;
        rv_str one = rv_str_trim((rv_str){text.ptr, n});
        const struct rv_src src = {b->name, line, 1};
        json_object *row = NULL;

        text = rest_of(text, nl ? n + 1 : n);
        if (one.len == 0)
            continue;
        rc = rv_json_parse(one, NULL, &row, err);
        if (rc < 0)
            return RV_WRAP_AT(err, &src, rc, "read a row");
        if (!json_object_is_type(row, json_type_object)) {
            json_object_put(row);
            return RV_FAIL_AT(err, &src, RV_E_INVALID, "a row must be an object");
        }
        rc = add_row_take(b, row, line, err);
    }
    return rc;
}

/* --- YAML --- */

static int add_node(const struct rv_node *node, struct builder *b, rv_err **err)
{
    json_object *row = NULL;

    if (node->kind != RV_NODE_MAP)
        return RV_FAIL_AT(err, &node->src, RV_E_INVALID, "a row must be a map, not a %s",
                          rv_node_kind_text(node->kind));
    int rc = rv_node_build_json(node, &row, err);
    return rc == 0 ? add_row_take(b, row, node->src.line, err) : rc;
}

static int read_yaml(rv_str text, struct builder *b, rv_err **err)
{
    const struct rv_src top = {b->name, 1, 1};
    rv_findings *findings = rv_findings_new();
    const struct rv_node *root = NULL;
    rv_yaml *doc = NULL;

    int rc = findings ? rv_yaml_parse(text, b->name, findings, &doc, err) : RV_FAIL(err, RV_E_NOMEM, "read a table");
    if (rc == 0)
        rc = rv_findings_check(findings, err);
    if (rc == 0)
        rc = rv_findings_raise_first_error(findings, err);
    if (rc == 0)
        root = rv_yaml_root(doc);
    if (rc == 0 && (!root || root->kind != RV_NODE_LIST))
        rc = RV_FAIL_AT(err, root ? &root->src : &top, RV_E_INVALID, "a table must be a list of maps");
    for (size_t i = 0; rc == 0 && i < root->n; i++)
        rc = add_node(root->items[i], b, err);
    rv_yaml_free(doc);
    rv_findings_free(findings);
    return rc;
}

/* --- JSON: not as YAML, whose reader takes the line ends of Unicode in a text for line breaks --- */

/* To the next object of the list; the line goes along. */
static rv_str skip_to_object(rv_str text, int *line)
{
    while (text.len > 0 && strchr(" \t\r\n,[", text.ptr[0])) {
        *line += text.ptr[0] == '\n';
        text = rest_of(text, 1);
    }
    return text;
}

/* list: of the text; its items are the caller's. */
static int add_items(rv_str text, json_object *list, struct builder *b, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_TABLE_MAX_BYTES};
    size_t n = json_object_array_length(list);
    int line = 1, rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *row = json_object_array_get_idx(list, i);
        struct rv_json_scan scan = {0};

        text = skip_to_object(text, &line);
        const struct rv_src src = {b->name, line, 1};
        if (!json_object_is_type(row, json_type_object))
            return RV_FAIL_AT(err, &src, RV_E_INVALID, "a row must be an object, not %s", rv_json_type_text(row));
        rc = add_row_take(b, json_object_get(row), line, err);
        if (rc == 0)
            rc = rv_json_scan(text, &opts, &scan, NULL, err);
        for (size_t k = 0; k < scan.end; k++)
            line += text.ptr[k] == '\n';
        text = rest_of(text, scan.end);
    }
    return rc;
}

static int read_json(rv_str text, struct builder *b, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_TABLE_MAX_BYTES};
    const struct rv_src top = {b->name, 1, 1};
    json_object *list = NULL;

    text = rv_utf8_unmark(text);
    int rc = rv_json_parse(text, &opts, &list, err);
    if (rc < 0)
        return RV_WRAP_AT(err, &top, rc, "read a table");
    rc = json_object_is_type(list, json_type_array)
             ? add_items(text, list, b, err)
             : RV_FAIL_AT(err, &top, RV_E_INVALID, "a table must be a list of objects");
    json_object_put(list);
    return rc;
}

/* --- kinds --- */

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Refuse a text that is not UTF-8 or has the byte 0. RV_E_INVALID: with the place of the first such byte. */
static int check_text(rv_str text, const char *name, rv_err **err)
{
    const char *zero = text.len > 0 ? memchr(text.ptr, 0, text.len) : NULL;
    size_t bad = 0;
    int line = 1;

    if (!rv_utf8_valid(text, &bad))
        zero = text.ptr + bad;
    else if (!zero)
        return 0;
    for (const char *p = text.ptr; p < zero; p++)
        line += *p == '\n';
    struct csv at = {.text = text.ptr, .rest = {zero, 0}};
    const struct rv_src src = {name, line, column_of(&at)};
    int rc = *zero
                 ? RV_FAIL_AT(err, &src, RV_E_INVALID, "the byte 0x%02x is not valid UTF-8 here", (unsigned char)*zero)
                 : RV_FAIL_AT(err, &src, RV_E_INVALID, "a NUL byte is here, which a text does not have");
    rv_err_set_hint(err, *zero ? "save the file as UTF-8" : "take it out");
    return rc;
}

int rv_table_parse(rv_str text, const char *name, struct rv_table *out, rv_err **err)
{
    static const struct {
        const char *end;
        int (*read)(rv_str text, struct builder *b, rv_err **err);
    } kinds[] = {{".csv", read_csv},   {".jsonl", read_lines}, {".ndjson", read_lines},
                 {".yaml", read_yaml}, {".yml", read_yaml},    {".json", read_json}};
    const struct rv_src src = {name, 1, 1};
    struct builder b = {.name = name};
    int rc;

    if (text.len > RV_TABLE_MAX_BYTES)
        return RV_FAIL_AT(err, &src, RV_E_LIMIT, "a table has at most %zu bytes", RV_TABLE_MAX_BYTES);
    rc = check_text(text, name, err);
    if (rc < 0)
        return rc;
    b.rows = json_object_new_array();
    if (!b.rows)
        return RV_FAIL(err, RV_E_NOMEM, "read a table");
    size_t kind = 0;
    while (kind < RV_COUNT(kinds) && !ends_with(name, kinds[kind].end))
        kind++;
    if (kind < RV_COUNT(kinds)) {
        rc = kinds[kind].read(text, &b, err);
    } else {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "\"%s\" is not a table", name);
        rv_err_set_hint(err, "tables end with .csv, .jsonl, .ndjson, .yaml, .yml or .json");
    }
    if (rc < 0) {
        json_object_put(b.rows);
        free(b.lines);
    } else {
        *out = (struct rv_table){b.rows, b.lines};
    }
    return rc;
}

void rv_table_fini(struct rv_table *t)
{
    json_object_put(t->rows);
    free(t->lines);
    *t = (struct rv_table){NULL, NULL};
}

/* Tables of results. One for the models that `reeve test --model` names: a row for each test, a column for each model.
 * One for each test that has a matrix: its first axis makes the columns, all others the rows; a single axis makes the
 * rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/test_report_internal.h"

#define MAX_NAME  48                /* characters of a test's name in the table for people: half a line of a terminal */
#define MAX_LABEL ((size_t)1 << 20) /* bytes of a row's: all its values */
#define ONLY      "result"          /* the column of a matrix with one axis */

static json_object *row_of(const struct rv_test_matrix *m, const char *file, const char *test)
{
    for (size_t i = 0; i < json_object_array_length(m->rows); i++) {
        json_object *row = json_object_array_get_idx(m->rows, i);
        if (strcmp(rv_json_text_or(row, "file", ""), file) == 0 && strcmp(rv_json_text_or(row, "test", ""), test) == 0)
            return row;
    }
    return NULL;
}

static int add_row(struct rv_test_matrix *m, const char *file, const char *test, json_object **out, rv_err **err)
{
    json_object *row = json_object_new_object();
    struct rv_json_build b = {.err = err};

    if (!row)
        return RV_FAIL(err, RV_E_NOMEM, "compare results");
    rv_json_build_text(&b, row, "file", file);
    rv_json_build_text(&b, row, "test", test);
    rv_json_build(&b, row, "results", json_object_new_array());
    if (b.rc == 0) {
        *out = row;
        return rv_json_push_take(m->rows, row, err);
    }
    json_object_put(row);
    return b.rc;
}

/* Where a result stands in the matrix. Borrowed. */
struct cell_place {
    const char *file, *name, *column;
};
static int add_cell(struct rv_test_matrix *m, const struct cell_place *at, const struct rv_test_report *r,
                    json_object **out, rv_err **err)
{
    json_object *row = row_of(m, at->file, at->name), *cell;
    struct rv_json_build b = {.err = err};
    int rc = row ? 0 : add_row(m, at->file, at->name, &row, err);

    if (rc < 0)
        return rc;
    cell = json_object_new_object();
    if (!cell)
        return RV_FAIL(err, RV_E_NOMEM, "compare results");
    rv_json_build_text(&b, cell, m->column_key, at->column);
    rv_json_build(&b, cell, "passed", json_object_new_boolean(rv_test_has_passed(r)));
    rv_json_build_int(&b, cell, "runs", r->rate.n);
    rv_json_build_int(&b, cell, "runs_passed", r->rate.n_passed);
    rv_json_build(&b, cell, "usd", rv_json_new_double((double)r->cost_micro_usd / 1e6));
    if (b.rc == 0) {
        *out = cell;
        return rv_json_push_take(rv_json_get_arr(row, "results"), cell, err);
    }
    json_object_put(cell);
    return b.rc;
}

/* What stands in a row below a column; NULL: that was not run, or the pipeline was invalid. */
static json_object *cell_of(const struct rv_test_matrix *m, json_object *row, const char *column)
{
    json_object *results = rv_json_get_arr(row, "results");

    for (size_t i = 0; i < json_object_array_length(results); i++) {
        json_object *cell = json_object_array_get_idx(results, i);
        const char *name = rv_json_text_or(cell, m->column_key, "");
        if (strcmp(name, column) == 0)
            return cell;
    }
    return NULL;
}

/* "ok", "FAIL 3/5", "-" */
static bool write_cell(json_object *cell, rv_buf *b)
{
    if (!cell) {
        rv_buf_puts(b, "-");
        return false;
    }
    bool passed = rv_json_bool_or(cell, "passed", false);
    int64_t n = rv_json_int_or(cell, "runs", 0);
    int64_t n_passed = rv_json_int_or(cell, "runs_passed", 0);
    rv_buf_puts(b, passed ? "ok" : "FAIL");
    if (n > 1)
        rv_buf_printf(b, " %lld/%lld", (long long)n_passed, (long long)n);
    return passed;
}

/* Of one column, over all rows. */
struct column {
    size_t n, n_passed;
    double usd;
};

static struct column sum_up(const struct rv_test_matrix *m, const char *column)
{
    struct column c = {0};

    for (size_t i = 0; i < json_object_array_length(m->rows); i++) {
        json_object *cell = cell_of(m, json_object_array_get_idx(m->rows, i), column), *usd = NULL;
        bool passed = false;
        RV_IGNORE(!cell || !rv_json_get_bool(cell, "passed", &passed), "it was not run");
        c.n += cell || !m->about;
        c.n_passed += passed;
        if (cell && json_object_object_get_ex(cell, "usd", &usd))
            c.usd += json_object_get_double(usd);
    }
    return c;
}

static void add_sums(const struct rv_test_matrix *m, rv_cli_table *t)
{
    char text[64];

    cli_table_add_text(t, "passed");
    for (size_t k = 0; k < m->n_columns; k++) {
        const struct column c = sum_up(m, m->columns[k]);
        snprintf(text, sizeof text, "%zu of %zu", c.n_passed, c.n);
        cli_table_add_text(t, text);
    }
    cli_table_add_text(t, "cost in US dollars");
    for (size_t k = 0; k < m->n_columns; k++) {
        rv_format(text, sizeof text, "%.6f", sum_up(m, m->columns[k]).usd);
        cli_table_add_text(t, text);
    }
}

static int write_table(const struct rv_test_matrix *m, bool color, rv_buf *out, rv_err **err)
{
    struct rv_cli_column *columns = calloc(m->n_columns + 1, sizeof *columns);
    rv_cli_table *t = NULL;
    int rc = 0;

    if (columns) {
        columns[0] = (struct rv_cli_column){m->corner, MAX_NAME, false};
        for (size_t k = 0; k < m->n_columns; k++)
            columns[k + 1] = (struct rv_cli_column){m->columns[k], 0, false};
        t = cli_table_new(columns, m->n_columns + 1);
    }
    for (size_t i = 0; t && i < json_object_array_length(m->rows); i++) {
        json_object *row = json_object_array_get_idx(m->rows, i);
        const char *test = rv_json_text_or(row, "test", "");
        cli_table_add_text(t, test);
        for (size_t k = 0; k < m->n_columns; k++) {
            rv_buf cell = RV_BUF_INIT(256);
            write_cell(cell_of(m, row, m->columns[k]), &cell);
            cli_table_add_text(t, rv_buf_cstr(&cell));
            rv_buf_fini(&cell);
        }
    }
    if (t && json_object_array_length(m->rows) > 0)
        add_sums(m, t);
    rc = t ? cli_table_write(t, color, out, err) : RV_FAIL(err, RV_E_NOMEM, "compare results");
    cli_table_free(t);
    free(columns);
    return rc;
}

static void write_html_table(const struct rv_test_matrix *m, rv_buf *b)
{
    const char *test = "", *file = "";

    if (m->about && rv_json_get_text(m->about, "test", &test) && rv_json_get_text(m->about, "file", &file)) {
        rv_buf_puts(b, "<h2>");
        rv_buf_add_xml(b, rv_str_of(test));
        rv_buf_puts(b, " <span class=\"dim\">");
        rv_buf_add_xml(b, rv_str_of(file));
        rv_buf_puts(b, "</span></h2>\n");
    } else {
        rv_buf_puts(b, "<h2>Models</h2>\n");
    }
    rv_buf_puts(b, "<table><thead><tr><th>");
    rv_buf_add_xml(b, rv_str_of(m->about ? m->corner : "Test"));
    rv_buf_puts(b, "</th>");
    for (size_t k = 0; k < m->n_columns; k++) {
        rv_buf_puts(b, "<th>");
        rv_buf_add_xml(b, rv_str_of(m->columns[k]));
        rv_buf_puts(b, "</th>");
    }
    rv_buf_puts(b, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < json_object_array_length(m->rows); i++) {
        json_object *row = json_object_array_get_idx(m->rows, i);
        const char *name = rv_json_text_or(row, "test", "");
        rv_buf_puts(b, "<tr><td>");
        rv_buf_add_xml(b, rv_str_of(name));
        rv_buf_puts(b, "</td>");
        for (size_t k = 0; k < m->n_columns; k++) {
            rv_buf cell = RV_BUF_INIT(256);
            bool passed = write_cell(cell_of(m, row, m->columns[k]), &cell);
            rv_buf_printf(b, "<td class=\"%s\">%s</td>", passed ? "ok" : "bad", rv_buf_cstr(&cell));
            rv_buf_fini(&cell);
        }
        rv_buf_puts(b, "</tr>\n");
    }
    rv_buf_puts(b, "<tr><td class=\"dim\">passed</td>");
    for (size_t k = 0; k < m->n_columns; k++) {
        const struct column c = sum_up(m, m->columns[k]);
        rv_buf_printf(b, "<td class=\"dim\">%zu of %zu</td>", c.n_passed, c.n);
    }
    rv_buf_puts(b, "</tr>\n<tr><td class=\"dim\">cost in US dollars</td>");
    for (size_t k = 0; k < m->n_columns; k++)
        rv_buf_printf(b, "<td class=\"dim\">%.6f</td>", sum_up(m, m->columns[k]).usd);
    rv_buf_puts(b, "</tr>\n</tbody></table>\n");
}

/* --- tests that have a matrix: one table each --- */

static int list_axes(const struct rv_test_place *place, json_object *about, rv_err **err)
{
    json_object *axes = json_object_new_array();
    int rc = rv_json_set_take(about, "axes", axes, err);

    for (size_t i = 0; i < place->n_labels && rc == 0; i++)
        rc = rv_json_push_take(axes, json_object_new_string(place->labels[i].axis), err);
    return rc;
}

static int begin_table(struct rv_test_tables *c, const char *file, const struct rv_test_config *test, rv_err **err)
{
    if (!rv_has_room(&c->of_tests, &c->cap, c->n + 1, sizeof *c->of_tests))
        return RV_FAIL(err, RV_E_NOMEM, "compare results");
    struct rv_test_matrix *m = &c->of_tests[c->n++];
    *m = (struct rv_test_matrix){.rows = json_object_new_array(),
                                 .about = json_object_new_object(),
                                 .column_key = "column",
                                 .corner = "COMBINATION",
                                 .written = test->place.written};
    if (!m->rows || !m->about)
        return RV_FAIL(err, RV_E_NOMEM, "compare results");
    int rc = rv_json_set_text(m->about, "file", file, err);
    if (rc == 0)
        rc = rv_json_set_text(m->about, "test", test->place.name, err);
    return rc == 0 ? list_axes(&test->place, m->about, err) : rc;
}

static int have_column(struct rv_test_matrix *m, const char *name, rv_err **err)
{
    for (size_t i = 0; i < m->n_columns; i++)
        if (strcmp(m->columns[i], name) == 0)
            return 0;
    const char **more = realloc(m->columns, (m->n_columns + 1) * sizeof *more);
    char *own = more ? strdup(name) : NULL;
    if (more)
        m->columns = more;
    if (!own)
        return RV_FAIL(err, RV_E_NOMEM, "compare results");
    m->columns[m->n_columns++] = own;
    return 0;
}

/* "[3] prompts=short, question=Why?" */
static void write_row_name(const struct rv_test_place *place, rv_buf *b)
{
    size_t first = place->n_labels > 1 ? 1 : 0;

    if (place->number > 0)
        rv_buf_printf(b, "[%d] ", place->number);
    for (size_t i = first; i < place->n_labels; i++)
        rv_buf_printf(b, "%s%s=%s", i > first ? ", " : "", place->labels[i].axis, place->labels[i].label);
}

static int add_labels(const struct rv_test_place *place, json_object *cell, rv_err **err)
{
    json_object *labels = json_object_new_object();
    int rc = rv_json_set_take(cell, "labels", labels, err);

    for (size_t i = 0; i < place->n_labels && rc == 0; i++)
        rc = rv_json_set_text(labels, place->labels[i].axis, place->labels[i].label, err);
    if (rc == 0 && place->number > 0)
        rc = rv_json_set_int(cell, "case", place->number, err);
    return rc;
}

static int add_combination(struct rv_test_tables *c, const char *file, const struct rv_test_report *r, rv_err **err)
{
    const struct rv_test_place *place = &r->test->place;
    rv_buf name = RV_BUF_INIT(MAX_LABEL);
    json_object *cell = NULL;
    const char *of = "";
    int rc = 0;

    if (place->n_labels == 0)
        return 0;
    if (c->n == 0 || c->of_tests[c->n - 1].written != place->written ||
        !rv_json_get_text(c->of_tests[c->n - 1].about, "file", &of) || strcmp(of, file) != 0)
        rc = begin_table(c, file, r->test, err);
    struct rv_test_matrix *m = rc == 0 ? &c->of_tests[c->n - 1] : NULL;
    const char *column = place->n_labels > 1 ? place->labels[0].label : ONLY;
    if (rc == 0)
        rc = have_column(m, column, err);
    write_row_name(place, &name);
    if (rc == 0)
        rc = rv_buf_check(&name, "name of a row", err);
    if (rc == 0)
        rc = add_cell(m, &(const struct cell_place){.file = file, .name = rv_buf_cstr(&name), .column = column}, r,
                      &cell, err);
    if (rc == 0)
        rc = add_labels(place, cell, err);
    rv_buf_fini(&name);
    return rc;
}

/* --- all tables --- */

int cli_test_tables_add(struct rv_test_tables *t, const char *file, const struct rv_test_report *r, rv_err **err)
{
    json_object *cell;

    return t->models.n_columns > 0
               ? add_cell(&t->models,
                          &(const struct cell_place){
                              .file = file, .name = r->test->name, .column = t->models.columns[t->models.at]},
                          r, &cell, err)
               : add_combination(t, file, r, err);
}

int cli_test_tables_write_text(const struct rv_test_tables *t, bool color, rv_buf *out, rv_err **err)
{
    int rc = t->models.n_columns > 0 ? write_table(&t->models, color, out, err) : 0;

    for (size_t i = 0; i < t->n && rc == 0; i++) {
        json_object *about = t->of_tests[i].about;
        rv_buf_printf(out, "%s (%s)\n", rv_json_text_or(about, "test", ""), rv_json_text_or(about, "file", ""));
        rc = write_table(&t->of_tests[i], color, out, err);
    }
    return rc;
}

void cli_test_tables_write_html(const struct rv_test_tables *t, rv_buf *b)
{
    if (t->models.n_columns > 0)
        write_html_table(&t->models, b);
    for (size_t i = 0; i < t->n; i++)
        write_html_table(&t->of_tests[i], b);
}

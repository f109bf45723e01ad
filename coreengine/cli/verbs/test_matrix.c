/* Tests by models: one row for each test, one column for each model that `reeve test --model` names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/cli/show/table.h"
#include "coreengine/cli/verbs/test_report.h"

#define MAX_NAME 48 /* characters of a test's name in the table for people */

static json_object *row_of(const struct rv_test_matrix *m, const char *file, const char *test)
{
    for (size_t i = 0; i < json_object_array_length(m->rows); i++) {
        json_object *row = json_object_array_get_idx(m->rows, i);
        const char *f = "", *t = "";
        RV_IGNORE(!rv_json_get_text(row, "file", &f) || !rv_json_get_text(row, "test", &t), "always there");
        if (strcmp(f, file) == 0 && strcmp(t, test) == 0)
            return row;
    }
    return NULL;
}

static int add_row(struct rv_test_matrix *m, const char *file, const char *test, json_object **out, rv_err **err)
{
    json_object *row = json_object_new_object();
    struct rv_json_build b = {.err = err};

    if (!row)
        return RV_FAIL(err, RV_E_NOMEM, "compare models");
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

int rv_test_matrix_add(struct rv_test_matrix *m, const char *file, const struct rv_test_report *r, rv_err **err)
{
    json_object *row = row_of(m, file, r->test->name), *cell;
    struct rv_json_build b = {.err = err};
    int rc = row ? 0 : add_row(m, file, r->test->name, &row, err);

    if (rc < 0)
        return rc;
    cell = json_object_new_object();
    if (!cell)
        return RV_FAIL(err, RV_E_NOMEM, "compare models");
    rv_json_build_text(&b, cell, "model", m->models[m->at]);
    rv_json_build(&b, cell, "passed", json_object_new_boolean(rv_test_passed(r)));
    rv_json_build_int(&b, cell, "runs", r->rate.n);
    rv_json_build_int(&b, cell, "runs_passed", r->rate.n_passed);
    rv_json_build(&b, cell, "usd", rv_json_double((double)r->cost_micro_usd / 1e6));
    if (b.rc == 0)
        return rv_json_push_take(rv_json_get_arr(row, "results"), cell, err);
    json_object_put(cell);
    return b.rc;
}

/* What stands in a row for a model; NULL: its pipeline was invalid with it. */
static json_object *cell_of(json_object *row, const char *model)
{
    json_object *results = rv_json_get_arr(row, "results");

    for (size_t i = 0; i < json_object_array_length(results); i++) {
        json_object *cell = json_object_array_get_idx(results, i);
        const char *name = "";
        RV_IGNORE(!rv_json_get_text(cell, "model", &name), "always there");
        if (strcmp(name, model) == 0)
            return cell;
    }
    return NULL;
}

/* "ok", "FAIL 3/5", "-" */
static bool write_cell(json_object *cell, rv_buf *b)
{
    bool passed = false;
    int64_t n = 0, n_passed = 0;

    if (!cell) {
        rv_buf_puts(b, "-");
        return false;
    }
    RV_IGNORE(!rv_json_get_bool(cell, "passed", &passed) || !rv_json_get_int(cell, "runs", &n) ||
                  !rv_json_get_int(cell, "runs_passed", &n_passed),
              "always there");
    rv_buf_puts(b, passed ? "ok" : "FAIL");
    if (n > 1)
        rv_buf_printf(b, " %lld/%lld", (long long)n_passed, (long long)n);
    return passed;
}

/* Of one model, over all rows. */
struct column {
    size_t n_passed;
    double usd;
};

static struct column sum_up(const struct rv_test_matrix *m, const char *model)
{
    struct column c = {0};

    for (size_t i = 0; i < json_object_array_length(m->rows); i++) {
        json_object *cell = cell_of(json_object_array_get_idx(m->rows, i), model), *usd = NULL;
        bool passed = false;
        RV_IGNORE(!cell || !rv_json_get_bool(cell, "passed", &passed), "it was not run");
        c.n_passed += passed;
        if (cell && json_object_object_get_ex(cell, "usd", &usd))
            c.usd += json_object_get_double(usd);
    }
    return c;
}

static void add_sums(const struct rv_test_matrix *m, rv_cli_table *t)
{
    char text[64];

    rv_cli_table_add_text(t, "passed");
    for (size_t k = 0; k < m->n_models; k++) {
        snprintf(text, sizeof text, "%zu of %zu", sum_up(m, m->models[k]).n_passed, json_object_array_length(m->rows));
        rv_cli_table_add_text(t, text);
    }
    rv_cli_table_add_text(t, "cost in US dollars");
    for (size_t k = 0; k < m->n_models; k++) {
        snprintf(text, sizeof text, "%.6f", sum_up(m, m->models[k]).usd);
        rv_cli_table_add_text(t, text);
    }
}

int rv_test_matrix_write_text(const struct rv_test_matrix *m, bool color, rv_buf *out, rv_err **err)
{
    struct rv_cli_column *columns = calloc(m->n_models + 1, sizeof *columns);
    rv_cli_table *t = NULL;
    int rc = 0;

    if (columns) {
        columns[0] = (struct rv_cli_column){"TEST", MAX_NAME, false};
        for (size_t k = 0; k < m->n_models; k++)
            columns[k + 1] = (struct rv_cli_column){m->models[k], 0, false};
        t = rv_cli_table_new(columns, m->n_models + 1);
    }
    for (size_t i = 0; t && i < json_object_array_length(m->rows); i++) {
        json_object *row = json_object_array_get_idx(m->rows, i);
        const char *test = "";
        RV_IGNORE(!rv_json_get_text(row, "test", &test), "always there");
        rv_cli_table_add_text(t, test);
        for (size_t k = 0; k < m->n_models; k++) {
            rv_buf cell = RV_BUF_INIT(256);
            write_cell(cell_of(row, m->models[k]), &cell);
            rv_cli_table_add_text(t, rv_buf_cstr(&cell));
            rv_buf_fini(&cell);
        }
    }
    if (t && json_object_array_length(m->rows) > 0)
        add_sums(m, t);
    rc = t ? rv_cli_table_write(t, color, out, err) : RV_FAIL(err, RV_E_NOMEM, "compare models");
    rv_cli_table_free(t);
    free(columns);
    return rc;
}

void rv_test_matrix_write_html(const struct rv_test_matrix *m, rv_buf *b)
{
    rv_buf_puts(b, "<h2>Models</h2>\n<table><thead><tr><th>Test</th>");
    for (size_t k = 0; k < m->n_models; k++) {
        rv_buf_puts(b, "<th>");
        rv_buf_xml(b, rv_str_of(m->models[k]));
        rv_buf_puts(b, "</th>");
    }
    rv_buf_puts(b, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < json_object_array_length(m->rows); i++) {
        json_object *row = json_object_array_get_idx(m->rows, i);
        const char *test = "";
        RV_IGNORE(!rv_json_get_text(row, "test", &test), "always there");
        rv_buf_puts(b, "<tr><td>");
        rv_buf_xml(b, rv_str_of(test));
        rv_buf_puts(b, "</td>");
        for (size_t k = 0; k < m->n_models; k++) {
            rv_buf cell = RV_BUF_INIT(256);
            bool passed = write_cell(cell_of(row, m->models[k]), &cell);
            rv_buf_printf(b, "<td class=\"%s\">%s</td>", passed ? "ok" : "bad", rv_buf_cstr(&cell));
            rv_buf_fini(&cell);
        }
        rv_buf_puts(b, "</tr>\n");
    }
    rv_buf_puts(b, "<tr><td class=\"dim\">passed</td>");
    for (size_t k = 0; k < m->n_models; k++)
        rv_buf_printf(b, "<td class=\"dim\">%zu of %zu</td>", sum_up(m, m->models[k]).n_passed,
                      json_object_array_length(m->rows));
    rv_buf_puts(b, "</tr>\n<tr><td class=\"dim\">cost in US dollars</td>");
    for (size_t k = 0; k < m->n_models; k++)
        rv_buf_printf(b, "<td class=\"dim\">%.6f</td>", sum_up(m, m->models[k]).usd);
    rv_buf_puts(b, "</tr>\n</tbody></table>\n");
}

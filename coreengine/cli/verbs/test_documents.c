/* Reports of `reeve test` as one document: JSON, JUnit's XML, a page of HTML. */
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/cli/verbs/test_report_internal.h"

/* --- JSON --- */

static void json_begin(struct rv_test_output *o)
{
    o->json = rv_jw_on(&o->out);
    rv_jw_obj(&o->json);
    rv_jw_key(&o->json, "pipelines");
    rv_jw_arr(&o->json);
}

static void json_pipeline(struct rv_test_output *o, const char *path, const struct rv_app_loaded *l, bool is_sound)
{
    rv_jw_obj(&o->json);
    rv_jw_kv_path(&o->json, "file", path);
    if (o->tables.models.n_columns > 0)
        rv_jw_kv_text(&o->json, "model", o->tables.models.columns[o->tables.models.at]);
    rv_jw_kv_bool(&o->json, "valid", is_sound);
    rv_jw_key(&o->json, "findings");
    rv_findings_write_json(l->findings, &o->json);
}

static void json_tests(struct rv_test_output *o)
{
    rv_jw_key(&o->json, "tests");
    rv_jw_arr(&o->json);
}

static void json_rate(const struct rv_test_rate *r, rv_jw *w)
{
    double low, high;

    rv_test_rate_estimate_bounds(r, &low, &high);
    rv_jw_key(w, "runs");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "count", r->n);
    rv_jw_kv_int(w, "passed", r->n_passed);
    rv_jw_key(w, "rate");
    rv_jw_double(w, (double)r->n_passed / (double)r->n);
    rv_jw_key(w, "low");
    rv_jw_double(w, low);
    rv_jw_key(w, "high");
    rv_jw_double(w, high);
    rv_jw_key(w, "min_pass_rate");
    rv_jw_double(w, r->min);
    rv_jw_obj_end(w);
}

static void json_place(const struct rv_test_place *place, rv_jw *w)
{
    if (place->n_labels == 0)
        return;
    rv_jw_key(w, "matrix");
    rv_jw_obj(w);
    for (size_t i = 0; i < place->n_labels; i++)
        rv_jw_kv_text(w, place->labels[i].axis, place->labels[i].label);
    rv_jw_obj_end(w);
}

static void json_test(struct rv_test_output *o, const struct rv_pipeline *p, const struct rv_test_report *r)
{
    rv_jw *w = &o->json;

    (void)p;
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", r->test->name);
    rv_jw_kv_int(w, "line", r->test->src.line);
    json_place(&r->test->place, w);
    rv_jw_kv_bool(w, "passed", rv_test_has_passed(r));
    rv_jw_kv_text(w, "status", r->state ? rv_run_status_text(r->status) : NULL);
    rv_jw_kv_int(w, "duration_ms", r->duration_ms);
    rv_jw_kv_value(w, "visited", r->visited);
    rv_jw_kv_value(w, "questions", r->questions);
    rv_jw_kv_value(w, "calls", r->calls);
    rv_jw_kv_value(w, "failures", r->failures);
    rv_jw_kv_value(w, "errors", r->errors);
    rv_jw_kv_value(w, "events", r->events);
    if (r->rate.n > 1)
        json_rate(&r->rate, w);
    if (r->judge)
        rv_jw_kv_value(w, "judge", r->judge);
    if (r->cassette) {
        rv_jw_kv_text(w, "cassette", r->cassette);
        rv_jw_kv_bool(w, "recorded", r->was_recorded);
    }
    if (r->code)
        rv_jw_kv_text(w, "terminal_reason", r->code);
    if (r->ended_by)
        rv_jw_kv_text(w, "ended_by", r->ended_by);
    rv_jw_obj_end(w);
}

static void json_tests_end(struct rv_test_output *o, const struct rv_pipeline *p)
{
    (void)p;
    rv_jw_arr_end(&o->json);
}

static void json_coverage(struct rv_test_output *o, const rv_coverage *c)
{
    rv_jw_key(&o->json, "coverage");
    rv_coverage_write_json(c, &o->json);
}

static void json_pipeline_end(struct rv_test_output *o)
{
    rv_jw_obj_end(&o->json);
}

static void write_columns(const struct rv_test_matrix *m, const char *key, rv_jw *w)
{
    rv_jw_key(w, key);
    rv_jw_arr(w);
    for (size_t i = 0; i < m->n_columns; i++)
        rv_jw_text(w, m->columns[i]);
    rv_jw_arr_end(w);
    rv_jw_kv_value(w, "rows", m->rows);
}

static void write_member(json_object *of, const char *key, rv_jw *w)
{
    json_object *value = NULL;

    json_object_object_get_ex(of, key, &value);
    rv_jw_kv_value(w, key, value);
}

static void json_tables(const struct rv_test_tables *t, rv_jw *w)
{
    if (t->models.n_columns > 0) {
        rv_jw_key(w, "matrix");
        rv_jw_obj(w);
        write_columns(&t->models, "models", w);
        rv_jw_obj_end(w);
    }
    if (t->n > 0) {
        rv_jw_key(w, "matrices");
        rv_jw_arr(w);
    }
    for (size_t i = 0; i < t->n; i++) {
        const struct rv_test_matrix *m = &t->of_tests[i];
        rv_jw_obj(w);
        write_member(m->about, "file", w);
        write_member(m->about, "test", w);
        write_member(m->about, "axes", w);
        write_columns(m, "columns", w);
        rv_jw_obj_end(w);
    }
    if (t->n > 0)
        rv_jw_arr_end(w);
}

static void json_end(struct rv_test_output *o)
{
    rv_jw_arr_end(&o->json);
    json_tables(&o->tables, &o->json);
    if (o->n_judge_calls > 0) {
        rv_jw_key(&o->json, "judges");
        rv_jw_obj(&o->json);
        rv_jw_kv_int(&o->json, "llm_calls", o->n_judge_calls);
        rv_jw_key(&o->json, "usd");
        rv_jw_double(&o->json, (double)o->judge_micro_usd / 1e6);
        rv_jw_obj_end(&o->json);
    }
    rv_jw_kv_int(&o->json, "tests", (int64_t)o->n_run);
    rv_jw_kv_int(&o->json, "passed", (int64_t)(o->n_run - o->n_failed));
    rv_jw_kv_int(&o->json, "failed", (int64_t)o->n_failed);
    rv_jw_obj_end(&o->json);
    rv_buf_putc(&o->out, '\n');
}

const struct rv_test_format cli_test_as_json = {.option = "json",
                                                .is_one_document = true,
                                                .begin = json_begin,
                                                .pipeline = json_pipeline,
                                                .tests = json_tests,
                                                .test = json_test,
                                                .coverage = json_coverage,
                                                .tests_end = json_tests_end,
                                                .pipeline_end = json_pipeline_end,
                                                .end = json_end};

/* --- JUnit --- */

static void junit_begin(struct rv_test_output *o)
{
    rv_buf_puts(&o->out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
}

static void attribute(rv_buf *b, const char *name, const char *value)
{
    rv_buf_printf(b, " %s=\"", name);
    rv_buf_add_xml(b, rv_str_of(value));
    rv_buf_putc(b, '"');
}

/* A pipeline that cannot be loaded is a suite with one error. */
static void junit_pipeline(struct rv_test_output *o, const char *path, const struct rv_app_loaded *l, bool is_sound)
{
    rv_buf text = RV_BUF_INIT(RV_TEST_MAX_OUTPUT);

    if (is_sound)
        return;
    rv_findings_write_text(l->findings, false, &text);
    rv_buf_puts(&o->out, "<testsuite tests=\"1\" failures=\"0\" errors=\"1\"");
    attribute(&o->out, "name", path);
    rv_buf_puts(&o->out, "><testcase name=\"load\"");
    attribute(&o->out, "classname", path);
    rv_buf_puts(&o->out, "><error message=\"the pipeline is invalid\">");
    rv_buf_add_xml(&o->out, rv_buf_str(&text));
    rv_buf_puts(&o->out, "</error></testcase></testsuite>\n");
    rv_buf_fini(&text);
}

static void suite_begin(struct rv_test_output *o)
{
    rv_buf_clear(&o->body);
    o->n_suite_run = o->n_suite_failed = 0;
    o->suite_ms = 0;
}

static void suite_test(struct rv_test_output *o, const struct rv_test_report *r)
{
    o->n_suite_run++;
    o->n_suite_failed += !rv_test_has_passed(r);
    o->suite_ms += r->duration_ms;
}

/* What JUnit has no attributes for: the runs, and the place in a matrix. */
static void junit_properties(const struct rv_test_report *r, rv_buf *b)
{
    const struct rv_test_place *place = &r->test->place;
    double low, high;

    if (r->rate.n < 2 && place->n_labels == 0)
        return;
    rv_buf_puts(b, "<properties>");
    for (size_t i = 0; i < place->n_labels; i++) {
        rv_buf_puts(b, "<property name=\"matrix.");
        rv_buf_add_xml(b, rv_str_of(place->labels[i].axis));
        rv_buf_putc(b, '"');
        attribute(b, "value", place->labels[i].label);
        rv_buf_puts(b, "/>");
    }
    if (r->rate.n > 1) {
        rv_test_rate_estimate_bounds(&r->rate, &low, &high);
        rv_buf_printf(b,
                      "<property name=\"runs\" value=\"%lld\"/><property name=\"runs_passed\" value=\"%lld\"/>"
                      "<property name=\"rate_low\" value=\"%.4f\"/><property name=\"rate_high\" value=\"%.4f\"/>",
                      (long long)r->rate.n, (long long)r->rate.n_passed, low, high);
    }
    rv_buf_puts(b, "</properties>");
}

static void junit_test(struct rv_test_output *o, const struct rv_pipeline *p, const struct rv_test_report *r)
{
    rv_buf reasons = RV_BUF_INIT(RV_TEST_MAX_OUTPUT), name = RV_BUF_INIT(RV_TEST_MAX_OUTPUT);
    rv_buf *b = &o->body;

    suite_test(o, r);
    rv_buf_puts(b, "<testcase");
    attribute(b, "classname", p->name);
    cli_test_write_name(o, r, &name);
    attribute(b, "name", rv_buf_cstr(&name));
    rv_buf_fini(&name);
    attribute(b, "file", p->file);
    rv_buf_printf(b, " line=\"%d\" time=\"%lld.%03d\"", r->test->src.line, (long long)(r->duration_ms / 1000),
                  (int)(r->duration_ms % 1000));
    if (rv_test_has_passed(r) && r->rate.n < 2 && r->test->place.n_labels == 0) {
        rv_buf_puts(b, "/>\n");
        return;
    }
    rv_buf_putc(b, '>');
    junit_properties(r, b);
    if (rv_test_has_passed(r)) {
        rv_buf_puts(b, "</testcase>\n");
        return;
    }
    cli_test_write_reasons(r, "", &reasons);
    rv_str first = {rv_buf_cstr(&reasons), strcspn(rv_buf_cstr(&reasons), "\n")};
    rv_buf_puts(b, "<failure message=\"");
    rv_buf_add_xml(b, first);
    rv_buf_puts(b, "\">");
    rv_buf_add_xml(b, rv_buf_str(&reasons));
    rv_buf_puts(b, "</failure></testcase>\n");
    rv_buf_fini(&reasons);
}

static void junit_tests_end(struct rv_test_output *o, const struct rv_pipeline *p)
{
    rv_buf_puts(&o->out, "<testsuite");
    attribute(&o->out, "name", p->name);
    rv_buf_printf(&o->out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" time=\"%lld.%03d\">\n", o->n_suite_run,
                  o->n_suite_failed, (long long)(o->suite_ms / 1000), (int)(o->suite_ms % 1000));
    rv_buf_add_str(&o->out, rv_buf_str(&o->body));
    rv_buf_puts(&o->out, "</testsuite>\n");
}

static void junit_end(struct rv_test_output *o)
{
    rv_buf_puts(&o->out, "</testsuites>\n");
}

const struct rv_test_format cli_test_as_junit = {.option = "junit",
                                                 .is_one_document = true,
                                                 .begin = junit_begin,
                                                 .pipeline = junit_pipeline,
                                                 .tests = suite_begin,
                                                 .test = junit_test,
                                                 .tests_end = junit_tests_end,
                                                 .pipeline_end = cli_test_output_none,
                                                 .end = junit_end};

/* --- HTML: one file without scripts, which needs nothing else --- */

static const char html_head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
    "content=\"width=device-width\"><title>Tests</title><style>\n"
    ":root{color-scheme:light dark;--ok:#15803d;--bad:#b91c1c;--line:#cbd5e1;--dim:#64748b}\n"
    "@media(prefers-color-scheme:dark){:root{--ok:#4ade80;--bad:#f87171;--line:#334155;--dim:#94a3b8}}\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\n"
    "h2{font-size:1.1rem;margin-top:2rem}\n"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.35rem .6rem;"
    "border-top:1px solid var(--line)}\n"
    ".ok{color:var(--ok)}.bad{color:var(--bad)}.dim{color:var(--dim)}\n"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0 0;font-size:.85rem}\n"
    ".bar{display:flex;height:.6rem;border-radius:.3rem;overflow:hidden;background:var(--line)}\n"
    ".bar span{background:var(--ok)}.bar span+span{background:var(--bad)}\n"
    "</style></head><body>\n<h1>Tests</h1>\n";

/* "2 of 3 passed" over a bar of both parts. */
static void write_counts(size_t n_run, size_t n_failed, rv_buf *b)
{
    rv_buf_printf(b, "<p><span class=\"%s\">%zu of %zu passed</span></p>\n", n_failed ? "bad" : "ok", n_run - n_failed,
                  n_run);
    rv_buf_printf(b,
                  "<div class=\"bar\" role=\"img\" aria-label=\"%zu passed, %zu failed\"><span style=\"flex:%zu\">"
                  "</span><span style=\"flex:%zu\"></span></div>\n",
                  n_run - n_failed, n_failed, n_run - n_failed, n_failed);
}

static void html_begin(struct rv_test_output *o)
{
    rv_buf_puts(&o->out, html_head);
}

static void html_pipeline(struct rv_test_output *o, const char *path, const struct rv_app_loaded *l, bool is_sound)
{
    rv_buf text = RV_BUF_INIT(RV_TEST_MAX_OUTPUT);

    rv_buf_puts(&o->body, "<h2>");
    rv_buf_add_xml(&o->body, rv_str_of(path));
    rv_buf_puts(&o->body, "</h2>\n");
    if (is_sound)
        return;
    rv_findings_write_text(l->findings, false, &text);
    rv_buf_puts(&o->body, "<p class=\"bad\">The pipeline is invalid.</p><pre>");
    rv_buf_add_xml(&o->body, rv_buf_str(&text));
    rv_buf_puts(&o->body, "</pre>\n");
    rv_buf_fini(&text);
}

static void html_tests(struct rv_test_output *o)
{
    rv_buf_puts(&o->body, "<table><thead><tr><th>Result</th><th>Test</th><th>Time</th></tr></thead><tbody>\n");
}

static void html_test(struct rv_test_output *o, const struct rv_pipeline *p, const struct rv_test_report *r)
{
    rv_buf reasons = RV_BUF_INIT(RV_TEST_MAX_OUTPUT);
    bool passed = rv_test_has_passed(r);
    rv_buf *b = &o->body;

    rv_buf_printf(b, "<tr><td class=\"%s\">%s</td><td>", passed ? "ok" : "bad", passed ? "passed" : "failed");
    rv_buf name = RV_BUF_INIT(RV_TEST_MAX_OUTPUT);
    cli_test_write_name(o, r, &name);
    rv_buf_add_xml(b, rv_buf_str(&name));
    rv_buf_fini(&name);
    if (r->rate.n > 1) {
        rv_buf_puts(b, " <span class=\"dim\">");
        cli_test_write_rate(&r->rate, b);
        rv_buf_puts(b, "</span>");
    }
    if (!passed) {
        cli_test_write_reasons(r, "", &reasons);
        rv_buf_puts(b, " <span class=\"dim\">");
        rv_buf_add_xml(b, rv_str_of(p->file));
        rv_buf_printf(b, ":%d</span><pre>", r->test->src.line);
        rv_buf_add_xml(b, rv_buf_str(&reasons));
        rv_buf_puts(b, "</pre>");
        rv_buf_fini(&reasons);
    }
    rv_buf_printf(b, "</td><td>%lld ms</td></tr>\n", (long long)r->duration_ms);
}

static void html_tests_end(struct rv_test_output *o, const struct rv_pipeline *p)
{
    (void)p;
    rv_buf_puts(&o->body, "</tbody></table>\n");
}

static void html_coverage(struct rv_test_output *o, const rv_coverage *c)
{
    rv_buf text = RV_BUF_INIT(RV_TEST_MAX_OUTPUT);

    rv_coverage_write_text(c, &text);
    rv_buf_puts(&o->body, "<pre>");
    rv_buf_add_xml(&o->body, rv_buf_str(&text));
    rv_buf_puts(&o->body, "</pre>\n");
    rv_buf_fini(&text);
}

static void html_end(struct rv_test_output *o)
{
    write_counts(o->n_run, o->n_failed, &o->out);
    if (o->n_judge_calls > 0) {
        rv_buf_puts(&o->out, "<p class=\"dim\">");
        cli_test_write_judges(o, &o->out);
        rv_buf_puts(&o->out, "</p>\n");
    }
    cli_test_tables_write_html(&o->tables, &o->out);
    rv_buf_add_str(&o->out, rv_buf_str(&o->body));
    rv_buf_puts(&o->out, "</body></html>\n");
}

const struct rv_test_format cli_test_as_html = {.option = "html",
                                                .is_one_document = true,
                                                .begin = html_begin,
                                                .pipeline = html_pipeline,
                                                .tests = html_tests,
                                                .test = html_test,
                                                .coverage = html_coverage,
                                                .tests_end = html_tests_end,
                                                .pipeline_end = cli_test_output_none,
                                                .end = html_end};

/* Reports of `reeve test` as lines: for people, and in the Test Anything Protocol. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/cli/show/lines_internal.h"
#include "coreengine/cli/verbs/test_report_internal.h"

#define MAX_SHOWN_BYTES 400 /* of a value for people: five lines of a terminal; --json has the whole value */

/* --- why a test failed --- */

static void write_short(json_object *v, rv_buf *b)
{
    rv_buf whole = RV_BUF_INIT(RV_TEST_MAX_OUTPUT);

    rv_json_write(v, &whole);
    rv_str head = rv_utf8_cut(rv_buf_str(&whole), MAX_SHOWN_BYTES);
    rv_buf_add_str(b, head);
    if (head.len < whole.len)
        rv_buf_puts(b, "...");
    rv_buf_fini(&whole);
}

/* Two texts of which one has several lines are compared line by line. False: they are not, or there is no memory. */
static bool write_lines(const char *path, json_object *expected, json_object *found, rv_buf *b)
{
    rv_str want = rv_json_str(expected), have = rv_json_str(found);
    struct rv_cli_lines lines = {NULL, 0};
    rv_err *err = NULL;

    if (!json_object_is_type(expected, json_type_string) || !json_object_is_type(found, json_type_string) ||
        (!memchr(want.ptr, '\n', want.len) && !memchr(have.ptr, '\n', have.len)))
        return false;
    if (cli_lines_compare(want, have, &lines, &err) < 0) {
        rv_err_free(err);
        return false;
    }
    rv_buf_printf(b, "%s: expected (-) and found (+) differ\n", path);
    cli_lines_write_unified(&lines, false, b);
    if (b->rc == 0 && b->len > 0 && rv_buf_cstr(b)[b->len - 1] == '\n')
        rv_buf_truncate(b, b->len - 1);
    cli_lines_fini(&lines);
    return true;
}

/* "/visited: expected [...], found [...]" with line ends behind indent, so that TAP can use it in comments. */
static void write_failure(json_object *failure, rv_buf *b)
{
    json_object *found = NULL;
    const char *message = NULL;

    const char *path = rv_json_text_or(failure, "path", "");
    if (rv_json_get_text(failure, "message", &message)) {
        rv_buf_printf(b, "%s%s%s", path, path[0] ? ": " : "", message);
        return;
    }
    json_object *expected = NULL;
    json_object_object_get_ex(failure, "expected", &expected);
    bool exists = json_object_object_get_ex(failure, "found", &found);
    if (exists && strncmp(path, "/response_contains", 18) != 0 && write_lines(path, expected, found, b))
        return;
    rv_buf_printf(b, "%s: expected ", path);
    write_short(expected, b);
    rv_buf_puts(b, ", found ");
    if (exists)
        write_short(found, b);
    else
        rv_buf_puts(b, "nothing");
}

static void write_path(json_object *visited, rv_buf *b)
{
    size_t n = visited ? json_object_array_length(visited) : 0;

    rv_buf_puts(b, "visited: ");
    for (size_t i = 0; i < n; i++) {
        rv_buf_puts(b, i ? " -> " : "");
        rv_buf_add_str(b, rv_json_str(json_object_array_get_idx(visited, i)));
    }
    if (n == 0)
        rv_buf_puts(b, "nothing");
}

/* What went wrong in the run: "stage "a" failed (file:line): text  [LLMError]", then what ended it. */
static void write_errors(const struct rv_test_report *r, rv_buf *b)
{
    size_t n = r->errors ? json_object_array_length(r->errors) : 0;

    for (size_t i = 0; i < n; i++) {
        json_object *e = json_object_array_get_idx(r->errors, i);
        const char *stage = rv_json_text_or(e, "stage", ""), *type = rv_json_text_or(e, "type", "");
        const char *text = rv_json_text_or(e, "text", ""), *file = NULL, *code = NULL;
        int64_t line = 0;

        rv_buf_printf(b, "stage \"%s\" failed", stage);
        if (rv_json_get_text(e, "file", &file) && rv_json_get_int(e, "line", &line))
            rv_buf_printf(b, " (%s:%lld)", file, (long long)line);
        rv_str head = rv_utf8_cut(rv_str_of(text), MAX_SHOWN_BYTES);
        bool has_code = rv_json_get_text(e, "code", &code);
        rv_buf_printf(b, ": %.*s%s  [%s%s%s]\n", RV_STR_ARG(head), head.len < strlen(text) ? "..." : "", type,
                      has_code ? ", " : "", has_code ? code : "");
    }
    if (r->ended_by)
        rv_buf_printf(b, "run %s: %s  [%s]\n", rv_run_status_text(r->status), r->ended_by, r->code);
    else if (r->code)
        rv_buf_printf(b, "run %s  [%s]\n", rv_run_status_text(r->status), r->code);
}

static void write_events(json_object *events, rv_buf *b)
{
    size_t n = events ? json_object_array_length(events) : 0;

    rv_buf_puts(b, n ? "\nlast events:" : "");
    for (size_t i = 0; i < n; i++) {
        rv_str text = rv_json_str(json_object_array_get_idx(events, i));
        rv_buf_puts(b, "\n  ");
        for (size_t k = 0; k < text.len; k++)
            rv_buf_putc(b, text.ptr[k] == '\n' ? ' ' : text.ptr[k]);
    }
}

/* A failure that does not come from the run: the test could not begin, or a capability is missing. */
static bool is_cause(json_object *failure)
{
    const char *path = rv_json_text_or(failure, "path", "");

    return !path[0] || strcmp(path, "/capabilities") == 0;
}

/* Gives how many failures were of that kind. */
static size_t write_failures(const struct rv_test_report *r, bool causes, rv_buf *b)
{
    size_t n = 0;

    for (size_t i = 0; i < json_object_array_length(r->failures); i++) {
        json_object *failure = json_object_array_get_idx(r->failures, i);
        if (is_cause(failure) != causes)
            continue;
        write_failure(failure, b);
        rv_buf_putc(b, '\n');
        n++;
    }
    return n;
}

bool cli_test_began(const struct rv_test_report *r)
{
    return r->state != NULL;
}

/* Each line behind the same lead. Models, tools and servers said what is in them. */
static void write_behind(const rv_buf *lines, const char *lead, rv_buf *out)
{
    RV_AUTO(rv_buf_fini) rv_buf safe = RV_BUF_INIT(RV_TEST_MAX_OUTPUT);

    cli_write_safe(rv_buf_str(lines), &safe);
    for (const char *p = rv_buf_cstr(&safe); *p;) {
        size_t n = strcspn(p, "\n");
        rv_buf_printf(out, "%s%.*s\n", lead, (int)n, p);
        p += n + (p[n] == '\n');
    }
    if (safe.rc < 0)
        out->rc = safe.rc; /* the caller reports it */
}

static void write_run(const struct rv_test_report *r, rv_buf *b)
{
    write_errors(r, b);
    if (cli_test_began(r))
        write_path(r->visited, b);
    write_events(r->events, b);
}

void cli_test_write_reasons(const struct rv_test_report *r, const char *lead, rv_buf *out)
{
    rv_buf lines = RV_BUF_INIT(RV_TEST_MAX_OUTPUT);

    write_failures(r, true, &lines);
    write_failures(r, false, &lines);
    write_run(r, &lines);
    write_behind(&lines, lead, out);
    rv_buf_fini(&lines);
}

/* The reasons of a test among others: what kept several of them from being run is written once. */
static void write_reasons_once(struct rv_test_output *o, const struct rv_test_report *r, const char *lead)
{
    rv_buf cause = RV_BUF_INIT(RV_TEST_MAX_OUTPUT), lines = RV_BUF_INIT(RV_TEST_MAX_OUTPUT);
    size_t n_causes = write_failures(r, true, &cause);
    bool is_known = n_causes > 0 && o->cause_of && rv_str_eq(rv_buf_str(&cause), rv_buf_str(&o->cause));

    if (is_known) {
        rv_buf_printf(&lines, "for the same reason as \"%s\"\n", o->cause_of);
    } else {
        rv_buf_add_str(&lines, rv_buf_str(&cause));
        rv_buf_clear(&o->cause);
        rv_buf_add_str(&o->cause, rv_buf_str(&cause));
        o->cause_of = n_causes > 0 ? r->test->name : NULL;
    }
    if (write_failures(r, false, &lines) > 0 || !is_known)
        write_run(r, &lines);
    write_behind(&lines, lead, &o->out);
    rv_buf_fini(&cause);
    rv_buf_fini(&lines);
}

static void lines_tests(struct rv_test_output *o)
{
    o->cause_of = NULL;
}

void cli_test_write_name(const struct rv_test_output *o, const struct rv_test_report *r, rv_buf *out)
{
    rv_buf_puts(out, r->test->name);
    if (o->tables.models.n_columns > 0)
        rv_buf_printf(out, " [%s]", o->tables.models.columns[o->tables.models.at]);
}

void cli_test_write_rate(const struct rv_test_rate *r, rv_buf *out)
{
    double low, high;

    rv_test_rate_estimate_bounds(r, &low, &high);
    rv_buf_printf(out, "%lld of %lld run%s passed (%.1f %%, 95 %% interval %.1f to %.1f %%)", (long long)r->n_passed,
                  (long long)r->n, cli_plural(r->n), 100.0 * (double)r->n_passed / (double)r->n, 100 * low, 100 * high);
}

void cli_test_write_judges(const struct rv_test_output *o, rv_buf *out)
{
    rv_buf_printf(out, "judges: %lld model call%s, %.6f US dollars", (long long)o->n_judge_calls,
                  o->n_judge_calls == 1 ? "" : "s", (double)o->judge_micro_usd / 1e6);
}

/* A name in one line. */
static void write_name(const char *name, rv_buf *b)
{
    cli_write_preview(rv_str_of(name), RV_TEST_MAX_OUTPUT, b);
}

void cli_test_output_none(struct rv_test_output *o)
{
    (void)o;
}

/* --- for people --- */

static const char *color(const struct rv_test_output *o, const char *code)
{
    return o->color ? code : "";
}

static void text_pipeline(struct rv_test_output *o, const char *path, const struct rv_app_loaded *l, bool is_sound)
{
    (void)l;
    if (is_sound && o->show_pipeline)
        rv_buf_printf(&o->out, "%s\n", path);
}

static void text_test(struct rv_test_output *o, const struct rv_pipeline *p, const struct rv_test_report *r)
{
    bool passed = rv_test_has_passed(r);

    rv_buf_printf(&o->out, "  %s%s%s  ", color(o, passed ? "\033[32m" : "\033[1;31m"), passed ? "ok  " : "FAIL",
                  color(o, "\033[0m"));
    rv_buf name = RV_BUF_INIT(RV_TEST_MAX_OUTPUT);
    cli_test_write_name(o, r, &name);
    write_name(rv_buf_cstr(&name), &o->out);
    rv_buf_fini(&name);
    if (r->rate.n > 1) {
        rv_buf_puts(&o->out, "  ");
        cli_test_write_rate(&r->rate, &o->out);
    }
    if (passed) {
        rv_buf_putc(&o->out, '\n');
        return;
    }
    rv_buf_printf(&o->out, "  (%s:%d)\n", p->file, r->test->src.line);
    write_reasons_once(o, r, "        ");
}

static void text_coverage(struct rv_test_output *o, const rv_coverage *c)
{
    rv_coverage_write_text(c, &o->out);
}

static void text_tests_end(struct rv_test_output *o, const struct rv_pipeline *p)
{
    (void)o;
    (void)p;
}

static void write_not_begun(const struct rv_test_output *o, rv_buf *b)
{
    if (o->n_not_begun > 0)
        rv_buf_printf(b, " (%zu did not begin)", o->n_not_begun);
    if (o->n_unloaded > 0)
        rv_buf_printf(b, "; %zu pipeline%s did not load", o->n_unloaded, o->n_unloaded == 1 ? "" : "s");
    if (o->n_unreached > 0)
        rv_buf_printf(b, ": %zu test%s did not begin", o->n_unreached, o->n_unreached == 1 ? "" : "s");
}

static void text_end(struct rv_test_output *o)
{
    rv_err *err = NULL;

    int rc = cli_test_tables_write_text(&o->tables, o->color, &o->out, &err);
    if (rc < 0) {
        o->out.rc = rc; /* the caller reports it */
        rv_err_free(err);
    }
    rv_buf_printf(&o->out, "%zu test%s: %zu passed, %zu failed", o->n_run, o->n_run == 1 ? "" : "s",
                  o->n_run - o->n_failed, o->n_failed);
    write_not_begun(o, &o->out);
    rv_buf_putc(&o->out, '\n');
    if (o->n_judge_calls > 0) {
        cli_test_write_judges(o, &o->out);
        rv_buf_putc(&o->out, '\n');
    }
    if (o->n_recorded + o->n_played > 0)
        rv_buf_printf(&o->out, "cassettes: %zu recorded, %zu played\n", o->n_recorded, o->n_played);
}

const struct rv_test_format cli_test_as_text = {.begin = cli_test_output_none,
                                                .pipeline = text_pipeline,
                                                .tests = lines_tests,
                                                .test = text_test,
                                                .coverage = text_coverage,
                                                .tests_end = text_tests_end,
                                                .pipeline_end = cli_test_output_none,
                                                .end = text_end};

/* --- TAP --- */

static void tap_begin(struct rv_test_output *o)
{
    rv_buf_puts(&o->out, "TAP version 14\n");
}

static void tap_pipeline(struct rv_test_output *o, const char *path, const struct rv_app_loaded *l, bool is_sound)
{
    (void)o;
    (void)path;
    (void)l;
    (void)is_sound;
}

static void tap_test(struct rv_test_output *o, const struct rv_pipeline *p, const struct rv_test_report *r)
{
    bool passed = rv_test_has_passed(r);

    rv_buf name = RV_BUF_INIT(RV_TEST_MAX_OUTPUT);
    cli_test_write_name(o, r, &name);
    rv_buf_printf(&o->out, "%s %zu - %s: ", passed ? "ok" : "not ok", o->n_run, p->name);
    for (const char *c = rv_buf_cstr(&name); *c; c++) { /* "#" would begin a directive */
        if (*c == '#' || *c == '\\')
            rv_buf_putc(&o->out, '\\');
        rv_buf_putc(&o->out, *c == '\n' ? ' ' : *c);
    }
    rv_buf_fini(&name);
    rv_buf_putc(&o->out, '\n');
    if (r->rate.n > 1) {
        rv_buf_puts(&o->out, "# ");
        cli_test_write_rate(&r->rate, &o->out);
        rv_buf_putc(&o->out, '\n');
    }
    if (!passed)
        write_reasons_once(o, r, "# ");
}

static void tap_end(struct rv_test_output *o)
{
    rv_buf_printf(&o->out, "1..%zu\n", o->n_run);
}

const struct rv_test_format cli_test_as_tap = {.option = "tap",
                                               .begin = tap_begin,
                                               .pipeline = tap_pipeline,
                                               .tests = lines_tests,
                                               .test = tap_test,
                                               .tests_end = text_tests_end,
                                               .pipeline_end = cli_test_output_none,
                                               .end = tap_end};

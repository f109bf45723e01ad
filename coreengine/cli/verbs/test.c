/* reeve test: run the tests that pipelines carry. */
#include "coreengine/app/testing.h"
#include "coreengine/cli/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>

#define MAX_OUTPUT_BYTES ((size_t)64 << 20)
#define MAX_SHOWN_BYTES  400 /* of a value in a line for people; --json has all of it */

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_TAP };

/* What a whole command gathers. */
struct session {
    struct rv_cli *cli;
    enum format format;
    const char *filter; /* NULL: none */
    bool coverage;
    int64_t min_percent; /* -1: none */
    rv_buf text;
    rv_jw json; /* on text */
    size_t n_run, n_failed, n_tests;
    int status;
};

static void worsen(struct session *s, int status)
{
    s->status = status > s->status ? status : s->status;
}

static const char *color(const struct session *s, const char *code)
{
    return s->cli->out_color && s->format == FORMAT_TEXT ? code : "";
}

static void write_short(json_object *v, rv_buf *b)
{
    rv_buf whole = RV_BUF_INIT(MAX_OUTPUT_BYTES);

    rv_json_write(v, &whole);
    rv_str head = rv_utf8_cut(rv_buf_str(&whole), MAX_SHOWN_BYTES);
    rv_buf_add_str(b, head);
    if (head.len < whole.len)
        rv_buf_puts(b, "...");
    rv_buf_fini(&whole);
}

/* "/visited: expected [...], found [...]" with line ends behind indent, so that TAP can use it in comments. */
static void write_failure(json_object *failure, rv_buf *b)
{
    json_object *found = NULL;
    const char *path = "", *message = NULL;

    RV_IGNORE(!rv_json_get_text(failure, "path", &path), "always there");
    if (rv_json_get_text(failure, "message", &message)) {
        rv_buf_printf(b, "%s%s%s", path, path[0] ? ": " : "", message);
        return;
    }
    json_object *expected = NULL;
    json_object_object_get_ex(failure, "expected", &expected);
    rv_buf_printf(b, "%s: expected ", path);
    write_short(expected, b);
    rv_buf_puts(b, ", found ");
    if (json_object_object_get_ex(failure, "found", &found))
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
        const char *stage = "", *type = "", *text = "", *file = NULL, *code = NULL;
        int64_t line = 0;

        RV_IGNORE(!rv_json_get_text(e, "stage", &stage) || !rv_json_get_text(e, "type", &type) ||
                      !rv_json_get_text(e, "text", &text),
                  "always there");
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

/* Each line of the reasons behind the same lead. */
static void write_reasons(const struct rv_test_report *r, const char *lead, rv_buf *out)
{
    rv_buf lines = RV_BUF_INIT(MAX_OUTPUT_BYTES);

    for (size_t i = 0; i < json_object_array_length(r->failures); i++) {
        write_failure(json_object_array_get_idx(r->failures, i), &lines);
        rv_buf_putc(&lines, '\n');
    }
    write_errors(r, &lines);
    write_path(r->visited, &lines);
    for (const char *p = rv_buf_cstr(&lines); *p;) {
        size_t n = strcspn(p, "\n");
        rv_buf_printf(out, "%s%.*s\n", lead, (int)n, p);
        p += n + (p[n] == '\n');
    }
    rv_buf_fini(&lines);
}

static void report_text(struct session *s, const struct rv_pipeline *p, const struct rv_test_report *r)
{
    bool passed = rv_test_passed(r);

    rv_buf_printf(&s->text, "  %s%s%s  %s", color(s, passed ? "\033[32m" : "\033[1;31m"), passed ? "ok  " : "FAIL",
                  color(s, "\033[0m"), r->test->name);
    if (passed) {
        rv_buf_putc(&s->text, '\n');
        return;
    }
    rv_buf_printf(&s->text, "  (%s:%d)\n", p->file, r->test->src.line);
    write_reasons(r, "        ", &s->text);
}

static void report_tap(struct session *s, const struct rv_pipeline *p, const struct rv_test_report *r)
{
    bool passed = rv_test_passed(r);

    rv_buf_printf(&s->text, "%s %zu - %s: ", passed ? "ok" : "not ok", s->n_run, p->name);
    for (const char *c = r->test->name; *c; c++) { /* "#" would begin a directive */
        if (*c == '#' || *c == '\\')
            rv_buf_putc(&s->text, '\\');
        rv_buf_putc(&s->text, *c == '\n' ? ' ' : *c);
    }
    rv_buf_putc(&s->text, '\n');
    if (!passed)
        write_reasons(r, "# ", &s->text);
}

static void report_json(struct session *s, const struct rv_test_report *r)
{
    rv_jw *w = &s->json;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", r->test->name);
    rv_jw_kv_int(w, "line", r->test->src.line);
    rv_jw_kv_bool(w, "passed", rv_test_passed(r));
    rv_jw_kv_text(w, "status", r->state ? rv_run_status_text(r->status) : NULL);
    rv_jw_kv_int(w, "duration_ms", r->duration_ms);
    rv_jw_kv_value(w, "visited", r->visited);
    rv_jw_kv_value(w, "questions", r->questions);
    rv_jw_kv_value(w, "failures", r->failures);
    rv_jw_kv_value(w, "errors", r->errors);
    if (r->code)
        rv_jw_kv_text(w, "terminal_reason", r->code);
    if (r->ended_by)
        rv_jw_kv_text(w, "ended_by", r->ended_by);
    rv_jw_obj_end(w);
}

static int run_one(struct session *s, struct rv_app_loaded *l, size_t i, rv_coverage *coverage, rv_err **err)
{
    struct rv_test_report r;
    int rc = rv_test_run(&s->cli->app, l, i, coverage, &r, err);

    if (rc < 0)
        return rc;
    s->n_run++;
    if (!rv_test_passed(&r)) {
        s->n_failed++;
        worsen(s, RV_EXIT_FAILED);
    }
    switch (s->format) {
    case FORMAT_TEXT:
        report_text(s, l->pipeline, &r);
        break;
    case FORMAT_JSON:
        report_json(s, &r);
        break;
    case FORMAT_TAP:
        report_tap(s, l->pipeline, &r);
        break;
    }
    rv_test_report_fini(&r);
    return 0;
}

static void report_coverage(struct session *s, const struct rv_pipeline *p, const rv_coverage *c)
{
    struct rv_coverage_counts n = rv_coverage_counts(c);

    if (s->format == FORMAT_JSON) {
        rv_jw_key(&s->json, "coverage");
        rv_coverage_write_json(c, &s->json);
    } else if (s->format == FORMAT_TEXT) {
        rv_coverage_write_text(c, &s->text);
    }
    if (s->min_percent < 0 || n.percent >= (double)s->min_percent)
        return;
    rv_cli_say("reeve: %s: its tests cover %.1f %% of stages and routes, less than %lld %%\n", p->file, n.percent,
               (long long)s->min_percent);
    worsen(s, RV_EXIT_FAILED);
}

static bool is_wanted(const struct session *s, const struct rv_test_config *test)
{
    return !s->filter || strstr(test->name, s->filter);
}

static size_t n_wanted(const struct session *s, const struct rv_pipeline *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_tests; i++)
        n += is_wanted(s, &p->tests[i]);
    return n;
}

static int run_tests(struct session *s, struct rv_app_loaded *l, rv_err **err)
{
    const struct rv_pipeline *p = l->pipeline;
    rv_coverage *coverage = s->coverage ? rv_coverage_new(p) : NULL;
    int rc = s->coverage && !coverage ? RV_FAIL(err, RV_E_NOMEM, "count coverage") : 0;

    if (s->format == FORMAT_JSON) {
        rv_jw_key(&s->json, "tests");
        rv_jw_arr(&s->json);
    }
    for (size_t i = 0; rc == 0 && i < p->n_tests; i++)
        if (is_wanted(s, &p->tests[i]))
            rc = run_one(s, l, i, coverage, err);
    if (s->format == FORMAT_JSON)
        rv_jw_arr_end(&s->json);
    if (rc == 0 && coverage)
        rc = rv_coverage_check(coverage, err);
    if (rc == 0 && coverage)
        report_coverage(s, p, coverage);
    rv_coverage_free(coverage);
    return rc;
}

/* What is known is shown before the next pipeline runs; JSON is one value and comes as a whole. */
static void show(struct session *s)
{
    if (s->format != FORMAT_JSON && s->text.rc == 0) {
        rv_cli_out_now(rv_buf_str(&s->text));
        rv_buf_clear(&s->text);
    }
}

static void test_pipeline(struct session *s, const char *path)
{
    const struct rv_app_load_opts opts = {.tests = true};
    struct rv_app_loaded l;
    rv_err *err = NULL;

    if (rv_app_load(&s->cli->app, path, &opts, &l, &err) < 0) {
        worsen(s, rv_cli_report(s->cli, err));
        return;
    }
    bool sound = rv_cli_sound(s->cli, &l, false);
    if (s->format == FORMAT_JSON) {
        rv_jw_obj(&s->json);
        rv_jw_kv_text(&s->json, "file", path);
        rv_jw_kv_bool(&s->json, "valid", sound);
        rv_jw_key(&s->json, "findings");
        rv_findings_write_json(l.findings, &s->json);
    } else if (sound && s->format == FORMAT_TEXT && n_wanted(s, l.pipeline) > 0) {
        rv_buf_printf(&s->text, "%s\n", path);
    }
    if (!sound) {
        worsen(s, RV_EXIT_USAGE);
    } else {
        s->n_tests += l.pipeline->n_tests;
        if (l.pipeline->n_tests == 0)
            rv_cli_say("reeve: %s has no tests\n", path);
        if (run_tests(s, &l, &err) < 0)
            worsen(s, rv_cli_report(s->cli, err));
    }
    if (s->format == FORMAT_JSON)
        rv_jw_obj_end(&s->json);
    rv_app_loaded_fini(&l);
}

static int options_of(struct rv_cli *cli, struct session *s, rv_err **err)
{
    *s = (struct session){.cli = cli,
                          .format = rv_cli_flag(cli, "json")  ? FORMAT_JSON
                                    : rv_cli_flag(cli, "tap") ? FORMAT_TAP
                                                              : FORMAT_TEXT,
                          .filter = rv_cli_value(cli, "filter"),
                          .min_percent = -1,
                          .text = RV_BUF_INIT(MAX_OUTPUT_BYTES)};
    int rc = rv_cli_int(cli, "min-coverage", 0, 100, &s->min_percent, err);
    s->coverage = rv_cli_flag(cli, "coverage") || s->min_percent >= 0;
    return rc;
}

static void begin(struct session *s)
{
    s->json = rv_jw_on(&s->text);
    if (s->format == FORMAT_TAP)
        rv_buf_puts(&s->text, "TAP version 14\n");
    if (s->format != FORMAT_JSON)
        return;
    rv_jw_obj(&s->json);
    rv_jw_key(&s->json, "pipelines");
    rv_jw_arr(&s->json);
}

static void end(struct session *s)
{
    switch (s->format) {
    case FORMAT_TEXT:
        rv_buf_printf(&s->text, "%zu test%s: %zu passed, %zu failed\n", s->n_run, s->n_run == 1 ? "" : "s",
                      s->n_run - s->n_failed, s->n_failed);
        break;
    case FORMAT_TAP:
        rv_buf_printf(&s->text, "1..%zu\n", s->n_run);
        break;
    case FORMAT_JSON:
        rv_jw_arr_end(&s->json);
        rv_jw_kv_int(&s->json, "tests", (int64_t)s->n_run);
        rv_jw_kv_int(&s->json, "passed", (int64_t)(s->n_run - s->n_failed));
        rv_jw_kv_int(&s->json, "failed", (int64_t)s->n_failed);
        rv_jw_obj_end(&s->json);
        rv_buf_putc(&s->text, '\n');
        break;
    }
}

static int test(struct rv_cli *cli, rv_err **err)
{
    struct session s;

    int rc = options_of(cli, &s, err);
    if (rc < 0)
        return rc;
    begin(&s);
    for (size_t i = 0; i < cli->n_words; i++) {
        test_pipeline(&s, cli->words[i]);
        show(&s);
    }
    end(&s);
    rc = rv_cli_print(0, &s.text, err);
    if (rc == 0 && s.filter && s.n_tests > 0 && s.n_run == 0) /* a misspelt filter must not look like success */
        rc = rv_cli_usage(cli, err, "no test has \"%s\" in its name", s.filter);
    return rc < 0 ? rc : s.status;
}

static const struct rv_cli_option test_options[] = {
    {"filter", 'f', "TEXT", "run only tests whose name contains TEXT", NULL, false},
    {"coverage", 0, NULL, "list the stages and routes that no test covers", NULL, false},
    {"min-coverage", 0, "PERCENT", "fail if the tests cover a smaller share of the stages and routes", NULL, false},
    {"json", 'j', NULL, "print the results as one JSON object", NULL, false},
    {"tap", 0, NULL, "print the results in the Test Anything Protocol", NULL, false},
};

const struct rv_cli_verb rv_verb_test = {
    .name = "test",
    .args = "PIPELINE...",
    .summary = "run the tests in pipeline files",
    .text =
        "Runs each test of each pipeline in simulated time with its script and compares the result with the test's\n"
        "expectation. --coverage counts stages and routes: rules, defaults and error routes. Exit status 0 if all\n"
        "tests pass, 1 if one fails, 2 if a pipeline is invalid.",
    .examples = "reeve test pipelines/*.yaml\nreeve test pipelines/loop.yaml --filter attempt\n"
                "reeve test pipelines/loop.yaml --coverage --min-coverage 90",
    RV_CLI_OPTIONS(test_options),
    .groups = {&rv_cli_of_pipelines},
    .excludes = "json tap",
    .min_words = 1,
    .max_words = RV_CLI_MAX_ARGS,
    .run = test,
};

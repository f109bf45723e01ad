/* reeve test: run the tests that pipelines carry. */
#include "coreengine/cli/verbs/files_internal.h"
#include "coreengine/cli/verbs/test_report_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"
#include "coreengine/cli/verbs/watch_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_REPEAT  10000 /* runs of each test: the interval is below two percent then */
#define MAX_NAMES   400   /* bytes of the names of tests in a message: five lines of a terminal */
#define MAX_NEAREST 200   /* bytes of the name that a hint shows: two lines of a terminal; the rest is cut */
#define MAX_MODELS  32    /* columns of a table that people still read: each runs all tests again */

static const struct rv_test_format *const formats[] = {&cli_test_as_json, &cli_test_as_tap, &cli_test_as_junit,
                                                       &cli_test_as_html};

/* What a whole command gathers. */
struct session {
    struct rv_cli *cli;
    const struct rv_test_format *format;
    struct rv_test_output to;
    struct rv_test_opts how;
    const char *filter;         /* NULL: none */
    struct rv_cli_watch *watch; /* that hears what is read; NULL: none */
    bool coverage, changed;
    rv_buf findings;              /* of the pipeline that is tested, as they were reported */
    int64_t min_percent;          /* -1: none */
    struct rv_test_choice choice; /* of --changed */
    size_t n_tests, n_found;      /* n_found: that the filter has found */
    rv_buf names;                 /* of the tests that the filter left out, for the message that it found none */
    char nearest[MAX_NEAREST];    /* of them to the filter; "": none */
    int status;
};

static void worsen(struct session *s, int status)
{
    s->status = status > s->status ? status : s->status;
}

static int run_one(struct session *s, const char *path, struct rv_app_loaded *l, size_t i, rv_coverage *coverage,
                   rv_err **err)
{
    struct rv_test_report r;
    struct rv_test_opts how = s->how;

    how.coverage = coverage;
    cli_watch_reads(s->watch, true);
    int rc = rv_test_run(&s->cli->app, l, i, &how, &r, err);
    cli_watch_reads(s->watch, false);
    if (rc < 0)
        return rc;
    s->to.n_run++;
    s->to.n_judge_calls += r.n_judge_calls;
    s->to.judge_micro_usd += r.judge_micro_usd;
    s->to.n_recorded += r.n_recorded;
    s->to.n_played += r.n_played;
    if (!rv_test_has_passed(&r)) {
        s->to.n_failed++;
        s->to.n_not_begun += !cli_test_began(&r);
        worsen(s, RV_EXIT_FAILED);
    }
    s->format->test(&s->to, l->pipeline, &r);
    rc = cli_test_tables_add(&s->to.tables, path, &r, err);
    rv_test_report_fini(&r);
    return rc;
}

static void report_coverage(struct session *s, const struct rv_pipeline *p, const rv_coverage *c)
{
    struct rv_coverage_counts n = rv_coverage_counts(c);

    if (s->format->coverage)
        s->format->coverage(&s->to, c);
    if (s->min_percent < 0 || n.percent >= (double)s->min_percent)
        return;
    cli_say("reeve: %s: its tests cover %.1f %% of stages and routes, less than %lld %%\n", p->file, n.percent,
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

static void note_left_out(struct session *s, const char *name)
{
    if (!s->nearest[0] && rv_nearest(rv_str_of(s->filter), &name, 1) && strlen(name) < sizeof s->nearest)
        memcpy(s->nearest, name, strlen(name) + 1);
    rv_buf_printf(&s->names, "%s%s", s->names.len > 0 ? ", " : "", name);
}

/* A misspelt filter must not look like success. */
static int found_none(const struct session *s, rv_err **err)
{
    rv_str names = rv_utf8_cut(rv_buf_str(&s->names), MAX_NAMES - 4);
    int rc = RV_FAIL(err, RV_E_INVALID, "no test has \"%s\" in its name", s->filter);

    if (s->nearest[0])
        rv_err_set_hint(err, "did you mean \"%s\"?", s->nearest);
    else
        rv_err_set_hint(err, "tests: %.*s%s", RV_STR_ARG(names),
                        s->names.rc < 0 || names.len < s->names.len ? " ..." : "");
    return rc;
}

static int run_tests(struct session *s, const char *path, struct rv_app_loaded *l, rv_err **err)
{
    const struct rv_pipeline *p = l->pipeline;
    rv_coverage *coverage = s->coverage ? rv_coverage_new(p) : NULL;
    struct rv_test_changes *changes = NULL;
    int rc = s->coverage && !coverage ? RV_FAIL(err, RV_E_NOMEM, "count coverage") : 0;

    if (rc == 0 && s->changed)
        rc = rv_test_changes_open(&s->cli->app, l, s->how.variant, &changes, err);
    s->format->tests(&s->to);
    for (size_t i = 0; rc == 0 && i < p->n_tests; i++) {
        size_t n_failed = s->to.n_failed;
        if (!is_wanted(s, &p->tests[i])) {
            note_left_out(s, p->tests[i].name);
            continue;
        }
        s->n_found++;
        if (changes && !rv_test_changes_choose(changes, i, &s->choice))
            continue;
        rc = run_one(s, path, l, i, coverage, err);
        if (changes)
            rv_test_changes_note(changes, i, s->to.n_failed == n_failed);
    }
    s->format->tests_end(&s->to, p);
    if (rc == 0 && changes)
        rc = rv_test_changes_keep(changes, err);
    rv_test_changes_free(changes);
    if (rc == 0 && coverage)
        rc = rv_coverage_check(coverage, err);
    if (rc == 0 && coverage)
        report_coverage(s, p, coverage);
    rv_coverage_free(coverage);
    return rc;
}

/* What is known is shown before the next pipeline runs; a document comes as a whole. */
static void show(struct session *s)
{
    if (!s->format->is_one_document && s->to.out.rc == 0) {
        cli_out_now(rv_buf_str(&s->to.out));
        rv_buf_clear(&s->to.out);
    }
}

/* Once, however many models the pipeline is loaded for. */
static void say_findings(struct session *s, const rv_findings *findings)
{
    rv_buf text = RV_BUF_INIT(RV_TEST_MAX_OUTPUT);

    rv_findings_write_text(findings, false, &text);
    if (text.rc < 0 || !rv_str_eq(rv_buf_str(&text), rv_buf_str(&s->findings)))
        cli_say_findings(s->cli, findings);
    rv_buf_clear(&s->findings);
    rv_buf_add_str(&s->findings, rv_buf_str(&text));
    rv_buf_fini(&text);
}

/* Of a pipeline that is sound: tests that compare nothing. */
static void say_warnings(struct session *s, const struct rv_app_loaded *l)
{
    rv_findings *of_tests = rv_findings_new();

    for (size_t i = 0; of_tests && i < rv_findings_n(l->findings); i++) {
        struct rv_finding f = rv_findings_at(l->findings, i);
        if (f.code && strcmp(f.code, RV_TEST_COMPARES_NOTHING) == 0)
            rv_findings_add_as(of_tests, f.severity, f.code, &f.src, f.hint, "%s", f.text);
    }
    if (of_tests)
        say_findings(s, of_tests);
    rv_findings_free(of_tests);
}

/* False: it did not load. */
static bool test_pipeline(struct session *s, const char *path)
{
    const struct rv_app_load_opts opts = {.tests = true, .connects = s->how.is_live, .model = s->how.variant};
    struct rv_app_loaded l;
    rv_err *err = NULL;

    cli_watch_reads(s->watch, true);
    int rc = rv_app_load(&s->cli->app, path, &opts, &l, &err);
    cli_watch_reads(s->watch, false);
    if (rc < 0) {
        worsen(s, cli_report(s->cli, err));
        return false;
    }
    bool sound = l.pipeline && rv_findings_n_errors(l.findings) == 0;
    s->to.show_pipeline = sound && n_wanted(s, l.pipeline) > 0;
    s->format->pipeline(&s->to, path, &l, sound);
    if (!sound) {
        say_findings(s, l.findings);
        s->to.n_unreached += l.pipeline ? n_wanted(s, l.pipeline) : 0;
        worsen(s, RV_EXIT_USAGE);
    } else {
        say_warnings(s, &l);
        s->n_tests += l.pipeline->n_tests;
        if (l.pipeline->n_tests == 0)
            cli_say("reeve: %s has no tests\n", path);
        if (run_tests(s, path, &l, &err) < 0)
            worsen(s, cli_report(s->cli, err));
    }
    s->format->pipeline_end(&s->to);
    rv_app_loaded_fini(&l);
    return sound;
}

/* Once, or once for each model. */
static void test_file(struct session *s, const char *path)
{
    struct rv_test_matrix *m = &s->to.tables.models;
    bool loaded = true;

    rv_buf_clear(&s->findings);
    m->at = 0;
    do {
        s->how.variant = m->n_columns > 0 ? m->columns[m->at] : NULL;
        loaded = test_pipeline(s, path) && loaded;
    } while (++m->at < m->n_columns);
    s->to.n_unloaded += !loaded;
}

static void say_choice(const struct rv_test_choice *choice)
{
    rv_buf text = RV_BUF_INIT(4096);

    rv_test_choice_write_text(choice, &text);
    cli_say("reeve: %s\n", rv_buf_cstr(&text));
    rv_buf_fini(&text);
}

static const struct rv_test_format *format_of(struct rv_cli *cli)
{
    for (size_t i = 0; i < RV_COUNT(formats); i++)
        if (cli_flag(cli, formats[i]->option))
            return formats[i];
    return &cli_test_as_text;
}

static int how_of(struct rv_cli *cli, struct rv_test_opts *out, rv_err **err)
{
    static const char *const uses[] = {
        [RV_CASSETTES_NEW] = "new", [RV_CASSETTES_ALL] = "all", [RV_CASSETTES_NONE] = "none"};
    RV_EACH_HAS_ROW(uses, RV_N_CASSETTE_USES);
    const char *record = cli_value(cli, "record");
    int64_t percent = -1;

    *out = (struct rv_test_opts){.is_live = cli_flag(cli, "live"), .cassettes = cli_value(cli, "cassettes")};
    int rc = cli_int(cli, "repeat", 1, MAX_REPEAT, &out->repeat, err);
    if (rc == 0)
        rc = cli_int(cli, "min-pass-rate", 0, 100, &percent, err);
    out->has_min_pass_rate = percent >= 0;
    out->min_pass_rate = (double)percent / 100;
    if (rc == 0 && out->cassettes && !out->cassettes[0])
        rc = cli_usage(cli, err, "--cassettes needs the path of a folder");
    for (size_t i = 0; record && i < RV_COUNT(uses); i++)
        if (strcmp(record, uses[i]) == 0)
            out->use = (enum rv_cassette_use)i;
    return rc;
}

static int models_of(struct rv_cli *cli, struct rv_test_matrix *out, rv_err **err)
{
    size_t n = 0;

    *out = (struct rv_test_matrix){.columns = calloc(MAX_MODELS, sizeof *out->columns),
                                   .rows = json_object_new_array(),
                                   .column_key = "model",
                                   .corner = "TEST"};
    if (!out->columns || !out->rows)
        return RV_FAIL(err, RV_E_NOMEM, "compare models");
    if (cli_nth(cli, "model", MAX_MODELS))
        return cli_usage(cli, err, "--model is given more than %d times", MAX_MODELS);
    for (const char *name; (name = cli_nth(cli, "model", n)); n++) {
        for (size_t k = 0; k < n; k++)
            if (strcmp(out->columns[k], name) == 0)
                return cli_usage(cli, err, "--model %s is given twice", name);
        out->columns[n] = name;
    }
    out->n_columns = n;
    return 0;
}

static int options_of(struct rv_cli *cli, struct session *s, rv_err **err)
{
    *s = (struct session){.cli = cli,
                          .format = format_of(cli),
                          .findings = RV_BUF_INIT(RV_TEST_MAX_OUTPUT),
                          .to = {.out = RV_BUF_INIT(RV_TEST_MAX_OUTPUT),
                                 .cause = RV_BUF_INIT(RV_TEST_MAX_OUTPUT),
                                 .body = RV_BUF_INIT(RV_TEST_MAX_OUTPUT),
                                 .color = cli->out_color},
                          .filter = cli_value(cli, "filter"),
                          .names = RV_BUF_INIT(MAX_NAMES),
                          .min_percent = -1};
    int rc = cli_int(cli, "min-coverage", 0, 100, &s->min_percent, err);
    if (rc == 0)
        rc = how_of(cli, &s->how, err);
    if (rc == 0)
        rc = models_of(cli, &s->to.tables.models, err);
    s->coverage = cli_flag(cli, "coverage") || s->min_percent >= 0;
    s->changed = cli_flag(cli, "changed");
    return rc;
}

static void table_fini(struct rv_test_matrix *m)
{
    for (size_t k = 0; m->about && k < m->n_columns; k++)
        free((char *)m->columns[k]);
    free(m->columns);
    json_object_put(m->rows);
    json_object_put(m->about);
}

static void tables_fini(struct rv_test_tables *t)
{
    table_fini(&t->models);
    for (size_t i = 0; i < t->n; i++)
        table_fini(&t->of_tests[i]);
    free(t->of_tests);
}

/* All files once: loaded, tested, reported. Gives the exit status. watch, if there is one, hears what is read. */
static int test_all(struct rv_cli *cli, const struct rv_cli_files *files, struct rv_cli_watch *watch, rv_err **err)
{
    struct session s;

    int rc = options_of(cli, &s, err);
    if (rc < 0) {
        tables_fini(&s.to.tables);
        return rc;
    }
    s.watch = watch;
    s.format->begin(&s.to);
    for (size_t i = 0; i < files->n; i++) {
        test_file(&s, files->paths[i]);
        show(&s);
    }
    rv_buf_fini(&s.findings);
    s.format->end(&s.to);
    rv_buf_fini(&s.to.cause);
    rc = rv_buf_check(&s.to.body, "report of tests", err);
    rv_buf_fini(&s.to.body);
    tables_fini(&s.to.tables);
    rc = cli_print(rc, &s.to.out, err);
    if (s.changed)
        say_choice(&s.choice);
    if (rc == 0 && s.filter && s.n_tests > 0 && s.n_found == 0)
        rc = found_none(&s, err);
    rv_buf_fini(&s.names);
    return rc < 0 ? rc : s.status;
}

/* Each run of tests writes all cassettes again, and would be the change that begins the next one. */
static int check_watch(struct rv_cli *cli, rv_err **err)
{
    const char *record = cli_value(cli, "record");

    if (record && strcmp(record, "all") == 0)
        return cli_usage(cli, err, "--record all does not go with --watch: models would be asked again without end");
    return 0;
}

/* After each change again, until SIGINT. What is read later than the watch begins is not missed. */
static int watch(struct rv_cli *cli, struct rv_cli_files *files, rv_err **err)
{
    struct rv_cli_watch w = RV_CLI_WATCH_INIT;

    int rc = check_watch(cli, err);
    while (rc == 0 && (rc = cli_watch_begin(&w, files, err)) == 0) {
        struct rv_cli_files now = {0};
        rv_err *fault = NULL;
        int done = cli_files(cli, &now, &fault); /* a folder may have other files than before */
        if (done == 0)
            done = test_all(cli, &now, &w, &fault);
        if (done < 0)
            RV_IGNORE(cli_report(cli, fault), "the next change may mend it");
        cli_files_fini(&now);
        if (!cli_out_now(RV_STR_LIT("")))
            break; /* the reader has left */
        cli_say("reeve: waiting for a change; ^C ends\n");
        rc = cli_watch_wait(&w, err);
    }
    cli_watch_end(&w);
    return rc < 0 ? rc : RV_EXIT_FAILED;
}

static int test(struct rv_cli *cli, rv_err **err)
{
    struct rv_cli_files files = {0};

    int rc = cli_files(cli, &files, err);
    if (rc == 0)
        rc = cli_flag(cli, "watch") ? watch(cli, &files, err) : test_all(cli, &files, NULL, err);
    cli_files_fini(&files);
    return rc;
}

static const struct rv_cli_option test_options[] = {
    {"filter", 'f', "TEXT", "run only tests whose name contains TEXT", NULL, false},
    {"changed", 0, NULL, "run only tests that have not passed since something changed that they read", NULL, false},
    {"coverage", 0, NULL, "list the stages and routes that no test covers", NULL, false},
    {"min-coverage", 0, "PERCENT", "fail if the tests cover a smaller share of the stages and routes", NULL, false},
    {"live", 0, NULL, "ask the models of the pipeline, and keep their answers as cassettes for the next time", NULL,
     false},
    {"cassettes", 0, "DIR", "with --live: folder of the cassettes (default: cassettes beside the pipeline)", "FILE",
     false},
    {"record", 0, "WHICH", "with --live: record new cassettes (default), all again, or none", "new all none", false},
    {"repeat", 'n', "N", "run each test N times and tell its pass rate", NULL, false},
    {"min-pass-rate", 0, "PERCENT", "share of the runs of a test that must pass (default 100)", NULL, false},
    {"model", 'm', "NAME", "ask provider:model instead of each model of the pipelines; several are compared", NULL,
     true},
    {"json", 'j', NULL, "print the results as one JSON object", NULL, false},
    {"tap", 0, NULL, "print the results in the Test Anything Protocol", NULL, false},
    {"junit", 0, NULL, "print the results as XML of JUnit", NULL, false},
    {"html", 0, NULL, "print the results as a page of HTML", NULL, false},
    {"watch", 'w', NULL, "run them again whenever a file changes that they read, or one beside a pipeline", NULL,
     false},
};

const struct rv_cli_verb verb_test = {
    .name = "test",
    .args = "PIPELINE|FOLDER...",
    .summary = "run the tests in pipeline files",
    .text =
        "Runs each test of each pipeline in simulated time with its script and compares the result with the test's\n"
        "expectation. Of a folder the files that end with .yaml or .yml are tested. --coverage counts stages and "
        "routes: rules, defaults and error routes. Exit status 0 if all\n"
        "tests pass, 1 if one fails, 2 if a pipeline is invalid.",
    .examples = "reeve test pipelines\nreeve test pipelines/loop.yaml --filter attempt\n"
                "reeve test pipelines/loop.yaml --coverage --min-coverage 90\n"
                "reeve test pipelines/loop.yaml --changed\n"
                "reeve test pipelines/*.yaml --html >tests.html",
    RV_CLI_OPTIONS(test_options),
    .groups = {&cli_of_pipelines},
    .needs = "cassettes live; record live",
    .excludes = "json tap junit html watch; changed live; changed coverage; changed min-coverage",
    .min_words = 1,
    .max_words = RV_CLI_MAX_ARGS,
    .run = test,
};

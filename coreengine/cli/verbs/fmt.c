/* reeve fmt: pipelines, agent documents and scripts in one layout. */
#include "coreengine/cli/show/lines_internal.h"
#include "coreengine/cli/verbs/files_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>

struct session {
    const struct rv_cli *cli;
    bool checks, diffs;
    size_t n_files, n_differ;
    int status;
    rv_buf out;
};

static void worsen(struct session *s, int status)
{
    s->status = status > s->status ? status : s->status;
}

static int write_diff(struct session *s, const char *name, rv_str from, rv_str to, rv_err **err)
{
    struct rv_cli_lines lines;
    bool color = s->cli->out_color;

    int rc = cli_lines_compare(from, to, &lines, err);
    if (rc < 0)
        return rc;
    rv_buf_printf(&s->out, color ? "\033[1m--- %s\n+++ %s\033[0m\n" : "--- %s\n+++ %s\n", name, name);
    size_t before = s->out.len;
    cli_lines_write_unified(&lines, color, &s->out);
    if (s->out.len == before) /* the lines are the same: their ends are not */
        rv_buf_puts(&s->out, "(ends of lines)\n");
    cli_lines_fini(&lines);
    return 0;
}

/* A file that is sound. */
static int take(struct session *s, const char *path, const char *name, rv_str from, rv_str to, rv_err **err)
{
    bool differs = !rv_str_eq(from, to), is_stdin = strcmp(path, "-") == 0;
    int rc = 0;

    s->n_files++;
    s->n_differ += differs;
    if (is_stdin && !s->checks && !s->diffs)
        rv_buf_add_str(&s->out, to);
    if (!differs)
        return 0;
    if (s->diffs)
        rc = write_diff(s, name, from, to, err);
    else if (!s->checks && !is_stdin)
        rc = rv_file_rewrite(path, to, err);
    if (rc == 0 && !s->diffs && (s->checks || !is_stdin))
        rv_buf_printf(&s->out, "%s\n", name);
    if (s->checks)
        worsen(s, RV_EXIT_FAILED);
    return rc;
}

static int format_file(struct session *s, const char *path, rv_err **err)
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES), out = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    rv_findings *findings = rv_findings_new();

    int rc = findings ? rv_file_read(path, &text, err) : RV_FAIL(err, RV_E_NOMEM, "format \"%s\"", name);
    if (rc == 0)
        rc = rv_yaml_format(rv_buf_str(&text), name, findings, &out, err);
    if (rc == 0 && rv_findings_n_errors(findings)) {
        cli_say_findings(s->cli, findings);
        worsen(s, RV_EXIT_USAGE);
    } else if (rc == 0) {
        rc = take(s, path, name, rv_buf_str(&text), rv_buf_str(&out), err);
    }
    rv_findings_free(findings);
    rv_buf_fini(&text);
    rv_buf_fini(&out);
    return rc;
}

static int format(struct rv_cli *cli, rv_err **err)
{
    struct session s = {.cli = cli,
                        .checks = cli_flag(cli, "check"),
                        .diffs = cli_flag(cli, "diff"),
                        .out = RV_BUF_INIT((size_t)64 << 20)};
    struct rv_cli_files files;

    int rc = cli_files_below(cli, &files, err);
    for (size_t i = 0; rc == 0 && i < files.n; i++) { /* a file that cannot be formatted does not stop the others */
        rv_err *fault = NULL;
        rc = format_file(&s, files.paths[i], &fault);
        if (rc < 0)
            rc = RV_WRAP(&fault, rc, "format a file"); /* the cause names it */
        if (rc < 0)
            worsen(&s, cli_report(cli, fault));
        rc = 0;
    }
    cli_files_fini(&files);
    rc = cli_print(rc, &s.out, err);
    if (rc == 0 && s.checks && s.n_differ)
        cli_say("reeve: %zu of %zu file%s %s not formatted; `reeve fmt` formats %s\n", s.n_differ, s.n_files,
                cli_plural((int64_t)s.n_files), s.n_differ == 1 ? "is" : "are", s.n_differ == 1 ? "it" : "them");
    return rc < 0 ? rc : s.status;
}

static const struct rv_cli_option fmt_options[] = {
    {"check", 0, NULL, "change nothing; list the files that are not formatted and exit with 1 if there are any", NULL,
     false},
    {"diff", 'd', NULL, "change nothing; show what would change", NULL, false},
};

const struct rv_cli_verb verb_fmt = {
    .name = "fmt",
    .args = "FILE|FOLDER...",
    .summary = "format pipelines, agent documents and scripts",
    .text =
        "Rewrites YAML files in one layout: levels of two columns, one blank between tokens, of blank lines in a row\n"
        "one. Lines, comments, quotes, anchors, block scalars and the order of keys stay, and so does what a file\n"
        "says: reeve loads both texts and compares them before it writes. It prints the names of the files that it\n"
        "changed. Of a folder all .yaml and .yml files are formatted, with those of the folders in it. `-` reads\n"
        "standard input and prints the result.",
    .examples = "reeve fmt pipelines   # all files below it\n"
                "reeve fmt --check pipelines   # for CI: 1 if a file is not formatted\n"
                "reeve fmt --diff pipelines/loop.yaml   # what would change\n"
                "reeve fmt - <pipelines/loop.yaml   # for editors",
    RV_CLI_OPTIONS(fmt_options),
    .min_words = 1,
    .max_words = RV_CLI_MAX_ARGS,
    .run = format,
};

/* reeve diff: where two runs part. */
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>

#define SHOWN 600 /* bytes of a record that people see */

static void write_side(const char *mark, const struct rv_app_side *s, rv_buf *b)
{
    rv_buf_printf(b, "%s %s  %s  %s, %lld record%s\n", mark, s->row.id, s->row.pipeline,
                  rv_run_status_text(s->row.status), (long long)s->row.n_records, cli_plural(s->row.n_records));
}

static void write_line(const char *mark, rv_str line, rv_buf *b)
{
    rv_buf_printf(b, "%s ", mark);
    cli_write_preview(line, SHOWN, b);
    rv_buf_putc(b, '\n');
}

static void write_value(const char *mark, json_object *value, bool absent, rv_buf *b)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);

    if (absent)
        rv_buf_puts(&text, "(absent)");
    else
        rv_json_write(value, &text);
    write_line(mark, rv_buf_str(&text), b);
    rv_buf_fini(&text);
}

static void write_bundle_lines(const struct rv_app_comparison *c, rv_buf *b)
{
    for (const char *line = rv_buf_cstr(&c->bundle); *line;) {
        size_t n = strcspn(line, "\n");
        rv_buf_printf(b, "bundles differ in %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static void write_text(const struct rv_cli *cli, const struct rv_app_comparison *c, rv_buf *b)
{
    const char *red = cli->out_color ? "\033[31m-" : "-", *green = cli->out_color ? "\033[32m+" : "+",
               *plain = cli->out_color ? "\033[0m" : "";

    if (c->same && c->same_bundle) {
        rv_buf_printf(b, "equal: %lld record%s\n", (long long)c->n_same, cli_plural(c->n_same));
        return;
    }
    write_side("-", &c->a, b);
    write_side("+", &c->b, b);
    write_bundle_lines(c, b);
    rv_buf_printf(b, "%lld record%s the same\n", (long long)c->n_same, c->n_same == 1 ? " is" : "s are");
    if (c->same)
        return;
    for (size_t i = 0; i < RV_APP_DIFF_CONTEXT; i++)
        if (c->context[i])
            write_line(" ", rv_str_of(c->context[i]), b);
    write_line(red, rv_app_is_at_end(&c->a) ? RV_STR_LIT("(the end)") : rv_buf_str(&c->a.line), b);
    write_line(green, rv_app_is_at_end(&c->b) ? RV_STR_LIT("(the end)") : rv_buf_str(&c->b.line), b);
    rv_buf_puts(b, plain);
    if (c->at.path.len) {
        rv_buf_printf(b, "they differ at %s\n", rv_buf_cstr(&c->at.path));
        write_value(red, c->at.a, c->at.a_absent, b);
        write_value(green, c->at.b, c->at.b_absent, b);
        rv_buf_puts(b, plain);
    }
}

static void write_json(const struct rv_app_comparison *c, rv_buf *b)
{
    rv_jw w = rv_jw_on(b);

    rv_app_comparison_write(c, &w);
    rv_buf_putc(b, '\n');
}

static int diff(struct rv_cli *cli, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    struct rv_app_comparison c;

    int rc = rv_app_diff(cli->store, &cli->app.scope, cli->words, cli_flag(cli, "exact"), &c, err);
    if (rc == 0 && cli_flag(cli, "json"))
        write_json(&c, &text);
    else if (rc == 0)
        write_text(cli, &c, &text);
    rc = cli_print(rc, &text, err);
    if (rc == 0 && !(c.same && c.same_bundle))
        rc = RV_EXIT_FAILED;
    rv_app_comparison_fini(&c);
    return rc;
}

static const struct rv_cli_option diff_options[] = {
    {"exact", 0, NULL, "compare bytes, including ids, times and owners", NULL, false},
    {"json", 'j', NULL, "print the result as one JSON object", NULL, false},
};

const struct rv_cli_verb verb_diff = {
    .name = "diff",
    .args = "RUN RUN",
    .summary = "show where two runs differ",
    .text =
        "Compares how two runs were started and what they received, record by record, and shows the first difference\n"
        "with both values. Ids, times and owners always differ and are ignored. Exit status 0 if the runs are equal,\n"
        "1 if not.",
    .examples = "reeve diff env_1a env_2b\n"
                "reeve diff last env_1a --json | jq .path",
    RV_CLI_OPTIONS(diff_options),
    .groups = {&cli_of_stores},
    .store = RV_CLI_READS,
    .min_words = 2,
    .max_words = 2,
    .takes = &cli_takes_runs,
    .run = diff,
};

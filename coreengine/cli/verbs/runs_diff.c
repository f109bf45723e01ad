/* reeve runs diff: what two runs did, beside each other. */
#include "coreengine/cli/show/lines_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct side {
    struct rv_app_past past;
    rv_buf story;
};

static int read_side(struct rv_cli *cli, const char *word, struct side *out, rv_err **err)
{
    int rc = rv_app_past_open(cli->store, &cli->app.scope, word, &out->past, err);

    return rc == 0 ? rv_app_transcript_write(cli->store, &out->past, &out->story, err) : rc;
}

static void side_fini(struct side *s)
{
    rv_app_past_fini(&s->past);
    rv_buf_fini(&s->story);
}

/* Columns of the terminal; 0: the output is none, or --unified is given. */
static int columns(const struct rv_cli *cli, rv_err **err, int64_t *out)
{
    struct winsize size;

    *out = 0;
    if (!cli_flag(cli, "unified") && cli->out_tty)
        *out = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
    return cli_int(cli, "columns", 2 * RV_CLI_LINES_LEAST, 1000, out, err);
}

static int write_difference(const struct rv_cli *cli, const struct side *a, const struct side *b, bool *same,
                            rv_buf *out, rv_err **err)
{
    struct rv_cli_lines lines;
    bool color = cli->out_color;
    int64_t n_columns;

    int rc = columns(cli, err, &n_columns);
    if (rc == 0)
        rc = cli_lines_compare(rv_buf_str(&a->story), rv_buf_str(&b->story), &lines, err);
    if (rc < 0)
        return rc;
    *same = rv_str_eq(rv_buf_str(&a->story), rv_buf_str(&b->story));
    if (*same) {
        rv_buf_printf(out, "equal: %zu line%s\n", lines.n, cli_plural((int64_t)lines.n));
    } else if (n_columns > 0) {
        int side = (int)(n_columns - 3) / 2;
        rv_buf_printf(out, "%s%-*.*s   %.*s%s\n", color ? "\033[1m" : "", side, side, a->past.row.id, side,
                      b->past.row.id, color ? "\033[0m" : "");
        cli_lines_write_sides(&lines, (int)n_columns, color, out);
    } else {
        rv_buf_printf(out, "%s--- %s\n+++ %s%s\n", color ? "\033[1m" : "", a->past.row.id, b->past.row.id,
                      color ? "\033[0m" : "");
        cli_lines_write_unified(&lines, color, out);
    }
    cli_lines_fini(&lines);
    return rv_buf_check(out, "what differs between two runs", err);
}

static int diff(struct rv_cli *cli, rv_err **err)
{
    struct side a = {.story = RV_BUF_INIT(RV_APP_MAX_TEXT)}, b = {.story = RV_BUF_INIT(RV_APP_MAX_TEXT)};
    rv_buf out = RV_BUF_INIT(RV_APP_MAX_TEXT);
    bool same = true;

    int rc = read_side(cli, cli->words[0], &a, err);
    if (rc == 0)
        rc = read_side(cli, cli->words[1], &b, err);
    if (rc == 0)
        rc = write_difference(cli, &a, &b, &same, &out, err);
    rc = cli_print(rc, &out, err);
    side_fini(&a);
    side_fini(&b);
    return rc == 0 && !same ? RV_EXIT_FAILED : rc;
}

static const struct rv_cli_option diff_options[] = {
    {"unified", 0, NULL, "print a unified diff, as in a pipe", NULL, false},
    {"columns", 0, "N", "print side by side in N columns, also in a pipe", NULL, false},
};

const struct rv_cli_verb verb_runs_diff = {
    .name = "runs diff",
    .args = "RUN RUN",
    .summary = "show what two runs did, side by side",
    .text =
        "Replays both journals without calling anything and compares what the runs did line by line: input, route and\n"
        "visits, prompts and replies of models with tokens and cost, calls of tools, outputs. Ids and times are left\n"
        "out. A terminal shows it side by side, a pipe gets a unified diff. `reeve diff` compares the journals record\n"
        "by record instead. Exit status 0 if the runs did the same, 1 if not.",
    .examples = "reeve runs diff env_1a last\n"
                "reeve runs diff env_1a env_2b --columns 120",
    RV_CLI_OPTIONS(diff_options),
    .groups = {&cli_of_stores},
    .excludes = "unified columns",
    .store = RV_CLI_READS,
    .min_words = 2,
    .max_words = 2,
    .takes = &cli_takes_runs,
    .run = diff,
};

/* reeve runs, and its list. */
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SHOWN_BY_DEFAULT 50
#define MIN_PREVIEW      ((size_t)8) /* less of a question says nothing */

static int read_filter(const struct rv_cli_args *args, struct rv_run_filter *f, rv_err **err)
{
    const char *word;
    bool data = rv_cli_flag(args, "json") || rv_cli_flag(args, "ids");

    *f = (struct rv_run_filter){.pipeline = rv_cli_value(args, "pipeline"),
                                .session = rv_cli_value(args, "session"),
                                .limit = data ? 0 : SHOWN_BY_DEFAULT};
    for (size_t i = 0; (word = rv_cli_nth(args, "status", i)); i++) {
        enum rv_run_status status;
        int rc = rv_run_status_of(rv_str_of(word), &status, err);
        if (rc < 0)
            return rc;
        f->statuses |= 1u << status;
    }
    if (rv_cli_flag(args, "waiting"))
        f->statuses |= 1u << RV_RUN_INTERRUPTED;
    return rv_cli_int(args, "limit", 0, 1000000, &f->limit, err);
}

/* --- for people --- */

const char *rv_cli_status_color(enum rv_run_status status)
{
    switch (status) {
    case RV_RUN_COMPLETED:
        return "\033[32m";
    case RV_RUN_INTERRUPTED:
        return "\033[33m";
    case RV_RUN_FAILED:
        return "\033[31m";
    case RV_RUN_TERMINATED:
    case RV_RUN_CANCELLED:
        return "\033[35m";
    case RV_RUN_READY:
    case RV_RUN_RUNNING:
        return "\033[36m";
    case RV_N_RUN:
        break;
    }
    return "";
}

static size_t line_width(const struct rv_cli *cli)
{
    struct winsize size;

    if (!cli->out_tty)
        return 160;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 40 ? size.ws_col : 80;
}

/* What it waits for, or who has it. */
static void write_remark(const struct rv_app_runs *l, size_t i, int64_t now_us, size_t max, rv_buf *b)
{
    const struct rv_app_listed *e = &l->items[i];
    enum rv_app_owner owner = rv_app_owner_of(&e->row, now_us);
    bool unfinished = e->row.status == RV_RUN_READY || e->row.status == RV_RUN_RUNNING;

    if (e->n_pending) {
        const struct rv_pending *p = &l->waiting[e->first_waiting].p;
        size_t used = strlen(p->kind) + (e->n_pending > 1 ? 20 : 5);
        rv_buf_puts(b, p->kind);
        if (max >= used + MIN_PREVIEW) {
            rv_buf_puts(b, ": ");
            rv_cli_write_preview(p->text, max - used, b);
        }
        if (e->n_pending > 1)
            rv_buf_printf(b, " (and %zu more)", e->n_pending - 1);
        return;
    }
    if (e->row.cancel_requested)
        rv_buf_puts(b, "to be cancelled");
    else if (e->crashes >= RV_APP_CRASHES)
        rv_buf_printf(b, "crashed %lld times", (long long)e->crashes);
    else if (unfinished && owner == RV_APP_OWNER_NONE)
        rv_buf_puts(b, "no process runs it");
    else if (unfinished && owner != RV_APP_OWNER_LIVES)
        rv_buf_puts(b, owner == RV_APP_OWNER_LATE ? "its owner let its lease end" : "its owner is gone");
}

static size_t widest(size_t width, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    return n > width ? n : width;
}

static void write_table(const struct rv_cli *cli, const struct rv_app_runs *l, rv_buf *b)
{
    size_t id = 3, pipeline = 8, stage = 5;
    int64_t now = rv_app_now_us();

    for (size_t i = 0; i < l->n; i++) {
        id = widest(id, l->items[i].id);
        pipeline = widest(pipeline, l->items[i].pipeline);
        stage = widest(stage, l->items[i].stage);
    }
    pipeline = pipeline > 24 ? 24 : pipeline;
    stage = stage > 20 ? 20 : stage;
    rv_buf_printf(b, "%s%-*s  %-*s  %-11s  %-*s  %-7s  WAITS FOR%s\n", cli->out_color ? "\033[1m" : "", (int)id, "RUN",
                  (int)pipeline, "PIPELINE", "STATUS", (int)stage, "STAGE", "AGE", cli->out_color ? "\033[0m" : "");
    size_t used = id + pipeline + stage + 28, width = line_width(cli);
    for (size_t i = 0; i < l->n; i++) {
        const struct rv_app_listed *e = &l->items[i];
        rv_buf age = RV_BUF_INIT(64);
        rv_cli_write_age(&age, now - e->row.created_us);
        rv_buf_printf(b, "%-*s  %-*.*s  %s%-11s%s  %-*.*s  %-7s  ", (int)id, e->id, (int)pipeline, (int)pipeline,
                      e->pipeline ? e->pipeline : "", cli->out_color ? rv_cli_status_color(e->row.status) : "",
                      rv_run_status_text(e->row.status), cli->out_color ? "\033[0m" : "", (int)stage, (int)stage,
                      e->stage ? e->stage : "", rv_buf_cstr(&age));
        rv_buf_fini(&age);
        write_remark(l, i, now, width > used ? width - used : 0, b);
        while (b->len && b->ptr[b->len - 1] == ' ')
            rv_buf_truncate(b, b->len - 1);
        rv_buf_putc(b, '\n');
    }
}

static void write_waiting(const struct rv_cli *cli, const struct rv_cli_args *args, const struct rv_app_runs *l,
                          rv_buf *b)
{
    for (size_t k = 0; k < l->n_waiting; k++) {
        const struct rv_app_waiting *w = &l->waiting[k];
        if (w->entry >= l->n)
            continue;
        rv_buf_printf(b, "%s%s%s  %s  %s in stage %s", cli->out_color ? "\033[1m" : "", w->p.run,
                      cli->out_color ? "\033[0m" : "", l->items[w->entry].pipeline, w->p.kind,
                      w->p.stage ? w->p.stage : "-");
        if (w->p.expires_us) {
            rv_buf_puts(b, ", until ");
            rv_cli_write_moment(b, w->p.expires_us);
        }
        rv_buf_puts(b, "\n  ");
        rv_cli_write_preview(w->p.text, 2000, b);
        rv_buf_puts(b, "\n  ");
        rv_cli_write_resume(args, &w->p, l->items[w->entry].n_pending == 1, b);
    }
}

static int print_list(struct rv_cli *cli, const struct rv_cli_args *args, const struct rv_app_runs *l)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);

    rv_jw w = rv_jw_on(&text);

    if (rv_cli_flag(args, "json")) {
        rv_app_runs_write(l, &w);
        rv_buf_putc(&text, '\n');
    } else if (rv_cli_flag(args, "ids"))
        for (size_t i = 0; i < l->n; i++)
            rv_buf_printf(&text, "%s\n", l->items[i].id);
    else if (rv_cli_flag(args, "waiting"))
        write_waiting(cli, args, l, &text);
    else if (l->n)
        write_table(cli, l, &text);
    int status = rv_cli_print(cli, &text);
    if (l->n == 0 && !rv_cli_flag(args, "json") && !rv_cli_flag(args, "ids"))
        rv_cli_err(RV_STR_LIT("no runs found\n"));
    if (l->more && !rv_cli_value(args, "limit"))
        rv_cli_err(RV_STR_LIT("there are more; --limit 0 shows all\n"));
    return status;
}

static int list(struct rv_cli *cli, const struct rv_cli_args *args)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    struct rv_run_filter filter;
    struct rv_app_runs l = {0};
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status;

    if (rv_cli_flag(args, "json") && rv_cli_flag(args, "ids"))
        return rv_cli_usage(cli, args, "--json and --ids exclude each other");
    if (read_filter(args, &filter, &err) < 0)
        return rv_cli_report(cli, err);
    int rc = rv_app_store_open_if_any(&cli->app, &store, &err);
    if (rc == 0 && store)
        rc = rv_app_runs_list(store, &scope, filter, &l, &err);
    status = rc < 0 ? rv_cli_report(cli, err) : print_list(cli, args, &l);
    rv_app_runs_fini(&l);
    rv_store_close(store);
    return status;
}

static const struct rv_cli_option list_options[] = {
    {"status", 0, "WORD", "only runs with this status",
     "ready running completed interrupted terminated failed cancelled", true},
    {"waiting", 'w', NULL, "print open questions and the commands that answer them", NULL, false},
    {"pipeline", 'p', "NAME", "only runs of one pipeline", NULL, false},
    {"session", 0, "ID", "only runs of one session", NULL, false},
    {"limit", 'l', "N", "number of runs to list, newest first; 0: all (default 50; all with --json and --ids)", NULL,
     false},
    {"json", 'j', NULL, "print a JSON array of objects", NULL, false},
    {"ids", 0, NULL, "print ids only, one a line", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
};

static const struct rv_cli_verb list_verb = {
    .name = "runs list",
    .args = "",
    .summary = "list runs, newest first",
    .text =
        "Prints a table: id, pipeline, status, current stage, age and what the run waits for. --waiting prints the\n"
        "open questions and the commands that answer them instead.",
    .examples = "reeve runs\n"
                "reeve runs list --status failed --status terminated --pipeline ask-docs\n"
                "reeve runs list --waiting   # who waits for a person\n"
                "reeve runs list --json | jq -r '.[] | select(.records > 1000) | .id'",
    .options = list_options,
    .n_options = RV_COUNT(list_options),
    .run = list,
};

static const struct rv_cli_verb *const subs[] = {
    &list_verb,
    &rv_verb_runs_show,
    &rv_verb_runs_events,
    &rv_verb_runs_cancel,
    &rv_verb_runs_recover,
    &rv_verb_runs_fork,
    NULL,
};

const struct rv_cli_verb rv_verb_runs = {
    .name = "runs",
    .args = "VERB",
    .summary = "list, inspect and manage runs",
    .text = "The store keeps every run with its journal. RUN is the id of a run, a unique prefix of it, or \"last\" "
            "for the\n"
            "newest run.",
    .examples = "reeve runs                      # all of them\n"
                "reeve runs show last            # what the newest one did\n"
                "reeve runs recover              # go on with what a crash left behind\n"
                "reeve runs fork last --at 2     # another run, from the state behind its second step",
    .subs = subs,
};

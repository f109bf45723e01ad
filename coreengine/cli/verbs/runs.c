/* reeve runs: the list of runs, and a fork of one. */
#include "coreengine/app/app.h"
#include "coreengine/cli/show/width_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN_BY_DEFAULT 50             /* newest runs, unless --limit or --json says otherwise */
#define MAX_NAME         ((size_t)1000) /* bytes of a pipeline's name: several lines of a terminal */
#define MIN_PREVIEW      ((size_t)8)    /* less of a question says nothing */

static int read_filter(const struct rv_cli *cli, struct rv_run_filter *f, rv_err **err)
{
    const char *word;
    bool data = cli_flag(cli, "json") || cli_flag(cli, "ids");

    *f = (struct rv_run_filter){.pipeline = cli_value(cli, "pipeline"),
                                .session = cli_value(cli, "session"),
                                .limit = data ? 0 : SHOWN_BY_DEFAULT};
    for (size_t i = 0; (word = cli_nth(cli, "status", i)); i++) {
        enum rv_run_status status;
        int rc = rv_run_status_of(rv_str_of(word), &status, err);
        if (rc < 0)
            return rc;
        f->statuses |= 1u << status;
    }
    if (cli_flag(cli, "waiting"))
        f->statuses |= 1u << RV_RUN_INTERRUPTED;
    return cli_int(cli, "limit", 0, 1000000, &f->limit, err);
}

/* --- for people --- */

const char *cli_status_color(enum rv_run_status status)
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
    size_t columns = 160;

    if (cli->out_tty)
        cli_terminal_size(&columns, NULL);
    return columns > 40 ? columns : 80;
}

/* What it waits for, or who has it. */
#define EXPIRED " (expired)"

static void write_remark(const struct rv_app_runs *l, size_t i, int64_t now_us, size_t max, rv_buf *b)
{
    const struct rv_app_listed *e = &l->items[i];
    enum rv_app_owner owner = rv_app_owner_of(&e->row, now_us);
    bool unfinished = e->row.status == RV_RUN_READY || e->row.status == RV_RUN_RUNNING;

    if (e->n_pending) {
        const struct rv_pending *p = &l->waiting[e->first_waiting].p;
        size_t used = strlen(p->kind) + (e->n_pending > 1 ? 20 : 5);
        bool is_due = p->expires_us && p->expires_us <= now_us;
        used += is_due ? strlen(EXPIRED) : 0;
        rv_buf_printf(b, "%s%s", p->kind, is_due ? EXPIRED : "");
        if (max >= used + MIN_PREVIEW) {
            rv_buf_puts(b, ": ");
            cli_write_preview(p->text, max - used, b);
        }
        if (e->n_pending > 1)
            rv_buf_printf(b, " (and %zu more)", e->n_pending - 1);
        return;
    }
    if (e->row.cancel_requested)
        rv_buf_puts(b, "to be cancelled");
    else if (e->crashes >= RV_APP_CRASHES)
        rv_buf_printf(b, "crashed %lld time%s", (long long)e->crashes, cli_plural(e->crashes));
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
        rv_buf age = RV_BUF_INIT(64), name = RV_BUF_INIT(2 * MAX_NAME);
        cli_write_age(&age, now - e->row.created_us);
        cli_write_preview(rv_str_of(e->pipeline ? e->pipeline : ""), MAX_NAME, &name);
        rv_buf_printf(b, "%-*s  %-*.*s  %s%-11s%s  %-*.*s  %-7s  ", (int)id, e->id, (int)pipeline, (int)pipeline,
                      rv_buf_cstr(&name), cli->out_color ? cli_status_color(e->row.status) : "",
                      rv_run_status_text(e->row.status), cli->out_color ? "\033[0m" : "", (int)stage, (int)stage,
                      e->stage ? e->stage : "", rv_buf_cstr(&age));
        rv_buf_fini(&age);
        rv_buf_fini(&name);
        write_remark(l, i, now, width > used ? width - used : 0, b);
        while (b->len && b->ptr[b->len - 1] == ' ')
            rv_buf_truncate(b, b->len - 1);
        rv_buf_putc(b, '\n');
    }
}

static void write_waiting(const struct rv_cli *cli, const struct rv_app_runs *l, rv_buf *b)
{
    for (size_t k = 0; k < l->n_waiting; k++) {
        const struct rv_app_waiting *w = &l->waiting[k];
        if (w->entry >= l->n)
            continue;
        rv_buf_printf(b, "%s%s%s  ", cli->out_color ? "\033[1m" : "", w->p.run, cli->out_color ? "\033[0m" : "");
        cli_write_preview(rv_str_of(l->items[w->entry].pipeline), MAX_NAME, b);
        rv_buf_printf(b, "  %s in stage %s", w->p.kind, w->p.stage ? w->p.stage : "-");
        if (w->p.expires_us) {
            rv_buf_puts(b, w->p.expires_us <= rv_app_now_us() ? ", expired " : ", until ");
            cli_write_moment(b, w->p.expires_us);
        }
        rv_buf_puts(b, "\n  ");
        cli_write_preview(w->p.text, 2000, b);
        rv_buf_puts(b, "\n  ");
        cli_write_resume(cli, &w->p, l->items[w->entry].n_pending == 1, b);
    }
}

static int print_list(struct rv_cli *cli, const struct rv_app_runs *l, rv_err **err)
{
    bool json = cli_flag(cli, "json"), ids = cli_flag(cli, "ids");
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_jw w = rv_jw_on(&text);

    if (json) {
        rv_app_runs_write(l, &w);
        rv_buf_putc(&text, '\n');
    } else if (ids) {
        for (size_t i = 0; i < l->n; i++)
            rv_buf_printf(&text, "%s\n", l->items[i].id);
    } else if (cli_flag(cli, "waiting")) {
        write_waiting(cli, l, &text);
    } else if (l->n) {
        write_table(cli, l, &text);
    }
    int rc = cli_print(0, &text, err);
    if (l->n == 0 && !json && !ids)
        cli_say("no runs found\n");
    if (l->more && !cli_value(cli, "limit"))
        cli_say("there are more; --limit 0 shows all\n");
    return rc;
}

static int list(struct rv_cli *cli, rv_err **err)
{
    struct rv_run_filter filter;
    struct rv_app_runs l = {0};

    int rc = read_filter(cli, &filter, err);
    if (rc == 0 && cli->store)
        rc = rv_app_runs_find(cli->store, &cli->app.scope, filter, &l, err);
    if (rc == 0)
        rc = print_list(cli, &l, err);
    rv_app_runs_fini(&l);
    return rc;
}

/* --- fork --- */

static int change_state(void *self, json_object *state, rv_err **err)
{
    return cli_set_all(self, false, state, err);
}

static int fork_run(struct rv_cli *cli, rv_err **err)
{
    struct rv_app_fork fork = {.change = change_state, .self = cli};
    rv_buf text = RV_BUF_INIT(256), hint = RV_BUF_INIT(16384);

    if (!cli_value(cli, "at"))
        return cli_usage(cli, err, "`reeve runs fork` needs --at STEP; `reeve runs show` has the numbers");
    int rc = cli_int(cli, "at", 0, INT64_MAX, &fork.step, err);
    if (rc == 0)
        rc = rv_app_fork(&cli->app, cli->store, cli->words[0], &fork, err);
    if (rc < 0)
        return rc;
    if (cli_flag(cli, "queue")) {
        rc = rv_app_enqueue(cli->store, &cli->app.scope, fork.id, NULL, NULL, err);
        rv_buf_printf(&text, "%s\n", fork.id);
        return cli_print(rc, &text, err);
    }
    if (cli_flag(cli, "go")) {
        cli_say("run %s\n", fork.id);
        return cli_continue(cli, fork.id, RV_APP_RECOVER, NULL, err);
    }
    rv_buf_printf(&text, "%s\n", fork.id);
    rc = cli_print(0, &text, err);
    rv_buf_printf(&hint, "run it with: reeve runs recover %s", fork.id);
    cli_write_store(cli, &hint);
    rv_buf_putc(&hint, '\n');
    cli_say_text(&hint);
    return rc;
}

/* --- the table --- */

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
    RV_CLI_OPTIONS(list_options),
    .groups = {&cli_of_stores},
    .excludes = "json ids",
    .store = RV_CLI_READS_IF_ANY,
    .run = list,
};

static const struct rv_cli_option fork_options[] = {
    {"at", 0, "STEP", "step after which the new run starts, as numbered by `reeve runs show`; 0: the beginning", NULL,
     false},
    {"set", 0, "PATH=VALUE", "change a part of the state, e.g. outputs.plan.steps=[]", NULL, true},
    {"go", 'g', NULL, "run the new run at once", NULL, false},
    {"queue", 0, NULL, "queue the new run for a worker", NULL, false},
    {"json", 'j', NULL, "with --go: print the result as one JSON object", NULL, false},
    {"state", 0, NULL, "with --go: print the whole state as one JSON object", NULL, false},
    {"events", 'e', NULL, "with --go: print each event as a line of JSON", NULL, false},
    {"quiet", 'q', NULL, "with --go: do not show progress", NULL, false},
    {"workers", 'w', "N", "with --go: maximum number of threads for capability code (default 64)", NULL, false},
};

static const struct rv_cli_verb fork_verb = {
    .name = "runs fork",
    .args = "RUN --at STEP",
    .summary = "start a new run from the state after a step",
    .text =
        "The new run has its own id and the same bundle. It begins with the state that the given run had after that\n"
        "step, changed by --set, and makes all later calls itself. If the run had a script, the new run uses the\n"
        "entries that were unused at that step. Prints the new id. The given run does not change.",
    .examples = "reeve runs fork last --at 2\n"
                "reeve runs fork last --at 1 --set outputs.plan.steps=[] --go",
    RV_CLI_OPTIONS(fork_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    .excludes = "go queue",
    RV_CLI_ONE_WORD,
    .store = RV_CLI_CHANGES,
    .takes = &cli_takes_runs,
    .outlives_reader = true,
    .run = fork_run,
};

static const struct rv_cli_verb *const subs[] = {
    &list_verb,        &verb_runs_show,    &verb_runs_events, &verb_runs_diff,
    &verb_runs_cancel, &verb_runs_recover, &fork_verb,        NULL,
};

const struct rv_cli_verb verb_runs = {
    .name = "runs",
    .args = "VERB",
    .summary = "list, inspect and manage runs",
    .text = "The store keeps every run with its journal. RUN is the id of a run, a unique prefix, or \"last\" "
            "for the\n"
            "newest run.",
    .examples = "reeve runs                      # all of them\n"
                "reeve runs show last            # what the newest one did\n"
                "reeve runs diff env_1a last     # what two did, side by side\n"
                "reeve runs recover              # go on with what a crash left behind\n"
                "reeve runs fork last --at 2     # another run, from the state behind its second step",
    .subs = subs,
};

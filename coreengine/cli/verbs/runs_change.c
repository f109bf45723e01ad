/* reeve runs cancel, reeve runs recover: runs whose owner is elsewhere, or gone. */
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>

/* --- cancel --- */

static int cancel(struct rv_cli *cli, const struct rv_cli_args *args)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    struct rv_run_row row = {0};
    bool ends_elsewhere = false;
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status;

    if (!rv_cli_runs_open(cli, RV_APP_STORE_CHANGE, &store, &status))
        return status;
    if (rv_app_request_cancel(store, &scope, args->words[0], &row, &ends_elsewhere, &err) < 0) {
        status = rv_cli_report(cli, err);
    } else if (ends_elsewhere) {
        rv_buf text = RV_BUF_INIT(4096);
        rv_buf_printf(&text, "run %s: its owner %s was asked to cancel it\n", row.id, row.owner);
        rv_cli_err(rv_buf_str(&text));
        rv_buf_fini(&text);
        status = RV_EXIT_COMPLETED;
    } else {
        status = rv_cli_continue(cli, args, store, row.id, RV_APP_CANCEL, NULL);
        status = status == RV_EXIT_CANCELLED ? RV_EXIT_COMPLETED : status; /* as it was asked for */
    }
    rv_run_row_fini(&row);
    rv_store_close(store);
    return status;
}

/* --- recover --- */

static void say(const struct rv_app_unfinished *x, const char *fmt, ...) RV_PRINTF(2, 3);
static void say(const struct rv_app_unfinished *x, const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT(4096);
    va_list ap;

    rv_buf_printf(&text, "run %s: ", x->id);
    va_start(ap, fmt);
    rv_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    rv_buf_putc(&text, '\n');
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
}

static const char *why_free(const struct rv_app_unfinished *x)
{
    return !x->owner ? "" : x->late ? "; its owner let its lease end" : "; its owner is gone";
}

static void say_left_alone(const struct rv_app_unfinished *x)
{
    char until[RV_TIME_MAX];

    rv_time_format(x->verdict == RV_APP_IS_LATER ? x->next_us : x->lease_until_us, until);
    if (x->verdict == RV_APP_IS_LATER)
        say(x, "left for later: it crashed %lld times; next attempt after %.19sZ, or with `reeve runs recover %s`",
            (long long)x->crashes, until, x->id);
    else if (x->verdict == RV_APP_IS_OVER)
        say(x, "left alone: it is over (%s)", rv_run_status_text(x->status));
    else if (x->verdict == RV_APP_IS_WAITS)
        say(x, "left alone: it waits for an answer; `reeve runs list --waiting` says which");
    else
        say(x, "left alone: %s runs it, with a lease until %.19sZ", x->owner, until);
}

/* The worst of two exit statuses: a failure before an end by a bound before a cancel before a wait. */
static int worse(int a, int b)
{
    static const int order[] = {RV_EXIT_COMPLETED,  RV_EXIT_INTERRUPTED, RV_EXIT_CANCELLED,
                                RV_EXIT_TERMINATED, RV_EXIT_USAGE,       RV_EXIT_FAILED};
    size_t at_a = 0, at_b = 0;

    for (size_t i = 0; i < RV_COUNT(order); i++) {
        at_a = order[i] == a ? i : at_a;
        at_b = order[i] == b ? i : at_b;
    }
    return order[at_a > at_b ? at_a : at_b];
}

/* *status: the child's, as if it had been done here. */
static void recover_apart(struct rv_cli *cli, const struct rv_cli_args *args, const struct rv_app_unfinished *x,
                          int *status)
{
    rv_err *err = NULL;
    int number = 0;

    say(x, "goes on in a process of its own; it crashed %lld times", (long long)x->crashes);
    if (rv_cli_recover_apart(args, x->id, status, &number, &err) < 0) {
        (void)rv_cli_report(cli, err);
        *status = RV_EXIT_FAILED;
    } else if (number) {
        const char *name = sigabbrev_np(number);
        say(x, "crashed again: its process died of signal %d%s%s", number, name ? ", SIG" : "", name ? name : "");
    }
}

/* One of them. *left: it could not be had after all: another process was faster. */
static int recover_one(struct rv_cli *cli, const struct rv_cli_args *args, rv_store *store,
                       const struct rv_app_unfinished *x, bool *left)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    int64_t patience_us = RV_OWNER_ENDS_US;
    struct rv_run_row row;
    int status;

    if (x->apart) {
        recover_apart(cli, args, x, &status);
    } else {
        say(x, "%s%s", x->cancel ? "is cancelled" : "goes on", why_free(x));
        status = rv_cli_continue(cli, args, store, x->id, x->cancel ? RV_APP_CANCEL : RV_APP_RECOVER, NULL);
    }
    *left = false;
    if (status == RV_EXIT_USAGE && rv_store_get_run(store, &scope, x->id, &row, NULL) == 0) {
        *left = rv_app_judge(&row, rv_app_now_us(), &patience_us) != RV_APP_IS_LEFT;
        rv_run_row_fini(&row);
    }
    return *left || (status == RV_EXIT_CANCELLED && x->cancel) ? RV_EXIT_COMPLETED : status;
}

static void say_summary(size_t n_recovered, size_t n_left, size_t n_failed)
{
    rv_buf text = RV_BUF_INIT(256);

    rv_buf_printf(&text, "%zu recovered, %zu left alone", n_recovered, n_left);
    if (n_failed)
        rv_buf_printf(&text, ", %zu failed", n_failed);
    rv_buf_putc(&text, '\n');
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
}

struct tally {
    int status;
    size_t n, n_left, n_failed;
    bool stopped; /* by a signal: it is meant for all of them */
};

static void take_up(struct rv_cli *cli, const struct rv_cli_args *args, rv_store *store,
                    const struct rv_app_unfinished *x, struct tally *t)
{
    bool left = x->verdict != RV_APP_IS_LEFT;

    if (left) {
        say_left_alone(x);
    } else if (rv_cli_flag(args, "dry-run")) {
        say(x, "would %s%s%s", x->cancel ? "be cancelled" : "go on", x->apart ? " in a process of its own" : "",
            why_free(x));
    } else {
        int one = recover_one(cli, args, store, x, &left);
        bool failed = one == RV_EXIT_FAILED || one == RV_EXIT_USAGE;
        t->stopped = one == RV_EXIT_CANCELLED;
        t->n += !left && !failed;
        t->n_failed += failed;
        t->status = worse(t->status, one);
    }
    t->n_left += left;
}

static int recover_all(struct rv_cli *cli, const struct rv_cli_args *args, rv_store *store,
                       const struct rv_app_unfinished_list *f)
{
    struct tally t = {.status = RV_EXIT_COMPLETED};

    for (int apart = 0; apart < 2; apart++)
        for (size_t i = 0; i < f->n && !t.stopped; i++)
            if (f->items[i].apart == (apart == 1))
                take_up(cli, args, store, &f->items[i], &t);
    if (f->n == 0)
        rv_cli_err(RV_STR_LIT("no unfinished runs\n"));
    else if (!rv_cli_flag(args, "dry-run"))
        say_summary(t.n, t.n_left, t.n_failed);
    return t.status;
}

static int recover(struct rv_cli *cli, const struct rv_cli_args *args)
{
    struct rv_app_unfinished_list f = {0};
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status;

    if (!rv_cli_runs_open(cli, RV_APP_STORE_CHANGE, &store, &status))
        return status;
    int rc = rv_app_unfinished_find(store, &cli->app.scope, args->words, args->n_words, &f, &err);
    status = rc < 0 ? rv_cli_report(cli, err) : recover_all(cli, args, store, &f);
    rv_app_unfinished_fini(&f);
    rv_store_close(store);
    return status;
}

static const struct rv_cli_option cancel_options[] = {
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
    RV_CLI_SYNC_OPTION,
};

const struct rv_cli_verb rv_verb_runs_cancel = {
    .name = "runs cancel",
    .args = "RUN",
    .summary = "cancel a run, in whatever process it runs",
    .text =
        "Asks the process that runs it to cancel; the run ends within about a second. A run that waits for an answer,\n"
        "or whose process is gone, is cancelled at once.",
    .examples = "reeve runs cancel last",
    .options = cancel_options,
    .n_options = RV_COUNT(cancel_options),
    .min_words = 1,
    .max_words = 1,
    .takes = &rv_cli_takes_runs,
    .outlives_reader = true,
    .run = cancel,
};

static const struct rv_cli_option recover_options[] = {
    {"dry-run", 'n', NULL, "only list the runs that would continue", NULL, false},
    {"quiet", 'q', NULL, "do not show progress", NULL, false},
    {"workers", 'w', "N", "maximum number of threads for capability code (default 64)", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
    RV_CLI_SYNC_OPTION,
    RV_CLI_LEASE_OPTION,
};

const struct rv_cli_verb rv_verb_runs_recover = {
    .name = "runs recover",
    .args = "[RUN...]",
    .summary = "continue runs after a crash",
    .text =
        "Takes over every unfinished run whose process is gone or whose lease has expired, oldest first, and\n"
        "continues it where it stopped: completed work is not repeated, and a call that must not be repeated becomes\n"
        "a question. A run that crashed three processes in a row comes last, in a process of its own; after further\n"
        "crashes it is skipped for a while, unless the command names it. Exit status: the worst of all runs; a crash\n"
        "counts as 1.",
    .examples = "reeve runs recover --dry-run\n"
                "reeve runs recover",
    .options = recover_options,
    .n_options = RV_COUNT(recover_options),
    .max_words = RV_CLI_MAX_ARGS,
    .takes = &rv_cli_takes_runs,
    .outlives_reader = true,
    .run = recover,
};

/* --- one run, for recover: in a process of its own --- */

static int run_host(struct rv_cli *cli, const struct rv_cli_args *args)
{
    rv_store *store = NULL;
    int status;

    if (!rv_cli_runs_open(cli, RV_APP_STORE_CHANGE, &store, &status))
        return status;
    status = rv_cli_continue(cli, args, store, args->words[0], RV_APP_RECOVER, NULL);
    rv_store_close(store);
    return status;
}

const struct rv_cli_verb rv_verb_run_host = {
    .name = "run-host",
    .args = "RUN",
    .summary = "recover one run for another process",
    .text = "`reeve runs recover` starts it for a run that ended the processes which recovered it.",
    .examples = "",
    .options = recover_options,
    .n_options = RV_COUNT(recover_options),
    .min_words = 1,
    .max_words = 1,
    .run = run_host,
    .hidden = true,
};

/* reeve runs cancel, reeve runs recover: runs whose owner is elsewhere, or gone. */
#include "coreengine/app/app.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WORDS_BYTES ((size_t)1 << 20) /* of command lines: Linux takes 2 MiB (ARG_MAX) */

/* --- cancel --- */

static int cancel(struct rv_cli *cli, rv_err **err)
{
    struct rv_run_row row = {0};
    bool ends_elsewhere = false;

    int rc = rv_app_request_cancel(cli->store, &cli->app.scope, cli->words[0], &row, &ends_elsewhere, err);
    if (rc == 0 && ends_elsewhere)
        cli_say("run %s: its owner %s was asked to cancel it\n", row.id, row.owner);
    else if (rc == 0)
        rc = cli_continue(cli, row.id, RV_APP_CANCEL, NULL, err);
    rv_run_row_fini(&row);
    return rc == RV_EXIT_CANCELLED ? RV_EXIT_COMPLETED : rc; /* as it was asked for */
}

/* --- recover --- */

#define SAY(x, fmt, ...) cli_say("run %s: " fmt "\n", (x)->id, __VA_ARGS__)

static const char *why_free(const struct rv_app_unfinished *x)
{
    return !x->owner ? "" : x->late ? "; its owner let its lease end" : "; its owner is gone";
}

static void say_left_alone(const struct rv_app_unfinished *x)
{
    char until[RV_TIME_MAX];

    rv_time_format(x->verdict == RV_APP_RECOVERY_LATER ? x->next_us : x->lease_until_us, until);
    if (x->verdict == RV_APP_RECOVERY_LATER)
        SAY(x, "left for later: it crashed %lld time%s; next attempt after %.19sZ, or with `reeve runs recover %s`",
            (long long)x->crashes, cli_plural(x->crashes), until, x->id);
    else if (x->verdict == RV_APP_RECOVERY_ENDED)
        SAY(x, "left alone: it is over (%s)", rv_run_status_text(x->status));
    else if (x->verdict == RV_APP_RECOVERY_QUEUED)
        SAY(x, "left alone: it is queued for a worker; `reeve runs recover %s` goes on with it here", x->id);
    else if (x->verdict == RV_APP_RECOVERY_WAITS)
        cli_say("run %s: left alone: it waits for an answer; `reeve runs list --waiting` says which\n", x->id);
    else
        SAY(x, "left alone: %s runs it, with a lease until %.19sZ", x->owner, until);
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

/* What this command was given, for the verb that recovers one run. The texts stand in `room`. */
static const char **child_words(const struct rv_cli *cli, const char *run, rv_buf *room)
{
    const char **words = calloc(cli->n_given + 5, sizeof *words);
    size_t n = 0, at = 0;

    for (size_t i = 0; i < cli->n_given; i++) {
        const char *value = cli->given[i].value;
        rv_buf_printf(room, "--%s%s%s", cli->given[i].option->name, value ? "=" : "", value ? value : "");
        rv_buf_add(room, "", 1);
    }
    if (!words || room->rc < 0) {
        free(words);
        return NULL;
    }
    words[n++] = "reeve";
    words[n++] = "run-host";
    for (size_t i = 0; i < cli->n_given; i++) {
        words[n++] = rv_buf_cstr(room) + at;
        at += strlen(rv_buf_cstr(room) + at) + 1;
    }
    words[n++] = "--";
    words[n] = run;
    return words;
}

/* In a process of its own, with the options of this command. Gives the child's status, as if it had been done here. */
static int recover_apart(struct rv_cli *cli, const struct rv_app_unfinished *x, rv_err **err)
{
    rv_buf room = RV_BUF_INIT(MAX_WORDS_BYTES);
    int status = -1, number = 0;

    SAY(x, "goes on in a process of its own; it crashed %lld time%s", (long long)x->crashes, cli_plural(x->crashes));
    const char **words = child_words(cli, x->id, &room);
    int rc = words ? rv_app_spawn_self(words, &status, &number, err) : RV_FAIL(err, RV_E_NOMEM, "start a process");
    free(words);
    rv_buf_fini(&room);
    if (rc < 0)
        return RV_WRAP(err, rc, "recover run \"%s\"", x->id);
    const char *name = number ? sigabbrev_np(number) : NULL;
    if (number)
        SAY(x, "crashed again: its process died of signal %d%s%s", number, name ? ", SIG" : "", name ? name : "");
    return status < 0 ? RV_EXIT_FAILED : status;
}

/* One of them. *left: it could not be had after all: another process was faster. */
static int recover_one(struct rv_cli *cli, const struct rv_app_unfinished *x, bool *left)
{
    int64_t patience_us = RV_OWNER_ENDS_US;
    struct rv_run_row row;
    rv_err *err = NULL;
    int rc;

    if (x->apart) {
        rc = recover_apart(cli, x, &err);
    } else {
        SAY(x, "%s%s", x->cancel ? "is cancelled" : "goes on", why_free(x));
        rc = cli_continue(cli, x->id, x->cancel ? RV_APP_CANCEL : RV_APP_RECOVER, NULL, &err);
    }
    int status = rc < 0 ? cli_report(cli, err) : rc;
    *left = false;
    if (status == RV_EXIT_USAGE &&
        rv_store_get_run(cli->store, &cli->app.scope, x->id, &row,
                         RV_CODE_ONLY("why the run does not go on is reported above, and that counts")) == 0) {
        *left = rv_app_recovery_of(&row, rv_app_now_us(), &patience_us) != RV_APP_RECOVERY_LEFT;
        rv_run_row_fini(&row);
    }
    return *left || (status == RV_EXIT_CANCELLED && x->cancel) ? RV_EXIT_COMPLETED : status;
}

struct tally {
    int status;
    size_t n, n_left, n_failed;
    bool stopped; /* by a signal: it is meant for all of them */
};

static void take_up(struct rv_cli *cli, const struct rv_app_unfinished *x, struct tally *t)
{
    bool left = x->verdict != RV_APP_RECOVERY_LEFT;

    if (left) {
        say_left_alone(x);
    } else if (cli_flag(cli, "dry-run")) {
        SAY(x, "would %s%s%s", x->cancel ? "be cancelled" : "go on", x->apart ? " in a process of its own" : "",
            why_free(x));
    } else {
        int one = recover_one(cli, x, &left);
        bool failed = one == RV_EXIT_FAILED || one == RV_EXIT_USAGE;
        t->stopped = one == RV_EXIT_CANCELLED;
        t->n += !left && !failed;
        t->n_failed += failed;
        t->status = worse(t->status, one);
    }
    t->n_left += left;
}

static int recover(struct rv_cli *cli, rv_err **err)
{
    struct rv_app_unfinished_list f = {0};
    struct tally t = {.status = RV_EXIT_COMPLETED};

    int rc = rv_app_unfinished_find(cli->store, &cli->app.scope, cli->words, cli->n_words, &f, err);
    if (rc < 0)
        return rc;
    for (int apart = 0; apart < 2; apart++)
        for (size_t i = 0; i < f.n && !t.stopped; i++)
            if (f.items[i].apart == (apart == 1))
                take_up(cli, &f.items[i], &t);
    if (f.n == 0)
        cli_say("no unfinished runs\n");
    else if (!cli_flag(cli, "dry-run") && t.n_failed)
        cli_say("%zu recovered, %zu left alone, %zu failed\n", t.n, t.n_left, t.n_failed);
    else if (!cli_flag(cli, "dry-run"))
        cli_say("%zu recovered, %zu left alone\n", t.n, t.n_left);
    rv_app_unfinished_fini(&f);
    return t.status;
}

/* One run, for recover: in a process of its own. */
static int run_host(struct rv_cli *cli, rv_err **err)
{
    return cli_continue(cli, cli->words[0], RV_APP_RECOVER, NULL, err);
}

/* --- the table --- */

const struct rv_cli_verb verb_runs_cancel = {
    .name = "runs cancel",
    .args = "RUN",
    .summary = "cancel a run, in whatever process it runs",
    .text =
        "Asks the process that runs it to cancel; the run ends within about a second. A run that waits for an answer,\n"
        "or whose process is gone, is cancelled at once.",
    .examples = "reeve runs cancel last",
    .groups = {&cli_of_stores, &cli_of_commits},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_CHANGES,
    .takes = &cli_takes_runs,
    .outlives_reader = true,
    .run = cancel,
};

static const struct rv_cli_option recover_options[] = {
    {"dry-run", 'n', NULL, "only list the runs that would continue", NULL, false},
};

const struct rv_cli_verb verb_runs_recover = {
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
    RV_CLI_OPTIONS(recover_options),
    .groups = {&cli_of_work, &cli_of_stores, &cli_of_commits},
    .store = RV_CLI_CHANGES,
    .max_words = RV_CLI_MAX_ARGS,
    .takes = &cli_takes_runs,
    .outlives_reader = true,
    .run = recover,
};

const struct rv_cli_verb verb_run_host = {
    .name = "run-host",
    .args = "RUN",
    .summary = "recover one run for another process",
    .text = "`reeve runs recover` starts it for a run that ended the processes which recovered it.",
    .examples = "",
    RV_CLI_OPTIONS(recover_options),
    .groups = {&cli_of_work, &cli_of_stores, &cli_of_commits},
    .store = RV_CLI_CHANGES,
    RV_CLI_ONE_WORD,
    .run = run_host,
    .hidden = true,
};

/* reeve runs cancel, reeve runs recover: runs whose owner is elsewhere, or gone. */
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RUNS ((size_t)100000) /* that one command looks at */

/* --- cancel --- */

static int request_cancel(rv_store *store, const struct rv_store_scope *scope, const char *word, struct rv_run_row *row,
                          rv_err **err)
{
    int rc = rv_app_find_run(store, scope, word, row, err);

    if (rc < 0)
        return rc;
    char *id = rv_str_dup(rv_str_of(row->id));
    rc =
        id ? rv_store_request_cancel(store, scope, id, rv_app_now_us(), err) : RV_FAIL(err, RV_E_NOMEM, "cancel a run");
    rv_run_row_fini(row); /* who owns it is asked behind the request: whoever came before sees it, or is named here */
    if (rc == 0)
        rc = rv_store_get_run(store, scope, id, row, err);
    free(id);
    return rc;
}

static int cancel(struct rv_cli *cli, const struct rv_cli_args *args)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    int64_t patience_us = RV_OWNER_ENDS_US;
    struct rv_run_row row = {0};
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status;

    if (!rv_cli_runs_open(cli, RV_APP_STORE_CHANGE, &store, &status))
        return status;
    if (request_cancel(store, &scope, args->words[0], &row, &err) < 0) {
        status = rv_cli_report(cli, err);
    } else if (rv_app_owner_of(&row, rv_app_now_us()) == RV_APP_OWNER_LIVES &&
               !rv_owner_dies(row.owner, &patience_us)) {
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

enum verdict { RECOVER, OVER, WAITS, OWNED, LATER };
struct found {
    char *id;    /* owned */
    char *owner; /* owned; NULL: none */
    int64_t lease_until_us;
    enum verdict verdict;
    enum rv_run_status status;
    bool cancel; /* somebody asked for it */
    bool late;   /* its owner may live, but let its lease end */
    bool apart;  /* it is recovered last, in a process of its own */
    int64_t crashes, next_us;
};
struct findings {
    struct found *items;
    size_t n, cap;
    int64_t now_us;
    int64_t patience_us; /* for owners that are ending */
};

static enum verdict judge(const struct rv_run_row *row, int64_t now_us, int64_t *patience_us)
{
    if (rv_run_status_is_final(row->status))
        return OVER;
    if (row->status == RV_RUN_INTERRUPTED)
        return WAITS;
    if (rv_app_owner_of(row, now_us) != RV_APP_OWNER_LIVES)
        return RECOVER;
    return rv_owner_dies(row->owner, patience_us) ? RECOVER : OWNED;
}

static int add(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct findings *f = self;

    if (f->n == f->cap) {
        size_t cap = f->cap ? f->cap * 2 : 32;
        struct found *items = cap <= MAX_RUNS * 2 ? realloc(f->items, cap * sizeof *items) : NULL;
        if (!items)
            return RV_FAIL(err, RV_E_NOMEM, "list unfinished runs");
        f->items = items;
        f->cap = cap;
    }
    struct found *x = &f->items[f->n];
    *x = (struct found){.id = rv_str_dup(rv_str_of(row->id)),
                        .owner = row->owner ? rv_str_dup(rv_str_of(row->owner)) : NULL,
                        .lease_until_us = row->lease_until_us,
                        .verdict = judge(row, f->now_us, &f->patience_us),
                        .status = row->status,
                        .cancel = row->cancel_requested,
                        .late = rv_app_owner_of(row, f->now_us) == RV_APP_OWNER_LATE};
    f->n++; /* what it has of texts is freed with the list */
    return x->id && (x->owner || !row->owner) ? 0 : RV_FAIL(err, RV_E_NOMEM, "list unfinished runs");
}

static int find_unfinished(rv_store *store, const struct rv_cli_args *args, struct findings *f, rv_err **err)
{
    const struct rv_run_filter unfinished = {
        .statuses = 1u << RV_RUN_READY | 1u << RV_RUN_RUNNING, .oldest_first = true, .limit = (int64_t)MAX_RUNS};
    const struct rv_store_scope scope = rv_cli_scope(args);
    int rc = 0;

    if (args->n_words == 0)
        return rv_store_list_runs(store, &scope, &unfinished, add, f, err);
    for (size_t i = 0; i < args->n_words && rc == 0; i++) {
        struct rv_run_row row;
        rc = rv_app_find_run(store, &scope, args->words[i], &row, err);
        if (rc < 0)
            break;
        rc = add(f, &row, err);
        rv_run_row_fini(&row);
    }
    return rc;
}

/* Those that ended several processes come last and apart, unless a person names them; then they are tried here and now.
 */
static int find_crashed(rv_store *store, const struct rv_cli_args *args, struct findings *f, rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_scope(args);

    for (size_t i = 0; i < f->n; i++) {
        struct found *x = &f->items[i];
        struct rv_run_row row;
        if (x->verdict != RECOVER || rv_store_get_run(store, &scope, x->id, &row, NULL) < 0)
            continue; /* what is wrong with it is said when it is recovered */
        rv_err *cause = NULL;
        int rc = rv_cli_crashes(store, &scope, &row, f->now_us, &x->crashes, &cause);
        int64_t last_us = row.updated_us;
        rv_run_row_fini(&row);
        if (rc == RV_E_NOMEM) {
            *err = cause;
            return rc;
        }
        rv_err_free(cause);
        x->apart = args->n_words == 0 && !x->cancel && x->crashes >= RV_CLI_CRASHES;
        x->next_us = rv_cli_next_try_us(x->crashes, last_us);
        if (x->apart && last_us <= f->now_us && x->next_us > f->now_us)
            x->verdict = LATER;
    }
    return 0;
}

static void say(const struct found *x, const char *fmt, ...) RV_PRINTF(2, 3);
static void say(const struct found *x, const char *fmt, ...)
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

static const char *why_free(const struct found *x)
{
    return !x->owner ? "" : x->late ? "; its owner let its lease end" : "; its owner is gone";
}

static void say_left_alone(const struct found *x)
{
    char until[RV_TIME_MAX];

    rv_time_format(x->verdict == LATER ? x->next_us : x->lease_until_us, until);
    if (x->verdict == LATER)
        say(x, "left for later: it crashed %lld times; next attempt after %.19sZ, or with `reeve runs recover %s`",
            (long long)x->crashes, until, x->id);
    else if (x->verdict == OVER)
        say(x, "left alone: it is over (%s)", rv_run_status_text(x->status));
    else if (x->verdict == WAITS)
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
static void recover_apart(struct rv_cli *cli, const struct rv_cli_args *args, const struct found *x, int *status)
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
static int recover_one(struct rv_cli *cli, const struct rv_cli_args *args, rv_store *store, const struct found *x,
                       bool *left)
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
        *left = judge(&row, rv_app_now_us(), &patience_us) != RECOVER;
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

static void take_up(struct rv_cli *cli, const struct rv_cli_args *args, rv_store *store, const struct found *x,
                    struct tally *t)
{
    bool left = x->verdict != RECOVER;

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

static int recover_all(struct rv_cli *cli, const struct rv_cli_args *args, rv_store *store, const struct findings *f)
{
    struct tally t = {.status = RV_EXIT_COMPLETED};

    for (int apart = 0; apart < 2; apart++)
        for (size_t i = 0; i < f->n && !t.stopped; i++)
            if (f->items[i].apart == (apart == 1))
                take_up(cli, args, store, &f->items[i], &t);
    if (f->n == 0)
        rv_cli_err(RV_STR_LIT("no run is unfinished\n"));
    else if (!rv_cli_flag(args, "dry-run"))
        say_summary(t.n, t.n_left, t.n_failed);
    return t.status;
}

static int recover(struct rv_cli *cli, const struct rv_cli_args *args)
{
    struct findings f = {.now_us = rv_app_now_us(), .patience_us = RV_OWNER_ENDS_US};
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status;

    if (!rv_cli_runs_open(cli, RV_APP_STORE_CHANGE, &store, &status))
        return status;
    int rc = find_unfinished(store, args, &f, &err);
    if (rc == 0)
        rc = find_crashed(store, args, &f, &err);
    status = rc < 0 ? rv_cli_report(cli, err) : recover_all(cli, args, store, &f);
    for (size_t i = 0; i < f.n; i++) {
        free(f.items[i].id);
        free(f.items[i].owner);
    }
    free(f.items);
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
    .summary = "cancel a run, whoever runs it",
    .text = "The process that runs it is asked to; it ends within a second or so. A run that waits for an answer, or\n"
            "whose owner is gone, is cancelled here and now.",
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
    {"dry-run", 'n', NULL, "only say which runs would go on", NULL, false},
    {"quiet", 'q', NULL, "no progress", NULL, false},
    {"workers", 'w', "N", "threads for capability code at most (default: 64)", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
    RV_CLI_SYNC_OPTION,
    RV_CLI_LEASE_OPTION,
};

const struct rv_cli_verb rv_verb_runs_recover = {
    .name = "runs recover",
    .args = "[RUN...]",
    .summary = "go on with runs that a crash left behind",
    .text =
        "Takes over every unfinished run whose owner is gone or let its lease end, oldest first, and lets it go on\n"
        "where it was: what has finished is not done again, and a call that must not be repeated becomes a question.\n"
        "A run that crashed three processes in a row comes last, in a process of its own, and after further crashes "
        "it\n"
        "is left for later; name the run to try it now. Exit status: the worst of the runs'; a crash counts as 1.",
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

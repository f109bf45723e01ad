/* reeve runs fork: another run, from the state behind a step of this one. */
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/verbs/verbs.h"

static int change_state(void *self, json_object *state, rv_err **err)
{
    const struct rv_cli_args *args = self;
    const char *assignment;
    int rc = 0;

    for (size_t i = 0; rc == 0 && (assignment = rv_cli_nth(args, "set", i)); i++) {
        rc = rv_cli_set(state, assignment, err);
        if (rc == 0)
            rc = rv_cli_check_state_key(assignment, err);
    }
    return rc;
}

static int fork_verb(struct rv_cli *cli, const struct rv_cli_args *args)
{
    struct rv_app_fork fork = {.change = change_state, .self = (void *)(uintptr_t)args};
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status;

    if (!rv_cli_value(args, "at"))
        return rv_cli_usage(cli, args, "`reeve runs fork` needs --at STEP; `reeve runs show` has the numbers");
    if (rv_cli_int(args, "at", 0, INT64_MAX, &fork.step, &err) < 0)
        return rv_cli_report(cli, err);
    if (!rv_cli_runs_open(cli, RV_APP_STORE_CHANGE, &store, &status))
        return status;
    if (rv_app_fork(store, &cli->app.scope, args->words[0], &fork, &err) < 0) {
        status = rv_cli_report(cli, err);
    } else if (rv_cli_flag(args, "go")) {
        rv_buf text = RV_BUF_INIT(256);
        rv_buf_printf(&text, "run %s\n", fork.id);
        rv_cli_err(rv_buf_str(&text));
        rv_buf_fini(&text);
        status = rv_cli_continue(cli, args, store, fork.id, RV_APP_RECOVER, NULL);
    } else {
        rv_buf text = RV_BUF_INIT(256), hint = RV_BUF_INIT(16384);
        rv_buf_printf(&text, "%s\n", fork.id);
        status = rv_cli_print(cli, &text);
        rv_buf_printf(&hint, "run it with: reeve runs recover %s", fork.id);
        rv_cli_write_store(args, &hint);
        rv_buf_putc(&hint, '\n');
        rv_cli_err(rv_buf_str(&hint));
        rv_buf_fini(&hint);
    }
    rv_store_close(store);
    return status;
}

static const struct rv_cli_option fork_options[] = {
    {"at", 0, "STEP", "step after which the new run starts, as numbered by `reeve runs show`; 0: the beginning", NULL,
     false},
    {"set", 0, "PATH=VALUE", "change a part of the state, e.g. outputs.plan.steps=[]", NULL, true},
    {"go", 'g', NULL, "run the new run at once", NULL, false},
    {"json", 'j', NULL, "with --go: print the result as one JSON object", NULL, false},
    {"state", 0, NULL, "with --go: print the whole state as one JSON object", NULL, false},
    {"events", 'e', NULL, "with --go: print each event as a line of JSON", NULL, false},
    {"quiet", 'q', NULL, "with --go: do not show progress", NULL, false},
    {"workers", 'w', "N", "with --go: maximum number of threads for capability code (default 64)", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
    RV_CLI_SYNC_OPTION,
};

const struct rv_cli_verb rv_verb_runs_fork = {
    .name = "runs fork",
    .args = "RUN --at STEP",
    .summary = "start a new run from the state after a step",
    .text =
        "The new run has its own id and the same bundle. It begins with the state that the given run had after that\n"
        "step, changed by --set, and makes all later calls itself. If the run had a script, the new run uses the\n"
        "entries that were unused at that step. Prints the new id. The given run does not change.",
    .examples = "reeve runs fork last --at 2\n"
                "reeve runs fork last --at 1 --set outputs.plan.steps=[] --go",
    .options = fork_options,
    .n_options = RV_COUNT(fork_options),
    .min_words = 1,
    .max_words = 1,
    .takes = &rv_cli_takes_runs,
    .outlives_reader = true,
    .run = fork_verb,
};

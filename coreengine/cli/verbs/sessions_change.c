/* reeve sessions change, reeve sessions delete-message: what of a session people may change. */
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/verbs/verbs.h"

#include <inttypes.h>

/* --- change --- */

static int change(struct rv_cli *cli, const struct rv_cli_args *args)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    const struct rv_session_change wanted = {.name = rv_cli_value(args, "name"),
                                             .mode = rv_cli_value(args, "session-type"),
                                             .status = rv_cli_value(args, "status"),
                                             .now_us = rv_app_now_us()};
    rv_buf said = RV_BUF_INIT(4096);
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status;

    if (!wanted.name && !wanted.mode && !wanted.status)
        return rv_cli_usage(cli, args, "nothing to change: give --status, --name or --session-type");
    if (!rv_cli_runs_open(cli, RV_APP_STORE_CHANGE, &store, &status))
        return status;
    if (rv_store_change_session(store, &scope, args->words[0], &wanted, &err) < 0) {
        status = rv_cli_report(cli, err);
    } else {
        rv_buf_printf(&said, "session %s is changed\n", args->words[0]);
        status = rv_cli_print(cli, &said);
    }
    rv_buf_fini(&said);
    rv_store_close(store);
    return status;
}

/* --- delete-message --- */

static int read_seq(const char *word, int64_t *out, rv_err **err)
{
    char *end = NULL;
    intmax_t n = strtoimax(word, &end, 10);

    if (!end || *end || end == word || n < 1)
        return RV_FAIL(err, RV_E_INVALID,
                       "\"%s\" is not the number of a message: `reeve sessions messages` shows it as seq", word);
    *out = n;
    return 0;
}

static int delete_message(struct rv_cli *cli, const struct rv_cli_args *args)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    rv_buf said = RV_BUF_INIT(4096);
    rv_store *store = NULL;
    rv_err *err = NULL;
    int64_t seq = 0;
    int status;

    if (read_seq(args->words[1], &seq, &err) < 0)
        return rv_cli_report(cli, err);
    if (!rv_cli_runs_open(cli, RV_APP_STORE_CHANGE, &store, &status))
        return status;
    if (rv_store_delete_message(store, &scope, args->words[0], seq, rv_app_now_us(), &err) < 0) {
        status = rv_cli_report(cli, err);
    } else {
        rv_buf_printf(&said, "message %" PRId64 " of session %s is deleted\n", seq, args->words[0]);
        status = rv_cli_print(cli, &said);
    }
    rv_buf_fini(&said);
    rv_store_close(store);
    return status;
}

static const struct rv_cli_option change_options[] = {
    {"status", 0, "STATUS", "new status: active or archived", "active archived", false},
    {"name", 0, "TEXT", "new name of the session", NULL, false},
    {"session-type", 0, "TEXT", "new type of the session (column mode)", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
    RV_CLI_SYNC_OPTION,
};
static const struct rv_cli_option delete_options[] = {
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
    RV_CLI_SYNC_OPTION,
};

const struct rv_cli_verb rv_verb_sessions_change = {
    .name = "sessions change",
    .args = "SESSION",
    .summary = "change the status, name or type of a session",
    .text = "`reeve sessions list --status archived` lists archived sessions. A chat can still continue an archived\n"
            "session.",
    .examples = "reeve sessions change 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 --status archived",
    .options = change_options,
    .n_options = RV_COUNT(change_options),
    .min_words = 1,
    .max_words = 1,
    .takes = &rv_cli_takes_sessions,
    .run = change,
};
const struct rv_cli_verb rv_verb_sessions_delete_message = {
    .name = "sessions delete-message",
    .args = "SESSION SEQ",
    .summary = "delete one message of a session",
    .text =
        "SEQ is the number that `reeve sessions messages` shows. The message is no longer shown, exported or sent to\n"
        "a model; the other messages keep their numbers. A model sees a note in place of a deleted tool result.\n"
        "`reeve gc` erases the text when no run of the session is unfinished.",
    .examples = "reeve sessions delete-message 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 7 --user ada",
    .options = delete_options,
    .n_options = RV_COUNT(delete_options),
    .min_words = 2,
    .max_words = 2,
    .takes = &rv_cli_takes_sessions,
    .run = delete_message,
};

/* reeve sessions: the list, and what users may change: a session's name, type and status, and what is deleted. */
#include "coreengine/app/app.h"
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <inttypes.h>
#include <string.h>

static void add_row(struct rv_cli_list *l, const struct rv_session_row *row)
{
    rv_buf age = RV_BUF_INIT(64);

    cli_write_age(&age, l->now_us - row->updated_us);
    cli_table_add_text(l->table, row->id);
    cli_table_add_text(l->table, row->name);
    cli_table_add_text(l->table, row->agent_name);
    cli_table_add_int(l->table, row->n_messages);
    cli_table_add_int(l->table, row->total_tokens);
    cli_table_add(l->table, rv_buf_str(&age));
    rv_buf_fini(&age);
}

static int take_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    struct rv_cli_list *l = self;

    (void)err;
    if (!cli_list_takes(l))
        return 0;
    if (l->table)
        add_row(l, row);
    else if (l->json)
        rv_app_session_write(row, l->json);
    else
        rv_buf_printf(&l->text, "%s\n", row->id);
    return 0;
}

static int read_list(struct rv_cli *cli, struct rv_cli_list *l, rv_err **err)
{
    struct rv_session_filter filter = {.agent_name = cli_value(cli, "agent"),
                                       .name_contains = cli_value(cli, "search"),
                                       .status = cli_value(cli, "status"),
                                       .limit = l->read};

    return cli->store ? rv_store_list_sessions(cli->store, &cli->app.scope, &filter, take_session, l, err) : 0;
}

static int list(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {{"SESSION", 0, false}, {"NAME", 40, false}, {"AGENT", 24, false},
                                                   {"MESSAGES", 0, true}, {"TOKENS", 0, true}, {"AGE", 0, false}};
    struct rv_cli_list l = {.what = "sessions", .words = "ids", .is_cut = true};
    int rc = cli_list_begin(cli, &l, columns, RV_COUNT(columns), err);

    if (rc == 0)
        rc = read_list(cli, &l, err);
    return cli_list_end(cli, &l, rc, err);
}

/* What is deleted is named by its id: another chat may have made another session the last one. */
static int hint_at_id(const struct rv_cli *cli, int rc, rv_err **err)
{
    if (rc == RV_E_NOT_FOUND && strcmp(cli->words[0], "last") == 0)
        rv_err_set_hint(err,
                        "to delete, give the id of the session: `reeve sessions list --limit 1` shows the one that "
                        "was used last");
    return rc;
}

static int delete_session(struct rv_cli *cli, rv_err **err)
{
    rv_buf said = RV_BUF_INIT(4096);
    size_t n = 0;

    int rc = rv_chat_delete_session(cli->store, &cli->app.scope, cli->words[0], rv_app_now_us(), &n, err);
    rv_buf_printf(&said, "session %s is deleted\n", cli->words[0]);
    if (n > 0)
        rv_buf_printf(&said, "%zu of its runs %s not over: to be cancelled\n", n, n == 1 ? "is" : "are");
    return cli_print(hint_at_id(cli, rc, err), &said, err);
}

static int change(struct rv_cli *cli, rv_err **err)
{
    const struct rv_session_change wanted = {.name = cli_value(cli, "name"),
                                             .mode = cli_value(cli, "session-type"),
                                             .status = cli_value(cli, "status"),
                                             .now_us = rv_app_now_us()};
    rv_buf said = RV_BUF_INIT(4096);

    if (!wanted.name && !wanted.mode && !wanted.status)
        return cli_usage(cli, err, "nothing to change: give --status, --name or --session-type");
    struct rv_session_row row = {0};
    int rc = cli_find_session(cli, &row, err);
    if (rc == 0)
        rc = rv_store_change_session(cli->store, &cli->app.scope, row.id, &wanted, err);
    if (rc == 0)
        rv_buf_printf(&said, "session %s is changed\n", row.id);
    rv_session_row_fini(&row);
    return cli_print(rc, &said, err);
}

static int delete_message(struct rv_cli *cli, rv_err **err)
{
    rv_buf said = RV_BUF_INIT(4096);
    const char *word = cli->words[1];
    char *end = NULL;
    intmax_t seq = strtoimax(word, &end, 10);

    if (!end || *end || end == word || seq < 1)
        return RV_FAIL(err, RV_E_INVALID,
                       "\"%s\" is not the number of a message: `reeve sessions messages` shows it as seq", word);
    int rc = rv_store_delete_message(cli->store, &cli->app.scope, cli->words[0], seq, rv_app_now_us(), err);
    rv_buf_printf(&said, "message %jd of session %s is deleted\n", seq, cli->words[0]);
    return cli_print(hint_at_id(cli, rc, err), &said, err);
}

static const struct rv_cli_option list_options[] = {
    {"agent", 'a', "NAME", "only sessions with this agent", NULL, false},
    {"search", 0, "TEXT", "only sessions whose name contains this text", NULL, false},
    {"status", 0, "STATUS", "only sessions with this status: active or archived", "active archived", false},
    {"limit", 'l', "N", "number of sessions to list, last active first; 0: all (default 50; all with --json and --ids)",
     NULL, false},
    {"json", 'j', NULL, "print a JSON array of rows", NULL, false},
    {"ids", 0, NULL, "print ids only, one a line", NULL, false},
};
static const struct rv_cli_option change_options[] = {
    {"status", 0, "STATUS", "new status: active or archived", "active archived", false},
    {"name", 0, "TEXT", "new name of the session", NULL, false},
    {"session-type", 0, "TEXT", "new type of the session (column mode)", NULL, false},
};

static const struct rv_cli_verb list_verb = {
    .name = "sessions list",
    .args = "",
    .summary = "list sessions, last active first",
    .text = "Prints a table: id, name, agent, number of messages and tokens, and the time since the last message.",
    .examples = "reeve sessions\n"
                "reeve sessions list --agent general --search billing\n"
                "reeve sessions list --json | jq -r '.[] | select(.total_tokens > 10000) | .id'",
    RV_CLI_OPTIONS(list_options),
    .groups = {&cli_of_stores},
    .excludes = "json ids",
    .store = RV_CLI_READS_IF_ANY,
    .run = list,
};
static const struct rv_cli_verb delete_verb = {
    .name = "sessions delete",
    .args = "SESSION",
    .summary = "delete a session with its messages",
    .text = "A deleted session cannot be read or continued, and its id is not used again. Its unfinished runs are\n"
            "cancelled. The next `reeve gc` erases its messages and all of its runs.",
    .examples = "reeve sessions delete 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 --user ada",
    .groups = {&cli_of_stores, &cli_of_commits},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_CHANGES,
    .takes = &cli_takes_sessions,
    .run = delete_session,
};

static const struct rv_cli_verb change_verb = {
    .name = "sessions change",
    .args = "SESSION",
    .summary = "change the status, name or type of a session",
    .text = "`reeve sessions list --status archived` lists archived sessions. A chat can still continue an archived\n"
            "session. \"last\" is the session that was used last.",
    .examples = "reeve sessions change 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 --status archived",
    RV_CLI_OPTIONS(change_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_CHANGES,
    .takes = &cli_takes_any_session,
    .run = change,
};
static const struct rv_cli_verb delete_message_verb = {
    .name = "sessions delete-message",
    .args = "SESSION SEQ",
    .summary = "delete one message of a session",
    .text =
        "SEQ is the number that `reeve sessions messages` shows. The message is no longer shown, exported or sent to\n"
        "a model; the other messages keep their numbers. A model sees a note in place of a deleted tool result.\n"
        "`reeve gc` erases the text when no run of the session is unfinished.",
    .examples = "reeve sessions delete-message 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 7 --user ada",
    .groups = {&cli_of_stores, &cli_of_commits},
    .store = RV_CLI_CHANGES,
    .min_words = 2,
    .max_words = 2,
    .takes = &cli_takes_sessions,
    .run = delete_message,
};

static const struct rv_cli_verb *const subs[] = {
    &list_verb,
    &verb_sessions_show,
    &verb_sessions_messages,
    &verb_sessions_export,
    &verb_sessions_timeline,
    &verb_sessions_search,
    &verb_sessions_clone,
    &change_verb,
    &delete_verb,
    &delete_message_verb,
    NULL,
};

const struct rv_cli_verb verb_sessions = {
    .name = "sessions",
    .args = "VERB",
    .summary = "list, inspect and manage conversations",
    .text = "A session is a conversation that the store keeps. Messages are stored whole, even where a model receives\n"
            "shortened copies. With --user (or REEVE_USER) only the sessions of that user are visible.",
    .examples = "reeve sessions                      # all of them\n"
                "reeve sessions show SESSION         # who said what\n"
                "reeve sessions messages SESSION | jq -c '{seq, message_type, status}'",
    .subs = subs,
};

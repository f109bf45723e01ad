/* reeve sessions: which there are; deleting one. */
#include "coreengine/app/rows.h"
#include "coreengine/app/chat.h"
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/show/table.h"
#include "coreengine/cli/verbs/verbs.h"

#define SHOWN_BY_DEFAULT 50

struct listing {
    rv_cli_table *table; /* NULL: for programs */
    rv_jw *json;         /* NULL: ids */
    rv_buf *ids;
    int64_t n, limit, now_us;
    bool more; /* than the limit */
};

static void add_row(struct listing *l, const struct rv_session_row *row)
{
    rv_buf age = RV_BUF_INIT(64);

    rv_cli_write_age(&age, l->now_us - row->updated_us);
    rv_cli_table_add_text(l->table, row->id);
    rv_cli_table_add_text(l->table, row->name);
    rv_cli_table_add_text(l->table, row->agent_name);
    rv_cli_table_add_int(l->table, row->n_messages);
    rv_cli_table_add_int(l->table, row->total_tokens);
    rv_cli_table_add(l->table, rv_buf_str(&age));
    rv_buf_fini(&age);
}

static int take_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    struct listing *l = self;

    (void)err;
    l->more = l->limit && l->n == l->limit;
    if (l->more)
        return 0;
    l->n++;
    if (l->table)
        add_row(l, row);
    else if (l->json)
        rv_app_session_json(row, l->json);
    else
        rv_buf_printf(l->ids, "%s\n", row->id);
    return 0;
}

static int read_list(rv_store *store, const struct rv_cli_args *args, struct listing *l, rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    struct rv_session_filter filter = {.agent_name = rv_cli_value(args, "agent"),
                                       .name_contains = rv_cli_value(args, "search"),
                                       .status = rv_cli_value(args, "status")};

    int rc = rv_cli_int(args, "limit", 0, 1000000, &l->limit, err);
    filter.limit = l->limit ? l->limit + 1 : 0; /* one more tells whether there are more */
    return rc == 0 ? rv_store_list_sessions(store, &scope, &filter, take_session, l, err) : rc;
}

static int list(struct rv_cli *cli, const struct rv_cli_args *args)
{
    static const struct rv_cli_column columns[] = {{"SESSION", 0, false}, {"NAME", 40, false}, {"AGENT", 24, false},
                                                   {"MESSAGES", 0, true}, {"TOKENS", 0, true}, {"AGE", 0, false}};
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_jw w = rv_jw_on(&text);
    bool json = rv_cli_flag(args, "json"), ids = rv_cli_flag(args, "ids");
    struct listing l = {
        .json = json ? &w : NULL, .ids = &text, .limit = json || ids ? 0 : SHOWN_BY_DEFAULT, .now_us = rv_app_now_us()};
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status, rc = 0;

    if (json && ids)
        return rv_cli_usage(cli, args, "--json and --ids exclude each other");
    if (rv_app_store_open_if_any(&cli->app, &store, &err) < 0)
        return rv_cli_report(cli, err);
    if (!json && !ids && !(l.table = rv_cli_table_new(columns, RV_COUNT(columns))))
        rc = RV_FAIL(&err, RV_E_NOMEM, "list sessions");
    if (json)
        rv_jw_arr(&w);
    if (rc == 0 && store)
        rc = read_list(store, args, &l, &err);
    if (json) {
        rv_jw_arr_end(&w);
        rv_buf_putc(&text, '\n');
    } else if (rc == 0 && l.table) {
        rc = rv_cli_table_write(l.table, cli->out_color, &text, &err);
    }
    if (rc < 0) {
        rv_buf_fini(&text);
        status = rv_cli_report(cli, err);
    } else {
        status = rv_cli_print(cli, &text);
        if (l.n == 0 && l.table)
            rv_cli_err(RV_STR_LIT("no sessions found\n"));
        if (l.more && !rv_cli_value(args, "limit"))
            rv_cli_err(RV_STR_LIT("there are more; --limit 0 shows all\n"));
    }
    rv_cli_table_free(l.table);
    rv_store_close(store);
    return status;
}

static int delete_session(struct rv_cli *cli, const struct rv_cli_args *args)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    rv_buf said = RV_BUF_INIT(4096);
    rv_store *store = NULL;
    size_t n_cancelled = 0;
    rv_err *err = NULL;
    int status;

    if (!rv_cli_runs_open(cli, RV_APP_STORE_CHANGE, &store, &status))
        return status;
    if (rv_chat_delete_session(store, &scope, args->words[0], rv_app_now_us(), &n_cancelled, &err) < 0) {
        status = rv_cli_report(cli, err);
    } else {
        rv_buf_printf(&said, "session %s is deleted\n", args->words[0]);
        if (n_cancelled > 0)
            rv_buf_printf(&said, "%zu of its runs %s not over: to be cancelled\n", n_cancelled,
                          n_cancelled == 1 ? "is" : "are");
        status = rv_cli_print(cli, &said);
    }
    rv_store_close(store);
    return status;
}

static const struct rv_cli_option list_options[] = {
    {"agent", 'a', "NAME", "only sessions with this agent", NULL, false},
    {"search", 0, "TEXT", "only sessions whose name contains this text", NULL, false},
    {"status", 0, "STATUS", "only sessions with this status: active or archived", "active archived", false},
    {"limit", 'l', "N", "number of sessions to list, last active first; 0: all (default 50; all with --json and --ids)",
     NULL, false},
    {"json", 'j', NULL, "print a JSON array of rows", NULL, false},
    {"ids", 0, NULL, "print ids only, one a line", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
};
static const struct rv_cli_option delete_options[] = {
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
    RV_CLI_SYNC_OPTION,
};

static const struct rv_cli_verb list_verb = {
    .name = "sessions list",
    .args = "",
    .summary = "list sessions, last active first",
    .text = "Prints a table: id, name, agent, number of messages and tokens, and the time since the last message.",
    .examples = "reeve sessions\n"
                "reeve sessions list --agent general --search billing\n"
                "reeve sessions list --json | jq -r '.[] | select(.total_tokens > 10000) | .id'",
    .options = list_options,
    .n_options = RV_COUNT(list_options),
    .run = list,
};
static const struct rv_cli_verb delete_verb = {
    .name = "sessions delete",
    .args = "SESSION",
    .summary = "delete a session with its messages",
    .text = "A deleted session cannot be read or continued, and its id is not used again. Its unfinished runs are\n"
            "cancelled. The next `reeve gc` erases its messages and all of its runs.",
    .examples = "reeve sessions delete 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 --user ada",
    .options = delete_options,
    .n_options = RV_COUNT(delete_options),
    .min_words = 1,
    .max_words = 1,
    .takes = &rv_cli_takes_sessions,
    .run = delete_session,
};

static const struct rv_cli_verb *const subs[] = {
    &list_verb,
    &rv_verb_sessions_show,
    &rv_verb_sessions_messages,
    &rv_verb_sessions_export,
    &rv_verb_sessions_change,
    &delete_verb,
    &rv_verb_sessions_delete_message,
    NULL,
};

const struct rv_cli_verb rv_verb_sessions = {
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

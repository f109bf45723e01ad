/* reeve chat */
#include "coreengine/cli/chat/chat.h"
#include "coreengine/cli/sources.h"
#include "coreengine/cli/verbs/verbs.h"

#include <string.h>
#include <unistd.h>

static const struct rv_cli_option options[] = {
    {"agent", 'a', "NAME", "the agent to talk to (default: the session's, else general)", NULL, false},
    {"session", 0, "ID", "continue the session ID", NULL, false},
    {"session-name", 0, "TEXT", "name of the session, new or existing", NULL, false},
    {"session-type", 0, "TEXT", "type of the session, new or existing (default for a new session: chat)", NULL, false},
    {"client-id", 0, "ID", "client id that tools receive: web, mobile, cli, api, ... (default: cli)", NULL, false},
    {"eval", 0, NULL, "mark the chat as an evaluation: tools receive is_eval", NULL, false},
    {"user", 'u', "ID", "user of the chat (default REEVE_USER); a session is visible only to its own user", NULL,
     false},
    RV_CLI_TENANT_OPTION,
    {"user-name", 0, "TEXT", "name of the user, passed to the agent", NULL, false},
    {"user-email", 0, "TEXT", "e-mail address of the user, passed to the agent", NULL, false},
    {"model", 0, "MODEL", "PROVIDER:MODEL in place of the agent's model, unless the agent fixes its model", NULL,
     false},
    {"child-text", 0, "WORD",
     "text to show and store when an agent asks another: child, parent, both or final (default: the agent's choice, "
     "else final)",
     NULL, false},
    {"message", 0, "TEXT", "send this message and exit; - reads it from standard input", NULL, false},
    {"input-file", 0, "FILE", "read the message from a file; - is standard input", "FILE", false},
    {"instruction", 0, "TEXT", "additional instruction for the agent, in this chat only", NULL, true},
    {"history", 0, "N", "show the last N messages of the session first", NULL, false},
    {"leave", 0, NULL, "leave the agent that a router chose earlier", NULL, false},
    {"json", 'j', NULL, "print each turn as one JSON object", NULL, false},
    {"events", 'e', NULL, "print each event as a line of JSON instead of the answer", NULL, false},
    {"deltas", 0, NULL, "with --events: also the text of models as it is streamed", NULL, false},
    {"quiet", 'q', NULL, "do not show session and tool calls", NULL, false},
    {"record", 0, "FILE", "write a script that replays the models and tools of this chat", "FILE", false},
    {"script", 's', "FILE", "answers for models, tools and people", "FILE", false},
    {"no-store", 0, NULL, "do not use the store", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_SYNC_OPTION,
    RV_CLI_SCHEMA_DIR_OPTION,
    {"capability", 0, "NAME", "capability whose tools and agents are available, in addition to p8 (\"\": without p8)",
     NULL, true},
};

static int check(struct rv_cli *cli, const struct rv_cli_args *args)
{
    int n = (args->n_words > 0) + (rv_cli_value(args, "message") != NULL) + (rv_cli_value(args, "input-file") != NULL);

    if (rv_cli_flag(args, "json") && rv_cli_flag(args, "events"))
        return rv_cli_usage(cli, args, "--json and --events exclude each other");
    if (rv_cli_flag(args, "deltas") && !rv_cli_flag(args, "events"))
        return rv_cli_usage(cli, args, "--deltas needs --events");
    if (rv_cli_value(args, "history") && (rv_cli_flag(args, "json") || rv_cli_flag(args, "events")))
        return rv_cli_usage(
            cli, args, "--history does not go with --json and --events; `reeve sessions messages` prints the rows");
    if (n > 1)
        return rv_cli_usage(cli, args, "the message is given more than once");
    return 0;
}

/* A session's id where a message could stand: then that session is meant. */
static bool is_uuid(const char *text)
{
    for (size_t i = 0; i < 36; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !text[i] || !strchr("0123456789abcdefABCDEF", text[i]))
            return false;
    }
    return text[36] == '\0';
}

/* *said false: the command line has no message. */
static int read_message(const struct rv_cli_args *args, rv_buf *out, bool *said, rv_err **err)
{
    const char *text = rv_cli_value(args, "message"), *file = rv_cli_value(args, "input-file");
    int rc = 0;

    if (args->n_words > 0 && !is_uuid(args->words[0]))
        text = args->words[0];
    if (text && strcmp(text, "-") == 0) {
        file = text;
        text = NULL;
    }
    *said = text || file;
    if (file)
        rc = rv_file_read(file, out, err);
    else if (text)
        rv_buf_puts(out, text);
    while (rc == 0 && file && out->len && (out->ptr[out->len - 1] == '\n' || out->ptr[out->len - 1] == '\r'))
        rv_buf_truncate(out, out->len - 1);
    if (rc == 0)
        rc = rv_buf_check(out, "the message", err);
    if (rc == 0 && *said && rv_str_trim(rv_buf_str(out)).len == 0)
        rc = RV_FAIL(err, RV_E_INVALID, "the message is empty");
    return rc < 0 ? RV_WRAP(err, rc, "read the message") : 0;
}

static int open_observers(struct rv_cli_chat *c, bool repl, rv_err **err)
{
    bool data = rv_cli_flag(c->args, "json") || rv_cli_flag(c->args, "events");
    bool quiet = rv_cli_flag(c->args, "quiet");
    const struct rv_chat_show_opts show = {.tools = !quiet && (repl || c->cli->err_tty), .labels = c->cli->out_tty};

    c->debug = c->cli->debug;
    c->events = rv_cli_flag(c->args, "events");
    c->deltas = rv_cli_flag(c->args, "deltas");
    if (!data && (repl || c->cli->out_tty) && !(c->show = rv_chat_show_new(c->cli, &show)))
        return RV_FAIL(err, RV_E_NOMEM, "begin a chat");
    if (rv_cli_value(c->args, "record") && !(c->recorder = rv_recorder_new()))
        return RV_FAIL(err, RV_E_NOMEM, "record the chat");
    return 0;
}

static int history(struct rv_cli_chat *c, rv_err **err)
{
    int64_t n = 0;
    int rc = rv_cli_int(c->args, "history", 1, 1000, &n, err);

    return rc == 0 && n > 0 ? rv_cli_chat_history(c, n, err) : rc;
}

/* The answers are printed even when the recording fails. */
static int finish(struct rv_cli_chat *c, int status)
{
    rv_err *err = NULL;

    if (c->recorder && rv_recorder_write(c->recorder, rv_cli_value(c->args, "record"), &err) < 0) {
        (void)rv_cli_report(c->cli, err);
        status = status ? status : RV_EXIT_FAILED;
    }
    return status;
}

static int chat(struct rv_cli *cli, const struct rv_cli_args *args)
{
    struct rv_cli_chat c = {.cli = cli, .args = args};
    rv_buf message = RV_BUF_INIT(RV_CLI_MAX_MESSAGE);
    const char *session = rv_cli_value(args, "session");
    rv_err *err = NULL;
    bool said = false;
    int status = check(cli, args);

    if (status)
        return status;
    if (!session && args->n_words > 0 && is_uuid(args->words[0]))
        session = args->words[0];
    int rc = read_message(args, &message, &said, &err);
    bool data = rv_cli_flag(args, "json") || rv_cli_flag(args, "events");
    bool repl = !said && !data && isatty(STDIN_FILENO);
    if (rc == 0)
        rc = open_observers(&c, repl, &err);
    if (rc == 0)
        rc = rv_cli_chat_open(&c, session, &err);
    if (rc == 0)
        rc = history(&c, &err);
    if (rc < 0)
        status = rv_cli_report(cli, err);
    else
        status = finish(&c, said   ? rv_cli_chat_once(&c, rv_buf_str(&message))
                            : repl ? rv_cli_chat_repl(&c)
                                   : rv_cli_chat_lines(&c));
    rv_cli_chat_close(&c);
    rv_buf_fini(&message);
    return status;
}

const struct rv_cli_verb rv_verb_chat = {
    .name = "chat",
    .args = "[TEXT]",
    .summary = "talk with an agent",
    .text =
        "On a terminal it reads one message after the other and shows answers as they arrive, with the tools and\n"
        "agents that are called; /help lists commands, Ctrl-C stops an answer. With TEXT or --message it runs one\n"
        "turn and exits as `run` does. Otherwise each line of standard input is a message. If TEXT is the id of a\n"
        "session, the chat continues that session.\n"
        "\n"
        "Each turn is a run that the store keeps together with its messages, so that a chat can be continued later.\n"
        "With --debug each request is printed to standard error when it is sent.",
    .examples = "reeve chat                                            # with the agent general\n"
                "reeve chat --agent sample-agent --session-name demo   # with another one\n"
                "reeve chat \"hi\" --script pipelines/scripts/chat-general.yaml --no-store   # without a model; "
                "nothing is kept\n"
                "reeve chat --session ID --message - < letter.txt --json | jq -r .text",
    .options = options,
    .n_options = RV_COUNT(options),
    .max_words = 1,
    .takes = &rv_cli_takes_sessions,
    .outlives_reader = true,
    .run = chat,
};

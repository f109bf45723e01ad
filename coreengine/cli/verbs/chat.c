/* reeve chat: its options, who watches a turn (people, lines of --events, the recorder, --debug), and the verb. */
#include "coreengine/cli/chat/chat_internal.h"
#include "coreengine/cli/outlet_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>
#include <unistd.h>

static const struct rv_cli_option options[] = {
    {"quotas", 0, "FILE", RV_CLI_QUOTAS_DOC, "FILE", false},
    {"agent", 'a', "NAME", "the agent to talk to (default: the session's, else general)", NULL, false},
    {"session", 0, "ID", "continue the session ID", NULL, false},
    {"session-name", 0, "TEXT", "name of the session, new or existing", NULL, false},
    {"session-type", 0, "TEXT", "type of the session, new or existing (default for a new session: chat)", NULL, false},
    {"client-id", 0, "ID", "client id that tools receive: web, mobile, cli, api, ... (default: cli)", NULL, false},
    {"eval", 0, NULL, "mark the chat as an evaluation: tools receive is_eval", NULL, false},
    {"user", 'u', "ID", "user of the chat (default REEVE_USER); a session is visible only to its own user", NULL,
     false},
    {"user-name", 0, "TEXT", "name of the user, passed to the agent", NULL, false},
    {"user-email", 0, "TEXT", "e-mail address of the user, passed to the agent", NULL, false},
    {"model", 0, "MODEL", "PROVIDER:MODEL in place of the agent's model, unless the agent fixes its model", NULL,
     false},
    {"child-text", 0, "WORD",
     "text to show and store when an agent asks another: child, parent, both or final (default: the agent's choice, "
     "else final)",
     "child parent both final", false},
    {"message", 0, "TEXT", "send this message and exit; - reads it from standard input", NULL, false},
    {"input-file", 0, "FILE", "read the message from a file; - is standard input", "FILE", false},
    {"attach", 0, "FILE", "send a picture, a PDF or a text file with the first message; again: as before", "FILE",
     true},
    {"instruction", 0, "TEXT", "additional instruction for the agent, in this chat only", NULL, true},
    {"history", 0, "N", "show the last N messages of the session first", NULL, false},
    {"leave", 0, NULL, "leave the agent that a router chose earlier", NULL, false},
    {"json", 'j', NULL, "print each turn as one JSON object", NULL, false},
    {"events", 'e', NULL, "print each event as a line of JSON instead of the answer", NULL, false},
    {"deltas", 0, NULL, "with --events: also the text of models as it is streamed", NULL, false},
    {"quiet", 'q', NULL, "do not show session and tool calls", NULL, false},
    {"plain", 0, NULL, "on a terminal: show answers as the model wrote them, not their Markdown", NULL, false},
    {"record", 0, "FILE", "write a script that replays the models and tools of this chat", "FILE", false},
    {"script", 's', "FILE", "answers for models, tools and people", "FILE", false},
    {"no-store", 0, NULL, "do not use the store", NULL, false},
    {"capability", 0, "NAME", "capability whose tools and agents are available, in addition to p8 (\"\": without p8)",
     NULL, true},
};

#define MAX_LINE (2 * RV_LLM_MAX_REPLY) /* bytes: a reply, and as much again for its escapes */

/* --- who watches: one set of callbacks tells them all --- */

/* The reader of stdout left, or the disk is full: the turn goes on to its end and is kept, the chat ends behind it. */
static void note_written(struct rv_cli_chat *c, bool written)
{
    c->reader_left = c->reader_left || !written;
}

/* The recorder has to know a pipeline's secrets and tools before the first answer. */
static void record_pipeline(struct rv_cli_chat *c, const struct rv_pipeline *p)
{
    struct rv_catalog catalog = rv_plugins_catalog(c->in.loaded.plugins);

    if (!p || p == c->recorded)
        return;
    c->recorded = p;
    if (c->in.loaded.script)
        catalog = rv_script_catalog(c->in.loaded.script, &catalog);
    rv_recorder_hide(c->recorder, p);
    rv_recorder_note_tools(c->recorder, p, &catalog);
}

/* A line of its own among what a person watches. */
static void write_debug(struct rv_cli_chat *c, const char *head, const char *provider, rv_str body)
{
    rv_buf line = RV_BUF_INIT(MAX_LINE + RV_JSON_MAX_BYTES);

    rv_buf_puts(&line, head);
    if (provider)
        rv_buf_printf(&line, " %s", provider);
    rv_buf_putc(&line, ' ');
    rv_buf_add_str(&line, body);
    if (c->show) {
        cli_chat_show_note(c->show, rv_buf_str(&line));
    } else {
        rv_buf_putc(&line, '\n');
        cli_err(rv_buf_str(&line));
    }
    rv_buf_fini(&line);
}

static void on_effect(void *self, const struct rv_effects *all, const struct rv_effect *e)
{
    struct rv_cli_chat *c = self;

    (void)all;
    if (e->kind == RV_EFFECT_CALL_LLM && !e->origin)
        c->running = e->pipeline;
    if (c->recorder && (e->kind == RV_EFFECT_CALL_LLM || e->kind == RV_EFFECT_CALL_TOOL))
        record_pipeline(c, e->pipeline);
    if (c->show)
        cli_chat_show_effect(c->show, e);
    bool sent = !c->in.loaded.script || !rv_script_has_models(c->in.loaded.script); /* then on_payload tells */
    if (c->debug && !sent && e->kind == RV_EFFECT_CALL_LLM)
        write_debug(c, "request", NULL, (rv_str){e->request, e->request_len});
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct rv_cli_chat *c = self;

    if (c->events && !c->reader_left) {
        cli_out(line);
        note_written(c, cli_out_now(RV_STR_LIT("\n")));
    }
    c->has_end = e->emit == RV_EMIT_DONE;
    if (c->show)
        cli_chat_show_event(c->show, e, line);
    if (c->recorder)
        rv_recorder_note_event(c->recorder, e, line);
}

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct rv_cli_chat *c = self;

    if (c->deltas && !c->reader_left)
        note_written(c, cli_out_delta(c->running, from, d));
    if (c->show)
        note_written(c, cli_chat_show_delta(c->show, from, d));
    return true;
}

static void on_piece(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct rv_cli_chat *c = self;

    rv_recorder_note_delta(c->recorder, from->stage, from->call_id, d, rv_engine_now_us(c->in.engine));
}

static void on_payload(void *self, int64_t call_id, const char *provider, rv_str body)
{
    struct rv_cli_chat *c = self;

    (void)call_id;
    if (c->debug)
        write_debug(c, "payload", provider, body);
}

static void on_input(void *self, const struct rv_event *ev)
{
    struct rv_cli_chat *c = self;

    if (c->recorder)
        rv_recorder_note_input(c->recorder, ev);
}

/* What can be turned on later is always listened to. */
static void watch(struct rv_cli_chat *c, struct rv_chat_opts *opts)
{
    opts->self = c;
    opts->on_payload = on_payload;
    opts->on_effect = on_effect;
    if (c->events || c->show || c->recorder)
        opts->on_event = on_event;
    if (c->deltas || c->show)
        opts->on_delta = on_delta;
    if (c->recorder) {
        opts->on_input = on_input;
        opts->on_piece = on_piece;
    }
}

/* The message with its files. A turn that could not begin leaves them for the next one. */
static int say(struct rv_cli_chat *c, rv_str message, struct rv_chat_turn *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_CLI_MAX_MESSAGE);

    rv_buf_add_str(&text, message);
    rv_buf_add_str(&text, rv_buf_str(&c->attached_text));
    int rc = rv_buf_check(&text, "the message with its files", err);
    if (rc == 0)
        rc = rv_chat_send(c->in.chat, rv_buf_str(&text), c->attached, out, err);
    rv_buf_fini(&text);
    if (rc < 0)
        return rc;
    json_object_put(c->attached);
    c->attached = NULL;
    rv_buf_clear(&c->attached_text);
    rv_buf_clear(&c->attached_names);
    return 0;
}

int cli_chat_turn(struct rv_cli_chat *c, rv_str message, const struct rv_response *response, struct rv_chat_turn *out,
                  rv_err **err)
{
    if (c->show)
        cli_chat_show_begin(c->show);
    c->recorded = c->running = NULL;
    c->has_end = false;
    cli_outlet_open(c->cli->app.log);
    cli_chat_signals_turn(true);
    int rc = response ? rv_chat_answer(c->in.chat, response, out, err) : say(c, message, out, err);
    cli_chat_signals_turn(false);
    if (rc < 0 && c->events && !c->has_end) /* it could not even begin */
        note_written(c, cli_tell_end(NULL, *err));
    if (c->recorder)
        rv_recorder_end_run(c->recorder);
    if (c->show && rc == 0)
        cli_chat_show_end(c->show, out);
    if (!cli_out_rest()) /* before a line is asked for, by a library that writes by itself */
        note_written(c, false);
    return rc;
}

/* --- the chat as the command line wants it --- */

int cli_chat_enter(struct rv_cli_chat *c, const char *session, const char *agent, rv_err **err)
{
    const struct rv_store_scope own = cli_chat_scope(c);
    struct rv_agents_found found;
    int rc = rv_app_chat_enter(&c->in, session, agent, err);

    if (rc == 0 && rv_agents_find(c->in.agents, &own, rv_chat_agent(c->in.chat), &found,
                                  RV_CODE_ONLY("the chat found it above; this only warns of another")) == 0)
        cli_warn_hidden(c->in.agents, rv_chat_agent(c->in.chat), &found);
    return rc;
}

/* What the command line says of the chat. */
static int read_options(struct rv_cli_chat *c, rv_err **err)
{
    const char *client = cli_value(c->cli, "client-id");
    struct rv_chat_opts *opts = &c->in.opts;

    *opts = (struct rv_chat_opts){.model = cli_value(c->cli, "model"),
                                  .child_text = cli_value(c->cli, "child-text"),
                                  .sections = c->sections,
                                  .zone_minutes = cli_zone_minutes(),
                                  .session_name = cli_value(c->cli, "session-name"),
                                  .session_type = cli_value(c->cli, "session-type"),
                                  .context = {.is_eval = cli_flag(c->cli, "eval"),
                                              .client_id = client && client[0] ? client : NULL,
                                              .user_name = cli_value(c->cli, "user-name"),
                                              .user_email = cli_value(c->cli, "user-email")}};
    c->in.wanted = c->wanted;
    c->in.app = &c->cli->app;
    c->in.script = cli_value(c->cli, "script");
    watch(c, opts);
    int rc = cli_values(c->cli, "instruction", c->sections, RV_COUNT(c->sections), &opts->n_sections, err);
    return rc == 0 ? cli_values(c->cli, "capability", c->wanted, RV_COUNT(c->wanted), &c->in.n_wanted, err) : rc;
}

static int open_chat(struct rv_cli_chat *c, const char *session, rv_err **err)
{
    int rc = read_options(c, err);
    if (rc == 0)
        rc = rv_app_chat_open(&c->in, err);
    if (c->in.store_failed)
        cli_hint_store(err);
    if (rc == 0)
        rc = cli_chat_signals_watch(c->in.engine, err);
    if (rc == 0)
        rc = cli_chat_enter(c, session, cli_value(c->cli, "agent"), err);
    if (rc == 0 && cli_flag(c->cli, "leave"))
        rc = rv_chat_leave(c->in.chat, err);
    return rc;
}

/* What --attach names; said where the header is. */
static int attach_files(struct rv_cli_chat *c, rv_err **err)
{
    bool told = !cli_flag(c->cli, "quiet") && !cli_flag(c->cli, "json") && !cli_flag(c->cli, "events");
    const char *files[RV_CLI_MAX_ARGS];
    rv_buf text = RV_BUF_INIT(1 << 20);
    size_t n = 0;
    int rc = cli_values(c->cli, "attach", files, RV_COUNT(files), &n, err);

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = files[i][0] && strcmp(files[i], "-") != 0 /* those are words of the prompt */
                 ? cli_chat_attach(c, files[i], &text, err)
                 : cli_usage(c->cli, err, "--attach takes the path of a file, not \"%s\"", files[i]);
    if (rc == 0 && told)
        cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
    return rc;
}

static void close_chat(struct rv_cli_chat *c)
{
    json_object_put(c->attached);
    rv_buf_fini(&c->attached_text);
    rv_buf_fini(&c->attached_names);
    cli_chat_signals_unwatch();
    rv_app_chat_close(&c->in);
    cli_chat_show_free(c->show);
    rv_recorder_free(c->recorder);
}

/* --- the verb --- */

/* A session's id where a message could stand: then that session is meant. */
static bool names_session(const struct rv_cli *cli)
{
    return cli->n_words > 0 && rv_uuid_read(rv_str_of(cli->words[0]), NULL);
}

/* *said false: the command line has no message. */
static int read_message(const struct rv_cli *cli, rv_buf *out, bool *said, rv_err **err)
{
    const char *text = cli_value(cli, "message"), *file = cli_value(cli, "input-file");

    if (cli->n_words > 0 && !names_session(cli))
        text = cli->words[0];
    *said = text || file;
    int rc = cli_read_text(text, file, out, err);
    if (rc == 0)
        rc = rv_buf_check(out, "the message", err);
    if (rc == 0 && *said && rv_str_trim(rv_buf_str(out)).len == 0)
        rc = RV_FAIL(err, RV_E_INVALID, "the message is empty");
    return rc < 0 ? RV_WRAP(err, rc, "read the message") : 0;
}

static int open_observers(struct rv_cli_chat *c, bool repl, rv_err **err)
{
    bool data = cli_flag(c->cli, "json") || cli_flag(c->cli, "events");
    bool quiet = cli_flag(c->cli, "quiet");
    const struct rv_chat_show_opts show = {
        .tools = !quiet && (repl || c->cli->err_tty), .labels = c->cli->out_tty, .plain = cli_flag(c->cli, "plain")};

    const char *record = cli_value(c->cli, "record");
    int rc = record ? rv_app_check_target(record, false, err) : 0;
    if (rc < 0)
        return RV_WRAP(err, rc, "--record");
    c->debug = c->cli->debug;
    c->events = cli_flag(c->cli, "events");
    c->deltas = cli_flag(c->cli, "deltas");
    if (!data && (repl || c->cli->out_tty) && !(c->show = cli_chat_show_new(c->cli, &show)))
        return RV_FAIL(err, RV_E_NOMEM, "begin a chat");
    c->shows_remarks = c->show && show.tools;
    if (record && !(c->recorder = rv_recorder_new()))
        return RV_FAIL(err, RV_E_NOMEM, "record the chat");
    return 0;
}

static int history(struct rv_cli_chat *c, rv_err **err)
{
    int64_t n = 0;
    int rc = cli_int(c->cli, "history", 1, 1000, &n, err);

    return rc == 0 && n > 0 ? cli_chat_history(c, n, err) : rc;
}

/* The answers are printed even when the recording fails. */
static int finish(struct rv_cli_chat *c, int status)
{
    rv_err *err = NULL;

    if (c->recorder && rv_recorder_write(c->recorder, RV_CLI_RECORDED, cli_value(c->cli, "record"), &err) < 0) {
        cli_report(c->cli, err);
        status = status ? status : RV_EXIT_FAILED;
    }
    return status;
}

static int chat(struct rv_cli *cli, rv_err **err)
{
    bool data = cli_flag(cli, "json") || cli_flag(cli, "events"), said = false;
    struct rv_cli_chat c = {.cli = cli,
                            .attached_text = RV_BUF_INIT(RV_CLI_MAX_MESSAGE),
                            .attached_names = RV_BUF_INIT(RV_CLI_MAX_MESSAGE)};
    rv_buf message = RV_BUF_INIT(RV_CLI_MAX_MESSAGE);
    const char *session = cli_value(cli, "session");

    if (cli_value(cli, "history") && data)
        return cli_usage(cli, err,
                         "--history does not go with --json and --events; `reeve sessions messages` prints the rows");
    if ((cli->n_words > 0) + cli_flag(cli, "message") + cli_flag(cli, "input-file") > 1)
        return cli_usage(cli, err, "the message is given more than once");
    if (!session && names_session(cli))
        session = cli->words[0];
    int rc = read_message(cli, &message, &said, err);
    bool repl = !said && !data && isatty(STDIN_FILENO);
    if (rc == 0)
        rc = open_observers(&c, repl, err);
    if (rc == 0)
        rc = open_chat(&c, session, err);
    if (rc == 0)
        rc = attach_files(&c, err);
    if (rc == 0)
        rc = history(&c, err);
    if (rc == 0)
        rc = finish(&c, said ? cli_chat_once(&c, rv_buf_str(&message)) : repl ? cli_chat_repl(&c) : cli_chat_lines(&c));
    close_chat(&c);
    rv_buf_fini(&message);
    return rc;
}

const struct rv_cli_verb verb_chat = {
    .name = "chat",
    .args = "[TEXT]",
    .summary = "talk with an agent",
    .text =
        "On a terminal it reads one message after the other and shows answers as they arrive, with the tools and\n"
        "agents that are called; /help lists commands, Tab completes them, the Up key finds earlier lines, Ctrl-C\n"
        "stops an answer. With TEXT or --message it runs one turn and exits as `run` does. Otherwise each line of\n"
        "standard input is a message. If TEXT is the id of a session, the chat continues that session.\n"
        "\n"
        "Each turn is a run that the store keeps together with its messages, so that a chat can be continued later.\n"
        "With --debug each request is printed to standard error when it is sent.",
    .examples =
        "reeve chat                                            # with the agent general\n"
        "reeve chat --agent sample-agent --session-name demo   # with another one\n"
        "reeve chat \"hi\" --script pipelines/scripts/chat-general.yaml --no-store   # without a model; "
        "nothing is kept\n"
        "reeve chat --attach README.md \"Is it clear?\" --script pipelines/scripts/chat-general.yaml --no-store   # "
        "pictures and PDFs, too\n"
        "reeve chat --session ID --message - < letter.txt --json | jq -r .text",
    RV_CLI_OPTIONS(options),
    .groups = {&cli_of_places, &cli_of_commits},
    .excludes = "json events",
    .needs = "deltas events",
    .max_words = 1,
    .takes = &cli_takes_sessions,
    .outlives_reader = true,
    .run = chat,
};

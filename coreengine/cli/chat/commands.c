/* Input at the prompt that is not a message: /commands, and the words that end the chat; the history of the session. */
#include "coreengine/app/app.h"
#include "coreengine/cli/chat/chat_internal.h"
#include "coreengine/cli/markdown/markdown_internal.h"
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/show/width_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WORD       256  /* bytes of "/command" and of its argument; a longer one is cut and not known */
#define MAX_REST       4096 /* bytes of what follows a command: a path */
#define SHOWN_SESSIONS 20   /* newest ones, of /sessions */
#define SHOWN_MESSAGES 20   /* last ones, of /history without a number */
#define MAX_SHOWN      1000 /* messages of /history: they are printed at once; a larger number counts as this */

/* Each takes the rest of the line. RV_CHAT_WORD_AGAIN: the message is said again. */
typedef int (*command_fn)(struct rv_cli_chat *c, const char *rest, rv_err **err);

static void print(rv_buf *text)
{
    RV_IGNORE(!cli_out_now(rv_buf_str(text)), "a write that failed is told at the end");
    rv_buf_fini(text);
}

static int to_agent(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(4096);
    int rc = rest[0] ? rv_chat_set_agent(c->in.chat, rest, err) : 0;

    if (rc < 0)
        return rc;
    rv_buf_printf(&text, "Agent: %s\n", rv_chat_agent(c->in.chat));
    print(&text);
    return 0;
}

static int leave(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    (void)rest;
    int rc = rv_chat_leave(c->in.chat, err);
    if (rc == 0)
        cli_out(RV_STR_LIT("the next message is for whichever agent it fits\n"));
    return rc;
}

static int begin_anew(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    char *agent = rv_str_dup(rv_str_of(rv_chat_agent(c->in.chat)));

    (void)rest;
    int rc = agent ? cli_chat_enter(c, NULL, agent, err) : RV_FAIL(err, RV_E_NOMEM, "begin a session");
    free(agent);
    if (rc == 0)
        cli_chat_header(c);
    return rc;
}

static int show_session(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    if (rest[0]) { /* that one from now on */
        struct rv_session_row there = {0};
        const struct rv_store_scope own = cli_chat_scope(c);
        int found = rv_store_get_session(c->in.store, &own, rest, &there, err);
        rv_session_row_fini(&there);
        if (found == RV_E_NOT_FOUND)
            rv_err_set_hint(err, "/sessions lists the newest");
        if (found == 0)
            found = cli_chat_enter(c, rest, NULL, err);
        if (found == 0)
            cli_chat_header(c);
        return found;
    }
    const struct rv_store_scope scope = cli_chat_scope(c);
    struct rv_session_row row = {0};
    rv_buf text = RV_BUF_INIT(1 << 20);
    rv_err *cause = NULL;

    rv_buf_printf(&text, "session  %s\nagent    %s\n", rv_chat_session(c->in.chat), rv_chat_agent(c->in.chat));
    int rc = rv_store_get_session(c->in.store, &scope, rv_chat_session(c->in.chat), &row, &cause);
    if (rc == RV_E_NOT_FOUND) { /* before its first message */
        rv_err_free(cause);
        cause = NULL;
    } else if (rc == 0) {
        rv_buf_puts(&text, "name     ");
        cli_chat_write_line(rv_str_of(row.name), &text);
        rv_buf_printf(&text, "\nmessages %lld, about ", (long long)row.n_messages);
        rv_app_write_count(&text, row.total_tokens);
        rv_buf_puts(&text, " tokens\n");
    }
    rv_session_row_fini(&row);
    rc = cause ? rv_err_pass(err, cause) : rv_buf_check(&text, "a session", err);
    print(&text);
    return rc;
}

static int add_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    rv_cli_table *t = self;
    rv_buf age = RV_BUF_INIT(64);

    (void)err;
    cli_write_age(&age, rv_app_now_us() - row->updated_us);
    cli_table_add_text(t, row->id);
    cli_table_add_text(t, row->name);
    cli_table_add_text(t, row->agent_name);
    cli_table_add_int(t, row->n_messages);
    cli_table_add(t, rv_buf_str(&age));
    rv_buf_fini(&age);
    return 0;
}

static int show_sessions(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    static const struct rv_cli_column columns[] = {
        {"SESSION", 0, false}, {"NAME", 40, false}, {"AGENT", 24, false}, {"MESSAGES", 0, true}, {"AGE", 0, false}};
    const struct rv_store_scope scope = cli_chat_scope(c);
    const struct rv_session_filter newest = {.limit = SHOWN_SESSIONS};
    rv_cli_table *table = cli_table_new(columns, RV_COUNT(columns));
    rv_buf text = RV_BUF_INIT(1 << 20);

    (void)rest;
    int rc = table ? rv_store_list_sessions(c->in.store, &scope, &newest, add_session, table, err)
                   : RV_FAIL(err, RV_E_NOMEM, "list sessions");
    if (rc == 0)
        rc = cli_table_write(table, c->cli->out_color, &text, err);
    if (rc == 0 && text.len == 0)
        rv_buf_puts(&text, "no sessions found\n");
    print(&text);
    cli_table_free(table);
    return rc;
}

/* --- what was said, as a person reads it again: words with their speakers, calls as dim lines --- */

/* Rows come newest first and are shown the other way round. */
struct rows {
    const struct rv_cli *cli;
    rv_buf texts[MAX_SHOWN];
    size_t n, most;
};

static void write_words(const struct rv_cli *cli, const char *who, const struct rv_message *m, bool is_answer,
                        rv_buf *b)
{
    json_object *attached = NULL;
    rv_cli_md *md = NULL;
    size_t columns;

    rv_buf_puts(b, cli->out_color ? "\033[1m" : "");
    cli_write_safe(rv_str_of(who), b);
    rv_buf_printf(b, ">%s ", cli->out_color ? "\033[0m" : "");
    cli_terminal_size(&columns, NULL);
    if (is_answer && cli->out_tty && !cli_flag(cli, "plain"))
        md = cli_md_new(cli->out_color, columns);
    if (md) {
        cli_md_behind(md);
        cli_md_add(md, m->content, b);
        cli_md_flush(md, b);
    } else { /* or no memory: as it is */
        cli_write_safe(m->content, b);
    }
    cli_md_free(md);
    if (m->status && strcmp(m->status, rv_turn_status_text(RV_TURN_COMPLETED)) != 0)
        rv_buf_printf(b, "%s[%s]", m->content.len ? "  " : "", m->status);
    rv_buf_putc(b, '\n');
    int rc = is_answer
                 ? 0
                 : cli_chat_attached_of(
                       m, &attached, RV_CODE_ONLY("damaged metadata name no files; want of memory fails the buffer"));
    if (rc == RV_E_NOMEM && b->rc == 0)
        b->rc = rc;
    if (!is_answer && rc == 0)
        cli_chat_write_attached(attached, "  attached ", b);
    json_object_put(attached);
}

static void write_call(const struct rv_cli *cli, const struct rv_message *m, rv_buf *b)
{
    rv_buf arguments = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    struct rv_app_tool_call call;
    json_object *json = NULL;

    rv_app_tool_call_read(m, &json, &call);
    if (call.arguments && cli_chat_hide(call.arguments) == 0)
        rv_json_write(call.arguments, &arguments);
    rv_buf_puts(b, cli->out_color ? "\033[2m  > " : "  > ");
    cli_chat_write_call(rv_str_of(call.name), rv_buf_str(&arguments), b);
    rv_buf_puts(b, cli->out_color ? "\033[0m\n" : "\n");
    rv_buf_fini(&arguments);
    json_object_put(json);
}

static int take(void *self, const struct rv_message *m, rv_err **err)
{
    struct rows *r = self;
    rv_buf *b = &r->texts[r->n];

    int type = rv_message_type_of(rv_str_of(m->type));

    *b = RV_BUF_INIT(RV_APP_MAX_TEXT);
    switch (type == RV_UNSET ? RV_N_MESSAGE_TYPES : (enum rv_message_type)type) { /* another word is shown as it is */
    case RV_MESSAGE_USER:
        write_words(r->cli, "you", m, false, b);
        break;
    case RV_MESSAGE_TOOL_CALL:
        write_call(r->cli, m, b);
        break;
    case RV_MESSAGE_TOOL_RESPONSE: /* what came of a call is for models */
    case RV_MESSAGE_TOOL:
    case RV_MESSAGE_TOOL_RESULT:
    case RV_MESSAGE_THINK:
        return 0;
    case RV_MESSAGE_ASSISTANT:
    case RV_MESSAGE_SYSTEM:
    case RV_MESSAGE_OBSERVATION:
    case RV_MESSAGE_MEMORY:
    case RV_N_MESSAGE_TYPES:
        write_words(r->cli, m->agent_name && m->agent_name[0] ? m->agent_name : m->type, m, true, b);
        break;
    }
    r->n++;
    int rc = rv_buf_check(b, "a message", err);
    return rc == 0 && r->n == r->most ? RV_STORE_ENOUGH : rc;
}

int cli_chat_history(struct rv_cli_chat *c, int64_t n, rv_err **err)
{
    const struct rv_store_scope scope = cli_chat_scope(c);
    const struct rv_message_filter newest = {.newest_first = true};
    struct rows *r = calloc(1, sizeof *r);
    rv_err *cause = NULL;

    if (!r)
        return RV_FAIL(err, RV_E_NOMEM, "show the history");
    r->cli = c->cli;
    r->most = n < 1 ? 1 : n > MAX_SHOWN ? MAX_SHOWN : (size_t)n;
    int rc = rv_store_read_messages(
        c->in.store, &scope, &(const struct rv_messages_of){rv_chat_session(c->in.chat), &newest}, take, r, &cause);
    for (size_t i = r->n; rc >= 0 && i-- > 0;)
        cli_out(rv_buf_str(&r->texts[i]));
    for (size_t i = 0; i < MAX_SHOWN; i++)
        rv_buf_fini(&r->texts[i]);
    if (rc == RV_E_NOT_FOUND) { /* it is made with the first turn */
        rv_err_free(cause);
        rc = 0;
    } else if (rc < 0) {
        rv_err_pass(err, cause);
    }
    if (rc >= 0 && r->n == 0)
        cli_say("the session has no messages yet\n");
    free(r);
    return rc < 0 ? rc : 0;
}

/* --- the commands --- */

static int show_history(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    char *end = NULL;
    long long n = rest[0] ? strtoll(rest, &end, 10) : SHOWN_MESSAGES;

    if (n < 1 || (end && *end))
        return RV_FAIL(err, RV_E_INVALID, "/history takes a number of messages, not \"%s\"", rest);
    return cli_chat_history(c, n, err);
}

/* The first line of what a tool is said to do. */
static void write_tool(const struct rv_catalog *catalog, const struct rv_agentdoc_tool *tool, rv_buf *b)
{
    const struct rv_tool_info *info = catalog->tool(catalog->self, rv_str_of(tool->name));
    const char *text = tool->description ? tool->description : info && info->description ? info->description : "";

    rv_buf_printf(b, "  %-24s ", tool->name);
    cli_chat_write_line((rv_str){text, strcspn(text, "\n")}, b);
    rv_buf_putc(b, '\n');
}

static int show_tools(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    const struct rv_store_scope scope = cli_chat_scope(c);
    struct rv_catalog catalog = rv_plugins_catalog(c->in.loaded.plugins);
    rv_buf text = RV_BUF_INIT(1 << 20);
    struct rv_agents_found found;

    (void)rest;
    int rc = rv_agents_find(c->in.agents, &scope, rv_chat_agent(c->in.chat), &found, err);
    if (rc < 0)
        return rc;
    if (c->in.loaded.script)
        catalog = rv_script_catalog(c->in.loaded.script, &catalog);
    for (size_t i = 0; i < found.doc->n_tools; i++)
        write_tool(&catalog, &found.doc->tools[i], &text);
    if (found.doc->n_tools == 0)
        rv_buf_printf(&text, "%s has no tools\n", rv_chat_agent(c->in.chat));
    print(&text);
    return 0;
}

static int switch_debug(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    if (strcmp(rest, "on") != 0 && strcmp(rest, "off") != 0 && rest[0])
        return RV_FAIL(err, RV_E_INVALID, "/debug takes on or off, not \"%s\"", rest);
    c->debug = rest[0] ? strcmp(rest, "on") == 0 : !c->debug;
    if (c->debug)
        cli_out(RV_STR_LIT("requests are shown as they are sent\n"));
    else
        cli_out(RV_STR_LIT("requests are not shown\n"));
    return 0;
}

/* --- turns --- */

static int print_or_drop(rv_buf *text, int rc)
{
    if (rc == 0)
        print(text);
    else
        rv_buf_fini(text);
    return rc;
}

static int take_back(struct rv_cli_chat *c, json_object **attached, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(4096);
    int rc = cli_chat_take_back(c, &c->again, attached, err);

    if (rc == 0) {
        rv_buf_puts(&text, "taken back: ");
        cli_chat_write_line(rv_buf_str(&c->again), &text);
        rv_buf_putc(&text, '\n');
        print(&text);
    }
    return rc;
}

static int undo(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    json_object *attached = NULL;

    (void)rest;
    int rc = take_back(c, &attached, err);
    json_object_put(attached);
    return rc;
}

/* The message is said as it was, with what belonged to it and nothing else. */
static int retry(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    json_object *attached = NULL;

    (void)rest;
    int rc = take_back(c, &attached, err);
    if (rc < 0)
        return rc;
    rv_buf_clear(&c->attached_text);
    rv_buf_clear(&c->attached_names);
    json_object_put(c->attached);
    c->attached = attached;
    return RV_CHAT_WORD_AGAIN;
}

static int attach(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1 << 16);

    return print_or_drop(&text, cli_chat_attach(c, rest, &text, err));
}

static int show_usage(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1 << 20);

    (void)rest;
    return print_or_drop(&text, cli_chat_write_usage(c, &text, err));
}

static int show_cost(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1 << 16);

    (void)rest;
    return print_or_drop(&text, cli_chat_write_cost(c, &text, err));
}

static int export_to(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1 << 16);

    if (!rest[0])
        return RV_FAIL(err, RV_E_INVALID, "/export takes the file to write, such as talk.md or talk.json");
    rv_buf_printf(&text, "wrote %s\n", rest);
    return print_or_drop(&text, cli_chat_export(c, rest, err));
}

static int to_model(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    const char *before = c->in.opts.model;
    char *session = rv_str_dup(rv_str_of(rv_chat_session(c->in.chat)));
    char *agent = rv_str_dup(rv_str_of(rv_chat_agent(c->in.chat)));
    rv_buf text = RV_BUF_INIT(4096);
    int rc = session && agent ? 0 : RV_FAIL(err, RV_E_NOMEM, "change the model");

    if (rc == 0 && rest[0]) {
        rv_str name = rv_utf8_cut(rv_str_of(rest), sizeof c->model - 1);
        char former[sizeof c->model];
        memcpy(former, c->model, sizeof former);
        memcpy(c->model, name.ptr, name.len);
        c->model[name.len] = '\0';
        c->in.opts.model = strcmp(rest, "-") == 0 ? NULL : c->model;
        rc = cli_chat_enter(c, session, agent, err);
        if (rc < 0) {
            memcpy(c->model, former, sizeof former);
            c->in.opts.model = before;
        }
    }
    free(session);
    free(agent);
    rv_buf_printf(&text, "Model: %s\n", c->in.opts.model ? c->in.opts.model : "the agent's");
    return print_or_drop(&text, rc);
}

static int show_help(struct rv_cli_chat *c, const char *rest, rv_err **err);

static const struct {
    const char *name, *args, *doc;
    command_fn run; /* NULL: ends the chat */
    enum rv_chat_takes takes;
} commands[] = {
    {"/help", "", "this list", show_help, RV_CHAT_TAKES_NOTHING},
    {"/agent", "NAME", "talk to that agent from now on; without a name: which it is", to_agent, RV_CHAT_TAKES_AGENT},
    {"/leave", "", "leave the agent that a router chose", leave, RV_CHAT_TAKES_NOTHING},
    {"/model", "NAME", "ask that model from now on, provider:model; -: the agent's", to_model, RV_CHAT_TAKES_NOTHING},
    {"/new", "", "begin a new session", begin_anew, RV_CHAT_TAKES_NOTHING},
    {"/session", "ID", "continue that session; without an id: which this is", show_session, RV_CHAT_TAKES_SESSION},
    {"/sessions", "", "the sessions touched last", show_sessions, RV_CHAT_TAKES_NOTHING},
    {"/history", "N", "the last N messages", show_history, RV_CHAT_TAKES_NOTHING},
    {"/attach", "FILE", "send a file with the next message; again: same, -: none", attach, RV_CHAT_TAKES_FILE},
    {"/retry", "", "take the last turn back and send its message again", retry, RV_CHAT_TAKES_NOTHING},
    {"/undo", "", "take the last turn back", undo, RV_CHAT_TAKES_NOTHING},
    {"/export", "FILE", "write the session as Markdown, or JSON (.json)", export_to, RV_CHAT_TAKES_NOTHING},
    {"/usage", "", "tokens, cost and time of the session by model", show_usage, RV_CHAT_TAKES_NOTHING},
    {"/cost", "", "what the session has cost", show_cost, RV_CHAT_TAKES_NOTHING},
    {"/tools", "", "the tools of the agent", show_tools, RV_CHAT_TAKES_NOTHING},
    {"/debug", "on|off", "show each request to a model", switch_debug, RV_CHAT_TAKES_SWITCH},
    {"/exit", "", "end the chat, as exit, quit, \\q and Ctrl-D do", NULL, RV_CHAT_TAKES_NOTHING},
};

static int show_help(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1 << 16);

    (void)c;
    (void)rest;
    (void)err;
    for (size_t i = 0; i < RV_COUNT(commands); i++)
        rv_buf_printf(&text, "  %-10s %-7s %s\n", commands[i].name, commands[i].args, commands[i].doc);
    rv_buf_puts(&text, "  Ctrl-C stops the answer; what was said until then is kept\n");
    print(&text);
    return 0;
}

static int unknown(const char *word, rv_err **err)
{
    const char *names[RV_COUNT(commands)];

    for (size_t i = 0; i < RV_COUNT(commands); i++)
        names[i] = commands[i].name;
    const char *near = rv_nearest(rv_str_of(word), names, RV_COUNT(names));
    int rc = RV_FAIL(err, RV_E_INVALID, "unknown command \"%s\"", word);
    if (near)
        rv_err_set_hint(err, "did you mean %s? /help lists all", near);
    else
        rv_err_set_hint(err, "/help lists all; a message that begins with / has a blank before it");
    return rc;
}

const char *cli_chat_command_name(size_t i)
{
    return i < RV_COUNT(commands) ? commands[i].name : NULL;
}

enum rv_chat_takes cli_chat_command_takes(rv_str name)
{
    for (size_t i = 0; i < RV_COUNT(commands); i++)
        if (rv_str_is(name, commands[i].name))
            return commands[i].takes;
    return RV_CHAT_TAKES_NOTHING;
}

static bool is_farewell(rv_str line)
{
    return rv_str_is(line, "exit") || rv_str_is(line, "quit") || rv_str_is(line, "\\q");
}

enum rv_chat_word cli_chat_command(struct rv_cli_chat *c, rv_str line)
{
    rv_str text = rv_str_trim(line);
    char word[MAX_WORD] = "", rest[MAX_REST] = "";
    rv_err *err = NULL;
    size_t len = 0;
    int rc;

    if (is_farewell(text))
        return RV_CHAT_WORD_EXIT;
    if (line.ptr[0] != '/' || memchr(text.ptr, '\n', text.len)) /* text of several lines may begin with a path */
        return RV_CHAT_WORD_NONE;
    while (len < text.len && text.ptr[len] != ' ' && text.ptr[len] != '\t')
        len++;
    rv_str tail = rv_str_trim((rv_str){text.ptr + len, text.len - len});
    rv_str head = rv_utf8_cut((rv_str){text.ptr, len}, sizeof word - 1);
    memcpy(word, head.ptr, head.len);
    if (tail.len >= sizeof rest) {
        cli_say("%s: more than %d bytes follow it\n", word, MAX_REST - 1);
        return RV_CHAT_WORD_DONE;
    }
    if (tail.len)
        memcpy(rest, tail.ptr, tail.len);
    for (size_t i = 0; i < RV_COUNT(commands); i++) {
        if (strcmp(commands[i].name, word) != 0)
            continue;
        if (!commands[i].run)
            return RV_CHAT_WORD_EXIT;
        rc = commands[i].run(c, rest, &err);
        if (rc < 0)
            cli_report(c->cli, err);
        return rc == RV_CHAT_WORD_AGAIN ? RV_CHAT_WORD_AGAIN : RV_CHAT_WORD_DONE;
    }
    RV_IGNORE(unknown(word, &err), "reported at once");
    cli_report(c->cli, err);
    return RV_CHAT_WORD_DONE;
}

/* Input at the prompt that is not a message: /commands, and the words that end the chat. */
#include "coreengine/cli/chat/chat.h"
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/show/table.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WORD       256
#define SHOWN_SESSIONS 20
#define SHOWN_MESSAGES 20

/* Each takes the rest of the line. */
typedef int (*command_fn)(struct rv_cli_chat *c, const char *rest, rv_err **err);

static void print(rv_buf *text)
{
    RV_IGNORE(!rv_cli_out_now(rv_buf_str(text)), "a write that failed is told at the end");
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
        rv_cli_out(RV_STR_LIT("the next message is for whichever agent it fits\n"));
    return rc;
}

static int begin_anew(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    char *agent = rv_str_dup(rv_str_of(rv_chat_agent(c->in.chat)));

    (void)rest;
    int rc = agent ? rv_cli_chat_enter(c, NULL, agent, err) : RV_FAIL(err, RV_E_NOMEM, "begin a session");
    free(agent);
    if (rc == 0)
        rv_cli_chat_header(c);
    return rc;
}

static int show_session(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_chat_scope(c);
    struct rv_session_row row = {0};
    rv_buf text = RV_BUF_INIT(1 << 20);

    (void)rest;
    rv_buf_printf(&text, "session  %s\nagent    %s\n", rv_chat_session(c->in.chat), rv_chat_agent(c->in.chat));
    if (rv_store_get_session(c->in.store, &scope, rv_chat_session(c->in.chat), &row, NULL) == 0) {
        rv_buf_puts(&text, "name     ");
        rv_chat_write_line(rv_str_of(row.name), &text);
        rv_buf_printf(&text, "\nmessages %lld, about ", (long long)row.n_messages);
        rv_app_write_count(&text, row.total_tokens);
        rv_buf_puts(&text, " tokens\n");
    }
    rv_session_row_fini(&row);
    int rc = rv_buf_check(&text, "a session", err);
    print(&text);
    return rc;
}

static int add_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    rv_cli_table *t = self;
    rv_buf age = RV_BUF_INIT(64);

    (void)err;
    rv_cli_write_age(&age, rv_app_now_us() - row->updated_us);
    rv_cli_table_add_text(t, row->id);
    rv_cli_table_add_text(t, row->name);
    rv_cli_table_add_text(t, row->agent_name);
    rv_cli_table_add_int(t, row->n_messages);
    rv_cli_table_add(t, rv_buf_str(&age));
    rv_buf_fini(&age);
    return 0;
}

static int show_sessions(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    static const struct rv_cli_column columns[] = {
        {"SESSION", 0, false}, {"NAME", 40, false}, {"AGENT", 24, false}, {"MESSAGES", 0, true}, {"AGE", 0, false}};
    const struct rv_store_scope scope = rv_cli_chat_scope(c);
    const struct rv_session_filter newest = {.limit = SHOWN_SESSIONS};
    rv_cli_table *table = rv_cli_table_new(columns, RV_COUNT(columns));
    rv_buf text = RV_BUF_INIT(1 << 20);

    (void)rest;
    int rc = table ? rv_store_list_sessions(c->in.store, &scope, &newest, add_session, table, err)
                   : RV_FAIL(err, RV_E_NOMEM, "list sessions");
    if (rc == 0)
        rc = rv_cli_table_write(table, c->cli->out_color, &text, err);
    if (rc == 0 && text.len == 0)
        rv_buf_puts(&text, "no sessions found\n");
    print(&text);
    rv_cli_table_free(table);
    return rc;
}

static int show_history(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    char *end = NULL;
    long long n = rest[0] ? strtoll(rest, &end, 10) : SHOWN_MESSAGES;

    if (n < 1 || (end && *end))
        return RV_FAIL(err, RV_E_INVALID, "/history takes a number of messages, not \"%s\"", rest);
    return rv_cli_chat_history(c, n, err);
}

/* The first line of what a tool is said to do. */
static void write_tool(const struct rv_catalog *catalog, const struct rv_agentdoc_tool *tool, rv_buf *b)
{
    const struct rv_tool_info *info = catalog->tool(catalog->self, rv_str_of(tool->name));
    const char *text = tool->description ? tool->description : info && info->description ? info->description : "";

    rv_buf_printf(b, "  %-24s ", tool->name);
    rv_chat_write_line((rv_str){text, strcspn(text, "\n")}, b);
    rv_buf_putc(b, '\n');
}

static int show_tools(struct rv_cli_chat *c, const char *rest, rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_chat_scope(c);
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
        rv_cli_out(RV_STR_LIT("requests are shown as they are sent\n"));
    else
        rv_cli_out(RV_STR_LIT("requests are not shown\n"));
    return 0;
}

static int show_help(struct rv_cli_chat *c, const char *rest, rv_err **err);

static const struct {
    const char *name, *args, *doc;
    command_fn run; /* NULL: ends the chat */
} commands[] = {
    {"/help", "", "this list", show_help},
    {"/agent", "NAME", "talk to that agent from now on; without a name: which it is", to_agent},
    {"/leave", "", "leave the agent that a router chose", leave},
    {"/new", "", "begin a new session", begin_anew},
    {"/session", "", "which session this is", show_session},
    {"/sessions", "", "the sessions touched last", show_sessions},
    {"/history", "N", "the last N messages", show_history},
    {"/tools", "", "the tools of the agent", show_tools},
    {"/debug", "on|off", "show each request to a model", switch_debug},
    {"/exit", "", "end the chat, as exit, quit, \\q and Ctrl-D do", NULL},
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
        rv_err_hint(err, "did you mean %s? /help lists all", near);
    else
        rv_err_hint(err, "/help lists all; a message that begins with / has a blank before it");
    return rc;
}

static bool is_farewell(rv_str line)
{
    return rv_str_is(line, "exit") || rv_str_is(line, "quit") || rv_str_is(line, "\\q");
}

enum rv_chat_word rv_cli_chat_command(struct rv_cli_chat *c, rv_str line)
{
    rv_str text = rv_str_trim(line);
    char word[MAX_WORD] = "", rest[MAX_WORD] = "";
    rv_err *err = NULL;
    size_t len = 0;
    int rc;

    if (is_farewell(text))
        return RV_CHAT_WORD_EXIT;
    if (line.ptr[0] != '/')
        return RV_CHAT_WORD_NONE;
    while (len < text.len && text.ptr[len] != ' ' && text.ptr[len] != '\t')
        len++;
    rv_str tail = rv_str_trim((rv_str){text.ptr + len, text.len - len});
    rv_str head = rv_utf8_cut((rv_str){text.ptr, len}, sizeof word - 1);
    memcpy(word, head.ptr, head.len);
    tail = rv_utf8_cut(tail, sizeof rest - 1);
    if (tail.len)
        memcpy(rest, tail.ptr, tail.len);
    for (size_t i = 0; i < RV_COUNT(commands); i++) {
        if (strcmp(commands[i].name, word) != 0)
            continue;
        if (!commands[i].run)
            return RV_CHAT_WORD_EXIT;
        rc = commands[i].run(c, rest, &err);
        if (rc < 0)
            (void)rv_cli_report(c->cli, err);
        return RV_CHAT_WORD_DONE;
    }
    RV_IGNORE(unknown(word, &err), "reported at once");
    (void)rv_cli_report(c->cli, err);
    return RV_CHAT_WORD_DONE;
}

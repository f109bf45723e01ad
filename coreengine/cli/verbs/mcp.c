/* reeve mcp: the Model Context Protocol, as a server and as a client; and what a person allows a server: logins, tools
 * that changed. */
#include "coreengine/app/app.h"
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <stdio.h>
#include <string.h>

/* --- list, tools, inspect, call: the MCP servers of a pipeline, and their tools --- */

#define MAX_TEXT_BYTES ((size_t)64 << 20) /* lists of all servers, or all differences, as text */

static const struct rv_cli_option list_options[] = {
    {"json", 0, NULL, "print JSON", NULL, false},
};
static const struct rv_cli_option tools_options[] = {
    {"json", 0, NULL, "print JSON", NULL, false},
    {"write", 'w', NULL, "write the lists to the files that `catalog` names, for lint and test", NULL, false},
    {"offline", 0, NULL, "start no server: show the lists that were written", NULL, false},
};
static const struct rv_cli_option call_options[] = {
    {"args", 'a', "JSON", "arguments, an object (default {})", NULL, false},
};

/* Load the pipeline and open its servers. Anything but 0 is what the verb gives. */
static int open_servers(struct rv_cli *cli, bool connects, struct rv_app_loaded *l, rv_err **err)
{
    const struct rv_app_load_opts opts = {0};

    int rc = rv_app_load_plain(&cli->app, cli->words[0], &opts, l, err);
    if (rc < 0)
        return rc;
    if (!l->pipeline || rv_findings_n_errors(l->findings) > 0) {
        cli_say_findings(cli, l->findings);
        rv_app_loaded_fini(l);
        return RV_EXIT_USAGE;
    }
    if (l->pipeline->n_mcp_servers == 0)
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "pipeline \"%s\" has no mcp_servers", cli->words[0]);
    if (rc == 0)
        rc = rv_app_mcp_open(&cli->app, l, connects, err);
    if (rc < 0)
        rv_app_loaded_fini(l);
    return rc;
}

static int close_servers(struct rv_cli *cli, struct rv_app_loaded *l, int status)
{
    rv_findings_sort(l->findings);
    cli_say_findings(cli, l->findings);
    bool has_errors = rv_findings_n_errors(l->findings) > 0;
    rv_app_loaded_fini(l);
    return status == RV_EXIT_COMPLETED && has_errors ? RV_EXIT_FAILED : status;
}

/* Could the list of a server not be had? server NULL: of any. */
static bool has_failed(const struct rv_app_loaded *l, const char *server)
{
    for (size_t i = 0; i < l->pipeline->n_mcp_servers; i++) {
        const struct rv_mcp_server_config *s = &l->pipeline->mcp_servers[i];
        if ((!server || strcmp(s->name, server) == 0) && rv_mcp_tools_has_failed(l->mcp, s))
            return true;
    }
    return false;
}

/* --- list --- */

struct server_row {
    const char *transport, *version;
    bool is_ready; /* it is there, and its list could be had */
    int64_t n_tools;
};

static struct server_row row_of(const struct rv_app_loaded *l, const struct rv_mcp_server_config *s)
{
    const rv_mcp_catalog *catalog = rv_mcp_tools_catalog(l->mcp);
    const rv_mcp_client *client = rv_mcp_pool_client(rv_mcp_tools_pool(l->mcp), s);
    struct server_row row = {
        .transport = s->has_openapi      ? "rest"
                     : s->command.is_set ? "stdio"
                                         : "http",
        .version = client && !s->has_openapi ? rv_mcp_version_text(rv_mcp_client_version(client)) : "",
        .is_ready = client && rv_mcp_client_is_ready(client) && !rv_mcp_tools_has_failed(l->mcp, s)};
    const struct rv_mcp_tool *t;

    for (size_t i = 0; (t = rv_mcp_catalog_at(catalog, i)) != NULL; i++)
        row.n_tools += t->server == s;
    return row;
}

static void write_server(const struct rv_app_loaded *l, const struct rv_mcp_server_config *s, rv_jw *w)
{
    const struct server_row row = row_of(l, s);

    rv_jw_obj(w);
    rv_jw_kv_text(w, "server", s->name);
    rv_jw_kv_text(w, "transport", row.transport);
    rv_jw_kv_text(w, "status", row.is_ready ? "ready" : "failed");
    rv_jw_kv_text(w, "version", row.version[0] ? row.version : NULL);
    rv_jw_kv_bool(w, "trusted", s->trusted);
    rv_jw_kv_bool(w, "required", s->required);
    rv_jw_kv_int(w, "tools", row.n_tools);
    rv_jw_obj_end(w);
}

static int list(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {{"SERVER", 40, false},
                                                   {"TRANSPORT", 0, false},
                                                   {"STATUS", 0, false},
                                                   {"VERSION", 0, false},
                                                   {"TOOLS", 0, true}};
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&text);
    struct rv_app_loaded l;
    bool json = cli_flag(cli, "json");

    int rc = open_servers(cli, true, &l, err);
    if (rc != 0)
        return rc;
    rv_cli_table *table = cli_table_new(columns, RV_COUNT(columns));
    if (!table)
        rc = RV_FAIL(err, RV_E_NOMEM, "list MCP servers");
    if (json)
        rv_jw_arr(&w);
    for (size_t i = 0; i < l.pipeline->n_mcp_servers && rc == 0; i++) {
        const struct rv_mcp_server_config *s = &l.pipeline->mcp_servers[i];
        const struct server_row row = row_of(&l, s);
        if (json) {
            write_server(&l, s, &w);
            continue;
        }
        cli_table_add_text(table, s->name);
        cli_table_add_text(table, row.transport);
        cli_table_add_text(table, row.is_ready ? "ready" : "failed");
        cli_table_add_text(table, row.version);
        cli_table_add_int(table, row.n_tools);
    }
    if (json) {
        rv_jw_arr_end(&w);
        rv_buf_putc(&text, '\n');
    }
    if (rc == 0 && !json)
        rc = cli_table_write(table, cli->out_color, &text, err);
    cli_table_free(table);
    rc = cli_print(rc, &text, err);
    int status = close_servers(cli, &l, has_failed(&l, NULL) ? RV_EXIT_FAILED : RV_EXIT_COMPLETED);
    return rc < 0 ? rc : status;
}

static const struct rv_cli_verb verb_list = {
    .name = "mcp list",
    .args = "PIPELINE",
    .summary = "connect to the MCP servers of a pipeline and show them",
    .text = "Starts or reaches each server of `mcp_servers`, and shows its revision of the protocol and the number of\n"
            "its tools. A server that fails is shown with the reason, and the exit code is 1.",
    .examples = "reeve mcp list pipelines/mcp-tools.yaml   # are the servers there?",
    RV_CLI_OPTIONS(list_options),
    .groups = {&cli_of_pipelines},
    RV_CLI_ONE_WORD,
    .run = list,
};

/* --- tools --- */

static int write_table(const struct rv_app_loaded *l, const char *server, bool color, rv_buf *text, rv_err **err)
{
    static const struct rv_cli_column columns[] = {{"TOOL", 60, false},
                                                   {"RISK", 0, false},
                                                   {"EFFECT", 0, false},
                                                   {"CONFIRM", 0, false},
                                                   {"DESCRIPTION", 60, false}};
    rv_cli_table *table = cli_table_new(columns, RV_COUNT(columns));
    const struct rv_mcp_tool *t;

    if (!table)
        return RV_FAIL(err, RV_E_NOMEM, "list MCP tools");
    for (size_t i = 0; (t = rv_mcp_catalog_at(rv_mcp_tools_catalog(l->mcp), i)) != NULL; i++) {
        rv_buf words = RV_BUF_INIT(4096);
        if (server && strcmp(t->server->name, server) != 0)
            continue;
        cli_write_preview(rv_str_of(t->info.description), 200, &words);
        cli_table_add_text(table, t->info.name);
        cli_table_add_text(table, rv_risk_text(rv_tool_risk(&t->info)));
        cli_table_add_text(table, rv_effect_class_text(rv_tool_effect(&t->info)));
        cli_table_add_text(table, t->info.confirm ? "yes" : "no");
        cli_table_add_text(table, rv_buf_cstr(&words));
        rv_buf_fini(&words);
    }
    int rc = cli_table_write(table, color, text, err);
    cli_table_free(table);
    return rc;
}

static int tools(struct rv_cli *cli, rv_err **err)
{
    const char *server = cli->n_words > 1 ? cli->words[1] : NULL;
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&text);
    const struct rv_mcp_tool *t;
    struct rv_app_loaded l;
    size_t n = 0;

    int rc = open_servers(cli, !cli_flag(cli, "offline"), &l, err);
    if (rc != 0)
        return rc;
    if (server && !rv_pipeline_find_mcp_server(l.pipeline, server))
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "the pipeline has no MCP server \"%s\"", server);
    else if (cli_flag(cli, "write"))
        rc = rv_app_mcp_keep(&l, &n, err);
    if (rc == 0 && cli_flag(cli, "json")) {
        rv_jw_arr(&w);
        for (size_t i = 0; (t = rv_mcp_catalog_at(rv_mcp_tools_catalog(l.mcp), i)) != NULL; i++)
            if (!server || strcmp(t->server->name, server) == 0)
                rv_app_mcp_write_tool(t, false, &w);
        rv_jw_arr_end(&w);
        rv_buf_putc(&text, '\n');
    } else if (rc == 0) {
        rc = write_table(&l, server, cli->out_color, &text, err);
    }
    if (rc == 0 && cli_flag(cli, "write"))
        cli_say("%zu %s written\n", n, n == 1 ? "list" : "lists");
    rc = cli_print(rc, &text, err);
    int status = close_servers(cli, &l, has_failed(&l, server) ? RV_EXIT_FAILED : RV_EXIT_COMPLETED);
    return rc < 0 ? rc : status;
}

static const struct rv_cli_verb verb_tools = {
    .name = "mcp tools",
    .args = "PIPELINE [SERVER]",
    .summary = "list the tools of MCP servers as the pipeline sees them",
    .text = "Shows each tool with its risk, its effect class and whether calls are confirmed: what the pipeline says\n"
            "counts first, what an untrusted server says only where it is stricter. --write keeps the lists in files,\n"
            "so that `reeve lint` and `reeve test` know the tools without starting a server. If a server fails, the\n"
            "exit code is 1.",
    .examples = "reeve mcp tools pipelines/mcp-tools.yaml           # what a stage may be allowed to call\n"
                "reeve mcp tools pipelines/mcp-tools.yaml --write   # keep the lists for lint and test",
    RV_CLI_OPTIONS(tools_options),
    .groups = {&cli_of_pipelines},
    .excludes = "write offline",
    .min_words = 1,
    .max_words = 2,
    .run = tools,
};

/* --- inspect, call --- */

static int inspect(struct rv_cli *cli, rv_err **err)
{
    rv_buf line = RV_BUF_INIT(MAX_TEXT_BYTES), text = RV_BUF_INIT(MAX_TEXT_BYTES);
    const struct rv_tool_info *info = NULL;
    json_object *value = NULL;
    struct rv_app_loaded l;
    rv_jw w = rv_jw_on(&line);

    int rc = open_servers(cli, true, &l, err);
    if (rc != 0)
        return rc;
    const struct rv_mcp_tool *t = rv_mcp_catalog_find(rv_mcp_tools_catalog(l.mcp), rv_str_of(cli->words[1]), &info);
    if (t)
        rv_app_mcp_write_tool(t, true, &w);
    else
        rc = rv_app_mcp_fail_unknown(&l, cli->words[1], err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&line), &(struct rv_json_opts){.max_bytes = MAX_TEXT_BYTES}, &value, err);
    if (rc == 0) {
        rv_json_write_pretty(value, &text);
        rv_buf_putc(&text, '\n');
    }
    json_object_put(value);
    rv_buf_fini(&line);
    rc = cli_print(rc, &text, err);
    int status = close_servers(cli, &l, RV_EXIT_COMPLETED);
    return rc < 0 ? rc : status;
}

static const struct rv_cli_verb inspect_verb = {
    .name = "mcp inspect",
    .args = "PIPELINE TOOL",
    .summary = "show the whole definition of an MCP tool",
    .text = "Prints JSON: what the server says about the tool, and what holds in the pipeline.",
    .examples = "reeve mcp inspect pipelines/mcp-tools.yaml notes.search   # its arguments, and what is believed",
    .groups = {&cli_of_pipelines},
    .min_words = 2,
    .max_words = 2,
    .run = inspect,
};

static int call(struct rv_cli *cli, rv_err **err)
{
    const char *args = cli_value(cli, "args");
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES + 1);
    struct rv_app_loaded l;
    bool failed = false;

    int rc = open_servers(cli, true, &l, err);
    if (rc != 0)
        return rc;
    rc = rv_app_mcp_call(&l, cli->words[1], rv_str_of(args ? args : "{}"), &text, &failed, err);
    if (rc == 0 && failed) {
        rv_buf safe = RV_BUF_INIT(MAX_TEXT_BYTES);
        cli_write_safe(rv_buf_str(&text), &safe);
        rv_buf_clear(&text);
        rc = RV_FAIL(err, RV_E_TOOL, "tool \"%s\": %s", cli->words[1], rv_buf_cstr(&safe));
        rv_buf_fini(&safe);
    } else if (rc == 0) {
        rv_buf_putc(&text, '\n');
    }
    rc = cli_print(rc, &text, err);
    int status = close_servers(cli, &l, RV_EXIT_COMPLETED);
    return rc < 0 ? rc : status;
}

static const struct rv_cli_verb verb_call = {
    .name = "mcp call",
    .args = "PIPELINE TOOL",
    .summary = "call a tool of an MCP server",
    .text =
        "Checks the arguments against the tool's schema, calls it once, and prints its result as JSON. No question\n"
        "is asked before, whatever the pipeline says about confirmation: the person at the command line decides.",
    .examples = "reeve mcp call pipelines/mcp-tools.yaml notes.search --args '{\"query\": \"rope\"}'",
    RV_CLI_OPTIONS(call_options),
    .groups = {&cli_of_pipelines},
    .min_words = 2,
    .max_words = 2,
    .run = call,
};

static const struct rv_cli_option login_options[] = {
    {"browser", 0, "COMMAND", "start this program with the address (words separated by blanks)", NULL, false},
};
static const struct rv_cli_option approve_options[] = {
    {"yes", 'y', NULL, "approve what is shown", NULL, false},
};

/* Load the pipeline. Anything but 0 is what the verb gives. */
static int load(struct rv_cli *cli, struct rv_app_loaded *l, rv_err **err)
{
    const struct rv_app_load_opts opts = {0};
    int rc = rv_app_load_plain(&cli->app, cli->words[0], &opts, l, err);

    if (rc < 0 || l->pipeline)
        return rc;
    cli_say_findings(cli, l->findings);
    rv_app_loaded_fini(l);
    return RV_EXIT_USAGE;
}

static void show(void *self, const char *url)
{
    (void)self;
    cli_say("open this address in a browser:\n%s\n", url);
}

static int login(struct rv_cli *cli, rv_err **err)
{
    struct rv_app_loaded l;
    int rc = load(cli, &l, err);

    if (rc != 0)
        return rc;
    rc = rv_app_mcp_login(&l, cli->words[1], cli_value(cli, "browser"), show, NULL, err);
    if (rc == 0)
        cli_say("logged in at MCP server \"%s\"\n", cli->words[1]);
    rv_app_loaded_fini(&l);
    return rc;
}

static const struct rv_cli_verb login_verb = {
    .name = "mcp login",
    .args = "PIPELINE SERVER",
    .summary = "get a token for an MCP server over HTTP",
    .text =
        "Asks the server for its authorization server, prints an address for a browser, and waits until a person has\n"
        "approved there; the browser brings the answer to a port of this machine. The token is kept in the state\n"
        "directory, in a file that only its owner may read, and renewed without a person as long as the server allows\n"
        "it. With grant: client_credentials no person is asked.",
    .examples = "reeve mcp login pipelines/mcp-tools.yaml wiki\n"
                "reeve mcp login pipelines/mcp-tools.yaml wiki --browser xdg-open",
    RV_CLI_OPTIONS(login_options),
    .groups = {&cli_of_pipelines},
    .min_words = 2,
    .max_words = 2,
    .run = login,
};

static int logout(struct rv_cli *cli, rv_err **err)
{
    struct rv_app_loaded l;
    bool had = false;
    int rc = load(cli, &l, err);

    if (rc != 0)
        return rc;
    rc = rv_app_mcp_logout(&l, cli->words[1], &had, err);
    if (rc == 0)
        cli_say(had ? "logged out of MCP server \"%s\"\n" : "there was no login at MCP server \"%s\"\n", cli->words[1]);
    rv_app_loaded_fini(&l);
    return rc;
}

static const struct rv_cli_verb logout_verb = {
    .name = "mcp logout",
    .args = "PIPELINE SERVER",
    .summary = "remove the token of an MCP server",
    .text = "Removes the file with the token, and with the client id that a login registered.",
    .examples = "reeve mcp logout pipelines/mcp-tools.yaml wiki",
    .groups = {&cli_of_pipelines},
    .min_words = 2,
    .max_words = 2,
    .run = logout,
};

static int approve(struct rv_cli *cli, rv_err **err)
{
    const char *server = cli->n_words > 1 ? cli->words[1] : NULL;
    bool is_yes = cli_flag(cli, "yes");
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES), safe = RV_BUF_INIT(MAX_TEXT_BYTES);
    struct rv_app_loaded l;

    int rc = load(cli, &l, err);
    if (rc != 0)
        return rc;
    if (server && !rv_pipeline_find_mcp_server(l.pipeline, server))
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "the pipeline has no MCP server \"%s\"", server);
    if (rc == 0)
        rc = rv_app_mcp_approve(&cli->app, &l, server, is_yes, &text, err);
    bool has_changes = text.len > 0;
    if (rc == 0)
        rc = rv_buf_check(&text, "differences", err);
    cli_write_safe(rv_buf_str(&text), &safe);
    rc = cli_print(rc, &safe, err);
    if (rc == 0 && !has_changes)
        cli_say("nothing to approve\n");
    else if (rc == 0)
        cli_say(is_yes ? "approved\n" : "not approved yet: run this again with --yes\n");
    rv_findings_sort(l.findings);
    cli_say_findings(cli, l.findings);
    bool has_errors = rv_findings_n_errors(l.findings) > 0;
    rv_buf_fini(&text);
    rv_app_loaded_fini(&l);
    return rc < 0 ? rc : has_errors || (has_changes && !is_yes) ? RV_EXIT_FAILED : RV_EXIT_COMPLETED;
}

static const struct rv_cli_verb approve_verb = {
    .name = "mcp approve",
    .args = "PIPELINE [SERVER]",
    .summary = "show the tools of MCP servers that changed, and approve them",
    .text =
        "A tool is pinned when it is seen first, or with `pin: strict` when it is approved here: its name,\n"
        "description, schemas and annotations. A tool that differs from its pin is not offered to any stage. Prints\n"
        "what differs, lines with - as they were approved and lines with + as they are now, and approves with --yes.\n"
        "Exits with 1 if something waits for an approval.",
    .examples = "reeve mcp approve pipelines/mcp-tools.yaml         # what has changed?\n"
                "reeve mcp approve pipelines/mcp-tools.yaml --yes   # it is fine",
    RV_CLI_OPTIONS(approve_options),
    .groups = {&cli_of_pipelines},
    .min_words = 1,
    .max_words = 2,
    .run = approve,
};

static const struct rv_cli_verb *const subs[] = {&verb_mcp_serve, &verb_list,    &verb_tools,
                                                 &inspect_verb,   &verb_call,    &login_verb,
                                                 &logout_verb,    &approve_verb, NULL};

const struct rv_cli_verb verb_mcp = {
    .name = "mcp",
    .args = "VERB",
    .summary = "use and offer tools over the Model Context Protocol",
    .text =
        "MCP connects programs that have a model with programs that have tools. Without a verb this serves a client\n"
        "on standard input and output.",
    .examples = "reeve mcp serve --pipelines pipelines   # pipelines as tools of a client\n"
                "reeve mcp tools pipelines/mcp-tools.yaml   # what the servers of a pipeline have",
    .subs = subs,
};

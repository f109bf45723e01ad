/* reeve mcp: the Model Context Protocol, as a server and as a client; and what a person allows a server: logins, tools
 * that changed. */
#include <stdio.h>

#include "coreengine/app/mcp_servers.h"
#include "coreengine/cli/verbs/verbs.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20) /* of all differences */

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
    rv_cli_say_findings(cli, l->findings);
    rv_app_loaded_fini(l);
    return RV_EXIT_USAGE;
}

static void show(void *self, const char *url)
{
    (void)self;
    rv_cli_say("open this address in a browser:\n%s\n", url);
}

static int login(struct rv_cli *cli, rv_err **err)
{
    struct rv_app_loaded l;
    int rc = load(cli, &l, err);

    if (rc != 0)
        return rc;
    rc = rv_app_mcp_login(&l, cli->words[1], rv_cli_value(cli, "browser"), show, NULL, err);
    if (rc == 0)
        rv_cli_say("logged in at MCP server \"%s\"\n", cli->words[1]);
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
    .groups = {&rv_cli_of_pipelines},
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
        rv_cli_say(had ? "logged out of MCP server \"%s\"\n" : "there was no login at MCP server \"%s\"\n",
                   cli->words[1]);
    rv_app_loaded_fini(&l);
    return rc;
}

static const struct rv_cli_verb logout_verb = {
    .name = "mcp logout",
    .args = "PIPELINE SERVER",
    .summary = "remove the token of an MCP server",
    .text = "Removes the file with the token, and with the client id that a login registered.",
    .examples = "reeve mcp logout pipelines/mcp-tools.yaml wiki",
    .groups = {&rv_cli_of_pipelines},
    .min_words = 2,
    .max_words = 2,
    .run = logout,
};

static int approve(struct rv_cli *cli, rv_err **err)
{
    const char *server = cli->n_words > 1 ? cli->words[1] : NULL;
    bool is_yes = rv_cli_flag(cli, "yes");
    rv_buf text = RV_BUF_INIT(MAX_TEXT_BYTES), safe = RV_BUF_INIT(MAX_TEXT_BYTES);
    struct rv_app_loaded l;

    int rc = load(cli, &l, err);
    if (rc != 0)
        return rc;
    if (server && !rv_pipeline_mcp_server(l.pipeline, server))
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "the pipeline has no MCP server \"%s\"", server);
    if (rc == 0)
        rc = rv_app_mcp_approve(&cli->app, &l, server, is_yes, &text, err);
    bool has_changes = text.len > 0;
    if (rc == 0)
        rc = rv_buf_check(&text, "differences", err);
    rv_cli_write_safe(rv_buf_str(&text), &safe);
    rc = rv_cli_print(rc, &safe, err);
    if (rc == 0 && !has_changes)
        rv_cli_say("nothing to approve\n");
    else if (rc == 0)
        rv_cli_say(is_yes ? "approved\n" : "not approved yet: run this again with --yes\n");
    rv_findings_sort(l.findings);
    rv_cli_say_findings(cli, l.findings);
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
    .groups = {&rv_cli_of_pipelines},
    .min_words = 1,
    .max_words = 2,
    .run = approve,
};

static const struct rv_cli_verb *const subs[] = {&rv_verb_mcp_serve,   &rv_verb_mcp_list, &rv_verb_mcp_tools,
                                                 &rv_verb_mcp_inspect, &rv_verb_mcp_call, &login_verb,
                                                 &logout_verb,         &approve_verb,     NULL};

const struct rv_cli_verb rv_verb_mcp = {
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

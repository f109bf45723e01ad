/* reeve mcp serve: pipelines, agents and data as tools of a client of the Model Context Protocol, on standard input and
 * output. */
#include "coreengine/app/app.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>
#include <unistd.h>

static const struct rv_cli_option options[] = {
    {"pipelines", 0, "DIR", "folder of pipelines that are tools, by the names of their files", "DIR", false},
    {"scripts", 0, "DIR", "folder of scripts that answer in pipelines: of each the one with its name", "DIR", false},
    {"user", 'u', "ID", "user of the client: only this user's rows are visible (default REEVE_USER, else all data)",
     NULL, false},
    {"agents", 0, NULL, "agents are tools, too: ask_NAME", NULL, false},
    {"tool", 't', "CAPABILITY:TOOL", "a tool of a capability that clients may call; none without this option", NULL,
     true},
    {"concurrency", 'c', "N", "runs at once (default 16)", NULL, false},
    {"no-worker", 0, NULL, "do not perform runs: leave them to `reeve worker`", NULL, false},
    {"grace", 0, "DURATION", "time that calls under way have to end after the input has ended (default 30s; 0s: none)",
     NULL, false},
    {"lease", 0, "SECONDS", RV_CLI_LEASE_DOC, NULL, false},
};

int cli_check_tools(const char *option, const char *const *tools, size_t n, rv_err **err)
{
    for (size_t i = 0; i < n; i++) {
        const char *colon = strchr(tools[i], ':');
        if (!colon || colon == tools[i] || !colon[1])
            return RV_FAIL(err, RV_E_INVALID, "%s %s: write CAPABILITY:TOOL, such as files:read_file", option,
                           tools[i]);
    }
    return 0;
}

static int serve(struct rv_cli *cli, rv_err **err)
{
    const char *tools[RV_CLI_MAX_TOOLS];
    struct rv_app_mcp_serve opts = {.app = &cli->app,
                                    .offer = {.pipelines = cli_value(cli, "pipelines"),
                                              .scripts = cli_value(cli, "scripts"),
                                              .agents = cli_flag(cli, "agents"),
                                              .tools = tools},
                                    .in = STDIN_FILENO,
                                    .out = STDOUT_FILENO,
                                    .no_worker = cli_flag(cli, "no-worker")};
    int64_t concurrency = 0, n_left = 0;
    int rc = cli_int(cli, "concurrency", 1, RV_WORKER_MAX, &concurrency, err);

    opts.concurrency = (size_t)concurrency;
    if (rc == 0)
        rc = cli_values(cli, "tool", tools, RV_COUNT(tools), &opts.offer.n_tools, err);
    if (rc == 0)
        rc = cli_span(cli, "grace", RV_WORKER_NO_GRACE, &opts.grace_us, err);
    if (rc == 0 && cli->app.no_store)
        rc = RV_FAIL(err, RV_E_INVALID, "a server needs a store: leave --no-store out");
    if (rc == 0)
        rc = cli_check_tools("--tool", tools, opts.offer.n_tools, err);
    if (rc == 0)
        rc = rv_log_never_wait(cli->app.log, err);
    if (rc == 0)
        rc = rv_app_mcp_serve(&opts, &n_left, err);
    if (rc < 0)
        return rc;
    if (n_left > 0) /* their calls still run: what they use must stay until the process is gone */
        _exit(RV_EXIT_COMPLETED);
    return RV_EXIT_COMPLETED;
}

const struct rv_cli_verb verb_mcp_serve = {
    .name = "mcp serve",
    .args = "",
    .summary = "serve one MCP client on standard input and output",
    .text =
        "A client starts this command and writes requests to its standard input, one message a line. Each pipeline\n"
        "of --pipelines is a tool; a call is a run, which is kept in the store and can be watched with `reeve runs`.\n"
        "Calls end with the input: those under way have the time of --grace, then their runs are cancelled. A client\n"
        "that does not read its answers for that time then is not waited for.\n"
        "`reeve serve` offers the same over HTTP, at /mcp.",
    .examples = "reeve mcp serve --pipelines pipelines\n"
                "reeve mcp serve --tool files:search_files --tool files:read_file\n"
                "reeve mcp --pipelines pipelines --agents   # serve is meant when no verb is named",
    RV_CLI_OPTIONS(options),
    .groups = {&cli_of_places, &cli_of_commits},
    .needs = "scripts pipelines",
    .outlives_reader = true,
    .run = serve,
};

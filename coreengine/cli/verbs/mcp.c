/* reeve mcp: the Model Context Protocol, as a server and as a client. */
#include "coreengine/cli/verbs/verbs.h"

static const struct rv_cli_verb *const subs[] = {&rv_verb_mcp_serve, NULL};

const struct rv_cli_verb rv_verb_mcp = {
    .name = "mcp",
    .args = "VERB",
    .summary = "the Model Context Protocol",
    .text =
        "MCP connects programs that have a model with programs that have tools. Without a verb this serves a client\n"
        "on standard input and output.",
    .examples = "reeve mcp serve --pipelines pipelines   # pipelines as tools of a client",
    .subs = subs,
};

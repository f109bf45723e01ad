/* reeve mcp: the Model Context Protocol, as a server and as a client. */
#include "coreengine/cli/verbs/verbs.h"

static const struct rv_cli_verb *const subs[] = {&rv_verb_mcp_serve,   &rv_verb_mcp_list,    &rv_verb_mcp_tools,
                                                 &rv_verb_mcp_inspect, &rv_verb_mcp_call,    &rv_verb_mcp_login,
                                                 &rv_verb_mcp_logout,  &rv_verb_mcp_approve, NULL};

const struct rv_cli_verb rv_verb_mcp = {
    .name = "mcp",
    .args = "VERB",
    .summary = "the Model Context Protocol",
    .text =
        "MCP connects programs that have a model with programs that have tools. Without a verb this serves a client\n"
        "on standard input and output.",
    .examples = "reeve mcp serve --pipelines pipelines   # pipelines as tools of a client\n"
                "reeve mcp tools pipelines/mcp-tools.yaml   # what the servers of a pipeline have",
    .subs = subs,
};

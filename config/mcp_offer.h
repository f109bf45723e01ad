/* `mcp` of a pipeline: what it is to clients of reeve as an MCP server. */
#ifndef RV_CONFIG_MCP_OFFER_H
#define RV_CONFIG_MCP_OFFER_H

#include "coreengine/base/buf.h"

#define RV_MCP_OFFER_URI 512 /* bytes of an address or template of a resource; a longer one is refused */

enum rv_mcp_offer_kind {
    RV_MCP_OFFER_TOOL,     /* a model calls it */
    RV_MCP_OFFER_PROMPT,   /* a person picks it: its output are messages */
    RV_MCP_OFFER_RESOURCE, /* a program reads it: its output is the content of an address */
    RV_MCP_OFFER_NONE,     /* clients do not see it */
    RV_N_MCP_OFFERS
};
enum rv_mcp_offer_tasks { RV_MCP_TASKS_OPTIONAL, RV_MCP_TASKS_REQUIRED, RV_N_MCP_OFFER_TASKS };
/* Its texts live in the arena of the pipeline. */
struct rv_mcp_offer_config {
    int kind;              /* enum rv_mcp_offer_kind */
    int tasks;             /* enum rv_mcp_offer_tasks */
    const char *uri;       /* of a resource: an address, or a template with {name} for each input; "": none; borrowed */
    const char *mime_type; /* of a resource; "": text/plain; borrowed */
};

const char *rv_mcp_offer_text(enum rv_mcp_offer_kind kind); /* as the file says it */
/** The next {name} of a template, from *at on, which becomes what is behind it; before: the text up to it. False: there
 *  is none, and before is the rest. */
bool rv_mcp_uri_next(rv_str *at, rv_str *before, rv_str *name);

#endif

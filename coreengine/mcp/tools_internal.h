/* Shared by the files about tools only. */
#ifndef RV_MCP_TOOLS_INTERNAL_H
#define RV_MCP_TOOLS_INTERNAL_H

#include "coreengine/mcp/tools.h"

#define RV_MCP_MAX_PART_NAME 255                /* bytes of the name of a part, as of an attachment */
#define RV_MCP_MAX_ERROR     ((size_t)16 << 10) /* bytes of a tool's error that are passed on: a model reads them */

/** definition: an object with a legal name. why: not empty when the tool cannot be used, for the message that says so.
 * t is to be finished in any case. */
RV_MUST_CHECK int mcp_tool_init(struct rv_mcp_tool *t, const struct rv_mcp_server_config *server,
                                json_object *definition, enum rv_mcp_tool_kind kind, rv_buf *why, rv_err **err);
void mcp_tool_fini(struct rv_mcp_tool *t);

#endif

/* The entry to the Model Context Protocol. message.h: one message; client.h: a session with a server; link.h:
 * what carries its messages, an interface; http.h: messages over HTTP, and OAuth; tools.h: the tools of servers;
 * server.h: reeve as a server. */
#ifndef RV_MCP_MCP_H
#define RV_MCP_MCP_H

#include "coreengine/mcp/client.h"
#include "coreengine/mcp/http.h"
#include "coreengine/mcp/link.h"
#include "coreengine/mcp/message.h"
#include "coreengine/mcp/server.h"
#include "coreengine/mcp/tools.h"

#endif

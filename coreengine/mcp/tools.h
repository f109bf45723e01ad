/* Tools of MCP servers as reeve has them: what servers say, as far as the pipeline believes it.
 *
 * A catalog is made from lists of definitions: from the answers of servers, from the file that `reeve mcp tools` wrote,
 * or from the bundle of a run. Each tool is called "server.tool", and also by its bare name if no other server of the
 * pipeline has a tool of that name. */
#ifndef RV_MCP_TOOLS_H
#define RV_MCP_TOOLS_H

#include "config/config.h"
#include "coreengine/base/base.h"
#include "coreengine/mcp/message.h"
#include "coreengine/plan/plan.h"
#include "coreengine/tools/tools.h"

#define RV_MCP_MAX_TOOL_NAME   128                /* characters: the protocol allows no more */
#define RV_MCP_MAX_CATALOG     20000              /* tools of all servers of a pipeline: no model is offered more */
#define RV_MCP_MAX_DESCRIPTION ((size_t)16 << 10) /* bytes; the rest is cut: a model is told it with every request */

#define RV_MCP_KEY_META "dev.reeve/idempotency-key" /* of the _meta of a call: equal for repetitions of the call */

/* Of a definition that was made of an operation of a REST server (coreengine/openapi). */
#define RV_MCP_OPERATION "dev.reeve/operation" /* what requests are made of; in the `_meta` of each call, too */
#define RV_MCP_REFUSED   "dev.reeve/refused"   /* it cannot be a tool: the reason */

/* What a tool does, as far as it is believed. */
struct rv_mcp_hints {
    bool read_only, destructive, idempotent, open_world;
    bool says_destructive; /* the server itself, in so many words */
};
/** own: what the file says of the tool; NULL: nothing. annotations: the server's; NULL: none. */
struct rv_mcp_hints rv_mcp_hints_of(json_object *annotations, bool is_trusted, const struct rv_mcp_tool_config *own);
/** Must a person confirm its calls, by that policy? */
bool rv_mcp_must_confirm(enum rv_mcp_confirm policy, const struct rv_mcp_hints *hints);

/* What a call of the tool asks the server for. */
enum rv_mcp_tool_kind {
    RV_MCP_CALL_TOOL,
    RV_MCP_LIST_RESOURCES, /* these are made of what the server offers besides tools */
    RV_MCP_LIST_TEMPLATES,
    RV_MCP_READ_RESOURCE,
    RV_MCP_LIST_PROMPTS,
    RV_MCP_GET_PROMPT,
    RV_N_MCP_TOOL_KINDS
};
/* An argument that is also a header of HTTP: x-mcp-header of its schema. Texts are borrowed from its definition. */
struct rv_mcp_header {
    const char *property;
    const char *name;
};
#define RV_MCP_MAX_HEADERS 16 /* of one tool: a request has room for 48, with a dozen of ours */

struct rv_mcp_tool {
    struct rv_tool_info info, bare; /* the same tool by both of its names; bare.name NULL: it has only one */
    const char *name;               /* at the server; owned by the catalog */
    enum rv_mcp_tool_kind kind;
    const struct rv_mcp_server_config *server; /* borrowed from the pipeline */
    struct rv_mcp_hints hints;
    json_object *definition;       /* as the server gave it; owned, and borrowed from by all of the above */
    rv_schema *input, *output;     /* owned */
    char *qualified, *description; /* owned; description NULL: it is the definition's */
    json_object *confirm;          /* owned */
    struct rv_mcp_header headers[RV_MCP_MAX_HEADERS];
    size_t n_headers;
};

typedef struct rv_mcp_catalog rv_mcp_catalog;
/** servers: borrowed, they outlive the catalog. */
RV_MUST_CHECK int rv_mcp_catalog_new(const struct rv_mcp_server_config *servers, size_t n_servers, rv_mcp_catalog **out,
                                     rv_err **err);
void rv_mcp_catalog_free(rv_mcp_catalog *c);
struct rv_mcp_offer {   /* of a server; borrowed */
    json_object *tools; /* an array of definitions as `tools/list` gives them */
    bool has_resources, has_prompts;
};
/** tools: an array of definitions, of which *out (the caller's) has the first of each name; the others become warnings
 * among findings. Before definitions are compared by name. RV_E_NOMEM. */
RV_MUST_CHECK int rv_mcp_catalog_build_unique(const struct rv_mcp_server_config *server, json_object *tools,
                                              rv_findings *findings, json_object **out, rv_err **err);
/** Add the tools of a server. What is not taken becomes a warning among findings. RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int rv_mcp_catalog_add(rv_mcp_catalog *c, const struct rv_mcp_server_config *server,
                                     const struct rv_mcp_offer *offer, rv_findings *findings, rv_err **err);
/** All are added: find out which bare names are there. */
RV_MUST_CHECK int rv_mcp_catalog_finish(rv_mcp_catalog *c, rv_err **err);
/** By "server.tool" or bare name. *info: of the name that was asked for. NULL: it has no such tool. */
const struct rv_mcp_tool *rv_mcp_catalog_find(const rv_mcp_catalog *c, rv_str name, const struct rv_tool_info **info);
/** All names, sorted; they live as long as c. */
const char *const *rv_mcp_catalog_names(const rv_mcp_catalog *c, size_t *n);
const struct rv_mcp_tool *rv_mcp_catalog_at(const rv_mcp_catalog *c, size_t i); /* NULL: there are not so many */
/** Was the server added? */
bool rv_mcp_catalog_has_server(const rv_mcp_catalog *c, const char *server);
/** The lists again, as rv_mcp_catalog_read() takes them: {"server": {tools: [...], resources?, prompts?}}; only that
 * server, or with NULL all. *out is the caller's. */
RV_MUST_CHECK int rv_mcp_catalog_write(const rv_mcp_catalog *c, const char *server, json_object **out, rv_err **err);
/** Add what rv_mcp_catalog_write() wrote, as far as servers of that name are in the pipeline. RV_E_INVALID. */
RV_MUST_CHECK int rv_mcp_catalog_read(rv_mcp_catalog *c, json_object *lists, rv_findings *findings, rv_err **err);

/* What the answer to a call is told as. The buffers are borrowed, and appended to. */
struct rv_mcp_told {
    bool as_called; /* a tool's result stays as `tools/call` has it: {content, structuredContent?, _meta?}; content has
                       only texts, and those only where they are the output */
    rv_buf *text;   /* borrowed */
    rv_buf *note;   /* a warning about the output, or nothing; borrowed */
    const char *code; /* set to that of a failed call (static), whose text is a message; NULL: it succeeded */
};
/** The answer to a call as the text that the run gets: {"status": "success", "data": {...}, "content"?: [...]}, an
 * output that is not an object as {"value": it}; content (coreengine/tools/catalog.h) has the blocks that are not the
 * data itself, as far as they are meant for the model. */
RV_MUST_CHECK int rv_mcp_tool_read_result(const struct rv_mcp_tool *t, json_object *result, struct rv_mcp_told *told,
                                          rv_err **err);
/** What is sent for a call: the method, the params (the caller's), and the headers that mirror arguments (the caller's,
 * NULL: none). RV_E_INVALID: args is not an object. */
struct rv_mcp_request {
    const char *method, *list;     /* static; list as in struct rv_mcp_ask */
    json_object *params, *headers; /* owned */
    bool needs_task;               /* as of struct rv_mcp_ask */
};
RV_MUST_CHECK int rv_mcp_tool_build_request(const struct rv_mcp_tool *t, json_object *args, const char *key,
                                            struct rv_mcp_request *out, rv_err **err);
void rv_mcp_request_fini(struct rv_mcp_request *r);

/* --- Pins: the definitions of a server's tools as a person approved them.
 *
 * A server may change what its tools say and take after it was looked at. A tool whose name, description, schemas or
 * annotations differ from the pinned definition is not offered until a person approves the change. --- */

enum rv_mcp_pin { RV_MCP_PIN_SAME, RV_MCP_PIN_NEW, RV_MCP_PIN_CHANGED };
/** pins: {"tools": {name: definition}}; definition: as tools/list gives it. */
enum rv_mcp_pin rv_mcp_pin_look(json_object *pins, json_object *definition);
/** Approve the definition: it takes the place of an earlier one. pins: an object, changed. RV_E_INVALID: it has no
 *  name. */
RV_MUST_CHECK int rv_mcp_pin_set(json_object *pins, json_object *definition, rv_err **err);
/** Append what differs from the pinned definition, as lines of JSON that begin with "-" and "+". */
void rv_mcp_pin_diff(json_object *pins, json_object *definition, rv_buf *out);

#endif

/* MCP in a pipeline: what it is to clients, and the servers whose tools it has. */
#ifndef RV_CONFIG_MCP_H
#define RV_CONFIG_MCP_H

#include "coreengine/base/base.h"
#include "coreengine/lang/lang.h"

/* `mcp` of a pipeline: what it is to clients of reeve as an MCP server. */

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

/* The servers of tools that a pipeline names: MCP servers, and REST servers that a document of OpenAPI describes. */

struct rv_pipeline;

#define RV_MAX_MCP_SERVERS     64   /* of a pipeline: each is a process or a connection */
#define RV_MAX_MCP_SERVER_NAME 64   /* characters */
#define RV_MAX_MCP_ROOTS       64   /* folders of a server: each goes into one answer */
#define RV_MAX_MCP_TOOLS       2000 /* of a server, of which the file says something */
enum rv_mcp_confirm {
    RV_MCP_CONFIRM_NEVER,
    RV_MCP_CONFIRM_DECLARED,
    RV_MCP_CONFIRM_DESTRUCTIVE,
    RV_MCP_CONFIRM_WRITES,
    RV_MCP_CONFIRM_ALWAYS,
    RV_N_MCP_CONFIRMS
};
/* What follows when a server has a tool that was not there before. */
enum rv_mcp_pins { RV_MCP_PINS_FIRST, RV_MCP_PINS_STRICT, RV_N_MCP_PINS };
enum rv_mcp_output_validation {
    RV_MCP_OUTPUT_STRICT,
    RV_MCP_OUTPUT_WARN,
    RV_MCP_OUTPUT_OFF,
    RV_N_MCP_OUTPUT_VALIDATIONS
};
/* What the file says of one tool of an MCP server; it counts before what the server says. */
struct rv_mcp_tool_config {
    const char *name; /* at the server; in the arena of the pipeline */
    bool has_read_only, has_destructive, has_idempotent;
    bool read_only, destructive, idempotent;
    int confirm;        /* enum rv_mcp_confirm or RV_UNSET: the server's */
    int64_t timeout_ms; /* 0: the server's */
    struct rv_src src;
};
/* Texts and arrays live in the arena of the pipeline. */
struct rv_mcp_server_config {
    const char *name;
    struct rv_str_list command; /* of a server on pipes: program and arguments; is_set false: it has an url */
    const char *url;            /* of a server over HTTP; "": none */
    bool has_url;
    const char *openapi; /* of a REST server: its document, an address or a path as resolved; "": it is an MCP server */
    bool has_openapi;
    const char *cwd;                   /* as resolved against the pipeline's folder */
    json_object *env, *headers, *auth; /* of texts; NULL: none. Owned by the pipeline; may hold secrets */
    bool trusted, own, required, resources, prompts, elicitation;
    const char *sampling;  /* model that answers what its tools ask a model, "provider:model"; "": they may not ask */
    int64_t max_samplings; /* that one call may ask for */
    int64_t timeout_ms;
    struct rv_str_list roots;       /* folders that the server is told of, as resolved against the pipeline's folder */
    struct rv_str_list allow, deny; /* allow.is_set false: all */
    enum rv_mcp_confirm confirm;
    enum rv_mcp_output_validation output_validation;
    enum rv_mcp_pins pin;
    const char *catalog; /* path of the kept list of tools; "": none */
    struct rv_mcp_tool_config *tools;
    size_t n_tools;
    struct rv_src src;
};
/** "MCP server", or "REST server": for messages. Static. */
static inline const char *rv_mcp_server_kind(const struct rv_mcp_server_config *s)
{
    return s->has_openapi ? "REST server" : "MCP server";
}
/** May its tools ask a model? */
static inline bool rv_mcp_samples(const struct rv_mcp_server_config *s)
{
    return s->sampling && s->sampling[0];
}
/** {name: keys} of all servers, as the file has them: what a ${env:} or ${file:} stands for is not in it, and paths are
 * relative to the pipeline's folder. */
RV_MUST_CHECK int rv_pipeline_write_mcp_servers(const struct rv_pipeline *p, rv_jw *w, rv_err **err);
/** NULL: there is no such server. */
const struct rv_mcp_server_config *rv_pipeline_find_mcp_server(const struct rv_pipeline *p, const char *name);

#endif

/* REST servers that a document of OpenAPI 3.0 or 3.1 describes: its operations as definitions of tools, calls of these
 * tools as HTTP requests, answers as results of tools.
 *
 * Definitions and results have the form that MCP gives them, so that all that reeve does with tools of MCP servers
 * holds for these, too. What a call needs to know of its operation is in the definition: the document is read when
 * tools are listed, and never again. Nothing here does I/O. */
#ifndef RV_OPENAPI_H
#define RV_OPENAPI_H

#include "coreengine/mcp/mcp.h"

#define RV_OPENAPI_MAX_BYTES      RV_JSON_MAX_BYTES   /* of a document in JSON; of YAML 1 MiB are read */
#define RV_OPENAPI_MAX_DEPTH      100                 /* nesting of a document: real ones have some 30 levels */
#define RV_OPENAPI_MAX_OPERATIONS 2000                /* of a document: the largest public ones have some 1100 */
#define RV_OPENAPI_MAX_PARAMETERS 100                 /* of an operation, with those of its path: a model fills them */
#define RV_OPENAPI_MAX_REFS       32                  /* references that lead to references: a circle ends */
#define RV_OPENAPI_MAX_SCHEMAS    ((size_t)256 << 10) /* bytes of the schemas of one operation: a model reads them */
#define RV_OPENAPI_MAX_TOOLS      ((size_t)8 << 20)   /* bytes of all definitions: as any JSON text */
#define RV_OPENAPI_MAX_URL        ((size_t)8 << 10)   /* bytes of an address: common servers refuse longer ones */
#define RV_OPENAPI_MAX_ERROR      ((size_t)16 << 10)  /* bytes of an answer with an error status: a model reads them */

/** Read a document, JSON or YAML. name: what messages call it. RV_E_PARSE, RV_E_LIMIT, RV_E_NOMEM; RV_E_INVALID: it is
 *  not one of OpenAPI 3. */
RV_MUST_CHECK int rv_openapi_read(rv_str text, const char *name, json_object **out, rv_err **err);

/* What it points to is borrowed for the call. */
struct rv_openapi_opts {
    const char *url;          /* where the operations begin, as a person wrote it; "": as the document says */
    const char *document_url; /* where the document was fetched from; "": it is a file */
    json_object *headers;     /* that each request has: an object; a parameter of that name is not the model's. NULL */
    bool is_own;              /* it is told who asks: nor is a parameter that says so, see rv_mcp_is_context_header() */
};
/** The operations as definitions of tools, an array that is the caller's. One that cannot be a tool has the member
 *  RV_MCP_REFUSED, a text that says why. RV_E_INVALID: the document has no operations, or no address that may be used;
 *  RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int rv_openapi_build_tools(json_object *document, const struct rv_openapi_opts *opts, json_object **out,
                                         rv_err **err);

/* A request. */
struct rv_openapi_request {
    char *method, *url;            /* owned */
    struct rv_mcp_headers headers; /* without those that are configured */
    rv_buf body;                   /* empty: none */
};
void rv_openapi_request_fini(struct rv_openapi_request *r); /* fine on a zeroed one */
/** The request of a call. operation: RV_MCP_OPERATION of the definition; args: an object. key: the
 *  idempotency key; "": none. RV_E_INVALID: an argument cannot be sent, or the operation is not one. */
RV_MUST_CHECK int rv_openapi_build_request(json_object *operation, json_object *args,
                                           const struct rv_openapi_opts *opts, const char *key,
                                           struct rv_openapi_request *out, rv_err **err);

/* What it points to is borrowed for the call. */
struct rv_openapi_answer {
    int status; /* 0: nothing was sent, and the body is the reason */
    rv_str content_type, body;
    const char *url; /* that was asked */
};
/** The result of a call, the caller's: data of JSON, a text, or a block with bytes; an error status is an error of the
 *  tool. RV_E_INVALID: the body is not what its type says; RV_E_NOMEM. */
RV_MUST_CHECK int rv_openapi_build_result(const struct rv_openapi_answer *a, json_object **out, rv_err **err);
#endif

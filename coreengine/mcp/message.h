/* One message of the Model Context Protocol: JSON-RPC 2.0, read strictly and written compactly.
 *
 * Both sides of the protocol use this. A message is one JSON value on one line, or the body of one HTTP request;
 * batches, which one revision had, are refused. What is read is hostile until it is a message: the size, the depth and
 * the types of all members are checked here, and members that JSON-RPC does not name are ignored. */
#ifndef RV_MCP_MESSAGE_H
#define RV_MCP_MESSAGE_H

#include "coreengine/base/json.h"

#define RV_MCP_MAX_MESSAGE_MIB 16 /* of one message: a resource of 12 MiB in base64 fits */
#define RV_MCP_MAX_MESSAGE     ((size_t)RV_MCP_MAX_MESSAGE_MIB << 20) /* the same in bytes */
#define RV_MCP_MAX_DEPTH       128 /* nesting of one message: schemas of tools need about 40 */
#define RV_MCP_MAX_ID          512 /* bytes of an id that is text: peers count, or use UUIDs */

/* The revisions, oldest first. The last one has no handshake: each request carries what it needs. */
enum rv_mcp_version {
    RV_MCP_UNKNOWN_VERSION,
    RV_MCP_2024_11_05,
    RV_MCP_2025_03_26,
    RV_MCP_2025_06_18,
    RV_MCP_2025_11_25,
    RV_MCP_2026_07_28,
    RV_N_MCP_VERSIONS
};
#define RV_MCP_NEWEST_LEGACY RV_MCP_2025_11_25 /* the newest revision that begins with `initialize` */
/** "2025-11-25"; "" for RV_MCP_UNKNOWN_VERSION. Static. */
const char *rv_mcp_version_text(enum rv_mcp_version version);
enum rv_mcp_version rv_mcp_version_of(rv_str text);

/* Codes of errors on the wire. */
enum rv_mcp_code {
    RV_MCP_PARSE_ERROR = -32700,
    RV_MCP_INVALID_REQUEST = -32600,
    RV_MCP_METHOD_NOT_FOUND = -32601,
    RV_MCP_INVALID_PARAMS = -32602,
    RV_MCP_INTERNAL_ERROR = -32603,
    RV_MCP_NO_COMPLETION = -1,           /* of a completion that is not made */
    RV_MCP_RESOURCE_NOT_FOUND = -32002,  /* up to 2025-11-25; later it is RV_MCP_INVALID_PARAMS */
    RV_MCP_HEADER_MISMATCH = -32020,     /* these three since 2026-07-28 */
    RV_MCP_MISSING_CAPABILITY = -32021,  /* the client did not declare what the answer needs */
    RV_MCP_UNSUPPORTED_VERSION = -32022, /* data: {supported: [...], requested} */
};

enum rv_mcp_kind { RV_MCP_REQUEST, RV_MCP_NOTIFICATION, RV_MCP_RESULT, RV_MCP_ERROR };
/* A message; pointers other than root are borrowed from it. */
struct rv_mcp_message {
    enum rv_mcp_kind kind;
    json_object
        *id; /* a string or an integer; NULL: a notification, or an error about a message without a readable id */
    const char *method;  /* of a request or notification; has no NUL inside */
    json_object *params; /* an object or NULL */
    json_object *result; /* an object */
    int code;            /* of an error, with its text and its data, which may be NULL */
    const char *text;
    json_object *data;
    json_object *root; /* owned */
};

/** Read one message. *out is always initialised: after RV_E_INVALID it has the id, if one could be read, so that the
 *  failure can be answered; finish it in any case.
 *  @param code on RV_E_INVALID the code of the answer: RV_MCP_PARSE_ERROR or RV_MCP_INVALID_REQUEST; may be NULL
 *  @return 0, RV_E_INVALID (the bytes are not a message), RV_E_NOMEM */
RV_MUST_CHECK int rv_mcp_read(rv_str bytes, struct rv_mcp_message *out, int *code, rv_err **err);
void rv_mcp_message_fini(struct rv_mcp_message *message);

/* Append one message to out, without a line end. params, data and result may be NULL: left out, or {} as a result.
 * They fail as the buffer does. */
RV_MUST_CHECK int rv_mcp_write_request(int64_t id, const char *method, json_object *params, rv_buf *out, rv_err **err);
RV_MUST_CHECK int rv_mcp_write_notification(const char *method, json_object *params, rv_buf *out, rv_err **err);
RV_MUST_CHECK int rv_mcp_write_result(json_object *id, json_object *result, rv_buf *out, rv_err **err);
/** id NULL: the message that failed has none that could be read, and the answer says null. */
RV_MUST_CHECK int rv_mcp_write_error(json_object *id, int code, const char *text, json_object *data, rv_buf *out,
                                     rv_err **err);

#endif

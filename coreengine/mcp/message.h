/* One message of the Model Context Protocol: JSON-RPC 2.0, read strictly and written compactly.
 *
 * Both sides of the protocol use this. A message is one JSON value on one line, or the body of one HTTP request;
 * batches, which one revision had, are refused. What is read is hostile until it is a message: the size, the depth and
 * the types of all members are checked here, and members that JSON-RPC does not name are ignored. */
#ifndef RV_MCP_MESSAGE_H
#define RV_MCP_MESSAGE_H

#include "coreengine/base/base.h"

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
int rv_mcp_version_of(rv_str word); /* RV_UNSET: another word */

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

/* --- Messages on a pipe: bytes that may be cut anywhere become lines, one message each.
 *
 * A line ends in a line feed; a carriage return before it is removed, and blank lines are skipped. A line above the
 * limit is reported once, and reading continues with the next line: a peer that sent too much is told so, not
 * disconnected. --- */

#define RV_MCP_MAX_LINE RV_MCP_MAX_MESSAGE /* bytes without the end of the line */

/** is_whole false: the line is longer than the limit, and `line` is empty. A negative code stops the reading and is
 *  passed up. */
typedef int (*rv_mcp_line_fn)(void *self, rv_str line, bool is_whole, rv_err **err);

struct rv_mcp_lines {
    size_t max_line;
    rv_buf line;   /* the beginning of a line whose end has not come yet */
    bool is_whole; /* false: that line is above the limit, and its rest is skipped */
    rv_mcp_line_fn on_line;
    void *self; /* borrowed */
};
void rv_mcp_lines_init(struct rv_mcp_lines *lines, size_t max_line, rv_mcp_line_fn on_line, void *self);
void rv_mcp_lines_fini(struct rv_mcp_lines *lines);
/** Call on_line for each line that ends in these bytes. RV_E_NOMEM, or what on_line returned; the rest is then lost. */
RV_MUST_CHECK int rv_mcp_lines_read(struct rv_mcp_lines *lines, rv_str bytes, rv_err **err);
/** The bytes are over: hands over a last line without an end. */
RV_MUST_CHECK int rv_mcp_lines_end(struct rv_mcp_lines *lines, rv_err **err);

/* --- Addresses of http and https, taken apart. What is not plainly one is refused; nothing is decoded. --- */

/* Views of the text that was read. */
struct rv_mcp_url {
    bool is_https;
    rv_str origin; /* "https://host:port" as written, without a user */
    rv_str host;   /* with the brackets of IPv6 */
    int port;      /* also where none is written */
    rv_str path;   /* "/..." or empty; without query and fragment */
    rv_str query;  /* with its "?"; empty: none */
    bool has_user, has_fragment;
};
/** ASCII, without regard to case. */
bool rv_mcp_is_same_word(rv_str a, rv_str b);
/** False: the text is not such an address; *out stays as it was. */
RV_MUST_CHECK bool rv_mcp_url_read(rv_str text, struct rv_mcp_url *out);
/** Is the host an address written as a number, or localhost? */
bool rv_mcp_url_is_literal(const struct rv_mcp_url *u);
/** Is the host this machine, as written: localhost, 127.0.0.0/8 or [::1]? */
bool rv_mcp_url_is_local(const struct rv_mcp_url *u);
/** Same scheme, host and port. */
bool rv_mcp_url_has_same_origin(const struct rv_mcp_url *a, const struct rv_mcp_url *b);
/** Append text as a value of a form or a query: all but letters, digits and "-._~" as %XX. */
void rv_mcp_url_encode(rv_str text, rv_buf *out);
/** Append the decoded value of `name` in a query or form ("a=b&c=d"); false: it is not there, or badly encoded. */
RV_MUST_CHECK bool rv_mcp_query_get(rv_str query, const char *name, rv_buf *out);

#endif

/* Headers of requests over streamable HTTP, by era: what a message says once more, so that proxies can route by it. */
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/mcp/http.h"

#define SENTINEL     "=?base64?"
#define SENTINEL_END "?="

void rv_mcp_headers_fini(struct rv_mcp_headers *h)
{
    for (size_t i = 0; i < h->n; i++)
        free(h->lines[i]);
    h->n = 0;
}

static bool is_token(const char *name)
{
    for (const char *p = name; *p; p++)
        if (!rv_is_digit(*p) && !rv_is_letter(*p) && !strchr("!#$%&'*+-.^_`|~", *p))
            return false;
    return name[0] != '\0';
}

static bool is_clean(rv_str value)
{
    for (size_t i = 0; i < value.len; i++)
        if (((unsigned char)value.ptr[i] < ' ' && value.ptr[i] != '\t') || value.ptr[i] == 0x7F)
            return false;
    return true;
}

bool rv_mcp_is_context_header(rv_str name)
{
    static const char *const headers[] = {"traceparent",       "tracestate",   "x-agent-name", "x-agent-schema",
                                          "x-ai-tool-call-id", "x-client-id",  "x-context-id", "x-is-eval",
                                          "x-model-name",      "x-session-id", "x-task-id",    "x-tenant-id",
                                          "x-trace-id",        "x-user-email", "x-user-id",    "x-user-name"};
    char plain[32];

    if (name.len >= sizeof plain) /* longer than each of them */
        return false;
    for (size_t i = 0; i < name.len; i++)
        plain[i] = name.ptr[i] == '_' ? '-' : name.ptr[i];
    for (size_t i = 0; i < RV_COUNT(headers); i++)
        if (rv_mcp_is_same_word((rv_str){plain, name.len}, rv_str_of(headers[i])))
            return true;
    return false;
}

/* A place for a line with that name: of the one that has it, else a new one, NULL until the caller sets it. NULL: full.
 */
static char **place_of(struct rv_mcp_headers *h, rv_str name, rv_err **err)
{
    for (size_t i = 0; i < h->n; i++)
        if (rv_mcp_is_same_word((rv_str){h->lines[i], strcspn(h->lines[i], ":")}, name))
            return &h->lines[i];
    if (h->n == RV_MCP_MAX_HTTP_HEADERS) {
        RV_FAIL(err, RV_E_LIMIT, "a request has more than %d headers", RV_MCP_MAX_HTTP_HEADERS);
        return NULL;
    }
    return &h->lines[h->n];
}

/* Takes line; NULL: out of memory. */
static int put_line(struct rv_mcp_headers *h, char **place, char *line, rv_err **err)
{
    if (!line)
        return RV_FAIL(err, RV_E_NOMEM, "write a header");
    if (place == &h->lines[h->n])
        h->n++;
    else
        free(*place);
    *place = line;
    return 0;
}

int rv_mcp_headers_add(struct rv_mcp_headers *h, const char *name, rv_str value, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf line = RV_BUF_INIT(RV_MCP_MAX_HEADER);

    if (!is_token(name))
        return RV_FAIL(err, RV_E_INVALID, "the name of a header is not a token: \"%.100s\"", name);
    if (!is_clean(value))
        return RV_FAIL(err, RV_E_INVALID, "header \"%.100s\" has a control character", name);
    char **place = place_of(h, rv_str_of(name), err);
    if (!place)
        return RV_E_LIMIT;
    rv_buf_printf(&line, "%s: ", name);
    rv_buf_add_str(&line, value);
    int rc = rv_buf_check(&line, "a header", err);
    return rc < 0 ? rc : put_line(h, place, rv_buf_steal(&line, NULL), err);
}

static bool is_plain(rv_str value)
{
    size_t edge = strlen(SENTINEL), end = strlen(SENTINEL_END);

    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] < ' ' || value.ptr[i] > '~') /* a tab is plain to HTTP, but proxies turn it into a blank */
            return false;
    if (value.len && (value.ptr[0] == ' ' || value.ptr[value.len - 1] == ' '))
        return false;
    return value.len < edge + end || memcmp(value.ptr, SENTINEL, edge) != 0 ||
           memcmp(value.ptr + value.len - end, SENTINEL_END, end) != 0;
}

void rv_mcp_header_write_value(rv_str value, rv_buf *out)
{
    if (is_plain(value)) {
        rv_buf_add_str(out, value);
        return;
    }
    rv_buf_puts(out, SENTINEL);
    rv_base64_write(value, out);
    rv_buf_puts(out, SENTINEL_END);
}

static int add_encoded(struct rv_mcp_headers *h, const char *name, rv_str value, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(RV_MCP_MAX_HEADER);

    rv_mcp_header_write_value(value, &text);
    int rc = rv_buf_check(&text, "the value of a header", err);
    return rc < 0 ? rc : rv_mcp_headers_add(h, name, rv_buf_str(&text), err);
}

static int add_further(struct rv_mcp_headers *h, json_object *headers, rv_err **err)
{
    int rc = 0;

    if (!headers)
        return 0;
    json_object_object_foreach (headers, name, value)
        if (rc == 0)
            rc = add_encoded(h, name, rv_json_str(value), err);
    return rc;
}

static int add_modern(struct rv_mcp_headers *h, const struct rv_mcp_send *m, rv_err **err)
{
    int rc = m->method ? add_encoded(h, "Mcp-Method", rv_str_of(m->method), err) : 0;

    if (rc == 0 && m->name)
        rc = add_encoded(h, "Mcp-Name", rv_str_of(m->name), err);
    return rc;
}

static int add_place(struct rv_mcp_headers *h, const char *version, const char *session, rv_err **err)
{
    int rc = version && version[0] ? rv_mcp_headers_add(h, "MCP-Protocol-Version", rv_str_of(version), err) : 0;

    if (rc == 0 && session[0])
        rc = rv_mcp_headers_add(h, "Mcp-Session-Id", rv_str_of(session), err);
    return rc;
}

int rv_mcp_headers_copy(const struct rv_mcp_headers *from, struct rv_mcp_headers *to, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < from->n && rc == 0; i++) {
        rv_str line = rv_str_of(from->lines[i]);
        char **place = place_of(to, (rv_str){line.ptr, strcspn(line.ptr, ":")}, err);
        rc = place ? put_line(to, place, rv_str_dup(line), err) : RV_E_LIMIT;
    }
    return rc;
}

int rv_mcp_headers_build(const struct rv_mcp_send *m, const char *session, struct rv_mcp_headers *out, rv_err **err)
{
    bool is_first =
        m->method && strcmp(m->method, "initialize") == 0; /* it negotiates the version, and has no session */

    int rc = rv_mcp_headers_add(out, "Content-Type", RV_STR_LIT("application/json"), err);
    if (rc == 0)
        rc = rv_mcp_headers_add(out, "Accept", RV_STR_LIT("application/json, text/event-stream"), err);
    if (rc == 0 && !is_first)
        rc = add_place(out, m->version, m->is_modern ? "" : session, err);
    if (rc == 0 && m->is_modern)
        rc = add_modern(out, m, err);
    return rc == 0 ? add_further(out, m->headers, err) : rc;
}

int rv_mcp_headers_build_stream(const char *version, const char *session, const char *last_id,
                                struct rv_mcp_headers *out, rv_err **err)
{
    int rc = last_id ? rv_mcp_headers_add(out, "Accept", RV_STR_LIT("text/event-stream"), err) : 0;

    if (rc == 0)
        rc = add_place(out, version, session, err);
    if (rc == 0 && last_id && last_id[0])
        rc = rv_mcp_headers_add(out, "Last-Event-ID", rv_str_of(last_id), err);
    return rc;
}

bool rv_mcp_session_read(rv_str value, char out[RV_MCP_MAX_SESSION + 1])
{
    if (value.len == 0 || value.len > RV_MCP_MAX_SESSION)
        return false;
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] <= ' ' || value.ptr[i] > '~')
            return false;
    memcpy(out, value.ptr, value.len);
    out[value.len] = '\0';
    return true;
}

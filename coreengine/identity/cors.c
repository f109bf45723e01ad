/* Cross-origin requests of pages: which origins, methods and headers a browser may let them use. A page of an unknown
 * origin gets no headers, and its browser keeps the answer from it. */
#include <string.h>
#include <strings.h>

#include "coreengine/identity/identity_internal.h"

#define MAX_AGE     "600"
#define MAX_HEADERS ((size_t)4096) /* bytes of the list that a preflight asks for: browsers name a dozen */
#define METHODS     "GET, HEAD, POST, PUT, PATCH, DELETE"
#define EXPOSED                                                                                                        \
    "X-Request-Id, Retry-After, Retry-After-Ms, X-Should-Retry, Location, Content-Disposition, X-Session-Id, "         \
    "X-Run-Id, "                                                                                                       \
    "Mcp-Session-Id"

static const char *const allowed[] = {
    "accept",
    "authorization",
    "baggage",
    "content-type",
    "idempotency-key",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "traceparent",
    "tracestate",
    "x-added-instruction",
    "x-agent-schema",
    "x-agent-schema-name",
    "x-api-key",
    "x-client-id",
    "x-is-eval",
    "x-model-name",
    "x-on-disconnect",
    "x-reeve-events",
    "x-request-id",
    "x-run-id",
    "x-session-id",
    "x-session-name",
    "x-session-type",
    "x-tenant-id",
    "x-tool-responses",
    "x-user-email",
    "x-user-id",
    "x-user-name",
};

static bool is_allowed(rv_str name)
{
    static const char stainless[] = "x-stainless-";

    if (name.len > strlen(stainless) && strncasecmp(name.ptr, stainless, strlen(stainless)) == 0) {
        for (size_t i = 0; i < name.len; i++)
            if (!rv_is_letter(name.ptr[i]) && !rv_is_digit(name.ptr[i]) && name.ptr[i] != '-')
                return false;
        return true;
    }
    for (size_t i = 0; i < RV_COUNT(allowed); i++)
        if (name.len == strlen(allowed[i]) && strncasecmp(name.ptr, allowed[i], name.len) == 0)
            return true;
    return false;
}

/* Of the headers that the page wants to send those that it may. */
static void write_headers(const struct rv_caller *c, rv_buf *out)
{
    rv_str list, word;

    if (identity_caller_header(c, "access-control-request-headers", &list) != 1)
        return;
    while ((word = identity_list_next(&list)).len > 0)
        if (is_allowed(word)) {
            rv_buf_puts(out, out->len > 0 ? ", " : "");
            rv_buf_add_str(out, word);
        }
}

static void allow_preflight(const struct rv_caller *c, void (*put)(void *self, const char *name, const char *value),
                            void *self)
{
    rv_buf headers = RV_BUF_INIT(MAX_HEADERS);

    write_headers(c, &headers);
    put(self, "Access-Control-Allow-Methods", METHODS);
    if (headers.rc == 0 && headers.len > 0) /* too many: none is allowed */
        put(self, "Access-Control-Allow-Headers", rv_buf_cstr(&headers));
    put(self, "Access-Control-Max-Age", MAX_AGE);
    rv_buf_fini(&headers);
}

bool rv_auth_put_cors(const rv_auth *auth, const struct rv_caller *c,
                      void (*put)(void *self, const char *name, const char *value), void *self)
{
    char origin[300];
    rv_str given, method;
    int there = identity_caller_header(c, "origin", &given);
    bool is_preflight = there != 0 && c->method && strcmp(c->method, "OPTIONS") == 0 &&
                        identity_caller_header(c, "access-control-request-method", &method) != 0;

    put(self, "Vary", "Origin"); /* also without one: what is cached for one page is not shown to another */
    if (there != 1 || !identity_is_origin(given) || !identity_text_keep(given, origin, sizeof origin))
        return is_preflight;
    if (identity_caller_allows_origin(auth, c, given)) {
        put(self, "Access-Control-Allow-Origin", origin);
        put(self, "Access-Control-Allow-Credentials", "true");
    } else if (identity_caller_is_any_origin(auth, c, given)) {
        put(self, "Access-Control-Allow-Origin", "*");
    } else {
        return is_preflight;
    }
    if (is_preflight)
        allow_preflight(c, put, self);
    else
        put(self, "Access-Control-Expose-Headers", EXPOSED);
    return is_preflight;
}

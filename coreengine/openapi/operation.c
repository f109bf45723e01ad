/* What may stand in the operation of a definition: it is checked when it is made, and again when it is used, as a kept
 * file may have been written by anything. */
#include "coreengine/openapi/openapi_internal.h"

#include <json-c/linkhash.h>

#define MAX_HEADER_NAME 100 /* bytes: real names have some 40; an operation with a longer one becomes no tool */

const char *const openapi_ins[] = {
    [OPENAPI_PATH] = "path", [OPENAPI_QUERY] = "query", [OPENAPI_HEADER] = "header", [OPENAPI_BODY] = "body"};
RV_EACH_HAS_ROW(openapi_ins, OPENAPI_N_INS);
const char *const openapi_styles[] = {[OPENAPI_PLAIN] = "plain",
                                      [OPENAPI_DEEP] = "deep",
                                      [OPENAPI_SPACES] = "spaces",
                                      [OPENAPI_PIPES] = "pipes",
                                      [OPENAPI_JSON] = "json"};
RV_EACH_HAS_ROW(openapi_styles, OPENAPI_N_STYLES);

static bool is_dots(rv_str part)
{
    return rv_str_is(part, ".") || rv_str_is(part, "..");
}

bool openapi_is_path(const char *path)
{
    static const char legal[] = "-._~!$&'()*+,;=:@%/{}";
    bool is_open = false;

    if (path[0] != '/' || strlen(path) > RV_OPENAPI_MAX_URL / 2)
        return false;
    for (const char *p = path; *p; p++) {
        if (*p == '/' && is_dots((rv_str){p + 1, strcspn(p + 1, "/")}))
            return false;
        if (*p == '%' && (!rv_is_hex(p[1]) || !rv_is_hex(p[2]) || (p[1] == '2' && (p[2] == 'e' || p[2] == 'E'))))
            return false; /* %2e is a dot, too */
        if ((*p == '{' && is_open) || (*p == '}' && !is_open))
            return false;
        is_open = *p == '{' || (is_open && *p != '}');
        if (!is_open && !rv_is_letter(*p) && !rv_is_digit(*p) && !strchr(legal, *p))
            return false;
    }
    return !is_open;
}

bool openapi_is_header(const char *name, const struct rv_openapi_opts *how)
{
    static const char *const others[] = {"Accept",
                                         "Accept-Encoding",
                                         "Authorization",
                                         "Connection",
                                         "Content-Encoding",
                                         "Content-Length",
                                         "Content-Type",
                                         "Cookie",
                                         "Expect",
                                         "Forwarded",
                                         "Host",
                                         "Idempotency-Key",
                                         "Keep-Alive",
                                         "Proxy-Authorization",
                                         "Proxy-Connection",
                                         "TE",
                                         "Trailer",
                                         "Transfer-Encoding",
                                         "Upgrade",
                                         "User-Agent",
                                         "Via"};

    if (!name[0] || strlen(name) > MAX_HEADER_NAME)
        return false;
    for (const char *p = name; *p; p++)
        if (!rv_is_letter(*p) && !rv_is_digit(*p) && !strchr("!#$%&'*+-.^_`|~", *p))
            return false;
    for (size_t i = 0; i < RV_COUNT(others); i++)
        if (rv_mcp_is_same_word(rv_str_of(name), rv_str_of(others[i])))
            return false;
    if (how && how->is_own && rv_mcp_is_context_header(rv_str_of(name)))
        return false;
    if (!how || !how->headers)
        return true;
    json_object_object_foreach (how->headers, key, value) {
        (void)value;
        if (rv_mcp_is_same_word(rv_str_of(name), rv_str_of(key)))
            return false;
    }
    return true;
}

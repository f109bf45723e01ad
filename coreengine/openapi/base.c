/* The address at which the operations of a server begin. A document may name any server, and requests have credentials:
 * what it names counts only where it is the origin from which the document came. */
#include "coreengine/openapi/openapi_internal.h"

#include <json-c/linkhash.h>

/* The first of the document's servers, with the defaults of its variables put in; false: none is usable. */
static bool read_server(json_object *document, rv_buf *out)
{
    json_object *servers = rv_json_get_arr(document, "servers");
    json_object *first =
        servers && json_object_array_length(servers) > 0 ? json_object_array_get_idx(servers, 0) : NULL;
    json_object *variables = rv_json_get_obj(first, "variables");
    const char *url = "/", *value = NULL;
    char name[128];

    if (first && !rv_json_get_text(first, "url", &url))
        return false;
    for (const char *p = url; *p; p++) {
        size_t n = *p == '{' ? strcspn(p, "}") : 0;
        if (!n) {
            rv_buf_putc(out, *p);
            continue;
        }
        if (!p[n] || n > sizeof name)
            return false;
        memcpy(name, p + 1, n - 1);
        name[n - 1] = '\0';
        if (!rv_json_get_text(rv_json_get_obj(variables, name), "default", &value))
            return false;
        rv_buf_puts(out, value);
        p += n;
    }
    return true;
}

static int say_url(const char *why, rv_str server, rv_err **err)
{
    rv_str shown = rv_utf8_cut(server, 200);

    return RV_FAIL(err, RV_E_INVALID, "%s: say in the pipeline where the server is, such as url: %.*s", why,
                   RV_STR_ARG(shown));
}

/* The document's own words, against the address that it came from. */
static int as_document_says(json_object *document, const char *document_url, rv_buf *out, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf server = RV_BUF_INIT(RV_OPENAPI_MAX_URL);
    struct rv_mcp_url from, to;

    if (!read_server(document, &server))
        return say_url("the document does not name a server that can be used", RV_STR_LIT("https://api.example.com"),
                       err);
    int rc = rv_buf_check(&server, "the address of a server", err);
    if (rc < 0)
        return rc;
    if (!document_url[0])
        return say_url("the document is a file", rv_buf_str(&server), err);
    if (!rv_mcp_url_read(rv_str_of(document_url), &from))
        return RV_FAIL(err, RV_E_INVALID, "the address of the document is not one of http:// or https://");
    if (server.len > 0 && rv_buf_cstr(&server)[0] == '/' && !(server.len > 1 && rv_buf_cstr(&server)[1] == '/')) {
        rv_buf_add_str(out, from.origin);
        rv_buf_add_str(out, rv_buf_str(&server));
        return 0;
    }
    if (!rv_mcp_url_read(rv_buf_str(&server), &to) || !rv_mcp_url_has_same_origin(&from, &to))
        return say_url("the document names a server that is not at the document's own address", rv_buf_str(&server),
                       err);
    rv_buf_add_str(out, rv_buf_str(&server));
    return 0;
}

int openapi_base(json_object *document, const struct rv_openapi_opts *opts, rv_buf *out, rv_err **err)
{
    struct rv_mcp_url parts;
    int rc = 0;

    if (opts->url[0])
        rv_buf_puts(out, opts->url);
    else
        rc = as_document_says(document, opts->document_url, out, err);
    if (rc == 0)
        rc = rv_buf_check(out, "the address of a server", err);
    if (rc < 0)
        return rc;
    if (!rv_mcp_url_read(rv_buf_str(out), &parts) || parts.query.len > 0 || parts.has_fragment)
        return RV_FAIL(err, RV_E_INVALID,
                       "the address of the server is not one of http:// or https:// without a query");
    if (parts.has_user)
        return RV_FAIL(err, RV_E_DENIED, "the address of the server has a user or a password in it");
    while (out->len > 0 && rv_buf_cstr(out)[out->len - 1] == '/')
        rv_buf_truncate(out, out->len - 1);
    return 0;
}

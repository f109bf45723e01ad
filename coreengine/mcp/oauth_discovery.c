/* From a server to its authorization server: which addresses are asked, and which answers are believed. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/mcp/oauth_internal.h"

#define RESOURCE_SUFFIX "/.well-known/oauth-protected-resource"
#define OAUTH_SUFFIX    "/.well-known/oauth-authorization-server"
#define OPENID_SUFFIX   "/.well-known/openid-configuration"

void oauth_drop_candidates(rv_oauth *o)
{
    for (size_t i = 0; i < o->n_candidates; i++)
        free(o->candidates[i]);
    o->n_candidates = o->at = 0;
}

static rv_str without_slash(rv_str path)
{
    while (path.len && path.ptr[path.len - 1] == '/')
        path.len--;
    return path;
}

static int add(rv_oauth *o, rv_str a, const char *b, rv_str c, rv_str d, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf url = RV_BUF_INIT(OAUTH_MAX_URL);

    rv_buf_add_str(&url, a);
    rv_buf_puts(&url, b);
    rv_buf_add_str(&url, c);
    rv_buf_add_str(&url, d);
    int rc = rv_buf_check(&url, "an address", err);
    if (rc < 0)
        return rc;
    o->candidates[o->n_candidates] = rv_buf_steal(&url, NULL);
    return o->candidates[o->n_candidates++] ? 0 : RV_FAIL(err, RV_E_NOMEM, "write an address");
}

static int read_url(const char *text, const char *what, struct rv_mcp_url *out, rv_err **err)
{
    if (!rv_mcp_url_read(rv_str_of(text), out) || out->has_user || out->has_fragment)
        return RV_FAIL(err, RV_E_DENIED, "%s is not an address of http or https", what);
    if (!out->is_https && !rv_mcp_url_is_local(out))
        return RV_FAIL(err, RV_E_DENIED, "%s does not use https", what);
    return 0;
}

int oauth_check_url(const char *text, const char *what, rv_err **err)
{
    struct rv_mcp_url u;

    return read_url(text, what, &u, err);
}

int oauth_find_resource(rv_oauth *o, rv_err **err)
{
    struct rv_mcp_url u;
    const rv_str none = {NULL, 0};
    int rc = read_url(o->config.resource, "the address of the server", &u, err);

    o->state = OAUTH_RESOURCE;
    o->is_malformed = false;
    oauth_drop_candidates(o);
    if (rc == 0 && o->challenge_metadata.len) {
        rc = oauth_check_url(rv_buf_cstr(&o->challenge_metadata), "the metadata of the server", err);
        return rc < 0 ? rc : add(o, rv_buf_str(&o->challenge_metadata), "", none, none, err);
    }
    rv_str path = without_slash(u.path);
    if (rc == 0 && path.len)
        rc = add(o, u.origin, RESOURCE_SUFFIX, path, u.query, err);
    return rc == 0 ? add(o, u.origin, RESOURCE_SUFFIX, none, none, err) : rc;
}

/* The metadata is of this server, or of all below one of its folders. */
static bool is_resource(const char *server, const char *named)
{
    struct rv_mcp_url s, n;

    if (!rv_mcp_url_read(rv_str_of(server), &s) || !rv_mcp_url_read(rv_str_of(named), &n) ||
        !rv_mcp_url_has_same_origin(&s, &n) || n.has_fragment)
        return false;
    rv_str path = without_slash(n.path);
    return s.path.len >= path.len && memcmp(s.path.ptr, path.ptr, path.len) == 0 &&
           (s.path.len == path.len || s.path.ptr[path.len] == '/');
}

int oauth_read_resource(rv_oauth *o, json_object *doc, rv_err **err)
{
    const char *named = NULL;
    json_object *servers = rv_json_get_arr(doc, "authorization_servers");
    rv_str first = servers ? rv_json_str(json_object_array_get_idx(servers, 0)) : (rv_str){NULL, 0};

    if (!rv_json_get_text(doc, "resource", &named) || !is_resource(o->config.resource, named))
        return RV_FAIL(err, RV_E_DENIED, "the metadata of the server is about another server");
    if (first.len == 0 || memchr(first.ptr, '\0', first.len))
        return RV_FAIL(err, RV_E_NOT_FOUND, "the metadata of the server names no authorization server");
    json_object_put(o->resource);
    o->resource = json_object_get(doc);
    free(o->issuer);
    o->issuer = rv_str_dup(first);
    return o->issuer ? 0 : RV_FAIL(err, RV_E_NOMEM, "read the metadata of the server");
}

/* Where the server has no metadata, its origin is the authorization server, as revision 2025-03-26 has it. */
static int use_origin(rv_oauth *o, rv_err **err)
{
    struct rv_mcp_url u;
    int rc = read_url(o->config.resource, "the address of the server", &u, err);

    if (rc < 0)
        return rc;
    o->is_old = true;
    o->issuer = rv_str_dup(u.origin);
    return o->issuer ? 0 : RV_FAIL(err, RV_E_NOMEM, "name the authorization server");
}

int oauth_find_issuer(rv_oauth *o, rv_err **err)
{
    struct rv_mcp_url u;
    const rv_str none = {NULL, 0};
    int rc = o->issuer ? 0 : use_origin(o, err);

    if (rc == 0)
        rc = read_url(o->issuer, "the authorization server", &u, err);
    if (rc < 0)
        return rc;
    o->state = OAUTH_ISSUER;
    oauth_drop_candidates(o);
    rv_str path = without_slash(u.path);
    rc = add(o, u.origin, OAUTH_SUFFIX, path, none, err);
    if (rc == 0)
        rc = add(o, u.origin, OPENID_SUFFIX, path, none, err);
    if (rc == 0 && path.len)
        rc = add(o, u.origin, "", path, RV_STR_LIT(OPENID_SUFFIX), err);
    return rc;
}

int oauth_read_issuer(rv_oauth *o, json_object *doc, rv_err **err)
{
    const char *named = NULL, *url = NULL;

    if (!rv_json_get_text(doc, "issuer", &named) || strcmp(named, o->issuer) != 0) {
        rv_str origin = without_slash(rv_str_of(named));
        if (!o->is_old || !rv_str_is(origin, o->issuer)) /* an old server's is known by its origin only */
            return RV_FAIL(err, RV_E_DENIED, "the metadata of the authorization server names another issuer");
    }
    if (o->config.grant == RV_OAUTH_PERSON && !oauth_supports(doc, "code_challenge_methods_supported", "S256"))
        return RV_FAIL(err, RV_E_DENIED, "the authorization server does not support PKCE with S256");
    json_object_put(o->metadata);
    o->metadata = json_object_get(doc);
    o->has_metadata = true;
    int rc = oauth_endpoint(o, "token_endpoint", &url, err);
    if (rc == 0 && !url)
        rc = RV_FAIL(err, RV_E_PARSE, "the metadata of the authorization server has no token endpoint");
    return rc;
}

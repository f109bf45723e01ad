/* The way to MCP servers over HTTP: headers, addresses that are allowed, tokens, logins. */
#include <errno.h>
#include <json-c/linkhash.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coreengine/app/app_internal.h"
#include "coreengine/app/mcp.h"
#include "coreengine/mcp/mcp.h"
#include "coreengine/tools/mcp/http/http.h"
#include "coreengine/tools/rest/rest.h"

#define LOGIN_US (10 * RV_US_PER_MIN) /* a person reads, and may have to find a password */

int app_mcp_state(rv_buf *out, rv_err **err)
{
    int rc = rv_app_find_state_folder(out, err);

    rv_buf_puts(out, "/mcp");
    return rc < 0 ? rc : rv_buf_check(out, "path", err);
}

/* --- what a file says about access --- */

static const char *auth_text(const struct rv_mcp_server_config *s, const char *key)
{
    const char *text = NULL;

    return s->auth && rv_json_get_text(s->auth, key, &text) ? text : NULL;
}

static enum rv_oauth_grant grant_of(const struct rv_mcp_server_config *s)
{
    static const char *const names[] = {[RV_OAUTH_PERSON] = "authorization_code",
                                        [RV_OAUTH_CLIENT] = "client_credentials",
                                        [RV_OAUTH_ASSERTION] = "jwt_bearer",
                                        [RV_OAUTH_ID_TOKEN] = "token_exchange"};
    RV_EACH_HAS_ROW(names, RV_N_OAUTH_GRANTS);
    const char *grant = auth_text(s, "grant");

    for (size_t i = 0; grant && i < RV_COUNT(names); i++)
        if (strcmp(names[i], grant) == 0)
            return (enum rv_oauth_grant)i;
    return RV_OAUTH_PERSON;
}

static struct rv_oauth_config oauth_of(const struct rv_mcp_server_config *s)
{
    return (struct rv_oauth_config){.server = s->name,
                                    .resource = s->url,
                                    .client_id = auth_text(s, "client_id"),
                                    .client_secret = auth_text(s, "client_secret"),
                                    .metadata_url = auth_text(s, "client_metadata"),
                                    .scope = auth_text(s, "scope"),
                                    .private_key = auth_text(s, "private_key"),
                                    .key_id = auth_text(s, "key_id"),
                                    .grant = grant_of(s),
                                    .assertion = auth_text(s, "assertion"),
                                    .id_token = auth_text(s, "id_token"),
                                    .idp_token_endpoint = auth_text(s, "idp_token_endpoint"),
                                    .idp_client_id = auth_text(s, "idp_client_id"),
                                    .idp_client_secret = auth_text(s, "idp_client_secret")};
}

/* A configured Authorization header takes the place of tokens. */
static bool has_own_token(const struct rv_mcp_server_config *s)
{
    if (!s->headers)
        return false;
    json_object_object_foreach (s->headers, name, value) {
        (void)value;
        if (rv_mcp_is_same_word(rv_str_of(name), RV_STR_LIT("Authorization")))
            return true;
    }
    return false;
}

static int token_path(const struct rv_mcp_server_config *s, rv_buf *out, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf folder = RV_BUF_INIT(PATH_MAX);
    int rc = app_mcp_state(&folder, err);

    if (rc < 0)
        return rc;
    rv_mcp_write_state_path(rv_buf_cstr(&folder), "tokens", s, out);
    return rv_buf_check(out, "path", err);
}

/* --- links --- */

static int add_headers(const struct rv_mcp_server_config *s, struct rv_mcp_headers *out, rv_err **err)
{
    int rc = 0;

    if (!s->headers)
        return 0;
    json_object_object_foreach (s->headers, name, value)
        if (rc == 0)
            rc = rv_mcp_headers_add(out, name, rv_json_str(value), err);
    return rc;
}

static int open_rest(const struct rv_mcp_server_config *s, struct uv_loop_s *loop, const struct rv_mcp_link_user *user,
                     struct rv_mcp_link *out, rv_err **err)
{
    const struct rv_rest_opts opts = {.loop = loop,
                                      .document = s->openapi,
                                      .url = s->url,
                                      .headers = s->headers,
                                      .is_own = s->own,
                                      .allowed = app_env("REEVE_ALLOW_NET"),
                                      .user = *user};

    return rv_rest_open(&opts, out, err);
}

static int open_link(void *self, const struct rv_mcp_server_config *s, struct uv_loop_s *loop,
                     const struct rv_mcp_link_user *user, struct rv_mcp_link *out, rv_err **err)
{
    if (s->has_openapi)
        return open_rest(s, loop, user, out, err);
    RV_AUTO(rv_buf_fini) rv_buf path = RV_BUF_INIT(PATH_MAX);
    struct rv_mcp_headers headers = {.n = 0};
    struct rv_mcp_web_auth auth = {.config = oauth_of(s)};
    struct rv_mcp_web_opts opts = {.loop = loop,
                                   .url = s->url,
                                   .allowed = app_env("REEVE_ALLOW_NET"),
                                   .user = *user,
                                   .auth = &auth,
                                   .awaits_stream = s->elicitation};

    (void)self;
    int rc = add_headers(s, &headers, err);
    if (rc == 0)
        rc = token_path(s, &path, err);
    auth.file = rv_buf_cstr(&path);
    opts.headers = (const char *const *)headers.lines;
    opts.n_headers = headers.n;
    if (has_own_token(s))
        opts.auth = NULL;
    if (rc == 0)
        rc = rv_mcp_web_open(&opts, out, err);
    rv_mcp_headers_fini(&headers);
    return rc;
}

const struct rv_mcp_http_transport app_mcp_http = {.open = open_link};

/* --- logins --- */

static int find_server(const struct rv_app_loaded *l, const char *name, const struct rv_mcp_server_config **out,
                       rv_err **err)
{
    *out = rv_pipeline_find_mcp_server(l->pipeline, name);
    if (!*out)
        return RV_FAIL(err, RV_E_NOT_FOUND, "the pipeline has no MCP server \"%s\"", name);
    return (*out)->command.is_set || (*out)->has_openapi
               ? RV_FAIL(err, RV_E_INVALID, "MCP server \"%s\" is not one over HTTP", name)
               : 0;
}

int rv_app_mcp_login(const struct rv_app_loaded *l, const char *server, const char *browser,
                     void (*show)(void *self, const char *url), void *self, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf path = RV_BUF_INIT(PATH_MAX);
    const struct rv_mcp_server_config *s = NULL;
    int rc = find_server(l, server, &s, err);

    if (rc == 0)
        rc = token_path(s, &path, err);
    if (rc < 0)
        return rc;
    const struct rv_mcp_web_auth auth = {.file = rv_buf_cstr(&path), .config = oauth_of(s)};
    const struct rv_mcp_login_opts opts = {.url = s->url,
                                           .allowed = app_env("REEVE_ALLOW_NET"),
                                           .auth = &auth,
                                           .browser = browser,
                                           .max_us = LOGIN_US,
                                           .show = show,
                                           .self = self};
    rc = rv_mcp_login(&opts, err);
    return rc < 0 ? RV_WRAP(err, rc, "login at MCP server \"%s\"", server) : 0;
}

int rv_app_mcp_logout(const struct rv_app_loaded *l, const char *server, bool *had, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf path = RV_BUF_INIT(PATH_MAX);
    const struct rv_mcp_server_config *s = NULL;
    int rc = find_server(l, server, &s, err);

    if (rc == 0)
        rc = token_path(s, &path, err);
    if (rc < 0)
        return rc;
    *had = unlink(rv_buf_cstr(&path)) == 0;
    return *had || errno == ENOENT ? 0 : RV_FAIL_SYSTEM(err, errno, "remove \"%s\"", rv_buf_cstr(&path));
}

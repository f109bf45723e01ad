/* What the machine says: the address that a person opens, the forms for tokens, the document of a registration. */
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/mcp/oauth_internal.h"

#define DIGEST 32 /* bytes of SHA-256 */

/* --- small texts --- */

void oauth_base64url(const unsigned char *bytes, size_t n, rv_buf *out)
{
    size_t from = out->len;

    rv_base64_write((rv_str){(const char *)bytes, n}, out);
    for (size_t i = from; i < out->len; i++)
        out->ptr[i] = out->ptr[i] == '+' ? '-' : out->ptr[i] == '/' ? '_' : out->ptr[i];
    while (out->len > from && out->ptr[out->len - 1] == '=')
        rv_buf_truncate(out, out->len - 1);
}

/* The challenge of PKCE: base64url(SHA-256(verifier)). */
static void put_challenge(const char *verifier, rv_buf *out)
{
    char hex[RV_HASH_MAX];
    unsigned char digest[DIGEST];

    rv_hash_format(rv_str_of(verifier), hex);
    for (size_t i = 0; i < DIGEST; i++)
        digest[i] = (unsigned char)(rv_hex_digit(hex[2 * i]) << 4 | rv_hex_digit(hex[2 * i + 1]));
    oauth_base64url(digest, DIGEST, out);
}

void oauth_put(rv_buf *out, const char *name, rv_str value)
{
    bool is_first = out->len == 0 || out->ptr[out->len - 1] == '?' || out->ptr[out->len - 1] == '&';

    rv_buf_printf(out, "%s%s=", is_first ? "" : "&", name);
    rv_mcp_url_encode(value, out);
}

bool oauth_supports(json_object *metadata, const char *key, const char *text)
{
    json_object *list = metadata ? rv_json_get_arr(metadata, key) : NULL;

    for (size_t i = 0; list && i < json_object_array_length(list); i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(list, i)), text))
            return true;
    return false;
}

/* --- the authorization server --- */

/* An old server without metadata has its endpoints at these paths. */
static int old_endpoint(rv_oauth *o, const char *name, const char **out, rv_err **err)
{
    static const char *const paths[][2] = {
        {"authorization_endpoint", "/authorize"}, {"token_endpoint", "/token"}, {"registration_endpoint", "/register"}};
    RV_AUTO(rv_buf_fini) rv_buf url = RV_BUF_INIT(OAUTH_MAX_URL);

    for (size_t i = 0; i < RV_COUNT(paths); i++)
        if (strcmp(paths[i][0], name) == 0)
            rv_buf_printf(&url, "%s%s", o->issuer, paths[i][1]);
    o->metadata = o->metadata ? o->metadata : json_object_new_object();
    if (!o->metadata)
        return RV_FAIL(err, RV_E_NOMEM, "name an endpoint");
    int rc = rv_buf_check(&url, "an endpoint", err);
    if (rc == 0 && url.len)
        rc = rv_json_set_str(o->metadata, name, rv_buf_str(&url), err);
    return rc == 0 && rv_json_get_text(o->metadata, name, out) ? 0 : rc;
}

int oauth_endpoint(rv_oauth *o, const char *name, const char **out, rv_err **err)
{
    *out = NULL;
    if (o->metadata && rv_json_get_text(o->metadata, name, out))
        return oauth_check_url(*out, "an endpoint of the authorization server", err);
    return o->is_old && !o->has_metadata ? old_endpoint(o, name, out, err) : 0;
}

/* Borrowed; NULL: none for this issuer and redirect_uri. */
static json_object *kept_client(const rv_oauth *o)
{
    json_object *client = rv_json_get_obj(o->kept, "client");
    const char *issuer = NULL, *redirect = NULL, *id = NULL;

    if (!client || !rv_json_get_text(client, "id", &id) || !rv_json_get_text(client, "issuer", &issuer) ||
        strcmp(issuer, o->issuer) != 0)
        return NULL;
    if (o->config.redirect_uri && rv_json_get_text(client, "redirect_uri", &redirect) &&
        strcmp(redirect, o->config.redirect_uri) != 0)
        return NULL;
    return client;
}

const char *oauth_client(const rv_oauth *o, const char **secret)
{
    json_object *client = kept_client(o);
    const char *id = NULL;
    bool takes_urls = false;

    *secret = o->config.client_secret;
    if (o->config.client_id)
        return o->config.client_id;
    *secret = NULL;
    if (o->metadata && rv_json_get_bool(o->metadata, "client_id_metadata_document_supported", &takes_urls) &&
        takes_urls && o->config.metadata_url)
        return o->config.metadata_url;
    if (!client || !rv_json_get_text(client, "id", &id))
        return NULL;
    if (!rv_json_get_text(client, "secret", secret))
        *secret = NULL;
    return id;
}

/* --- requests --- */

int oauth_post(rv_oauth *o, const char *url, const char *content_type, rv_err **err)
{
    rv_buf_clear(&o->url);
    rv_buf_puts(&o->url, url);
    int rc = rv_buf_check(&o->url, "an address", err);
    if (rc == 0)
        rc = rv_buf_check(&o->body, "a request", err);
    if (rc == 0)
        rc = rv_buf_check(&o->authorization, "a request", err);
    o->step = (struct rv_oauth_step){.kind = RV_OAUTH_FETCH,
                                     .method = "POST",
                                     .url = rv_buf_cstr(&o->url),
                                     .body = rv_buf_str(&o->body),
                                     .content_type = content_type,
                                     .authorization = o->authorization.len ? rv_buf_cstr(&o->authorization) : NULL};
    return rc;
}

/* As the server itself writes it, to the letter: authorization servers compare texts. */
rv_str oauth_resource(const rv_oauth *o)
{
    const char *named = o->config.resource;

    RV_IGNORE(o->resource && rv_json_get_text(o->resource, "resource", &named), "without metadata: its address");
    return rv_str_of(named);
}

int oauth_write_person(rv_oauth *o, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf challenge = RV_BUF_INIT(100);
    const char *url = NULL, *secret, *id = oauth_client(o, &secret);
    int rc = oauth_endpoint(o, "authorization_endpoint", &url, err);

    if (rc == 0 && !url)
        rc = RV_FAIL(err, RV_E_PARSE, "the authorization server has no address where a person can approve");
    if (rc < 0)
        return rc;
    put_challenge(o->verifier, &challenge);
    rv_buf_clear(&o->url);
    rv_buf_printf(&o->url, "%s%s", url, strchr(url, '?') ? "&" : "?");
    oauth_put(&o->url, "response_type", RV_STR_LIT("code"));
    oauth_put(&o->url, "client_id", rv_str_of(id));
    oauth_put(&o->url, "redirect_uri", rv_str_of(o->config.redirect_uri));
    oauth_put(&o->url, "code_challenge", rv_buf_str(&challenge));
    oauth_put(&o->url, "code_challenge_method", RV_STR_LIT("S256"));
    oauth_put(&o->url, "state", rv_str_of(o->state_word));
    oauth_put(&o->url, "resource", oauth_resource(o));
    if (o->scope.len)
        oauth_put(&o->url, "scope", rv_buf_str(&o->scope));
    rc = rv_buf_check(&o->url, "an address", err);
    if (rc == 0)
        rc = rv_buf_check(&challenge, "an address", err);
    o->state = OAUTH_PERSON;
    o->step = (struct rv_oauth_step){.kind = RV_OAUTH_ASK, .url = rv_buf_cstr(&o->url)};
    return rc;
}

static const char *method_for_registration(const rv_oauth *o)
{
    static const char *const methods[] = {"none", "client_secret_basic", "client_secret_post"};

    for (size_t i = 0; i < RV_COUNT(methods); i++)
        if (oauth_supports(o->metadata, "token_endpoint_auth_methods_supported", methods[i]))
            return methods[i];
    return "none";
}

int oauth_write_registration(rv_oauth *o, rv_err **err)
{
    const char *url = NULL;
    int rc = oauth_endpoint(o, "registration_endpoint", &url, err);

    if (rc == 0 && !url) {
        rc = RV_FAIL(err, RV_E_DENIED, "the authorization server wants a client id");
        rv_err_set_hint(err, "register reeve with it, and write the client id into the configuration of the server");
    }
    if (rc < 0)
        return rc;
    rv_buf_clear(&o->body);
    rv_buf_clear(&o->authorization);
    rv_jw w = rv_jw_on(&o->body);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "client_name", "reeve");
    rv_jw_kv_text(&w, "application_type", "native");
    rv_jw_key(&w, "redirect_uris");
    rv_jw_arr(&w);
    rv_jw_text(&w, o->config.redirect_uri);
    rv_jw_arr_end(&w);
    rv_jw_key(&w, "grant_types");
    rv_jw_arr(&w);
    rv_jw_text(&w, "authorization_code");
    rv_jw_text(&w, "refresh_token");
    rv_jw_arr_end(&w);
    rv_jw_key(&w, "response_types");
    rv_jw_arr(&w);
    rv_jw_text(&w, "code");
    rv_jw_arr_end(&w);
    rv_jw_kv_text(&w, "token_endpoint_auth_method", method_for_registration(o));
    if (o->scope.len)
        rv_jw_kv_str(&w, "scope", rv_buf_str(&o->scope));
    rv_jw_obj_end(&w);
    o->state = OAUTH_REGISTER;
    return oauth_post(o, url, "application/json", err);
}

/* How the client shows who it is: in the header, unless the server or its registration says in the form. */
static bool uses_form(const rv_oauth *o)
{
    static const char key[] = "token_endpoint_auth_methods_supported";
    json_object *client = o->config.client_id ? NULL : kept_client(o);
    const char *method = NULL;

    if (client && rv_json_get_text(client, "method", &method))
        return strcmp(method, "client_secret_post") == 0;
    return oauth_supports(o->metadata, key, "client_secret_post") &&
           !oauth_supports(o->metadata, key, "client_secret_basic");
}

void oauth_put_basic(rv_oauth *o, const char *id, const char *secret)
{
    RV_AUTO(rv_buf_fini) rv_buf pair = RV_BUF_INIT(OAUTH_MAX_TEXT);

    rv_mcp_url_encode(rv_str_of(id), &pair);
    rv_buf_putc(&pair, ':');
    rv_mcp_url_encode(rv_str_of(secret), &pair);
    rv_buf_puts(&o->authorization, "Basic ");
    rv_base64_write(rv_buf_str(&pair), &o->authorization);
    if (pair.rc < 0)
        o->authorization.rc = pair.rc;
    rv_wipe(pair.ptr, pair.len);
}

static int put_client(rv_oauth *o, rv_err **err)
{
    const char *secret, *id = oauth_client(o, &secret);

    if (!id) /* an assertion may say enough */
        return 0;
    if (o->config.private_key && (id == o->config.client_id || id == o->config.metadata_url))
        return oauth_put_assertion(o, id, err);
    if (secret && !uses_form(o)) {
        oauth_put_basic(o, id, secret);
        return 0;
    }
    oauth_put(&o->body, "client_id", rv_str_of(id));
    if (secret)
        oauth_put(&o->body, "client_secret", rv_str_of(secret));
    return 0;
}

static void put_scope(rv_oauth *o)
{
    if (o->scope.len)
        oauth_put(&o->body, "scope", rv_buf_str(&o->scope));
}

/* Why the client may have a token. */
static int put_grant(rv_oauth *o, rv_err **err)
{
    const char *refresh = NULL;
    rv_str assertion;
    int rc = 0;

    if (o->state == OAUTH_REFRESH && rv_json_get_text(o->kept, "refresh_token", &refresh)) {
        oauth_put(&o->body, "grant_type", RV_STR_LIT("refresh_token"));
        oauth_put(&o->body, "refresh_token", rv_str_of(refresh));
        return 0;
    }
    switch (o->config.grant) {
    case RV_OAUTH_PERSON:
    case RV_N_OAUTH_GRANTS:
        oauth_put(&o->body, "grant_type", RV_STR_LIT("authorization_code"));
        oauth_put(&o->body, "code", rv_buf_str(&o->code));
        oauth_put(&o->body, "redirect_uri", rv_str_of(o->config.redirect_uri));
        oauth_put(&o->body, "code_verifier", rv_str_of(o->verifier));
        break;
    case RV_OAUTH_CLIENT:
        oauth_put(&o->body, "grant_type", RV_STR_LIT("client_credentials"));
        put_scope(o);
        break;
    case RV_OAUTH_ASSERTION:
    case RV_OAUTH_ID_TOKEN:
        rc = oauth_assertion(o, &assertion, err);
        if (rc < 0)
            return rc;
        oauth_put(&o->body, "grant_type", RV_STR_LIT("urn:ietf:params:oauth:grant-type:jwt-bearer"));
        oauth_put(&o->body, "assertion", assertion);
        put_scope(o);
        break;
    }
    return 0;
}

int oauth_write_token(rv_oauth *o, rv_err **err)
{
    const char *url = NULL;
    int rc = oauth_endpoint(o, "token_endpoint", &url, err);

    rv_buf_clear(&o->body);
    rv_buf_clear(&o->authorization);
    if (rc == 0)
        rc = put_grant(o, err);
    if (rc < 0)
        return rc;
    oauth_put(&o->body, "resource", oauth_resource(o));
    rc = put_client(o, err);
    return rc < 0 ? rc : oauth_post(o, url, "application/x-www-form-urlencoded", err);
}

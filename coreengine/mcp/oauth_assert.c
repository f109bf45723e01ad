/* Assertions: JWTs that say who the client is, or why it may have a token (RFC 7523, 8693). */
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/mcp/oauth_internal.h"

#define LIFE_S        60                 /* of an assertion: it is used at once, and clocks differ a little */
#define MAX_ASSERTION ((size_t)12 << 10) /* bytes: with the rest of its form it fits OAUTH_MAX_TEXT */
#define TOKEN_TYPE    "urn:ietf:params:oauth:token-type:" /* of RFC 8693 */

/* --- the client signs who it is --- */

static void put_part(rv_buf *json, rv_buf *out)
{
    oauth_base64url((const unsigned char *)json->ptr, json->len, out);
    if (json->rc < 0)
        out->rc = json->rc;
    rv_buf_clear(json);
}

static void write_head(const rv_oauth *o, const struct rv_signer *key, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "alg", rv_signer_algorithm(key));
    rv_jw_kv_text(&w, "typ", "JWT");
    if (o->config.key_id)
        rv_jw_kv_text(&w, "kid", o->config.key_id);
    rv_jw_obj_end(&w);
}

/* The issuer is the audience: an authorization server that is not the one that was meant cannot use it elsewhere. */
static void write_claims(const rv_oauth *o, const char *client_id, rv_buf *out)
{
    char id[2 * OAUTH_ID_BYTES + 1] = "";
    rv_jw w = rv_jw_on(out);

    rv_hex_make(o->assertion_id, sizeof o->assertion_id, id);
    id[sizeof id - 1] = '\0';
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "iss", client_id);
    rv_jw_kv_text(&w, "sub", client_id);
    rv_jw_kv_text(&w, "aud", o->issuer);
    rv_jw_kv_text(&w, "jti", id);
    rv_jw_kv_int(&w, "iat", o->now_us / 1000000);
    rv_jw_kv_int(&w, "exp", o->now_us / 1000000 + LIFE_S);
    rv_jw_obj_end(&w);
}

static int sign(const rv_oauth *o, const struct rv_signer *key, const char *client_id, rv_buf *out, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf part = RV_BUF_INIT(OAUTH_MAX_TEXT);

    write_head(o, key, &part);
    put_part(&part, out);
    rv_buf_putc(out, '.');
    write_claims(o, client_id, &part);
    put_part(&part, out);
    int rc = rv_buf_check(out, "an assertion", err);
    if (rc == 0)
        rc = rv_sign(key, rv_buf_str(out), o->seed, &part, err);
    rv_buf_putc(out, '.');
    put_part(&part, out);
    return rc < 0 ? rc : rv_buf_check(out, "an assertion", err);
}

int oauth_put_assertion(rv_oauth *o, const char *client_id, rv_err **err)
{
    static const char key_name[] = "token_endpoint_auth_signing_alg_values_supported";
    RV_AUTO(rv_buf_fini) rv_buf jwt = RV_BUF_INIT(OAUTH_MAX_TEXT);
    struct rv_signer key;
    int rc = rv_signer_read(rv_str_of(o->config.private_key), "private_key", &key, err);

    if (rc < 0)
        return rc;
    if (o->metadata && rv_json_get_arr(o->metadata, key_name) &&
        !oauth_supports(o->metadata, key_name, rv_signer_algorithm(&key))) {
        rc = RV_FAIL(err, RV_E_DENIED, "the authorization server takes no assertion signed with %s",
                     rv_signer_algorithm(&key));
        rv_err_set_hint(err, "write a private_key on P-256 for ES256, or of RSA for RS256");
    }
    if (rc == 0)
        rc = sign(o, &key, client_id, &jwt, err);
    rv_wipe(&key, sizeof key);
    if (rc < 0)
        return rc;
    oauth_put(&o->body, "client_id", rv_str_of(client_id));
    oauth_put(&o->body, "client_assertion_type", RV_STR_LIT("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"));
    oauth_put(&o->body, "client_assertion", rv_buf_str(&jwt));
    return 0;
}

/* --- an identity provider makes an assertion --- */

int oauth_write_exchange(rv_oauth *o, rv_err **err)
{
    const struct rv_oauth_config *c = &o->config;

    if (!c->id_token || !c->idp_token_endpoint || !c->idp_client_id)
        return RV_FAIL(err, RV_E_DENIED, "auth needs id_token, idp_token_endpoint and idp_client_id for its grant");
    int rc = oauth_check_url(c->idp_token_endpoint, "idp_token_endpoint", err);
    if (rc < 0)
        return rc;
    o->state = OAUTH_EXCHANGE;
    rv_buf_clear(&o->body);
    rv_buf_clear(&o->authorization);
    oauth_put(&o->body, "grant_type", RV_STR_LIT("urn:ietf:params:oauth:grant-type:token-exchange"));
    oauth_put(&o->body, "requested_token_type", RV_STR_LIT(TOKEN_TYPE "id-jag"));
    oauth_put(&o->body, "audience", rv_str_of(o->issuer));
    oauth_put(&o->body, "resource", oauth_resource(o));
    if (o->scope.len)
        oauth_put(&o->body, "scope", rv_buf_str(&o->scope));
    oauth_put(&o->body, "subject_token", rv_str_of(c->id_token));
    oauth_put(&o->body, "subject_token_type", RV_STR_LIT(TOKEN_TYPE "id_token"));
    if (c->idp_client_secret)
        oauth_put_basic(o, c->idp_client_id, c->idp_client_secret);
    else
        oauth_put(&o->body, "client_id", rv_str_of(c->idp_client_id));
    return oauth_post(o, c->idp_token_endpoint, "application/x-www-form-urlencoded", err);
}

int oauth_read_exchange(rv_oauth *o, json_object *doc, rv_err **err)
{
    const char *token = NULL, *type = NULL;

    if (!rv_json_get_text(doc, "issued_token_type", &type) || strcmp(type, TOKEN_TYPE "id-jag") != 0 ||
        !rv_json_get_text(doc, "access_token", &token) || !token[0])
        return RV_FAIL(err, RV_E_PARSE, "the answer of the identity provider has no assertion");
    rv_buf_clear(&o->code);
    rv_buf_puts(&o->code, token);
    int rc = rv_buf_check(&o->code, "an assertion", err);
    o->state = OAUTH_TOKEN;
    return rc < 0 ? rc : oauth_write_token(o, err);
}

/* --- an assertion is sent to the server that it is for, and to no other --- */

static bool is_for(const rv_oauth *o, json_object *audience)
{
    rv_str text = rv_json_str(audience), issuer = rv_str_of(o->issuer);
    const char *endpoint = NULL;

    if (!json_object_is_type(audience, json_type_string))
        return false;
    if (o->metadata && rv_json_get_text(o->metadata, "token_endpoint", &endpoint) && rv_str_is(text, endpoint))
        return true;
    text.len -= text.len > 0 && text.ptr[text.len - 1] == '/';
    issuer.len -= issuer.len > 0 && issuer.ptr[issuer.len - 1] == '/';
    return rv_str_eq(text, issuer);
}

/* The claims of a JWT; *out NULL: it is not one. The authorization server checks its signature. */
static int claims_of(rv_str jwt, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_ASSERTION, .max_depth = 32, .what = "an assertion"};
    RV_AUTO(rv_buf_fini) rv_buf digits = RV_BUF_INIT(MAX_ASSERTION + 4);
    RV_AUTO(rv_buf_fini) rv_buf bytes = RV_BUF_INIT(MAX_ASSERTION);
    const char *first = memchr(jwt.ptr, '.', jwt.len);
    const char *second = first ? memchr(first + 1, '.', jwt.len - (size_t)(first + 1 - jwt.ptr)) : NULL;

    for (const char *p = first ? first + 1 : NULL; second && p < second; p++)
        rv_buf_putc(&digits, *p == '-' ? '+' : *p == '_' ? '/' : *p);
    while (digits.len % 4)
        rv_buf_putc(&digits, '=');
    *out = NULL;
    bool is_read = second && digits.rc == 0 && rv_base64_read(rv_buf_str(&digits), &bytes);
    if (digits.rc == RV_E_NOMEM || bytes.rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "read an assertion");
    int rc = is_read ? rv_json_try_parse(rv_buf_str(&bytes), &opts, out, err) : 0;
    if (rc < 0)
        return rc;
    if (*out && !json_object_is_type(*out, json_type_object)) {
        json_object_put(*out);
        *out = NULL;
    }
    return 0;
}

int oauth_assertion(rv_oauth *o, rv_str *out, rv_err **err)
{
    rv_str jwt =
        o->config.grant == RV_OAUTH_ASSERTION ? rv_str_trim(rv_str_of(o->config.assertion)) : rv_buf_str(&o->code);
    json_object *claims = NULL, *audience = NULL;
    int rc = jwt.len > 0 && jwt.len <= MAX_ASSERTION ? claims_of(jwt, &claims, err) : 0;

    if (rc < 0)
        return rc;
    if (!claims)
        return RV_FAIL(err, RV_E_INVALID, "the assertion for the server is not a JWT of at most 12 KiB");
    json_object_object_get_ex(claims, "aud", &audience);
    bool fits = is_for(o, audience);
    for (size_t i = 0;
         !fits && json_object_is_type(audience, json_type_array) && i < json_object_array_length(audience); i++)
        fits = is_for(o, json_object_array_get_idx(audience, i));
    json_object_put(claims);
    if (!fits) {
        rc = RV_FAIL(err, RV_E_DENIED, "the assertion is not for the authorization server of the server, %.*s", 300,
                     o->issuer);
        rv_err_set_hint(err, "its audience (the claim aud) has to name that one; it was not sent");
        return rc;
    }
    *out = jwt;
    return 0;
}

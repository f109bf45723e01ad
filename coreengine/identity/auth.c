/* The authenticator: settings checked once; the credentials of a request; what they are worth. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coreengine/base/base.h"
#include "coreengine/identity/identity_internal.h"

#define MAX_ARENA  ((size_t)256 << 10) /* bytes of secrets and settings: each secret is a file of 64 KiB at most */
#define MIN_MASTER 16                  /* bytes */
#define MIN_SECRET 32                  /* bytes: RFC 7518, section 3.2, for HS256; a shorter one is refused */
#define MAX_SECRET ((size_t)4096)      /* bytes; a longer one is refused: a wrong file */
#define JWT_COOKIE "access_token"

/* --- settings --- */

static int keep(rv_auth *auth, const char *text, const char **out, rv_err **err)
{
    if (!text)
        return 0;
    *out = rv_arena_dup(auth->arena, rv_str_of(text));
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "keep the settings of identities");
}

static int keep_master(rv_auth *auth, const char *key, rv_err **err)
{
    if (!key)
        return 0;
    if (strlen(key) < MIN_MASTER)
        return RV_FAIL(err, RV_E_INVALID, "the key of --api-key-file has %zu bytes; %d are the least", strlen(key),
                       MIN_MASTER);
    identity_secret_digest(rv_str_of(key), auth->master_digest);
    auth->has_master_key = true;
    return 0;
}

static int keep_secret(rv_auth *auth, const char *secret, rv_err **err)
{
    size_t n = secret ? strlen(secret) : 0;

    if (!secret)
        return 0;
    if (n < MIN_SECRET || n > MAX_SECRET)
        return RV_FAIL(err, RV_E_INVALID, "the secret of --jwt-secret-file has %zu bytes; %d to %zu are allowed", n,
                       MIN_SECRET, MAX_SECRET);
    auth->secret = rv_str_dup(rv_str_of(secret));
    auth->n_secret = n;
    return auth->secret ? 0 : RV_FAIL(err, RV_E_NOMEM, "keep the secret of tokens");
}

static int keep_proxies(rv_auth *auth, const char *list, rv_err **err)
{
    rv_str rest = rv_str_of(list), word;

    while ((word = identity_list_next(&rest)).len > 0) {
        if (auth->n_proxies == RV_MAX_NETWORKS)
            return RV_FAIL(err, RV_E_LIMIT, "--trusted-proxies has more than %d networks", RV_MAX_NETWORKS);
        if (!identity_network_read(word, &auth->proxies[auth->n_proxies++])) {
            RV_FAIL(err, RV_E_INVALID, "--trusted-proxies: \"%.*s\" is not an address or a network",
                    RV_STR_ARG(rv_utf8_cut(word, 60)));
            rv_err_set_hint(err, "write 10.0.0.7, 10.0.0.0/8, ::1 or fd00::/8; bits behind the length have to be zero");
            return RV_E_INVALID;
        }
    }
    return 0;
}

static int keep_origins(rv_auth *auth, const char *list, rv_err **err)
{
    rv_str rest = rv_str_of(list), word;

    while ((word = identity_list_next(&rest)).len > 0) {
        if (rv_str_is(word, "*")) {
            auth->any_origin = true;
        } else if (!identity_is_origin(word)) {
            RV_FAIL(err, RV_E_INVALID, "--cors-origins: \"%.*s\" is not an origin", RV_STR_ARG(rv_utf8_cut(word, 60)));
            rv_err_set_hint(err, "write https://app.example.com: scheme, host and port in lower case, no path");
            return RV_E_INVALID;
        }
    }
    return keep(auth, list, &auth->origins, err);
}

static int keep_tokens(rv_auth *auth, const struct rv_identity_opts *o, rv_err **err)
{
    int rc = 0;

    if (o->jwt_tenant && !identity_is_store_id(rv_str_of(o->jwt_tenant)))
        return RV_FAIL(err, RV_E_INVALID, "--jwt-tenant is not an id of 1 to %d bytes without control characters",
                       RV_IDENTITY_MAX_ID);
    if (o->jwt_scopes) {
        rc = rv_scopes_parse(rv_str_of(o->jwt_scopes), &auth->jwt_scopes, err);
        auth->has_jwt_scopes = true;
        if (rc < 0)
            return RV_WRAP(err, rc, "--jwt-scopes");
    }
    if ((rc = keep_secret(auth, o->jwt_secret, err)) < 0 || (rc = keep(auth, o->issuer, &auth->issuer, err)) < 0 ||
        (rc = keep(auth, o->audiences, &auth->audiences, err)) < 0)
        return rc;
    return keep(auth, o->jwt_tenant, &auth->jwt_tenant, err);
}

static int fill_in(rv_auth *auth, const struct rv_identity_opts *o, int64_t now_us, rv_err **err)
{
    int rc;

    auth->skew_s = o->skew_s;
    auth->login_s = o->login_s;
    auth->per_minute = o->requests_per_minute;
    auth->failed_per_minute = o->failed_logins_a_minute;
    auth->trust_user_header = o->trust_user_header;
    auth->any_user_id = o->any_user_id;
    auth->always_ask = o->always_ask;
    if ((rc = keep_master(auth, o->master_key, err)) < 0 || (rc = keep_tokens(auth, o, err)) < 0 ||
        (rc = keep_proxies(auth, o->trusted_proxies, err)) < 0 || (rc = keep_origins(auth, o->cors_origins, err)) < 0 ||
        (rc = keep(auth, o->hosts, &auth->hosts, err)) < 0 ||
        (rc = identity_rates_new(rv_rand_system(), &auth->rates, err)) < 0)
        return rc;
    return o->jwks ? identity_key_file_new(o->jwks, now_us, &auth->key_file, err) : 0;
}

int rv_auth_new(const struct rv_identity_opts *opts, int64_t now_us, rv_auth **out, rv_err **err)
{
    rv_auth *auth = calloc(1, sizeof *auth);

    if (!auth || !(auth->arena = rv_arena_new(MAX_ARENA))) {
        free(auth);
        return RV_FAIL(err, RV_E_NOMEM, "set up identities");
    }
    int rc = fill_in(auth, opts, now_us, err);
    if (rc < 0)
        rv_auth_free(auth);
    else
        *out = auth;
    return rc;
}

void rv_auth_free(rv_auth *auth)
{
    if (!auth)
        return;
    rv_secret_wipe(auth->secret, auth->n_secret);
    rv_secret_wipe(auth->master_digest, sizeof auth->master_digest);
    free(auth->secret);
    identity_key_file_free(auth->key_file);
    identity_rates_free(auth->rates);
    rv_arena_free(auth->arena);
    free(auth);
}

/* --- keys of tokens --- */

int rv_auth_refresh(rv_auth *auth, int64_t now_us, rv_err **err)
{
    return auth->key_file ? identity_key_file_look(auth->key_file, now_us, err) : 0;
}

bool rv_auth_is_open(const rv_auth *auth, bool has_keys)
{
    return !auth->always_ask && !has_keys && !auth->has_master_key && !auth->secret && !auth->key_file;
}

/* --- credentials --- */

static bool takes_tokens(const rv_auth *auth)
{
    return auth->secret || auth->key_file;
}

/* What follows "Bearer"; characters of RFC 6750 and no others. 0: no such header; 1: *out. */
static int read_bearer(const struct rv_caller *c, rv_str *out, struct rv_refusal *refusal)
{
    rv_str value;
    int there = identity_caller_header(c, "authorization", &value);

    if (there < 0)
        return identity_refuse_malformed(refusal, "there are several Authorization headers");
    if (there == 0)
        return 0;
    if (value.len < 8 || strncasecmp(value.ptr, "bearer ", 7) != 0)
        return identity_refuse_malformed(refusal, "Authorization is not \"Bearer\" and a key or token");
    *out = rv_str_trim((rv_str){value.ptr + 7, value.len - 7});
    for (size_t i = 0; i < out->len; i++)
        if (!rv_is_digit(out->ptr[i]) && !rv_is_letter(out->ptr[i]) && !(out->ptr[i] && strchr("-._~+/=", out->ptr[i])))
            return identity_refuse_malformed(refusal,
                                             "what follows \"Bearer\" has characters that no key and no token has");
    if (out->len == 0 || out->len > RV_JWT_MAX)
        return identity_refuse_malformed(
            refusal, "what follows \"Bearer\" is empty or longer than " RV_LIMIT_TEXT(RV_JWT_MAX_KB) " KB");
    return 1;
}

static bool is_master(const rv_auth *auth, rv_str text)
{
    unsigned char digest[RV_DIGEST];

    identity_secret_digest(text, digest);
    bool same = identity_bytes_equal(digest, auth->master_digest, sizeof digest);
    rv_secret_wipe(digest, sizeof digest);
    return same && auth->has_master_key;
}

static bool has_two_dots(rv_str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += s.ptr[i] == '.';
    return n == 2;
}

static void sort_out(const rv_auth *auth, rv_str text, bool is_bearer, struct rv_credentials *out)
{
    if (is_master(auth, text)) {
        out->kind = RV_CREDENTIAL_MASTER_KEY;
    } else if (is_bearer && takes_tokens(auth) && has_two_dots(text)) {
        out->kind = RV_CREDENTIAL_JWT;
        out->token = text;
    } else {
        out->kind = RV_CREDENTIAL_KEY;
        out->is_foreign = text.len < 3 || memcmp(text.ptr, "rv_", 3) != 0;
        if (!rv_api_key_read(text, out->id, out->hash))
            identity_secret_hash(text, out->hash); /* as much work as for a key */
    }
}

static int read_cookies(const rv_auth *auth, const struct rv_caller *c, struct rv_credentials *out,
                        struct rv_refusal *refusal)
{
    rv_str value;
    int there = identity_caller_cookie(c, RV_LOGIN_COOKIE, &value);

    if (there < 0)
        return identity_refuse_malformed(refusal, "there are several cookies of a login");
    out->is_ambient = true;
    if (there > 0) {
        out->kind = RV_CREDENTIAL_LOGIN;
        identity_secret_hash(value, out->hash);
        return 0;
    }
    if (!takes_tokens(auth) || (there = identity_caller_cookie(c, JWT_COOKIE, &value)) == 0)
        return 0;
    if (there < 0)
        return identity_refuse_malformed(refusal, "there are several cookies with a token");
    out->kind = RV_CREDENTIAL_JWT;
    out->token = value;
    return 0;
}

int rv_auth_read_credentials(const rv_auth *auth, const struct rv_caller *c, struct rv_credentials *out,
                             struct rv_refusal *refusal)
{
    rv_str bearer = {NULL, 0}, key = {NULL, 0};
    int has_bearer = read_bearer(c, &bearer, refusal), has_key;

    *out = (struct rv_credentials){.kind = RV_CREDENTIAL_NONE};
    if (has_bearer < 0)
        return has_bearer;
    has_key = identity_caller_header(c, "x-api-key", &key);
    if (has_key < 0)
        return identity_refuse_malformed(refusal, "there are several X-Api-Key headers");
    if (has_key > 0 && (key.len == 0 || key.len > RV_JWT_MAX))
        return identity_refuse_malformed(refusal,
                                         "X-Api-Key is empty or longer than " RV_LIMIT_TEXT(RV_JWT_MAX_KB) " KB");
    if (has_key > 0 && has_bearer > 0 && !rv_str_eq(key, bearer))
        return identity_refuse_malformed(refusal, "X-Api-Key and Authorization differ: send one of them");
    if (has_bearer > 0 || has_key > 0) {
        sort_out(auth, has_bearer > 0 ? bearer : key, has_bearer > 0, out);
        return 0;
    }
    return read_cookies(auth, c, out, refusal);
}

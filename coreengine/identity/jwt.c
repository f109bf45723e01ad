/* JSON Web Tokens: the signature first, then the claims. Each part has one spelling; whatever a rule does not allow is
 * refused, also where a token library would let it pass. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/hmac.h>

#include "coreengine/base/base.h"
#include "coreengine/identity/identity_internal.h"

#define MAX_DEPTH 16 /* levels of a token's claims: those that are read have two or three; deeper ones are refused */

struct token {
    rv_str signed_part;    /* of the text */
    unsigned char *bytes;  /* owned: what the parts stand for, one after the other */
    rv_str header, claims; /* views of bytes */
    const unsigned char *signature;
    size_t n_signature;
};

static int deny(struct rv_jwt *out, const char *why)
{
    snprintf(out->why, sizeof out->why, "%s", why);
    return RV_E_DENIED;
}

static int deny_kid(struct rv_jwt *out, const char *why, rv_str kid)
{
    rv_str shown = rv_utf8_cut(kid, 60);

    if (!kid.ptr)
        return deny(out, why);
    snprintf(out->why, sizeof out->why, "%s (kid \"%.*s\")", why, RV_STR_ARG(shown));
    for (char *p = out->why; *p; p++) /* it comes from the caller, and goes to the log */
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    return RV_E_DENIED;
}

/* --- parts --- */

static int split(rv_str text, struct token *t, struct rv_jwt *out, rv_err **err)
{
    const char *first = rv_str_find(text, '.'), *second, *end = first;
    size_t n[3];

    if (first)
        end = text.ptr + text.len;

    second = first ? memchr(first + 1, '.', (size_t)(end - first - 1)) : NULL;
    if (text.len > RV_JWT_MAX)
        return deny(out, "the token is longer than " RV_LIMIT_TEXT(RV_JWT_MAX_KB) " KB");
    if (!second || memchr(second + 1, '.', (size_t)(end - second - 1)))
        return deny(out, "the token does not have three parts");
    const rv_str parts[3] = {{text.ptr, (size_t)(first - text.ptr)},
                             {first + 1, (size_t)(second - first - 1)},
                             {second + 1, (size_t)(end - second - 1)}};
    t->signed_part = (rv_str){text.ptr, (size_t)(second - text.ptr)};
    t->bytes = malloc(text.len + 3);
    if (!t->bytes)
        return RV_FAIL(err, RV_E_NOMEM, "read a token");
    unsigned char *at = t->bytes, *starts[3];
    for (int i = 0; i < 3; at += n[i++]) {
        starts[i] = at;
        if (parts[i].len == 0 || !identity_base64url_read(parts[i], at, &n[i]))
            return deny(out, "a part of the token is not base64url in its one spelling");
    }
    t->header = (rv_str){(const char *)starts[0], n[0]};
    t->claims = (rv_str){(const char *)starts[1], n[1]};
    t->signature = starts[2];
    t->n_signature = n[2];
    return 0;
}

/* An object without duplicate names, or RV_E_DENIED. */
static int parse(rv_str text, const char *why, json_object **v, struct rv_jwt *out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_JWT_MAX, .max_depth = MAX_DEPTH};
    rv_err *problem = NULL;
    int rc = rv_json_parse(text, &opts, v, &problem);
    bool lacked = rv_err_is(problem, RV_E_NOMEM);

    rv_err_free(problem);
    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read a token");
    if (rc < 0 || !json_object_is_type(*v, json_type_object))
        return deny(out, why);
    return 0;
}

/* --- the header --- */

static bool has_fine_type(json_object *header)
{
    json_object *v = NULL;
    char lower[32];

    if (!json_object_object_get_ex(header, "typ", &v))
        return true;
    if (!identity_text_keep(rv_json_str(v), lower, sizeof lower))
        return false;
    for (char *p = lower; *p; p++)
        *p = rv_ascii_lower(*p);
    return strcmp(lower, "jwt") == 0 || strcmp(lower, "at+jwt") == 0 || strcmp(lower, "application/at+jwt") == 0;
}

static int read_header(json_object *header, enum rv_jwt_alg *alg, rv_str *kid, struct rv_jwt *out)
{
    static const char *const names[] = {[RV_JWT_HS256] = "HS256", [RV_JWT_RS256] = "RS256", [RV_JWT_ES256] = "ES256"};
    RV_EACH_HAS_ROW(names, RV_N_JWT_ALGS);
    json_object *v = NULL;
    size_t i = 0;

    *kid = (rv_str){NULL, 0};
    if (json_object_object_get_ex(header, "crit", NULL))
        return deny(out, "the token has \"crit\"");
    if (!json_object_object_get_ex(header, "alg", &v))
        return deny(out, "the token names no algorithm");
    while (i < RV_COUNT(names) && !rv_str_is(rv_json_str(v), names[i]))
        i++;
    if (i == RV_COUNT(names))
        return deny(out, "the algorithm of the token is not one of HS256, RS256, ES256");
    *alg = (enum rv_jwt_alg)i;
    if (!has_fine_type(header))
        return deny(out, "the type of the token is neither JWT nor at+jwt");
    if (!json_object_object_get_ex(header, "kid", &v))
        return 0;
    if (!json_object_is_type(v, json_type_string))
        return deny(out, "\"kid\" is not a string");
    *kid = rv_json_str(v);
    if (!kid->ptr) /* an empty one names a key, too */
        kid->ptr = "";
    return 0;
}

/* --- the signature --- */

static bool verify_hmac(rv_str secret, const struct token *t)
{
    struct hmac_sha256_ctx ctx;
    unsigned char mac[RV_DIGEST];

    hmac_sha256_set_key(&ctx, secret.len, (const uint8_t *)secret.ptr);
    hmac_sha256_update(&ctx, t->signed_part.len, (const uint8_t *)t->signed_part.ptr);
    hmac_sha256_digest(&ctx, sizeof mac, mac);
    bool same = t->n_signature == sizeof mac && identity_bytes_equal(mac, t->signature, sizeof mac);
    rv_secret_wipe(&ctx, sizeof ctx);
    rv_secret_wipe(mac, sizeof mac);
    return same;
}

static int verify(const struct rv_jwt_rules *rules, enum rv_jwt_alg alg, rv_str kid, const struct token *t,
                  struct rv_jwt *out)
{
    unsigned char digest[RV_DIGEST];

    if (alg == RV_JWT_HS256) { /* the secret has no name: a kid says nothing about it */
        if (rules->secret.len == 0)
            return deny(out, "no secret for HS256 is set up");
        return verify_hmac(rules->secret, t) ? 0 : deny_kid(out, "the signature is wrong", kid);
    }
    int key = rules->keys ? identity_jwks_find(rules->keys, alg, kid) : -1;
    if (key < 0)
        return deny_kid(out,
                        key == -2 ? "the token does not say by which of several keys it is signed"
                                  : "there is no key for the token",
                        kid);
    identity_secret_digest(t->signed_part, digest);
    if (!identity_jwks_verify(rules->keys, key, digest, t->signature, t->n_signature))
        return deny_kid(out, "the signature is wrong", kid);
    return 0;
}

/* --- claims --- */

/* -1: not a number; 0: missing. */
static int number_of(json_object *claims, const char *name, double *out)
{
    json_object *v = NULL;

    if (!json_object_object_get_ex(claims, name, &v))
        return 0;
    if (!rv_json_is_number(v))
        return -1;
    *out = json_object_get_double(v);
    return isfinite(*out) ? 1 : -1;
}

/* An end counts to the microsecond, a beginning in whole seconds: in doubt the token is refused. */
static int check_times(json_object *claims, int64_t skew_s, int64_t now_us, struct rv_jwt *out)
{
    double exp = 0, begin = 0, now = (double)now_us / 1e6, second = floor(now), skew = (double)skew_s;

    if (number_of(claims, "exp", &exp) != 1)
        return deny(out, "\"exp\" is missing or not a number");
    if (exp + skew <= now)
        return deny(out, "the token has expired");
    static const struct {
        const char *name, *bad, *early;
    } begins[] = {{"nbf", "\"nbf\" is not a number", "the token is not valid yet"},
                  {"iat", "\"iat\" is not a number", "the token was issued in the future"}};
    for (size_t i = 0; i < RV_COUNT(begins); i++) {
        int there = number_of(claims, begins[i].name, &begin);
        if (there < 0)
            return deny(out, begins[i].bad);
        if (there > 0 && begin > second + skew)
            return deny(out, begins[i].early);
    }
    return 0;
}

static bool is_audience(const char *list, json_object *v)
{
    rv_str rest = rv_str_of(list), word;

    while ((word = identity_list_next(&rest)).len > 0)
        if (json_object_is_type(v, json_type_string) && rv_str_eq(rv_json_str(v), word))
            return true;
    return false;
}

static int check_parties(const struct rv_jwt_rules *rules, json_object *claims, struct rv_jwt *out)
{
    json_object *v = NULL;
    bool fits = false;

    if (rules->issuer && (!json_object_object_get_ex(claims, "iss", &v) || !json_object_is_type(v, json_type_string) ||
                          !rv_str_is(rv_json_str(v), rules->issuer)))
        return deny(out, "the token is of another issuer");
    if (!rules->audience)
        return 0;
    if (!json_object_object_get_ex(claims, "aud", &v))
        return deny(out, "the token has no audience");
    if (json_object_is_type(v, json_type_array))
        for (size_t i = 0; i < json_object_array_length(v); i++)
            fits = fits || is_audience(rules->audience, json_object_array_get_idx(v, i));
    else
        fits = is_audience(rules->audience, v);
    return fits ? 0 : deny(out, "the token is for another audience");
}

static void add_scopes(rv_str words, struct rv_jwt *out)
{
    rv_str word;

    while ((word = identity_list_next(&words)).len > 0)
        out->scopes |= identity_scope_bit(word); /* other words are for other services */
}

/* `scope`, a text with blanks between (RFC 9068), or `scopes`, an array or such a text. */
static int read_scopes(json_object *claims, struct rv_jwt *out)
{
    static const char *const names[] = {"scope", "scopes"};
    json_object *v = NULL;

    for (size_t n = 0; n < RV_COUNT(names); n++) {
        if (!json_object_object_get_ex(claims, names[n], &v))
            continue;
        out->has_scopes = true;
        if (json_object_is_type(v, json_type_array))
            for (size_t i = 0; i < json_object_array_length(v); i++)
                add_scopes(rv_json_str(json_object_array_get_idx(v, i)), out);
        else if (json_object_is_type(v, json_type_string))
            add_scopes(rv_json_str(v), out);
        else
            return deny(out, "the scopes of the token are neither a text nor an array");
    }
    return 0;
}

/* For people and prompts; what cannot be shown is left out. */
static void keep_shown(json_object *claims, const char *name, char *out, size_t size)
{
    json_object *v = NULL;
    rv_str text = json_object_object_get_ex(claims, name, &v) ? rv_json_str(v) : (rv_str){NULL, 0};

    for (size_t i = 0; i < text.len; i++)
        if (rv_utf8_control(text.ptr + i, text.len - i))
            return;
    identity_text_keep(text, out, size);
}

static int read_who(json_object *claims, struct rv_jwt *out)
{
    json_object *v = NULL;

    if (!json_object_object_get_ex(claims, "sub", &v) || !identity_is_store_id(rv_json_str(v)))
        return deny(out, "\"sub\" is missing or not an id");
    identity_text_keep(rv_json_str(v), out->subject, sizeof out->subject);
    if (json_object_object_get_ex(claims, "tenant_id", &v)) {
        if (!identity_is_store_id(rv_json_str(v)))
            return deny(out, "\"tenant_id\" is not an id");
        identity_text_keep(rv_json_str(v), out->tenant, sizeof out->tenant);
    }
    /* A token that renews others, or proves an address, opens nothing. */
    if (json_object_object_get_ex(claims, "type", &v) && !rv_str_is(rv_json_str(v), "access"))
        return deny(out, "the token is not an access token");
    keep_shown(claims, "email", out->email, sizeof out->email);
    keep_shown(claims, "name", out->name, sizeof out->name);
    return read_scopes(claims, out);
}

/* --- the verdict --- */

static int judge(const struct rv_jwt_rules *rules, const struct token *t, int64_t now_us, struct rv_jwt *out,
                 rv_err **err)
{
    json_object *header = NULL, *claims = NULL;
    enum rv_jwt_alg alg;
    rv_str kid;

    int rc = parse(t->header, "the header of the token is not a JSON object", &header, out, err);
    if (rc == 0)
        rc = read_header(header, &alg, &kid, out);
    if (rc == 0)
        rc = verify(rules, alg, kid, t, out);
    if (rc == 0)
        rc = parse(t->claims, "the claims of the token are not a JSON object", &claims, out, err);
    if (rc == 0)
        rc = check_times(claims, rules->skew_s, now_us, out);
    if (rc == 0)
        rc = check_parties(rules, claims, out);
    if (rc == 0)
        rc = read_who(claims, out);
    json_object_put(header);
    json_object_put(claims);
    return rc;
}

int identity_jwt_verify(const struct rv_jwt_rules *rules, rv_str token, int64_t now_us, struct rv_jwt *out,
                        rv_err **err)
{
    struct token t = {.bytes = NULL};

    *out = (struct rv_jwt){.has_scopes = false};
    int rc = split(token, &t, out, err);
    if (rc == 0)
        rc = judge(rules, &t, now_us, out, err);
    free(t.bytes);
    return rc;
}

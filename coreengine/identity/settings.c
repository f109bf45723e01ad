/* The settings: one row each, from which `reeve serve` has its flags and variables, and documents their meaning. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coreengine/identity/identity_internal.h"

#define IN(field) offsetof(struct rv_identity_opts, field)

const struct rv_identity_setting rv_identity_settings[] = {
    {"require-key", "REEVE_REQUIRE_KEY", NULL, "ask for a key even when none is set up, also on this machine", false,
     IN(always_ask), 0, 0},
    {"api-key-file", "REEVE_API_KEY", "FILE", "one key of level master, beside those of `reeve keys`; 16 bytes or more",
     true, IN(master_key), 0, 0},
    {"jwt-secret-file", "REEVE_JWT_SECRET", "FILE", "accept tokens signed with HS256 and this secret; 32 bytes or more",
     true, IN(jwt_secret), 0, 0},
    {"jwks", "REEVE_JWKS", "FILE",
     "accept tokens signed with RS256 or ES256 by a key of this file; read again when it changes", false, IN(jwks), 0,
     0},
    {"jwt-issuer", "REEVE_JWT_ISSUER", "TEXT", "what `iss` of a token has to be; not checked without it", false,
     IN(issuer), 0, 0},
    {"jwt-audience", "REEVE_JWT_AUDIENCE", "LIST", "one of these has to be in `aud` of a token; not checked without it",
     false, IN(audiences), 0, 0},
    {"jwt-tenant", "REEVE_JWT_TENANT", "ID", "tenant of tokens without `tenant_id`; such tokens are refused without it",
     false, IN(jwt_tenant), 0, 0},
    {"jwt-scopes", "REEVE_JWT_SCOPES", "LIST",
     "scopes of all tokens; without it a token says them itself, or has the usual ones", false, IN(jwt_scopes), 0, 0},
    {"jwt-skew", "REEVE_JWT_SKEW", "SECONDS", "how far the clocks of issuers may be off (default 30)", false,
     IN(skew_s), 0, 60},
    {"trusted-proxies", "REEVE_TRUSTED_PROXIES", "LIST",
     "addresses and networks of proxies whose X-Forwarded-* and X-OpenWebUI-User-* headers count", false,
     IN(trusted_proxies), 0, 0},
    {"trust-user-header", "REEVE_TRUST_USER_HEADER", NULL,
     "X-User-Id names the user of a caller who may act for all users of a tenant", false, IN(trust_user_header), 0, 0},
    {"any-user-id", "REEVE_ANY_USER_ID", NULL, "X-User-Id may be any id, not only a UUID", false, IN(any_user_id), 0,
     0},
    {"cors-origins", "REEVE_CORS_ORIGINS", "LIST", "origins whose pages may call the server, or * on loopback", false,
     IN(cors_origins), 0, 0},
    {"hosts", "REEVE_HOSTS", "LIST", "names beside localhost that callers without a key may use for this server", false,
     IN(hosts), 0, 0},
    {"login-time", "REEVE_LOGIN_TIME", "SECONDS", "how long a login of the page lasts (default 43200)", false,
     IN(login_s), 60, 2592000},
    {"requests-per-minute", "REEVE_REQUESTS_PER_MINUTE", "N",
     "requests of one key, user or address (default 0: no limit)", false, IN(requests_per_minute), 0, 1000000},
    {"failed-logins-per-minute", "REEVE_FAILED_LOGINS_PER_MINUTE", "N", "wrong keys of one address (default 10)", false,
     IN(failed_logins_a_minute), 1, 1000000},
};
const size_t rv_n_identity_settings = RV_COUNT(rv_identity_settings);

static int set_switch(bool *out, const struct rv_identity_setting *s, const char *value, rv_err **err)
{
    static const char *const words[] = {"1", "true", "on", "yes", "0", "false", "off", "no"};

    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (!value || strcasecmp(value, words[i]) == 0) {
            *out = i < 4;
            return 0;
        }
    return RV_FAIL(err, RV_E_INVALID, "%s is \"%.40s\": use 1 or 0", s->env, value);
}

static int set_number(int64_t *out, const struct rv_identity_setting *s, const char *value, rv_err **err)
{
    char *end = NULL;

    errno = 0;
    long long n = value && (rv_is_digit(*value)) ? strtoll(value, &end, 10) : -1;
    if (!end || *end || errno || n < s->min || n > s->max)
        return RV_FAIL(err, RV_E_INVALID, "--%s is \"%.40s\": use a number from %lld to %lld", s->flag,
                       value ? value : "", (long long)s->min, (long long)s->max);
    *out = n;
    return 0;
}

int rv_identity_opts_set(struct rv_identity_opts *opts, const struct rv_identity_setting *s, const char *value,
                         rv_err **err)
{
    void *at = (char *)opts + s->offset;

    if (!s->arg)
        return set_switch(at, s, value, err);
    if (s->max > 0)
        return set_number(at, s, value, err);
    if (!value || !*value)
        return RV_FAIL(err, RV_E_INVALID, "--%s is empty", s->flag);
    *(const char **)at = value;
    return 0;
}

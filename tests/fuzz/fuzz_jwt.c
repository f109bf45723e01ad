/* Tokens and sets of keys from anywhere: the first byte says which. A token that is accepted has one spelling, and none
 * of its characters can be another one; a verdict is the same twice. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/identity/identity_internal.h"
#include "tests/kit/fuzz.h"

#define SECRET "a secret of at least thirty-two bytes"
#define NOW_US INT64_C(1700000000000000)

static int verdict(rv_str token, struct rv_jwt *out)
{
    const struct rv_jwt_rules rules = {.secret = RV_STR_LIT(SECRET), .skew_s = 30};
    int rc = identity_jwt_verify(&rules, token, NOW_US, out, NULL);

    require(rc == 0 || rc == RV_E_DENIED);
    require((rc == 0) == (out->why[0] == 0));
    require(rv_utf8_valid(rv_str_of(out->why), NULL));
    return rc;
}

static void try_token(rv_str token)
{
    struct rv_jwt jwt, again;

    if (verdict(token, &jwt) < 0)
        return;
    require(identity_is_store_id(rv_str_of(jwt.subject)) && verdict(token, &again) == 0);
    require(strcmp(jwt.subject, again.subject) == 0 && jwt.scopes == again.scopes);
    char *copy = rv_str_dup(token);
    for (size_t i = 0; copy && i < token.len; i++) {
        copy[i] ^= 1;
        require(verdict((rv_str){copy, token.len}, &again) < 0);
        copy[i] ^= 1;
    }
    free(copy);
}

static void try_keys(rv_str text)
{
    rv_jwks *set = NULL;

    if (identity_jwks_parse(text, &set, NULL) < 0)
        return;
    require(identity_jwks_find(set, RV_JWT_RS256, (rv_str){NULL, 0}) != -1 ||
            identity_jwks_find(set, RV_JWT_ES256, (rv_str){NULL, 0}) != -1);
    identity_jwks_unref(set);
}

RV_FUZZ_TARGET(jwt)
{
    rv_str rest = {(const char *)data + 1, size ? size - 1 : 0};

    if (size > 0 && data[0] == 'k')
        try_keys(rest);
    else if (size > 0)
        try_token(rest);
    return 0;
}

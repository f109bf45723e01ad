/* Reads lines {token, jwks, secret, issuer, audience, skew, now (ms)} and answers each with {"sub": ...} for a token
 * that is accepted, {"why": ...} for another one. */
#include <stdio.h>

#include "coreengine/identity/identity_internal.h"
#include "tests/conformance/judge.h"

static rv_str text_of(json_object *row, const char *member)
{
    json_object *v = NULL;

    return json_object_object_get_ex(row, member, &v) ? rv_json_str(v) : (rv_str){NULL, 0};
}

/* The set is read once: all lines have the same. */
static const rv_jwks *keys_of(json_object *row)
{
    static rv_jwks *keys;

    if (!keys && identity_jwks_parse(text_of(row, "jwks"), &keys, NULL) < 0)
        fputs("the key set is not read\n", stderr);
    return keys;
}

void judge(json_object *row)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(1 << 20);
    const char *issuer = NULL, *audience = NULL;
    int64_t now_ms = 0, skew_s = 0;
    rv_jw w = rv_jw_on(&text);
    struct rv_jwt jwt;

    rv_json_get_text(row, "issuer", &issuer);
    rv_json_get_text(row, "audience", &audience);
    rv_json_get_int(row, "now", &now_ms);
    rv_json_get_int(row, "skew", &skew_s);
    const struct rv_jwt_rules rules = {.secret = text_of(row, "secret"),
                                       .keys = keys_of(row),
                                       .issuer = issuer,
                                       .audience = audience,
                                       .skew_s = skew_s};
    int rc = identity_jwt_verify(&rules, text_of(row, "token"), now_ms * 1000, &jwt, NULL);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, rc == 0 ? "sub" : "why", rc == 0 ? jwt.subject : jwt.why);
    rv_jw_obj_end(&w);
    puts(rv_buf_cstr(&text));
}

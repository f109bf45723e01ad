/* What credentials are worth: an identity, or a refusal that tells the caller nothing about what exists. */
#include <string.h>

#include "coreengine/identity/identity_internal.h"

#define UNKNOWN_KEY   "the API key is unknown, expired or revoked"
#define UNKNOWN_LOGIN "the login is over"
#define BAD_TOKEN     "the token is not valid"

/* --- by what is shown --- */

static int judge_nothing(const rv_auth *auth, const struct rv_caller *c, bool has_keys, struct rv_identity *out,
                         struct rv_refusal *refusal)
{
    if (!rv_auth_is_open(auth, has_keys)) {
        identity_refuse_token(refusal, NULL, "send an API key or a token: Authorization: Bearer ...");
        identity_refuse_reason(refusal, "no credentials");
        return RV_E_DENIED;
    }
    if (!identity_caller_is_here(auth, c)) {
        identity_refuse_token(refusal, NULL,
                              "without any key set up, only callers on the machine of the server are let in");
        identity_refuse_reason(
            refusal, "no key is set up, and the caller is not on this machine, came through a proxy, or named "
                     "another host");
        return RV_E_DENIED;
    }
    out->by = RV_BY_NOTHING;
    out->level = RV_LEVEL_MASTER;
    out->scopes = RV_SCOPES_ALL;
    identity_text_keep(RV_STR_LIT(RV_STORE_TENANT), out->tenant, sizeof out->tenant);
    return 0;
}

static int refuse_row(struct rv_refusal *refusal, const char *told, const char *why, const char *id)
{
    identity_refuse_token(refusal, "invalid_token", told);
    identity_refuse_reason(refusal, "%s (key %s)", why, id[0] ? id : "-");
    return RV_E_DENIED;
}

/* What the row says, when it is still good. */
static int take_row(const struct rv_api_key_row *row, const char *told, int64_t now_us, struct rv_identity *out,
                    struct rv_refusal *refusal)
{
    rv_str scopes = rv_str_of(row->scopes), word;

    if (row->revoked_us > 0)
        return refuse_row(refusal, told, "the key is revoked", row->id);
    if (row->expires_us > 0 && row->expires_us <= now_us)
        return refuse_row(refusal, told, "the key has expired", row->id);
    int level = rv_level_of(rv_str_of(row->level));
    bool is_sound = level >= 0 && identity_text_keep(rv_str_of(row->tenant), out->tenant, sizeof out->tenant) &&
                    out->tenant[0] && identity_text_keep(rv_str_of(row->user), out->user, sizeof out->user) &&
                    identity_text_keep(rv_str_of(row->id), out->key, sizeof out->key) &&
                    (out->user[0] != 0) == (level == RV_LEVEL_USER);
    if (!is_sound)
        return refuse_row(refusal, told, "the row of the key is damaged", row->id);
    out->level = (enum rv_level)level;
    while ((word = identity_list_next(&scopes)).len > 0)
        out->scopes |= identity_scope_bit(word);
    return 0;
}

static int judge_key(const struct rv_credentials *credentials, const struct rv_api_key_row *row, int64_t now_us,
                     struct rv_identity *out, struct rv_refusal *refusal)
{
    static const char nobodys[RV_HASH_MAX] = "0000000000000000000000000000000000000000000000000000000000000000";
    bool has_row = row && strlen(row->hash) == RV_HASH_MAX - 1 && strcmp(row->id, credentials->id) == 0;
    bool same = identity_bytes_equal(credentials->hash, has_row ? row->hash : nobodys, RV_HASH_MAX - 1);

    out->by = RV_BY_KEY;
    if (!has_row || !same)
        return refuse_row(refusal, UNKNOWN_KEY,
                          has_row ? "the secret of the key is wrong"
                                  : "the key is unknown; `reeve keys list` shows those of this store",
                          credentials->id);
    return take_row(row, UNKNOWN_KEY, now_us, out, refusal);
}

static int judge_login(const struct rv_api_key_row *row, int64_t now_us, struct rv_identity *out,
                       struct rv_refusal *refusal)
{
    out->by = RV_BY_LOGIN;
    if (!row)
        return refuse_row(refusal, UNKNOWN_LOGIN, "the login is unknown or has expired; log in again", "");
    return take_row(row, UNKNOWN_LOGIN, now_us, out, refusal);
}

static void judge_master(struct rv_identity *out)
{
    out->by = RV_BY_MASTER_KEY;
    out->level = RV_LEVEL_MASTER;
    out->scopes = RV_SCOPES_ALL;
    identity_text_keep(RV_STR_LIT(RV_STORE_TENANT), out->tenant, sizeof out->tenant);
}

static int judge_token(const rv_auth *auth, rv_str token, int64_t now_us, struct rv_identity *out,
                       struct rv_refusal *refusal, rv_err **err)
{
    rv_jwks *keys = auth->key_file ? identity_key_file_keys(auth->key_file) : NULL;
    const struct rv_jwt_rules rules = {.secret = {auth->secret, auth->n_secret},
                                       .keys = keys,
                                       .issuer = auth->issuer,
                                       .audience = auth->audiences,
                                       .skew_s = auth->skew_s};
    struct rv_jwt jwt;
    int rc = identity_jwt_verify(&rules, token, now_us, &jwt, err);
    identity_jwks_unref(keys);

    out->by = RV_BY_JWT;
    if (rc == 0 && !jwt.tenant[0] && !auth->jwt_tenant) {
        memcpy(jwt.why, "\"tenant_id\" is missing", sizeof "\"tenant_id\" is missing");
        rc = RV_E_DENIED;
    }
    if (rc == RV_E_DENIED) {
        identity_refuse_token(refusal, "invalid_token", BAD_TOKEN);
        identity_refuse_reason(refusal, "%s", jwt.why);
    }
    if (rc < 0)
        return rc;
    out->level = RV_LEVEL_USER;
    out->scopes = auth->has_jwt_scopes ? auth->jwt_scopes : jwt.has_scopes ? jwt.scopes : RV_SCOPES_USUAL;
    identity_text_keep(rv_str_of(jwt.tenant[0] ? jwt.tenant : auth->jwt_tenant), out->tenant, sizeof out->tenant);
    identity_text_keep(rv_str_of(jwt.subject), out->user, sizeof out->user);
    identity_text_keep(rv_str_of(jwt.email), out->email, sizeof out->email);
    identity_text_keep(rv_str_of(jwt.name), out->name, sizeof out->name);
    return 0;
}

/* --- what headers may say of those who may act for others --- */

static int name_tenant(const struct rv_caller *c, struct rv_identity *identity, struct rv_refusal *refusal)
{
    rv_str tenant;
    int there = identity_caller_header(c, "x-tenant-id", &tenant);

    if (there == 0)
        return 0;
    if (there < 0 || !identity_is_store_id(tenant))
        return identity_refuse_malformed(refusal, "X-Tenant-Id is not an id, or is there several times");
    if (identity->level == RV_LEVEL_MASTER) {
        identity_text_keep(tenant, identity->tenant, sizeof identity->tenant);
        return 0;
    }
    if (rv_str_is(tenant, identity->tenant))
        return 0;
    identity_refuse(refusal, 403, "other_tenant", "X-Tenant-Id is not the tenant of the key or token");
    identity_refuse_reason(refusal, "X-Tenant-Id is not %s", identity->tenant);
    return RV_E_DENIED;
}

static void keep_shown(const struct rv_caller *c, const char *header, char *out, size_t size)
{
    rv_str text;

    if (identity_caller_header(c, header, &text) != 1 || !rv_utf8_valid(text, NULL))
        return;
    for (size_t i = 0; i < text.len; i++)
        if (rv_utf8_control(text.ptr + i, text.len - i))
            return;
    if (text.len > 0 && text.len < size)
        identity_text_keep(text, out, size);
}

/* 1: the header named the user. */
static int name_user_by(const rv_auth *auth, const struct rv_caller *c, const char *header,
                        struct rv_identity *identity, struct rv_refusal *refusal)
{
    rv_str user;
    int there = identity_caller_header(c, header, &user);

    if (there == 0)
        return 0;
    bool is_sound = there > 0 &&
                    (auth->any_user_id
                         ? identity_is_store_id(user) && identity_text_keep(user, identity->user, sizeof identity->user)
                         : rv_uuid_read(user, identity->user));
    if (!is_sound)
        return identity_refuse_malformed(
            refusal, auth->any_user_id ? "the id of the user is empty, too long, has control characters, or is "
                                         "there several times"
                                       : "the id of the user is not a UUID, or is there several times");
    identity->level = RV_LEVEL_USER;
    return 1;
}

/* It was decided before: a header only says for whom of the caller's users the request is. */
static int name_user(const rv_auth *auth, const struct rv_caller *c, struct rv_identity *identity,
                     struct rv_refusal *refusal)
{
    int named = 0;

    keep_shown(c, "x-user-name", identity->name, sizeof identity->name);
    if (identity->level == RV_LEVEL_USER)
        return 0;
    if (auth->trust_user_header)
        named = name_user_by(auth, c, "x-user-id", identity, refusal);
    if (named > 0)
        keep_shown(c, "x-user-email", identity->email, sizeof identity->email);
    if (named != 0 || !identity_caller_is_proxy(auth, c))
        return named < 0 ? named : 0;
    named = name_user_by(auth, c, "x-openwebui-user-id", identity, refusal);
    if (named > 0) {
        keep_shown(c, "x-openwebui-user-email", identity->email, sizeof identity->email);
        keep_shown(c, "x-openwebui-user-name", identity->name, sizeof identity->name);
    }
    return named < 0 ? named : 0;
}

/* --- the verdict --- */

static int judge(const rv_auth *auth, const struct rv_caller *c, const struct rv_evidence *e, struct rv_identity *out,
                 struct rv_refusal *refusal, rv_err **err)
{
    const struct rv_credentials *credentials = e->credentials;

    switch (credentials->kind) {
    case RV_CREDENTIAL_NONE:
        return judge_nothing(auth, c, e->has_keys, out, refusal);
    case RV_CREDENTIAL_KEY:
        return credentials->is_foreign && rv_auth_is_open(auth, e->has_keys)
                   ? judge_nothing(auth, c, e->has_keys, out, refusal)
                   : judge_key(credentials, e->key, e->now_us, out, refusal);
    case RV_CREDENTIAL_MASTER_KEY:
        judge_master(out);
        return 0;
    case RV_CREDENTIAL_JWT:
        return judge_token(auth, credentials->token, e->now_us, out, refusal, err);
    case RV_CREDENTIAL_LOGIN:
        return judge_login(e->key, e->now_us, out, refusal);
    }
    return RV_FAIL(err, RV_E_INTERNAL, "credentials of no kind");
}

int rv_auth_verify(const rv_auth *auth, const struct rv_caller *c, const struct rv_evidence *e, struct rv_identity *out,
                   struct rv_refusal *refusal, rv_err **err)
{
    struct rv_identity who = {.peer = ""};
    struct rv_address client;

    if (identity_caller_client(auth, c, &client, &who.is_tls))
        rv_address_write(&client, who.peer);
    int rc = judge(auth, c, e, &who, refusal, err);
    if (rc == 0 && (e->credentials->is_ambient || who.by == RV_BY_NOTHING))
        rc = identity_caller_check_site(auth, c, who.by != RV_BY_NOTHING, refusal);
    if (rc == 0)
        rc = name_tenant(c, &who, refusal);
    if (rc == 0)
        rc = name_user(auth, c, &who, refusal);
    if (rc == 0)
        *out = who;
    return rc;
}

/* --- rates --- */

int rv_auth_note_request(rv_auth *auth, const struct rv_identity *identity, int64_t now_us, struct rv_refusal *refusal)
{
    char name[2 * RV_IDENTITY_MAX_ID + 2];
    size_t n = strlen(identity->tenant);

    if (auth->per_minute == 0)
        return 0;
    memcpy(name, identity->tenant, n);
    name[n] = '\n'; /* no id has one */
    identity_text_keep(rv_str_of(identity->user), name + n + 1, sizeof name - n - 1);
    int64_t wait = identity->user[0] ? identity_rates_take(auth->rates, "user", name, auth->per_minute, now_us)
                   : identity->key[0]
                       ? identity_rates_take(auth->rates, "key", identity->key, auth->per_minute, now_us)
                       : identity_rates_take(auth->rates, "peer", identity->peer, auth->per_minute, now_us);
    if (wait == 0)
        return 0;
    identity_refuse(refusal, 429, "rate_limited", "there were too many requests in the last minute");
    identity_refuse_reason(refusal, "more than %lld requests a minute", (long long)auth->per_minute);
    refusal->retry_us = wait;
    return RV_E_DENIED;
}

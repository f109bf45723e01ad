/* The authenticator with a store: rows are looked up, failures counted, uses noted; logins begin and end. */
#include <string.h>

#include "coreengine/identity/identity_internal.h"

#define LOGIN_ATTRIBUTES "; Path=/; HttpOnly; Secure; SameSite=Strict; Max-Age="

/* --- judging --- */

/* NOT_FOUND is not a failure: the row stays empty. */
static int look_up(rv_store *store, const struct rv_credentials *credentials, int64_t now_us,
                   struct rv_api_key_row *row, rv_err **err)
{
    rv_err *why = NULL;
    int rc = 0;

    if (credentials->kind == RV_CREDENTIAL_KEY && credentials->id[0])
        rc = rv_store_get_api_key(store, credentials->id, row, &why);
    else if (credentials->kind == RV_CREDENTIAL_LOGIN)
        rc = rv_store_find_login(store, credentials->hash, now_us, row, &why);
    if (rc == RV_E_NOT_FOUND && !rv_err_is(why, RV_E_NOMEM)) {
        rv_err_free(why);
        return 0;
    }
    if (rc < 0) {
        RV_FAIL(err, rc, "look up who asks");
        rv_err_add_causes(err, why);
    }
    return rc;
}

/* Whether an authenticator without settings is open is only asked when it matters. */
static int look_for_keys(const rv_auth *auth, rv_store *store, const struct rv_credentials *credentials, int64_t now_us,
                         bool *has, rv_err **err)
{
    *has = true;
    if (credentials->kind != RV_CREDENTIAL_NONE && !credentials->is_foreign)
        return 0;
    return rv_auth_is_open(auth, false) ? rv_store_has_api_keys(store, now_us, has, err) : 0;
}

/* The unit that failures are counted for: an address, or the network that an IPv6 host can choose its address from. */
static void name_peer(const rv_auth *auth, const struct rv_caller *c, char out[RV_IDENTITY_MAX_PEER])
{
    struct rv_address a;
    bool is_tls;

    out[0] = 0;
    if (!identity_caller_client(auth, c, &a, &is_tls) && !identity_address_read(rv_str_of(c->peer), &a))
        return; /* of a client that is not known the proxy counts */
    rv_address_write(&a, out);
    if (strchr(out, ':')) {
        memset(a.bytes + 8, 0, 8);
        rv_address_write(&a, out);
    }
}

/* A wrong key after many others is told to wait. What people chose themselves, which could be guessed, has to wait even
 * when it is right; keys of the store are too long for that, and a neighbour's failures do not lock them out. */
static int count_failure(rv_auth *auth, const struct rv_caller *c, const struct rv_credentials *credentials, int rc,
                         int64_t now_us, struct rv_refusal *refusal)
{
    char peer[RV_IDENTITY_MAX_PEER];
    int64_t wait = 0;
    bool failed = rc == RV_E_DENIED && refusal->status == 401 && credentials->kind == RV_CREDENTIAL_KEY;

    if (!failed && !(rc == 0 && credentials->kind == RV_CREDENTIAL_MASTER_KEY))
        return rc;
    name_peer(auth, c, peer);
    wait = failed ? identity_rates_take(auth->rates, "failed", peer, auth->failed_per_minute, now_us)
                  : identity_rates_look(auth->rates, "failed", peer, auth->failed_per_minute, now_us);
    if (wait == 0)
        return rc;
    identity_refuse(refusal, 429, "too_many_failures", "there were too many wrong keys from this address; wait");
    identity_refuse_reason(refusal, "more than %lld wrong keys a minute", (long long)auth->failed_per_minute);
    refusal->retry_us = wait;
    return RV_E_DENIED;
}

static void log_refusal(rv_log *log, const struct rv_caller *c, const struct rv_credentials *credentials,
                        const struct rv_refusal *refusal)
{
    RV_LOG(log, WARN, "identity.refused", RV_F_I64("status", refusal->status), RV_F_TEXT("code", refusal->code),
           RV_F_TEXT("reason", refusal->reason), RV_F_TEXT("key_id", credentials->id), RV_F_TEXT("peer", c->peer));
}

struct asking {
    const struct rv_caller *caller; /* borrowed, as the credentials are */
    struct rv_credentials *credentials;
};

static int ask(rv_auth *auth, const struct rv_auth_with *with, struct asking by, struct rv_identity *out,
               struct rv_refusal *refusal, rv_err **err)
{
    struct rv_credentials *credentials = by.credentials;
    struct rv_api_key_row row = {.own = NULL};
    struct rv_evidence e = {.credentials = credentials, .has_keys = true, .now_us = with->now_us};
    rv_store *store = with->store;
    int64_t now_us = with->now_us;

    int rc = look_up(store, credentials, now_us, &row, err);
    if (rc == 0)
        rc = look_for_keys(auth, store, credentials, now_us, &e.has_keys, err);
    e.key = row.id ? &row : NULL;
    if (rc == 0)
        rc = rv_auth_verify(auth, by.caller, &e, out, refusal, err);
    if (rc == 0 && row.id && row.used_us <= now_us - RV_API_KEY_USED_US &&
        identity_rates_take(auth->rates, "noted", row.id, 1, now_us) == 0) /* one of all that ask waits for the store */
        RV_IGNORE(rv_store_note_api_key(store, row.id, now_us, NULL), "the request does not depend on it");
    rv_api_key_row_fini(&row);
    return count_failure(auth, by.caller, credentials, rc, now_us, refusal);
}

int rv_auth_identify(rv_auth *auth, const struct rv_auth_with *with, const struct rv_caller *c, struct rv_identity *out,
                     struct rv_refusal *refusal, rv_err **err)
{
    struct rv_credentials given = {.kind = RV_CREDENTIAL_NONE};
    rv_err *why = NULL;

    if (rv_auth_refresh(auth, with->now_us, &why) < 0)
        RV_LOG(with->log, ERROR, "identity.keys_not_read", RV_F_ERR("error", why));
    rv_err_free(why);
    int rc = rv_auth_read_credentials(auth, c, &given, refusal);
    if (rc == 0)
        rc = ask(auth, with, (struct asking){c, &given}, out, refusal, err);
    if (rc == RV_E_DENIED)
        log_refusal(with->log, c, &given, refusal);
    rv_secret_wipe(given.hash, sizeof given.hash);
    return rc;
}

/* --- logins --- */

/* The request as it would be with a key in a header in place of its cookies. */
struct with_key {
    const struct rv_caller *caller;
    rv_str key;
};

static bool next_header(void *self, const char *name, size_t i, rv_str *out)
{
    const struct with_key *w = self;

    if (strcmp(name, "cookie") == 0 || strcmp(name, "authorization") == 0)
        return false;
    if (strcmp(name, "x-api-key") != 0)
        return w->caller->header(w->caller->self, name, i, out);
    *out = w->key;
    return i == 0;
}

static int keep_login(const rv_auth *auth, const struct rv_login *login, const struct rv_identity *identity,
                      rv_buf *set_cookie, rv_err **err)
{
    unsigned char secret[RV_DIGEST];
    char word[RV_API_KEY_SECRET + 1], hash[RV_HASH_MAX];

    login->rand.fill(login->rand.self, secret, sizeof secret);
    identity_base64url_write(secret, sizeof secret, word);
    identity_secret_hash(rv_str_of(word), hash);
    int rc = rv_store_add_login(login->store, hash, identity->key, login->now_us,
                                login->now_us + auth->login_s * RV_US_PER_S, err);
    if (rc == 0) {
        rv_buf_printf(set_cookie, RV_LOGIN_COOKIE "=%s" LOGIN_ATTRIBUTES "%lld", word, (long long)auth->login_s);
        rc = rv_buf_check(set_cookie, "cookie", err);
    }
    rv_secret_wipe(secret, sizeof secret);
    rv_secret_wipe(word, sizeof word);
    return rc;
}

int rv_auth_login(rv_auth *auth, const struct rv_caller *c, const struct rv_login *login, rv_buf *set_cookie,
                  struct rv_refusal *refusal, rv_err **err)
{
    struct with_key with = {c, login->key};
    struct rv_caller as = *c;
    struct rv_identity who;

    as.header = next_header;
    as.self = &with;
    int rc = identity_caller_check_site(auth, c, true, refusal);
    if (rc == 0)
        rc = rv_auth_identify(auth, &(struct rv_auth_with){login->store, login->now_us, login->log}, &as, &who, refusal,
                              err);
    if (rc == 0 && who.by != RV_BY_KEY) {
        identity_refuse(refusal, 403, "login_needs_key", "a login begins with an API key of `reeve keys`");
        identity_refuse_reason(refusal, "a login without an API key of the store");
        rc = RV_E_DENIED;
    }
    return rc == 0 ? keep_login(auth, login, &who, set_cookie, err) : rc;
}

int rv_auth_logout(const rv_auth *auth, rv_store *store, const struct rv_caller *c, rv_buf *set_cookie,
                   struct rv_refusal *refusal, rv_err **err)
{
    char hash[RV_HASH_MAX];
    rv_str value;
    int rc = identity_caller_check_site(auth, c, true, refusal);

    if (rc == 0 && identity_caller_cookie(c, RV_LOGIN_COOKIE, &value) == 1) {
        identity_secret_hash(value, hash);
        rc = rv_store_delete_login(store, hash, err);
    }
    if (rc < 0)
        return rc;
    rv_buf_puts(set_cookie, RV_LOGIN_COOKIE "=" LOGIN_ATTRIBUTES "0");
    return rv_buf_check(set_cookie, "cookie", err);
}

/* The machine: what is asked next, and what an answer means. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/mcp/http.h"
#include "coreengine/mcp/oauth_internal.h"

#define EARLY_S    30                              /* a token that ends this soon is not sent any more */
#define MAX_LIFE_S (INT64_C(10) * 365 * 24 * 3600) /* ten years: a longer life of a token counts as this */
#define MAX_WORDS  300 /* bytes of a server's own words in an error: three or four lines of a terminal */

const struct rv_oauth_step *rv_oauth_step(const rv_oauth *o)
{
    return &o->step;
}

static int fetch_candidate(rv_oauth *o)
{
    rv_buf_clear(&o->body);
    rv_buf_clear(&o->authorization);
    o->step = (struct rv_oauth_step){.kind = RV_OAUTH_FETCH, .method = "GET", .url = o->candidates[o->at]};
    return 0;
}

static void wipe(rv_buf *b)
{
    if (b->ptr)
        rv_wipe(b->ptr, b->len);
    rv_buf_fini(b);
}

void rv_oauth_free(rv_oauth *o)
{
    if (!o)
        return;
    oauth_drop_candidates(o);
    free(o->issuer);
    json_object_put(o->resource);
    json_object_put(o->metadata);
    rv_buf_fini(&o->challenge_scope);
    rv_buf_fini(&o->challenge_metadata);
    rv_buf_fini(&o->scope);
    wipe(&o->code);
    wipe(&o->url);
    wipe(&o->body);
    wipe(&o->authorization);
    rv_wipe(o->verifier, sizeof o->verifier);
    rv_wipe(o->seed, sizeof o->seed);
    free(o);
}

/* A refusal that was noted earlier counts where there is none now. */
static void read_challenge(rv_oauth *o, rv_str challenge)
{
    json_object *noted = rv_json_get_obj(o->kept, "challenge");
    const char *text = NULL;
    bool has_scope = rv_mcp_challenge_read(challenge, "scope", &o->challenge_scope);
    bool has_metadata = rv_mcp_challenge_read(challenge, "resource_metadata", &o->challenge_metadata);

    if (challenge.len || !noted)
        return;
    if (!has_scope && rv_json_get_text(noted, "scope", &text))
        rv_buf_puts(&o->challenge_scope, text);
    if (!has_metadata && rv_json_get_text(noted, "resource_metadata", &text))
        rv_buf_puts(&o->challenge_metadata, text);
}

static void take_random(rv_oauth *o, const unsigned char *random)
{
    rv_buf word = RV_BUF_INIT(100);

    oauth_base64url(random, 32, &word);
    if (word.len + 1 == sizeof o->verifier && word.rc == 0) { /* else there was no memory, and it stays empty */
        memcpy(o->verifier, word.ptr, word.len);
        rv_wipe(word.ptr, word.len);
    }
    rv_buf_fini(&word);
    rv_hex_make(random + 32, sizeof o->state_word / 2, o->state_word);
    o->state_word[sizeof o->state_word - 1] = '\0';
    memcpy(o->assertion_id, random + 48, sizeof o->assertion_id);
    memcpy(o->seed, random + 64, sizeof o->seed);
}

int rv_oauth_new(const struct rv_oauth_config *config, const struct rv_oauth_start *start, rv_oauth **out, rv_err **err)
{
    rv_oauth *o = calloc(1, sizeof *o);

    if (!o)
        return RV_FAIL(err, RV_E_NOMEM, "ask for a token");
    o->config = *config;
    o->kept = start->kept;
    o->status = start->status;
    rv_buf_init(&o->challenge_scope, OAUTH_MAX_URL);
    rv_buf_init(&o->challenge_metadata, OAUTH_MAX_URL);
    rv_buf_init(&o->scope, OAUTH_MAX_URL);
    rv_buf_init(&o->code, OAUTH_MAX_TEXT);
    rv_buf_init(&o->url, OAUTH_MAX_TEXT);
    rv_buf_init(&o->body, OAUTH_MAX_TEXT);
    rv_buf_init(&o->authorization, OAUTH_MAX_TEXT);
    read_challenge(o, start->challenge);
    take_random(o, start->random);
    int rc = o->verifier[0] ? rv_buf_check(&o->challenge_scope, "a challenge", err)
                            : RV_FAIL(err, RV_E_NOMEM, "ask for a token");
    if (rc == 0)
        rc = rv_buf_check(&o->challenge_metadata, "a challenge", err);
    if (rc == 0)
        rc = oauth_find_resource(o, err);
    if (rc < 0) {
        rv_oauth_free(o);
        return rc;
    }
    *out = o;
    return fetch_candidate(o);
}

/* --- after the discovery --- */

/* Add the words of `more` that are not in scope yet. */
static void add_scope(rv_buf *scope, rv_str more)
{
    while (more.len) {
        const char *end = memchr(more.ptr, ' ', more.len);
        rv_str word = {more.ptr, end ? (size_t)(end - more.ptr) : more.len};
        more = (rv_str){more.ptr + word.len + (end != NULL), more.len - word.len - (end != NULL)};
        bool is_there = word.len == 0;
        for (size_t at = 0; at < scope->len && !is_there;) {
            const char *stop = memchr(scope->ptr + at, ' ', scope->len - at);
            size_t n = stop ? (size_t)(stop - scope->ptr) - at : scope->len - at;
            is_there = rv_str_eq((rv_str){scope->ptr + at, n}, word);
            at += n + 1;
        }
        if (!is_there) {
            rv_buf_puts(scope, scope->len ? " " : "");
            rv_buf_add_str(scope, word);
        }
    }
}

static int choose_scope(rv_oauth *o, rv_err **err)
{
    json_object *supported = o->resource ? rv_json_get_arr(o->resource, "scopes_supported") : NULL;
    const char *before = NULL;

    if (rv_json_get_text(o->kept, "scope", &before)) /* more than before, not something else */
        add_scope(&o->scope, rv_str_of(before));
    add_scope(&o->scope, rv_buf_str(&o->challenge_scope));
    add_scope(&o->scope, rv_str_of(o->config.scope));
    for (size_t i = 0;
         !o->challenge_scope.len && !o->config.scope && supported && i < json_object_array_length(supported); i++)
        add_scope(&o->scope, rv_json_str(json_object_array_get_idx(supported, i)));
    if (o->config.grant == RV_OAUTH_PERSON && oauth_supports(o->metadata, "scopes_supported", "offline_access"))
        add_scope(&o->scope, RV_STR_LIT("offline_access"));
    return rv_buf_check(&o->scope, "a scope", err);
}

/* Credentials of one authorization server are never shown to another. */
static int check_issuer(rv_oauth *o, rv_err **err)
{
    const char *before = NULL;

    if (!rv_json_get_text(o->kept, "issuer", &before) || strcmp(before, o->issuer) == 0)
        return 0;
    json_object_object_del(o->kept, "refresh_token");
    json_object_object_del(o->kept, "access_token");
    json_object_object_del(o->kept, "client");
    if (!o->config.client_id)
        return 0;
    int rc = RV_FAIL(err, RV_E_DENIED, "the server names another authorization server than before");
    rv_err_set_hint(err,
                    "the configured client id belongs to the one before; if the change is right, run `reeve mcp logout "
                    "PIPELINE %s` and register reeve with the new one",
                    o->config.server);
    return rc;
}

static int ask_person(rv_oauth *o, rv_err **err)
{
    const char *secret;

    if (!o->config.redirect_uri) {
        int rc = RV_FAIL(err, RV_E_DENIED, "a person has to approve the access to the server");
        rv_err_set_hint(err, "run `reeve mcp login PIPELINE %s`", o->config.server);
        return rc;
    }
    return oauth_client(o, &secret) ? oauth_write_person(o, err) : oauth_write_registration(o, err);
}

static int begin_token(rv_oauth *o, rv_err **err)
{
    const char *secret, *refresh = NULL;
    int rc = check_issuer(o, err);

    if (rc == 0)
        rc = choose_scope(o, err);
    if (rc < 0)
        return rc;
    if (o->status != 403 && o->config.grant == RV_OAUTH_PERSON && !o->config.redirect_uri &&
        rv_json_get_text(o->kept, "refresh_token", &refresh) && oauth_client(o, &secret)) {
        o->state = OAUTH_REFRESH;
        return oauth_write_token(o, err);
    }
    if (o->config.grant == RV_OAUTH_PERSON)
        return ask_person(o, err);
    if (o->config.grant == RV_OAUTH_CLIENT && (!oauth_client(o, &secret) || !(secret || o->config.private_key)))
        return RV_FAIL(err, RV_E_DENIED, "the client credentials of the server are not configured");
    if (o->config.grant == RV_OAUTH_ID_TOKEN)
        return oauth_write_exchange(o, err);
    o->state = OAUTH_TOKEN;
    return oauth_write_token(o, err);
}

/* --- answers --- */

/* A candidate is not there: the next one. */
static int next_candidate(rv_oauth *o, rv_err **err)
{
    if (++o->at < o->n_candidates)
        return fetch_candidate(o);
    if (o->state == OAUTH_RESOURCE && o->is_malformed) /* it has metadata: what they say must not be guessed */
        return RV_FAIL(err, RV_E_PARSE, "the metadata of the server are not a JSON object");
    if (o->state == OAUTH_RESOURCE) {
        int rc = oauth_find_issuer(o, err);
        return rc < 0 ? rc : fetch_candidate(o);
    }
    if (!o->is_old)
        return RV_FAIL(err, RV_E_NOT_FOUND, "the authorization server has no metadata");
    return begin_token(o, err);
}

static int read_document(rv_oauth *o, json_object *doc, rv_err **err)
{
    int rc;

    if (o->state == OAUTH_RESOURCE) {
        rc = oauth_read_resource(o, doc, err);
        if (rc == 0)
            rc = oauth_find_issuer(o, err);
        return rc < 0 ? rc : fetch_candidate(o);
    }
    rc = oauth_read_issuer(o, doc, err);
    return rc < 0 ? rc : begin_token(o, err);
}

static bool is_token_text(const char *text)
{
    size_t n = strlen(text);

    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return n > 0 && n <= RV_OAUTH_MAX_TOKEN;
}

static int keep_client(rv_oauth *o, json_object *doc, rv_err **err)
{
    const char *id = NULL, *secret = NULL, *method = NULL;
    json_object *client;

    if (!rv_json_get_text(doc, "client_id", &id) || id[0] == '\0')
        return RV_FAIL(err, RV_E_PARSE, "the registration has no client id");
    client = json_object_new_object();
    if (!client)
        return RV_FAIL(err, RV_E_NOMEM, "keep a client id");
    int rc = rv_json_set_text(client, "id", id, err);
    if (rc == 0 && rv_json_get_text(doc, "client_secret", &secret))
        rc = rv_json_set_text(client, "secret", secret, err);
    if (rc == 0 && rv_json_get_text(doc, "token_endpoint_auth_method", &method))
        rc = rv_json_set_text(client, "method", method, err);
    if (rc == 0)
        rc = rv_json_set_text(client, "issuer", o->issuer, err);
    if (rc == 0)
        rc = rv_json_set_text(client, "redirect_uri", o->config.redirect_uri, err);
    if (rc < 0) {
        json_object_put(client);
        return rc;
    }
    rc = rv_json_set_take(o->kept, "client", client, err);
    return rc < 0 ? rc : oauth_write_person(o, err);
}

static int keep_token(rv_oauth *o, json_object *doc, int64_t now_us, rv_err **err)
{
    const char *token = NULL, *type = NULL, *refresh = NULL, *scope = NULL;
    int64_t life = 0;

    if (!rv_json_get_text(doc, "access_token", &token) || !is_token_text(token))
        return RV_FAIL(err, RV_E_PARSE, "the answer for a token has none that can be sent");
    if (!rv_json_get_text(doc, "token_type", &type) || !rv_mcp_is_same_word(rv_str_of(type), RV_STR_LIT("Bearer")))
        return RV_FAIL(err, RV_E_PARSE, "the token is not of the type Bearer");
    int rc = rv_json_set_text(o->kept, "access_token", token, err);
    if (rc == 0 && rv_json_get_text(doc, "refresh_token", &refresh) && is_token_text(refresh))
        rc = rv_json_set_text(o->kept, "refresh_token", refresh, err);
    json_object_object_del(o->kept, "expires_at");
    if (rc == 0 && rv_json_get_int(doc, "expires_in", &life) && life >= 0)
        rc = rv_json_set_int(o->kept, "expires_at", now_us / 1000000 + (life < MAX_LIFE_S ? life : MAX_LIFE_S), err);
    if (rc == 0 && o->state != OAUTH_REFRESH && o->scope.len) /* what was asked for: the union of the next time */
        rc = rv_json_set_str(o->kept, "scope", rv_buf_str(&o->scope), err);
    if (rc == 0 && rv_json_get_text(doc, "scope", &scope)) {
        rv_buf_clear(&o->challenge_scope);
        if (!rv_json_get_text(o->kept, "scope", &(const char *){NULL}))
            rc = rv_json_set_text(o->kept, "scope", scope, err);
    }
    if (rc == 0)
        rc = rv_json_set_text(o->kept, "issuer", o->issuer, err);
    json_object_object_del(o->kept, "challenge");
    o->state = OAUTH_OVER;
    o->step = (struct rv_oauth_step){.kind = RV_OAUTH_DONE};
    return rc;
}

/* {"error": "invalid_grant", "error_description": "..."}: the words of RFC 6749, which hold no secret. */
static int refused(const rv_oauth *o, int status, json_object *doc, rv_err **err)
{
    const char *error = NULL;
    const char *what = o->state == OAUTH_REGISTER ? "register reeve" : "give a token";
    const char *who = o->state == OAUTH_EXCHANGE ? "identity provider" : "authorization server";

    if (doc && rv_json_get_text(doc, "error", &error) && rv_utf8_valid(rv_str_of(error), NULL))
        return RV_FAIL(err, RV_E_DENIED, "the %s does not %s: %.*s (HTTP %d)", who, what, MAX_WORDS, error, status);
    return RV_FAIL(err, RV_E_PROVIDER, "the %s does not %s (HTTP %d)", who, what, status);
}

static int answer(rv_oauth *o, int status, json_object *doc, int64_t now_us, rv_err **err)
{
    bool is_good = status >= 200 && status < 300 && doc;

    switch (o->state) {
    case OAUTH_RESOURCE:
    case OAUTH_ISSUER:
        o->is_malformed = o->is_malformed || (status >= 200 && status < 300 && !doc);
        return is_good ? read_document(o, doc, err) : next_candidate(o, err);
    case OAUTH_REGISTER:
        return is_good ? keep_client(o, doc, err) : refused(o, status, doc, err);
    case OAUTH_REFRESH:
        if (is_good)
            return keep_token(o, doc, now_us, err);
        if (status >= 500 || status == 0 || status == 429) /* it may be good the next time */
            return refused(o, status, doc, err);
        json_object_object_del(o->kept, "refresh_token");
        json_object_object_del(o->kept, "access_token");
        return ask_person(o, err);
    case OAUTH_EXCHANGE:
        return is_good ? oauth_read_exchange(o, doc, err) : refused(o, status, doc, err);
    case OAUTH_TOKEN:
        return is_good ? keep_token(o, doc, now_us, err) : refused(o, status, doc, err);
    case OAUTH_PERSON:
    case OAUTH_OVER:
        break;
    }
    return RV_FAIL(err, RV_E_STATE, "no answer is waited for");
}

int rv_oauth_on_answer(rv_oauth *o, int status, rv_str body, int64_t now_us, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_OAUTH_MAX_ANSWER, .max_depth = 32, .what = "answer"};
    json_object *doc = NULL;

    o->now_us = now_us;
    /* Content-Type is not asked for: servers are loose with it; what counts is that it is one JSON object. */
    int rc = body.len ? rv_json_try_parse(body, &opts, &doc, err) : 0;
    if (rc < 0)
        return rc;
    if (doc && !json_object_is_type(doc, json_type_object)) {
        json_object_put(doc);
        doc = NULL;
    }
    rc = answer(o, status, doc, now_us, err);
    json_object_put(doc);
    return rc;
}

/* --- what a person brings --- */

/* Whose answer is it? Decided before any other part is believed or shown. */
static int check_sender(rv_oauth *o, rv_str query, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf word = RV_BUF_INIT(OAUTH_MAX_URL);
    bool says_issuer = false;

    bool is_ours = rv_mcp_query_get(query, "state", &word) && rv_str_is(rv_buf_str(&word), o->state_word);
    if (word.rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "read an answer");
    if (!is_ours)
        return RV_FAIL(err, RV_E_INVALID, "the answer does not belong to this login");
    rv_buf_clear(&word);
    bool has_issuer = rv_mcp_query_get(query, "iss", &word);
    if (word.rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "read an answer");
    if (o->metadata && !rv_json_get_bool(o->metadata, "authorization_response_iss_parameter_supported", &says_issuer))
        says_issuer = false;
    if ((has_issuer && !rv_str_is(rv_buf_str(&word), o->issuer)) || (!has_issuer && says_issuer))
        return RV_FAIL(err, RV_E_DENIED, "the answer does not come from the authorization server of this login");
    return 0;
}

int rv_oauth_on_redirect(rv_oauth *o, rv_str query, int64_t now_us, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf word = RV_BUF_INIT(OAUTH_MAX_URL);

    if (o->state != OAUTH_PERSON)
        return RV_FAIL(err, RV_E_STATE, "no answer of a person is waited for");
    int rc = check_sender(o, query, err);
    if (rc < 0)
        return rc;
    if (rv_mcp_query_get(query, "error", &word)) {
        bool is_text = rv_utf8_valid(rv_buf_str(&word), NULL);
        return RV_FAIL(err, RV_E_DENIED, "the authorization server says no: %.*s", MAX_WORDS,
                       is_text ? rv_buf_cstr(&word) : "(unreadable)");
    }
    rv_buf_clear(&o->code);
    bool has_code = rv_mcp_query_get(query, "code", &o->code) && o->code.len > 0;
    if (o->code.rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "read an answer");
    if (!has_code)
        return RV_FAIL(err, RV_E_PARSE, "the answer of the authorization server has no code");
    o->state = OAUTH_TOKEN;
    o->now_us = now_us;
    return oauth_write_token(o, err);
}

/* --- what is kept --- */

bool rv_oauth_read_token(json_object *kept, int64_t now_us, rv_buf *out)
{
    const char *token = NULL;
    int64_t until = 0;

    if (!kept || !rv_json_get_text(kept, "access_token", &token) || !is_token_text(token))
        return false;
    if (rv_json_get_int(kept, "expires_at", &until) && now_us / 1000000 > until - EARLY_S)
        return false;
    rv_buf_puts(out, token);
    return true;
}

int rv_oauth_note(json_object *kept, rv_str challenge, rv_err **err)
{
    static const char *const names[] = {"resource_metadata", "scope"};
    json_object *noted = json_object_new_object();
    int rc = noted ? 0 : RV_FAIL(err, RV_E_NOMEM, "note a refusal");

    for (size_t i = 0; i < RV_COUNT(names) && rc == 0; i++) {
        RV_AUTO(rv_buf_fini) rv_buf word = RV_BUF_INIT(OAUTH_MAX_URL);
        if (rv_mcp_challenge_read(challenge, names[i], &word) && rv_utf8_valid(rv_buf_str(&word), NULL))
            rc = rv_json_set_str(noted, names[i], rv_buf_str(&word), err);
        else if (word.rc == RV_E_NOMEM)
            rc = RV_FAIL(err, RV_E_NOMEM, "note a refusal");
    }
    if (rc < 0) {
        json_object_put(noted);
        return rc;
    }
    return rv_json_set_take(kept, "challenge", noted, err);
}

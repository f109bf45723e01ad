/* The authenticator without a store: settings, credentials, verdicts, the file of keys. */
#include "tests/unit/identity/world.h"

#include <pthread.h>
#include <utime.h>

#define MASTER_KEY "the-master-key-of-tests"
#define KEY_ID     "0123456789abcdef"
#define UUID       "8C9A1F7E-6A5F-5A3C-9B5E-0D5A0F3B5A11"
#define LOWER_UUID "8c9a1f7e-6a5f-5a3c-9b5e-0d5a0f3b5a11"

static const char *key_text(void)
{
    return "rv_" KEY_ID "_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
}

static struct rv_api_key_row key_row(const char *level, const char *user)
{
    static char id[RV_API_KEY_ID + 1], hash[RV_HASH_MAX];

    ck_assert(rv_api_key_read(rv_str_of(key_text()), id, hash));
    return (struct rv_api_key_row){
        .id = KEY_ID, .hash = hash, .level = level, .tenant = "acme", .user = user, .scopes = "chat runs:read"};
}

/* "master default/ by 0", or "401 invalid_token". Header list as request_init(); settings by name. */
struct trial {
    struct rv_identity_opts opts;
    struct request r;
    const struct rv_api_key_row *row;
    bool has_keys;
    char out[600];
    struct rv_identity who;
    struct rv_refusal refusal;
};

static const char *try(struct trial *t)
{
    struct rv_credentials given;
    rv_auth *g = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_auth_new(&t->opts, T0_US, &g, &err), 0);
    int rc = rv_auth_read_credentials(g, &t->r.caller, &given, &t->refusal);
    if (rc == 0)
        rc = rv_auth_verify(g, &t->r.caller, &(struct rv_evidence){&given, t->row, t->has_keys, T0_US}, &t->who,
                            &t->refusal, &err);
    ck_assert_ptr_null(err);
    if (rc == 0)
        snprintf(t->out, sizeof t->out, "%s %s/%s", rv_level_text(t->who.level), t->who.tenant, t->who.user);
    else
        snprintf(t->out, sizeof t->out, "%d %s", t->refusal.status, t->refusal.code);
    ck_assert(rc == 0 || (rc == RV_E_DENIED && t->refusal.detail[0] && t->refusal.reason[0]));
    rv_auth_free(g);
    return t->out;
}
#define TRIAL(...)                                                                                                     \
    struct trial trial = {.opts = RV_IDENTITY_OPTS_INIT}, *t = &trial;                                                 \
    request_init(&t->r, __VA_ARGS__ __VA_OPT__(, ) NULL)

START_TEST(without_any_key_callers_on_this_machine_are_master)
{
    TRIAL();
    ck_assert_str_eq(try(t), "master default/");
    ck_assert_int_eq((int)t->who.by, RV_BY_NOTHING);
    ck_assert_uint_eq(t->who.scopes, RV_SCOPES_ALL);
    ck_assert_str_eq(t->who.peer, "127.0.0.1");
    t->r.caller.peer = "::1";
    ck_assert_str_eq(try(t), "master default/");
    t->r.caller.peer = "10.0.0.1";
    ck_assert_str_eq(try(t), "401 unauthenticated");
    ck_assert_str_eq(t->refusal.authenticate, "Bearer realm=\"reeve\"");
    t->r.caller.peer = NULL;
    ck_assert_str_eq(try(t), "401 unauthenticated");
    t->r.caller.peer = "127.0.0.1";
    t->has_keys = true;
    ck_assert_str_eq(try(t), "401 unauthenticated");
    t->has_keys = false;
    t->opts.always_ask = true;
    ck_assert_str_eq(try(t), "401 unauthenticated");
    t->opts.always_ask = false;
    t->opts.jwt_secret = SECRET;
    ck_assert_str_eq(try(t), "401 unauthenticated");
}
END_TEST

START_TEST(an_open_gate_passes_over_keys_that_are_not_ours)
{
    TRIAL("authorization", "Bearer sk-something");
    ck_assert_str_eq(try(t), "master default/");
    t->has_keys = true;
    ck_assert_str_eq(try(t), "401 invalid_token");
    t->has_keys = false;
    t->r.headers[1].value = "Bearer rv_0123456789abcdef_x";
    ck_assert_str_eq(try(t), "401 invalid_token"); /* who shows one of ours believes in keys */
}
END_TEST

static const struct {
    const char *name, *value, *out;
} strangers[] = {
    {"x-forwarded-for", "8.8.8.8", "401 unauthenticated"}, /* a proxy that is not named */
    {"forwarded", "for=8.8.8.8", "401 unauthenticated"},
    {"via", "1.1 proxy", "401 unauthenticated"},
    {"host", "again", "401 unauthenticated"}, /* two of them */
    {"origin", "https://evil.example", "403 origin_not_allowed"},
    {"origin", "null", "403 origin_not_allowed"},
    {"origin", "http://localhost:8000", "master default/"},
    {"origin", "http://localhost:8001", "403 origin_not_allowed"},
    {"origin", "https://app.example", "master default/"}, /* in the list */
    {"origin", "https://app.example.evil", "403 origin_not_allowed"},
    {"sec-fetch-site", "cross-site", "403 origin_not_allowed"},
    {"sec-fetch-site", "same-site", "403 origin_not_allowed"},
    {"sec-fetch-site", "same-origin", "master default/"},
    {"sec-fetch-site", "none", "master default/"},
};
START_TEST(an_open_gate_looks_where_requests_come_from)
{
    TRIAL(strangers[_i].name, strangers[_i].value);
    t->opts.cors_origins = "https://app.example";
    ck_assert_str_eq(try(t), strangers[_i].out);
    if (strncmp(strangers[_i].out, "403", 3) == 0) {
        t->r.caller.method = "GET"; /* reading is stopped by the browser, which shows the page nothing */
        ck_assert_str_eq(try(t), "master default/");
    }
}
END_TEST

START_TEST(an_open_gate_wants_a_name_of_this_machine)
{
    TRIAL();
    t->r.headers[0].value = "evil.example:8000"; /* a name that leads here */
    ck_assert_str_eq(try(t), "401 unauthenticated");
    t->opts.hosts = "box.example evil.example";
    ck_assert_str_eq(try(t), "master default/");
}
END_TEST

static const struct {
    const char *name, *value, *name_2, *value_2, *out;
} shown[] = {
    {"authorization", "Bearer " MASTER_KEY, "x-api-key", MASTER_KEY, "master default/"},
    {"authorization", "bearer   " MASTER_KEY, NULL, NULL, "master default/"},
    {"x-api-key", MASTER_KEY, NULL, NULL, "master default/"},
    {"x-api-key", MASTER_KEY "x", NULL, NULL, "401 invalid_token"},
    {"authorization", "Bearer " MASTER_KEY, "x-api-key", "another-key-of-tests", "400 invalid_request"},
    {"authorization", "Bearer a", "authorization", "Bearer a", "400 invalid_request"},
    {"x-api-key", "a", "x-api-key", "a", "400 invalid_request"},
    {"x-api-key", "", NULL, NULL, "400 invalid_request"},
    {"authorization", "Basic QQ==", NULL, NULL, "400 invalid_request"},
    {"authorization", "Bearer", NULL, NULL, "400 invalid_request"},
    {"authorization", "Bearer ", NULL, NULL, "400 invalid_request"},
    {"authorization", "Bearer a b", NULL, NULL, "400 invalid_request"},
    {"authorization", "Bearer \"a\"", NULL, NULL, "400 invalid_request"},
    {"authorization", "Bearer a.b.c", NULL, NULL, "401 invalid_token"},
    {"cookie", "__Host-reeve=a; __Host-reeve=b", NULL, NULL, "400 invalid_request"},
    {"cookie", "access_token=a; access_token=b", NULL, NULL, "400 invalid_request"},
    {"x-user-id", UUID, NULL, NULL, "401 unauthenticated"}, /* never opens the authenticator */
    {"x-openwebui-user-id", UUID, NULL, NULL, "401 unauthenticated"},
};
/* Proves p8.W28: No header opens the gate by being there */
START_TEST(what_is_shown_is_one_thing)
{
    TRIAL(shown[_i].name, shown[_i].value);
    if (shown[_i].name_2)
        request_add(&t->r, shown[_i].name_2, shown[_i].value_2);
    t->opts.master_key = MASTER_KEY;
    t->opts.jwt_secret = SECRET;
    t->opts.trust_user_header = true;
    t->opts.trusted_proxies = "127.0.0.1";
    ck_assert_str_eq(try(t), shown[_i].out);
    if (strncmp(shown[_i].out, "400", 3) == 0)
        ck_assert_str_eq(t->refusal.authenticate, "Bearer realm=\"reeve\", error=\"invalid_request\"");
    if (strcmp(shown[_i].out, "401 invalid_token") == 0)
        ck_assert_str_eq(t->refusal.authenticate, "Bearer realm=\"reeve\", error=\"invalid_token\"");
    ck_assert_ptr_null(strstr(t->refusal.reason, MASTER_KEY));
    ck_assert_ptr_null(strstr(t->refusal.detail, MASTER_KEY));
}
END_TEST

START_TEST(a_key_is_worth_what_its_row_says)
{
    struct rv_api_key_row row = key_row("user", "ada");
    TRIAL("x-api-key", key_text());

    t->has_keys = true;
    ck_assert_str_eq(try(t), "401 invalid_token"); /* no row */
    t->row = &row;
    ck_assert_str_eq(try(t), "user acme/ada");
    ck_assert_str_eq(t->who.key, KEY_ID);
    ck_assert_int_eq((int)t->who.by, RV_BY_KEY);
    ck_assert_uint_eq(t->who.scopes, UINT32_C(1) << RV_SCOPE_CHAT | UINT32_C(1) << RV_SCOPE_RUNS_READ);
    struct rv_refusal refusal;
    ck_assert_int_eq(rv_identity_needs(&t->who, RV_SCOPE_CHAT, &refusal), 0);
    ck_assert_int_eq(rv_identity_needs(&t->who, RV_SCOPE_RUNS_WRITE, &refusal), RV_E_DENIED);
    ck_assert_int_eq(refusal.status, 403);
    ck_assert_str_eq(refusal.authenticate,
                     "Bearer realm=\"reeve\", error=\"insufficient_scope\", scope=\"runs:write\"");
    struct rv_store_scope scope = rv_identity_scope(&t->who);
    ck_assert_str_eq(scope.user, "ada");
    row.expires_us = T0_US;
    ck_assert_str_eq(try(t), "401 invalid_token");
    row.expires_us = T0_US + 1;
    ck_assert_str_eq(try(t), "user acme/ada");
    row.revoked_us = 1;
    ck_assert_str_eq(try(t), "401 invalid_token");
    ck_assert_str_eq(t->refusal.reason, "the key is revoked (key " KEY_ID ")");
    ck_assert_str_eq(t->refusal.detail, "the API key is unknown, expired or revoked");
    row = key_row("tenant", "");
    ck_assert_str_eq(try(t), "tenant acme/");
    ck_assert_ptr_null(rv_identity_scope(&t->who).user);
    row.hash = "0000000000000000000000000000000000000000000000000000000000000000";
    ck_assert_str_eq(try(t), "401 invalid_token");
    row = key_row("tenant", "");
    row.id = "fedcba9876543210";
    ck_assert_str_eq(try(t), "401 invalid_token");
    row = key_row("tenant", "ada"); /* damaged */
    ck_assert_str_eq(try(t), "401 invalid_token");
}
END_TEST

static const struct {
    const char *level, *user, *name, *value, *out;
    bool trusts, any, proxy;
} named[] = {
    {"tenant", "", "x-user-id", UUID, "tenant acme/", false, false, false}, /* not trusted: not looked at */
    {"tenant", "", "x-user-id", "nonsense", "tenant acme/", false, false, false},
    {"tenant", "", "x-user-id", UUID, "user acme/" LOWER_UUID, true, false, false},
    {"tenant", "", "x-user-id", "ada", "400 invalid_request", true, false, false},
    {"tenant", "", "x-user-id", "", "400 invalid_request", true, false, false},
    {"tenant", "", "x-user-id", "8C9A1F7E-6A5F-5A3C-9B5E-0D5A0F3B5A1g", "400 invalid_request", true, false, false},
    {"tenant", "", "x-user-id", "ada", "user acme/ada", true, true, false},
    {"tenant", "", "x-user-id", "a\tb", "400 invalid_request", true, true, false},
    {"user", "bob", "x-user-id", UUID, "user acme/bob", true, false, false}, /* the key says who it is */
    {"tenant", "", "x-openwebui-user-id", UUID, "tenant acme/", true, false, false},
    {"tenant", "", "x-openwebui-user-id", UUID, "user acme/" LOWER_UUID, false, false, true},
    {"user", "bob", "x-openwebui-user-id", UUID, "user acme/bob", false, false, true},
    {"tenant", "", "x-tenant-id", "acme", "tenant acme/", false, false, false},
    {"tenant", "", "x-tenant-id", "other", "403 other_tenant", false, false, false},
    {"user", "bob", "x-tenant-id", "other", "403 other_tenant", true, false, true},
    {"master", "", "x-tenant-id", "other", "master other/", false, false, false},
    {"master", "", "x-tenant-id", "", "400 invalid_request", false, false, false},
};
START_TEST(headers_name_users_only_of_those_who_may_act_for_them)
{
    struct rv_api_key_row row = key_row(named[_i].level, named[_i].user);
    TRIAL("x-api-key", key_text(), named[_i].name, named[_i].value);

    t->row = &row;
    t->has_keys = true;
    t->opts.trust_user_header = named[_i].trusts;
    t->opts.any_user_id = named[_i].any;
    t->opts.trusted_proxies = named[_i].proxy ? "127.0.0.0/8" : NULL;
    ck_assert_str_eq(try(t), named[_i].out);
}
END_TEST

START_TEST(the_header_of_a_user_does_not_open_anything)
{
    TRIAL("x-user-id", UUID, "x-user-name", "Ada", "x-user-email", "a@example.com");
    ck_assert_str_eq(try(t), "master default/"); /* no key on loopback: turns have no user */
    ck_assert_str_eq(t->who.name, "Ada");
    ck_assert_str_eq(t->who.email, "");
    t->opts.trust_user_header = true;
    ck_assert_str_eq(try(t), "user default/" LOWER_UUID);
    ck_assert_str_eq(t->who.email, "a@example.com");
    t->r.caller.peer = "10.0.0.1";
    ck_assert_str_eq(try(t), "401 unauthenticated");
}
END_TEST

START_TEST(a_token_says_who_it_is)
{
    char header[9000], cookie[9000];
    TRIAL();

    snprintf(header, sizeof header, "Bearer %s", GOOD);
    snprintf(cookie, sizeof cookie, "access_token=%s", GOOD);
    request_add(&t->r, "authorization", header);
    t->opts.jwt_secret = SECRET;
    ck_assert_str_eq(try(t), "user acme/ada");
    ck_assert_uint_eq(t->who.scopes, RV_SCOPES_USUAL);
    t->opts.jwt_scopes = "chat";
    ck_assert_str_eq(try(t), "user acme/ada");
    ck_assert_uint_eq(t->who.scopes, UINT32_C(1) << RV_SCOPE_CHAT);
    t->opts.issuer = "https://issuer.example";
    ck_assert_str_eq(try(t), "401 invalid_token");
    ck_assert_str_eq(t->refusal.reason, "the token is of another issuer");
    t->opts.issuer = NULL;
    snprintf(header, sizeof header, "Bearer %s", token_of("HS256", HEADER, "{\"sub\":\"a\",\"exp\":1700000100}"));
    ck_assert_str_eq(try(t), "401 invalid_token");
    ck_assert_str_eq(t->refusal.reason, "\"tenant_id\" is missing");
    t->opts.jwt_tenant = "corp";
    ck_assert_str_eq(try(t), "user corp/a");
    t->r.headers[1].name = "x-api-key"; /* tokens are not keys */
    t->r.headers[1].value = header + 7;
    ck_assert_str_eq(try(t), "401 invalid_token");
    t->r.headers[1].name = "cookie";
    t->r.headers[1].value = cookie;
    ck_assert_str_eq(try(t), "403 origin_not_allowed"); /* a browser adds it by itself */
    request_add(&t->r, "origin", "http://localhost:8000");
    ck_assert_str_eq(try(t), "user acme/ada");
}
END_TEST

START_TEST(a_login_is_worth_its_key_and_has_to_say_where_it_is_from)
{
    struct rv_api_key_row row = key_row("user", "ada");
    TRIAL("cookie", RV_LOGIN_COOKIE "=x");

    t->has_keys = true;
    ck_assert_str_eq(try(t), "401 invalid_token");
    t->row = &row;
    ck_assert_str_eq(try(t), "403 origin_not_allowed");
    t->opts.cors_origins = "*"; /* not for cookies */
    request_add(&t->r, "origin", "https://evil.example");
    ck_assert_str_eq(try(t), "403 origin_not_allowed");
    t->r.headers[2].value = "http://localhost:8000";
    ck_assert_str_eq(try(t), "user acme/ada");
    ck_assert_int_eq((int)t->who.by, RV_BY_LOGIN);
    t->r.n = 2;
    t->r.caller.method = "GET";
    ck_assert_str_eq(try(t), "user acme/ada");
}
END_TEST

static const struct {
    struct rv_identity_opts opts;
    const char *part;
} bad[] = {
    {{.master_key = "short"}, "--api-key-file has 5 bytes"},
    {{.jwt_secret = "a secret of thirty-one bytes..."}, "--jwt-secret-file has 31 bytes"},
    {{.jwks = "/nowhere/keys.json"}, "\"/nowhere/keys.json\""},
    {{.jwt_tenant = "a\n"}, "--jwt-tenant"},
    {{.jwt_scopes = "chat fly"}, "unknown scope \"fly\""},
    {{.trusted_proxies = "10.0.0.0/8 10.0.0.1/8"}, "\"10.0.0.1/8\" is not an address or a network"},
    {{.cors_origins = "https://a.example null"}, "\"null\" is not an origin"},
    {{.cors_origins = "https://*.example"}, "is not an origin"},
};
START_TEST(a_setting_that_cannot_be_meant_is_refused)
{
    rv_buf text = RV_BUF_INIT(2000);
    rv_auth *g = NULL;
    rv_err *err = NULL;

    ck_assert_int_lt(rv_auth_new(&bad[_i].opts, T0_US, &g, &err), 0);
    rv_err_write_chain(err, &text);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), bad[_i].part));
    rv_err_free(err);
    rv_buf_fini(&text);
}
END_TEST

static int ask_token(rv_auth *g, const char *kid, int64_t now_us)
{
    struct rv_credentials given;
    struct rv_identity who;
    struct rv_refusal refusal;
    char header[200], text[9000];
    struct request r;

    snprintf(header, sizeof header, "{\"alg\":\"RS256\",\"kid\":\"%s\"}", kid);
    snprintf(text, sizeof text, "Bearer %s",
             token_of("RS256", header, "{\"sub\":\"a\",\"tenant_id\":\"t\",\"exp\":1800000000}"));
    request_init(&r, "authorization", text, NULL);
    ck_assert_int_eq(rv_auth_read_credentials(g, &r.caller, &given, &refusal), 0);
    return rv_auth_verify(g, &r.caller, &(struct rv_evidence){&given, NULL, true, now_us}, &who, &refusal, NULL);
}

static void write_keys(const char *path, const char *text, time_t at)
{
    struct utimbuf times = {at, at};

    ck_assert_int_eq(rv_file_write(path, rv_str_of(text), NULL), 0);
    ck_assert_int_eq(utime(path, &times), 0);
}

/* What judges a token again and again while the keys change. */
struct judge {
    pthread_t thread;
    const rv_auth *auth;
    struct rv_caller *caller;
    int n_refused;
};

static void *judge_tokens(void *self)
{
    struct judge *j = self;
    struct rv_credentials given;
    struct rv_refusal refusal;
    struct rv_identity who;

    for (int i = 0; i < 100; i++)
        if (rv_auth_read_credentials(j->auth, j->caller, &given, &refusal) < 0 ||
            rv_auth_verify(j->auth, j->caller, &(struct rv_evidence){&given, NULL, true, T0_US}, &who, &refusal, NULL) <
                0)
            j->n_refused++;
    return NULL;
}

START_TEST(keys_change_while_tokens_are_judged)
{
    static const char *const sets[] = {JWKS(JWK_RSA("one", "")), JWKS(JWK_EC("two", "") "," JWK_RSA("one", ""))};
    struct rv_identity_opts opts = RV_IDENTITY_OPTS_INIT;
    char *dir = rv_kit_tmpdir(), path[300], text[2000];
    struct judge judges[3];
    struct request r;
    rv_auth *g = NULL;

    snprintf(path, sizeof path, "%s/keys.json", dir);
    write_keys(path, sets[0], 1000);
    opts.jwks = path;
    ck_assert_int_eq(rv_auth_new(&opts, T0_US, &g, NULL), 0);
    snprintf(text, sizeof text, "Bearer %s",
             token_of("RS256", "{\"alg\":\"RS256\",\"kid\":\"one\"}",
                      "{\"sub\":\"a\",\"tenant_id\":\"t\",\"exp\":1800000000}"));
    request_init(&r, "authorization", text, NULL);
    for (size_t i = 0; i < RV_COUNT(judges); i++) {
        judges[i] = (struct judge){.auth = g, .caller = &r.caller};
        ck_assert_int_eq(pthread_create(&judges[i].thread, NULL, judge_tokens, &judges[i]), 0);
    }
    for (int i = 1; i <= 100; i++) {
        write_keys(path, sets[i % 2], 1000 + i);
        ck_assert_int_eq(rv_auth_refresh(g, T0_US + i * INT64_C(60000000), NULL), 0);
    }
    for (size_t i = 0; i < RV_COUNT(judges); i++) {
        ck_assert_int_eq(pthread_join(judges[i].thread, NULL), 0);
        ck_assert_int_eq(judges[i].n_refused, 0);
    }
    rv_auth_free(g);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

START_TEST(a_file_of_keys_is_read_again_once_a_minute)
{
    struct rv_identity_opts opts = RV_IDENTITY_OPTS_INIT;
    const int64_t minute = 60000000;
    char *dir = rv_kit_tmpdir(), path[300];
    rv_auth *g = NULL;
    rv_err *err = NULL;

    snprintf(path, sizeof path, "%s/keys.json", dir);
    write_keys(path, JWKS(JWK_RSA("one", "")), 1000);
    opts.jwks = path;
    ck_assert_int_eq(rv_auth_new(&opts, T0_US, &g, NULL), 0);
    ck_assert_int_eq(ask_token(g, "one", T0_US), 0);
    write_keys(path, JWKS(JWK_RSA("two", "")), 2000);
    ck_assert_int_eq(rv_auth_refresh(g, T0_US + minute - 1, NULL), 0);
    ck_assert_int_eq(ask_token(g, "two", T0_US), RV_E_DENIED);
    ck_assert_int_eq(rv_auth_refresh(g, T0_US + minute, NULL), 0);
    ck_assert_int_eq(ask_token(g, "two", T0_US), 0);
    ck_assert_int_eq(ask_token(g, "one", T0_US), RV_E_DENIED); /* it was taken away */
    write_keys(path, "{\"keys\":[", 3000);
    ck_assert_int_lt(rv_auth_refresh(g, T0_US + 2 * minute, &err), 0);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "keys.json"));
    rv_err_free(err);
    ck_assert_int_eq(ask_token(g, "two", T0_US), 0); /* the old ones stay */
    ck_assert_int_eq(rv_auth_refresh(g, T0_US + 2 * minute + 1, NULL), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_lt(rv_auth_refresh(g, T0_US + 3 * minute, NULL), 0);
    ck_assert_int_eq(ask_token(g, "two", T0_US), 0);
    rv_auth_free(g);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

TCase *auth_case(void)
{
    TCase *tc = tcase_create("gate");

    tcase_add_test(tc, without_any_key_callers_on_this_machine_are_master);
    tcase_add_test(tc, an_open_gate_passes_over_keys_that_are_not_ours);
    tcase_add_loop_test(tc, an_open_gate_looks_where_requests_come_from, 0, RV_COUNT(strangers));
    tcase_add_test(tc, an_open_gate_wants_a_name_of_this_machine);
    tcase_add_loop_test(tc, what_is_shown_is_one_thing, 0, RV_COUNT(shown));
    tcase_add_test(tc, a_key_is_worth_what_its_row_says);
    tcase_add_loop_test(tc, headers_name_users_only_of_those_who_may_act_for_them, 0, RV_COUNT(named));
    tcase_add_test(tc, the_header_of_a_user_does_not_open_anything);
    tcase_add_test(tc, a_token_says_who_it_is);
    tcase_add_test(tc, a_login_is_worth_its_key_and_has_to_say_where_it_is_from);
    tcase_add_loop_test(tc, a_setting_that_cannot_be_meant_is_refused, 0, RV_COUNT(bad));
    tcase_add_test(tc, a_file_of_keys_is_read_again_once_a_minute);
    tcase_add_test(tc, keys_change_while_tokens_are_judged);
    return tc;
}

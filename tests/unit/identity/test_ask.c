/* The authenticator with a store: rows, uses, failures, logins; what the log gets. And rates, and pages of other
 * origins. */
#include "tests/unit/identity/world.h"

struct place {
    struct rv_identity_opts opts;
    rv_store *store;
    rv_auth *auth;
    struct rv_new_key key;
    rv_buf said;
    rv_log *log;
    struct rv_identity who;
    struct rv_refusal refusal;
};

static void keep_line(void *self, enum rv_log_level level, rv_str line)
{
    (void)level;
    rv_buf_add_str(self, line);
    rv_buf_putc(self, '\n');
}

static void place_open(struct place *p, struct rv_identity_opts opts)
{
    struct rv_rand_state state;

    *p = (struct place){.opts = opts, .said = RV_BUF_INIT(1 << 20)};
    ck_assert_int_eq(rv_store_open("memory:", NULL, &p->store, NULL), 0);
    ck_assert_int_eq(rv_auth_new(&opts, T0_US, &p->auth, NULL), 0);
    rv_api_key_make(rv_rand_seeded(&state, 1), &p->key);
    p->log = rv_log_new(&(struct rv_log_opts){.line = keep_line, .line_self = &p->said});
    ck_assert_ptr_nonnull(p->log);
}

static void place_add_key(struct place *p)
{
    const struct rv_api_key_row row = {.id = p->key.id,
                                       .hash = p->key.hash,
                                       .level = "user",
                                       .tenant = "acme",
                                       .user = "ada",
                                       .scopes = "chat",
                                       .created_us = T0_US};
    ck_assert_int_eq(rv_store_add_api_key(p->store, &row, NULL), 0);
}

static void place_close(struct place *p)
{
    rv_auth_free(p->auth);
    rv_store_close(p->store);
    rv_log_free(p->log);
    rv_buf_fini(&p->said);
}

static int ask(struct place *p, struct request *r, int64_t now_us)
{
    rv_err *err = NULL;
    int rc = rv_auth_identify(p->auth, &(struct rv_auth_with){p->store, now_us, p->log}, &r->caller, &p->who,
                              &p->refusal, &err);

    ck_assert_ptr_null(err);
    return rc == RV_E_DENIED ? p->refusal.status : rc;
}

START_TEST(the_first_key_closes_the_gate)
{
    struct place place, *p = &place;
    struct request r, with_key;

    place_open(p, RV_IDENTITY_OPTS_INIT);
    request_init(&r, NULL);
    request_init(&with_key, "x-api-key", p->key.text, NULL);
    ck_assert_int_eq(ask(p, &r, T0_US), 0);
    ck_assert_int_eq((int)p->who.level, RV_LEVEL_MASTER);
    ck_assert_int_eq(ask(p, &with_key, T0_US), 401);
    place_add_key(p);
    ck_assert_int_eq(ask(p, &r, T0_US), 401);
    ck_assert_int_eq(ask(p, &with_key, T0_US), 0);
    ck_assert_str_eq(p->who.user, "ada");
    ck_assert_int_eq(
        rv_store_revoke_api_key(p->store, &(struct rv_store_scope){.tenant = "acme"}, p->key.id, T0_US + 1, NULL), 0);
    ck_assert_int_eq(ask(p, &with_key, T0_US + 2), 401);
    place_close(p);
}
END_TEST

START_TEST(a_use_of_a_key_is_noted)
{
    struct rv_api_key_row row = {.own = NULL};
    struct place place, *p = &place;
    struct request r;

    place_open(p, RV_IDENTITY_OPTS_INIT);
    place_add_key(p);
    request_init(&r, "authorization", "", NULL);
    char header[200];
    snprintf(header, sizeof header, "Bearer %s", p->key.text);
    r.headers[1].value = header;
    ck_assert_int_eq(ask(p, &r, T0_US + 7), 0);
    ck_assert_int_eq(rv_store_get_api_key(p->store, p->key.id, &row, NULL), 0);
    ck_assert_int_eq(row.used_us, T0_US + 7);
    rv_api_key_row_fini(&row);
    place_close(p);
}
END_TEST

START_TEST(no_secret_is_in_the_log)
{
    struct place place, *p = &place;
    struct request r;
    char wrong[RV_API_KEY_MAX], header[9000];

    place_open(p, (struct rv_identity_opts){.jwt_secret = SECRET, .failed_logins_a_minute = 10});
    place_add_key(p);
    snprintf(wrong, sizeof wrong, "%s", p->key.text);
    wrong[30] = wrong[30] == 'A' ? 'B' : 'A';
    request_init(&r, "x-api-key", wrong, NULL);
    ck_assert_int_eq(ask(p, &r, T0_US), 401);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&p->said), p->key.id));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&p->said), "the secret of the key is wrong"));
    ck_assert_ptr_null(strstr(rv_buf_cstr(&p->said), wrong + 20));
    const char *token = token_of("HS256", "{\"alg\":\"HS256\",\"kid\":\"k9\"}", "{\"sub\":\"a\"}");
    snprintf(header, sizeof header, "Bearer %s", token);
    request_init(&r, "authorization", header, NULL);
    ck_assert_int_eq(ask(p, &r, T0_US), 401);
    ck_assert_ptr_null(strstr(rv_buf_cstr(&p->said), strrchr(token, '.')));
    ck_assert_ptr_null(strstr(rv_buf_cstr(&p->said), SECRET));
    place_close(p);
}
END_TEST

START_TEST(ten_wrong_keys_a_minute_are_enough)
{
    struct place place, *p = &place;
    struct request r, right, other;

    place_open(p, (struct rv_identity_opts){.master_key = "the-master-key-of-tests", .failed_logins_a_minute = 10});
    place_add_key(p);
    request_init(&r, "x-api-key", "a-wrong-guess", NULL);
    request_init(&right, "x-api-key", "the-master-key-of-tests", NULL);
    request_init(&other, "x-api-key", p->key.text, NULL);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(ask(p, &r, T0_US + i), 401);
    ck_assert_int_eq(ask(p, &r, T0_US + 10), 429);
    ck_assert_int_eq(rv_refusal_retry_s(&p->refusal), 6);
    ck_assert_int_eq(ask(p, &right, T0_US + 11), 429); /* it may have been guessed */
    ck_assert_int_eq(ask(p, &other, T0_US + 11), 0);   /* that one cannot be */
    right.caller.peer = "10.0.0.1";
    ck_assert_int_eq(ask(p, &right, T0_US + 12), 0);
    right.caller.peer = "127.0.0.1";
    ck_assert_int_eq(ask(p, &right, T0_US + 6000010), 0);
    place_close(p);
}
END_TEST

START_TEST(addresses_of_one_network_of_ipv6_count_as_one)
{
    struct place place, *p = &place;
    struct request r;
    char peer[40];

    place_open(p, (struct rv_identity_opts){.master_key = "the-master-key-of-tests", .failed_logins_a_minute = 2});
    request_init(&r, "x-api-key", "a-wrong-guess", NULL);
    r.caller.peer = peer;
    for (int i = 0; i < 4; i++) {
        snprintf(peer, sizeof peer, "2001:db8:0:7::%d", i + 1);
        ck_assert_int_eq(ask(p, &r, T0_US), i < 2 ? 401 : 429);
    }
    snprintf(peer, sizeof peer, "2001:db8:0:8::1");
    ck_assert_int_eq(ask(p, &r, T0_US), 401);
    place_close(p);
}
END_TEST

/* 0, or the status of the refusal. */
static int log_in(struct place *p, struct rv_rand rand, const struct request *r, const char *key, rv_buf *cookie)
{
    const struct rv_login login = {.store = p->store, .key = rv_str_of(key), .rand = rand, .now_us = T0_US};
    int rc = rv_auth_login(p->auth, &r->caller, &login, cookie, &p->refusal, NULL);

    return rc == RV_E_DENIED ? p->refusal.status : rc;
}

START_TEST(a_key_is_exchanged_for_a_login)
{
    struct rv_rand_state state;
    struct place place, *p = &place;
    struct request r, page;
    rv_buf cookie = RV_BUF_INIT(1000), gone = RV_BUF_INIT(1000);

    place_open(p, RV_IDENTITY_OPTS_INIT);
    place_add_key(p);
    request_init(&r, "sec-fetch-site", "same-origin", NULL);
    ck_assert_int_eq(log_in(p, rv_rand_seeded(&state, 9), &r, p->key.text, &cookie), 0);
    const char *text = rv_buf_cstr(&cookie);
    ck_assert_int_eq(strncmp(text, "__Host-reeve=", 13), 0);
    ck_assert_str_eq(text + 13 + 43, "; Path=/; HttpOnly; Secure; SameSite=Strict; Max-Age=43200");
    rv_buf_truncate(&cookie, 13 + 43);
    request_init(&page, "cookie", rv_buf_cstr(&cookie), "sec-fetch-site", "same-origin", NULL);
    ck_assert_int_eq(ask(p, &page, T0_US + 1), 0);
    ck_assert_str_eq(p->who.user, "ada");
    ck_assert_int_eq((int)p->who.by, RV_BY_LOGIN);
    ck_assert_int_eq(ask(p, &page, T0_US + INT64_C(43200) * 1000000), 401);
    ck_assert_int_eq(rv_auth_logout(p->auth, p->store, &page.caller, &gone, &p->refusal, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&gone), "__Host-reeve=; Path=/; HttpOnly; Secure; SameSite=Strict; Max-Age=0");
    ck_assert_int_eq(ask(p, &page, T0_US + 2), 401);
    rv_buf_fini(&gone);
    rv_buf_fini(&cookie);
    place_close(p);
}
END_TEST

/* A page of another site could make a browser log in as another user, or log out. */
START_TEST(only_our_own_pages_log_in_and_out)
{
    static const char *const sites[][2] = {{"origin", "https://evil.example.com"},
                                           {"origin", "null"},
                                           {"sec-fetch-site", "cross-site"},
                                           {"sec-fetch-site", "same-site"},
                                           {"x-other", "x"}};
    struct place place, *p = &place;
    struct request r;
    rv_buf cookie = RV_BUF_INIT(1000);

    place_open(p, RV_IDENTITY_OPTS_INIT);
    place_add_key(p);
    for (size_t i = 0; i < RV_COUNT(sites); i++) {
        request_init(&r, sites[i][0], sites[i][1], NULL);
        ck_assert_int_eq(log_in(p, rv_rand_system(), &r, p->key.text, &cookie), 403);
        ck_assert_int_eq(rv_auth_logout(p->auth, p->store, &r.caller, &cookie, &p->refusal, NULL), RV_E_DENIED);
        ck_assert_int_eq(p->refusal.status, 403);
        ck_assert_uint_eq(cookie.len, 0);
    }
    rv_buf_fini(&cookie);
    place_close(p);
}
END_TEST

START_TEST(a_login_begins_with_a_key_of_the_store_only)
{
    struct rv_identity_opts opts = RV_IDENTITY_OPTS_INIT;
    struct place place, *p = &place;
    struct request r;
    rv_buf cookie = RV_BUF_INIT(1000);

    opts.master_key = "the-master-key-of-tests";
    opts.failed_logins_a_minute = 3;
    place_open(p, opts);
    place_add_key(p);
    request_init(&r, "sec-fetch-site", "same-origin", "authorization", "Bearer the-master-key-of-tests", NULL);
    ck_assert_int_eq(log_in(p, rv_rand_system(), &r, "the-master-key-of-tests", &cookie), 403);
    ck_assert_str_eq(p->refusal.code, "login_needs_key");
    for (int i = 0; i < 4; i++) /* only the key that is given counts, and wrong ones are counted */
        ck_assert_int_eq(log_in(p, rv_rand_system(), &r, "rv_0123456789abcdef_wrong", &cookie), i < 3 ? 401 : 429);
    ck_assert_int_eq(log_in(p, rv_rand_system(), &r, "", &cookie), 400);
    ck_assert_uint_eq(cookie.len, 0);
    rv_buf_fini(&cookie);
    place_close(p);
}
END_TEST

TCase *ask_case(void)
{
    TCase *tc = tcase_create("ask");

    tcase_add_test(tc, the_first_key_closes_the_gate);
    tcase_add_test(tc, a_use_of_a_key_is_noted);
    tcase_add_test(tc, no_secret_is_in_the_log);
    tcase_add_test(tc, ten_wrong_keys_a_minute_are_enough);
    tcase_add_test(tc, addresses_of_one_network_of_ipv6_count_as_one);
    tcase_add_test(tc, a_key_is_exchanged_for_a_login);
    tcase_add_test(tc, only_our_own_pages_log_in_and_out);
    tcase_add_test(tc, a_login_begins_with_a_key_of_the_store_only);
    return tc;
}

/* --- rates --- */

START_TEST(a_name_may_do_so_much_a_minute)
{
    struct rv_identity_opts opts = RV_IDENTITY_OPTS_INIT;
    struct rv_identity ada = {.tenant = "acme", .user = "ada"}, bob = {.tenant = "acme", .user = "bob"},
                       key = {.tenant = "acme", .key = "0123456789abcdef"}, peer = {.tenant = "acme", .peer = "::1"};
    struct rv_refusal refusal;
    rv_auth *g = NULL;

    opts.requests_per_minute = 3;
    ck_assert_int_eq(rv_auth_new(&opts, T0_US, &g, NULL), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(rv_auth_note_request(g, &ada, T0_US, &refusal), 0);
    ck_assert_int_eq(rv_auth_note_request(g, &ada, T0_US, &refusal), RV_E_DENIED);
    ck_assert_int_eq(refusal.status, 429);
    ck_assert_int_eq(rv_refusal_retry_s(&refusal), 20);
    ck_assert_int_eq(rv_auth_note_request(g, &bob, T0_US, &refusal), 0);
    ck_assert_int_eq(rv_auth_note_request(g, &key, T0_US, &refusal), 0);
    ck_assert_int_eq(rv_auth_note_request(g, &peer, T0_US, &refusal), 0);
    ck_assert_int_eq(rv_auth_note_request(g, &ada, T0_US + 19999999, &refusal), RV_E_DENIED);
    ck_assert_int_eq(rv_refusal_retry_s(&refusal), 1);
    ck_assert_int_eq(rv_auth_note_request(g, &ada, T0_US + 20000000, &refusal), 0);
    ck_assert_int_eq(rv_auth_note_request(g, &ada, T0_US + 20000000, &refusal), RV_E_DENIED);
    rv_auth_free(g);
}
END_TEST

START_TEST(many_names_take_no_more_memory_and_the_busy_ones_stay)
{
    struct rv_rand_state state;
    rv_rates *r = NULL;
    char name[40];

    ck_assert_int_eq(identity_rates_new(rv_rand_seeded(&state, 1), &r, NULL), 0);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(identity_rates_take(r, "k", "busy", 5, T0_US), 0);
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        ck_assert_int_eq(identity_rates_take(r, "k", name, 5, T0_US), 0);
    }
    ck_assert_int_gt(identity_rates_take(r, "k", "busy", 5, T0_US), 0);
    ck_assert_int_eq(identity_rates_take(r, "other", "busy", 5, T0_US), 0);
    ck_assert_int_eq(identity_rates_take(r, "k", "busy", 5, T0_US + 60000000), 0);
    ck_assert_int_gt(identity_rates_look(r, "k", "busy", 1, T0_US - 90000000), 0); /* the clock went back */
    identity_rates_free(r);
}
END_TEST

START_TEST(waiting_is_told_in_whole_seconds)
{
    struct rv_refusal refusal;

    rv_refuse_quota(&refusal, "20 runs a day are used up", T0_US + 1500000, T0_US);
    ck_assert_int_eq(refusal.status, 429);
    ck_assert_str_eq(refusal.detail, "20 runs a day are used up");
    ck_assert_int_eq(rv_refusal_retry_s(&refusal), 2);
    rv_refuse_quota(&refusal, "x", 0, T0_US);
    ck_assert_int_eq(refusal.retry_us, 0);
    rv_refuse_drain(&refusal, 5000000);
    ck_assert_int_eq(refusal.status, 503);
    ck_assert_int_eq(rv_refusal_retry_s(&refusal), 5);
}
END_TEST

TCase *rate_case(void)
{
    TCase *tc = tcase_create("rate");

    tcase_add_test(tc, a_name_may_do_so_much_a_minute);
    tcase_add_test(tc, many_names_take_no_more_memory_and_the_busy_ones_stay);
    tcase_add_test(tc, waiting_is_told_in_whole_seconds);
    return tc;
}

/* --- pages --- */

static void put(void *self, const char *name, const char *value)
{
    rv_buf_printf(self, "%s: %s\n", name, value);
}

#define EXPOSED                                                                                                        \
    "Access-Control-Expose-Headers: X-Request-Id, Retry-After, Retry-After-Ms, X-Should-Retry, Location, "             \
    "Content-Disposition, X-Session-Id, X-Run-Id, Mcp-Session-Id\n"
#define MAY     "Access-Control-Allow-Origin: https://app.example\nAccess-Control-Allow-Credentials: true\n"
#define METHODS "Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE\n"
static const struct {
    const char *method, *origin, *wants, *headers, *settings, *out;
    bool is_preflight;
} pages[] = {
    {"POST", NULL, NULL, NULL, "https://app.example", "Vary: Origin\n", false},
    {"POST", "https://app.example", NULL, NULL, "https://app.example", "Vary: Origin\n" MAY EXPOSED, false},
    {"POST", "https://app.example.evil", NULL, NULL, "https://app.example", "Vary: Origin\n", false},
    {"POST", "https://x.app.example", NULL, NULL, "https://app.example", "Vary: Origin\n", false},
    {"POST", "null", NULL, NULL, "https://app.example", "Vary: Origin\n", false},
    {"POST", "null", NULL, NULL, "*", "Vary: Origin\n", false},
    {"OPTIONS", "https://app.example", "POST", "Content-Type, X-Stainless-OS, x-evil", "https://app.example",
     "Vary: Origin\n" MAY METHODS "Access-Control-Allow-Headers: Content-Type, X-Stainless-OS\n"
     "Access-Control-Max-Age: 600\n",
     true},
    {"OPTIONS", "https://app.example", "POST", "x-stainless-a:b, x-stainless-", "https://app.example",
     "Vary: Origin\n" MAY METHODS "Access-Control-Max-Age: 600\n", true},
    {"OPTIONS", "https://evil.example", "POST", NULL, "https://app.example", "Vary: Origin\n", true},
    {"OPTIONS", "https://app.example", NULL, NULL, "https://app.example", "Vary: Origin\n" MAY EXPOSED, false},
    {"GET", "https://any.example", NULL, NULL, "*", "Vary: Origin\nAccess-Control-Allow-Origin: *\n" EXPOSED, false},
};
START_TEST(a_browser_is_told_what_a_page_may_do)
{
    struct rv_identity_opts opts = RV_IDENTITY_OPTS_INIT;
    rv_buf out = RV_BUF_INIT(4000);
    struct request r;
    rv_auth *g = NULL;

    opts.cors_origins = pages[_i].settings;
    ck_assert_int_eq(rv_auth_new(&opts, T0_US, &g, NULL), 0);
    request_init(&r, NULL);
    r.caller.method = pages[_i].method;
    if (pages[_i].origin)
        request_add(&r, "origin", pages[_i].origin);
    if (pages[_i].wants)
        request_add(&r, "access-control-request-method", pages[_i].wants);
    if (pages[_i].headers)
        request_add(&r, "access-control-request-headers", pages[_i].headers);
    ck_assert_int_eq(rv_auth_put_cors(g, &r.caller, put, &out), pages[_i].is_preflight);
    ck_assert_str_eq(rv_buf_cstr(&out), pages[_i].out);
    if (strcmp(pages[_i].settings, "*") == 0) { /* elsewhere it means nothing */
        rv_buf_clear(&out);
        r.caller.peer = "10.0.0.1";
        ck_assert_int_eq(rv_auth_put_cors(g, &r.caller, put, &out), pages[_i].is_preflight);
        ck_assert_str_eq(rv_buf_cstr(&out), "Vary: Origin\n");
    }
    rv_buf_fini(&out);
    rv_auth_free(g);
}
END_TEST

TCase *cors_case(void)
{
    TCase *tc = tcase_create("cors");

    tcase_add_loop_test(tc, a_browser_is_told_what_a_page_may_do, 0, RV_COUNT(pages));
    return tc;
}

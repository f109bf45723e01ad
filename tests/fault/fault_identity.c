/* Each allocation of an authenticator fails once: settings, keys of tokens, a token, a key of the store, a login. GMP
 * would end the process (README of the module): here it gets its memory past the failing allocator. */
#include <gmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/hmac.h>

#include "coreengine/identity/identity_internal.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"
#include "tests/unit/identity/keys.h"

#define NOW_US INT64_C(1700000000000000)
#define SECRET "a secret of at least thirty-two bytes"

extern void *__libc_malloc(size_t n);
extern void *__libc_realloc(void *p, size_t n);
extern void __libc_free(void *p);

static void *numbers_realloc(void *p, size_t old, size_t n)
{
    (void)old;
    return __libc_realloc(p, n);
}
static void numbers_free(void *p, size_t n)
{
    (void)n;
    __libc_free(p);
}

static char *dir, *path;
static struct rv_new_key key;
static char token[4000];

static bool header_of(void *self, const char *name, size_t i, rv_str *out)
{
    const char *const *headers = self;

    for (; headers[0] && i == 0; headers += 2)
        if (strcmp(headers[0], name) == 0) {
            *out = rv_str_of(headers[1]);
            return true;
        }
    return false;
}

static const struct rv_identity_opts *settings(void)
{
    static struct rv_identity_opts opts;

    opts = (struct rv_identity_opts){.jwt_secret = SECRET,
                                     .jwks = path,
                                     .trusted_proxies = "10.0.0.0/8",
                                     .cors_origins = "https://a.example",
                                     .issuer = "i",
                                     .hosts = "h",
                                     .skew_s = 30,
                                     .login_s = 60,
                                     .failed_logins_a_minute = 10};
    return &opts;
}

static struct rv_caller caller_of(const char *const *headers)
{
    return (struct rv_caller){
        .header = header_of, .self = (void *)(uintptr_t)headers, .peer = "127.0.0.1", .method = "POST"};
}

/* Without a store: every failure shows, and nothing is left behind. */
static int judge_token(void)
{
    const char *const headers[] = {"authorization", token, NULL};
    const struct rv_caller c = caller_of(headers);
    struct rv_credentials given;
    struct rv_identity who;
    struct rv_refusal refusal;
    rv_auth *g = NULL;

    int rc = rv_auth_new(settings(), NOW_US, &g, NULL);
    if (rc == 0)
        rc = rv_auth_read_credentials(g, &c, &given, &refusal);
    if (rc == 0)
        rc = rv_auth_verify(g, &c, &(struct rv_evidence){&given, NULL, true, NOW_US}, &who, &refusal, NULL);
    rv_auth_free(g);
    return rc;
}

static const struct rv_fault_scenario scenario = {"token", judge_token};

START_TEST(each_allocation_of_a_verdict_may_fail)
{
    rv_fault_each(&scenario, 20);
}
END_TEST

/* With a store that is open: statements stay prepared, and some failures it makes up for. A good key is never refused.
 */
static int ask_and_log_in(rv_store *store)
{
    const char *const headers[] = {"sec-fetch-site", "same-origin", NULL};
    const struct rv_caller c = caller_of(headers);
    rv_buf cookie = RV_BUF_INIT(1000);
    struct rv_refusal refusal;
    rv_auth *g = NULL;

    int rc = rv_auth_new(settings(), NOW_US, &g, NULL);
    if (rc == 0)
        rc = rv_auth_login(
            g, &c,
            &(struct rv_login){.store = store, .key = rv_str_of(key.text), .rand = rv_rand_system(), .now_us = NOW_US},
            &cookie, &refusal, NULL);
    if (rc == 0)
        rc = rv_auth_logout(g, store, &c, &cookie, &refusal, NULL);
    rv_buf_fini(&cookie);
    rv_auth_free(g);
    return rc;
}

START_TEST(a_good_key_is_not_refused_for_want_of_memory)
{
    const struct rv_api_key_row row = {
        .id = key.id, .hash = key.hash, .level = "user", .user = "ada", .scopes = "chat", .created_us = NOW_US};
    bool fired = true;

    for (size_t n = 0; fired; n++) {
        rv_store *store = NULL;
        ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
        ck_assert_int_eq(rv_store_add_api_key(store, &row, NULL), 0);
        rv_fault_arm(n);
        int rc = ask_and_log_in(store);
        fired = rv_fault_disarm();
        ck_assert_msg(rc == 0 || (fired && rc == RV_E_NOMEM), "allocation %zu: %s", n, rv_code_text(rc));
        rv_store_close(store);
        ck_assert(fired || n > 20 || !rv_fault_works());
    }
}
END_TEST

static void write_token(void)
{
    static const char header[] = "{\"alg\":\"HS256\"}",
                      claims[] =
                          "{\"sub\":\"a\",\"tenant_id\":\"t\",\"iss\":\"i\",\"exp\":1700000100,\"scope\":\"chat\"}";
    unsigned char mac[RV_DIGEST];
    struct hmac_sha256_ctx ctx;
    char parts[3][1000];
    size_t n = strlen("Bearer ");

    identity_base64url_write((const unsigned char *)header, strlen(header), parts[0]);
    identity_base64url_write((const unsigned char *)claims, strlen(claims), parts[1]);
    snprintf(token, sizeof token, "Bearer %s.%s", parts[0], parts[1]);
    const char *text = token + n;
    hmac_sha256_set_key(&ctx, strlen(SECRET), (const uint8_t *)SECRET);
    hmac_sha256_update(&ctx, strlen(text), (const uint8_t *)text);
    hmac_sha256_digest(&ctx, sizeof mac, mac);
    identity_base64url_write(mac, sizeof mac, parts[2]);
    snprintf(token, sizeof token, "Bearer %s.%s.%s", parts[0], parts[1], parts[2]);
}

static void set_up(void)
{
    mp_set_memory_functions(__libc_malloc, numbers_realloc, numbers_free);
    dir = rv_kit_tmpdir();
    path = rv_kit_path(dir, "keys.json");
    ck_assert_int_eq(
        rv_file_write(path,
                      RV_STR_LIT("{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"r\",\"e\":\"AQAB\",\"n\":\"" KEY_RSA_N
                                 "\"},{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" KEY_EC_X "\",\"y\":\"" KEY_EC_Y
                                 "\"}]}"),
                      NULL),
        0);
    rv_api_key_make(rv_rand_system(), &key);
    write_token();
}

static void tear_down(void)
{
    free(path);
    rv_kit_tmpdir_remove(dir);
}

static TCase *identity_case(void)
{
    TCase *tc = tcase_create("identity");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, each_allocation_of_a_verdict_may_fail);
    tcase_add_test(tc, a_good_key_is_not_refused_for_want_of_memory);
    return tc;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {identity_case};

    return rv_kit_run_cases("fault identity", cases, RV_COUNT(cases));
}

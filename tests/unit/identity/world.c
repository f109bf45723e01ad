/* Tokens signed with the keys of the tests, and requests. */
#include "tests/unit/identity/world.h"

#include <nettle/ecc-curve.h>
#include <nettle/ecdsa.h>
#include <nettle/hmac.h>
#include <nettle/rsa.h>

#define N_TEXTS 8

static char *next_text(void)
{
    static char texts[N_TEXTS][16384];
    static size_t n;

    return texts[n++ % N_TEXTS];
}

const char *encoded(const char *text)
{
    char *out = next_text();

    identity_base64url_write((const unsigned char *)text, strlen(text), out);
    return out;
}

static void number(mpz_t out, const char *text)
{
    unsigned char bytes[600];
    size_t n = 0;

    ck_assert(identity_base64url_read(rv_str_of(text), bytes, &n));
    nettle_mpz_init_set_str_256_u(out, n, bytes);
}

static size_t sign_rsa(const unsigned char *digest, unsigned char *out)
{
    struct rsa_private_key key = {.size = 256};
    mpz_t s;

    number(key.d, KEY_RSA_D);
    number(key.p, KEY_RSA_P);
    number(key.q, KEY_RSA_Q);
    number(key.a, KEY_RSA_DP);
    number(key.b, KEY_RSA_DQ);
    number(key.c, KEY_RSA_QI);
    mpz_init(s);
    ck_assert_int_eq(rsa_sha256_sign_digest(&key, digest, s), 1);
    nettle_mpz_get_str_256(key.size, out, s);
    mpz_clear(s);
    rsa_private_key_clear(&key);
    return 256;
}

static void fill(void *self, size_t n, uint8_t *out)
{
    struct rv_rand *rand = self;

    rand->fill(rand->self, out, n);
}

static size_t sign_ec(const unsigned char *digest, unsigned char *out)
{
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 7);
    struct ecc_scalar key;
    struct dsa_signature s;
    mpz_t d;

    ecc_scalar_init(&key, nettle_get_secp_256r1());
    number(d, KEY_EC_D);
    ck_assert_int_eq(ecc_scalar_set(&key, d), 1);
    dsa_signature_init(&s);
    ecdsa_sign(&key, &rand, fill, RV_DIGEST, digest, &s);
    nettle_mpz_get_str_256(32, out, s.r);
    nettle_mpz_get_str_256(32, out + 32, s.s);
    dsa_signature_clear(&s);
    ecc_scalar_clear(&key);
    mpz_clear(d);
    return 64;
}

static size_t sign(const char *alg, const char *text, unsigned char *out)
{
    unsigned char digest[RV_DIGEST];
    struct hmac_sha256_ctx ctx;

    identity_secret_digest(rv_str_of(text), digest);
    if (alg[0] == 'R')
        return sign_rsa(digest, out);
    if (alg[0] == 'E')
        return sign_ec(digest, out);
    hmac_sha256_set_key(&ctx, strlen(SECRET), (const uint8_t *)SECRET);
    hmac_sha256_update(&ctx, strlen(text), (const uint8_t *)text);
    hmac_sha256_digest(&ctx, RV_DIGEST, out);
    return RV_DIGEST;
}

static const char *finish(const char *alg, char *text)
{
    unsigned char signature[512];
    size_t n = sign(alg, text, signature);

    text[strlen(text) + 1] = 0;
    text[strlen(text)] = '.';
    identity_base64url_write(signature, n, text + strlen(text));
    return text;
}

const char *token_of(const char *alg, const char *header, const char *claims)
{
    char *out = next_text();

    snprintf(out, 16384, "%s.%s", encoded(header), encoded(claims));
    return finish(alg, out);
}

const char *token_of_parts(const char *header, const char *claims)
{
    char *out = next_text();

    snprintf(out, 16384, "%s.%s", header, claims);
    return finish("HS256", out);
}

/* --- requests --- */

static bool header_of(void *self, const char *name, size_t i, rv_str *out)
{
    struct request *r = self;

    for (size_t k = 0; k < r->n; k++)
        if (strcmp(r->headers[k].name, name) == 0 && i-- == 0) {
            *out = rv_str_of(r->headers[k].value);
            return true;
        }
    return false;
}

void request_add(struct request *r, const char *name, const char *value)
{
    ck_assert_uint_lt(r->n, RV_COUNT(r->headers));
    r->headers[r->n].name = name;
    r->headers[r->n++].value = value;
}

void request_init(struct request *r, ...)
{
    const char *name;
    va_list args;

    *r = (struct request){.caller = {.header = header_of, .self = r, .peer = "127.0.0.1", .method = "POST"}};
    request_add(r, "host", "localhost:8000");
    va_start(args, r);
    while ((name = va_arg(args, const char *)))
        request_add(r, name, va_arg(args, const char *));
    va_end(args);
}

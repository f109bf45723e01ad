/* Signatures by nettle's function for a curve, in memory that is given to it, and by powers of RSA. */
#include "coreengine/base/crypto.h"

#include <gmp.h>
#include <nettle/ecc-curve.h>
#include <nettle/ecdsa.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/rsa_internal.h"

#define LIMB       (sizeof(mp_limb_t))
#define LIMBS      (RV_SIGN_SCALAR / LIMB)
#define MAX_ROUNDS 64 /* numbers that are tried; one is not below the order in 2^32 cases */

_Static_assert(RV_SIGN_SCALAR % LIMB == 0, "a number fills its limbs");

/* --- keys --- */

/* The order of P-256. */
static const unsigned char order[RV_SIGN_SCALAR] = {0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff,
                                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17,
                                                    0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51};

static bool is_scalar(const unsigned char *bytes)
{
    static const unsigned char zero[RV_SIGN_SCALAR] = {0};

    return memcmp(bytes, zero, sizeof zero) != 0 && memcmp(bytes, order, sizeof order) < 0;
}

int rv_signer_read(rv_str text, const char *source, struct rv_signer *out, rv_err **err)
{
    struct rv_signer key = {.is_rsa = false};
    bool is_curve = false;
    rv_str rest = text;
    int rc = base_ec_read(text, source, &is_curve, key.scalar, err);

    if (rc == 0 && is_curve && !is_scalar(key.scalar))
        rc = RV_FAIL(err, RV_E_INVALID, "%s: the number of the private key is not one of P-256", source);
    if (rc == 0 && !is_curve) {
        key.is_rsa = true;
        rc = rv_rsa_read(&rest, source, &key.rsa, err);
        if (rc == 0 && !key.rsa.is_private)
            rc = RV_FAIL(err, RV_E_INVALID, "%s: a public key, which cannot sign", source);
    }
    if (rc == RV_E_INVALID)
        rv_err_set_hint(err, "a key on P-256, or of RSA, signs: `openssl genpkey -algorithm EC -pkeyopt "
                             "ec_paramgen_curve:P-256 -out private.pem` makes one");
    if (rc == 0)
        *out = key;
    rv_wipe(&key, sizeof key);
    return rc;
}

const char *rv_signer_algorithm(const struct rv_signer *key)
{
    return key->is_rsa ? "RS256" : "ES256";
}

/* --- signatures --- */

static void hash(rv_str first, rv_str second, unsigned char out[SHA256_DIGEST_SIZE])
{
    struct sha256_ctx ctx;

    sha256_init(&ctx);
    sha256_update(&ctx, first.len, (const uint8_t *)first.ptr);
    sha256_update(&ctx, second.len, (const uint8_t *)second.ptr);
    sha256_digest(&ctx, SHA256_DIGEST_SIZE, out);
    rv_wipe(&ctx, sizeof ctx);
}

/* 0, 1, 0xff..., 0, what says that SHA-256 follows, the digest: section 9.2 of RFC 8017. */
static int sign_rsa(const struct rv_rsa *key, const unsigned char *digest, rv_buf *out, rv_err **err)
{
    static const unsigned char prefix[] = {0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01,
                                           0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04, 0x20};
    unsigned char block[RV_RSA_MAX];
    size_t n_end = sizeof prefix + SHA256_DIGEST_SIZE;

    memset(block, 0xff, key->size);
    block[0] = 0;
    block[1] = 1;
    block[key->size - n_end - 1] = 0;
    memcpy(block + key->size - n_end, prefix, sizeof prefix);
    memcpy(block + key->size - SHA256_DIGEST_SIZE, digest, SHA256_DIGEST_SIZE);
    int rc = base_rsa_power(key, true, block, err);
    if (rc == 0)
        rv_buf_add(out, (const char *)block, key->size);
    rv_wipe(block, sizeof block);
    return rc;
}

static void to_limbs(const unsigned char *bytes, mp_limb_t *out)
{
    memset(out, 0, RV_SIGN_SCALAR);
    for (size_t i = 0; i < RV_SIGN_SCALAR; i++)
        out[i / LIMB] |= (mp_limb_t)bytes[RV_SIGN_SCALAR - 1 - i] << 8 * (i % LIMB);
}

static bool put_limbs(const mp_limb_t *limbs, rv_buf *out)
{
    bool is_zero = true;

    for (size_t i = RV_SIGN_SCALAR; i-- > 0;) {
        unsigned char byte = (unsigned char)(limbs[i / LIMB] >> 8 * (i % LIMB));
        is_zero = is_zero && byte == 0;
        rv_buf_putc(out, (char)byte);
    }
    return !is_zero;
}

/* The next number of a signature that is used once: of the seed, and of the digest, so that a seed that came twice does
 * not show the key. */
static void next_number(const unsigned char *seed, const unsigned char *digest, unsigned char *number)
{
    unsigned char both[2 * SHA256_DIGEST_SIZE];

    memcpy(both, digest, SHA256_DIGEST_SIZE);
    memcpy(both + SHA256_DIGEST_SIZE, number, SHA256_DIGEST_SIZE);
    hash((rv_str){(const char *)seed, RV_SIGN_SEED}, (rv_str){(const char *)both, sizeof both}, number);
    rv_wipe(both, sizeof both);
}

static int sign_curve(const struct rv_signer *key, const unsigned char *digest, const unsigned char *seed, rv_buf *out,
                      rv_err **err)
{
    const struct ecc_curve *curve = nettle_get_secp_256r1();
    unsigned char number[RV_SIGN_SCALAR] = {0};
    mp_limb_t secret[LIMBS], once[LIMBS], r[LIMBS], s[LIMBS];
    size_t n_room = (size_t)ecc_ecdsa_sign_itch(curve) * LIMB, from = out->len;
    mp_limb_t *room = malloc(n_room);
    int rc = room ? RV_E_INTERNAL : RV_FAIL(err, RV_E_NOMEM, "sign a token");

    to_limbs(key->scalar, secret);
    for (int i = 0; rc == RV_E_INTERNAL && i < MAX_ROUNDS; i++) {
        next_number(seed, digest, number);
        if (!is_scalar(number))
            continue;
        to_limbs(number, once);
        ecc_ecdsa_sign(curve, secret, once, SHA256_DIGEST_SIZE, digest, r, s, room);
        rv_buf_truncate(out, from);
        if (put_limbs(r, out) && put_limbs(s, out))
            rc = 0;
    }
    if (rc == RV_E_INTERNAL)
        rc = RV_FAIL(err, RV_E_INTERNAL, "no number for a signature was found");
    if (room)
        rv_wipe(room, n_room);
    free(room);
    rv_wipe(secret, sizeof secret);
    rv_wipe(once, sizeof once);
    rv_wipe(number, sizeof number);
    return rc;
}

int rv_sign(const struct rv_signer *key, rv_str text, const unsigned char seed[RV_SIGN_SEED], rv_buf *out, rv_err **err)
{
    unsigned char digest[SHA256_DIGEST_SIZE];

    hash(text, (rv_str){NULL, 0}, digest);
    int rc = key->is_rsa ? sign_rsa(&key->rsa, digest, out, err) : sign_curve(key, digest, seed, out, err);
    return rc < 0 ? rc : rv_buf_check(out, "a signature", err);
}

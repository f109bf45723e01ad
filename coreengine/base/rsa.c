/* Sealing by RSA-OAEP: padding, and powers by the functions of GMP that take the same time for all secrets and work in
 * memory that is given to them. rsa_read.c reads and writes keys. */
#include "coreengine/base/crypto.h"

#include <gmp.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdlib.h>

#include "coreengine/base/rsa_internal.h"

#define HASH      SHA256_DIGEST_SIZE /* bytes of a digest */
#define LIMB      (sizeof(mp_limb_t))
#define MAX_LIMBS (RV_RSA_MAX / LIMB)
_Static_assert(GMP_NAIL_BITS == 0, "a limb is all number");

/* --- Powers --- */

static void to_limbs(const unsigned char *bytes, size_t n, mp_limb_t *out, size_t n_limbs)
{
    memset(out, 0, n_limbs * LIMB);
    for (size_t i = 0; i < n; i++)
        out[i / LIMB] |= (mp_limb_t)bytes[n - 1 - i] << 8 * (i % LIMB);
}

static void to_bytes(const mp_limb_t *limbs, unsigned char *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[n - 1 - i] = (unsigned char)(limbs[i / LIMB] >> 8 * (i % LIMB));
}

int base_rsa_power(const struct rv_rsa *key, bool is_secret, unsigned char *number, rv_err **err)
{
    mp_limb_t base[MAX_LIMBS], mod[MAX_LIMBS], exp[MAX_LIMBS], got[MAX_LIMBS];
    size_t n = (key->size + LIMB - 1) / LIMB, n_exp = is_secret ? key->size : sizeof key->exponent;
    mp_bitcnt_t bits = (mp_bitcnt_t)n_exp * 8;
    size_t n_room = (size_t)mpn_sec_powm_itch((mp_size_t)n, bits, (mp_size_t)n) * LIMB;
    mp_limb_t *room = malloc(n_room);

    if (!room)
        return RV_FAIL(err, RV_E_NOMEM, "compute with a key");
    to_limbs(number, key->size, base, n);
    to_limbs(key->modulus, key->size, mod, n);
    to_limbs(is_secret ? key->secret : key->exponent, n_exp, exp, (n_exp + LIMB - 1) / LIMB);
    mpn_sec_powm(got, base, (mp_size_t)n, exp, bits, mod, (mp_size_t)n, room);
    to_bytes(got, number, key->size);
    rv_wipe(room, n_room);
    free(room);
    rv_wipe(base, sizeof base);
    rv_wipe(exp, sizeof exp);
    rv_wipe(got, sizeof got);
    return 0;
}

/* --- OAEP: 0, a masked seed, a masked block of (hash of no label, zeros, 1, the bytes) --- */

static void hash(const unsigned char *bytes, size_t n, unsigned char out[HASH])
{
    struct sha256_ctx ctx;

    sha256_init(&ctx);
    sha256_update(&ctx, n, bytes);
    sha256_digest(&ctx, HASH, out);
    rv_wipe(&ctx, sizeof ctx);
}

/* XOR with hashes of the seed and a count. */
static void mask(const unsigned char *seed, size_t n_seed, unsigned char *to, size_t n)
{
    unsigned char text[RV_RSA_MAX + 4], part[HASH];

    memcpy(text, seed, n_seed);
    for (size_t at = 0; at < n; at += HASH) {
        size_t count = at / HASH;
        for (size_t i = 0; i < 4; i++)
            text[n_seed + i] = (unsigned char)(count >> 8 * (3 - i));
        hash(text, n_seed + 4, part);
        for (size_t i = 0; i < HASH && at + i < n; i++)
            to[at + i] ^= part[i];
    }
    rv_wipe(text, sizeof text);
    rv_wipe(part, sizeof part);
}

int rv_rsa_seal(const struct rv_rsa *key, struct rv_rand rand, const unsigned char plain[RV_CIPHER_KEY],
                unsigned char *out, rv_err **err)
{
    unsigned char *seed = out + 1, *block = seed + HASH;
    size_t n = key->size - HASH - 1;

    memset(out, 0, key->size);
    rand.fill(rand.self, seed, HASH);
    hash(NULL, 0, block);
    block[n - RV_CIPHER_KEY - 1] = 1;
    memcpy(block + n - RV_CIPHER_KEY, plain, RV_CIPHER_KEY);
    mask(seed, HASH, block, n);
    mask(block, n, seed, HASH);
    int rc = base_rsa_power(key, false, out, err);
    if (rc < 0)
        rv_wipe(out, key->size);
    return rc;
}

/* Which of the bytes is wrong can neither be seen nor measured. */
static bool is_padded(const unsigned char *padded, size_t size)
{
    const unsigned char *block = padded + 1 + HASH;
    size_t n = size - HASH - 1;
    unsigned char none[HASH];
    unsigned wrong = padded[0];

    hash(NULL, 0, none);
    for (size_t i = 0; i < n - RV_CIPHER_KEY; i++)
        wrong |= block[i] ^ (unsigned)(i < HASH ? none[i] : i == n - RV_CIPHER_KEY - 1);
    return wrong == 0;
}

int rv_rsa_open(const struct rv_rsa *key, const unsigned char *sealed, unsigned char plain[RV_CIPHER_KEY], rv_err **err)
{
    unsigned char padded[RV_RSA_MAX], *seed = padded + 1, *block = seed + HASH;
    size_t n = key->size - HASH - 1;

    if (memcmp(sealed, key->modulus, key->size) >= 0)
        return RV_FAIL(err, RV_E_IO, "a sealed key was changed, or is for another key");
    memcpy(padded, sealed, key->size);
    int rc = base_rsa_power(key, true, padded, err);
    if (rc == 0) {
        mask(block, n, seed, HASH);
        mask(seed, HASH, block, n);
        if (is_padded(padded, key->size))
            memcpy(plain, block + n - RV_CIPHER_KEY, RV_CIPHER_KEY);
        else
            rc = RV_FAIL(err, RV_E_IO, "a sealed key was changed, or is for another key");
    }
    rv_wipe(padded, sizeof padded);
    return rc;
}

bool rv_rsa_is_same(const struct rv_rsa *a, const struct rv_rsa *b)
{
    return a->size == b->size && memcmp(a->modulus, b->modulus, a->size) == 0 &&
           memcmp(a->exponent, b->exponent, sizeof a->exponent) == 0;
}

/* SHA-256: how content is named. SHA-512: where numbers are made of a text. FNV-1a: places in tables and ids that no
 * one has a reason to forge. */
#ifndef RV_BASE_HASH_H
#define RV_BASE_HASH_H

#include <stdalign.h>
#include <stdint.h>

#include "coreengine/base/buf.h"

/* --- Hexadecimal digits --- */
/** The value of a digit, of either case; -1: another character. */
static inline int rv_hex_digit(char c)
{
    char small = (char)(c | 0x20);

    return c >= '0' && c <= '9' ? c - '0' : small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

/* --- Hashes --- */
#define RV_HASH_MAX 65 /* lower-case hex and its NUL */

/** n bytes as lower-case hex, 2 * n characters; there is no NUL behind them. */
void rv_hex_make(const void *bytes, size_t n, char *out);

/* A hash under way; caller's storage. */
struct rv_hash {
    alignas(16) unsigned char state[128]; /* opaque */
};
void rv_hash_init(struct rv_hash *h);
void rv_hash_add(struct rv_hash *h, rv_str bytes);
/** The digest as lower-case hex; h can only be initialised again then. */
void rv_hash_finish_hex(struct rv_hash *h, char out[RV_HASH_MAX]);
/** The same of one piece. */
void rv_hash_format(rv_str bytes, char out[RV_HASH_MAX]);
/** The SHA-512 of bytes, which may be out itself. */
void rv_sha512_make(rv_str bytes, unsigned char out[64]);

/* 2^64 divided by the golden ratio: a product with it spreads neighbouring numbers. */
#define RV_GOLDEN    UINT64_C(0x9E3779B97F4A7C15)
#define RV_FNV_START UINT64_C(14695981039346656037) /* the FNV-1a hash of no bytes */
/** The FNV-1a hash of what h is the hash of, and bytes behind it. */
static inline uint64_t rv_fnv_add(uint64_t h, rv_str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        h = (h ^ (unsigned char)bytes.ptr[i]) * UINT64_C(1099511628211);
    return h;
}

/** HMAC-SHA256 of bytes with a key of any length. */
void rv_hmac_sha256_make(rv_str key, rv_str bytes, unsigned char out[32]);

#endif

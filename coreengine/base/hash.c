/* SHA-256 and SHA-512 by libnettle, which uses the processor's own instructions where there are some. */
#include "coreengine/base/hash.h"

#include <nettle/hmac.h>
#include <nettle/sha2.h>

void rv_hex_make(const void *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;

    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[from[i] >> 4];
        out[2 * i + 1] = digits[from[i] & 15];
    }
}

static struct sha256_ctx *context(struct rv_hash *h)
{
    _Static_assert(sizeof(struct sha256_ctx) <= sizeof h->state, "the state fits");
    return (struct sha256_ctx *)(void *)h->state;
}

void rv_hash_init(struct rv_hash *h)
{
    sha256_init(context(h));
}

void rv_hash_add(struct rv_hash *h, rv_str bytes)
{
    if (bytes.len > 0)
        sha256_update(context(h), bytes.len, (const uint8_t *)bytes.ptr);
}

void rv_hash_finish_hex(struct rv_hash *h, char out[RV_HASH_MAX])
{
    uint8_t digest[SHA256_DIGEST_SIZE];

    sha256_digest(context(h), sizeof digest, digest);
    rv_hex_make(digest, sizeof digest, out);
    out[2 * sizeof digest] = 0;
}

void rv_hash_format(rv_str bytes, char out[RV_HASH_MAX])
{
    struct rv_hash h;

    rv_hash_init(&h);
    rv_hash_add(&h, bytes);
    rv_hash_finish_hex(&h, out);
}

void rv_sha512_make(rv_str bytes, unsigned char out[64])
{
    struct sha512_ctx ctx;

    sha512_init(&ctx);
    if (bytes.len > 0)
        sha512_update(&ctx, bytes.len, (const uint8_t *)bytes.ptr);
    sha512_digest(&ctx, SHA512_DIGEST_SIZE, out);
}

void rv_hmac_sha256_make(rv_str key, rv_str bytes, unsigned char out[32])
{
    struct hmac_sha256_ctx ctx;

    hmac_sha256_set_key(&ctx, key.len, (const uint8_t *)key.ptr);
    if (bytes.len > 0)
        hmac_sha256_update(&ctx, bytes.len, (const uint8_t *)bytes.ptr);
    hmac_sha256_digest(&ctx, SHA256_DIGEST_SIZE, out);
}

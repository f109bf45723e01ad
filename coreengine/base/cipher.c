/* AES-256-GCM and base64 by libnettle, which uses the processor's own instructions where there are some. */
#include "coreengine/base/cipher.h"

#include <nettle/base64.h>
#include <nettle/gcm.h>
#include <nettle/memops.h>

static struct gcm_aes256_ctx *context(struct rv_cipher *c)
{
    _Static_assert(sizeof(struct gcm_aes256_ctx) <= sizeof c->state, "the state fits");
    return (struct gcm_aes256_ctx *)(void *)c->state;
}

void rv_cipher_init(struct rv_cipher *c, const unsigned char key[RV_CIPHER_KEY])
{
    gcm_aes256_set_key(context(c), key);
}

static void begin(struct rv_cipher *c, const unsigned char nonce[RV_CIPHER_NONCE], rv_str bound)
{
    gcm_aes256_set_iv(context(c), RV_CIPHER_NONCE, nonce);
    gcm_aes256_update(context(c), bound.len, (const uint8_t *)bound.ptr);
}

void rv_cipher_encrypt(struct rv_cipher *c, const unsigned char nonce[RV_CIPHER_NONCE], rv_str bound, rv_str plain,
                       unsigned char *out)
{
    begin(c, nonce, bound);
    gcm_aes256_encrypt(context(c), plain.len, out, (const uint8_t *)plain.ptr);
    gcm_aes256_digest(context(c), RV_CIPHER_TAG, out + plain.len);
}

bool rv_cipher_decrypt(struct rv_cipher *c, const unsigned char nonce[RV_CIPHER_NONCE], rv_str bound, rv_str kept,
                       unsigned char *out)
{
    unsigned char tag[RV_CIPHER_TAG];
    size_t n;

    if (kept.len < RV_CIPHER_TAG)
        return false;
    n = kept.len - RV_CIPHER_TAG;
    begin(c, nonce, bound);
    gcm_aes256_decrypt(context(c), n, out, (const uint8_t *)kept.ptr);
    gcm_aes256_digest(context(c), sizeof tag, tag);
    bool is_authentic = memeql_sec(tag, kept.ptr + n, sizeof tag);
    if (!is_authentic)
        rv_wipe(out, n);
    return is_authentic;
}

void rv_wipe(void *bytes, size_t len)
{
    if (len > 0)
        explicit_bzero(bytes, len);
}

/* --- base64 --- */

#define PIECE ((size_t)3 * 256) /* bytes that are encoded at a time */

void rv_base64_write(rv_str bytes, rv_buf *out)
{
    char text[PIECE / 3 * 4];

    for (size_t at = 0; at < bytes.len; at += PIECE) {
        size_t n = bytes.len - at < PIECE ? bytes.len - at : PIECE;
        base64_encode_raw(text, n, (const uint8_t *)bytes.ptr + at);
        rv_buf_add(out, text, BASE64_ENCODE_RAW_LENGTH(n));
    }
}

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (rv_is_digit(c))
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four characters at a time. Bits that the last group does not need have to be 0, so that bytes have one text only. */
bool rv_base64_read(rv_str text, rv_buf *out)
{
    char piece[PIECE];
    size_t n = 0;

    if (text.len % 4 != 0)
        return false;
    for (size_t at = 0; at < text.len; at += 4) {
        const char *p = text.ptr + at;
        size_t n_pads = at + 4 < text.len || p[3] != '=' ? 0 : p[2] == '=' ? 2 : 1;
        int v[4] = {digit(p[0]), digit(p[1]), n_pads == 2 ? 0 : digit(p[2]), n_pads > 0 ? 0 : digit(p[3])};
        if (v[0] < 0 || v[1] < 0 || v[2] < 0 || v[3] < 0 || (n_pads == 2 && (v[1] & 15)) || (n_pads == 1 && (v[2] & 3)))
            return false;
        unsigned bits = (unsigned)v[0] << 18 | (unsigned)v[1] << 12 | (unsigned)v[2] << 6 | (unsigned)v[3];
        piece[n++] = (char)(bits >> 16);
        piece[n++] = (char)(bits >> 8);
        piece[n++] = (char)bits;
        if (n == sizeof piece || at + 4 == text.len) {
            rv_buf_add(out, piece, n - n_pads);
            n = 0;
        }
    }
    rv_wipe(piece, sizeof piece);
    return true;
}

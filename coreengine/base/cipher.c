/* AES-256-GCM, AES-256-SIV and base64 by libnettle, which uses the processor's own instructions where there are some.
 */
#include "coreengine/base/crypto.h"

#include <nettle/base64.h>
#include <nettle/gcm.h>
#include <nettle/hkdf.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/siv-cmac.h>

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

/* --- Equal bytes for equal texts --- */

static struct siv_cmac_aes256_ctx *siv_of(struct rv_siv *c)
{
    _Static_assert(sizeof(struct siv_cmac_aes256_ctx) <= sizeof c->state, "the state fits");
    return (struct siv_cmac_aes256_ctx *)(void *)c->state;
}

static const struct siv_cmac_aes256_ctx *const_siv_of(const struct rv_siv *c)
{
    return (const struct siv_cmac_aes256_ctx *)(const void *)c->state;
}

/* HKDF with SHA-256 (RFC 5869): no salt, 64 bytes. */
void rv_siv_init(struct rv_siv *c, const unsigned char key[RV_CIPHER_KEY])
{
    static const char purpose[] = "reeve deterministic encryption";
    unsigned char derived[SIV_CMAC_AES256_KEY_SIZE], secret[SHA256_DIGEST_SIZE], salt[SHA256_DIGEST_SIZE] = {0};
    struct hmac_sha256_ctx hmac;

    hmac_sha256_set_key(&hmac, sizeof salt, salt);
    hmac_sha256_update(&hmac, RV_CIPHER_KEY, key);
    hmac_sha256_digest(&hmac, sizeof secret, secret);
    hmac_sha256_set_key(&hmac, sizeof secret, secret);
    hkdf_expand(&hmac, (nettle_hash_update_func *)hmac_sha256_update, (nettle_hash_digest_func *)hmac_sha256_digest,
                sizeof secret, sizeof purpose - 1, (const uint8_t *)purpose, sizeof derived, derived);
    siv_cmac_aes256_set_key(siv_of(c), derived);
    rv_wipe(derived, sizeof derived);
    rv_wipe(secret, sizeof secret);
    rv_wipe(&hmac, sizeof hmac);
}

static const uint8_t no_nonce[1] = {0}; /* the library wants one */

void rv_siv_encrypt(const struct rv_siv *c, rv_str bound, rv_str plain, unsigned char *out)
{
    siv_cmac_aes256_encrypt_message(const_siv_of(c), 1, no_nonce, bound.len, (const uint8_t *)bound.ptr,
                                    plain.len + RV_CIPHER_TAG, out, (const uint8_t *)plain.ptr);
}

bool rv_siv_decrypt(const struct rv_siv *c, rv_str bound, rv_str kept, unsigned char *out)
{
    if (kept.len < RV_CIPHER_TAG)
        return false;
    bool is_authentic =
        siv_cmac_aes256_decrypt_message(const_siv_of(c), 1, no_nonce, bound.len, (const uint8_t *)bound.ptr,
                                        kept.len - RV_CIPHER_TAG, out, (const uint8_t *)kept.ptr) == 1;
    if (!is_authentic)
        rv_wipe(out, kept.len - RV_CIPHER_TAG);
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

/* The value of a character and 1; 0: it is none of them. */
static const unsigned char values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

static int digit(char c)
{
    return values[(unsigned char)c] - 1;
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

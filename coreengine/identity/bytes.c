/* Bytes of tokens and keys: base64url in its one spelling, comparisons and copies of secrets, texts of fixed size. */
#include <string.h>

#include <nettle/memops.h>

#include "coreengine/identity/identity_internal.h"

#include "coreengine/base/base.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (rv_is_digit(c))
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool identity_base64url_read(rv_str text, unsigned char *out, size_t *n)
{
    unsigned bits = 0;
    int n_bits = 0;
    size_t at = 0;

    if (text.len % 4 == 1)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        int value = value_of(text.ptr[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (unsigned)value;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[at++] = (unsigned char)(bits >> n_bits);
            bits &= (1U << n_bits) - 1;
        }
    }
    *n = at;
    return bits == 0;
}

void identity_base64url_write(const unsigned char *bytes, size_t n, char *out)
{
    unsigned bits = 0;
    int n_bits = 0;

    for (size_t i = 0; i < n; i++) {
        bits = bits << 8 | bytes[i];
        for (n_bits += 8; n_bits >= 6;) {
            n_bits -= 6;
            *out++ = digits[bits >> n_bits & 63];
        }
        bits &= (1U << n_bits) - 1;
    }
    if (n_bits > 0)
        *out++ = digits[bits << (6 - n_bits) & 63];
    *out = 0;
}

bool identity_bytes_equal(const void *a, const void *b, size_t n)
{
    return memeql_sec(a, b, n);
}

void rv_secret_wipe(void *memory, size_t n)
{
    if (memory)
        explicit_bzero(memory, n);
}

void identity_secret_hash(rv_str secret, char out[RV_HASH_MAX])
{
    struct rv_hash h;

    rv_hash_init(&h);
    rv_hash_add(&h, secret);
    rv_hash_finish_hex(&h, out);
    rv_secret_wipe(&h, sizeof h);
}

void identity_secret_digest(rv_str secret, unsigned char out[RV_DIGEST])
{
    char hex[RV_HASH_MAX];

    identity_secret_hash(secret, hex);
    for (size_t i = 0; i < RV_DIGEST; i++)
        out[i] = (unsigned char)(rv_hex_digit(hex[2 * i]) << 4 | rv_hex_digit(hex[2 * i + 1]));
    rv_secret_wipe(hex, sizeof hex);
}

bool identity_is_store_id(rv_str s)
{
    if (s.len == 0 || s.len > RV_IDENTITY_MAX_ID || !rv_utf8_valid(s, NULL))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (rv_utf8_control(s.ptr + i, s.len - i))
            return false;
    return true;
}

bool identity_text_keep(rv_str s, char *out, size_t size)
{
    bool fits = s.len < size && !rv_str_find(s, '\0');

    if (fits && s.len)
        memcpy(out, s.ptr, s.len);
    out[fits ? s.len : 0] = 0;
    return fits;
}

static bool is_between(char c)
{
    return c == ' ' || c == ',' || c == '\t' || c == '\n' || c == '\r';
}

rv_str identity_list_next(rv_str *rest)
{
    rv_str word;

    if (rest->len == 0) /* also without a list */
        return (rv_str){"", 0};
    while (rest->len > 0 && is_between(*rest->ptr)) {
        rest->ptr++;
        rest->len--;
    }
    word = (rv_str){rest->ptr, 0};
    while (word.len < rest->len && !is_between(word.ptr[word.len]))
        word.len++;
    rest->ptr += word.len;
    rest->len -= word.len;
    return word;
}

/* Recovery keys: "session-<session>-msg-<seq>", by which the whole of a shortened message is found again. A key that
 * would be too long is cut and ends in the beginning of the SHA-256 of the whole, so that two that begin alike stay
 * apart.
 *
 * Keys are compared in one spelling (p8-data 1.6). ASCII follows that rule exactly; other letters and digits stay, too.
 * A letter that is written as two code points (a base and an accent) is another key than the one that is written as
 * one. */
#include "coreengine/conversation/messages_internal.h"

#include <string.h>

#define BEFORE  "session-"
#define BETWEEN "-msg-"
#define MAX_LEN (RV_MESSAGE_MAX_KEY - 1)
#define DIGEST  8                      /* hex digits at the end of a cut key */
#define CUT     (MAX_LEN - DIGEST - 1) /* bytes of the whole before them and a dash */

/* Appends as much as there is room for; the whole is hashed. */
static void add(char out[RV_MESSAGE_MAX_KEY], size_t *len, struct rv_hash *hash, rv_str part)
{
    size_t room = *len < MAX_LEN ? MAX_LEN - *len : 0, n = part.len < room ? part.len : room;

    if (n)
        memcpy(out + *len, part.ptr, n);
    *len += part.len;
    rv_hash_add(hash, part);
}

void rv_message_key(const char *session, int64_t seq, char out[RV_MESSAGE_MAX_KEY])
{
    char digits[MESSAGE_MAX_DIGITS], hex[RV_HASH_MAX];
    size_t n_digits = rv_message_digits(seq, digits), len = 0;
    struct rv_hash hash;

    rv_hash_init(&hash);
    add(out, &len, &hash, RV_STR_LIT(BEFORE));
    add(out, &len, &hash, rv_str_of(session));
    add(out, &len, &hash, RV_STR_LIT(BETWEEN));
    add(out, &len, &hash, (rv_str){digits, n_digits});
    if (len > MAX_LEN) {
        rv_hash_hex(&hash, hex);
        out[CUT] = '-';
        memcpy(out + CUT + 1, hex, DIGEST);
        len = MAX_LEN;
    }
    out[len] = '\0';
}

static bool begins(rv_str text, rv_str with)
{
    return text.len >= with.len && memcmp(text.ptr, with.ptr, with.len) == 0;
}

static bool is_cut_key(rv_str key)
{
    if (key.len != MAX_LEN || key.ptr[CUT] != '-')
        return false;
    for (size_t i = CUT + 1; i < MAX_LEN; i++)
        if (!((key.ptr[i] >= '0' && key.ptr[i] <= '9') || (key.ptr[i] >= 'a' && key.ptr[i] <= 'f')))
            return false;
    return true;
}

/* Digits as they are written: no sign, no zeros before them, from 1. */
static bool read_seq(rv_str digits, int64_t *out)
{
    int64_t seq = 0;

    if (digits.len == 0 || digits.ptr[0] == '0')
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        int digit = digits.ptr[i] - '0';
        if (digit < 0 || digit > 9 || seq > (INT64_MAX - digit) / 10)
            return false;
        seq = seq * 10 + digit;
    }
    *out = seq;
    return true;
}

bool rv_message_key_read(rv_str key, rv_str *session, int64_t *seq, bool *is_cut)
{
    rv_str before = RV_STR_LIT(BEFORE), between = RV_STR_LIT(BETWEEN);
    size_t at = key.len; /* of the digits */

    if (key.len > MAX_LEN || !begins(key, before))
        return false;
    while (at > before.len && key.ptr[at - 1] != '-')
        at--;
    if (at > before.len + between.len && begins((rv_str){key.ptr + at - between.len, between.len}, between) &&
        read_seq((rv_str){key.ptr + at, key.len - at}, seq)) {
        *session = (rv_str){key.ptr + before.len, at - between.len - before.len};
        *is_cut = false;
        return true;
    }
    if (!is_cut_key(key))
        return false;
    *session = (rv_str){NULL, 0};
    *seq = 0;
    *is_cut = true;
    return true;
}

struct range {
    uint32_t first, last;
};

static const struct range blanks[] = {
    {0x09, 0x0d},     {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
};

/* What is neither a letter nor a digit: controls, punctuation, symbols, pictures, private use. */
static const struct range dropped[] = {
    {0x80, 0xa9},     {0xab, 0xb1},       {0xb4, 0xb4},        {0xb6, 0xb8},     {0xbb, 0xbb},     {0xbf, 0xbf},
    {0xd7, 0xd7},     {0xf7, 0xf7},       {0x2c2, 0x2c5},      {0x2d2, 0x2df},   {0x37e, 0x37e},   {0x387, 0x387},
    {0x55a, 0x55f},   {0x589, 0x58a},     {0x5be, 0x5be},      {0x5c0, 0x5c0},   {0x5c3, 0x5c3},   {0x5f3, 0x5f4},
    {0x600, 0x60f},   {0x61b, 0x61f},     {0x66a, 0x66d},      {0x6d4, 0x6d4},   {0x964, 0x965},   {0xe3f, 0xe3f},
    {0x1360, 0x1368}, {0x200b, 0x2070},   {0x207a, 0x207e},    {0x208a, 0x208e}, {0x20a0, 0x20cf}, {0x2100, 0x2101},
    {0x2103, 0x2106}, {0x2108, 0x2109},   {0x2114, 0x2114},    {0x2116, 0x2118}, {0x211e, 0x2123}, {0x2190, 0x245f},
    {0x2500, 0x2775}, {0x2794, 0x2bff},   {0x2e00, 0x2e5f},    {0x3001, 0x3004}, {0x3008, 0x3020}, {0x3030, 0x3030},
    {0x303d, 0x303f}, {0x30a0, 0x30a0},   {0x30fb, 0x30fb},    {0xe000, 0xf8ff}, {0xfd3e, 0xfd3f}, {0xfe00, 0xfe1f},
    {0xfe30, 0xfe6f}, {0xfeff, 0xfeff},   {0xff01, 0xff0f},    {0xff1a, 0xff20}, {0xff3b, 0xff40}, {0xff5b, 0xff65},
    {0xffe0, 0xffff}, {0x1f000, 0x1faff}, {0xe0000, 0x10ffff},
};

static bool is_in(uint32_t c, const struct range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

static const struct range single[] = {{0x178, 0xff}, {0x386, 0x3ac}, {0x38c, 0x3cc}, {0x38e, 0x3cd}, {0x38f, 0x3ce}};

/* One to one, of Latin, Greek and Cyrillic; other scripts with two cases keep theirs. */
static uint32_t lower(uint32_t c)
{
    bool pairs_from_even = (c >= 0x100 && c <= 0x12f) || (c >= 0x132 && c <= 0x137) || (c >= 0x14a && c <= 0x177) ||
                           (c >= 0x1e00 && c <= 0x1e95) || (c >= 0x1ea0 && c <= 0x1eff) || (c >= 0x460 && c <= 0x481) ||
                           (c >= 0x48a && c <= 0x4bf) || (c >= 0x4d0 && c <= 0x52f);
    bool pairs_from_odd = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e) || (c >= 0x4c1 && c <= 0x4ce);

    if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7) || (c >= 0x391 && c <= 0x3ab && c != 0x3a2) ||
        (c >= 0x410 && c <= 0x42f))
        return c + 0x20;
    if (c >= 0x400 && c <= 0x40f)
        return c + 0x50;
    if (c >= 0x388 && c <= 0x38a)
        return c + 37;
    for (size_t i = 0; i < RV_COUNT(single); i++)
        if (c == single[i].first)
            return single[i].last;
    if (pairs_from_even)
        return c | 1;
    return pairs_from_odd ? c + (c & 1) : c;
}

/* The code point at i of valid UTF-8, and its length. */
static uint32_t decode(rv_str text, size_t i, size_t *n)
{
    const unsigned char *p = (const unsigned char *)text.ptr + i;
    size_t left = text.len - i;

    *n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (*n > left || p[0] < 0x80) {
        *n = 1;
        return p[0];
    }
    uint32_t c = p[0] & (0xffu >> (*n + 1));
    for (size_t k = 1; k < *n; k++)
        c = c << 6 | (p[k] & 0x3f);
    return c;
}

static void encode(uint32_t c, rv_buf *out)
{
    if (c < 0x80) {
        rv_buf_putc(out, (char)c);
        return;
    }
    int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    unsigned lead = 0xf00u >> n & 0xff;
    rv_buf_putc(out, (char)(lead | c >> (6 * (n - 1))));
    for (int k = n - 2; k >= 0; k--)
        rv_buf_putc(out, (char)(0x80 | (c >> (6 * k) & 0x3f)));
}

static bool is_kept(uint32_t c)
{
    if (c < 0x80)
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return !is_in(c, dropped, RV_COUNT(dropped));
}

void rv_key_normalize(rv_str key, rv_buf *out)
{
    size_t from = out->len;

    while (key.len > 0 && key.ptr[0] == ' ') {
        key.ptr++;
        key.len--;
    }
    while (key.len > 0 && key.ptr[key.len - 1] == ' ')
        key.len--;
    for (size_t i = 0, n; i < key.len; i += n) {
        uint32_t c = decode(key, i, &n);
        bool dash = c == '-' || c == '_' || is_in(c, blanks, RV_COUNT(blanks));
        if (!dash && is_kept(c))
            encode(lower(c), out);
        else if (dash && (out->len == from || out->ptr[out->len - 1] != '-'))
            rv_buf_putc(out, '-');
    }
}

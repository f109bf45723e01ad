/* Normalised keys, for comparing: one spelling for all ways to write a key (p8-data 1.6). ASCII follows that rule
 * exactly; other letters and digits stay, too. A letter that is written as two code points (a base and an accent) is
 * another key than the one that is written as one. */
#include "coreengine/conversation/messages_internal.h"

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

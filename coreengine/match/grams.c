/* Trigrams: sets of three-character windows, and how alike two sets are. The arithmetic is that of PostgreSQL's
 * pg_trgm: the same sets, and the same similarity to the last bit. */
#include <math.h>
#include <stdlib.h>

#include "coreengine/match/match_internal.h"

static const char no_memory[] = "compare trigrams";

/* Entry i of the table of CRC-32 (reflected polynomial). */
static uint32_t crc_entry(uint32_t i)
{
    for (int k = 0; k < 8; k++)
        i = i >> 1 ^ (i & 1 ? UINT32_C(0xedb88320) : 0);
    return i;
}

/* The CRC of pg_trgm, an old mistake that it keeps: the table of the reflected polynomial, used as if it was not. */
static uint32_t legacy_crc(const unsigned char *bytes, size_t n)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < n; i++)
        crc = crc_entry((crc >> 24 ^ bytes[i]) & 0xff) ^ crc << 8;
    return ~crc;
}

/* A window as a number: its bytes, or three bytes of its CRC from the lowest on. */
static uint32_t gram_of(const int32_t c[3])
{
    if (c[0] < 0x80 && c[1] < 0x80 && c[2] < 0x80)
        return (uint32_t)c[0] << 16 | (uint32_t)c[1] << 8 | (uint32_t)c[2];
    char bytes[12];
    size_t n = 0;
    for (int i = 0; i < 3; i++)
        n += match_rune_write(c[i], bytes + n);
    uint32_t crc = legacy_crc((const unsigned char *)bytes, n);
    return (crc & 0xff) << 16 | (crc & 0xff00) | (crc >> 16 & 0xff);
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void sort_unique(struct rv_grams *g)
{
    size_t n = 0;

    if (g->n > 1)
        qsort(g->at, g->n, sizeof *g->at, compare);
    for (size_t i = 0; i < g->n; i++)
        if (n == 0 || g->at[n - 1] != g->at[i])
            g->at[n++] = g->at[i];
    g->n = n;
}

/* One more character of a word, or the space behind it. */
static void push(struct rv_grams *g, int32_t window[3], int32_t c)
{
    window[0] = window[1];
    window[1] = window[2];
    window[2] = c;
    g->at[g->n++] = gram_of(window);
}

int rv_grams_build(rv_str text, struct rv_grams *out, rv_err **err)
{
    int32_t window[3] = {' ', ' ', ' '};
    bool in_word = false;
    struct rv_grams g = {NULL, 0};

    if (text.len > RV_MATCH_MAX_TEXT)
        return RV_FAIL(err, RV_E_LIMIT, "a text of %zu bytes is too long for trigrams (at most %zu)", text.len,
                       RV_MATCH_MAX_TEXT);
    /* One for each character, and one for each end of a word: every word but the last has a character behind it. */
    if (!(g.at = calloc(text.len + 1, sizeof *g.at)))
        return RV_FAIL(err, RV_E_NOMEM, "%s", no_memory);
    for (size_t i = 0, n; i < text.len; i += n) {
        int32_t c = match_rune_at(text, i, &n);
        bool is_word = match_rune_is_word(c);
        if (is_word) {
            push(&g, window, match_rune_lower(c));
        } else if (in_word) {
            push(&g, window, ' ');
            window[0] = window[1] = window[2] = ' ';
        }
        in_word = is_word;
    }
    if (in_word)
        push(&g, window, ' ');
    sort_unique(&g);
    if (g.n == 0)
        rv_grams_fini(&g);
    *out = g;
    return 0;
}

void rv_grams_fini(struct rv_grams *grams)
{
    free(grams->at);
    *grams = (struct rv_grams){NULL, 0};
}

static size_t count_shared(const uint32_t *a, size_t n, const uint32_t *b, size_t m)
{
    size_t i = 0, k = 0, shared = 0;

    while (i < n && k < m) {
        uint32_t x = a[i], y = b[k];
        shared += x == y;
        i += x <= y;
        k += y <= x;
    }
    return shared;
}

float rv_grams_score(size_t shared, size_t n, size_t m)
{
    return n == 0 || m == 0 ? 0.0f : (float)shared / (float)(n + m - shared);
}

double rv_float_decimal(float x)
{
    for (double scale = 10; scale < 1e16; scale *= 10) {
        double d = floor((double)x * scale + 0.5) / scale;
        if ((float)d == x)
            return d;
    }
    return (double)x;
}

float rv_grams_similarity(const uint32_t *a, size_t n, const uint32_t *b, size_t m)
{
    return rv_grams_score(count_shared(a, n, b, m), n, m);
}

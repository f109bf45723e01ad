/* Characters: UTF-8, letters and digits, one case, NFC. utf8proc has the tables. */
#include <stdlib.h>
#include <utf8proc.h>

#include "coreengine/match/match_internal.h"

#define MAX_MARKS  30 /* that follow one another; the limit of Unicode's stream-safe format */
#define MAX_PIECES 4  /* of one character: a Greek letter with three marks has as many, none has more */

#define CATEGORY(c) (1u << (unsigned)(c))
#define LETTERS_AND_DIGITS                                                                                             \
    (CATEGORY(UTF8PROC_CATEGORY_LU) | CATEGORY(UTF8PROC_CATEGORY_LL) | CATEGORY(UTF8PROC_CATEGORY_LT) |                \
     CATEGORY(UTF8PROC_CATEGORY_LM) | CATEGORY(UTF8PROC_CATEGORY_LO) | CATEGORY(UTF8PROC_CATEGORY_ND) |                \
     CATEGORY(UTF8PROC_CATEGORY_NL))
/* that belong to the letter before */
#define MARKS             (CATEGORY(UTF8PROC_CATEGORY_MN) | CATEGORY(UTF8PROC_CATEGORY_MC))
#define MAY_BE_ALPHABETIC (MARKS | CATEGORY(UTF8PROC_CATEGORY_SO)) /* letters only if Unicode's property says so */

int32_t match_rune_at(rv_str text, size_t i, size_t *n_bytes)
{
    const unsigned char *p = (const unsigned char *)text.ptr + i;
    size_t left = text.len - i, n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    int32_t c;

    *n_bytes = 1;
    if (n == 1)
        return p[0];
    if (n == 0 || n > left || p[0] > 0xf4)
        return RUNE_BAD;
    c = p[0] & (0xff >> (n + 1));
    for (size_t k = 1; k < n; k++) {
        if ((p[k] & 0xc0) != 0x80)
            return RUNE_BAD;
        c = c << 6 | (p[k] & 0x3f);
    }
    if ((n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10ffff)) || (c >= 0xd800 && c <= 0xdfff))
        return RUNE_BAD;
    *n_bytes = n;
    return c;
}

static bool is_alphabetic(int32_t c)
{
    size_t from = 0, until = match_n_alphabetic;

    while (from < until) {
        size_t mid = (from + until) / 2;
        if (c > match_alphabetic[mid].last)
            from = mid + 1;
        else
            until = mid;
    }
    return from < match_n_alphabetic && c >= match_alphabetic[from].first;
}

bool match_rune_is_word(int32_t c)
{
    if (c < 0x80)
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    unsigned category = CATEGORY(utf8proc_category(c));
    return (category & LETTERS_AND_DIGITS) || ((category & MAY_BE_ALPHABETIC) && is_alphabetic(c));
}

bool match_rune_is_mark(int32_t c)
{
    bool selects_form = (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0xe0100 && c <= 0xe01ef) || (c >= 0x180b && c <= 0x180f);

    return c >= 0x300 && (CATEGORY(utf8proc_category(c)) & MARKS) && !selects_form;
}

bool match_rune_is_space(int32_t c)
{
    return c == ' ' || (c >= 0x09 && c <= 0x0d) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

int32_t match_rune_lower(int32_t c)
{
    if (c < 0x80)
        return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
    return utf8proc_tolower(c);
}

int32_t match_rune_fold(int32_t c)
{
    if (c < 0x80 || match_rune_is_mark(c))
        return match_rune_lower(c);
    return utf8proc_tolower(utf8proc_toupper(c));
}

size_t match_rune_write(int32_t c, char out[4])
{
    return (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)out);
}

/* --- NFC --- */

/* Take a character apart; returns how many pieces there are. */
static size_t take_apart(int32_t c, int32_t out[MAX_PIECES])
{
    int class = 0;
    utf8proc_ssize_t n =
        utf8proc_decompose_char(c, out, MAX_PIECES, (utf8proc_option_t)(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), &class);

    if (n > 0 && n <= MAX_PIECES)
        return (size_t)n;
    out[0] = c;
    return 1;
}

static int class_of(int32_t c)
{
    return utf8proc_get_property(c)->combining_class;
}

/* Append a character; marks go before those of a higher class. */
static void append(struct runes *r, int32_t c, size_t *n_marks)
{
    int class = class_of(c);
    size_t at = r->n;

    if (class == 0) {
        *n_marks = 0;
        r->at[r->n++] = c;
        return;
    }
    if (*n_marks == MAX_MARKS)
        return;
    for (size_t k = 0; k < *n_marks && class_of(r->at[at - 1]) > class; k++, at--)
        r->at[at] = r->at[at - 1];
    r->at[at] = c;
    r->n++;
    ++*n_marks;
}

static int no_memory(rv_err **err)
{
    return RV_FAIL(err, RV_E_NOMEM, "compare texts");
}

static void compose(struct runes *r)
{
    utf8proc_ssize_t n = utf8proc_normalize_utf32(r->at, (utf8proc_ssize_t)r->n,
                                                  (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    if (n >= 0)
        r->n = (size_t)n;
}

int match_runes_compose(struct runes *r, rv_err **err)
{
    struct runes apart = {calloc(r->n * MAX_PIECES + 1, sizeof *apart.at), 0};
    size_t n_marks = 0;

    if (!apart.at)
        return no_memory(err);
    for (size_t i = 0; i < r->n; i++) {
        int32_t pieces[MAX_PIECES];
        size_t n = take_apart(r->at[i], pieces);
        for (size_t k = 0; k < n; k++)
            append(&apart, pieces[k], &n_marks);
    }
    compose(&apart);
    match_runes_fini(r);
    *r = apart;
    return 0;
}

int match_runes_nfc(rv_str text, struct runes *out, rv_err **err)
{
    struct runes r = {NULL, 0};
    bool is_ascii = true;

    if (text.len > RV_MATCH_MAX_TEXT)
        return RV_FAIL(err, RV_E_LIMIT, "a text of %zu bytes is too long to compare (at most %zu)", text.len,
                       RV_MATCH_MAX_TEXT);
    if (!(r.at = calloc(text.len + 1, sizeof *r.at)))
        return no_memory(err);
    for (size_t i = 0, n; i < text.len; i += n) {
        r.at[r.n] = match_rune_at(text, i, &n);
        is_ascii = is_ascii && r.at[r.n] < 0x80;
        r.n++;
    }
    int rc = is_ascii ? 0 : match_runes_compose(&r, err);
    if (rc < 0)
        match_runes_fini(&r);
    else
        *out = r;
    return rc;
}

void match_runes_fini(struct runes *r)
{
    free(r->at);
    *r = (struct runes){NULL, 0};
}

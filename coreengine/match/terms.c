/* The words of a text, counted. */
#include <stdlib.h>

#include "coreengine/match/match_internal.h"

/* The words while a text is read. */
struct collector {
    char *bytes;                      /* room for all of them: they stay where they are; owned */
    size_t n_bytes, n_words, n_chars; /* n_chars: of the word under way */
    struct rv_word *at;               /* owned */
    size_t cap, from;                 /* from: where the word under way begins */
    int32_t last;   /* of a run of characters written without spaces the last one; 0: not in such a run */
    bool is_paired; /* it is in a word already */
};

static int compare(const void *a, const void *b)
{
    const struct rv_word *x = a, *y = b;
    size_t n = x->text.len < y->text.len ? x->text.len : y->text.len;
    int order = memcmp(x->text.ptr, y->text.ptr, n);

    return order ? order : (x->text.len > y->text.len) - (x->text.len < y->text.len);
}

static bool end_word(struct collector *c)
{
    if (c->n_chars == 0)
        return true;
    if (!rv_has_room(&c->at, &c->cap, c->n_words + 1, sizeof *c->at))
        return false;
    c->at[c->n_words++] = (struct rv_word){{c->bytes + c->from, c->n_bytes - c->from}, 1};
    c->from = c->n_bytes;
    c->n_chars = 0;
    return true;
}

static void put(struct collector *c, int32_t rune)
{
    if (c->n_chars < RV_TERM_MAX_CHARS)
        c->n_bytes += match_rune_write(rune, c->bytes + c->n_bytes);
    c->n_chars++;
}

/* Han, Hiragana, Katakana: their words have no spaces between. */
static bool is_unspaced(int32_t c)
{
    return (c >= 0x3005 && c <= 0x3007) || (c >= 0x3041 && c <= 0x30ff) || (c >= 0x31f0 && c <= 0x31ff) ||
           (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x4e00 && c <= 0x9fff) || (c >= 0xf900 && c <= 0xfaff) ||
           (c >= 0xff66 && c <= 0xff9f) || (c >= 0x20000 && c <= 0x3ffff);
}

static bool end_run(struct collector *c)
{
    bool is_alone = c->last && !c->is_paired;

    if (is_alone)
        put(c, c->last);
    c->last = 0;
    c->is_paired = false;
    return !is_alone || end_word(c);
}

static bool add_unspaced(struct collector *c, int32_t rune)
{
    bool is_pair = c->last != 0;

    if (!is_pair && !end_word(c))
        return false;
    if (is_pair) {
        put(c, c->last);
        put(c, rune);
    }
    c->last = rune;
    c->is_paired = is_pair;
    return !is_pair || end_word(c);
}

static bool add_char(struct collector *c, int32_t rune)
{
    bool is_word = match_rune_is_word(rune);

    if (is_word && is_unspaced(rune))
        return add_unspaced(c, rune);
    if (!end_run(c))
        return false;
    if (is_word || (c->n_chars > 0 && match_rune_is_mark(rune))) {
        put(c, match_rune_fold(rune));
        return true;
    }
    return end_word(c);
}

static int collect(rv_str text, struct collector *c, rv_err **err)
{
    struct runes r = {NULL, 0};
    int rc = match_runes_nfc(text, &r, err);

    if (rc < 0)
        return rc;
    c->bytes = calloc(r.n * 8 + 1, 1); /* a character may be in two pairs */
    bool ok = c->bytes != NULL;
    for (size_t i = 0; ok && i < r.n && c->n_words < RV_TERMS_MAX_WORDS; i++)
        ok = add_char(c, r.at[i]);
    if (ok && c->n_words < RV_TERMS_MAX_WORDS)
        ok = end_run(c) && end_word(c);
    match_runes_fini(&r);
    return ok ? 0 : RV_FAIL(err, RV_E_NOMEM, "read the words of a text");
}

int rv_terms_build(rv_str text, struct rv_terms *out, rv_err **err)
{
    struct collector c = {.bytes = NULL};
    size_t n = 0;
    int rc = collect(text, &c, err);

    if (rc < 0) {
        free(c.bytes);
        free(c.at);
        return rc;
    }
    if (c.n_words > 1)
        qsort(c.at, c.n_words, sizeof *c.at, compare);
    for (size_t i = 0; i < c.n_words; i++)
        if (n > 0 && rv_str_eq(c.at[n - 1].text, c.at[i].text))
            c.at[n - 1].count++;
        else
            c.at[n++] = c.at[i];
    *out = (struct rv_terms){c.at, n, c.n_words, c.bytes};
    return 0;
}

void rv_terms_fini(struct rv_terms *terms)
{
    free(terms->at);
    free(terms->bytes);
    *terms = (struct rv_terms){NULL, 0, 0, NULL};
}

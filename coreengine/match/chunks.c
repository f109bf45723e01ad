/* Chunks of a long text, and the names of pages. */
#include <stdlib.h>

#include "coreengine/match/match.h"
#include "coreengine/match/match_internal.h"

/* --- chunks --- */

struct cutter {
    const size_t *starts; /* where each character begins; one more for the end */
    rv_str text;
    size_t n; /* characters */
};

static int32_t char_at(const struct cutter *c, size_t i)
{
    size_t n;

    return match_rune_at(c->text, c->starts[i], &n);
}

static bool ends_sentence(int32_t c)
{
    return c == '.' || c == '!' || c == '?' || c == 0x2026;
}

static bool ends_sentence_alone(int32_t c) /* without white space after it */
{
    return c == '\n' || c == 0x3002 || c == 0xff01 || c == 0xff1f;
}

/* How good a place before character i is for the end of a chunk: 0 is none. White space stays before the place. */
static int border_before(const struct cutter *c, size_t i)
{
    int32_t before = char_at(c, i - 1);

    if (ends_sentence_alone(before))
        return before == '\n' && i >= 2 && char_at(c, i - 2) == '\n' ? 3 : 2;
    if (!match_rune_is_space(before))
        return 0;
    return i >= 2 && ends_sentence(char_at(c, i - 2)) ? 2 : 1;
}

/* Where a chunk ends that begins at character `from` and may go on to `until`. */
static size_t end_of(const struct cutter *c, size_t from, size_t until)
{
    size_t best = until;
    int how_good = 0;

    for (size_t i = until; i > from + (until - from) / 2 && how_good < 3; i--) {
        int border = border_before(c, i);
        if (border > how_good) {
            how_good = border;
            best = i;
        }
    }
    return best;
}

/* Where the chunk after one that ends at `end` begins. */
static size_t begin_after(const struct cutter *c, size_t end, size_t overlap)
{
    for (size_t i = end - overlap; i < end; i++)
        if (i > 0 && match_rune_is_space(char_at(c, i - 1)) && !match_rune_is_space(char_at(c, i)))
            return i;
    return end - overlap;
}

static bool is_blank(const struct cutter *c, size_t from, size_t until)
{
    for (size_t i = from; i < until; i++)
        if (!match_rune_is_space(char_at(c, i)))
            return false;
    return true;
}

static bool cut(const struct cutter *c, size_t max_chars, size_t overlap, struct rv_chunks *out)
{
    size_t cap = 0;

    for (size_t from = 0; from < c->n;) {
        size_t until = c->n - from > max_chars ? end_of(c, from, from + max_chars) : c->n;
        rv_str text = {c->text.ptr + c->starts[from], c->starts[until] - c->starts[from]};
        if (!is_blank(c, from, until)) {
            if (!rv_has_room(&out->at, &cap, out->n + 1, sizeof *out->at))
                return false;
            out->at[out->n++] = text;
        }
        from = until == c->n ? until : begin_after(c, until, overlap);
    }
    return true;
}

size_t rv_chunk_max_overlap(size_t max_chars)
{
    return max_chars ? (max_chars - 1) / 2 : 0;
}

int rv_chunks_build(rv_str text, size_t max_chars, size_t overlap, struct rv_chunks *out, rv_err **err)
{
    struct rv_chunks chunks = {NULL, 0};
    size_t n = 0;

    if (max_chars == 0 || overlap > rv_chunk_max_overlap(max_chars))
        return RV_FAIL(err, RV_E_INVALID, "chunks of %zu characters cannot share %zu: %zu is the most, less than half",
                       max_chars, overlap, rv_chunk_max_overlap(max_chars));
    size_t *starts = text.len < SIZE_MAX / sizeof *starts ? calloc(text.len + 1, sizeof *starts) : NULL;
    if (!starts)
        return RV_FAIL(err, RV_E_NOMEM, "cut a text into chunks");
    for (size_t i = 0, length; i < text.len; i += length) {
        RV_IGNORE(match_rune_at(text, i, &length), "its length is wanted");
        starts[n++] = i;
    }
    starts[n] = text.len;
    struct cutter c = {starts, text, n};
    bool ok = cut(&c, max_chars, overlap, &chunks);
    free(starts);
    if (!ok) {
        rv_chunks_fini(&chunks);
        return RV_FAIL(err, RV_E_NOMEM, "cut a text into chunks");
    }
    *out = chunks;
    return 0;
}

void rv_chunks_fini(struct rv_chunks *chunks)
{
    free(chunks->at);
    *chunks = (struct rv_chunks){NULL, 0};
}

/* --- names --- */

/* The last part of a path, which is cut off it. */
static rv_str last_part(rv_str *path)
{
    while (path->len > 0 && path->ptr[path->len - 1] == '/')
        path->len--;
    size_t from = path->len;
    while (from > 0 && path->ptr[from - 1] != '/')
        from--;
    rv_str part = {path->ptr + from, path->len - from};
    path->len = from;
    return part;
}

static rv_str stem(rv_str name)
{
    for (size_t i = name.len; i > 1; i--)
        if (name.ptr[i - 1] == '.' && i < name.len)
            return (rv_str){name.ptr, i - 1};
    return name;
}

static bool is_readme(rv_str s)
{
    static const char readme[] = "readme";

    if (s.len != sizeof readme - 1)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if ((s.ptr[i] | 0x20) != readme[i])
            return false;
    return true;
}

void rv_page_write_name(rv_str path, rv_buf *out)
{
    if (path.len == 0)
        return;
    rv_str name = stem(last_part(&path));
    if (is_readme(name)) {
        rv_str folder = last_part(&path);
        if (folder.len > 0 && !rv_str_is(folder, ".") && !rv_str_is(folder, ".."))
            name = folder;
    }
    rv_buf_add_str(out, name);
}

/* Characters that came in two halves.
 *
 * JSON writes a character above U+FFFF as two escapes. A server that cuts its text by UTF-16 units sends the first at
 * the end of one string and the second at the beginning of the next; each of these texts is broken for a strict reader.
 * So a half that stands alone is replaced, before the text is parsed, by a character of a private plane that stands for
 * it, and what was parsed is joined again. */
#include <string.h>

#include "coreengine/model/wire/wire_internal.h"

#define HIGH      0xD800u    /* first half of a surrogate pair */
#define LOW       0xDC00u    /* second half */
#define LOW_END   0xE000u    /* behind the last second half */
#define MARK      0x10F800u  /* + 0..0x7FF: the mark of HIGH + the same */
#define MARK_LEN  4          /* bytes of the mark in UTF-8 */
#define MARK_HEAD "\xF4\x8F" /* of all marks in UTF-8; the third byte is 0xA0..0xBF */
#define LOST      "\xEF\xBF\xBD"
#define ESCAPE    6 /* bytes of \uXXXX */

/* The unit that the escape at p stands for; false: p holds none. */
static bool read_unit(const char *p, size_t n, unsigned *unit)
{
    unsigned value = 0;

    if (n < ESCAPE || p[0] != '\\' || p[1] != 'u')
        return false;
    for (int i = 2; i < ESCAPE; i++) {
        char c = p[i];
        if (c >= '0' && c <= '9')
            value = value * 16 + (unsigned)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            value = value * 16 + (unsigned)((c | 0x20) - 'a') + 10;
        else
            return false;
    }
    *unit = value;
    return true;
}

static void add_wide(rv_buf *b, unsigned cp)
{
    const char bytes[MARK_LEN] = {(char)(0xF0 | cp >> 18), (char)(0x80 | (cp >> 12 & 0x3F)),
                                  (char)(0x80 | (cp >> 6 & 0x3F)), (char)(0x80 | (cp & 0x3F))};

    rv_buf_add(b, bytes, sizeof bytes);
}

void wire_half_mark(rv_str json, rv_buf *out, bool *has)
{
    size_t i = 0, from = 0;
    unsigned unit, next;

    *has = false;
    while (i < json.len) {
        const char *slash = memchr(json.ptr + i, '\\', json.len - i);
        if (!slash)
            break;
        i = (size_t)(slash - json.ptr);
        if (!read_unit(slash, json.len - i, &unit)) {
            i += 2; /* another escape, a backslash too */
            continue;
        }
        i += ESCAPE;
        if (unit < HIGH || unit >= LOW_END)
            continue;
        if (unit < LOW && read_unit(json.ptr + i, json.len - i, &next) && next >= LOW && next < LOW_END) {
            i += ESCAPE;
            continue;
        }
        rv_buf_add(out, json.ptr + from, i - ESCAPE - from);
        add_wide(out, MARK + (unit - HIGH));
        from = i;
        *has = true;
    }
    if (*has)
        rv_buf_add(out, json.ptr + from, json.len - from);
}

static bool at_mark(const char *p, size_t n)
{
    return n >= MARK_LEN && memcmp(p, MARK_HEAD, 2) == 0 && (unsigned char)p[2] >= 0xA0;
}

static void lose(struct wire_half *h, rv_buf *out)
{
    if (h->high)
        rv_buf_puts(out, LOST);
    h->high = 0;
}

static void join_unit(struct wire_half *h, unsigned unit, rv_buf *out)
{
    if (unit >= LOW && h->high) {
        add_wide(out, 0x10000 + ((h->high - HIGH) << 10) + (unit - LOW));
        h->high = 0;
        return;
    }
    lose(h, out);
    if (unit >= LOW)
        rv_buf_puts(out, LOST);
    else
        h->high = unit;
}

rv_str wire_half_join(struct wire_half *h, bool has_marks, rv_str text, rv_buf *scratch)
{
    size_t i = 0, from = 0;

    rv_buf_clear(scratch);
    if (!text.len || (!has_marks && !h->high))
        return text;
    while (has_marks && i < text.len) {
        const unsigned char *p = (const unsigned char *)text.ptr + i;
        if (!at_mark(text.ptr + i, text.len - i)) {
            i++;
            continue;
        }
        if (i > from)
            lose(h, scratch);
        rv_buf_add(scratch, text.ptr + from, i - from);
        join_unit(h, HIGH + ((p[2] & 0x1Fu) << 6 | (p[3] & 0x3Fu)), scratch);
        i += MARK_LEN;
        from = i;
    }
    if (from < text.len)
        lose(h, scratch);
    rv_buf_add(scratch, text.ptr + from, text.len - from);
    return rv_buf_str(scratch);
}

bool wire_half_is_lost(struct wire_half *h, rv_str *lost)
{
    bool was = h->high != 0;

    h->high = 0;
    *lost = RV_STR_LIT(LOST);
    return was;
}

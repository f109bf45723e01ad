/* The commonest chunk of a stream, read without a tree: one piece of text and nothing else that matters.
 *
 * This is a short way, not a second parser: whatever it does not expect (another member with a value, an escape of a
 * surrogate, a number with a point, a text in a key) it leaves to the strict one. What it takes, that one would have
 * taken with the same result. */
#include <string.h>

#include "coreengine/model/wire/wire_internal.h"

#define MAX_DIGITS 15 /* of the numbers that are skipped: as many as a double has; longer ones are read as a whole */

/* A chunk is some two hundred bytes around a word or two: what is done for each byte counts. */
#define IS(str, word) ((str).len == sizeof(word) - 1 && memcmp((str).ptr, (word), sizeof(word) - 1) == 0)

/* Bytes that stand for themselves in a string: printable ASCII but for the quote and the backslash. */
static const bool is_plain_byte[256] = {[' '] = true, ['!'] = true, ['#' ... '['] = true, [']' ... '~'] = true};

struct cursor {
    const char *p, *end;
};

struct piece {
    rv_buf *scratch;
    rv_str text;
    bool is_thinking;
    bool has_content, has_reasoning, has_delta, has_choices; /* a second one would count, not the first */
};

static void skip_blanks(struct cursor *c)
{
    while (c->p < c->end && *c->p <= ' ' && (*c->p == ' ' || *c->p == '\n' || *c->p == '\r' || *c->p == '\t'))
        c->p++;
}

static bool take(struct cursor *c, char what)
{
    if (c->p == c->end || *c->p != what) { /* there hardly ever are blanks */
        skip_blanks(c);
        if (c->p == c->end || *c->p != what)
            return false;
    }
    c->p++;
    return true;
}

static bool take_word(struct cursor *c, const char *word, size_t n)
{
    skip_blanks(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return false;
    c->p += n;
    return true;
}

static bool take_null(struct cursor *c)
{
    return take_word(c, "null", 4);
}

static void skip_plain(struct cursor *c)
{
    const char *p = c->p, *end = c->end;

    while (p < end && is_plain_byte[(unsigned char)*p])
        p++;
    c->p = p;
}

/* A string of plain ASCII. */
static bool take_plain(struct cursor *c, rv_str *out)
{
    const char *from;

    if (!take(c, '"'))
        return false;
    from = c->p;
    skip_plain(c);
    *out = (rv_str){from, (size_t)(c->p - from)};
    return c->p < c->end && *c->p++ == '"';
}

static bool take_number(struct cursor *c, rv_str *out)
{
    const char *from, *digits;

    skip_blanks(c);
    from = c->p;
    if (c->p < c->end && *c->p == '-')
        c->p++;
    digits = c->p;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
        c->p++;
    *out = (rv_str){from, (size_t)(c->p - from)};
    if (c->p == digits || c->p - digits > MAX_DIGITS || (*digits == '0' && c->p - digits > 1))
        return false;
    return c->p < c->end && *c->p != '.' && *c->p != 'e' && *c->p != 'E';
}

static bool skip_scalar(struct cursor *c)
{
    rv_str ignored;

    skip_blanks(c);
    if (c->p == c->end)
        return false;
    if (*c->p == '"')
        return take_plain(c, &ignored);
    if (*c->p == '-' || (*c->p >= '0' && *c->p <= '9'))
        return take_number(c, &ignored);
    return take_null(c) || take_word(c, "true", 4) || take_word(c, "false", 5);
}

static bool add_unit(struct cursor *c, rv_buf *out)
{
    unsigned value = 0;
    char bytes[3];
    size_t n = 0;

    if (c->end - c->p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char d = *c->p++;
        if (d >= '0' && d <= '9')
            value = value * 16 + (unsigned)(d - '0');
        else if ((d | 0x20) >= 'a' && (d | 0x20) <= 'f')
            value = value * 16 + (unsigned)((d | 0x20) - 'a') + 10;
        else
            return false;
    }
    if (value >= 0xD800 && value < 0xE000)
        return false;
    if (value < 0x80) {
        bytes[n++] = (char)value;
    } else {
        if (value < 0x800) {
            bytes[n++] = (char)(0xC0 | value >> 6);
        } else {
            bytes[n++] = (char)(0xE0 | value >> 12);
            bytes[n++] = (char)(0x80 | (value >> 6 & 0x3F));
        }
        bytes[n++] = (char)(0x80 | (value & 0x3F));
    }
    rv_buf_add(out, bytes, n);
    return true;
}

static bool add_escape(struct cursor *c, rv_buf *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at;

    if (c->p == c->end || *c->p == '\0')
        return false;
    if (*c->p == 'u') {
        c->p++;
        return add_unit(c, out);
    }
    at = strchr(from, *c->p++);
    if (!at)
        return false;
    rv_buf_putc(out, to[at - from]);
    return true;
}

/* A string of text: a view where it has no escapes, else put together in scratch. */
static bool take_text(struct cursor *c, rv_buf *scratch, rv_str *out)
{
    const char *from;
    bool is_plain = true, is_ascii = true;

    if (!take(c, '"'))
        return false;
    rv_buf_clear(scratch);
    for (from = c->p;;) {
        skip_plain(c);
        if (c->p == c->end || *c->p == '"')
            break;
        unsigned char byte = (unsigned char)*c->p;
        if (byte < ' ')
            return false;
        is_ascii = is_ascii && byte < 0x80;
        if (byte != '\\') {
            c->p++;
            continue;
        }
        rv_buf_add(scratch, from, (size_t)(c->p - from));
        c->p++;
        if (!add_escape(c, scratch))
            return false;
        is_plain = false;
        from = c->p;
    }
    if (c->p == c->end)
        return false;
    if (is_plain) {
        *out = (rv_str){from, (size_t)(c->p - from)};
    } else {
        rv_buf_add(scratch, from, (size_t)(c->p - from));
        *out = rv_buf_str(scratch);
    }
    c->p++;
    return scratch->rc == 0 && (is_ascii || rv_utf8_valid(*out, NULL));
}

/* The next key of the object; false with *more false at its end, with *more true where it is not plain. */
static bool next_key(struct cursor *c, bool *is_first, rv_str *key, bool *more)
{
    bool has_comma = !*is_first && take(c, ',');

    *more = has_comma || !take(c, '}');
    if (!*more || !(has_comma || *is_first))
        return false;
    *is_first = false;
    return take_plain(c, key) && take(c, ':');
}

static bool take_piece(struct cursor *c, struct piece *x, bool *seen, bool is_thinking)
{
    if (*seen)
        return false;
    *seen = true;
    if (take_null(c))
        return true;
    if (x->text.ptr)
        return false; /* two texts in one chunk */
    x->is_thinking = is_thinking;
    return take_text(c, x->scratch, &x->text);
}

static bool read_delta(struct cursor *c, struct piece *x)
{
    bool is_first = true, more = false;
    rv_str key;

    if (!take(c, '{'))
        return false;
    while (next_key(c, &is_first, &key, &more)) {
        bool ok;
        if (IS(key, "content"))
            ok = take_piece(c, x, &x->has_content, false);
        else if (IS(key, "reasoning_content") || IS(key, "reasoning"))
            ok = take_piece(c, x, &x->has_reasoning, true);
        else if (IS(key, "tool_calls") || IS(key, "function_call") || IS(key, "refusal"))
            ok = take_null(c);
        else
            ok = skip_scalar(c);
        if (!ok)
            return false;
    }
    return !more;
}

static bool read_choice(struct cursor *c, struct piece *x)
{
    bool is_first = true, more = false;
    rv_str key, number;

    if (!take(c, '{'))
        return false;
    while (next_key(c, &is_first, &key, &more)) {
        bool ok;
        if (IS(key, "delta")) {
            ok = !x->has_delta && read_delta(c, x);
            x->has_delta = true;
        } else if (IS(key, "index")) {
            ok = take_number(c, &number) && IS(number, "0");
        } else if (IS(key, "finish_reason") || IS(key, "message")) {
            ok = take_null(c);
        } else {
            ok = skip_scalar(c);
        }
        if (!ok)
            return false;
    }
    return !more;
}

static bool read_chunk(struct cursor *c, struct piece *x)
{
    bool is_first = true, more = false;
    rv_str key;

    if (!take(c, '{'))
        return false;
    while (next_key(c, &is_first, &key, &more)) {
        bool ok;
        if (IS(key, "choices")) {
            ok = !x->has_choices && take(c, '[') && read_choice(c, x) && take(c, ']');
            x->has_choices = true;
        } else if (IS(key, "usage") || IS(key, "error")) {
            ok = take_null(c);
        } else {
            ok = skip_scalar(c);
        }
        if (!ok)
            return false;
    }
    skip_blanks(c);
    return !more && c->p == c->end;
}

bool wire_openai_short_chunk(rv_str data, rv_buf *scratch, rv_str *text, bool *is_thinking)
{
    struct cursor c = {data.ptr, data.ptr + data.len};
    struct piece x = {.scratch = scratch};

    if (!read_chunk(&c, &x) || !x.has_choices)
        return false;
    *text = x.text;
    *is_thinking = x.is_thinking;
    return true;
}

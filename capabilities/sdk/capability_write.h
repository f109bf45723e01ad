/* Write JSON in a capability: an object, member by member. capability.h includes this.
 *
 *     struct rv_cap_out out = RV_CAP_OUT;
 *     rv_cap_put_str(&out, "name", name);
 *     rv_cap_begin(&out, "sizes", '[');
 *     rv_cap_put_int(&out, NULL, 7); // items of a list have no key
 *     rv_cap_end(&out);
 *     return rv_cap_reply(call, &out); // closes what is open, and frees the text
 *
 * Texts are UTF-8 and are escaped. What goes wrong (no memory, a key where none belongs) is kept in `failed`, and the
 * reply fails with it: nothing has to be checked on the way. */
#ifndef RV_CAPABILITY_WRITE_H
#define RV_CAPABILITY_WRITE_H

#include "capability_read.h"

#include <stdarg.h>

#define RV_CAP_MAX_TEXT ((size_t)8 << 20) /* bytes of an answer: as RV_CAP_MAX_REPLY, which a host takes */

#if defined(__GNUC__)
#define RV_CAP_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define RV_CAP_PRINTF(fmt, first)
#endif

struct rv_cap_out {
    char *text; /* owned: rv_cap_reply() or rv_cap_out_fini() frees it */
    size_t len, size;
    const char *failed; /* why; NULL: all is well; static */
    unsigned depth;
    char open[64]; /* '{' or '[' of each level */
};
#define RV_CAP_OUT                                                                                                     \
    {                                                                                                                  \
        NULL, 0, 0, NULL, 0,                                                                                           \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

static inline void rv_cap_out_fini(struct rv_cap_out *out)
{
    free(out->text);
    memset(out, 0, sizeof *out);
}

static inline void rv_cap_add(struct rv_cap_out *out, const char *bytes, size_t n)
{
    if (!out->failed && n > RV_CAP_MAX_TEXT - out->len)
        out->failed = "the answer is too large";
    if (!out->failed && n >= out->size - out->len) {
        size_t size = (out->len + n) * 2 + 64;
        char *text = (char *)realloc(out->text, size);
        if (!text) {
            out->failed = "there is no memory for the answer";
            return;
        }
        out->text = text;
        out->size = size;
    }
    if (out->failed)
        return;
    memcpy(out->text + out->len, bytes, n);
    out->len += n;
    out->text[out->len] = '\0';
}

static inline void rv_cap_add_str(struct rv_cap_out *out, const char *text)
{
    static const char chars[] = "\"\\\n\t\r\b\f", codes[] = "\"\\ntrbf";
    const char *from = text, *known;
    char code[8];

    rv_cap_add(out, "\"", 1);
    for (; *text; text++) {
        if (*text != '"' && *text != '\\' && (unsigned char)*text >= 0x20)
            continue;
        rv_cap_add(out, from, (size_t)(text - from));
        known = strchr(chars, *text);
        if (known)
            snprintf(code, sizeof code, "\\%c", codes[known - chars]);
        else
            snprintf(code, sizeof code, "\\u%04x", (unsigned)(unsigned char)*text);
        rv_cap_add(out, code, strlen(code));
        from = text + 1;
    }
    rv_cap_add(out, from, (size_t)(text - from));
    rv_cap_add(out, "\"", 1);
}

static inline void rv_cap_open(struct rv_cap_out *out, char type)
{
    if (out->depth >= sizeof out->open) {
        out->failed = "the answer has more than 64 levels";
        return;
    }
    out->open[out->depth++] = type;
    rv_cap_add(out, &type, 1);
}

/* Up to the value: the comma before it, and its key. */
static inline void rv_cap_key(struct rv_cap_out *out, const char *key)
{
    if (out->depth == 0 && !out->failed) {
        if (out->len > 0)
            out->failed = "a value comes after the end";
        else
            rv_cap_open(out, '{');
    }
    if (!out->failed && (key != NULL) != (out->open[out->depth - 1] == '{'))
        out->failed = key ? "an item of a list has a key" : "a member of an object has no key";
    if (out->failed)
        return;
    if (out->text[out->len - 1] != '{' && out->text[out->len - 1] != '[')
        rv_cap_add(out, ",", 1);
    if (key) {
        rv_cap_add_str(out, key);
        rv_cap_add(out, ":", 1);
    }
}

/** Begin an object ('{') or a list ('['). */
static inline void rv_cap_begin(struct rv_cap_out *out, const char *key, char type)
{
    rv_cap_key(out, key);
    if (!out->failed)
        rv_cap_open(out, (char)(type == '[' ? '[' : '{'));
}

/** End the last one that was begun. */
static inline void rv_cap_end(struct rv_cap_out *out)
{
    if (out->failed)
        return;
    if (out->depth == 0 && out->len == 0)
        rv_cap_open(out, '{');
    if (out->depth == 0) {
        out->failed = "more is ended than was begun";
        return;
    }
    rv_cap_add(out, out->open[--out->depth] == '[' ? "]" : "}", 1);
}

/** A text; NULL is null. */
static inline void rv_cap_put_str(struct rv_cap_out *out, const char *key, const char *text)
{
    rv_cap_key(out, key);
    if (text)
        rv_cap_add_str(out, text);
    else
        rv_cap_add(out, "null", 4);
}

/** A formatted text of any length. */
RV_CAP_PRINTF(3, 4)
static inline void rv_cap_put_strf(struct rv_cap_out *out, const char *key, const char *fmt, ...)
{
    char few[256], *text = few;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(few, sizeof few, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof few) {
        text = (char *)malloc((size_t)n + 1);
        if (text) {
            va_start(ap, fmt);
            vsnprintf(text, (size_t)n + 1, fmt, ap);
            va_end(ap);
        }
    }
    if (n < 0 || !text)
        out->failed = n < 0 ? "a text cannot be formatted" : "there is no memory for the answer";
    else
        rv_cap_put_str(out, key, text);
    if (text != few)
        free(text);
}

static inline void rv_cap_put_int(struct rv_cap_out *out, const char *key, int64_t value)
{
    char text[24];

    rv_cap_key(out, key);
    rv_cap_add(out, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)value));
}

static inline void rv_cap_put_num(struct rv_cap_out *out, const char *key, double value)
{
    char text[60]; /* the point of a locale may have some bytes */

    snprintf(text, sizeof text, "%.17g", value);
    if (strspn(text, "-0123456789") == 0 || strchr(text, 'n') || strchr(text, 'i')) {
        out->failed = "a number is not finite";
        return;
    }
    size_t point = strspn(text, "-0123456789"), width = strcspn(text + point, "0123456789");
    if (text[point] && text[point] != 'e') {
        memmove(text + point + 1, text + point + width, strlen(text + point + width) + 1);
        text[point] = '.';
    }
    rv_cap_key(out, key);
    rv_cap_add(out, text, strlen(text));
}

static inline void rv_cap_put_bool(struct rv_cap_out *out, const char *key, int value)
{
    rv_cap_key(out, key);
    rv_cap_add(out, value ? "true" : "false", value ? 4 : 5);
}

/** A value of another text, as rv_cap_get() finds it, or JSON text of the caller; NULL is null. */
static inline void rv_cap_put_json(struct rv_cap_out *out, const char *key, const char *value)
{
    size_t n = rv_cap_size(value);

    if (value && n == 0 && !out->failed)
        out->failed = "a value is not JSON";
    rv_cap_key(out, key);
    rv_cap_add(out, value ? value : "null", value ? n : 4);
}

/** The whole text, with what is open closed; `{}` if nothing was written. It lives until rv_cap_out_fini(). NULL: see
 * out->failed. */
static inline const char *rv_cap_text(struct rv_cap_out *out)
{
    while (!out->failed && (out->depth > 0 || out->len == 0))
        rv_cap_end(out);
    return out->failed ? NULL : out->text;
}

#endif

/* Strings and numbers of the JSON reader. */
#include "coreengine/base/json_reader_internal.h"
#include "coreengine/base/number.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_NUMBER 64 /* numbers up to this long are converted without an allocation */

enum outcome base_jr_expected(struct reader *r, const char *what)
{
    r->at = r->p;
    r->why = what;
    r->is_verdict = false;
    return r->p == r->end ? CUT : BROKEN;
}

enum outcome base_jr_verdict(struct reader *r, enum outcome how, const char *at, const char *why)
{
    r->at = at;
    r->why = why;
    r->is_verdict = true;
    r->name = (rv_str){NULL, 0};
    return how;
}

enum outcome base_jr_made(json_object *v, json_object **out)
{
    *out = v;
    return v ? OK : NO_MEMORY;
}

bool base_jr_at_digit(const struct reader *r)
{
    return r->p < r->end && *r->p >= '0' && *r->p <= '9';
}

/* --- strings --- */

static enum outcome read_hex4(struct reader *r, unsigned *out)
{
    unsigned value = 0;
    int i;

    for (i = 0; i < 4; i++, r->p++) {
        char c = r->p < r->end ? *r->p : '\0';
        if (c >= '0' && c <= '9')
            value = value * 16 + (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (unsigned)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            value = value * 16 + (unsigned)(c - 'A') + 10;
        else
            return base_jr_expected(r, "four hexadecimal digits");
    }
    *out = value;
    return OK;
}

static void add_code_point(rv_buf *b, unsigned cp)
{
    char *to = base_buf_room(b, 4);
    unsigned char *u = (unsigned char *)to;

    if (!to)
        return;
    if (cp < 0x80) {
        u[0] = (unsigned char)cp;
        b->len += 1;
    } else if (cp < 0x800) {
        u[0] = (unsigned char)(0xC0 | cp >> 6);
        u[1] = (unsigned char)(0x80 | (cp & 0x3F));
        b->len += 2;
    } else if (cp < 0x10000) {
        u[0] = (unsigned char)(0xE0 | cp >> 12);
        u[1] = (unsigned char)(0x80 | (cp >> 6 & 0x3F));
        u[2] = (unsigned char)(0x80 | (cp & 0x3F));
        b->len += 3;
    } else {
        u[0] = (unsigned char)(0xF0 | cp >> 18);
        u[1] = (unsigned char)(0x80 | (cp >> 12 & 0x3F));
        u[2] = (unsigned char)(0x80 | (cp >> 6 & 0x3F));
        u[3] = (unsigned char)(0x80 | (cp & 0x3F));
        b->len += 4;
    }
}

/* p stands behind `\u`. */
static enum outcome read_unicode_escape(struct reader *r)
{
    const char *start = r->p - 2;
    unsigned high, low;
    enum outcome rc = read_hex4(r, &high);

    if (rc)
        return rc;
    if (high >= 0xDC00 && high <= 0xDFFF)
        return base_jr_verdict(r, BROKEN, start, "a low surrogate stands alone");
    if (high >= 0xD800 && high <= 0xDBFF) {
        if (r->p == r->end || (*r->p == '\\' && r->p + 1 == r->end)) {
            r->p = r->end;
            return base_jr_expected(r, "the second half of a surrogate pair");
        }
        if (r->p[0] != '\\' || r->p[1] != 'u')
            return base_jr_verdict(r, BROKEN, start, "a high surrogate stands alone");
        r->p += 2;
        rc = read_hex4(r, &low);
        if (rc)
            return rc;
        if (low < 0xDC00 || low > 0xDFFF)
            return base_jr_verdict(r, BROKEN, start, "a high surrogate stands alone");
        high = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    }
    add_code_point(&r->scratch, high);
    return OK;
}

/* p stands on a backslash. */
static enum outcome read_escape(struct reader *r)
{
    r->p++;
    if (r->p == r->end)
        return base_jr_expected(r, "an escape");
    switch (*r->p++) {
    case '"':
        rv_buf_putc(&r->scratch, '"');
        return OK;
    case '\\':
        rv_buf_putc(&r->scratch, '\\');
        return OK;
    case '/':
        rv_buf_putc(&r->scratch, '/');
        return OK;
    case 'b':
        rv_buf_putc(&r->scratch, '\b');
        return OK;
    case 'f':
        rv_buf_putc(&r->scratch, '\f');
        return OK;
    case 'n':
        rv_buf_putc(&r->scratch, '\n');
        return OK;
    case 'r':
        rv_buf_putc(&r->scratch, '\r');
        return OK;
    case 't':
        rv_buf_putc(&r->scratch, '\t');
        return OK;
    case 'u':
        return read_unicode_escape(r);
    default:
        r->p--;
        return base_jr_expected(r, "one of \"\\/bfnrtu after a backslash");
    }
}

/* Moves over bytes that stand for themselves, up to the closing quote or a backslash. */
static enum outcome skip_plain(struct reader *r)
{
    for (;;) {
        int step;
        r->p += base_json_plain_run(r->p, (size_t)(r->end - r->p));
        if (r->p == r->end)
            return base_jr_expected(r, "'\"' to end the string");
        if (*r->p == '"' || *r->p == '\\')
            return OK;
        if ((unsigned char)*r->p < 0x20)
            return base_jr_expected(r, "an escape for the control character in the string");
        step = base_utf8_next((const unsigned char *)r->p, (size_t)(r->end - r->p));
        if (step == -1)
            r->p = r->end;
        if (step <= 0)
            return base_jr_verdict(r, step == -1 ? CUT : BROKEN, r->p, "a string holds bytes that are not UTF-8");
        r->p += step;
    }
}

enum outcome base_jr_string(struct reader *r, rv_str *out)
{
    const char *from = ++r->p;
    enum outcome rc = skip_plain(r);

    if (rc)
        return rc;
    if (*r->p == '"') {
        *out = (rv_str){from, (size_t)(r->p++ - from)};
        return OK;
    }
    rv_buf_clear(&r->scratch);
    while (*r->p == '\\') {
        rv_buf_add(&r->scratch, from, (size_t)(r->p - from));
        rc = read_escape(r);
        if (rc)
            return rc;
        from = r->p;
        rc = skip_plain(r);
        if (rc)
            return rc;
    }
    rv_buf_add(&r->scratch, from, (size_t)(r->p - from));
    if (r->scratch.rc)
        return NO_MEMORY; /* its ceiling is the text's length, which unescaping never exceeds */
    *out = rv_buf_str(&r->scratch);
    r->p++;
    return OK;
}

/* --- values --- */

enum outcome base_jr_string_value(struct reader *r, json_object **out)
{
    const char *start = r->p;
    rv_str s = {NULL, 0};
    enum outcome rc = base_jr_string(r, &s);

    if (rc || !r->build)
        return rc;
    if (s.len > INT_MAX - 1) /* json-c counts in int */
        return base_jr_verdict(r, TOO_MUCH, start, "the string is too long");
    return base_jr_made(json_object_new_string_len(s.len ? s.ptr : "", (int)s.len), out);
}

static enum outcome make_double(struct reader *r, const char *from, json_object **out)
{
    char small[SHORT_NUMBER];
    size_t len = (size_t)(r->p - from);
    char *text = len < sizeof small ? small : malloc(len + 1);
    enum outcome rc = OK;
    double d;

    if (!text)
        return NO_MEMORY;
    memcpy(text, from, len);
    text[len] = '\0';
    d = rv_number_read(text, NULL);
    if (!isfinite(d))
        rc = base_jr_verdict(r, BROKEN, from, "the number is out of range");
    else if (r->build)
        rc = base_jr_made(json_object_new_double_s(d, text), out);
    if (text != small)
        free(text);
    return rc;
}

static enum outcome skip_digits(struct reader *r)
{
    if (!base_jr_at_digit(r))
        return base_jr_expected(r, "a digit");
    while (base_jr_at_digit(r))
        r->p++;
    return OK;
}

enum outcome base_jr_number(struct reader *r, json_object **out)
{
    const char *from = r->p;
    bool negative = *r->p == '-', is_big = false;
    uint64_t magnitude = 0;
    enum outcome rc;

    if (negative)
        r->p++;
    if (!base_jr_at_digit(r))
        return base_jr_expected(r, "a digit");
    if (*r->p == '0') {
        r->p++;
        if (base_jr_at_digit(r))
            return base_jr_verdict(r, BROKEN, from, "a number starts with a needless 0");
    }
    for (; base_jr_at_digit(r); r->p++) {
        unsigned digit = (unsigned)(*r->p - '0');
        if (magnitude > (UINT64_MAX - digit) / 10)
            is_big = true;
        magnitude = magnitude * 10 + digit;
    }
    if (r->p < r->end && (*r->p == '.' || *r->p == 'e' || *r->p == 'E')) {
        if (*r->p == '.') {
            r->p++;
            rc = skip_digits(r);
            if (rc)
                return rc;
        }
        if (r->p < r->end && (*r->p == 'e' || *r->p == 'E')) {
            r->p++;
            if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
                r->p++;
            rc = skip_digits(r);
            if (rc)
                return rc;
        }
        return make_double(r, from, out);
    }
    if (is_big || (negative && magnitude > (uint64_t)INT64_MAX + 1)) {
        if (r->opts->refuse_big_ints)
            return base_jr_verdict(r, BROKEN, from, "the integer does not fit 64 bits");
        return make_double(r, from, out); /* its text is written again: a reader of the text gets the same number */
    }
    if (!r->build)
        return OK;
    if (negative) /* in unsigned arithmetic, as -2^63 has no positive twin */
        return base_jr_made(json_object_new_int64((int64_t)(0 - magnitude)), out);
    return base_jr_made(
        magnitude > INT64_MAX ? json_object_new_uint64(magnitude) : json_object_new_int64((int64_t)magnitude), out);
}

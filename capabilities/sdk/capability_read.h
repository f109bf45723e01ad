/* Read JSON in a capability: a value is a pointer to its first byte in a text. capability.h includes this.
 *
 * Nothing is copied or allocated: a value lives as long as its text. NULL is a value that is absent, and each function
 * takes it. Texts of the host (args, context, config, answers) have been checked; of a text from elsewhere the
 * functions find less, and never read behind its end. */
#ifndef RV_CAPABILITY_READ_H
#define RV_CAPABILITY_READ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline const char *rv_cap_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* Four hexadecimal digits; -1: they are not. */
static inline long rv_cap_hex(const char *at)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    long value = 0;

    for (int i = 0; i < 4; i++) {
        const char *digit = at[i] ? strchr(digits, at[i]) : NULL;
        if (!digit)
            return -1;
        value = value << 4 | (long)((digit - digits) & 15);
    }
    return value;
}

static inline int rv_cap_utf8(long point, char out[4])
{
    int n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

    for (int i = n; i-- > 1; point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3f));
    out[0] = (char)(n == 1 ? point : (0xf00 >> n & 0xff) | point);
    return n;
}

/* The next character of a string, behind its opening quote, as UTF-8. Gives the number of bytes; 0: the closing quote;
 * -1: this is not a string. */
static inline int rv_cap_char(const char **at, char out[4])
{
    static const char codes[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *p = *at, *code;
    long point, low;

    if (*p == '"')
        return 0;
    if (*p != '\\') {
        out[0] = *p;
        *at = p + 1;
        return (unsigned char)*p < 0x20 ? -1 : 1;
    }
    code = p[1] && p[1] != 'u' ? strchr(codes, p[1]) : NULL;
    if (code) {
        out[0] = values[code - codes];
        *at = p + 2;
        return 1;
    }
    point = p[1] == 'u' ? rv_cap_hex(p + 2) : -1;
    if (point < 0 || (point >= 0xdc00 && point < 0xe000))
        return -1;
    *at = p + 6;
    if (point >= 0xd800 && point < 0xdc00) {
        low = p[6] == '\\' && p[7] == 'u' ? rv_cap_hex(p + 8) : -1;
        if (low < 0xdc00 || low >= 0xe000)
            return -1;
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
        *at = p + 12;
    }
    return rv_cap_utf8(point, out);
}

/* Behind a value; NULL: the text ends before. */
static inline const char *rv_cap_skip(const char *at)
{
    size_t depth = 0;

    do {
        at = rv_cap_space(at);
        if (*at == '"') {
            for (at++; *at && *at != '"'; at++)
                if (*at == '\\' && *++at == '\0')
                    return NULL;
            if (!*at)
                return NULL;
            at++;
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (depth > 0 && (*at == '}' || *at == ']')) {
            depth--;
            at++;
        } else if (depth > 0 && (*at == ',' || *at == ':')) {
            at++;
        } else {
            size_t n = strcspn(at, ",:{}[]\" \t\r\n");
            if (n == 0)
                return NULL;
            at += n;
        }
    } while (depth > 0);
    return at;
}

/** '{' object, '[' list, '"' text, '0' number, 'b' true or false, 'n' null; 0: absent. */
static inline char rv_cap_type(const char *value)
{
    char c = *rv_cap_space(value ? value : "");

    if (c == 't' || c == 'f')
        return 'b';
    if (c == '-' || (c >= '0' && c <= '9'))
        return '0';
    return (char)(c == '{' || c == '[' || c == '"' || c == 'n' ? c : 0);
}

/** Bytes of the value as it stands in its text. */
static inline size_t rv_cap_size(const char *value)
{
    const char *end = value ? rv_cap_skip(value) : NULL;

    return end ? (size_t)(end - value) : 0;
}

/* The members of an object, the items of a list:
 *     struct rv_cap_iter i = rv_cap_each(rv_cap_get(call->args, "files"));
 *     while (rv_cap_next(&i))
 *         ... i.value, i.index, and of an object i.key, which is a text of JSON, too
 * All texts are borrowed from the text that is read. */
struct rv_cap_iter {
    const char *at; /* behind the last value; NULL: there are no more */
    const char *key, *value;
    size_t index;
    char type;
};

static inline struct rv_cap_iter rv_cap_each(const char *container)
{
    struct rv_cap_iter i;

    i.type = rv_cap_type(container);
    i.at = i.type == '{' || i.type == '[' ? rv_cap_space(container) : NULL;
    i.key = i.value = NULL;
    i.index = 0;
    return i;
}

/** The next one; 0: there are no more. */
static inline int rv_cap_next(struct rv_cap_iter *i)
{
    const char *at = i->at ? rv_cap_space(i->at) : NULL;

    i->at = NULL;
    if (!at || (i->value ? *at != ',' : *at != i->type))
        return 0;
    at = rv_cap_space(at + 1);
    i->key = NULL;
    if (i->type == '{') {
        i->key = at;
        if (*at != '"' || !(at = rv_cap_skip(at)) || *(at = rv_cap_space(at)) != ':')
            return 0;
        at = rv_cap_space(at + 1);
    }
    i->index += i->value != NULL;
    i->value = at;
    i->at = rv_cap_skip(at);
    return i->at != NULL;
}

/* Is the string `json` the first n bytes of text? */
static inline int rv_cap_is(const char *json, const char *text, size_t n)
{
    char c[4];
    int len;

    for (json++; (len = rv_cap_char(&json, c)) > 0; text += len, n -= (size_t)len)
        if ((size_t)len > n || memcmp(text, c, (size_t)len) != 0)
            return 0;
    return len == 0 && n == 0;
}

/** The value at a path: names of members and numbers of items, from 0, with dots between: "envelope.raw_input",
 * "hits.0.name". NULL: it is not there. (rv_cap_each() finds members with a dot in their names.) */
static inline const char *rv_cap_get(const char *json, const char *path)
{
    while (json && *path) {
        size_t n = strcspn(path, ".");
        struct rv_cap_iter i = rv_cap_each(json);
        char number[24];

        json = NULL;
        while (!json && rv_cap_next(&i)) {
            snprintf(number, sizeof number, "%lu", (unsigned long)i.index);
            if (i.key ? rv_cap_is(i.key, path, n) : strlen(number) == n && memcmp(number, path, n) == 0)
                json = i.value;
        }
        path += n + (path[n] == '.');
    }
    return json;
}

/** The text of a string, as UTF-8 that ends with NUL. Gives its length; -1: it is not a text, it has a NUL in it, or it
 * does not fit: then out is "". */
static inline long rv_cap_str(const char *value, char *out, size_t size)
{
    size_t n = 0;
    char c[4];
    int len = -1;

    if (rv_cap_type(value) == '"')
        for (value = rv_cap_space(value) + 1; (len = rv_cap_char(&value, c)) > 0; n += (size_t)len) {
            if (n + (size_t)len >= size || c[0] == '\0') {
                len = -1;
                break;
            }
            memcpy(out + n, c, (size_t)len);
        }
    if (size > 0)
        out[len == 0 && n < size ? n : 0] = '\0';
    return len == 0 && n < size ? (long)n : -1;
}

/** The same, of any length. The caller's to free(); NULL: it is not a text, or memory is short. */
static inline char *rv_cap_strdup(const char *value)
{
    size_t size = rv_cap_size(value) + 1;
    char *text = (char *)(rv_cap_type(value) == '"' ? malloc(size) : NULL);

    if (text && rv_cap_str(value, text, size) < 0) {
        free(text);
        text = NULL;
    }
    return text;
}

/** 0; -1: it is not a number, and out is as it was. */
static inline int rv_cap_num(const char *value, double *out)
{
    char text[400 + 16], half[16], *end;
    size_t n = rv_cap_size(value), point, width = (size_t)snprintf(half, sizeof half, "%.1f", 0.5) - 2;

    if (rv_cap_type(value) != '0' || n >= 400)
        return -1;
    memcpy(text, value, n);
    text[n] = '\0';
    point = strcspn(text, ".");
    if (text[point]) { /* strtod() reads it as the locale writes it, which half shows */
        memmove(text + point + width, text + point + 1, n - point);
        memcpy(text + point, half + 1, width);
    }
    double number = strtod(text, &end);
    if (*rv_cap_space(end))
        return -1;
    *out = number;
    return 0;
}

/** 0; -1: it is not a whole number, or one of more than 64 bits, and out is as it was. */
static inline int rv_cap_int(const char *value, int64_t *out)
{
    const char *at;
    uint64_t n = 0, most = INT64_MAX;
    double number;
    int is_negative;

    if (rv_cap_type(value) != '0')
        return -1;
    at = rv_cap_space(value);
    is_negative = *at == '-';
    for (at += is_negative, most += (uint64_t)is_negative; *at >= '0' && *at <= '9'; at++) {
        if (n > (most - (uint64_t)(*at - '0')) / 10)
            return -1;
        n = n * 10 + (uint64_t)(*at - '0');
    }
    if (*at == '.' || *at == 'e' || *at == 'E') { /* 1.0 and 1e3 are whole */
        if (rv_cap_num(value, &number) != 0 || number < -9e15 || number > 9e15 || number != (double)(int64_t)number)
            return -1;
        *out = (int64_t)number;
        return 0;
    }
    *out = !is_negative ? (int64_t)n : n == 0 ? 0 : -(int64_t)(n - 1) - 1;
    return 0;
}

/** 0 and 0 or 1; -1: it is neither true nor false, and out is as it was. */
static inline int rv_cap_bool(const char *value, int *out)
{
    if (rv_cap_type(value) != 'b')
        return -1;
    *out = *rv_cap_space(value) == 't';
    return 0;
}

#endif

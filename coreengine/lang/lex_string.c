/* String literals: 'a', "a", '''a''', """a""", each also raw with r in front, and the escapes of the others. */
#include <string.h>

#include "coreengine/lang/expr_internal.h"

#define MAX_CODE_POINT 0x10ffff

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static size_t put_utf8(char *out, unsigned cp)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | (cp >> 6));
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | (cp >> 12));
        out[1] = (char)(0x80 | ((cp >> 6) & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | (cp >> 18));
    out[1] = (char)(0x80 | ((cp >> 12) & 0x3f));
    out[2] = (char)(0x80 | ((cp >> 6) & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

/* `n` digits in `base` that follow the escape's letter; the escape is at off. */
static int numeric_escape(struct rv_compile *c, size_t off, size_t digits, size_t n, int base, unsigned *out)
{
    unsigned cp = 0;

    for (size_t i = 0; i < n; i++) {
        int d = digits + i < c->e->len ? hex_digit(c->e->text[digits + i]) : -1;

        if (d < 0 || d >= base)
            return RV_EXPR_FAIL(c, off, RV_E_PARSE, "escape \"\\%c\" needs %zu %s digits", c->e->text[off + 1], n,
                                base == 8 ? "octal" : "hexadecimal");
        /* At most 8 hexadecimal digits: 32 bits, no overflow. */
        cp = cp * (unsigned)base + (unsigned)d;
    }
    if (cp > MAX_CODE_POINT || (cp >= 0xd800 && cp <= 0xdfff))
        return RV_EXPR_FAIL(c, off, RV_E_PARSE, "escape \"%.*s\" is not a Unicode character", (int)(digits + n - off),
                            c->e->text + off);
    *out = cp;
    return 0;
}

/* The escape at c->pos (a backslash): its character to *out, c->pos behind it. */
static int lex_escape(struct rv_compile *c, unsigned *out)
{
    static const char plain[] = "a\ab\bf\fn\nr\rt\tv\v\\\\\"\"''``\?\?";
    size_t off = c->pos;
    char ch = off + 1 < c->e->len ? c->e->text[off + 1] : '\0';
    size_t n;

    for (size_t i = 0; i + 1 < sizeof(plain); i += 2) {
        if (ch == plain[i]) {
            *out = (unsigned char)plain[i + 1];
            c->pos += 2;
            return 0;
        }
    }
    n = ch == 'x' || ch == 'X' ? 2 : ch == 'u' ? 4 : ch == 'U' ? 8 : 0;
    if (n > 0) {
        c->pos += 2 + n;
        return numeric_escape(c, off, off + 2, n, 16, out);
    }
    if (ch >= '0' && ch <= '3') {
        c->pos += 4;
        return numeric_escape(c, off, off + 1, 3, 8, out);
    }
    if (ch > ' ' && ch < 0x7f)
        return RV_EXPR_FAIL(c, off, RV_E_PARSE, "unknown escape \"\\%c\" in a string", ch);
    return RV_EXPR_FAIL(c, off, RV_E_PARSE, "unfinished escape in a string");
}

/* c->pos is at the opening quote; start is the literal's first byte, an r in front included. */
int rv_expr_lex_string(struct rv_compile *c, bool raw, size_t start)
{
    const char *text = c->e->text;
    size_t len = c->e->len;
    char quote = text[c->pos];
    bool triple = len - c->pos >= 3 && text[c->pos + 1] == quote && text[c->pos + 2] == quote;
    size_t n_quotes = triple ? 3 : 1, n = 0;
    /* Decoding never makes a text longer: the shortest escape of a 4-byte character has 10 bytes. */
    char *out = c->scratch;

    c->pos += n_quotes;
    for (;;) {
        unsigned cp;

        if (c->pos >= len)
            return RV_EXPR_FAIL(c, start, RV_E_PARSE, "string has no closing %.*s", (int)n_quotes,
                                quote == '"' ? "\"\"\"" : "'''");
        if (text[c->pos] == quote &&
            (!triple || (len - c->pos >= 3 && text[c->pos + 1] == quote && text[c->pos + 2] == quote)))
            break;
        if (!triple && (text[c->pos] == '\n' || text[c->pos] == '\r'))
            return RV_EXPR_FAIL(c, start, RV_E_PARSE, "line break in a string; write \\n, or use three quotes");
        if (text[c->pos] == '\\' && !raw) {
            int rc = lex_escape(c, &cp);

            if (rc < 0)
                return rc;
            n += put_utf8(out + n, cp);
        } else {
            out[n++] = text[c->pos++];
        }
    }
    c->pos += n_quotes;
    out = rv_arena_dup(c->e->arena, (rv_str){out, n});
    if (!out)
        return RV_EXPR_FAIL(c, start, RV_E_NOMEM, "no memory for a string literal");
    c->tok.kind = RV_TOK_LITERAL;
    c->tok.value = (struct rv_value){.type = RV_T_STRING, .as.s = {out, n}};
    return 0;
}

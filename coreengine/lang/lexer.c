/* Text to tokens. Literals are decoded here, into the arena of the expression; string literals have their own rules in
 * expr_lex_string(). Names, keywords and operators are told apart here, what they mean is the parser's business. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/lang/expr_internal.h"

/* --- String literals: 'a', "a", '''a''', """a""", each also raw with r in front, and the escapes of the others --- */

#define MAX_CODE_POINT 0x10ffff /* the last of Unicode: UTF-8 writes no larger one, by RFC 3629 */

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
        int d = digits + i < c->e->len ? rv_hex_digit(c->e->text[digits + i]) : -1;

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
static int expr_lex_string(struct rv_compile *c, bool raw, size_t start)
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

        if (c->pos >= len) {
            int rc = RV_EXPR_FAIL(c, start, RV_E_PARSE, "string has no closing %.*s", (int)n_quotes,
                                  quote == '"' ? "\"\"\"" : "'''");
            rv_err_set_hint(c->err, "a quote inside of a string is written \\%c", quote);
            return rc;
        }
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

/* --- Tokens --- */

static const char *const puncts[] = {
#define X(name, text) text,
    RV_PUNCTS(X)
#undef X
};

static bool is_name_start(char c)
{
    return rv_is_letter(c) || c == '_';
}

/* The byte at off, or NUL at the end. A NUL within the text does not belong to any token, so the two cases look the
 * same until lang_expr_next_token() compares with the length. */
static char at(const struct rv_compile *c, size_t off)
{
    return off < c->e->len ? c->e->text[off] : '\0';
}

static void skip_blanks(struct rv_compile *c)
{
    for (;;) {
        char ch = at(c, c->pos);

        if (ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r' || ch == '\f') {
            c->pos++;
        } else if (ch == '/' && at(c, c->pos + 1) == '/') {
            while (c->pos < c->e->len && at(c, c->pos) != '\n')
                c->pos++;
        } else {
            return;
        }
    }
}

static int lex_integer(struct rv_compile *c, size_t start, size_t digits, int base)
{
    const char *text = c->e->text;
    unsigned long long u;
    char *end;

    errno = 0;
    u = strtoull(text + digits, &end, base);
    if (errno == ERANGE || end != text + c->pos) {
        int rc =
            RV_EXPR_FAIL(c, start, RV_E_PARSE, "integer \"%.*s\" is too large", (int)(c->pos - start), text + start);
        rv_err_set_hint(c->err,
                        "the largest is 9223372036854775807; a number with a point or an exponent may be larger");
        return rc;
    }
    if (at(c, c->pos) == 'u' || at(c, c->pos) == 'U') {
        c->pos++;
        c->tok.value = (struct rv_value){.type = RV_T_UINT, .as.u = u};
        return 0;
    }
    /* 2^63 exists only behind a minus sign; the parser looks for it there and rejects it elsewhere. */
    if (u > (unsigned long long)INT64_MAX + 1)
        return RV_EXPR_FAIL(c, start, RV_E_PARSE, "integer \"%.*s\" does not fit int64 (write %.*su for a uint)",
                            (int)(c->pos - start), text + start, (int)(c->pos - start), text + start);
    c->tok.value = (struct rv_value){.type = RV_T_INT, .as.i = u > INT64_MAX ? INT64_MIN : (int64_t)u};
    return 0;
}

static int lex_number(struct rv_compile *c)
{
    size_t start = c->pos;
    bool is_double = false;
    double d;

    if (at(c, c->pos) == '0' && (at(c, c->pos + 1) == 'x' || at(c, c->pos + 1) == 'X')) {
        c->pos += 2;
        while (isxdigit((unsigned char)at(c, c->pos)))
            c->pos++;
        if (c->pos == start + 2)
            return RV_EXPR_FAIL(c, start, RV_E_PARSE, "no digits after \"0x\"");
        if (lex_integer(c, start, start + 2, 16) < 0)
            return RV_E_PARSE;
        goto done;
    }
    while (rv_is_digit(at(c, c->pos)))
        c->pos++;
    if (at(c, c->pos) == '.' && rv_is_digit(at(c, c->pos + 1))) {
        is_double = true;
        c->pos++;
        while (rv_is_digit(at(c, c->pos)))
            c->pos++;
    }
    if (at(c, c->pos) == 'e' || at(c, c->pos) == 'E') {
        size_t digits = c->pos + 1 + (at(c, c->pos + 1) == '+' || at(c, c->pos + 1) == '-');

        if (rv_is_digit(at(c, digits))) {
            is_double = true;
            c->pos = digits;
            while (rv_is_digit(at(c, c->pos)))
                c->pos++;
        }
    }
    if (!is_double) {
        if (lex_integer(c, start, start, 10) < 0)
            return RV_E_PARSE;
    } else {
        d = rv_number_read(c->e->text + start, NULL);
        if (!isfinite(d))
            return RV_EXPR_FAIL(c, start, RV_E_PARSE, "number \"%.*s\" is too large", (int)(c->pos - start),
                                c->e->text + start);
        c->tok.value = (struct rv_value){.type = RV_T_DOUBLE, .as.d = d};
    }
done:
    if (is_name_start(at(c, c->pos)) || rv_is_digit(at(c, c->pos)))
        return RV_EXPR_FAIL(c, start, RV_E_PARSE, "unexpected \"%c\" after number \"%.*s\"", at(c, c->pos),
                            (int)(c->pos - start), c->e->text + start);
    c->tok.kind = RV_TOK_LITERAL;
    return 0;
}

static int lex_name(struct rv_compile *c)
{
    size_t start = c->pos;
    rv_str name;

    while (is_name_start(at(c, c->pos)) || rv_is_digit(at(c, c->pos)))
        c->pos++;
    name = (rv_str){c->e->text + start, c->pos - start};

    if (at(c, c->pos) == '"' || at(c, c->pos) == '\'') {
        if (rv_str_is(name, "r") || rv_str_is(name, "R"))
            return expr_lex_string(c, true, start);
        if (name.len <= 2 && strchr("bB", name.ptr[0]) && (name.len == 1 || strchr("rR", name.ptr[1])))
            return RV_EXPR_FAIL(c, start, RV_E_PARSE, "bytes literals are not part of this subset of CEL");
    }
    if (rv_str_is(name, "in")) {
        c->tok.kind = RV_TOK_PUNCT;
        c->tok.op = RV_OP_IN;
        return 0;
    }
    c->tok.kind = RV_TOK_LITERAL;
    if (rv_str_is(name, "true") || rv_str_is(name, "false"))
        c->tok.value = (struct rv_value){.type = RV_T_BOOL, .as.b = name.len == 4};
    else if (rv_str_is(name, "null"))
        c->tok.value = (struct rv_value){.type = RV_T_NULL};
    else
        c->tok.kind = RV_TOK_IDENT;
    return 0;
}

static int lex_punct(struct rv_compile *c)
{
    char ch = at(c, c->pos);

    for (int op = 0; op < RV_OP_IN; op++) {
        size_t len = strlen(puncts[op]);

        if (c->e->len - c->pos >= len && memcmp(c->e->text + c->pos, puncts[op], len) == 0) {
            c->pos += len;
            c->tok.kind = RV_TOK_PUNCT;
            c->tok.op = (enum rv_punct)op;
            return 0;
        }
    }
    /* The likely slips of people who come from other languages. */
    if (ch == '=') {
        int rc = RV_EXPR_FAIL(c, c->pos, RV_E_PARSE, "unexpected \"=\"; equality is \"==\"");
        rv_err_set_hint(c->err, "compare with \"==\", for example output.verdict == \"ok\"");
        return rc;
    }
    if (ch == '&' || ch == '|')
        return RV_EXPR_FAIL(c, c->pos, RV_E_PARSE, "unexpected \"%c\"; the operator is \"%c%c\"", ch, ch, ch);
    if (ch == '`')
        return RV_EXPR_FAIL(c, c->pos, RV_E_PARSE,
                            "unexpected \"`\"; write a[\"name\"] for a name with other characters");
    if (ch > ' ' && ch < 0x7f)
        return RV_EXPR_FAIL(c, c->pos, RV_E_PARSE, "unexpected \"%c\"", ch);
    return RV_EXPR_FAIL(c, c->pos, RV_E_PARSE, "unexpected character (byte 0x%02x)", (unsigned)(unsigned char)ch);
}

int lang_expr_next_token(struct rv_compile *c)
{
    char ch;
    int rc;

    skip_blanks(c);
    c->tok = (struct rv_token){.kind = RV_TOK_END, .off = c->pos};
    if (c->pos == c->e->len)
        return 0;

    ch = at(c, c->pos);
    if (rv_is_digit(ch) || (ch == '.' && rv_is_digit(at(c, c->pos + 1))))
        rc = lex_number(c);
    else if (is_name_start(ch))
        rc = lex_name(c);
    else if (ch == '"' || ch == '\'')
        rc = expr_lex_string(c, false, c->pos);
    else
        rc = lex_punct(c);
    c->tok.len = c->pos - c->tok.off;
    return rc;
}

/* Text to tokens. Literals are decoded here, into the arena of the expression; string literals have their own rules in
 * lex_string(). Names, keywords and operators are told apart here, what they mean is the parser's business. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/expr_internal.h"

static const char *const puncts[] = {
#define X(name, text) text,
    RV_PUNCTS(X)
#undef X
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The byte at off, or NUL at the end. A NUL within the text does not belong to any token, so the two cases look the
 * same until next_token() compares with the length. */
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
    if (errno == ERANGE || end != text + c->pos)
        return RV_EXPR_FAIL(c, start, RV_E_PARSE, "integer \"%.*s\" is too large", (int)(c->pos - start), text + start);
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
    while (is_digit(at(c, c->pos)))
        c->pos++;
    if (at(c, c->pos) == '.' && is_digit(at(c, c->pos + 1))) {
        is_double = true;
        c->pos++;
        while (is_digit(at(c, c->pos)))
            c->pos++;
    }
    if (at(c, c->pos) == 'e' || at(c, c->pos) == 'E') {
        size_t digits = c->pos + 1 + (at(c, c->pos + 1) == '+' || at(c, c->pos + 1) == '-');

        if (is_digit(at(c, digits))) {
            is_double = true;
            c->pos = digits;
            while (is_digit(at(c, c->pos)))
                c->pos++;
        }
    }
    if (!is_double) {
        if (lex_integer(c, start, start, 10) < 0)
            return RV_E_PARSE;
    } else {
        d = strtod(c->e->text + start, NULL);
        if (!isfinite(d))
            return RV_EXPR_FAIL(c, start, RV_E_PARSE, "number \"%.*s\" is too large", (int)(c->pos - start),
                                c->e->text + start);
        c->tok.value = (struct rv_value){.type = RV_T_DOUBLE, .as.d = d};
    }
done:
    if (is_name_start(at(c, c->pos)) || is_digit(at(c, c->pos)))
        return RV_EXPR_FAIL(c, start, RV_E_PARSE, "unexpected \"%c\" after number \"%.*s\"", at(c, c->pos),
                            (int)(c->pos - start), c->e->text + start);
    c->tok.kind = RV_TOK_LITERAL;
    return 0;
}

static int lex_name(struct rv_compile *c)
{
    size_t start = c->pos;
    rv_str name;

    while (is_name_start(at(c, c->pos)) || is_digit(at(c, c->pos)))
        c->pos++;
    name = (rv_str){c->e->text + start, c->pos - start};

    if (at(c, c->pos) == '"' || at(c, c->pos) == '\'') {
        if (rv_str_is(name, "r") || rv_str_is(name, "R"))
            return rv_expr_lex_string(c, true, start);
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
    if (ch == '=')
        return RV_EXPR_FAIL(c, c->pos, RV_E_PARSE, "unexpected \"=\"; equality is \"==\"");
    if (ch == '&' || ch == '|')
        return RV_EXPR_FAIL(c, c->pos, RV_E_PARSE, "unexpected \"%c\"; the operator is \"%c%c\"", ch, ch, ch);
    if (ch == '`')
        return RV_EXPR_FAIL(c, c->pos, RV_E_PARSE,
                            "unexpected \"`\"; write a[\"name\"] for a name with other characters");
    if (ch > ' ' && ch < 0x7f)
        return RV_EXPR_FAIL(c, c->pos, RV_E_PARSE, "unexpected \"%c\"", ch);
    return RV_EXPR_FAIL(c, c->pos, RV_E_PARSE, "unexpected character (byte 0x%02x)", (unsigned)(unsigned char)ch);
}

int rv_expr_next_token(struct rv_compile *c)
{
    char ch;
    int rc;

    skip_blanks(c);
    c->tok = (struct rv_token){.kind = RV_TOK_END, .off = c->pos};
    if (c->pos == c->e->len)
        return 0;

    ch = at(c, c->pos);
    if (is_digit(ch) || (ch == '.' && is_digit(at(c, c->pos + 1))))
        rc = lex_number(c);
    else if (is_name_start(ch))
        rc = lex_name(c);
    else if (ch == '"' || ch == '\'')
        rc = rv_expr_lex_string(c, false, c->pos);
    else
        rc = lex_punct(c);
    c->tok.len = c->pos - c->tok.off;
    return rc;
}

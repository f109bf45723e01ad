/* The tokens of a statement: strings of every kind with their values, names, numbers, operators. Comments nest. */
#include <string.h>

#include "coreengine/rem/sql_internal.h"

#include "coreengine/base/base.h"

#define MAX_NUMBER 100 /* characters: a double has 17 digits, and no reader of a statement writes more */

struct lexer {
    struct sql *p;
    const char *at, *end;
    char *room; /* for values, in the arena: none is longer than its source */
};

static const char *const operators[] = {"->>", "->", "::", "<>", "!=", "<=", ">=", "||", "+", "-", "*",
                                        "/",   "%",  "<",  ">",  "=",  ".",  ",",  "(",  ")", ";"};
/* Operators of single databases, and what to write instead. */
static const struct {
    const char *text, *portable;
} foreign[] = {
    {"==", "write = to compare"},
    {"@>", "compare a member: metadata ->> 'key' = 'value'; for a list: 'value' = ANY(tags)"},
    {"<@", "compare a member: metadata ->> 'key' = 'value'"},
    {"#>", "go down with ->, the last step with ->>: metadata -> 'a' ->> 'b'"},
    {"~~", "write LIKE"},
    {"!~", "write NOT LIKE, or ILIKE for any case"},
    {"~", "write LIKE, or ILIKE for any case"},
    {"&&", "write AND; for lists: 'value' = ANY(tags)"},
    {"?", "write the value itself: a statement has no parameters"},
    {":", "write the value itself: a statement has no parameters"},
    {"$", "write the value itself: a statement has no parameters"},
    {"@", "write the value itself: a statement has no parameters"},
    {"`", "quote names with \""},
    {"[", "for an element of a JSON array: metadata -> 'list' ->> 0"},
    {"^", "multiply"},
};

#define LEX_FAIL(l, at, code, ...) REM_FAIL(&(l)->p->s, (at), (code), __VA_ARGS__)

static bool is_word(char c)
{
    return rv_is_letter(c) || rv_is_digit(c) || c == '_';
}

static bool starts(const struct lexer *l, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(l->end - l->at) >= n && memcmp(l->at, text, n) == 0;
}

static int skip_comment(struct lexer *l)
{
    const char *open = l->at;
    int depth = 0;

    do {
        if (starts(l, "/*")) {
            depth++;
            l->at += 2;
        } else if (starts(l, "*/")) {
            depth--;
            l->at += 2;
        } else {
            l->at++;
        }
    } while (depth > 0 && l->at < l->end);
    return depth == 0 ? 0 : LEX_FAIL(l, open, RV_REM_UNTERMINATED, "the comment /* has no end");
}

static int skip_blanks(struct lexer *l)
{
    int rc = 0;

    while (rc == 0 && l->at < l->end) {
        if (rem_is_blank(*l->at) || *l->at == '\f' || *l->at == '\v')
            l->at++;
        else if (starts(l, "--"))
            while (l->at < l->end && *l->at != '\n')
                l->at++;
        else if (starts(l, "/*"))
            rc = skip_comment(l);
        else
            break;
    }
    return rc;
}

/* --- strings --- */

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 0x3f));
        to[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 0x3f));
    to[2] = (char)(0x80 | (c >> 6 & 0x3f));
    to[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* min to max digits of a base at l->at. */
static bool read_digits(struct lexer *l, int base, int min, int max, uint32_t *out)
{
    int n = 0;

    *out = 0;
    while (n < max && l->at < l->end && rv_is_hex(*l->at)) {
        int digit = rv_hex_digit(*l->at);
        if (digit >= base)
            break;
        *out = *out * (uint32_t)base + (uint32_t)digit;
        l->at++;
        n++;
    }
    return n >= min;
}

/* An escape of E'...', behind its backslash; up to four bytes to `to`. 0: malformed. Only code points: a text of bytes
 * could be cut in the middle of a character. */
static size_t read_e_escape(struct lexer *l, char *to)
{
    static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
    const char *name;
    uint32_t c;
    char first;

    if (l->at == l->end)
        return 0;
    first = *l->at++;
    if (first == 'x' || first == 'u' || first == 'U') {
        int n = first == 'x' ? 2 : first == 'u' ? 4 : 8;
        if (!read_digits(l, 16, first == 'x' ? 1 : n, n, &c))
            return 0;
    } else if (first >= '0' && first <= '7') {
        l->at--;
        RV_IGNORE(!read_digits(l, 8, 1, 3, &c), "the first digit is there");
    } else {
        name = strchr(names, first);
        to[0] = name ? values[name - names] : first;
        return 1;
    }
    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || ((first == 'x' || rv_is_digit(first)) && c > 0x7f))
        return 0;
    return put_utf8(to, c);
}

/* An escape of U&'...', behind its backslash. */
static size_t read_u_escape(struct lexer *l, char *to)
{
    bool is_long = l->at < l->end && *l->at == '+';
    uint32_t c;

    if (l->at < l->end && *l->at == '\\') {
        l->at++;
        to[0] = '\\';
        return 1;
    }
    l->at += is_long;
    if (!read_digits(l, 16, is_long ? 6 : 4, is_long ? 6 : 4, &c) || c == 0 || c > 0x10ffff ||
        (c >= 0xd800 && c < 0xe000))
        return 0;
    return put_utf8(to, c);
}

/* A string or name in quotes; l->at is at the quote. escapes: 'E', 'U' or 0. */
static int read_quoted(struct lexer *l, char escapes, struct sql_token *t)
{
    const char *open = l->at++;
    char quote = *open, *value = l->room, *to = value;

    for (;;) {
        if (l->at == l->end)
            return LEX_FAIL(l, open, RV_REM_UNTERMINATED, "the quote %c has no end", quote);
        if (*l->at == quote) {
            l->at++;
            if (l->at == l->end || *l->at != quote)
                break;
            *to++ = quote;
            l->at++;
        } else if (*l->at == '\\' && escapes) {
            const char *backslash = l->at++;
            size_t n = escapes == 'E' ? read_e_escape(l, to) : read_u_escape(l, to);
            if (n == 0)
                return LEX_FAIL(l, backslash, RV_REM_BAD_ESCAPE, "the escape sequence does not name a character");
            to += n;
        } else {
            *to++ = *l->at++;
        }
    }
    t->kind = quote == '"' ? SQL_NAME : SQL_STRING;
    t->value = (rv_str){value, (size_t)(to - value)};
    l->room = to;
    if (t->kind == SQL_NAME && t->value.len == 0)
        return LEX_FAIL(l, open, RV_REM_SQL_SYNTAX, "a name in quotes is empty");
    return 0;
}

/* $tag$...$tag$; false: no such string begins here. */
static bool read_dollar(struct lexer *l, struct sql_token *t, int *rc)
{
    const char *open = l->at, *p = open + 1;
    size_t n;

    while (p < l->end && is_word(*p) && !(p == open + 1 && rv_is_digit(*p)))
        p++;
    if (p == l->end || *p != '$')
        return false;
    n = (size_t)(p + 1 - open);
    for (p++; (size_t)(l->end - p) >= n; p++)
        if (memcmp(p, open, n) == 0) {
            t->kind = SQL_STRING;
            t->value = (rv_str){open + n, (size_t)(p - open) - n};
            l->at = p + n;
            return true;
        }
    *rc = LEX_FAIL(l, open, RV_REM_UNTERMINATED, "the quote %.*s has no end", (int)n, open);
    return true;
}

/* --- the rest --- */

static int read_number(struct lexer *l, struct sql_token *t)
{
    const char *from = l->at;

    while (l->at < l->end && rv_is_digit(*l->at))
        l->at++;
    if (l->at < l->end && *l->at == '.') {
        l->at++;
        while (l->at < l->end && rv_is_digit(*l->at))
            l->at++;
    }
    if (l->at < l->end && (*l->at == 'e' || *l->at == 'E')) {
        l->at++;
        if (l->at < l->end && (*l->at == '+' || *l->at == '-'))
            l->at++;
        if (l->at == l->end || !rv_is_digit(*l->at))
            return LEX_FAIL(l, from, RV_REM_BAD_NUMBER, "the exponent of a number has no digits");
        while (l->at < l->end && rv_is_digit(*l->at))
            l->at++;
    }
    if (l->p->opts->policy == RV_REM_STRICT && l->at < l->end && (is_word(*l->at) || *l->at == '.'))
        return LEX_FAIL(l, from, RV_REM_BAD_NUMBER, "a number is followed by \"%c\"", *l->at);
    if (l->at - from > MAX_NUMBER)
        return LEX_FAIL(l, from, RV_REM_BAD_NUMBER, "a number has more than " RV_LIMIT_TEXT(MAX_NUMBER) " characters");
    t->kind = SQL_NUMBER;
    t->value = (rv_str){from, (size_t)(l->at - from)};
    return 0;
}

static int read_operator(struct lexer *l, struct sql_token *t)
{
    bool is_strict = l->p->opts->policy == RV_REM_STRICT;
    int rc;

    for (size_t i = 0; is_strict && i < RV_COUNT(foreign); i++)
        if (starts(l, foreign[i].text) && !starts(l, "::")) {
            rc = LEX_FAIL(l, l->at, RV_REM_NOT_PORTABLE, "\"%s\" is not in the subset of SQL", foreign[i].text);
            rv_err_set_hint(l->p->s.err, "%s", foreign[i].portable);
            return rc;
        }
    for (size_t i = 0; i < RV_COUNT(operators); i++)
        if (starts(l, operators[i])) {
            t->kind = SQL_OP;
            t->value = rv_str_of(operators[i]);
            l->at += t->value.len;
            return 0;
        }
    if (!is_strict) { /* the database's own */
        t->kind = SQL_OP;
        t->value = (rv_str){l->at++, 1};
        return 0;
    }
    if ((unsigned char)*l->at >= 0x80)
        return LEX_FAIL(l, l->at, RV_REM_SQL_SYNTAX, "\"%.*s\" can only stand in quotes",
                        RV_STR_ARG(rv_utf8_first((rv_str){l->at, (size_t)(l->end - l->at)}, 1)));
    return LEX_FAIL(l, l->at, RV_REM_SQL_SYNTAX, "the character \"%c\" (code %d) is not in the subset of SQL",
                    *l->at >= ' ' ? *l->at : ' ', *l->at);
}

static int read_word(struct lexer *l, struct sql_token *t)
{
    const char *from = l->at;
    size_t n;

    if (starts(l, "U&'") || starts(l, "u&'") || starts(l, "U&\"") || starts(l, "u&\"")) {
        l->at += 2;
        return read_quoted(l, 'U', t);
    }
    while (l->at < l->end && is_word(*l->at))
        l->at++;
    n = (size_t)(l->at - from);
    if (n == 1 && l->at < l->end && *l->at == '\'') {
        if (*from == 'E' || *from == 'e')
            return read_quoted(l, 'E', t);
        return LEX_FAIL(l, from, RV_REM_NOT_PORTABLE, "%c'...' is not a text", *from);
    }
    t->kind = SQL_WORD;
    t->value = (rv_str){from, n};
    return 0;
}

static int read_token(struct lexer *l, struct sql_token *t)
{
    int rc = 0;

    if (rv_is_letter(*l->at) || *l->at == '_')
        return read_word(l, t);
    if (rv_is_digit(*l->at) || (*l->at == '.' && l->at + 1 < l->end && rv_is_digit(l->at[1])))
        return read_number(l, t);
    if (*l->at == '\'' || *l->at == '"')
        return read_quoted(l, 0, t);
    if (*l->at == '$' && read_dollar(l, t, &rc))
        return rc;
    return read_operator(l, t);
}

int rem_sql_lex(struct sql *p)
{
    struct lexer l = {p, p->s.text.ptr, p->s.text.ptr + p->s.text.len, rv_arena_alloc(p->s.memory, p->s.text.len + 1)};
    int rc = l.room ? 0 : rem_no_memory(&p->s);

    while (rc == 0) {
        struct sql_token *t = &p->tokens[p->n];
        const char *before = l.at;
        if ((rc = skip_blanks(&l)) < 0)
            return rc;
        *t = (struct sql_token){.kind = SQL_END, .raw = {l.at, 0}, .gap = l.at > before};
        p->n++;
        if (l.at == l.end)
            return 0;
        if (p->n > RV_REM_MAX_TOKENS)
            return LEX_FAIL(&l, l.at, RV_REM_TOO_LONG, "statement of more than %d words and signs", RV_REM_MAX_TOKENS);
        rc = read_token(&l, t);
        t->raw.len = (size_t)(l.at - t->raw.ptr);
    }
    return rc;
}

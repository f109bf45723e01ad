/* A pattern of ECMA-262 becomes one of PCRE2. One pass over the text; what the two languages read alike is copied. */
#include "coreengine/lang/pattern_internal.h"

#include "coreengine/base/base.h"

#include <string.h>

/* Blanks of ECMA-262, as members of a class, and all other characters. */
#define BLANKS                                                                                                         \
    "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}"
#define NO_BLANKS                                                                                                      \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}"                \
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}"

struct translation {
    rv_str in;
    const char *shown; /* of the pattern, for messages */
    size_t at;         /* the next byte */
    size_t n_groups;
    rv_buf *out;
    rv_err **err;
};

static int refuse(struct translation *t, size_t at, const char *what)
{
    return RV_FAIL(t->err, RV_E_PARSE, "pattern %s, byte %zu: %s", t->shown, at + 1, what);
}

/* The byte that follows after n others; '\0': the text has ended. */
static char ahead(const struct translation *t, size_t n)
{
    return t->at + n < t->in.len ? t->in.ptr[t->at + n] : '\0';
}

static void put_character(struct translation *t, uint32_t c)
{
    rv_buf_printf(t->out, "\\x{%x}", (unsigned)c);
}

/* n hexadecimal digits from `from` bytes ahead on; -1: something else is there. */
static int32_t hex_ahead(const struct translation *t, size_t from, size_t n)
{
    int32_t value = 0;

    for (size_t i = 0; i < n; i++) {
        int digit = rv_hex_digit(ahead(t, from + i));
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Behind "\u": four digits, two times four for a character beyond U+FFFF, or {digits}. */
static int take_unicode(struct translation *t, size_t begin)
{
    int32_t c = hex_ahead(t, 0, 4);

    if (ahead(t, 0) == '{') {
        size_t n = 1;
        for (c = 0; rv_hex_digit(ahead(t, n)) >= 0 && c <= 0x10FFFF; n++)
            c = c * 16 + rv_hex_digit(ahead(t, n));
        if (n == 1 || ahead(t, n) != '}' || c > 0x10FFFF)
            return refuse(t, begin, "\\u{...} needs hexadecimal digits, at most 10FFFF");
        t->at += n + 1;
    } else if (c < 0) {
        return refuse(t, begin, "\\u needs four hexadecimal digits or {digits}");
    } else {
        t->at += 4;
        int32_t low = ahead(t, 0) == '\\' && ahead(t, 1) == 'u' ? hex_ahead(t, 2, 4) : -1;
        if (c >= 0xD800 && c <= 0xDBFF && low >= 0xDC00 && low <= 0xDFFF) {
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
            t->at += 6;
        }
    }
    if (c >= 0xD800 && c <= 0xDFFF)
        return refuse(t, begin, "half a surrogate pair can match nothing in UTF-8");
    put_character(t, (uint32_t)c);
    return 0;
}

/* Unicode's general categories by their long names, which PCRE2 does not know. */
static const char *const categories[][2] = {
    {"Letter", "L"},
    {"Cased_Letter", "L&"},
    {"LC", "L&"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Titlecase_Letter", "Lt"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
    {"Mark", "M"},
    {"Combining_Mark", "M"},
    {"Nonspacing_Mark", "Mn"},
    {"Spacing_Mark", "Mc"},
    {"Enclosing_Mark", "Me"},
    {"Number", "N"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Letter_Number", "Nl"},
    {"Other_Number", "No"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Connector_Punctuation", "Pc"},
    {"Dash_Punctuation", "Pd"},
    {"Open_Punctuation", "Ps"},
    {"Close_Punctuation", "Pe"},
    {"Initial_Punctuation", "Pi"},
    {"Final_Punctuation", "Pf"},
    {"Other_Punctuation", "Po"},
    {"Symbol", "S"},
    {"Math_Symbol", "Sm"},
    {"Currency_Symbol", "Sc"},
    {"Modifier_Symbol", "Sk"},
    {"Other_Symbol", "So"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Line_Separator", "Zl"},
    {"Paragraph_Separator", "Zp"},
    {"Other", "C"},
    {"Control", "Cc"},
    {"cntrl", "Cc"},
    {"Format", "Cf"},
    {"Private_Use", "Co"},
    {"Unassigned", "Cn"},
};

/* Behind "\p" or "\P": {name}, {gc=name}, {Script=name}. PCRE2 refuses names that it does not know. */
static int take_property(struct translation *t, size_t begin, char letter)
{
    const char *close = ahead(t, 0) == '{' ? memchr(t->in.ptr + t->at, '}', t->in.len - t->at) : NULL;
    static const char *const prefixes[] = {"General_Category=", "gc="};

    if (!close)
        return refuse(t, begin, "\\p needs a name in braces, such as \\p{Letter}");
    rv_str name = {t->in.ptr + t->at + 1, (size_t)(close - t->in.ptr) - t->at - 1};
    for (size_t i = 0; i < name.len; i++)
        if (!rv_is_letter(name.ptr[i]) && !rv_is_digit(name.ptr[i]) && name.ptr[i] != '_' && name.ptr[i] != '=')
            return refuse(t, begin, "the name of a property has letters, digits, _ and = only");
    t->at += name.len + 2;
    for (size_t i = 0; i < RV_COUNT(prefixes); i++)
        if (name.len >= strlen(prefixes[i]) && memcmp(name.ptr, prefixes[i], strlen(prefixes[i])) == 0)
            name = (rv_str){name.ptr + strlen(prefixes[i]), name.len - strlen(prefixes[i])};
    for (size_t i = 0; i < RV_COUNT(categories); i++)
        if (rv_str_is(name, categories[i][0]))
            name = rv_str_of(categories[i][1]);
    rv_buf_printf(t->out, "\\%c{%.*s}", letter, RV_STR_ARG(name));
    return 0;
}

/* An escape that is the same within a class and outside; t->at is behind its letter. *is_other: it is none of them. */
static int take_common(struct translation *t, size_t begin, char c, bool *is_other)
{
    *is_other = false;
    switch (c) {
    case 'd':
    case 'D':
    case 'w':
    case 'W':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        rv_buf_printf(t->out, "\\%c", c);
        return 0;
    case 'v':
        put_character(t, 0x0B);
        return 0;
    case 'c':
        if (!rv_is_letter(ahead(t, 0)))
            return refuse(t, begin, "\\c needs a letter");
        put_character(t, (unsigned char)ahead(t, 0) & 31);
        t->at++;
        return 0;
    case '0':
        if (rv_is_digit(ahead(t, 0)))
            return refuse(t, begin, "octal escapes are not allowed; write \\x and two hexadecimal digits");
        put_character(t, 0);
        return 0;
    case 'x':
        if (hex_ahead(t, 0, 2) < 0)
            return refuse(t, begin, "\\x needs two hexadecimal digits");
        put_character(t, (uint32_t)hex_ahead(t, 0, 2));
        t->at += 2;
        return 0;
    case 'u':
        return take_unicode(t, begin);
    case 'p':
    case 'P':
        return take_property(t, begin, c);
    default:
        break;
    }
    *is_other = rv_is_letter(c) || rv_is_digit(c) || (unsigned char)c >= 0x80 || !c;
    if (!*is_other)
        put_character(t, (unsigned char)c);
    return 0;
}

static int refuse_escape(struct translation *t, size_t begin, char c)
{
    if (begin + 1 == t->in.len)
        return refuse(t, begin, "the pattern ends with a backslash");
    if (!rv_is_letter(c) && !rv_is_digit(c))
        return refuse(t, begin, "a backslash escapes ASCII characters only");
    return RV_FAIL(t->err, RV_E_PARSE, "pattern %s, byte %zu: \\%c is not an escape of ECMA-262", t->shown, begin + 1,
                   c);
}

/* --- classes --- */

static bool is_set(char c)
{
    return c && strchr("dDwWsSpP", c);
}

/* Sets as members of a class. PCRE2 10.42 takes a wrong verdict on [^\W\p{L}] where \W is not written as ranges. */
static const struct {
    char letter;
    const char *members;
} sets[] = {
    {'s', BLANKS},
    {'S', NO_BLANKS},
    {'D', "\\x{0}-\\x{2f}\\x{3a}-\\x{10ffff}"},
    {'W', "\\x{0}-\\x{2f}\\x{3a}-\\x{40}\\x{5b}-\\x{5e}\\x{60}\\x{7b}-\\x{10ffff}"},
};

/* One member of a class. *was_set: it was a set such as \d, which cannot begin a range. */
static int take_member(struct translation *t, bool *was_set)
{
    size_t begin = t->at;
    char c = ahead(t, 0), next = ahead(t, 1);
    bool is_other;

    if (c != '\\') {
        bool is_hyphen = c == '-' && (*was_set || (next == '\\' && is_set(ahead(t, 2))));
        *was_set = false;
        t->at++;
        if (is_hyphen || strchr("[:.=", c)) /* [: [. [= begin a name in PCRE2 */
            rv_buf_putc(t->out, '\\');
        rv_buf_putc(t->out, c);
        return 0;
    }
    t->at += 2;
    *was_set = is_set(next);
    for (size_t i = 0; i < RV_COUNT(sets); i++) {
        if (sets[i].letter == next) {
            rv_buf_puts(t->out, sets[i].members);
            return 0;
        }
    }
    if (next == 'b') {
        put_character(t, 8);
        return 0;
    }
    int rc = take_common(t, begin, next, &is_other);
    return rc == 0 && is_other ? refuse_escape(t, begin, next) : rc;
}

static int take_class(struct translation *t)
{
    size_t begin = t->at;
    bool was_set = false;
    int rc = 0;

    rv_buf_putc(t->out, '[');
    t->at++;
    if (ahead(t, 0) == '^') {
        rv_buf_putc(t->out, '^');
        t->at++;
    }
    while (rc == 0 && t->at < t->in.len && ahead(t, 0) != ']')
        rc = take_member(t, &was_set);
    if (rc < 0)
        return rc;
    if (t->at == t->in.len)
        return refuse(t, begin, "the class does not end: ] is missing");
    rv_buf_putc(t->out, ']');
    t->at++;
    return 0;
}

/* --- the rest --- */

static int take_back_reference(struct translation *t, size_t begin)
{
    size_t n = 0;

    for (t->at = begin + 1; rv_is_digit(ahead(t, 0)) && n <= t->n_groups; t->at++)
        n = n * 10 + (size_t)(ahead(t, 0) - '0');
    if (n > t->n_groups)
        return RV_FAIL(t->err, RV_E_PARSE, "pattern %s, byte %zu: there are %zu groups", t->shown, begin + 1,
                       t->n_groups);
    rv_buf_printf(t->out, "\\g{%zu}", n);
    return 0;
}

/* Behind "(?<" or "\k<": a name and >. It is copied with its brackets. */
static int take_name(struct translation *t, size_t begin)
{
    size_t n = 0;

    while (rv_is_letter(ahead(t, n)) || ahead(t, n) == '_' || (n && rv_is_digit(ahead(t, n))))
        n++;
    if (n == 0 || n > 32 || ahead(t, n) != '>')
        return refuse(t, begin, "the name of a group has 1 to 32 ASCII letters, digits and _");
    rv_buf_printf(t->out, "<%.*s>", (int)n, t->in.ptr + t->at);
    t->at += n + 1;
    return 0;
}

static int take_escape(struct translation *t)
{
    size_t begin = t->at;
    char c = ahead(t, 1);
    bool is_other;

    t->at += 2;
    if (c == 's' || c == 'S') {
        rv_buf_puts(t->out, c == 's' ? "[" BLANKS "]" : "[^" BLANKS "]");
        return 0;
    }
    if (c == 'b' || c == 'B') {
        rv_buf_printf(t->out, "\\%c", c);
        return 0;
    }
    if (c >= '1' && c <= '9')
        return take_back_reference(t, begin);
    if (c == 'k' && ahead(t, 0) == '<') {
        t->at++;
        rv_buf_puts(t->out, "\\k");
        return take_name(t, begin);
    }
    int rc = take_common(t, begin, c, &is_other);
    return rc == 0 && is_other ? refuse_escape(t, begin, c) : rc;
}

static int take_group(struct translation *t)
{
    size_t begin = t->at;
    char kind = ahead(t, 2), next = ahead(t, 3);

    if (ahead(t, 1) == '*')
        return refuse(t, begin + 1, "nothing to repeat");
    if (ahead(t, 1) != '?') {
        rv_buf_putc(t->out, '(');
        t->at++;
        return 0;
    }
    bool is_behind = kind == '<' && (next == '=' || next == '!');
    if (is_behind || kind == ':' || kind == '=' || kind == '!') {
        rv_buf_printf(t->out, is_behind ? "(?<%c" : "(?%c", is_behind ? next : kind);
        t->at += is_behind ? 4 : 3;
        return 0;
    }
    if (kind != '<')
        return refuse(t, begin,
                      "ECMA-262 has the groups (...), (?:...), (?=...), (?!...), (?<=...), (?<!...), "
                      "(?<name>...)");
    t->at += 3;
    rv_buf_puts(t->out, "(?");
    return take_name(t, begin);
}

/* The length of a repeat {n}, {n,} or {n,m} that begins here; 0: the brace is a character. */
static size_t braces(const struct translation *t)
{
    size_t n = 1;

    while (rv_is_digit(ahead(t, n)))
        n++;
    if (n == 1)
        return 0;
    if (ahead(t, n) == ',')
        for (n++; rv_is_digit(ahead(t, n));)
            n++;
    return ahead(t, n) == '}' ? n + 1 : 0;
}

static int take_repeat(struct translation *t, size_t len)
{
    rv_buf_add(t->out, t->in.ptr + t->at, len);
    t->at += len;
    if (ahead(t, 0) == '?') {
        rv_buf_putc(t->out, '?');
        t->at++;
    } else if (ahead(t, 0) == '+') {
        return refuse(t, t->at, "nothing to repeat"); /* PCRE2 would read a possessive repeat */
    }
    return 0;
}

static int take_item(struct translation *t)
{
    char c = ahead(t, 0);

    switch (c) {
    case '\\':
        return take_escape(t);
    case '[':
        return take_class(t);
    case '(':
        return take_group(t);
    case '*':
    case '+':
    case '?':
        return take_repeat(t, 1);
    case '{':
        if (braces(t))
            return take_repeat(t, braces(t));
        break;
    case '.':
        rv_buf_puts(t->out, "[^\\n\\r\\x{2028}\\x{2029}]");
        t->at++;
        return 0;
    default:
        break;
    }
    if (c == '{' || c == '}' || c == ']' || c == '\0')
        put_character(t, (unsigned char)c);
    else
        rv_buf_putc(t->out, c);
    t->at++;
    return 0;
}

static size_t count_groups(rv_str text)
{
    bool in_class = false;
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i], next = i + 1 < text.len ? text.ptr[i + 1] : '\0';
        if (c == '\\')
            i++;
        else if (c == '[' || c == ']')
            in_class = c == '[';
        else if (c == '(' && !in_class)
            n += next != '?' ||
                 (i + 3 < text.len && text.ptr[i + 2] == '<' && text.ptr[i + 3] != '=' && text.ptr[i + 3] != '!');
    }
    return n;
}

int lang_pattern_translate(rv_str text, const char *shown, rv_buf *out, rv_err **err)
{
    struct translation t = {.in = text, .shown = shown, .n_groups = count_groups(text), .out = out, .err = err};
    int rc = 0;

    while (rc == 0 && t.at < text.len)
        rc = take_item(&t);
    if (rc == 0 && out->rc)
        rc = RV_FAIL(err, out->rc, "pattern %s: no memory, or it is too large", shown);
    return rc;
}

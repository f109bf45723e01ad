/* The last look at a statement that others wrote before PostgreSQL gets it. SQLite has an authorizer; PostgreSQL has
 * none for a role that owns the tables. So the text is read once more, by another reader than the gate's and by other
 * rules: what the gate writes has no comments, no parameters, no prefixes of strings, and calls functions of a list. A
 * text that has others got past the gate. */
#include <string.h>
#include <strings.h>

#include "coreengine/store/search/ask_internal.h"
#include "coreengine/store/upkeep/tables_internal.h"

/* Functions that the gate writes, and words that stand before a parenthesis. */
static const char *const callable[] = {
    "abs",          "avg",       "char_length", "coalesce",   "count",    "dense_rank",
    "first_value",  "lag",       "last_value",  "lead",       "left",     "length",
    "lower",        "ltrim",     "max",         "min",        "nullif",   "rank",
    "replace",      "right",     "round",       "row_number", "rtrim",    "json_array_elements_text",
    "string_agg",   "strpos",    "substr",      "substring",  "sum",      "json_array_length",
    "trim",         "upper",     "all",         "and",        "any",      "as",
    "between",      "by",        "case",        "cast",       "distinct", "else",
    "except",       "exists",    "filter",      "from",       "having",   "ilike",
    "in",           "intersect", "is",          "join",       "like",     "limit",
    "materialized", "not",       "offset",      "on",         "or",       "over",
    "select",       "then",      "union",       "using",      "values",   "when",
    "where"};
/* With these begin names that only the database itself has. */
static const char *const system_names[] = {"pg_", "information_schema"};

enum kind { END, WORD, NAME, STRING, NUMBER, OPERATOR, WRONG };
struct token {
    enum kind kind;
    rv_str text; /* of a name without its quotes */
};
struct reader {
    const char *at, *end;
};

static bool is_word(char c)
{
    return rv_is_letter(c) || rv_is_digit(c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Up to the quote that ends it; a doubled one stands for one. */
static struct token read_quoted(struct reader *r)
{
    char quote = *r->at++;
    const char *from = r->at;

    for (; r->at < r->end; r->at++) {
        if (*r->at != quote)
            continue;
        if (r->at + 1 == r->end || r->at[1] != quote) {
            struct token t = {quote == '"' ? NAME : STRING, {from, (size_t)(r->at - from)}};
            r->at++;
            return t;
        }
        r->at++;
    }
    return (struct token){.kind = WRONG};
}

static struct token read_operator(struct reader *r)
{
    char c = *r->at, after = r->at + 1 < r->end ? r->at[1] : '\0';

    if ((c == '-' && after == '-') || (c == '/' && after == '*') || !strchr("+-*/%<>=|!.,():", c))
        return (struct token){.kind = WRONG};
    return (struct token){OPERATOR, {r->at++, 1}};
}

static struct token next(struct reader *r)
{
    while (r->at < r->end && strchr(" \t\r\n\f\v", *r->at) && *r->at)
        r->at++;
    if (r->at == r->end)
        return (struct token){.kind = END};
    if (*r->at == '\'' || *r->at == '"')
        return read_quoted(r);
    const char *from = r->at;
    bool is_number = rv_is_digit(*from);
    while (r->at < r->end && (is_word(*r->at) || (is_number && *r->at == '.')))
        r->at++;
    if (r->at == from)
        return read_operator(r);
    if (!is_number && r->at < r->end && strchr("'\"&$", *r->at)) /* E'...', U&"..." */
        return (struct token){.kind = WRONG};
    return (struct token){is_number ? NUMBER : WORD, {from, (size_t)(r->at - from)}};
}

static bool is(const struct token *t, const char *text)
{
    size_t n = strlen(text);

    return (t->kind == WORD || t->kind == OPERATOR) && t->text.len == n && strncasecmp(t->text.ptr, text, n) == 0;
}

static bool is_name(const struct token *t)
{
    return t->kind == WORD || t->kind == NAME;
}

static bool is_callable(const struct token *t)
{
    for (size_t i = 0; i < RV_COUNT(callable); i++)
        if (is(t, callable[i]))
            return true;
    return false;
}

/* r is behind "part (" : the columns of a part of WITH, which end with ") AS (" or ") AS MATERIALIZED". */
static bool is_column_list(struct reader r)
{
    struct token t;

    do {
        t = next(&r);
        if (!is_name(&t))
            return false;
        t = next(&r);
    } while (is(&t, ","));
    if (!is(&t, ")"))
        return false;
    t = next(&r);
    if (!is(&t, "AS"))
        return false;
    t = next(&r);
    return is(&t, "(") || is(&t, "MATERIALIZED") || is(&t, "NOT");
}

static bool begins_part(const struct token *before)
{
    return before->kind == END || is(before, "WITH") || is(before, "RECURSIVE") || is(before, ",");
}

static bool has_text(const struct token *t, const char *text)
{
    return t->text.len == strlen(text) && strncasecmp(t->text.ptr, text, t->text.len) == 0;
}

static bool is_table(const struct token *t)
{
    for (size_t i = 0; i < store_n_tables; i++)
        if (has_text(t, store_tables[i].name))
            return true;
    return false;
}

static bool is_systems(const struct token *t)
{
    for (size_t i = 0; i < RV_COUNT(system_names); i++) {
        size_t n = strlen(system_names[i]);
        if (t->text.len >= n && strncasecmp(t->text.ptr, system_names[i], n) == 0)
            return true;
    }
    return false;
}

/* The last tokens: what stood before the present one, and before that. */
struct past {
    struct token before, earlier;
};

static bool is_allowed(const struct token *t, const struct past *past, const char *schema, struct reader behind)
{
    struct token then = next(&behind);

    if (!is_name(t))
        return t->kind != WRONG;
    if (is_systems(t))
        return false;
    if (is(&past->before, ".") && has_text(&past->earlier, schema) && is_table(t))
        return false;
    if (!is(&then, "("))
        return true;
    return (is_callable(t) && !is(&past->before, ".")) || (begins_part(&past->before) && is_column_list(behind));
}

/* "CAST(... AS reeve_value) AS text)": the domain stands for itself; r is behind it. */
static bool is_domain(const struct token *t, const struct token *before, struct reader r)
{
    if (t->kind != WORD || !has_text(t, RV_REM_VALUE) || !is(before, "AS"))
        return false;
    struct token one = next(&r), two = next(&r), three = next(&r);
    return is(&one, ")") && is(&two, "AS") && is(&three, "text");
}

static void put_schema(const char *schema, rv_buf *out)
{
    rv_buf_putc(out, '"');
    for (const char *at = schema; *at; at++)
        rv_buf_add(out, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
    rv_buf_puts(out, "\".");
}

int store_ask_guard(rv_str text, const char *schema, rv_buf *out, rv_err **err)
{
    struct reader r = {text.ptr, text.ptr + text.len};
    struct past past = {{.kind = END}, {.kind = END}};
    const char *done = text.ptr;

    for (struct token t = next(&r); t.kind != END; t = next(&r)) {
        if (!is_allowed(&t, &past, schema, r))
            return RV_FAIL(err, RV_E_INVALID,
                           "the database refuses the statement: it names more than its tables and functions");
        if (is_domain(&t, &past.before, r)) {
            rv_buf_add(out, done, (size_t)(t.text.ptr - done));
            put_schema(schema, out);
            done = t.text.ptr;
        }
        past = (struct past){t, past.before};
    }
    rv_buf_add(out, done, (size_t)(r.end - done));
    return rv_buf_check(out, "statement", err);
}

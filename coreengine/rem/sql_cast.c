/* Casts and steps into JSON: where the two databases differ most in what a value is. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/rem/sql_internal.h"

enum cast { TO_TEXT, TO_INT, TO_FLOAT, TO_DATE, TO_TIME, TO_JSON, TO_INTERVAL, TO_BOOL };
static const struct {
    const char *words; /* of the type, with one blank between them */
    enum cast cast;
    const char *name; /* of the column of a result */
} types[] = {
    {"double precision", TO_FLOAT, "float8"},
    {"timestamp with time zone", TO_TIME, "timestamptz"},
    {"timestamp without time zone", TO_TIME, "timestamp"},
    {"text", TO_TEXT, "text"},
    {"varchar", TO_TEXT, "varchar"},
    {"uuid", TO_TEXT, "uuid"},
    {"int", TO_INT, "int4"},
    {"integer", TO_INT, "int4"},
    {"int4", TO_INT, "int4"},
    {"int8", TO_INT, "int8"},
    {"bigint", TO_INT, "int8"},
    {"smallint", TO_INT, "int2"},
    {"real", TO_FLOAT, "float4"},
    {"float", TO_FLOAT, "float8"},
    {"float8", TO_FLOAT, "float8"},
    {"numeric", TO_FLOAT, "numeric"},
    {"decimal", TO_FLOAT, "numeric"},
    {"date", TO_DATE, "date"},
    {"timestamptz", TO_TIME, "timestamptz"},
    {"timestamp", TO_TIME, "timestamp"},
    {"json", TO_JSON, "json"},
    {"jsonb", TO_JSON, "jsonb"},
    {"interval", TO_INTERVAL, "interval"},
    {"boolean", TO_BOOL, "bool"},
    {"bool", TO_BOOL, "bool"},
};

/* The words of a type at the reader; 0: it is another one. */
static size_t match_type(const struct sql *p, const char *words)
{
    size_t n = 0;

    for (const char *w = words; w; n++) {
        const char *blank = strchr(w, ' ');
        const struct sql_token *t = rem_sql_at(p, p->pos + n);
        size_t len = blank ? (size_t)(blank - w) : strlen(w);
        if (t->kind != SQL_WORD || t->value.len != len || strncasecmp(t->value.ptr, w, len) != 0)
            return 0;
        w = blank ? blank + 1 : NULL;
    }
    return n;
}

/* A text that is not a number is NULL in both databases; alone PostgreSQL would show it in an error, and SQLite take
 * the digits that it begins with. Whole numbers have up to 18 digits, 15 where a point follows; other numbers up to 200
 * characters and an exponent of two digits. The operand is computed once. */
#define LITE_OPEN  "(SELECT CASE WHEN CAST(v AS NUMERIC) = v AND "
#define LITE_CLOSE " AS v))"
#define LITE_INT                                                                                                       \
    LITE_OPEN                                                                                                          \
    "v NOT GLOB '*[^0-9.+ -]*' AND CASE WHEN v GLOB '*.*' THEN CAST(v AS NUMERIC) > -1e15 AND CAST(v AS NUMERIC) <"    \
    " 1e15 ELSE CAST(v AS NUMERIC) BETWEEN -999999999999999999 AND 999999999999999999 END"                             \
    " THEN CASE WHEN v GLOB '*.*' THEN CAST(round(v) AS INTEGER) ELSE CAST(v AS INTEGER) END END FROM (SELECT "
#define LITE_FLOAT                                                                                                     \
    LITE_OPEN                                                                                                          \
    "v NOT GLOB '*[^0-9.eE+ -]*' AND v NOT GLOB '*[eE]*[0-9][0-9][0-9]*' AND length(v) <= 200"                         \
    " THEN CAST(v AS REAL) END FROM (SELECT "
#define PG_OPEN  "substring(CAST("
#define PG_INT   " AS text) from '^ *([+-]?(?:0*[0-9]{1,18}|0*[0-9]{1,15}[.][0-9]*|[.][0-9]+)) *$')"
#define PG_FLOAT " AS text) from '^(?=.{1,200}$) *([+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]{1,2})?) *$')"

/* What is computed in a query of its own may be no aggregate, which would see one row there. portable: what to write.
 */
static int check_no_aggregate_but(const struct sql *p, const struct sql_operand *o, const char *portable)
{
    for (size_t i = o->first; i < o->last; i++) {
        if (rem_sql_is(p, i, "SELECT"))
            return 0;
        if (rem_sql_is(p, i + 1, "(") && rem_sql_gathers(p, i))
            return rem_sql_not_portable(p, i, portable);
    }
    return 0;
}

static int check_no_aggregate(const struct sql *p, const struct sql_operand *o)
{
    return check_no_aggregate_but(p, o, "compute it first: SELECT x::int FROM (SELECT max(...) AS x ...) AS t");
}

static int read_number(struct sql *p, struct sql_operand *o, bool to_int)
{
    bool is_sqlite = p->opts->backend == RV_REM_SQLITE;
    int rc = check_no_aggregate(p, o);

    o->type = SQL_NUM;
    if (rc < 0)
        return rc;
    if (is_sqlite)
        return rem_sql_wrap(p, o, to_int ? LITE_INT : LITE_FLOAT, LITE_CLOSE);
    rc = rem_sql_wrap(p, o, PG_OPEN, to_int ? PG_INT : PG_FLOAT);
    if (rc < 0)
        return rc;
    return to_int ? rem_sql_wrap(p, o, "CAST(round(CAST(", " AS numeric)) AS bigint)")
                  : rem_sql_wrap(p, o, "CAST(", " AS double precision)");
}

static int to_int(struct sql *p, struct sql_operand *o)
{
    bool is_bool = o->type == SQL_BOOL;

    if (o->type == SQL_TEXT || o->type == SQL_ANY)
        return read_number(p, o, true);
    o->type = SQL_NUM;
    if (p->opts->backend == RV_REM_SQLITE)
        return is_bool ? rem_sql_wrap(p, o, "CAST(", " AS INTEGER)")
                       : rem_sql_wrap(p, o, "CAST(round(", ") AS INTEGER)");
    return is_bool ? rem_sql_wrap(p, o, "CAST(", " AS integer)")
                   : rem_sql_wrap(p, o, "CAST(round(CAST(", " AS numeric)) AS bigint)");
}

/* --- substr --- */

/* The rule is that of the standard: the characters whose places are from `f` on, before `f + c`; places below one have
 * none. SQLite alone would count places below zero from the end, and go back by a count below zero, which PostgreSQL
 * refuses: there it is zero. Both have whole numbers of four bytes there. */
#define PART_FROM    "CAST(CASE WHEN f < 1 THEN 1 WHEN f > 1000000000 THEN 1000000000 ELSE f END AS integer)"
#define PART_COUNT   "CAST(CASE WHEN c < 0 THEN 0 WHEN c > 1000000000 THEN 1000000000 ELSE c END AS integer)"
#define PART_TO_END  "(SELECT substr(t, " PART_FROM ") FROM "
#define PART_COUNTED "(SELECT substr(t, " PART_FROM ", " PART_COUNT ") FROM "
#define PART_SHORTER "(SELECT t, f, CASE WHEN f < 1 THEN c + f - 1 ELSE c END AS c FROM "

/* A whole number from zero, as it stands. */
static bool is_place(const struct sql *p, const struct sql_operand *o)
{
    rv_str n = rem_sql_at(p, o->first)->value;

    return o->form == SQL_LITERAL && o->type == SQL_NUM && n.len < 10 && strspn(n.ptr, "0123456789") >= n.len;
}

int rem_sql_substr(struct sql *p, size_t first, struct sql_operand *args, int n)
{
    static const char *const names[] = {" AS t", " AS f", " AS c"};
    bool is_computed = !is_place(p, &args[1]) || (n > 2 && !is_place(p, &args[2]));
    int rc = 0;

    for (int i = 0; i < n && is_computed && rc == 0; i++)
        rc = check_no_aggregate_but(p, &args[i],
                                    "compute it first: SELECT substr(x, n) FROM (SELECT max(...) AS x ...) AS t");
    for (int i = 1; i < n && is_computed && rc == 0; i++)
        rc = is_place(p, &args[i]) ? 0 : to_int(p, &args[i]);
    for (int i = 0; i < n && is_computed && rc == 0; i++)
        rc = rem_sql_after(p, args[i].last, names[i]);
    if (rc < 0 || !is_computed)
        return rc;
    p->tokens[first].instead = n > 2 ? PART_COUNTED PART_SHORTER : PART_TO_END;
    p->tokens[first + 1].instead = "(SELECT ";
    return rem_sql_after(p, p->pos - 1, n > 2 ? " AS s) AS s)" : " AS s)");
}

/* --- times --- */

/* A literal is read now; a column of times is a text that begins with its date. */
static int to_time(struct sql *p, struct sql_operand *o, bool to_date)
{
    bool reads_date;
    int rc = 0;

    if (!o->has_us && o->form == SQL_LITERAL && o->type == SQL_TEXT) {
        const struct sql_token *t = rem_sql_at(p, o->first);
        if (!rem_sql_read_time(t->value, &o->us, &reads_date)) {
            rc = SQL_FAIL(p, o->first, RV_REM_BAD_NUMBER, "\"%.*s\" is not a time", REM_QUOTE(t->value));
            rv_err_set_hint(p->s.err, "write a time such as '2026-01-31' or '2026-01-31T09:30:00Z'");
            return rc;
        }
        o->has_us = true;
    }
    if (o->has_us)
        return rem_sql_write_time(p, o, to_date);
    if (to_date && o->type != SQL_DATE)
        rc = rem_sql_wrap(p, o, "substr(", ", 1, 10)");
    else if (!to_date && o->type == SQL_DATE)
        rc = rem_sql_wrap(p, o, "(", " || 'T00:00:00.000000+00:00')");
    o->type = to_date ? SQL_DATE : SQL_TIME;
    return rc;
}

static int apply(struct sql *p, struct sql_operand *o, enum cast cast)
{
    bool is_sqlite = p->opts->backend == RV_REM_SQLITE;

    switch (cast) {
    case TO_TEXT:
        if (o->type == SQL_BOOL)
            return rem_sql_not_portable(p, o->first, "write CASE WHEN ... THEN 'true' ELSE 'false' END");
        if (!o->has_us)
            o->type = SQL_TEXT;
        o->is_json = false;
        return rem_sql_wrap(p, o, "CAST(", is_sqlite ? " AS TEXT)" : " AS text)");
    case TO_INT:
        if (o->is_json)
            return rem_sql_not_portable(p, o->last, "take the last step with ->>: (metadata ->> 'n')::int");
        return to_int(p, o);
    case TO_FLOAT:
        if (o->type == SQL_TEXT || o->type == SQL_ANY)
            return read_number(p, o, false);
        o->type = SQL_NUM;
        return rem_sql_wrap(p, o, "CAST(", is_sqlite ? " AS REAL)" : " AS double precision)");
    case TO_DATE:
    case TO_TIME:
        return to_time(p, o, cast == TO_DATE);
    case TO_JSON:
        o->is_json = true;
        o->type = SQL_JSON;
        return is_sqlite ? 0 : rem_sql_wrap(p, o, "CAST(", " AS json)");
    case TO_INTERVAL:
        if (o->form != SQL_LITERAL || o->type != SQL_TEXT)
            return rem_sql_not_portable(p, o->first, "write interval '1 day'");
        o->type = SQL_INTERVAL;
        return 0;
    case TO_BOOL:
        return rem_sql_not_portable(p, o->last, "compare with a text: metadata ->> 'done' = 'true'");
    }
    return 0;
}

int rem_sql_cast(struct sql *p, struct sql_operand *o)
{
    size_t n = 0, type = 0;
    int rc;

    for (; type < RV_COUNT(types) && !(n = match_type(p, types[type].words));)
        type++;
    if (type == RV_COUNT(types))
        return rem_sql_peek(p)->kind == SQL_WORD
                   ? rem_sql_not_portable(p, p->pos, "the types are text, int, float, date, timestamptz and json")
                   : rem_sql_unexpected(p, "a type");
    if (rem_sql_is(p, p->pos + n, "("))
        return rem_sql_not_portable(p, p->pos + n, "leave the size out; write substr(x, 1, n) or round(x, n)");
    if ((rc = apply(p, o, types[type].cast)) < 0)
        return rc;
    if (!o->name.ptr)
        o->name = rv_str_of(types[type].name);
    for (size_t i = 0; i < n; i++)
        p->tokens[p->pos++].instead = "";
    o->last = p->pos - 1;
    if (o->type != SQL_INTERVAL)
        o->form = SQL_PRIMARY;
    return 0;
}

/* --- JSON --- */

/* A step as a path of SQLite: '$."key"', '$[0]', '$[#-1]'. */
static const char *path_of(struct sql *p, const struct sql_token *t, bool minus)
{
    const char *text;

    if (t->kind == SQL_NUMBER)
        return rem_sql_print(p, minus ? "'$[#-%.*s]'" : "'$[%.*s]'", RV_STR_ARG(t->value));
    text = rem_sql_print(p, "$.\"%.*s\"", RV_STR_ARG(t->value));
    return text ? rem_sql_quote(p, rv_str_of(text), '\'') : NULL;
}

static int check_step(const struct sql *p, size_t at, bool minus)
{
    const struct sql_token *t = rem_sql_at(p, at);

    if (t->kind != SQL_STRING && t->kind != SQL_NUMBER)
        return rem_sql_not_portable(p, at, "a step is a literal: metadata ->> 'key', or a number for a list");
    if (t->kind == SQL_NUMBER && (strspn(t->value.ptr, "0123456789") < t->value.len || t->value.len > 8))
        return rem_sql_not_portable(p, at, "an element of a list has a whole number, from 0");
    if (t->kind == SQL_STRING && (minus || t->value.len == 0 || memchr(t->value.ptr, '"', t->value.len) ||
                                  memchr(t->value.ptr, '\\', t->value.len)))
        return rem_sql_not_portable(p, at, "a key has no quotes and no backslashes");
    if (rem_sql_is(p, at + 1, "::"))
        return rem_sql_not_portable(p, at + 1, "put the step in parentheses: (metadata ->> 'n')::int");
    return 0;
}

/* SQLite's ->> gives numbers and booleans, PostgreSQL's always a text: the JSON text of what is not a string. */
#define AS_TEXT_OPEN                                                                                                   \
    "(SELECT CASE json_type(v) WHEN 'text' THEN v ->> '$' WHEN 'null' THEN NULL ELSE v END FROM (SELECT "
#define AS_TEXT_CLOSE " AS v))"

int rem_sql_json_step(struct sql *p, struct sql_operand *o)
{
    bool to_text = rem_sql_is(p, p->pos, "->>"), is_sqlite = p->opts->backend == RV_REM_SQLITE;
    bool minus = rem_sql_is(p, p->pos + 1, "-");
    size_t op = p->pos, at = op + (minus ? 2 : 1);
    const char *path;
    int rc = check_step(p, at, minus);

    if (rc == 0 && to_text)
        rc = check_no_aggregate(p, o);
    if (rc == 0 && !is_sqlite && !o->is_json)
        rc = rem_sql_wrap(p, o, "CAST(", " AS json)");
    if (rc < 0)
        return rc;
    p->pos = at + 1;
    o->last = at;
    o->name = (rv_str){NULL, 0};
    o->form = SQL_PRIMARY;
    o->is_json = !to_text;
    o->type = to_text ? SQL_TEXT : SQL_JSON;
    if (is_sqlite) {
        if (!(path = path_of(p, rem_sql_at(p, at), minus)))
            return rem_no_memory(&p->s);
        if (minus)
            p->tokens[op + 1].instead = "";
        p->tokens[op].instead = "->";
        p->tokens[at].instead = path;
        return to_text ? rem_sql_wrap(p, o, AS_TEXT_OPEN, AS_TEXT_CLOSE) : 0;
    }
    if (!to_text || (rem_sql_is(p, p->pos, ")") && rem_sql_is(p, p->pos + 1, "COLLATE")))
        return 0;
    return rem_sql_wrap(p, o, "((", ") COLLATE \"C\")");
}

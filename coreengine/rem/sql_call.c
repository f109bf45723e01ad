/* Calls of functions: the list of those that are allowed, and what they are called in each database. A list of what is
 * allowed, since the functions of a database that do harm are hundreds and each release has new ones. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/rem/sql_internal.h"

#define MAX_ARGS 8 /* of one function call: each is on the stack; only coalesce takes as many; more is an error */

enum kind { PLAIN, AGGREGATE, WINDOW };
enum special { NONE, LEFT, RIGHT, ROUND, AVG, SUM, EXTREME, DATE, TRUNC, NOW, STRING_AGG, GROWS, JSON_LENGTH, SUBSTR };
static const struct function {
    const char *name;
    int min, max; /* arguments */
    enum kind kind;
    enum sql_type type;
    enum special special;
    const char *sqlite, *postgres; /* NULL: the name */
} functions[] = {
    {"count", 1, 1, AGGREGATE, SQL_NUM, NONE, NULL, NULL},
    {"sum", 1, 1, AGGREGATE, SQL_NUM, SUM, NULL, NULL},
    {"avg", 1, 1, AGGREGATE, SQL_NUM, AVG, NULL, NULL},
    {"min", 1, 1, AGGREGATE, SQL_ANY, EXTREME, NULL, NULL},
    {"max", 1, 1, AGGREGATE, SQL_ANY, EXTREME, NULL, NULL},
    {"string_agg", 2, 2, AGGREGATE, SQL_TEXT, STRING_AGG, "group_concat", NULL},
    {"row_number", 0, 0, WINDOW, SQL_NUM, NONE, NULL, NULL},
    {"rank", 0, 0, WINDOW, SQL_NUM, NONE, NULL, NULL},
    {"dense_rank", 0, 0, WINDOW, SQL_NUM, NONE, NULL, NULL},
    {"lag", 1, 2, WINDOW, SQL_ANY, NONE, NULL, NULL},
    {"lead", 1, 2, WINDOW, SQL_ANY, NONE, NULL, NULL},
    {"first_value", 1, 1, WINDOW, SQL_ANY, NONE, NULL, NULL},
    {"last_value", 1, 1, WINDOW, SQL_ANY, NONE, NULL, NULL},
    {"lower", 1, 1, PLAIN, SQL_TEXT, NONE, NULL, NULL},
    {"upper", 1, 1, PLAIN, SQL_TEXT, NONE, NULL, NULL},
    {"length", 1, 1, PLAIN, SQL_NUM, NONE, NULL, NULL},
    {"char_length", 1, 1, PLAIN, SQL_NUM, NONE, "length", NULL},
    {"trim", 1, 1, PLAIN, SQL_TEXT, NONE, NULL, NULL},
    {"ltrim", 1, 2, PLAIN, SQL_TEXT, NONE, NULL, NULL},
    {"rtrim", 1, 2, PLAIN, SQL_TEXT, NONE, NULL, NULL},
    {"replace", 3, 3, PLAIN, SQL_TEXT, GROWS, NULL, NULL},
    {"substr", 2, 3, PLAIN, SQL_TEXT, SUBSTR, NULL, NULL},
    {"left", 2, 2, PLAIN, SQL_TEXT, LEFT, "substr", NULL},
    {"right", 2, 2, PLAIN, SQL_TEXT, RIGHT, "substr", NULL},
    {"strpos", 2, 2, PLAIN, SQL_NUM, NONE, "instr", NULL},
    {"coalesce", 2, MAX_ARGS, PLAIN, SQL_ANY, NONE, NULL, NULL},
    {"nullif", 2, 2, PLAIN, SQL_ANY, NONE, NULL, NULL},
    {"abs", 1, 1, PLAIN, SQL_NUM, NONE, NULL, NULL},
    {"round", 1, 2, PLAIN, SQL_NUM, ROUND, NULL, NULL},
    {"now", 0, 0, PLAIN, SQL_TIME, NOW, NULL, NULL},
    {"date", 1, 1, PLAIN, SQL_DATE, DATE, "substr", "substr"},
    {"date_trunc", 2, 2, PLAIN, SQL_TIME, TRUNC, "substr", "substr"},
    {"json_array_length", 1, 1, PLAIN, SQL_NUM, JSON_LENGTH, NULL, NULL},
    {"jsonb_array_length", 1, 1, PLAIN, SQL_NUM, JSON_LENGTH, "json_array_length", "json_array_length"},
};

/* Functions that people expect, and the portable form. */
static const struct {
    const char *name, *portable;
} foreign[] = {
    {"strftime", "a time is a text: substr(created_at, 1, 10) is its date"},
    {"datetime", "write now() - interval '1 day'"},
    {"julianday", "compare times: created_at > now() - interval '1 day'"},
    {"unixepoch", "compare times: created_at > now() - interval '1 day'"},
    {"to_char", "a time is a text: substr(created_at, 1, 7) is its month"},
    {"extract", "a time is a text: substr(created_at, 1, 4) is its year"},
    {"date_part", "a time is a text: substr(created_at, 1, 4) is its year"},
    {"age", "compare times: created_at > now() - interval '1 day'"},
    {"to_timestamp", "write the time: '2026-01-31T09:30:00Z'"},
    {"substring", "write substr(x, from, count)"},
    {"concat", "write a || b"},
    {"concat_ws", "write a || ', ' || b"},
    {"instr", "write strpos(text, part)"},
    {"position", "write strpos(text, part)"},
    {"ifnull", "write coalesce(a, b)"},
    {"nvl", "write coalesce(a, b)"},
    {"iif", "write CASE WHEN ... THEN ... ELSE ... END"},
    {"greatest", "write CASE WHEN a > b THEN a ELSE b END"},
    {"least", "write CASE WHEN a < b THEN a ELSE b END"},
    {"floor", "write round(x)"},
    {"ceil", "write round(x)"},
    {"group_concat", "write string_agg(x, ', ')"},
    {"array_agg", "write string_agg(x, ', ')"},
    {"json_agg", "write string_agg(x, ', ')"},
    {"json_extract", "write metadata ->> 'key'"},
    {"json_extract_path_text", "write metadata -> 'a' ->> 'b'"},
    {"jsonb_extract_path_text", "write metadata -> 'a' ->> 'b'"},
    {"json_each", "write 'value' = ANY(tags)"},
    {"json_array_elements_text", "write 'value' = ANY(tags)"},
    {"jsonb_array_elements_text", "write 'value' = ANY(tags)"},
    {"unnest", "write 'value' = ANY(tags)"},
    {"regexp_replace", "write replace(x, 'a', 'b')"},
    {"generate_series", "write WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10) ..."},
    {"similarity", "use the mode FUZZY"},
    {"to_tsvector", "use the mode SEARCH"},
};

struct call {
    const struct function *f;
    size_t first, close;
    struct sql_operand args[MAX_ARGS];
    int n;
    bool is_star, is_distinct;
};

static int unknown(struct sql *p, size_t at)
{
    const char *names[RV_COUNT(functions)], *near;
    rv_str name = rem_sql_at(p, at)->value;
    int rc;

    for (size_t i = 0; i < RV_COUNT(functions); i++)
        names[i] = functions[i].name;
    rc = SQL_FAIL(p, at, RV_REM_UNKNOWN_FUNCTION, "the function \"%.*s\" is not allowed", REM_QUOTE(name));
    near = rv_nearest(name, names, RV_COUNT(names));
    for (size_t i = 0; i < RV_COUNT(foreign); i++)
        if (rem_is_word(name, foreign[i].name)) {
            rv_err_set_hint(p->s.err, "%s", foreign[i].portable);
            return rc;
        }
    if (near)
        rv_err_set_hint(p->s.err, "did you mean %s?", near);
    else
        rv_err_set_hint(p->s.err,
                        "the functions are count, sum, avg, min, max, lower, length, substr, coalesce, round, now "
                        "and others; the reference of the REM dialect lists them");
    return rc;
}

/* --- arguments --- */

static int read_args(struct sql *p, struct call *c)
{
    int rc = 0;

    if (rem_is_word(rv_str_of(c->f->name), "count") && rem_sql_take(p, "*")) {
        c->is_star = true;
        c->n = 1;
        return rem_sql_expect(p, ")");
    }
    if (rem_sql_is(p, p->pos, "DISTINCT") && c->f->kind == AGGREGATE) {
        p->pos++;
        c->is_distinct = true;
    }
    if (c->n == 0 && rem_sql_take(p, ")"))
        return 0;
    do {
        if (c->n == MAX_ARGS)
            return SQL_FAIL(p, p->pos, RV_REM_SQL_SYNTAX, "%s has more than %d arguments", c->f->name, MAX_ARGS);
        rc = rem_sql_expr(p, &c->args[c->n++]);
    } while (rc == 0 && rem_sql_take(p, ","));
    if (rc == 0 && rem_sql_is(p, p->pos, "ORDER"))
        return rem_sql_not_portable(p, p->pos, "order the rows of a subquery instead");
    return rc < 0 ? rc : rem_sql_expect(p, ")");
}

/* FILTER (WHERE ...), OVER (PARTITION BY ... ORDER BY ...) */
static int read_tail(struct sql *p, const struct call *c)
{
    struct sql_operand e;
    int rc = 0;

    if (c->f->kind == AGGREGATE && rem_sql_take(p, "FILTER")) {
        rc = rem_sql_expect(p, "(");
        if (rc == 0)
            rc = rem_sql_expect(p, "WHERE");
        if (rc == 0)
            rc = rem_sql_expr(p, &e);
        if (rc == 0)
            rc = rem_sql_expect(p, ")");
    }
    if (rc < 0 || c->f->kind == PLAIN || !rem_sql_is(p, p->pos, "OVER"))
        return rc < 0 || c->f->kind != WINDOW ? rc : rem_sql_expect(p, "OVER");
    p->pos++;
    rc = rem_sql_expect(p, "(");
    if (rc == 0 && rem_sql_take(p, "PARTITION")) {
        rc = rem_sql_expect(p, "BY");
        do
            rc = rc < 0 ? rc : rem_sql_expr(p, &e);
        while (rc == 0 && rem_sql_take(p, ","));
    }
    if (rc == 0 && rem_sql_is(p, p->pos, "ORDER"))
        rc = rem_sql_order(p);
    return rc < 0 ? rc : rem_sql_expect(p, ")");
}

/* A literal whole number as an argument. */
static int check_count(struct sql *p, const struct call *c, const char *portable)
{
    const struct sql_operand *o = &c->args[1];
    rv_str n = rem_sql_at(p, o->first)->value;

    if (o->form == SQL_LITERAL && o->type == SQL_NUM && n.len < 10 && strspn(n.ptr, "0123456789") >= n.len)
        return 0;
    return rem_sql_not_portable(p, o->first, portable);
}

/* --- what differs --- */

/* The first characters of a time, completed: date_trunc('month', x) is (substr(x, 1, 7) || '-01T00...'). */
static int truncate_time(struct sql *p, struct call *c, bool *failed)
{
    static const struct {
        const char *unit, *count, *rest;
    } units[] = {
        {"year", ", 1, 4", " || '-01-01T00:00:00.000000+00:00')"},
        {"month", ", 1, 7", " || '-01T00:00:00.000000+00:00')"},
        {"day", ", 1, 10", " || 'T00:00:00.000000+00:00')"},
        {"hour", ", 1, 13", " || ':00:00.000000+00:00')"},
        {"minute", ", 1, 16", " || ':00.000000+00:00')"},
    };
    struct sql_operand *unit = &c->args[0], *o = &c->args[1];
    int rc;

    *failed = true;
    if (o->type == SQL_DATE)
        return rem_sql_not_portable(p, o->first, "truncate a time, not its date");
    for (size_t i = 0; i < RV_COUNT(units); i++) {
        if (unit->form != SQL_LITERAL || unit->type != SQL_TEXT ||
            !rem_is_word(rem_sql_at(p, unit->first)->value, units[i].unit))
            continue;
        *failed = false;
        p->tokens[c->first].instead = "(substr";
        p->tokens[unit->first].instead = p->tokens[unit->first + 1].instead = "";
        rc = rem_sql_after(p, o->last, units[i].count);
        return rc < 0 ? rc : rem_sql_after(p, c->close, units[i].rest);
    }
    return rem_sql_not_portable(p, unit->first, "the units are 'year', 'month', 'day', 'hour' and 'minute'");
}

/* A literal becomes a time now. */
static int read_literal_time(struct sql *p, struct sql_operand *o)
{
    bool is_date;

    if (o->form != SQL_LITERAL || o->type != SQL_TEXT ||
        !rem_sql_read_time(rem_sql_at(p, o->first)->value, &o->us, &is_date))
        return 0;
    return rem_sql_write_time(p, o, false);
}

static int adapt_time(struct sql *p, struct call *c)
{
    bool failed;
    int rc;

    if (c->f->special == DATE) {
        rc = read_literal_time(p, &c->args[0]);
        return rc < 0 ? rc : rem_sql_after(p, c->args[0].last, ", 1, 10");
    }
    rc = read_literal_time(p, &c->args[1]);
    return rc < 0 ? rc : truncate_time(p, c, &failed);
}

static int adapt_round(struct sql *p, struct call *c)
{
    const struct sql_operand whole = {.first = c->first, .last = p->pos - 1};
    int rc = c->n == 2 ? check_count(p, c, "the digits of round() are a number, such as 2") : 0;

    if (rc < 0 || p->opts->backend == RV_REM_SQLITE)
        return rc;
    rc = rem_sql_wrap(p, &c->args[0], "CAST(", " AS numeric)");
    return rc < 0 ? rc : rem_sql_wrap(p, &whole, "CAST(", " AS double precision)");
}

static int adapt_part(struct sql *p, struct call *c)
{
    bool is_left = c->f->special == LEFT;
    const char *count;
    int rc = check_count(p, c, is_left ? "write substr(x, 1, n)" : "the count of right() is a number, such as 10");

    if (rc < 0 || p->opts->backend == RV_REM_POSTGRES)
        return rc;
    if (is_left)
        return rem_sql_after(p, c->args[0].last, ", 1");
    rv_str n = rem_sql_at(p, c->args[1].first)->value;
    count = strspn(n.ptr, "0") >= n.len ? "1, 0" /* -0 would be the whole text */
                                        : rem_sql_print(p, "-%.*s", RV_STR_ARG(n));
    if (!count)
        return rem_no_memory(&p->s);
    p->tokens[c->args[1].first].instead = count;
    return 0;
}

/* A place below zero that is written out was meant to count from the end. */
static int adapt_substr(struct sql *p, struct call *c)
{
    for (int i = 1; i < c->n; i++) {
        size_t at = c->args[i].first;
        while (at < c->args[i].last && rem_sql_is(p, at, "("))
            at++;
        if (rem_sql_is(p, at, "-"))
            return rem_sql_not_portable(
                p, at, i == 1 ? "write right(x, n)" : "the count of substr() is not negative, such as 10");
    }
    return rem_sql_substr(p, c->first, c->args, c->n);
}

static int no_bool(struct sql *p, const struct call *c)
{
    return c->args[0].type == SQL_BOOL
               ? rem_sql_not_portable(p, c->args[0].first,
                                      "write count(*) FILTER (WHERE ...), or CASE WHEN ... THEN 1 ELSE 0 END")
               : 0;
}

static int adapt(struct sql *p, struct call *c)
{
    const struct sql_operand whole = {.first = c->first, .last = p->pos - 1};
    bool is_sqlite = p->opts->backend == RV_REM_SQLITE;
    int rc = 0;

    switch (c->f->special) {
    case NONE:
    case NOW:
        return 0;
    case LEFT:
    case RIGHT:
        return adapt_part(p, c);
    case ROUND:
        return adapt_round(p, c);
    case AVG: { /* the mean of whole numbers would be a numeric of some twenty digits, which rounds a second time */
        bool is_number = c->args[0].type == SQL_NUM || c->args[0].type == SQL_ANY;
        const struct sql_operand *part = is_number ? &c->args[0] : &whole;
        rc = no_bool(p, c);
        return rc < 0 || is_sqlite ? rc : rem_sql_wrap(p, part, "CAST(", " AS double precision)");
    }
    case SUM:
    case EXTREME:
        return no_bool(p, c);
    case DATE:
    case TRUNC:
        return adapt_time(p, c);
    case STRING_AGG:
        return c->is_distinct ? rem_sql_not_portable(p, c->first + 2, "take DISTINCT in a subquery")
                              : rem_sql_bound(p, &whole);
    case GROWS:
        return rem_sql_bound(p, &whole);
    case JSON_LENGTH:
        return is_sqlite || c->args[0].is_json ? 0 : rem_sql_wrap(p, &c->args[0], "CAST(", " AS json)");
    case SUBSTR:
        return adapt_substr(p, c);
    }
    return rc;
}

bool rem_sql_gathers(const struct sql *p, size_t token)
{
    for (size_t i = 0; i < RV_COUNT(functions); i++)
        if (functions[i].kind != PLAIN && rem_sql_is(p, token, functions[i].name))
            return true;
    return false;
}

int rem_sql_call(struct sql *p, struct sql_operand *out)
{
    struct call c = {.first = p->pos};
    const char *renamed;
    rv_str name;
    int rc;

    if (!rem_sql_is(p, p->pos, "LEFT") && !rem_sql_is(p, p->pos, "RIGHT")) {
        if ((rc = rem_sql_name(p, "an expression", &name)) < 0)
            return rc;
        p->pos--;
    }
    for (size_t i = 0; i < RV_COUNT(functions); i++)
        if (rem_sql_is(p, p->pos, functions[i].name))
            c.f = &functions[i];
    if (!c.f)
        return unknown(p, p->pos);
    p->pos += 2;
    rc = read_args(p, &c);
    c.close = p->pos - 1;
    if (rc == 0 && (c.n < c.f->min || c.n > c.f->max))
        return SQL_FAIL(p, c.first, RV_REM_SQL_SYNTAX, "%s takes %d to %d arguments, not %d", c.f->name, c.f->min,
                        c.f->max, c.n);
    if (rc == 0)
        rc = read_tail(p, &c);
    renamed = p->opts->backend == RV_REM_SQLITE ? c.f->sqlite : c.f->postgres;
    if (rc == 0 && renamed)
        p->tokens[c.first].instead = renamed;
    if (rc == 0)
        rc = adapt(p, &c);
    if (rc < 0)
        return rc;
    *out = (struct sql_operand){.first = c.first, .last = p->pos - 1, .form = SQL_PRIMARY, .type = c.f->type};
    if (c.f->type == SQL_ANY && c.n && !c.is_star)
        out->type = c.args[0].type;
    out->name = rv_str_of(c.f->name);
    out->us = p->opts->now_us;
    return c.f->special == NOW ? rem_sql_write_time(p, out, false) : 0;
}

/* --- ORDER BY --- */

/* NULLs come last, or first with DESC, as in PostgreSQL. */
int rem_sql_order(struct sql *p)
{
    struct sql_operand e;
    int rc;

    p->pos++;
    rc = rem_sql_expect(p, "BY");
    do {
        bool is_desc;
        rc = rc < 0 ? rc : rem_sql_expr(p, &e);
        is_desc = rc == 0 && rem_sql_is(p, p->pos, "DESC");
        if (rc == 0 && !rem_sql_take(p, "DESC"))
            RV_IGNORE(!rem_sql_take(p, "ASC"), "it may be left out");
        if (rc == 0 && rem_sql_take(p, "NULLS")) {
            if (!rem_sql_take(p, "FIRST"))
                rc = rem_sql_expect(p, "LAST");
        } else if (rc == 0 && p->opts->backend == RV_REM_SQLITE) {
            rc = rem_sql_after(p, p->pos - 1, is_desc ? " NULLS FIRST" : " NULLS LAST");
        }
    } while (rc == 0 && rem_sql_take(p, ","));
    return rc;
}

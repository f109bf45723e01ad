/* Expressions of SQL, by precedence: PostgreSQL's, with parentheses in the output where SQLite has another one. */
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/rem/sql_internal.h"

#define BACKEND(p) ((p)->opts->backend)

static struct sql_operand operand(size_t first, size_t last, enum sql_form form, enum sql_type type)
{
    return (struct sql_operand){.first = first, .last = last, .form = form, .type = type};
}

/* --- names --- */

static enum sql_type type_of_column(const struct sql *p, rv_str name)
{
    static const enum sql_type types[] = {[RV_REM_TEXT] = SQL_TEXT, [RV_REM_INT] = SQL_NUM,   [RV_REM_FLOAT] = SQL_NUM,
                                          [RV_REM_BOOL] = SQL_BOOL, [RV_REM_TIME] = SQL_TIME, [RV_REM_JSON] = SQL_JSON};
    RV_EACH_HAS_ROW(types, RV_N_REM_TYPES);
    size_t n;
    const struct rv_rem_column *common = rv_rem_common_columns(&n);

    for (size_t i = 0; i < n; i++)
        if (rem_is_word(name, common[i].name))
            return types[common[i].type];
    for (size_t t = 0; t < p->opts->n_tables; t++)
        for (size_t i = 0; i < p->opts->tables[t].n_columns; i++)
            if (rem_is_word(name, p->opts->tables[t].columns[i].name))
                return types[p->opts->tables[t].columns[i].type];
    return SQL_ANY;
}

/* column, or table.column */
static int read_column(struct sql *p, struct sql_operand *out)
{
    size_t first = p->pos;
    rv_str name;
    int rc = rem_sql_name(p, "an expression", &name);

    if (rc == 0 && rem_sql_is(p, p->pos, ".")) {
        p->refs[p->n_refs++] = (struct sql_ref){first, true};
        p->pos++;
        rc = rem_sql_name(p, "the name of a column", &name);
        if (rc == 0 && (rem_sql_is(p, p->pos, ".") || rem_sql_is(p, p->pos, "(")))
            rc = SQL_FAIL(p, first, RV_REM_DENIED_NAME, "\"%.*s\" is the name of a schema: tables have none",
                          REM_QUOTE(rem_sql_at(p, first)->raw));
    }
    if (rc < 0)
        return rc;
    p->refs[p->n_refs++] = (struct sql_ref){p->pos - 1, false};
    *out = operand(first, p->pos - 1, SQL_PRIMARY, type_of_column(p, name));
    out->name = name;
    out->is_column = true;
    return 0;
}

/* --- primaries --- */

static int read_case(struct sql *p, struct sql_operand *out)
{
    struct sql_operand part, result = {.type = SQL_ANY};
    size_t first = p->pos++;
    int rc = 0;

    if (!rem_sql_is(p, p->pos, "WHEN"))
        rc = rem_sql_expr(p, &part);
    if (rc == 0)
        rc = rem_sql_expect(p, "WHEN");
    while (rc == 0) {
        rc = rem_sql_expr(p, &part);
        if (rc == 0)
            rc = rem_sql_expect(p, "THEN");
        if (rc == 0)
            rc = rem_sql_expr(p, &result);
        if (rc == 0 && !rem_sql_take(p, "WHEN"))
            break;
    }
    if (rc == 0 && rem_sql_take(p, "ELSE"))
        rc = rem_sql_expr(p, &part);
    if (rc == 0)
        rc = rem_sql_expect(p, "END");
    if (rc < 0)
        return rc;
    *out = operand(first, p->pos - 1, SQL_PRIMARY, SQL_ANY);
    out->name = RV_STR_LIT("case");
    return 0;
}

static bool begins_query(const struct sql *p, size_t i)
{
    return rem_sql_is(p, i, "SELECT") || rem_sql_is(p, i, "WITH") || rem_sql_is(p, i, "VALUES");
}

/* The two databases agree on one name for the result of a subquery only if it has one. */
static int read_parentheses(struct sql *p, struct sql_operand *out)
{
    struct sql_operand inner = {.type = SQL_ANY};
    size_t first = p->pos++;
    int rc = begins_query(p, p->pos) ? rem_sql_query(p) : rem_sql_expr(p, &inner);

    if (rc == 0 && rem_sql_is(p, p->pos, ","))
        return rem_sql_not_portable(p, p->pos, "compare the columns one by one, with AND between them");
    if (rc == 0)
        rc = rem_sql_expect(p, ")");
    if (rc < 0)
        return rc;
    *out = inner;
    out->first = first;
    out->last = p->pos - 1;
    out->form = SQL_PRIMARY;
    return 0;
}

static int read_cast(struct sql *p, struct sql_operand *out)
{
    size_t first = p->pos;
    int rc;

    p->tokens[first].instead = p->tokens[first + 1].instead = "";
    p->pos += 2;
    rc = rem_sql_expr(p, out);
    if (rc == 0 && out->form > SQL_LITERAL) {
        rc = rem_sql_wrap(p, out, "(", ")");
        out->form = SQL_PRIMARY;
    }
    if (rc == 0 && rem_sql_is(p, p->pos, "AS"))
        p->tokens[p->pos].instead = "";
    if (rc == 0)
        rc = rem_sql_expect(p, "AS");
    if (rc == 0)
        rc = rem_sql_cast(p, out);
    if (rc == 0 && rem_sql_is(p, p->pos, ")"))
        p->tokens[p->pos].instead = "";
    if (rc == 0)
        rc = rem_sql_expect(p, ")");
    if (rc < 0)
        return rc;
    out->first = first;
    out->last = p->pos - 1;
    return 0;
}

/* INTERVAL '1 day', DATE '2026-01-31', TIMESTAMP '...' */
static int read_typed_literal(struct sql *p, struct sql_operand *out)
{
    static const char *const units[] = {"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"};
    size_t first = p->pos;
    bool is_date = rem_sql_is(p, first, "DATE"), reads_date;

    p->pos += 2;
    if (rem_sql_is(p, first, "INTERVAL")) {
        *out = operand(first, first + 1, SQL_LITERAL, SQL_INTERVAL);
        for (size_t i = 0; i < RV_COUNT(units); i++)
            if (rem_sql_is(p, p->pos, units[i]))
                out->last = first + 2;
        p->pos = out->last + 1;
        return 0;
    }
    *out = operand(first, first + 1, SQL_PRIMARY, SQL_TIME);
    if (rem_sql_read_time(rem_sql_at(p, first + 1)->value, &out->us, &reads_date))
        return rem_sql_write_time(p, out, is_date);
    return SQL_FAIL(p, first + 1, RV_REM_BAD_NUMBER,
                    "\"%.*s\" is not a time such as 2026-01-31 or 2026-01-31T09:30:00Z",
                    REM_QUOTE(rem_sql_at(p, first + 1)->value));
}

static int read_exists(struct sql *p, struct sql_operand *out)
{
    size_t first = p->pos;
    int rc;

    p->pos += begins_query(p, first + 2) ? 1 : 2;
    rc = p->pos == first + 1 ? read_parentheses(p, out) : rem_sql_unexpected(p, "SELECT");
    *out = operand(first, p->pos - 1, SQL_PRIMARY, SQL_BOOL);
    out->name = RV_STR_LIT("exists");
    return rc;
}

static int read_word(struct sql *p, struct sql_operand *out)
{
    static const char *const constants[] = {"TRUE", "FALSE", "NULL"};
    static const char *const typed[] = {"INTERVAL", "DATE", "TIMESTAMP", "TIMESTAMPTZ"};
    size_t first = p->pos;

    for (size_t i = 0; i < RV_COUNT(constants); i++)
        if (rem_sql_take(p, constants[i])) {
            *out = operand(first, first, SQL_LITERAL, i < 2 ? SQL_BOOL : SQL_ANY);
            return 0;
        }
    for (size_t i = 0; i < RV_COUNT(typed); i++)
        if (rem_sql_is(p, first, typed[i]) && rem_sql_at(p, first + 1)->kind == SQL_STRING)
            return read_typed_literal(p, out);
    if (rem_sql_is(p, first, "CURRENT_TIMESTAMP") || rem_sql_is(p, first, "CURRENT_DATE")) {
        p->pos++;
        *out = operand(first, first, SQL_PRIMARY, SQL_TIME);
        out->us = p->opts->now_us;
        out->name = rem_sql_is(p, first, "CURRENT_DATE") ? RV_STR_LIT("current_date") : RV_STR_LIT("current_timestamp");
        return rem_sql_write_time(p, out, rem_sql_is(p, first, "CURRENT_DATE"));
    }
    if (rem_sql_is(p, first, "CASE"))
        return read_case(p, out);
    if (rem_sql_is(p, first, "CAST") && rem_sql_is(p, first + 1, "("))
        return read_cast(p, out);
    if (rem_sql_is(p, first, "EXISTS") && rem_sql_is(p, first + 1, "("))
        return read_exists(p, out);
    return rem_sql_is(p, first + 1, "(") ? rem_sql_call(p, out) : read_column(p, out);
}

static int read_primary(struct sql *p, struct sql_operand *out)
{
    const struct sql_token *t = rem_sql_peek(p);

    if (t->kind == SQL_STRING || t->kind == SQL_NUMBER) {
        *out = operand(p->pos, p->pos, SQL_LITERAL, t->kind == SQL_STRING ? SQL_TEXT : SQL_NUM);
        p->pos++;
        if (BACKEND(p) == RV_REM_SQLITE || t->kind == SQL_STRING || strspn(t->value.ptr, "0123456789") >= t->value.len)
            return 0;
        return rem_sql_after(p, out->last, "::double precision"); /* not numeric, which has other digits */
    }
    if (rem_sql_is(p, p->pos, "("))
        return read_parentheses(p, out);
    if (t->kind == SQL_WORD)
        return read_word(p, out);
    return t->kind == SQL_NAME ? read_column(p, out) : rem_sql_unexpected(p, "an expression");
}

/* COLLATE "C": comparing bytes, which SQLite calls BINARY. */
static int read_collate(struct sql *p, struct sql_operand *o)
{
    struct sql_token *t = rem_sql_at(p, ++p->pos);

    if (t->kind != SQL_NAME || !rv_str_is(t->value, "C"))
        return rem_sql_not_portable(p, p->pos, "write COLLATE \"C\", or compare lower(...) for any case");
    if (BACKEND(p) == RV_REM_SQLITE)
        t->instead = "BINARY";
    o->last = p->pos++;
    o->is_collated = true;
    o->form = SQL_PRIMARY;
    return 0;
}

static int read_postfix(struct sql *p, struct sql_operand *out)
{
    int rc = read_primary(p, out);

    while (rc == 0) {
        if (rem_sql_is(p, p->pos, "::")) {
            p->tokens[p->pos++].instead = "";
            rc = rem_sql_cast(p, out);
        } else if (rem_sql_is(p, p->pos, "->") || rem_sql_is(p, p->pos, "->>")) {
            rc = rem_sql_json_step(p, out);
        } else if (rem_sql_is(p, p->pos, "COLLATE")) {
            rc = read_collate(p, out);
        } else {
            return 0;
        }
    }
    return rc;
}

/* --- arithmetic --- */

static int read_unary(struct sql *p, struct sql_operand *out)
{
    size_t first = p->pos;
    int rc;

    if (!rem_sql_is(p, first, "-") && !rem_sql_is(p, first, "+"))
        return read_postfix(p, out);
    if ((rc = rem_sql_enter(p)) < 0)
        return rc;
    p->pos++;
    rc = read_unary(p, out);
    rem_sql_leave(p);
    if (rc < 0)
        return rc;
    *out = operand(first, out->last, SQL_ARITH, SQL_NUM);
    return 0;
}

/* now() - interval '1 day', CURRENT_DATE - 7: known when they are read. */
static int add_to_time(struct sql *p, struct sql_operand *a, const struct sql_operand *b, int sign)
{
    bool is_date = a->type == SQL_DATE;
    rv_str n = rem_sql_at(p, b->first)->value;
    int rc;

    if (b->type == SQL_INTERVAL) {
        rc = rem_sql_add_interval(p, b, sign, &a->us);
        is_date = false;
    } else if (is_date && b->form == SQL_LITERAL && b->type == SQL_NUM && n.len < 6 &&
               strspn(n.ptr, "0123456789") >= n.len) {
        int64_t days = 0;
        for (size_t i = 0; i < n.len; i++)
            days = days * 10 + (n.ptr[i] - '0');
        a->us += sign * days * RV_US_PER_DAY;
        rc = 0;
    } else {
        return rem_sql_not_portable(p, b->first, "add or subtract an interval: now() - interval '7 days'");
    }
    a->last = b->last;
    return rc < 0 ? rc : rem_sql_write_time(p, a, is_date);
}

static int read_product(struct sql *p, struct sql_operand *out)
{
    struct sql_operand b;
    int rc = read_unary(p, out);

    while (rc == 0 && (rem_sql_take(p, "*") || rem_sql_take(p, "/") || rem_sql_take(p, "%"))) {
        rc = read_unary(p, &b);
        if (rc == 0)
            *out = operand(out->first, b.last, SQL_ARITH, SQL_NUM);
    }
    return rc;
}

static int read_sum(struct sql *p, struct sql_operand *out)
{
    struct sql_operand b;
    int rc = read_product(p, out);

    while (rc == 0 && (rem_sql_is(p, p->pos, "+") || rem_sql_is(p, p->pos, "-"))) {
        int sign = rem_sql_is(p, p->pos, "+") ? 1 : -1;
        size_t at = p->pos++;
        rc = read_product(p, &b);
        if (rc < 0)
            return rc;
        if (out->has_us && (b.type == SQL_INTERVAL || out->type == SQL_DATE)) {
            rc = add_to_time(p, out, &b, sign);
            continue;
        }
        if (out->type == SQL_TIME || out->type == SQL_DATE || b.type == SQL_TIME || b.type == SQL_DATE ||
            out->type == SQL_INTERVAL || b.type == SQL_INTERVAL)
            return rem_sql_not_portable(p, at, "only known times move: created_at > now() - interval '1 day'");
        *out = operand(out->first, b.last, SQL_ARITH, SQL_NUM);
    }
    return rc;
}

/* A predicate as an operand of something tighter gets parentheses: the databases order them differently. */
static int fence(struct sql *p, const struct sql_operand *o, enum sql_form loosest)
{
    return o->form > loosest ? rem_sql_wrap(p, o, "(", ")") : 0;
}

int rem_sql_concat(struct sql *p, struct sql_operand *out)
{
    struct sql_operand b;
    int rc = read_sum(p, out);

    while (rc == 0 && rem_sql_take(p, "||")) {
        rc = read_sum(p, &b);
        if (rc == 0 && out->form == SQL_ARITH)
            rc = rem_sql_wrap(p, out, "(", ")");
        if (rc == 0)
            rc = fence(p, &b, SQL_LITERAL);
        if (rc == 0)
            *out = operand(out->first, b.last, SQL_CONCAT, SQL_TEXT);
        if (rc == 0)
            rc = rem_sql_bound(p, out);
    }
    return rc;
}

/* --- predicates --- */

static int not_json(const struct sql *p, const struct sql_operand *o)
{
    if (!o->is_json)
        return 0;
    return rem_sql_not_portable(p, o->last, "compare texts: take the last step with ->>");
}

/* (a, b, c) or a subquery. */
static int read_in(struct sql *p, struct sql_operand *a)
{
    struct sql_operand item;
    int rc = rem_sql_expect(p, "(");

    if (rc == 0 && begins_query(p, p->pos))
        rc = rem_sql_query(p);
    else
        do {
            rc = rc < 0 ? rc : rem_sql_expr(p, &item);
            if (rc == 0)
                rc = rem_sql_match_times(p, a, &item);
        } while (rc == 0 && rem_sql_take(p, ","));
    return rc < 0 ? rc : rem_sql_expect(p, ")");
}

static int read_between(struct sql *p, struct sql_operand *a)
{
    struct sql_operand low, high;
    int rc = rem_sql_concat(p, &low);

    if (rc == 0)
        rc = rem_sql_match_times(p, a, &low);
    if (rc == 0)
        rc = rem_sql_expect(p, "AND");
    if (rc == 0)
        rc = rem_sql_concat(p, &high);
    return rc < 0 ? rc : rem_sql_match_times(p, a, &high);
}

static int read_predicate(struct sql *p, struct sql_operand *out)
{
    int rc = rem_sql_concat(p, out);
    size_t first = out->first, verb = p->pos + (rem_sql_is(p, p->pos, "NOT") ? 1 : 0);

    if (rc < 0 || !(rem_sql_is(p, verb, "LIKE") || rem_sql_is(p, verb, "ILIKE") || rem_sql_is(p, verb, "IN") ||
                    rem_sql_is(p, verb, "BETWEEN")))
        return rc;
    rc = not_json(p, out);
    p->pos = verb;
    if (rc < 0)
        return rc;
    if (rem_sql_take(p, "IN"))
        rc = read_in(p, out);
    else if (rem_sql_take(p, "BETWEEN"))
        rc = read_between(p, out);
    else
        rc = rem_sql_like(p);
    *out = operand(first, p->pos - 1, SQL_PREDICATE, SQL_BOOL);
    return rc;
}

/* --- comparisons --- */

/* = ANY(list), where the list is a text of JSON. The reader is behind "=". */
static int read_any(struct sql *p, size_t equals)
{
    bool is_sqlite = BACKEND(p) == RV_REM_SQLITE;
    struct sql_operand list;
    size_t open = p->pos + 1;
    int rc;

    if (!rem_sql_is(p, equals, "="))
        return rem_sql_not_portable(p, p->pos, "write = ANY(...), or NOT ('value' = ANY(...))");
    p->tokens[equals].instead = "IN";
    p->tokens[p->pos++].instead = "";
    if ((rc = rem_sql_expect(p, "(")) < 0)
        return rc;
    p->tokens[open].instead = is_sqlite ? " (SELECT value FROM json_each(" : " (SELECT json_array_elements_text(CAST(";
    rc = begins_query(p, p->pos) ? rem_sql_not_portable(p, equals, "write IN (SELECT ...)") : rem_sql_expr(p, &list);
    if (rc < 0)
        return rc;
    p->tokens[p->pos].instead = is_sqlite ? "))" : " AS json)))";
    return rem_sql_expect(p, ")");
}

static bool is_comparison(const struct sql *p, size_t i)
{
    static const char *const signs[] = {"=", "<>", "!=", "<", "<=", ">", ">="};

    for (size_t k = 0; k < RV_COUNT(signs); k++)
        if (rem_sql_is(p, i, signs[k]))
            return true;
    return false;
}

static int read_is(struct sql *p, struct sql_operand *out)
{
    struct sql_operand b;
    int rc = 0;

    RV_IGNORE(!rem_sql_take(p, "NOT"), "it may be left out");
    if (rem_sql_is(p, p->pos, "DISTINCT")) {
        p->pos++;
        rc = rem_sql_expect(p, "FROM");
        if (rc == 0)
            rc = read_predicate(p, &b);
        if (rc == 0)
            rc = rem_sql_match_times(p, out, &b);
        return rc < 0 ? rc : fence(p, &b, SQL_CONCAT);
    }
    if (rem_sql_take(p, "NULL") || rem_sql_take(p, "TRUE") || rem_sql_take(p, "FALSE"))
        return 0;
    return rem_sql_unexpected(p, "NULL, TRUE, FALSE or DISTINCT FROM");
}

static int compare(struct sql *p, struct sql_operand *a)
{
    struct sql_operand b;
    size_t at = p->pos++;
    int rc = not_json(p, a);

    if (rc == 0 && (rem_sql_is(p, p->pos, "ANY") || rem_sql_is(p, p->pos, "SOME")))
        return read_any(p, at);
    if (rc == 0)
        rc = fence(p, a, SQL_CONCAT);
    if (rc == 0)
        rc = read_predicate(p, &b);
    if (rc == 0)
        rc = not_json(p, &b);
    if (rc == 0)
        rc = rem_sql_match_times(p, a, &b);
    if (rc == 0)
        rc = fence(p, &b, SQL_CONCAT);
    if (rc == 0 && is_comparison(p, p->pos))
        rc = rem_sql_not_portable(p, p->pos, "put the first comparison in parentheses, or write AND");
    return rc;
}

static int read_comparison(struct sql *p, struct sql_operand *out)
{
    int rc = read_predicate(p, out);
    size_t first = out->first;

    if (rc == 0 && is_comparison(p, p->pos)) {
        rc = compare(p, out);
        *out = operand(first, p->pos - 1, SQL_LOGIC, SQL_BOOL);
    }
    while (rc == 0 && rem_sql_take(p, "IS")) {
        rc = fence(p, out, SQL_CONCAT);
        if (rc == 0)
            rc = read_is(p, out);
        *out = operand(first, p->pos - 1, SQL_LOGIC, SQL_BOOL);
    }
    return rc;
}

static int read_not(struct sql *p, struct sql_operand *out)
{
    size_t first = p->pos;
    int rc;

    if (!rem_sql_take(p, "NOT"))
        return read_comparison(p, out);
    if ((rc = rem_sql_enter(p)) < 0)
        return rc;
    rc = read_not(p, out);
    rem_sql_leave(p);
    *out = operand(first, p->pos - 1, SQL_LOGIC, SQL_BOOL);
    return rc;
}

static int read_and(struct sql *p, struct sql_operand *out)
{
    int rc = read_not(p, out);
    size_t first = out->first;

    while (rc == 0 && rem_sql_take(p, "AND")) {
        rc = read_not(p, out);
        *out = operand(first, p->pos - 1, SQL_LOGIC, SQL_BOOL);
    }
    return rc;
}

int rem_sql_expr(struct sql *p, struct sql_operand *out)
{
    size_t first = p->pos;
    int rc;

    *out = operand(first, first, SQL_PRIMARY, SQL_ANY);
    if ((rc = rem_sql_enter(p)) < 0)
        return rc;
    rc = read_and(p, out);
    while (rc == 0 && rem_sql_take(p, "OR")) {
        rc = read_and(p, out);
        *out = operand(first, p->pos - 1, SQL_LOGIC, SQL_BOOL);
    }
    rem_sql_leave(p);
    if (rc == 0 && out->type == SQL_INTERVAL)
        rc = rem_sql_not_portable(p, out->first, "an interval stands behind a time: now() - interval '1 day'");
    return rc;
}

/* SELECT, WITH, VALUES: their clauses, the tables that they may name, the names of their results. */
#include <string.h>

#include "coreengine/rem/sql_internal.h"

static bool begins_query(const struct sql *p)
{
    return rem_sql_is(p, p->pos, "SELECT") || rem_sql_is(p, p->pos, "WITH") || rem_sql_is(p, p->pos, "VALUES");
}

static int read_query_in_parentheses(struct sql *p)
{
    int rc = rem_sql_expect(p, "(");

    if (rc == 0 && !begins_query(p))
        rc = rem_sql_unexpected(p, "SELECT");
    if (rc == 0)
        rc = rem_sql_query(p);
    return rc < 0 ? rc : rem_sql_expect(p, ")");
}

/* --- names of results --- */

static const char *quote_lower(struct sql *p, rv_str name, bool fold)
{
    char *quoted = (char *)(uintptr_t)rem_sql_quote(p, name, '"');

    for (char *c = quoted; fold && c && *c; c++)
        *c = rv_ascii_lower(*c);
    return quoted;
}

/* AS name, or a name alone; without one the name that PostgreSQL would give, with a number if it is taken. */
static int read_alias(struct sql *p, const struct sql_operand *o, struct sql_names *taken)
{
    bool has_as = rem_sql_take(p, "AS"), is_new = true;
    struct sql_token *t = rem_sql_peek(p);
    rv_str name = o->name.ptr ? o->name : RV_STR_LIT("?column?");
    const char *text;
    int rc = 0;

    if (has_as || t->kind == SQL_NAME || (t->kind == SQL_WORD && !rem_sql_is_reserved(t->value))) {
        if (has_as && t->kind == SQL_WORD && rem_sql_is_reserved(t->value)) {
            name = t->value; /* any word may stand behind AS, since it gets quotes */
            p->pos++;
        } else {
            rc = rem_sql_name(p, "the name of a column", &name);
        }
        if (rc < 0)
            return rc;
        if (!(t->instead = quote_lower(p, name, t->kind == SQL_WORD)))
            return rem_no_memory(&p->s);
        if ((rc = has_as ? 0 : rem_sql_before(p, p->pos - 1, "AS ")) < 0)
            return rc;
    } else {
        rv_str base = name;
        for (int n = 2; rem_sql_has_name(taken, name); n++) {
            text = rem_sql_print(p, "%.*s_%d", RV_STR_ARG(base), n);
            if (!text)
                return rem_no_memory(&p->s);
            name = rv_str_of(text);
        }
        text = quote_lower(p, name, true);
        text = text ? rem_sql_print(p, " AS %s", text) : NULL;
        if (!text)
            return rem_no_memory(&p->s);
        rc = rem_sql_after(p, o->last, text);
        is_new = !o->is_column;
    }
    if (rc == 0)
        rc = rem_sql_add_name(p, taken, name);
    return rc < 0 || !is_new ? rc : rem_sql_add_name(p, &p->aliases, name);
}

static int read_items(struct sql *p)
{
    struct sql_names taken = {NULL, 0, 0};
    struct sql_operand o;
    int rc = 0;

    do {
        if (rem_sql_take(p, "*"))
            continue;
        if (rem_sql_is(p, p->pos + 1, ".") && rem_sql_is(p, p->pos + 2, "*")) {
            rv_str name;
            p->refs[p->n_refs++] = (struct sql_ref){p->pos, true};
            rc = rem_sql_name(p, "the name of a table", &name);
            p->pos += 2;
            continue;
        }
        rc = rem_sql_expr(p, &o);
        if (rc == 0)
            rc = read_alias(p, &o, &taken);
    } while (rc == 0 && rem_sql_take(p, ","));
    return rc;
}

/* --- FROM --- */

static int unknown_table(struct sql *p, size_t at)
{
    const char *names[64], *near;
    size_t n = 0;
    rv_str name = rem_sql_at(p, at)->value;
    rv_buf all = RV_BUF_INIT(4096);
    int rc;

    for (size_t i = 0; i < p->opts->n_tables && n < RV_COUNT(names); i++) {
        names[n++] = p->opts->tables[i].name;
        rv_buf_printf(&all, "%s%s", i ? ", " : "", p->opts->tables[i].name);
    }
    near = rv_nearest(name, names, n);
    rc = SQL_FAIL(p, at, RV_REM_UNKNOWN_TABLE, "\"%.*s\" is not a table that can be read (%s)", REM_QUOTE(name),
                  rv_buf_cstr(&all));
    if (near)
        rv_err_set_hint(p->s.err, "did you mean %s?", near);
    rv_buf_fini(&all);
    return rc;
}

/* A name as PostgreSQL compares it: lower case, unless it is quoted. */
static int exact_name(struct sql *p, size_t at, rv_str *out)
{
    const struct sql_token *t = rem_sql_at(p, at);
    char *lower;

    *out = t->value;
    if (t->kind == SQL_NAME)
        return 0;
    if (!(lower = rv_arena_alloc(p->s.memory, t->value.len + 1)))
        return rem_no_memory(&p->s);
    for (size_t i = 0; i < t->value.len; i++)
        lower[i] = t->value.ptr[i] >= 'A' && t->value.ptr[i] <= 'Z' ? (char)(t->value.ptr[i] + 32) : t->value.ptr[i];
    out->ptr = lower;
    return 0;
}

/* A name of WITH that can be seen here. To the letter: what only looks alike is a table of the database. */
static int is_part(struct sql *p, size_t at, bool *out)
{
    rv_str name;
    int rc = exact_name(p, at, &name);

    *out = false;
    for (size_t i = 0; rc == 0 && i < p->parts.n; i++)
        *out = *out || rv_str_eq(p->parts.items[i], name);
    return rc;
}

static int use_table(struct sql *p, size_t at)
{
    rv_str name = rem_sql_at(p, at)->value;
    bool is_quoted = rem_sql_at(p, at)->kind == SQL_NAME, is_known;
    int rc = is_part(p, at, &is_known);

    if (rc < 0 || is_known)
        return rc;
    for (size_t i = 0; i < p->opts->n_tables; i++) {
        const struct rv_rem_table *t = &p->opts->tables[i];
        if (is_quoted ? !rv_str_is(name, t->name) : !rem_is_word(name, t->name))
            continue;
        for (size_t u = 0; u < p->n_used; u++)
            if (p->used[u] == t)
                return 0;
        p->used[p->n_used++] = t;
        return 0;
    }
    return unknown_table(p, at);
}

/* [AS] alias */
static int read_source_alias(struct sql *p, bool is_required)
{
    const struct sql_token *t = rem_sql_peek(p);
    bool has_as = rem_sql_take(p, "AS");
    rv_str name;
    int rc;

    t = rem_sql_peek(p);
    if (!has_as && t->kind != SQL_NAME && (t->kind != SQL_WORD || rem_sql_is_reserved(t->value)))
        return is_required ? rem_sql_not_portable(p, p->pos, "name the subquery: (SELECT ...) AS part") : 0;
    rc = rem_sql_name(p, "a name for the table", &name);
    if (rc == 0 && rem_sql_is(p, p->pos, "("))
        rc = rem_sql_not_portable(p, p->pos, "name the columns: WITH part(a, b) AS (...) SELECT ... FROM part");
    return rc < 0 ? rc : rem_sql_add_name(p, &p->sources, name);
}

static int read_source(struct sql *p)
{
    size_t at = p->pos;
    rv_str name;
    int rc;

    p->n_sources++;
    if (rem_sql_is(p, at, "(")) {
        rc = read_query_in_parentheses(p);
        return rc < 0 ? rc : read_source_alias(p, true);
    }
    rc = rem_sql_name(p, "the name of a table", &name);
    if (rc == 0 && rem_sql_is(p, p->pos, "(")) {
        rc =
            SQL_FAIL(p, at, RV_REM_UNKNOWN_FUNCTION, "the function \"%.*s\" cannot stand for a table", REM_QUOTE(name));
        rv_err_set_hint(p->s.err, "to look into a list of JSON write 'value' = ANY(tags)");
        return rc;
    }
    if (rc == 0 && rem_sql_is(p, p->pos, ".")) {
        rc = SQL_FAIL(p, at, RV_REM_DENIED_NAME, "\"%.*s\" is the name of a schema: tables have none", REM_QUOTE(name));
        rv_err_set_hint(p->s.err, "write the name of the table alone");
        return rc;
    }
    if (rc == 0)
        rc = use_table(p, at);
    if (rc == 0)
        rc = rem_sql_add_name(p, &p->sources, name);
    return rc < 0 ? rc : read_source_alias(p, false);
}

/* JOIN and what may stand before it. *is_join: there is one. */
static int read_join_words(struct sql *p, bool *is_join, bool *needs_condition)
{
    bool is_natural = rem_sql_take(p, "NATURAL"), is_cross = !is_natural && rem_sql_take(p, "CROSS");
    bool has_side = is_natural || is_cross;

    if (!is_cross && (rem_sql_take(p, "LEFT") || rem_sql_take(p, "RIGHT") || rem_sql_take(p, "FULL"))) {
        has_side = true;
        RV_IGNORE(!rem_sql_take(p, "OUTER"), "it may be left out");
    } else if (!is_cross && rem_sql_take(p, "INNER")) {
        has_side = true;
    }
    *is_join = has_side || rem_sql_is(p, p->pos, "JOIN");
    *needs_condition = !is_natural && !is_cross;
    return *is_join ? rem_sql_expect(p, "JOIN") : 0;
}

static int read_condition(struct sql *p)
{
    struct sql_operand o;
    rv_str name;
    int rc;

    if (rem_sql_take(p, "ON"))
        return rem_sql_expr(p, &o);
    if (!rem_sql_is(p, p->pos, "USING"))
        return rem_sql_unexpected(p, "ON or USING");
    p->pos++;
    rc = rem_sql_expect(p, "(");
    do {
        if (rc == 0)
            p->refs[p->n_refs++] = (struct sql_ref){p->pos, false};
        rc = rc < 0 ? rc : rem_sql_name(p, "the name of a column", &name);
    } while (rc == 0 && rem_sql_take(p, ","));
    return rc < 0 ? rc : rem_sql_expect(p, ")");
}

static int read_from(struct sql *p)
{
    bool is_join = true, needs_condition;
    int rc = read_source(p);

    while (rc == 0 && is_join) {
        if (rem_sql_take(p, ",")) {
            rc = read_source(p);
            continue;
        }
        rc = read_join_words(p, &is_join, &needs_condition);
        if (rc < 0 || !is_join)
            break;
        rc = read_source(p);
        if (rc == 0 && needs_condition)
            rc = read_condition(p);
    }
    return rc;
}

/* --- the clauses --- */

static int read_exprs(struct sql *p)
{
    struct sql_operand o;
    int rc;

    do
        rc = rem_sql_expr(p, &o);
    while (rc == 0 && rem_sql_take(p, ","));
    return rc;
}

static int read_select(struct sql *p)
{
    struct sql_operand o;
    int rc;

    p->pos++;
    if (rem_sql_take(p, "DISTINCT") && rem_sql_is(p, p->pos, "ON"))
        return rem_sql_not_portable(p, p->pos, "write GROUP BY with max(created_at), or row_number() OVER (...)");
    RV_IGNORE(!rem_sql_take(p, "ALL"), "it may be left out");
    rc = read_items(p);
    if (rc == 0 && rem_sql_take(p, "FROM"))
        rc = read_from(p);
    if (rc == 0 && rem_sql_take(p, "WHERE"))
        rc = rem_sql_expr(p, &o);
    if (rc == 0 && rem_sql_take(p, "GROUP")) {
        rc = rem_sql_expect(p, "BY");
        if (rc == 0)
            rc = read_exprs(p);
        if (rc == 0 && rem_sql_take(p, "HAVING"))
            rc = rem_sql_expr(p, &o);
    }
    return rc;
}

static int read_values(struct sql *p)
{
    int rc;

    p->pos++;
    do {
        rc = rem_sql_expect(p, "(");
        if (rc == 0)
            rc = read_exprs(p);
        if (rc == 0)
            rc = rem_sql_expect(p, ")");
    } while (rc == 0 && rem_sql_take(p, ","));
    for (int i = 1; rc == 0 && i <= 9; i++) { /* what both databases call the columns */
        const char *name = rem_sql_print(p, "column%d", i);
        rc = name ? rem_sql_add_name(p, &p->aliases, rv_str_of(name)) : rem_no_memory(&p->s);
    }
    return rc;
}

/* SELECT ... UNION ALL SELECT ... */
static int read_compound(struct sql *p)
{
    size_t n_intersect = 0, n_other = 0;
    int rc;

    for (;;) {
        if (rem_sql_is(p, p->pos, "SELECT"))
            rc = read_select(p);
        else if (rem_sql_is(p, p->pos, "VALUES"))
            rc = read_values(p);
        else
            rc = rem_sql_unexpected(p, "SELECT or VALUES");
        if (rc < 0)
            return rc;
        if (rem_sql_take(p, "UNION")) {
            RV_IGNORE(!rem_sql_take(p, "ALL"), "it may be left out");
            n_other++;
        } else if (rem_sql_take(p, "EXCEPT")) {
            n_other++;
        } else if (rem_sql_take(p, "INTERSECT")) {
            n_intersect++;
        } else {
            return 0;
        }
        if (n_intersect && n_other)
            return rem_sql_not_portable(p, p->pos - 1, "INTERSECT beside UNION or EXCEPT: name the parts with WITH");
    }
}

static int read_limit(struct sql *p)
{
    static const char *const words[] = {"LIMIT", "OFFSET"};
    bool has_limit = rem_sql_is(p, p->pos, "LIMIT");
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(words); i++) {
        size_t at = p->pos;
        const struct sql_token *n = rem_sql_at(p, at + 1);
        if (!rem_sql_take(p, words[i]))
            continue;
        if (n->kind != SQL_NUMBER || strspn(n->value.ptr, "0123456789") < n->value.len || n->value.len > 15)
            return rem_sql_not_portable(p, p->pos, "write a whole number, such as LIMIT 10");
        p->pos++;
        if (i == 1 && !has_limit && p->opts->backend == RV_REM_SQLITE)
            rc = rem_sql_before(p, at, "LIMIT -1 ");
        if (rc == 0 && i == 0 && rem_sql_is(p, p->pos, ","))
            rc = rem_sql_not_portable(p, p->pos, "write LIMIT count OFFSET first");
        if (rc < 0)
            return rc;
    }
    if (rem_sql_is(p, p->pos, "LIMIT"))
        return rem_sql_not_portable(p, p->pos, "write LIMIT before OFFSET");
    return 0;
}

/* name [(columns)] AS (query). A part is seen by what comes behind it; by its own query only where WITH says RECURSIVE:
 * elsewhere the name stands for the table of the database that is called like it. */
static int read_part(struct sql *p, bool is_recursive)
{
    size_t at = p->pos;
    rv_str name, column;
    bool is_known;
    int rc = rem_sql_name(p, "a name", &name);

    for (size_t i = 0; rc == 0 && i < p->opts->n_tables; i++)
        if (rem_is_word(name, p->opts->tables[i].name))
            rc = rem_sql_not_portable(p, at, "give the part a name that is not the name of a table");
    if (rc == 0)
        rc = is_part(p, at, &is_known);
    if (rc == 0 && is_known)
        rc = rem_sql_not_portable(p, at, "give the part a name that no other part has");
    if (rc == 0)
        rc = exact_name(p, at, &name);
    if (rc == 0 && is_recursive)
        rc = rem_sql_push_name(p, &p->parts, name);
    if (rc == 0 && rem_sql_take(p, "(")) {
        do {
            rc = rem_sql_name(p, "the name of a column", &column);
            if (rc == 0)
                rc = rem_sql_add_name(p, &p->aliases, column);
        } while (rc == 0 && rem_sql_take(p, ","));
        if (rc == 0)
            rc = rem_sql_expect(p, ")");
    }
    if (rc == 0)
        rc = rem_sql_expect(p, "AS");
    if (rc == 0 && rem_sql_is(p, p->pos, "NOT"))
        p->pos++;
    if (rc == 0)
        RV_IGNORE(!rem_sql_take(p, "MATERIALIZED"), "it may be left out");
    if (rc == 0)
        rc = read_query_in_parentheses(p);
    return rc < 0 || is_recursive ? rc : rem_sql_push_name(p, &p->parts, name);
}

int rem_sql_query(struct sql *p)
{
    size_t n_outer = p->parts.n;
    int rc = rem_sql_enter(p);

    if (rc == 0 && rem_sql_take(p, "WITH")) {
        bool is_recursive = rem_sql_take(p, "RECURSIVE");
        p->is_recursive = p->is_recursive || is_recursive;
        do
            rc = read_part(p, is_recursive);
        while (rc == 0 && rem_sql_take(p, ","));
    }
    if (rc == 0)
        rc = read_compound(p);
    if (rc == 0 && rem_sql_is(p, p->pos, "ORDER"))
        rc = rem_sql_order(p);
    if (rc == 0)
        rc = read_limit(p);
    p->parts.n = n_outer; /* parts of an inner query end with it */
    rem_sql_leave(p);
    return rc;
}

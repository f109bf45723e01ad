/* The tables that statements of others name: the rows of the kinds, as a scope sees them, with their columns as SQL has
 * them. Times and JSON are texts, and both databases give the same ones. A text that has a NUL is null, since no
 * database can work on it.
 *
 * Only columns whose names occur in the statement are computed: a table may have long texts, and is computed whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coreengine/store/search/ask_internal.h"

/* Columns of tables of their own that PostgreSQL keeps as bytes. */
static const char *const bytes[] = {"m.content", "m.tool_calls", "m.metadata", "e.content", "e.json_schema"};

struct writing {
    const struct rv_store_scope *scope;
    rv_str sql;
    bool is_postgres, wants_all, hides;
    const char *schema; /* NULL: of SQLite */
    const struct rv_kind *kind;
    const char *table; /* the alias of its table: "e", of messages "m" */
    const char *owner; /* of the table that has tenant and user: "e", of messages "s" */
    rv_buf *out;
    size_t n; /* columns so far */
};

static bool has_word(rv_str text, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= text.len; i++)
        if (strncasecmp(text.ptr + i, word, n) == 0)
            return true;
    return false;
}

/* "*" other than in count(*): columns without their names. A product of two numbers counts, too; that costs time only.
 */
static bool has_star(rv_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '*' && !(i > 0 && text.ptr[i - 1] == '(' && i + 1 < text.len && text.ptr[i + 1] == ')'))
            return true;
    return false;
}

/* --- Columns --- */

static bool begin(struct writing *w, const char *name)
{
    if (!w->wants_all && !has_word(w->sql, name))
        return false;
    rv_buf_puts(w->out, w->n++ > 0 ? ", " : "");
    rv_buf_puts(w->out, w->is_postgres ? "(" : "");
    return true;
}

static void end_text(struct writing *w, const char *name)
{
    rv_buf_printf(w->out, "%s AS \"%s\"", w->is_postgres ? ") COLLATE \"C\"" : "", name);
}

static void end_number(struct writing *w, const char *name)
{
    rv_buf_printf(w->out, "%s AS \"%s\"", w->is_postgres ? ")" : "", name);
}

static bool is_bytes(const char *column)
{
    for (size_t i = 0; i < RV_COUNT(bytes); i++)
        if (strcmp(bytes[i], column) == 0)
            return true;
    return false;
}

/* A column of a table as text; without what is empty if that says so. */
static void put_column(struct writing *w, const char *table, const char *name, bool may_have_nul)
{
    char c[200]; /* names of our own tables */

    snprintf(c, sizeof c, "%s.%s", table, name);
    bool is_of_session = w->kind->place == RV_PLACE_SESSIONS && strcmp(name, "metadata") == 0;
    if (w->is_postgres && (is_bytes(c) || is_of_session)) {
        if (!(w->kind->place == RV_PLACE_SCHEMAS || w->kind->place == RV_PLACE_MESSAGES || is_of_session))
            rv_buf_puts(w->out, c);
        else
            rv_buf_printf(w->out,
                          "CASE WHEN position('\\x00'::bytea IN %s) > 0 THEN NULL ELSE convert_from(%s, 'UTF8') END", c,
                          c);
    } else if (!w->is_postgres && may_have_nul) {
        rv_buf_printf(w->out, "CASE WHEN instr(CAST(%s AS BLOB), x'00') > 0 THEN NULL ELSE %s END", c, c);
    } else {
        rv_buf_puts(w->out, c);
    }
}

/* The text behind `from` is an expression whose value may be an encrypted text: a statement cannot work on that, so it
 * becomes null. The mark of a plain text that looks encrypted is removed. */
static void hide(struct writing *w, size_t from, bool is_secret)
{
    char *text = NULL;

    if (!w->hides || !is_secret || w->out->rc < 0)
        return;
    if (!(text = rv_str_dup((rv_str){w->out->ptr + from, w->out->len - from}))) {
        w->out->rc = RV_E_NOMEM;
        return;
    }
    rv_buf_truncate(w->out, from);
    rv_buf_printf(w->out,
                  "CASE substr(ltrim(%s, '\"'), 1, 11) WHEN 'reeve-enc1:' THEN NULL WHEN 'reeve-enc2:' THEN NULL"
                  " WHEN 'reeve-enc3:' THEN NULL WHEN 'reeve-enc0:' THEN substr(%s, 12) ELSE %s END",
                  text, text, text);
    free(text);
}

static void put_time(struct writing *w, const char *table, const char *from, const char *name)
{
    if (!begin(w, name))
        return;
    if (w->is_postgres)
        rv_buf_printf(w->out,
                      "to_char(to_timestamp(%s.%s / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS') || '.' ||"
                      " lpad(CAST(%s.%s %% 1000000 AS text), 6, '0') || '+00:00'",
                      table, from, table, from);
    else
        rv_buf_printf(w->out,
                      "strftime('%%Y-%%m-%%dT%%H:%%M:%%S', %s.%s / 1000000, 'unixepoch') ||"
                      " printf('.%%06d+00:00', %s.%s %% 1000000)",
                      table, from, table, from);
    end_text(w, name);
}

/* A column that is null where it says nothing. */
static void put_word(struct writing *w, const char *table, const char *name)
{
    if (!begin(w, name))
        return;
    rv_buf_printf(w->out, "nullif(%s.%s, '')", table, name);
    end_text(w, name);
}

static void put_json(struct writing *w, const char *name, const char *empty)
{
    if (!begin(w, name))
        return;
    bool is_secret = strcmp(name, "metadata") == 0 && w->kind->place != RV_PLACE_SCHEMAS;
    rv_buf_puts(w->out, "coalesce(nullif(");
    size_t from = w->out->len;
    put_column(w, w->table, name, false);
    hide(w, from, is_secret);
    rv_buf_printf(w->out, ", ''), '%s')", empty);
    end_text(w, name);
}

static bool is_number(enum rv_kind_type type)
{
    return type == RV_KIND_INT || type == RV_KIND_REAL || type == RV_KIND_BOOL;
}

static bool is_json(enum rv_kind_type type)
{
    return type == RV_KIND_OBJECT || type == RV_KIND_TEXTS || type == RV_KIND_OBJECTS;
}

/* A member of `fields`. */
static void put_member(struct writing *w, const struct rv_kind_field *f)
{
    /* Only numbers. */
    static const char *const types[RV_N_KIND_TYPES] = {
        [RV_KIND_INT] = "bigint", [RV_KIND_REAL] = "double precision", [RV_KIND_BOOL] = "boolean"};
    /* Only numbers. */
    static const char *const lite[RV_N_KIND_TYPES] = {
        [RV_KIND_INT] = "INTEGER", [RV_KIND_REAL] = "REAL", [RV_KIND_BOOL] = "INTEGER"};

    if (is_number(f->type) && w->is_postgres)
        rv_buf_printf(w->out, "CAST(CAST(e.fields AS json) ->> '%s' AS %s)", f->name, types[f->type]);
    else if (is_number(f->type))
        rv_buf_printf(w->out, "CAST(json_extract(e.fields, '$.%s') AS %s)", f->name, lite[f->type]);
    else if (is_json(f->type) && w->is_postgres)
        rv_buf_printf(w->out, "nullif(CAST(CAST(e.fields AS json) -> '%s' AS text), 'null')", f->name);
    else if (is_json(f->type))
        rv_buf_printf(w->out, "json_extract(e.fields, '$.%s')", f->name);
    else if (w->is_postgres)
        rv_buf_printf(w->out,
                      "CASE WHEN strpos(e.fields, '\\u0000') > 0 THEN NULL ELSE CAST(e.fields AS json) ->> '%s' END",
                      f->name);
    else
        rv_buf_printf(w->out,
                      "CASE WHEN instr(e.fields, '\\u0000') > 0 THEN NULL ELSE json_extract(e.fields, '$.%s') END",
                      f->name);
}

/* The value that a row without the column shows, as SQL; the fallback is JSON. */
static void put_fallback(struct writing *w, const struct rv_kind_field *f)
{
    const char *text = f->fallback ? f->fallback : "[]";

    if (f->type == RV_KIND_BOOL || f->type == RV_KIND_INT || f->type == RV_KIND_REAL)
        rv_buf_puts(w->out, text);
    else if (is_json(f->type))
        rv_buf_printf(w->out, "'%s'", text);
    else
        rv_buf_printf(w->out, "'%.*s'", (int)strlen(text) - 2, text + 1); /* without its quotes */
}

static void put_own(struct writing *w, const struct rv_kind_field *f)
{
    bool falls_back = f->fallback || f->type == RV_KIND_TEXTS || f->type == RV_KIND_OBJECTS;
    bool is_plain = strcmp(f->name, "name") == 0;

    bool is_secret = store_kind_encrypts(w->kind, f->name);
    if (!begin(w, f->name))
        return;
    rv_buf_puts(w->out, falls_back ? "coalesce(" : "");
    size_t from = w->out->len;
    if (w->kind->place == RV_PLACE_MESSAGES && strcmp(f->name, "session_id") == 0)
        rv_buf_puts(w->out, "s.id");
    else if (w->kind->place == RV_PLACE_ENTITIES && !is_plain)
        put_member(w, f);
    else if (is_json(f->type)) {
        rv_buf_puts(w->out, "nullif(");
        put_column(w, w->table, f->name, false);
        rv_buf_puts(w->out, ", '')");
    } else {
        put_column(w, w->table, f->name, !is_number(f->type));
    }
    hide(w, from, is_secret);
    if (falls_back) {
        rv_buf_puts(w->out, ", ");
        put_fallback(w, f);
        rv_buf_puts(w->out, ")");
    }
    if (is_number(f->type))
        end_number(w, f->name);
    else
        end_text(w, f->name);
}

/* --- Tables --- */

/* A name without it would mean the table of WITH. */
static void put_schema(struct writing *w)
{
    if (!w->schema) {
        rv_buf_puts(w->out, "main.");
        return;
    }
    rv_buf_putc(w->out, '"');
    for (const char *at = w->schema; *at; at++)
        rv_buf_add(w->out, *at == '"' ? "\"\"" : at, *at == '"' ? 2 : 1);
    rv_buf_puts(w->out, "\".");
}

static void put_rows(struct writing *w)
{
    static const char *const from[] = {[RV_PLACE_ENTITIES] = "entities e",
                                       [RV_PLACE_SESSIONS] = "sessions e",
                                       [RV_PLACE_MESSAGES] = "messages m",
                                       [RV_PLACE_SCHEMAS] = "schemas e"};
    RV_EACH_HAS_ROW(from, RV_N_KIND_PLACES);
    const char *mark = w->is_postgres ? "$" : "?";

    if (w->n == 0)
        rv_buf_puts(w->out, "1 AS \"one\"");
    rv_buf_puts(w->out, " FROM ");
    put_schema(w);
    rv_buf_puts(w->out, from[w->kind->place]);
    if (w->kind->place == RV_PLACE_MESSAGES) {
        rv_buf_puts(w->out, " JOIN ");
        put_schema(w);
        rv_buf_puts(w->out, "sessions s ON s.key = m.session");
    }
    rv_buf_printf(w->out, " WHERE %s.deleted_us IS NULL", w->owner);
    if (w->kind->place == RV_PLACE_MESSAGES)
        rv_buf_puts(w->out, " AND m.deleted_us IS NULL");
    if (w->kind->place == RV_PLACE_ENTITIES)
        rv_buf_printf(w->out, " AND e.kind = '%s'", w->kind->name);
    rv_buf_printf(w->out, " AND %s.tenant_id IN (%s1%s)", w->owner, mark, w->kind->is_shared ? ", ''" : "");
    if (w->scope->user)
        rv_buf_printf(w->out, " AND %s.user_id IN (%s2, '')", w->owner, mark);
}

static void put_table(struct writing *w, const struct rv_rem_table *t)
{
    w->n = 0;
    w->table = w->kind->place == RV_PLACE_MESSAGES ? "m" : "e";
    w->owner = w->kind->place == RV_PLACE_MESSAGES ? "s" : "e";
    rv_buf_printf(w->out, "%s AS MATERIALIZED (SELECT ", t->name);
    put_word(w, w->table, "id");
    put_word(w, w->owner, "tenant_id");
    put_word(w, w->owner, "user_id");
    for (size_t i = 0; i < t->n_columns; i++) {
        const struct rv_kind_field *f = rv_kind_find_field(w->kind, rv_str_of(t->columns[i].name));
        if (f)
            put_own(w, f);
    }
    put_json(w, "metadata", "{}");
    put_json(w, "tags", "[]");
    put_json(w, "graph_edges", "[]");
    put_word(w, w->table, "encryption_level");
    put_time(w, w->table, "created_us", "created_at");
    put_time(w, w->table, w->kind->place == RV_PLACE_MESSAGES ? "created_us" : "updated_us", "updated_at");
    if (begin(w, "deleted_at")) {
        rv_buf_puts(w->out, w->is_postgres ? "CAST(NULL AS text)" : "NULL");
        end_text(w, "deleted_at");
    }
    put_rows(w);
    rv_buf_puts(w->out, ")");
}

bool store_ask_is_table(const char *name)
{
    size_t n;
    const struct rv_rem_table *tables = rv_rem_tables(&n);

    for (size_t i = 0; i < n; i++)
        if (strcasecmp(tables[i].name, name) == 0)
            return true;
    return false;
}

static rv_str skip_blanks(rv_str text)
{
    while (text.len > 0 && strchr(" \t\r\n", *text.ptr))
        text = (rv_str){text.ptr + 1, text.len - 1};
    return text;
}

/* Over a word at the beginning, if it is that one. */
static bool skip_word(rv_str *text, const char *word)
{
    size_t n = strlen(word);
    rv_str t = skip_blanks(*text);

    if (t.len < n || strncasecmp(t.ptr, word, n) != 0 || (t.len > n && (rv_is_letter(t.ptr[n]) || t.ptr[n] == '_')))
        return false;
    *text = (rv_str){t.ptr + n, t.len - n};
    return true;
}

void store_ask_write(const struct rv_store_scope *scope, const struct rv_rem_sql *sql, const char *schema, bool hides,
                     rv_buf *out)
{
    bool is_postgres = schema != NULL;
    struct writing w = {
        .scope = scope, .sql = sql->text, .is_postgres = is_postgres, .hides = hides, .schema = schema, .out = out};
    size_t n, n_used = 0;
    const struct rv_rem_table *tables = rv_rem_tables(&n);
    rv_str rest = sql->text;

    w.wants_all = has_star(w.sql) || has_word(w.sql, "NATURAL") || has_word(w.sql, "U&");
    if (sql->is_explain && skip_word(&rest, "EXPLAIN")) {
        rv_buf_puts(out, is_postgres ? "EXPLAIN " : "EXPLAIN QUERY PLAN ");
        RV_IGNORE(skip_word(&rest, "QUERY") && skip_word(&rest, "PLAN"), "PostgreSQL has none");
    }
    bool has_with = skip_word(&rest, "WITH");
    bool is_recursive = has_with && skip_word(&rest, "RECURSIVE");
    for (size_t i = 0; i < n; i++) {
        w.kind = rv_kind_find(rv_str_of(tables[i].name));
        if (!w.kind || !has_word(w.sql, tables[i].name))
            continue;
        rv_buf_puts(out, n_used++ > 0 ? ", " : is_recursive ? "WITH RECURSIVE " : "WITH ");
        put_table(&w, &tables[i]);
    }
    rv_buf_puts(out, has_with && n_used > 0 ? ", " : has_with ? is_recursive ? "WITH RECURSIVE " : "WITH " : " ");
    rv_buf_add_str(out, rest);
}

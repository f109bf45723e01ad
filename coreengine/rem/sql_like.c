/* LIKE and ILIKE. LIKE keeps case in PostgreSQL and not in SQLite, whose GLOB does. ILIKE folds the letters A to Z, as
 * SQLite's LIKE does; COLLATE "C" gives PostgreSQL the same rule. */
#include <string.h>

#include "coreengine/rem/sql_internal.h"

/* A pattern must not end with its escape character: SQLite reads it as itself, PostgreSQL fails. */
static int check_end(const struct sql *p, const struct sql_operand *pattern, char escape)
{
    rv_str text = rem_sql_at(p, pattern->first)->value;
    size_t n = 0;

    while (n < text.len && text.ptr[text.len - 1 - n] == escape)
        n++;
    return n % 2 ? SQL_FAIL(p, pattern->first, RV_REM_BAD_ESCAPE, "the pattern ends with its escape character") : 0;
}

/* A pattern of LIKE as one of GLOB. */
static const char *to_glob(struct sql *p, rv_str pattern, char escape)
{
    char *out = rv_arena_alloc(p->s.memory, 3 * pattern.len + 1), *to = out;

    if (!out)
        return NULL;
    for (size_t i = 0; i < pattern.len; i++) {
        bool is_literal = pattern.ptr[i] == escape && i + 1 < pattern.len;
        char c = pattern.ptr[i += is_literal ? 1 : 0];
        if (!is_literal && (c == '%' || c == '_')) {
            *to++ = c == '%' ? '*' : '?';
        } else if (c == '*' || c == '?' || c == '[') {
            *to++ = '[';
            *to++ = c;
            *to++ = ']';
        } else {
            *to++ = c;
        }
    }
    return rem_sql_quote(p, (rv_str){out, (size_t)(to - out)}, '\'');
}

#define GLOB_OPEN  "replace(replace(replace(replace(replace("
#define GLOB_CLOSE ", '[', '[[]'), '*', '[*]'), '?', '[?]'), '%', '*'), '_', '?')"

/* ESCAPE 'c' behind the pattern: dropped, or kept. */
static int read_escape(struct sql *p, bool keep, char *out)
{
    const struct sql_token *t;

    if (!rem_sql_is(p, p->pos, "ESCAPE"))
        return 0;
    t = rem_sql_at(p, p->pos + 1);
    if (t->kind != SQL_STRING || t->value.len != 1 || (t->value.ptr[0] & 0x80) || strchr("%_", t->value.ptr[0]))
        return rem_sql_not_portable(p, p->pos + 1, "write one character behind ESCAPE, such as '!'");
    *out = t->value.ptr[0];
    for (int i = 0; i < 2; i++, p->pos++)
        if (!keep)
            p->tokens[p->pos].instead = "";
    return 0;
}

static int like_sqlite(struct sql *p, size_t verb, const struct sql_operand *pattern)
{
    bool is_literal = pattern->form == SQL_LITERAL && pattern->type == SQL_TEXT;
    char escape = '\\';
    const char *glob;
    int rc;

    if (!is_literal && rem_sql_is(p, p->pos, "ESCAPE"))
        return rem_sql_not_portable(p, p->pos, "write the pattern as one literal, or leave ESCAPE out");
    if ((rc = read_escape(p, false, &escape)) < 0)
        return rc;
    p->tokens[verb].instead = "GLOB";
    if (!is_literal)
        return rem_sql_wrap(p, pattern, GLOB_OPEN, GLOB_CLOSE);
    if ((rc = check_end(p, pattern, escape)) < 0)
        return rc;
    glob = to_glob(p, rem_sql_at(p, pattern->first)->value, escape);
    if (!glob)
        return rem_no_memory(&p->s);
    rem_sql_replace(p, pattern->first, pattern->last, glob);
    return 0;
}

/* In a pattern that is computed no character escapes, in both databases. */
static int like_postgres(struct sql *p, const struct sql_operand *pattern)
{
    bool is_literal = pattern->form == SQL_LITERAL && pattern->type == SQL_TEXT;
    char escape = '\\';
    int rc;

    if (is_literal) {
        rc = read_escape(p, true, &escape);
        return rc < 0 ? rc : check_end(p, pattern, escape);
    }
    if (rem_sql_is(p, p->pos, "ESCAPE"))
        return rem_sql_not_portable(p, p->pos, "write the pattern as one literal, or leave ESCAPE out");
    return rem_sql_after(p, pattern->last, " ESCAPE ''");
}

static int ilike(struct sql *p, size_t verb, const struct sql_operand *pattern)
{
    bool is_sqlite = p->opts->backend == RV_REM_SQLITE, has_escape = rem_sql_is(p, p->pos, "ESCAPE");
    char escape = '\\';
    int rc = 0;

    if (is_sqlite) {
        p->tokens[verb].instead = "LIKE";
        rc = has_escape ? 0 : rem_sql_after(p, pattern->last, " ESCAPE '\\'");
    } else if (!pattern->is_collated) {
        rc = pattern->form > SQL_LITERAL ? rem_sql_wrap(p, pattern, "(", ") COLLATE \"C\"")
                                         : rem_sql_after(p, pattern->last, " COLLATE \"C\"");
    }
    if (rc == 0)
        rc = read_escape(p, true, &escape);
    return rc < 0 || pattern->form != SQL_LITERAL || pattern->type != SQL_TEXT ? rc : check_end(p, pattern, escape);
}

int rem_sql_like(struct sql *p)
{
    size_t verb = p->pos++;
    struct sql_operand pattern;
    int rc = rem_sql_concat(p, &pattern);

    if (rc < 0)
        return rc;
    if (rem_sql_is(p, verb, "ILIKE"))
        return ilike(p, verb, &pattern);
    return p->opts->backend == RV_REM_SQLITE ? like_sqlite(p, verb, &pattern) : like_postgres(p, &pattern);
}

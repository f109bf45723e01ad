/* SQL as a whole: one statement, its policy, its text for a database. The two policies differ in everything but the
 * tokens: strict reads a grammar, compat looks for words as p8 does. */
#include <string.h>

#include "coreengine/rem/sql_internal.h"

#define MAX_MEMORY ((size_t)8 << 20) /* bytes of a tree: RV_REM_MAX_TOKENS of 4 KiB */
#define MAX_OUTPUT ((size_t)1 << 20) /* bytes that are written: as SQLite takes */

/* Words that begin or belong to a statement which does more than read. */
static const char *const writing[] = {
    "ABORT",    "ALTER",     "ANALYZE",  "ATTACH",  "BEGIN",      "CALL",    "CHECKPOINT", "CLOSE",     "CLUSTER",
    "COMMENT",  "COMMIT",    "COPY",     "CREATE",  "DEALLOCATE", "DECLARE", "DELETE",     "DETACH",    "DISCARD",
    "DO",       "DROP",      "EXECUTE",  "EXPLAIN", "FETCH",      "FOR",     "GRANT",      "IMPORT",    "INSERT",
    "INTO",     "KILL",      "LISTEN",   "LOAD",    "LOCK",       "MERGE",   "MOVE",       "NOTIFY",    "PRAGMA",
    "PREPARE",  "REASSIGN",  "REFRESH",  "REINDEX", "RELEASE",    "REPLACE", "RESET",      "RETURNING", "REVOKE",
    "ROLLBACK", "SAVEPOINT", "SECURITY", "SET",     "SHOW",       "START",   "TRUNCATE",   "UNLISTEN",  "UPDATE",
    "UPSERT",   "USE",       "VACUUM"};

/* Words that cannot be names without quotes. */
static const char *const reserved[] = {"ALL",          "AND",
                                       "ANY",          "ARRAY",
                                       "AS",           "ASC",
                                       "BETWEEN",      "BOTH",
                                       "CASE",         "CAST",
                                       "COLLATE",      "CREATE",
                                       "CROSS",        "CURRENT_DATE",
                                       "CURRENT_TIME", "CURRENT_TIMESTAMP",
                                       "DEFAULT",      "DELETE",
                                       "DESC",         "DISTINCT",
                                       "DROP",         "ELSE",
                                       "END",          "ESCAPE",
                                       "EXCEPT",       "EXISTS",
                                       "FETCH",        "FILTER",
                                       "FOR",          "FROM",
                                       "FULL",         "GLOB",
                                       "GROUP",        "HAVING",
                                       "ILIKE",        "IN",
                                       "INDEXED",      "INNER",
                                       "INSERT",       "INTERSECT",
                                       "INTO",         "IS",
                                       "ISNULL",       "JOIN",
                                       "LATERAL",      "LEFT",
                                       "LIKE",         "LIMIT",
                                       "LOCALTIME",    "LOCALTIMESTAMP",
                                       "MATCH",        "NATURAL",
                                       "NOT",          "NOTNULL",
                                       "NULL",         "NULLS",
                                       "OFFSET",       "ON",
                                       "OR",           "ORDER",
                                       "OUTER",        "OVER",
                                       "OVERLAPS",     "PRAGMA",
                                       "PROCEDURE",    "REGEXP",
                                       "RETURNING",    "RIGHT",
                                       "SELECT",       "SET",
                                       "SIMILAR",      "SOME",
                                       "TABLE",        "TABLESAMPLE",
                                       "THEN",         "UNION",
                                       "UPDATE",       "USER",
                                       "USING",        "VALUES",
                                       "WHEN",         "WHERE",
                                       "WINDOW",       "WITH"};

/* Words of one database only, and what to write instead. */
static const struct {
    const char *word, *portable;
} foreign[] = {
    {"SIMILAR", "write LIKE"},
    {"REGEXP", "write LIKE, or ILIKE for any case"},
    {"GLOB", "write LIKE, with % and _"},
    {"MATCH", "write LIKE, or use the mode SEARCH"},
    {"ISNULL", "write IS NULL"},
    {"NOTNULL", "write IS NOT NULL"},
    {"LATERAL", "write a subquery in the list of SELECT"},
    {"TABLESAMPLE", "write LIMIT"},
    {"FETCH", "write LIMIT"},
    {"ARRAY", "a list is a JSON text: 'value' = ANY(tags)"},
    {"WINDOW", "write the window behind OVER"},
    {"LOCALTIMESTAMP", "write CURRENT_TIMESTAMP"},
    {"LOCALTIME", "write CURRENT_TIMESTAMP"},
    {"CURRENT_TIME", "write CURRENT_TIMESTAMP"},
    {"TABLE", "write SELECT * FROM and the table"},
    {"INDEXED", "leave it out"},
    {"ESCAPE", "escape % and _ in the pattern with a backslash"},
};

static bool is_listed(rv_str word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rem_is_word(word, list[i]))
            return true;
    return false;
}

/* --- tokens --- */

bool rem_sql_is_reserved(rv_str word)
{
    return is_listed(word, reserved, RV_COUNT(reserved));
}

bool rem_sql_is(const struct sql *p, size_t i, const char *word)
{
    const struct sql_token *t = rem_sql_at(p, i);

    return t->kind == SQL_WORD ? rem_is_word(t->value, word) : t->kind == SQL_OP && rv_str_is(t->value, word);
}

bool rem_sql_take(struct sql *p, const char *word)
{
    if (!rem_sql_is(p, p->pos, word))
        return false;
    p->pos++;
    return true;
}

int rem_sql_expect(struct sql *p, const char *word)
{
    return rem_sql_take(p, word) ? 0 : rem_sql_unexpected(p, word);
}

int rem_sql_not_portable(const struct sql *p, size_t token, const char *portable)
{
    int rc = SQL_FAIL(p, token, RV_REM_NOT_PORTABLE, "\"%.*s\" is not in the subset of SQL",
                      REM_QUOTE(rem_sql_at(p, token)->raw));

    rv_err_set_hint(p->s.err, "%s", portable);
    return rc;
}

int rem_sql_unexpected(const struct sql *p, const char *what)
{
    const struct sql_token *t = rem_sql_peek(p);
    int rc;

    if (t->kind == SQL_END)
        return SQL_FAIL(p, p->pos, RV_REM_SQL_SYNTAX, "the statement ends where %s should stand", what);
    if (t->kind == SQL_OP && rv_str_is(t->value, ";")) {
        if (rem_sql_at(p, p->pos + 1)->kind == SQL_END)
            return SQL_FAIL(p, p->pos, RV_REM_SQL_SYNTAX, "the statement ends where %s should stand", what);
        rc = SQL_FAIL(p, p->pos + 1, RV_REM_MANY_STATEMENTS, "a second statement begins here");
        rv_err_set_hint(p->s.err, "send one statement at a time");
        return rc;
    }
    if (t->kind == SQL_WORD && is_listed(t->value, writing, RV_COUNT(writing)) && !rem_is_word(t->value, "FETCH")) {
        rc = SQL_FAIL(p, p->pos, RV_REM_NOT_A_QUERY, "%.*s is not allowed: statements only read", RV_STR_ARG(t->value));
        rv_err_set_hint(p->s.err, "a statement begins with SELECT, WITH or VALUES and contains no other statement");
        return rc;
    }
    for (size_t i = 0; t->kind == SQL_WORD && i < RV_COUNT(foreign); i++)
        if (rem_is_word(t->value, foreign[i].word))
            return rem_sql_not_portable(p, p->pos, foreign[i].portable);
    return SQL_FAIL(p, p->pos, RV_REM_SQL_SYNTAX, "\"%.*s\" stands where %s should stand", REM_QUOTE(t->raw), what);
}

int rem_sql_name(struct sql *p, const char *what, rv_str *out)
{
    static const char *const catalogs[] = {"pg_", "sqlite_", "information_schema", "_pg", "fts5", "rv_"};
    const struct sql_token *t = rem_sql_peek(p);
    int rc;

    if (t->kind != SQL_NAME && (t->kind != SQL_WORD || rem_sql_is_reserved(t->value)))
        return rem_sql_unexpected(p, what);
    for (size_t i = 0; i < RV_COUNT(catalogs); i++)
        if (t->value.len >= strlen(catalogs[i]) &&
            rem_is_word((rv_str){t->value.ptr, strlen(catalogs[i])}, catalogs[i])) {
            rc = SQL_FAIL(p, p->pos, RV_REM_DENIED_NAME, "\"%.*s\" belongs to the database and cannot be read",
                          REM_QUOTE(t->value));
            rv_err_set_hint(p->s.err, "no name of a statement begins with %s", catalogs[i]);
            return rc;
        }
    *out = t->value;
    p->pos++;
    return 0;
}

bool rem_sql_has_name(const struct sql_names *names, rv_str name)
{
    for (size_t i = 0; i < names->n; i++)
        if (names->items[i].len == name.len && strncasecmp(names->items[i].ptr, name.ptr, name.len) == 0)
            return true;
    return false;
}

int rem_sql_push_name(struct sql *p, struct sql_names *names, rv_str name)
{
    rv_str *items = names->items;

    if (names->n == names->cap) {
        size_t cap = names->cap ? 2 * names->cap : 16;
        if (!(items = rv_arena_alloc(p->s.memory, cap * sizeof(*items))))
            return rem_no_memory(&p->s);
        if (names->n)
            memcpy(items, names->items, names->n * sizeof(*items));
        names->items = items;
        names->cap = cap;
    }
    items[names->n++] = name;
    return 0;
}

int rem_sql_add_name(struct sql *p, struct sql_names *names, rv_str name)
{
    return rem_sql_has_name(names, name) ? 0 : rem_sql_push_name(p, names, name);
}

int rem_sql_enter(struct sql *p)
{
    int rc;

    if (++p->depth <= RV_REM_MAX_SQL_DEPTH)
        return 0;
    rc = SQL_FAIL(p, p->pos, RV_REM_TOO_DEEP, "nested more than %d levels deep", RV_REM_MAX_SQL_DEPTH);
    rv_err_set_hint(p->s.err, "name the parts: WITH part AS (SELECT ...) SELECT ... FROM part");
    return rc;
}

void rem_sql_leave(struct sql *p)
{
    p->depth--;
}

/* --- edits --- */

static struct sql_edit *new_edit(struct sql *p, const char *text)
{
    struct sql_edit *e = text ? rv_arena_alloc(p->s.memory, sizeof(*e)) : NULL;

    if (e)
        e->text = text;
    return e;
}

int rem_sql_before(struct sql *p, size_t token, const char *text)
{
    struct sql_edit *e = new_edit(p, text);

    if (!e)
        return rem_no_memory(&p->s);
    e->next = p->tokens[token].before;
    p->tokens[token].before = e;
    return 0;
}

int rem_sql_after(struct sql *p, size_t token, const char *text)
{
    struct sql_edit *e = new_edit(p, text);
    struct sql_token *t = &p->tokens[token];

    if (!e)
        return rem_no_memory(&p->s);
    if (t->last_after)
        t->last_after->next = e;
    else
        t->after = e;
    t->last_after = e;
    return 0;
}

int rem_sql_wrap(struct sql *p, const struct sql_operand *o, const char *open, const char *close)
{
    int rc = rem_sql_before(p, o->first, open);

    return rc < 0 ? rc : rem_sql_after(p, o->last, close);
}

int rem_sql_bound(struct sql *p, const struct sql_operand *o)
{
    if (p->opts->backend == RV_REM_SQLITE)
        return 0;
    return rem_sql_wrap(p, o, "CAST(CAST(", " AS " RV_REM_VALUE ") AS text)");
}

void rem_sql_replace(struct sql *p, size_t first, size_t last, const char *text)
{
    for (size_t i = first; i <= last; i++) {
        p->tokens[i].instead = i == first ? text : "";
        p->tokens[i].before = p->tokens[i].after = p->tokens[i].last_after = NULL;
    }
}

const char *rem_sql_print(struct sql *p, const char *fmt, ...)
{
    rv_buf b = RV_BUF_INIT(2 * RV_REM_MAX_BYTES);
    const char *copy;
    va_list args;

    va_start(args, fmt);
    rv_buf_vprintf(&b, fmt, args);
    va_end(args);
    copy = b.rc == 0 ? rv_arena_dup(p->s.memory, rv_buf_str(&b)) : NULL;
    rv_buf_fini(&b);
    return copy;
}

const char *rem_sql_quote(struct sql *p, rv_str text, char quote)
{
    char *out = rv_arena_alloc(p->s.memory, 2 * text.len + 3), *to = out;

    if (!out)
        return NULL;
    *to++ = quote;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == quote)
            *to++ = quote;
        *to++ = text.ptr[i];
    }
    *to = quote;
    return out;
}

/* --- output --- */

static bool is_sign(const struct sql_token *t) /* may run into another one */
{
    return t->kind == SQL_OP && !strchr("(),.;", t->value.ptr[0]);
}

/* Between two texts: blanks of the source, or of a token that is dropped. */
enum gap { NO_GAP, DROPPED, GAP };

static bool is_word_char(char c)
{
    return rv_is_letter(c) || rv_is_digit(c) || strchr("_'\"", c);
}

static void put(rv_buf *b, const char *text, enum gap *gap)
{
    char last = b->len ? b->ptr[b->len - 1] : ' ';

    if (!text[0])
        return;
    if (last != ' ' && text[0] != ' ' &&
        (*gap == GAP || (*gap == DROPPED && is_word_char(last) && is_word_char(text[0]))))
        rv_buf_putc(b, ' ');
    *gap = NO_GAP;
    rv_buf_puts(b, text);
}

/* The tokens with their edits. Strings are written again, so that both databases read the same characters. */
static int write_text(struct sql *p, size_t end, rv_str *out)
{
    rv_buf b = RV_BUF_INIT(MAX_OUTPUT);
    enum gap gap = NO_GAP;
    char *copy;

    for (size_t i = 0; i < end; i++) {
        const struct sql_token *t = &p->tokens[i];
        const char *text = t->instead;
        if (i && text && !text[0])
            gap = gap == GAP ? GAP : DROPPED;
        else if (i && (t->gap || (is_sign(t) && is_sign(&p->tokens[i - 1]))))
            gap = GAP;
        for (const struct sql_edit *e = t->before; e; e = e->next)
            put(&b, e->text, &gap);
        if (!text && (t->kind == SQL_STRING || t->kind == SQL_NAME))
            text = rem_sql_quote(p, t->value, t->kind == SQL_NAME ? '"' : '\'');
        else if (!text)
            text = rv_arena_dup(p->s.memory, t->raw);
        if (!text)
            b.rc = b.rc ? b.rc : RV_E_NOMEM;
        else
            put(&b, text, &gap);
        for (const struct sql_edit *e = t->after; e; e = e->next)
            put(&b, e->text, &gap);
    }
    if (b.rc == RV_E_LIMIT) {
        rv_buf_fini(&b);
        return SQL_FAIL(p, 0, RV_REM_TOO_LONG, "the statement becomes longer than %zu bytes", MAX_OUTPUT);
    }
    copy = b.rc == 0 ? rv_arena_dup(p->s.memory, rv_buf_str(&b)) : NULL;
    *out = (rv_str){copy, b.len};
    rv_buf_fini(&b);
    return copy ? 0 : rem_no_memory(&p->s);
}

static int list_literals(struct sql *p, struct rv_rem_sql *out)
{
    struct rv_rem_literal *items = rv_arena_alloc(p->s.memory, p->n * sizeof(*items));

    for (size_t i = 0; items && i < p->n; i++) {
        const struct sql_token *t = &p->tokens[i];
        struct rv_src src;
        if (t->kind != SQL_STRING && t->kind != SQL_NUMBER)
            continue;
        src = rem_mark(&p->s, t->raw.ptr, RV_REM_OK);
        items[out->n_literals++] = (struct rv_rem_literal){t->value, t->kind == SQL_STRING, src.line, src.col};
    }
    out->literals = items;
    return items ? 0 : rem_no_memory(&p->s);
}

/* --- policy strict --- */

/* Names that were used before the statement could tell what they are. */
static int check_refs(struct sql *p)
{
    const char *near[256];
    size_t n_common, n_near = 0;
    const struct rv_rem_column *common = rv_rem_common_columns(&n_common);
    struct sql_names columns = {NULL, 0, 0};
    int rc = 0;

    for (size_t i = 0; rc == 0 && p->n_used && i < n_common; i++)
        rc = rem_sql_add_name(p, &columns, rv_str_of(common[i].name));
    for (size_t u = 0; u < p->n_used; u++)
        for (size_t i = 0; rc == 0 && i < p->used[u]->n_columns; i++)
            rc = rem_sql_add_name(p, &columns, rv_str_of(p->used[u]->columns[i].name));
    for (size_t i = 0; i < columns.n && n_near < RV_COUNT(near); i++)
        near[n_near++] = columns.items[i].ptr; /* static, with their NUL */
    for (size_t i = 0; rc == 0 && i < p->n_refs; i++) {
        const struct sql_ref *r = &p->refs[i];
        rv_str name = rem_sql_at(p, r->token)->value;
        const char *hint;
        if (r->is_qualifier ? rem_sql_has_name(&p->sources, name)
                            : rem_sql_has_name(&columns, name) || rem_sql_has_name(&p->aliases, name))
            continue;
        rc = SQL_FAIL(p, r->token, r->is_qualifier ? RV_REM_UNKNOWN_TABLE : RV_REM_UNKNOWN_COLUMN,
                      "\"%.*s\" is not a %s of this statement", REM_QUOTE(name), r->is_qualifier ? "table" : "column");
        if (!r->is_qualifier && (hint = rv_nearest(name, near, n_near)))
            rv_err_set_hint(p->s.err, "did you mean %s?", hint);
        else if (!r->is_qualifier && rem_sql_at(p, r->token)->kind == SQL_NAME)
            rv_err_set_hint(p->s.err, "a text is written in single quotes");
    }
    return rc;
}

static int check_strict(struct sql *p, struct rv_rem_sql *out)
{
    static const char *const reading[] = {"SELECT", "WITH", "VALUES"};
    const struct sql_token *first = rem_sql_peek(p);
    size_t end;
    int rc;

    if (rem_sql_is(p, 0, "EXPLAIN") && p->opts->may_explain) {
        out->is_explain = true;
        p->pos = 1;
        if (p->opts->backend == RV_REM_SQLITE)
            p->tokens[0].instead = "EXPLAIN QUERY PLAN";
        first = rem_sql_peek(p);
    } else if (rem_sql_is(p, 0, "EXPLAIN")) {
        rc = SQL_FAIL(p, 0, RV_REM_NOT_A_QUERY,
                      "EXPLAIN is only for operators: it shows the sizes of other users' data");
        return rc;
    }
    if (first->kind != SQL_WORD || !is_listed(first->value, reading, RV_COUNT(reading))) {
        rc = SQL_FAIL(p, p->pos, RV_REM_NOT_A_QUERY,
                      "a statement begins with SELECT, WITH or VALUES, not with \"%.*s\"", REM_QUOTE(first->raw));
        rv_err_set_hint(p->s.err, "statements only read; other modes are LOOKUP, SEARCH, FUZZY and TRAVERSE");
        return rc;
    }
    rc = rem_sql_query(p);
    if (rc < 0)
        return rc;
    end = p->pos;
    RV_IGNORE(!rem_sql_take(p, ";"), "it may be left out");
    if (rem_sql_peek(p)->kind != SQL_END) {
        p->pos = end;
        return rem_sql_unexpected(p, "the end of the statement");
    }
    rc = check_refs(p);
    out->is_recursive = p->is_recursive;
    out->n_sources = p->n_sources;
    return rc < 0 ? rc : write_text(p, end, &out->text);
}

/* --- policy compat --- */

/* The rules of p8, with their false alarms: words count wherever they stand, in literals too. */
static int check_compat(struct sql *p, struct rv_rem_sql *out)
{
    static const char *const blocked[] = {"DROP", "TRUNCATE", "ALTER", "CREATE", "GRANT", "REVOKE"};
    static const char *const reading[] = {"SELECT", "VALUES", "EXPLAIN", "SHOW", "TABLE"};
    rv_str text = p->s.text;
    int rc;

    for (size_t i = 0, n = 0; i < text.len; i += n ? n : 1) {
        for (n = 0; i + n < text.len && (rv_is_letter(text.ptr[i + n]) || rv_is_digit(text.ptr[i + n]) ||
                                         text.ptr[i + n] == '_' || (text.ptr[i + n] & 0x80));)
            n++;
        if (!is_listed((rv_str){text.ptr + i, n}, blocked, RV_COUNT(blocked)))
            continue;
        rc = REM_FAIL(&p->s, text.ptr + i, RV_REM_BLOCKED_KEYWORD, "Blocked SQL keyword detected. %.*s is not allowed",
                      (int)n, text.ptr + i);
        rv_err_set_hint(p->s.err, "DROP, TRUNCATE, ALTER, CREATE, GRANT and REVOKE are refused, in literals too");
        return rc;
    }
    for (size_t i = 0; i < p->n; i++) {
        if (rem_sql_is(p, i, "DELETE") && rem_sql_is(p, i + 1, "FROM") && rem_sql_at(p, i + 2)->kind == SQL_WORD &&
            (rem_sql_is(p, i + 3, ";") || rem_sql_at(p, i + 3)->kind == SQL_END))
            return SQL_FAIL(p, i, RV_REM_DELETE_WITHOUT_WHERE, "DELETE without WHERE clause is not allowed.");
        if (rem_sql_is(p, i, ";") && rem_sql_at(p, i + 1)->kind != SQL_END)
            return SQL_FAIL(p, i + 1, RV_REM_MANY_STATEMENTS, "a second statement begins here");
    }
    out->text = text;
    out->may_write = p->tokens[0].kind != SQL_WORD || !is_listed(p->tokens[0].value, reading, RV_COUNT(reading));
    return 0;
}

/* --- the whole --- */

void rv_rem_sql_fini(struct rv_rem_sql *sql)
{
    rv_arena_free(sql->memory);
    *sql = (struct rv_rem_sql){.memory = NULL};
}

static int set_up(struct sql *p, rv_str text)
{
    size_t room = text.len < RV_REM_MAX_TOKENS ? text.len + 2 : RV_REM_MAX_TOKENS + 2;
    char *copy;

    p->s.text = text;
    p->s.memory = rv_arena_new(MAX_MEMORY);
    if (!p->s.memory)
        return rem_no_memory(&p->s);
    copy = rv_arena_dup(p->s.memory, text);
    p->tokens = rv_arena_alloc(p->s.memory, room * sizeof(p->tokens[0]));
    p->refs = rv_arena_alloc(p->s.memory, room * sizeof(p->refs[0]));
    p->used = rv_arena_alloc(p->s.memory, (p->opts->n_tables + 1) * sizeof(struct rv_rem_table *));
    if (!copy || !p->tokens || !p->refs || !p->used)
        return rem_no_memory(&p->s);
    p->s.text.ptr = copy;
    return 0;
}

/* Compat takes statements of the database as they are: what cannot be split into tokens is not judged by them. */
static int check(struct sql *p, rv_str text, struct rv_rem_sql *out)
{
    int rc = rem_check_text(&p->s);

    if (rc == 0)
        rc = set_up(p, text);
    if (rc == 0)
        rc = rem_sql_lex(p);
    if (rc == 0 && p->n == 1) {
        rc = SQL_FAIL(p, 0, RV_REM_MISSING_STATEMENT, "there is no statement");
        rv_err_set_hint(p->s.err, "write SELECT name, created_at FROM moments ORDER BY created_at DESC LIMIT 10");
    }
    if (rc == 0)
        rc = list_literals(p, out);
    if (rc == 0)
        rc = p->opts->policy == RV_REM_COMPAT ? check_compat(p, out) : check_strict(p, out);
    return rc;
}

int rv_rem_write_sql(rv_str text, const struct rv_rem_sql_opts *opts, struct rv_rem_sql *out,
                     struct rv_rem_fault *fault, rv_err **err)
{
    struct sql p = {
        .s = {.start = opts->src ? *opts->src : (struct rv_src){"the statement", 1, 1}, .fault = fault, .err = err},
        .opts = opts};
    struct rv_rem_sql result = {.n_literals = 0};
    int rc;

    if (fault)
        *fault = (struct rv_rem_fault){RV_REM_OK, 0, 0};
    p.s.text = text.ptr ? text : RV_STR_LIT("");
    rc = check(&p, p.s.text, &result);
    result.memory = p.s.memory;
    if (rc < 0) {
        rv_rem_sql_fini(&result);
        return rc;
    }
    if (fault)
        *fault = (struct rv_rem_fault){RV_REM_OK, 0, 0};
    *out = result;
    return 0;
}

/* Shared by the files that read SQL: tokens, operands, edits.
 *
 * The reader is an allow-list as a grammar: what it does not know is refused, with the place of the first token that
 * does not fit. While it reads it notes edits, texts before, in place of and behind tokens; the output is the tokens
 * with them. Comments are dropped, since the two databases do not agree where they end. */
#ifndef RV_REM_SQL_INTERNAL_H
#define RV_REM_SQL_INTERNAL_H

#include "coreengine/rem/rem_internal.h"

enum sql_kind { SQL_END, SQL_WORD, SQL_NAME, SQL_STRING, SQL_NUMBER, SQL_OP };
struct sql_edit {
    const char *text;      /* in the arena, or static */
    struct sql_edit *next; /* in the arena */
};
struct sql_token {
    enum sql_kind kind;
    rv_str raw;                                   /* in the source */
    rv_str value;                                 /* a string without quotes, a name without quotes, else as raw */
    bool gap;                                     /* blanks or a comment before it */
    struct sql_edit *before, *after, *last_after; /* in the arena */
    const char *instead;                          /* NULL: the token; "" drops it; in the arena, or static */
};

struct sql_names {
    rv_str *items; /* in the arena */
    size_t n, cap;
};
/* A name that has to be found when all names are known. */
struct sql_ref {
    size_t token;
    bool is_qualifier;
};

struct sql {
    struct rem_source s;
    const struct rv_rem_sql_opts *opts; /* borrowed */
    struct sql_token *tokens;           /* in the arena; the last one is SQL_END */
    size_t n, pos;
    int depth;
    struct sql_names parts;           /* names of WITH that can be seen here, as PostgreSQL compares them */
    struct sql_names sources;         /* what may stand before a dot: tables, their aliases */
    struct sql_names aliases;         /* columns that the statement itself names */
    const struct rv_rem_table **used; /* in the arena */
    size_t n_used;
    struct sql_ref *refs; /* in the arena, one for each token at most */
    size_t n_refs;
    bool is_recursive;
    size_t n_sources;
};

/* What an operand is known to be. */
enum sql_type { SQL_ANY, SQL_TEXT, SQL_NUM, SQL_BOOL, SQL_TIME, SQL_DATE, SQL_JSON, SQL_INTERVAL };
enum sql_form {
    SQL_PRIMARY,   /* binds as tight as a name */
    SQL_LITERAL,   /* a string or number as it was typed */
    SQL_ARITH,     /* + - * / % */
    SQL_CONCAT,    /* || */
    SQL_PREDICATE, /* LIKE, IN, BETWEEN */
    SQL_LOGIC,     /* comparisons, IS, NOT, AND, OR */
};
struct sql_operand {
    size_t first, last; /* tokens */
    enum sql_form form;
    enum sql_type type;
    bool has_us; /* a time that is known now */
    int64_t us;
    bool is_json;     /* a JSON value in PostgreSQL, where a column of JSON is a text */
    bool is_column;   /* name is the name of a column, which has to exist */
    bool is_collated; /* COLLATE is its last part */
    rv_str name;      /* of the column of a result, as PostgreSQL names it; ptr NULL: it has none */
};

static inline struct sql_token *rem_sql_at(const struct sql *p, size_t i) /* the end, behind it */
{
    return &p->tokens[i < p->n ? i : p->n - 1];
}
static inline struct sql_token *rem_sql_peek(const struct sql *p)
{
    return rem_sql_at(p, p->pos);
}
#define SQL_FAIL(p, i, code, ...) REM_FAIL(&(p)->s, rem_sql_at((p), (i))->raw.ptr, (code), __VA_ARGS__)

/* --- sql_lex.c --- */

RV_MUST_CHECK int rem_sql_lex(struct sql *p);

/* --- sql.c --- */

/** The token is this word or operator, as it stands (not quoted). */
bool rem_sql_is(const struct sql *p, size_t i, const char *word);
/** If it is next, take it. */
bool rem_sql_take(struct sql *p, const char *word);
RV_MUST_CHECK int rem_sql_expect(struct sql *p, const char *word);
/** The error for the next token, which fits nowhere. what: what could stand there. */
int rem_sql_unexpected(const struct sql *p, const char *what);
/** A token that only one of the databases knows; portable: what to write. */
int rem_sql_not_portable(const struct sql *p, size_t token, const char *portable);
/** A word that cannot be a name without quotes. */
bool rem_sql_is_reserved(rv_str word);
/** The next token as a new or known name. */
RV_MUST_CHECK int rem_sql_name(struct sql *p, const char *what, rv_str *out);
/** Behind the others, or only where no other is spelled alike. */
RV_MUST_CHECK int rem_sql_push_name(struct sql *p, struct sql_names *names, rv_str name);
RV_MUST_CHECK int rem_sql_add_name(struct sql *p, struct sql_names *names, rv_str name);
bool rem_sql_has_name(const struct sql_names *names, rv_str name);
RV_MUST_CHECK int rem_sql_enter(struct sql *p); /* one level deeper; rem_sql_leave() */
void rem_sql_leave(struct sql *p);

/* Edits. text lies in the arena or is static. */
RV_MUST_CHECK int rem_sql_before(struct sql *p, size_t token, const char *text);
RV_MUST_CHECK int rem_sql_after(struct sql *p, size_t token, const char *text);
RV_MUST_CHECK int rem_sql_wrap(struct sql *p, const struct sql_operand *o, const char *open, const char *close);
/** An expression that makes a text longer than its parts: PostgreSQL refuses a value that SQLite would refuse. */
RV_MUST_CHECK int rem_sql_bound(struct sql *p, const struct sql_operand *o);
/** One text instead of the tokens. */
void rem_sql_replace(struct sql *p, size_t first, size_t last, const char *text);
/** A text in the arena; NULL: no memory. */
const char *rem_sql_print(struct sql *p, const char *fmt, ...) RV_PRINTF(2, 3);
/** 'text', as a literal that both databases read alike. */
const char *rem_sql_quote(struct sql *p, rv_str text, char quote);

/* --- sql_expr.c --- */

RV_MUST_CHECK int rem_sql_expr(struct sql *p, struct sql_operand *out);
/** An operand of || and what binds tighter. */
RV_MUST_CHECK int rem_sql_concat(struct sql *p, struct sql_operand *out);

/* --- sql_cast.c --- */

/** The type at the reader, behind :: or AS, applied to what was read. */
RV_MUST_CHECK int rem_sql_cast(struct sql *p, struct sql_operand *o);
/** substr() whose n arguments were read and whose first token is given: the same places in both databases. */
RV_MUST_CHECK int rem_sql_substr(struct sql *p, size_t first, struct sql_operand *args, int n);
/** -> or ->> with its literal, behind what was read. */
RV_MUST_CHECK int rem_sql_json_step(struct sql *p, struct sql_operand *o);

/* --- sql_like.c --- */

/** LIKE or ILIKE at the reader, and its pattern. */
RV_MUST_CHECK int rem_sql_like(struct sql *p);

/* --- sql_call.c --- */

RV_MUST_CHECK int rem_sql_call(struct sql *p, struct sql_operand *out);
RV_MUST_CHECK int rem_sql_order(struct sql *p);
/** The word is the name of an aggregate or a window function. */
bool rem_sql_gathers(const struct sql *p, size_t token);

/* --- sql_time.c --- */

/** Read a time as people write it: a date, or a date and a time with an optional offset. */
bool rem_sql_read_time(rv_str text, int64_t *us, bool *is_date);
/** Make the tokens of a known time its text, a date or an instant. */
RV_MUST_CHECK int rem_sql_write_time(struct sql *p, struct sql_operand *o, bool as_date);
/** A literal or known time beside a column of times becomes comparable with it. */
RV_MUST_CHECK int rem_sql_match_times(struct sql *p, struct sql_operand *a, struct sql_operand *b);
/** The span that an interval literal means, added to *us, or taken from it. */
RV_MUST_CHECK int rem_sql_add_interval(struct sql *p, const struct sql_operand *interval, int sign, int64_t *us);

/* --- sql_select.c --- */

RV_MUST_CHECK int rem_sql_query(struct sql *p);

#endif

/* The REM dialect: LOOKUP, SEARCH, FUZZY, TRAVERSE and SQL as text, read into what they mean. Pure: nothing is looked
 * up here and no statement is executed; tables are a list that the caller gives.
 *
 * docs/reference/rem.md has the grammar, the defaults, the codes of errors and the subset of SQL. */
#ifndef RV_REM_REM_H
#define RV_REM_REM_H

#include "coreengine/base/base.h"

#define RV_REM_MAX_BYTES ((size_t)32 << 10) /* of a query: a model writes some hundred */
#define RV_REM_MAX_WORDS 2000               /* of a query in one of the four modes: each is looked up */
#define RV_REM_MAX_KEYS  100                /* of one LOOKUP: each is a row of the result */
#define RV_REM_MAX_LIMIT 200                /* rows; a model cannot read more */
#define RV_REM_MAX_DEPTH 10                 /* links from the first key: each level multiplies the rows */
/* Defaults of the clauses. */
#define RV_REM_LIMIT      10
#define RV_REM_SIMILARITY 0.3           /* MIN_SIMILARITY and THRESHOLD */
#define RV_REM_DEPTH      1             /* links, where the query says nothing */
#define RV_REM_VALUE      "reeve_value" /* a domain over text of a store in PostgreSQL that refuses long values */
#define RV_REM_TABLE      "schemas"

/* What can be wrong with a query: constant, code in results, code of the error value, meaning. */
#define RV_REM_FAULTS(X)                                                                                               \
    X(EMPTY_QUERY, "empty_query", RV_E_PARSE, "the query has no words")                                                \
    X(UNKNOWN_MODE, "unknown_mode", RV_E_PARSE, "the first word is neither a mode nor a verb of SQL")                  \
    X(MISSING_KEY, "missing_key", RV_E_PARSE, "LOOKUP has no key")                                                     \
    X(MISSING_TEXT, "missing_text", RV_E_PARSE, "SEARCH, FUZZY or TRAVERSE has no text besides its clauses")           \
    X(MISSING_VALUE, "missing_value", RV_E_PARSE, "a clause is the last word")                                         \
    X(MISSING_STATEMENT, "missing_statement", RV_E_PARSE, "there is no statement of SQL")                              \
    X(UNTERMINATED, "unterminated_quote", RV_E_PARSE, "a quote, a quoted name or a comment has no end")                \
    X(BAD_ESCAPE, "bad_escape", RV_E_PARSE, "a backslash or an escape sequence is not followed by what it needs")      \
    X(BAD_NUMBER, "bad_number", RV_E_PARSE, "the value of a clause is not a number, or a number is malformed")         \
    X(OUT_OF_RANGE, "out_of_range", RV_E_INVALID, "a number is outside the range of its clause")                       \
    X(BAD_TEXT, "bad_text", RV_E_INVALID, "the query is not UTF-8, or it contains a NUL")                              \
    X(TOO_LONG, "too_long", RV_E_LIMIT, "the query has more bytes, words or keys than are allowed")                    \
    X(UNKNOWN_TABLE, "unknown_table", RV_E_NOT_FOUND, "no table of this name can be searched or read")                 \
    X(UNKNOWN_COLUMN, "unknown_column", RV_E_NOT_FOUND, "no table of the statement has this column")                   \
    X(UNKNOWN_FUNCTION, "unknown_function", RV_E_DENIED, "the function is not in the list of allowed functions")       \
    X(DENIED_NAME, "denied_name", RV_E_DENIED, "the name belongs to the database itself, or has a schema before it")   \
    X(NOT_A_QUERY, "not_a_query", RV_E_DENIED, "the statement, or one of its parts, does not only read")               \
    X(MANY_STATEMENTS, "many_statements", RV_E_DENIED, "there is more than one statement")                             \
    X(SQL_SYNTAX, "sql_syntax", RV_E_PARSE, "the text is not in the subset of SQL that is allowed")                    \
    X(NOT_PORTABLE, "not_portable", RV_E_INVALID,                                                                      \
      "the form means something else, or nothing, in one of the databases")                                            \
    X(TOO_DEEP, "too_deep", RV_E_LIMIT, "parentheses, subqueries or operators are nested too deeply")                  \
    X(BLOCKED_KEYWORD, "blocked_keyword", RV_E_DENIED, "policy compat: a keyword that changes the schema or rights")   \
    X(DELETE_WITHOUT_WHERE, "delete_without_where", RV_E_DENIED, "policy compat: DELETE would empty a table")

enum rv_rem_fault_code {
    RV_REM_OK,
#define X(name, word, code, meaning) RV_REM_##name,
    RV_REM_FAULTS(X)
#undef X
        RV_REM_N_FAULTS
};
/* The fault of a query, beside the error value. Empty (RV_REM_OK) when memory ran out. */
struct rv_rem_fault {
    enum rv_rem_fault_code code;
    int line, col; /* from 1, col in code points */
};
/** "unknown_mode"; "ok" for RV_REM_OK. Static. */
const char *rv_rem_fault_text(enum rv_rem_fault_code code);

enum rv_rem_mode { RV_REM_LOOKUP, RV_REM_SEARCH, RV_REM_FUZZY, RV_REM_TRAVERSE, RV_REM_SQL, RV_REM_N_MODES };
/** "LOOKUP". Static. */
const char *rv_rem_mode_text(enum rv_rem_mode mode);

/* How a column is read by SQL. Times and JSON are texts; BOOL is 0 or 1 in SQLite. */
enum rv_rem_type { RV_REM_TEXT, RV_REM_INT, RV_REM_FLOAT, RV_REM_BOOL, RV_REM_TIME, RV_REM_JSON, RV_N_REM_TYPES };
/* What it points to is static. */
struct rv_rem_column {
    const char *name;
    enum rv_rem_type type;
};
/* A table that queries may name. What it points to is static. */
struct rv_rem_table {
    const char *name;
    const char *embedded_field;          /* that SEARCH compares; NULL: the table cannot be searched */
    const struct rv_rem_column *columns; /* its own; the columns that every table has come on top */
    size_t n_columns;
};
/** The tables of the entity model, for SEARCH and SQL. Static. */
const struct rv_rem_table *rv_rem_tables(size_t *n);
/** The columns that every table has. Static. */
const struct rv_rem_column *rv_rem_common_columns(size_t *n);

/* Text that begins with no mode and no verb of SQL. */
enum rv_rem_natural {
    RV_REM_NATURAL_REJECT, /* an error that lists the modes */
    RV_REM_NATURAL_SEARCH, /* the whole text is searched in the default table */
    RV_REM_NATURAL_SQL,    /* the whole text is SQL */
    RV_REM_N_NATURALS
};
/** reject, search, sql. -1, which is RV_UNSET: another word. */
int rv_rem_natural_of(rv_str word);

/* How SEARCH ranks rows. */
enum rv_rem_rank {
    RV_REM_RANK_UNSAID, /* as the caller does it */
    RV_REM_RANK_COSINE, /* by vectors */
    RV_REM_RANK_WORDS,
    RV_REM_RANK_HYBRID, /* by both */
    RV_REM_N_RANKS
};
/** "cosine"; "" for RV_REM_RANK_UNSAID. Static. */
const char *rv_rem_rank_text(enum rv_rem_rank rank);

struct rv_rem_opts {
    const struct rv_rem_table *tables; /* borrowed for the call; rv_rem_tables() */
    size_t n_tables;
    enum rv_rem_natural natural;
};

#define RV_REM_MAX_WARNINGS 8 /* of one query: a model mends the first ones first */
/* All lies in memory. */
struct rv_rem_query {
    enum rv_rem_mode mode;
    const rv_str *keys; /* LOOKUP, in order, as typed, 1..RV_REM_MAX_KEYS */
    size_t n_keys;
    rv_str text;         /* SEARCH, FUZZY: what to look for; TRAVERSE: the key to start at */
    rv_str table, field; /* SEARCH; table is spelled as in the list, field is the embedded one unless FIELD says else */
    bool matches_nothing;             /* SEARCH: FIELD is not the embedded field */
    bool is_natural;                  /* SEARCH: the text had no mode; the caller tries FUZZY if nothing is found */
    rv_str category;                  /* SEARCH; ptr NULL: any */
    enum rv_rem_rank rank;            /* SEARCH */
    rv_str rel_type;                  /* TRAVERSE; ptr NULL: any relation */
    int limit;                        /* SEARCH, FUZZY: 1..RV_REM_MAX_LIMIT */
    int depth;                        /* TRAVERSE: 0..RV_REM_MAX_DEPTH */
    double min_similarity, threshold; /* 0..1 */
    bool load, paths;                 /* TRAVERSE: whole rows; a row for each path instead of each node */
    rv_str sql;                       /* SQL: the statement, as typed */
    struct rv_src sql_src;            /* where it begins in the query: no file, line and column */
    rv_str warnings[RV_REM_MAX_WARNINGS];
    size_t n_warnings;
    rv_arena *memory; /* owned; everything above lies in it */
};
void rv_rem_query_fini(struct rv_rem_query *q);

/** Read a query.
 * @param out    on success the query; rv_rem_query_fini() ends it
 * @param fault  NULL, or what is wrong and where; empty on success
 * @return 0, a code of RV_REM_FAULTS, RV_E_NOMEM. The error has the place in text and a legal word near it */
RV_MUST_CHECK int rv_rem_parse(rv_str text, const struct rv_rem_opts *opts, struct rv_rem_query *out,
                               struct rv_rem_fault *fault, rv_err **err);

/* --- SQL: what may run, and its text for each database --- */

#define RV_REM_MAX_TOKENS    4000 /* of one statement: a model writes some hundred */
#define RV_REM_MAX_SQL_DEPTH 40   /* of parentheses, CASE, NOT: the reader calls itself */

enum rv_rem_backend { RV_REM_SQLITE, RV_REM_POSTGRES };
enum rv_rem_policy {
    RV_REM_STRICT, /* one statement of the subset; it can only read */
    RV_REM_COMPAT, /* for the owner of the database: any one statement but those that p8 blocks, as typed */
};

struct rv_rem_sql_opts {
    enum rv_rem_policy policy;
    enum rv_rem_backend backend;
    bool may_explain;                  /* operators: EXPLAIN shows sizes of other users' rows */
    int64_t now_us;                    /* now(), CURRENT_DATE: microseconds since 1970 */
    const struct rv_rem_table *tables; /* borrowed for the call: all may be read */
    size_t n_tables;
    const struct rv_src *src; /* where text begins, for errors; borrowed for the call; NULL: line 1, column 1 */
};

struct rv_rem_literal {
    rv_str value; /* of a string without its quotes and escapes, of a number its digits */
    bool is_string;
    int line, col;
};
struct rv_rem_sql {
    rv_str text;                           /* to prepare; has no parameters */
    const struct rv_rem_literal *literals; /* of the statement as it was typed; in its memory */
    size_t n_literals;
    bool is_recursive; /* WITH RECURSIVE: it may never end; the executor's limits of time and rows end it */
    bool is_explain;   /* EXPLAIN */
    bool may_write;    /* policy compat, and the first word is not one that reads */
    size_t n_sources;  /* tables and subqueries that are joined, in all: a product of them may be large */
    rv_arena *memory;  /* owned; everything above lies in it */
};
void rv_rem_sql_fini(struct rv_rem_sql *sql);

/** Check a statement and write it for a database. Nothing is executed.
 *
 * The texts for the two databases have equal results on views that have the columns of the tables: times and JSON as
 * text, in PostgreSQL with COLLATE "C". The same statement, options and time give the same text.
 * @param out  on success; rv_rem_sql_fini() ends it
 * @return 0, a code of RV_REM_FAULTS, RV_E_NOMEM. The error has the place in text and a hint with the portable form */
RV_MUST_CHECK int rv_rem_write_sql(rv_str text, const struct rv_rem_sql_opts *opts, struct rv_rem_sql *out,
                                   struct rv_rem_fault *fault, rv_err **err);

#endif

/* The REM dialect: LOOKUP, SEARCH, FUZZY, TRAVERSE and SQL as text, read into what they mean. Pure: nothing is looked
 * up here and no statement is executed; tables are a list that the caller gives.
 *
 * docs/reference/rem.md has the grammar, the defaults, the codes of errors and the subset of SQL. */
#ifndef RV_REM_REM_H
#define RV_REM_REM_H

#include "coreengine/base/buf.h"

#define RV_REM_MAX_BYTES ((size_t)32 << 10) /* of a query: a model writes some hundred */
#define RV_REM_MAX_WORDS 2000               /* of a query in one of the four modes */
#define RV_REM_MAX_KEYS  100                /* of one LOOKUP: each is a row of the result */
#define RV_REM_MAX_LIMIT 200
#define RV_REM_MAX_DEPTH 10
/* Defaults of the clauses. */
#define RV_REM_LIMIT      10
#define RV_REM_SIMILARITY 0.3 /* MIN_SIMILARITY and THRESHOLD */
#define RV_REM_DEPTH      1
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
    X(UNKNOWN_TABLE, "unknown_table", RV_E_NOT_FOUND, "no table of this name can be searched or read")

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
const char *rv_rem_fault_word(enum rv_rem_fault_code code);

enum rv_rem_mode { RV_REM_LOOKUP, RV_REM_SEARCH, RV_REM_FUZZY, RV_REM_TRAVERSE, RV_REM_SQL, RV_REM_N_MODES };
/** "LOOKUP". Static. */
const char *rv_rem_mode_word(enum rv_rem_mode mode);

/* How a column is read by SQL. Times and JSON are texts; BOOL is 0 or 1 in SQLite. */
enum rv_rem_type { RV_REM_TEXT, RV_REM_INT, RV_REM_FLOAT, RV_REM_BOOL, RV_REM_TIME, RV_REM_JSON };
struct rv_rem_column {
    const char *name;
    enum rv_rem_type type;
};
/* A table that queries may name. */
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
};
/** reject, search, sql. False: another word. */
bool rv_rem_natural_of(rv_str word, enum rv_rem_natural *out);

struct rv_rem_opts {
    const struct rv_rem_table *tables; /* borrowed for the call; rv_rem_tables() */
    size_t n_tables;
    enum rv_rem_natural natural;
};

#define RV_REM_MAX_WARNINGS 8
struct rv_rem_query {
    enum rv_rem_mode mode;
    const rv_str *keys; /* LOOKUP, in order, as typed, 1..RV_REM_MAX_KEYS */
    size_t n_keys;
    rv_str text;         /* SEARCH, FUZZY: what to look for; TRAVERSE: the key to start at */
    rv_str table, field; /* SEARCH; table is spelled as in the list, field is the embedded one unless FIELD says else */
    bool matches_nothing;             /* SEARCH: FIELD is not the embedded field */
    bool is_natural;                  /* SEARCH: the text had no mode; the caller tries FUZZY if nothing is found */
    rv_str category;                  /* SEARCH; ptr NULL: any */
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

#endif

/* Columns for people: as wide as their widest cell, which is cut where it would be too wide. */
#ifndef RV_CLI_SHOW_TABLE_INTERNAL_H
#define RV_CLI_SHOW_TABLE_INTERNAL_H

#include "coreengine/base/base.h"

struct rv_cli;

/* What it points to is static. */
struct rv_cli_column {
    const char *head;
    size_t most; /* columns; what is longer ends in "..."; 0: never cut */
    bool right;  /* numbers */
};
typedef struct rv_cli_table rv_cli_table;
/** columns are borrowed. NULL: no memory. */
rv_cli_table *cli_table_new(const struct rv_cli_column *columns, size_t n);
void cli_table_free(rv_cli_table *t);
/** The next cell, row by row. Control characters become blanks. What fails is told by writing it. */
void cli_table_add(rv_cli_table *t, rv_str cell);
void cli_table_add_text(rv_cli_table *t, const char *cell); /* NULL: "-" */
void cli_table_add_int(rv_cli_table *t, int64_t n);         /* with thousands marked */
/** Heads and rows, or nothing without rows. */
RV_MUST_CHECK int cli_table_write(const rv_cli_table *t, bool bold_heads, rv_buf *b, rv_err **err);

/** The results of a query, an array of objects: their members as columns, those of `data` in its place; "(no results)"
 * for none. */
RV_MUST_CHECK int cli_query_write_table(json_object *rows, rv_buf *b, rv_err **err);

/* --- list.c: what a verb lists, as a table, with --json as an array, else one word a line --- */
struct rv_cli_list {
    const char *what;    /* "tasks"; static, as words */
    const char *words;   /* the flag for one word a line; NULL: there is none; static */
    bool is_cut;         /* by --limit */
    rv_cli_table *table; /* these and the rest are set by begin; NULL: for programs; owned */
    rv_jw *json, w;      /* json NULL: words; borrowed: &w */
    rv_buf text;         /* what programs get */
    int64_t read;        /* rows to ask for: one more than are shown, which tells whether there are more; 0: all */
    int64_t n, limit, now_us;
    bool more; /* than the limit */
};
/** Also after a failure cli_list_end() has to follow, which passes it on. */
RV_MUST_CHECK int cli_list_begin(struct rv_cli *cli, struct rv_cli_list *l, const struct rv_cli_column *columns,
                                 size_t n_columns, rv_err **err);
bool cli_list_takes(struct rv_cli_list *l); /* a row; false: it is the one too many */
RV_MUST_CHECK int cli_list_end(struct rv_cli *cli, struct rv_cli_list *l, int rc, rv_err **err);

#endif

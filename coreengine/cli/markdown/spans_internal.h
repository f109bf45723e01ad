/* What the files of markdown share: the state of a text, spans within a line, tables. */
#ifndef RV_CLI_MARKDOWN_SPANS_INTERNAL_H
#define RV_CLI_MARKDOWN_SPANS_INTERNAL_H

#include "coreengine/cli/markdown/markdown_internal.h"

/* How text looks, as bits. Colours are those that can be read on dark and on light: cyan, and none. */
enum { MD_BOLD = 1, MD_ITALIC = 2, MD_UNDERLINE = 4, MD_CODE = 8, MD_STRIKE = 16, MD_DIM = 32 };

/* Spans of one line. */
struct md_spans {
    bool styled;   /* else marks are left out and nothing is put in their place: for widths */
    unsigned base; /* how the line looks */
    rv_buf held;   /* from the first mark on whose end did not come yet */
    char awaited;  /* the character that may end it; 0: none is awaited */
    char last;     /* byte before `held`; ' ' at the beginning */
};
void md_spans_begin(struct md_spans *s, bool styled, unsigned base);
void md_spans_fini(struct md_spans *s);
/** One character, which is safe. */
void md_spans_add(struct md_spans *s, rv_str c, rv_buf *out);
void md_spans_end(struct md_spans *s, rv_buf *out);
/** The sequence for that look; nothing where styled is false. */
void md_look(bool styled, unsigned look, rv_buf *out);

/* --- table.c --- */
#define MD_MAX_COLUMNS 24 /* of a table: a terminal of 120 columns has room for 24 narrow ones */
struct md_table {
    rv_buf rows;      /* lines, each with its end */
    size_t n_columns; /* 0: the second line is not there yet */
    size_t widths[MD_MAX_COLUMNS];
    char sides[MD_MAX_COLUMNS]; /* 'l', 'r', 'c' */
    bool is_open;               /* its beginning was written: rows are written as they come */
};
/** Is it the line below the heads, "|---|:-:|"? Fills in columns and sides. */
bool md_table_is_rule(rv_str line, struct md_table *t);
size_t md_table_count(rv_str line); /* cells */
/** Write the rows that are there, without the last line end. */
void md_table_write(struct md_table *t, bool styled, size_t columns, rv_buf *out);

#endif

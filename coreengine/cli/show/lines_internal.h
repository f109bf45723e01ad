/* What differs between two texts, line by line: for pipes in the unified format, for terminals side by side. */
#ifndef RV_CLI_SHOW_LINES_INTERNAL_H
#define RV_CLI_SHOW_LINES_INTERNAL_H

#include "coreengine/base/base.h"

/* A line of the comparison. */
struct rv_cli_line {
    char mark; /* ' ': of both; '-': of the first alone; '+': of the second alone */
    rv_str text;
};
struct rv_cli_lines {
    struct rv_cli_line *items; /* owned; their texts are parts of the two texts */
    size_t n;
};
#define RV_CLI_LINES_MAX_EDITS                                                                                         \
    1000 /* that are sought: the work grows by their square; beyond it all between the first and the last difference   \
            counts as replaced */

/** Compare them; a and b are borrowed as long as out. RV_E_NOMEM. */
RV_MUST_CHECK int cli_lines_compare(rv_str a, rv_str b, struct rv_cli_lines *out, rv_err **err);
void cli_lines_fini(struct rv_cli_lines *lines);
/** As `diff -u` has it, without its two lines of names; nothing where the texts are equal. */
void cli_lines_write_unified(const struct rv_cli_lines *lines, bool color, rv_buf *b);
/* sides.c */
#define RV_CLI_LINES_LEAST 20 /* columns of a side, however narrow a terminal is */
/** Side by side in so many columns, with a mark between lines that differ; what is far from a difference is counted. */
void cli_lines_write_sides(const struct rv_cli_lines *lines, int columns, bool color, rv_buf *b);

#endif

/* Markdown on a terminal, written while it arrives: what was written is never taken back. Text is written as soon as it
 * is known what it is: a line of a paragraph word by word, a span of bold text or code when its end came, a table when
 * its last row came. What does not end within RV_CLI_MD_MAX_SPAN stays as it was typed.
 *
 * The text is untrusted: control characters become blanks before it is read, so that the only sequences that reach the
 * terminal are those written here. How the text was cut into pieces changes nothing. */
#ifndef RV_CLI_MARKDOWN_MARKDOWN_INTERNAL_H
#define RV_CLI_MARKDOWN_MARKDOWN_INTERNAL_H

#include "coreengine/base/base.h"

#define RV_CLI_MD_MAX_SPAN ((size_t)400)  /* bytes that wait for an end of bold text: a person waits, too */
#define RV_CLI_MD_MAX_LINE ((size_t)4096) /* bytes of a line that is not known yet: a person waits, too */
#define RV_CLI_MD_MAX_TABLE                                                                                            \
    ((size_t)64 << 10) /* bytes of a table that waits for its end, in memory: later rows keep its columns */

typedef struct rv_cli_md rv_cli_md;
/** styled: bold, italics and colours, and the marks of Markdown are left out; else marks stay, tables are aligned.
 *  columns: of the terminal. NULL: no memory. */
rv_cli_md *cli_md_new(bool styled, size_t columns);
void cli_md_free(rv_cli_md *md);  /* NULL is fine */
void cli_md_begin(rv_cli_md *md); /* a text begins, at the beginning of a line */
/** Something stands on the line now, such as a name: headings, lists and the like then begin a new one. */
void cli_md_behind(rv_cli_md *md);
void cli_md_add(rv_cli_md *md, rv_str piece, rv_buf *out);
/** Write what waits, as it is known now, without a line end. The text may go on. */
void cli_md_flush(rv_cli_md *md, rv_buf *out);

#endif

/* Columns of a terminal: characters of East Asia and emoji take two, marks above another character none. */
#ifndef RV_CLI_SHOW_WIDTH_INTERNAL_H
#define RV_CLI_SHOW_WIDTH_INTERNAL_H

#include "coreengine/base/base.h"

/** Columns that a text without control characters takes. */
size_t cli_width(rv_str text);
/** Its longest beginning that takes at most so many columns, with the marks that belong to its last character. */
rv_str cli_fitting(rv_str text, size_t columns);
/** Size of the terminal that standard output is, 80 and 24 where it does not say. rows may be NULL. */
void cli_terminal_size(size_t *columns, size_t *rows);

#endif

/* Tables: rows of named values in a file.
 *
 * - `.csv`: RFC 4180, the names in the first line. A cell without quotes that is a number, true or false has that
 * value; every other cell is a text.
 * - `.jsonl`, `.ndjson`: an object a line; empty lines are passed over.
 * - `.yaml`, `.yml`, `.json`: a list of maps. */
#ifndef RV_TABLE_H
#define RV_TABLE_H

#include "coreengine/lang/yaml.h"

#define RV_TABLE_MAX_BYTES   ((size_t)8 << 20) /* of a file */
#define RV_TABLE_MAX_ROWS    10000             /* of a CSV file of cases */
#define RV_TABLE_MAX_COLUMNS 256               /* of a CSV file of cases */

struct rv_table {
    json_object *rows; /* array of objects; owned */
    int *lines;        /* of each row, the line that it begins in; owned */
};

/** Read text; its kind follows from the end of name, which messages call the file.
 *  @param out written on success; rv_table_fini() it
 *  @return 0; RV_E_PARSE, RV_E_INVALID (a row that is not a map, two equal names) with file, line and column;
 * RV_E_LIMIT; RV_E_NOT_FOUND: no such kind of file; RV_E_NOMEM */
RV_MUST_CHECK int rv_table_parse(rv_str text, const char *name, struct rv_table *out, rv_err **err);
void rv_table_fini(struct rv_table *t);

#endif

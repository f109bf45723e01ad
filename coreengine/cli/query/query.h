/* The rows that answer a query as a table. */
#ifndef RV_CLI_QUERY_H
#define RV_CLI_QUERY_H

#include "coreengine/base/base.h"

/** An array of {entity_type, data}: the members of data as columns; "(no results)" for none. */
RV_MUST_CHECK int rv_query_write_table(json_object *rows, rv_buf *b, rv_err **err);

#endif

/* Entities for fronts: many rows from lines of JSON, and rows for people and programs. */
#ifndef RV_APP_ENTITIES_H
#define RV_APP_ENTITIES_H

#include <stdio.h>

#include "coreengine/app/app.h"
#include "coreengine/store/entities.h"

#define RV_APP_MAX_LINE (RV_ENTITY_MAX_BYTES + RV_ENTITY_MAX_BYTES / 2) /* bytes of one row as JSON */

struct rv_app_put_lines {
    rv_store *store; /* borrowed */
    struct rv_store_scope scope;
    const char *kind;   /* borrowed for the call */
    bool is_tenantless; /* as struct rv_entities_put */
    /** For each line with a row, in order: the row as it is now, or why it could not be written (borrowed; row NULL).
     * Not 0: it ends there, and that is passed on. */
    int (*on_row)(void *self, int64_t line, json_object *row, const rv_err *why, rv_err **err);
    void *self; /* borrowed for the call */
};
/** Write each line of `in`, which is one JSON object, as a row; empty lines are passed over. A row that cannot be
 * written leaves the others as they are. Rows are committed some hundred at a time. *n_failed: lines that were refused.
 *  RV_E_INVALID: the kind; RV_E_IO: the store, or `in` cannot be read. */
RV_MUST_CHECK int rv_app_put_lines(const struct rv_app_put_lines *opts, FILE *in, int64_t *n_failed, rv_err **err);

/** All rows that a word means: what a lookup finds, in its order; a message by its key. kind NULL: of any kind; else
 * also a row of that kind by its id. An array of {entity_type, data}, the caller's. RV_E_NOT_FOUND: none. */
RV_MUST_CHECK int rv_app_entities_show(rv_store *store, const struct rv_store_scope *scope, const char *kind,
                                       const char *word, json_object **out, rv_err **err);

/** A value of a column as a person writes it: a text, or JSON where the column is not a text. column must be one of the
 *  kind's. *out may be NULL: null. RV_E_INVALID. */
RV_MUST_CHECK int rv_app_entity_value(const char *kind, const char *column, const char *text, json_object **out,
                                      rv_err **err);

#endif

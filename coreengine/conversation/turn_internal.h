/* Shared by the files that read turns only. */
#ifndef RV_TURN_INTERNAL_H
#define RV_TURN_INTERNAL_H

#include "coreengine/conversation/messages_internal.h"

#define RV_TURN_MAX_BYTES ((size_t)64 << 20) /* of the text: some dozens of results at their longest */
#define RV_TURN_MAX_ROWS  20000              /* more than any turn has calls */

/* turn.c: members; null is the same as left out. RV_E_INVALID names them. */
RV_MUST_CHECK int rv_turn_text(json_object *obj, const char *key, const char **out, rv_err **err);
RV_MUST_CHECK int rv_turn_name(json_object *obj, const char *key, const char **out, rv_err **err); /* has to be there */
RV_MUST_CHECK int rv_turn_object(json_object *obj, const char *key, json_object **out, rv_err **err);
RV_MUST_CHECK int rv_turn_check_members(json_object *obj, const char *const *known, size_t n, rv_err **err);

/* turn_row.c */
/** The texts that a row has as objects are appended to texts, tool_calls first; their views have lengths and no place
 *  yet. A failure of texts sticks. */
RV_MUST_CHECK int rv_turn_read_row(json_object *json, rv_buf *texts, struct rv_message *out, rv_err **err);

#endif

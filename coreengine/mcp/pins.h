/* Pins: the definitions of a server's tools as a person approved them.
 *
 * A server may change what its tools say and take after it was looked at. A tool whose name, description, schemas or
 * annotations differ from the pinned definition is not offered until a person approves the change. */
#ifndef RV_MCP_PINS_H
#define RV_MCP_PINS_H

#include "coreengine/base/json.h"

enum rv_mcp_pin { RV_MCP_PIN_SAME, RV_MCP_PIN_NEW, RV_MCP_PIN_CHANGED };
/** pins: {"tools": {name: definition}}; definition: as tools/list gives it. */
enum rv_mcp_pin rv_mcp_pin_look(json_object *pins, json_object *definition);
/** Approve the definition: it takes the place of an earlier one. pins: an object, changed. RV_E_INVALID: it has no
 *  name. */
RV_MUST_CHECK int rv_mcp_pin_set(json_object *pins, json_object *definition, rv_err **err);
/** Append what differs from the pinned definition, as lines of JSON that begin with "-" and "+". */
void rv_mcp_pin_diff(json_object *pins, json_object *definition, rv_buf *out);

#endif

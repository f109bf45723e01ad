/* Shared by the files of tools only. */
#ifndef RV_TOOLS_INTERNAL_H
#define RV_TOOLS_INTERNAL_H

#include "coreengine/tools/tools.h"

#define RV_TOOL_MAX_TEXT ((size_t)16 << 20) /* text of a value: twice RV_JSON_MAX_BYTES, for escapes */

/* Results are built with keys that are literals of ours and known to be new: no lookup, no copy of the key. Takes val
 * on every path; `key` must be a string literal. */
RV_MUST_CHECK int tools_tool_put_take(json_object *obj, const char *key, json_object *val, rv_err **err);
RV_MUST_CHECK int tools_tool_put_null(json_object *obj, const char *key, rv_err **err);
RV_MUST_CHECK int tools_tool_put_ref(json_object *obj, const char *key, json_object *val, rv_err **err);
RV_MUST_CHECK int tools_tool_put_str(json_object *obj, const char *key, rv_str s, rv_err **err);
/** The value under key as text: a string as it is, anything else as its JSON. */
RV_MUST_CHECK int tools_tool_put_text_of(json_object *obj, const char *key, json_object *val, rv_err **err);

/** An object as it is, anything else as {"value": it}. *out is the caller's. */
RV_MUST_CHECK int tools_tool_data_object(json_object *data, json_object **out, rv_err **err);

#endif

/* What an MCP server asks a model, as one prompt, and the answer as the protocol has it. */
#ifndef RV_MCP_SAMPLING_H
#define RV_MCP_SAMPLING_H

#include "coreengine/base/json.h"

#define RV_MCP_MAX_PROMPT ((size_t)256 << 10) /* bytes of all messages: more than a tool has to say */

/** The messages of sampling/createMessage, as one text: that of the only message, else each with its role.
 *  RV_E_INVALID: params ask for what is not offered, such as tools or images; RV_E_LIMIT. */
RV_MUST_CHECK int rv_mcp_sampling_prompt(json_object *params, rv_buf *out, rv_err **err);
/** {role, content, model, stopReason}, the caller's. */
RV_MUST_CHECK int rv_mcp_sampling_result(const char *text, const char *model, json_object **out, rv_err **err);

#endif

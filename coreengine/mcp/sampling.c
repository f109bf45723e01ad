/* Completions for servers: hostile params become one prompt of texts. */
#include "coreengine/mcp/client.h"

#include <string.h>

#define MAX_MESSAGES 100 /* of one request: a conversation of people has fewer */

static int add_block(json_object *block, rv_buf *out, rv_err **err)
{
    const char *type = "", *text = NULL;

    if (!json_object_is_type(block, json_type_object) || !rv_json_get_text(block, "type", &type) ||
        strcmp(type, "text") != 0 || !rv_json_get_text(block, "text", &text))
        return RV_FAIL(err, RV_E_INVALID, "a message has content that is not text");
    rv_buf_puts(out, text);
    return 0;
}

/* content: a block, or a list of them. */
static int add_content(json_object *content, rv_buf *out, rv_err **err)
{
    if (!json_object_is_type(content, json_type_array))
        return add_block(content, out, err);
    for (size_t i = 0; i < json_object_array_length(content); i++) {
        if (i > 0)
            rv_buf_puts(out, "\n");
        int rc = add_block(json_object_array_get_idx(content, i), out, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int add_message(json_object *message, bool is_only, rv_buf *out, rv_err **err)
{
    json_object *content = NULL;
    const char *role = "";

    if (!json_object_is_type(message, json_type_object) || !rv_json_get_text(message, "role", &role) ||
        (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0) ||
        !json_object_object_get_ex(message, "content", &content))
        return RV_FAIL(err, RV_E_INVALID, "a message has no role, or no content");
    if (!is_only)
        rv_buf_puts(out, strcmp(role, "user") == 0 ? "User: " : "Assistant: ");
    return add_content(content, out, err);
}

int rv_mcp_sampling_write_prompt(json_object *params, rv_buf *out, rv_err **err)
{
    json_object *messages = rv_json_get_arr(params, "messages");
    size_t n = messages ? json_object_array_length(messages) : 0;
    const char *system = NULL;
    bool has_system = rv_json_get_text(params, "systemPrompt", &system) && system[0];
    int rc = 0;

    if (n == 0 || n > MAX_MESSAGES)
        return RV_FAIL(err, RV_E_INVALID, "the request has not 1 to %d messages", MAX_MESSAGES);
    if (json_object_object_get_ex(params, "tools", NULL))
        return RV_FAIL(err, RV_E_INVALID, "the model is offered no tools here");
    if (has_system)
        rv_buf_printf(out, "%s\n\n", system);
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (i > 0)
            rv_buf_puts(out, "\n\n");
        rc = add_message(json_object_array_get_idx(messages, i), n == 1, out, err);
    }
    return rc < 0 ? rc : rv_buf_check(out, "what an MCP server asks a model", err);
}

int rv_mcp_sampling_build_result(const char *text, const char *model, json_object **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *result = json_object_new_object();

    if (!result)
        return RV_FAIL(err, RV_E_NOMEM, "answer an MCP server");
    rv_json_build_text(&b, result, "role", "assistant");
    json_object *content = rv_json_build(&b, result, "content", json_object_new_object());
    rv_json_build_text(&b, content, "type", "text");
    rv_json_build_text(&b, content, "text", text);
    rv_json_build_text(&b, result, "model", model);
    rv_json_build_text(&b, result, "stopReason", "endTurn");
    if (b.rc < 0)
        json_object_put(result);
    else
        *out = result;
    return b.rc;
}

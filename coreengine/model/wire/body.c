/* Pieces of requests that wires share. */
#include "coreengine/model/wire/wire_internal.h"

#include <json-c/linkhash.h>

static const char ASK_FOR_JSON[] =
    "\n\nAnswer with one JSON value that follows this JSON Schema, without a code fence and without any other text:\n";

int rv_body_via(const struct rv_wire_target *t, json_object *request, enum wire_via *via, rv_err **err)
{
    json_object *output = rv_json_get_obj(request, "output");
    const char *text = "auto";

    *via = WIRE_VIA_NONE;
    if (!output)
        return 0;
    if (json_object_object_get_ex(output, "via", NULL) && !rv_json_get_text(output, "via", &text))
        return RV_FAIL(err, RV_E_INVALID, "\"via\" of the output is no text");
    if (rv_str_is(rv_str_of(text), "auto")) {
        *via = !t->no_native_output ? WIRE_VIA_NATIVE : !t->no_tools ? WIRE_VIA_TOOL : WIRE_VIA_PROMPT;
    } else if (rv_str_is(rv_str_of(text), "native")) {
        if (t->no_native_output)
            return RV_FAIL(err, RV_E_INVALID, "model \"%s\" has no mode for structured output", t->model);
        *via = WIRE_VIA_NATIVE;
    } else if (rv_str_is(rv_str_of(text), "tool")) {
        if (t->no_tools)
            return RV_FAIL(err, RV_E_INVALID, "model \"%s\" can not hand over output by a tool: it can not call tools",
                           t->model);
        *via = WIRE_VIA_TOOL;
    } else if (rv_str_is(rv_str_of(text), "prompt")) {
        *via = WIRE_VIA_PROMPT;
    } else {
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is no way to ask for structured output", text);
    }
    return 0;
}

int rv_body_schema(json_object *request, json_object **out, rv_err **err)
{
    json_object *output = rv_json_get_obj(request, "output");
    json_object *schema = output ? rv_json_get_obj(output, "schema") : NULL, *copy = NULL;
    int rc;

    if (!schema)
        return RV_FAIL(err, RV_E_INVALID, "the output has no schema");
    rc = rv_json_dup(schema, &copy, err);
    if (rc < 0)
        return rc;
    json_object_object_del(copy, "description");
    *out = copy;
    return 0;
}

void rv_body_ask_for_json(json_object *schema, rv_buf *text)
{
    rv_buf_puts(text, ASK_FOR_JSON);
    rv_json_write(schema, text);
}

static int each_message(json_object *request, const char *key, rv_body_message_fn fn, void *self, rv_err **err)
{
    json_object *list = rv_json_get_arr(request, key);
    size_t n = list ? json_object_array_length(list) : 0;

    for (size_t i = 0; i < n; i++) {
        json_object *message = json_object_array_get_idx(list, i);
        const char *role = NULL;
        int rc;

        if (!json_object_is_type(message, json_type_object) || !rv_json_get_text(message, "role", &role))
            return RV_FAIL(err, RV_E_INVALID, "message %zu of \"%s\" has no role", i + 1, key);
        rc = fn(self, role, message, rv_wire_text(message, "content"), err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int rv_body_messages(json_object *request, rv_body_message_fn fn, void *self, rv_err **err)
{
    static const char *const layers[] = {"system", "instructions"};
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(layers) && rc == 0; i++) {
        rv_str text = rv_wire_text(request, layers[i]);
        if (text.len)
            rc = fn(self, "system", NULL, text, err);
    }
    if (rc == 0)
        rc = each_message(request, "history", fn, self, err);
    if (rc == 0)
        rc = fn(self, "user", NULL, rv_wire_text(request, "prompt"), err);
    return rc < 0 ? rc : each_message(request, "turns", fn, self, err);
}

int rv_body_write_messages(const struct rv_wire_target *t, json_object *request, rv_body_message_fn fn, void *self,
                           rv_jw *w, rv_err **err)
{
    int rc;

    if (!rv_body_key(t, w, "messages"))
        return 0;
    rv_jw_arr(w);
    rc = rv_body_messages(request, fn, self, err);
    rv_jw_arr_end(w);
    return rc;
}

int rv_body_write_prompt(rv_str content, json_object *ask, rv_jw *w, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(SIZE_MAX / 2);
    int rc;

    rv_buf_add_str(&text, content);
    if (ask)
        rv_body_ask_for_json(ask, &text);
    rc = rv_buf_check(&text, "a prompt", err);
    if (rc == 0)
        rv_jw_kv_str(w, "content", rv_buf_str(&text));
    rv_buf_fini(&text);
    return rc;
}

/* --- tools --- */

int rv_body_check_output_tool(json_object *schema, rv_err **err)
{
    if (json_object_object_get_ex(schema, "type", NULL) && !rv_str_is(rv_wire_text(schema, "type"), "object"))
        return RV_FAIL(err, RV_E_INVALID,
                       "a tool can only hand over output that is an object: its schema is not of type \"object\"");
    return 0;
}

static void write_parameters(json_object *parameters, rv_jw *w)
{
    rv_jw_key(w, "parameters");
    if (parameters) {
        rv_jw_value(w, parameters);
        return;
    }
    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", "object");
    rv_jw_key(w, "properties");
    rv_jw_obj(w);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}

static int write_tool(rv_str name, rv_str description, json_object *parameters, bool is_plain, rv_jw *w, rv_err **err)
{
    json_object *plain = NULL;
    int rc = parameters && is_plain ? rv_body_inline(parameters, &plain, err) : 0;

    if (rc < 0)
        return rc;
    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", "function");
    rv_jw_key(w, "function");
    rv_jw_obj(w);
    rv_jw_kv_str(w, "name", name);
    if (description.len)
        rv_jw_kv_str(w, "description", description);
    if (parameters || is_plain)
        write_parameters(plain ? plain : parameters, w);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
    json_object_put(plain);
    return 0;
}

int rv_body_write_tools(json_object *tools, json_object *output_schema, bool is_plain, rv_jw *w, rv_err **err)
{
    size_t n = tools ? json_object_array_length(tools) : 0;
    int rc = 0;

    rv_jw_arr(w);
    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *tool = json_object_array_get_idx(tools, i);
        if (!json_object_is_type(tool, json_type_object))
            return RV_FAIL(err, RV_E_INVALID, "a tool of the request is no object");
        rc = write_tool(rv_wire_text(tool, "name"), rv_wire_text(tool, "description"),
                        rv_json_get_obj(tool, "parameters"), is_plain, w, err);
    }
    if (output_schema && rc == 0)
        rc = write_tool(RV_STR_LIT(RV_OUTPUT_TOOL), RV_STR_LIT(RV_OUTPUT_TOOL_DESCRIPTION), output_schema, is_plain, w,
                        err);
    rv_jw_arr_end(w);
    return rc;
}

/* --- what the target adds --- */

bool rv_body_has_extra(const struct rv_wire_target *t, const char *key)
{
    return t->extra_body && json_object_object_get_ex(t->extra_body, key, NULL);
}

bool rv_body_key(const struct rv_wire_target *t, rv_jw *w, const char *key)
{
    if (rv_body_has_extra(t, key))
        return false;
    rv_jw_key(w, key);
    return true;
}

void rv_body_write_extra(const struct rv_wire_target *t, rv_jw *w)
{
    if (!t->extra_body)
        return;
    json_object_object_foreach (t->extra_body, key, value) {
        rv_jw_kv_value(w, key, value);
    }
}

/* Pieces of requests that wires share. */
#include "coreengine/wire/wire_internal.h"

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

static rv_str text_of(json_object *obj, const char *key)
{
    json_object *value = NULL;

    return json_object_object_get_ex(obj, key, &value) ? rv_json_str(value) : (rv_str){NULL, 0};
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
        rc = fn(self, role, message, text_of(message, "content"), err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int rv_body_messages(json_object *request, rv_body_message_fn fn, void *self, rv_err **err)
{
    rv_str system = text_of(request, "system");
    int rc = 0;

    if (system.len)
        rc = fn(self, "system", NULL, system, err);
    if (rc == 0)
        rc = each_message(request, "history", fn, self, err);
    if (rc == 0)
        rc = fn(self, "user", NULL, text_of(request, "prompt"), err);
    return rc < 0 ? rc : each_message(request, "turns", fn, self, err);
}

bool rv_body_has_extra(const struct rv_wire_target *t, const char *key)
{
    return t->extra_body && json_object_object_get_ex(t->extra_body, key, NULL);
}

void rv_body_write_extra(const struct rv_wire_target *t, rv_jw *w)
{
    if (!t->extra_body)
        return;
    json_object_object_foreach (t->extra_body, key, value) {
        rv_jw_kv_value(w, key, value);
    }
}

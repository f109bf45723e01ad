/* Requests of Ollama's own chat protocol. It forces no tool, reads no references in a tool's parameters and knows no
 * failed result; a prompt that is too long for the context is refused, not cut, as we ask it to. */
#include <json-c/linkhash.h>

#include "coreengine/model/wire/ollama_internal.h"

struct writer {
    const struct rv_wire_target *t;
    rv_jw *w;
    json_object *ask; /* the schema that the prompt asks for in words; NULL: none */
};

/* --- messages --- */

static int write_calls(rv_jw *w, json_object *calls, rv_err **err)
{
    size_t n = json_object_array_length(calls);
    int rc = 0;

    rv_jw_key(w, "tool_calls");
    rv_jw_arr(w);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        if (!json_object_is_type(call, json_type_object))
            return RV_FAIL(err, RV_E_INVALID, "a tool call of the conversation is no object");
        rv_jw_obj(w);
        rv_jw_kv_str(w, "id", rv_wire_text(call, "id"));
        rv_jw_key(w, "function");
        rv_jw_obj(w);
        rv_jw_kv_str(w, "name", rv_wire_text(call, "name"));
        rv_jw_key(w, "arguments");
        rc = rv_body_write_arguments(rv_wire_text(call, "arguments"), w, err);
        rv_jw_obj_end(w);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
    return rc;
}

static int write_message(void *self, const char *role, json_object *message, rv_str content, rv_err **err)
{
    const struct writer *x = self;
    json_object *calls = message ? rv_json_get_arr(message, "tool_calls") : NULL;
    int rc = 0;

    rv_jw_obj(x->w);
    rv_jw_kv_text(x->w, "role", role);
    if (!message && x->ask && rv_str_is(rv_str_of(role), "user"))
        rc = rv_body_write_prompt(content, x->ask, x->w, err);
    else
        rv_jw_kv_str(x->w, "content", content);
    if (rc == 0 && calls && json_object_array_length(calls))
        rc = write_calls(x->w, calls, err);
    if (message && rv_str_is(rv_str_of(role), "tool")) {
        rv_jw_kv_str(x->w, "tool_name", rv_wire_text(message, "name"));
        rv_jw_kv_str(x->w, "tool_call_id", rv_wire_text(message, "tool_call_id"));
    }
    rv_jw_obj_end(x->w);
    return rc;
}

static int write_tools(const struct writer *x, json_object *request, json_object *output_schema, rv_err **err)
{
    json_object *tools = rv_json_get_arr(request, "tools");
    int rc = output_schema ? rv_body_check_output_tool(output_schema, err) : 0;

    if (rv_str_is(rv_wire_text(request, "tool_choice"), "none"))
        tools = NULL; /* the only way to say it */
    if (rc < 0 || (!output_schema && (!tools || json_object_array_length(tools) == 0)))
        return rc;
    return rv_body_key(x->t, x->w, "tools") ? rv_body_write_tools(tools, output_schema, true, x->w, err) : 0;
}

/* --- the rest --- */

/* The target's options stand beside ours, and over them. */
static void write_options(const struct writer *x, json_object *options)
{
    static const struct {
        const char *key;
        bool is_sampling;
    } known[] = {{"num_predict", false}, {"num_ctx", false}, {"temperature", true}, {"seed", true}};
    json_object *extra = x->t->extra_body ? rv_json_get_obj(x->t->extra_body, "options") : NULL;

    rv_jw_key(x->w, "options");
    rv_jw_obj(x->w);
    for (size_t i = 0; options && i < RV_COUNT(known); i++) {
        json_object *value = NULL;
        if (known[i].is_sampling && x->t->no_sampling)
            continue;
        if (extra && json_object_object_get_ex(extra, known[i].key, NULL))
            continue;
        if (json_object_object_get_ex(options, known[i].key, &value) && value)
            rv_jw_kv_value(x->w, known[i].key, value);
    }
    if (extra) {
        json_object_object_foreach (extra, name, value) {
            rv_jw_kv_value(x->w, name, value);
        }
    }
    rv_jw_obj_end(x->w);
}

static void write_extra(const struct writer *x)
{
    if (!x->t->extra_body)
        return;
    json_object_object_foreach (x->t->extra_body, name, value) {
        if (!rv_str_is(rv_str_of(name), "options"))
            rv_jw_kv_value(x->w, name, value);
    }
}

static int write_body(struct writer *x, json_object *request, enum wire_via via, json_object *schema, rv_err **err)
{
    int rc;

    rv_jw_obj(x->w);
    if (rv_body_key(x->t, x->w, "model"))
        rv_jw_text(x->w, x->t->model);
    rc = rv_body_write_messages(x->t, request, write_message, x, x->w, err);
    if (rc == 0)
        rc = write_tools(x, request, via == WIRE_VIA_TOOL ? schema : NULL, err);
    if (rc < 0)
        return rc;
    if (via == WIRE_VIA_NATIVE && rv_body_key(x->t, x->w, "format"))
        rv_jw_value(x->w, schema);
    write_options(x, rv_json_get_obj(request, "options"));
    if (rv_body_key(x->t, x->w, "truncate"))
        rv_jw_bool(x->w, false);
    if (rv_body_key(x->t, x->w, "stream"))
        rv_jw_bool(x->w, true);
    write_extra(x);
    rv_jw_obj_end(x->w);
    return 0;
}

static int write_request(const struct rv_wire_target *t, json_object *request, rv_jw *w, rv_err **err)
{
    struct writer x = {t, w, NULL};
    enum wire_via via = WIRE_VIA_NONE;
    json_object *schema = NULL;
    int rc = rv_body_via(t, request, &via, err);

    if (rc == 0 && via != WIRE_VIA_NONE)
        rc = rv_body_schema(request, &schema, err);
    if (via == WIRE_VIA_PROMPT)
        x.ask = schema;
    if (rc == 0)
        rc = write_body(&x, request, via, schema, err);
    json_object_put(schema);
    return rc;
}

const struct wire_codec rv_wire_ollama = {
    .request = write_request, .event = rv_ollama_line, .whole = rv_ollama_whole, .fault = rv_ollama_fault};

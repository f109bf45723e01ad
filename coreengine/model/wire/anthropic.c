/* Requests of Anthropic Messages: the body but for its messages, which are in anthropic_messages.c. */
#include <json-c/linkhash.h>

#include "coreengine/model/wire/wire_internal.h"

#define DEFAULT_MAX_TOKENS 4096 /* where no limit is set: the field is required, and every model takes as many */

/* While the model thinks aloud, it may not be told which tool to use. */
static bool is_thinking(const struct rv_wire_target *t)
{
    json_object *thinking = t->extra_body ? rv_json_get_obj(t->extra_body, "thinking") : NULL;
    const char *type = NULL;

    return thinking && rv_json_get_text(thinking, "type", &type) && !rv_str_is(rv_str_of(type), "disabled");
}

/* Their schema of a tool's input has to name its type. */
static int write_input_schema(json_object *schema, rv_str tool, rv_jw *w, rv_err **err)
{
    json_object *type = NULL;

    if (schema && json_object_object_get_ex(schema, "type", &type) && !rv_str_is(rv_json_str(type), "object"))
        return RV_FAIL(err, RV_E_INVALID, "tool \"%.*s\": its input is not of type \"object\"", RV_STR_ARG(tool));
    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", "object");
    if (!schema) {
        rv_jw_key(w, "properties");
        rv_jw_obj(w);
        rv_jw_obj_end(w);
    } else {
        json_object_object_foreach (schema, key, value) {
            if (!rv_str_is(rv_str_of(key), "type"))
                rv_jw_kv_value(w, key, value);
        }
    }
    rv_jw_obj_end(w);
    return 0;
}

static int write_tool(rv_str name, rv_str description, json_object *schema, rv_jw *w, rv_err **err)
{
    int rc;

    rv_jw_obj(w);
    rv_jw_kv_str(w, "name", name);
    if (description.len)
        rv_jw_kv_str(w, "description", description);
    rv_jw_key(w, "input_schema");
    rc = write_input_schema(schema, name, w, err);
    rv_jw_obj_end(w);
    return rc;
}

static int write_tools(const struct rv_wire_target *t, json_object *tools, json_object *output_schema, rv_jw *w,
                       rv_err **err)
{
    char name[WIRE_MAX_TOOL_NAME];
    size_t n = tools ? json_object_array_length(tools) : 0;
    int rc = 0;

    rv_jw_key(w, "tools");
    rv_jw_arr(w);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *tool = json_object_array_get_idx(tools, i);
        if (json_object_is_type(tool, json_type_object))
            rc = write_tool(wire_tool_name(t, tools, wire_text(tool, "name"), name), wire_text(tool, "description"),
                            rv_json_get_obj(tool, "parameters"), w, err);
        else
            rc = RV_FAIL(err, RV_E_INVALID, "tool %zu of the request is not an object", i + 1);
    }
    if (rc == 0 && output_schema)
        rc = write_tool(RV_STR_LIT(RV_OUTPUT_TOOL), RV_STR_LIT(RV_OUTPUT_TOOL_DESCRIPTION), output_schema, w, err);
    rv_jw_arr_end(w);
    return rc;
}

/* --- tools of before --- */

/* By the names that are sent: two of them may be the same, which a request may have once. */
static int add_called(const struct rv_wire_target *t, json_object *message, json_object *names, rv_err **err)
{
    char text[WIRE_MAX_TOOL_NAME], key[WIRE_MAX_TOOL_NAME + 1];
    json_object *calls = json_object_is_type(message, json_type_object) ? rv_json_get_arr(message, "tool_calls") : NULL;
    size_t n = calls ? json_object_array_length(calls) : 0;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *call = json_object_array_get_idx(calls, i), *name = NULL;
        if (!json_object_is_type(call, json_type_object) || !json_object_object_get_ex(call, "name", &name) ||
            !json_object_is_type(name, json_type_string))
            continue;
        rv_str sent = wire_tool_name(t, NULL, rv_json_str(name), text);
        memcpy(key, sent.ptr, sent.len);
        key[sent.len] = '\0';
        rc = rv_json_set_ref(names, key, name, err);
    }
    return rc;
}

/* Their conversations may hold calls of tools only where the request has tools, too. An agent without any may be told
 * of those that others called before it: they are listed by name, and it may call none. */
static int write_tools_of_before(const struct rv_wire_target *t, json_object *request, rv_jw *w, rv_err **err)
{
    static const char *const lists[] = {"examples", "history", "turns"};
    json_object *names = json_object_new_object();
    int rc = names ? 0 : RV_FAIL(err, RV_E_NOMEM, "no memory for names of tools");

    for (size_t l = 0; l < RV_COUNT(lists); l++) {
        json_object *list = rv_json_get_arr(request, lists[l]);
        for (size_t i = 0; rc == 0 && list && i < json_object_array_length(list); i++)
            rc = add_called(t, json_object_array_get_idx(list, i), names, err);
    }
    if (rc == 0 && json_object_object_length(names) > 0 && !wire_body_has_extra(t, "tool_choice")) {
        rv_jw_key(w, "tool_choice");
        rv_jw_obj(w);
        rv_jw_kv_text(w, "type", "none");
        rv_jw_obj_end(w);
    }
    if (rc == 0 && json_object_object_length(names) > 0) {
        rv_jw_key(w, "tools");
        rv_jw_arr(w);
        json_object_object_foreach (names, name, value) {
            (void)value;
            if (rc == 0)
                rc = write_tool(rv_str_of(name), (rv_str){NULL, 0}, NULL, w, err);
        }
        rv_jw_arr_end(w);
    }
    json_object_put(names);
    return rc;
}

static void write_tool_choice(const struct rv_wire_target *t, json_object *request, bool by_tool, rv_jw *w)
{
    rv_str choice = wire_text(request, "tool_choice");
    bool is_forced = by_tool || rv_str_is(choice, "required"), is_none = rv_str_is(choice, "none");
    const char *type = is_none ? "none" : "auto";

    if (is_forced)
        type = is_thinking(t) ? "auto" : by_tool && is_none ? "tool" : "any";
    if (!is_forced && !is_none && !t->no_parallel_calls)
        return;
    rv_jw_key(w, "tool_choice");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", type);
    if (rv_str_is(rv_str_of(type), "tool"))
        rv_jw_kv_text(w, "name", RV_OUTPUT_TOOL);
    if (t->no_parallel_calls && !rv_str_is(rv_str_of(type), "none"))
        rv_jw_kv_bool(w, "disable_parallel_tool_use", true);
    rv_jw_obj_end(w);
}

/* Theirs has more members than ours: what else is configured stays beside the format. */
static void write_output_config(const struct rv_wire_target *t, json_object *schema, rv_jw *w)
{
    json_object *extra = t->extra_body ? rv_json_get_obj(t->extra_body, "output_config") : NULL;

    rv_jw_key(w, "output_config");
    rv_jw_obj(w);
    if (extra) {
        json_object_object_foreach (extra, key, value) {
            rv_jw_kv_value(w, key, value);
        }
    }
    if (!extra || !json_object_object_get_ex(extra, "format", NULL)) {
        rv_jw_key(w, "format");
        rv_jw_obj(w);
        rv_jw_kv_text(w, "type", "json_schema");
        rv_jw_kv_value(w, "schema", schema);
        rv_jw_obj_end(w);
    }
    rv_jw_obj_end(w);
}

static void write_extra(const struct rv_wire_target *t, bool has_output_config, rv_jw *w)
{
    if (!t->extra_body)
        return;
    json_object_object_foreach (t->extra_body, key, value) {
        if (!has_output_config || !rv_str_is(rv_str_of(key), "output_config"))
            rv_jw_kv_value(w, key, value);
    }
}

static void write_options(const struct rv_wire_target *t, json_object *request, rv_jw *w)
{
    json_object *options = rv_json_get_obj(request, "options"), *temperature = NULL;
    int64_t max_tokens = 0;

    if (!wire_body_has_extra(t, "model"))
        rv_jw_kv_text(w, "model", t->model);
    if (!options || !rv_json_get_int(options, "num_predict", &max_tokens) || max_tokens <= 0)
        max_tokens = DEFAULT_MAX_TOKENS;
    if (!wire_body_has_extra(t, "max_tokens"))
        rv_jw_kv_int(w, "max_tokens", max_tokens);
    if (!wire_body_has_extra(t, "stream"))
        rv_jw_kv_bool(w, "stream", true);
    if (options && !t->no_sampling && !wire_body_has_extra(t, "temperature") &&
        json_object_object_get_ex(options, "temperature", &temperature) && temperature)
        rv_jw_kv_value(w, "temperature", temperature);
}

/* Their mode for structured output takes closed schemas only. A schema that cannot be closed is sent as the output
 * tool, unless the request insists on the mode. */
static int close_schema(const struct rv_wire_target *t, json_object *request, struct wire_output *output, rv_err **err)
{
    json_object *strict = NULL;
    int rc = wire_schema_to_strict(output->schema, &strict, err);

    if (rc < 0)
        return rc;
    if (strict) {
        json_object_put(output->schema);
        output->schema = strict;
    } else if (!t->no_tools && !rv_str_is(wire_text(rv_json_get_obj(request, "output"), "via"), "native")) {
        output->via = WIRE_VIA_TOOL;
    }
    return 0;
}

int wire_anthropic_request(const struct rv_wire_target *t, json_object *request, struct wire_output *output, rv_jw *w,
                           rv_err **err)
{
    json_object *tools = rv_json_get_arr(request, "tools");
    int rc = output->via == WIRE_VIA_NATIVE ? close_schema(t, request, output, err) : 0;
    bool is_native = output->via == WIRE_VIA_NATIVE, by_tool = output->via == WIRE_VIA_TOOL;

    if (rc < 0)
        return rc;
    rv_jw_obj(w);
    write_options(t, request, w);
    rc = wire_anthropic_messages(t, request, output->via == WIRE_VIA_PROMPT ? output->schema : NULL, w, err);
    if (rc < 0)
        return rc;
    if ((tools && json_object_array_length(tools)) || by_tool) {
        if (!wire_body_has_extra(t, "tools"))
            rc = write_tools(t, tools, by_tool ? output->schema : NULL, w, err);
        if (!wire_body_has_extra(t, "tool_choice"))
            write_tool_choice(t, request, by_tool, w);
    } else if (!t->no_tools && !wire_body_has_extra(t, "tools")) {
        rc = write_tools_of_before(t, request, w, err);
    }
    if (is_native)
        write_output_config(t, output->schema, w);
    write_extra(t, is_native, w);
    rv_jw_obj_end(w);
    return rc;
}

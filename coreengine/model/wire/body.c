/* Pieces of requests that wires share. */
#include "config/config.h"
#include "coreengine/model/wire/wire_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

static const char ASK_FOR_JSON[] =
    "\n\nAnswer with one JSON value that follows this JSON Schema, without a code fence and without any other text:\n";

static int choose_via(const struct rv_wire_target *t, json_object *output, enum wire_via *via, rv_err **err)
{
    const char *text = rv_output_vias.terms[RV_OUTPUT_VIA_AUTO].text;
    size_t i = 0;

    if (json_object_object_get_ex(output, "via", NULL) && !rv_json_get_text(output, "via", &text))
        return RV_FAIL(err, RV_E_INVALID, "\"via\" of the output is not a text");
    while (i < rv_output_vias.n && strcmp(rv_output_vias.terms[i].text, text) != 0)
        i++;
    switch ((enum rv_output_via)i) {
    case RV_OUTPUT_VIA_AUTO:
        *via = !t->no_native_output ? WIRE_VIA_NATIVE : !t->no_tools ? WIRE_VIA_TOOL : WIRE_VIA_PROMPT;
        break;
    case RV_OUTPUT_VIA_NATIVE:
        if (t->no_native_output)
            return RV_FAIL(err, RV_E_INVALID, "model \"%s\" has no mode for structured output", t->model);
        *via = WIRE_VIA_NATIVE;
        break;
    case RV_OUTPUT_VIA_TOOL:
        if (t->no_tools)
            return RV_FAIL(err, RV_E_INVALID, "model \"%s\" cannot hand over output by a tool: it cannot call tools",
                           t->model);
        *via = WIRE_VIA_TOOL;
        break;
    case RV_OUTPUT_VIA_PROMPT:
        *via = WIRE_VIA_PROMPT;
        break;
    case RV_N_VIAS:
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not a way to ask for structured output", text);
    }
    return 0;
}

int wire_body_output(const struct rv_wire_target *t, json_object *request, struct wire_output *out, rv_err **err)
{
    json_object *output = rv_json_get_obj(request, "output"), *schema;

    *out = (struct wire_output){WIRE_VIA_NONE, NULL};
    if (!output)
        return 0;
    schema = rv_json_get_obj(output, "schema");
    int rc = choose_via(t, output, &out->via, err);
    if (rc == 0 && !schema)
        rc = RV_FAIL(err, RV_E_INVALID, "the output has no schema");
    if (rc == 0)
        rc = rv_json_dup(schema, &out->schema, err);
    if (rc == 0)
        json_object_object_del(out->schema, "description");
    return rc;
}

void wire_body_ask_for_json(json_object *schema, rv_buf *text)
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
        rc = fn(self, role, message, wire_text(message, "content"), err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int wire_body_messages(json_object *request, rv_body_message_fn fn, void *self, rv_err **err)
{
    static const char *const layers[] = {"system", "instructions"};
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(layers) && rc == 0; i++) {
        rv_str text = wire_text(request, layers[i]);
        if (text.len)
            rc = fn(self, "system", NULL, text, err);
    }
    if (rc == 0)
        rc = each_message(request, "examples", fn, self, err);
    if (rc == 0)
        rc = each_message(request, "history", fn, self, err);
    if (rc == 0)
        rc = fn(self, "user", NULL, wire_text(request, "prompt"), err);
    return rc < 0 ? rc : each_message(request, "turns", fn, self, err);
}

int wire_body_write_messages(const struct rv_wire_target *t, json_object *request, rv_body_message_fn fn, void *self,
                             rv_jw *w, rv_err **err)
{
    int rc;

    if (!wire_body_key(t, w, "messages"))
        return 0;
    rv_jw_arr(w);
    rc = wire_body_messages(request, fn, self, err);
    rv_jw_arr_end(w);
    return rc;
}

int wire_body_prompt(rv_str content, json_object *ask, rv_buf *out, rv_err **err)
{
    rv_buf_add_str(out, content);
    if (ask)
        wire_body_ask_for_json(ask, out);
    return rv_buf_check(out, "a prompt", err);
}

int wire_body_write_prompt(rv_str content, json_object *ask, rv_jw *w, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(SIZE_MAX / 2);
    int rc = wire_body_prompt(content, ask, &text, err);

    if (rc == 0)
        rv_jw_kv_str(w, "content", rv_buf_str(&text));
    rv_buf_fini(&text);
    return rc;
}

/* --- references of a schema, replaced by what they name ---
 *
 * Some servers read the parameters of a tool member by member and know no references: a model there would see nothing
 * of a referenced schema. The whole schema stays as it is when a referenced schema contains itself or is missing, when
 * other keywords than descriptions stand beside a reference, or when the result would be too large. */

#define MAX_NESTING 64    /* references inside of references: a schema may contain itself; then it is sent as it is */
#define MAX_NODES   20000 /* of the result: definitions of definitions multiply */

struct inlining {
    json_object *root;
    size_t n_nodes;
    bool is_given_up;
    rv_err **err;
};

static int copy(struct inlining *x, json_object *from, bool is_map, int nesting, json_object **out);

static bool is_one_of(const char *key, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, list[i]) == 0)
            return true;
    return false;
}

/* NULL: it is not there. */
static json_object *find_definition(json_object *root, const char *ref)
{
    static const char *const places[] = {"$defs", "definitions"};

    for (size_t i = 0; i < RV_COUNT(places); i++) {
        size_t n = strlen(places[i]);
        json_object *defs = rv_json_get_obj(root, places[i]);
        if (defs && strncmp(ref, "#/", 2) == 0 && strncmp(ref + 2, places[i], n) == 0 && ref[2 + n] == '/')
            return rv_json_get_obj(defs, ref + 3 + n);
    }
    return NULL;
}

static bool says_more(json_object *schema)
{
    static const char *const words[] = {"$ref",     "title",      "description", "default",
                                        "examples", "deprecated", "$defs",       "definitions"};

    json_object_object_foreach (schema, key, value) {
        (void)value;
        if (!is_one_of(key, words, RV_COUNT(words)))
            return true;
    }
    return false;
}

static int set(json_object *to, const char *key, json_object *value, rv_err **err)
{
    return value ? rv_json_set_take(to, key, value, err) : rv_json_set_null(to, key, err);
}

/* is_map: schemas by the names of members, so that a name says nothing. */
static int copy_members(struct inlining *x, json_object *from, bool is_map, int nesting, json_object *to)
{
    static const char *const data[] = {"const", "enum", "default", "examples"}; /* values, not schemas */
    static const char *const maps[] = {"properties", "patternProperties", "dependentSchemas"};

    json_object_object_foreach (from, key, value) {
        json_object *member = NULL;
        bool is_left_out = nesting == 0 && (strcmp(key, "$defs") == 0 || strcmp(key, "definitions") == 0);
        if (!is_map && (is_left_out || strcmp(key, "$ref") == 0))
            continue;
        if (!is_map && is_one_of(key, data, RV_COUNT(data)))
            member = json_object_get(value);
        bool to_map = !is_map && is_one_of(key, maps, RV_COUNT(maps));
        int rc = member ? 0 : copy(x, value, to_map, nesting + 1, &member);
        if (rc == 0)
            rc = set(to, key, member, x->err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int copy_object(struct inlining *x, json_object *from, int nesting, json_object *to)
{
    const char *ref = NULL;

    if (rv_json_get_text(from, "$ref", &ref)) {
        json_object *definition = find_definition(x->root, ref);
        if (!definition || nesting >= MAX_NESTING || says_more(from)) {
            x->is_given_up = true;
            return 0;
        }
        int rc = copy_object(x, definition, nesting + 1, to);
        if (rc < 0)
            return rc;
    }
    return copy_members(x, from, false, nesting, to); /* words beside a reference go over those of what it names */
}

static int copy_array(struct inlining *x, json_object *from, int nesting, json_object *to)
{
    int rc = 0;

    for (size_t i = 0; i < json_object_array_length(from) && rc == 0; i++) {
        json_object *item = NULL;
        rc = copy(x, json_object_array_get_idx(from, i), false, nesting + 1, &item);
        if (rc == 0)
            rc = item ? rv_json_push_take(to, item, x->err) : rv_json_push_ref(to, NULL, x->err);
    }
    return rc;
}

static int copy(struct inlining *x, json_object *from, bool is_map, int nesting, json_object **out)
{
    bool is_object = json_object_is_type(from, json_type_object), is_array = json_object_is_type(from, json_type_array);

    if (++x->n_nodes > MAX_NODES || nesting > MAX_NESTING)
        x->is_given_up = true;
    if (x->is_given_up || (!is_object && !is_array)) {
        *out = json_object_get(from);
        return 0;
    }
    json_object *to = is_object ? json_object_new_object() : json_object_new_array();
    if (!to)
        return RV_FAIL(x->err, RV_E_NOMEM, "no memory for a schema");
    int rc = is_array ? copy_array(x, from, nesting, to)
             : is_map ? copy_members(x, from, true, nesting, to)
                      : copy_object(x, from, nesting, to);
    if (rc < 0) {
        json_object_put(to);
        return rc;
    }
    *out = to;
    return 0;
}

static int resolve(json_object *schema, json_object **out, rv_err **err)
{
    struct inlining x = {.root = schema, .err = err};
    json_object *made = NULL;
    bool has_any = rv_json_get_obj(schema, "$defs") || rv_json_get_obj(schema, "definitions");
    int rc = has_any ? copy(&x, schema, false, 0, &made) : 0;

    if (rc < 0)
        return rc;
    if (!has_any || x.is_given_up) {
        json_object_put(made);
        made = json_object_get(schema);
    }
    *out = made;
    return 0;
}

/* --- tools --- */

int wire_body_check_output_tool(json_object *schema, rv_err **err)
{
    if (json_object_object_get_ex(schema, "type", NULL) && !rv_str_is(wire_text(schema, "type"), "object"))
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
    int rc = parameters && is_plain ? resolve(parameters, &plain, err) : 0;

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

int wire_body_write_tools(const struct rv_wire_target *t, json_object *tools, json_object *output_schema, rv_jw *w,
                          rv_err **err)
{
    bool is_plain = t->wire == RV_WIRE_OLLAMA;
    char name[WIRE_MAX_TOOL_NAME];
    size_t n = tools ? json_object_array_length(tools) : 0;
    int rc = 0;

    rv_jw_arr(w);
    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *tool = json_object_array_get_idx(tools, i);
        if (!json_object_is_type(tool, json_type_object))
            return RV_FAIL(err, RV_E_INVALID, "a tool of the request is not an object");
        rc = write_tool(wire_tool_name(t, tools, wire_text(tool, "name"), name), wire_text(tool, "description"),
                        rv_json_get_obj(tool, "parameters"), is_plain, w, err);
    }
    if (output_schema && rc == 0)
        rc = write_tool(RV_STR_LIT(RV_OUTPUT_TOOL), RV_STR_LIT(RV_OUTPUT_TOOL_DESCRIPTION), output_schema, is_plain, w,
                        err);
    rv_jw_arr_end(w);
    return rc;
}

int wire_body_write_arguments(rv_str text, rv_jw *w, rv_err **err)
{
    static const struct rv_json_opts opts = {
        .max_bytes = RV_LLM_MAX_REPLY, .allow_duplicates = true, .what = "arguments"};
    json_object *arguments = NULL;
    int rc = rv_json_try_parse(text, &opts, &arguments, err);

    if (json_object_is_type(arguments, json_type_object)) {
        rv_jw_value(w, arguments);
    } else {
        rv_jw_obj(w);
        rv_jw_obj_end(w);
    }
    json_object_put(arguments);
    return rc;
}

int wire_body_write_calls(const struct rv_wire_target *t, json_object *tools, json_object *calls, rv_jw *w,
                          rv_err **err)
{
    bool is_plain = t->wire == RV_WIRE_OLLAMA;
    char name[WIRE_MAX_TOOL_NAME];
    size_t n = json_object_array_length(calls);
    int rc = 0;

    rv_jw_key(w, "tool_calls");
    rv_jw_arr(w);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        if (!json_object_is_type(call, json_type_object))
            return RV_FAIL(err, RV_E_INVALID, "a tool call of the conversation is not an object");
        rv_jw_obj(w);
        rv_jw_kv_str(w, "id", wire_text(call, "id"));
        if (!is_plain)
            rv_jw_kv_text(w, "type", "function");
        rv_jw_key(w, "function");
        rv_jw_obj(w);
        rv_jw_kv_str(w, "name", wire_tool_name(t, tools, wire_text(call, "name"), name));
        rv_jw_key(w, "arguments");
        if (is_plain)
            rc = wire_body_write_arguments(wire_text(call, "arguments"), w, err);
        else
            rv_jw_str(w, wire_text(call, "arguments"));
        rv_jw_obj_end(w);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
    return rc;
}

/* --- what the target adds --- */

bool wire_body_has_extra(const struct rv_wire_target *t, const char *key)
{
    return t->extra_body && json_object_object_get_ex(t->extra_body, key, NULL);
}

bool wire_body_key(const struct rv_wire_target *t, rv_jw *w, const char *key)
{
    if (wire_body_has_extra(t, key))
        return false;
    rv_jw_key(w, key);
    return true;
}

void wire_body_write_extra(const struct rv_wire_target *t, rv_jw *w)
{
    if (!t->extra_body)
        return;
    json_object_object_foreach (t->extra_body, key, value) {
        rv_jw_kv_value(w, key, value);
    }
}

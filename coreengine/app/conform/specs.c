/* Rules about what a capability declares. The loader has let it in: everything here is advice. */
#include <json-c/json.h>
#include <string.h>

#include "coreengine/app/conform/conform_internal.h"

#include "coreengine/base/json.h"

#define MAX_DEPTH 16 /* of schemas; deeper ones are not looked at */

static bool is_closed(json_object *schema)
{
    bool more = true;

    return (rv_json_get_bool(schema, "additionalProperties", &more) && !more) ||
           json_object_object_get_ex(schema, "unevaluatedProperties", NULL);
}

static bool has_any(json_object *schema, const char *const *keys)
{
    for (; *keys; keys++)
        if (json_object_object_get_ex(schema, *keys, NULL))
            return true;
    return false;
}

/* The texts and lists of a schema, with the path to each. */
static void check_bounds(struct conform *c, const char *tool, json_object *schema, const char *path, int depth)
{
    static const char *const of_texts[] = {"maxLength", "enum", "const", "pattern", "format", NULL};
    static const char *const of_lists[] = {"maxItems", "enum", "const", NULL};
    const char *type = rv_json_text_or(schema, "type", "");
    json_object *properties = rv_json_get_obj(schema, "properties"), *items = rv_json_get_obj(schema, "items");

    if (strcmp(type, "string") == 0)
        rv_conform_note(c, RV_CONFORM_TOOL_BOUNDED, has_any(schema, of_texts), tool, "%s has no maxLength", path);
    if (strcmp(type, "array") == 0)
        rv_conform_note(c, RV_CONFORM_TOOL_BOUNDED, has_any(schema, of_lists), tool, "%s has no maxItems", path);
    if (depth >= MAX_DEPTH)
        return;
    if (properties) {
        json_object_object_foreach (properties, key, value) {
            RV_AUTO(rv_buf_fini) rv_buf deeper = RV_BUF_INIT(4096);
            rv_buf_printf(&deeper, "%s%s%.200s", path, *path ? "." : "", key);
            if (json_object_is_type(value, json_type_object))
                check_bounds(c, tool, value, rv_buf_cstr(&deeper), depth + 1);
        }
    }
    if (items) {
        RV_AUTO(rv_buf_fini) rv_buf deeper = RV_BUF_INIT(4096);
        rv_buf_printf(&deeper, "%s[]", path);
        check_bounds(c, tool, items, rv_buf_cstr(&deeper), depth + 1);
    }
}

static void check_tool(struct conform *c, json_object *tool)
{
    json_object *input = rv_json_get_obj(tool, "input_schema");
    const char *name = rv_json_text_or(tool, "name", "");

    rv_conform_note(c, RV_CONFORM_TOOL_INPUT, input != NULL, name, "it has no input_schema");
    rv_conform_note(c, RV_CONFORM_TOOL_OUTPUT, json_object_object_get_ex(tool, "output_schema", NULL), name,
                    "it has no output_schema");
    if (!input)
        return;
    rv_conform_note(c, RV_CONFORM_TOOL_CLOSED, is_closed(input), name, "its input_schema takes any further argument");
    check_bounds(c, name, input, "", 0);
}

void rv_conform_specs(struct conform *c, json_object *cap)
{
    static const char *const seeing[] = {"hooks", "policies", "routes"};
    json_object *config = rv_json_get_obj(cap, "config_schema");

    rv_conform_note(c, RV_CONFORM_DESC_VERSION, *rv_json_text_or(cap, "version", ""), "", "it has no version");
    rv_conform_note(c, RV_CONFORM_DESC_ABOUT, *rv_json_text_or(cap, "description", ""), "", "it has no description");
    if (config)
        rv_conform_note(c, RV_CONFORM_CONFIG_CLOSED, is_closed(config), "", "its config_schema takes any further key");
    json_object_object_foreach (cap, group, list) {
        bool sees = false;
        for (size_t i = 0; i < RV_COUNT(seeing); i++)
            sees = sees || strcmp(group, seeing[i]) == 0;
        size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
        for (size_t i = 0; i < n; i++) {
            json_object *entry = json_object_array_get_idx(list, i);
            const char *name = rv_json_text_or(entry, "name", "");
            if (strcmp(group, "probes") != 0)
                rv_conform_note(c, RV_CONFORM_ENTRY_ABOUT, *rv_json_text_or(entry, "description", ""), name,
                                "it has no description");
            if (strcmp(group, "tools") == 0)
                check_tool(c, entry);
            if (sees)
                rv_conform_note(c, RV_CONFORM_HOOK_SEES, json_object_object_get_ex(entry, "sees", NULL), name,
                                "it does not say what it sees");
        }
    }
}

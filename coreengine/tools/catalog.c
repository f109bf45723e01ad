/* What definitions mean: risk, effect class, the line of a prompt that shows a tool to a model; and the empty
 * catalogue. */
#include "coreengine/tools/tools_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

enum rv_risk rv_tool_risk(const struct rv_tool_info *info)
{
    return info->risk == RV_UNSET ? RV_RISK_WRITE : (enum rv_risk)info->risk;
}

enum rv_effect_class rv_tool_effect(const struct rv_tool_info *info)
{
    if (info->effect != RV_UNSET)
        return (enum rv_effect_class)info->effect;
    return rv_effect_class_of_risk(rv_tool_risk(info));
}

static const struct rv_tool_info *no_tool(void *self, rv_str name)
{
    (void)self;
    (void)name;
    return NULL;
}

static const struct rv_entry_info *no_entry(void *self, enum rv_name_kind kind, rv_str name)
{
    (void)self;
    (void)kind;
    (void)name;
    return NULL;
}

static const rv_template *no_prompt(void *self, rv_str key)
{
    (void)self;
    (void)key;
    return NULL;
}

const struct rv_catalog rv_catalog_empty = {.tool = no_tool, .entry = no_entry, .prompt = no_prompt};

/* --- prompt line --- */

/* The `type` of a schema as one word; ["integer","null"] is an integer that may be null. */
static const char *type_word(json_object *schema, bool *nullable)
{
    json_object *list = rv_json_get_arr(schema, "type");
    const char *type = "any";

    *nullable = false;
    if (!list) {
        RV_IGNORE(!rv_json_get_text(schema, "type", &type), "a schema without a type takes anything");
        return type;
    }
    size_t n_other = 0;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *word = json_object_array_get_idx(list, i);
        if (!json_object_is_type(word, json_type_string))
            continue;
        if (rv_str_is(rv_json_str(word), "null"))
            *nullable = true;
        else if (n_other++ == 0)
            type = json_object_get_string(word);
    }
    if (n_other == 0)
        type = *nullable ? "null" : "any";
    *nullable = *nullable && n_other > 0;
    return n_other > 1 ? "any" : type;
}

static void write_type(json_object *schema, rv_buf *b)
{
    static const char *const names[][2] = {{"integer", "int"}, {"number", "float"}, {"boolean", "bool"}};
    json_object *values = rv_json_get_arr(schema, "enum");
    const char *item;
    bool nullable;
    size_t i;

    if (values) {
        for (i = 0; i < json_object_array_length(values); i++) {
            if (i)
                rv_buf_putc(b, '|');
            rv_json_write(json_object_array_get_idx(values, i), b);
        }
        return;
    }
    const char *type = type_word(schema, &nullable);
    if (strcmp(type, "array") == 0 && rv_json_get_text(rv_json_get_obj(schema, "items"), "type", &item) &&
        strcmp(item, "string") == 0)
        type = "string_list";
    for (i = 0; i < RV_COUNT(names) && !nullable; i++)
        if (strcmp(type, names[i][0]) == 0)
            type = names[i][1];
    rv_buf_puts(b, type);
    if (nullable) /* the schema's own word: "integer?" */
        rv_buf_putc(b, '?');
}

static bool is_required(json_object *input, const char *name)
{
    json_object *required = rv_json_get_arr(input, "required");
    size_t i, n = required ? json_object_array_length(required) : 0;

    for (i = 0; i < n; i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(required, i)), name))
            return true;
    return false;
}

void rv_tool_write_line(const struct rv_tool_info *info, rv_buf *b)
{
    json_object *properties = rv_json_get_obj(info->input_json, "properties");
    const struct lh_entry *e = properties ? lh_table_head(json_object_get_object(properties)) : NULL;
    bool is_first = true;

    rv_buf_printf(b, "- %s(", info->name);
    for (; e; e = lh_entry_next(e)) {
        json_object *schema = lh_entry_v(e);
        const char *name = lh_entry_k(e);
        bool is_optional = !is_required(info->input_json, name) || (json_object_is_type(schema, json_type_object) &&
                                                                    json_object_object_get_ex(schema, "default", NULL));
        rv_buf_printf(b, "%s%s%s: ", is_first ? "" : ", ", name, is_optional ? "?" : "");
        write_type(schema, b);
        is_first = false;
    }
    rv_buf_puts(b, ")");
    if (info->description && info->description[0])
        rv_buf_printf(b, ": %s", info->description);
}

/* What kind of artifact a payload is, and how it is rendered. */
#include <string.h>

#include <json-c/linkhash.h>

#include "coreengine/plan/artifact_internal.h"
#include "coreengine/plan/shape_internal.h"

static bool has(json_object *from, const char *key)
{
    return json_object_is_type(from, json_type_object) && json_object_object_get_ex(from, key, NULL);
}

static bool is_typed(json_object *schema, const char *type)
{
    const char *text = plan_artifact_text(schema, "type");

    return text && strcmp(text, type) == 0;
}

/* --- type --- */

bool rv_artifact_is_declared(json_object *schema)
{
    return shape_artifact_type(schema) != NULL;
}

static const char *unless_cli(const char *tag)
{
    return tag && strcasecmp(tag, "cli") != 0 ? tag : NULL;
}

/* What the schema says by its tag. */
static const char *tag_of_schema(json_object *schema)
{
    const char *tag = plan_artifact_text(schema, "x-artifact-type");

    if (!tag)
        tag = plan_artifact_text(plan_artifact_object(plan_artifact_object(schema, "properties"), "artifact"),
                                 "x-artifact-type");
    return unless_cli(tag);
}

/* What the schema says by its form. */
static const char *form_of_schema(json_object *schema)
{
    json_object *properties = plan_artifact_object(schema, "properties");

    if (is_typed(schema, "array") && is_typed(plan_artifact_object(schema, "items"), "object"))
        return "table";
    if (is_typed(plan_artifact_object(properties, "fields"), "array"))
        return "form";
    return has(properties, "labels") && has(properties, "datasets") ? "chart" : NULL;
}

static const char *tag_of_payload(json_object *payload)
{
    json_object *artifact = plan_artifact_object(payload, "artifact");
    const char *tag = plan_artifact_text(payload, "x-artifact-type");

    if (!tag)
        tag = plan_artifact_text(payload, "artifact_type");
    if (!tag)
        tag = plan_artifact_text(artifact, "x-artifact-type");
    if (!tag)
        tag = plan_artifact_text(plan_artifact_object(artifact, "card"), "x-artifact-type");
    return unless_cli(tag);
}

static const char *form_of_payload(json_object *payload)
{
    if (json_object_is_type(payload, json_type_array))
        return json_object_array_length(payload) > 0 &&
                       json_object_is_type(json_object_array_get_idx(payload, 0), json_type_object)
                   ? "table"
                   : "data";
    return json_object_is_type(payload, json_type_object) ? "data" : "text";
}

void plan_artifact_infer(json_object *schema, json_object *payload, char type[RV_ARTIFACT_MAX_TYPE + 1])
{
    const char *found = tag_of_schema(schema);

    if (!found)
        found = form_of_schema(schema);
    if (!found)
        found = tag_of_payload(payload);
    if (!found)
        found = form_of_payload(payload);
    rv_str cut = rv_utf8_cut(rv_str_of(found), RV_ARTIFACT_MAX_TYPE);
    for (size_t i = 0; i < cut.len; i++)
        type[i] = rv_ascii_lower(cut.ptr[i]);
    type[cut.len] = '\0';
}

/* --- hints --- */

/* The hints that the schema gives, of itself or of its artifact. */
static json_object *given_hints(json_object *schema, const char *key)
{
    json_object *hints = plan_artifact_object(schema, key);

    return hints ? hints
                 : plan_artifact_object(plan_artifact_object(plan_artifact_object(schema, "properties"), "artifact"),
                                        key);
}

static void add_table(struct rv_json_build *b, json_object *hints, json_object *schema)
{
    json_object *properties = plan_artifact_object(plan_artifact_object(schema, "items"), "properties");

    if (!properties)
        return;
    json_object *columns = rv_json_build(b, hints, "columns", json_object_new_array());
    json_object *sortable = rv_json_build(b, hints, "sortable_columns", json_object_new_array());
    json_object_object_foreach (properties, name, property) {
        (void)property;
        rv_json_build_text(b, columns, NULL, name);
        rv_json_build_text(b, sortable, NULL, name);
    }
    rv_json_build(b, hints, "filterable", json_object_new_boolean(true));
    rv_json_build_int(b, hints, "page_size", 25);
}

static const char *input_of(json_object *property)
{
    static const struct {
        const char *format, *input;
    } formats[] = {{"email", "email"}, {"date", "date"}, {"date-time", "datetime"}, {"password", "password"}};
    const char *format = plan_artifact_text(property, "format");

    for (size_t i = 0; format && i < RV_COUNT(formats); i++)
        if (strcmp(format, formats[i].format) == 0)
            return formats[i].input;
    if (format)
        return "text";
    if (has(property, "enum"))
        return "select";
    if (is_typed(property, "integer") || is_typed(property, "number"))
        return "number";
    return is_typed(property, "boolean") ? "checkbox" : "text";
}

static void add_form(struct rv_json_build *b, json_object *hints, json_object *schema)
{
    json_object *properties = plan_artifact_object(schema, "properties"), *value = NULL;

    if (!properties)
        return;
    json_object *fields = rv_json_build(b, hints, "fields", json_object_new_array());
    json_object_object_foreach (properties, name, property) {
        json_object *field = rv_json_build(b, fields, NULL, json_object_new_object());
        rv_json_build_text(b, field, "name", name);
        rv_json_build_text(b, field, "label", name);
        rv_json_build_text(b, field, "type", input_of(property));
        if (plan_artifact_text(property, "description"))
            rv_json_build_text(b, field, "help_text", plan_artifact_text(property, "description"));
        if (has(property, "enum") && json_object_object_get_ex(property, "enum", &value))
            plan_artifact_share(b, field, "options", value);
        if (has(property, "default") && json_object_object_get_ex(property, "default", &value))
            plan_artifact_share(b, field, "default", value);
    }
    rv_json_build_text(b, hints, "layout", "vertical");
}

void plan_artifact_add_hints(struct rv_json_build *b, json_object *metadata, const char *type, json_object *schema)
{
    static const struct {
        const char *type, *key;
    } rows[] = {{"table", "x-table-hints"}, {"form", "x-form-hints"}, {"presentation_card", "x-presentation-hints"}};
    size_t i = 0;

    while (i < RV_COUNT(rows) && strcmp(rows[i].type, type) != 0)
        i++;
    if (i == RV_COUNT(rows))
        return;
    json_object *given = given_hints(schema, rows[i].key);
    if (given) {
        plan_artifact_share(b, metadata, "rendering_hints", given);
        return;
    }
    json_object *hints = rv_json_build(b, metadata, "rendering_hints", json_object_new_object());
    if (i == 0)
        add_table(b, hints, schema);
    else if (i == 1)
        add_form(b, hints, schema);
    else
        rv_json_build_text(b, hints, "theme", "default");
}

/* --- shapes --- */

/* What an object of a type has to have: a member, and if it is a list of objects, what each of them has to have. */
static const struct shape {
    const char *type, *member, *items[5];
} shapes[] = {
    {"text", "content", {NULL}},
    {"copy_paste_text", "content", {NULL}},
    {"list", "items", {"title", "summary", "link"}},
    {"table", "columns", {"name", "column_type"}},
    {"table", "items", {NULL}},
    {"chart", "labels", {NULL}},
    {"chart", "datasets", {"label", "data"}},
    {"dashboard", "title", {NULL}},
    {"dashboard", "sections", {"section_id", "title", "section_type", "data", "layout"}},
    {"presentation_card", "title", {NULL}},
    {"presentation_card", "sections", {"heading", "content"}},
    {"image", "src", {NULL}},
    {"audio", "src", {NULL}},
    {"video", "src", {NULL}},
    {"message", "messages", {"level", "text"}},
};

static void check_items(const struct shape *s, json_object *list, rv_buf *faults)
{
    size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

    if (s->items[0] && !json_object_is_type(list, json_type_array)) {
        rv_buf_printf(faults, "%s of a %s has to be a list; ", s->member, s->type);
        return;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < RV_COUNT(s->items) && s->items[k]; k++)
            if (!has(json_object_array_get_idx(list, i), s->items[k])) {
                rv_buf_printf(faults, "%s[%zu] of a %s has no %s; ", s->member, i, s->type, s->items[k]);
                return; /* the first is enough to find the others */
            }
}

void plan_artifact_check(const char *type, json_object *payload, rv_buf *faults)
{
    json_object *value = NULL;

    if (!json_object_is_type(payload, json_type_object))
        return;
    for (size_t i = 0; i < RV_COUNT(shapes); i++) {
        if (strcmp(shapes[i].type, type) != 0)
            continue;
        if (json_object_object_get_ex(payload, shapes[i].member, &value))
            check_items(&shapes[i], value, faults);
        else
            rv_buf_printf(faults, "a %s needs %s; ", type, shapes[i].member);
    }
}

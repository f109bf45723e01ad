/* The first layer of a request: what the document tells the model about itself. Byte by byte the contract's (p8 2). */
#include <json-c/linkhash.h>
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

#define MAX_DEPTH 128 /* documents end long before; this is the border that code can rely on */

static const char before[] =
    "## Thinking Structure\n\nUse these to guide your reasoning. Do NOT include these labels in "
    "output:\n\n```yaml";
static const char after[] = "\n```\n\nCRITICAL: Respond with conversational text only. Do NOT output field names, "
                            "YAML, or JSON.";

struct thinking {
    const struct rv_agentdoc *d;
    rv_buf *out;
};

bool rv_agentdoc_is_structured(const struct rv_agentdoc *d, int structured)
{
    bool wanted = structured == RV_UNSET ? d->structured_output : structured != 0;

    return wanted && d->properties != NULL;
}

/* The definition in place of a schema that names one: the text behind the last slash counts. References in a definition
 * are not followed (*follows), so this ends. */
static json_object *resolve(const struct thinking *t, json_object *schema, bool *follows)
{
    const char *ref, *slash;
    json_object *def = NULL;

    if (!*follows || !t->d->defs || !rv_json_get_text(schema, "$ref", &ref))
        return schema;
    slash = strrchr(ref, '/');
    def = rv_json_get_obj(t->d->defs, slash ? slash + 1 : ref);
    if (!def)
        return schema;
    *follows = false;
    return def;
}

static bool is_required(const struct rv_agentdoc *d, const char *name)
{
    size_t n = d->required ? json_object_array_length(d->required) : 0;

    for (size_t i = 0; i < n; i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(d->required, i)), name))
            return true;
    return false;
}

static void new_line(struct thinking *t, int depth)
{
    rv_buf_putc(t->out, '\n');
    for (int i = 0; i < depth; i++)
        rv_buf_puts(t->out, "  ");
}

static void write_description(struct thinking *t, json_object *schema, int depth)
{
    json_object *text = NULL;

    json_object_object_get_ex(schema, "description", &text);
    if (!json_object_is_type(text, json_type_string) || rv_json_str(text).len == 0)
        return;
    new_line(t, depth + 1);
    rv_buf_puts(t->out, "# ");
    rv_buf_add_str(t->out, rv_json_str(text));
}

/* The type as it is written; "any" when there is none. */
static void write_type(struct thinking *t, json_object *schema)
{
    json_object *type = NULL;

    if (schema && json_object_object_get_ex(schema, "type", &type))
        rv_python_str(type, t->out);
    else
        rv_buf_puts(t->out, "any");
}

static bool is_type(json_object *schema, const char *wanted)
{
    const char *type;

    return rv_json_get_text(schema, "type", &type) && strcmp(type, wanted) == 0;
}

static void write_properties(struct thinking *t, json_object *properties, bool follows, int depth);

static void write_object(struct thinking *t, json_object *schema, bool follows, int depth)
{
    json_object *properties = rv_json_get_obj(schema, "properties");

    rv_buf_putc(t->out, ':');
    write_description(t, schema, depth);
    if (properties)
        write_properties(t, properties, follows, depth + 1);
}

static void write_array(struct thinking *t, json_object *schema, bool follows, int depth)
{
    json_object *items = rv_json_get_obj(schema, "items");
    json_object *properties;

    if (items)
        items = resolve(t, items, &follows);
    rv_buf_puts(t->out, ": [");
    write_type(t, items);
    rv_buf_putc(t->out, ']');
    write_description(t, schema, depth);
    properties = items && is_type(items, "object") ? rv_json_get_obj(items, "properties") : NULL;
    if (!properties || json_object_object_length(properties) == 0)
        return;
    new_line(t, depth + 1);
    rv_buf_puts(t->out, "# Each item:");
    write_properties(t, properties, follows, depth + 2);
}

static void write_scalar(struct thinking *t, json_object *schema, const char *name, int depth)
{
    json_object *values = rv_json_get_arr(schema, "enum");
    size_t n = values ? json_object_array_length(values) : 0;

    rv_buf_puts(t->out, ": ");
    write_type(t, schema);
    for (size_t i = 0; i < n; i++) {
        rv_buf_puts(t->out, i == 0 ? " (one of: " : ", ");
        rv_python_str(json_object_array_get_idx(values, i), t->out);
    }
    rv_buf_puts(t->out, n > 0 ? ")" : "");
    rv_buf_puts(t->out, is_required(t->d, name) ? " (required)" : "");
    write_description(t, schema, depth);
}

/* Each line begins with its line feed. */
static void write_properties(struct thinking *t, json_object *properties, bool follows, int depth)
{
    if (depth > MAX_DEPTH)
        return;
    json_object_object_foreach (properties, name, given) {
        bool inner = follows;
        json_object *schema = resolve(t, given, &inner);

        new_line(t, depth);
        rv_buf_puts(t->out, name);
        if (is_type(schema, "object"))
            write_object(t, schema, inner, depth);
        else if (is_type(schema, "array"))
            write_array(t, schema, inner, depth);
        else
            write_scalar(t, schema, name, depth);
    }
}

static void write_notes(const struct rv_agentdoc *d, rv_buf *out)
{
    bool any = false;

    for (size_t i = 0; i < d->n_tools; i++) {
        const struct rv_agentdoc_tool *tool = &d->tools[i];
        if (!tool->description || !tool->description[0])
            continue;
        rv_buf_puts(out, any ? "" : "\n\n## Tool Notes");
        any = true;
        rv_buf_puts(out, "\n- **");
        rv_buf_puts(out, tool->name);
        rv_buf_puts(out, "**: ");
        rv_buf_puts(out, tool->description);
    }
}

int rv_agentdoc_prompt(const struct rv_agentdoc *d, int structured, rv_buf *out, rv_err **err)
{
    bool wanted = structured == RV_UNSET ? d->structured_output : structured != 0;
    struct thinking t = {d, out};

    rv_buf_puts(out, d->description);
    if (d->system_prompt && d->system_prompt[0]) {
        rv_buf_puts(out, "\n\n");
        rv_buf_puts(out, d->system_prompt);
    }
    write_notes(d, out);
    if (!wanted && d->properties) {
        rv_buf_puts(out, "\n\n");
        rv_buf_puts(out, before);
        write_properties(&t, d->properties, true, 0);
        rv_buf_puts(out, after);
    }
    return rv_buf_check(out, "the prompt of an agent", err);
}

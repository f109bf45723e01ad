/* A value in the shape of a JSON Schema: what is required, and the least of that. It knows the keywords that output
 * schemas are made of; what it does not know (patterns, lengths, references) it may miss. */
#include <string.h>

#include "capabilities/echo/echo_internal.h"

#define MAX_DEPTH  16   /* of schemas within schemas: a person writes fewer, and the maker calls itself */
#define MAX_VALUES 1000 /* in all: lists within lists multiply by their minItems */

static json_object *member(json_object *obj, const char *key)
{
    json_object *value = NULL;

    if (json_object_is_type(obj, json_type_object))
        json_object_object_get_ex(obj, key, &value);
    return value;
}

/* Takes value, which may be a null, on every path. */
static void add(json_object *obj, const char *key, json_object *value)
{
    if (json_object_object_add(obj, key, value) < 0)
        json_object_put(value);
}

static json_object *first_of(json_object *list)
{
    return json_object_is_type(list, json_type_array) ? json_object_array_get_idx(list, 0) : NULL;
}

static const char *type_of(json_object *schema)
{
    json_object *type = member(schema, "type");

    if (json_object_is_type(type, json_type_array))
        type = first_of(type);
    if (json_object_is_type(type, json_type_string))
        return json_object_get_string(type);
    return member(schema, "properties") ? "object" : "string";
}

struct shape {
    struct text text;
    int left; /* values that may still be made */
};

static json_object *value_of(struct shape *s, json_object *schema, int depth);

static json_object *object_of(struct shape *s, json_object *schema, int depth)
{
    json_object *out = json_object_new_object(), *required = member(schema, "required");
    size_t n = json_object_is_type(required, json_type_array) ? json_object_array_length(required) : 0;

    for (size_t i = 0; out && i < n; i++) {
        json_object *key = json_object_array_get_idx(required, i);
        if (json_object_is_type(key, json_type_string)) {
            const char *name = json_object_get_string(key);
            add(out, name, value_of(s, member(member(schema, "properties"), name), depth + 1));
        }
    }
    return out;
}

static json_object *list_of(struct shape *s, json_object *schema, int depth)
{
    json_object *out = json_object_new_array(), *least = member(schema, "minItems");
    int n = json_object_is_type(least, json_type_int) ? json_object_get_int(least) : 0;

    for (int i = 0; out && i < n && s->left > 0; i++) {
        json_object *item = value_of(s, member(schema, "items"), depth + 1);
        if (json_object_array_add(out, item) < 0)
            json_object_put(item);
    }
    return out;
}

static json_object *value_of(struct shape *s, json_object *schema, int depth)
{
    static const char *const choices[] = {"anyOf", "oneOf", "allOf"};
    json_object *given = first_of(member(schema, "enum")), *least = member(schema, "minimum");
    const char *type = type_of(schema);

    if (depth > MAX_DEPTH || --s->left < 0)
        return NULL;
    if (!given)
        given = member(schema, "const");
    if (given)
        return json_object_get(given);
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (first_of(member(schema, choices[i])))
            return value_of(s, first_of(member(schema, choices[i])), depth + 1);
    if (strcmp(type, "object") == 0)
        return object_of(s, schema, depth);
    if (strcmp(type, "array") == 0)
        return list_of(s, schema, depth);
    if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0)
        return least ? json_object_get(least) : json_object_new_int(0);
    if (strcmp(type, "boolean") == 0)
        return json_object_new_boolean(0);
    return strcmp(type, "null") == 0 ? NULL : json_object_new_string_len(s->text.ptr, (int)s->text.len);
}

json_object *simplest(json_object *schema, struct text text)
{
    struct shape shape = {text, MAX_VALUES};

    return value_of(&shape, schema, 0);
}

/* Schemas are walked as they are declared, along references, conjunctions and alternatives. A schema that is too
 * involved says nothing: the run checks its values. */
#include <string.h>

#include <json-c/linkhash.h>

#include "coreengine/plan/shape_internal.h"

#define MAX_PARTS  48 /* schemas that all apply to one value: they are on the stack; of more, anything may be there */
#define MAX_GROUPS 8  /* anyOf and oneOf of one value: their alternatives multiply */
#define MAX_DEPTH  32 /* references and conjunctions inside one another: a schema may refer to itself */
#define MAX_VISITS 64 /* alternatives that are looked at: those of MAX_GROUPS groups multiply */
#define MAX_ITEMS  8  /* lists inside lists that are compared: a schema may contain itself */

struct walk {
    json_object *root;
    json_object *parts[MAX_PARTS]; /* all apply */
    size_t n_parts;
    json_object *groups[MAX_GROUPS]; /* of each, one alternative applies */
    size_t n_groups;
    size_t visits;
    bool is_opaque; /* something of this alternative could not be followed */
    bool is_cut;    /* there were more alternatives than are looked at */
    void (*visit)(void *self, struct walk *w);
    void *self;
};

/* --- alternatives --- */

/* The schema at a pointer such as "#/$defs/a~1b"; NULL: not in the document. Percent escapes are not undone. */
static json_object *target_of(json_object *root, rv_str ref)
{
    json_object *at = root;
    char key[256];

    if (ref.len == 0 || ref.ptr[0] != '#' || (ref.len > 1 && ref.ptr[1] != '/'))
        return NULL;
    for (size_t i = 1; i < ref.len && at;) {
        size_t n = 0;
        for (i++; i < ref.len && ref.ptr[i] != '/'; i++) {
            char c = ref.ptr[i];
            if (c == '~' && i + 1 < ref.len)
                c = ref.ptr[++i] == '1' ? '/' : '~';
            if (n + 1 == sizeof key || c == '%' || c == '\0')
                return NULL;
            key[n++] = c;
        }
        key[n] = '\0';
        if (json_object_is_type(at, json_type_array)) {
            size_t index = 0;
            for (const char *p = key; *p; p++) {
                if (!rv_is_digit(*p) || index > 100000)
                    return NULL;
                index = index * 10 + (size_t)(*p - '0');
            }
            at = n > 0 && index < json_object_array_length(at) ? json_object_array_get_idx(at, index) : NULL;
        } else {
            at = json_object_is_type(at, json_type_object) ? rv_json_member(at, key) : NULL;
        }
    }
    return at;
}

/* All that applies to the value together with this schema. */
static void flatten(struct walk *w, json_object *schema, int depth)
{
    static const char *const alternatives[] = {"anyOf", "oneOf"};
    json_object *all, *ref;

    if (json_object_is_type(schema, json_type_boolean)) /* true says nothing; false: nothing is ever there */
        return;
    if (!json_object_is_type(schema, json_type_object) || depth > MAX_DEPTH || w->n_parts == MAX_PARTS) {
        w->is_opaque = true;
        return;
    }
    w->parts[w->n_parts++] = schema;
    ref = rv_json_member(schema, "$ref");
    if (ref) {
        json_object *target = target_of(w->root, rv_json_str(ref));
        if (target)
            flatten(w, target, depth + 1);
        else
            w->is_opaque = true;
    }
    all = rv_json_member(schema, "allOf");
    for (size_t i = 0; json_object_is_type(all, json_type_array) && i < json_object_array_length(all); i++)
        flatten(w, json_object_array_get_idx(all, i), depth + 1);
    for (size_t i = 0; i < RV_COUNT(alternatives); i++) {
        json_object *group = rv_json_member(schema, alternatives[i]);
        if (!json_object_is_type(group, json_type_array) || json_object_array_length(group) == 0)
            continue;
        if (w->n_groups == MAX_GROUPS)
            w->is_opaque = true;
        else
            w->groups[w->n_groups++] = group;
    }
}

static void expand(struct walk *w, size_t group, int depth)
{
    if (w->is_opaque || group == w->n_groups) {
        if (w->visits++ < MAX_VISITS)
            w->visit(w->self, w);
        else
            w->is_cut = true;
        return;
    }
    size_t n_parts = w->n_parts, n_groups = w->n_groups;
    json_object *branches = w->groups[group];
    for (size_t i = 0; i < json_object_array_length(branches) && !w->is_cut; i++) {
        flatten(w, json_object_array_get_idx(branches, i), depth);
        expand(w, group + 1, depth + 1);
        w->n_parts = n_parts;
        w->n_groups = n_groups;
        w->is_opaque = false;
    }
}

/* Visit each alternative of a schema; false: not all were visited. */
static bool each_alternative(json_object *root, json_object *schema, void (*visit)(void *, struct walk *), void *self)
{
    struct walk w = {.root = root, .visit = visit, .self = self};

    flatten(&w, schema, 0);
    expand(&w, 0, 0);
    return !w.is_cut;
}

/* --- types --- */

static unsigned type_of_word(rv_str word)
{
    static const struct {
        const char *word;
        unsigned type;
    } words[] = {
        {"string", RV_SHAPE_STRING},   {"integer", RV_SHAPE_INTEGER}, {"number", RV_SHAPE_NUMBER},
        {"boolean", RV_SHAPE_BOOLEAN}, {"array", RV_SHAPE_ARRAY},     {"object", RV_SHAPE_OBJECT},
        {"null", RV_SHAPE_NULL},
    };

    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (rv_str_is(word, words[i].word))
            return words[i].type;
    return 0;
}

unsigned shape_types_of(json_object *value)
{
    return type_of_word(rv_str_of(rv_json_type_text(value)));
}

/* Of a value in a schema: 1.0 may be given as 1, too. */
static unsigned types_of_constant(json_object *value)
{
    unsigned type = shape_types_of(value);

    return type & RV_SHAPE_NUMBER ? RV_SHAPE_NUMBER : type;
}

/* What one schema alone says. */
static unsigned types_of_part(json_object *part)
{
    json_object *type = rv_json_member(part, "type"), *values = rv_json_member(part, "enum"), *constant = NULL;
    unsigned types = 0;

    if (json_object_is_type(type, json_type_string))
        types = type_of_word(rv_json_str(type));
    for (size_t i = 0; json_object_is_type(type, json_type_array) && i < json_object_array_length(type); i++)
        types |= type_of_word(rv_json_str(json_object_array_get_idx(type, i)));
    if (types == 0 && json_object_object_get_ex(part, "const", &constant))
        types = types_of_constant(constant);
    for (size_t i = 0; !type && json_object_is_type(values, json_type_array) && i < json_object_array_length(values);
         i++)
        types |= types_of_constant(json_object_array_get_idx(values, i));
    if (types == 0 && (rv_json_member(part, "properties") || rv_json_member(part, "required")))
        types = RV_SHAPE_OBJECT;
    if (types == 0 && (rv_json_member(part, "items") || rv_json_member(part, "prefixItems")))
        types = RV_SHAPE_ARRAY;
    return types ? types : RV_SHAPE_ANY;
}

static unsigned types_of_parts(const struct walk *w)
{
    unsigned types = RV_SHAPE_ANY;

    for (size_t i = 0; i < w->n_parts; i++)
        types &= types_of_part(w->parts[i]);
    return types;
}

static void add_types(void *self, struct walk *w)
{
    *(unsigned *)self |= w->is_opaque ? RV_SHAPE_ANY : types_of_parts(w);
}

static unsigned types_of(const struct rv_shape *shape)
{
    unsigned types = shape->types;

    if (shape->is_any)
        return RV_SHAPE_ANY;
    for (size_t i = 0; i < shape->n; i++)
        if (!each_alternative(shape->root, shape->schemas[i], add_types, &types))
            return RV_SHAPE_ANY;
    return types ? types : RV_SHAPE_ANY; /* a contradiction is the run's to find */
}

/* --- shapes --- */

static void add_schema(struct rv_shape *shape, json_object *schema)
{
    if (!json_object_is_type(schema, json_type_object) || json_object_object_length(schema) == 0 ||
        shape->n == RV_SHAPE_MAX_SCHEMAS)
        shape->is_any = true;
    else
        shape->schemas[shape->n++] = schema;
}

struct rv_shape plan_shape_of(json_object *schema)
{
    struct rv_shape shape = {.root = schema};

    add_schema(&shape, schema);
    return shape;
}

const char *shape_artifact_type(json_object *schema)
{
    const char *type = NULL;

    if (!json_object_is_type(schema, json_type_object))
        return NULL;
    if (rv_json_get_text(schema, "x-artifact-type", &type))
        return type;
    json_object *properties = rv_json_get_obj(schema, "properties");
    json_object *artifact = properties ? rv_json_get_obj(properties, "artifact") : NULL;
    return artifact && rv_json_get_text(artifact, "x-artifact-type", &type) ? type : NULL;
}

/* --- one step --- */

struct stepping {
    const struct rv_plan_accessor *a;
    struct rv_shape *to;
    struct rv_shape_names *names;
    bool found;
};

/* A key of the accessor that json-c can look up. */
static bool is_key(const struct rv_plan_accessor *a)
{
    return a->kind != RV_ACCESSOR_INDEX && !memchr(a->key.ptr, '\0', a->key.len);
}

void shape_note_names(struct rv_shape_names *names, json_object *properties)
{
    json_object_object_foreach (properties, key, value) {
        bool is_new = true;
        (void)value;
        for (size_t i = 0; i < names->n && is_new; i++)
            is_new = strcmp(names->items[i], key) != 0;
        if (is_new && names->n < RV_SHAPE_MAX_NAMES)
            names->items[names->n++] = key;
    }
}

static bool is_required(const struct walk *w, const char *key)
{
    for (size_t i = 0; i < w->n_parts; i++) {
        json_object *required = rv_json_member(w->parts[i], "required");
        for (size_t k = 0; json_object_is_type(required, json_type_array) && k < json_object_array_length(required);
             k++)
            if (rv_str_is(rv_json_str(json_object_array_get_idx(required, k)), key))
                return true;
    }
    return false;
}

/* May keys that are not declared be there, for a reason that this walk does not follow? */
static bool is_conditional(json_object *part)
{
    return rv_json_member(part, "patternProperties") || rv_json_member(part, "if") ||
           rv_json_member(part, "dependentSchemas") || rv_json_member(part, "dependencies") ||
           rv_json_member(part, "not");
}

/* Keys that are not declared: of the schema *rest, or none if *closed. */
static void find_rest(const struct walk *w, json_object **rest, bool *open, bool *closed)
{
    static const char *const keywords[] = {"additionalProperties", "unevaluatedProperties"};

    for (size_t i = 0; i < w->n_parts; i++)
        for (size_t k = 0; k < RV_COUNT(keywords); k++) {
            json_object *value = rv_json_member(w->parts[i], keywords[k]);
            if (!value)
                continue;
            if (json_object_is_type(value, json_type_boolean) && !json_object_get_boolean(value))
                *closed = true;
            else
                *open = true;
            if (json_object_is_type(value, json_type_object))
                *rest = value;
        }
}

static bool step_object(struct stepping *s, const struct walk *w)
{
    json_object *rest = NULL, *child = NULL;
    bool is_declared = false, conditional = false, open = false, closed = false;

    for (size_t i = 0; i < w->n_parts; i++) {
        json_object *properties = rv_json_member(w->parts[i], "properties");
        conditional = conditional || is_conditional(w->parts[i]);
        if (!json_object_is_type(properties, json_type_object))
            continue;
        is_declared = true;
        if (is_key(s->a) && json_object_object_get_ex(properties, s->a->key.ptr, &child)) {
            add_schema(s->to, child);
            s->to->is_optional = s->to->is_optional || !is_required(w, s->a->key.ptr);
            return true;
        }
    }
    find_rest(w, &rest, &open, &closed);
    if (is_key(s->a) && (conditional || (open && !closed) || (!is_declared && !closed))) {
        add_schema(s->to, conditional ? NULL : rest);
        s->to->is_optional = true;
        return true;
    }
    for (size_t i = 0; i < w->n_parts; i++)
        if (json_object_is_type(rv_json_member(w->parts[i], "properties"), json_type_object))
            shape_note_names(s->names, rv_json_member(w->parts[i], "properties"));
    return false;
}

/* The schema of item `index`; false: there is none, ever. */
static bool step_array(struct stepping *s, const struct walk *w, size_t index)
{
    for (size_t i = 0; i < w->n_parts; i++) {
        json_object *first = rv_json_member(w->parts[i], "prefixItems"), *items = rv_json_member(w->parts[i], "items");
        size_t n = json_object_is_type(first, json_type_array) ? json_object_array_length(first) : 0;
        if (index >= n && json_object_is_type(items, json_type_boolean) && !json_object_get_boolean(items))
            return false;
        if (index < n || json_object_is_type(items, json_type_object)) {
            add_schema(s->to, index < n ? json_object_array_get_idx(first, index) : items);
            s->to->is_optional = true;
            return true;
        }
    }
    add_schema(s->to, NULL);
    s->to->is_optional = true;
    return true;
}

static void step(void *self, struct walk *w)
{
    struct stepping *s = self;
    unsigned types = w->is_opaque ? RV_SHAPE_ANY : types_of_parts(w), used = 0;

    if (types == 0) /* a contradiction: no value is like that */
        return;
    if (types == RV_SHAPE_ANY) {
        s->to->is_any = s->to->is_optional = s->found = true;
        return;
    }
    if ((types & RV_SHAPE_OBJECT) && s->a->kind != RV_ACCESSOR_INDEX && step_object(s, w))
        used |= RV_SHAPE_OBJECT;
    if ((types & RV_SHAPE_ARRAY) && s->a->kind != RV_ACCESSOR_KEY && s->a->index != SIZE_MAX &&
        step_array(s, w, s->a->index))
        used |= RV_SHAPE_ARRAY;
    s->found = s->found || used;
    s->to->is_optional = s->to->is_optional || used != types;
}

bool shape_step(const struct rv_shape *from, const struct rv_plan_accessor *a, struct rv_shape *to,
                struct rv_shape_names *names)
{
    struct stepping s = {a, to, names, from->is_any};

    *to =
        (struct rv_shape){.root = from->root, .is_any = from->is_any, .is_optional = from->is_optional || from->is_any};
    names->n = 0;
    for (size_t i = 0; i < from->n; i++)
        if (!each_alternative(from->root, from->schemas[i], step, &s))
            to->is_any = to->is_optional = s.found = true;
    return s.found;
}

static void list_names(void *self, struct walk *w)
{
    for (size_t i = 0; i < w->n_parts; i++)
        if (json_object_is_type(rv_json_member(w->parts[i], "properties"), json_type_object))
            shape_note_names(self, rv_json_member(w->parts[i], "properties"));
}

void shape_names(const struct rv_shape *shape, struct rv_shape_names *names)
{
    for (size_t i = 0; i < shape->n; i++)
        each_alternative(shape->root, shape->schemas[i], list_names, names);
}

/* --- comparison --- */

struct collecting {
    struct rv_shape *to;
    bool is_open; /* of some list nothing is declared */
};

static void add_items(void *self, struct walk *w)
{
    struct collecting *c = self;
    bool found = false;

    if (!(types_of_parts(w) & RV_SHAPE_ARRAY) && !w->is_opaque)
        return;
    for (size_t i = 0; i < w->n_parts && !w->is_opaque; i++) {
        json_object *items = rv_json_member(w->parts[i], "items");
        if (rv_json_member(w->parts[i], "prefixItems") || !json_object_is_type(items, json_type_object))
            continue;
        add_schema(c->to, items);
        found = true;
        break;
    }
    c->is_open = c->is_open || !found;
}

bool shape_items(const struct rv_shape *shape, struct rv_shape *to)
{
    struct collecting c = {to, shape->is_any};

    *to = (struct rv_shape){.root = shape->root};
    for (size_t i = 0; i < shape->n; i++)
        if (!each_alternative(shape->root, shape->schemas[i], add_items, &c))
            c.is_open = true;
    return !c.is_open && (to->n > 0 || to->is_any);
}

static enum rv_shape_fit compare(const struct rv_shape *source, const struct rv_shape *target, int depth)
{
    unsigned from = types_of(source), to = types_of(target), both = from & to;
    struct rv_shape items, wanted;

    if (both == 0)
        return RV_SHAPE_NEVER_FITS;
    if ((both & RV_SHAPE_ARRAY) && depth < MAX_ITEMS && shape_items(source, &items) && shape_items(target, &wanted)) {
        enum rv_shape_fit fit = compare(&items, &wanted, depth + 1);
        if (fit == RV_SHAPE_NEVER_FITS && both == RV_SHAPE_ARRAY)
            return fit;
        if (fit != RV_SHAPE_FITS)
            return RV_SHAPE_MAY_FIT;
    }
    return from & ~to ? RV_SHAPE_MAY_FIT : RV_SHAPE_FITS;
}

enum rv_shape_fit shape_compare(const struct rv_shape *source, const struct rv_shape *target)
{
    return compare(source, target, 0);
}

static void write(const struct rv_shape *shape, int depth, rv_buf *out)
{
    static const struct {
        unsigned types;
        const char *word;
    } words[] = {
        {RV_SHAPE_STRING, "string"},   {RV_SHAPE_NUMBER, "number"}, {RV_SHAPE_INTEGER, "integer"},
        {RV_SHAPE_BOOLEAN, "boolean"}, {RV_SHAPE_ARRAY, "array"},   {RV_SHAPE_OBJECT, "object"},
        {RV_SHAPE_NULL, "null"},
    };
    unsigned types = types_of(shape), left = types;
    struct rv_shape items;

    if (types == RV_SHAPE_ANY) {
        rv_buf_puts(out, "any");
        return;
    }
    for (size_t i = 0; i < RV_COUNT(words); i++) {
        if ((left & words[i].types) != words[i].types)
            continue;
        rv_buf_printf(out, "%s%s", left == types ? "" : " or ", words[i].word);
        left &= ~words[i].types;
        if (words[i].types == RV_SHAPE_ARRAY && depth < 2 && shape_items(shape, &items) &&
            types_of(&items) != RV_SHAPE_ANY) {
            rv_buf_puts(out, " of ");
            write(&items, depth + 1, out);
        }
    }
}

void shape_write(const struct rv_shape *shape, rv_buf *out)
{
    write(shape, 0, out);
}

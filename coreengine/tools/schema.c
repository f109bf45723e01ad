/* JSON Schema: lifecycle and defaults. Compiling is in schema_compile.c, checking in schema_check.c. */
#include "coreengine/tools/schema_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>

static void compiler_fini(struct rv_schema_compiler *c)
{
    free(c->nodes);
    rv_index_fini(&c->by_pointer);
}

int rv_schema_compile(json_object *schema, const char *what, rv_schema **out, rv_err **err)
{
    struct rv_schema_compiler c = {.err = err};
    rv_schema *s;
    int rc = RV_E_NOMEM;

    s = calloc(1, sizeof *s);
    if (!s)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a schema");
    c.schema = s;
    s->arena = rv_arena_new(RV_SCHEMA_MAX_BYTES);
    s->what = s->arena ? rv_arena_dup(s->arena, rv_str_of(what ? what : "schema")) : NULL;
    if (!s->what) {
        RV_FAIL(err, RV_E_NOMEM, "no memory for a schema");
        goto done;
    }
    s->document = json_object_get(schema);
    rc = rv_schema_compile_root(&c);
    if (rc < 0)
        goto done;
    rc = rv_schema_link(&c);
    if (rc < 0)
        goto done;
    *out = s;
    s = NULL;
done:
    compiler_fini(&c);
    rv_schema_free(s);
    return rc;
}

void rv_schema_free(rv_schema *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_patterns; i++)
        rv_pattern_free(s->patterns[i]);
    free(s->patterns);
    json_object_put(s->document);
    rv_arena_free(s->arena);
    free(s);
}

static int fill_one(const struct rv_schema_node *property, const char *name, json_object *value, rv_err **err)
{
    json_object *copy = NULL;
    int rc;

    if (json_object_object_get_ex(value, name, NULL))
        return 0;
    /* A copy: the document may be shared by threads, and the caller may change what it gets. */
    rc = rv_json_dup(property->default_value, &copy, err);
    if (rc < 0)
        return rc;
    return copy ? rv_json_set_take(value, name, copy, err) : rv_json_set_null(value, name, err);
}

int rv_schema_fill_defaults(const rv_schema *s, json_object *value, rv_err **err)
{
    const struct rv_schema_node *n = s->root;
    const struct lh_entry *e;
    size_t i = 0;

    if (!json_object_is_type(value, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "%s: expected object, found %s", s->what, rv_json_type_text(value));
    while (n->target && !n->property_names)
        n = n->target; /* ends: linking refused cycles */
    if (!n->property_names)
        return 0;
    for (e = lh_table_head(json_object_get_object(n->property_names)); e; e = lh_entry_next(e)) {
        const struct rv_schema_node *property = n->properties.items[i++];
        int rc;
        if (!property->has_default)
            continue;
        rc = fill_one(property, lh_entry_k(e), value, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

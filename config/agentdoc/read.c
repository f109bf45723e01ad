/* The gathered fields into the document, and what holds between them. */
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

static void read_field(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    const struct rv_agentdoc_key *row = f->row;
    char *base = (char *)r->doc;

    if (f->value->kind == RV_NODE_NULL && row->null_is_unset)
        return;
    if (f->value->kind == RV_NODE_NULL) {
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &f->value->src, "leave the key out to get its default",
                        "%s must not be null", row->name);
        return;
    }
    switch (row->kind) {
    case RV_AGENTDOC_TEXT:
        rv_agentdoc_text(r, f->value, row->name, (const char **)(void *)(base + row->offset));
        break;
    case RV_AGENTDOC_BOOL:
        rv_agentdoc_bool(r, f->value, row->name, (bool *)(void *)(base + row->offset));
        break;
    case RV_AGENTDOC_INT:
        rv_agentdoc_int(r, f->value, row->name, row->min, (int64_t *)(void *)(base + row->offset));
        break;
    case RV_AGENTDOC_CUSTOM:
        row->read(r, f);
        break;
    }
    if (row->src_offset)
        memcpy(base + row->src_offset, &f->value->src, sizeof f->value->src);
}

static bool has_field(const struct rv_agentdoc_reading *r, const char *name)
{
    for (size_t i = 0; i < r->n_fields; i++)
        if (r->fields[i].row && strcmp(r->fields[i].row->name, name) == 0)
            return true;
    return false;
}

static void warn(struct rv_agentdoc_reading *r, const struct rv_src *src, const char *hint, const char *text)
{
    rv_keys_finding(&r->keys, RV_SEVERITY_WARNING, src, hint, "%s", text);
}

static const struct rv_node *value_of(const struct rv_agentdoc_reading *r, const char *name)
{
    for (size_t i = 0; i < r->n_fields; i++)
        if (r->fields[i].row && strcmp(r->fields[i].row->name, name) == 0)
            return r->fields[i].value;
    return NULL;
}

/* p8 W37: what the map names must be there to be passed on. */
static void check_chain(struct rv_agentdoc_reading *r)
{
    const struct rv_node *map = value_of(r, "chained_map");
    const char **names;
    size_t n = r->properties && r->properties->kind == RV_NODE_MAP ? r->properties->n : 0;

    if (r->doc->chained_tool && !r->doc->structured_output)
        warn(r, &r->doc->chained_src, "set structured_output: true",
             "chained_tool is only called with structured output");
    if (!map || map->kind != RV_NODE_MAP)
        return;
    if (!r->doc->chained_tool)
        warn(r, &map->src, "name the tool in chained_tool", "chained_map has no effect without chained_tool");
    names = rv_agentdoc_room(r, n, sizeof *names);
    if (!names)
        return;
    for (size_t i = 0; i < n; i++)
        names[i] = r->properties->keys[i]->text.ptr;
    for (size_t i = 0; i < map->n; i++) {
        const struct rv_node *key = map->keys[i];
        if (!rv_node_get(r->properties, key->text.ptr))
            rv_agentdoc_near(r, RV_SEVERITY_ERROR, &key->src, rv_nearest(key->text, names, n), NULL,
                             "chained_map: no property is called \"%s\"", key->text.ptr);
    }
}

/* A router that names itself leads nowhere: a person would be shown its choice instead of an answer. */
static void check_routing(struct rv_agentdoc_reading *r)
{
    const struct rv_node *map = value_of(r, "routing");
    const struct rv_str_list *routes = &r->doc->routes;
    const char *name = r->doc->name, *fallback = r->doc->routing_fallback;

    if (!name || !map || map->kind != RV_NODE_MAP)
        return;
    for (size_t i = 0; i < routes->n; i++)
        if (strcmp(routes->items[i], name) == 0)
            rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &routes->srcs[i], "list the agents that answer",
                            "routing.agents has \"%.60s\" itself: a router answers nobody", name);
    if (fallback && strcmp(fallback, name) == 0)
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &rv_node_get(map, "fallback")->src,
                        "name an agent that answers, or leave it out: then it is " RV_AGENTDOC_FALLBACK,
                        "routing.fallback is \"%.60s\" itself: a router answers nobody", name);
    if (!fallback && strcmp(name, RV_AGENTDOC_FALLBACK) == 0)
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &map->src, "add `fallback:` with an agent that answers",
                        "routing.fallback is %s unless told, which is this agent", RV_AGENTDOC_FALLBACK);
}

static void check_together(struct rv_agentdoc_reading *r)
{
    if (!has_field(r, "name"))
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &r->doc->src, "add `name:` with one word", "name is required");
    if (!has_field(r, "description"))
        warn(r, &r->doc->src, "write it, or say `description: \"\"`", "there is no description: the prompt is empty");
    if (r->doc->structured_output && (!r->properties || (r->properties->kind == RV_NODE_MAP && r->properties->n == 0)))
        warn(r, r->properties ? &r->properties->src : &r->doc->src, "add the fields of the output as properties",
             "structured_output has no effect without properties");
    check_chain(r);
    check_routing(r);
}

void rv_agentdoc_read_fields(struct rv_agentdoc_reading *r)
{
    for (size_t i = 0; i < r->n_fields && r->keys.rc == 0; i++)
        if (r->fields[i].row)
            read_field(r, &r->fields[i]);
    if (r->keys.rc == 0)
        rv_agentdoc_read_resources(r);
    if (r->keys.rc == 0)
        rv_agentdoc_check_schema(r);
    if (r->keys.rc == 0)
        check_together(r);
}

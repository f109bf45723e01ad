/* The older `resources`, each of which becomes a tool. */
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

#define MAX_PATH 32 /* "resources[127]." */

/* The nested form: the URI is kept; without a name of its own it makes the name. */
static const char *name_of_uri(struct rv_agentdoc_reading *r, const char *uri)
{
    rv_buf name = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    char *copy = NULL;

    for (const char *p = uri; *p; p++) {
        if (strncmp(p, "://", 3) == 0) {
            rv_buf_putc(&name, '_');
            p += 2;
        } else if (*p == '/') {
            rv_buf_putc(&name, '_');
        } else if (*p != '{' && *p != '}') {
            rv_buf_putc(&name, *p);
        }
    }
    if (name.rc == 0)
        copy = rv_arena_dup(r->keys.arena, rv_buf_str(&name));
    if (!copy)
        r->keys.rc = RV_E_NOMEM;
    rv_buf_fini(&name);
    return copy;
}

static void read_nested_resource(struct rv_agentdoc_reading *r, const struct rv_node *item)
{
    static const char *const names[] = {"name", "uri", "uri_pattern", "description", "mcp_server", "server"};
    struct rv_agentdoc_tool tool = {.src = item->src};
    const struct rv_node *uri = item->kind == RV_NODE_STR      ? item
                                : rv_agentdoc_set(item, "uri") ? rv_agentdoc_set(item, "uri")
                                                               : rv_agentdoc_set(item, "uri_pattern");

    if (item->kind != RV_NODE_STR && item->kind != RV_NODE_MAP) {
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &item->src, "write {uri: ..., name: ...}",
                        "%.*s must be a resource, not %s", (int)strlen(r->keys.path) - 1, r->keys.path,
                        rv_node_kind_text(item->kind));
        return;
    }
    rv_agentdoc_warn_of_keys(r, item, names, RV_COUNT(names));
    rv_agentdoc_read_common(r, item, &tool);
    if (!uri) {
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &item->src, NULL, "%suri or uri_pattern is required",
                        r->keys.path);
        return;
    }
    if (!rv_agentdoc_read_uri(r, uri, "uri", &tool.uri))
        return;
    if (rv_agentdoc_set(item, "name")) {
        if (!rv_agentdoc_word(r, rv_agentdoc_set(item, "name"), "name", &tool.name))
            return;
    } else {
        tool.name = name_of_uri(r, tool.uri);
        if (tool.name && !rv_agentdoc_is_name(rv_str_of(tool.name))) {
            rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &uri->src, "give the resource a name",
                            "%suri makes the name \"%.60s\", which is none", r->keys.path, tool.name);
            return;
        }
    }
    if (tool.name)
        rv_agentdoc_add_tool(r, &tool);
}

/* The flat and the legacy form (p8 1.4): a tool of the server by the resource's name. The URI was never used. */
static void read_flat_resource(struct rv_agentdoc_reading *r, const struct rv_node *item)
{
    const struct rv_node *name = item->kind == RV_NODE_MAP ? rv_agentdoc_set(item, "name") : NULL;
    const struct rv_node *uri = item->kind == RV_NODE_MAP ? rv_agentdoc_set(item, "uri") : NULL;
    struct rv_agentdoc_tool tool = {.src = item->src};
    char *word;

    if (!name || name->kind != RV_NODE_STR || name->text.len == 0) {
        rv_keys_finding(&r->keys, RV_SEVERITY_WARNING, &item->src, "write it as a tool: {name: ..., uri: ...}",
                        "%.*s has no name and no effect", (int)strlen(r->keys.path) - 1, r->keys.path);
        return;
    }
    word = rv_arena_dup(r->keys.arena, name->text);
    if (!word) {
        r->keys.rc = RV_E_NOMEM;
        return;
    }
    for (char *c = word; *c; c++) {
        if (*c == ' ')
            *c = '_';
        else if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    }
    if (!rv_agentdoc_is_name((rv_str){word, name->text.len})) {
        rv_agentdoc_word(r, name, "name", &tool.name); /* says what is wrong with it */
        return;
    }
    if (rv_agentdoc_has_tool(r, word))
        return;
    if (uri)
        rv_keys_finding(&r->keys, RV_SEVERITY_WARNING, &uri->src, "write it as a tool: {name: ..., uri: ...}",
                        "%suri has no effect: \"%s\" is called as a tool of that name", r->keys.path, word);
    tool.name = word;
    if (rv_agentdoc_set(item, "description"))
        rv_agentdoc_text(r, rv_agentdoc_set(item, "description"), "description", &tool.description);
    rv_agentdoc_add_tool(r, &tool);
}

void rv_agentdoc_read_resources(struct rv_agentdoc_reading *r)
{
    const struct rv_node *list = r->resources;
    rv_buf path = RV_BUF_INIT(MAX_PATH);

    if (!list || list->kind == RV_NODE_NULL)
        return;
    if (list->kind != RV_NODE_LIST) {
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &list->src, NULL, "resources must be a list, not %s",
                        rv_node_kind_text(list->kind));
        return;
    }
    if (!rv_agentdoc_tool_room(r, list->n, &list->src))
        return;
    for (size_t i = 0; i < list->n && r->keys.rc == 0; i++) {
        if (!rv_agentdoc_set_path(r, &path, "resources", i))
            continue;
        if (r->doc->form == RV_AGENTDOC_NESTED)
            read_nested_resource(r, list->items[i]);
        else
            read_flat_resource(r, list->items[i]);
    }
    r->keys.path = NULL;
    rv_buf_fini(&path);
}

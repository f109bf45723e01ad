/* `tools`, and what reading them has in common with reading resources. */
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

#define MAX_PATH 32 /* "tools[127]." */

static struct rv_agentdoc_tool *tools_of(struct rv_agentdoc_reading *r)
{
    return (struct rv_agentdoc_tool *)(void *)r->doc->tools; /* the arena's; const is for callers */
}

/* Room for n more tools, behind those that are there. */
static bool tool_room(struct rv_agentdoc_reading *r, size_t n, const struct rv_src *src)
{
    struct rv_agentdoc_tool *tools;

    if (r->doc->n_tools + n > RV_AGENTDOC_MAX_TOOLS) {
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, src, NULL, "it has %zu tools (the limit is %d)",
                            r->doc->n_tools + n, RV_AGENTDOC_MAX_TOOLS);
        return false;
    }
    tools = agentdoc_room(r, r->doc->n_tools + n, sizeof *tools);
    if (!tools)
        return false;
    if (r->doc->n_tools > 0)
        memcpy(tools, r->doc->tools, r->doc->n_tools * sizeof *tools);
    r->doc->tools = tools;
    return true;
}

static bool has_tool(const struct rv_agentdoc_reading *r, const char *name)
{
    for (size_t i = 0; i < r->doc->n_tools; i++)
        if (strcmp(r->doc->tools[i].name, name) == 0)
            return true;
    return false;
}

static void add_tool(struct rv_agentdoc_reading *r, const struct rv_agentdoc_tool *tool)
{
    if (has_tool(r, tool->name))
        rv_keys_add_finding(&r->keys, RV_SEVERITY_WARNING, &tool->src, "delete one of them",
                            "the tool \"%s\" is listed twice", tool->name);
    tools_of(r)[r->doc->n_tools++] = *tool;
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* "scheme:rest" without blanks, with {word} for each parameter, a word of at most RV_AGENTDOC_MAX_WORD bytes. */
static bool is_uri(rv_str s)
{
    bool inside = false;
    size_t n_word = 0;
    const char *colon = memchr(s.ptr, ':', s.len);

    if (!colon || colon == s.ptr)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if ((unsigned char)c <= ' ' || c == 0x7f || (inside && c != '}' && !is_word_char(c)))
            return false;
        if (c == '{') {
            inside = true;
            n_word = 0;
        } else if (c == '}') {
            if (!inside || n_word == 0 || n_word > RV_AGENTDOC_MAX_WORD)
                return false;
            inside = false;
        } else {
            n_word++;
        }
    }
    return !inside;
}

static bool read_uri(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, const char **out)
{
    if (!agentdoc_text(r, node, key, out))
        return false;
    if (is_uri(node->text))
        return true;
    rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &node->src, "such as user://profile/{user_id}",
                        "%s%s must be a URI with its parameters in braces, not \"%.60s\"", r->keys.path, key, *out);
    return false;
}

static void read_server(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key,
                        struct rv_agentdoc_tool *tool)
{
    const char *text = NULL;

    if (!agentdoc_word(r, node, key, &text))
        return;
    tool->server_text = text;
    tool->server = strcmp(text, "local") == 0 || strcmp(text, "rem") == 0 ? NULL : text;
}

const struct rv_node *agentdoc_set(const struct rv_node *map, const char *key)
{
    const struct rv_node *value = rv_node_get(map, key);

    return value && value->kind != RV_NODE_NULL ? value : NULL;
}

static void warn_of_keys(struct rv_agentdoc_reading *r, const struct rv_node *map, const char *const *names, size_t n)
{
    for (size_t i = 0; i < map->n; i++) {
        const struct rv_node *key = map->keys[i];
        bool is_known = false;

        for (size_t k = 0; k < n; k++)
            is_known = is_known || rv_str_is(key->text, names[k]);
        if (!is_known)
            agentdoc_near(r, RV_SEVERITY_WARNING, &key->src, rv_nearest(key->text, names, n), NULL,
                          "%s%.*s has no effect", r->keys.path, RV_STR_ARG(key->text));
    }
}

/* What tools and resources have in common. */
static void read_common(struct rv_agentdoc_reading *r, const struct rv_node *item, struct rv_agentdoc_tool *tool)
{
    const struct rv_node *server = agentdoc_set(item, "server");
    const char *server_key = server ? "server" : "mcp_server";
    const struct rv_node *description = agentdoc_set(item, "description");

    if (!server)
        server = agentdoc_set(item, "mcp_server");
    if (server)
        read_server(r, server, server_key, tool);
    if (description)
        agentdoc_text(r, description, "description", &tool->description);
}

static void read_tool(struct rv_agentdoc_reading *r, const struct rv_node *item)
{
    static const char *const names[] = {"name", "server", "description", "uri", "mcp_server"};
    struct rv_agentdoc_tool tool = {.src = item->src};

    if (item->kind == RV_NODE_STR) {
        if (agentdoc_word(r, item, "name", &tool.name))
            add_tool(r, &tool);
        return;
    }
    if (item->kind != RV_NODE_MAP) {
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &item->src, "write its name, or {name: ..., description: ...}",
                            "%.*s must be a tool, not %s", (int)strlen(r->keys.path) - 1, r->keys.path,
                            rv_node_kind_text(item->kind));
        return;
    }
    warn_of_keys(r, item, names, RV_COUNT(names));
    read_common(r, item, &tool);
    if (agentdoc_set(item, "uri"))
        read_uri(r, agentdoc_set(item, "uri"), "uri", &tool.uri);
    if (!agentdoc_set(item, "name"))
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &item->src, "each tool needs one", "%sname is required",
                            r->keys.path);
    else if (agentdoc_word(r, agentdoc_set(item, "name"), "name", &tool.name))
        add_tool(r, &tool);
}

/* Where messages about item i are; false: out of memory. */
static bool set_path(struct rv_agentdoc_reading *r, rv_buf *path, const char *key, size_t i)
{
    rv_buf_clear(path);
    rv_buf_printf(path, "%s[%zu].", key, i);
    r->keys.path = rv_buf_cstr(path);
    if (path->rc < 0)
        r->keys.rc = path->rc;
    return path->rc == 0;
}

void agentdoc_read_tools(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field)
{
    const struct rv_node *list = field->value;
    rv_buf path = RV_BUF_INIT(MAX_PATH);

    if (list->kind != RV_NODE_LIST) {
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &list->src,
                            list->kind == RV_NODE_MAP ? "begin each tool with \"- \""
                                                      : "leave the key out for no tools",
                            "tools must be a list, not %s", rv_node_kind_text(list->kind));
        return;
    }
    if (!tool_room(r, list->n, &list->src))
        return;
    for (size_t i = 0; i < list->n && r->keys.rc == 0; i++) {
        if (set_path(r, &path, "tools", i))
            read_tool(r, list->items[i]);
        r->keys.path = NULL;
    }
    rv_buf_fini(&path);
}

/* --- The older `resources`, each of which becomes a tool --- */

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
    const struct rv_node *uri = item->kind == RV_NODE_STR   ? item
                                : agentdoc_set(item, "uri") ? agentdoc_set(item, "uri")
                                                            : agentdoc_set(item, "uri_pattern");

    if (item->kind != RV_NODE_STR && item->kind != RV_NODE_MAP) {
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &item->src, "write {uri: ..., name: ...}",
                            "%.*s must be a resource, not %s", (int)strlen(r->keys.path) - 1, r->keys.path,
                            rv_node_kind_text(item->kind));
        return;
    }
    warn_of_keys(r, item, names, RV_COUNT(names));
    read_common(r, item, &tool);
    if (!uri) {
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &item->src, NULL, "%suri or uri_pattern is required",
                            r->keys.path);
        return;
    }
    if (!read_uri(r, uri, "uri", &tool.uri))
        return;
    if (agentdoc_set(item, "name")) {
        if (!agentdoc_word(r, agentdoc_set(item, "name"), "name", &tool.name))
            return;
    } else {
        tool.name = name_of_uri(r, tool.uri);
        if (tool.name && !rv_agentdoc_is_name(rv_str_of(tool.name))) {
            rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &uri->src, "give the resource a name",
                                "%suri makes the name \"%.60s\", which is not a name", r->keys.path, tool.name);
            return;
        }
    }
    if (tool.name)
        add_tool(r, &tool);
}

/* The flat and the legacy form (p8 1.4): a tool of the server by the resource's name. The URI was never used. */
static void read_flat_resource(struct rv_agentdoc_reading *r, const struct rv_node *item)
{
    const struct rv_node *name = item->kind == RV_NODE_MAP ? agentdoc_set(item, "name") : NULL;
    const struct rv_node *uri = item->kind == RV_NODE_MAP ? agentdoc_set(item, "uri") : NULL;
    struct rv_agentdoc_tool tool = {.src = item->src};
    char *word;

    if (!name || name->kind != RV_NODE_STR || name->text.len == 0) {
        rv_keys_add_finding(&r->keys, RV_SEVERITY_WARNING, &item->src, "write it as a tool: {name: ..., uri: ...}",
                            "%.*s has no name and no effect", (int)strlen(r->keys.path) - 1, r->keys.path);
        return;
    }
    word = rv_arena_dup(r->keys.arena, name->text);
    if (!word) {
        r->keys.rc = RV_E_NOMEM;
        return;
    }
    for (char *c = word; *c; c++)
        *c = *c == ' ' ? '_' : rv_ascii_lower(*c);
    if (!rv_agentdoc_is_name((rv_str){word, name->text.len})) {
        agentdoc_word(r, name, "name", &tool.name); /* says what is wrong with it */
        return;
    }
    if (has_tool(r, word))
        return;
    if (uri)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_WARNING, &uri->src, "write it as a tool: {name: ..., uri: ...}",
                            "%suri has no effect: \"%s\" is called as a tool of that name", r->keys.path, word);
    tool.name = word;
    if (agentdoc_set(item, "description"))
        agentdoc_text(r, agentdoc_set(item, "description"), "description", &tool.description);
    add_tool(r, &tool);
}

void agentdoc_read_resources(struct rv_agentdoc_reading *r)
{
    const struct rv_node *list = r->resources;
    rv_buf path = RV_BUF_INIT(MAX_PATH);

    if (!list || list->kind == RV_NODE_NULL)
        return;
    if (list->kind != RV_NODE_LIST) {
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &list->src, NULL, "resources must be a list, not %s",
                            rv_node_kind_text(list->kind));
        return;
    }
    if (!tool_room(r, list->n, &list->src))
        return;
    for (size_t i = 0; i < list->n && r->keys.rc == 0; i++) {
        if (!set_path(r, &path, "resources", i))
            continue;
        if (r->doc->form == RV_AGENTDOC_NESTED)
            read_nested_resource(r, list->items[i]);
        else
            read_flat_resource(r, list->items[i]);
    }
    r->keys.path = NULL;
    rv_buf_fini(&path);
}

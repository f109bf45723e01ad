/* The tools of all servers of a pipeline, found by name: "server.tool", and a bare name that only one server has. */
#include "coreengine/mcp/tools_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#define NOMEM(err) RV_FAIL((err), RV_E_NOMEM, "no memory for the tools of MCP servers")
#define MAX_SHOWN  60                          /* bytes of a name that is not one: it stays on one line */
#define MAX_HINT   (RV_MCP_MAX_TOOL_NAME + 20) /* bytes, with its words */
#define IS_SECOND  "the server has two of that name, and the first one counts"

struct listed {
    bool is_added, has_resources, has_prompts;
};
struct rv_mcp_catalog {
    const struct rv_mcp_server_config *servers; /* borrowed */
    size_t n_servers;
    struct listed *listed; /* of the servers */
    struct rv_mcp_tool **tools;
    size_t n, cap;
    rv_index by_name, by_bare; /* indices of tools; by_bare: of the first one that has the name */
    const char **names;
    size_t n_names;
};

int rv_mcp_catalog_new(const struct rv_mcp_server_config *servers, size_t n_servers, rv_mcp_catalog **out, rv_err **err)
{
    rv_mcp_catalog *c = calloc(1, sizeof *c);

    if (c)
        *c = (rv_mcp_catalog){
            .servers = servers, .n_servers = n_servers, .listed = calloc(n_servers + 1, sizeof *c->listed)};
    if (!c || !c->listed) {
        free(c);
        return NOMEM(err);
    }
    *out = c;
    return 0;
}

void rv_mcp_catalog_free(rv_mcp_catalog *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++) {
        mcp_tool_fini(c->tools[i]);
        free(c->tools[i]);
    }
    rv_index_fini(&c->by_name);
    rv_index_fini(&c->by_bare);
    free(c->tools);
    free(c->names);
    free(c->listed);
    free(c);
}

static bool is_in(const struct rv_str_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i], name) == 0)
            return true;
    return false;
}

static void warn(rv_findings *f, const struct rv_mcp_server_config *s, const char *tool, const char *why)
{
    rv_findings_add_as(f, RV_SEVERITY_WARNING, "mcp_tool", &s->src, NULL, "%s \"%s\": tool \"%s\" is left out: %s",
                       rv_mcp_server_kind(s), s->name, tool, why);
}

/* 0 with *is_first false: an earlier one has the name. */
static int look_at_name(rv_index *seen, json_object *definition, bool *is_first, rv_err **err)
{
    const char *name = NULL;

    *is_first = true;
    if (!json_object_is_type(definition, json_type_object) || !rv_json_get_text(definition, "name", &name))
        return 0; /* what is not a tool is left out later */
    *is_first = rv_index_get(seen, rv_str_of(name)) < 0;
    return *is_first && rv_index_add(seen, rv_str_of(name), 0) < 0 ? NOMEM(err) : 0;
}

/* Tools that reeve makes of what else a server has. */
static bool is_made(const char *name)
{
    static const char *const names[] = {"list_resources", "list_resource_templates", "read_resource", "list_prompts",
                                        "get_prompt"};

    for (size_t i = 0; i < RV_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* The names in the list of a server. */
struct known_names {
    const char **items;
    size_t n;
};

/* A name of the file that no tool has: what it should allow, deny or guard has another one. */
static void look_for(rv_findings *f, const struct rv_mcp_server_config *s, const char *key, const char *name,
                     const struct known_names *known, const struct rv_src *src)
{
    for (size_t i = 0; i < known->n; i++)
        if (strcmp(known->items[i], name) == 0)
            return;
    if (is_made(name))
        return;
    const char *near = rv_nearest(rv_str_of(name), known->items, known->n);
    rv_buf hint = RV_BUF_INIT(MAX_HINT);
    if (near && strlen(near) <= RV_MCP_MAX_TOOL_NAME)
        rv_buf_printf(&hint, "did you mean \"%s\"?", near);
    else
        rv_buf_puts(&hint, "look into the documents of the server for its names");
    rv_findings_add_as(f, RV_SEVERITY_WARNING, "mcp_tool", src, rv_buf_cstr(&hint),
                       "%s \"%s\": %s names \"%s\", which it does not have", rv_mcp_server_kind(s), s->name, key, name);
    rv_buf_fini(&hint);
}

static int look_for_all(rv_findings *f, const struct rv_mcp_server_config *s, json_object *tools, rv_err **err)
{
    size_t n = json_object_array_length(tools);
    struct known_names known = {.items = calloc(n + 1, sizeof *known.items)};

    if (!known.items)
        return NOMEM(err);
    for (size_t i = 0; i < n; i++)
        if (json_object_is_type(json_object_array_get_idx(tools, i), json_type_object) &&
            rv_json_get_text(json_object_array_get_idx(tools, i), "name", &known.items[known.n]))
            known.n++;
    for (size_t i = 0; i < s->n_tools; i++)
        look_for(f, s, "tools", s->tools[i].name, &known, &s->tools[i].src);
    for (size_t i = 0; i < s->allow.n; i++)
        look_for(f, s, "allow", s->allow.items[i], &known, s->allow.srcs ? &s->allow.srcs[i] : &s->src);
    for (size_t i = 0; i < s->deny.n; i++)
        look_for(f, s, "deny", s->deny.items[i], &known, s->deny.srcs ? &s->deny.srcs[i] : &s->src);
    free(known.items);
    return 0;
}

int rv_mcp_catalog_build_unique(const struct rv_mcp_server_config *server, json_object *tools, rv_findings *findings,
                                json_object **out, rv_err **err)
{
    json_object *unique = json_object_new_array();
    rv_index seen = {0};
    bool is_first;
    int rc = unique ? 0 : NOMEM(err);

    for (size_t i = 0; rc == 0 && i < json_object_array_length(tools); i++) {
        json_object *tool = json_object_array_get_idx(tools, i);
        rc = look_at_name(&seen, tool, &is_first, err);
        if (rc == 0 && is_first)
            rc = rv_json_push_ref(unique, tool, err);
        else if (rc == 0)
            warn(findings, server, rv_json_text_or(tool, "name", ""), IS_SECOND);
    }
    if (rc == 0)
        rc = look_for_all(findings, server, unique, err);
    rv_index_fini(&seen);
    if (rc < 0)
        json_object_put(unique);
    else
        *out = unique;
    return rc;
}

static int keep_take(rv_mcp_catalog *c, struct rv_mcp_tool *t, rv_err **err)
{
    if (!rv_has_room(&c->tools, &c->cap, c->n + 1, sizeof(struct rv_mcp_tool *)) ||
        rv_index_add(&c->by_name, rv_str_of(t->qualified), (int)c->n) < 0) {
        mcp_tool_fini(t);
        free(t);
        return NOMEM(err);
    }
    c->tools[c->n++] = t;
    return 0;
}

/* definition: an object with a legal name. */
static int add_tool(rv_mcp_catalog *c, const struct rv_mcp_server_config *s, json_object *definition,
                    enum rv_mcp_tool_kind kind, rv_findings *findings, rv_err **err)
{
    struct rv_mcp_tool *t = calloc(1, sizeof *t);
    rv_buf why = RV_BUF_INIT(1200);

    if (!t)
        return NOMEM(err);
    int rc = mcp_tool_init(t, s, definition, kind, &why, err);
    if (rc == 0 && why.len == 0 && rv_index_get(&c->by_name, rv_str_of(t->qualified)) >= 0)
        rv_buf_puts(&why, IS_SECOND);
    if (rc == 0)
        rc = rv_buf_check(&why, "reason", err);
    if (rc == 0 && why.len == 0) {
        rv_buf_fini(&why);
        return keep_take(c, t, err);
    }
    if (rc == 0)
        warn(findings, s, t->name, rv_buf_cstr(&why));
    rv_buf_fini(&why);
    mcp_tool_fini(t);
    free(t);
    return rc;
}

static bool is_tool_name(rv_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!rv_is_letter(c) && !rv_is_digit(c) && c != '_' && c != '-' && c != '.')
            return false;
    }
    return name.len >= 1 && name.len <= RV_MCP_MAX_TOOL_NAME;
}

static int add_listed(rv_mcp_catalog *c, const struct rv_mcp_server_config *s, json_object *definition,
                      rv_findings *findings, rv_err **err)
{
    json_object *name = NULL;

    if (!json_object_is_type(definition, json_type_object) || !json_object_object_get_ex(definition, "name", &name) ||
        !is_tool_name(rv_json_str(name))) {
        rv_str cut = rv_utf8_cut(rv_json_str(name), MAX_SHOWN);
        char shown[MAX_SHOWN + 1] = "";
        memcpy(shown, cut.ptr ? cut.ptr : "", cut.len);
        warn(findings, s, shown, "its name is not 1 to 128 letters, digits, _, - and .");
        return 0;
    }
    const char *text = json_object_get_string(name);
    if ((s->allow.is_set && !is_in(&s->allow, text)) || is_in(&s->deny, text))
        return 0;
    if (c->n >= RV_MCP_MAX_CATALOG)
        return RV_FAIL(err, RV_E_LIMIT, "the MCP servers have more than %d tools", RV_MCP_MAX_CATALOG);
    return add_tool(c, s, definition, RV_MCP_CALL_TOOL, findings, err);
}

/* Tools that are made of resources and prompts. */
static int add_made(rv_mcp_catalog *c, const struct rv_mcp_server_config *s, const char *text,
                    enum rv_mcp_tool_kind kind, rv_findings *findings, rv_err **err)
{
    json_object *definition = NULL, *name = NULL;

    int rc = rv_json_parse(rv_str_of(text), NULL, &definition, err);
    if (rc < 0)
        return rc;
    json_object_object_get_ex(definition, "name", &name);
    const char *key = json_object_get_string(name);
    if (!(s->allow.is_set && !is_in(&s->allow, key)) && !is_in(&s->deny, key))
        rc = add_tool(c, s, definition, kind, findings, err);
    json_object_put(definition);
    return rc;
}

static int add_offers(rv_mcp_catalog *c, const struct rv_mcp_server_config *s, const struct listed *l,
                      rv_findings *findings, rv_err **err)
{
    static const struct {
        enum rv_mcp_tool_kind kind;
        bool is_prompt;
        const char *text;
    } rows[] = {
        {RV_MCP_LIST_RESOURCES, false,
         "{\"name\":\"list_resources\",\"description\":\"List the resources that the server has.\","
         "\"inputSchema\":{\"type\":\"object\",\"additionalProperties\":false}}"},
        {RV_MCP_LIST_TEMPLATES, false,
         "{\"name\":\"list_resource_templates\",\"description\":\"List the templates of URIs (RFC 6570) by which "
         "read_resource reads further resources of the server.\","
         "\"inputSchema\":{\"type\":\"object\",\"additionalProperties\":false}}"},
        {RV_MCP_READ_RESOURCE, false,
         "{\"name\":\"read_resource\",\"description\":\"Read a resource of the server by its URI.\","
         "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"uri\":{\"type\":\"string\"}},"
         "\"required\":[\"uri\"],\"additionalProperties\":false}}"},
        {RV_MCP_LIST_PROMPTS, true,
         "{\"name\":\"list_prompts\",\"description\":\"List the prompts that the server has.\","
         "\"inputSchema\":{\"type\":\"object\",\"additionalProperties\":false}}"},
        {RV_MCP_GET_PROMPT, true,
         "{\"name\":\"get_prompt\",\"description\":\"Get a prompt of the server, filled in with arguments.\","
         "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"arguments\":"
         "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}},\"required\":[\"name\"],"
         "\"additionalProperties\":false}}"},
    };
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(rows) && rc == 0; i++)
        if (rows[i].is_prompt ? s->prompts && l->has_prompts : s->resources && l->has_resources)
            rc = add_made(c, s, rows[i].text, rows[i].kind, findings, err);
    return rc;
}

int rv_mcp_catalog_add(rv_mcp_catalog *c, const struct rv_mcp_server_config *server, const struct rv_mcp_offer *offer,
                       rv_findings *findings, rv_err **err)
{
    struct listed *l = &c->listed[server - c->servers];
    json_object *tools = offer->tools;
    size_t n = json_object_is_type(tools, json_type_array) ? json_object_array_length(tools) : 0;
    int rc = 0;

    *l = (struct listed){.is_added = true, .has_resources = offer->has_resources, .has_prompts = offer->has_prompts};
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_listed(c, server, json_object_array_get_idx(tools, i), findings, err);
    return rc == 0 ? add_offers(c, server, l, findings, err) : rc;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names that mean something else in every pipeline. */
static bool is_taken(const char *name)
{
    return strcmp(name, RV_TOOL_ASK_AGENT) == 0 || strcmp(name, "final_result") == 0;
}

int rv_mcp_catalog_finish(rv_mcp_catalog *c, rv_err **err)
{
    int *first = calloc(c->n + 1, sizeof *first); /* how many have the bare name of the tool that has it first */

    c->names = calloc(2 * c->n + 1, sizeof *c->names);
    if (!first || !c->names) {
        free(first);
        return NOMEM(err);
    }
    for (size_t i = 0; i < c->n; i++) {
        int at = rv_index_get(&c->by_bare, rv_str_of(c->tools[i]->name));
        if (at < 0 && rv_index_add(&c->by_bare, rv_str_of(c->tools[i]->name), at = (int)i) < 0) {
            free(first);
            return NOMEM(err);
        }
        first[at]++;
    }
    for (size_t i = 0; i < c->n; i++) {
        struct rv_mcp_tool *t = c->tools[i];
        c->names[c->n_names++] = t->qualified;
        bool is_other = rv_index_get(&c->by_name, rv_str_of(t->name)) >= 0; /* "a.b" of server x, and b of server a */
        if (first[rv_index_get(&c->by_bare, rv_str_of(t->name))] != 1 || is_taken(t->name) || is_other)
            continue;
        t->bare = t->info;
        t->bare.name = t->name;
        c->names[c->n_names++] = t->name;
    }
    qsort(c->names, c->n_names, sizeof *c->names, by_text);
    free(first);
    return 0;
}

const struct rv_mcp_tool *rv_mcp_catalog_find(const rv_mcp_catalog *c, rv_str name, const struct rv_tool_info **info)
{
    int at = rv_index_get(&c->by_name, name);

    if (at >= 0) {
        *info = &c->tools[at]->info;
        return c->tools[at];
    }
    at = rv_index_get(&c->by_bare, name);
    if (at < 0 || !c->tools[at]->bare.name)
        return NULL;
    *info = &c->tools[at]->bare;
    return c->tools[at];
}

const char *const *rv_mcp_catalog_names(const rv_mcp_catalog *c, size_t *n)
{
    *n = c->n_names;
    return c->names;
}

const struct rv_mcp_tool *rv_mcp_catalog_at(const rv_mcp_catalog *c, size_t i)
{
    return i < c->n ? c->tools[i] : NULL;
}

static const struct rv_mcp_server_config *server_of(const rv_mcp_catalog *c, const char *name)
{
    for (size_t i = 0; i < c->n_servers; i++)
        if (strcmp(c->servers[i].name, name) == 0)
            return &c->servers[i];
    return NULL;
}

bool rv_mcp_catalog_has_server(const rv_mcp_catalog *c, const char *server)
{
    const struct rv_mcp_server_config *s = server_of(c, server);

    return s && c->listed[s - c->servers].is_added;
}

/* --- lists as they are kept --- */

static int write_server(const rv_mcp_catalog *c, size_t server, json_object *to, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    const struct listed *l = &c->listed[server];
    json_object *list = rv_json_build(&b, to, c->servers[server].name, json_object_new_object());
    json_object *tools = rv_json_build(&b, list, "tools", json_object_new_array());

    for (size_t i = 0; i < c->n && b.rc == 0; i++)
        if (c->tools[i]->server == &c->servers[server] && c->tools[i]->kind == RV_MCP_CALL_TOOL)
            rv_json_build(&b, tools, NULL, json_object_get(c->tools[i]->definition));
    if (l->has_resources)
        rv_json_build(&b, list, "resources", json_object_new_boolean(true));
    if (l->has_prompts)
        rv_json_build(&b, list, "prompts", json_object_new_boolean(true));
    return b.rc;
}

int rv_mcp_catalog_write(const rv_mcp_catalog *c, const char *server, json_object **out, rv_err **err)
{
    json_object *to = json_object_new_object();
    int rc = to ? 0 : NOMEM(err);

    for (size_t i = 0; i < c->n_servers && rc == 0; i++)
        if (c->listed[i].is_added && (!server || strcmp(server, c->servers[i].name) == 0))
            rc = write_server(c, i, to, err);
    if (rc < 0)
        json_object_put(to);
    else
        *out = to;
    return rc;
}

int rv_mcp_catalog_read(rv_mcp_catalog *c, json_object *lists, rv_findings *findings, rv_err **err)
{
    int rc = 0;

    if (!json_object_is_type(lists, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "a kept list of MCP tools is not an object");
    json_object_object_foreach (lists, key, list) {
        const struct rv_mcp_server_config *s = server_of(c, key);
        struct rv_mcp_offer offer = {.tools = rv_json_get_arr(list, "tools")};
        if (!offer.tools)
            return RV_FAIL(err, RV_E_INVALID, "a kept list of MCP tools has no \"tools\" for a server");
        if (!s || c->listed[s - c->servers].is_added)
            continue;
        offer.has_resources = rv_json_bool_or(list, "resources", offer.has_resources);
        offer.has_prompts = rv_json_bool_or(list, "prompts", offer.has_prompts);
        rc = rv_mcp_catalog_add(c, s, &offer, findings, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

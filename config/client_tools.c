/* `client_tools`: tools that the client of a run calls itself, as a page that shows a map does. The text may
 * come from a client: names, descriptions and counts are bounded here; that `parameters` are a schema is checked where
 * schemas are known. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

static void read_parameters(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_client_tool *tool =
        (struct rv_client_tool *)((char *)target - offsetof(struct rv_client_tool, parameters));

    tool->written = node;
    if (node->kind != RV_NODE_MAP)
        rv_keys_add_wrong_type(r, node, "parameters", "a map");
    else
        rv_keys_read_json(r, node, target);
}

static const struct rv_key client_tool_keys[] = {
    {"name", RV_KEY_STR, offsetof(struct rv_client_tool, name), .required = true,
     .doc = "What the model calls it: letters, digits, - and _, at most 64. No tool of the stage has that name."},
    {"description", RV_KEY_STR, offsetof(struct rv_client_tool, description), .default_text = "\"\"",
     .doc = "What it does, told to the model; at most 16 KiB."},
    {"parameters", RV_KEY_CUSTOM, offsetof(struct rv_client_tool, parameters), .read = read_parameters,
     .schema = "{\"type\":\"object\"}",
     .doc =
         "JSON Schema of its arguments, of type object; unset: any. A call that does not fit goes back to the model."},
};
const struct rv_key_table config_client_tool_table = {"client_tool", "A tool that the client calls", client_tool_keys,
                                                      RV_COUNT(client_tool_keys), NULL};

void config_read_client_tools(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_tools *t = (struct rv_agent_tools *)((char *)target - offsetof(struct rv_agent_tools, client));
    const char *outer = r->path;
    char path[40];

    t->client = config_loader_items(r, node, "client_tools",
                                    RV_LIST_OF("a list of maps with a name", RV_MAX_CLIENT_TOOLS, sizeof *t->client),
                                    &t->n_client);
    for (size_t i = 0; i < t->n_client; i++) {
        snprintf(path, sizeof path, "client_tools[%zu].", i);
        r->path = path;
        t->client[i].src = node->items[i]->src;
        rv_keys_read(r, node->items[i], client_tool_keys, RV_COUNT(client_tool_keys), &t->client[i]);
        r->path = outer;
    }
}

/* --- checks --- */

static bool is_name(rv_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!rv_is_letter(name.ptr[i]) && !rv_is_digit(name.ptr[i]) && name.ptr[i] != '_' && name.ptr[i] != '-')
            return false;
    return name.len >= 1 && name.len <= RV_MAX_CLIENT_TOOL_NAME;
}

/* Names by which the engine knows something else. */
static bool is_taken(const char *name)
{
    return strcmp(name, RV_TOOL_ASK_AGENT) == 0 || strcmp(name, "final_result") == 0;
}

static bool is_listed(const struct rv_agent *a, const char *name)
{
    for (size_t i = 0; i < a->tools.allowed.n; i++)
        if (strcmp(a->tools.allowed.items[i], name) == 0)
            return true;
    return a->declared.doc && rv_agentdoc_names_tool(a->declared.doc, name);
}

bool rv_client_tool_collides(const struct rv_agent *a, const char *name)
{
    return is_taken(name) || is_listed(a, name);
}

static void check(struct rv_loader *l, const struct rv_agent *a, size_t at)
{
    const struct rv_client_tool *t = &a->tools.client[at];
    rv_str name = rv_utf8_cut(rv_str_of(t->name), 80);
    size_t same = 0;

    while (same < at && strcmp(a->tools.client[same].name, t->name) != 0)
        same++;
    if (t->name[0] && !is_name(rv_str_of(t->name)))
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &t->src, "1 to 64 letters, digits, - and _",
                        "agent \"%s\": client_tools: \"%.*s\" is not the name of a tool", a->name, RV_STR_ARG(name));
    else if (rv_client_tool_collides(a, t->name))
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &t->src, "choose another name",
                        "agent \"%s\": client_tools: the stage has a tool \"%.*s\" already", a->name, RV_STR_ARG(name));
    else if (same < at)
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &t->src, "choose another name",
                        "agent \"%s\": client_tools: two tools have the name \"%.*s\"", a->name, RV_STR_ARG(name));
    if (strlen(t->description) > RV_MAX_CLIENT_TOOL_WORDS)
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &t->src, "shorten it",
                        "agent \"%s\": client_tools: the description of \"%.*s\" has more than %zu bytes", a->name,
                        RV_STR_ARG(name), RV_MAX_CLIENT_TOOL_WORDS);
}

void config_check_client_tools(struct rv_loader *l, const struct rv_agent *a)
{
    if (a->tools.n_client > 0 && !a->has_llm)
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &a->tools.client_src, "set has_llm, or leave it out",
                        "agent \"%s\": client_tools are for models, and the stage does not call one", a->name);
    if (a->tools.n_client > 0 && a->each.list)
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &a->tools.client_src, "leave one of the two out",
                        "agent \"%s\": client_tools cannot be called for each element of a list", a->name);
    for (size_t i = 0; i < a->tools.n_client; i++)
        check(l, a, i);
}

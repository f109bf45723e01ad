/* `mcp`: a pipeline may be a tool, a prompt or a resource of reeve's own MCP server. */
#include "config/mcp.h"

#include <stddef.h>
#include <string.h>

#include "config/config_internal.h"

static const struct rv_term offers[] = {
    [RV_MCP_OFFER_TOOL] = {"tool", "a model of the client calls it"},
    [RV_MCP_OFFER_PROMPT] = {"prompt", "a person at the client picks it; its output are messages for a model"},
    [RV_MCP_OFFER_RESOURCE] = {"resource", "the client reads it at its address; its output is the content"},
    [RV_MCP_OFFER_NONE] = {"none", "clients do not see it"},
};
RV_EACH_HAS_ROW(offers, RV_N_MCP_OFFERS);
static const struct rv_term_list offer_list = {"mcp_offer", "way to offer a pipeline", offers, RV_COUNT(offers)};

static const struct rv_term tasks[] = {
    [RV_MCP_TASKS_OPTIONAL] = {"optional", "a client that does not take tasks waits for the result"},
    [RV_MCP_TASKS_REQUIRED] = {"required", "a client that does not take tasks gets an error"},
};
RV_EACH_HAS_ROW(tasks, RV_N_MCP_OFFER_TASKS);
static const struct rv_term_list task_list = {"mcp_tasks", "need of tasks", tasks, RV_COUNT(tasks)};

#define AT(member) offsetof(struct rv_mcp_offer_config, member)
const struct rv_key config_mcp_offer_keys[RV_N_MCP_OFFER_KEYS] = {
    {"offer", RV_KEY_TERM, AT(kind), .terms = &offer_list, .default_text = "\"tool\"",
     .doc = "What the pipeline is to clients."},
    {"uri", RV_KEY_STR, AT(uri),
     .doc = "Address of the resource, such as notes://today, or a template with each of the inputs once, such as "
            "notes://{day}/text; an input has no / in it."},
    {"mime_type", RV_KEY_STR, AT(mime_type), .doc = "Type of the resource; unset: text/plain."},
    {"tasks", RV_KEY_TERM, AT(tasks), .terms = &task_list, .default_text = "\"optional\"",
     .doc = "Whether a call of the tool needs a client that takes tasks."},
};

const char *rv_mcp_offer_text(enum rv_mcp_offer_kind kind)
{
    return offers[kind].text;
}

bool rv_mcp_uri_next(rv_str *at, rv_str *before, rv_str *name)
{
    const char *open = at->len > 0 ? memchr(at->ptr, '{', at->len) : NULL;
    size_t n = open ? (size_t)(open - at->ptr) : at->len;
    const char *close = open ? memchr(open, '}', at->len - n) : NULL;

    *before = (rv_str){at->ptr, close ? n : at->len};
    if (!close)
        return false;
    *name = (rv_str){open + 1, (size_t)(close - open) - 1};
    *at = (rv_str){close + 1, at->len - n - name->len - 2};
    return true;
}

/* scheme ":" and more, of the characters that addresses have; reeve's own scheme is that of the store. */
static const char *fault_of(rv_str uri)
{
    const char *colon = memchr(uri.ptr, ':', uri.len);
    size_t n = colon ? (size_t)(colon - uri.ptr) : 0;

    if (n == 0 || !rv_is_letter(uri.ptr[0]) || n + 1 == uri.len || uri.len > RV_MCP_OFFER_URI)
        return "\"uri\" must be an address with a scheme, of at most 512 bytes";
    for (size_t i = 0; i < n; i++)
        if (!rv_is_letter(uri.ptr[i]) && !rv_is_digit(uri.ptr[i]) && !strchr("+-.", uri.ptr[i]))
            return "\"uri\" must begin with a scheme: letters, digits, +, - and .";
    for (size_t i = 0; i < uri.len; i++)
        if (uri.ptr[i] <= ' ' || uri.ptr[i] > '~' || strchr("\"<>\\^`|", uri.ptr[i]))
            return "\"uri\" has a character that addresses do not have";
    return rv_str_eq((rv_str){uri.ptr, n}, RV_STR_LIT("reeve")) ? "addresses of the scheme reeve are those of the store"
                                                                : NULL;
}

static void find(struct rv_loader *l, const struct rv_node *node, const char *hint, const char *text)
{
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, &node->src, hint, "mcp: %s", text);
}

/* Each of the inputs stands in the template once, and nothing else does. */
static void check_template(struct rv_loader *l, const struct rv_node *node, rv_str uri)
{
    static const char hint[] = "write inputs: [] for an address, and the names in { } as inputs for a template";
    const struct rv_str_list *inputs = &l->p->inputs;
    rv_str rest = uri, before, name;
    char near[RV_HINT_MAX] = "";
    size_t n = 0;

    while (rv_mcp_uri_next(&rest, &before, &name)) {
        size_t i = 0;
        while (i < inputs->n && !rv_str_is(name, inputs->items[i]))
            i++;
        if (i == inputs->n) {
            config_name_hint(l->findings, name, "inputs", inputs->items, inputs->n, near);
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &node->src, near[0] ? near : hint,
                            "mcp: \"uri\" names \"%.*s\", which is not one of the inputs", RV_STR_ARG(name));
            return;
        }
        n++;
    }
    if (memchr(before.ptr, '{', before.len) || memchr(before.ptr, '}', before.len))
        find(l, node, "write {name}", "a { or } of \"uri\" has no other one");
    else if (n != inputs->n || !inputs->is_set)
        find(l, node, hint, "the inputs of a resource are those that its \"uri\" names");
}

/* Keys that mean something to one kind of offer only. */
static void check_kind(struct rv_loader *l, const struct rv_node *map)
{
    static const struct {
        const char *key, *text, *hint;
        int kind;
    } rows[] = {
        {"uri", "\"uri\" belongs to a resource", "write offer: resource", RV_MCP_OFFER_RESOURCE},
        {"mime_type", "\"mime_type\" belongs to a resource", "write offer: resource", RV_MCP_OFFER_RESOURCE},
        {"tasks", "\"tasks\" belongs to a tool", "leave it out", RV_MCP_OFFER_TOOL},
    };

    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        const struct rv_node *value = rv_node_get(map, rows[i].key);
        if (value && l->p->mcp.kind != rows[i].kind)
            find(l, value, rows[i].hint, rows[i].text);
    }
}

void config_check_mcp_offer(struct rv_loader *l)
{
    const struct rv_node *map = rv_node_get(l->root, "mcp"), *uri = rv_node_get(map, "uri");

    if (!map || map->kind != RV_NODE_MAP)
        return;
    check_kind(l, map);
    if (l->p->mcp.kind != RV_MCP_OFFER_RESOURCE)
        return;
    const char *fault = uri && uri->kind == RV_NODE_STR && uri->text.len > 0 ? fault_of(uri->text) : NULL;
    if (!uri || uri->kind != RV_NODE_STR || uri->text.len == 0)
        find(l, map, "write uri: notes://today", "a resource needs the address \"uri\"");
    else if (fault)
        find(l, uri, "such as notes://today", fault);
    else
        check_template(l, uri, uri->text);
}

/* Keys whose values are maps of their own: limits, routing, chained_map; and the model's name. */
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

const struct rv_agentdoc_limit_key rv_agentdoc_limit_keys[RV_AGENTDOC_LIMITS] = {
    {"request_limit", offsetof(struct rv_agentdoc_limits, request_limit),
     "Model requests of one turn. Unset: `execution.agent_request_limit`."},
    {"tool_calls_limit", offsetof(struct rv_agentdoc_limits, tool_calls_limit), "Calls of tools in one turn."},
    {"input_tokens_limit", offsetof(struct rv_agentdoc_limits, input_tokens_limit), "Tokens sent in one turn."},
    {"output_tokens_limit", offsetof(struct rv_agentdoc_limits, output_tokens_limit), "Tokens received in one turn."},
    {"total_tokens_limit", offsetof(struct rv_agentdoc_limits, total_tokens_limit),
     "Tokens of one turn, both ways. Unset: `execution.agent_token_limit`."},
};

static void unknown_key(struct rv_agentdoc_reading *r, const struct rv_node *key, const char *const *names, size_t n)
{
    rv_agentdoc_near(r, RV_SEVERITY_WARNING, &key->src, rv_nearest(key->text, names, n),
                     rv_agentdoc_listed(r, "the keys are ", names, n), "%s%.*s has no effect", r->keys.path,
                     RV_STR_ARG(key->text));
}

static bool is_map(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key)
{
    if (node->kind == RV_NODE_MAP)
        return true;
    rv_keys_wrong_type(&r->keys, node, key, "a map");
    return false;
}

void rv_agentdoc_read_limits(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field)
{
    const struct rv_node *map = field->value;
    const char *names[RV_AGENTDOC_LIMITS];

    for (size_t i = 0; i < RV_AGENTDOC_LIMITS; i++)
        names[i] = rv_agentdoc_limit_keys[i].name;
    if (!is_map(r, map, "limits"))
        return;
    r->doc->limits_src = map->src;
    r->keys.path = "limits.";
    for (size_t i = 0; i < map->n; i++) {
        const struct rv_agentdoc_limit_key *row = NULL;
        for (size_t k = 0; k < RV_AGENTDOC_LIMITS; k++)
            if (rv_str_is(map->keys[i]->text, names[k]))
                row = &rv_agentdoc_limit_keys[k];
        if (!row)
            unknown_key(r, map->keys[i], names, RV_AGENTDOC_LIMITS);
        else if (map->items[i]->kind != RV_NODE_NULL)
            rv_agentdoc_int(r, map->items[i], row->name, 1, (int64_t *)(void *)((char *)&r->doc->limits + row->offset));
    }
    r->keys.path = NULL;
}

static void read_routes(struct rv_agentdoc_reading *r, const struct rv_node *list)
{
    struct rv_str_list *routes = &r->doc->routes;

    rv_keys_str_list(&r->keys, list, "agents", routes);
    for (size_t i = 0; i < routes->n; i++)
        if (!rv_agentdoc_is_name(rv_str_of(routes->items[i])))
            rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &routes->srcs[i], "write the agent's name",
                            "routing.agents has \"%.60s\", which is no name", routes->items[i]);
    if (routes->is_set && routes->n == 0)
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &list->src, "leave routing out if it is no router",
                        "routing.agents names no agent");
}

void rv_agentdoc_read_routing(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field)
{
    static const char *const names[] = {"agents", "fallback"};
    const struct rv_node *map = field->value;
    const struct rv_node *agents = rv_node_get(map, "agents");
    const struct rv_node *fallback = rv_node_get(map, "fallback");

    if (!is_map(r, map, "routing"))
        return;
    r->keys.path = "routing.";
    for (size_t i = 0; i < map->n; i++)
        if (!rv_str_is(map->keys[i]->text, "agents") && !rv_str_is(map->keys[i]->text, "fallback"))
            unknown_key(r, map->keys[i], names, RV_COUNT(names));
    if (agents)
        read_routes(r, agents);
    else
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &map->src, "list the agents it may lead to",
                        "routing.agents is required");
    if (fallback && fallback->kind != RV_NODE_NULL)
        rv_agentdoc_word(r, fallback, "fallback", &r->doc->routing_fallback);
    r->keys.path = NULL;
}

void rv_agentdoc_read_chained_map(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field)
{
    const struct rv_node *map = field->value;
    const char *text;

    if (!is_map(r, map, "chained_map"))
        return;
    r->keys.path = "chained_map.";
    for (size_t i = 0; i < map->n; i++)
        if (rv_agentdoc_text(r, map->items[i], map->keys[i]->text.ptr, &text) && !text[0])
            rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &map->items[i]->src, "write the tool's parameter",
                            "chained_map.%s is empty", map->keys[i]->text.ptr);
    r->keys.path = NULL;
}

void rv_agentdoc_read_model(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field)
{
    struct rv_agentdoc *d = r->doc;
    const struct rv_node *node = field->value;
    const char *colon, *text;
    rv_buf full = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    bool overrides = rv_str_is(field->row ? rv_str_of(field->row->name) : field->key->text, "override_model");

    if (!rv_agentdoc_text(r, node, field->key->text.ptr, &text))
        return;
    colon = strchr(text, ':');
    if (!text[0] || colon == text || (colon && !colon[1]) || strpbrk(text, " \t\r\n")) {
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &node->src, "such as openai:gpt-4.1",
                        "%s must be provider:model, not \"%.60s\"", field->key->text.ptr, text);
        return;
    }
    if (d->model && d->model_overrides != overrides)
        rv_keys_finding(&r->keys, RV_SEVERITY_WARNING, overrides ? &d->model_src : &node->src,
                        "delete it: override_model wins", "the key \"model\" has no effect");
    if (d->model && d->model_overrides)
        return;
    rv_buf_puts(&full, colon ? "" : "openai:");
    rv_buf_puts(&full, text);
    d->model = full.rc == 0 ? rv_arena_dup(r->keys.arena, rv_buf_str(&full)) : NULL;
    if (!d->model)
        r->keys.rc = RV_E_NOMEM;
    d->model_text = text;
    d->model_overrides = overrides;
    d->model_src = node->src;
    rv_buf_fini(&full);
}

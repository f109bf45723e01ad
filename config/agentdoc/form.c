/* The three forms of a document, told apart by what is written and not by what is missing, and their keys as those of
 * the flat form. What a form does not read is a warning, never dropped in silence. */
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"
#include "coreengine/lang/lang.h"

static const char *const config_keys[] = {
    "temperature",     "max_iterations",    "max_tokens",       "limits", "structured_output",
    "routing_enabled", "routing_max_turns", "observation_mode", "tools",  "resources",
};
static const char *const response_keys[] = {"properties", "required", "$defs", "definitions", "additionalProperties"};
/* Columns of a stored row that say nothing about the agent. */
static const char *const row_columns[] = {
    "id",         "name",         "kind",    "description", "content",     "json_schema", "created_at",
    "updated_at", "deleted_at",   "user_id", "tenant_id",   "graph_edges", "metadata",    "embedding",
    "source",     "content_hash", "enabled", "icon",        "category",    "title",
};
/* Of JSON Schema and of catalogues: they are kept and mean nothing to a run. */
static const char *const annotations[] = {"$schema", "$id", "examples", "$comment", "icon", "enabled"};

static bool is_one_of(rv_str name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rv_str_is(name, names[i]))
            return true;
    return false;
}

static const struct rv_node *key_of(const struct rv_node *map, const char *key)
{
    for (size_t i = 0; i < map->n; i++)
        if (rv_str_is(map->keys[i]->text, key))
            return map->keys[i];
    return NULL;
}

static void add(struct rv_agentdoc_reading *r, const struct rv_node *key, const struct rv_node *value,
                const struct rv_agentdoc_key *row)
{
    if (r->n_fields < r->max_fields)
        r->fields[r->n_fields++] = (struct rv_agentdoc_field){key, value, row};
}

/* Put as an agent it would be one without a prompt, that takes the place of an agent of its name. */
static void not_an_agent(struct rv_agentdoc_reading *r, const struct rv_node *key)
{
    rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &key->src,
                        "write a document for each agent; `reeve run` takes a pipeline as it is",
                        "the key \"agents\" belongs to a pipeline or a team, not to an agent");
}

static void no_effect(struct rv_agentdoc_reading *r, const struct rv_node *key, const char *near, const char *otherwise)
{
    agentdoc_near(r, RV_SEVERITY_WARNING, &key->src, near, otherwise, "the key \"%.*s\" has no effect",
                  RV_STR_ARG(key->text));
}

/* --- Flat --- */

/* Keys of Docker Agent, LangGraph, Pydantic AI and CrewAI. */
static const struct rv_key_word other_tools[] = {
    {"instruction instructions prompt systemprompt systemmessage system persona role goal backstory",
     "the system prompt is `description`"},
    {"subagents handoffs delegates team", "agents ask others with a tool: `tools: [{name: ask_agent}]`"},
    {"toolsets functions plugins", "name each tool: `tools: [{name: TOOL}]`"},
    {"maxiterations maxturns maxsteps maxrequests recursionlimit usagelimits",
     "a turn is limited by `limits: {request_limit: NUMBER}`"},
    {"budget usd maxcost maxcostusd maxusd", "the cost of runs is limited by `budget` of a pipeline, and by quotas"},
    {"outputtype outputschema responseformat schema", "describe the output in `properties`"},
    {"provider llm", "write `model: PROVIDER:MODEL`"},
    {0},
};

static void add_flat(struct rv_agentdoc_reading *r, const struct rv_node *key, const struct rv_node *value)
{
    const struct rv_agentdoc_key *row = agentdoc_key_of(key->text);
    const char *said;
    bool is_quiet = (key->text.len > 1 && memcmp(key->text.ptr, "x-", 2) == 0) ||
                    is_one_of(key->text, annotations, RV_COUNT(annotations));

    if (rv_str_is(key->text, "title"))
        return; /* a name for the schema, which is none of the agent's */
    if (rv_str_is(key->text, "agents")) {
        not_an_agent(r, key);
    } else if (!row && !is_quiet) {
        said = rv_key_word_says(other_tools, key->text);
        no_effect(r, key, said ? NULL : agentdoc_nearest_key(key->text),
                  said ? said : "it is only kept; begin the key with \"x-\" if that is wanted");
    }
    add(r, key, value, row);
}

static void gather_flat(struct rv_agentdoc_reading *r, const struct rv_node *map)
{
    for (size_t i = 0; i < map->n; i++)
        add_flat(r, map->keys[i], map->items[i]);
}

/* --- Nested --- */

static bool is_same(const struct rv_node *a, const struct rv_node *b)
{
    return a->kind == b->kind && a->kind != RV_NODE_LIST && a->kind != RV_NODE_MAP && rv_str_eq(a->text, b->text);
}

static void gather_nested(struct rv_agentdoc_reading *r, const struct rv_node *map, const struct rv_node *extra)
{
    bool is_map = extra->kind == RV_NODE_MAP; /* else what stands beside it is still there */

    if (!is_map)
        rv_keys_add_wrong_type(&r->keys, extra, "json_schema_extra", "a map");
    for (size_t i = 0; i < map->n; i++) {
        const struct rv_node *key = map->keys[i];
        const struct rv_node *inner = is_map ? rv_node_get(extra, key->text.ptr) : NULL;
        if (rv_str_is(key->text, "json_schema_extra"))
            continue;
        if (!inner)
            add_flat(r, key, map->items[i]);
        else if (!is_same(map->items[i], inner))
            no_effect(r, key, NULL, "the one in json_schema_extra wins: delete one of them");
    }
    if (is_map)
        gather_flat(r, extra);
}

/* --- Legacy --- */

static void add_as(struct rv_agentdoc_reading *r, const struct rv_node *map, const char *key, const char *name)
{
    const struct rv_node *value = agentdoc_set(map, key);

    if (value)
        add(r, key_of(map, key), value, agentdoc_key_of(rv_str_of(name)));
}

static void gather_response(struct rv_agentdoc_reading *r, const struct rv_node *response)
{
    if (!response)
        return;
    if (response->kind != RV_NODE_MAP) {
        rv_keys_add_wrong_type(&r->keys, response, "response_schema", "a map");
        return;
    }
    for (size_t i = 0; i < RV_COUNT(response_keys); i++)
        add_as(r, response, response_keys[i], response_keys[i]);
    for (size_t i = 0; i < response->n; i++) {
        const struct rv_node *key = response->keys[i];
        bool is_quiet = rv_str_is(key->text, "type") || rv_str_is(key->text, "title") ||
                        rv_str_is(key->text, "description") || is_one_of(key->text, annotations, RV_COUNT(annotations));
        if (!is_quiet && !is_one_of(key->text, response_keys, RV_COUNT(response_keys)))
            no_effect(r, key, rv_nearest(key->text, response_keys, RV_COUNT(response_keys)),
                      "a legacy response_schema gives properties, required and $defs only");
    }
}

/* What a map of the legacy form is: either or both. */
enum legacy { LEGACY_ROW = 1, LEGACY_CONFIG = 2 };

static void warn_of_legacy(struct rv_agentdoc_reading *r, const struct rv_node *map, unsigned is)
{
    static const char *const others[] = {"model", "model_name", "response_schema"};

    for (size_t i = 0; i < map->n; i++) {
        const struct rv_node *key = map->keys[i];
        bool is_known = ((is & LEGACY_ROW) && is_one_of(key->text, row_columns, RV_COUNT(row_columns))) ||
                        ((is & LEGACY_CONFIG) && (is_one_of(key->text, config_keys, RV_COUNT(config_keys)) ||
                                                  is_one_of(key->text, others, RV_COUNT(others)))) ||
                        is_one_of(key->text, annotations, RV_COUNT(annotations));
        if (!is_known && map->items[i]->kind != RV_NODE_NULL)
            no_effect(r, key, rv_nearest(key->text, config_keys, RV_COUNT(config_keys)),
                      "the legacy form does not read it: write the document in the flat form");
    }
}

/* row: the stored row; config: its json_schema, or the row itself, or NULL. */
static void gather_legacy(struct rv_agentdoc_reading *r, const struct rv_node *row, const struct rv_node *config)
{
    const struct rv_node *content = agentdoc_set(row, "content");
    bool from_content = content && (content->kind != RV_NODE_STR || content->text.len > 0);

    add_as(r, row, "name", "name");
    add_as(r, row, from_content ? "content" : "description", "description");
    if (config) {
        if (config != row && !agentdoc_set(row, "name"))
            add_as(r, config, "name", "name");
        add_as(r, config, agentdoc_set(config, "model_name") ? "model_name" : "model", "model");
        for (size_t i = 0; i < RV_COUNT(config_keys); i++)
            add_as(r, config, config_keys[i], config_keys[i]);
        gather_response(r, agentdoc_set(config, "response_schema"));
    }
    warn_of_legacy(r, row, config == row ? LEGACY_ROW | LEGACY_CONFIG : LEGACY_ROW);
    if (config && config != row)
        warn_of_legacy(r, config, LEGACY_CONFIG);
}

/* --- Which one --- */

/* A row whose json_schema is a whole document: its own columns say nothing. */
static void warn_of_row(struct rv_agentdoc_reading *r, const struct rv_node *row, const struct rv_node *document)
{
    const struct rv_node *content = agentdoc_set(row, "content");
    const struct rv_node *description = rv_node_get(document, "description");

    if (content && !(description && is_same(content, description)))
        no_effect(r, key_of(row, "content"), NULL, "the prompt is json_schema.description");
    for (size_t i = 0; i < row->n; i++)
        if (!is_one_of(row->keys[i]->text, row_columns, RV_COUNT(row_columns)))
            no_effect(r, row->keys[i], NULL, "the document is in json_schema: write it there");
}

static bool has_both(const struct rv_node *map)
{
    return rv_node_get(map, "name") && rv_node_get(map, "description");
}

static bool is_legacy(const struct rv_node *root)
{
    return !has_both(root) &&
           (rv_node_get(root, "content") || rv_node_get(root, "response_schema") || rv_node_get(root, "model_name"));
}

static void gather_row(struct rv_agentdoc_reading *r, const struct rv_node *row)
{
    const struct rv_node *inner = agentdoc_set(row, "json_schema");
    enum rv_agentdoc_form form = RV_AGENTDOC_LEGACY;

    if (inner && inner->kind != RV_NODE_MAP) {
        rv_keys_add_wrong_type(&r->keys, inner, "json_schema", "a map");
        return;
    }
    if (inner && agentdoc_set(inner, "json_schema_extra"))
        form = RV_AGENTDOC_NESTED;
    else if (inner && has_both(inner))
        form = RV_AGENTDOC_FLAT;
    r->doc->form = form;
    if (form == RV_AGENTDOC_LEGACY) {
        gather_legacy(r, row, inner);
        return;
    }
    warn_of_row(r, row, inner);
    if (form == RV_AGENTDOC_NESTED)
        gather_nested(r, inner, agentdoc_set(inner, "json_schema_extra"));
    else
        gather_flat(r, inner);
}

static size_t n_keys_below(const struct rv_node *node, int levels)
{
    size_t n = node->n + 4;

    for (size_t i = 0; levels > 0 && node->kind == RV_NODE_MAP && i < node->n; i++)
        if (node->items[i]->kind == RV_NODE_MAP)
            n += n_keys_below(node->items[i], levels - 1);
    return n;
}

void agentdoc_gather(struct rv_agentdoc_reading *r, const struct rv_node *root)
{
    r->max_fields = n_keys_below(root, 2);
    r->fields = agentdoc_room(r, r->max_fields, sizeof *r->fields);
    if (!r->fields)
        return;
    for (int i = 0; i < 2 && !r->keys.owner_name; i++) { /* so that messages can say whose they are */
        const struct rv_node *in = i == 0 ? rv_node_get(root, "json_schema_extra") : root;
        const struct rv_node *name = rv_node_get(in, "name");
        if (name && name->kind == RV_NODE_STR && rv_agentdoc_is_name(name->text))
            r->keys.owner_name = name->text.ptr;
    }
    const struct rv_node *extra = rv_node_get(root, "json_schema_extra");
    if (extra && extra->kind != RV_NODE_NULL) {
        r->doc->form = RV_AGENTDOC_NESTED;
        gather_nested(r, root, extra);
    } else if (rv_node_get(root, "json_schema")) {
        gather_row(r, root);
    } else if (is_legacy(root)) {
        r->doc->form = RV_AGENTDOC_LEGACY;
        gather_legacy(r, root, root);
    } else {
        r->doc->form = RV_AGENTDOC_FLAT;
        gather_flat(r, root);
    }
}

/* The tables of models: what a role can say of its model, its price, and the way to its provider. */
#include <stddef.h>

#include "config/models_internal.h"

#define AT(member)   offsetof(struct raw_model, member)
#define MAX_WAIT_MS  3600000 /* an hour: longer waits are mistakes */
#define MAX_REQUEST  1e9     /* bytes */
#define MAX_PER_MIN  1e12
#define MAX_AT_ONCE  100000
#define MAX_ATTEMPTS 20

#define USD(key, is_required, flag, text)                                                                              \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_FLOAT, .offset = offsetof(struct raw_price, key), .required = is_required,        \
        .max = RV_MAX_USD, .is_set_offset = flag, .doc = text                                                          \
    }
static const struct rv_key price_keys[] = {
    USD(input, true, 0, "US dollars for a million tokens of input."),
    USD(output, true, 0, "US dollars for a million tokens of output."),
    USD(cached, false, offsetof(struct raw_price, has_cached),
        "The same for input that the provider had in its cache; unset: as other input."),
    USD(cache_write, false, offsetof(struct raw_price, has_cache_write),
        "The same for input that it puts there; unset: as other input."),
};
static const struct rv_key_table price_table = {
    .name = "price",
    .title = "The price of a model",
    .keys = price_keys,
    .n_keys = RV_COUNT(price_keys),
};

#define QUIRK(key, text)                                                                                               \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_BOOL, .offset = AT(sent.flag), .doc = text                                        \
    }
static const struct rv_key quirk_keys[] = {
    QUIRK(old_max_tokens, "The longest reply is called max_tokens there, not max_completion_tokens."),
    QUIRK(developer_role, "System messages have the role developer."),
    QUIRK(no_stream_usage, "Usage of a streamed reply can not be asked for."),
    QUIRK(no_parallel_calls, "Ask for one tool call at a time, where that can be said."),
    QUIRK(no_sampling, "Temperature and seed are refused."),
    QUIRK(no_tools, "The model can not call tools."),
    QUIRK(no_native_output, "The provider can not hold the model to a schema."),
    QUIRK(no_strict_output, "It can, but not strictly."),
};

/* Checks the kind alone: what is in it goes to the provider. */
static void check_map(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    if (node->kind != RV_NODE_MAP)
        rv_keys_wrong_type(r, node, "extra_body", "a map");
}

static void check_headers(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    if (node->kind != RV_NODE_MAP) {
        rv_keys_wrong_type(r, node, "headers", "a map of strings");
        return;
    }
    for (size_t i = 0; i < node->n; i++) {
        if (node->items[i]->kind != RV_NODE_STR)
            rv_keys_finding(r, RV_SEVERITY_ERROR, &node->items[i]->src, NULL, "headers.%.80s must be a string, not %s",
                            node->keys[i]->text.ptr, rv_node_kind_text(node->items[i]->kind));
    }
}

static void check_options(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    if (node->kind != RV_NODE_MAP) {
        rv_keys_wrong_type(r, node, "options", "a map");
        return;
    }
    for (size_t i = 0; i < node->n; i++) {
        if (rv_model_key_is_sent(node->keys[i]->text))
            rv_keys_finding(r, RV_SEVERITY_ERROR, &node->keys[i]->src, "write it beside \"options\"",
                            "options.%s is a key of the model itself", node->keys[i]->text.ptr);
    }
}

#define TEXT(key, about)                                                                                               \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_STR, .offset = AT(sent.text), .doc = about                                        \
    }
#define NUMBER(key, least, most, about)                                                                                \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_INT, .offset = AT(sent.number), .min = least, .max = most, .doc = about           \
    }
static const struct rv_key model_keys[] = {
    {.name = "model",
     .type = RV_KEY_STR,
     .offset = AT(name),
     .doc = "provider:model, or the model alone when provider is given."},
    {.name = "provider", .type = RV_KEY_STR, .offset = AT(provider), .doc = "Name of the provider."},
    {.name = "temperature",
     .type = RV_KEY_FLOAT,
     .offset = AT(model.temperature),
     .min = 0,
     .max = 2,
     .is_set_offset = AT(model.has_temperature),
     .doc = "Used when the stage gives none."},
    {.name = "max_tokens",
     .type = RV_KEY_INT,
     .offset = AT(model.max_tokens),
     .min = 1,
     .max = 1e8,
     .is_set_offset = AT(model.has_max_tokens),
     .doc = "Longest reply, when the stage gives none."},
    {.name = "max_request_bytes",
     .type = RV_KEY_INT,
     .offset = AT(model.max_request_bytes),
     .min = 1,
     .max = MAX_REQUEST,
     .doc = "Longer requests are refused before they are sent."},
    {.name = "optional",
     .type = RV_KEY_BOOL,
     .offset = AT(model.optional),
     .default_text = "false",
     .doc = "Leave the role out while a variable it names with ${env:} is not set; a stage that asks it then needs an "
            "error_next."},
    {.name = "fallback",
     .type = RV_KEY_STR_LIST,
     .offset = AT(model.fallback),
     .doc = "Roles that are asked instead, in this order, when this one can not answer."},
    {.name = "price",
     .type = RV_KEY_MAP,
     .offset = AT(price),
     .keys = price_keys,
     .n_keys = RV_COUNT(price_keys),
     .is_set_offset = AT(model.has_price),
     .doc = "What the model costs; unset: as the table of prices says. That has names as they are, with a date or "
            "-latest behind them, and patterns that end in *; the nearest counts."},
    {.name = "options",
     .type = RV_KEY_CUSTOM,
     .offset = AT(options),
     .read = check_options,
     .schema = "{\"type\":\"object\"}",
     .doc = "Further options, for providers that capabilities bring."},
    TEXT(base_url, "Where the provider is; unset: its usual address."),
    TEXT(api_key, "The key, as ${env:NAME} or ${file:path}; unset: the provider's usual variable."),
    TEXT(organization, "The organization that the request is counted for."),
    TEXT(project, "The project that the request is counted for."),
    TEXT(api_version, "Version of the provider's interface."),
    {.name = "headers",
     .type = RV_KEY_CUSTOM,
     .offset = AT(sent.text),
     .read = check_headers,
     .schema = "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}",
     .doc = "Further headers of each request, a map of strings."},
    {.name = "extra_body",
     .type = RV_KEY_CUSTOM,
     .offset = AT(sent.text),
     .read = check_map,
     .schema = "{\"type\":\"object\"}",
     .doc = "Further members of each request's body."},
    {.name = "quirks",
     .type = RV_KEY_MAP,
     .offset = 0,
     .keys = quirk_keys,
     .n_keys = RV_COUNT(quirk_keys),
     .is_set_offset = AT(sent.flag),
     .doc = "How the provider differs from the protocol it speaks."},
    NUMBER(connect_timeout_ms, 1, MAX_WAIT_MS, "Longest wait for a connection."),
    NUMBER(first_byte_timeout_ms, 1, MAX_WAIT_MS, "Longest wait for the beginning of an answer."),
    NUMBER(idle_timeout_ms, 1, MAX_WAIT_MS, "Longest silence within an answer."),
    NUMBER(max_attempts, 1, MAX_ATTEMPTS, "Requests that are sent for one call, where a repeat is safe."),
    NUMBER(max_retry_wait_ms, 0, MAX_WAIT_MS,
           "Longest wait between two of them; a provider that asks for more is asked again sooner."),
    NUMBER(max_concurrent, 1, MAX_AT_ONCE, "Requests at once, of all runs."),
    NUMBER(requests_per_minute, 1, MAX_PER_MIN, "Requests in a minute, of all runs."),
    NUMBER(tokens_per_minute, 1, MAX_PER_MIN, "Tokens in a minute, of all runs."),
    TEXT(ca_file, "Certificates that are trusted instead of the system's."),
    TEXT(proxy, "Address of a proxy; unset: the usual variables."),
};
static const struct rv_key_table model_table = {
    .name = "model",
    .title = "A model behind a role; the keys from base_url on, and options, go to its provider",
    .keys = model_keys,
    .n_keys = RV_COUNT(model_keys),
    .more = "\"anyOf\":[{\"required\":[\"model\"]},{\"required\":[\"provider\"]}]",
};

const struct rv_key_table *rv_model_table(void)
{
    return &model_table;
}

const struct rv_key_table *rv_price_table(void)
{
    return &price_table;
}

bool rv_model_key_is_sent(rv_str name)
{
    bool after = false;

    for (size_t i = 0; i < RV_COUNT(model_keys); i++) {
        after = after || rv_str_is(rv_str_of(model_keys[i].name), "base_url");
        if (rv_str_is(name, model_keys[i].name))
            return after;
    }
    return false;
}

bool rv_model_key_is_int(rv_str name)
{
    for (size_t i = 0; i < RV_COUNT(model_keys); i++)
        if (rv_str_is(name, model_keys[i].name))
            return model_keys[i].type == RV_KEY_INT;
    return false;
}

struct rv_price rv_price_of(const struct raw_price *raw)
{
    return (struct rv_price){
        .input = rv_micro_usd_near(raw->input),
        .output = rv_micro_usd_near(raw->output),
        .cached = raw->has_cached ? rv_micro_usd_near(raw->cached) : RV_UNSET,
        .cache_write = raw->has_cache_write ? rv_micro_usd_near(raw->cache_write) : RV_UNSET,
    };
}

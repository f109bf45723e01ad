/* The `models` section: roles, what stands behind them, and what of that must never be shown. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "config/models_internal.h"

/* --- The tables of models: what a role can say of its model, its price, and the way to its provider --- */

#define AT(member)   offsetof(struct raw_model, member)
#define MAX_WAIT_MS  3600000 /* an hour: longer waits are mistakes */
#define MAX_REQUEST  1e9     /* bytes: chosen, above any request (RV_STORE_MAX_VALUE is 256 MiB), and fits an int */
#define MAX_PER_MIN  1e12    /* requests or tokens: above what any provider allows, and exact as a double */
#define MAX_AT_ONCE  100000  /* requests: above what one process can hold open */
#define MAX_ATTEMPTS 20      /* of one call: each may cost */

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
const struct rv_key_table config_price_table = {"price", "The price of a model", price_keys, RV_COUNT(price_keys),
                                                NULL};

#define QUIRK(key, text)                                                                                               \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_BOOL, .offset = AT(sent.flag), .doc = text                                        \
    }
static const struct rv_key quirk_keys[] = {
    QUIRK(old_max_tokens, "The longest reply is called max_tokens there, not max_completion_tokens."),
    QUIRK(developer_role, "System messages have the role developer."),
    QUIRK(no_stream_usage, "Usage of a streamed reply cannot be asked for."),
    QUIRK(no_parallel_calls, "Ask for one tool call at a time, where that can be said."),
    QUIRK(no_sampling, "Temperature and seed are refused."),
    QUIRK(no_tools, "The model cannot call tools."),
    QUIRK(no_native_output, "The provider cannot hold the model to a schema."),
    QUIRK(no_strict_output, "It can, but not strictly."),
    QUIRK(no_images, "It takes no images."),
    QUIRK(no_files, "It takes no files."),
};

/* Checks the kind alone: what is in it goes to the provider. */
static void check_map(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    if (node->kind != RV_NODE_MAP)
        rv_keys_add_wrong_type(r, node, "extra_body", "a map");
}

static void check_headers(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    if (node->kind != RV_NODE_MAP) {
        rv_keys_add_wrong_type(r, node, "headers", "a map of strings");
        return;
    }
    for (size_t i = 0; i < node->n; i++) {
        if (node->items[i]->kind != RV_NODE_STR)
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->items[i]->src, NULL,
                                "headers.%.80s must be a string, not %s", node->keys[i]->text.ptr,
                                rv_node_kind_text(node->items[i]->kind));
    }
}

static void check_options(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    if (node->kind != RV_NODE_MAP) {
        rv_keys_add_wrong_type(r, node, "options", "a map");
        return;
    }
    for (size_t i = 0; i < node->n; i++) {
        if (config_model_key_is_sent(node->keys[i]->text))
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->keys[i]->src, "write it beside \"options\"",
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
    {"model", RV_KEY_STR, AT(name), .doc = "provider:model, or the model alone when provider is given."},
    {"provider", RV_KEY_STR, AT(provider), .doc = "Name of the provider."},
    {"temperature", RV_KEY_FLOAT, AT(model.temperature), .min = 0, .max = 2, .is_set_offset = AT(model.has_temperature),
     .doc = "Used when the stage gives none."},
    {"max_tokens", RV_KEY_INT, AT(model.max_tokens), .min = 1, .max = 1e8, .is_set_offset = AT(model.has_max_tokens),
     .doc = "Longest reply, when the stage gives none."},
    {"max_request_bytes", RV_KEY_INT, AT(model.max_request_bytes), .min = 1, .max = MAX_REQUEST,
     .doc = "Longer requests are refused before they are sent."},
    {"optional", RV_KEY_BOOL, AT(model.optional), .default_text = "false",
     .doc = "Leave the role out while a variable it names with ${env:} is not set; a stage that asks it then needs an "
            "error_next."},
    {"fallback", RV_KEY_STR_LIST, AT(model.fallback),
     .doc = "Roles that are asked instead, in this order, when this one cannot answer."},
    {"price", RV_KEY_MAP, AT(price), .keys = price_keys, .n_keys = RV_COUNT(price_keys),
     .is_set_offset = AT(model.has_price),
     .doc = "What the model costs; unset: as the table of prices says. That has names as they are, with a date or "
            "-latest behind them, and patterns that end in *; the nearest counts."},
    {"options", RV_KEY_CUSTOM, AT(options), .read = check_options, .schema = "{\"type\":\"object\"}",
     .doc = "Further options, for providers that capabilities bring."},
    TEXT(base_url, "Where the provider is; unset: its usual address."),
    TEXT(api_key, "The key, as ${env:NAME} or ${file:path}; unset: the provider's usual variable."),
    TEXT(organization, "The organization that the request is counted for."),
    TEXT(project, "The project that the request is counted for."),
    TEXT(api_version, "Version of the provider's interface."),
    {"headers", RV_KEY_CUSTOM, AT(sent.text), .read = check_headers,
     .schema = "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}",
     .doc = "Further headers of each request, a map of strings."},
    {"extra_body", RV_KEY_CUSTOM, AT(sent.text), .read = check_map, .schema = "{\"type\":\"object\"}",
     .doc = "Further members of each request's body."},
    {"quirks", RV_KEY_MAP, 0, .keys = quirk_keys, .n_keys = RV_COUNT(quirk_keys), .is_set_offset = AT(sent.flag),
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
const struct rv_key_table config_model_table = {
    "model", "A model behind a role; the keys from base_url on, and options, go to its provider", model_keys,
    RV_COUNT(model_keys), "\"anyOf\":[{\"required\":[\"model\"]},{\"required\":[\"provider\"]}]"};

bool config_model_key_is_sent(rv_str name)
{
    bool after = false;

    for (size_t i = 0; i < RV_COUNT(model_keys); i++) {
        after = after || rv_str_is(rv_str_of(model_keys[i].name), "base_url");
        if (rv_str_is(name, model_keys[i].name))
            return after;
    }
    return false;
}

static bool model_key_is_int(rv_str name)
{
    for (size_t i = 0; i < RV_COUNT(model_keys); i++)
        if (rv_str_is(name, model_keys[i].name))
            return model_keys[i].type == RV_KEY_INT;
    return false;
}

/* half a micro-dollar counts as one */
static int64_t micro_usd_near(double usd)
{
    return (int64_t)(usd * 1e6 + 0.5);
}

struct rv_price config_price_of(const struct raw_price *raw)
{
    return (struct rv_price){
        .input = micro_usd_near(raw->input),
        .output = micro_usd_near(raw->output),
        .cached = raw->has_cached ? micro_usd_near(raw->cached) : RV_UNSET,
        .cache_write = raw->has_cache_write ? micro_usd_near(raw->cache_write) : RV_UNSET,
    };
}

/* --- Reading --- */

struct model_read {
    struct rv_loader *l;
    struct rv_key_reader *reader;
    struct rv_model_config *out;
    struct rv_written *written;
    struct rv_indirection how;            /* of everything in this model so far */
    const struct rv_chosen_model *chosen; /* NULL: the names are read */
};

/* A string of the model with its indirections put in, in the arena; NULL: absent, or recorded as a failure. */
static const char *model_text(struct model_read *m, const struct rv_node *node)
{
    json_object *value;
    const char *text = NULL;

    if (!node || node->kind != RV_NODE_STR)
        return NULL;
    m->how.replaced = false;
    value = config_resolve_indirections(m->l, node, &m->how);
    m->written->hides_name = m->written->hides_name || m->how.replaced;
    if (value) {
        text = rv_arena_dup(m->l->arena, rv_json_str(value));
        if (!text)
            m->l->rc = RV_E_NOMEM;
    }
    json_object_put(value);
    return text;
}

static void bad_name(struct model_read *m, const struct rv_node *node)
{
    static const char hint[] = "for example \"openai:gpt-4.1-mini\", or \"scripted\"";

    if (m->written->hides_name)
        rv_keys_add_finding(m->reader, RV_SEVERITY_ERROR, &node->src, hint,
                            "must be provider:model once its ${} is put in");
    else
        rv_keys_add_finding(m->reader, RV_SEVERITY_ERROR, &node->src, hint, "must be provider:model, not \"%.*s\"",
                            RV_STR_ARG(rv_utf8_cut(node->text, 60)));
}

/* "openai:gpt-4.1-mini" at the first colon; "scripted" needs no model. */
static void split_name(struct model_read *m, const char *text, const struct rv_node *node)
{
    const char *colon;

    if ((m->how.is_missing && !m->l->opts->offline) || m->how.is_wrong)
        return; /* a finding, or the role is left out */
    colon = strchr(text, ':');
    m->out->model = colon ? colon + 1 : "";
    m->out->provider = rv_arena_dup(m->l->arena, (rv_str){text, colon ? (size_t)(colon - text) : strlen(text)});
    if (!m->out->provider)
        m->l->rc = RV_E_NOMEM;
    else if (!m->how.is_missing &&
             (!m->out->provider[0] || (!m->out->model[0] && strcmp(m->out->provider, "scripted") != 0)))
        bad_name(m, node);
}

static void set_option(struct model_read *m, const struct rv_node *key, json_object *value)
{
    if (m->l->rc == 0 && !m->out->options && !(m->out->options = json_object_new_object()))
        m->l->rc = RV_E_NOMEM;
    if (m->l->rc == 0 && rv_json_set_ref(m->out->options, key->text.ptr, value,
                                         RV_CODE_ONLY("setting a member fails without memory only, which rc says")) < 0)
        m->l->rc = RV_E_NOMEM;
}

static void read_option(struct model_read *m, const struct rv_node *key, const struct rv_node *node)
{
    bool is_whole = node->kind == RV_NODE_FLOAT && model_key_is_int(key->text) && fabs(node->f64) < 1e15;
    json_object *value = is_whole ? json_object_new_int64((int64_t)node->f64) /* 3.0 is 3, as everywhere */
                                  : config_resolve_indirections(m->l, node, &m->how);

    if (!value && is_whole)
        m->l->rc = RV_E_NOMEM;
    set_option(m, key, value);
    json_object_put(value);
}

/* What goes to the provider: the keys it has in every table, and the members of `options` beside them. */
static void read_options(struct model_read *m, const struct rv_node *map)
{
    const struct rv_node *options = rv_node_get(map, "options");

    for (size_t i = 0; i < map->n && m->l->rc == 0; i++)
        if (config_model_key_is_sent(map->keys[i]->text))
            read_option(m, map->keys[i], map->items[i]);
    for (size_t i = 0; options && options->kind == RV_NODE_MAP && i < options->n && m->l->rc == 0; i++)
        read_option(m, options->keys[i], options->items[i]);
}

bool config_is_of_capability(const struct rv_model_config *model)
{
    return model->provider && strchr(model->provider, '.');
}

/* Calls of a capability's provider are made once, by its function: what reeve does about HTTP has no effect there. */
static void warn_of_http_keys(struct model_read *m, const struct rv_node *map)
{
    static const char *const keys[] = {"fallback",       "max_request_bytes",   "max_attempts",     "max_retry_wait_ms",
                                       "max_concurrent", "requests_per_minute", "tokens_per_minute"};

    for (size_t i = 0; i < map->n && config_is_of_capability(m->out); i++)
        for (size_t k = 0; k < RV_COUNT(keys); k++)
            if (rv_str_is(map->keys[i]->text, keys[k]))
                rv_keys_add_finding(m->reader, RV_SEVERITY_WARNING, &map->keys[i]->src,
                                    k == 0 ? "max_retries of the stage asks it again, and error_next leads elsewhere"
                                           : "the capability has to see to it itself",
                                    "reeve does not keep to %s where a capability's provider answers", keys[k]);
}

static void read_mapping(struct model_read *m, const struct rv_node *map)
{
    struct raw_model raw = {.model = *m->out};
    const struct rv_key_table *table = &config_model_table;
    const struct rv_node *provider_node = rv_node_get(map, "provider");
    const struct rv_node *model_node = rv_node_get(map, "model");
    const char *provider;
    const char *model;

    rv_keys_read(m->reader, map, table->keys, table->n_keys, &raw);
    raw.model.price = config_price_of(&raw.price);
    *m->out = raw.model;
    m->how.missing_ok = raw.model.optional && !m->l->opts->models;
    if (m->chosen && m->chosen->replaces) {
        m->out->has_price = false;
        m->out->fallback = (struct rv_str_list){0};
        return;
    }
    if (m->chosen) {
        read_options(m, map);
        return;
    }
    provider = model_text(m, provider_node);
    model = model_text(m, model_node);
    if (provider && provider[0]) {
        m->out->provider = provider;
        m->out->model = model ? model : "";
    } else if (model) {
        split_name(m, model, model_node);
    } else if (!provider_node && !model_node) {
        rv_keys_add_finding(m->reader, RV_SEVERITY_ERROR, &map->src, "for example model: openai:gpt-4.1-mini",
                            "model is required");
    }
    read_options(m, map);
    warn_of_http_keys(m, map);
}

static const struct rv_chosen_model *find_chosen(const struct rv_pipeline_opts *opts, const char *role)
{
    for (size_t i = 0; i < opts->n_models; i++)
        if (strcmp(opts->models[i].role, role) == 0)
            return &opts->models[i];
    return NULL;
}

void config_split_model(const char *name, rv_str *provider, const char **model)
{
    const char *colon = strchr(name, ':');

    *model = colon ? colon + 1 : "";
    *provider = (rv_str){name, colon ? (size_t)(colon - name) : strlen(name)};
}

/* What the caller chose for all roles, as if it had been chosen for this one when the run began. */
static const struct rv_chosen_model *replace(struct rv_loader *l, const char *role, struct rv_chosen_model *to)
{
    rv_str provider;
    const char *model;

    if (!l->opts->model || l->opts->models)
        return find_chosen(l->opts, role);
    config_split_model(l->opts->model, &provider, &model);
    *to = (struct rv_chosen_model){.role = role, .provider = rv_arena_dup(l->arena, provider), .replaces = true};
    to->model = model;
    if (!to->provider) {
        l->rc = RV_E_NOMEM;
        return NULL;
    }
    config_prices_find(l, to->provider, to->model, to);
    return to;
}

static void take_chosen(struct model_read *m)
{
    m->out->provider = rv_arena_dup(m->l->arena, rv_str_of(m->chosen->provider));
    m->out->model = rv_arena_dup(m->l->arena, rv_str_of(m->chosen->model));
    if (!m->out->provider || !m->out->model)
        m->l->rc = RV_E_NOMEM;
}

static bool names_something(const struct rv_node *node)
{
    return node && node->kind == RV_NODE_STR && rv_has_indirection(node->text);
}

/* The price and the window of a model are those of the day a run began. */
static void set_price(struct model_read *m)
{
    struct rv_model_config *out = m->out;
    const struct rv_chosen_model *from = m->chosen;
    struct rv_chosen_model found = {.role = NULL};

    if (!from && !m->l->opts->models && out->provider[0]) {
        config_prices_find(m->l, out->provider, out->model, &found);
        from = &found;
    }
    if (!from)
        return;
    out->max_input_tokens = from->max_input_tokens;
    if (out->has_price || !from->has_price)
        return;
    out->has_price = out->price_from_table = true;
    out->price = from->price;
}

static const struct rv_key_word *words_of(const struct rv_key *keys)
{
    return keys == config_model_table.keys ? config_model_words : NULL;
}

struct one_model {
    struct rv_model_config *out;
    struct rv_written *written;
    bool is_dropped;
    const char *missing; /* a variable that is not set; NULL: none; borrowed */
};

static void read_model(struct rv_loader *l, const struct rv_node *key, const struct rv_node *node,
                       struct one_model *one)
{
    struct rv_model_config *out = one->out;
    struct rv_written *written = one->written;
    struct rv_key_reader reader = {.arena = l->arena,
                                   .findings = l->findings,
                                   .owner_kind = "model",
                                   .owner_name = key->text.ptr,
                                   .user = l,
                                   .words = words_of,
                                   .page = "pipelines",
                                   .hide_values = true};
    struct model_read m = {.l = l, .reader = &reader, .out = out, .written = written};
    struct rv_chosen_model replacement;

    out->role = key->text.ptr;
    out->src = key->src;
    out->provider = out->model = "";
    written->node = node;
    m.chosen = replace(l, out->role, &replacement);
    one->is_dropped = m.chosen && !m.chosen->provider;
    if (one->is_dropped)
        return;
    if (m.chosen) {
        take_chosen(&m);
        out->is_replaced = m.chosen->replaces;
        written->hides_name =
            !out->is_replaced && (names_something(node) || names_something(rv_node_get(node, "model")) ||
                                  names_something(rv_node_get(node, "provider")));
    }
    if (node->kind == RV_NODE_STR) {
        const char *text = m.chosen ? NULL : model_text(&m, node);
        if (text)
            split_name(&m, text, node);
    } else if (node->kind == RV_NODE_MAP) {
        read_mapping(&m, node);
    } else {
        rv_keys_add_finding(&reader, RV_SEVERITY_ERROR, &node->src, "for example \"openai:gpt-4.1-mini\"",
                            "must be a string or a map, not %s", rv_node_kind_text(node->kind));
    }
    if (reader.rc < 0)
        l->rc = reader.rc;
    if (l->rc == 0)
        set_price(&m);
    one->is_dropped = m.how.is_missing && out->optional && !l->opts->models;
    one->missing = m.how.missing;
}

static void note_chosen(struct rv_loader *l, const struct rv_model_config *model, bool is_dropped, const char *missing)
{
    struct rv_chosen_model *note = &l->p->internal->chosen_models[l->p->internal->n_chosen_models++];

    note->role = model->role;
    note->provider = is_dropped ? NULL : model->provider;
    note->model = is_dropped ? NULL : model->model;
    note->missing = is_dropped ? missing : NULL;
    if (is_dropped)
        return;
    note->has_price = model->price_from_table;
    note->price = note->has_price ? model->price : (struct rv_price){.cached = RV_UNSET, .cache_write = RV_UNSET};
    note->max_input_tokens = model->max_input_tokens;
    note->replaces = model->is_replaced;
}

void config_read_models(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = config_loader_of(r);
    struct rv_pipeline_internal *internal = l->p->internal;
    size_t n;

    (void)target;
    l->p->models = config_loader_items(r, node, "models",
                                       RV_MAP_OF("a map from role to model", RV_MAX_MODELS, sizeof *l->p->models), &n);
    if (!l->p->models)
        return;
    internal->has_models = true;
    internal->models = config_loader_array(l, n, sizeof *internal->models);
    internal->chosen_models = config_loader_array(l, n, sizeof *internal->chosen_models);
    for (size_t i = 0; i < n && l->rc == 0; i++) {
        struct rv_model_config *out = &l->p->models[l->p->n_models];
        struct rv_written *written = &internal->models[l->p->n_models];
        struct one_model one = {out, written, false, NULL};

        read_model(l, node->keys[i], node->items[i], &one);
        if (one.is_dropped || written->hides_name || out->is_replaced || out->price_from_table ||
            out->max_input_tokens > 0)
            note_chosen(l, out, one.is_dropped, one.missing);
        if (one.is_dropped) {
            json_object_put(out->options);
            *out = (struct rv_model_config){0};
            *written = (struct rv_written){0};
        } else {
            l->p->n_models++;
        }
    }
}

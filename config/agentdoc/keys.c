/* The keys of a flat document, one row each: where it goes, what it takes, how it is written back, what it means. The
 * order is that of the text rv_agentdoc_write_json() makes: first the contract's (p8 1.5), then our own. */
#include <stddef.h>
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

#define WORD(n, t, m) t,
static const char *const replay_words[] = {RV_REPLAY_POLICIES(WORD)};
static const char *const compaction_words[] = {RV_COMPACTIONS(WORD)};
#undef WORD
static const char *const observation_words[] = {[RV_OBSERVATION_SYNC] = "sync", [RV_OBSERVATION_DISABLED] = "disabled"};
RV_EACH_HAS_ROW(observation_words, RV_N_OBSERVATION_MODES);

/* --- Reading --- */

/* The index of a word, or -1 after a finding. */
static int read_word(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f, const char *const *words,
                     size_t n)
{
    const char *text;

    if (!agentdoc_text(r, f->value, f->row->name, &text))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i], text) == 0)
            return (int)i;
    agentdoc_near(r, RV_SEVERITY_ERROR, &f->value->src, rv_nearest(f->value->text, words, n),
                  agentdoc_listed(r, "one of: ", words, n), "%s cannot be \"%.60s\"", f->row->name, text);
    return -1;
}

static void read_type(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    static const char *const words[] = {"object"};

    read_word(r, f, words, 1);
}

static void read_name(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    agentdoc_word(r, f->value, "name", &r->doc->name);
    r->doc->name_src = f->value->src;
}

static void read_defs(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    bool is_old = strcmp(f->row->name, "definitions") == 0;

    if (r->defs)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &f->value->src, "put all definitions into $defs",
                            "it has both $defs and definitions");
    r->defs = f->value;
    r->has_definitions = r->has_definitions || is_old;
}

static void read_additional(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    if (f->value->kind != RV_NODE_BOOL && f->value->kind != RV_NODE_MAP)
        rv_keys_add_wrong_type(&r->keys, f->value, "additionalProperties", "true, false or a schema");
    else
        r->additional = f->value;
}

static void read_resources(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    r->resources = f->value;
}

static void read_temperature(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    bool overrides = strcmp(f->row->name, "override_temperature") == 0;
    double d = 0;

    if (!agentdoc_number(r, f->value, f->row->name, &d))
        return;
    if (d < 0 || d > 2) {
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &f->value->src, NULL, "%s must be 0 to 2, not %.*s",
                            f->row->name, RV_STR_ARG(f->value->text));
        return;
    }
    if (r->doc->has_temperature && r->has_override_temperature)
        return;
    r->doc->has_temperature = true;
    r->doc->temperature = d;
    r->has_override_temperature = overrides;
}

static void read_max_iterations(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    bool overrides = strcmp(f->row->name, "override_max_iterations") == 0;
    int64_t n = 0;

    if (!agentdoc_int(r, f->value, f->row->name, 1, &n) || r->has_override_max_iterations)
        return;
    r->doc->max_iterations = n;
    r->has_override_max_iterations = overrides;
}

static void read_observation(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    int i = read_word(r, f, observation_words, RV_COUNT(observation_words));

    if (i >= 0)
        r->doc->observation_mode = (enum rv_observation_mode)i;
}

static void read_replay(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    r->doc->replay = read_word(r, f, replay_words, RV_COUNT(replay_words));
}

/* Another word is not an error: before these keys existed, documents could use their names freely. */
static void read_compaction(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    const struct rv_node *value = f->value;

    r->doc->compaction = RV_UNSET;
    for (size_t i = 0; value->kind == RV_NODE_STR && i < RV_COUNT(compaction_words); i++)
        if (rv_str_is(value->text, compaction_words[i]))
            r->doc->compaction = (int)i;
    if (r->doc->compaction == RV_UNSET)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_WARNING, &value->src, "write shorten, moments or none",
                            "compaction has no effect: \"%.*s\" is not a choice",
                            RV_STR_ARG(rv_utf8_cut(value->text, 60)));
}

/* Another value is not an error: before this key existed, documents could use its name freely. */
static void read_summariser(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    const struct rv_node *value = f->value;

    if (value->kind == RV_NODE_STR && rv_agentdoc_is_name(value->text))
        agentdoc_word(r, value, f->row->name, &r->doc->moment_summariser);
    else
        rv_keys_add_finding(&r->keys, RV_SEVERITY_WARNING, &value->src, "write the name of an agent",
                            "moment_summariser has no effect: it is not the name of an agent");
}

/* Another word is not an error: before this key existed, documents could use its name freely. */
static void read_child_text(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    const struct rv_node *value = f->value;

    r->doc->child_text = value->kind == RV_NODE_STR ? rv_child_text_of(value->text) : RV_UNSET;
    if (r->doc->child_text == RV_UNSET)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_WARNING, &value->src, "write child, parent, both or final",
                            "child_text has no effect: \"%.*s\" is not a choice",
                            RV_STR_ARG(rv_utf8_cut(value->text, 60)));
}

/* `history: none` leaves nothing to give a budget to, whichever stands first. */
static void set_budget(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f, int64_t n)
{
    int64_t before = r->doc->context_token_budget;

    if ((before < 0 && n > 0) || (before > 0 && n < 0))
        rv_keys_add_finding(&r->keys, RV_SEVERITY_WARNING, &f->value->src, "delete one of them",
                            "context_token_budget has no effect beside history: none");
    if (before >= 0)
        r->doc->context_token_budget = n;
}

static void read_history(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    static const char *const words[] = {"none"};

    if (read_word(r, f, words, 1) == 0)
        set_budget(r, f, -1);
}

static void read_budget(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    int64_t n = 0;

    if (agentdoc_int(r, f->value, f->row->name, 0, &n))
        set_budget(r, f, n);
}

static void read_tags(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    rv_keys_read_str_list(&r->keys, f->value, "tags", &r->doc->tags);
}

static void read_chained_tool(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    agentdoc_word(r, f->value, "chained_tool", &r->doc->chained_tool);
    r->doc->chained_src = f->value->src;
}

/* --- Writing --- */

static void write_type(const struct rv_agentdoc *d, rv_jw *w)
{
    (void)d;
    rv_jw_kv_text(w, "type", "object");
}

static void write_name(const struct rv_agentdoc *d, rv_jw *w)
{
    rv_jw_kv_text(w, "name", d->name);
}

static void write_chained_tool(const struct rv_agentdoc *d, rv_jw *w)
{
    if (d->chained_tool)
        rv_jw_kv_text(w, "chained_tool", d->chained_tool);
}

static void write_tools(const struct rv_agentdoc *d, rv_jw *w)
{
    rv_jw_key(w, "tools");
    rv_jw_arr(w);
    for (size_t i = 0; i < d->n_tools; i++) {
        const struct rv_agentdoc_tool *t = &d->tools[i];
        rv_jw_obj(w);
        rv_jw_kv_text(w, "name", t->name);
        if (t->server_text)
            rv_jw_kv_text(w, "server", t->server_text);
        if (t->description)
            rv_jw_kv_text(w, "description", t->description);
        if (t->uri)
            rv_jw_kv_text(w, "uri", t->uri);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

static void write_model(const struct rv_agentdoc *d, rv_jw *w)
{
    if (d->model && !d->model_overrides)
        rv_jw_kv_text(w, "model", d->model_text);
}

static void write_override_model(const struct rv_agentdoc *d, rv_jw *w)
{
    if (d->model && d->model_overrides)
        rv_jw_kv_text(w, "override_model", d->model_text);
}

static void write_temperature(const struct rv_agentdoc *d, rv_jw *w)
{
    if (!d->has_temperature)
        return;
    rv_jw_key(w, "temperature");
    rv_jw_double(w, d->temperature);
}

static void write_max_iterations(const struct rv_agentdoc *d, rv_jw *w)
{
    if (d->max_iterations > 0)
        rv_jw_kv_int(w, "max_iterations", d->max_iterations);
}

static int64_t limit_of(const struct rv_agentdoc *d, size_t i)
{
    int64_t n;

    memcpy(&n, (const char *)&d->limits + agentdoc_limit_keys[i].offset, sizeof n);
    return n;
}

static void write_limits(const struct rv_agentdoc *d, rv_jw *w)
{
    bool any = false;

    for (size_t i = 0; i < RV_AGENTDOC_LIMITS; i++)
        any = any || limit_of(d, i) > 0;
    if (!any)
        return;
    rv_jw_key(w, "limits");
    rv_jw_obj(w);
    for (size_t i = 0; i < RV_AGENTDOC_LIMITS; i++)
        if (limit_of(d, i) > 0)
            rv_jw_kv_int(w, agentdoc_limit_keys[i].name, limit_of(d, i));
    rv_jw_obj_end(w);
}

static void write_observation(const struct rv_agentdoc *d, rv_jw *w)
{
    rv_jw_kv_text(w, "observation_mode", observation_words[d->observation_mode]);
}

static void write_tags(const struct rv_agentdoc *d, rv_jw *w)
{
    rv_jw_kv_list(w, "tags", &d->tags);
}

static void write_budget(const struct rv_agentdoc *d, rv_jw *w)
{
    if (d->context_token_budget > 0)
        rv_jw_kv_int(w, "context_token_budget", d->context_token_budget);
}

static void write_history(const struct rv_agentdoc *d, rv_jw *w)
{
    if (d->context_token_budget < 0)
        rv_jw_kv_text(w, "history", "none");
}

static void write_replay(const struct rv_agentdoc *d, rv_jw *w)
{
    if (d->replay != RV_UNSET)
        rv_jw_kv_text(w, "replay", replay_words[d->replay]);
}

static void write_compaction(const struct rv_agentdoc *d, rv_jw *w)
{
    if (d->compaction != RV_UNSET)
        rv_jw_kv_text(w, "compaction", compaction_words[d->compaction]);
}

static void write_summariser(const struct rv_agentdoc *d, rv_jw *w)
{
    if (d->moment_summariser)
        rv_jw_kv_text(w, "moment_summariser", d->moment_summariser);
}

static void write_child_text(const struct rv_agentdoc *d, rv_jw *w)
{
    if (d->child_text != RV_UNSET)
        rv_jw_kv_text(w, "child_text", rv_child_text_text((enum rv_child_text)d->child_text));
}

static void write_routing(const struct rv_agentdoc *d, rv_jw *w)
{
    if (!d->routes.is_set)
        return;
    rv_jw_key(w, "routing");
    rv_jw_obj(w);
    rv_jw_kv_list(w, "agents", &d->routes);
    if (d->routing_fallback)
        rv_jw_kv_text(w, "fallback", d->routing_fallback);
    rv_jw_obj_end(w);
}

/* --- The table --- */

#define AT(field) offsetof(struct rv_agentdoc, field)
#define TREE(member, without)                                                                                          \
    .kind = RV_AGENTDOC_CUSTOM, .tree = offsetof(struct rv_agentdoc_reading, member), .empty = (without)
#define CUSTOM(r, w)   .kind = RV_AGENTDOC_CUSTOM, .read = (r), .write = (w)
#define NAME_SCHEMA    "{\"type\":\"string\",\"minLength\":1,\"maxLength\":128}"
#define NUMBER         "{\"type\":[\"number\",\"string\",\"null\"],\"minimum\":0,\"maximum\":2}"
#define FROM_1         "{\"type\":[\"number\",\"string\",\"null\"],\"minimum\":1}"
#define FROM_0         "{\"type\":[\"number\",\"string\",\"null\"],\"minimum\":0}"
#define FROM_0_TO(max) "{\"type\":[\"number\",\"string\",\"null\"],\"minimum\":0,\"maximum\":" RV_LIMIT_TEXT(max) "}"
#define BOOLEAN        "{\"type\":[\"boolean\",\"string\",\"integer\"]}"
#define DEFS           "{\"type\":[\"object\",\"null\"],\"additionalProperties\":{\"type\":\"object\"}}"
#define SCHEMAS        "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"object\"}}"

static const struct rv_agentdoc_key rows[] = {
    {"type", CUSTOM(read_type, write_type), .schema = "{\"const\":\"object\"}", .type = "`object`",
     .default_text = "`object`", .forms = "all", .meaning = "What the agent's output is. There is nothing else."},
    {"description", .kind = RV_AGENTDOC_TEXT, .offset = AT(description), .schema = "{\"type\":\"string\"}",
     .type = "string", .default_text = "empty", .forms = "all",
     .meaning = "The system prompt. In a legacy row: `content`, else the row's `description`."},
    {"properties", TREE(properties, json_type_object), .src_offset = AT(properties_src), .schema = SCHEMAS,
     .type = "map of JSON Schemas", .default_text = "`{}`", .forms = "all; legacy: in `response_schema`",
     .meaning = "Fields of the output when it is structured; otherwise what the prompt asks the model to think of."},
    {"required", TREE(required, json_type_array), .schema = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}",
     .type = "list of strings", .default_text = "`[]`", .forms = "all; legacy: in `response_schema`",
     .meaning = "Properties that are never missing."},
    {"name", CUSTOM(read_name, write_name), .schema = NAME_SCHEMA, .type = "name", .default_text = "required",
     .forms = "all", .meaning = "What the agent is called: letters, digits, `-`, `_` and `.`, at most 128."},
    {"kind", .kind = RV_AGENTDOC_TEXT, .offset = AT(kind), .schema = "{\"type\":\"string\"}", .type = "string",
     .default_text = "`agent`", .forms = "flat, nested", .meaning = "What kind of row it is in a store."},
    {"version", .kind = RV_AGENTDOC_TEXT, .offset = AT(version), .schema = "{\"type\":\"string\"}", .type = "string",
     .default_text = "`1.0.0`", .forms = "flat, nested", .meaning = "For people; never compared."},
    {"short_description", .kind = RV_AGENTDOC_TEXT, .null_is_unset = true, .offset = AT(short_description),
     .schema = "{\"type\":[\"string\",\"null\"]}", .type = "string", .default_text = "unset", .forms = "flat, nested",
     .meaning = "One sentence for lists of agents."},
    {"structured_output", .kind = RV_AGENTDOC_BOOL, .null_is_unset = true, .offset = AT(structured_output),
     .schema = "{\"type\":[\"boolean\",\"string\",\"integer\",\"null\"]}", .type = "boolean", .default_text = "`false`",
     .forms = "all", .meaning = "The answer is a JSON object of `properties` instead of text."},
    {"chained_tool", CUSTOM(read_chained_tool, write_chained_tool), .null_is_unset = true,
     .schema = "{\"type\":[\"string\",\"null\"]}", .type = "name", .default_text = "unset", .forms = "flat, nested",
     .meaning = "Tool that is called with the structured output, without another model request."},
    {"tools", CUSTOM(agentdoc_read_tools, write_tools), .src_offset = AT(tools_src),
     .schema = "{\"type\":\"array\",\"maxItems\":128,\"items\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\","
               "\"required\":[\"name\"],\"properties\":{\"name\":{\"type\":\"string\"},\"server\":{\"type\":"
               "[\"string\",\"null\"]},\"mcp_server\":{\"type\":[\"string\",\"null\"]},\"description\":{\"type\":"
               "[\"string\",\"null\"]},\"uri\":{\"type\":[\"string\",\"null\"]}}}]}}",
     .type = "list of names or maps", .default_text = "`[]`", .forms = "all",
     .meaning = "The tools it may call, and no others; see below."},
    {"model", CUSTOM(agentdoc_read_model, write_model), .null_is_unset = true,
     .schema = "{\"type\":[\"string\",\"null\"]}", .type = "`provider:model`", .default_text = "unset",
     .forms = "all; legacy also `model_name`",
     .meaning = "The model, unless a request names one. A name without provider is one of `openai`."},
    {"temperature", CUSTOM(read_temperature, write_temperature), .null_is_unset = true, .schema = NUMBER,
     .type = "number, 0 to 2", .default_text = "unset", .forms = "all", .meaning = "Of each model request; 0 counts."},
    {"max_iterations", CUSTOM(read_max_iterations, write_max_iterations), .null_is_unset = true, .schema = FROM_1,
     .type = "integer, from 1", .default_text = "unset", .forms = "all", .meaning = "Model requests of one turn."},
    {"limits", CUSTOM(agentdoc_read_limits, write_limits), .null_is_unset = true,
     .schema = "{\"type\":[\"object\",\"null\"]}", .type = "map", .default_text = "unset", .forms = "all",
     .meaning = "What a turn may use up; see below."},
    {"routing_enabled", .kind = RV_AGENTDOC_BOOL, .offset = AT(routing_enabled), .schema = BOOLEAN, .type = "boolean",
     .default_text = "`true`", .forms = "all", .meaning = "A router may lead to it."},
    {"routing_max_turns", .kind = RV_AGENTDOC_INT, .offset = AT(routing_max_turns), .min = 1, .unset = INT64_MIN,
     .schema = "{\"type\":[\"number\",\"string\"],\"minimum\":1}", .type = "integer, from 1", .default_text = "`20`",
     .forms = "all", .meaning = "Turns it has once it is routed to, before the next message is classified again."},
    {"observation_mode", CUSTOM(read_observation, write_observation), .schema = "{\"enum\":[\"sync\",\"disabled\"]}",
     .type = "`sync` or `disabled`", .default_text = "`sync`", .forms = "all",
     .meaning = "Whether what it says may be observed by memory."},
    {"tags", CUSTOM(read_tags, write_tags), .schema = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}",
     .type = "list of strings", .default_text = "`[]`", .forms = "flat, nested", .meaning = "For lists of agents."},
    {"author", .kind = RV_AGENTDOC_TEXT, .null_is_unset = true, .offset = AT(author),
     .schema = "{\"type\":[\"string\",\"null\"]}", .type = "string", .default_text = "unset", .forms = "flat, nested",
     .meaning = "Who wrote it."},
    {"system_prompt", .kind = RV_AGENTDOC_TEXT, .null_is_unset = true, .offset = AT(system_prompt),
     .schema = "{\"type\":[\"string\",\"null\"]}", .type = "string", .default_text = "unset", .forms = "flat, nested",
     .meaning = "The second part of the prompt, one blank line behind `description`."},
    /* ours */
    {"override_model", CUSTOM(agentdoc_read_model, write_override_model), .null_is_unset = true,
     .schema = "{\"type\":[\"string\",\"null\"]}", .type = "`provider:model`", .default_text = "unset",
     .forms = "flat, nested", .meaning = "The model, whatever a request names."},
    {"override_temperature", CUSTOM(read_temperature, NULL), .null_is_unset = true, .schema = NUMBER,
     .type = "number, 0 to 2", .default_text = "unset", .forms = "flat, nested",
     .meaning = "Another name of `temperature`, which it wins over."},
    {"override_max_iterations", CUSTOM(read_max_iterations, NULL), .null_is_unset = true, .schema = FROM_1,
     .type = "integer, from 1", .default_text = "unset", .forms = "flat, nested",
     .meaning = "Another name of `max_iterations`, which it wins over."},
    {"max_tokens", .kind = RV_AGENTDOC_INT, .null_is_unset = true, .offset = AT(max_tokens), .min = 1, .schema = FROM_1,
     .type = "integer, from 1", .default_text = "unset", .forms = "all",
     .meaning = "Tokens of one answer of the model."},
    {"client_tools", .kind = RV_AGENTDOC_BOOL, .null_is_unset = true, .offset = AT(client_tools), .unset = 1,
     .schema = "{\"type\":[\"boolean\",\"string\",\"integer\",\"null\"]}", .type = "boolean", .default_text = "`false`",
     .forms = "flat, nested",
     .meaning = "Clients of a server may bring tools, which the model is offered beside its own and which they call "
                "themselves."},
    {"chained_map", TREE(chained_map, json_type_null), .read = agentdoc_read_chained_map, .null_is_unset = true,
     .schema = "{\"type\":[\"object\",\"null\"],\"additionalProperties\":{\"type\":\"string\",\"minLength\":1}}",
     .type = "map of strings", .default_text = "unset", .forms = "flat, nested",
     .meaning =
         "From members of the output to the parameters of `chained_tool`, where their names differ. Members that "
         "it does not name keep theirs, or are left out where the tool does not take them."},
    {"context_token_budget", CUSTOM(read_budget, write_budget), .null_is_unset = true, .schema = FROM_0,
     .type = "integer, from 0", .default_text = "the chat's", .forms = "flat, nested",
     .meaning = "Tokens of earlier messages that go into a request, newest first. 0 is the same as leaving it out."},
    {"history", CUSTOM(read_history, write_history), .null_is_unset = true, .schema = "{\"enum\":[\"none\",null]}",
     .type = "`none`", .default_text = "unset", .forms = "flat, nested",
     .meaning = "`none`: earlier messages are not shown to it."},
    {"always_include_last_messages", .kind = RV_AGENTDOC_INT, .null_is_unset = true, .offset = AT(always_include_last),
     .unset = RV_UNSET, .schema = FROM_0, .type = "integer, from 0", .default_text = "the chat's",
     .forms = "flat, nested", .meaning = "The newest messages, which are never shortened."},
    {"replay", CUSTOM(read_replay, write_replay), .null_is_unset = true,
     .schema = "{\"enum\":[\"synthesise\",\"skip\",null]}", .type = "`synthesise` or `skip`",
     .default_text = "the chat's", .forms = "flat, nested",
     .meaning = "Earlier calls of tools and their results: shown again as calls, or left out."},
    {"compaction", CUSTOM(read_compaction, write_compaction), .null_is_unset = true,
     .schema = "{\"enum\":[\"shorten\",\"moments\",\"none\",null]}", .type = "`shorten`, `moments` or `none`",
     .default_text = "the chat's", .forms = "flat, nested",
     .meaning = "Older answers: both ends of long ones are shown, each becomes a hint at the moment that covers it, or "
                "all are shown whole."},
    {"moment_token_threshold", .kind = RV_AGENTDOC_INT, .null_is_unset = true, .offset = AT(moment_token_threshold),
     .unset = RV_UNSET, .schema = FROM_0, .type = "integer, from 0", .default_text = "the chat's",
     .forms = "flat, nested", .meaning = "Tokens of a session after which its turns become a moment. 0: none is made."},
    {"moment_max_inject", .kind = RV_AGENTDOC_INT, .null_is_unset = true, .offset = AT(moment_max_inject),
     .max = RV_MOMENT_MAX_INJECT, .unset = RV_UNSET, .schema = FROM_0_TO(RV_MOMENT_MAX_INJECT),
     .type = "integer, 0 to 50", .default_text = "the chat's", .forms = "flat, nested",
     .meaning = "The newest moments of the session that are put before its history."},
    {"moment_max_tokens", .kind = RV_AGENTDOC_INT, .null_is_unset = true, .offset = AT(moment_max_tokens),
     .max = RV_MOMENT_MAX_TOKENS, .unset = RV_UNSET, .schema = FROM_0_TO(RV_MOMENT_MAX_TOKENS),
     .type = "integer, 0 to " RV_LIMIT_TEXT(RV_MOMENT_MAX_TOKENS), .default_text = "the chat's",
     .forms = "flat, nested", .meaning = "Tokens of their text, beside the budget; the oldest are left out first."},
    {"moment_summariser", CUSTOM(read_summariser, write_summariser), .null_is_unset = true,
     .schema = "{\"type\":[\"string\",\"null\"]}", .type = "name of an agent", .default_text = "the chat's",
     .forms = "flat, nested",
     .meaning = "The agent that writes, as a task of a worker, the summary of each chunk of the session."},
    {"child_text", CUSTOM(read_child_text, write_child_text), .null_is_unset = true,
     .schema = "{\"enum\":[\"child\",\"parent\",\"both\",\"final\",null]}",
     .type = "`child`, `parent`, `both` or `final`", .default_text = "the pipeline's, else `final`",
     .forms = "flat, nested",
     .meaning = "When it asks another agent: whose words people are shown, and which are kept as the answer."},
    {"routing", CUSTOM(agentdoc_read_routing, write_routing), .null_is_unset = true,
     .schema = "{\"type\":[\"object\",\"null\"],\"required\":[\"agents\"],\"properties\":{\"agents\":{\"type\":"
               "\"array\",\"minItems\":1,\"items\":{\"type\":\"string\"}},\"fallback\":{\"type\":[\"string\","
               "\"null\"]}}}",
     .type = "map", .default_text = "unset", .forms = "flat, nested",
     .meaning = "Makes it a router: `agents` are where it may lead, `fallback` (unset: `general`) is who answers when "
                "none of them fits."},
    {"$defs", TREE(defs, json_type_null), .read = read_defs, .null_is_unset = true, .schema = DEFS,
     .type = "map of JSON Schemas", .default_text = "unset", .forms = "all; legacy: in `response_schema`",
     .meaning = "Schemas that `$ref` can name."},
    {"definitions", CUSTOM(read_defs, NULL), .null_is_unset = true, .schema = DEFS, .type = "map of JSON Schemas",
     .default_text = "unset", .forms = "all; legacy: in `response_schema`",
     .meaning = "The older name of `$defs`; written back as that."},
    {"additionalProperties", TREE(additional, json_type_null), .read = read_additional,
     .schema = "{\"type\":[\"boolean\",\"object\"]}", .type = "boolean or JSON Schema", .default_text = "`false`",
     .forms = "all; legacy: in `response_schema`", .meaning = "Whether a structured output may have further members."},
    {"resources", .kind = RV_AGENTDOC_CUSTOM, .read = read_resources, .null_is_unset = true,
     .schema = "{\"type\":[\"array\",\"null\"]}", .type = "list", .default_text = "unset", .forms = "all",
     .meaning = "Older: each becomes a tool. In the nested form it is read by its `uri` or `uri_pattern`, elsewhere it "
                "is called by its name."},
};

const struct rv_agentdoc_key *agentdoc_keys(size_t *n)
{
    *n = RV_COUNT(rows);
    return rows;
}

const struct rv_agentdoc_key *agentdoc_key_of(rv_str name)
{
    for (size_t i = 0; i < RV_COUNT(rows); i++)
        if (rv_str_is(name, rows[i].name))
            return &rows[i];
    return NULL;
}

const char *agentdoc_nearest_key(rv_str name)
{
    const char *names[RV_COUNT(rows)];

    for (size_t i = 0; i < RV_COUNT(rows); i++)
        names[i] = rows[i].name;
    return rv_nearest(name, names, RV_COUNT(rows));
}

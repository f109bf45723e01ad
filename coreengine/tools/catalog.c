/* Tools as a catalog: who may call what, what definitions mean, the life of a call, sources composed into one. */
#include <assert.h>
#include <json-c/linkhash.h>
#include <string.h>

#include "coreengine/tools/source.h"
#include "coreengine/tools/tools.h"
#include "coreengine/tools/tools_internal.h"

/* Who may call what: the access level of the agent, then its whitelist. What is not allowed is denied. */

static bool is_listed(const struct rv_str_list *list, rv_str name)
{
    size_t i;

    for (i = 0; i < list->n; i++)
        if (rv_str_is(name, list->items[i]))
            return true;
    return false;
}

static bool reads_only(enum rv_risk risk)
{
    return risk == RV_RISK_READ_ONLY || risk == RV_RISK_LOW;
}

static bool destroys_nothing(enum rv_risk risk)
{
    return reads_only(risk) || risk == RV_RISK_WRITE || risk == RV_RISK_MEDIUM;
}

/* NULL: the level alone has nothing against it. */
static const char *objection(int access, bool has_whitelist, const struct rv_tool_info *info)
{
    switch ((enum rv_tool_access)access) {
    case RV_ACCESS_ALL:
        return NULL;
    case RV_ACCESS_READ:
        return !info || reads_only(rv_tool_risk(info)) ? NULL : "tool_access is read and the tool does more than read";
    case RV_ACCESS_WRITE:
        return !info || destroys_nothing(rv_tool_risk(info)) ? NULL : "tool_access is write and the tool may destroy";
    case RV_ACCESS_UNSET:
        return has_whitelist ? NULL : "neither tool_access nor allowed_tools is set";
    case RV_ACCESS_NONE:
    case RV_N_ACCESS:
        break;
    }
    return "tool_access is none";
}

bool rv_tool_is_allowed(int access, const struct rv_str_list *whitelist, rv_str name, const struct rv_tool_info *info,
                        const char **why)
{
    bool has_whitelist = whitelist && whitelist->is_set;
    const char *denial = objection(access, has_whitelist, info);

    if (!denial && has_whitelist && !is_listed(whitelist, name))
        denial = "allowed_tools does not list it";
    if (why)
        *why = denial;
    return !denial;
}

/* --- Definitions: risk, effect class, the line of a prompt --- */

int rv_tool_read_words(struct rv_tool_info *info, const char *category, const char *risk, const char *effect,
                       rv_err **err)
{
    enum rv_tool_category category_value = RV_CATEGORY_READ;
    enum rv_risk risk_value = RV_RISK_WRITE;
    enum rv_effect_class effect_value = RV_EFFECT_NON_IDEMPOTENT;
    int rc = 0;

    info->category = info->risk = info->effect = RV_UNSET;
    if (category && (rc = rv_tool_category_of(rv_str_of(category), &category_value, err)) == 0)
        info->category = (int)category_value;
    if (rc == 0 && risk && (rc = rv_risk_of(rv_str_of(risk), &risk_value, err)) == 0)
        info->risk = (int)risk_value;
    if (rc == 0 && effect && (rc = rv_effect_class_of(rv_str_of(effect), &effect_value, err)) == 0)
        info->effect = (int)effect_value;
    return rc;
}

int rv_tool_read_confirm(struct rv_tool_info *info, json_object *value, rv_err **err)
{
    const char *text = NULL;
    rv_template *t = NULL;

    if (json_object_is_type(value, json_type_boolean)) {
        info->confirm = json_object_get_boolean(value) ? value : NULL;
        return 0;
    }
    if (!json_object_is_type(value, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "\"requires_confirmation\" must be true, false or {question, show}");
    json_object_object_foreach (value, key, part) {
        if (strcmp(key, "question") != 0 && strcmp(key, "show") != 0)
            return RV_FAIL(err, RV_E_INVALID,
                           "\"requires_confirmation\" has the key \"%.60s\": question and show are known", key);
        if (!json_object_is_type(part, json_type_string))
            return RV_FAIL(err, RV_E_INVALID, "\"requires_confirmation.%s\" must be a text", key);
    }
    int rc = rv_json_get_text(value, "question", &text) ? rv_template_compile(rv_str_of(text), NULL, &t, err) : 0;
    rv_template_free(t);
    if (rc < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_INVALID, "\"requires_confirmation.question\"");
    info->confirm = value;
    return 0;
}

enum rv_risk rv_tool_risk(const struct rv_tool_info *info)
{
    return info->risk == RV_UNSET ? RV_RISK_WRITE : (enum rv_risk)info->risk;
}

enum rv_effect_class rv_tool_effect(const struct rv_tool_info *info)
{
    if (info->effect != RV_UNSET)
        return (enum rv_effect_class)info->effect;
    return rv_effect_class_of_risk(rv_tool_risk(info));
}

static const struct rv_tool_info *no_tool(void *self, rv_str name)
{
    (void)self;
    (void)name;
    return NULL;
}

static const struct rv_entry_info *no_entry(void *self, enum rv_name_kind kind, rv_str name)
{
    (void)self;
    (void)kind;
    (void)name;
    return NULL;
}

static const rv_template *no_prompt(void *self, rv_str key)
{
    (void)self;
    (void)key;
    return NULL;
}

const struct rv_catalog rv_catalog_empty = {.tool = no_tool, .entry = no_entry, .prompt = no_prompt};

/* --- Prompt line --- */

/* The `type` of a schema as one word; ["integer","null"] is an integer that may be null. */
static const char *type_word(json_object *schema, bool *nullable)
{
    json_object *list = rv_json_get_arr(schema, "type");
    const char *type = "any";

    *nullable = false;
    if (!list) {
        type = rv_json_text_or(schema, "type", "any");
        return type;
    }
    size_t n_other = 0;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *word = json_object_array_get_idx(list, i);
        if (!json_object_is_type(word, json_type_string))
            continue;
        if (rv_str_is(rv_json_str(word), "null"))
            *nullable = true;
        else if (n_other++ == 0)
            type = json_object_get_string(word);
    }
    if (n_other == 0)
        type = *nullable ? "null" : "any";
    *nullable = *nullable && n_other > 0;
    return n_other > 1 ? "any" : type;
}

static void write_type(json_object *schema, rv_buf *b)
{
    static const char *const names[][2] = {{"integer", "int"}, {"number", "float"}, {"boolean", "bool"}};
    json_object *values = rv_json_get_arr(schema, "enum");
    const char *item;
    bool nullable;
    size_t i;

    if (values) {
        for (i = 0; i < json_object_array_length(values); i++) {
            if (i)
                rv_buf_putc(b, '|');
            rv_json_write(json_object_array_get_idx(values, i), b);
        }
        return;
    }
    const char *type = type_word(schema, &nullable);
    if (strcmp(type, "array") == 0 && rv_json_get_text(rv_json_get_obj(schema, "items"), "type", &item) &&
        strcmp(item, "string") == 0)
        type = "string_list";
    for (i = 0; i < RV_COUNT(names) && !nullable; i++)
        if (strcmp(type, names[i][0]) == 0)
            type = names[i][1];
    rv_buf_puts(b, type);
    if (nullable) /* the schema's own word: "integer?" */
        rv_buf_putc(b, '?');
}

static bool is_required(json_object *input, const char *name)
{
    json_object *required = rv_json_get_arr(input, "required");
    size_t i, n = required ? json_object_array_length(required) : 0;

    for (i = 0; i < n; i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(required, i)), name))
            return true;
    return false;
}

void rv_tool_write_line(const struct rv_tool_info *info, rv_buf *b)
{
    json_object *properties = rv_json_get_obj(info->input_json, "properties");
    const struct lh_entry *e = properties ? lh_table_head(json_object_get_object(properties)) : NULL;
    bool is_first = true;

    rv_buf_printf(b, "- %s(", info->name);
    for (; e; e = lh_entry_next(e)) {
        json_object *schema = lh_entry_v(e);
        const char *name = lh_entry_k(e);
        bool is_optional = !is_required(info->input_json, name) || (json_object_is_type(schema, json_type_object) &&
                                                                    json_object_object_get_ex(schema, "default", NULL));
        rv_buf_printf(b, "%s%s%s: ", is_first ? "" : ", ", name, is_optional ? "?" : "");
        write_type(schema, b);
        is_first = false;
    }
    rv_buf_puts(b, ")");
    if (info->description && info->description[0])
        rv_buf_printf(b, ": %s", info->description);
}

/* --- The life of a call, for every kind of source: begun, under way, ended exactly once --- */

static void link_call(struct rv_tool_source *s, struct rv_tool_call *c)
{
    c->source = s;
    c->prev = NULL;
    c->next = s->pending;
    if (c->next)
        c->next->prev = c;
    s->pending = c;
}

static void unlink_call(struct rv_tool_call *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        c->source->pending = c->next;
    if (c->next)
        c->next->prev = c->prev;
    c->source = NULL;
    c->prev = c->next = NULL;
}

int rv_tool_source_call(struct rv_tool_source *s, struct rv_tool_call *c, rv_err **err)
{
    assert(!c->source && c->done);
    if (!s->ops)
        return RV_FAIL(err, RV_E_STATE, "tool \"%s\" is called, and its source is closed", c->tool);
    if (c->args.len > RV_JSON_MAX_BYTES)
        return RV_FAIL(err, RV_E_LIMIT, "arguments of tool \"%s\": %zu bytes (the limit is %zu)", c->tool, c->args.len,
                       RV_JSON_MAX_BYTES);
    link_call(s, c);
    int rc = s->ops->call(s->self, c, err);
    if (rc < 0) {
        assert(c->source); /* a source that refuses a call does not finish it, too */
        unlink_call(c);
    }
    return rc;
}

void rv_tool_call_finish(struct rv_tool_call *c, struct rv_tool_reply *reply)
{
    assert(c->source); /* once, and not after a cancel */
    unlink_call(c);
    c->done(c, reply);
    rv_buf_fini(&reply->text);
    rv_buf_fini(&reply->partial);
}

void rv_tool_call_cancel(struct rv_tool_call *c)
{
    struct rv_tool_source *s = c->source;

    if (!s)
        return;
    unlink_call(c);
    s->ops->cancel(s->self, c);
}

void rv_tool_source_close(struct rv_tool_source *s)
{
    if (!s->ops)
        return;
    while (s->pending)
        rv_tool_call_cancel(s->pending);
    s->ops->close(s->self);
    s->ops = NULL;
}

/* --- Sources composed into one catalog: whose definition of a tool counts, and who answers its calls --- */

struct rv_tool_found rv_tool_set_find(const struct rv_tool_set *set, rv_str name)
{
    struct rv_tool_found found = {.info = set->under.tool(set->under.self, name)};

    for (size_t i = 0; i < set->n_sources; i++) {
        struct rv_tool_source *s = set->sources[i];
        const struct rv_tool_info *info = s->ops->find(s->self, name);
        if (!info)
            continue;
        if (!found.info && !set->is_whole)
            found.info = info;
        if (!found.source || (s->stands_in && !found.source->stands_in))
            found.source = s;
    }
    return found;
}

static const struct rv_tool_info *find_tool(void *self, rv_str name)
{
    const struct rv_tool_set *set = self;
    const struct rv_tool_info *info = set->under.tool(set->under.self, name);

    for (size_t i = 0; !info && !set->is_whole && i < set->n_sources; i++)
        info = set->sources[i]->ops->find(set->sources[i]->self, name);
    return info;
}

static const struct rv_entry_info *find_entry(void *self, enum rv_name_kind kind, rv_str name)
{
    const struct rv_tool_set *set = self;

    return set->under.entry(set->under.self, kind, name);
}

static const rv_template *find_prompt(void *self, rv_str key)
{
    const struct rv_tool_set *set = self;

    return set->under.prompt(set->under.self, key);
}

/* The i-th name of those sources; NULL: there are fewer names; i is then reduced by their number. */
static const char *source_name(const struct rv_tool_set *set, bool stands_in, size_t *i)
{
    for (size_t s = 0; !set->is_whole && s < set->n_sources; s++) {
        const struct rv_tool_source *source = set->sources[s];
        size_t n = 0;
        const char *const *names = source->stands_in == stands_in ? source->ops->names(source->self, &n) : NULL;
        if (*i < n)
            return names[*i];
        *i -= n;
    }
    return NULL;
}

static const char *tool_name(void *self, size_t i)
{
    const struct rv_tool_set *set = self;
    const char *name = source_name(set, true, &i);

    if (!name)
        name = source_name(set, false, &i);
    return name || !set->under.tool_name ? name : set->under.tool_name(set->under.self, i);
}

struct rv_catalog rv_tool_set_catalog(const struct rv_tool_set *set)
{
    bool can_be_listed = !set->is_whole || set->under.tool_name;

    return (struct rv_catalog){find_tool, find_entry, find_prompt, (void *)(uintptr_t)set,
                               can_be_listed ? tool_name : NULL};
}

/* The engine's own tool: a model asks another agent with it. Its calls look the agent's document up; the core then runs
 * the agent as a visit within the visit that asked. */

const struct rv_tool_info rv_tool_ask_agent = {
    .name = RV_TOOL_ASK_AGENT,
    .description = "Ask another agent. It works on its own, with its own tools, and answers with its result.",
    .category = RV_UNSET,
    .risk = RV_RISK_READ_ONLY, /* looking an agent up changes nothing; what it does is judged call by call */
    .effect = RV_EFFECT_SAFE,
};
const char rv_tool_ask_agent_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"agent_name\":{\"type\":\"string\",\"description\":\"Name of the agent to ask\"},"
    "\"input_text\":{\"type\":\"string\",\"description\":\"What it is asked: all that it needs to know\"},"
    "\"input_data\":{\"type\":\"object\",\"description\":\"Data that goes with the question\"},"
    "\"user_id\":{\"type\":\"string\",\"description\":\"For whom; only the present user can be named\"},"
    "\"timeout_seconds\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"How long it may take\"},"
    "\"structured_output_override\":{\"type\":\"boolean\","
    "\"description\":\"Have it answer as an object, or in words, whatever it does otherwise\"}},"
    "\"required\":[\"agent_name\",\"input_text\"],\"additionalProperties\":false}";

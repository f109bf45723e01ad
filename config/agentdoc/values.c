/* Values of keys: scalars, and maps with keys of their own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"
#include "coreengine/lang/lang.h"

/* Scalars as the contract takes them (p8 1.1): numbers may be written as strings, whole floats are integers, booleans
 * have words; strings are strings. */

#define MAX_NUMBER 400 /* bytes of a number in a string; a longer text is not a plausible number */

void *agentdoc_room(struct rv_agentdoc_reading *r, size_t n, size_t size)
{
    void *p = rv_arena_alloc(r->keys.arena, (n + 1) * size);

    if (!p)
        r->keys.rc = RV_E_NOMEM;
    return p;
}

/* A finding about a value, with the key's own hint in place of the general one. */
static bool refuse(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, const char *what)
{
    rv_keys_add_wrong_type(&r->keys, node, key, what);
    return false;
}

bool agentdoc_text(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, const char **out)
{
    if (node->kind != RV_NODE_STR)
        return refuse(r, node, key, "a string");
    *out = node->text.ptr;
    return true;
}

bool agentdoc_bool(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, bool *out)
{
    static const char *const words[][2] = {{"false", "true"}, {"0", "1"}, {"no", "yes"},
                                           {"off", "on"},     {"f", "t"}, {"n", "y"}};

    if (node->kind == RV_NODE_BOOL || (node->kind == RV_NODE_INT && (node->i64 == 0 || node->i64 == 1))) {
        *out = node->i64 != 0;
        return true;
    }
    for (size_t i = 0; node->kind == RV_NODE_STR && i < RV_COUNT(words); i++)
        for (int value = 0; value < 2; value++)
            if (strlen(words[i][value]) == node->text.len && strcasecmp(words[i][value], node->text.ptr) == 0) {
                *out = value != 0;
                return true;
            }
    return refuse(r, node, key, "a boolean");
}

/* Digits from *i on; how many. */
static size_t digits(rv_str s, size_t *i, rv_buf *out)
{
    size_t from = *i;
    size_t n;

    while (*i < s.len && s.ptr[*i] >= '0' && s.ptr[*i] <= '9')
        ++*i;
    n = *i - from;
    while (out && from + 1 < *i && s.ptr[from] == '0')
        from++; /* JSON has no leading zeros */
    if (out)
        rv_buf_add(out, s.ptr + from, *i - from);
    return n;
}

/* s as a JSON number; false: it is none. */
static bool to_json_number(rv_str s, rv_buf *out)
{
    size_t i = 0;
    size_t n, n_fraction = 0;
    size_t start;

    s = rv_str_trim(s);
    if (s.len > MAX_NUMBER)
        return false;
    if (i < s.len && (s.ptr[i] == '-' || s.ptr[i] == '+'))
        rv_buf_puts(out, s.ptr[i++] == '-' ? "-" : "");
    n = digits(s, &i, out);
    if (n == 0)
        rv_buf_putc(out, '0');
    if (i < s.len && s.ptr[i] == '.') {
        start = ++i;
        n_fraction = digits(s, &i, NULL);
        if (n_fraction > 0) {
            rv_buf_putc(out, '.');
            rv_buf_add(out, s.ptr + start, n_fraction);
        }
    }
    if (n + n_fraction == 0)
        return false;
    if (i < s.len && (s.ptr[i] == 'e' || s.ptr[i] == 'E')) {
        rv_buf_putc(out, 'e');
        i++;
        if (i < s.len && (s.ptr[i] == '-' || s.ptr[i] == '+'))
            rv_buf_putc(out, s.ptr[i++]);
        if (digits(s, &i, out) == 0)
            return false;
    }
    return i == s.len;
}

static int read_number(rv_str text, json_object **out)
{
    rv_buf json = RV_BUF_INIT(2 * MAX_NUMBER);
    rv_err *err = NULL;
    int rc = RV_E_INVALID;

    if (to_json_number(text, &json))
        rc = json.rc == 0 ? rv_json_parse(rv_buf_str(&json), NULL, out, &err) : json.rc;
    rv_err_free(err); /* the caller tells it in terms of the document */
    rv_buf_fini(&json);
    return rc == 0 || rc == RV_E_NOMEM ? rc : RV_E_INVALID;
}

int agentdoc_text_number(rv_str text, double *out)
{
    json_object *v = NULL;
    int rc = read_number(text, &v);
    double d = rc == 0 ? json_object_get_double(v) : 0;

    json_object_put(v);
    if (rc == 0 && !isfinite(d))
        rc = RV_E_INVALID;
    if (rc == 0)
        *out = d;
    return rc;
}

/* A float that is an int64. */
static bool is_whole(double d, int64_t *out)
{
    if (!isfinite(d) || floor(d) != d || d < -9223372036854775808.0 || d >= 9223372036854775808.0)
        return false;
    *out = (int64_t)d;
    return true;
}

static int text_int(rv_str text, int64_t *out)
{
    json_object *v = NULL;
    int rc = read_number(text, &v);

    if (rc == 0 && rv_json_is_int(v))
        *out = json_object_get_int64(v);
    else if (rc == 0 && (json_object_is_type(v, json_type_int) || !is_whole(json_object_get_double(v), out)))
        rc = RV_E_INVALID;
    json_object_put(v);
    return rc;
}

bool agentdoc_number(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, double *out)
{
    int rc = RV_E_INVALID;

    if (node->kind == RV_NODE_STR)
        rc = agentdoc_text_number(node->text, out);
    if (rc == RV_E_NOMEM)
        r->keys.rc = rc;
    if (rc == 0)
        return true;
    if ((node->kind != RV_NODE_INT && node->kind != RV_NODE_FLOAT) || !isfinite(node->f64))
        return refuse(r, node, key, "a number");
    *out = node->f64;
    return true;
}

bool agentdoc_int(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, int64_t min, int64_t *out)
{
    int64_t value = node->i64;
    int rc = RV_E_INVALID;

    if (node->kind == RV_NODE_STR)
        rc = text_int(node->text, &value);
    if (rc == RV_E_NOMEM)
        r->keys.rc = rc;
    if (rc < 0 && node->kind != RV_NODE_INT && !(node->kind == RV_NODE_FLOAT && is_whole(node->f64, &value)))
        return refuse(r, node, key, "an integer");
    if (value < min) {
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &node->src,
                            min == 1 ? "leave the key out to get its default" : NULL,
                            "%s%s must be %lld or more, not %lld", r->keys.path ? r->keys.path : "", key,
                            (long long)min, (long long)value);
        return false;
    }
    *out = value;
    return true;
}

bool agentdoc_word(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key, const char **out)
{
    const char *text;

    if (!agentdoc_text(r, node, key, &text))
        return false;
    if (!rv_agentdoc_is_name(node->text)) {
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &node->src,
                            "a name has letters, digits, \"-\", \"_\" and \".\", and begins with one of the "
                            "first two or \"_\"",
                            "%s%s must be a plain name, not \"%.60s\"", r->keys.path ? r->keys.path : "", key, text);
        return false;
    }
    *out = text;
    return true;
}

/* --- Maps: limits, routing, chained_map; and the model --- */

const struct rv_agentdoc_limit_key agentdoc_limit_keys[RV_AGENTDOC_LIMITS] = {
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
    static const struct rv_key_word other_tools[] = {
        {"usd budget cost maxcost maxusd maxcostusd",
         "the cost of runs is limited by `budget` of a pipeline, and by quotas"},
        {"maxtokens tokens tokenlimit totaltokens", "did you mean \"total_tokens_limit\"?"},
        {"requests maxrequests maxturns llmcalls maxiterations", "did you mean \"request_limit\"?"},
        {"toolcalls maxtoolcalls", "did you mean \"tool_calls_limit\"?"},
        {0},
    };
    const char *said = rv_key_word_says(other_tools, key->text);

    agentdoc_near(r, RV_SEVERITY_WARNING, &key->src, said ? NULL : rv_nearest(key->text, names, n),
                  said ? said : agentdoc_listed(r, "the keys are ", names, n), "%s%.*s has no effect", r->keys.path,
                  RV_STR_ARG(key->text));
}

static bool is_map(struct rv_agentdoc_reading *r, const struct rv_node *node, const char *key)
{
    if (node->kind == RV_NODE_MAP)
        return true;
    rv_keys_add_wrong_type(&r->keys, node, key, "a map");
    return false;
}

void agentdoc_read_limits(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field)
{
    const struct rv_node *map = field->value;
    const char *names[RV_AGENTDOC_LIMITS];

    for (size_t i = 0; i < RV_AGENTDOC_LIMITS; i++)
        names[i] = agentdoc_limit_keys[i].name;
    if (!is_map(r, map, "limits"))
        return;
    r->doc->limits_src = map->src;
    r->keys.path = "limits.";
    for (size_t i = 0; i < map->n; i++) {
        const struct rv_agentdoc_limit_key *row = NULL;
        for (size_t k = 0; k < RV_AGENTDOC_LIMITS; k++)
            if (rv_str_is(map->keys[i]->text, names[k]))
                row = &agentdoc_limit_keys[k];
        if (!row)
            unknown_key(r, map->keys[i], names, RV_AGENTDOC_LIMITS);
        else if (map->items[i]->kind != RV_NODE_NULL)
            agentdoc_int(r, map->items[i], row->name, 1, (int64_t *)(void *)((char *)&r->doc->limits + row->offset));
    }
    r->keys.path = NULL;
}

static void read_routes(struct rv_agentdoc_reading *r, const struct rv_node *list)
{
    struct rv_str_list *routes = &r->doc->routes;

    rv_keys_read_str_list(&r->keys, list, "agents", routes);
    for (size_t i = 0; i < routes->n; i++)
        if (!rv_agentdoc_is_name(rv_str_of(routes->items[i])))
            rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &routes->srcs[i], "write the agent's name",
                                "routing.agents has \"%.60s\", which is not a name", routes->items[i]);
    if (routes->is_set && routes->n == 0)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &list->src, "leave routing out if the agent is not a router",
                            "routing.agents names no agent");
}

void agentdoc_read_routing(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field)
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
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &map->src, "list the agents it may lead to",
                            "routing.agents is required");
    if (fallback && fallback->kind != RV_NODE_NULL)
        agentdoc_word(r, fallback, "fallback", &r->doc->routing_fallback);
    r->keys.path = NULL;
}

void agentdoc_read_chained_map(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field)
{
    const struct rv_node *map = field->value;
    const char *text;

    if (!is_map(r, map, "chained_map"))
        return;
    r->chained_map = map;
    r->keys.path = "chained_map.";
    for (size_t i = 0; i < map->n; i++)
        if (agentdoc_text(r, map->items[i], map->keys[i]->text.ptr, &text) && !text[0])
            rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &map->items[i]->src, "write the tool's parameter",
                                "chained_map.%s is empty", map->keys[i]->text.ptr);
    r->keys.path = NULL;
}

void agentdoc_read_model(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *field)
{
    struct rv_agentdoc *d = r->doc;
    const struct rv_node *node = field->value;
    const char *colon, *text;
    rv_buf full = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    bool overrides = rv_str_is(field->row ? rv_str_of(field->row->name) : field->key->text, "override_model");

    if (!agentdoc_text(r, node, field->key->text.ptr, &text))
        return;
    colon = strchr(text, ':');
    if (!text[0] || colon == text || (colon && !colon[1]) || strpbrk(text, " \t\r\n")) {
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &node->src, "such as openai:gpt-4.1",
                            "%s must be provider:model, not \"%.60s\"", field->key->text.ptr, text);
        return;
    }
    if (d->model && d->model_overrides != overrides)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_WARNING, overrides ? &d->model_src : &node->src,
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

/* --- The environment: over what the document says, below what a stage or a command line says (p8 1.7) --- */

struct variables {
    const char *(*get)(void *self, const char *name);
    void *self;
};

/* The variable's text; empty counts as not set. */
static const char *variable(const struct variables *v, const char *name)
{
    const char *text = v->get(v->self, name);

    return text && text[0] ? text : NULL;
}

static const struct {
    const char *variable, *limit; /* NULL: max_iterations */
} int_variables[] = {{"AGENT_MAX_ITERATIONS", NULL},
                     {"AGENT_REQUEST_LIMIT", "request_limit"},
                     {"AGENT_TOOL_CALLS_LIMIT", "tool_calls_limit"},
                     {"AGENT_TOTAL_TOKENS_LIMIT", "total_tokens_limit"}};

static bool has_variables(const struct variables *v)
{
    bool any = variable(v, "AGENT_MODEL") || variable(v, "AGENT_TEMPERATURE");

    for (size_t i = 0; i < RV_COUNT(int_variables); i++)
        any = any || variable(v, int_variables[i].variable);
    return any;
}

static int put_model(const struct variables *v, json_object *flat, rv_err **err)
{
    const char *model = variable(v, "AGENT_MODEL");

    if (!model)
        return 0;
    json_object_object_del(flat, "override_model");
    return rv_json_set_text(flat, "model", model, err);
}

static int put_temperature(const struct variables *v, json_object *flat, rv_err **err)
{
    const char *text = variable(v, "AGENT_TEMPERATURE");
    double d = 0;
    int rc = text ? agentdoc_text_number(rv_str_of(text), &d) : 0;

    if (!text)
        return 0;
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, rc, "read AGENT_TEMPERATURE");
    if (rc < 0 || d < 0 || d > 2)
        return RV_FAIL(err, RV_E_INVALID, "AGENT_TEMPERATURE must be a number from 0 to 2, not \"%.60s\"", text);
    return rv_json_set_take(flat, "temperature", rv_json_new_double(d), err);
}

static int put_int(const struct variables *v, size_t i, json_object *flat, rv_err **err)
{
    const char *name = int_variables[i].variable, *limit = int_variables[i].limit, *text = variable(v, name);
    json_object *limits = limit ? rv_json_get_obj(flat, "limits") : NULL;
    int64_t n = 0;
    int rc = text ? text_int(rv_str_of(text), &n) : 0;

    if (!text)
        return 0;
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, rc, "read %s", name);
    if (rc < 0 || n < 1)
        return RV_FAIL(err, RV_E_INVALID, "%s must be a whole number from 1, not \"%.60s\"", name, text);
    if (!limit)
        return rv_json_set_int(flat, "max_iterations", n, err);
    if (!limits) {
        limits = json_object_new_object();
        rc = rv_json_set_take(flat, "limits", limits, err);
    }
    return rc < 0 ? rc : rv_json_set_int(limits, limit, n, err);
}

int rv_agentdoc_dup_with_env(const struct rv_agentdoc *d, const char *(*env)(void *self, const char *name), void *self,
                             struct rv_agentdoc **out, rv_err **err)
{
    const struct variables v = {env, self};
    rv_buf place = RV_BUF_INIT(1 << 16);
    json_object *flat = NULL;
    int rc;

    *out = NULL;
    if (!has_variables(&v))
        return 0;
    rc = rv_json_dup(d->flat, &flat, err);
    if (rc == 0)
        rc = put_model(&v, flat, err);
    if (rc == 0)
        rc = put_temperature(&v, flat, err);
    for (size_t i = 0; i < RV_COUNT(int_variables) && rc == 0; i++)
        rc = put_int(&v, i, flat, err);
    rv_buf_printf(&place, "%s with AGENT_* variables", d->src.file ? d->src.file : "agent");
    if (rc == 0)
        rc = rv_buf_check(&place, "the name of a document", err);
    if (rc == 0)
        rc = agentdoc_of_value(flat, rv_buf_cstr(&place), out, err);
    rv_buf_fini(&place);
    json_object_put(flat);
    return rc < 0 ? RV_WRAP(err, rc, "change agent \"%s\" as the environment says", d->name) : 0;
}

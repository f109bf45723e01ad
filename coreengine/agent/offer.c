/* The tools that a stage's model is offered, and the one among them that the engine answers itself: `ask_agent`, an
 * agent as a tool of another one. The shell returns the agent's document, and the agent then works as a visit within
 * the asking one (child.c). Here: what models see, and which agents may ask which others. */
#include "coreengine/agent/tools_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TIMEOUT_S INT64_C(86400) /* a day: a model may say it; a longer one counts as this */

const struct rv_tool_info *visit_tool(const rv_visit *v, rv_str name)
{
    const struct rv_catalog *catalog = &v->shared->catalog;

    const struct rv_tool_info *resource = agent_resource_tool(v, name);

    if (resource)
        return resource;
    const struct rv_tool_info *client = agent_client_tool(v, name);
    if (client)
        return client;
    return rv_str_is(name, RV_TOOL_ASK_AGENT) ? &rv_tool_ask_agent : catalog->tool(catalog->self, name);
}

/* --- arguments --- */

/* A parameter that was given and is not null. */
static json_object *given(json_object *parameters, const char *key)
{
    json_object *part = NULL;

    return parameters && json_object_object_get_ex(parameters, key, &part) ? part : NULL;
}

static bool is_known(const char *key)
{
    static const char *const keys[] = {"agent_name", "input_text",      "input_data",
                                       "user_id",    "timeout_seconds", "structured_output_override"};
    for (size_t i = 0; i < RV_COUNT(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static bool read_texts(json_object *parameters, struct ask *out, rv_buf *why)
{
    json_object *name = given(parameters, "agent_name"), *text = given(parameters, "input_text");

    if (!json_object_is_type(name, json_type_string) || !rv_agentdoc_is_name(rv_json_str(name))) {
        rv_buf_puts(why, "agent_name must be the name of an agent: letters, digits, '-', '_' and '.'");
        return false;
    }
    if (!json_object_is_type(text, json_type_string)) {
        rv_buf_puts(why, "input_text must be a text: what the agent is asked");
        return false;
    }
    out->agent = json_object_get_string(name);
    out->text = rv_json_str(text);
    return true;
}

static bool read_rest(json_object *parameters, struct ask *out, rv_buf *why)
{
    json_object *data = given(parameters, "input_data"), *time = given(parameters, "timeout_seconds");
    json_object *structured = given(parameters, "structured_output_override");
    int64_t seconds = 0;

    if (data && !json_object_is_type(data, json_type_object)) {
        rv_buf_printf(why, "input_data must be an object, not %s", rv_json_type_text(data));
        return false;
    }
    if (time && (!rv_json_get_int(parameters, "timeout_seconds", &seconds) || seconds < 1)) {
        rv_buf_puts(why, "timeout_seconds must be a whole number from 1");
        return false;
    }
    if (structured && !json_object_is_type(structured, json_type_boolean)) {
        rv_buf_puts(why, "structured_output_override must be true or false");
        return false;
    }
    out->data = data && json_object_object_length(data) > 0 ? data : NULL;
    out->timeout_us = (seconds < MAX_TIMEOUT_S ? seconds : MAX_TIMEOUT_S) * RV_US_PER_S;
    out->structured = structured ? (int)json_object_get_boolean(structured) : RV_UNSET;
    return true;
}

static bool read_ask(json_object *parameters, struct ask *out, rv_buf *why)
{
    if (parameters) {
        json_object_object_foreach (parameters, key, value) {
            (void)value;
            if (!is_known(key)) {
                rv_buf_printf(why, "ask_agent has no parameter \"%.*s\"", RV_STR_ARG(rv_utf8_cut(rv_str_of(key), 80)));
                return false;
            }
        }
    }
    return read_texts(parameters, out, why) && read_rest(parameters, out, why);
}

/* --- who may ask whom --- */

/* A model does not decide identities: it may only name the user that asks anyway. */
static bool is_own_user(const rv_visit *v, json_object *parameters, rv_buf *why)
{
    json_object *named = given(parameters, "user_id");
    const struct rv_conversation *c = v->shared->conversation;
    const char *user = c ? c->context.user_id : rv_envelope_fields(v->env)->user_id;

    if (!named || rv_json_str(named).len == 0 || (user && rv_str_is(rv_json_str(named), user)))
        return true;
    rv_buf_printf(why, "user_id %s name another user than the one who asks: leave it out", visit_cannot(v));
    return false;
}

static const char *stage_agent(const rv_visit *v)
{
    const struct rv_visit_shared *root = v->shared->root ? v->shared->root : v->shared;
    const struct rv_agent *a = v->shared->origin ? &root->pipeline->agents[v->shared->asking_stage] : v->agent;

    return a->declared.doc ? a->declared.doc->name : a->name;
}

/* From the stage down: "a > b > a". */
static void write_chain(const rv_visit *v, const struct rv_origin *o, rv_buf *why)
{
    if (!o) {
        rv_buf_puts(why, stage_agent(v));
        return;
    }
    write_chain(v, o->parent, why);
    rv_buf_printf(why, " > %s", o->agent);
}

static bool is_in_bounds(const rv_visit *v, const char *agent, rv_buf *why)
{
    const struct rv_visit_shared *root = v->shared->root ? v->shared->root : v->shared;
    const struct rv_pipeline *p = root->pipeline;
    int64_t depth = v->shared->origin ? v->shared->origin->depth : 0, n = strcmp(stage_agent(v), agent) == 0;

    for (const struct rv_origin *o = v->shared->origin; o; o = o->parent)
        n += strcmp(o->agent, agent) == 0;
    if (depth >= p->max_delegation_depth) {
        rv_buf_printf(why, "agent \"%s\" %s be asked: agents already ask each other %lld deep (", agent,
                      visit_cannot(v), (long long)depth);
        write_chain(v, v->shared->origin, why);
        rv_buf_printf(why, "), and max_delegation_depth is %lld: answer yourself", (long long)p->max_delegation_depth);
        return false;
    }
    if (n >= p->max_delegation_repeats) {
        rv_buf_printf(why, "agent \"%s\" %s be asked: it is at work already (", agent, visit_cannot(v));
        write_chain(v, v->shared->origin, why);
        rv_buf_printf(why, "), and max_delegation_repeats is %lld: answer yourself",
                      (long long)p->max_delegation_repeats);
        return false;
    }
    return true;
}

bool agent_ask_allowed(const rv_visit *v, json_object *parameters, struct ask *out, rv_buf *why)
{
    *out = (struct ask){.structured = RV_UNSET};
    return read_ask(parameters, out, why) && is_own_user(v, parameters, why) && is_in_bounds(v, out->agent, why);
}

/* --- tools on offer --- */

/* As the agent's list has them; all there are are sorted, which is the catalog's order. Old runs sort both. */
static bool is_sorted(const rv_visit *v)
{
    return v->shared->rules < RV_RULES_2 || !v->agent->tools.allowed.is_set;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What the agent may call by name: its whitelist, or all there are. The caller's. */
static int names_on_offer(const rv_visit *v, const char ***out, size_t *n, rv_err **err)
{
    const struct rv_catalog *catalog = &v->shared->catalog;
    const struct rv_str_list *listed = &v->agent->tools.allowed;

    *n = listed->is_set ? listed->n : 0;
    while (!listed->is_set && catalog->tool_name && catalog->tool_name(catalog->self, *n))
        ++*n;
    const char **names = calloc(*n + 1, sizeof *names);
    if (!names)
        return RV_FAIL(err, RV_E_NOMEM, "list the tools of agent \"%s\"", v->agent->name);
    for (size_t i = 0; i < *n; i++)
        names[i] = listed->is_set ? listed->items[i] : catalog->tool_name(catalog->self, i);
    if (is_sorted(v))
        qsort(names, *n, sizeof *names, by_name);
    *out = names;
    return 0;
}

static int describe_ask(json_object *tool, rv_err **err)
{
    json_object *schema = NULL;
    int rc = rv_json_parse(rv_str_of(rv_tool_ask_agent_schema), NULL, &schema, err);

    return rc < 0 ? rc : rv_json_set_take(tool, "parameters", schema, err);
}

static int describe_tool(const struct rv_tool_info *info, json_object *list, rv_err **err)
{
    json_object *tool = json_object_new_object();
    int rc = rv_json_push_take(list, tool, err);

    if (rc == 0)
        rc = rv_json_set_text(tool, "name", info->name, err);
    if (rc == 0 && info->description && info->description[0])
        rc = rv_json_set_text(tool, "description", info->description, err);
    if (rc < 0)
        return rc;
    if (info->input_json)
        return rv_json_set_ref(tool, "parameters", info->input_json, err);
    if (strcmp(info->name, RV_TOOL_ASK_AGENT) == 0)
        return describe_ask(tool, err);
    json_object *any = json_object_new_object();
    rc = rv_json_set_take(tool, "parameters", any, err);
    return rc == 0 ? rv_json_set_text(any, "type", "object", err) : rc;
}

static bool is_new(const char *const *names, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(names[k], names[i]) == 0)
            return false;
    return true;
}

static int look_up(rv_visit *v, rv_err **err)
{
    const char **names = NULL;
    size_t n = 0;

    v->model.offered = json_object_new_array();
    if (!v->model.offered)
        return RV_FAIL(err, RV_E_NOMEM, "list the tools of agent \"%s\"", v->agent->name);
    if (!v->agent->has_tools)
        return 0;
    int rc = names_on_offer(v, &names, &n, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        rv_str name = rv_str_of(names[i]);
        const struct rv_tool_info *info = visit_tool(v, name);
        if (info && is_new(names, i) && !agent_client_tool(v, name) &&
            rv_tool_is_allowed(v->agent->tools.access, &v->agent->tools.allowed, name, info, NULL))
            rc = describe_tool(info, v->model.offered, err);
    }
    free(names);
    for (size_t i = 0; i < v->n_client_tools && rc == 0; i++)
        rc = describe_tool(&v->client_tools[i], v->model.offered, err);
    return rc;
}

int agent_tools_offered(rv_visit *v, json_object **offered, rv_err **err)
{
    int rc = v->model.offered ? 0 : look_up(v, err);

    *offered = rc == 0 && json_object_array_length(v->model.offered) > 0 ? v->model.offered : NULL;
    return rc;
}

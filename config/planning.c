/* Keys of a stage that plans its tool calls before it makes any (`strategy: planned`), and what is wrong with them. */
#include <stddef.h>
#include <string.h>

#include "config/config_internal.h"

#define AT(member) offsetof(struct rv_agent_planning, member)

static const struct rv_term strategies[] = {
    [RV_STRATEGY_AUTO] = {"auto", "planned if the stage may call tools of MCP servers, else standard"},
    [RV_STRATEGY_PLANNED] =
        {"planned", "the model makes one plan of calls, the engine runs it, and the model answers: two model calls"},
    [RV_STRATEGY_STANDARD] = {"standard", "each reply of the model may call tools, until one calls none"},
};
RV_EACH_HAS_ROW(strategies, RV_N_STRATEGIES);
const struct rv_term_list config_strategy_list = {"strategy", "strategy", strategies, RV_COUNT(strategies)};

static const struct rv_term unschematized[] = {
    [RV_UNSCHEMATIZED_REJECT] = {"reject", "no: the plan is refused"},
    [RV_UNSCHEMATIZED_DEFER] = {"defer", "yes: the reference is looked at when its call is due"},
};
RV_EACH_HAS_ROW(unschematized, RV_N_UNSCHEMATIZED);
static const struct rv_term_list unschematized_list = {"unschematized", "way to treat an unknown output", unschematized,
                                                       RV_COUNT(unschematized)};

static const struct rv_term confirms[] = {
    [RV_CONFIRMS_NEVER] = {"never", "none"},
    [RV_CONFIRMS_DECLARED] = {"declared", "those of tools that are destructive or require confirmation, as they say"},
    [RV_CONFIRMS_DESTRUCTIVE] = {"destructive", "also those of tools that say nothing about their risk"},
    [RV_CONFIRMS_WRITES] = {"writes", "all but those that only read"},
    [RV_CONFIRMS_ALL] = {"always", "all"},
};
RV_EACH_HAS_ROW(confirms, RV_N_CONFIRMS);
static const struct rv_term_list confirm_list = {"confirm", "choice of calls", confirms, RV_COUNT(confirms)};

static const struct rv_term confirmers[] = {
    [RV_CONFIRMER_NONE] = {"none", "no one: such a call fails with confirmation_denied"},
    [RV_CONFIRMER_PERSON] = {"person", "a person: the run waits with the call and its arguments"},
};
RV_EACH_HAS_ROW(confirmers, RV_N_CONFIRMERS);
static const struct rv_term_list confirmer_list = {"confirmer", "confirmer", confirmers, RV_COUNT(confirmers)};

#define NUMBER(key, least, most, value, text)                                                                          \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_INT, .offset = AT(key), .min = (least), .max = (most), .default_text = value,     \
        .doc = text                                                                                                    \
    }
#define WORD(key, list, value, text)                                                                                   \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_TERM, .offset = AT(key), .terms = &(list), .default_text = value, .doc = text     \
    }

#define MAX_MS    86400000 /* a day: a visit that waits longer is forgotten by who asked */
#define MAX_CALLS 128      /* as many as one reply of a model may ask for: RV_LLM_MAX_TOOL_CALLS of the models above */
#define MAX_AGAIN 10       /* more questions do not make a better plan: each costs a request */

const struct rv_key config_plan_keys[RV_N_PLAN_KEYS] = {
    NUMBER(max_calls, 1, MAX_CALLS, "16", "Calls of one plan; a longer plan is refused."),
    NUMBER(max_repairs, 0, MAX_AGAIN, "0",
           "How often the model is told what is wrong with its plan and plans again, for each plan."),
    NUMBER(max_replans, 0, MAX_AGAIN, "0",
           "How often the model plans again after a call failed; results stand, and new calls may refer to them."),
    {.name = "accept_native_calls",
     .type = RV_KEY_BOOL,
     .offset = AT(accept_native_calls),
     .default_text = "true",
     .doc = "Whether a reply that calls tools itself, in place of __planning__, counts as a plan of these calls."},
    WORD(unschematized, unschematized_list, "\"reject\"",
         "Whether a plan may refer to the output of a tool that declares no schema."),
};

const struct rv_key config_execute_keys[RV_N_EXECUTE_KEYS] = {
    NUMBER(parallelism, 1, 64, "1",
           "How many calls that only read may be under way at once; results are as if one followed the other."),
    NUMBER(max_total_ms, 1, MAX_MS, "300000", "Time of all calls of a visit; the waits for a person do not count."),
    NUMBER(call_timeout_ms, 1, MAX_MS, "30000", "Time of one call, unless its tool says another."),
    WORD(confirm, confirm_list, "\"declared\"", "Calls that need a yes before they are made."),
    WORD(confirmer, confirmer_list, "\"none\"", "Who says it."),
};

const struct rv_key config_respond_keys[RV_N_RESPOND_KEYS] = {
    NUMBER(max_output_bytes, 16, 1048576, "16384", "Longest output of a call; a longer one is cut."),
    NUMBER(max_summary_bytes, 256, 4194304, "65536", "All results together; the last outputs are cut first."),
};

/* Read once for a pipeline: most of its agents do not plan. */
void config_planning_defaults(struct rv_loader *l, struct rv_key_reader *r, struct rv_agent *a)
{
    const struct rv_node none = {.kind = RV_NODE_MAP};

    if (!l->has_planning) {
        rv_keys_read(r, &none, config_plan_keys, RV_N_PLAN_KEYS, &l->planning);
        rv_keys_read(r, &none, config_execute_keys, RV_N_EXECUTE_KEYS, &l->planning);
        rv_keys_read(r, &none, config_respond_keys, RV_N_RESPOND_KEYS, &l->planning);
        l->has_planning = true;
    }
    a->planning = l->planning;
}

/* --- auto --- */

static bool is_tool_of(const struct rv_mcp_server_config *s, const char *name)
{
    size_t len = strlen(s->name);

    if (strncmp(name, s->name, len) == 0 && name[len] == '.')
        return true;
    for (size_t i = 0; i < s->n_tools; i++)
        if (strcmp(s->tools[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < s->allow.n; i++)
        if (strcmp(s->allow.items[i], name) == 0)
            return true;
    return false;
}

/* As far as the file says: which tools a server has is known only when it is asked, and a stage must not change its
 * strategy because a server is down. */
static bool may_call(const struct rv_agent *a, const struct rv_mcp_server_config *s)
{
    const struct rv_str_list *allowed = &a->tools.allowed;

    for (size_t i = 0; allowed->is_set && i < allowed->n; i++)
        if (is_tool_of(s, allowed->items[i]))
            return true;
    return !allowed->is_set;
}

static bool has_servers(const struct rv_pipeline *p, const struct rv_agent *a)
{
    for (size_t s = 0; s < p->n_mcp_servers; s++)
        if (may_call(a, &p->mcp_servers[s]))
            return true;
    return false;
}

/* client_tools end a visit in the middle of its calls, and the response of a plan is a text without an output_schema.
 */
static bool can_plan(const struct rv_agent *a)
{
    return a->has_llm && a->has_tools && a->tools.n_client == 0 &&
           (a->output.required_fields.n == 0 || a->places.output_schema.line > 0);
}

/* The limits of an agent document (max_iterations, requests) count the rounds of a loop: such a stage plans only when
 * it says so. */
static bool plans(const struct rv_pipeline *p, const struct rv_agent *a)
{
    if (a->planning.strategy != RV_STRATEGY_AUTO)
        return a->planning.strategy == RV_STRATEGY_PLANNED;
    return !a->declared.name[0] && can_plan(a) && has_servers(p, a);
}

void config_decide_planning(struct rv_loader *l)
{
    for (size_t i = 0; i < l->p->n_agents; i++) {
        struct rv_agent *a = &l->p->agents[i];
        a->planning.plans = plans(l->p, a);
        if (a->planning.plans && a->on_denied_src.line == 0)
            a->on_denied = RV_DENIED_TELL_MODEL; /* a refused call is a failed one */
    }
}

/* --- findings --- */

static void finding(struct rv_loader *l, const struct rv_agent *a, enum rv_severity severity, const struct rv_src *src,
                    const char *hint, const char *text)
{
    rv_findings_add(l->findings, severity, src, hint, "agent \"%s\": %s", a->name, text);
}

/* Keys that only a stage that plans looks at. */
static void warn_of_idle(struct rv_loader *l, const struct rv_agent *a)
{
    const struct {
        const char *key;
        const struct rv_src *src;
    } rows[] = {
        {"plan", &a->planning.plan_src}, {"execute", &a->planning.execute_src}, {"respond", &a->planning.respond_src}};

    for (size_t i = 0; i < RV_COUNT(rows); i++)
        if (rows[i].src->line > 0)
            rv_findings_add(l->findings, RV_SEVERITY_WARNING, rows[i].src, "write strategy: planned, or leave it out",
                            "agent \"%s\": %s has no effect: the stage does not plan its tool calls", a->name,
                            rows[i].key);
}

/* Keys that a stage that plans does not look at. */
static void warn_of_rounds(struct rv_loader *l, const struct rv_agent *a)
{
    static const char *const keys[] = {"max_rounds", "max_bad_calls"};
    const struct rv_node **nodes = l->p->internal->agent_nodes;

    for (size_t i = 0; nodes && i < RV_COUNT(keys); i++) {
        const struct rv_node *value = rv_node_get(nodes[a->index], keys[i]);
        if (value)
            rv_findings_add(l->findings, RV_SEVERITY_WARNING, &value->src,
                            a->planning.strategy == RV_STRATEGY_AUTO ? "write strategy: standard, or leave it out"
                                                                     : "leave it out; see plan",
                            "agent \"%s\": %s has no effect: the stage plans all of its tool calls at once", a->name,
                            keys[i]);
    }
}

/* Forms of servers that no one fills in: such calls fail. */
static void warn_of_forms(struct rv_loader *l, const struct rv_agent *a)
{
    for (size_t i = 0; a->planning.confirmer == RV_CONFIRMER_NONE && i < l->p->n_mcp_servers; i++) {
        const struct rv_mcp_server_config *s = &l->p->mcp_servers[i];
        if (s->elicitation && may_call(a, s))
            rv_findings_add(
                l->findings, RV_SEVERITY_WARNING, &a->places.stage,
                "add execute: {confirmer: person}, or strategy: standard",
                "agent \"%s\": MCP server \"%s\" may ask a person (elicitation), and a stage that plans has "
                "none without a confirmer: such calls fail",
                a->name, s->name);
    }
}

void config_check_planning(struct rv_loader *l, const struct rv_agent *a)
{
    const struct rv_src *src = &a->planning.strategy_src;

    if (!rv_plans(&a->planning)) {
        warn_of_idle(l, a);
        return;
    }
    warn_of_rounds(l, a);
    warn_of_forms(l, a);
    if (!rv_agent_is_unbound(a) && !(a->has_llm && a->has_tools))
        finding(l, a, RV_SEVERITY_ERROR, src, "set has_llm and has_tools",
                "strategy is planned, and no model of the stage has tools");
    if (a->tools.n_client > 0)
        finding(l, a, RV_SEVERITY_ERROR, &a->tools.client_src, "leave one of the two out",
                "client_tools cannot be in a plan: strategy is planned");
    if (a->output.required_fields.n > 0 && a->places.output_schema.line == 0 && !a->declared.name[0])
        finding(l, a, RV_SEVERITY_ERROR, &a->output.required_fields.srcs[0], "give an output_schema",
                "required_output_fields are fields of the response, which is a text: strategy is planned");
}

static void write_term(rv_jw *w, const char *key, const struct rv_term_list *list, int value)
{
    rv_jw_kv_text(w, key, list->terms[value].text);
}

void config_planning_explain(const struct rv_agent *a, rv_jw *w)
{
    const struct rv_agent_planning *p = &a->planning;

    if (!rv_plans(&a->planning))
        return;
    write_term(w, "strategy", &config_strategy_list, RV_STRATEGY_PLANNED);
    rv_jw_key(w, "plan");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "max_calls", p->max_calls);
    rv_jw_kv_int(w, "max_repairs", p->max_repairs);
    rv_jw_kv_int(w, "max_replans", p->max_replans);
    rv_jw_kv_bool(w, "accept_native_calls", p->accept_native_calls);
    write_term(w, "unschematized", &unschematized_list, p->unschematized);
    rv_jw_obj_end(w);
    rv_jw_key(w, "execute");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "parallelism", p->parallelism);
    rv_jw_kv_int(w, "max_total_ms", p->max_total_ms);
    rv_jw_kv_int(w, "call_timeout_ms", p->call_timeout_ms);
    write_term(w, "confirm", &confirm_list, p->confirm);
    write_term(w, "confirmer", &confirmer_list, p->confirmer);
    rv_jw_obj_end(w);
    rv_jw_key(w, "respond");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "max_output_bytes", p->max_output_bytes);
    rv_jw_kv_int(w, "max_summary_bytes", p->max_summary_bytes);
    rv_jw_obj_end(w);
}

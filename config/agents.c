/* The tables of agents and routing rules, and how they are read. What needs other stages is checked later. */
#include <stddef.h>
#include <stdio.h>

#include "config/config_internal.h"

#define AT(member) offsetof(struct rv_agent_config, member)

static const struct rv_term output_modes[] = {
    [RV_OUTPUT_JSON] = {"json", "the object found in the reply"},
    [RV_OUTPUT_TEXT] = {"text", "the whole reply, under the field \"response\""},
};
static const struct rv_term_list output_mode_list = {"output_mode", "output mode", output_modes,
                                                     RV_COUNT(output_modes)};

/* A rule as it is written; which keys go together is decided afterwards. */
struct raw_rule {
    const char *condition, *when, *target_name;
    json_object *value;
    bool has_condition, has_value, has_when;
    struct rv_src condition_src, target_src;
};
#define RULE(member) offsetof(struct raw_rule, member)

static const struct rv_key rule_keys[] = {
    {.name = "condition",
     .type = RV_KEY_STR,
     .offset = RULE(condition),
     .is_set_offset = RULE(has_condition),
     .src_offset = RULE(condition_src),
     .doc = "A top-level key of the stage's own output; the rule matches when it equals value."},
    {.name = "value",
     .type = RV_KEY_JSON,
     .offset = RULE(value),
     .is_set_offset = RULE(has_value),
     .schema = "true",
     .doc = "What the output's value is compared with, by type and value; 1 equals 1.0."},
    {.name = "when",
     .type = RV_KEY_STR,
     .offset = RULE(when),
     .is_set_offset = RULE(has_when),
     .doc =
         "An expression over output, outputs, envelope, metadata, state, interrupt and models; instead of condition."},
    {.name = "target",
     .type = RV_KEY_STR,
     .offset = RULE(target_name),
     .required = true,
     .src_offset = RULE(target_src),
     .doc = "A stage, or end, clarification or confirmation."},
};
static const struct rv_key_table rule_table = {
    .name = "rule",
    .title = "A routing rule; the first that matches decides",
    .keys = rule_keys,
    .n_keys = RV_COUNT(rule_keys),
    .more =
        "\"oneOf\":[{\"required\":[\"condition\",\"value\"],\"not\":{\"required\":[\"when\"]}},"
        "{\"required\":[\"when\"],\"not\":{\"anyOf\":[{\"required\":[\"condition\"]},{\"required\":[\"value\"]}]}}]",
};

const struct rv_key_table *rv_rule_table(void)
{
    return &rule_table;
}

static void compile_when(struct rv_key_reader *r, const struct rv_node *node, const char *label, rv_expr **out)
{
    static const char *const variables[] = {"output", "outputs",   "envelope", "metadata",
                                            "state",  "interrupt", "models"};
    struct rv_src src = rv_node_text_src(node);
    rv_err *err = NULL;
    int rc = rv_expr_compile(node->text, &src, variables, RV_COUNT(variables), out, &err);

    if (rc == RV_E_NOMEM) {
        r->rc = rc;
    } else if (rc < 0) {
        rc = RV_WRAP(&err, rc, "agent \"%s\": %s: \"when\"", r->owner_name, label);
        rv_findings_add_text_err(r->findings, RV_SEVERITY_ERROR, node, err);
    } else if (!rv_expr_may_be_bool(*out)) {
        rv_keys_finding(r, RV_SEVERITY_ERROR, &src, "compare it with something: a condition is true or false",
                        "%s: \"when\" is never true or false", label);
    }
    rv_err_free(err);
}

static void read_rule(struct rv_key_reader *r, const struct rv_node *node, size_t number, struct rv_rule *rule)
{
    struct raw_rule raw = {0};
    const char *outer = r->path;
    const struct rv_node *when = rv_node_get(node, "when");
    size_t n_errors = rv_findings_n_errors(r->findings);
    char label[32];
    char path[48];

    snprintf(label, sizeof label, "rule %zu", number);
    snprintf(path, sizeof path, "routing_rules[%zu].", number - 1);
    r->path = path;
    rv_keys_read(r, node, rule_keys, RV_COUNT(rule_keys), &raw);
    r->path = outer;

    rule->src = node->src;
    rule->target_name = raw.target_name;
    rule->target_src = raw.target_src.line > 0 ? raw.target_src : node->src;
    rule->target = RV_TARGET_UNKNOWN;
    rule->condition = raw.has_condition ? raw.condition : NULL;
    rule->value = raw.value; /* the pipeline's now */
    if (when && when->kind == RV_NODE_STR)
        compile_when(r, when, label, &rule->when);
    if (rv_findings_n_errors(r->findings) > n_errors)
        return; /* a mistyped key is not a missing one besides */
    if (raw.has_when && (raw.has_condition || raw.has_value))
        rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, "split it into two rules, or say both in \"when\"",
                        "%s has \"when\" and \"%s\"", label, raw.has_condition ? "condition" : "value");
    else if (!raw.has_when && !raw.has_condition)
        rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, "a rule without a test belongs into \"default_next\"",
                        "%s has neither \"condition\" with \"value\" nor \"when\"", label);
    else if (!raw.has_when && !raw.has_value)
        rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, "write \"value: null\" to compare with null",
                        "%s has \"condition\" but no \"value\"", label);
}

static void read_rules(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_config *a = (struct rv_agent_config *)((char *)target - AT(rules));
    bool ok = false;
    size_t n = rv_list_length(r, node, "routing_rules", RV_MAX_RULES_PER_AGENT, &ok);

    if (!ok)
        return;
    a->rules = rv_loader_array(rv_loader_of(r), n, sizeof *a->rules);
    if (!a->rules)
        return;
    a->n_rules = n;
    for (size_t i = 0; i < n; i++)
        read_rule(r, node->items[i], i + 1, &a->rules[i]);
}

/* A list of names, or a map from name to bool in which only `true` allows. */
static void read_allowed_tools(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_str_list *out = target;
    struct rv_loader *l = rv_loader_of(r);

    if (node->kind == RV_NODE_LIST) {
        rv_keys_str_list(r, node, "allowed_tools", out);
        return;
    }
    if (node->kind != RV_NODE_MAP) {
        rv_keys_wrong_type(r, node, "allowed_tools", "a list of names or a map from name to true or false");
        return;
    }
    out->items = rv_loader_array(l, node->n, sizeof *out->items);
    out->srcs = rv_loader_array(l, node->n, sizeof *out->srcs);
    if (!out->items || !out->srcs)
        return;
    out->is_set = true;
    for (size_t i = 0; i < node->n; i++) {
        if (node->items[i]->kind != RV_NODE_BOOL) {
            char label[128];
            snprintf(label, sizeof label, "allowed_tools.%.80s", node->keys[i]->text.ptr);
            rv_keys_wrong_type(r, node->items[i], label, "a boolean");
        } else if (node->items[i]->i64) {
            out->items[out->n] = node->keys[i]->text.ptr;
            out->srcs[out->n++] = node->keys[i]->src;
        }
    }
}

#define MAX_SECONDS 31536000 /* a year: longer waits are mistakes */

static const struct rv_key agent_keys[] = {
    {.name = "name",
     .type = RV_KEY_STR,
     .offset = AT(name),
     .required = true,
     .src_offset = AT(name_src),
     .doc = "The stage's name; unique."},
    {.name = "stage_order",
     .type = RV_KEY_INT,
     .offset = AT(stage_order),
     .min = -1e9,
     .max = 1e9,
     .default_text = "0",
     .doc = "Position: lower runs first, the lowest is the entry; equal ones keep the order of the file."},
    {.name = "requires",
     .type = RV_KEY_STR_LIST,
     .offset = AT(requires),
     .doc = "Stages that must have completed before this one starts (parallel mode)."},
    {.name = "after",
     .type = RV_KEY_STR_LIST,
     .offset = AT(after),
     .doc = "Stages that must have come to an end before this one starts, well or not (parallel mode)."},
    {.name = "join_strategy",
     .type = RV_KEY_TERM,
     .offset = AT(join),
     .term_list = "join",
     .default_text = "\"all\"",
     .doc = "Whether all of requires must have completed, or any one."},
    {.name = "has_llm",
     .type = RV_KEY_BOOL,
     .offset = AT(has_llm),
     .default_text = "false",
     .doc = "The stage calls a model."},
    {.name = "has_tools",
     .type = RV_KEY_BOOL,
     .offset = AT(has_tools),
     .default_text = "false",
     .doc = "The stage runs the steps of a plan as tools, unless has_llm is set."},
    {.name = "has_policies",
     .type = RV_KEY_BOOL,
     .offset = AT(has_policies),
     .src_offset = AT(has_policies_src),
     .default_text = "false",
     .doc = "The stage asks its policies before its output is stored, and has at least one."},
    {.name = "tool_access",
     .type = RV_KEY_TERM,
     .offset = AT(tool_access),
     .term_list = "tool_access",
     .doc = "Which tools, by their risk; unset: those of allowed_tools, or none."},
    {.name = "allowed_tools",
     .type = RV_KEY_CUSTOM,
     .offset = AT(allowed_tools),
     .read = read_allowed_tools,
     .schema = "{\"anyOf\":[{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
               "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"boolean\"}}]}",
     .doc = "Names of tools, or a map from name to true or false; narrows tool_access. An empty list allows none."},
    {.name = "model_role",
     .type = RV_KEY_STR,
     .offset = AT(model_role),
     .src_offset = AT(model_role_src),
     .doc = "A role of models; required with has_llm."},
    {.name = "prompt_key",
     .type = RV_KEY_STR,
     .offset = AT(prompt_key),
     .src_offset = AT(prompt_key_src),
     .doc = "A key of prompts, or a prompt of a capability."},
    {.name = "temperature",
     .type = RV_KEY_FLOAT,
     .offset = AT(temperature),
     .min = 0,
     .max = 2,
     .is_set_offset = AT(has_temperature),
     .doc = "Passed to the model when given; 0 counts as given."},
    {.name = "max_tokens",
     .type = RV_KEY_INT,
     .offset = AT(max_tokens),
     .min = 1,
     .max = 1e8,
     .is_set_offset = AT(has_max_tokens),
     .doc = "Longest reply; unset: the model's own setting, else 2000."},
    {.name = "output_key",
     .type = RV_KEY_STR,
     .offset = AT(output_key),
     .src_offset = AT(output_key_src),
     .doc = "Where the output is stored; unset: under the stage's name."},
    {.name = "output_mode",
     .type = RV_KEY_TERM,
     .offset = AT(output_mode),
     .terms = &output_mode_list,
     .default_text = "\"json\"",
     .doc = "What becomes of a model's reply."},
    {.name = "required_output_fields",
     .type = RV_KEY_STR_LIST,
     .offset = AT(required_output_fields),
     .doc = "Top-level fields the output must have; null counts as there."},
    {.name = "routing_rules",
     .type = RV_KEY_CUSTOM,
     .offset = AT(rules),
     .read = read_rules,
     .schema = "{\"type\":\"array\",\"maxItems\":256,\"items\":{\"$ref\":\"#/$defs/rule\"}}",
     .doc = "Where to go next; the first rule that matches decides."},
    {.name = "default_next",
     .type = RV_KEY_STR,
     .offset = AT(default_next),
     .src_offset = AT(default_next_src),
     .doc = "Where to go when no rule matches; unset: end."},
    {.name = "error_next",
     .type = RV_KEY_STR,
     .offset = AT(error_next),
     .src_offset = AT(error_next_src),
     .doc = "Where to go when the stage fails; unset: the run fails."},
    {.name = "routing_function",
     .type = RV_KEY_STR,
     .offset = AT(routing_function),
     .src_offset = AT(routing_function_src),
     .doc = "A routing function of a capability, as capability.name."},
    {.name = "timeout_seconds",
     .type = RV_KEY_INT,
     .offset = AT(timeout_seconds),
     .min = 0,
     .max = MAX_SECONDS,
     .default_text = "0",
     .doc = "Deadline of one visit; 0: the pipeline's default_timeout_seconds."},
    {.name = "max_retries",
     .type = RV_KEY_INT,
     .offset = AT(max_retries),
     .min = 0,
     .max = 100,
     .default_text = "0",
     .doc = "Further attempts after a failure that may pass."},
    {.name = "max_visits",
     .type = RV_KEY_INT,
     .offset = AT(max_visits),
     .min = 1,
     .max = 1e9,
     .doc = "How often a run may visit the stage; unset: as often as the bounds of the pipeline allow."},
    {.name = "plan_from",
     .type = RV_KEY_STR,
     .offset = AT(plan_from),
     .src_offset = AT(plan_from_src),
     .default_text = "\"plan\"",
     .doc = "Output key that has the plan of a tool stage."},
    {.name = "policies",
     .type = RV_KEY_STR_LIST,
     .offset = AT(policies),
     .doc = "Policies of capabilities, as capability.name, asked in this order."},
    {.name = "pre_process",
     .type = RV_KEY_STR,
     .offset = AT(pre_process),
     .src_offset = AT(pre_process_src),
     .doc = "Hook that runs before the stage, as capability.name."},
    {.name = "post_process",
     .type = RV_KEY_STR,
     .offset = AT(post_process),
     .src_offset = AT(post_process_src),
     .doc = "Hook that runs after the output is stored, as capability.name."},
    {.name = "mock_handler",
     .type = RV_KEY_STR,
     .offset = AT(mock_handler),
     .src_offset = AT(mock_handler_src),
     .doc = "Stands in for the stage's work when mock is on, as capability.name."},
    {.name = "mock",
     .type = RV_KEY_BOOL,
     .offset = AT(mock),
     .default_text = "false",
     .doc = "Use mock_handler, if there is one."},
};
static const struct rv_key_table agent_table = {
    .name = "agent",
    .title = "An agent: one stage of the pipeline",
    .keys = agent_keys,
    .n_keys = RV_COUNT(agent_keys),
};

const struct rv_key_table *rv_agent_table(void)
{
    return &agent_table;
}

void rv_read_agents(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = rv_loader_of(r);
    bool ok = false;
    size_t n = rv_list_length(r, node, "agents", RV_MAX_STAGES, &ok);

    (void)target;
    if (!ok)
        return;
    l->p->agents = rv_loader_array(l, n, sizeof *l->p->agents);
    if (!l->p->agents)
        return;
    l->p->n_agents = n;
    for (size_t i = 0; i < n; i++) {
        const struct rv_node *name = rv_node_get(node->items[i], "name");
        struct rv_agent_config *a = &l->p->agents[i];
        struct rv_key_reader inner = {.arena = l->arena, .findings = l->findings, .owner_kind = "agent", .user = l};

        a->state_merge = RV_UNSET;
        a->src = node->items[i]->src;
        a->name_src = a->src;
        inner.owner_name = name && name->kind == RV_NODE_STR ? name->text.ptr : NULL;
        rv_keys_read(&inner, node->items[i], agent_keys, RV_COUNT(agent_keys), a);
        if (inner.rc < 0)
            l->rc = inner.rc;
        if (l->rc < 0)
            return;
    }
}

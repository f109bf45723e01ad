/* Routing rules: their table, and how one is read. What needs other stages is checked later. */
#include <stddef.h>
#include <stdio.h>

#include "config/config_internal.h"

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

void rv_read_rules(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent *a = (struct rv_agent *)((char *)target - offsetof(struct rv_agent, routing.rules));
    bool ok = false;
    size_t n = rv_list_length(r, node, "routing_rules", RV_MAX_RULES_PER_AGENT, &ok);

    if (!ok)
        return;
    a->routing.rules = rv_loader_array(rv_loader_of(r), n, sizeof *a->routing.rules);
    if (!a->routing.rules)
        return;
    a->routing.n_rules = n;
    for (size_t i = 0; i < n; i++)
        read_rule(r, node->items[i], i + 1, &a->routing.rules[i]);
}

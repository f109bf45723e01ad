/* What must hold for each agent, with the other stages known (rules 4.1 and 4.3). */
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

static void finding(struct rv_loader *l, const struct rv_agent *a, enum rv_severity severity, const struct rv_src *src,
                    const char *hint, const char *text)
{
    rv_findings_add(l->findings, severity, src, hint, "agent \"%s\": %s", a->name, text);
}

static bool is_reserved(const char *name)
{
    static const char *const reserved[] = {"end", "start", "clarification", "confirmation", "__end__"};

    for (size_t i = 0; i < RV_COUNT(reserved); i++)
        if (strcmp(name, reserved[i]) == 0)
            return true;
    return false;
}

/* Something is known to be wrong right there: whatever follows from it is not said again. */
static bool has_finding_at(const rv_findings *f, const struct rv_src *src)
{
    for (size_t i = 0; i < rv_findings_n(f); i++) {
        struct rv_src other = rv_findings_at(f, i).src;
        if (other.line == src->line && other.col == src->col && other.file && src->file &&
            strcmp(other.file, src->file) == 0)
            return true;
    }
    return false;
}

static void no_target(struct rv_loader *l, const struct rv_agent *a, const struct rv_src *src, const char *what,
                      const char *name)
{
    struct rv_pipeline_private *private = l->p->private;
    char hint[RV_HINT_MAX];

    rv_name_hint(l->findings, rv_str_of(name), "targets", private->target_names, private->n_target_names, hint);
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, hint, "agent \"%s\": %s \"%s\", which is no stage", a->name,
                    what, name);
}

static void check_targets(struct rv_loader *l, const struct rv_agent *a)
{
    for (size_t i = 0; i < a->routing.n_rules; i++) {
        const struct rv_rule *rule = &a->routing.rules[i];
        char what[48];

        if (rule->target != RV_TARGET_UNKNOWN || !rule->target_name[0])
            continue;
        snprintf(what, sizeof what, "rule %zu has the target", i + 1);
        no_target(l, a, &rule->target_src, what, rule->target_name);
    }
    if (a->routing.default_target == RV_TARGET_UNKNOWN)
        no_target(l, a, &a->places.default_next, "default_next names", a->routing.default_next);
    if (a->routing.error_target == RV_TARGET_UNKNOWN)
        no_target(l, a, &a->places.error_next, "error_next names", a->routing.error_next);
}

static void check_dependencies(struct rv_loader *l, const struct rv_agent *a, const char *key,
                               const struct rv_str_list *list, const int *indices, const char *self_text)
{
    char hint[RV_HINT_MAX];

    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->items[i], a->name) == 0) {
            finding(l, a, RV_SEVERITY_ERROR, &list->srcs[i], NULL, self_text);
        } else if (indices[i] < 0) {
            rv_name_hint(l->findings, rv_str_of(list->items[i]), "stages", l->p->stage_names, l->p->n_agents, hint);
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &list->srcs[i], hint,
                            "agent \"%s\": %s names \"%s\", which is no stage", a->name, key, list->items[i]);
        }
    }
}

static void check_role(struct rv_loader *l, const struct rv_agent *a)
{
    const struct rv_pipeline *p = l->p;
    const char **roles;
    char hint[RV_HINT_MAX];

    if (rv_agent_is_unbound(a) && !a->model.role[0])
        return; /* its document may name a model */
    if (a->has_llm && !a->model.role[0]) {
        if (a->places.model_role.line == 0 || !has_finding_at(l->findings, &a->places.model_role))
            finding(l, a, RV_SEVERITY_ERROR, a->places.model_role.line > 0 ? &a->places.model_role : &a->places.name,
                    "name a role of models, for example model_role: default", "has_llm needs a model_role");
        return;
    }
    if (!a->model.role[0] || !p->private->has_models || rv_pipeline_model(p, rv_str_of(a->model.role)) ||
        rv_is_dropped_role(p, a->model.role))
        return;
    roles = rv_loader_array(l, p->n_models, sizeof *roles);
    if (!roles)
        return;
    for (size_t i = 0; i < p->n_models; i++)
        roles[i] = p->models[i].role;
    rv_name_hint(l->findings, rv_str_of(a->model.role), "roles", roles, p->n_models, hint);
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, &a->places.model_role, hint,
                    "agent \"%s\": model_role names \"%s\", which is no role of models", a->name, a->model.role);
}

/* What a schema itself says wrong is found where schemas are known. */
static void check_output_schema(struct rv_loader *l, const struct rv_agent *a)
{
    json_object *type = NULL;

    if (a->places.output_schema.line == 0 || a->declared.name[0])
        return;
    if (!a->has_llm)
        finding(l, a, RV_SEVERITY_ERROR, &a->places.output_schema, "set has_llm, or leave it out",
                "output_schema is for the reply of a model, and has_llm is not set");
    else if (a->output.mode == RV_OUTPUT_TEXT)
        finding(l, a, RV_SEVERITY_ERROR, &a->places.output_schema, "leave one of the two out",
                "output_schema needs output_mode json, not text");
    if (!a->output.schema)
        return; /* a finding already */
    json_object_object_get_ex(a->output.schema, "type", &type);
    if (!json_object_is_type(type, json_type_string) || strcmp(json_object_get_string(type), "object") != 0)
        finding(l, a, RV_SEVERITY_ERROR, &a->places.output_schema, "write \"type: object\" at its top",
                "output_schema must describe an object");
}

/* A hook that is never asked guards nothing. */
static void warn_of_idle_hooks(struct rv_loader *l, const struct rv_agent *a)
{
    const struct {
        const char *key;
        const struct rv_str_list *names;
        bool is_asked;
        const char *hint;
    } rows[] = {
        {"before_model", &a->hooks.before_model, a->has_llm, "set has_llm, or leave it out"},
        {"after_model", &a->hooks.after_model, a->has_llm, "set has_llm, or leave it out"},
        {"before_tool", &a->hooks.before_tool, a->has_tools, "set has_tools, or leave it out"},
        {"after_tool", &a->hooks.after_tool, a->has_tools, "set has_tools, or leave it out"},
    };

    for (size_t i = 0; i < RV_COUNT(rows) && !a->declared.name[0]; i++)
        if (rows[i].names->n > 0 && !rows[i].is_asked)
            rv_findings_add(l->findings, RV_SEVERITY_WARNING, &rows[i].names->srcs[0], rows[i].hint,
                            "agent \"%s\": %s is never asked, since the stage makes no such calls", a->name,
                            rows[i].key);
}

static void warn(struct rv_loader *l, const struct rv_agent *a)
{
    warn_of_idle_hooks(l, a);
    if (a->has_policies && a->hooks.policies.n == 0)
        finding(l, a, RV_SEVERITY_WARNING, &a->places.stage, "list them under policies",
                "has_policies is set but no policy is named");
    if (a->has_tools && a->tools.access == RV_UNSET && !a->tools.allowed.is_set && !a->declared.name[0])
        finding(l, a, RV_SEVERITY_WARNING, &a->places.stage, "set tool_access or allowed_tools",
                a->has_llm ? "has_llm and has_tools are set but the model is offered no tool: no access is given"
                           : "has_tools is set but no tool may be used: no access is given");
    if (a->output.via != RV_OUTPUT_VIA_AUTO && a->places.output_schema.line == 0 && !a->declared.name[0])
        finding(l, a, RV_SEVERITY_WARNING, &a->places.output_via, "give an output_schema",
                "output_via says how to come to an output that nothing describes");
    if (a->routing.default_target == a->index && a->limits.max_visits == 0)
        finding(l, a, RV_SEVERITY_WARNING, &a->places.default_next, "set max_visits",
                "default_next names the agent itself, so only the bounds of the pipeline end the loop");
}

/* Names stand in terminals, in drawings and in one-line messages. */
static void check_name_text(struct rv_loader *l, const struct rv_agent *a)
{
    size_t len = strlen(a->name);

    if (len > RV_MAX_STAGE_NAME)
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &a->places.name, "choose a shorter one",
                        "agent: the name has %zu bytes, the limit is %d", len, RV_MAX_STAGE_NAME);
    for (size_t i = 0; i < len && i <= RV_MAX_STAGE_NAME; i++) {
        if ((unsigned char)a->name[i] < 0x20 || a->name[i] == 0x7f) {
            finding(l, a, RV_SEVERITY_ERROR, &a->places.name, "choose a name of one line without control characters",
                    "the name has a control character");
            return;
        }
    }
}

void rv_check_agents(struct rv_loader *l)
{
    for (size_t i = 0; i < l->p->n_agents && l->rc == 0; i++) {
        const struct rv_agent *a = &l->p->agents[i];

        if (a->name[0] && is_reserved(a->name))
            finding(l, a, RV_SEVERITY_ERROR, &a->places.name, "choose another name",
                    "the name is reserved for the engine");
        check_name_text(l, a);
        check_role(l, a);
        check_output_schema(l, a);
        check_targets(l, a);
        check_dependencies(l, a, "requires", &a->order.requires, a->order.requires_index, "it cannot require itself");
        check_dependencies(l, a, "after", &a->order.after, a->order.after_index, "it cannot be after itself");
        warn(l, a);
    }
}

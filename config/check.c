/* What must hold for each agent with the other stages known (rules 4.1 and 4.3), and what spans stages. */
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

static void finding(struct rv_loader *l, const struct rv_agent *a, enum rv_severity severity, const struct rv_src *src,
                    const char *hint, const char *text)
{
    rv_findings_add(l->findings, severity, src, hint, "agent \"%s\": %s", a->name, text);
}

/* Of its place in the pipeline: its name, its routes and its order. */
static void place_finding(struct rv_loader *l, const struct rv_agent *a, enum rv_severity severity,
                          const struct rv_src *src, const char *hint, const char *text)
{
    rv_findings_add(l->findings, severity, src, hint, "stage \"%s\": %s", a->name, text);
}

/* A run that stands at "start" begins at the first stage, which may be called so. */
static bool is_reserved(const struct rv_agent *a)
{
    static const char *const reserved[] = {"end", "clarification", "confirmation", "__end__", "start"};
    const char *name = a->name;

    for (size_t i = 0; i < RV_COUNT(reserved); i++)
        if (strcmp(name, reserved[i]) == 0)
            return a->index > 0 || strcmp(name, RV_STAGE_START) != 0;
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
    struct rv_pipeline_internal *internal = l->p->internal;
    char hint[RV_HINT_MAX];

    config_name_hint(l->findings, rv_str_of(name), "targets", internal->target_names, internal->n_target_names, hint);
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, hint, "stage \"%s\": %s \"%s\", which is not a stage", a->name,
                    what, name);
}

static void check_branches(struct rv_loader *l, const struct rv_agent *a, const char *what,
                           const struct rv_branches *branches)
{
    for (size_t i = 0; i < branches->n; i++)
        if (branches->items[i].target == RV_TARGET_UNKNOWN && branches->items[i].name[0])
            no_target(l, a, &branches->items[i].src, what, branches->items[i].name);
}

static void check_targets(struct rv_loader *l, const struct rv_agent *a)
{
    for (size_t i = 0; i < a->routing.n_rules; i++) {
        const struct rv_rule *rule = &a->routing.rules[i];
        char what[48];

        snprintf(what, sizeof what, "rule %zu has the branch", i + 1);
        check_branches(l, a, what, &rule->branches);
        snprintf(what, sizeof what, "rule %zu has the target", i + 1);
        if (rule->target != RV_TARGET_UNKNOWN || !rule->target_name[0])
            continue;
        no_target(l, a, &rule->target_src, what, rule->target_name);
    }
    check_branches(l, a, "default_next has the branch", &a->routing.branches);
    for (size_t i = 0; i < a->ask.n_routes; i++)
        if (a->ask.routes[i].target == RV_TARGET_UNKNOWN && a->ask.routes[i].target_name[0])
            no_target(l, a, &a->ask.routes[i].src, "on_answer names", a->ask.routes[i].target_name);
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
            place_finding(l, a, RV_SEVERITY_ERROR, &list->srcs[i], "take its own name out of the list", self_text);
        } else if (indices[i] < 0) {
            config_name_hint(l->findings, rv_str_of(list->items[i]), "stages", l->p->stage_names, l->p->n_agents, hint);
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &list->srcs[i], hint,
                            "stage \"%s\": %s names \"%s\", which is not a stage", a->name, key, list->items[i]);
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
    if (!a->model.role[0] || !p->internal->has_models || rv_pipeline_find_model(p, rv_str_of(a->model.role)) ||
        config_is_dropped_role(p, a->model.role))
        return;
    roles = config_loader_array(l, p->n_models, sizeof *roles);
    if (!roles)
        return;
    for (size_t i = 0; i < p->n_models; i++)
        roles[i] = p->models[i].role;
    config_name_hint(l->findings, rv_str_of(a->model.role), "roles", roles, p->n_models, hint);
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, &a->places.model_role, hint,
                    "agent \"%s\": model_role names \"%s\", which is not a role of models", a->name, a->model.role);
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
    if (a->has_tools && a->tools.access == RV_UNSET && !a->tools.allowed.is_set && !a->declared.name[0] &&
        a->tools.n_client == 0)
        finding(l, a, RV_SEVERITY_WARNING, &a->places.stage, "set tool_access or allowed_tools",
                a->has_llm ? "has_llm and has_tools are set but the model is offered no tool: no access is given"
                           : "has_tools is set but no tool may be used: no access is given");
    if (a->output.via != RV_OUTPUT_VIA_AUTO && a->places.output_schema.line == 0 && !a->declared.name[0])
        finding(l, a, RV_SEVERITY_WARNING, &a->places.output_via, "give an output_schema",
                "output_via says how to come to an output that nothing describes");
    if (a->routing.default_target == a->index && a->limits.max_visits == 0)
        place_finding(l, a, RV_SEVERITY_WARNING, &a->places.default_next, "set max_visits",
                      "default_next names the stage itself, so only the bounds of the pipeline end the loop");
}

/* Names stand in terminals, in drawings and in one-line messages. */
static void check_name_text(struct rv_loader *l, const struct rv_agent *a)
{
    size_t len = strlen(a->name);

    if (len > RV_MAX_STAGE_NAME)
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &a->places.name, "choose a shorter one",
                        "stage: the name has %zu bytes, the limit is %d", len, RV_MAX_STAGE_NAME);
    for (size_t i = 0; i < len && i <= RV_MAX_STAGE_NAME; i++) {
        if (rv_utf8_control(a->name + i, len - i) > 0 || rv_utf8_reorders(a->name + i, len - i)) {
            place_finding(l, a, RV_SEVERITY_ERROR, &a->places.name,
                          "choose a name of one line without control characters", "the name has a control character");
            return;
        }
    }
}

/* "sub/x" is the stage x of the pipeline of sub: in scripts, in labels and in what is kept of a run. */
static void check_slash(struct rv_loader *l, const struct rv_agent *a)
{
    static const char hint[] = "choose a name without \"/\"";

    if (!strchr(a->name, '/'))
        return;
    for (size_t i = 0; i < l->p->n_agents; i++) {
        const struct rv_agent *outer = &l->p->agents[i];
        size_t len = strlen(outer->name);
        if (len > 0 && outer->inner.file[0] && strncmp(a->name, outer->name, len) == 0 && a->name[len] == '/') {
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &a->places.name, hint,
                            "stage \"%.*s\": the name means a stage of the pipeline that stage \"%.*s\" runs",
                            RV_MAX_STAGE_NAME, a->name, RV_MAX_STAGE_NAME, outer->name);
            return;
        }
    }
    place_finding(l, a, RV_SEVERITY_WARNING, &a->places.name, hint,
                  "the name has a \"/\", which stands between a stage and the stages of the pipeline that it runs");
}

static void check_agents(struct rv_loader *l)
{
    for (size_t i = 0; i < l->p->n_agents && l->rc == 0; i++) {
        const struct rv_agent *a = &l->p->agents[i];

        if (a->name[0] && is_reserved(a))
            place_finding(l, a, RV_SEVERITY_ERROR, &a->places.name, "choose another name",
                          "the name is reserved for the engine");
        check_name_text(l, a);
        check_slash(l, a);
        check_role(l, a);
        check_output_schema(l, a);
        config_check_request_keys(l, a);
        config_check_client_tools(l, a);
        config_check_planning(l, a);
        check_targets(l, a);
        config_check_asks(l, a);
        check_dependencies(l, a, "requires", &a->order.required, a->order.required_index, "it cannot require itself");
        check_dependencies(l, a, "after", &a->order.after, a->order.after_index, "it cannot be after itself");
        warn(l, a);
    }
}

/* --- Stages with `agent`: what contradicts it, as far as the pipeline's own text tells --- */

bool rv_agent_is_unbound(const struct rv_agent *a)
{
    return a->declared.name && a->declared.name[0] && !a->declared.doc;
}

/* Keys that say what the document says. */
static const struct {
    const char *key;
    bool when_false; /* only then */
    const char *text, *hint;
} contradictions[] = {
    {"has_llm", true, "has_llm is false, but a declared agent calls a model", "leave has_llm out"},
    {"has_tools", true, "has_tools is false, but its document says what tools there are",
     "write allowed_tools: [] for none"},
    {"output_mode", false, "output_mode is what the document of a declared agent makes it",
     "leave it out, or write structured_output: true or false"},
    {"system_key", false, "system_key says what the document of a declared agent says",
     "put the text into the document"},
};
static const char *const only_with_agent[] = {"structured_output", "joins_session"};

static void check_keys(struct rv_loader *l, const struct rv_agent *a, const struct rv_node *node)
{
    for (size_t i = 0; i < RV_COUNT(contradictions); i++) {
        const struct rv_node *value = rv_node_get(node, contradictions[i].key);

        if (value && !(contradictions[i].when_false && !(value->kind == RV_NODE_BOOL && value->i64 == 0)))
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &value->src, contradictions[i].hint, "agent \"%s\": %s",
                            a->name, contradictions[i].text);
    }
}

static void refuse_keys(struct rv_loader *l, const struct rv_agent *a, const struct rv_node *node)
{
    for (size_t i = 0; i < RV_COUNT(only_with_agent); i++) {
        const struct rv_node *value = rv_node_get(node, only_with_agent[i]);

        if (value)
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &value->src, "name one: agent: NAME, or leave the key out",
                            "agent \"%s\": %s is for declared agents, and the stage has none", a->name,
                            only_with_agent[i]);
    }
}

static void check_declared(struct rv_loader *l)
{
    const struct rv_node **nodes = l->p->internal->agent_nodes;

    for (size_t i = 0; nodes && i < l->p->n_agents; i++) {
        const struct rv_agent *a = &l->p->agents[i];

        if (a->places.agent.line == 0)
            refuse_keys(l, a, nodes[i]);
        else if (a->declared.name[0])
            check_keys(l, a, nodes[i]);
        if (a->places.agent.line > 0 && rv_node_get(nodes[i], "agent")->kind == RV_NODE_STR &&
            !rv_agentdoc_is_name(rv_str_of(a->declared.name)))
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &a->places.agent,
                            "a name is one word of letters, digits, \"-\", \"_\" and \".\"",
                            "agent \"%s\": agent is \"%.*s\", which is not the name of an agent", a->name,
                            RV_STR_ARG(rv_utf8_cut(rv_str_of(a->declared.name), RV_MAX_STAGE_NAME)));
    }
}

/* --- What spans stages: edge limits, resume stages, output keys, state, and the lists of output keys (rule 4.3) --- */

static void no_stage(struct rv_loader *l, const struct rv_src *src, const char *what, const char *name)
{
    char hint[RV_HINT_MAX];

    config_name_hint(l->findings, rv_str_of(name), "stages", l->p->stage_names, l->p->n_agents, hint);
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, hint, "%s names \"%s\", which is not a stage", what, name);
}

static void check_edge_limit(struct rv_loader *l, size_t i)
{
    struct rv_edge_limit *edge = &l->p->edge_limits[i];
    int pair[2];
    char *key;
    int rc;

    if (!edge->from_name[0] || !edge->to_name[0])
        return;
    edge->from = rv_pipeline_find_stage(l->p, rv_str_of(edge->from_name));
    edge->to = rv_pipeline_find_stage(l->p, rv_str_of(edge->to_name));
    if (edge->from < 0)
        no_stage(l, &edge->from_src, "edge limit: from", edge->from_name);
    if (edge->to < 0)
        no_stage(l, &edge->to_src, "edge limit: to", edge->to_name);
    if (edge->from < 0 || edge->to < 0)
        return;
    pair[0] = edge->from;
    pair[1] = edge->to;
    key = rv_arena_dup(l->arena, (rv_str){(const char *)pair, sizeof pair});
    if (!key) {
        l->rc = RV_E_NOMEM;
        return;
    }
    rc = rv_index_add(&l->p->internal->edges, (rv_str){key, sizeof pair}, (int)i);
    if (rc == RV_E_EXISTS) {
        int first = rv_index_get(&l->p->internal->edges, (rv_str){key, sizeof pair});
        rv_findings_add(l->findings, RV_SEVERITY_ERROR, &edge->src, "keep one of them",
                        "edge limit: the way from \"%s\" to \"%s\" is limited twice; the first time on line %d",
                        edge->from_name, edge->to_name, l->p->edge_limits[first].src.line);
    } else if (rc < 0) {
        l->rc = rc;
    }
}

static void check_resume_stages(struct rv_loader *l)
{
    const struct {
        const char *key, *name;
    } stages[] = {
        {"clarification_resume_stage", l->p->clarification_resume_stage},
        {"confirmation_resume_stage", l->p->confirmation_resume_stage},
        {"agent_review_resume_stage", l->p->agent_review_resume_stage},
        {"agent_review_reject_stage", l->p->agent_review_reject_stage},
    };

    for (size_t i = 0; i < RV_COUNT(stages); i++) {
        const struct rv_node *node = rv_node_get(l->root, stages[i].key);
        if (stages[i].name[0] && rv_pipeline_find_stage(l->p, rv_str_of(stages[i].name)) < 0)
            no_stage(l, &node->src, stages[i].key, stages[i].name);
    }
}

static void index_outputs(struct rv_loader *l)
{
    rv_index *outputs = &l->p->internal->output_index;

    for (size_t i = 0; i < l->p->n_agents && l->rc == 0; i++) {
        const struct rv_agent *a = &l->p->agents[i];
        const struct rv_agent *other;
        const struct rv_src *src = a->places.output_key.line > 0 ? &a->places.output_key : &a->places.name;
        int rc;

        if (!a->output.key[0])
            continue;
        rc = rv_index_add(outputs, rv_str_of(a->output.key), (int)i);
        if (rc == 0)
            continue;
        if (rc != RV_E_EXISTS) {
            l->rc = rc;
            return;
        }
        other = &l->p->agents[rv_index_get(outputs, rv_str_of(a->output.key))];
        if (!l->p->has_groups && strcmp(other->name, a->name) != 0) /* a double name is a finding already */
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, src,
                            "give each agent an output_key of its own; a stage behind them can take the one that is "
                            "there: set: {text: \"has(outputs.a) ? outputs.a.text : outputs.b.text\"}",
                            "agents \"%s\" and \"%s\" share the output_key \"%s\"", other->name, a->name,
                            a->output.key);
    }
}

static bool is_output(const struct rv_loader *l, const char *key)
{
    return rv_index_get(&l->p->internal->output_index, rv_str_of(key)) >= 0;
}

/* The output key that was probably meant, as a hint; NULL: none is near. */
static const char *output_hint(struct rv_loader *l, const char *name)
{
    const char **keys = rv_arena_alloc(l->arena, (l->p->n_agents + 1) * sizeof *keys);
    const char *near;

    for (size_t i = 0; keys && i < l->p->n_agents; i++)
        keys[i] = l->p->agents[i].output.key;
    near = keys ? rv_nearest(rv_str_of(name), keys, l->p->n_agents) : NULL;
    size_t size = near ? strlen(near) + sizeof "did you mean \"\"?" : 0;
    char *hint = near ? rv_arena_alloc(l->arena, size) : NULL;
    if (hint)
        snprintf(hint, size, "did you mean \"%s\"?", near);
    return hint;
}

static void check_output_names(struct rv_loader *l, const char *key, const struct rv_str_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (!is_output(l, list->items[i]))
            rv_findings_add(l->findings, RV_SEVERITY_WARNING, &list->srcs[i], output_hint(l, list->items[i]),
                            "%s names \"%s\", which is not the output key of a stage", key, list->items[i]);
}

static void check_state(struct rv_loader *l)
{
    rv_index seen = {NULL, 0, 0};

    for (size_t i = 0; i < l->p->n_state_fields && l->rc == 0; i++) {
        const struct rv_state_field *field = &l->p->state_fields[i];
        int rc;

        if (!field->key[0])
            continue;
        rc = rv_index_add(&seen, rv_str_of(field->key), (int)i);
        if (rc == RV_E_EXISTS)
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &field->src, "keep one of them",
                            "state field \"%s\" is declared twice; the first time on line %d", field->key,
                            l->p->state_fields[rv_index_get(&seen, rv_str_of(field->key))].src.line);
        else if (rc < 0)
            l->rc = rc;
        else if (!is_output(l, field->key))
            rv_findings_add(l->findings, RV_SEVERITY_WARNING, &field->src, NULL,
                            "state field \"%s\" is not the output key of a stage, so nothing is gathered in it",
                            field->key);
    }
    rv_index_fini(&seen);
}

static void check_pipeline(struct rv_loader *l)
{
    const struct rv_node *response = rv_node_get(rv_node_get(l->root, "response"), "output_key");

    index_outputs(l);
    for (size_t i = 0; i < l->p->n_edge_limits && l->rc == 0; i++)
        check_edge_limit(l, i);
    check_resume_stages(l);
    check_state(l);
    check_output_names(l, "retry_archive", &l->p->retry_archive);
    check_output_names(l, "retry_clear", &l->p->retry_clear);
    check_output_names(l, "stage_reset", &l->p->stage_reset);
    if (response && response->kind == RV_NODE_STR && !is_output(l, response->text.ptr))
        rv_findings_add(l->findings, RV_SEVERITY_WARNING, &response->src, output_hint(l, response->text.ptr),
                        "response.output_key names \"%s\", which is not the output key of a stage", response->text.ptr);
    for (size_t i = 0; i < l->p->n_agents; i++) {
        const struct rv_agent *a = &l->p->agents[i];
        if (a->places.plan_from.line > 0 && a->tools.plan_from[0] && !is_output(l, a->tools.plan_from))
            rv_findings_add(l->findings, RV_SEVERITY_WARNING, &a->places.plan_from, NULL,
                            "stage \"%s\": plan_from names \"%s\", which is not the output key of a stage", a->name,
                            a->tools.plan_from);
    }
}

/* --- Cycles --- */

/* requires and after must have no cycle: its stages would wait for each other forever. One cycle is reported, with the
 * place of every step. Depth-first with an explicit stack, because a chain may be as long as the list of stages. */

#define MAX_SHOWN 12 /* steps in the message: a person reads no longer circle; their number stands behind them */

enum color { WHITE, ON_STACK, DONE };

struct frame {
    int stage;
    size_t next; /* dependency to look at: requires first, then after */
};

static size_t n_dependencies(const struct rv_agent *a)
{
    return a->order.required.n + a->order.after.n;
}

static int dependency(const struct rv_agent *a, size_t i, bool *is_after, struct rv_src *src)
{
    *is_after = i >= a->order.required.n;
    if (*is_after)
        i -= a->order.required.n;
    *src = *is_after ? a->order.after.srcs[i] : a->order.required.srcs[i];
    return *is_after ? a->order.after_index[i] : a->order.required_index[i];
}

/* frames[from..depth) is a cycle: each frame's last looked-at dependency leads to the next one, the last to the first.
 */
static void report(struct rv_loader *l, const struct frame *frames, size_t from, size_t depth)
{
    const struct rv_pipeline *p = l->p;
    char text[1536];
    size_t len = 0;
    struct rv_src first = {NULL, 0, 0};

    for (size_t i = from; i < depth && len < sizeof text; i++) {
        const struct rv_agent *a = &p->agents[frames[i].stage];
        struct rv_src src;
        bool is_after;
        int to = dependency(a, frames[i].next - 1, &is_after, &src);

        if (i == from)
            first = src;
        if (i - from == MAX_SHOWN) {
            snprintf(text + len, sizeof text - len, ", ... (%zu stages in all)", depth - from);
            break;
        }
        len += (size_t)snprintf(text + len, sizeof text - len, "%s\"%.80s\" %s \"%.80s\" (%d:%d)", i > from ? ", " : "",
                                a->name, is_after ? "is after" : "requires", p->agents[to].name, src.line, src.col);
    }
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, &first,
                    "take one of them out: none of these stages could ever start", "dependency cycle: %s", text);
}

static bool walk_from(struct rv_loader *l, int start, enum color *colors, struct frame *frames)
{
    const struct rv_pipeline *p = l->p;
    size_t depth = 1;

    frames[0] = (struct frame){start, 0};
    colors[start] = ON_STACK;
    while (depth > 0) {
        struct frame *top = &frames[depth - 1];
        const struct rv_agent *a = &p->agents[top->stage];
        struct rv_src src;
        bool is_after;
        int to;

        if (top->next == n_dependencies(a)) {
            colors[top->stage] = DONE;
            depth--;
            continue;
        }
        to = dependency(a, top->next++, &is_after, &src);
        if (to < 0 || to == top->stage) /* unknown, or itself: a finding already */
            continue;
        if (colors[to] == ON_STACK) {
            size_t from = depth - 1;
            while (frames[from].stage != to)
                from--;
            report(l, frames, from, depth);
            return true;
        }
        if (colors[to] == WHITE) {
            colors[to] = ON_STACK;
            frames[depth++] = (struct frame){to, 0};
        }
    }
    return false;
}

static void check_cycles(struct rv_loader *l)
{
    size_t n = l->p->n_agents;
    enum color *colors = config_loader_array(l, n, sizeof *colors);
    struct frame *frames = config_loader_array(l, n, sizeof *frames);

    if (!colors || !frames)
        return;
    for (size_t i = 0; i < n; i++)
        if (colors[i] == WHITE && walk_from(l, (int)i, colors, frames))
            return;
}

void config_check_stages(struct rv_loader *l)
{
    static void (*const checks[])(struct rv_loader *) = {check_agents, check_declared, check_pipeline, check_cycles};

    for (size_t i = 0; i < RV_COUNT(checks) && l->rc == 0; i++)
        checks[i](l);
}

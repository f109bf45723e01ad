/* What spans stages: edge limits, resume stages, output keys, state, and the lists of output keys (rule 4.3). */
#include <string.h>

#include "config/config_internal.h"

static void no_stage(struct rv_loader *l, const struct rv_src *src, const char *what, const char *name)
{
    char hint[RV_HINT_MAX];

    rv_name_hint(l->findings, rv_str_of(name), "stages", l->p->stage_names, l->p->n_agents, hint);
    rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, hint, "%s names \"%s\", which is no stage", what, name);
}

static void check_edge_limit(struct rv_loader *l, size_t i)
{
    struct rv_edge_limit *edge = &l->p->edge_limits[i];
    int pair[2];
    char *key;
    int rc;

    if (!edge->from_name[0] || !edge->to_name[0])
        return;
    edge->from = rv_pipeline_stage(l->p, rv_str_of(edge->from_name));
    edge->to = rv_pipeline_stage(l->p, rv_str_of(edge->to_name));
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
    rc = rv_index_add(&l->p->private->edges, (rv_str){key, sizeof pair}, (int)i);
    if (rc == RV_E_EXISTS) {
        int first = rv_index_get(&l->p->private->edges, (rv_str){key, sizeof pair});
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
        if (stages[i].name[0] && rv_pipeline_stage(l->p, rv_str_of(stages[i].name)) < 0)
            no_stage(l, &node->src, stages[i].key, stages[i].name);
    }
}

static void index_outputs(struct rv_loader *l)
{
    rv_index *outputs = &l->p->private->output_index;

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
        if (strcmp(other->name, a->name) != 0) /* a double name is a finding already */
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, src, "give each agent an output_key of its own",
                            "agents \"%s\" and \"%s\" share the output_key \"%s\"", other->name, a->name,
                            a->output.key);
    }
}

static bool is_output(const struct rv_loader *l, const char *key)
{
    return rv_index_get(&l->p->private->output_index, rv_str_of(key)) >= 0;
}

static void check_output_names(struct rv_loader *l, const char *key, const struct rv_str_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (!is_output(l, list->items[i]))
            rv_findings_add(l->findings, RV_SEVERITY_WARNING, &list->srcs[i], NULL,
                            "%s names \"%s\", which is no stage's output key", key, list->items[i]);
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
                            "state field \"%s\" is no stage's output key, so nothing is gathered in it", field->key);
    }
    rv_index_fini(&seen);
}

void rv_check_pipeline(struct rv_loader *l)
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
        rv_findings_add(l->findings, RV_SEVERITY_WARNING, &response->src, NULL,
                        "response.output_key names \"%s\", which is no stage's output key", response->text.ptr);
    for (size_t i = 0; i < l->p->n_agents; i++) {
        const struct rv_agent *a = &l->p->agents[i];
        if (a->places.plan_from.line > 0 && a->tools.plan_from[0] && !is_output(l, a->tools.plan_from))
            rv_findings_add(l->findings, RV_SEVERITY_WARNING, &a->places.plan_from, NULL,
                            "agent \"%s\": plan_from names \"%s\", which is no stage's output key", a->name,
                            a->tools.plan_from);
    }
}

/* Looking things up in a pipeline. */
#include <string.h>

#include "config/config_internal.h"

int rv_pipeline_stage(const struct rv_pipeline *p, rv_str name)
{
    return rv_index_get(&p->stage_index, name);
}

static const struct {
    const char *name;
    int target;
} special_targets[] = {
    {"end", RV_TARGET_END},
    {"clarification", RV_TARGET_CLARIFICATION},
    {"confirmation", RV_TARGET_CONFIRMATION},
};

int rv_pipeline_target(const struct rv_pipeline *p, rv_str name)
{
    int stage;

    if (name.len == 0)
        return RV_TARGET_NONE;
    for (size_t i = 0; i < RV_COUNT(special_targets); i++)
        if (rv_str_is(name, special_targets[i].name))
            return special_targets[i].target;
    stage = rv_pipeline_stage(p, name);
    return stage >= 0 ? stage : RV_TARGET_UNKNOWN;
}

const char *rv_pipeline_target_name(const struct rv_pipeline *p, int target)
{
    if (target >= 0 && (size_t)target < p->n_agents)
        return p->stage_names[target];
    for (size_t i = 0; i < RV_COUNT(special_targets); i++)
        if (special_targets[i].target == target)
            return special_targets[i].name;
    return "";
}

int rv_agent_approved_target(const struct rv_agent *a)
{
    bool goes_on = a->routing.default_target != RV_TARGET_NONE && a->routing.default_target != RV_TARGET_CONFIRMATION;

    return goes_on ? a->routing.default_target : RV_TARGET_END;
}

const char *rv_pipeline_approved_name(const struct rv_pipeline *p, const struct rv_agent *a)
{
    return p->confirmation_resume_stage[0] ? p->confirmation_resume_stage
                                           : rv_pipeline_target_name(p, rv_agent_approved_target(a));
}

int64_t rv_pipeline_edge_limit(const struct rv_pipeline *p, int from, int to)
{
    int pair[2] = {from, to};
    int i = rv_index_get(&p->private->edges, (rv_str){(const char *)pair, sizeof pair});

    return i >= 0 ? p->edge_limits[i].max_count : 0;
}

const struct rv_model_config *rv_pipeline_model(const struct rv_pipeline *p, rv_str role)
{
    for (size_t i = 0; i < p->n_models; i++)
        if (rv_str_is(role, p->models[i].role))
            return &p->models[i];
    return NULL;
}

const struct rv_prompt_config *rv_pipeline_prompt(const struct rv_pipeline *p, rv_str key)
{
    for (size_t i = 0; i < p->n_prompts; i++)
        if (rv_str_is(key, p->prompts[i].key))
            return &p->prompts[i];
    return NULL;
}

rv_str rv_pipeline_text(const struct rv_pipeline *p)
{
    return p->private->text;
}

const struct rv_text_file *rv_pipeline_files(const struct rv_pipeline *p, size_t *n)
{
    *n = p->private->n_files;
    return p->private->files;
}

const struct rv_chosen_model *rv_pipeline_chosen_models(const struct rv_pipeline *p, size_t *n)
{
    *n = p->private->n_chosen_models;
    return p->private->chosen_models;
}

struct rv_reset_rules rv_pipeline_reset_rules(const struct rv_pipeline *p)
{
    struct rv_reset_rules rules = {0};

    /* A list that is set keeps its array even when it is empty: NULL means the defaults. */
    if (p->retry_archive.is_set) {
        rules.retry_archive = p->retry_archive.items;
        rules.n_retry_archive = p->retry_archive.n;
    }
    if (p->retry_clear.is_set) {
        rules.retry_clear = p->retry_clear.items;
        rules.n_retry_clear = p->retry_clear.n;
    }
    if (p->stage_reset.is_set) {
        rules.stage_reset = p->stage_reset.items;
        rules.n_stage_reset = p->stage_reset.n;
    }
    return rules;
}

int rv_agent_child_text(const struct rv_pipeline *p, const struct rv_agent *a)
{
    if (a->session.child_text != RV_UNSET)
        return a->session.child_text;
    return a->declared.doc && a->declared.doc->child_text != RV_UNSET ? a->declared.doc->child_text : p->child_text;
}

bool rv_pipeline_has_models(const struct rv_pipeline *p)
{
    return p->private->has_models;
}

const struct rv_node *rv_pipeline_written_model(const struct rv_pipeline *p, size_t model)
{
    return p->private->models ? p->private->models[model].node : NULL;
}

/* What a visit of a stage does: mock, model, tools or service; and which model it asks. */
#include <string.h>

#include "coreengine/agent/agent_internal.h"

/* Does no visit of that stage do any work, because it is the arbiter and there is to be none? */
static bool arbiter_is_off(const struct rv_visit_shared *shared, const struct rv_agent *agent)
{
    return shared->rules >= RV_RULES_2 && !shared->pipeline->execution.enable_arbiter &&
           strcmp(agent->output.key, RV_ARBITER) == 0;
}

bool rv_visit_is_scripted(const rv_visit *v)
{
    return v->shared->scripted_stages && v->shared->scripted_stages[v->agent->index];
}

static bool is_mocked(const struct rv_visit_shared *shared, const struct rv_agent *agent)
{
    if (shared->scripted_stages && shared->scripted_stages[agent->index])
        return true;
    return agent->hooks.mock_handler[0] && (agent->hooks.mock || shared->use_mocks);
}

bool rv_visit_is_mocked(const rv_visit *v)
{
    return is_mocked(v->shared, v->agent);
}

bool rv_stage_is_mocked(const struct rv_visit_shared *shared, int stage)
{
    return is_mocked(shared, &shared->pipeline->agents[stage]);
}

bool rv_stage_calls_llm(const struct rv_visit_shared *shared, int stage)
{
    const struct rv_agent *agent = &shared->pipeline->agents[stage];
    return agent->has_llm && !is_mocked(shared, agent) && !arbiter_is_off(shared, agent);
}

const char *rv_visit_role(const rv_visit *v)
{
    return v->agent->model.role[0] ? v->agent->model.role : "default";
}

const struct rv_model_config *rv_visit_model(const rv_visit *v)
{
    return rv_pipeline_model(v->shared->pipeline, rv_str_of(rv_visit_role(v)));
}

int64_t rv_visit_max_tokens(const rv_visit *v)
{
    const struct rv_model_config *model = rv_visit_model(v);

    if (v->agent->model.has_max_tokens)
        return v->agent->model.max_tokens;
    return model && model->has_max_tokens ? model->max_tokens : RV_LLM_DEFAULT_MAX_TOKENS;
}

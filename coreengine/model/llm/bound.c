/* The proof of what a run can cost: every call at its worst, as often as calls can be made. */
#include "coreengine/model/llm/llm_internal.h"

#include <string.h>

#define PROBE_BYTES 1000000 /* what costs nothing for so many costs nothing */

/* A script costs nothing unless the pipeline says it does. */
static bool is_free(const struct rv_model_config *m)
{
    return !m->has_price && strcmp(m->provider, "scripted") == 0;
}

/* Each request that is sent for a call may be charged for, the failed ones too. With a budget none is repeated that may
 * have been, and a script is asked once. */
static int64_t attempts_of(const struct rv_pipeline *p, const struct rv_model_config *m)
{
    int64_t n = RV_LLM_DEFAULT_ATTEMPTS;

    if (p->has_budget || strcmp(m->provider, "scripted") == 0)
        return 1;
    if (m->options)
        RV_IGNORE(!rv_json_get_int(m->options, "max_attempts", &n), "else the default");
    return n;
}

/* One model that a call may reach, and what it adds to the call. False: something is missing. */
static bool add_model(const struct rv_pipeline *p, const struct rv_model_config *m, int64_t tokens,
                      struct rv_llm_bound *call)
{
    bool is_window =
        m->max_input_tokens > 0 && (m->max_request_bytes == 0 || m->max_input_tokens < m->max_request_bytes);
    int64_t size = is_window ? m->max_input_tokens : m->max_request_bytes, attempts = attempts_of(p, m), cost;

    if (is_free(m))
        return true;
    call->role = m->role;
    if (!m->has_price || (size == 0 && rv_llm_worst_cost(&m->price, PROBE_BYTES, 0) > 0)) {
        call->state = m->has_price ? RV_LLM_BOUND_NO_LENGTH : RV_LLM_BOUND_NO_PRICE;
        return false;
    }
    cost = times(rv_llm_worst_cost(&m->price, size, tokens), attempts);
    if (cost >= call->model_micro_usd) {
        call->model_micro_usd = cost;
        call->request_size = size;
        call->is_window = is_window;
        call->reply_tokens = tokens;
        call->attempts = attempts;
    }
    if (!p->has_budget)
        call->call_micro_usd = plus(call->call_micro_usd, cost);
    else if (cost > call->call_micro_usd)
        call->call_micro_usd = cost;
    return true;
}

/* One call of a stage at its worst. */
static bool add_stage(const struct rv_pipeline *p, const struct rv_agent *a, struct rv_llm_bound *out)
{
    const struct rv_model_config *m = rv_pipeline_model(p, rv_str_of(a->model.role));
    struct rv_llm_bound call = {.state = RV_LLM_BOUND_PROVED};
    int64_t tokens;

    if (!m) /* a script answers for it, or no provider does */
        return true;
    tokens = a->model.has_max_tokens ? a->model.max_tokens
             : m->has_max_tokens     ? m->max_tokens
                                     : RV_LLM_DEFAULT_MAX_TOKENS;
    call.has_fallbacks = m->fallback.n > 0;
    bool is_known = add_model(p, m, tokens, &call);
    for (size_t i = 0; is_known && i < m->fallback.n; i++)
        is_known = add_model(p, m->fallback_models[i], tokens, &call);
    if (!is_known || call.call_micro_usd >= out->call_micro_usd)
        *out = call;
    return is_known;
}

void rv_llm_prove_cost(const struct rv_pipeline *p, int64_t max_llm_calls, struct rv_llm_bound *out)
{
    bool is_known = true;

    *out = (struct rv_llm_bound){.state = RV_LLM_BOUND_PROVED};
    for (size_t i = 0; is_known && max_llm_calls > 0 && i < p->n_agents; i++)
        if (p->agents[i].has_llm && !(p->agents[i].hooks.mock && p->agents[i].hooks.mock_handler[0]))
            is_known = add_stage(p, &p->agents[i], out);
    out->max_calls = max_llm_calls;
    out->cost_micro_usd = is_known ? times(out->call_micro_usd, max_llm_calls) : INT64_MAX;
    if (p->has_budget && (!is_known || p->budget_micro_usd < out->cost_micro_usd)) {
        out->cost_micro_usd = p->budget_micro_usd;
        out->is_budget = true;
        if (out->state == RV_LLM_BOUND_NO_LENGTH) /* the budget is asked with each request's own length */
            out->state = RV_LLM_BOUND_PROVED;
    }
}

/* What model calls cost, in whole micro-USD, always rounded up: a sum of calls is never less than the bill. And the
 * proof of what a run can cost: every call at its worst, as often as calls can be made. */
#include "coreengine/model/llm/llm.h"

#include "coreengine/base/base.h"

#include <string.h>

/* a * b, or the largest number. Both are 0 at least. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

#define MILLION       1000000 /* micro-dollars of a dollar, and their millionths */
#define HIDDEN_TOKENS 1024    /* what a provider adds to a request unseen: templates, words about tools */

static int64_t count(int64_t n)
{
    return n > 0 ? n : 0;
}

static int64_t round_up(int64_t micro_millionths)
{
    return micro_millionths / MILLION + (micro_millionths % MILLION > 0);
}

int64_t rv_llm_cost(const struct rv_price *price, const struct rv_usage *usage)
{
    if (!price)
        return 0;
    int64_t input = count(usage->input_tokens), cached = count(usage->cached_tokens);
    int64_t written = count(usage->cache_write_tokens);

    if (price->cached == RV_UNSET || cached > input)
        cached = price->cached == RV_UNSET ? 0 : input;
    if (price->cache_write == RV_UNSET || written > input - cached)
        written = price->cache_write == RV_UNSET ? 0 : input - cached;
    int64_t sum = times(input - cached - written, price->input);
    sum = rv_plus(sum, times(cached, count(price->cached)));
    sum = rv_plus(sum, times(written, count(price->cache_write)));
    return round_up(rv_plus(sum, times(count(usage->output_tokens), price->output)));
}

int64_t rv_llm_worst_cost(const struct rv_price *price, int64_t request_bytes, int64_t max_output_tokens)
{
    if (!price)
        return 0;
    int64_t dearest = price->input;

    if (price->cached > dearest)
        dearest = price->cached;
    if (price->cache_write > dearest)
        dearest = price->cache_write;
    return round_up(rv_plus(times(rv_plus(count(request_bytes), HIDDEN_TOKENS), dearest),
                            times(count(max_output_tokens), price->output)));
}

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
        n = rv_json_int_or(m->options, "max_attempts", RV_LLM_DEFAULT_ATTEMPTS);
    return n;
}

/* One model that a call may reach, and what it adds to the call. False: something is missing. has_parts: pictures and
 * files, whose bytes say nothing about their tokens. */
static bool add_model(const struct rv_pipeline *p, const struct rv_model_config *m, int64_t tokens, bool has_parts,
                      struct rv_llm_bound *call)
{
    int64_t max_bytes = has_parts ? 0 : m->max_request_bytes;
    bool is_window = m->max_input_tokens > 0 && (max_bytes == 0 || m->max_input_tokens < max_bytes);
    int64_t size = is_window ? m->max_input_tokens : max_bytes, attempts = attempts_of(p, m), cost;

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
        call->call_micro_usd = rv_plus(call->call_micro_usd, cost);
    else if (cost > call->call_micro_usd)
        call->call_micro_usd = cost;
    return true;
}

/* One call of a stage at its worst. */
static bool add_stage(const struct rv_pipeline *p, const struct rv_agent *a, struct rv_llm_bound *out)
{
    const struct rv_model_config *m = rv_pipeline_find_model(p, rv_str_of(a->model.role));
    struct rv_llm_bound call = {.state = RV_LLM_BOUND_PROVED};
    int64_t tokens;

    if (!m) /* a script answers for it, or no provider does */
        return true;
    tokens = a->model.has_max_tokens ? a->model.max_tokens
             : m->has_max_tokens     ? m->max_tokens
                                     : RV_LLM_DEFAULT_MAX_TOKENS;
    call.has_fallbacks = m->fallback.n > 0;
    bool is_known = add_model(p, m, tokens, a->model.n_attachments > 0, &call);
    for (size_t i = 0; is_known && i < m->fallback.n; i++)
        is_known = add_model(p, m->fallback_models[i], tokens, a->model.n_attachments > 0, &call);
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

/* The cost of model calls: reserved before they are made, settled when they are over; and the limits of a visit on
 * tokens. Costs follow from events and prices alone, so a replay spends the same. */
#include "coreengine/agent/agent_internal.h"

#include <inttypes.h>

static const struct rv_price *price_of(const struct rv_model_config *model)
{
    return model && model->has_price ? &model->price : NULL;
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* The most that the call can cost, whether the role or one of its fallbacks answers it. */
static int64_t worst_cost(const rv_visit *v, size_t request_bytes)
{
    const struct rv_model_config *model = rv_visit_model(v);
    int64_t bytes = (int64_t)request_bytes, tokens = rv_visit_max_tokens(v);
    int64_t worst = rv_llm_worst_cost(price_of(model), bytes, tokens);

    for (size_t i = 0; model && model->fallback_models && i < model->fallback.n; i++) {
        int64_t cost = rv_llm_worst_cost(price_of(model->fallback_models[i]), bytes, tokens);
        worst = cost > worst ? cost : worst;
    }
    return worst;
}

static int fail_for_money(rv_visit *v, int64_t needed, rv_err **err)
{
    const struct rv_visit_shared *s = rv_visit_root(v->shared);
    int64_t budget = s->pipeline->budget_micro_usd;

    v->bound = RV_REASON_BUDGET;
    return rv_visit_fail(v, "LimitError", err,
                         "agent \"%s\": the next model call may cost $%" PRId64 ".%06d, and of budget.usd "
                         "($%" PRId64 ".%06d) $%" PRId64 ".%06d is spent and $%" PRId64
                         ".%06d set aside for calls under way: raise budget.usd, or lower max_tokens",
                         v->agent->name, needed / 1000000, (int)(needed % 1000000), budget / 1000000,
                         (int)(budget % 1000000), s->spent_micro_usd / 1000000, (int)(s->spent_micro_usd % 1000000),
                         s->reserved_micro_usd / 1000000, (int)(s->reserved_micro_usd % 1000000));
}

static bool set_aside(rv_visit *v, int64_t worst, int *rc, rv_err **err)
{
    struct rv_visit_shared *s = rv_visit_root(v->shared);

    if (s->pipeline->has_budget &&
        plus(plus(s->spent_micro_usd, s->reserved_micro_usd), worst) > s->pipeline->budget_micro_usd) {
        *rc = fail_for_money(v, worst, err);
        return false;
    }
    v->model.reserved_micro_usd = worst;
    if (s->pipeline->has_budget)
        s->reserved_micro_usd += worst;
    return true;
}

bool rv_money_reserve(rv_visit *v, size_t request_bytes, int *rc, rv_err **err)
{
    return set_aside(v, worst_cost(v, request_bytes), rc, err);
}

void rv_money_release(rv_visit *v)
{
    if (v->shared->pipeline->has_budget)
        rv_visit_root(v->shared)->reserved_micro_usd -= v->model.reserved_micro_usd;
    v->model.reserved_micro_usd = 0;
}

static void count(rv_visit *v, const struct rv_usage *used)
{
    rv_usage_add(&v->model.usage, used);
    rv_envelope_add_usage(v->env, used);
    rv_visit_root(v->shared)->spent_micro_usd = plus(rv_visit_root(v->shared)->spent_micro_usd, used->cost_micro_usd);
}

/* The price of the role that answered. */
static const struct rv_price *answering_price(const rv_visit *v, const char *role)
{
    const struct rv_model_config *fallback = role ? rv_pipeline_model(v->shared->pipeline, rv_str_of(role)) : NULL;

    return price_of(fallback ? fallback : rv_visit_model(v));
}

void rv_money_settle(rv_visit *v, const struct rv_event *ev)
{
    const struct rv_llm_answer *a = &ev->llm;
    struct rv_usage used = a->has_usage ? a->usage : (struct rv_usage){0};
    int64_t worst = v->model.reserved_micro_usd;

    rv_money_release(v);
    v->model.is_scripted = a->is_scripted && !a->has_usage && v->shared->rules >= RV_RULES_2;
    if (v->model.is_scripted && !a->may_be_billed)
        return;
    if (!a->has_usage && (worst == 0 || (ev->failed && !a->may_be_billed)))
        return;
    used.calls = 1;
    used.estimated = false;
    used.cost_micro_usd = a->has_usage ? rv_llm_cost(answering_price(v, a->role), &used) : 0;
    if (!a->has_usage || ev->failed) { /* the provider did not report all usage: the call counts as its worst case */
        used.estimated = true;
        used.cost_micro_usd = used.cost_micro_usd > worst ? used.cost_micro_usd : worst;
    }
    count(v, &used);
}

void rv_money_lose(rv_visit *v, const char *why, struct rv_effects *out)
{
    int64_t worst = v->model.reserved_micro_usd;
    const struct rv_usage used = {.calls = 1, .cost_micro_usd = worst, .estimated = true};
    rv_jw w;

    if (worst == 0)
        return;
    rv_money_release(v);
    count(v, &used);
    if (!rv_emit_begin(v->shared, out, RV_EMIT_WARNING, v->agent->index, v->visit_no, v->now_us, &w))
        return;
    rv_jw_kv_text(&w, "message", why);
    rv_jw_kv_int(&w, "call_id", v->last_call);
    rv_jw_kv_int(&w, "cost_micro_usd", worst);
    rv_emit_end(out, &w);
}

bool rv_money_recover(rv_visit *v, struct rv_effects *out, int *rc, rv_err **err)
{
    int64_t worst = v->model.reserved_micro_usd;

    rv_money_lose(v, "nobody knows what became of a model call: it counts as charged for, and is made again", out);
    return worst == 0 || set_aside(v, worst, rc, err);
}

static bool within(rv_visit *v, const char *key, int64_t used, int64_t limit, int *rc, rv_err **err)
{
    if (limit == 0 || used <= limit)
        return true;
    *rc = rv_visit_fail(v, "LimitError", err,
                        "agent \"%s\" used %" PRId64 " tokens, limits.%s allows %" PRId64
                        ": raise it, or give the model less to read and write",
                        v->agent->name, used, key, limit);
    return false;
}

bool rv_money_within_limits(rv_visit *v, int *rc, rv_err **err)
{
    const struct rv_llm_limits *l = &v->agent->limits.llm;
    const struct rv_usage *u = &v->model.usage;

    return within(v, "input_tokens_limit", u->input_tokens, l->input_tokens_limit, rc, err) &&
           within(v, "output_tokens_limit", u->output_tokens, l->output_tokens_limit, rc, err) &&
           within(v, "total_tokens_limit", plus(u->input_tokens, u->output_tokens), l->total_tokens_limit, rc, err);
}

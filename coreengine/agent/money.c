/* The cost of model calls: set aside before the call, settled after it. A call that does not fit only because of what
 * calls under way have set aside waits until one of them is done; the run then tells it to look again, in the order of
 * its lists. Costs follow from events and prices alone, so a replay spends the same. */
#include "coreengine/agent/tools_internal.h"
#include "coreengine/base/base.h"
#include "envelope/envelope.h"

#include <inttypes.h>
#include <stdlib.h>

static const struct rv_price *price_of(const struct rv_model_config *model)
{
    return model && model->has_price ? &model->price : NULL;
}

/* The most tokens that a model can count for a request: one for each byte, and what pictures and files may come to,
 * which only the window of the model bounds. */
static int64_t worst_input(const rv_visit *v, const struct rv_model_config *model, int64_t bytes)
{
    int64_t attached = agent_parts_worst_tokens(v), sum = rv_plus(bytes, attached);

    return attached > 0 && model && model->max_input_tokens > 0 && model->max_input_tokens < sum
               ? model->max_input_tokens
               : sum;
}

/* The most that the call can cost, whether the role or one of its fallbacks answers it. */
static int64_t worst_cost(const rv_visit *v, size_t request_bytes)
{
    const struct rv_model_config *model = visit_model(v);
    int64_t bytes = (int64_t)request_bytes, tokens = visit_max_tokens(v);
    int64_t worst = rv_llm_worst_cost(price_of(model), worst_input(v, model, bytes), tokens);

    for (size_t i = 0; model && model->fallback_models && i < model->fallback.n; i++) {
        const struct rv_model_config *other = model->fallback_models[i];
        int64_t cost = rv_llm_worst_cost(price_of(other), worst_input(v, other, bytes), tokens);
        worst = cost > worst ? cost : worst;
    }
    return worst;
}

int64_t money_worst_tokens(const rv_visit *v, size_t request_bytes)
{
    return rv_plus(worst_input(v, visit_model(v), (int64_t)request_bytes), visit_max_tokens(v));
}

static int fail_for_money(rv_visit *v, const struct rv_visit_shared *s, int64_t needed, rv_err **err)
{
    int64_t budget = s->pipeline->budget_micro_usd;

    v->bound = RV_REASON_BUDGET;
    v->bound_of = s;
    return rv_visit_fail(v, rv_error_limit, err,
                         "agent \"%s\": the next model call may cost $%" PRId64 ".%06d, and of budget.usd "
                         "($%" PRId64 ".%06d) $%" PRId64 ".%06d is spent and $%" PRId64
                         ".%06d set aside for calls under way: raise budget.usd, or lower max_tokens",
                         v->agent->name, needed / 1000000, (int)(needed % 1000000), budget / 1000000,
                         (int)(budget % 1000000), s->spent_micro_usd / 1000000, (int)(s->spent_micro_usd % 1000000),
                         s->reserved_micro_usd / 1000000, (int)(s->reserved_micro_usd % 1000000));
}

/* Is it a run, and has it a budget? */
static bool is_budgeted(const struct rv_visit_shared *s)
{
    return !s->origin && s->pipeline->has_budget;
}

/* Is there a budget that pays for the calls of the visit? */
static bool is_paid(const rv_visit *v)
{
    const struct rv_visit_shared *s = v->shared;

    while (s && !is_budgeted(s))
        s = s->up;
    return s != NULL;
}

static void reserve_all(rv_visit *v, int64_t micro_usd)
{
    for (struct rv_visit_shared *s = v->shared; s; s = s->up)
        if (is_budgeted(s))
            s->reserved_micro_usd += micro_usd;
}

/* The outermost run that cannot pay for it. *reserved: that cannot beside what is set aside there. NULL: all can. */
static const struct rv_visit_shared *look_at_budgets(const rv_visit *v, int64_t cost,
                                                     const struct rv_visit_shared **reserved)
{
    const struct rv_visit_shared *exhausted = NULL;

    *reserved = NULL;
    for (const struct rv_visit_shared *s = v->shared; s; s = s->up) {
        int64_t spent = rv_plus(s->spent_micro_usd, cost);

        if (is_budgeted(s) && spent > s->pipeline->budget_micro_usd)
            exhausted = s;
        if (is_budgeted(s) && rv_plus(spent, s->reserved_micro_usd) > s->pipeline->budget_micro_usd)
            *reserved = s;
    }
    return exhausted;
}

/* The outermost run that cannot pay for it. *waits: it could if nothing were set aside there, and so could all others.
 * NULL: all can, or the call is about to be refused for another reason. */
static const struct rv_visit_shared *find_exhausted(const rv_visit *v, int64_t cost, bool *waits)
{
    const struct rv_visit_shared *reserved, *exhausted = look_at_budgets(v, cost, &reserved);

    *waits = false;
    if (v->shared->rules < RV_RULES_4 || exhausted || !reserved)
        return v->shared->rules < RV_RULES_4 ? reserved : exhausted;
    *waits = !visit_must_end(v);
    return *waits ? reserved : NULL;
}

static void set_aside(rv_visit *v, int64_t cost)
{
    v->model.reserved_micro_usd = cost;
    reserve_all(v, cost);
}

void money_release(rv_visit *v)
{
    if (v->model.reserved_micro_usd > 0)
        rv_visit_root(v->shared)->looks_for_money = true;
    reserve_all(v, -v->model.reserved_micro_usd);
    v->model.reserved_micro_usd = 0;
}

/* --- a call that waits --- */

static void forget_request(rv_visit *v)
{
    free(v->model.priced);
    v->model.priced = NULL;
    v->model.priced_len = 0;
}

static int keep_request(rv_visit *v, const rv_buf *request, rv_err **err)
{
    forget_request(v);
    v->model.priced = rv_str_dup(rv_buf_str(request));
    v->model.priced_len = request->len;
    return v->model.priced ? 0 : RV_FAIL(err, RV_E_NOMEM, "ask a model");
}

/* Until its time is up. */
static int wait(rv_visit *v, int64_t cost, struct rv_effects *out, rv_err **err)
{
    v->waiting_for = visit_arm(v, v->deadline_us, out);
    v->waiting_kind = RV_EVENT_TIMER;
    if (!v->waiting_for)
        return RV_FAIL(err, RV_E_NOMEM, "wait for money");
    if (!v->model.is_short)
        rv_visit_root(v->shared)->n_short++;
    v->model.is_short = true;
    v->model.cost_micro_usd = cost;
    return 0;
}

void money_stop_waiting(rv_visit *v)
{
    if (v->model.is_short)
        rv_visit_root(v->shared)->n_short--;
    v->model.is_short = false;
    forget_request(v);
}

/* The request of a call that waited. */
static int send_kept(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf request = RV_BUF_INIT(v->model.priced_len + 1);

    rv_buf_add(&request, v->model.priced, v->model.priced_len);
    int rc = rv_buf_check(&request, "model request", err);
    if (rc < 0) {
        rv_buf_fini(&request);
        return rc;
    }
    rv_visit_root(v->shared)->n_short--;
    v->model.is_short = false;
    return agent_model_call(v, &request, out, err);
}

static int drop_timer(rv_visit *v, int64_t timer, struct rv_effects *out, rv_err **err)
{
    struct rv_effect *e = rv_effects_add(out, RV_EFFECT_CANCEL_CALL);

    if (!e)
        return RV_FAIL(err, RV_E_NOMEM, "wait for money");
    e->call_id = timer;
    e->stage = visit_stage(v);
    return 0;
}

int money_look(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    bool is_timer = rv_visit_root(v->shared)->told_to_look != ev->call_id, waits = false;
    int64_t cost = v->model.cost_micro_usd;
    const struct rv_visit_shared *exhausted = find_exhausted(v, cost, &waits);

    if (waits && is_timer) /* another process moved its deadline */
        return wait(v, cost, out, err);
    if (waits) {
        v->waiting_for = ev->call_id;
        return 0;
    }
    int rc = is_timer ? 0 : drop_timer(v, ev->call_id, out, err);
    if (rc < 0)
        return rc;
    if (exhausted) {
        money_stop_waiting(v);
        return fail_for_money(v, exhausted, cost, err);
    }
    set_aside(v, cost);
    return send_kept(v, out, err);
}

static int add_short(struct rv_short *list, int64_t timer, rv_err **err)
{
    if (!rv_has_room(&list->timers, &list->cap, list->n + 1, sizeof *list->timers))
        return RV_FAIL(err, RV_E_NOMEM, "look for money");
    list->timers[list->n++] = timer;
    return 0;
}

int rv_visit_find_short(const rv_visit *v, struct rv_short *out, rv_err **err)
{
    int rc = v->model.is_short ? add_short(out, v->waiting_for, err) : 0;

    for (size_t i = 0; i < v->tools.n_pending && rc == 0; i++)
        if (v->tools.pending[i].child)
            rc = rv_visit_find_short(v->tools.pending[i].child->visit, out, err);
    return rc;
}

int agent_model_send(rv_visit *v, rv_buf *request, struct rv_effects *out, rv_err **err)
{
    int64_t cost = worst_cost(v, request->len);
    bool waits = false, keeps = cost > 0 && v->shared->rules >= RV_RULES_4 && is_paid(v);
    const struct rv_visit_shared *exhausted = find_exhausted(v, cost, &waits);

    int rc = keeps ? keep_request(v, request, err) : 0;
    if (rc == 0 && !exhausted) {
        set_aside(v, cost);
        return agent_model_call(v, request, out, err);
    }
    rv_buf_fini(request);
    if (rc < 0)
        return rc;
    return waits ? wait(v, cost, out, err) : fail_for_money(v, exhausted, cost, err);
}

static void count(rv_visit *v, const struct rv_usage *used)
{
    rv_usage_add(&v->model.usage, used);
    rv_envelope_add_usage(v->env, used);
    for (struct rv_visit_shared *s = v->shared; s; s = s->up)
        if (!s->origin)
            s->spent_micro_usd = rv_plus(s->spent_micro_usd, used->cost_micro_usd);
}

/* The price of the role that answered. */
static const struct rv_price *answering_price(const rv_visit *v, const char *role)
{
    const struct rv_model_config *fallback = role ? rv_pipeline_find_model(v->shared->pipeline, rv_str_of(role)) : NULL;

    return price_of(fallback ? fallback : visit_model(v));
}

void money_settle(rv_visit *v, const struct rv_event *ev)
{
    const struct rv_llm_answer *a = &ev->llm;
    struct rv_usage used = a->has_usage ? a->usage : (struct rv_usage){0};
    int64_t worst = v->model.reserved_micro_usd;

    money_release(v);
    forget_request(v);
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

void money_count_asked(rv_visit *v, const struct rv_event *ev)
{
    const struct rv_usage *used = &ev->llm.usage;

    if (ev->kind != RV_EVENT_TOOL_DONE || !ev->llm.has_usage)
        return;
    rv_visit_note_calls(v->shared, used->calls);
    v->llm_calls += used->calls;
    count(v, used);
}

void money_lose(rv_visit *v, const char *why, struct rv_effects *out)
{
    int64_t worst = v->model.reserved_micro_usd;
    const struct rv_usage used = {.calls = 1, .cost_micro_usd = worst, .estimated = true};

    if (worst == 0)
        return;
    money_release(v);
    count(v, &used);
    rv_visit_emit(v, out, RV_EMIT_WARNING, RV_M_TEXT("message", why), RV_M_INT("call_id", v->last_call),
                  RV_M_INT("cost_micro_usd", worst));
}

/* As find_exhausted() of a call that is made again: where the visit must end, no call waits, and it is refused for no
 * other reason. */
static const struct rv_visit_shared *find_unpaid(const rv_visit *v, int64_t cost, bool *waits)
{
    const struct rv_visit_shared *exhausted = find_exhausted(v, cost, waits), *reserved;

    if (exhausted || v->shared->rules < RV_RULES_9)
        return exhausted;
    exhausted = look_at_budgets(v, cost, &reserved);
    return exhausted ? exhausted : reserved;
}

bool money_recover(rv_visit *v, struct rv_effects *out, int *rc, rv_err **err)
{
    int64_t cost = v->model.reserved_micro_usd;
    bool waits = false;

    money_lose(v, "nobody knows what became of a model call: it counts as charged for, and is made again", out);
    const struct rv_visit_shared *exhausted = cost > 0 ? find_unpaid(v, cost, &waits) : NULL;
    if (!exhausted) {
        set_aside(v, cost);
        return true;
    }
    if (!waits) {
        *rc = fail_for_money(v, exhausted, cost, err);
        return false;
    }
    if (v->shared->rules >= RV_RULES_5) { /* the lost call may have been made: this is one more, and has its key */
        if (!agent_model_may_ask(v, rc, err))
            return false;
        v->model.repeats++;
    } else {
        v->llm_calls--; /* it is counted when it is made */
        v->model.requests--;
        v->model.has_call = true;
    }
    *rc = wait(v, cost, out, err);
    return *rc == 0;
}

static bool within(rv_visit *v, const char *key, int64_t used, int64_t limit, int *rc, rv_err **err)
{
    if (limit == 0 || used <= limit)
        return true;
    *rc = rv_visit_fail(v, rv_error_limit, err,
                        "agent \"%s\" used %" PRId64 " tokens, limits.%s allows %" PRId64
                        ": raise it, or give the model less to read and write",
                        v->agent->name, used, key, limit);
    return false;
}

bool money_within_limits(rv_visit *v, int *rc, rv_err **err)
{
    const struct rv_llm_limits *l = &v->agent->limits.llm;
    const struct rv_usage *u = &v->model.usage;

    return within(v, "input_tokens_limit", u->input_tokens, l->input_tokens_limit, rc, err) &&
           within(v, "output_tokens_limit", u->output_tokens, l->output_tokens_limit, rc, err) &&
           within(v, "total_tokens_limit", rv_plus(u->input_tokens, u->output_tokens), l->total_tokens_limit, rc, err);
}

int money_count_tools(rv_visit *v, int64_t n, rv_err **err)
{
    int64_t limit = v->agent->limits.llm.tool_calls_limit;

    if (limit > 0 && v->model.tool_calls + n > limit)
        return rv_visit_fail(v, rv_error_limit, err,
                             "agent \"%s\": the model has called %lld tools and asks for %lld more, "
                             "limits.tool_calls_limit is %lld: raise it, or offer fewer tools",
                             v->agent->name, (long long)v->model.tool_calls, (long long)n, (long long)limit);
    v->model.tool_calls += n;
    return 0;
}

/* May the run go on, and how it ended. */
#include "envelope/envelope_internal.h"

bool rv_envelope_can_continue(const rv_envelope *env, bool count_llm, enum rv_reason *reason)
{
    const struct rv_envelope_fields *f = &env->f;
    enum rv_reason hit = RV_REASON_NONE;
    bool stopped = f->terminated || f->interrupt_pending;

    if (!stopped) {
        if (f->iteration > f->max_iterations)
            hit = RV_REASON_MAX_ITERATIONS;
        else if (count_llm && f->llm_call_count >= f->max_llm_calls)
            hit = RV_REASON_MAX_LLM_CALLS;
        else if (f->agent_hop_count >= f->max_agent_hops)
            hit = RV_REASON_MAX_HOPS;
    }
    if (reason)
        *reason = hit;
    return !stopped && hit == RV_REASON_NONE;
}

static int64_t left(int64_t max, int64_t count)
{
    return max > count ? max - count : 0;
}

struct rv_envelope_left rv_envelope_left(const rv_envelope *env)
{
    const struct rv_envelope_fields *f = &env->f;

    return (struct rv_envelope_left){
        .iterations = left(f->max_iterations, f->iteration),
        .llm_calls = left(f->max_llm_calls, f->llm_call_count),
        .hops = left(f->max_agent_hops, f->agent_hop_count),
    };
}

int rv_envelope_terminate(rv_envelope *env, rv_str text, enum rv_reason reason, int64_t now_us, rv_err **err)
{
    struct rv_text clean = {0};
    int rc;

    if (env->f.terminated)
        return 0;
    rc = rv_text_clean(text, &clean, err);
    if (rc < 0)
        return rc;
    rv_text_move(&env->text[RV_TEXT_TERMINATION], &clean);
    env->f.termination_reason = env->text[RV_TEXT_TERMINATION].ptr;
    env->f.terminated = true;
    env->f.completed_at_us = rv_clamp_time(now_us);
    if ((size_t)reason < RV_N_REASON)
        env->f.terminal_reason = reason;
    return 0;
}

void rv_envelope_complete(rv_envelope *env, int64_t now_us)
{
    if (env->f.terminated)
        return;
    env->f.terminal_reason = RV_REASON_COMPLETED;
    env->f.completed_at_us = rv_clamp_time(now_us);
}

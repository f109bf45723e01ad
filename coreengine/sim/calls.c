/* Calls under way and timers of one process, and when each of them is answered. */
#include "coreengine/sim/sim_internal.h"

#include <stdlib.h>
#include <string.h>

static const int64_t latencies_us[] = {
    1000, 1, 20000, 300000, 2 * SIM_SECOND_US, 15 * SIM_SECOND_US, 600 * SIM_SECOND_US};

void sim_call_fini(struct sim_call *c)
{
    free(c->name);
    free(c->key);
    free(c->who);
    rv_buf_fini(&c->outcome.text);
    rv_buf_fini(&c->outcome.partial);
    rv_buf_fini(&c->outcome.calls);
}

void sim_calls_drop(struct sim_seed *s)
{
    for (size_t i = 0; i < s->n_calls; i++)
        sim_call_fini(&s->calls[i]);
    s->n_calls = 0;
}

static struct sim_call *add(struct sim_seed *s, rv_err **err)
{
    if (s->n_calls == s->cap_calls) {
        size_t cap = s->cap_calls ? s->cap_calls * 2 : 8;
        struct sim_call *calls = realloc(s->calls, cap * sizeof *calls);
        if (!calls) {
            RV_IGNORE(RV_FAIL(err, RV_E_NOMEM, "make a call"), "NULL says it");
            return NULL;
        }
        s->calls = calls;
        s->cap_calls = cap;
    }
    struct sim_call *c = &s->calls[s->n_calls++];
    *c = (struct sim_call){.outcome = {.text = RV_BUF_INIT(SIM_MAX_TEXT),
                                       .partial = RV_BUF_INIT(SIM_MAX_TEXT),
                                       .calls = RV_BUF_INIT(SIM_MAX_TEXT),
                                       .llm = RV_LLM_ANSWER_NONE}};
    return c;
}

/* In time, unless it is to be late. */
static void schedule(struct sim_seed *s, const struct rv_effect *e, struct sim_call *c)
{
    int64_t latency = latencies_us[sim_draw(&s->tape, RV_COUNT(latencies_us))];
    bool late = c->outcome.failed && c->outcome.error_type && strcmp(c->outcome.error_type, "TimeoutError") == 0;

    c->due_us = s->now_us + latency;
    if (late)
        c->due_us = e->deadline_us > s->now_us ? e->deadline_us : s->now_us + (e->deadline_us ? 0 : latency);
    else if (e->deadline_us && c->due_us >= e->deadline_us)
        c->due_us = e->deadline_us > s->now_us ? e->deadline_us - 1 : s->now_us;
    switch (sim_draw(&s->tape, 3)) { /* when a tool does what it does: at its end, at once, half-way */
    case 1:
        c->effect_us = s->now_us;
        break;
    case 2:
        c->effect_us = s->now_us + (c->due_us - s->now_us) / 2;
        break;
    default:
        c->effect_us = c->due_us;
        break;
    }
}

int sim_call_start(struct sim_seed *s, struct rv_effect *e, rv_err **err)
{
    int rc = sim_world_asked(s, e, err);

    if (rc < 0 || s->is_broken)
        return rc;
    struct sim_call *c = add(s, err);
    if (!c)
        return RV_E_NOMEM;
    c->call_id = e->call_id;
    c->kind = e->kind;
    c->stage = e->stage;
    c->visit = e->visit;
    c->attempt = e->attempt;
    c->effect_class = e->effect_class;
    c->name = rv_str_dup(rv_str_of(e->name));
    c->key = e->key ? rv_str_dup(rv_str_of(e->key)) : NULL;
    c->who = sim_who(s, e);
    c->is_agents = e->origin != NULL;
    s->tally->n_agent_calls += c->is_agents;
    if (!c->name || !c->who || (e->key && !c->key))
        return RV_FAIL(err, RV_E_NOMEM, "make a call");
    if (e->kind == RV_EFFECT_CALL_LLM)
        rc = sim_model_answer(s, e, &c->outcome, err);
    else if (e->kind == RV_EFFECT_CALL_TOOL)
        rc = sim_tool_answer(s, e, &c->outcome, err);
    else
        rc = sim_hook_answer(s, e, &c->outcome, err);
    if (rc == 0)
        schedule(s, e, c);
    return rc;
}

int sim_timer_start(struct sim_seed *s, const struct rv_effect *e, rv_err **err)
{
    struct sim_call *c = add(s, err);

    if (!c)
        return RV_E_NOMEM;
    c->call_id = e->call_id;
    c->kind = RV_EFFECT_ARM_TIMER;
    c->stage = e->stage;
    c->due_us = e->at_us > s->now_us ? e->at_us : s->now_us;
    c->effect_us = INT64_MAX;
    return 0;
}

void sim_call_cancel(struct sim_seed *s, int64_t call_id)
{
    for (size_t i = 0; i < s->n_calls; i++) {
        struct sim_call *c = &s->calls[i];
        if (c->call_id != call_id)
            continue;
        if (c->outcome.takes_effect && !c->landed && sim_draw(&s->tape, 2)) /* it does not listen */
            sim_world_effect(s, c);
        sim_call_fini(c);
        *c = s->calls[--s->n_calls];
        return;
    }
}

size_t sim_call_next(const struct sim_seed *s)
{
    size_t best = 0;

    for (size_t i = 1; i < s->n_calls; i++) {
        const struct sim_call *a = &s->calls[i], *b = &s->calls[best];
        if (a->due_us < b->due_us || (a->due_us == b->due_us && a->call_id < b->call_id))
            best = i;
    }
    return best;
}

struct sim_call sim_call_take(struct sim_seed *s, size_t at, struct rv_event *ev)
{
    struct sim_call c = s->calls[at];

    s->calls[at] = s->calls[--s->n_calls];
    *ev = (struct rv_event){.now_us = s->now_us,
                            .call_id = c.call_id,
                            .failed = c.outcome.failed,
                            .error_type = c.outcome.error_type,
                            .retryable = c.outcome.retryable,
                            .llm = c.outcome.llm};
    ev->kind = c.kind == RV_EFFECT_CALL_LLM    ? RV_EVENT_LLM_DONE
               : c.kind == RV_EFFECT_CALL_TOOL ? RV_EVENT_TOOL_DONE
               : c.kind == RV_EFFECT_ARM_TIMER ? RV_EVENT_TIMER
                                               : RV_EVENT_HOOK_DONE;
    if (c.outcome.failed) {
        ev->error = rv_buf_str(&c.outcome.text);
        ev->reply = c.outcome.partial.len ? rv_buf_str(&c.outcome.partial) : (rv_str){NULL, 0};
    } else {
        ev->reply = (rv_str){rv_buf_cstr(&c.outcome.text), c.outcome.text.len};
    }
    return c;
}

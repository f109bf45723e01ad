/* The world outside: calls under way and when each is answered, and what tools did, by idempotency key. What was done
 * does not die with a process, and a person who is asked whether something happened looks at it. */
#include "coreengine/sim/sim_internal.h"
#include "envelope/envelope.h"

#include <stdlib.h>
#include <string.h>

#define LANDS_ANYWAY 500 /* per mille of calls whose effect happens although the engine no longer waits for it */

void sim_world_fini(struct sim_world *w)
{
    for (size_t i = 0; i < w->n; i++) {
        free(w->keys[i].key);
        free(w->keys[i].tool);
        free(w->keys[i].args);
    }
    free(w->keys);
    free(w->finished);
    *w = (struct sim_world){0};
}

struct sim_key *sim_world_find(struct sim_world *w, const char *key)
{
    if (!key)
        return NULL;
    for (size_t i = w->n; i-- > 0;)
        if (strcmp(w->keys[i].key, key) == 0)
            return &w->keys[i];
    return NULL;
}

static struct sim_key *new_key(struct sim_world *w, const struct rv_effect *e)
{
    if (!rv_has_room(&w->keys, &w->cap, w->n + 1, sizeof *w->keys))
        return NULL;
    struct sim_key *k = &w->keys[w->n];
    *k = (struct sim_key){.effect_class = e->effect_class, .visit = e->visit};
    w->n++;
    k->key = rv_str_dup(rv_str_of(e->key));
    k->tool = rv_str_dup(rv_str_of(e->name));
    k->args = rv_str_dup((rv_str){e->request, e->request_len});
    return k->key && k->tool && k->args ? k : NULL;
}

static bool is_finished(const struct sim_world *w, int64_t call_id)
{
    for (size_t i = w->n_finished; i-- > 0;)
        if (w->finished[i] == call_id)
            return true;
    return false;
}

static bool keys_wanted(const struct sim_seed *s)
{
    const struct rv_execution_config *x = &s->subject->pipeline->execution;

    return x->enable_idempotency && x->enforce_idempotency_for_tools;
}

/* Its time was over (idempotency_ttl_ms): "/r<n>" ends it. */
static bool is_renewed(const char *key)
{
    const char *last = strrchr(key, '/');

    return last && last[1] == 'r';
}

static int sim_world_asked(struct sim_seed *s, const struct rv_effect *e, rv_err **err)
{
    long long id = (long long)e->call_id;

    s->tally->n_calls++;
    if (is_finished(&s->world, e->call_id)) {
        sim_break(s, RV_SIM_KEEPS_NO_REPEAT,
                  "call %lld of stage \"%s\" has its answer in the journal and is made again", id,
                  sim_stage_name(s, e->stage));
        return 0;
    }
    if (e->kind != RV_EFFECT_CALL_TOOL)
        return 0;
    if (!e->key && !keys_wanted(s))
        return 0; /* the world cannot tell its calls apart */
    if (!e->key || !e->key[0]) {
        sim_break(s, RV_SIM_KEEPS_NO_REPEAT, "tool \"%s\" is called without an idempotency key", e->name);
        return 0;
    }
    struct sim_key *k = sim_world_find(&s->world, e->key);
    if (!k && e->attempt > 1 && !is_renewed(e->key))
        sim_break(s, RV_SIM_KEEPS_NO_REPEAT, "attempt %lld of tool \"%s\" has a key of its own, %s",
                  (long long)e->attempt, e->name, e->key);
    if (!k) {
        k = new_key(&s->world, e);
        if (!k)
            return RV_FAIL(err, RV_E_NOMEM, "note a call");
    } else if (strcmp(k->tool, e->name) != 0 || !rv_str_is((rv_str){e->request, e->request_len}, k->args)) {
        sim_break(s, RV_SIM_KEEPS_NO_REPEAT, "key %s of tool \"%s\" with %.80s comes again, for tool \"%s\" with %.80s",
                  k->key, k->tool, k->args, e->name, e->request);
    } else if (k->finished) {
        sim_break(s, RV_SIM_KEEPS_NO_REPEAT, "tool \"%s\" is called again with key %s, whose success is in the journal",
                  k->tool, k->key);
    } else if (k->settled) {
        sim_break(s, RV_SIM_KEEPS_ONCE,
                  "tool \"%s\" is called again with key %s, of which a person said that it happened", k->tool, k->key);
    } else if (k->effect_class == RV_EFFECT_NON_IDEMPOTENT && k->asked > 0 && !k->released) {
        sim_break(s, RV_SIM_KEEPS_ONCE,
                  "non_idempotent tool \"%s\" is called again with key %s, and no person allowed it", k->tool, k->key);
    }
    k->asked++;
    if (k->asked == 1)
        k->asked_us = e->at_us ? e->at_us : s->last_event_us; /* recovered: when it was asked for at first */
    k->released = false;
    k->last_call = e->call_id;
    return 0;
}

void sim_world_effect(struct sim_seed *s, struct sim_call *c)
{
    struct sim_key *k = c->key ? sim_world_find(&s->world, c->key) : NULL;

    if (c->landed || !k)
        return;
    c->landed = true;
    k->effects++;
    s->tally->n_effects++;
    sim_say(s, "the world: %s happened (%lld. time with key %s)", k->tool, (long long)k->effects, k->key);
    if (k->effects > 1 && k->effect_class == RV_EFFECT_NON_IDEMPOTENT)
        sim_break(s, RV_SIM_KEEPS_ONCE, "non_idempotent tool \"%s\" took effect %lld times with key %s", k->tool,
                  (long long)k->effects, k->key);
}

int sim_world_finished(struct sim_seed *s, const struct rv_event *ev, rv_err **err)
{
    struct sim_world *w = &s->world;

    if (!rv_has_room(&w->finished, &w->cap_finished, w->n_finished + 1, sizeof *w->finished))
        return RV_FAIL(err, RV_E_NOMEM, "note an answer");
    w->finished[w->n_finished++] = ev->call_id;
    for (size_t i = w->n; i-- > 0 && ev->kind == RV_EVENT_TOOL_DONE;) {
        struct sim_key *k = &w->keys[i];
        if (k->last_call != ev->call_id)
            continue;
        if (!ev->failed && !ev->unknown && k->effects == 0)
            sim_break(s, RV_SIM_KEEPS_NO_REPEAT, "tool \"%s\" has a success in the journal and never ran", k->tool);
        k->finished = k->finished || (!ev->failed && !ev->unknown);
        break;
    }
    return 0;
}

void sim_world_orphaned(struct sim_seed *s)
{
    for (size_t i = 0; i < s->n_calls; i++) {
        struct sim_call *c = &s->calls[i];
        if (c->outcome.takes_effect && !c->landed && sim_chance(&s->tape, LANDS_ANYWAY))
            sim_world_effect(s, c);
    }
}

/* --- calls under way and timers --- */

static const int64_t latencies_us[] = {1000, 1, 20000, 300000, 2 * RV_US_PER_S, 15 * RV_US_PER_S, 600 * RV_US_PER_S};

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

static struct sim_call *add_call(struct sim_seed *s, rv_err **err)
{
    if (!rv_has_room(&s->calls, &s->cap_calls, s->n_calls + 1, sizeof *s->calls)) {
        RV_IGNORE(RV_FAIL(err, RV_E_NOMEM, "make a call"), "NULL says it");
        return NULL;
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
    bool late = c->outcome.failed && rv_error_is(c->outcome.error_type, rv_error_timeout);

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
    struct sim_call *c = add_call(s, err);
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
    struct sim_call *c = add_call(s, err);

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

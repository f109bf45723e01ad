/* The world outside: what tools did, by idempotency key. It does not die with a process, and it is what a person looks
 * at who is asked whether something happened. */
#include "coreengine/sim/sim_internal.h"

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
    if (w->n == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 8;
        struct sim_key *keys = realloc(w->keys, cap * sizeof *keys);
        if (!keys)
            return NULL;
        w->keys = keys;
        w->cap = cap;
    }
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

int sim_world_asked(struct sim_seed *s, const struct rv_effect *e, rv_err **err)
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
                  "non_idempotent tool \"%s\" is called again with key %s, and nobody said it may be", k->tool, k->key);
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

    if (w->n_finished == w->cap_finished) {
        size_t cap = w->cap_finished ? w->cap_finished * 2 : 16;
        int64_t *ids = realloc(w->finished, cap * sizeof *ids);
        if (!ids)
            return RV_FAIL(err, RV_E_NOMEM, "note an answer");
        w->finished = ids;
        w->cap_finished = cap;
    }
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

/* Gates, one for each address and key, shared by all exchanges of a process: who may go to one address with one key,
 * and when. First come, first served: the first in the queue waits for a place, for the buckets, or for the end of a
 * limit that the provider told; the others wait for it.
 *
 * The buckets are kept as the time at which they will be full again: each request moves that on by what it takes at the
 * rate of its role, so roles with different figures can share one. */
#include "coreengine/model/provider/provider_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What a full bucket holds: a tenth of a minute's worth, so that no minute sees much more than its figure. */
#define BUCKET_US (RV_US_PER_MIN / 10)
/* A bucket is never empty for longer: what a provider counted may be wrong. */
#define MAX_DEBT_US (10 * RV_US_PER_MIN)
#define WINDOW_US   (30 * RV_US_PER_S) /* within which the failures in a row have to be */
#define OPEN_US     (10 * RV_US_PER_S) /* ten seconds: then one request tries whether the provider is back */

/* --- the breaker: a server that has failed several times in a row is left alone for a while, then one exchange tries
 * it
 * --- */

static bool is_refused(const struct rv_breaker *b, int64_t now_us)
{
    return b->is_open && (b->is_probed || now_us < b->probe_at_us);
}

static void failed(struct rv_breaker *b, int kind, int64_t now_us)
{
    int64_t oldest;

    b->failed_at[b->n_failures % RV_BREAKER_OPENS] = now_us;
    b->n_failures++;
    b->last_kind = kind;
    oldest = b->failed_at[b->n_failures % RV_BREAKER_OPENS];
    if (!b->is_open && (b->n_failures < RV_BREAKER_OPENS || now_us - oldest > WINDOW_US))
        return;
    b->is_open = true;
    b->probe_at_us = now_us + OPEN_US;
}

static void answered(struct rv_breaker *b)
{
    *b = (struct rv_breaker){.is_probed = b->is_probed};
}

/* --- places and rates --- */

static int64_t cost_of(int64_t amount, int64_t per_minute)
{
    int64_t limit = INT64_MAX / 4 / RV_US_PER_MIN;

    if (!per_minute)
        return 0;
    return (amount < limit ? amount : limit) * RV_US_PER_MIN / per_minute;
}

/* When a bucket that is full at full_us will hold what costs `cost`; a full one will do for whatever costs more. */
static int64_t holds_at(int64_t full_us, int64_t cost)
{
    return full_us - BUCKET_US + (cost < BUCKET_US ? cost : BUCKET_US);
}

static void take(int64_t *full_us, int64_t cost, int64_t now_us)
{
    if (cost)
        *full_us = (*full_us > now_us ? *full_us : now_us) + cost;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void join(struct rv_ticket *t)
{
    struct rv_gate *g = t->gate;

    if (t->is_queued)
        return;
    t->is_queued = true;
    t->prev = g->last;
    t->next = NULL;
    if (g->last)
        g->last->next = t;
    else
        g->first = t;
    g->last = t;
    g->n_waiting++;
}

static void unlink_ticket(struct rv_ticket *t)
{
    struct rv_gate *g = t->gate;

    if (!t->is_queued)
        return;
    if (t->prev)
        t->prev->next = t->next;
    else
        g->first = t->next;
    if (t->next)
        t->next->prev = t->prev;
    else
        g->last = t->prev;
    t->is_queued = t->is_told = false;
    g->n_waiting--;
}

enum rv_gate_verdict provider_gate_enter(struct rv_ticket *t, const struct rv_call_options *limits, int64_t tokens,
                                         int64_t now_us, int64_t *at_us)
{
    struct rv_gate *g = t->gate;
    int64_t request_cost = cost_of(1, limits->requests_per_minute);
    int64_t token_cost = cost_of(tokens, limits->tokens_per_minute);
    int64_t open_us = g->closed_until_us;

    assert(!t->is_inside);
    *at_us = RV_NEVER;
    if (is_refused(&g->breaker, now_us)) {
        unlink_ticket(t);
        return RV_GATE_REFUSED;
    }
    if (g->first && g->first != t) {
        join(t);
        t->places = limits->max_concurrent;
        return RV_GATE_LATER;
    }
    if (limits->max_concurrent && g->in_flight >= limits->max_concurrent) {
        join(t);
        t->places = limits->max_concurrent;
        t->is_told = false;
        return RV_GATE_LATER;
    }
    if (request_cost)
        open_us = later(open_us, holds_at(g->requests_full_us, request_cost));
    if (token_cost)
        open_us = later(open_us, holds_at(g->tokens_full_us, token_cost));
    if (open_us > now_us) {
        join(t);
        t->is_told = true; /* it knows when to come back */
        *at_us = open_us;
        return RV_GATE_LATER;
    }
    unlink_ticket(t);
    take(&g->requests_full_us, request_cost, now_us);
    take(&g->tokens_full_us, token_cost, now_us);
    t->is_inside = true;
    t->tokens = tokens;
    g->in_flight++;
    t->is_probe = g->breaker.is_open;
    if (t->is_probe)
        g->breaker.is_probed = true;
    return RV_GATE_IN;
}

void provider_gate_leave(struct rv_ticket *t)
{
    unlink_ticket(t);
    if (!t->is_inside)
        return;
    assert(t->gate->in_flight > 0);
    t->gate->in_flight--;
    if (t->is_probe)
        t->gate->breaker.is_probed = false;
    t->is_inside = t->is_probe = false;
}

static void settle(struct rv_ticket *t, const struct rv_call_options *limits, int64_t tokens, int64_t now_us)
{
    int64_t cost = cost_of(tokens, limits->tokens_per_minute) - cost_of(t->tokens, limits->tokens_per_minute);
    int64_t *full_us = &t->gate->tokens_full_us, latest = later(*full_us, now_us + MAX_DEBT_US);

    *full_us = *full_us < latest - cost ? *full_us + cost : latest;
}

static void close_until(struct rv_gate *g, int64_t until_us)
{
    g->closed_until_us = later(g->closed_until_us, until_us);
}

/* A callback may start a request, and that may make the next exchange due: use a loop, so that a long queue does not
 * become a deep stack. */
void provider_gate_wake(struct rv_gate *g)
{
    g->wake_again = true;
    if (g->is_waking)
        return;
    g->is_waking = true;
    while (g->wake_again) {
        struct rv_ticket *t = g->first;
        g->wake_again = false;
        if (t && !t->is_told && (!t->places || g->in_flight < t->places)) {
            t->is_told = true;
            if (t->on_ready)
                t->on_ready(t->self);
        }
    }
    g->is_waking = false;
}

/* --- what attempts say --- */

static bool is_servers_failure(int kind)
{
    return kind == RV_LLM_ERROR_OVERLOADED || kind == RV_LLM_ERROR_CONNECTION || kind == RV_LLM_ERROR_TIMEOUT;
}

/* What the attempt says of its address, for all that go there. */
void provider_gate_told(rv_exchange *x)
{
    struct rv_gate *gate = x->ticket.gate;
    const struct rv_call_options *call = &x->endpoint.call;
    const struct rv_llm_answer *a = &x->reply.answer;

    if (!x->reply.failed || !is_servers_failure(a->error_kind))
        answered(&gate->breaker);
    else if (!x->was_local)
        failed(&gate->breaker, a->error_kind, x->now_us);
    if (a->has_usage)
        settle(&x->ticket, call, a->usage.input_tokens + a->usage.output_tokens, x->now_us);
    close_until(gate, x->hints.closed_until_us);
    if (x->reply.failed && a->error_kind == RV_LLM_ERROR_RATE_LIMITED && x->reply.retryable &&
        x->hints.retry_after_us > 0 && x->hints.retry_after_us <= call->max_retry_wait_us)
        close_until(gate, x->now_us + x->hints.retry_after_us);
}

/* --- all gates --- */

rv_providers *rv_providers_new(struct rv_provider_env env)
{
    rv_providers *p = calloc(1, sizeof *p);

    if (p)
        p->env = env;
    return p;
}

void rv_providers_free(rv_providers *p)
{
    if (!p)
        return;
    while (p->gates) {
        struct rv_gate *next = p->gates->next;
        assert(!p->gates->in_flight && !p->gates->first);
        free(p->gates);
        p->gates = next;
    }
    free(p);
}

struct rv_gate *provider_providers_gate(rv_providers *p, const struct rv_endpoint *e)
{
    struct rv_gate *g;

    for (g = p->gates; g; g = g->next) /* as many as there are addresses: few */
        if (strcmp(g->id, e->gate) == 0)
            return g;
    g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    memcpy(g->id, e->gate, sizeof g->id);
    g->next = p->gates;
    p->gates = g;
    return g;
}

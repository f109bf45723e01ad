/* Quotas of a run: a model call is made when the store has reserved what it may take, and settled when it is over. On a
 * given loop the store thread does both. A refusal is an answer of the call, which the journal gets like any other, so
 * that a replay decides the same; or the run is handed over, and the call stays open. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/quota_internal.h"
#include "envelope/envelope.h"

/* The wait before a call asks again when only reservations of calls under way exceed a limit. */
#define AGAIN_US         (100 * RV_US_PER_MS)
#define MAX_LIMITS_BYTES ((size_t)1 << 20) /* the limits of a run: at most 64, with names of plans */

/* A call that reserves, or has reserved. */
struct quota_call {
    struct call_hold hold; /* as the call sees it */
    struct write write;
    struct call *call;             /* NULL: it is gone, and the store thread has this */
    struct quota_call *next, **at; /* of those without a call */
    rv_arena *texts;               /* what `ask` points to: the run may go before the store has answered; owned */
    int (*make)(rv_exec *x, struct call *c, struct rv_effect *e, rv_err **err);
    struct rv_effect effect; /* owned until the call is made */
    struct rv_quota_ask ask;
    struct rv_quota_ask more; /* for another request of the call */
    struct rv_quota_answer answer;
    bool asks_more;                /* `more` is asked, or answered */
    bool is_asking;                /* the store thread has it */
    bool is_told;                  /* the store thread has answered: `write` has it */
    bool waits;                    /* for calls under way */
    bool is_held;                  /* its reservation is not settled */
    char run[RV_STORE_MAX_ID + 1]; /* the journal may go before the call */
};

/* A settlement on its way to the store thread. */
struct settlement {
    struct settlement *next, **at; /* of the engine */
    struct write write;
    rv_log *log;
    char run[RV_STORE_MAX_ID + 1];
    int64_t fence, call_id; /* call_id 0: all that earlier owners left */
    int64_t used[RV_N_QUOTA];
};

static bool has_quotas(const rv_exec *x)
{
    return x->opts.quotas && x->opts.quotas->n_limits > 0 && x->opts.journal && x->engine->opts.store;
}

/* Does any of the limits count what model calls use? */
static bool limits_calls(const struct rv_exec_quotas *q)
{
    for (size_t i = 0; i < q->n_limits; i++)
        if (q->limits[i].kind == RV_QUOTA_TOKENS || q->limits[i].kind == RV_QUOTA_COST ||
            q->limits[i].kind == RV_QUOTA_MODEL_CALLS)
            return true;
    return false;
}

static bool limits_requests(const struct rv_exec_quotas *q)
{
    for (size_t i = 0; i < q->n_limits; i++)
        if (q->limits[i].kind == RV_QUOTA_MODEL_CALLS)
            return true;
    return false;
}

/* What a provider charges for. */
static bool limits_charges(const struct rv_exec_quotas *q)
{
    for (size_t i = 0; i < q->n_limits; i++)
        if (q->limits[i].kind == RV_QUOTA_TOKENS || q->limits[i].kind == RV_QUOTA_COST)
            return true;
    return false;
}

/* --- settling --- */

static int settle(struct settlement *s, rv_store *store, rv_err **err)
{
    return s->call_id
               ? rv_store_settle(store, &(struct rv_settlement){s->run, s->fence, s->call_id, s->used}, NULL, err)
               : rv_store_settle_left(store, s->run, s->fence, NULL, err);
}

static struct settlement *settlement_of_write(struct write *w)
{
    return (struct settlement *)((char *)w - offsetof(struct settlement, write));
}

static int write_settlement(struct write *w, rv_store *store, rv_err **err)
{
    return settle(settlement_of_write(w), store, err);
}

/* The reservation stays when it failed: the next owner of the run settles it, or its period ends. */
static void settled(struct settlement *s, rv_err *err)
{
    if (err)
        RV_LOG(s->log, WARN, "quota.unsettled", RV_F_ERR("error", err));
    rv_err_free(err);
}

static void settlement_done(struct write *w)
{
    struct settlement *s = settlement_of_write(w);

    settled(s, s->write.err);
    *s->at = s->next;
    if (s->next)
        s->next->at = s->at;
    free(s);
}

static void free_quota_call(struct quota_call *q);

void engine_quotas_free_left(rv_engine *e)
{
    for (struct quota_call *q = e->left_asks, *next; q; q = next) {
        next = q->next;
        free_quota_call(q);
    }
    e->left_asks = NULL;
    for (struct settlement *s = e->settlements, *next; s; s = next) {
        next = s->next;
        rv_err_free(s->write.err);
        free(s);
    }
    e->settlements = NULL;
}

/* The step with the answer of the call follows in the queue of the store thread, so it is not durable before this. */
static void submit(rv_engine *e, const struct settlement *from)
{
    struct settlement *s = e->writer ? malloc(sizeof *s) : NULL;
    struct settlement own = *from;
    rv_err *err = NULL;

    if (!s) {
        RV_IGNORE(settle(&own, e->opts.store, &err), "settled() logs it");
        settled(&own, err);
        return;
    }
    *s = *from;
    s->log = e->opts.log;
    s->write = (struct write){.write = write_settlement, .done = settlement_done, .is_alone = true};
    s->next = e->settlements;
    s->at = &e->settlements;
    if (s->next)
        s->next->at = &s->next;
    e->settlements = s;
    engine_writer_submit(e->writer, &s->write);
}

static struct settlement settlement_of(const struct quota_call *q)
{
    struct settlement s = {.log = q->call->x->log, .fence = q->ask.fence, .call_id = q->ask.call_id};

    memcpy(s.run, q->run, sizeof s.run);
    return s;
}

void engine_quotas_recover(const rv_exec *x)
{
    if (!has_quotas(x) || rv_journal_fence(x->opts.journal) <= 1)
        return;
    struct settlement s = {.log = x->log, .fence = rv_journal_fence(x->opts.journal)};
    snprintf(s.run, sizeof s.run, "%s", rv_journal_run(x->opts.journal));
    submit(x->engine, &s);
}

/* What the call took, by its usage; where that is not known, what was reserved. As coreengine/agent/money.c counts. */
static void used_by(const struct call *c, const int64_t reserved[RV_N_QUOTA], int64_t used[RV_N_QUOTA])
{
    const struct rv_llm_answer *a = &c->answer;
    const struct rv_model_config *fallback = a->role ? rv_pipeline_find_model(c->pipeline, rv_str_of(a->role)) : NULL;
    const struct rv_model_config *model = fallback ? fallback : rv_pipeline_find_model(c->pipeline, rv_str_of(c->name));
    bool is_free = !a->has_usage && !a->may_be_billed && (c->failed || a->is_scripted);

    memset(used, 0, RV_N_QUOTA * sizeof *used);
    if (is_free)
        return;
    if (a->has_usage) {
        used[RV_QUOTA_TOKENS] = a->usage.input_tokens + a->usage.output_tokens;
        used[RV_QUOTA_COST] = rv_llm_cost(model && model->has_price ? &model->price : NULL, &a->usage);
    }
    for (int i = 0; i < RV_N_QUOTA && (!a->has_usage || c->failed); i++)
        used[i] = used[i] > reserved[i] ? used[i] : reserved[i];
}

static struct quota_call *quota_of(const struct call *c)
{
    return (struct quota_call *)c->hold; /* its first member */
}

void engine_quota_settle(struct call *c)
{
    struct quota_call *q = quota_of(c);

    if (!q || !q->is_held)
        return;
    struct settlement s = settlement_of(q);
    used_by(c, q->ask.reserves, s.used);
    q->is_held = false;
    submit(c->x->engine, &s);
}

static void free_quota_call(struct quota_call *q)
{
    rv_err_free(q->write.err);
    rv_effect_fini(&q->effect);
    rv_arena_free(q->texts);
    free(q);
}

/* The store thread still has the question. What it reserves is given back by a settlement that comes behind it. */
static void leave(struct quota_call *q)
{
    rv_engine *e = q->call->x->engine;
    struct settlement s = settlement_of(q);

    if (q->is_held) /* another request was asked for: those before it may be charged for */
        memcpy(s.used, q->ask.reserves, sizeof s.used);
    q->call = NULL;
    q->next = e->left_asks;
    q->at = &e->left_asks;
    if (q->next)
        q->next->at = &q->next;
    e->left_asks = q;
    submit(e, &s);
}

/* The call is freed. */
static void release(struct call *c)
{
    struct quota_call *q = quota_of(c);

    c->hold = NULL;
    if (q->is_asking) {
        leave(q);
        return;
    }
    if (q->is_told && !q->asks_more) { /* nothing was sent: all is given back */
        q->is_held = q->write.rc == 0;
        memset(q->ask.reserves, 0, sizeof q->ask.reserves);
    }
    if (q->is_held) { /* the call was under way, and may be charged for */
        struct settlement s = settlement_of(q);
        memcpy(s.used, q->ask.reserves, sizeof s.used);
        submit(c->x->engine, &s);
    }
    free_quota_call(q);
}

/* --- reserving --- */

void rv_engine_log_near_quota(rv_log *log, const struct rv_quota_limit *l)
{
    RV_LOG(log, WARN, "quota.near", RV_F_TEXT("quota", rv_quota_kind_text(l->kind)),
           RV_F_TEXT("span", rv_quota_span_text(l->span)), RV_F_I64("limit", l->limit), RV_F_TEXT("plan", l->plan),
           RV_F_BOOL("tenant", l->is_tenants));
}

static void tell_near(const rv_exec *x, const struct quota_call *q)
{
    for (size_t i = 0; i < q->ask.n_limits; i++)
        if (q->answer.near & UINT64_C(1) << i)
            rv_engine_log_near_quota(x->log, &q->ask.limits[i]);
}

/* The journal has the call: the next process asks again. */
static void hand_over(struct call *c, const struct quota_call *q, const rv_err *why)
{
    rv_exec *x = c->x;
    rv_engine *e = x->engine;

    if (!x->refused || q->answer.again_us < x->refused_until_us) {
        free(x->refused);
        x->refused = rv_str_dup(rv_str_of(rv_err_text(why)));
        x->refused_until_us = q->answer.again_us;
    }
    x->hands_over = e->any_hands_over = true; /* as rv_exec_hand_over() */
    if (e->opts.loop)
        engine_loop_wake(e->loop);
    engine_call_free(c);
}

static void due_at(struct call *c, int64_t us)
{
    c->due_us = us;
    engine_due_moved(&c->x->engine->due, c);
}

/* Only the reservations of calls under way exceed the limit: ask again until the time of the call is up. */
static bool can_wait(const struct call *c, const struct quota_call *q)
{
    int64_t at_us = rv_engine_now_us(c->x->engine) + AGAIN_US;

    return q->answer.is_crowded && !c->x->hands_over && (!c->deadline_us || at_us < c->deadline_us);
}

static int refused(struct call *c, struct quota_call *q, rv_err **err)
{
    const rv_exec *x = c->x;

    if (can_wait(c, q)) {
        q->waits = true;
        due_at(c, rv_engine_now_us(x->engine) + AGAIN_US);
        rv_err_free(rv_err_steal(err));
        return 0;
    }
    RV_LOG(x->log, WARN, "quota.exceeded", RV_F_TEXT("stage", engine_call_stage(c)), RV_F_I64("visit", c->visit),
           RV_F_I64("call_id", c->call_id), RV_F_ERR("error", *err));
    if (x->opts.quotas->hands_over && q->answer.again_us > 0) {
        hand_over(c, q, *err);
        rv_err_free(rv_err_steal(err));
        return 0;
    }
    int rc = engine_call_fail_with(c, rv_error_limit, RV_E_QUOTA, err);
    c->code = rv_failure_text(RV_FAILURE_QUOTA_EXCEEDED);
    due_at(c, rv_engine_now_us(x->engine));
    return rc;
}

/* The store has answered; takes *err. */
static int answered(struct call *c, int rc, rv_err **err)
{
    struct quota_call *q = quota_of(c);
    rv_exec *x = c->x;

    if (rc == RV_E_QUOTA)
        return refused(c, q, err);
    if (rc < 0) { /* without an answer of the store the call is not made; the reservation may exist */
        q->is_held = true;
        rc = engine_call_fail_with(c, rv_error_llm, rc, err);
        if (rc == 0)
            due_at(c, rv_engine_now_us(x->engine));
        return rc;
    }
    q->is_held = true;
    tell_near(x, q);
    struct rv_effect effect = q->effect;
    q->effect = (struct rv_effect){0};
    due_at(c, rv_engine_now_us(x->engine));
    rc = q->make(x, c, &effect, err);
    rv_effect_fini(&effect);
    return rc;
}

static struct quota_call *asking(struct write *w)
{
    return (struct quota_call *)((char *)w - offsetof(struct quota_call, write));
}

static int write_ask(struct write *w, rv_store *store, rv_err **err)
{
    struct quota_call *q = asking(w);

    return rv_store_reserve(store, &q->ask, &q->answer, err);
}

static void ask_done(struct write *w)
{
    struct quota_call *q = asking(w);

    if (!q->call) {
        *q->at = q->next;
        if (q->next)
            q->next->at = q->at;
        free_quota_call(q);
        return;
    }
    q->is_asking = false;
    q->is_told = true;
    due_at(q->call, rv_engine_now_us(q->call->x->engine));
}

/* The answer of the store, and why it refused or failed: owned here. */
static int pass_on(struct call *c, int rc, rv_err *why, rv_err **err)
{
    rc = answered(c, rc, &why);
    if (rc < 0)
        rv_err_pass(err, why);
    else
        rv_err_free(why);
    return rc;
}

static int ask(struct call *c, rv_err **err)
{
    struct quota_call *q = quota_of(c);
    rv_engine *e = c->x->engine;
    rv_err *why = NULL;

    q->waits = false;
    q->ask.now_us = rv_engine_now_us(e);
    if (e->writer) {
        q->is_asking = true;
        q->write = (struct write){.write = write_ask, .done = ask_done, .is_alone = true};
        due_at(c, RV_NEVER);
        engine_writer_submit(e->writer, &q->write);
        return 0;
    }
    int rc = rv_store_reserve(e->opts.store, &q->ask, &q->answer, &why);
    return pass_on(c, rc, why, err);
}

bool engine_quota_waits(struct call *c, int *rc, rv_err **err)
{
    struct quota_call *q = quota_of(c);

    *rc = 0;
    if (q->is_asking) { /* a step was kept meanwhile */
        due_at(c, RV_NEVER);
    } else if (q->asks_more) {
        return false;
    } else if (q->is_told) {
        rv_err *why = q->write.err;
        q->is_told = false;
        q->write.err = NULL;
        *rc = pass_on(c, q->write.rc, why, err);
    } else if (q->waits) {
        *rc = ask(c, err);
    } else {
        return false;
    }
    return true;
}

/* --- another request of a call --- */

static int write_more(struct write *w, rv_store *store, rv_err **err)
{
    struct quota_call *q = asking(w);

    return rv_store_reserve(store, &q->more, &q->answer, err);
}

/* Nothing is reserved: the call's own reservation is for all its requests, and what may be charged for is not sent
 * again. */
static void ask_more(struct call *c, struct quota_call *q)
{
    rv_engine *e = c->x->engine;

    q->asks_more = true;
    q->more = q->ask;
    q->more.run = NULL;
    q->more.now_us = rv_engine_now_us(e);
    memset(q->more.reserves, 0, sizeof q->more.reserves);
    q->write = (struct write){.write = write_more, .done = ask_done, .is_alone = true};
    if (e->writer) {
        q->is_asking = true;
        due_at(c, RV_NEVER);
        engine_writer_submit(e->writer, &q->write);
    } else {
        q->write.rc = write_more(&q->write, e->opts.store, &q->write.err);
        q->is_told = true;
    }
}

static enum call_more more(struct call *c, rv_err **why)
{
    struct quota_call *q = quota_of(c);

    if (!q->asks_more)
        ask_more(c, q);
    if (q->is_asking)
        return CALL_MORE_LATER;
    q->asks_more = q->is_told = false;
    if (q->write.rc == 0) {
        tell_near(c->x, q);
        return CALL_MORE_YES;
    }
    *why = q->write.err;
    q->write.err = NULL;
    RV_LOG(c->x->log, WARN, "quota.exceeded", RV_F_TEXT("stage", engine_call_stage(c)), RV_F_I64("visit", c->visit),
           RV_F_I64("call_id", c->call_id), RV_F_ERR("error", *why));
    return CALL_MORE_NO;
}

/* --- making a call --- */

static const char *copy_text(rv_arena *a, const char *text, bool *ok)
{
    const char *copy = text ? rv_arena_dup(a, rv_str_of(text)) : NULL;

    *ok = *ok && (copy || !text);
    return copy;
}

static int copy_limits(struct quota_call *q, const struct rv_exec_quotas *of)
{
    rv_arena *a = q->texts = rv_arena_new(MAX_LIMITS_BYTES);
    struct rv_quota_limit *limits = a ? rv_arena_alloc(a, of->n_limits * sizeof *limits) : NULL;
    bool ok = limits != NULL;

    if (ok) {
        q->ask.tenant = copy_text(a, of->tenant, &ok);
        q->ask.user = copy_text(a, of->user, &ok);
    }
    for (size_t i = 0; ok && i < of->n_limits; i++) {
        limits[i] = of->limits[i];
        limits[i].plan = copy_text(a, of->limits[i].plan, &ok);
    }
    q->ask.limits = limits;
    q->ask.n_limits = of->n_limits;
    if (!ok)
        rv_arena_free(a);
    return ok ? 0 : RV_E_NOMEM;
}

int engine_quota_call(struct call *c, struct rv_effect *e,
                      int (*make)(rv_exec *x, struct call *c, struct rv_effect *e, rv_err **err), rv_err **err)
{
    rv_exec *x = c->x;
    const struct rv_exec_quotas *of = x->opts.quotas;

    if (!has_quotas(x) || !limits_calls(of))
        return make(x, c, e, err);
    struct quota_call *q = calloc(1, sizeof *q);
    if (!q || copy_limits(q, of) < 0) {
        free(q);
        return RV_FAIL(err, RV_E_NOMEM, "ask for a quota");
    }
    c->hold = &q->hold;
    q->hold.release = release;
    q->hold.more = more;
    q->hold.counts_charges = limits_charges(of);
    q->hold.counts_requests = limits_requests(of);
    q->call = c;
    snprintf(q->run, sizeof q->run, "%s", rv_journal_run(x->opts.journal));
    q->make = make;
    q->effect = *e;
    *e = (struct rv_effect){.kind = e->kind, .call_id = e->call_id, .stage = e->stage};
    q->ask.run = q->run;
    q->ask.fence = rv_journal_fence(x->opts.journal);
    q->ask.call_id = c->call_id;
    q->ask.counts[RV_QUOTA_MODEL_CALLS] = 1;
    q->ask.reserves[RV_QUOTA_TOKENS] = q->effect.worst_tokens > 0
                                           ? q->effect.worst_tokens
                                           : (int64_t)q->effect.request_len + RV_LLM_DEFAULT_MAX_TOKENS;
    q->ask.reserves[RV_QUOTA_COST] = q->effect.worst_micro_usd;
    return ask(c, err);
}

int64_t rv_exec_refused(const rv_exec *x, const char **why)
{
    *why = x->refused ? x->refused : "";
    return x->refused ? x->refused_until_us : 0;
}

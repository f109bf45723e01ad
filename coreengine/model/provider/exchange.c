/* An exchange: one model call through all its attempts, and all the roles that may answer it. What an attempt came to
 * is in attempt.c, whether it is repeated or another role is asked in retry.c. */
#include "coreengine/model/provider/provider_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES_PER_TOKEN 4                  /* for the rate of tokens, until the provider tells */
#define MAX_STORIES     ((size_t)16 << 10) /* bytes of what the attempts of one call said; later ones are left out */

static struct rv_llm_reply *reply_of(rv_exchange *x)
{
    return x->is_nomem ? &x->nomem : &x->reply;
}

static void wake(struct rv_gate *g)
{
    if (g)
        provider_gate_wake(g);
}

static void leave(rv_exchange *x)
{
    if (x->ticket.gate)
        provider_gate_leave(&x->ticket);
}

/* --- How it ends --- */

static void finish(rv_exchange *x)
{
    struct rv_llm_reply *r = reply_of(x);

    x->state = RV_EXCHANGE_OVER;
    r->answer.attempts = x->attempts;
    if (x->attempts > 0)
        r->answer.latency_us = x->now_us > x->sent_us ? x->now_us - x->sent_us : 1; /* 0 is "not measured" */
    r->answer.role = x->model && x->model != x->asked ? x->model->role : NULL;
    r->answer.may_be_billed = r->failed && x->may_be_billed;
    r->retryable = r->failed && (r->retryable || x->any_retryable);
    leave(x);
    provider_attempt_fini(x);
    rv_buf_fini(&x->body);
    json_object_put(x->tool_names);
    x->tool_names = NULL;
}

/* The reply that was made for this case at the start. */
static int finish_without_memory(rv_exchange *x)
{
    x->is_nomem = true;
    if (x->state == RV_EXCHANGE_SENT)
        x->may_be_billed = true; /* the outcome of the request will stay unknown */
    finish(x);
    return RV_E_NOMEM;
}

/* --- From role to role --- */

static void fail_with(rv_exchange *x, enum rv_llm_error kind, const rv_err *why)
{
    rv_buf text = RV_BUF_INIT(RV_PROVIDER_MAX_VALUE);
    const char *hint = NULL, *file = "";
    int line = 0;

    for (const rv_err *e = why; e; e = rv_err_cause(e)) {
        if (e != why)
            rv_buf_puts(&text, ": ");
        rv_buf_puts(&text, rv_err_text(e));
        file = rv_err_made_at(e, &line);
        if (!hint)
            hint = rv_err_hint_text(e);
    }
    if (hint)
        rv_buf_printf(&text, " (%s)", hint);
    provider_report_fail_at(x, kind, file, line, "%s", rv_buf_cstr(&text));
    if (text.rc == RV_E_NOMEM)
        x->reply.error.rc = text.rc;
    rv_buf_fini(&text);
}

static int write_body(rv_exchange *x, rv_err **err)
{
    json_object *request = NULL;
    int rc = provider_fallback_request(x->asked, x->model, x->opts.request, &request, err);

    rv_buf_fini(&x->body);
    rv_buf_init(&x->body, RV_PROVIDER_MAX_BODY);
    if (rc == 0)
        rc = rv_wire_write_request(&x->endpoint.target, request, &x->body, err);
    json_object_put(x->tool_names);
    x->tool_names = NULL;
    if (rc == 0)
        rc = rv_wire_build_tool_names(&x->endpoint.target, request, &x->tool_names, err);
    json_object_put(request);
    return rc;
}

/* The body is all that is sent again; what it was made of is many times its size. */
static void drop_request(rv_exchange *x)
{
    if (x->asked && x->next_fallback < x->asked->fallback.n)
        return;
    json_object_put(x->opts.request);
    x->opts.request = NULL;
}

static int prepare(rv_exchange *x, rv_err **err)
{
    struct rv_endpoint_want want = {
        .provider = x->model->provider, .model = x->model->model, .options = x->model->options};
    int rc = provider_endpoint_init(&x->endpoint, x->providers->env, &want, err);

    if (rc == 0)
        rc = write_body(x, err);
    if (rc < 0)
        return rc;
    drop_request(x);
    if (x->model->max_request_bytes > 0 && x->body.len > (uint64_t)x->model->max_request_bytes)
        return RV_FAIL(err, RV_E_LIMIT, "the request has %zu bytes, and max_request_bytes of the role is %" PRId64,
                       x->body.len, x->model->max_request_bytes);
    x->ticket.gate = provider_providers_gate(x->providers, &x->endpoint);
    return x->ticket.gate ? 0 : RV_FAIL(err, RV_E_NOMEM, "prepare a request to a model");
}

/* 0: it may be sent, or *is_off and x->reply says why it never will be. */
static int start_role(rv_exchange *x, const struct rv_model_config *model, bool *is_off, rv_err **err)
{
    enum rv_llm_error kind = RV_LLM_ERROR_BAD_REQUEST;
    rv_err *why = NULL;
    int rc;

    provider_attempt_fini(x);
    provider_endpoint_fini(&x->endpoint);
    x->ticket.gate = NULL;
    x->model = model;
    x->role_attempts = 0;
    x->why_no_repeat[0] = '\0';
    x->hints = (struct rv_hints){.retry_after_us = -1, .should_retry = -1};
    x->state = RV_EXCHANGE_PLACE;
    x->queued_us = x->now_us;
    rc = prepare(x, &why);
    *is_off = rc < 0;
    if (rc == 0)
        return 0;
    if (rc == RV_E_NOMEM || rv_err_code(why) == RV_E_NOMEM) {
        rv_err_free(why);
        return RV_FAIL(err, RV_E_NOMEM, "prepare a request to a model");
    }
    if (rc == RV_E_DENIED)
        kind = RV_LLM_ERROR_AUTH;
    else if (rc == RV_E_LIMIT)
        kind = RV_LLM_ERROR_CONTEXT_TOO_LONG;
    fail_with(x, kind, why);
    if (rc == RV_E_DENIED)
        x->reply.code = RV_FAILURE_MODEL_NO_KEY;
    rv_err_free(why);
    return 0;
}

/* x->reply is what this role's failure was: on to the next, or the end. */
static int role_over(rv_exchange *x, rv_err **err)
{
    for (bool is_off = true; is_off;) {
        const struct rv_model_config *next;
        int rc = provider_report_role(x, err);
        if (rc < 0)
            return finish_without_memory(x);
        x->any_retryable |= x->reply.retryable;
        next = provider_fallback_wanted(x) ? provider_fallback_next(x) : NULL;
        if (!next) {
            rc = provider_report_end(x, err);
            if (rc < 0)
                return finish_without_memory(x);
            finish(x);
            return 0;
        }
        provider_report_retry(x, next);
        provider_report_remember(x);
        rc = start_role(x, next, &is_off, err);
        if (rc < 0)
            return finish_without_memory(x);
    }
    return 0;
}

int rv_exchange_new(rv_providers *p, const struct rv_exchange_opts *opts, rv_exchange **out, rv_err **err)
{
    rv_exchange *x = calloc(1, sizeof *x);
    bool is_off = true;
    int rc = 0;

    if (!x)
        return RV_FAIL(err, RV_E_NOMEM, "ask a model");
    x->providers = p;
    x->opts = *opts;
    json_object_get(x->opts.request);
    x->now_us = opts->now_us;
    x->rand = rv_rand_seeded(&x->rand_state, opts->random);
    x->ticket.on_ready = opts->on_ready;
    x->ticket.self = opts->self;
    rv_buf_init(&x->story, MAX_STORIES);
    rv_llm_reply_init(&x->reply);
    rv_llm_reply_init(&x->nomem);
    rv_llm_reply_fail(&x->nomem, RV_LLM_ERROR_CONNECTION, "there was no memory left to ask a model");
    rc = rv_buf_check(&x->nomem.error, "an answer", err);
    x->asked = rv_pipeline_find_model(opts->pipeline, rv_str_of(opts->role));
    if (rc == 0 && x->asked)
        rc = start_role(x, x->asked, &is_off, err);
    else if (rc == 0)
        rv_report_fail(x, RV_LLM_ERROR_BAD_REQUEST, "there is no model for the role \"%s\"", opts->role);
    if (rc == 0 && is_off)
        rc = role_over(x, err);
    if (rc < 0) {
        rv_exchange_free(x);
        return rc;
    }
    *out = x;
    return 0;
}

void rv_exchange_free(rv_exchange *x)
{
    struct rv_gate *gate;

    if (!x)
        return;
    gate = x->ticket.gate;
    leave(x);
    provider_attempt_fini(x);
    provider_endpoint_fini(&x->endpoint);
    json_object_put(x->opts.request);
    json_object_put(x->tool_names);
    rv_buf_fini(&x->body);
    rv_buf_fini(&x->story);
    rv_llm_reply_fini(&x->reply);
    rv_llm_reply_fini(&x->nomem);
    free(x);
    wake(gate);
}

/* --- Places --- */

/* The exchange cannot go on with this role. The error of the last attempt says more than the reason why it is not
 * repeated. */
static void give_up(rv_exchange *x, enum rv_llm_error kind, const char *why)
{
    leave(x);
    if (x->role_attempts)
        snprintf(x->why_no_repeat, sizeof x->why_no_repeat, "%s", why);
    else
        rv_report_fail(x, kind, "%s", why);
    RV_IGNORE(role_over(x, NULL), "the reply says that there was no memory");
}

static void say_refused(const rv_exchange *x, char *out, size_t size)
{
    const struct rv_breaker *b = &x->ticket.gate->breaker;
    const char *kind = rv_llm_error_text((enum rv_llm_error)b->last_kind);
    int64_t left = b->probe_at_us - x->now_us;

    if (b->is_probed || left <= 0)
        snprintf(out, size, "the last %" PRId64 " requests there failed (%s), and one is under way to try it again",
                 b->n_failures, kind);
    else
        snprintf(out, size,
                 "the last %" PRId64 " requests there failed (%s): it is left alone for another %" PRId64 " ms",
                 b->n_failures, kind, (left + RV_US_PER_MS - 1) / RV_US_PER_MS);
}

/* True: *at_us says when to ask again. Else the state has changed. */
static bool waits_for_place(rv_exchange *x, int64_t *at_us)
{
    const struct rv_call_options *limits = &x->endpoint.call;
    int64_t deadline = x->opts.deadline_us ? x->opts.deadline_us : RV_NEVER;
    char why[sizeof x->why_no_repeat];

    if (x->now_us >= deadline) {
        int64_t waited_ms = (x->now_us - x->queued_us) / RV_US_PER_MS;
        if (waited_ms > 0)
            snprintf(why, sizeof why,
                     "the deadline passed after %" PRId64
                     " ms of waiting for its turn (max_concurrent, requests_per_minute, tokens_per_minute)",
                     waited_ms);
        else
            snprintf(why, sizeof why, "the deadline had passed before it could be asked");
        give_up(x, RV_LLM_ERROR_TIMEOUT, why);
        return false;
    }
    switch (provider_gate_enter(&x->ticket, limits, (int64_t)(x->body.len / BYTES_PER_TOKEN), x->now_us, at_us)) {
    case RV_GATE_IN:
        x->state = RV_EXCHANGE_SENT;
        provider_attempt_start(x);
        return false;
    case RV_GATE_REFUSED:
        say_refused(x, why, sizeof why);
        give_up(x, RV_LLM_ERROR_OVERLOADED, why);
        return false;
    case RV_GATE_LATER:
        break;
    }
    if (*at_us != RV_NEVER && *at_us >= deadline) {
        snprintf(why, sizeof why, "a rate limit holds it for another %" PRId64 " ms, which passes the deadline",
                 (*at_us - x->now_us) / RV_US_PER_MS);
        give_up(x, RV_LLM_ERROR_RATE_LIMITED, why);
        return false;
    }
    if (deadline < *at_us)
        *at_us = deadline;
    return true;
}

enum rv_exchange_want rv_exchange_next(rv_exchange *x, int64_t now_us, int64_t *at_us)
{
    struct rv_gate *gate = x->ticket.gate;
    bool has_moved = false;

    *at_us = RV_NEVER;
    if (x->state == RV_EXCHANGE_OVER)
        return RV_EXCHANGE_DONE;
    if (x->state == RV_EXCHANGE_SENT) /* asking must not lose a request */
        return x->is_taken ? RV_EXCHANGE_WAIT : RV_EXCHANGE_SEND;
    x->now_us = now_us;
    if (x->state == RV_EXCHANGE_BACKOFF) {
        if (now_us < x->wait_until_us) {
            *at_us = x->wait_until_us;
            return RV_EXCHANGE_WAIT;
        }
        x->state = RV_EXCHANGE_PLACE;
        x->queued_us = now_us;
    }
    while (x->state == RV_EXCHANGE_PLACE) { /* a role that cannot be asked now hands over to the next */
        if (waits_for_place(x, at_us))
            break;
        has_moved = true;
    }
    if (has_moved)
        wake(gate);
    if (x->state == RV_EXCHANGE_SENT)
        return RV_EXCHANGE_SEND;
    return x->state == RV_EXCHANGE_OVER ? RV_EXCHANGE_DONE : RV_EXCHANGE_WAIT;
}

const struct rv_http_request *rv_exchange_request(rv_exchange *x)
{
    x->is_taken = true;
    return &x->http;
}

/* --- What comes back --- */

/* rc: of the attempt, which only a lack of memory makes fail. */
static int taken_in(rv_exchange *x, int rc)
{
    struct rv_gate *gate = x->ticket.gate;

    if (rc == 0)
        return 0;
    rc = finish_without_memory(x);
    wake(gate);
    return rc;
}

int rv_exchange_on_head(rv_exchange *x, const struct rv_http_head *head, int64_t now_us, rv_err **err)
{
    if (x->state != RV_EXCHANGE_SENT)
        return 0;
    x->now_us = now_us;
    return taken_in(x, provider_attempt_head(x, head, err));
}

int rv_exchange_on_body(rv_exchange *x, rv_str bytes, int64_t now_us, rv_err **err)
{
    if (x->state != RV_EXCHANGE_SENT)
        return 0;
    x->now_us = now_us;
    return taken_in(x, provider_attempt_body(x, bytes, err));
}

int rv_exchange_on_end(rv_exchange *x, const struct rv_http_end *end, int64_t now_us, rv_err **err)
{
    struct rv_gate *gate = x->ticket.gate;
    int rc;

    if (x->state != RV_EXCHANGE_SENT)
        return 0;
    x->now_us = now_us;
    rc = provider_attempt_end(x, end, err);
    if (rc < 0)
        return taken_in(x, rc);
    leave(x);
    provider_gate_told(x);
    if (!x->reply.failed) {
        finish(x);
    } else if (provider_retry_wanted(x)) {
        x->state = RV_EXCHANGE_BACKOFF;
        provider_report_retry(x, NULL);
        provider_attempt_fini(x);
    } else {
        rc = role_over(x, err);
    }
    wake(gate);
    return rc;
}

int rv_exchange_on_not_sent(rv_exchange *x, const rv_err *why, int64_t now_us, rv_err **err)
{
    struct rv_http_end end = {.fault = RV_HTTP_UNREACHABLE, .text = rv_err_text(why)};

    return rv_exchange_on_end(x, &end, now_us, err);
}

void rv_exchange_refuse(rv_exchange *x, const char *why, int64_t now_us)
{
    struct rv_gate *gate = x->ticket.gate;

    if (x->state != RV_EXCHANGE_SENT || x->is_taken)
        return;
    x->now_us = now_us;
    x->attempts--;
    x->role_attempts--;
    x->is_refused = true;
    give_up(x, RV_LLM_ERROR_RATE_LIMITED, why);
    wake(gate);
}

const struct rv_llm_reply *rv_exchange_reply(const rv_exchange *x)
{
    return x->is_nomem ? &x->nomem : &x->reply;
}

int64_t rv_exchange_attempt(const rv_exchange *x)
{
    return x->role_attempts;
}

const char *rv_exchange_role(const rv_exchange *x)
{
    return x->model ? x->model->role : x->opts.role;
}

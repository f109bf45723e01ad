/* Models over HTTP: drives a provider's exchange with requests and the time. The exchange decides what is sent, when,
 * and how often; here it meets the network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coreengine/engine/services_internal.h"

#define LINGER_US                                                                                                      \
    (200 * RV_US_PER_MS) /* from an answer's end mark to the end of its body, which keeps the connection */
#define DEADLINE_SLACK_US (50 * RV_US_PER_MS) /* the request's own limit comes first: it says more */

struct model_call {
    struct call *call;
    rv_exchange *exchange;
    rv_http_call *http; /* NULL: no request is under way */
    bool held;          /* the observer wants no more pieces now */
    bool is_done;       /* the call has its answer */
    bool has_sent;      /* a request, for which the call was counted */
    bool lingers;       /* the answer is complete, and its body still arrives */
    rv_log *log;        /* of the request under way; owned; NULL: none */
};

static void advance(struct model_call *m);

static const char *environment(void *self, const char *name)
{
    (void)self;
    return getenv(name);
}

static struct rv_provider_env env_of(const rv_engine *e)
{
    return e->opts.env.get ? e->opts.env : (struct rv_provider_env){environment, NULL};
}

const char *engine_env(const rv_engine *e, const char *name)
{
    const struct rv_provider_env env = env_of(e);

    return env.get(env.self, name);
}

int engine_http(rv_engine *e, rv_err **err)
{
    int rc = engine_loop_ensure(e, err);
    if (rc < 0 || e->http)
        return rc;
    const struct rv_http_opts opts = {.loop = engine_loop_uv(e->loop), .runs_on = true, .log = e->opts.log};
    return rv_http_new(&opts, &e->http, err);
}

static int ensure_client(rv_engine *e, rv_err **err)
{
    if (!e->providers && !(e->providers = rv_providers_new(env_of(e))))
        return RV_FAIL(err, RV_E_NOMEM, "make the clients of providers");
    return engine_http(e, err);
}

void engine_models_fini(rv_engine *e)
{
    rv_http_free(e->http);
    rv_providers_free(e->providers);
    e->http = NULL;
    e->providers = NULL;
}

/* --- events of the exchange and of the network --- */

static int64_t now_us(const struct model_call *m)
{
    return rv_engine_now_us(m->call->x->engine);
}

static void due_at(struct call *c, int64_t us)
{
    rv_engine *e = c->x->engine;

    c->due_us = us;
    engine_due_moved(&e->due, c);
}

/* Memory ran out: the run cannot go on. */
static void give_up(struct model_call *m, int rc, rv_err *err)
{
    exec_break(m->call->x, rc, err); /* m is gone with its call */
}

static void on_delta(void *self, const struct rv_llm_delta *d)
{
    struct model_call *m = self;

    if (!engine_delta_tell(m->call, d))
        m->held = true;
}

static void on_head(void *self, const struct rv_http_head *head)
{
    struct model_call *m = self;
    rv_err *err = NULL;

    int rc = rv_exchange_on_head(m->exchange, head, now_us(m), &err);
    if (rc < 0)
        give_up(m, rc, err);
}

static bool on_body(void *self, rv_str bytes)
{
    struct model_call *m = self;
    rv_err *err = NULL;

    int rc = rv_exchange_on_body(m->exchange, bytes, now_us(m), &err);
    if (rc < 0) {
        give_up(m, rc, err);
        return true;
    }
    if (!m->lingers && rv_exchange_has_answer(m->exchange)) {
        m->lingers = true;
        due_at(m->call, now_us(m) + LINGER_US);
    }
    return !m->held;
}

static void on_end(void *self, const struct rv_http_end *end)
{
    struct model_call *m = self;
    rv_err *err = NULL;

    m->http = NULL;
    int rc = rv_exchange_on_end(m->exchange, end, now_us(m), &err);
    if (rc < 0)
        give_up(m, rc, err);
    else
        advance(m);
}

static void on_ready(void *self)
{
    struct model_call *m = self;

    if (!m->is_done && !m->http)
        due_at(m->call, now_us(m));
}

/* --- requests --- */

bool exec_trace(const rv_exec *x, int64_t call_id, struct rv_trace_headers *out)
{
    const rv_envelope *env = rv_run_envelope(x->run);
    const char *said[2] = {NULL, NULL}, *const keys[2] = {RV_TRACE_PARENT, RV_TRACE_STATE};

    for (size_t i = 0; i < 2; i++) {
        json_object *value = rv_envelope_metadata(env, rv_str_of(keys[i]), NULL);
        if (json_object_is_type(value, json_type_string))
            said[i] = json_object_get_string(value);
    }
    return rv_trace_make_headers(rv_envelope_fields(env)->envelope_id, call_id, said[0], said[1],
                                 x->engine->opts.traces, out);
}

size_t engine_trace_lines(const struct rv_trace_headers *t, const char *const *headers, size_t n, const char **lines,
                          char parent[RV_TRACE_LINE_MAX], char state[RV_TRACE_LINE_MAX])
{
    for (size_t i = 0; i < n; i++) {
        if (strncasecmp(headers[i], "traceparent:", 12) == 0) /* who set it knows better */
            return 0;
        lines[i] = headers[i];
    }
    snprintf(parent, RV_TRACE_LINE_MAX, "traceparent: %s", t->parent);
    lines[n++] = parent;
    if (t->state) {
        snprintf(state, RV_TRACE_LINE_MAX, "tracestate: %s", t->state);
        lines[n++] = state;
    }
    return n;
}

/* A logger for the record of the next request, which names the run, the stage, the call and the attempt; NULL: such
 * records are not written, or memory is short. */
static rv_log *request_log(struct model_call *m)
{
    const struct call *c = m->call;
    const struct rv_field fields[] = {RV_F_TEXT("stage", engine_call_stage(c)), RV_F_I64("visit", c->visit),
                                      RV_F_I64("call_id", c->call_id),
                                      RV_F_I64("attempt", rv_exchange_attempt(m->exchange))};

    rv_log_free(m->log);
    m->log = rv_log_is_on(c->x->log, RV_LOG_DEBUG) ? rv_log_bind(c->x->log, fields, RV_COUNT(fields)) : NULL;
    return m->log;
}

static void on_retry(void *self, const struct rv_exchange_retry *r)
{
    const struct call *c = ((struct model_call *)self)->call;
    const char *code = rv_failure_text(r->code);

    if (r->to)
        RV_LOG(c->x->log, WARN, "model.fallback", RV_F_TEXT("stage", engine_call_stage(c)), RV_F_I64("visit", c->visit),
               RV_F_I64("call_id", c->call_id), RV_F_TEXT("role", r->role), RV_F_TEXT("to", r->to),
               RV_F_STR("error", r->error), RV_F_TEXT("code", code));
    else
        RV_LOG(c->x->log, WARN, "model.retry", RV_F_TEXT("stage", engine_call_stage(c)), RV_F_I64("visit", c->visit),
               RV_F_I64("call_id", c->call_id), RV_F_I64("attempt", r->attempt), RV_F_I64("of", r->of),
               RV_F_I64("wait_ms", r->wait_us / RV_US_PER_MS), RV_F_STR("error", r->error), RV_F_TEXT("code", code));
}

/* Start a request that names the trace of its run, if that has one. Headers are copied by the client. */
static int start_http(struct model_call *m, const struct rv_http_request *request, const struct rv_http_events *events,
                      rv_err **err)
{
    const struct call *c = m->call;
    char parent[RV_TRACE_LINE_MAX], state[RV_TRACE_LINE_MAX];
    struct rv_http_request named = *request;
    struct rv_trace_headers t;
    const char **lines = NULL;

    named.log = request_log(m);
    if (exec_trace(c->x, c->call_id, &t)) {
        lines = malloc((request->n_headers + 2) * sizeof *lines);
        if (!lines)
            return RV_FAIL(err, RV_E_NOMEM, "ask a model");
        size_t n = engine_trace_lines(&t, request->headers, request->n_headers, lines, parent, state);
        if (n > 0) {
            named.headers = lines;
            named.n_headers = n;
        }
    }
    int rc = rv_http_start(c->x->engine->http, &named, events, &m->http, err);
    free(lines);
    return rc;
}

/* False: memory is short, and the run broken. */
static bool send_request(struct model_call *m)
{
    struct call *c = m->call;
    const struct rv_exec_opts *o = &c->x->opts;
    const struct rv_http_request *request = rv_exchange_request(m->exchange);
    const struct rv_http_events events = {on_head, on_body, on_end, m};
    const struct rv_model_config *model = rv_pipeline_find_model(c->pipeline, rv_str_of(rv_exchange_role(m->exchange)));
    rv_err *err = NULL;

    if (o->on_payload)
        o->on_payload(o->self, c->call_id, model ? model->provider : "", request->body);
    m->held = m->lingers = false;
    int rc = start_http(m, request, &events, &err);
    if (rc == 0) {
        due_at(c, c->deadline_us ? c->deadline_us + DEADLINE_SLACK_US : RV_NEVER);
        return true;
    }
    rv_err *why = err;
    err = NULL;
    if (rc != RV_E_NOMEM)
        rc = rv_exchange_on_not_sent(m->exchange, why, now_us(m), &err);
    if (rc < 0 && !err) {
        err = why;
        why = NULL;
    }
    rv_err_free(why);
    if (rc < 0)
        give_up(m, rc, err);
    return rc == 0;
}

static void done(struct model_call *m)
{
    const struct rv_llm_reply *reply = rv_exchange_reply(m->exchange);
    struct call *c = m->call;

    m->is_done = true;
    engine_call_take_llm(c, reply);
    if (reply->failed && reply->answer.error_kind == RV_LLM_ERROR_TIMEOUT && c->deadline_us &&
        now_us(m) + DEADLINE_SLACK_US >= c->deadline_us)
        engine_call_say_limit(c);
    due_at(c, now_us(m));
}

/* An exchange ends at the deadline by itself, and its text says what it waited for. */
static void wait_until(struct model_call *m, int64_t at_us)
{
    struct call *c = m->call;

    if (c->deadline_us && now_us(m) >= c->deadline_us) {
        m->is_done = true;
        engine_call_timed_out(c);
        at_us = c->deadline_us;
    }
    due_at(c, c->deadline_us && at_us > c->deadline_us ? c->deadline_us : at_us);
}

/* Another request than the first needs what a quota allows. False: ask again when the call is due, or the exchange has
 * been told that it may not. */
static bool may_send(struct model_call *m, bool *waits)
{
    rv_err *why = NULL;
    const struct call_hold *hold = m->call->hold;
    bool asks = m->has_sent && hold && hold->counts_requests;
    enum call_more more = asks ? hold->more(m->call, &why) : CALL_MORE_YES;

    *waits = more == CALL_MORE_LATER;
    if (more == CALL_MORE_NO)
        rv_exchange_refuse(m->exchange, rv_err_text(why), now_us(m));
    m->has_sent = true;
    rv_err_free(why);
    return more == CALL_MORE_YES;
}

/* Do what the exchange wants next. It may break the run. */
static void advance(struct model_call *m)
{
    int64_t at_us = RV_NEVER;
    bool waits = false;

    while (!m->http) {
        switch (rv_exchange_next(m->exchange, now_us(m), &at_us)) {
        case RV_EXCHANGE_SEND:
            if (may_send(m, &waits) ? !send_request(m) : waits)
                return;
            break;
        case RV_EXCHANGE_WAIT:
            wait_until(m, at_us);
            return;
        case RV_EXCHANGE_DONE:
            done(m);
            return;
        }
    }
}

/* End the pending request now: the answer is complete and the rest of the body is not wanted, or the deadline has
 * passed without an event. */
static void end_request(struct model_call *m)
{
    const struct rv_http_end late = {
        .fault = RV_HTTP_TOTAL_TIME, .was_sent = true, .text = "the deadline of the call has passed"};
    const struct rv_http_end end = m->lingers ? (struct rv_http_end){.was_sent = true, .text = ""} : late;
    rv_err *err = NULL;

    rv_http_cancel(m->http);
    m->http = NULL;
    int rc = rv_exchange_on_end(m->exchange, &end, now_us(m), &err);
    if (rc < 0)
        give_up(m, rc, err);
    else
        advance(m);
}

bool engine_model_due(struct call *c)
{
    struct model_call *m = c->model;

    if (m->is_done)
        return true;
    if (m->http)
        end_request(m);
    else
        advance(m);
    return false; /* the call is due again, or was freed with its run */
}

void engine_model_read_on(struct call *c)
{
    struct model_call *m = c->model;

    if (!m || !m->held)
        return;
    m->held = false;
    if (m->http)
        rv_http_resume(m->http);
}

void engine_model_free(struct model_call *m)
{
    if (!m)
        return;
    if (m->http)
        rv_http_cancel(m->http);
    rv_exchange_free(m->exchange);
    rv_log_free(m->log);
    free(m);
}

/* --- asking --- */

/* A hash by which the waits before retries differ from run to run. */
static uint64_t jitter_of(const rv_exec *x, const struct call *c)
{
    uint64_t h = rv_fnv_add(1469598103934665603u, rv_str_of(rv_envelope_fields(rv_run_envelope(x->run))->envelope_id));

    return (h ^ (uint64_t)c->call_id) * 1099511628211u;
}

int engine_model_ask(struct call *c, json_object *request, rv_err **err)
{
    rv_exec *x = c->x;
    rv_engine *e = x->engine;
    struct model_call *m = NULL;

    int rc = ensure_client(e, err);
    if (rc < 0)
        return rc;
    m = calloc(1, sizeof *m);
    if (!m)
        return RV_FAIL(err, RV_E_NOMEM, "ask a model");
    m->call = c;
    const struct rv_exchange_opts opts = {.pipeline = c->pipeline,
                                          .role = c->name,
                                          .request = request,
                                          .now_us = rv_engine_now_us(e),
                                          .deadline_us = c->deadline_us,
                                          .random = jitter_of(x, c),
                                          .charged = c->is_budgeted || (c->hold && c->hold->counts_charges),
                                          .on_delta = on_delta,
                                          .on_ready = on_ready,
                                          .on_retry = on_retry,
                                          .self = m};
    rc = rv_exchange_new(e->providers, &opts, &m->exchange, err);
    if (rc < 0) {
        engine_model_free(m);
        return rc;
    }
    c->model = m;
    advance(m);
    return 0;
}

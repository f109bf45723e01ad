/* What monitoring is told of the runs of this process: each thread that drives runs hands their events over, and
 * `GET /metrics` writes what was counted. Behind one lock, which is held for a short time only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/server/export_internal.h"
#include "coreengine/server/handlers_internal.h"

#define MAX_MODEL 8192 /* bytes of a provider and the name of a model, as an event says them */
#define MAX_CALLS 256  /* calls of one run that are under way: as branches of a fork; of more the model is unknown */

struct call {           /* of a model, that is under way */
    char *path, *model; /* owned */
    int64_t id;
};
struct watched { /* a run that is driven here */
    struct watched *next;
    const void *key;
    char *pipeline; /* owned; NULL: unknown */
    char run[RV_STORE_MAX_ID + 1];
    int64_t start_us;
    struct call *calls; /* owned */
    size_t n_calls, cap_calls;
    rv_log *log;            /* borrowed */
    rv_run_trace *trace;    /* owned; NULL: none is wanted, or it has not begun */
    struct srv_trace asked; /* by whom the run was asked for */
    bool has_asked;
};
#define ROWS 4096 /* each event looks for its run: some thousands are driven at a time */
struct srv_watch {
    pthread_mutex_t lock;       /* guards `metrics` and `runs`; leaf */
    rv_metrics *metrics;        /* owned */
    struct watched *runs[ROWS]; /* by what row_of() makes of the key */
    enum rv_semconv names;      /* as the next one: does not change */
    rv_log *log;
    struct srv_export *collector; /* NULL: none; owned */
};

/* --- to the collector --- */

static void write_metrics(void *self, const struct rv_otlp_resource *resource, rv_buf *out)
{
    struct srv_watch *w = self;

    pthread_mutex_lock(&w->lock);
    rv_otlp_write_metrics(resource, w->metrics, srv_now_us(), out);
    pthread_mutex_unlock(&w->lock);
}

static void on_span(void *self, struct rv_span *span)
{
    struct srv_watch *w = self;

    srv_export_span(w->collector, span);
}

struct srv_trace srv_watch_trace(const struct srv_call *c)
{
    struct srv_trace t = {.is_trusted = c->who.level != RV_LEVEL_USER};
    rv_str text;

    if (!rv_httpd_find_field(c->req, "traceparent", &text, NULL) || !rv_traceparent_read(text, &t.caller)) {
        t.caller = (struct rv_trace_context){.flags = 0};
        return t;
    }
    if (!t.is_trusted)
        return t;
    rv_traceparent_write(&t.caller, t.parent);
    return t;
}

rv_str srv_watch_trace_state(const struct srv_call *c, const struct srv_trace *trace)
{
    rv_str text = {NULL, 0};

    if (!trace->parent[0] || !rv_httpd_find_field(c->req, "tracestate", &text, NULL) || !rv_tracestate_is_valid(text))
        return (rv_str){NULL, 0};
    return text;
}

static void end_trace(struct watched *r)
{
    if (!r->trace)
        return;
    rv_run_trace_end(r->trace, srv_now_us());
    if (rv_run_trace_dropped(r->trace) > 0)
        RV_LOG(r->log, WARN, "trace.cut", RV_F_TEXT("run_id", r->run),
               RV_F_I64("left_out", rv_run_trace_dropped(r->trace)));
    rv_run_trace_free(r->trace);
    r->trace = NULL;
}

static void begin_trace(struct srv_watch *w, struct watched *r, const struct srv_trace *trace, const char *run)
{
    struct rv_run_trace_opts opts = {
        .names = w->names, .rand = rv_rand_system(), .run = run, .ended = on_span, .self = w};

    end_trace(r);
    snprintf(r->run, sizeof r->run, "%s", run);
    if (trace && trace->is_trusted) {
        opts.parent = trace->caller;
        opts.parent_is_remote = true;
    } else if (trace) {
        opts.link = trace->caller;
    }
    rv_err *err = NULL;
    if (w->collector && rv_run_trace_new(&opts, &r->trace, &err) < 0)
        rv_err_free(err); /* a run without spans rather than none */
}

static int open_collector(struct srv_watch *w, const struct rv_server_opts *opts, rv_err **err)
{
    const struct srv_export_opts to = {
        .to = opts->telemetry, .log = opts->app->log, .write_metrics = write_metrics, .self = w};

    return opts->telemetry.url ? srv_export_new(&to, &w->collector, err) : 0;
}

int srv_watch_new(const struct rv_server_opts *opts, struct srv_watch **out, rv_err **err)
{
    struct srv_watch *w = calloc(1, sizeof *w);

    if (!w)
        return RV_FAIL(err, RV_E_NOMEM, "make room for metrics");
    pthread_mutex_init(&w->lock, NULL);
    w->log = opts->app->log;
    w->names = opts->telemetry.names;
    int rc = rv_metrics_new(w->names, srv_now_us(), &w->metrics, err);
    if (rc == 0)
        rc = open_collector(w, opts, err);
    if (rc < 0)
        srv_watch_free(w);
    else
        *out = w;
    return rc;
}

/* --- runs that are driven here --- */

static void call_fini(struct call *c)
{
    free(c->path);
    free(c->model);
}

static void free_watched(struct watched *r)
{
    for (size_t i = 0; i < r->n_calls; i++)
        call_fini(&r->calls[i]);
    free(r->calls);
    end_trace(r);
    free(r->pipeline);
    free(r);
}

/* Keys are addresses of objects of some hundred bytes (Fibonacci hashing). */
static struct watched **row_of(struct srv_watch *w, const void *key)
{
    return &w->runs[(uint64_t)(uintptr_t)key * RV_GOLDEN >> 52];
}

static struct watched *find(struct srv_watch *w, const void *key)
{
    struct watched **row = row_of(w, key), *r = *row;

    while (r && r->key != key)
        r = r->next;
    if (!r && (r = calloc(1, sizeof *r))) {
        r->key = key;
        r->log = w->log;
        r->next = *row;
        *row = r;
    }
    return r;
}

static struct call *find_call(struct watched *r, json_object *event)
{
    int64_t id = 0;

    if (!rv_json_get_int(event, "call_id", &id))
        return NULL;
    for (size_t i = 0; i < r->n_calls; i++)
        if (r->calls[i].id == id && strcmp(r->calls[i].path, rv_json_text_or(event, "path", "")) == 0)
            return &r->calls[i];
    return NULL;
}

static void drop_call(struct watched *r, struct call *c)
{
    call_fini(c);
    *c = r->calls[--r->n_calls];
}

/* "provider:model"; the caller's. NULL: no memory. */
static char *model_of(json_object *event)
{
    const char *provider = rv_json_text_or(event, "provider", ""), *model = rv_json_text_or(event, "model", "");
    rv_buf text = RV_BUF_INIT(MAX_MODEL);

    rv_buf_printf(&text, "%s%s%s", provider, *provider ? ":" : "", model);
    return rv_buf_steal(&text, NULL);
}

static void note_call(struct watched *r, json_object *event)
{
    struct call *old = find_call(r, event); /* another attempt */
    struct call c = {.id = 0};

    if (old)
        drop_call(r, old);
    if (r->n_calls >= MAX_CALLS || !rv_json_get_int(event, "call_id", &c.id) ||
        !rv_has_room(&r->calls, &r->cap_calls, r->n_calls + 1, sizeof c))
        return;
    c.path = rv_str_dup(rv_str_of(rv_json_text_or(event, "path", "")));
    c.model = model_of(event);
    if (c.path && c.model)
        r->calls[r->n_calls++] = c;
    else
        call_fini(&c);
}

static void note_start(struct watched *r, json_object *event)
{
    free(r->pipeline);
    r->pipeline = rv_str_dup(rv_str_of(rv_json_text_or(event, "pipeline", "")));
    if (!rv_time_read(rv_str_of(rv_json_text_or(event, "time", "")), &r->start_us))
        r->start_us = 0;
}

static void take(struct srv_watch *w, struct watched *r, const struct srv_trace *trace, json_object *event)
{
    int kind = rv_emit_of(rv_str_of(rv_json_text_or(event, "type", "")));
    struct call *call = NULL;

    if (kind == RV_EMIT_PIPELINE_STARTED) {
        note_start(r, event);
        begin_trace(w, r, trace, rv_json_text_or(event, "envelope_id", ""));
    } else if (kind == RV_EMIT_LLM_CALL_START) {
        note_call(r, event);
    } else if (kind == RV_EMIT_LLM_RESULT) {
        call = find_call(r, event);
    }
    const struct rv_metrics_run run = {
        .pipeline = r->pipeline ? r->pipeline : "", .model = call ? call->model : NULL, .start_us = r->start_us};
    rv_metrics_add_event(w->metrics, &run, event);
    if (call)
        drop_call(r, call);
    if (r->trace)
        rv_run_trace_add(r->trace, event);
}

void srv_watch_begin(void *watch, const void *key, const char *trace, bool is_trusted)
{
    struct srv_watch *w = watch;
    struct srv_trace asked = {.is_trusted = is_trusted};

    if (!rv_traceparent_read(rv_str_of(trace), &asked.caller))
        return;
    pthread_mutex_lock(&w->lock);
    struct watched *r = find(w, key);
    if (r) {
        r->asked = asked;
        r->has_asked = true;
    }
    pthread_mutex_unlock(&w->lock);
}

void srv_watch_event(struct srv_watch *w, const void *key, const struct srv_trace *trace, json_object *event)
{
    if (!event) /* of an engine that is wrong; its run goes on */
        return;
    pthread_mutex_lock(&w->lock);
    struct watched *r = find(w, key);
    if (r)
        take(w, r, trace || !r->has_asked ? trace : &r->asked, event);
    pthread_mutex_unlock(&w->lock);
}

void srv_watch_over(struct srv_watch *w, const void *key)
{
    pthread_mutex_lock(&w->lock);
    struct watched **at = row_of(w, key);
    while (*at && (*at)->key != key)
        at = &(*at)->next;
    struct watched *r = *at;
    if (r)
        *at = r->next;
    pthread_mutex_unlock(&w->lock);
    if (r)
        free_watched(r);
}

void srv_watch_free(struct srv_watch *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < ROWS; i++)
        for (struct watched *r = w->runs[i], *next; r; r = next) {
            next = r->next;
            free_watched(r);
        }
    srv_export_free(w->collector);
    rv_metrics_free(w->metrics);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* --- requests --- */

void srv_watch_request(struct srv_watch *w, const struct rv_httpd_access *a)
{
    char status[16] = "";

    if (a->status > 0)
        snprintf(status, sizeof status, "%d", a->status);
    const char *const labels[] = {a->method[0] ? a->method : "_OTHER", a->route ? a->route : "", status};
    pthread_mutex_lock(&w->lock);
    rv_metrics_add(w->metrics, RV_METRIC_HTTP_TIME, labels, (double)a->took_us / 1e6);
    pthread_mutex_unlock(&w->lock);
}

int srv_metrics(struct srv_call *c, rv_err **err)
{
    struct srv_watch *w = c->server->watch;
    rv_str accept = RV_STR_LIT("");

    (void)err;
    bool is_open = rv_httpd_find_field(c->req, "accept", &accept, NULL) && rv_metrics_wants_open(accept);
    c->status = 200;
    c->type = is_open ? RV_OPENMETRICS_TYPE : RV_PROMETHEUS_TYPE;
    pthread_mutex_lock(&w->lock);
    rv_metrics_write_text(w->metrics, is_open, &c->out);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

/* What a collector gets: finished spans in batches, and the metrics once a minute, over OTLP. On a loop of its own, so
 * that a collector that is slow or gone keeps no run back: what does not fit into the queue is lost, and counted. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/model/http/http.h"
#include "coreengine/server/export_internal.h"

#define MAX_QUEUE     8192               /* spans: protects memory where the receiver is slow; 16 batches */
#define MAX_BATCH     512                /* spans of one request, as OpenTelemetry's own exporters send */
#define MAX_BODY      ((size_t)64 << 20) /* bytes of a request; what does not fit is dropped and counted */
#define MAX_ANSWER    ((size_t)1 << 20)  /* bytes of a collector's answer: it only says what was refused */
#define MAX_READ      ((size_t)4 << 10) /* bytes of an answer that are looked at: its beginning says what was refused */
#define MAX_URL       8192              /* bytes of an address with its path: as of any request */
#define MAX_TRIES     5                 /* of one batch: the next ones wait behind it; then it is dropped and counted */
#define MAX_HEADERS   16                /* of OTEL_EXPORTER_OTLP_HEADERS: receivers ask for two; more is an error */
#define SEND_MS       1000              /* between two looks into the queue */
#define METRICS_US    RV_US_PER_MIN     /* a minute, as OpenTelemetry's own exporters */
#define CONNECT_US    (5 * RV_US_PER_S) /* five seconds: a collector is near */
#define PAUSE_US      RV_US_PER_S       /* before the second try; then twice that, and so on */
#define LAST_WORDS_MS 5000              /* for what is left at the end */

/* What requests of one kind go to. */
struct target {
    rv_buf url, shown; /* shown: as the log has it */
};

struct srv_export {
    struct srv_export_opts opts;
    struct rv_otlp_resource resource;
    char instance[RV_ID_MAX];
    pthread_mutex_t lock;             /* guards `queue`, n and n_lost; leaf */
    struct rv_span *queue[MAX_QUEUE]; /* owned */
    size_t n;
    int64_t n_lost;
    struct srv_loop loop; /* what follows is its own */
    uv_timer_t tick, deadline;
    rv_http *http;      /* owned */
    rv_http_call *call; /* NULL: nothing is sent now */
    struct target spans, metrics;
    rv_buf body, answer;        /* of the request; of its answer, which may end before its end */
    char *headers[MAX_HEADERS]; /* owned; "Name: value" */
    size_t n_headers;
    const struct target *to; /* where the body goes; NULL: there is none */
    size_t n_spans;          /* in the body */
    int tries, status;
    int64_t wait_us, metrics_at_us;
    bool is_ending, is_closed, has_last_metrics;
};

static void on_tick(uv_timer_t *timer);

static void look_again(struct srv_export *e, uint64_t ms)
{
    if (!e->is_closed)
        uv_timer_start(&e->tick, on_tick, ms, 0);
}

/* --- an answer --- */

static void on_head(void *self, const struct rv_http_head *head)
{
    struct srv_export *e = self;
    rv_str after = RV_STR_LIT("");

    for (size_t i = 0; i < head->n_headers; i++)
        if (rv_str_is(head->headers[i].name, "retry-after"))
            after = head->headers[i].value;
    e->status = head->status;
    RV_IGNORE(rv_otlp_needs_retry(head->status, after, &e->wait_us), "only the time; it is judged at the end");
}

static bool on_body(void *self, rv_str bytes)
{
    struct srv_export *e = self;
    size_t room = MAX_READ - e->answer.len;

    rv_buf_add(&e->answer, bytes.ptr, bytes.len < room ? bytes.len : room);
    return true;
}

static void forget_body(struct srv_export *e)
{
    rv_buf_clear(&e->body);
    e->to = NULL;
    e->tries = 0;
    e->n_spans = 0;
}

static void log_lost(const struct srv_export *e, size_t n_spans, const char *why)
{
    RV_LOG(e->opts.log, WARN, "otlp.lost", RV_F_TEXT("url", rv_buf_cstr(&e->to->shown)), RV_F_I64("status", e->status),
           RV_F_I64("spans", (int64_t)n_spans), RV_F_TEXT("error", why));
}

static void lose(struct srv_export *e, const char *why)
{
    log_lost(e, e->n_spans, why);
    forget_body(e);
}

/* An answer with 200 may say that a part was not taken; any other one, why nothing was. */
static void lose_as_told(struct srv_export *e)
{
    RV_AUTO(rv_buf_fini) rv_buf says = RV_BUF_INIT(MAX_READ);
    const bool is_taken = e->status >= 200 && e->status < 300;
    size_t n = (size_t)rv_otlp_read_answer(rv_buf_str(&e->answer), &says);
    const char *why = says.rc == 0 && says.len > 0 ? rv_buf_cstr(&says) : "the collector does not say why";

    if (!is_taken)
        lose(e, why);
    else if (n > 0)
        log_lost(e, n < e->n_spans ? n : e->n_spans, why);
}

static void settle(struct srv_export *e, const char *why)
{
    int64_t ignored, pause_us = PAUSE_US << (e->tries > 0 ? e->tries - 1 : 0);

    if (e->status >= 200 && e->status < 300) {
        lose_as_told(e);
        forget_body(e);
        look_again(e, e->is_ending ? 0 : SEND_MS);
    } else if (e->tries >= MAX_TRIES || !rv_otlp_needs_retry(e->status, RV_STR_LIT(""), &ignored)) {
        if (e->status > 0)
            lose_as_told(e);
        else
            lose(e, why);
        look_again(e, e->is_ending ? 0 : SEND_MS);
    } else {
        pause_us = e->wait_us > 0 ? e->wait_us : pause_us;
        look_again(e, (uint64_t)pause_us / RV_US_PER_MS); /* at most an hour: rv_otlp_needs_retry() */
    }
}

static void on_end(void *self, const struct rv_http_end *end)
{
    struct srv_export *e = self;

    e->call = NULL;
    if (end->fault != RV_HTTP_OK && (e->status < 200 || e->status > 299))
        e->status = 0;
    settle(e, end->text);
}

/* --- a request --- */

static void send_body(struct srv_export *e)
{
    const int64_t total_us = e->opts.to.timeout_us;
    const struct rv_http_request req = {.method = "POST",
                                        .url = rv_buf_cstr(&e->to->url),
                                        .headers = (const char *const *)e->headers,
                                        .n_headers = e->n_headers,
                                        .body = rv_buf_str(&e->body),
                                        .connect_us = total_us < CONNECT_US ? total_us : CONNECT_US,
                                        .total_us = total_us,
                                        .max_body = MAX_ANSWER};
    const struct rv_http_events events = {.on_head = on_head, .on_body = on_body, .on_end = on_end, .self = e};
    rv_err *err = NULL;

    rv_buf_clear(&e->answer);
    e->status = 0;
    e->wait_us = 0;
    e->tries++;
    if (rv_http_start(e->http, &req, &events, &e->call, &err) < 0) {
        e->tries = MAX_TRIES;
        e->call = NULL;
        settle(e, rv_err_text(err));
        rv_err_free(err);
    }
}

static bool take_spans(struct srv_export *e)
{
    struct rv_span *batch[MAX_BATCH];

    pthread_mutex_lock(&e->lock);
    size_t n = e->n < MAX_BATCH ? e->n : MAX_BATCH;
    memcpy(batch, e->queue, n * sizeof *batch);
    memmove(e->queue, e->queue + n, (e->n - n) * sizeof *batch);
    e->n -= n;
    int64_t n_lost = e->n_lost;
    e->n_lost = 0;
    pthread_mutex_unlock(&e->lock);
    if (n_lost > 0)
        RV_LOG(e->opts.log, WARN, "otlp.full", RV_F_I64("spans", n_lost));
    if (n == 0)
        return false;
    rv_otlp_write_spans(&e->resource, batch, n, &e->body);
    for (size_t i = 0; i < n; i++)
        rv_span_free(batch[i]);
    e->n_spans = n;
    e->to = &e->spans;
    return true;
}

static bool take_metrics(struct srv_export *e)
{
    int64_t now_us = srv_now_us();

    if (e->is_ending ? e->has_last_metrics : now_us < e->metrics_at_us)
        return false;
    e->has_last_metrics = e->is_ending;
    e->metrics_at_us = now_us + METRICS_US;
    e->opts.write_metrics(e->opts.self, &e->resource, &e->body);
    e->to = &e->metrics;
    return true;
}

static void close_loop(struct srv_export *e)
{
    if (e->is_closed)
        return;
    e->is_closed = true;
    rv_http_free(e->http); /* cancels what is under way */
    uv_close((uv_handle_t *)&e->tick, NULL);
    uv_close((uv_handle_t *)&e->deadline, NULL);
    srv_loop_close(&e->loop);
}

static void on_tick(uv_timer_t *timer)
{
    struct srv_export *e = timer->data;

    if (e->call)
        return;
    if (!e->to && !take_spans(e) && !take_metrics(e)) {
        if (e->is_ending)
            close_loop(e);
        else
            look_again(e, SEND_MS);
    } else if (e->body.rc < 0) {
        lose(e, "it is too large, or there is no memory for it");
        look_again(e, SEND_MS);
    } else {
        send_body(e);
    }
}

/* --- the end --- */

static void on_deadline(uv_timer_t *timer)
{
    struct srv_export *e = timer->data;

    close_loop(e);
    if (e->to)
        lose(e, "the server ends");
}

struct ending {
    struct srv_message message;
    struct srv_export *e;
};

static void on_ending(struct srv_message *l)
{
    struct srv_export *e = ((struct ending *)l)->e;

    e->is_ending = true;
    uv_timer_start(&e->deadline, on_deadline, LAST_WORDS_MS, 0);
    look_again(e, 0);
}

static void end_thread(struct srv_export *e)
{
    struct ending ending = {.message = {.open = on_ending},
                            .e = e}; /* read before the thread ends, which is waited for */

    srv_loop_post(&e->loop, &ending.message);
    srv_loop_join(&e->loop);
}

static void target_fini(struct target *t)
{
    rv_buf_fini(&t->url);
    rv_buf_fini(&t->shown);
}

void srv_export_free(struct srv_export *e)
{
    if (!e)
        return;
    if (e->loop.has_thread)
        end_thread(e);
    else
        close_loop(e); /* it never ran */
    srv_loop_fini(&e->loop);
    if (e->n_lost > 0 || e->n > 0)
        RV_LOG(e->opts.log, WARN, "otlp.lost", RV_F_TEXT("url", rv_buf_cstr(&e->spans.shown)), RV_F_I64("status", 0),
               RV_F_I64("spans", e->n_lost + (int64_t)e->n), RV_F_TEXT("error", "the server ends"));
    for (size_t i = 0; i < e->n; i++)
        rv_span_free(e->queue[i]);
    for (size_t i = 0; i < e->n_headers; i++)
        free(e->headers[i]);
    target_fini(&e->spans);
    target_fini(&e->metrics);
    rv_buf_fini(&e->body);
    rv_buf_fini(&e->answer);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

/* --- the beginning --- */

static int check_url(const char *url, rv_err **err)
{
    const char *host = url + (strncmp(url, "https://", 8) == 0 ? 8 : 7);
    RV_AUTO(rv_buf_fini) rv_buf shown = RV_BUF_INIT(MAX_URL);

    if ((strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0) && *host && !strchr("/?#:", *host))
        return 0;
    rv_otlp_write_shown_url(url, &shown);
    int rc = RV_FAIL(err, RV_E_INVALID, "--otlp %s: write the address of a collector, http:// or https://",
                     rv_buf_cstr(&shown));
    rv_err_set_hint(err, "for example http://127.0.0.1:4318; /v1/traces and /v1/metrics are added to it");
    return rc;
}

static void target_init(struct target *t, const char *collector, const char *path)
{
    rv_buf_init(&t->url, MAX_URL);
    rv_buf_init(&t->shown, MAX_URL);
    rv_otlp_write_url(collector, path, &t->url);
    rv_otlp_write_shown_url(collector, &t->shown);
    rv_buf_puts(&t->shown, path);
}

/* NAME: VALUE, in which each %XX is a byte. Control characters would begin another header. */
static int write_header(rv_str name, rv_str value, rv_buf *line, rv_err **err)
{
    int rc = 0;

    rv_buf_printf(line, "%.*s: ", RV_STR_ARG(name));
    for (size_t i = 0; i < value.len && rc == 0; i++) {
        const char *p = value.ptr + i;
        bool is_coded = *p == '%' && value.len - i > 2 && rv_hex_digit(p[1]) >= 0 && rv_hex_digit(p[2]) >= 0;
        rv_buf_putc(line, is_coded ? (char)(rv_hex_digit(p[1]) << 4 | rv_hex_digit(p[2])) : *p);
        i += is_coded ? 2 : 0;
        if (*p == '%' && !is_coded) {
            rc = RV_FAIL(err, RV_E_INVALID, "OTEL_EXPORTER_OTLP_HEADERS: %.*s has a %% without two hexadecimal digits",
                         RV_STR_ARG(rv_utf8_cut(name, 100)));
            rv_err_set_hint(err, "write %%25 for a percent sign");
        }
    }
    for (size_t i = 0; rc == 0 && i < line->len; i++)
        if ((unsigned char)line->ptr[i] < ' ' || line->ptr[i] == 0x7f) {
            rc = RV_FAIL(err, RV_E_INVALID, "OTEL_EXPORTER_OTLP_HEADERS: %.*s has a control character",
                         RV_STR_ARG(rv_utf8_cut(name, 100)));
            rv_err_set_hint(err, "take it out, also if it is written as %%0A or %%0D");
        }
    return rc < 0 ? rc : rv_buf_check(line, "a header", err);
}

static int add_header(struct srv_export *e, rv_str item, rv_err **err)
{
    const char *equals = memchr(item.ptr, '=', item.len);
    const rv_str name = rv_str_trim((rv_str){item.ptr, equals ? (size_t)(equals - item.ptr) : 0});
    rv_buf line = RV_BUF_INIT(8192);
    int rc = 0;

    if (name.len == 0 || memchr(name.ptr, ' ', name.len) || memchr(name.ptr, ':', name.len))
        rc = RV_FAIL(err, RV_E_INVALID, "OTEL_EXPORTER_OTLP_HEADERS: write NAME=VALUE, with commas between them");
    else if (e->n_headers >= MAX_HEADERS)
        rc = RV_FAIL(err, RV_E_LIMIT, "OTEL_EXPORTER_OTLP_HEADERS has more than %d headers", MAX_HEADERS);
    if (rc == 0)
        rc = write_header(name, rv_str_trim((rv_str){equals + 1, (size_t)(item.ptr + item.len - equals - 1)}), &line,
                          err);
    if (rc == 0 && !(e->headers[e->n_headers++] = rv_buf_steal(&line, NULL)))
        rc = RV_FAIL(err, RV_E_NOMEM, "send spans");
    rv_buf_fini(&line);
    return rc;
}

static int read_headers(struct srv_export *e, const char *text, rv_err **err)
{
    int rc = add_header(e, RV_STR_LIT("Content-Type=application/json"), err);

    for (const char *p = text ? text : ""; *p && rc == 0;) {
        rv_str item = {p, strcspn(p, ",")};
        p += item.len + (p[item.len] == ',');
        item = rv_str_trim(item);
        if (item.len > 0)
            rc = add_header(e, item, err);
    }
    return rc;
}

static void init_timers(struct srv_export *e)
{
    uv_timer_init(e->loop.uv, &e->tick);
    uv_timer_init(e->loop.uv, &e->deadline);
    e->tick.data = e->deadline.data = e;
    look_again(e, SEND_MS);
}

int srv_export_new(const struct srv_export_opts *opts, struct srv_export **out, rv_err **err)
{
    int rc = check_url(opts->to.url, err);
    struct srv_export *e = rc == 0 ? calloc(1, sizeof *e) : NULL;

    if (rc < 0)
        return rc;
    if (!e)
        return RV_FAIL(err, RV_E_NOMEM, "send spans");
    rc = srv_loop_open(&e->loop, err);
    if (rc < 0) {
        free(e);
        return rc;
    }
    pthread_mutex_init(&e->lock, NULL);
    e->opts = *opts;
    rv_id_make(rv_rand_system(), "", e->instance);
    e->resource = (struct rv_otlp_resource){.service = opts->to.service,
                                            .version = rv_version(),
                                            .environment = opts->to.environment,
                                            .instance = e->instance};
    e->metrics_at_us = srv_now_us() + METRICS_US;
    target_init(&e->spans, opts->to.url, "/v1/traces");
    target_init(&e->metrics, opts->to.url, "/v1/metrics");
    rv_buf_init(&e->body, MAX_BODY);
    rv_buf_init(&e->answer, MAX_READ + 1);
    init_timers(e);
    const struct rv_http_opts http = {.loop = e->loop.uv, .runs_on = true, .max_connections = 1, .log = opts->log};
    rc = rv_buf_check(&e->metrics.url, "an address", err);
    if (rc == 0)
        rc = read_headers(e, opts->to.headers, err);
    if (rc == 0)
        rc = rv_http_new(&http, &e->http, err);
    if (rc == 0)
        rc = srv_loop_go(&e->loop, err);
    if (rc < 0) {
        rc = RV_WRAP(err, rc, "send spans to %s", rv_buf_cstr(&e->spans.shown));
        srv_export_free(e);
        return rc;
    }
    *out = e;
    return 0;
}

void srv_export_span(struct srv_export *e, struct rv_span *span)
{
    pthread_mutex_lock(&e->lock);
    if (e->n < MAX_QUEUE) {
        e->queue[e->n++] = span;
        span = NULL;
    } else {
        e->n_lost++;
    }
    pthread_mutex_unlock(&e->lock);
    rv_span_free(span);
}

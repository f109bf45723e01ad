/* One request of a link until its end: a POST with its answer, or the stream of a legacy server.
 *
 * Callbacks of the user come from within callbacks of HTTP, and may cancel or close what they belong to. An exchange is
 * therefore marked as over at once, and freed when the outermost callback has returned, or with it the walk of the
 * timer over all of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/mcp/http/web_internal.h"

#define MAX_REDIRECTS  3 /* of one request: a scheme, a host and a slash; more is an error */
#define MAX_RENEWALS   2 /* of a token: a server that refuses each new one is not asked again and again */
#define MAX_RESUMES    8 /* in a row without one event: with MAX_RETRY_MS between them, eight minutes */
#define CONNECT_US     (10 * RV_US_PER_S) /* ten seconds: a server that is there accepts at once */
#define NOTIFY_US      (30 * RV_US_PER_S) /* nothing waits for the answer to a notification or a cancel */
#define USUAL_RETRY_MS 1000               /* until a stream that ended is opened again, when the server names no time */
#define MIN_RETRY_MS   INT64_C(50) /* a server that says less, and ends each stream at once, would keep a core busy */
#define MAX_RETRY_MS   INT64_C(60000)    /* a minute: a server that says more could keep a call waiting without end */
#define WHY_BYTES      ((size_t)2 << 10) /* of an error */
/* Bytes of events that are read in one turn of the loop: libcurl reads for as long as a server writes, and while a fast
 * one does, no timer would come. Some thousand short events. */
#define TURN_BYTES ((size_t)256 << 10)

static bool is_own_stream(const struct exchange *x)
{
    return x->is_stream && !x->id;
}

/* The stream of the session is open, or is not going to be: requests that waited for that are sent. */
static void stream_settled(struct web *w)
{
    w->stream_ms = 0;
    for (struct exchange *x = w->exchanges; x; x = x->next)
        if (x->waits_for_stream)
            x->due_ms = web_now(w);
    web_arm(w);
}

/* Requests wait while an exchange is the end of the handshake, which opens the stream, or the stream itself. `gone`
 * goes: if it was the last such exchange, they wait no longer. */
static void settle_stream(struct exchange *gone)
{
    struct web *w = gone->w;

    if (!w->stream_ms || w->is_closing || !(gone->opens_stream || is_own_stream(gone)))
        return;
    for (const struct exchange *x = w->exchanges; x; x = x->next)
        if (x != gone && (x->opens_stream || is_own_stream(x)))
            return;
    stream_settled(w);
}

static void exchange_free(struct exchange *x)
{
    struct web *w = x->w;

    settle_stream(x);

    for (struct exchange **at = &w->exchanges; *at; at = &(*at)->next)
        if (*at == x) {
            *at = x->next;
            break;
        }
    w->n_exchanges--;
    rv_mcp_answer_fini(&x->answer);
    rv_mcp_headers_fini(&x->headers);
    rv_buf_fini(&x->challenge);
    free(x->location);
    free(x->url);
    free(x->body);
    free(x);
    web_settle(w);
}

/* It is over. */
static void let_go(struct exchange *x)
{
    if (!x->w->is_walking)
        exchange_free(x);
}

void web_sweep(struct web *w)
{
    struct exchange *next;

    for (struct exchange *x = w->exchanges; x; x = next) {
        next = x->next;
        if (x->is_over)
            exchange_free(x);
    }
}

void web_exchange_drop(struct exchange *x)
{
    if (x->call)
        rv_http_cancel(x->call);
    x->call = NULL;
    if (x->waits)
        rv_mcp_tokens_forget(x->w->tokens, &x->wait);
    x->waits = false;
    x->is_over = true;
    if (!x->in_callback)
        let_go(x);
}

/* The end of the outermost callback. */
static void leave(struct exchange *x)
{
    x->in_callback = false;
    if (x->is_over)
        let_go(x);
}

/* The request of a stream that continues was sent long ago, and may have been carried out: it is not made once more. */
static void fail(struct exchange *x, const struct rv_mcp_failure *failure)
{
    struct rv_mcp_failure f = *failure;
    struct web *w = x->w;
    int64_t id = x->id;

    if (x->is_over)
        return;
    x->is_over = true;
    if (x->is_stream) {
        f.is_unsent = false;
        if (f.fault == RV_MCP_FAULT_SESSION_EXPIRED) /* it would mean that nothing was done */
            f.fault = RV_MCP_FAULT_CONNECTION_LOST;
    }
    if (id && !w->is_closing)
        w->user.failed(w->user.self, id, &f);
}

static void fail_text(struct exchange *x, enum rv_mcp_fault fault, const char *text)
{
    const struct rv_mcp_failure f = {.fault = fault, .text = text, .is_unsent = fault == RV_MCP_FAULT_NOT_ALLOWED};

    fail(x, &f);
}

static void fail_err(struct exchange *x, enum rv_mcp_fault fault, rv_err *why)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(WHY_BYTES);

    rv_err_write_chain(why, &text);
    fail_text(x, fault, text.len ? rv_buf_cstr(&text) : "no memory");
    rv_err_free(why);
}

/* --- what comes in --- */

static void on_message(void *self, rv_str json)
{
    struct exchange *x = self;
    struct web *w = x->w;

    x->n_resumes = 0;
    if (!x->is_over && !w->is_closing)
        w->user.message(w->user.self, json);
}

static void note_challenges(struct exchange *x, const struct rv_http_head *head)
{
    rv_buf_clear(&x->challenge);
    for (size_t i = 0; i < head->n_headers; i++)
        if (rv_str_is(head->headers[i].name, "www-authenticate"))
            rv_buf_printf(&x->challenge, "%s%.*s", x->challenge.len ? ", " : "", RV_STR_ARG(head->headers[i].value));
}

static void on_head(void *self, const struct rv_http_head *head)
{
    struct exchange *x = self;
    struct rv_mcp_head h = {.status = head->status, .content_type = head->content_type, .is_modern = x->is_modern};
    rv_err *why = NULL;

    x->in_callback = true;
    if (is_own_stream(x) && head->status < 300)
        stream_settled(x->w);
    note_challenges(x, head);
    h.challenge = rv_buf_str(&x->challenge);
    h.has_session = x->has_session;
    free(x->location);
    rv_str location = rv_http_header(head, "location");
    x->location = location.ptr ? rv_str_dup(location) : NULL;
    x->is_short = location.ptr && !x->location;
    x->is_encoded = rv_http_header(head, "content-encoding").len > 0;
    if (x->is_first && head->status >= 200 && head->status < 300 &&
        !rv_mcp_session_read(rv_http_header(head, "mcp-session-id"), x->w->session))
        x->w->session[0] = '\0';
    if (rv_mcp_answer_on_head(&x->answer, &h, &why) < 0) {
        fail_err(x, RV_MCP_FAULT_LOCAL, why);
        rv_http_cancel(x->call);
        x->call = NULL;
    }
    leave(x);
}

/* --- how it ends --- */

enum rv_mcp_fault rv_mcp_fault_of_http(const struct rv_http_end *end)
{
    if (end->is_denied)
        return RV_MCP_FAULT_NOT_ALLOWED;
    switch (end->fault) {
    case RV_HTTP_OK:
    case RV_HTTP_CUT:
        break;
    case RV_HTTP_UNREACHABLE:
    case RV_HTTP_CONNECT_TIME:
        return RV_MCP_FAULT_NO_CONNECTION;
    case RV_HTTP_FIRST_BYTE_TIME:
    case RV_HTTP_IDLE_TIME:
    case RV_HTTP_TOTAL_TIME:
        return RV_MCP_FAULT_TIMED_OUT;
    case RV_HTTP_TOO_LARGE:
        return RV_MCP_FAULT_TOO_LARGE;
    case RV_HTTP_BAD_ANSWER:
        return RV_MCP_FAULT_BAD_MESSAGE;
    case RV_HTTP_LOCAL:
        return RV_MCP_FAULT_LOCAL;
    }
    return RV_MCP_FAULT_CONNECTION_LOST;
}

static void fail_by_end(struct exchange *x, const struct rv_http_end *end)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(WHY_BYTES);
    struct rv_mcp_failure f = {.fault = rv_mcp_fault_of_http(end), .is_unsent = !end->was_sent};

    rv_buf_puts(&text, end->text);
    if (end->is_denied)
        rv_buf_puts(&text, RV_HTTP_ALLOW_NET);
    f.text = rv_buf_cstr(&text);
    f.retryable = f.fault == RV_MCP_FAULT_NO_CONNECTION || f.fault == RV_MCP_FAULT_CONNECTION_LOST;
    fail(x, &f);
}

/* Why a redirect is not followed, or no token is asked for. */
static enum rv_mcp_fault fault_of_code(int rc)
{
    return rc == RV_E_DENIED                        ? RV_MCP_FAULT_NOT_ALLOWED
           : rc == RV_E_LIMIT || rc == RV_E_INVALID ? RV_MCP_FAULT_HTTP_STATUS
                                                    : RV_MCP_FAULT_LOCAL;
}

int rv_mcp_web_follow_redirect(rv_http *h, const char *location, int *n, char **url, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf next = RV_BUF_INIT(RV_MCP_MAX_URL);
    struct rv_http_redirect kind = {0};

    if ((*n)++ == MAX_REDIRECTS)
        return RV_FAIL(err, RV_E_LIMIT, "more than %d redirects", MAX_REDIRECTS);
    int rc = rv_http_follow(h, *url, location, &next, &kind, err);
    if (rc < 0)
        return rc;
    if (!kind.same_origin)
        return RV_FAIL(err, RV_E_DENIED, "the server redirects to another origin, which is not followed");
    free(*url);
    *url = rv_buf_steal(&next, NULL);
    return *url ? 0 : RV_FAIL(err, RV_E_NOMEM, "follow a redirect");
}

/* 1: it goes on at another address of the same origin. */
static int redirect(struct exchange *x, rv_err **err)
{
    int status = x->answer.head.status;

    if (status != 307 && status != 308)
        return 0;
    if (x->is_short)
        return RV_FAIL(err, RV_E_NOMEM, "follow a redirect");
    if (!x->location || x->location[0] == '\0')
        return 0;
    int rc = rv_mcp_web_follow_redirect(x->w->http, x->location, &x->n_redirects, &x->url, err);
    if (rc == 0)
        rc = web_exchange_start(x, err);
    return rc < 0 ? rc : 1;
}

/* A new token has come, or none. */
static void on_token(struct rv_mcp_wait *wait, bool has_token, const char *why)
{
    struct exchange *x = (struct exchange *)((char *)wait - offsetof(struct exchange, wait));
    struct rv_mcp_failure f = {.fault = RV_MCP_FAULT_UNAUTHORIZED, .is_unsent = true, .text = why};
    rv_err *problem = NULL;

    x->waits = false;
    x->in_callback = true;
    f.status = x->answer.head.status;
    if (!has_token)
        fail(x, &f);
    else if (web_exchange_start(x, &problem) < 0)
        fail_err(x, RV_MCP_FAULT_LOCAL, problem);
    leave(x);
}

/* 1: it waits for another token. */
static int renew(struct exchange *x, const struct rv_mcp_failure *f, rv_err **err)
{
    const struct rv_mcp_refusal refusal = {f->status, rv_buf_str(&x->challenge)};

    if (f->fault != RV_MCP_FAULT_UNAUTHORIZED || !x->w->tokens || x->n_renewals == MAX_RENEWALS)
        return 0;
    x->n_renewals++;
    x->wait.done = on_token;
    int rc = rv_mcp_tokens_renew(x->w->tokens, &refusal, &x->wait, err);
    x->waits = rc == 0;
    if (rc == 1)
        rc = web_exchange_start(x, err);
    return rc < 0 ? rc : 1;
}

static void wait_to_resume(struct exchange *x)
{
    int64_t ms = x->answer.events ? rv_sse_retry_ms(x->answer.events) : -1;
    rv_str id = x->answer.events ? rv_sse_last_id(x->answer.events) : (rv_str){NULL, 0};

    if (id.len)
        snprintf(x->last_id, sizeof x->last_id, "%.*s", RV_STR_ARG(id));
    if (ms >= 0)
        x->retry_ms = ms < MIN_RETRY_MS ? MIN_RETRY_MS : ms < MAX_RETRY_MS ? ms : MAX_RETRY_MS;
    x->is_stream = true;
    x->due_ms = web_now(x->w) + (uint64_t)x->retry_ms;
    web_arm(x->w);
}

static void over_badly(struct exchange *x, struct rv_mcp_failure *f)
{
    rv_err *why = NULL;
    int rc = redirect(x, &why);

    if (rc == 0)
        rc = renew(x, f, &why);
    if (rc == 0 && is_own_stream(x)) /* the server does not offer a stream of its own */
        x->is_over = true;
    else if (rc == 0)
        fail(x, f);
    else if (rc < 0)
        fail_err(x, fault_of_code(rc), why);
}

/* The answer is over: its connection ended, or nothing that may follow counts. */
static void conclude(struct exchange *x, bool cut)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(WHY_BYTES);
    struct rv_mcp_failure failure;

    switch (rv_mcp_answer_end(&x->answer, cut, &text, &failure)) {
    case RV_MCP_OVER:
        x->is_over = true;
        break;
    case RV_MCP_CONTINUE:
        if (++x->n_resumes <= MAX_RESUMES)
            wait_to_resume(x);
        else
            fail_text(x, RV_MCP_FAULT_CONNECTION_LOST, "the stream ended again and again without the response");
        break;
    case RV_MCP_FAILED:
        over_badly(x, &failure);
        break;
    }
    if (x->opens_stream && x->answer.head.status >= 200 && x->answer.head.status < 300)
        web_open_stream(x->w);
}

/* May more be read in this turn? Else the rest waits for the next one. Only events are many; other bodies are kept, and
 * bounded. */
static bool may_go_on(struct exchange *x, size_t n_bytes)
{
    uint64_t now = web_now(x->w);

    x->turn_bytes = x->turn_ms == now ? x->turn_bytes + n_bytes : n_bytes;
    x->turn_ms = now;
    if (x->turn_bytes < TURN_BYTES || x->answer.body != RV_MCP_BODY_EVENTS)
        return true;
    if (!x->is_encoded) {
        x->is_held = true;
        web_arm(x->w);
        return false;
    }
    if (x->turn_bytes > RV_MCP_MAX_MESSAGE) {
        fail_text(x, RV_MCP_FAULT_TOO_LARGE,
                  "the server sent more compressed events at once than a message may have bytes");
        rv_http_cancel(x->call);
        x->call = NULL;
    }
    return true;
}

static bool on_body(void *self, rv_str bytes)
{
    struct exchange *x = self;
    rv_err *why = NULL;

    x->in_callback = true;
    int rc = rv_mcp_answer_read(&x->answer, bytes, &why);
    if (x->is_over) /* cancelled meanwhile */
        rv_err_free(why);
    else if (rc < 0)
        fail_err(x, rc == RV_E_LIMIT ? RV_MCP_FAULT_TOO_LARGE : RV_MCP_FAULT_LOCAL, why);
    else if (x->answer.is_answered) /* what a server says after the response is of no interest */
        x->is_over = true;
    if (x->is_over || x->answer.is_enough) {
        if (x->call)
            rv_http_cancel(x->call);
        x->call = NULL;
    }
    if (!x->is_over && x->answer.is_enough)
        conclude(x, false);
    bool goes_on = !x->call || may_go_on(x, bytes.len);
    leave(x);
    return goes_on;
}

static void on_end(void *self, const struct rv_http_end *end)
{
    struct exchange *x = self;
    bool has_events = x->answer.body == RV_MCP_BODY_EVENTS && x->answer.head.status;

    x->call = NULL;
    x->is_held = false;
    x->in_callback = true;
    if (end->fault == RV_HTTP_OK || (has_events && end->fault == RV_HTTP_CUT))
        conclude(x, end->fault != RV_HTTP_OK);
    else if (x->is_stream && end->fault != RV_HTTP_LOCAL && ++x->n_resumes <= MAX_RESUMES)
        wait_to_resume(x);
    else
        fail_by_end(x, end);
    leave(x);
}

/* --- how it begins --- */

static int add_configured(const struct web *w, struct rv_mcp_headers *to, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf token = RV_BUF_INIT(RV_MCP_MAX_HEADER);
    int rc = rv_mcp_headers_copy(&w->configured, to, err);

    if (rc < 0 || !w->tokens)
        return rc;
    rv_buf_puts(&token, "Bearer ");
    if (!rv_mcp_tokens_get(w->tokens, &token))
        return rc;
    rc = rv_buf_check(&token, "a token", err);
    return rc < 0 ? rc : rv_mcp_headers_add(to, "Authorization", rv_buf_str(&token), err);
}

static int stream_headers(struct exchange *x, struct rv_mcp_headers *to, rv_err **err)
{
    return rv_mcp_headers_build_stream(x->w->version, x->w->session, x->is_end ? NULL : x->last_id, to, err);
}

int web_exchange_start(struct exchange *x, rv_err **err)
{
    static const struct rv_http_events none = {on_head, on_body, on_end, NULL};
    const struct web *w = x->w;
    struct rv_http_events events = none;
    struct rv_mcp_headers headers = {.n = 0};
    bool is_post = !x->is_stream && !x->is_end;
    struct rv_http_request req = {.method = is_post     ? "POST"
                                            : x->is_end ? "DELETE"
                                                        : "GET",
                                  .url = x->url,
                                  .connect_us = CONNECT_US,
                                  .total_us = (is_post && !x->id) || x->is_cancel ? NOTIFY_US : 0,
                                  .max_body = SIZE_MAX, /* bounded by the reader of the answer */
                                  .ca_file = w->ca_file,
                                  .egress = w->egress};

    int rc = is_post ? rv_mcp_headers_copy(&x->headers, &headers, err) : stream_headers(x, &headers, err);
    if (rc == 0)
        rc = add_configured(w, &headers, err);
    if (rc == 0) {
        events.self = x;
        x->has_session = w->session[0] && !x->is_modern && !x->is_first;
        x->answer.body = RV_MCP_BODY_NONE;
        x->answer.is_stream = x->is_stream;
        x->answer.head.status = 0;
        x->is_held = x->is_encoded = false;
        req.headers = (const char *const *)headers.lines;
        req.n_headers = headers.n;
        req.body = is_post ? (rv_str){x->body, x->body_len} : (rv_str){NULL, 0};
        rc = rv_http_start(w->http, &req, &events, &x->call, err);
    }
    rv_mcp_headers_fini(&headers);
    return rc;
}

struct exchange *web_exchange_new(struct web *w, int64_t id)
{
    struct exchange *x = calloc(1, sizeof *x);

    if (!x)
        return NULL;
    x->w = w;
    x->id = id;
    x->retry_ms = USUAL_RETRY_MS;
    rv_buf_init(&x->challenge, RV_MCP_MAX_HEADER);
    rv_mcp_answer_init(&x->answer, id, false, on_message, x);
    x->next = w->exchanges;
    w->exchanges = x;
    w->n_exchanges++;
    x->url = rv_str_dup(rv_str_of(w->url));
    if (x->url)
        return x;
    exchange_free(x);
    return NULL;
}

void web_exchange_resume(struct exchange *x)
{
    rv_err *why = NULL;

    if (x->is_held) {
        x->is_held = false;
        x->turn_bytes = 0;
        if (x->call)
            rv_http_resume(x->call);
        return;
    }
    x->due_ms = 0;
    x->waits_for_stream = false;
    x->in_callback = true;
    if (web_exchange_start(x, &why) < 0)
        fail_err(x, RV_MCP_FAULT_LOCAL, why);
    leave(x);
}

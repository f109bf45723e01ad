/* Answers: whole ones, streams, server-sent events; their heads, checked, and their framing. */
#include "coreengine/base/base.h"
#include "coreengine/http/http_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <strings.h>

#define MAX_HEAD    ((size_t)16 << 10) /* bytes: clients on Node refuse more */
#define MAX_PIECES  8 /* of one write that an answer consists of: an event with a name and an id has eight */
#define MAX_REFUSAL ((size_t)16 << 10) /* bytes of the body of a refusal: an error's text with its escapes */

static const rv_str nothing = {"", 0};
static const rv_str last_chunk = {"0\r\n\r\n", 5};

/* --- heads --- */

static bool is_value(rv_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (((unsigned char)s.ptr[i] < ' ' && s.ptr[i] != '\t') || s.ptr[i] == 0x7f)
            return false;
    return true;
}

static bool is_ours(rv_str name)
{
    static const char *const names[] = {"content-length", "transfer-encoding", "connection",   "date",
                                        "x-request-id",   "keep-alive",        "content-type", "trailer"};

    for (size_t i = 0; i < RV_COUNT(names); i++)
        if (name.len == strlen(names[i]) && strncasecmp(name.ptr, names[i], name.len) == 0)
            return true;
    return false;
}

/* NULL: the head can be sent. */
static const char *fault_of(const struct rv_httpd_answer *a)
{
    if (a->status < 200 || a->status > 599)
        return "the status is not one of 200..599";
    if ((a->status == 204 || a->status == 304) && a->body.len > 0)
        return "an answer of this status has no body";
    if (a->type && !is_value(rv_str_of(a->type)))
        return "the content type has a control character";
    for (size_t i = 0; i < a->n_fields; i++) {
        if (!httpd_is_token(a->fields[i].name))
            return "the name of a field is not a token";
        if (is_ours(a->fields[i].name))
            return "a field that the server sets itself";
        if (!is_value(a->fields[i].value))
            return "the value of a field has a control character";
    }
    return NULL;
}

static const char *date_of(rv_httpd *s)
{
    static const char *const days[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int64_t now_s = httpd_now(s) / RV_US_PER_S;

    if (s->date_s != now_s || s->date[0] == '\0') {
        struct rv_date d = rv_date_of_days(now_s / 86400);
        int64_t of_day = now_s % 86400;
        s->date_s = now_s;
        snprintf(s->date, sizeof s->date, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[now_s / 86400 % 7], d.day,
                 months[d.month - 1], (int)d.year, (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60));
    }
    return s->date;
}

static void put_field(rv_buf *b, rv_str name, rv_str value)
{
    rv_buf_add_str(b, name);
    rv_buf_puts(b, ": ");
    rv_buf_add_str(b, value);
    rv_buf_puts(b, "\r\n");
}

/* The head of an answer. framing: the fields that say how long the body is. */
static void put_head(rv_httpd_exchange *x, const struct rv_httpd_answer *a, const char *framing, rv_buf *b)
{
    const char *reason = rv_http_reason(a->status);
    rv_buf_printf(b, "HTTP/1.1 %d %s\r\nDate: %s\r\nX-Request-Id: %s\r\n", a->status, reason ? reason : "Other",
                  date_of(x->s), x->head.req.id);
    if (a->type)
        put_field(b, RV_STR_LIT("Content-Type"), rv_str_of(a->type));
    for (size_t i = 0; i < a->n_fields; i++)
        put_field(b, a->fields[i].name, a->fields[i].value);
    rv_buf_puts(b, framing);
    if (x->c->closes || x->s->is_draining)
        rv_buf_puts(b, "Connection: close\r\n");
    rv_buf_puts(b, "\r\n");
}

static void put_out(rv_httpd_exchange *x, const rv_str *v, size_t n, rv_str last, enum rv_body_owner owner)
{
    for (size_t i = 0; i < n; i++)
        x->n_out += v[i].len;
    x->n_out += last.len;
    httpd_conn_send(x->c, v, n, last, owner);
}

static void complain(const rv_httpd_exchange *x, const char *fault)
{
    RV_LOG(x->s->o.log, ERROR, "answer.invalid", RV_F_TEXT("reason", fault),
           RV_F_TEXT("route", x->plan.route ? x->plan.route : ""), RV_F_TEXT("request_id", x->head.req.id));
}

/* Sends a head and perhaps a body behind it. False: there is no memory, or it is too large; nothing was sent. */
static bool send_head(rv_httpd_exchange *x, const struct rv_httpd_answer *a, const char *framing, rv_str body,
                      enum rv_body_owner owner)
{
    RV_AUTO(rv_buf_fini) rv_buf head = RV_BUF_INIT(MAX_HEAD);

    put_head(x, a, framing, &head);
    if (head.rc != 0)
        return false;
    x->status = a->status;
    if (a->run_id.len && !x->run_id)
        x->run_id = rv_str_dup(a->run_id); /* short of memory, the log does without it */
    put_out(x, &(rv_str){head.ptr, head.len}, 1, body, owner);
    return true;
}

/* --- whole answers --- */

/* The body is passed on, unless the exchange is mute. */
static bool send_whole(rv_httpd_exchange *x, const struct rv_httpd_answer *a)
{
    char framing[48] = "";

    if (a->status != 204 && a->status != 304)
        snprintf(framing, sizeof framing, "Content-Length: %zu\r\n", a->body.len);
    return x->is_mute ? send_head(x, a, framing, nothing, RV_BODY_STATIC) : send_head(x, a, framing, a->body, a->owner);
}

static const struct rv_httpd_answer failure = {
    .status = 500, .type = "text/plain; charset=utf-8", .body = {"internal error\n", 15}, .owner = RV_BODY_STATIC};

/* What goes out when the handler's answer cannot. */
static void send_failure(rv_httpd_exchange *x, const char *fault)
{
    complain(x, fault);
    x->c->closes = true;
    if (!send_whole(x, &failure))
        httpd_conn_break(x->c, RV_GONE_FAILED);
}

void rv_httpd_reply(rv_httpd_exchange *x, const struct rv_httpd_answer *a)
{
    const char *fault = fault_of(a);
    bool is_taken = a->owner == RV_BODY_TAKEN;

    assert(x->phase == RV_EXCHANGE_HEAD || x->phase == RV_EXCHANGE_OPEN);
    x->is_held = true; /* until the end of this function: the connection may be lost in it */
    if (x->c && !fault && send_whole(x, a))
        is_taken = is_taken && x->is_mute; /* else the connection has it */
    else if (x->c)
        send_failure(x, fault ? fault : "the head of the answer is too large, or memory is short");
    if (is_taken)
        free((char *)a->body.ptr);
    httpd_exchange_done(x);
}

/* What the handler says of a refusal, or the detail alone. Returns the type. */
static const char *tell_refusal(rv_httpd *s, const struct rv_httpd_fault *why, const char *id, rv_buf *body)
{
    const struct rv_httpd_handler *h = &s->o.handler;
    const struct rv_httpd_refusal refusal = {why->status, why->code, why->detail, id};
    const char *type = "text/plain; charset=utf-8";

    if (h->on_refusal)
        h->on_refusal(h->self, &refusal, body, &type);
    else
        rv_buf_printf(body, "%s\n", why->detail);
    return type;
}

void httpd_refuse_client(rv_httpd *s, const struct rv_httpd_fault *why, rv_buf *out)
{
    RV_AUTO(rv_buf_fini) rv_buf body = RV_BUF_INIT(MAX_REFUSAL);
    char id[RV_ID_MAX];

    rv_id_make(s->o.rand, "req_", id);
    const char *type = tell_refusal(s, why, id, &body);
    rv_str text = body.rc == 0 ? rv_buf_str(&body) : nothing;
    rv_buf_printf(out,
                  "HTTP/1.1 %d %s\r\nDate: %s\r\nX-Request-Id: %s\r\nContent-Type: %s\r\nRetry-After: 1\r\n"
                  "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                  why->status, rv_http_reason(why->status), date_of(s), id, type, text.len);
    rv_buf_add_str(out, text);
}

void httpd_exchange_refuse(rv_httpd_exchange *x, const struct rv_httpd_fault *why)
{
    struct rv_httpd_field allow = {RV_STR_LIT("Allow"), RV_STR_LIT("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")};
    struct rv_httpd_field retry = {RV_STR_LIT("Retry-After"), RV_STR_LIT("5")};
    struct rv_httpd_answer a = {.status = why->status};
    RV_AUTO(rv_buf_fini) rv_buf body = RV_BUF_INIT(MAX_REFUSAL);

    x->s->counts.refused++;
    a.type = tell_refusal(x->s, why, x->head.req.id, &body);
    a.fields = why->status == 405 ? &allow : &retry;
    a.n_fields = why->status == 405 || why->status == 503;
    a.body = body.rc == 0 ? rv_buf_str(&body) : nothing;
    rv_httpd_reply(x, &a);
}

/* --- streams --- */

#define EVENT_FIELDS "Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n"
#define CHUNKED      "Transfer-Encoding: chunked\r\n"
static const char *framing_of(rv_httpd_exchange *x)
{
    x->is_chunked = !x->head.is_1_0;
    if (!x->is_chunked)
        x->c->closes = true;
    if (x->is_events)
        return x->is_chunked ? EVENT_FIELDS CHUNKED : EVENT_FIELDS;
    return x->is_chunked ? CHUNKED : "";
}

/* Puts a chunk out, made of pieces. */
static size_t put_chunk(rv_httpd_exchange *x, const rv_str *pieces, size_t n)
{
    struct rv_conn *c = x->c;
    rv_str v[MAX_PIECES + 2];
    char size[24];
    size_t len = 0, n_v = 0;

    if (!c || x->is_mute)
        return 0;
    if (httpd_out_unsent(c) > x->s->o.limits.max_unsent) {
        x->s->counts.dropped++;
        httpd_conn_break(c, RV_GONE_SLOW);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        len += pieces[i].len;
    if (len == 0) /* would be the last chunk */
        return httpd_out_unsent(c);
    if (x->is_chunked)
        v[n_v++] = (rv_str){size, (size_t)snprintf(size, sizeof size, "%zx\r\n", len)};
    for (size_t i = 0; i < n; i++)
        v[n_v++] = pieces[i];
    put_out(x, v, n_v, x->is_chunked ? RV_STR_LIT("\r\n") : nothing, RV_BODY_BORROWED);
    if (!x->c) /* the write found the connection broken */
        return 0;
    size_t unsent = httpd_out_unsent(c);
    x->wants_drain = unsent > 0;
    return unsent;
}

static void fail_stream(rv_httpd_exchange *x, const char *fault)
{
    complain(x, fault);
    httpd_conn_break(x->c, RV_GONE_FAILED);
}

static void begin(rv_httpd_exchange *x, const struct rv_httpd_answer *a)
{
    const char *fault = fault_of(a);

    assert(x->phase == RV_EXCHANGE_OPEN); /* before on_request there is no stream */
    x->phase = RV_EXCHANGE_STREAM;
    if (!x->c)
        return;
    if (!fault && !send_head(x, a, framing_of(x), nothing, RV_BODY_STATIC))
        fault = "the head of the answer is too large, or memory is short";
    if (fault) {
        send_failure(x, fault);
        if (x->c)
            httpd_conn_break(x->c, RV_GONE_FAILED);
        return;
    }
    if (!x->c)
        return;
    x->c->ends_stream = !x->is_chunked && !x->is_mute;
    x->is_streaming = true;
    x->s->counts.streams++;
}

void rv_httpd_begin(rv_httpd_exchange *x, const struct rv_httpd_answer *a)
{
    begin(x, a);
    if (a->body.len > 0) /* which may be that of the request */
        put_chunk(x, &a->body, 1);
    httpd_exchange_let_body_go(x);
    if (a->owner == RV_BODY_TAKEN)
        free((char *)a->body.ptr);
}

size_t rv_httpd_write(rv_httpd_exchange *x, rv_str bytes)
{
    assert(x->phase == RV_EXCHANGE_STREAM);
    return put_chunk(x, &bytes, 1);
}

void rv_httpd_end(rv_httpd_exchange *x)
{
    assert(x->phase == RV_EXCHANGE_STREAM);
    if (x->c && x->is_chunked && !x->is_mute)
        put_out(x, NULL, 0, last_chunk, RV_BODY_STATIC);
    httpd_exchange_done(x);
}

void rv_httpd_drop(rv_httpd_exchange *x)
{
    assert(x->phase != RV_EXCHANGE_ENDED);
    x->is_held = true;
    if (x->c && x->phase == RV_EXCHANGE_STREAM)
        httpd_conn_break(x->c, RV_GONE_FAILED);
    else if (x->c)
        send_failure(x, "the handler gave up");
    httpd_exchange_done(x);
}

void httpd_exchange_last_word(rv_httpd_exchange *x)
{
    static const struct rv_httpd_field retry = {RV_STR_LIT("Retry-After"), RV_STR_LIT("5")};
    static const struct rv_httpd_answer stopped = {.status = 503, .fields = &retry, .n_fields = 1};

    if (x->phase == RV_EXCHANGE_OPEN)
        RV_IGNORE(!send_whole(x, &stopped), "the connection is closed in any case");
    else
        httpd_conn_break(x->c, RV_GONE_STOPPED);
}

/* --- server-sent events --- */

void rv_httpd_begin_events(rv_httpd_exchange *x, const struct rv_httpd_answer *answer, int retry_ms)
{
    struct rv_httpd_answer a = {.status = 200, .type = "text/event-stream; charset=utf-8"};
    char first[48];

    if (answer) {
        a.fields = answer->fields;
        a.n_fields = answer->n_fields;
    }
    x->is_events = true;
    begin(x, &a);
    httpd_exchange_let_body_go(x);
    int len = retry_ms > 0 ? snprintf(first, sizeof first, ":\nretry: %d\n\n", retry_ms)
                           : snprintf(first, sizeof first, ":\n\n");
    put_chunk(x, &(rv_str){first, (size_t)len}, 1);
    if (x->c)
        httpd_conn_arm(x->c);
}

void httpd_exchange_heartbeat(rv_httpd_exchange *x)
{
    if (httpd_out_unsent(x->c) == 0) /* else there is something to read */
        put_chunk(x, &RV_STR_LIT(":\n\n"), 1);
    else
        x->c->spoke_us = httpd_now(x->s);
}

static bool is_event_id(rv_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] > '~')
            return false;
    return true;
}

/* One `data:` line for each line of the text. */
static void put_lines(rv_buf *b, rv_str text)
{
    size_t from = 0;

    for (size_t i = 0; i <= text.len; i++) {
        bool is_end = i == text.len || text.ptr[i] == '\n' || text.ptr[i] == '\r';
        if (!is_end)
            continue;
        rv_buf_puts(b, from > 0 ? "\ndata: " : "data: ");
        rv_buf_add(b, text.ptr + from, i - from);
        if (i + 1 < text.len && text.ptr[i] == '\r' && text.ptr[i + 1] == '\n')
            i++;
        from = i + 1;
    }
}

static size_t put_event(rv_httpd_exchange *x, const struct rv_httpd_event *ev, rv_str prefix, rv_str data)
{
    rv_str pieces[MAX_PIECES];
    size_t n = 0;

    if (ev->name.len > 0) {
        pieces[n++] = RV_STR_LIT("event: ");
        pieces[n++] = ev->name;
        pieces[n++] = RV_STR_LIT("\n");
    }
    pieces[n++] = prefix;
    pieces[n++] = data;
    if (ev->id.len > 0) {
        pieces[n++] = RV_STR_LIT("\nid: ");
        pieces[n++] = ev->id;
    }
    pieces[n++] = RV_STR_LIT("\n\n");
    return put_chunk(x, pieces, n);
}

size_t rv_httpd_send_event(rv_httpd_exchange *x, const struct rv_httpd_event *ev)
{
    assert(x->phase == RV_EXCHANGE_STREAM && x->is_events);
    if (!x->c)
        return 0;
    if (!is_event_id(ev->id) || !is_value(ev->name)) {
        fail_stream(x, "the name or the id of an event has a character that is not allowed there");
        return 0;
    }
    bool is_one_line =
        ev->data.len == 0 || (!memchr(ev->data.ptr, '\n', ev->data.len) && !memchr(ev->data.ptr, '\r', ev->data.len));
    if (is_one_line)
        return put_event(x, ev, RV_STR_LIT("data: "), ev->data);
    RV_AUTO(rv_buf_fini) rv_buf lines = RV_BUF_INIT(SIZE_MAX / 2);
    put_lines(&lines, ev->data);
    if (lines.rc != 0) {
        fail_stream(x, "memory is short");
        return 0;
    }
    return put_event(x, ev, nothing, rv_buf_str(&lines));
}

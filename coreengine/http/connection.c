/* A connection: from its first byte to its last. It reads heads and bodies, hands requests over, watches the time, and
 * ends. What a client sends during an answer is not read as a request: the connection is closed behind the answer, and
 * the client repeats it on another one. */
#include "coreengine/http/http_internal.h"

#include <stdlib.h>

#define LINGER_US  (2 * RV_US_PER_S)  /* for the client to read the answer and close */
#define MAX_EXCESS ((size_t)64 << 10) /* bytes that come although nothing is expected; then reading stops */
/* the same after a refusal: more, so that the peer reads the answer before the connection ends */
#define MAX_LINGER    ((size_t)16 << 20)
#define KEEPALIVE_S   60                 /* without traffic, until the kernel asks whether the peer is still there */
#define MAX_LAST_WORD ((size_t)32 << 10) /* bytes of a refusal: its head and its body */

static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

static void start_reading(struct rv_conn *c); /* from the socket, from now on */
static void refuse(struct rv_conn *c, const struct rv_httpd_fault *why);

/* --- time --- */

static int64_t soonest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t stall_due(const struct rv_conn *c)
{
    return c->stall_us == 0 || c->s->o.limits.stall_us == 0 ? RV_NEVER : c->stall_us + c->s->o.limits.stall_us;
}

static int64_t body_due(const struct rv_conn *c)
{
    const struct rv_httpd_limits *l = &c->s->o.limits;

    if (l->body_rate == 0)
        return RV_NEVER;
    int64_t fair_us = (int64_t)(c->body->bytes.len * UINT64_C(1000000) / l->body_rate);
    return c->since_us + (fair_us > l->body_grace_us ? fair_us : l->body_grace_us);
}

static bool has_heartbeat(const struct rv_conn *c)
{
    return c->x && c->x->is_events && c->x->phase == RV_EXCHANGE_STREAM && !c->x->is_mute &&
           c->s->o.limits.heartbeat_us > 0;
}

static int64_t due_us(const struct rv_conn *c)
{
    const struct rv_httpd_limits *l = &c->s->o.limits;

    switch (c->state) {
    case RV_CONN_HEAD:
        return soonest(stall_due(c), c->since_us + (c->is_used && !c->has_spoken ? l->keep_alive_us : l->head_us));
    case RV_CONN_BODY:
        return soonest(stall_due(c), body_due(c));
    case RV_CONN_ANSWER:
        return soonest(stall_due(c), has_heartbeat(c) ? c->spoke_us + l->heartbeat_us : RV_NEVER);
    case RV_CONN_LINGER:
        return soonest(stall_due(c), c->is_shut ? c->since_us + LINGER_US : RV_NEVER);
    case RV_CONN_CLOSED:
        break;
    }
    return RV_NEVER;
}

void httpd_conn_arm(struct rv_conn *c)
{
    int64_t due = due_us(c);

    if (c->state == RV_CONN_CLOSED || (c->clock.next && c->clock.due_us <= due))
        return; /* a later time is found when the earlier one comes */
    httpd_wheel_set(c->s->wheel, &c->clock, due);
    httpd_arm(c->s);
}

/* True if the client has taken nothing since stall_us. */
static bool is_stalled(struct rv_conn *c, int64_t now_us)
{
    uint64_t taken = c->n_sent - httpd_out_unsent(c);

    if (stall_due(c) > now_us)
        return false;
    if (taken == c->stall_base)
        return true;
    c->stall_base = taken;
    c->stall_us = now_us;
    return false;
}

static void on_late_head(struct rv_conn *c)
{
    static const struct rv_httpd_fault late = {408, "request_timeout", "the request did not come in time"};

    c->s->counts.dropped += !c->is_used || c->has_spoken;
    if (c->has_spoken && (!c->tls || tls_is_up(c->tls)))
        refuse(c, &late);
    else
        httpd_conn_close(c, RV_GONE_LEFT);
}

void httpd_conn_tick(struct rv_conn *c, int64_t now_us)
{
    static const struct rv_httpd_fault slow = {408, "request_timeout", "the body of the request came too slowly"};

    if (is_stalled(c, now_us)) {
        c->s->counts.dropped++;
        httpd_conn_close(c, RV_GONE_SLOW);
    } else if (due_us(c) <= now_us) {
        if (c->state == RV_CONN_HEAD)
            on_late_head(c);
        else if (c->state == RV_CONN_BODY) {
            c->s->counts.dropped++;
            refuse(c, &slow);
        } else if (c->state == RV_CONN_ANSWER)
            httpd_exchange_heartbeat(c->x);
        else
            httpd_conn_close(c, RV_GONE_LEFT);
    }
    httpd_conn_arm(c);
}

/* --- end --- */

static void on_closed(uv_handle_t *handle)
{
    struct rv_conn *c = handle->data;
    rv_httpd *s = c->s;

    httpd_out_fini(c);
    rv_buf_fini(&c->in);
    if (c->body) {
        s->n_body_bytes -= c->body->bytes.cap;
        rv_buf_fini(&c->body->bytes);
    }
    free(c->body);
    tls_free(c->tls);
    free(c);
    httpd_handle_closed(s);
}

/* It is closed before the loop came to it. */
static void leave_broken(struct rv_conn *c)
{
    struct rv_conn **at = &c->s->broken;

    while (c->is_broken && *at && *at != c)
        at = &(*at)->broken_next;
    if (c->is_broken && *at)
        *at = c->broken_next;
}

void httpd_conn_close(struct rv_conn *c, enum rv_gone why)
{
    rv_httpd *s = c->s;

    if (c->state == RV_CONN_CLOSED)
        return;
    c->state = RV_CONN_CLOSED;
    leave_broken(c);
    if (c->x)
        httpd_exchange_lost(c->x, why);
    httpd_wheel_remove(s->wheel, &c->clock);
    httpd_peers_remove(s->peers, &c->peer);
    if (c->next)
        c->next->prev = c->prev;
    *(c->prev ? &c->prev->next : &s->conns) = c->next;
    s->counts.connections--;
    if (!c->ends_stream || uv_tcp_close_reset(&c->tcp, (uv_close_cb)on_closed) < 0)
        uv_close((uv_handle_t *)&c->tcp, on_closed);
    httpd_look(s);
}

void httpd_conn_break(struct rv_conn *c, enum rv_gone why)
{
    if (c->is_broken || c->state == RV_CONN_CLOSED)
        return;
    c->is_broken = true;
    if (c->x)
        httpd_exchange_lost(c->x, why);
    c->broken_next = c->s->broken;
    c->s->broken = c;
    httpd_look(c->s);
}

static void on_shut(uv_shutdown_t *req, int status)
{
    (void)status; /* reading tells the same */
    free(req);
}

/* Our last byte is on its way: wait a little for the client to take it, because closing with unread bytes would reset
 * the connection and the answer with it. */
static void linger(struct rv_conn *c)
{
    uv_shutdown_t *req = malloc(sizeof *req);

    c->state = RV_CONN_LINGER;
    c->ends_stream = false;
    c->since_us = httpd_now(c->s);
    c->is_shut = true;
    if (c->tls)
        tls_end(c->tls);
    if (!req || uv_shutdown(req, (uv_stream_t *)&c->tcp, on_shut) < 0) {
        free(req);
        httpd_conn_close(c, RV_GONE_LEFT);
        return;
    }
    if (c->n_excess >= MAX_EXCESS) /* reading was stopped */
        start_reading(c);
    httpd_conn_arm(c);
}

/* --- answers --- */

static void begin_head(struct rv_conn *c)
{
    c->state = RV_CONN_HEAD;
    c->since_us = httpd_now(c->s);
    c->is_used = true;
    c->has_spoken = false;
    c->n_excess = 0;
    c->scan = (struct rv_head_scan){0};
    httpd_conn_arm(c);
}

void httpd_conn_drained(struct rv_conn *c)
{
    c->stall_us = 0;
    if (c->x && c->x->phase != RV_EXCHANGE_ENDED)
        httpd_exchange_drained(c->x);
    else
        httpd_conn_answered(c);
}

void httpd_conn_answered(struct rv_conn *c)
{
    if (c->state != RV_CONN_ANSWER || c->is_broken || httpd_out_unsent(c) > 0)
        return;
    if (c->x)
        httpd_exchange_sent(c->x);
    if (c->closes || c->s->is_draining)
        linger(c);
    else
        begin_head(c);
}

static void refuse(struct rv_conn *c, const struct rv_httpd_fault *why)
{
    if (!c->x)
        c->x = httpd_exchange_new(c, NULL);
    c->state = RV_CONN_ANSWER;
    c->closes = true;
    if (c->x)
        httpd_exchange_refuse(c->x, why);
    else
        httpd_conn_close(c, RV_GONE_FAILED);
}

void httpd_conn_stop(struct rv_conn *c)
{
    static const struct rv_httpd_fault stopping = {503, "stopping", "the server is shutting down"};

    if (c->state == RV_CONN_BODY) {
        refuse(c, &stopping);
        return;
    }
    if (!c->x || c->x->phase == RV_EXCHANGE_ENDED)
        return;
    c->closes = true;
    httpd_exchange_last_word(c->x);
    if (c->x)
        httpd_exchange_lost(c->x, RV_GONE_STOPPED);
    httpd_conn_answered(c);
}

/* --- requests --- */

static bool has_body(const struct rv_head *h)
{
    return h->is_chunked || h->length > 0;
}

static void deliver(struct rv_conn *c)
{
    rv_httpd_exchange *x = c->x;

    if (c->body) {
        x->body = c->body->bytes;
        free(c->body);
        c->body = NULL;
    }
    c->state = RV_CONN_ANSWER;
    httpd_conn_arm(c);
    httpd_exchange_deliver(x);
}

/* Takes what belongs to the body; what is behind it makes the connection close after the answer. */
static void read_body(struct rv_conn *c, rv_str bytes)
{
    static const struct rv_httpd_fault full = {503, "overloaded", "the server is reading too many large requests"};
    struct rv_httpd_fault why;
    size_t used = 0, before = c->body->bytes.cap;

    int rc = httpd_body_read(c->body, bytes, &used, &why);
    c->s->n_body_bytes += c->body->bytes.cap - before;
    if (c->s->n_body_bytes > c->s->o.limits.max_bodies) {
        why = full;
        rc = -1;
    }
    if (rc < 0) {
        c->s->counts.dropped += why.status == 503;
        refuse(c, &why);
        return;
    }
    if (rc == 0)
        return;
    c->closes = c->closes || used < bytes.len;
    deliver(c);
}

static bool begin_body(struct rv_conn *c, const llhttp_t *parser)
{
    c->body = calloc(1, sizeof *c->body);
    if (!c->body)
        return false;
    c->body->parser = *parser;
    c->body->is_chunked = c->x->head.is_chunked;
    c->body->bytes = RV_BUF_INIT(c->x->plan.max_body);
    c->state = RV_CONN_BODY;
    c->since_us = httpd_now(c->s);
    httpd_conn_arm(c);
    return true;
}

static void take_body(struct rv_conn *c, const llhttp_t *parser, rv_str rest)
{
    static const struct rv_httpd_fault no_memory = {500, "no_memory", "the server is out of memory"};
    static const struct rv_httpd_fault too_large = {413, "body_too_large", "the body of the request is too large"};
    const struct rv_head *h = &c->x->head;

    if (h->length > c->x->plan.max_body) {
        refuse(c, &too_large);
    } else if (!begin_body(c, parser)) {
        refuse(c, &no_memory);
    } else {
        if (h->wants_continue && rest.len == 0)
            httpd_conn_send(c, &RV_STR_LIT(go_on), 1, (rv_str){NULL, 0}, RV_BODY_BORROWED);
        if (rest.len > 0)
            read_body(c, rest);
    }
}

static void take_head(struct rv_conn *c, rv_str bytes, rv_str rest)
{
    static const struct rv_httpd_fault not_ours = {421, "misdirected_request",
                                                   "this server does not answer for the host of the request"};
    const struct rv_httpd *s = c->s;
    struct rv_head head;
    struct rv_httpd_fault why;
    llhttp_t parser;

    if (!httpd_head_read(bytes, &c->scan, &s->o.limits, &head, &parser, &why)) {
        refuse(c, &why);
        return;
    }
    c->x = httpd_exchange_new(c, &head);
    c->state = RV_CONN_ANSWER;
    if (!c->x) {
        free(head.block);
        httpd_conn_close(c, RV_GONE_FAILED);
        return;
    }
    if (!httpd_head_is_ours(head.req.host, s->hosts, s->o.n_hosts, c->at->is_loopback)) {
        refuse(c, &not_ours);
        return;
    }
    c->closes = true; /* until the whole request is here: an answer before that leaves the rest unread */
    httpd_exchange_plan(c->x);
    if (c->state != RV_CONN_ANSWER || !c->x || c->x->phase != RV_EXCHANGE_HEAD)
        return;
    c->closes = c->x->head.wants_close || c->x->head.is_chunked;
    if (has_body(&c->x->head)) {
        take_body(c, &parser, rest);
    } else {
        c->closes = c->closes || rest.len > 0;
        deliver(c);
    }
}

static void read_head(struct rv_conn *c, rv_str bytes)
{
    static const struct rv_httpd_fault no_memory = {500, "no_memory", "the server is out of memory"};
    struct rv_httpd_fault why;

    if (!c->has_spoken && c->is_used) {
        c->since_us = httpd_now(c->s);
        c->has_spoken = true;
        httpd_conn_arm(c);
    }
    c->has_spoken = true;
    if (c->in.len > 0) {
        rv_buf_add_str(&c->in, bytes);
        bytes = rv_buf_str(&c->in);
    }
    ptrdiff_t n = c->in.rc != 0 ? 0 : httpd_head_scan(&c->scan, &c->s->o.limits, bytes, &why);
    if (c->in.rc == 0 && n == 0 && c->in.len == 0)
        rv_buf_add_str(&c->in, bytes);
    if (c->in.rc != 0)
        refuse(c, &no_memory);
    else if (n < 0)
        refuse(c, &why);
    else if (n > 0)
        take_head(c, (rv_str){bytes.ptr, (size_t)n}, (rv_str){bytes.ptr + n, bytes.len - (size_t)n});
    if (n != 0 || c->in.rc != 0) {
        rv_buf_fini(&c->in);
        rv_buf_init(&c->in, c->s->o.limits.max_head + RV_HTTPD_READ_BYTES);
    }
}

/* Bytes that are not expected. */
static void throw_away(struct rv_conn *c, rv_str bytes)
{
    size_t max = c->state == RV_CONN_LINGER ? MAX_LINGER : MAX_EXCESS;

    c->closes = true;
    c->n_excess += bytes.len;
    if (c->n_excess < max)
        return;
    if (c->state == RV_CONN_LINGER)
        httpd_conn_close(c, RV_GONE_LEFT);
    else
        uv_read_stop((uv_stream_t *)&c->tcp); /* it is up to the client to see that */
}

void httpd_conn_input(struct rv_conn *c, rv_str bytes)
{
    if (c->is_broken)
        return;
    switch (c->state) {
    case RV_CONN_HEAD:
        read_head(c, bytes);
        break;
    case RV_CONN_BODY:
        read_body(c, bytes);
        break;
    case RV_CONN_ANSWER:
    case RV_CONN_LINGER:
        throw_away(c, bytes);
        break;
    case RV_CONN_CLOSED:
        break;
    }
}

/* --- the socket --- */

void httpd_conn_send(struct rv_conn *c, const rv_str *v, size_t n, rv_str last, enum rv_body_owner owner)
{
    c->spoke_us = httpd_now(c->s);
    if (!c->tls) {
        httpd_out_raw(c, v, n, last, owner);
        return;
    }
    tls_write(c->tls, v, n, last);
    if (owner == RV_BODY_TAKEN)
        free((char *)last.ptr);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct rv_conn *c = handle->data;

    (void)suggested;
    *out = uv_buf_init(c->s->read_room, RV_HTTPD_READ_BYTES);
}

static void on_bytes(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct rv_conn *c = stream->data;

    if (n == 0 || c->state == RV_CONN_CLOSED)
        return;
    if (n < 0) { /* also when only the client's side was closed: an answer that it still waits for cannot be told from
                    one that it gave up */
        httpd_conn_close(c, RV_GONE_LEFT);
        return;
    }
    rv_str bytes = {buf->base, (size_t)n};
    if (!c->tls)
        httpd_conn_input(c, bytes);
    else if (!tls_read(c->tls, bytes))
        httpd_conn_close(c, RV_GONE_LEFT);
}

static void start_reading(struct rv_conn *c)
{
    if (uv_read_start((uv_stream_t *)&c->tcp, on_room, on_bytes) < 0)
        httpd_conn_break(c, RV_GONE_LEFT);
}

static void on_unwelcome_closed(uv_handle_t *handle)
{
    struct rv_conn *c = handle->data;
    rv_httpd *s = c->s;

    tls_free(c->tls);
    free(c);
    httpd_handle_closed(s);
}

/* It is told why if that can be said at once; why NULL: it has left. */
static void send_away(struct rv_conn *c, const struct rv_httpd_fault *why)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(MAX_LAST_WORD);

    c->s->counts.dropped++;
    if (why && !c->at->tls_ctx) {
        httpd_refuse_client(c->s, why, &text);
        uv_buf_t buf = uv_buf_init(text.ptr, text.rc == 0 ? (unsigned)text.len : 0);
        RV_IGNORE(uv_try_write((uv_stream_t *)&c->tcp, &buf, 1), "it is sent away in any case");
    }
    uv_close((uv_handle_t *)&c->tcp, on_unwelcome_closed);
}

static void link_in(struct rv_conn *c)
{
    rv_httpd *s = c->s;

    c->next = s->conns;
    if (c->next)
        c->next->prev = c;
    s->conns = c;
    s->counts.connections++;
    c->state = RV_CONN_HEAD;
    c->in = RV_BUF_INIT(s->o.limits.max_head + RV_HTTPD_READ_BYTES);
    c->since_us = httpd_now(s);
    httpd_conn_arm(c);
    start_reading(c);
}

void httpd_conn_accept(struct rv_listener *at)
{
    rv_httpd *s = at->s;
    struct rv_conn *c = calloc(1, sizeof *c);
    struct sockaddr_storage address;
    int len = sizeof address, room = s->o.limits.send_buffer;

    at->owes_accept = !c;
    if (!c) {
        httpd_arm(s);
        return;
    }
    c->s = s;
    c->at = at;
    RV_IGNORE(uv_tcp_init(s->loop, &c->tcp), "it fails by its flags alone, and has none");
    c->tcp.data = c;
    s->n_handles++;
    s->counts.accepted++;
    if (uv_accept((uv_stream_t *)&at->tcp, (uv_stream_t *)&c->tcp) < 0 ||
        uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&address, &len) < 0) {
        send_away(c, NULL);
        return;
    }
    RV_IGNORE(rv_address_read((struct sockaddr *)&address, &c->peer), "clients of another family count as one");
    const struct rv_httpd_fault *why = httpd_unwelcome(s, &c->tcp, &c->peer);
    if (why) {
        send_away(c, why);
        return;
    }
    if (at->tls_ctx && !(c->tls = tls_new(at->tls_ctx, c))) {
        httpd_peers_remove(s->peers, &c->peer);
        send_away(c, NULL);
        return;
    }
    RV_IGNORE(uv_tcp_nodelay(&c->tcp, 1), "without it the connection is only slower");
    RV_IGNORE(uv_tcp_keepalive(&c->tcp, 1, KEEPALIVE_S), "a client that is gone is found by the time-outs");
    if (room > 0)
        RV_IGNORE(uv_send_buffer_size((uv_handle_t *)&c->tcp, &room), "the system's own size works, too");
    link_in(c);
}

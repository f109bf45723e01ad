/* An answer that comes piece by piece from another thread: its messages to the loop, and what the loop tells it. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/server/server_internal.h"

#define MAX_AHEAD   ((size_t)64 << 10) /* bytes unsent when a connection gets more: it is never without any */
#define MAX_WAITING ((size_t)16 << 20) /* bytes that wait for a client that reads: far more than an answer has */

enum step {
    STEP_FIELD,
    STEP_BEGIN,
    STEP_BEGIN_LINES,
    STEP_BYTES,
    STEP_END,
    STEP_ANSWER,
    STEP_FAIL,
    STEP_MOVE,
    STEP_CUT
};
struct piece {
    struct srv_message message; /* the first member */
    struct piece *next;         /* of those that wait */
    struct srv_stream *st;
    enum step step;
    char *bytes; /* owned */
    size_t n;
    int status, rc;
    const char *type;
    rv_err *err;
    void (*to)(struct srv_call *c, void *arg);
    void *arg;
};

static void stream_unref(struct srv_stream *st)
{
    if (atomic_fetch_sub(&st->refs, 1) == 1) {
        free(st->spare);
        free(st);
    }
}

/* --- to the producer --- */

static void on_word(struct srv_message *l)
{
    struct srv_word *w = (struct srv_word *)l;
    struct srv_stream *st = w->st;
    void (*const listeners[])(void *self) = {
        [SRV_WORD_GONE] = st->on_gone, [SRV_WORD_DRAIN] = st->on_drain, [SRV_WORD_STOP] = st->on_stop};
    RV_EACH_HAS_ROW(listeners, SRV_N_WORDS);

    atomic_store(&w->is_told, false); /* from here on it is told again */
    if (!st->is_closed && listeners[w - st->words])
        listeners[w - st->words](st->self);
    stream_unref(st);
}

static void tell(struct srv_stream *st, enum srv_word_of which)
{
    struct srv_word *w = &st->words[which];

    if (st->has_ended || atomic_exchange(&w->is_told, true))
        return;
    w->message.open = on_word;
    w->st = st;
    atomic_fetch_add(&st->refs, 1);
    srv_loop_post(st->loop, &w->message);
}

static void free_piece(struct piece *p)
{
    struct srv_stream *st = p->st;

    rv_err_free(p->err);
    free(p->bytes);
    free(p);
    stream_unref(st);
}

static void on_stop(void *self, rv_httpd_exchange *x)
{
    struct srv_stream *st = self;

    (void)x;
    tell(st, SRV_WORD_STOP);
}

static struct piece *take_waiting(struct srv_stream *st)
{
    struct piece *p = st->first;

    st->first = p->next;
    return p;
}

static void end_call(struct srv_stream *st)
{
    struct srv_call *c = st->call;

    while (st->first) {
        struct piece *p = take_waiting(st);
        atomic_fetch_sub(&st->queued, p->step == STEP_BYTES ? p->n : 0);
        free_piece(p);
    }
    st->call = NULL;
    c->stream = NULL;
    srv_call_free(c);
    stream_unref(st);
}

static void on_gone(void *self, rv_httpd_exchange *x, enum rv_gone why)
{
    struct srv_stream *st = self;

    (void)why;
    if (!st->call)
        return;
    atomic_store(&st->is_gone, true);
    tell(st, SRV_WORD_GONE);
    rv_httpd_drop(x);
    end_call(st);
}

/* --- from the producer, on the loop --- */

/* Not without a field that found no memory: a client could not come back, or would begin another session. */
static void begin(struct srv_stream *st, bool lines)
{
    struct srv_call *c = st->call;

    if (c->rc < 0 || c->out.rc < 0) {
        on_gone(st, c->x, RV_GONE_LEFT);
        return;
    }
    const struct rv_httpd_answer answer = {.status = 200,
                                           .type = "application/x-ndjson",
                                           .fields = c->fields,
                                           .n_fields = c->n_fields,
                                           .run_id = srv_call_run(c)};

    if (lines)
        rv_httpd_begin(c->x, &answer);
    else
        rv_httpd_begin_events(c->x, &answer, 0);
    st->has_begun = true;
}

static void end(struct srv_stream *st)
{
    if (st->has_begun)
        rv_httpd_end(st->call->x);
    else
        rv_httpd_drop(st->call->x);
    end_call(st);
}

static void answer(struct srv_stream *st, struct piece *p)
{
    struct srv_call *c = st->call;
    bool lacks_field = c->out.rc < 0 && p->step == STEP_ANSWER;

    if (st->has_begun || lacks_field) { /* too late: a last chunk would say that all is there */
        on_gone(st, c->x, RV_GONE_LEFT);
        return;
    }
    st->call = NULL;
    c->stream = NULL;
    c->status = p->status;
    c->type = p->type;
    c->rc = p->rc;
    c->err = p->err;
    p->err = NULL;
    rv_buf_clear(&c->out);
    rv_buf_add(&c->out, p->bytes, p->n);
    srv_call_reply(c);
    stream_unref(st);
}

static void move(struct srv_stream *st, struct piece *p)
{
    struct srv_call *c = st->call;

    st->call = NULL;
    if (c)
        c->stream = NULL;
    p->to(c, p->arg);
    if (c)
        stream_unref(st);
}

/* The queued bytes are the connection's now: the sum of both counters never misses them. What the connection sends at
 * once ends in no on_drain of its own. */
static void write_bytes(struct srv_stream *st, const struct piece *p)
{
    size_t unsent = st->call ? rv_httpd_write(st->call->x, (rv_str){p->bytes, p->n}) : 0;

    atomic_store(&st->unsent, unsent);
    size_t others = atomic_fetch_sub(&st->queued, p->n) - p->n;
    if (st->call && unsent == 0 && others == 0 && atomic_exchange(&st->is_full, false))
        tell(st, SRV_WORD_DRAIN);
}

/* Of an answer that has begun: it is cut off, and no last chunk says that all is there. */
static bool is_cut(const struct srv_stream *st, const struct piece *p)
{
    return st->has_begun && (p->step == STEP_ANSWER || p->step == STEP_FAIL);
}

/* A cut takes with it what the connection has not sent. */
static bool has_room(const struct srv_stream *st, const struct piece *p)
{
    return atomic_load(&st->unsent) <= (is_cut(st, p) ? 0 : MAX_AHEAD);
}

/* A client that reads more slowly than a model writes gets all that was written before the end or the cut. True: the
 * piece waits or was dropped. */
static bool waits(struct srv_stream *st, struct piece *p)
{
    bool is_later = st->call && (st->first || !has_room(st, p));

    if (!is_later || (p->step != STEP_BYTES && p->step != STEP_END && !is_cut(st, p)))
        return false;
    if (p->step == STEP_BYTES && atomic_load(&st->queued) > MAX_WAITING + p->n) {
        atomic_fetch_sub(&st->queued, p->n);
        on_gone(st, st->call->x, RV_GONE_SLOW);
        free_piece(p);
        return true;
    }
    st->has_ended = p->step != STEP_BYTES;
    if (st->first)
        st->last->next = p;
    else
        st->first = p;
    st->last = p;
    return true;
}

/* Takes the piece. */
static void do_piece(struct piece *p)
{
    struct srv_stream *st = p->st;

    if (p->step == STEP_MOVE)
        move(st, p);
    else if (p->step == STEP_BYTES)
        write_bytes(st, p);
    else if (st->call)
        switch (p->step) {
        case STEP_FIELD:
            srv_call_field(st->call, p->type, p->bytes);
            break;
        case STEP_BEGIN:
        case STEP_BEGIN_LINES:
            if (!st->has_begun)
                begin(st, p->step == STEP_BEGIN_LINES);
            break;
        case STEP_END:
            end(st);
            break;
        case STEP_ANSWER:
        case STEP_FAIL:
            answer(st, p);
            break;
        case STEP_CUT:
            on_gone(st, st->call->x, RV_GONE_LEFT);
            break;
        case STEP_BYTES:
        case STEP_MOVE:
            break;
        }
    free_piece(p);
}

static void on_piece(struct srv_message *l)
{
    struct piece *p = (struct piece *)l;

    if (!waits(p->st, p))
        do_piece(p);
}

static void on_drain(void *self, rv_httpd_exchange *x)
{
    struct srv_stream *st = self;

    (void)x;
    atomic_fetch_add(&st->refs, 1); /* its end may be among what waits */
    atomic_store(&st->unsent, 0);
    while (st->first && has_room(st, st->first))
        do_piece(take_waiting(st));
    if (atomic_load(&st->unsent) == 0)
        tell(st, SRV_WORD_DRAIN);
    stream_unref(st);
}

struct srv_stream *srv_stream_new(struct srv_call *call, struct srv_loop *loop)
{
    struct srv_stream *st = calloc(1, sizeof *st);

    if (!st || !(st->spare = calloc(1, sizeof *st->spare))) {
        free(st);
        return NULL;
    }
    atomic_init(&st->refs, 2); /* the loop's and the producer's */
    st->server = call->server;
    st->call = call;
    st->loop = loop;
    call->stream = st;
    free(call->refusal);
    call->refusal = NULL;
    const struct rv_httpd_watch watch = {.on_drain = on_drain, .on_gone = on_gone, .on_stop = on_stop, .self = st};
    rv_httpd_watch(call->x, &watch);
    return st;
}

/* --- what producers call --- */

/* NULL: no memory. What ends a stream is always told: a message was set aside for it. */
static struct piece *make(struct srv_stream *st, enum step step)
{
    struct piece *p = calloc(1, sizeof *p);

    if (!p && step >= STEP_END) {
        p = st->spare;
        st->spare = NULL;
    }
    if (!p)
        return NULL;
    p->message.open = on_piece;
    p->st = st;
    p->step = step;
    return p;
}

/* A piece that is lost ends the connection, so that its client comes back for what it has not got. */
static void post(struct srv_stream *st, struct piece *p)
{
    if (!p) {
        p = st->spare ? make(st, STEP_CUT) : NULL;
        if (!p) /* it is cut already */
            return;
    }
    atomic_fetch_add(&st->refs, 1);
    srv_loop_post(&st->server->server_loop, &p->message);
}

void srv_stream_field(struct srv_stream *st, const char *name, const char *value)
{
    struct piece *p = make(st, STEP_FIELD);

    if (p) {
        p->type = name;
        p->bytes = rv_str_dup(rv_str_of(value));
        if (!p->bytes) {
            free(p);
            p = NULL;
        }
    }
    post(st, p);
}

void srv_stream_begin(struct srv_stream *st)
{
    post(st, make(st, STEP_BEGIN));
}

void srv_stream_begin_lines(struct srv_stream *st)
{
    post(st, make(st, STEP_BEGIN_LINES));
}

void srv_stream_write(struct srv_stream *st, rv_buf *bytes)
{
    struct piece *p;

    if (bytes->len == 0 && bytes->rc == 0)
        return;
    p = bytes->rc == 0 ? make(st, STEP_BYTES) : NULL;
    if (p) {
        p->bytes = rv_buf_steal(bytes, &p->n);
        atomic_fetch_add(&st->queued, p->n);
    } else {
        rv_buf_fini(bytes);
        *bytes = RV_BUF_INIT(bytes->max);
    }
    post(st, p);
}

bool srv_stream_is_full(struct srv_stream *st, size_t limit)
{
    if (atomic_load(&st->unsent) + atomic_load(&st->queued) < limit)
        return false;
    atomic_store(&st->is_full, true); /* before the second look: what drains after it tells */
    return atomic_load(&st->unsent) + atomic_load(&st->queued) >= limit;
}

static void close_it(struct srv_stream *st)
{
    st->is_closed = true;
    stream_unref(st);
}

void srv_stream_end(struct srv_stream *st)
{
    post(st, make(st, STEP_END));
    close_it(st);
}

void srv_stream_answer(struct srv_stream *st, int status, const char *type, rv_buf *body)
{
    struct piece *p = make(st, STEP_ANSWER);

    if (p) {
        p->status = status;
        p->type = type;
        p->bytes = rv_buf_steal(body, &p->n);
    }
    post(st, p);
    close_it(st);
}

void srv_stream_move(struct srv_stream *st, void (*to)(struct srv_call *c, void *arg), void *arg)
{
    struct piece *p = make(st, STEP_MOVE);

    if (p) {
        p->to = to;
        p->arg = arg;
    }
    post(st, p);
    close_it(st);
}

void srv_stream_fail(struct srv_stream *st, int rc, rv_err *err)
{
    struct piece *p = make(st, STEP_FAIL);

    if (p) {
        p->rc = rc;
        p->err = err;
    } else {
        rv_err_free(err);
    }
    post(st, p);
    close_it(st);
}

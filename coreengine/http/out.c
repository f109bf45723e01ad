/* What is to be sent. The system gets it at once, from where it lies; what it does not take waits here, copied unless
 * it belongs to the connection or to the program. One write of the loop is under way at a time. */
#include "coreengine/http/http_internal.h"

#include <assert.h>
#include <stdlib.h>

#define MAX_BUFS   16 /* pieces of one writev(): chosen, an answer has a few (IOV_MAX is 1,024); further ones follow */
#define MIN_PIECE  ((size_t)2 << 10)  /* room for what follows */
#define MAX_APPEND ((size_t)64 << 10) /* a piece grows no further: copying more costs more than a further piece */

struct rv_out {
    struct rv_out *next;
    const char *ptr;
    size_t len, cap; /* cap: of room; 0: the bytes are not in it */
    char *owned;     /* NULL: the bytes are static, or in room */
    char room[];
};
struct rv_out_write {
    uv_write_t req;
    struct rv_conn *c;
    struct rv_out *first;
};

static void free_pieces(struct rv_out *p)
{
    while (p) {
        struct rv_out *next = p->next;
        free(p->owned);
        free(p);
        p = next;
    }
}

void httpd_out_fini(struct rv_conn *c)
{
    free_pieces(c->out);
    c->out = c->out_last = NULL;
    c->n_waiting = 0;
}

size_t httpd_out_unsent(const struct rv_conn *c)
{
    return c->n_waiting + c->tcp.write_queue_size;
}

/* --- writing --- */

static void write_on(struct rv_conn *c);

static void on_written(uv_write_t *req, int status)
{
    struct rv_out_write *w = (struct rv_out_write *)(void *)req;
    struct rv_conn *c = w->c;

    c->under_way = NULL;
    free_pieces(w->first);
    free(w);
    if (c->state == RV_CONN_CLOSED)
        return;
    if (status < 0)
        httpd_conn_break(c, RV_GONE_LEFT);
    else if (c->out)
        write_on(c);
    else
        httpd_conn_drained(c);
}

/* Hands the first pieces to the loop. */
static void write_on(struct rv_conn *c)
{
    struct rv_out_write *w = malloc(sizeof *w);
    uv_buf_t bufs[MAX_BUFS];
    unsigned n = 0;
    struct rv_out *last = NULL;

    if (!w) {
        httpd_conn_break(c, RV_GONE_FAILED);
        return;
    }
    *w = (struct rv_out_write){.c = c, .first = c->out};
    for (struct rv_out *p = c->out; p && n < MAX_BUFS; p = p->next) {
        bufs[n++] = uv_buf_init((char *)p->ptr, (unsigned)p->len);
        c->n_waiting -= p->len;
        last = p;
    }
    assert(last); /* there is something to write, or this is not called */
    c->out = last->next;
    last->next = NULL;
    if (!c->out)
        c->out_last = NULL;
    c->under_way = w;
    if (uv_write(&w->req, (uv_stream_t *)&c->tcp, bufs, n, on_written) == 0)
        return;
    c->under_way = NULL;
    free_pieces(w->first);
    free(w);
    httpd_conn_break(c, RV_GONE_LEFT);
}

/* --- what waits --- */

static void add_piece(struct rv_conn *c, struct rv_out *p)
{
    if (c->out_last)
        c->out_last->next = p;
    else
        c->out = p;
    c->out_last = p;
}

static bool append(struct rv_conn *c, rv_str s)
{
    struct rv_out *p = c->out_last;

    if (p && p->cap - p->len >= s.len && p->cap > 0) {
        memcpy(p->room + p->len, s.ptr, s.len);
    } else {
        size_t cap = s.len > MIN_PIECE ? s.len : p ? MAX_APPEND : MIN_PIECE;
        cap = cap > s.len ? cap : s.len;
        p = malloc(sizeof *p + cap);
        if (!p)
            return false;
        *p = (struct rv_out){.cap = cap, .ptr = p->room};
        memcpy(p->room, s.ptr, s.len);
        add_piece(c, p);
    }
    p->len += s.len;
    c->n_waiting += s.len;
    return true;
}

static bool append_owned(struct rv_conn *c, rv_str s, char *owned)
{
    struct rv_out *p = malloc(sizeof *p);

    if (!p) {
        free(owned);
        return false;
    }
    *p = (struct rv_out){.ptr = s.ptr, .len = s.len, .owned = owned};
    add_piece(c, p);
    c->n_waiting += s.len;
    return true;
}

/* What the system takes of v[0..n) at once. Negative: the connection is broken. */
static ssize_t try_write(struct rv_conn *c, const rv_str *v, size_t n)
{
    uv_buf_t bufs[MAX_BUFS];
    unsigned n_bufs = 0;

    if (c->out || c->under_way)
        return 0;
    for (size_t i = 0; i < n && n_bufs < MAX_BUFS; i++)
        if (v[i].len > 0)
            bufs[n_bufs++] = uv_buf_init((char *)v[i].ptr, (unsigned)v[i].len);
    int rc = n_bufs > 0 ? uv_try_write((uv_stream_t *)&c->tcp, bufs, n_bufs) : 0;
    return rc == UV_EAGAIN || rc == UV_ENOBUFS ? 0 : rc;
}

static void begin_waiting(struct rv_conn *c)
{
    if (!c->out)
        return;
    if (c->stall_us == 0) {
        c->stall_us = httpd_now(c->s);
        c->stall_base = c->n_sent - httpd_out_unsent(c);
        httpd_conn_arm(c);
    }
    if (!c->under_way)
        write_on(c);
}

void httpd_out_raw(struct rv_conn *c, const rv_str *v, size_t n, rv_str last, enum rv_body_owner owner)
{
    rv_str all[MAX_BUFS];
    char *owned = owner == RV_BODY_TAKEN ? (char *)last.ptr : NULL;
    ssize_t taken = -1;

    for (size_t i = 0; i < n; i++) {
        all[i] = v[i];
        c->n_sent += v[i].len;
    }
    all[n] = last;
    c->n_sent += last.len;
    if (!c->is_broken && c->state != RV_CONN_CLOSED)
        taken = try_write(c, all, n + 1);
    if (taken < 0) {
        free(owned);
        httpd_conn_break(c, RV_GONE_LEFT);
        return;
    }
    size_t skip = (size_t)taken;
    bool is_well = true;
    for (size_t i = 0; i <= n; i++) {
        size_t done = skip < all[i].len ? skip : all[i].len;
        skip -= done;
        if (done == all[i].len)
            continue;
        rv_str rest = {all[i].ptr + done, all[i].len - done};
        if (i < n || owner == RV_BODY_BORROWED)
            is_well = is_well && append(c, rest);
        else {
            is_well = is_well && append_owned(c, rest, owned);
            owned = NULL;
        }
    }
    free(owned);
    if (is_well)
        begin_waiting(c);
    else
        httpd_conn_break(c, RV_GONE_FAILED);
}

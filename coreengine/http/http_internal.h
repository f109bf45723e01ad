/* Shared by the files of this folder: a connection, an exchange, the server, and who calls whom.
 *
 * Bytes go up: connection.c reads, tls.c decrypts, head.c and body.c understand, exchange.c belongs to the handler.
 * Answers go down: exchange.c frames, tls.c encrypts, out.c writes. A connection is freed by its close callback only;
 * an exchange when both its handler has ended it and its connection has let it go. */
#ifndef RV_HTTP_SERVER_INTERNAL_H
#define RV_HTTP_SERVER_INTERNAL_H

#include <llhttp.h>
#include <uv.h>

#include "coreengine/base/base.h"
#include "coreengine/http/http.h"

/* Why a request is refused. Texts are static. */
struct rv_httpd_fault {
    int status;
    const char *code, *detail;
};

/* --- head.c, target.c: pure --- */

/* Where the search for the end of a head has come to; zeroed at first. */
struct rv_head_scan {
    size_t at, line, n_lines; /* looked at; begin of the present line; lines that are complete */
};
/** Looks through bytes that may be the beginning of a request, which grow from call to call. Positive: the head has so
 * many bytes. 0: it is not complete. Negative: it breaks a rule that no parser may be trusted with, or a limit. */
ptrdiff_t httpd_head_scan(struct rv_head_scan *scan, const struct rv_httpd_limits *limits, rv_str bytes,
                          struct rv_httpd_fault *why);

struct rv_head {
    struct rv_httpd_request req; /* but for id, peer, is_tls and body */
    bool is_1_0, wants_close, wants_continue, is_chunked;
    uint64_t length; /* of the body, if it is not chunked */
    void *block;     /* owned: all that req points to */
};
/** A head that httpd_head_scan() has passed. *parser: fed with the head, so that it can go on with the body. False: it
 * is refused, or memory is short (status 500). */
RV_MUST_CHECK bool httpd_head_read(rv_str bytes, const struct rv_head_scan *scan, const struct rv_httpd_limits *limits,
                                   struct rv_head *out, llhttp_t *parser, struct rv_httpd_fault *why);
/** True if a request may be addressed to that host. */
bool httpd_head_is_ours(rv_str host, char *const *names, size_t n_names, bool is_loopback);
/** Path and query of a target. segments, query: room for as many as there are separators, and one more; text: room for
 * target.len bytes. False: why. */
RV_MUST_CHECK bool httpd_target_read(rv_str target, struct rv_httpd_request *req, rv_str *segments,
                                     struct rv_httpd_field *query, char *text, struct rv_httpd_fault *why);
bool httpd_is_token(rv_str s); /* of HTTP, not empty */

/* --- body.c: pure --- */

struct rv_body {
    llhttp_t parser;
    rv_buf bytes;
    size_t n_raw; /* with the framing of chunks */
    char tail[4]; /* the last bytes */
    bool is_chunked, is_complete;
    struct rv_httpd_fault why; /* set by the callbacks of the parser */
};
/** Takes what belongs to the body from the front of bytes. 1: it is complete, *used bytes belonged to it. 0: all was
 * used and more is needed. Negative: why. */
RV_MUST_CHECK int httpd_body_read(struct rv_body *b, rv_str bytes, size_t *used, struct rv_httpd_fault *why);

/* --- wheel.c: pure --- */

#define RV_WHEEL_SLOTS   1024                 /* ticks of one turn of the wheel; later ones wait for their turn */
#define RV_WHEEL_TICK_US (125 * RV_US_PER_MS) /* the shortest limit is a second */
/* Part of what owns it; the wheel borrows it. */
struct rv_wheel_entry {
    struct rv_wheel_entry *prev, *next; /* NULL: in no wheel */
    int64_t due_us;
};
/* Entries by time: adding and removing cost the same for any number, and giving out those that are due looks at each
 * entry of their slots once or twice, not once for each of them. */
struct rv_wheel {
    struct rv_wheel_entry slots[RV_WHEEL_SLOTS]; /* heads of rings */
    uint64_t used[RV_WHEEL_SLOTS / 64];          /* a bit for each slot that is not empty */
    struct rv_wheel_entry due;                   /* the head of a ring: found due, and not given out yet */
    int64_t tick;                                /* everything before it has been given out */
};
void httpd_wheel_init(struct rv_wheel *w, int64_t now_us);
void httpd_wheel_set(struct rv_wheel *w, struct rv_wheel_entry *e, int64_t due_us); /* also if it is in it */
void httpd_wheel_remove(struct rv_wheel *w, struct rv_wheel_entry *e);
/** Removes and returns an entry that is due, or NULL. */
struct rv_wheel_entry *httpd_wheel_pop(struct rv_wheel *w, int64_t now_us);
/** When to look again: never later than a tick after the first entry is due. RV_NEVER: the wheel is empty. */
int64_t httpd_wheel_next_us(const struct rv_wheel *w);

/* --- peers.c --- */

struct rv_peers;
struct rv_peers *httpd_peers_new(uint64_t seed); /* NULL: no memory */
void httpd_peers_free(struct rv_peers *t);
/** One more connection. RV_E_LIMIT: there are max (0: any number) already; RV_E_NOMEM. */
RV_MUST_CHECK int httpd_peers_add(struct rv_peers *t, const struct rv_address *p, size_t max);
void httpd_peers_remove(struct rv_peers *t, const struct rv_address *p);

/* --- the objects --- */

struct rv_conn;
struct rv_tls;     /* tls.c: of a connection */
struct rv_tls_ctx; /* tls.c: of a listener */
struct rv_out;     /* out.c: bytes that wait */

struct rv_listener {
    rv_httpd *s; /* the server; outlives it */
    uv_tcp_t tcp;
    struct rv_listener *next; /* in s->listeners; owned by the server */
    bool is_loopback, is_open;
    bool owes_accept;           /* memory was short when a connection came */
    char *certificate, *key;    /* paths; NULL: no TLS; owned */
    struct rv_tls_ctx *tls_ctx; /* NULL: no TLS; owned */
};

enum rv_conn_state {
    RV_CONN_HEAD,   /* waits for a head, or reads one */
    RV_CONN_BODY,   /* reads a body */
    RV_CONN_ANSWER, /* the exchange is its handler's, or its answer is being sent */
    RV_CONN_LINGER, /* all was sent; what comes is thrown away until the client closes */
    RV_CONN_CLOSED, /* its handle is being closed */
};
struct rv_conn {
    uv_tcp_t tcp;
    struct rv_listener *at;      /* that took it; outlives it */
    rv_httpd *s;                 /* the server; outlives it */
    struct rv_conn *prev, *next; /* in s->conns */
    struct rv_wheel_entry clock;
    struct rv_address peer;
    struct rv_conn *broken_next; /* in s->broken; borrowed */
    enum rv_conn_state state;
    bool has_spoken;  /* a byte of the present head has come */
    bool is_used;     /* a request has been answered */
    bool closes;      /* after the answer under way */
    bool is_shut;     /* our side is closed */
    bool is_broken;   /* a write failed: to be closed from the loop */
    bool ends_stream; /* its end would be that of a stream that goes on: it is reset */
    int64_t since_us; /* of the state, or of the head's first byte */
    int64_t spoke_us; /* last write */
    rv_buf in;        /* a head that came in pieces */
    struct rv_head_scan scan;
    struct rv_body *body; /* owned; while it is read */
    rv_httpd_exchange *x; /* at most one; borrowed */
    struct rv_tls *tls;   /* owned; NULL: none */
    /* out.c: */
    struct rv_out *out, *out_last;  /* waiting; owned */
    struct rv_out_write *under_way; /* owned; NULL: nothing is being written */
    size_t n_waiting;               /* bytes in `out` */
    uint64_t n_sent;                /* bytes that were ever to be sent */
    uint64_t stall_base;            /* bytes taken by the system when stall_us began */
    int64_t stall_us;               /* 0: nothing waits */
    size_t n_excess;                /* bytes that came during an answer, or lingering */
};

enum rv_httpd_exchange_phase {
    RV_EXCHANGE_HEAD, /* not the handler's yet */
    RV_EXCHANGE_OPEN, /* the handler's, without an answer */
    RV_EXCHANGE_STREAM,
    RV_EXCHANGE_ENDED, /* by the handler */
};
#define RV_NOTE_DRAIN 1U /* the peer has taken what was written */
#define RV_NOTE_GONE  2U /* the peer has left */
#define RV_NOTE_STOP  4U /* the server stops */
/* The server owns it until it has ended and its answer was sent. */
struct rv_httpd_exchange {
    struct rv_head head;
    rv_httpd *s;                    /* borrowed; NULL: freed */
    struct rv_conn *c;              /* borrowed; NULL: gone, or all was sent */
    rv_httpd_exchange *prev, *next; /* in s->exchanges */
    struct rv_httpd_plan plan;
    struct rv_httpd_watch watch;
    enum rv_httpd_exchange_phase phase;
    enum rv_gone why;
    bool has_head;    /* else it is only a refusal */
    bool is_held;     /* by the handler */
    bool is_planning; /* on_head has it */
    bool is_gone, is_events, is_mute, is_chunked, is_streaming, wants_drain;
    unsigned notes, told;         /* what the handler is to be told, and was */
    bool is_listed;               /* in s->todo */
    rv_httpd_exchange *todo_next; /* in s->todo; borrowed */
    rv_buf body;
    int status;
    char *run_id; /* owned; may be NULL */
    uint64_t n_body, n_out;
    int64_t start_us;
};

struct rv_httpd {
    uv_loop_t *loop;               /* borrowed; its thread owns all of this */
    struct rv_httpd_opts o;        /* hosts: owned copies, below */
    char **hosts;                  /* owned; o.n_hosts of them */
    struct rv_listener *listeners; /* owned, as the lists and tables that follow */
    struct rv_conn *conns;
    rv_httpd_exchange *exchanges;
    struct rv_wheel *wheel;
    struct rv_peers *peers;
    uv_timer_t timer;
    int64_t timer_us; /* what it is set to */
    uv_idle_t idle;   /* runs while `todo` is not empty */
    rv_httpd_exchange *todo, **todo_end;
    size_t n_body_bytes;    /* memory of all bodies */
    struct rv_conn *broken; /* to be closed from the loop */
    size_t n_handles;       /* of the loop that are not yet closed */
    struct rv_httpd_counts counts;
    bool is_draining, is_past_deadline, is_freeing, is_freed;
    bool is_short; /* the last connection took the last descriptor */
    int64_t deadline_us;
    void (*done)(void *self);
    void *done_self;              /* for done; borrowed */
    char *read_room;              /* for one read, of any connection; owned */
    struct rv_tls_room *tls_room; /* NULL: no listener has TLS; owned */
    char date[40];                /* the field of answers, of date_s */
    int64_t date_s;
};
#define RV_HTTPD_READ_BYTES ((size_t)64 << 10) /* of one read: as many as a socket usually has */

/* --- server.c --- */

void httpd_arm(rv_httpd *s); /* set the timer to what is due next */
/** Another client was accepted: NULL, and it is one of its peer's connections, or why it is sent away. */
const struct rv_httpd_fault *httpd_unwelcome(rv_httpd *s, const uv_tcp_t *taken, struct rv_address *peer);
void httpd_look(rv_httpd *s);          /* there is work for the loop: broken connections, notes, the end of a drain */
void httpd_handle_closed(rv_httpd *s); /* one of s->n_handles */

/* --- connection.c --- */

void httpd_conn_accept(struct rv_listener *at);
void httpd_conn_input(struct rv_conn *c, rv_str bytes);     /* decrypted */
void httpd_conn_arm(struct rv_conn *c);                     /* something may be due earlier than before */
void httpd_conn_tick(struct rv_conn *c, int64_t now_us);    /* its entry of the wheel came */
void httpd_conn_close(struct rv_conn *c, enum rv_gone why); /* at once */
void httpd_conn_break(struct rv_conn *c, enum rv_gone why); /* from the loop; its exchange is lost at once */
void httpd_conn_drained(struct rv_conn *c);                 /* the system has taken all */
void httpd_conn_answered(struct rv_conn *c);                /* its exchange may have ended and all may be sent */
void httpd_conn_stop(struct rv_conn *c);                    /* the deadline of a drain */
/** Send v[0..n), n <= 12, and last, which has that owner and is taken on every path. The connection may be broken
 * then. */
void httpd_conn_send(struct rv_conn *c, const rv_str *v, size_t n, rv_str last, enum rv_body_owner owner);

/* --- out.c --- */

void httpd_out_raw(struct rv_conn *c, const rv_str *v, size_t n, rv_str last, enum rv_body_owner owner); /* encrypted */
size_t httpd_out_unsent(const struct rv_conn *c);
void httpd_out_fini(struct rv_conn *c);

/* --- exchange.c, answer.c --- */

rv_httpd_exchange *httpd_exchange_new(struct rv_conn *c,
                                      const struct rv_head *head); /* head: taken; NULL: unreadable */
void httpd_exchange_plan(rv_httpd_exchange *x);                    /* may free it */
void httpd_exchange_deliver(rv_httpd_exchange *x);
void httpd_exchange_refuse(rv_httpd_exchange *x, const struct rv_httpd_fault *why);
/** The whole answer to a client of which no request is read. */
void httpd_refuse_client(rv_httpd *s, const struct rv_httpd_fault *why, rv_buf *out);
void httpd_exchange_last_word(rv_httpd_exchange *x); /* the server ends it: 503, or the last chunk */
void httpd_exchange_let_body_go(rv_httpd_exchange *x);
void httpd_exchange_heartbeat(rv_httpd_exchange *x);
void httpd_exchange_drained(rv_httpd_exchange *x);
void httpd_exchange_done(rv_httpd_exchange *x);                   /* its handler has ended it */
void httpd_exchange_sent(rv_httpd_exchange *x);                   /* its connection is done with it */
void httpd_exchange_lost(rv_httpd_exchange *x, enum rv_gone why); /* it has no connection any more */
void httpd_exchange_note(rv_httpd_exchange *x, unsigned note);
void httpd_exchange_tell_all(rv_httpd *s);
void httpd_exchange_orphan(rv_httpd_exchange *x); /* the server is freed */

/* --- tls.c --- */

/** RV_E_INVALID, RV_E_NOT_FOUND, RV_E_VERSION, RV_E_NOMEM. */
RV_MUST_CHECK int tls_ctx_new(const char *certificate, const char *key, struct rv_tls_ctx **out, rv_err **err);
void tls_ctx_free(struct rv_tls_ctx *t);
struct rv_tls_room *tls_room_new(void); /* NULL: no memory */
void tls_room_free(struct rv_tls_room *room);
struct rv_tls *tls_new(const struct rv_tls_ctx *ctx, struct rv_conn *c); /* NULL: no memory */
void tls_free(struct rv_tls *t);
bool tls_is_up(const struct rv_tls *t); /* the handshake is done */
/** Bytes from the socket; httpd_conn_input() gets what is in them. False: the connection is to be closed. */
RV_MUST_CHECK bool tls_read(struct rv_tls *t, rv_str bytes);
void tls_write(struct rv_tls *t, const rv_str *v, size_t n, rv_str last);
void tls_end(struct rv_tls *t); /* say farewell */

static inline int64_t httpd_now(const rv_httpd *s)
{
    return s->o.clock.now_us(s->o.clock.self);
}

#endif

/* HTTP/1.1 for the clients of this process: a server on a libuv loop. Bytes, limits and TLS; it knows nothing of runs,
 * users or JSON.
 *
 * A request that breaks a rule of the protocol or a limit is answered here. Any other one is an exchange: the head goes
 * to `on_head`, which chooses how large a body may be, and the whole request to `on_request`. From then on the exchange
 * is the handler's, who answers at once or later: with a whole answer (rv_httpd_reply), or with a stream
 * (rv_httpd_begin or rv_httpd_begin_events, writes, rv_httpd_end). Each exchange ends with exactly one call of
 * rv_httpd_reply(), rv_httpd_end() or rv_httpd_drop(), also when its client has left: until then the pointer
 * is valid and what is written is thrown away.
 *
 * Everything belongs to the loop's thread. on_drain, on_gone and on_stop come from the loop, never from within a
 * function of this header, except for rv_httpd_tick() and rv_httpd_free(). on_access may come from within any, and
 * calls none. In all other callbacks every function may be called, except for rv_httpd_free(). */
#ifndef RV_HTTP_SERVER_H
#define RV_HTTP_SERVER_H

#include "coreengine/base/base.h"

typedef struct rv_httpd rv_httpd;
typedef struct rv_httpd_exchange rv_httpd_exchange; /* one request and its answer */
struct uv_loop_s;

/* --- requests --- */

#define RV_METHODS(X)                                                                                                  \
    X(GET)                                                                                                             \
    X(HEAD)                                                                                                            \
    X(POST)                                                                                                            \
    X(PUT)                                                                                                             \
    X(PATCH)                                                                                                           \
    X(DELETE)                                                                                                          \
    X(OPTIONS)
enum rv_method {
#define X(name) RV_METHOD_##name,
    RV_METHODS(X)
#undef X
        RV_N_METHODS
};
const char *rv_method_text(enum rv_method method); /* "GET" */

struct rv_httpd_field {
    rv_str name, value;
};

#define RV_REQUEST_ID_MAX 128 /* bytes, without the NUL: it stands in each line of the log */
#define RV_PEER_MAX       48  /* bytes of an IPv6 address as text, with a zone and its NUL */

/* All is borrowed from the exchange; a body that is not streamed, until the answer begins. */
struct rv_httpd_request {
    enum rv_method method;
    char id[RV_REQUEST_ID_MAX + 1]; /* the client's X-Request-Id if it is one of [A-Za-z0-9._-], else made here */
    char peer[RV_PEER_MAX];         /* numeric address of the other end of the connection, without port */
    bool is_tls;
    rv_str host; /* as sent, with its port; lower case */
    rv_str path; /* as sent, without the query; for messages only */
    /* Of the path, each decoded once: UTF-8, no NUL, neither "." nor "..". "/": none. Only the last one may be empty
     * ("/runs/"); `%2F` is a slash within a segment. */
    const rv_str *segments;
    size_t n_segments;
    const struct rv_httpd_field *query; /* in order, decoded once (`+` is a space): UTF-8, no NUL */
    size_t n_query;
    const struct rv_httpd_field
        *fields; /* of the head, in order; names in lower case, values trimmed, maybe not UTF-8 */
    size_t n_fields;
    rv_str body; /* whole; NUL-terminated; empty in on_head. Valid until the answer begins */
    void *data;  /* what on_head has set */
};
/** The value of a field; name in lower case. False: it is not there, or (*n > 1) it is there several times. n may be
 * NULL. */
bool rv_httpd_find_field(const struct rv_httpd_request *req, const char *name, rv_str *out, size_t *n);
/** The first value of that name in the query. */
bool rv_httpd_find_query(const struct rv_httpd_request *req, const char *name, rv_str *out);

/* --- the server --- */

/* All limits. RV_HTTPD_LIMITS_INIT has the defaults; 0 means none where it says so. */
struct rv_httpd_limits {
    size_t max_head;        /* bytes of request line and fields; 256..1 MiB */
    size_t max_fields;      /* 1..1000 */
    size_t max_target;      /* bytes of the request target */
    size_t max_body;        /* where on_head says nothing */
    size_t max_bodies;      /* of all bodies that are read, or whose answers have not begun; beyond: 503 */
    size_t max_unsent;      /* bytes that may wait for the client of a stream: a write beyond that drops it */
    size_t max_connections; /* in all; one more gets 503 */
    size_t max_per_peer;    /* connections of one address (of an IPv6 network of 64 bits); 0: no limit */
    int send_buffer;        /* SO_SNDBUF; 0: as the system chooses, which may hold megabytes for a slow client */
    int64_t head_us;        /* from the connection, or the first byte of a later request, to the end of its head */
    int64_t body_grace_us;  /* after this long, a body */
    size_t body_rate;       /* comes with at least that many bytes a second on average; 0: no limit */
    int64_t keep_alive_us;  /* between an answer and the next request */
    int64_t stall_us;       /* the client takes not one byte of what is to be sent; 0: no limit */
    int64_t heartbeat_us;   /* a comment in a stream of events that is silent that long; 0: none */
};
#define RV_HTTPD_LIMITS_INIT                                                                                           \
    {                                                                                                                  \
        .max_head = (size_t)32 << 10, .max_fields = 100, .max_target = (size_t)8 << 10, .max_body = (size_t)1 << 20,   \
        .max_bodies = (size_t)256 << 20, .max_unsent = (size_t)256 << 10, .max_connections = 16384,                    \
        .max_per_peer = 100, .send_buffer = 128 << 10, .head_us = 10 * RV_US_PER_S, .body_grace_us = 10 * RV_US_PER_S, \
        .body_rate = 1024, .keep_alive_us = 75 * RV_US_PER_S, .stall_us = RV_US_PER_MIN,                               \
        .heartbeat_us = 15 * RV_US_PER_S                                                                               \
    }

struct rv_httpd_plan {
    const char *route; /* for the access log: "POST /chat/{id}"; borrowed until the exchange has ended; NULL: none */
    size_t max_body;   /* the limit of the server until it is changed here; a larger body is answered with 413 */
    void *data;        /* req->data from now on; owned by the handler: freed by free_data */
    void (*free_data)(void *data); /* at the end of the exchange, whatever it is; NULL: nothing */
};

/* A request, or a client, that was refused here, without a handler. */
struct rv_httpd_refusal {
    int status;                /* 400, 405, 408, 413, 414, 421, 429, 431, 500, 501, 503, 505 */
    const char *code, *detail; /* "bad_request"; a sentence for the client. Static */
    const char *request_id;    /* borrowed for the call */
};

/* One line of the access log, when the answer was handed to the system or the exchange was given up. What it points to
 * is borrowed for the call. */
struct rv_httpd_access {
    const char *method; /* "" when the head could not be read */
    const char *route;  /* of the plan; "" if none */
    const char *peer, *request_id;
    const char *run_id; /* that the answer named; "": none */
    int status;         /* that was sent; 0: the client left before any answer */
    bool was_cut;       /* the answer did not reach its end: the client left, was too slow, or the handler gave up */
    uint64_t bytes_in, bytes_out; /* of the body of the request; of the answer with its head, before TLS */
    int64_t start_us, took_us;    /* from the end of the head to the end of the answer */
};

struct rv_address;
struct rv_httpd_handler {
    /** The head is there and right. Fill in the plan. May answer at once with rv_httpd_reply(), which ends the
     * exchange: on_request does not come and a body is not read. NULL: every request is taken. */
    void (*on_head)(void *self, rv_httpd_exchange *x, struct rv_httpd_plan *plan);
    /** The whole request is there: x is the handler's until it ends it. */
    void (*on_request)(void *self, rv_httpd_exchange *x);
    /** Body and content type (static) of a refusal, in the host's own form. NULL: plain text. */
    void (*on_refusal)(void *self, const struct rv_httpd_refusal *why, rv_buf *body, const char **content_type);
    void (*on_access)(void *self, const struct rv_httpd_access *line); /* NULL: no log */
    /** A proxy has the connections of many clients: limits.max_per_peer is not for it. NULL: none is one. */
    bool (*is_proxy)(void *self, const struct rv_address *peer);
    void *self; /* borrowed; outlives the server */
};

struct rv_httpd_opts {
    struct uv_loop_s *loop; /* borrowed; outlives the server */
    bool runs_on;           /* the loop runs after rv_httpd_free(), which then does not run it */
    struct rv_httpd_handler handler;
    struct rv_httpd_limits limits;
    /** Host names without port, to which a request must be addressed, as certificates have them but without wildcards;
     * any other Host is answered with 421. Copied. NULL: on a listener whose address is a loopback address only
     * "localhost" and loopback addresses (a page of another site cannot reach it by a name of its own); else any. */
    const char *const *hosts;
    size_t n_hosts;
    struct rv_clock clock; /* zeroed: the system's. With another one, rv_httpd_tick() has to be called when it moved */
    struct rv_rand rand;   /* for request ids; zeroed: the system's */
    rv_log *log;           /* borrowed; may be NULL */
};
#define RV_HTTPD_OPTS_INIT                                                                                             \
    {                                                                                                                  \
        .limits = RV_HTTPD_LIMITS_INIT                                                                                 \
    }

/** RV_E_INVALID: a limit makes no sense; RV_E_NOMEM. */
RV_MUST_CHECK int rv_httpd_new(const struct rv_httpd_opts *opts, rv_httpd **out, rv_err **err);
/** Closes all connections at once, without a last word. on_gone comes for exchanges that are watched; those that their
 * handlers have not ended stay valid until they do. Runs the loop until the handles are closed, unless opts.runs_on.
 * NULL is fine. */
void rv_httpd_free(rv_httpd *s);

/* Texts are copied. */
struct rv_httpd_listen {
    const char *address;     /* numeric: "127.0.0.1", "::1", "0.0.0.0", "::" */
    int port;                /* 0: the system chooses */
    const char *certificate; /* path of a PEM file, the server's certificate first; NULL: no TLS */
    const char *key;         /* path of its private key in PEM, without passphrase */
};
/** Listen at one more address. *port: the real one. RV_E_INVALID (address, port, certificate or key), RV_E_EXISTS (the
 * address is in use), RV_E_DENIED, RV_E_IO, RV_E_NOT_FOUND (a file; libssl, the hint says what to install), RV_E_NOMEM.
 */
RV_MUST_CHECK int rv_httpd_listen(rv_httpd *s, const struct rv_httpd_listen *at, int *port, rv_err **err);
/** Read all certificates and keys again, for connections that come from now on. On failure the old ones stay. */
RV_MUST_CHECK int rv_httpd_reload(rv_httpd *s, rv_err **err);

/** End gracefully: nothing is accepted any more, idle connections are closed, exchanges under way are told by on_stop
 * and go on until they end. After grace_us those that are left are ended here: requests without an answer get
 * 503, streams are cut as by rv_httpd_drop(), and on_gone comes with RV_GONE_STOPPED. `done` comes once, when no
 * connection is left (also when there was none). A second call only moves the deadline. */
void rv_httpd_drain(rv_httpd *s, int64_t grace_us, void (*done)(void *self), void *self);
/** Do what is due by the clock. The server does this from the loop by itself, unless the clock is the host's own. */
void rv_httpd_tick(rv_httpd *s);

struct rv_httpd_counts {
    size_t connections, exchanges, streams; /* now; exchanges: from their head to their end */
    uint64_t accepted, requests, refused;   /* since the start; refused: requests answered here */
    uint64_t dropped;                       /* connections closed for a limit of time, number or unsent bytes */
};
void rv_httpd_copy_counts(const rv_httpd *s, struct rv_httpd_counts *out);

/* --- answers --- */

/** Valid until the exchange ends. */
const struct rv_httpd_request *rv_httpd_exchange_request(const rv_httpd_exchange *x);

enum rv_gone {
    RV_GONE_LEFT,    /* the client closed the connection, or it broke */
    RV_GONE_SLOW,    /* the client did not take what was written */
    RV_GONE_STOPPED, /* the deadline of rv_httpd_drain() passed, or the server was freed */
    RV_GONE_FAILED,  /* no memory, or what the handler asked for cannot be sent; the log has the reason */
};
struct rv_httpd_watch {
    /** All that was written has been handed to the system, after a write that returned more than 0. */
    void (*on_drain)(void *self, rv_httpd_exchange *x);
    /** Once: nothing reaches the client any more. The exchange has still to be ended, here or later. */
    void (*on_gone)(void *self, rv_httpd_exchange *x, enum rv_gone why);
    /** Once: the server is to stop. End a stream soon with its last event. */
    void (*on_stop)(void *self, rv_httpd_exchange *x);
    void *self; /* borrowed until the exchange has ended */
};
/** Be told what happens to the exchange; each function may be NULL. Copied; replaces what was there. What has happened
 * already is told soon, from the loop. */
void rv_httpd_watch(rv_httpd_exchange *x, const struct rv_httpd_watch *watch);
bool rv_httpd_is_gone(const rv_httpd_exchange *x);

enum rv_body_owner {
    RV_BODY_BORROWED, /* for the call: what the system does not take at once is copied */
    RV_BODY_TAKEN,    /* from malloc(), as rv_buf_steal() gives it; the server frees it on every path */
    RV_BODY_STATIC,   /* stays as it is until the server is freed and its loop has ended */
};
struct rv_httpd_answer {
    int status;                          /* 200..599 */
    const char *type;                    /* Content-Type; NULL: none; borrowed for the call */
    const struct rv_httpd_field *fields; /* more of them; borrowed for the call */
    size_t n_fields;
    rv_str body; /* not sent for HEAD; must be empty for 204 and 304 */
    enum rv_body_owner owner;
    rv_str run_id; /* for the access log; empty: the request is not about a run; copied */
};
/* Content-Type, Content-Length, Transfer-Encoding, Connection, Date and X-Request-Id are set here. A field that breaks
 * the rules (a name that is not a token, one of these, a control character in a value) or a head above 16 KiB is a
 * fault of the handler: the client gets 500, and the log says why. */

/** Answer as a whole. Ends the exchange. */
void rv_httpd_reply(rv_httpd_exchange *x, const struct rv_httpd_answer *answer);

/** Begin a stream: the head is sent at once, then answer->body if there is one. For a client of HTTP/1.0 the end of the
 * connection is the end of the stream. */
void rv_httpd_begin(rv_httpd_exchange *x, const struct rv_httpd_answer *answer);
/** Send bytes (borrowed for the call) as one chunk. Returns how many bytes are now unsent: what the system did not take
 * waits in memory. Above limits.max_unsent before the write: the client is dropped (RV_GONE_SLOW). A writer that has
 * much to say goes on in on_drain. */
size_t rv_httpd_write(rv_httpd_exchange *x, rv_str bytes);

/** Begin a stream of server-sent events: 200, its content type, no caching, and a first comment. answer->status, type
 * and body are not used; answer may be NULL. retry_ms: how long clients wait before they connect again; 0: their
 * choice. Comments are sent when the stream is silent (limits.heartbeat_us). */
void rv_httpd_begin_events(rv_httpd_exchange *x, const struct rv_httpd_answer *answer, int retry_ms);
struct rv_httpd_event {
    rv_str data; /* UTF-8; each of its lines becomes a `data:` line; any line end is one */
    rv_str name; /* `event:`; empty: none. No line ends. Browsers take "error" and "open" for their own */
    rv_str id;   /* `id:`, behind the data; empty: none. Printable ASCII without spaces */
};
/** Send an event, with the rules of rv_httpd_write(). A name or an id that breaks its rule: RV_GONE_FAILED. */
size_t rv_httpd_send_event(rv_httpd_exchange *x, const struct rv_httpd_event *event);

/** End a stream with its last chunk. Ends the exchange. */
void rv_httpd_end(rv_httpd_exchange *x);
/** Give up: without an answer the client gets 500, a stream is cut off without its last chunk; for a client of
 * HTTP/1.0, whose stream has none, the connection is reset. Ends the exchange. The right end of one whose client is
 * gone. */
void rv_httpd_drop(rv_httpd_exchange *x);

#endif

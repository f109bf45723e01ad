/* HTTP to the outside: libcurl's multi interface on a libuv loop. Connections are reused, nothing blocks, a slow reader
 * pauses the transfer. libcurl and what comes with it is opened when the first request is made, not before.
 *
 * Everything belongs to the loop's thread. Callbacks come from the loop, never from within a function of this header
 * (rv_http_cancel is followed by none). Some come from timers, after which uv_run(UV_RUN_ONCE) goes on to sleep: who
 * waits that way for something that a callback does calls uv_stop() there. rv_http_free() must not be called in a
 * callback. */
#ifndef RV_MODEL_HTTP_HTTP_H
#define RV_MODEL_HTTP_HTTP_H

#include "coreengine/base/base.h"

/* Where requests may go whose address a tool or a model chose: the one policy for addresses that come from tools and
 * models.
 *
 * The address of the other side is looked at when the socket is made, after its name was resolved: it is the address
 * that is connected to, so it does not matter how it was written, what the name server says next, or where a redirect
 * leads. Without a rule only public addresses at the ports 80 and 443 are allowed. Pure: no I/O. */

#define RV_EGRESS_MAX_RULES 256 /* of one policy; each connection is compared with all */

struct sockaddr;
typedef struct rv_egress rv_egress; /* constant once it is made: any thread */

/** Read what is allowed beside public addresses: items that are separated by commas, each a host ("db.internal",
 * "localhost:8080") or a range of addresses ("10.1.0.0/16", "[fd00::]/8", "192.168.1.7", with ":PORT" at the end for
 * one port; brackets around IPv6). NULL or "": nothing. RV_E_PARSE names the item. */
RV_MUST_CHECK int rv_egress_new(const char *list, rv_egress **out, rv_err **err);
void rv_egress_free(rv_egress *e);
/** May a connection to peer be made? host, as the request names it, and port. *why (static): a reason that it may not.
 */
bool rv_egress_allows(const rv_egress *e, rv_str host, int port, const struct sockaddr *peer, const char **why);

#define RV_HTTP_MAX_HEADERS 64                 /* of an answer: a server that sends more is broken */
#define RV_HTTP_MAX_HEAD    ((size_t)64 << 10) /* bytes of all headers: a server that sends more is broken */

typedef struct rv_http rv_http;
typedef struct rv_http_call rv_http_call;
struct uv_loop_s;

struct rv_http_opts {
    struct uv_loop_s *loop; /* borrowed; outlives the client */
    bool runs_on;           /* the loop runs after rv_http_free(), which then does not run it */
    size_t max_connections; /* kept open for reuse; 0: 64 */
    const char *user_agent; /* NULL: "reeve/VERSION"; copied */
    rv_log *log;            /* borrowed; may be NULL */
};
/** Opens libcurl. RV_E_NOT_FOUND: it is not there (the hint says what to install), RV_E_VERSION, RV_E_NOMEM,
 * RV_E_INTERNAL. */
RV_MUST_CHECK int rv_http_new(const struct rv_http_opts *opts, rv_http **out, rv_err **err);
/** What libcurl says of itself, "libcurl/7.88.1 OpenSSL/3.0.19 zlib/1.2.13 ..."; NULL: it is not open. Any thread. */
const char *rv_http_library(void);
/** Cancels what is under way and closes all handles on the loop: the loop must be run once more (until the close
 * callbacks were delivered) before it is closed; rv_http_free() does that itself with uv_run(UV_RUN_NOWAIT), unless
 * opts.runs_on. */
void rv_http_free(rv_http *h);

/* All but body and egress is borrowed for the call. */
struct rv_http_request {
    const char *method;         /* "POST" */
    const char *url;            /* http:// or https:// only; redirects are not followed */
    const char *const *headers; /* "Name: value"; no line ends, or the request is RV_E_INVALID */
    size_t n_headers;
    rv_str body;                                          /* borrowed until on_end or cancel */
    int64_t connect_us, first_byte_us, idle_us, total_us; /* limits; 0: none */
    size_t max_body;                                      /* of the answer, after decompression; 0: 64 MiB */
    const char *ca_file;                                  /* certificates to trust instead of the system's; NULL */
    const char *proxy;                                    /* NULL: by http_proxy, https_proxy, no_proxy; "": none */
    /** Borrowed until the end; NULL: anywhere. Else no proxy is used, a user or a password in the address is
     * RV_E_DENIED, the connection is a new one and not kept, and one that is not allowed ends the call (is_denied). */
    const rv_egress *egress;
    rv_log *log; /* for the record of its end, borrowed until then; NULL: that of the client */
};
struct rv_http_head {
    int status;          /* of the final answer: 1xx is skipped */
    rv_str content_type; /* as sent; empty: none */
    struct {
        rv_str name, value; /* name in lower case */
    } headers[RV_HTTP_MAX_HEADERS];
    size_t n_headers;
};

/** The value of a header by its lower-case name; ptr NULL: it is not there. */
static inline rv_str rv_http_header(const struct rv_http_head *head, const char *name)
{
    for (size_t i = 0; i < head->n_headers; i++)
        if (rv_str_is(head->headers[i].name, name))
            return head->headers[i].value;
    return (rv_str){NULL, 0};
}

/* What to do about a call that ended with is_denied: for the end of its message. */
#define RV_HTTP_ALLOW_NET " (to allow it, set REEVE_ALLOW_NET to HOST:PORT or a range of addresses)"

enum rv_http_fault {
    RV_HTTP_OK,
    RV_HTTP_UNREACHABLE,  /* no connection: resolving, connecting, TLS. Nothing was sent */
    RV_HTTP_CUT,          /* the connection broke after something was sent */
    RV_HTTP_CONNECT_TIME, /* the time to connect is over. Nothing was sent */
    RV_HTTP_FIRST_BYTE_TIME,
    RV_HTTP_IDLE_TIME,
    RV_HTTP_TOTAL_TIME,
    RV_HTTP_TOO_LARGE,  /* more than max_body */
    RV_HTTP_BAD_ANSWER, /* no HTTP, broken compression, too large a head */
    RV_HTTP_LOCAL,      /* memory, descriptors, an option libcurl does not know */
};
struct rv_http_end {
    enum rv_http_fault fault;
    bool was_sent;                               /* the request may have reached the server */
    bool is_denied;                              /* by the request's egress: RV_HTTP_LOCAL, nothing was sent */
    int refused_code;                            /* RV_E_FILES ...: the system gave no socket; 0: it did */
    const char *text;                            /* for people: what failed, with the host; "" when OK. Borrowed */
    int64_t connect_us, first_byte_us, total_us; /* from the start of the call; 0: did not come to that */
};
struct rv_http_events {
    void (*on_head)(void *self, const struct rv_http_head *head);
    /** A part of the body. False: hold the transfer until rv_http_resume(); this part was taken. Time on hold does not
     * count as idle. */
    bool (*on_body)(void *self, rv_str bytes);
    void (*on_end)(void *self, const struct rv_http_end *end); /* once, last; the call is gone afterwards */
    void *self;                                                /* borrowed until on_end or cancel */
};
/** RV_E_INVALID (address or header), RV_E_NOMEM, RV_E_INTERNAL; else on_end will come. */
RV_MUST_CHECK int rv_http_start(rv_http *h, const struct rv_http_request *req, const struct rv_http_events *events,
                                rv_http_call **out, rv_err **err);
/** Statuses that send a client to the address in `location`. */
static inline bool rv_http_is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}
struct rv_http_redirect {
    bool same_origin; /* the scheme, host and port stay */
    bool is_safe;     /* it does not leave https */
};
/** The address that `location` means in an answer from `base`, appended. RV_E_INVALID: it is not one of http:// or
 * https://; RV_E_NOMEM. */
RV_MUST_CHECK int rv_http_follow(rv_http *h, const char *base, const char *location, rv_buf *out,
                                 struct rv_http_redirect *kind, rv_err **err);
void rv_http_resume(rv_http_call *c);
void rv_http_cancel(rv_http_call *c); /* closes its connection; no callback follows */

#endif

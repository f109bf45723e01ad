/* Shared by the files of this folder: a link, and the requests that it has under way. */
#ifndef RV_MCP_WEB_INTERNAL_H
#define RV_MCP_WEB_INTERNAL_H

#include <uv.h>

#include "coreengine/tools/mcp/http/http.h"

struct web;

/* A POST, the stream of a legacy server, or the DELETE at the end. */
struct exchange {
    struct web *w;            /* borrowed: it has the exchange */
    struct exchange *next;    /* owned by w */
    int64_t id;               /* of the request; 0: a message without an answer, or a stream of the server's own */
    bool is_modern, is_first; /* first: `initialize` */
    bool opens_stream;        /* it ends the handshake of a legacy server, which may then have a stream of its own */
    bool is_stream, is_end;   /* GET, DELETE; a POST whose stream continues becomes a GET */
    bool is_reply;            /* to a request of the server */
    bool is_cancel;           /* it tells the server to stop something: it outlives a close */
    bool has_session;
    bool waits_for_stream; /* it is sent when the stream of the server's own is open, or at due_ms */
    bool in_callback, is_over;
    bool is_held;      /* until the loop has looked at other things */
    bool is_encoded;   /* the answer: libcurl would keep what it decodes meanwhile, so it is never held */
    uint64_t turn_ms;  /* of the loop, when the last bytes came */
    size_t turn_bytes; /* that came then */
    char *url, *body;  /* owned */
    size_t body_len;
    struct rv_mcp_headers headers; /* of the message; those of the server are added when it is sent */
    rv_http_call *call;            /* NULL: not under way; borrowed: it ends with on_end, or when it is cancelled */
    struct rv_mcp_answer answer;
    rv_buf challenge;
    char *location; /* owned; of a redirect */
    bool is_short;  /* there is one, and no memory for it */
    int n_redirects, n_renewals, n_resumes;
    struct rv_mcp_wait wait;
    bool waits;      /* for a token */
    uint64_t due_ms; /* of the loop: when it continues; 0: not waiting */
    int64_t retry_ms;
    char last_id[RV_SSE_MAX_ID + 1]; /* "": none */
};

struct web {
    uv_loop_t *loop; /* borrowed */
    struct rv_mcp_link_user user;
    rv_http *http;         /* owned, as all below */
    rv_egress *egress;     /* owned */
    rv_mcp_tokens *tokens; /* NULL: none; owned */
    char *url, *ca_file;   /* ca_file NULL: the system's; owned */
    struct rv_mcp_headers configured;
    char session[RV_MCP_MAX_SESSION + 1];
    char version[32];           /* negotiated; "": not yet */
    struct exchange *exchanges; /* owned */
    size_t n_exchanges;
    uv_timer_t timer; /* for streams that continue; then for the end */
    bool awaits_stream;
    uint64_t stream_ms; /* of the loop: until then requests wait for the stream; 0: they do not */
    bool is_walking;    /* the timer, over the exchanges: those that end meanwhile stay in the list */
    bool is_closing;
    bool has_left; /* the session was ended, or its end is under way */
    void (*closed)(void *arg);
    void *closed_arg; /* borrowed */
};

/* link.c */
uint64_t web_now(const struct web *w); /* of the loop, in milliseconds */
void web_arm(struct web *w);           /* an exchange has a new due_ms */
void web_open_stream(struct web *w);
void web_settle(struct web *w); /* an exchange is gone: if a close waited for it, the session ends, and then w */

/* exchange.c */
struct exchange *web_exchange_new(struct web *w, int64_t id); /* NULL: no memory */
RV_MUST_CHECK int web_exchange_start(struct exchange *x, rv_err **err);
void web_exchange_resume(struct exchange *x);
void web_exchange_drop(struct exchange *x); /* ends it without a callback */
void web_sweep(struct web *w);              /* frees those that are over; no callback of one of them is under way */

#endif

/* A server on the test's own loop: answers every request with the same bytes and then does what it was told. */
#ifndef RV_TESTS_HTTP_SERVER_H
#define RV_TESTS_HTTP_SERVER_H

#include <uv.h>

#include "coreengine/base/base.h"

enum after_answer {
    KEEP, /* wait for the next request on the connection, or for ever */
    CLOSE,
    ENDLESS, /* write `more` again and again, as long as it is taken */
};

struct server {
    uv_loop_t *loop;
    uv_tcp_t listener;
    int port;
    rv_str answer;                      /* to each request; borrowed */
    rv_str (*choose)(struct server *s); /* optional: the answer to the request in `last`; empty: none */
    rv_str more;                        /* what ENDLESS repeats */
    enum after_answer after;
    size_t n_connections, n_open; /* accepted so far; not yet closed */
    size_t n_requests;
    size_t n_written; /* bytes that the kernel took */
    size_t n_read;    /* of requests and bodies */
    rv_buf last;      /* the last request, head and body */
    struct link *links;
    void (*on_read)(struct server *s); /* optional */
    void (*on_written)(struct server *s);
    void *self;
};

void server_start(struct server *s, uv_loop_t *loop);
/** Closes everything; the loop has to run until that is done. */
void server_stop(struct server *s);
/** On all open connections. */
void server_write(struct server *s, const char *text);
/** Closes all open connections. */
void server_hang_up(struct server *s);
/** No new connections. */
void server_stop_listening(struct server *s);

#endif

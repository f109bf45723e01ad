/* A server, clients on raw sockets, and a handler that does what the path says; all in one thread, with a clock that
 * stands still. */
#ifndef RV_TESTS_HTTPD_WORLD_H
#define RV_TESTS_HTTPD_WORLD_H

#include <uv.h>

#include "coreengine/http/http.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

struct world {
    uv_loop_t loop;
    struct rv_kit_clock clock;
    struct rv_kit_log log;
    struct rv_rand_state rand;
    struct rv_httpd_opts opts; /* may be changed before world_listen() */
    rv_httpd *server;
    int port;
    rv_httpd_exchange *x; /* the last one that /later, /stream or /events have taken */
    rv_buf told;          /* "drain ", "gone:left ", "stop " */
    rv_buf access;        /* a line each: METHOD route status bytes_in cut|whole [run] */
    int n_freed;          /* data of plans */
    bool ends_on_gone, ends_on_stop;
    struct client *clients[16]; /* that are open */
};
void world_init(struct world *w);
void world_listen(struct world *w); /* at 127.0.0.1 */
void world_fini(struct world *w);
/** Run the loop until the server has read all that clients have sent, and its answers and farewells have come to them.
 */
void world_run(struct world *w);
/** Move the clock, and let the server see it. */
void world_pass(struct world *w, int64_t us);

/* A client. What it has got so far is in `got`. */
struct client {
    struct world *w;
    int fd, port;
    uint64_t n_sent;
    bool is_over; /* the server has closed */
    bool is_reset;
    rv_buf got;
};
void client_open(struct world *w, struct client *c);
void client_send(struct client *c, rv_str bytes); /* and run */
void client_text(struct client *c, const char *text);
void client_look(struct client *c); /* run, and take what has come */
void client_close(struct client *c);
/** Connect, send text, close; what came. free() it. */
char *world_ask(struct world *w, rv_str request);
int status_of(const char *answer);       /* 0: there is none */
const char *body_of(const char *answer); /* behind the head, as it came */
size_t n_answers(const char *got);       /* final ones */

TCase *requests_case(void);
TCase *smuggling_case(void);
TCase *streams_case(void);
TCase *limits_case(void);
TCase *life_case(void);
TCase *wheel_case(void);
TCase *random_case(void);
TCase *tls_case(void);

#endif

/* A loop, a server, a client, and calls that write down what happens to them. */
#ifndef RV_TESTS_HTTP_WORLD_H
#define RV_TESTS_HTTP_WORLD_H

#include <check.h>

#include "coreengine/model/http/http.h"
#include "server.h"

struct world {
    uv_loop_t loop;
    struct server server;
    rv_http *http;
    size_t n_open; /* calls under way */
};

/* One call and what came of it. Zeroed before use, apart from what the test wants of it. */
struct call {
    struct world *w;
    rv_http_call *handle;
    size_t hold_after; /* parts; 0: never hold */
    bool is_held;
    void (*on_head)(struct call *c); /* optional, from within the callback */
    void (*on_body)(struct call *c);
    void (*on_end)(struct call *c);
    struct call *other; /* for those */
    char *body_sent;    /* likewise */
    int status;
    char content_type[80];
    char headers[4096]; /* "name=value;" */
    size_t n_headers;
    rv_buf body;
    size_t n_heads, n_parts, n_ends;
    struct rv_http_end end;
    char text[1200];
};

void world_init(struct world *w);
void world_fini(struct world *w);

/** Defaults of a request to the server: GET, no limits, no proxy. The address is good until the next call. */
struct rv_http_request get(struct world *w, const char *path);
/** Starts it; the test fails if that fails. */
void begin(struct world *w, struct call *c, const struct rv_http_request *req);
/** Runs the loop until *n reaches at_least. */
void run_until(struct world *w, const size_t *n, size_t at_least);
/** Runs the loop until the client has read every byte that was sent to it. */
void run_until_read(struct world *w);
/** Time as the client sees it stands still from now on, and goes on by that much, until the world ends. */
void time_stands(void);
void time_passes(int64_t us);
/** Runs the loop until no call is under way. */
void run_all(struct world *w);
/** begin and run_all. */
void fetch(struct world *w, struct call *c, const struct rv_http_request *req);
/** The server gives `answer` and then does `after`; GET it. */
void fetch_answer(struct world *w, struct call *c, const char *answer, enum after_answer after);
void call_fini(struct call *c);
void cancel(struct call *c);
void resume(struct call *c);

TCase *answers_case(void);
TCase *broken_case(void);
TCase *limits_case(void);
TCase *life_case(void);
TCase *hold_case(void);
TCase *request_case(void);
TCase *names_case(void);
TCase *tls_case(void);
TCase *h2_case(void);
TCase *load_case(void);
TCase *egress_case(void);

#endif

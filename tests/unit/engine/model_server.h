/* A model's server on a thread of its own: answers each request by a plan, and counts. */
#ifndef RV_TESTS_SHELL_MODEL_SERVER_H
#define RV_TESTS_SHELL_MODEL_SERVER_H

#include <pthread.h>
#include <uv.h>

#include "coreengine/base/base.h"

#define PIECE(text) "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" text "\"}}]}\n\n"
#define THE_END                                                                                                        \
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"                                  \
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n"

/* How one request is answered; zeroed: not at all. */
struct plan {
    int status;
    const char *headers, *body; /* headers with their line ends; may be NULL */
    size_t n_numbered;          /* after the body, that many large pieces "0 ", "1 ", ..., and then the end */
    bool hangs;                 /* nothing more comes, and the connection stays */
    unsigned delay_ms;
    bool waits; /* for model_server_go_on() */
};

struct model_server {
    const struct plan *plan; /* the n-th request gets the n-th; further ones the last */
    size_t n_plan;
    int port;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    size_t n_requests, n_now, n_peak; /* so far; being answered now, at most */
    size_t n_connections, n_open;
    size_t n_written; /* bytes that the kernel took */
    bool goes_on;
    rv_buf bodies; /* of all requests, a line each */
    rv_buf heads;  /* of all requests */

    pthread_t thread; /* the rest is the thread's */
    uv_loop_t loop;
    uv_tcp_t listener;
    uv_async_t stop;
    struct link *links;
};

void model_server_start(struct model_server *s, const struct plan *plan, size_t n_plan);
void model_server_stop(struct model_server *s);
/** Wait until *n, one of the counters, is at most that. False: it did not within ten minutes. */
bool model_server_is_down_to(struct model_server *s, const size_t *n, size_t at_most);
/** Answers whose plan waits are given from now on. */
void model_server_go_on(struct model_server *s);
size_t model_server_count(struct model_server *s, const size_t *n);

#endif

/* Shared inside coreengine/model/http: libcurl as a table of functions, the client, a call, and the rules between them.
 *
 * One rule shapes the module: libcurl must not be entered from its own callbacks, and users' callbacks run inside
 * libcurl's. A request that a user makes in a callback (start, cancel, resume) is therefore noted in the call, the call
 * is put on the client's list of pending work, and client.c does the work after libcurl has returned. */
#ifndef RV_HTTP_INTERNAL_H
#define RV_HTTP_INTERNAL_H

#include <curl/curl.h>
#include <uv.h>

#include "coreengine/model/http/http.h"

/* Everything that is used of libcurl. */
#define RV_CURL_FUNCTIONS(X)                                                                                           \
    X(global_init)                                                                                                     \
    X(version)                                                                                                         \
    X(version_info)                                                                                                    \
    X(free)                                                                                                            \
    X(url)                                                                                                             \
    X(url_set)                                                                                                         \
    X(url_get)                                                                                                         \
    X(url_cleanup)                                                                                                     \
    X(slist_append)                                                                                                    \
    X(slist_free_all)                                                                                                  \
    X(easy_init)                                                                                                       \
    X(easy_setopt)                                                                                                     \
    X(easy_getinfo)                                                                                                    \
    X(easy_pause)                                                                                                      \
    X(easy_strerror)                                                                                                   \
    X(easy_cleanup)                                                                                                    \
    X(multi_init)                                                                                                      \
    X(multi_setopt)                                                                                                    \
    X(multi_assign)                                                                                                    \
    X(multi_add_handle)                                                                                                \
    X(multi_remove_handle)                                                                                             \
    X(multi_socket_action)                                                                                             \
    X(multi_info_read)                                                                                                 \
    X(multi_strerror)                                                                                                  \
    X(multi_cleanup)

struct rv_curl {
#define X(name) __typeof__(curl_##name) *name;
    RV_CURL_FUNCTIONS(X)
#undef X
    bool has_bundle; /* its file of system certificates can be read: the folder is not needed beside it */
};

/* Collects the lines of a head. */
enum rv_head_phase { RV_HEAD_STATUS, RV_HEAD_FIELDS, RV_HEAD_COMPLETE };
struct rv_head_reader {
    enum rv_head_phase phase;
    int status;
    size_t n_bytes;      /* of all heads and trailers so far */
    size_t n_fields;     /* of the present head */
    rv_buf text;         /* its fields, a line each */
    const char *problem; /* static; why a line was refused */
};

struct rv_http_call {
    rv_http *h;                 /* borrowed: the client */
    CURL *easy;                 /* owned */
    struct curl_slist *headers; /* owned */
    struct rv_http_events events;
    rv_http_call *prev, *next; /* among all of the client */
    rv_http_call *todo_next;   /* borrowed: its list is the client's `todo` */

    int64_t connect_us, first_byte_us, idle_us, total_us; /* limits; 0: none */
    size_t max_body, n_body;
    int64_t start_us, sent_us, answer_us, last_us; /* monotonic; 0: not yet. answer: the final answer's first line */
    int64_t connected_us;                          /* the first time; sent_us is the last time */
    curl_off_t n_received;                         /* as of the last time that idleness was looked into */
    size_t slot;                                   /* its place in the heap */
    int64_t due_us;                                /* its key there: never later than what is really due next */

    struct rv_head_reader head;
    enum rv_http_fault fault; /* ours, before libcurl's; RV_HTTP_OK: none */
    const char *reason;       /* static text to the fault, may be NULL */
    CURLcode code;            /* libcurl's verdict when is_over */
    int os_error;             /* of socket() */
    bool is_todo, is_fresh, is_cancelled, is_held, wants_resume, is_over, is_ended;
    rv_log *log;             /* borrowed */
    const rv_egress *egress; /* borrowed; NULL: anywhere */
    bool is_denied;
    char *host; /* with egress; without brackets; owned */
    int port;
    char *origin; /* "host:port", for messages; owned */
    char error[CURL_ERROR_SIZE];
};

struct rv_http {
    const struct rv_curl *curl; /* static */
    uv_loop_t *loop;            /* borrowed */
    bool runs_on;               /* the loop, after rv_http_free() */
    rv_log *log;                /* borrowed */
    CURLM *multi;               /* owned */
    char *user_agent;           /* owned */
    size_t max_idle;            /* connections kept for reuse */
    uv_timer_t curl_timer, clock;
    int64_t armed_us; /* what the clock is set to */
    size_t n_handles; /* of the loop that are not yet closed */
    int in_curl;
    rv_http_call *calls, *todo, **todo_end; /* calls: owned; todo: those that are to be looked at, borrowed */
    rv_http_call **due;                     /* a binary heap by due_us; n_calls of them; owned */
    size_t n_calls, due_cap;
};

/** Opens libcurl once in a process; never closed. Any thread. RV_E_NOT_FOUND, RV_E_VERSION, RV_E_NOMEM, RV_E_INTERNAL.
 */
RV_MUST_CHECK int http_curl_open(const struct rv_curl **out, rv_err **err);

int64_t http_now(void); /* monotonic, in microseconds */

/* client.c */
void http_todo(rv_http_call *c);                               /* have http_call_act() run from the loop */
void http_todo_drop(rv_http_call *c);                          /* not any more */
void http_arm(rv_http *h);                                     /* set the clock to what is due next */
RV_MUST_CHECK int http_due_add(rv_http_call *c, rv_err **err); /* counts it in h->n_calls */
void http_due_remove(rv_http_call *c);
void http_due_update(rv_http_call *c); /* its limits moved */

/* call.c */
void http_call_act(rv_http_call *c);               /* outside libcurl: what was noted in its callbacks */
void http_call_over(rv_http_call *c, CURLcode rc); /* libcurl is done with it */
void http_call_drop(rv_http_call *c);              /* ends it without a callback */

/* curl.c */
/** Checks the request and sets it on c->easy; sets c->origin and c->headers. */
RV_MUST_CHECK int http_configure(rv_http_call *c, const struct rv_http_request *req, rv_err **err);

bool http_is_scarce(int os_error); /* an errno that says that this process or machine has run out of something */
enum rv_http_fault http_fault_of(const rv_http_call *c);
#define RV_HTTP_TEXT_MAX 1024 /* bytes of a text for people: a quarter of what an error's text holds */
void http_fault_text(const rv_http_call *c, enum rv_http_fault fault, char out[RV_HTTP_TEXT_MAX]);

#endif

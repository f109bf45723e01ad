/* Shared by the files of this folder. */
#ifndef RV_SERVER_INTERNAL_H
#define RV_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "coreengine/app/app.h"
#include "coreengine/http/http.h"
#include "coreengine/protocols/protocols.h"
#include "coreengine/server/loop_internal.h"
#include "coreengine/server/server.h"
#include "coreengine/telemetry/telemetry.h"

#define SRV_MAX_ARGS   4                   /* segments of a path that are variable: no route has as many */
#define SRV_MAX_FIELDS 12                  /* further headers of an answer: handlers set fewer */
#define SRV_MAX_ANSWER ((size_t)256 << 20) /* bytes of an answer that is made as a whole: a state and its escapes */
#define SRV_MAX_LIMIT  1000 /* rows of one list: they are written in memory, and a client asks for the next ones */
#define SRV_LIMIT      50   /* when nothing is said: a page of a list for a person */

/* --- stream.c: an answer that comes from a loop, piece by piece --- */
struct srv_server;
struct srv_call;
struct srv_stream {
    atomic_int refs;
    struct srv_server *server;    /* outlives it */
    struct srv_call *call;        /* the loop's; NULL: the exchange has ended; borrowed */
    bool has_begun, has_ended;    /* the loop's; has_ended: its producer may be gone, and its end waits with the rest */
    atomic_size_t queued, unsent; /* bytes on their way to the connection; bytes that it has not sent yet */
    struct piece *first, *last;   /* the loop's: they wait until the connection has sent what it has; owned */
    atomic_bool is_gone, is_full; /* is_full: the producer waits for on_drain */
    struct srv_loop *loop;        /* where on_gone, on_drain and on_stop are called; of the producer; borrowed */
    void (*on_gone)(void *self);
    void (*on_drain)(void *self);
    void (*on_stop)(void *self);
    void *self;          /* borrowed */
    bool is_closed;      /* the producer's: it has ended the stream, and is told nothing more */
    struct piece *spare; /* the producer's: a message for its end, where memory is short; NULL: it was used; owned */
    struct srv_word words[SRV_N_WORDS];
};
/** On the loop: the answer of a call is a stream from now on. One reference is the caller's. NULL: no memory. */
struct srv_stream *srv_stream_new(struct srv_call *call, struct srv_loop *loop);
/* What a producer does, on its loop. Each may come at any time; what comes behind srv_stream_end() is lost. */
/** A header of the answer, before it begins. name: static. */
void srv_stream_field(struct srv_stream *st, const char *name, const char *value);
/** 200 and the headers, as events. */
void srv_stream_begin(struct srv_stream *st);
/** As lines of JSON. */
void srv_stream_begin_lines(struct srv_stream *st);
void srv_stream_write(struct srv_stream *st, rv_buf *bytes); /* takes the bytes; one that has failed cuts it */
/** Do at least that many bytes wait for the client? on_drain comes when none of them does any more. */
bool srv_stream_is_full(struct srv_stream *st, size_t limit);
/** The end of a stream that is whole, or that says itself that it broke; the producer's reference goes. */
void srv_stream_end(struct srv_stream *st);
/** In place of a stream: a whole answer of the call, whose status and body are set on the loop by srv_call_reply(). */
void srv_stream_answer(struct srv_stream *st, int status, const char *type, rv_buf *body);
/** In place of a stream: an error; err is taken. A stream that has begun is cut, without its last chunk, so that its
 * client does not take what it has for the whole. */
void srv_stream_fail(struct srv_stream *st, int rc, rv_err *err);
/** Another producer answers the call: `to` is called on the loop; c NULL: its client has left. */
void srv_stream_move(struct srv_stream *st, void (*to)(struct srv_call *c, void *arg), void *arg);

/* --- call.c: a request, from its head to its answer --- */
struct srv_route;
struct srv_handles {          /* what one thread that works at requests has */
    struct srv_handles *next; /* of those that are free; guarded */
    struct rv_app_sources sources;
};
struct srv_call {
    struct srv_server *server;          /* outlives it */
    rv_httpd_exchange *x;               /* held by the call until its answer; loop thread; borrowed */
    const struct srv_route *route;      /* static */
    const struct rv_httpd_request *req; /* borrowed until the answer begins */
    char *args[SRV_MAX_ARGS], *user;    /* owned: the variable segments; whose rows are meant, NULL: not said */
    size_t n_args;
    struct srv_message worked;    /* tells the loop that it was worked at */
    struct srv_call *queued_next; /* that waits for a thread, too; of hands.c; borrowed */
    /* while it is worked at */
    bool waits;      /* for another server; of hands.c */
    bool is_crowded; /* and too many do */
    struct rv_identity who;
    struct rv_app app;           /* for who; scope borrows from it */
    struct srv_handles *handles; /* of the thread that works at it; else NULL; borrowed */
    rv_store *store;             /* of the handles; borrowed */
    json_object *body;           /* of routes that take JSON; owned */
    void *made;                  /* by work, for begin; owned, see free_made */
    void (*free_made)(void *made);
    /* the answer */
    char run_id[RV_STORE_MAX_ID + 1]; /* that it is about, for the log; "": see srv_call_run() */
    int status;
    const char *type; /* static */
    rv_buf out;
    rv_str fixed;                                 /* in place of out: outlives the loop */
    struct rv_httpd_field fields[SRV_MAX_FIELDS]; /* name static, value owned */
    size_t n_fields;
    int rc;
    rv_err *err;                     /* owned; of rc */
    const char *code;                /* of the error, in place of that of rc; static; NULL: none */
    json_object *details;            /* of a refusal, in place of its text where p8 has an object; owned; NULL: none */
    char param[RV_REQUEST_MAX_PATH]; /* member of the body that is wrong */
    bool is_refused;
    struct rv_refusal *refusal; /* owned; NULL: a stream has begun, which can be refused no more */
    struct srv_stream *stream;  /* NULL: none; borrowed */
};
rv_str srv_call_run(const struct srv_call *c); /* that it named or started, or that its answer names; empty: none */
/** A header of the answer. Text that is not fit for one is left out. */
void srv_call_field(struct srv_call *c, const char *name, const char *value);
void srv_call_field_buf(struct srv_call *c, const char *name, const rv_buf *value);
rv_jw srv_call_json(struct srv_call *c, int status); /* a writer for a JSON answer with that status */
/** A number of the query. RV_E_INVALID names it. */
RV_MUST_CHECK int srv_call_int(const struct srv_call *c, const char *name, int64_t least, int64_t most, int64_t *inout,
                               rv_err **err);
bool srv_call_query(const struct srv_call *c, const char *name, rv_str *out);
/** A text of the query, the caller's; *out NULL: none, or empty. */
RV_MUST_CHECK int srv_call_dup_text(const struct srv_call *c, const char *name, char **out, rv_err **err);
int64_t srv_now_us(void);
void srv_call_reply(struct srv_call *c); /* on the loop: what rc, err, status and out say; frees the call */
void srv_call_fault(struct srv_call *c, int status, const char *code, const char *detail); /* in place of an answer */
void srv_call_free(struct srv_call *c);

/* --- handle.c --- */
extern const struct rv_httpd_handler srv_handler; /* self: the server */
void srv_call_work(struct srv_call *c);           /* on a thread of hands.c */

/* --- routes.c --- */
enum srv_scope {                 /* beside enum rv_api_scope */
                 SRV_OPEN = -1,  /* no key is needed, and work is done on the loop, without a store */
                 SRV_KNOWN = -2, /* anyone who is let in */
                 SRV_LOGIN = -3, /* work judges who asks by itself: with a store, and without c->who and c->app.scope */
                 SRV_ASKS = -4,  /* no key is needed, and work looks at the store, which may be away: c->store NULL */
};
/* What it points to is static. */
struct srv_route {
    enum rv_method method;
    const char *path; /* "/runs/{id}" */
    int scope;        /* enum rv_api_scope or enum srv_scope */
    enum rv_protocol_family family;
    /** On a thread of hands.c, with c->who, c->store, c->app. */
    int (*work)(struct srv_call *c, rv_err **err);
    /** On the loop when work has succeeded: makes a stream. NULL: the answer is what work made. */
    void (*begin)(struct srv_call *c);
    const char *summary, *query; /* "limit offset"; NULL: none */
    const char *takes, *gives;   /* schemas; see the table; takes NULL: nothing */
    size_t max_body;             /* 0: 1 MiB */
};
extern const struct srv_route srv_routes[];
extern const size_t srv_n_routes;
/** The route of a method and a path. NULL: none; *allowed then has a bit for each method that the path has (0: it is
 *  unknown). args borrow from the segments. */
const struct srv_route *srv_route_find(enum rv_method method, const rv_str *segments, size_t n,
                                       rv_str args[SRV_MAX_ARGS], size_t *n_args, unsigned *allowed);

/* --- answers.c --- */
/** The schema of a type, such as "[Session]" or "text|null". */
void srv_write_answer_type(rv_jw *w, rv_str type);
/** All named schemas of answers, as members of an object. */
void srv_write_answers(rv_jw *w);

/* --- watch.c: what monitoring is told; any thread --- */
struct srv_watch;
RV_MUST_CHECK int srv_watch_new(const struct rv_server_opts *opts, struct srv_watch **out, rv_err **err);
struct srv_trace { /* what a request says about the trace that it belongs to */
    struct rv_trace_context caller;
    bool is_trusted;                 /* its spans belong to that trace; else there is only a link to it */
    char parent[RV_TRACEPARENT_MAX]; /* the header again; "": there is none, or it is not trusted */
};
struct srv_trace srv_watch_trace(const struct srv_call *c); /* as its headers say */
/** The header tracestate beside it, of the request. len 0: none. */
rv_str srv_watch_trace_state(const struct srv_call *c, const struct srv_trace *trace);
/** An event of a run. key: whatever stands for the run while it is driven here; trace NULL: one of its own. */
void srv_watch_event(struct srv_watch *w, const void *key, const struct srv_trace *trace, json_object *event);
/** The run ends in this process, or goes on in another one: the key is not used any more. */
void srv_watch_over(struct srv_watch *w, const void *key);
void srv_watch_request(struct srv_watch *w, const struct rv_httpd_access *a);
void srv_watch_free(struct srv_watch *w);

/* Of the worker of this process. */
enum srv_worker_state {
    SRV_WORKER_NONE,
    SRV_WORKER_WORKS,
    SRV_WORKER_WAITS, /* to be started again: something is lacking */
    SRV_WORKER_ENDED,
    SRV_N_WORKER_STATES
};

/* --- server.c --- */
struct srv_hands;
struct srv_turns;
struct srv_follows;
struct srv_rejoins;
struct srv_mcps;
struct srv_server {
    const struct rv_server_opts *opts; /* borrowed */
    struct rv_app app;                 /* of the server: without a user */
    uv_loop_t loop;
    struct srv_loop server_loop;      /* of `loop` */
    rv_httpd *httpd;                  /* owned, as the tables below */
    rv_auth *auth;                    /* asked on the loop, too: that waits for no store */
    pthread_mutex_t handles_lock;     /* guards free_handles and their number; leaf */
    struct rv_store_health health;    /* of all handles of the store */
    _Atomic int64_t probed_us;        /* when /readyz last tried whether it can be written */
    struct srv_handles *free_handles; /* that are not in use; owned */
    size_t n_free_handles;
    struct srv_hands *hands;
    struct srv_turns *turns;
    struct srv_follows *follows;
    struct srv_rejoins *rejoins;
    struct srv_mcps *mcps;
    struct srv_watch *watch;
    struct srv_document *openapi; /* never changes */
    rv_app_streams *streams;
    char owner[RV_OWNER_MAX];
    atomic_bool is_draining, is_locked; /* locked: the store had a key of callers when it was last seen */
    atomic_bool is_over; /* and its grace has passed: handlers wait for providers and servers no longer */
    struct rv_worker_stop *worker_stop; /* of the worker of this process; NULL: there is none; borrowed */
    atomic_int worker;                  /* enum srv_worker_state */
    uv_signal_t signals[3];
    uv_timer_t tick;
};

/* --- places.c --- */
RV_MUST_CHECK int srv_handles_take(struct srv_server *s, struct srv_handles **out, rv_err **err);
void srv_handles_give(struct srv_server *s, struct srv_handles *d);
void srv_handles_close(struct srv_server *s); /* those that are not in use */

#define SRV_RETRY_S "5" /* after which what the machine lacked, or another process, may be back */

/* --- turns.c: turns of chats, on a loop with one engine --- */
/* A turn that is asked for. All texts are owned. */
struct srv_turn_ask {
    struct rv_request req;
    struct rv_protocol_opts opts; /* kind and what it tells; ids are filled in */
    char *agent, *model, *session, *session_name, *session_type, *section, *client, *user_name;
    struct rv_chat_request request;             /* borrows from req and made */
    json_object *made;                          /* for it, and for an answer; owned; NULL: nothing */
    struct srv_follow_ask *model_run;           /* owned; the model is a pipeline: its run is told; NULL: a turn */
    bool keeps_history;                         /* the earlier messages of the request begin its session */
    bool is_eval;                               /* an evaluation, which tools are told */
    char run[RV_STORE_MAX_ID + 1];              /* the run that it will be */
    int64_t ordinal;                            /* of the streams of that run */
    rv_buf open;                                /* what its stream is made with */
    int64_t open_us;                            /* and when */
    int64_t stays_us;                           /* how long it goes on without a client, or RV_SERVER_STAYS */
    char *tenant, *user, *user_email, *by_name; /* who asks: what the turn has of c->who; NULL: none */
    struct srv_trace trace;
    char *trace_state; /* tracestate of a caller that is trusted; NULL: none */
};
RV_MUST_CHECK int srv_turns_new(struct srv_server *s, struct srv_turns **out, rv_err **err);
/** On the loop; ask is taken. */
void srv_turns_ask(struct srv_turns *t, struct srv_call *c, struct srv_turn_ask *ask);
struct srv_message;
/** Another client follows the turn of that run, or does not any more: *leave is what is needed to say so, and empty
 *  afterwards. On any thread. */
RV_MUST_CHECK int srv_turns_come(struct srv_turns *t, const char *run, struct srv_message **leave, rv_err **err);
void srv_turns_leave(struct srv_turns *t, struct srv_message **leave);
void srv_turns_drain(struct srv_turns *t); /* on the loop: end when no turn is left */
void srv_turns_stop(struct srv_turns *t);  /* on the loop: turns that are left are cancelled */
void srv_turns_free(struct srv_turns *t);  /* waits for its thread */
const struct rv_quotas *srv_turns_quotas(const struct srv_turns *t); /* NULL: there are none; never changes */

/* --- handlers, by area --- */
RV_MUST_CHECK int srv_healthz(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_readyz(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_openapi(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_metrics(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_mcp_post(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_mcp_delete(struct srv_call *c, rv_err **err);
void srv_mcp_begin(struct srv_call *c);
RV_MUST_CHECK int srv_models(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_model(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_chat_agui(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_chat_openai(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_chat_responses(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_chat_remlight(struct srv_call *c, rv_err **err);
void srv_chat_begin(struct srv_call *c);
RV_MUST_CHECK int srv_sessions_list(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_session_show(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_session_messages(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_session_export(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_session_clone(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_session_change(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_session_delete(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_agents_list(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_agent_show(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_agent_content(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_agent_put(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_agent_check(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_agent_delete(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_agent_versions(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_entities_list(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_entities_put(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_entity_show(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_entity_delete(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_kinds(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_query(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_query_raw(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_feedback(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_usage(struct srv_call *c, rv_err **err);
#endif

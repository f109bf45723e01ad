/* Services that capabilities ask for: asks.c brings an ask from its worker to the loop and the answer back, services.c
 * has the bus that they go over, services_http.c the requests to the outside. pieces.c brings what calls say on the
 * way. */
#ifndef RV_ENGINE_SERVICES_H
#define RV_ENGINE_SERVICES_H

#include "coreengine/bus/bus.h"
#include "coreengine/engine/engine_internal.h"
#include "coreengine/telemetry/telemetry.h"

/* One ask on its way. The worker waits for it; the loop has it in between. */
struct asks;
/* The worker owns it until it is left. */
struct ask {
    struct ask *next;        /* the next ask of the same list */
    struct asks *list;       /* borrowed */
    struct rv_service_ask q; /* its texts follow this structure */
    uint64_t id;             /* of the bus; the loop's */
    /* The lock of the list guards these, but for the bytes of the answer while a job runs: they are the worker's. */
    const struct rv_tool_work *work; /* that asks; borrowed */
    enum ask_state {
        ASK_NEW,  /* it was not looked at */
        ASK_LOOP, /* the loop has it */
        ASK_JOB,  /* the worker is to run the job, or does so */
        ASK_RAN,  /* it did: the loop tells the bus */
        ASK_DONE, /* the worker takes the answer */
    } state;
    bool is_left;               /* the worker waits no longer: the loop frees it */
    bool is_dropped;            /* the loop has nothing to do with it any more: the worker frees it */
    struct rv_service_job *job; /* owned */
    rv_buf answer;
    rv_err *why; /* NULL: there is an answer; owned */
};

/* asks.c. Those of a pool of workers. */
struct asks *asks_new(void (*wake)(void *self), void *self); /* NULL: no memory. wake: any thread */
void asks_free(struct asks *d);                              /* no worker is left */
/** Worker: ask and wait. As `ask` of struct rv_tool_work. */
RV_MUST_CHECK int asks_put(struct asks *d, const struct rv_tool_work *work, const struct rv_service_ask *q,
                           rv_buf *answer, rv_err **err);
/** Loop: the next one that is new (then it is the loop's), has run its job, or was left; NULL: there is none. One that
 * was left is out of the list, and the caller frees it. */
struct ask *asks_take(struct asks *d, enum ask_state *was);
void engine_ask_free(struct ask *a);
void asks_run(struct asks *d, struct ask *a, struct rv_service_job *job); /* loop: the worker runs that; taken */
/** Loop: the answer is a->answer, or why (taken). The worker may free a at once. */
void asks_done(struct asks *d, struct ask *a, rv_err *why);
/** Loop: the next ask of that work (NULL: of any) is dropped. Gives its id of the bus, 0: the bus has not seen it;
 * false: there is none. */
bool asks_drop(struct asks *d, const struct rv_tool_work *work, uint64_t *id);
void asks_stop(struct asks *d); /* loop: no answers and no wakes from now on */

/* pieces.c. What the calls of a pool say before they end. */
struct pieces;
struct pieces *engine_pieces_new(void (*wake)(void *self), void *self); /* NULL: no memory. wake: any thread; or NULL */
void engine_pieces_free(struct pieces *p);
/** Worker: a piece of the answer of a provider, {"text": ...} or {"thinking": ...}. Not 0: no more are wanted. */
int engine_pieces_put(struct pieces *p, struct rv_tool_work *w, rv_str json);
void engine_pieces_put_progress(struct pieces *p, struct rv_tool_work *w, const struct rv_tool_progress *progress);
/** Loop: nothing of that work, which is cancelled, is told any more; NULL: of any, and no wakes from now on. */
void engine_pieces_drop(struct pieces *p, const struct rv_tool_work *w);
void engine_pieces_tell(struct pieces *p); /* loop: what has come since it was called last */

struct services {
    rv_bus *bus;              /* owned */
    struct handler *handlers; /* one for each service; owned */
    rv_egress *egress;        /* NULL until something is asked over HTTP; owned */
    struct fetch *fetches;    /* under way: services_http.c; owned */
};

/* services.c. One ask while it is begun. What it points to is borrowed for the call. */
struct service_call {
    rv_engine *e;
    rv_exec *x; /* the run that the call belongs to */
    uint64_t id;
    struct ask *ask;
    json_object *args; /* borrowed */
};
/** Answer with what was written, or why not (taken). */
static inline void engine_service_answer(const rv_engine *e, uint64_t id, const rv_buf *text, rv_err *why)
{
    rv_bus_answer(e->services->bus, id, text ? rv_buf_str(text) : RV_STR_LIT("{}"), why);
}

/* --- services.c --- */

void engine_services_tick(rv_engine *e); /* takes up what workers ask, and ends what is late */
int64_t
engine_services_due_us(const rv_engine *e); /* when it is to be called next, by the real clock; RV_NEVER: not at all */
void engine_services_fini(rv_engine *e);    /* before the workers and the client of HTTP */

/* workers.c, observe.c, model.c */
struct asks *engine_pool_asks(struct pool *p);
/** An event that the core did not make: no journal has it. */
void engine_observe_unkept(rv_exec *x, enum rv_emit_kind kind, rv_str line);
RV_MUST_CHECK int engine_http(rv_engine *e, rv_err **err); /* e->http is there */
/** An environment variable, as the engine's caller lets it see them. NULL: not set. */
const char *engine_env(const rv_engine *e, const char *name);

#define RV_TRACE_LINE_MAX (RV_TRACESTATE_MAX + 16) /* of a header with its name */
/** model.c: what a request of that call says about the trace of its run; false: nothing. */
bool exec_trace(const rv_exec *x, int64_t call_id, struct rv_trace_headers *out);
/** The headers of a request with those of its trace behind them: lines has room for n + 2, parent and state are their
 * memory. 0: the request names a trace by itself. */
size_t engine_trace_lines(const struct rv_trace_headers *t, const char *const *headers, size_t n, const char **lines,
                          char parent[RV_TRACE_LINE_MAX], char state[RV_TRACE_LINE_MAX]);

/* services_http.c */
RV_MUST_CHECK int engine_service_http(const struct service_call *c, rv_err **err);
void engine_service_http_give_up(rv_engine *e, uint64_t id);

#endif

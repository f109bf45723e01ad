/* One thing that will happen to a run, and the queue of all: calls.c. Everything here belongs to the loop thread. */
#ifndef RV_ENGINE_CALL_H
#define RV_ENGINE_CALL_H

#include "coreengine/base/base.h"
#include "coreengine/engine/engine.h"

#define RV_ENGINE_MAX_ERROR ((size_t)2 << 20) /* text of a failed call; more than a script can hold */
#define RV_ENGINE_TYPE_MAX  80 /* bytes of the name of an error type: RV_PLUGIN_MAX_NAME is 64, ours have some 30 */
#define RV_NOWHERE          SIZE_MAX /* place of a call that is in no queue */

struct call;
enum call_more { CALL_MORE_YES, CALL_MORE_NO, CALL_MORE_LATER };
/* Something that is released together with a call. */
struct call_hold {
    void (*release)(struct call *c);
    /* May a call that was made send another request? It counts as the call did. NO: *why (the caller's) says why.
     * LATER: ask again when the call is due. */
    enum call_more (*more)(struct call *c, rv_err **why);
    bool counts_charges;  /* it is settled once: no request may be repeated that may have been charged for */
    bool counts_requests; /* each but the first asks for `more` */
};
/* Something that will happen to a run: an answer, a timer, a part of a stream, an answer of a person. */
struct call {
    struct call *prev, *next; /* of the same run */
    rv_exec *x;               /* borrowed: the run has the call */
    size_t heap_at;           /* position in the queue */
    int64_t due_us, call_id;
    enum call_kind {
        CALL_BEGIN,  /* perform what the first step asked for, or what a recovered run had asked for */
        CALL_ANSWER, /* tell the core */
        CALL_RESUME, /* answer the interrupt from the script */
        CALL_TOLD,   /* tell the core what a person answered while it works */
        CALL_EXPIRE, /* no one answered a question in time: of a run that is held while it waits */
        CALL_STUCK,  /* end the run as failed: the engine cannot go on with it */
    } kind;
    enum rv_event_kind event;
    int stage;
    int64_t visit;
    int agent; /* of `pipeline`; that of a stage of an inner run is not `stage` */
    int64_t started_us, deadline_us;
    int64_t allowed_us;          /* the time that the core gave it; 0: unknown, another process has used a part */
    bool has_own_limit;          /* that time is timeout_ms of the entry's specification */
    struct rv_plugin_work *work; /* of an entry, under way; then due_us is when to give up; owned */
    struct rv_tool_call tool; /* for a call of a tool; pending while it has a source; then due_us is when to give up */
    int64_t patience_us;      /* simulated time: real time at which the job is given up */
    const struct rv_origin *origin;     /* of a delegated agent; borrowed from the run; NULL: the stage's own */
    bool is_budgeted;                   /* a model call: the run or one around it has a budget */
    bool is_muted, mutes_calls;         /* people are not to be shown its words; nor the calls of its reply */
    const struct rv_pipeline *pipeline; /* has its names and limits; borrowed; outlives the run */
    rv_buf heard;                       /* of a model call of a run that is kept: the text so far */
    const char *what;                   /* "tool", "hook", ...: for messages; static */
    char *name;                         /* of the tool, entry or role; owned */
    char health_key[RV_HASH_MAX];       /* of the record of the tool's health; "": it has none */
    bool is_played;                     /* and the record is the run's: its script answers */
    bool reports_error, asks;
    int n_progress;      /* events about its progress */
    int64_t progress_us; /* when the last one was told */

    bool failed, retryable;
    char error_type[RV_ENGINE_TYPE_MAX];  /* "": by kind */
    const char *code;                     /* of the failure, static; NULL: by error_type and kind */
    rv_err *causes;                       /* of the failure; owned; NULL: none */
    rv_buf text;                          /* reply or error */
    rv_buf partial;                       /* of a model call that failed: what came before */
    struct rv_llm_answer answer;          /* of a model call; its views live in the script, `llm` or `model` */
    struct rv_llm_reply *llm;             /* owned; NULL: none */
    struct model_call *model;             /* over HTTP; owned; NULL: none */
    struct call_hold *hold;               /* a model call of a run with quotas: its reservation; owned; NULL: none */
    const struct rv_script_delta *deltas; /* borrowed from the script; still to be streamed */
    size_t n_deltas, delta_at;
    bool told_text;                                    /* a piece of the text was handed out */
    uint64_t output_calls[RV_LLM_MAX_TOOL_CALLS / 64]; /* bits: indices of calls that hand over an agent's output */
    int64_t ids_upto;                                  /* see rv_call_write_name() */
    json_object *ids;                                  /* of calls before this reply, as keys; owned; NULL: none */
    json_object *taken;                                /* with those of the reply; owned; NULL: it has had none */
    size_t n_named;                                    /* calls of the reply that are in it */
    int64_t delay_us;
    struct rv_response response; /* RESUME: borrowed from the script; TOLD: owned */
    char question[RV_ID_MAX];    /* RESUME: memory of the response's id */
    struct rv_effect *asked;     /* owned; while a probe is under way: the call that may have happened */
    bool is_once;                /* a tool's, and it must not be repeated */
    bool unknown;                /* it is unknown whether the call happened */
    bool is_parked;              /* it happened while a step was being kept: told when that is durable */
};
/* Lets `make` begin a model call now, or later when it is allowed. */
typedef int rv_gate(struct call *c, struct rv_effect *e,
                    int (*make)(rv_exec *x, struct call *c, struct rv_effect *e, rv_err **err), rv_err **err);

/* A heap by (due, call id, run): the order of answers does not depend on who was faster. */
struct due_queue {
    struct call **items; /* owned; the calls are their runs' */
    size_t n, cap;
};
/** NULL: empty. */
static inline struct call *engine_due_top(const struct due_queue *q)
{
    return q->n ? q->items[0] : NULL;
}
void engine_due_moved(struct due_queue *q, struct call *c); /* its due time was changed */

struct call *engine_call_new(rv_exec *x, enum call_kind kind, int64_t due_us,
                             int64_t call_id); /* queued; NULL: no memory */
void engine_call_detach(struct call *c);       /* out of the queue and of its run's list */
void engine_call_free(struct call *c);         /* gives up its job */
void engine_call_free_all(rv_exec *x);
struct call *engine_call_find(rv_exec *x, int64_t call_id);
const char *engine_call_stage(const struct call *c); /* the name of its stage, borrowed; NULL: it has none */
void engine_call_park(struct call *c);               /* it happens once the run is unparked */
void engine_calls_unpark(rv_exec *x);
/** End the call as failed: text from a format; type "" for the kind's default. The core receives the failure at
 * due_us. */
void engine_call_fail(struct call *c, const char *type, bool retryable, const char *fmt, ...) RV_PRINTF(4, 5);
/** End the call as failed because it could not be made; takes *err, the reason. RV_E_NOMEM: nothing is taken. */
RV_MUST_CHECK int engine_call_fail_with(struct call *c, const char *type, int rc, rv_err **err);
void engine_call_timed_out(struct call *c);
bool engine_call_is_under_way(const struct call *c); /* a worker or a source has it and has not answered yet */
/** The call is under way: it is due at its deadline. */
void engine_call_await(struct call *c);
void engine_call_say_limit(struct call *c); /* appends to the text of a timeout which key gives the model more time */
/** The result of a model call; its views stay borrowed from reply. */
void engine_call_take_llm(struct call *c, const struct rv_llm_reply *reply);
void engine_call_answered(struct call *c); /* its answer is there: it is due now */
/** Append the partial answers of the pending model calls in that list, as [{call_id, text}]; nothing if there are none.
 * If they exceed the limit of out, each is cut to an equal share and ends with three dots. */
void engine_heard_write(const struct call *calls, rv_buf *out);

/* --- answers that a host gives while the run works --- */

/** Deep copies, which engine_response_fini() frees. RV_E_NOMEM: *to can be freed. */
RV_MUST_CHECK int engine_response_copy(const struct rv_response *from, struct rv_response *to, rv_err **err);
void engine_response_fini(struct rv_response *r);
/** An answer to a question of a branch while others run: told to the core in the next turn. */
RV_MUST_CHECK int exec_tell_later(rv_exec *x, const struct rv_response *response, rv_err **err);
/** The run waits, and no answer is on its way: it is over, until its first question expires where it is held. */
RV_MUST_CHECK int exec_pause(rv_exec *x, rv_err **err);
bool exec_is_told(const rv_exec *x); /* is an answer on its way? */

#endif

/* Shared by the files of shell only. Everything here belongs to the loop thread, except struct pool and the parts of a
 * job that its comment names. */
#ifndef RV_ENGINE_INTERNAL_H
#define RV_ENGINE_INTERNAL_H

#include <stdatomic.h>

#include "coreengine/engine/engine.h"

#define RV_ENGINE_MAX_WORKERS 256 /* threads; more than any machine of ours has cores */
#define RV_ENGINE_WORKERS     64  /* unless told: most calls wait for something, and need no core for it */
#define RV_ENGINE_IDLE_US     INT64_C(10000000) /* unless told: then a worker without work leaves */
#define RV_ENGINE_MAX_STUCK   64                /* given-up calls that still run; further calls fail at once */
#define RV_ENGINE_MAX_ERROR   ((size_t)2 << 20) /* text of a failed call; more than a script can hold */
#define RV_ENGINE_TYPE_MAX    80                /* name of an error type */
#define RV_NEVER              INT64_MAX         /* a due time that does not come */
#define RV_NOWHERE            SIZE_MAX          /* place of a call that is in no queue */

/* --- job.c: one call; workers.c: a bounded pool of threads --- */

enum job_state { JOB_QUEUED, JOB_RUNNING, JOB_DONE };
/* One call into a capability. The loop makes it, a worker fills in the second half, then it is the loop's again. A job
 * that was given up while it runs is the worker's, who frees it. */
struct job {
    struct job *next; /* guarded by the pool's lock, like the next two */
    enum job_state state;
    bool given_up;
    atomic_bool cancelled;     /* set by the loop, read by the capability */
    struct rv_tool_work *work; /* owned: a tool's call, of which the source has the rest; NULL: another entry's */
    rv_plugins *plugins;       /* borrowed; outlives the call, see rv_engine_settle() */
    enum rv_name_kind kind;
    char *name, *args, *run_id, *stage, *user_id, *session_id, *key, *context; /* owned */
    size_t args_len;
    int64_t timeout_ms;
    struct call *call; /* loop only */

    bool failed;
    char error_type[RV_ENGINE_TYPE_MAX];
    const char *code; /* of the failure, static; NULL: by error_type */
    rv_err *causes;   /* of the failure; owned */
    rv_buf error, reply;
    struct rv_llm_reply *llm; /* of a provider; owned. NULL: memory ran out, which error says */
    struct pool *pool;        /* where it runs; borrowed */
};
void rv_job_free(struct job *j);
void rv_job_run(struct job *j); /* on a worker: makes the call and fills in what it came to */
/* A piece of the answer that a provider makes on a worker. */
struct piece {
    struct piece *next;
    struct job *job; /* borrowed */
    bool is_thinking;
    char *text; /* owned */
    size_t len;
};
void rv_piece_free(struct piece *p);

struct pool;
/** Called by a worker: passes the piece to the loop, or frees it. Nonzero: no more pieces of that job are wanted. */
int rv_pool_take_piece(struct pool *p, struct piece *piece);
/** wake is called from a worker, under the pool's lock, whenever a job is done; NULL: never. */
RV_MUST_CHECK int rv_pool_new(size_t n_workers, int64_t idle_us, void (*wake)(void *self), void *self,
                              struct pool **out, rv_err **err);
/** Frees queued and finished jobs, ends the workers and waits for them, except for those whose job was given up. The
 * caller has given up all running jobs before. */
void rv_pool_free(struct pool *p);
/** Takes j on success. RV_E_LIMIT when too many calls are stuck, RV_E_INTERNAL when no thread can be made. */
RV_MUST_CHECK int rv_pool_submit(struct pool *p, struct job *j, rv_err **err);
/** The answer is not wanted any more: takes j, whatever its state. */
void rv_pool_give_up(struct pool *p, struct job *j);
/** The jobs that are done, first done first; a list by `next`. *pieces receives the pieces that were handed out until
 * then, in order, except those of jobs that were given up. The caller owns both lists. */
struct job *rv_pool_take_done(struct pool *p, struct piece **pieces);
/** Wait until some job is done, was poked, or that long has passed. */
void rv_pool_wait(struct pool *p, int64_t us);
void rv_pool_poke(struct pool *p); /* any thread */
/** Wait until no call runs, at most that long. */
bool rv_pool_settle(struct pool *p, int64_t us);

/* --- writer.c: the store's own thread --- */

/* Something to be written: embedded in what it belongs to, and the thread's from submit to done. */
struct write {
    struct write *next; /* guarded by the writer's lock */
    /** In a transaction with others; called again alone when that fails. */
    int (*write)(struct write *w, rv_store *store, rv_err **err);
    void (*rest)(struct write *w, rv_store *store); /* once that is durable; may be NULL */
    void (*done)(struct write *w);                  /* on the loop */
    int64_t until_us;                               /* when its lease ends */
    bool is_written;                                /* guarded by the lock */
    int rc;                                         /* when it is done: what it came to */
    rv_err *err;                                    /* why; its owner's */
};
struct writer;
/** RV_E_STATE: that store writes without waiting. wake is called on the thread when something is done. */
RV_MUST_CHECK int rv_writer_new(const rv_store *store, struct rv_clock clock, void (*wake)(void *self), void *self,
                                struct writer **out, rv_err **err);
void rv_writer_free(struct writer *o); /* when all is written */
void rv_writer_submit(struct writer *o, struct write *w);
struct write *rv_writer_take_done(struct writer *o, size_t n); /* at most n, by `next`, first written first */
/** Blocks until that one is written, and takes it: done is not called. */
void rv_writer_wait_for(struct writer *o, struct write *w);

/* --- due.c: what happens when --- */

/* Something that will happen to a run: an answer, a timer, a part of a stream, an answer of a person. */
struct call {
    struct call *prev, *next; /* of the same run */
    rv_exec *x;
    size_t heap_at; /* position in the queue */
    int64_t due_us, call_id;
    enum call_kind {
        CALL_BEGIN,  /* perform what the first step asked for, or what a recovered run had asked for */
        CALL_ANSWER, /* tell the core */
        CALL_RESUME, /* answer the interrupt from the script */
    } kind;
    enum rv_event_kind event;
    int stage;
    int64_t started_us, deadline_us;
    int64_t allowed_us;       /* the time that the core gave it; 0: unknown, another process has used a part */
    struct job *job;          /* under way on a worker; then due_us is when to give up */
    struct rv_tool_call tool; /* for a call of a tool; pending while it has a source; then due_us is when to give up */
    int64_t patience_us;      /* simulated time: real time at which the job is given up */
    const struct rv_origin *origin;     /* of a delegated agent; NULL: the stage's own; lives as long as the run */
    bool is_muted;                      /* people are not to be shown its words */
    const struct rv_pipeline *pipeline; /* has its names and limits; lives as long as the run */
    rv_buf heard;                       /* of a model call of a run that is kept: the text so far */
    const char *what;                   /* "tool", "hook", ...: for messages; static */
    char *name;                         /* of the tool, entry or role; owned */
    int health;                         /* index of the tool's health; -1: none */
    bool reports_error;

    bool failed, retryable;
    char error_type[RV_ENGINE_TYPE_MAX];  /* "": by kind */
    const char *code;                     /* of the failure, static; NULL: by error_type and kind */
    rv_err *causes;                       /* of the failure; owned; NULL: none */
    rv_buf text;                          /* reply or error */
    rv_buf partial;                       /* of a model call that failed: what came before */
    struct rv_llm_answer answer;          /* of a model call; its views live in the script, `llm` or `model` */
    struct rv_llm_reply *llm;             /* owned; NULL: none */
    struct model_call *model;             /* over HTTP; owned; NULL: none */
    const struct rv_script_delta *deltas; /* borrowed from the script; still to be streamed */
    size_t n_deltas, delta_at;
    bool told_text;                                    /* a piece of the text was handed out */
    uint64_t output_calls[RV_LLM_MAX_TOOL_CALLS / 64]; /* bits: indices of calls that hand over an agent's output */
    int64_t ids_upto;                                  /* see rv_call_name() */
    json_object *ids;                                  /* of calls before this reply, as keys; owned; NULL: none */
    json_object *taken;                                /* with those of the reply; owned; NULL: it has had none */
    size_t n_named;                                    /* calls of the reply that are in it */
    int64_t delay_us;
    struct rv_response response; /* RESUME; borrowed from the script */
    struct rv_effect *asked;     /* owned; while a probe is under way: the call that may have happened */
    bool unknown;                /* it is unknown whether the call happened */
    bool is_parked;              /* it happened while a step was being kept: told when that is durable */
};
/* A heap by (due, call id, run): the order of answers does not depend on who was faster. */
struct due_queue {
    struct call **items;
    size_t n, cap;
};
RV_MUST_CHECK int rv_due_push(struct due_queue *q, struct call *c); /* RV_E_NOMEM */
struct call *rv_due_top(const struct due_queue *q);                 /* NULL: empty */
void rv_due_remove(struct due_queue *q, struct call *c);
void rv_due_moved(struct due_queue *q, struct call *c); /* its due time was changed */
void rv_due_fini(struct due_queue *q);

/* --- engine --- */

struct tool_record {
    char *name; /* owned */
    struct rv_tool_health health;
};

struct shell_loop; /* libuv's part */
struct model_call; /* model.c */

struct rv_engine {
    struct rv_engine_opts opts;
    struct rv_clock clock;
    int64_t virtual_us;
    rv_exec *execs;
    uint64_t n_started;
    struct due_queue due;
    _Atomic(struct pool *) pool;       /* NULL until a capability is called; atomic for rv_engine_cancel_all() */
    _Atomic(struct shell_loop *) loop; /* NULL until a caller waits in real time; atomic for the same reason */
    atomic_bool cancel_all;            /* any thread */
    bool any_cancel;                   /* some run has cancel_asked */
    struct writer *writer;             /* NULL: steps are kept by the loop thread; see kept.c */
    struct lease_write *lease_write;   /* under way; NULL: none; see lease.c */
    size_t n_live;                     /* runs that are not over */
    size_t n_untold;                   /* runs that are over, and on_over has not been told */
    unsigned n_turns;
    struct tool_record *tools;
    size_t n_tools, cap_tools;
    rv_index tool_index;
    int64_t blocked_until_us;        /* later than that no breaker is open */
    rv_http *http;                   /* NULL until a model is asked over HTTP */
    rv_providers *providers;         /* NULL until a model is asked over HTTP */
    int64_t renew_at_us, look_at_us; /* when leases are renewed, and cancellations looked for; see lease.c */
};

struct kept_replies; /* recover.c */

/* Agents that are asked, as a source of one tool: ask.c. */
struct ask_tools {
    struct rv_tool_source source;
    int (*find_agent)(void *self, const struct rv_context *who, const char *name, rv_buf *text, rv_err **err);
    void *find_self;
    rv_log *log; /* borrowed */
};
/* Where the tools of a run come from. */
struct run_tools {
    struct ask_tools asked;
    struct rv_plugin_tools capabilities; /* with plugins */
    struct rv_tool_source script;        /* with a script */
    struct rv_tool_source *sources[3];
    struct rv_tool_set set;
};

struct rv_exec {
    rv_exec *prev, *next;
    rv_engine *engine; /* NULL: it is gone */
    uint64_t number;   /* the order of starting */
    struct rv_exec_opts opts;
    struct rv_catalog under, catalog; /* of the capabilities; what the core decides by: `tools` as a catalog */
    struct run_tools tools;
    bool *scripted;                       /* per stage; owned */
    struct rv_conversation *conversation; /* of a run that goes on; owned; NULL: none, or the caller's */
    rv_run *run;
    struct rv_effects effects;
    char *unkept; /* rows of a turn that the journal refused; owned */
    size_t unkept_len;
    struct call *calls;
    bool over, cancel_asked;
    struct write write;         /* the step being kept */
    bool is_keeping;            /* it is: nothing is told to the core, and the effects wait */
    bool is_broken;             /* meanwhile, by rc and err: it is over when the step is kept */
    bool is_untold;             /* it is over, and on_over has not been told */
    bool is_end_told;           /* `done` was, and nothing since */
    bool is_unkept;             /* its journal refused a step */
    bool recovers;              /* the effects at hand were asked for by another process */
    int64_t under_way_until_us; /* it may live, and be in one of its calls for so long; 0: it is gone */
    bool answers;               /* interrupts are answered by the script */
    int64_t hoped_until_us;     /* the lease ran out before it was renewed until this time: another process may own the
                                   run; 0: no */
    int64_t last_us;            /* the core was told this time; what it is told next is not older */
    int64_t ahead_us; /* its time is so far before this process's: the clock went back since its journal was written */
    struct kept_replies *kept; /* of the script, to calls under way when the process died; owned; NULL: none */
    enum rv_run_status status;
    int rc; /* why it broke */
    rv_err *err;
};

/* engine.c */
/** Now, as the core of that run may hear it. */
int64_t rv_exec_now_us(rv_exec *x);
/** When a time that its core has named comes, by the engine's clock. */
int64_t rv_exec_due_us(const rv_exec *x, int64_t run_us);
/** A run of e with everything but its rv_run. */
/** bound.c: does this stage have a model, or tools, or a script? RV_E_INVALID has the place of the key. */
RV_MUST_CHECK int rv_exec_check_stage(const struct rv_exec_opts *o, const struct rv_catalog *catalog,
                                      const bool *scripted, int stage, rv_err **err);
RV_MUST_CHECK int rv_exec_new(rv_engine *e, const struct rv_exec_opts *opts, rv_exec **out, rv_err **err);
/** Tell the core, and the journal. Performs nothing: the effects wait in x->effects. */
RV_MUST_CHECK int rv_exec_step(rv_exec *x, const struct rv_event *ev, rv_err **err);
/** Have the effects at hand performed in the next turn. */
RV_MUST_CHECK int rv_exec_begin(rv_exec *x, rv_err **err);
size_t rv_engine_workers(const rv_engine *e);
void rv_exec_end(rv_exec *x); /* it is over; on_over is told at the end of the turn */
/** Break a run: it is over, rv_engine_wait() reports rc. Takes err. */
void rv_exec_break(rv_exec *x, int rc, rv_err *err);

/** The journal has refused the step: keep its texts for the caller that waits for them, and add a hint. */
void rv_exec_unkept_by(rv_exec *x, rv_err **err);

/* kept.c */
bool rv_keeps_aside(const rv_exec *x); /* its steps are written by the thread of the store */
/** The thread of a store whose writes wait, for an engine on a given loop. */
RV_MUST_CHECK int rv_writer_start(rv_engine *e, rv_err **err);
/** Have the step written that the effects at hand belong to; they are performed when it is durable. */
RV_MUST_CHECK int rv_keep_aside(rv_exec *x, const struct rv_event *ev, rv_err **err);
void rv_keep_wait(rv_exec *x); /* blocks while the step is written; its effects are not performed */

/* observe.c */
bool rv_observes(const rv_exec *x); /* the caller wants the observable events */
void rv_observe(rv_exec *x, const struct rv_effect *e);

/* calls.c */
struct call *rv_call_new(rv_exec *x, enum call_kind kind, int64_t due_us,
                         int64_t call_id); /* queued; NULL: no memory */
void rv_call_detach(struct call *c);       /* out of the queue and of its run's list */
void rv_call_free(struct call *c);         /* gives up its job */
void rv_call_free_all(rv_exec *x);
struct call *rv_call_find(rv_exec *x, int64_t call_id);
void rv_call_park(struct call *c); /* it happens once the run is unparked */
void rv_calls_unpark(rv_exec *x);
/** End the call as failed: text from a format; type "" for the kind's default. The core receives the failure at
 * due_us. */
void rv_call_fail(struct call *c, const char *type, bool retryable, const char *fmt, ...) RV_PRINTF(4, 5);
/** It failed because of what kept it from being made; takes *err. RV_E_NOMEM: nothing is taken. */
RV_MUST_CHECK int rv_call_fail_with(struct call *c, const char *type, int rc, rv_err **err);
void rv_call_timed_out(struct call *c);
bool rv_call_is_under_way(const struct call *c); /* a worker or a source has it and has not answered yet */
/** It is under way: it is due when it is to be given up. */
void rv_call_await(struct call *c);
void rv_call_say_limit(struct call *c); /* to the text of a model call that its deadline ended */
/** The result of a model call; its views stay borrowed from reply. */
void rv_call_take_llm(struct call *c, const struct rv_llm_reply *reply);
/** Its job is done: take over the answer. Frees the job. */
void rv_call_job_done(struct job *j);

/* recover.c */
/** The script's reply to a call of the process that died, once. False: there is none. */
bool rv_kept_take(rv_exec *x, int64_t call_id, struct rv_script_reply *out);
void rv_kept_free(struct kept_replies *kept);

/* outcome.c: calls that may have happened */
/** Find out about a started non_idempotent call: by its probe, or by asking a person. */
RV_MUST_CHECK int rv_call_find_outcome(rv_exec *x, struct call *c, struct rv_effect *e, rv_err **err);
/** The probe has answered (or failed): true when that settles the call; else it is made now. */
bool rv_call_probed(struct call *c);
void rv_call_forget_asked(struct call *c);

/* lease.c */
/** Renew what is due, and cancel what others asked to be cancelled. */
void rv_leases_tend(rv_engine *e);
void rv_leases_free(rv_engine *e);            /* blocks while the thread of the store is at them */
int64_t rv_leases_due_us(const rv_engine *e); /* when it is to be called next; RV_NEVER: not at all */
/** A step of the run could be journaled: this process still owns the run. */
void rv_lease_proved(rv_exec *x);
/** Until free_wait() the store waits for other writers no longer than the leases of this engine last. */
void rv_lease_limit_wait(const rv_engine *e);
void rv_lease_free_wait(const rv_engine *e);
/** Check whether this run may begin an effect that must not be done twice. RV_E_STATE: its lease has run out. */
RV_MUST_CHECK int rv_lease_check(const rv_exec *x, rv_err **err);

/* turn.c */
/** Let the next thing happen, if it is due. False: nothing is. */
bool rv_engine_turn(rv_engine *e);
int64_t rv_engine_due_us(const rv_engine *e); /* when something is; RV_NEVER: nothing will be by itself */

/* virtual.c */
/** Tells whether the first call of the queue is due now. If not, has waited a little for it. */
bool rv_virtual_ready(rv_engine *e, struct call *c);

/* scripted.c */
bool rv_script_plays(const rv_exec *x, const struct rv_effect *e);
/** The script's next reply to that effect; RV_E_NOT_FOUND: it has none. */
RV_MUST_CHECK int rv_script_ask(const rv_exec *x, const struct rv_effect *e, struct rv_script_reply *out, rv_err **err);
/** Have the script answer the call. */
RV_MUST_CHECK int rv_call_script(struct call *c, const struct rv_effect *e, rv_err **err);
/** Say when a scripted call's next part is due, or its timeout. */
void rv_call_schedule(struct call *c);

/* perform.c */
/** Ask the capability. Takes e->request unless the caller observes the effects. */
RV_MUST_CHECK int rv_call_capability(rv_exec *x, struct call *c, struct rv_effect *e, rv_err **err);
/** The workers, started when they are first needed. */
/* Around a call on the loop thread of an entry that says it never blocks: the log names one that broke its word. */
int64_t rv_watch_begin(void);
void rv_watch_end(rv_engine *e, int64_t begun_us, const char *kind, const char *name);
RV_MUST_CHECK int rv_engine_ensure_pool(rv_engine *e, rv_err **err);
/** Perform the effects of a step. Breaks the run when memory is short. */
void rv_exec_perform(rv_exec *x);

/* model.c: models over HTTP */
/** Ask the provider of the call's role. */
RV_MUST_CHECK int rv_model_ask(struct call *c, json_object *request, rv_err **err);
/** It is due: a wait is over, or the deadline has come. True: the call is answered. */
bool rv_model_due(struct call *c);
void rv_model_read_on(struct call *c); /* if its stream was held */
void rv_model_free(struct model_call *m);
void rv_models_free(rv_engine *e); /* connections and what the runs share; before the loop goes */

/* deltas.c: passes pieces of answers to the observer */
/** False: the stream is to be held. */
bool rv_delta_tell(struct call *c, const struct rv_llm_delta *d);
/** Pass on the parts of a whole answer that were not sent as pieces: its text, calls, usage and end. */
void rv_delta_tell_rest(struct call *c);
/** The event tells the object of a structured agent: at the top it is the answer's one piece. */
void rv_delta_tell_output(rv_exec *x, const struct rv_effect *e);
/** A provider on a worker handed out a piece. */
void rv_delta_piece(const struct piece *p);

/* tools.c */
/** The sources of a run; borrows o. e NULL: for a look at the catalog only. t stays where it is. */
void rv_run_tools_init(struct run_tools *t, const struct rv_exec_opts *o, rv_engine *e);
void rv_run_tools_fini(struct run_tools *t);
/** Call a tool, or find out whether it was called by a process that died. */
RV_MUST_CHECK int rv_call_tool(struct call *c, struct rv_effect *e, rv_err **err);
RV_MUST_CHECK int rv_call_make_tool(struct call *c, const struct rv_effect *e, rv_err **err);

/* ask.c: agents that are asked */
struct rv_tool_source *rv_ask_tools_init(struct ask_tools *t, const struct rv_exec_opts *o, rv_log *log);
/** The context of the agent that makes the call; an asked agent has its own name in it. Borrows from the run. */
struct rv_context rv_call_who(const struct call *c);
/** The context of the call in the form that tools receive: JSON text, the caller's. NULL: no memory. */
char *rv_call_context(const struct call *c);
/** The name by which scripts and messages know who makes the call: the agent's, else the stage's. */
const char *rv_effect_who(const struct rv_pipeline *p, const struct rv_effect *e);

/* health.c */
/** Index of that tool's record; -1 when memory is short (then it is not watched). */
int rv_tool_watch(rv_engine *e, const char *tool);
bool rv_tool_is_blocked(const rv_engine *e, int health);
/** The names of the run's tools whose breaker is open; *out is the caller's, NULL: none. */
RV_MUST_CHECK int rv_tools_blocked(const rv_exec *x, json_object **out, rv_err **err);
void rv_tool_note(struct call *c);

/* loop.c: the engine on a uv loop */
RV_MUST_CHECK int rv_loop_ensure(rv_engine *e, rv_err **err);
struct uv_loop_s *rv_loop_uv(struct shell_loop *l);
/** One pass of the loop. waits: it may sleep until something is due, or happens. */
RV_MUST_CHECK int rv_loop_run(rv_engine *e, bool waits, rv_err **err);
void rv_loop_wake(void *loop);           /* any thread */
void rv_loop_hold(struct shell_loop *l); /* a run goes on: a given loop stays alive */
void rv_loop_free(struct shell_loop *l);

/* signals.c */
/** RV_E_STATE when another engine watches already. */
RV_MUST_CHECK int rv_signals_watch(rv_engine *e, rv_err **err);
void rv_signals_unwatch(rv_engine *e); /* puts back what was in force; nothing to do when e does not watch */
/** Cancel all runs, called from a signal handler. */
void rv_engine_signalled(rv_engine *e);

#endif

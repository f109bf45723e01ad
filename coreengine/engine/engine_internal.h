/* Shared by the files of this folder. Everything here belongs to the loop thread, except for struct pool, struct writer
 * and a write that the store thread has. */
#ifndef RV_ENGINE_INTERNAL_H
#define RV_ENGINE_INTERNAL_H

#include <stdatomic.h>

#include "coreengine/engine/call_internal.h"
#include "coreengine/engine/health_internal.h"
#include "coreengine/engine/writer_internal.h"

/* --- workers.c: a bounded pool of threads --- */
struct pool;
/** The engine's workers, as sources use them; made when the first call needs them. Work that never blocks runs on the
 * loop. begin: RV_E_LIMIT when too many calls are stuck, RV_E_THREADS when the system starts none. */
struct rv_tool_workers engine_pool(rv_engine *e);
/** The on_emit of a provider's call: passes the piece to the loop. */
int engine_pool_take_piece(void *work, rv_str json);
/** Ends the workers and waits for them, except for workers whose work was given up. Give up all work before. */
void engine_pool_free(struct pool *p);
void engine_pool_collect(struct pool *p); /* passes on the pieces and answers that have arrived */
/** Wait until some work is done, was poked, or that long has passed. */
void engine_pool_wait(struct pool *p, int64_t us);
void engine_pool_poke(struct pool *p); /* any thread */

/* --- engine --- */

struct shell_loop; /* libuv's part */
struct model_call; /* model.c */

struct rv_engine {
    struct rv_engine_opts opts;
    struct rv_clock clock;
    int64_t virtual_us;
    /* For the loop: */
    bool (*turn)(rv_engine *e);               /* handles the next item of the queue; false: none is due */
    int64_t (*due_in_us)(const rv_engine *e); /* until the next item; RV_NEVER: only a message can wake the engine */
    rv_gate *gate;                            /* of model calls, for perform.c: see quota_internal.h; static */
    rv_exec *execs;                           /* those of this engine; borrowed: owned by their callers */
    uint64_t n_started;
    struct due_queue due;
    _Atomic(struct pool *) pool;       /* NULL until a capability is called; atomic for rv_engine_cancel_all() */
    _Atomic(struct shell_loop *) loop; /* NULL until a caller waits in real time; atomic for the same reason */
    atomic_bool cancel_all;            /* any thread */
    bool any_cancel;                   /* some run has cancel_asked */
    bool any_hands_over;               /* some run that is not over has hands_over */
    struct writer *writer;             /* NULL: steps are kept by the loop thread; see keep.c; owned */
    struct own_journal *given_up;      /* without a run; owned */
    void (*close)(rv_engine *e);       /* rv_engine_close() was called: for the loop, once nothing is left */
    void (*on_closed)(void *self);
    void *closed_self;               /* for on_closed; borrowed */
    struct lease_write *lease_write; /* under way; NULL: none; see keep.c; owned */
    struct settlement *settlements;  /* that the store thread has; see quota.c; owned */
    struct quota_call *left_asks;    /* of questions whose calls are gone; owned */
    size_t n_live;                   /* runs that are not over */
    size_t n_untold;                 /* runs that are over, and on_ended has not been told */
    size_t n_asking;                 /* runs with is_asking */
    size_t n_held;                   /* runs with is_held */
    unsigned n_turns;
    struct tool_records tools;                           /* that runs have called */
    int64_t blocked_until_us;                            /* later than that no breaker is open */
    rv_http *http;                                       /* NULL until something is asked over HTTP; owned */
    struct services *services;                           /* NULL until a capability asks for one; owned */
    void (*withdraw)(rv_engine *e, uint64_t ask);        /* with services: the answer is not wanted; for workers.c */
    rv_providers *providers;                             /* NULL until a model is asked over HTTP; owned */
    int64_t renew_at_us, look_at_us, ends_us, walked_us; /* of leases and cancellations: see keep.c */
    int looked;                                          /* what the store last said to a look for cancellations */
};

struct kept_replies; /* scripted.c */
struct settlement;   /* quota.c */
struct quota_call;   /* quota.c */

/* The journal that a run has for itself: on a given loop the store thread opens it and gives it up. */
struct own_journal {
    struct own_journal *next; /* of those without a run, which the store thread has */
    struct write write;
    rv_engine *engine;         /* outlives it */
    rv_exec *x;                /* NULL: freed before it was open; borrowed */
    rv_journal *journal;       /* NULL: not open yet; owned */
    char *run, *tenant, *user; /* to open it with; tenant and user may be NULL; owned */
    bool cancels, has_response, is_orphan;
    struct rv_response response; /* the texts are owned */
};

/* Agents that are asked, as a source of one tool: ask.c. */
struct ask_tools {
    struct rv_tool_source source;
    int (*find_agent)(void *self, const struct rv_context *context, const char *name, rv_buf *text, rv_err **err);
    void *find_self; /* for find_agent; borrowed */
    rv_log *log;     /* borrowed */
};
/* Where the tools of a run come from. */
struct run_tools {
    struct ask_tools asked;
    struct rv_plugin_tools capabilities; /* with plugins */
    struct rv_tool_source script;        /* with a script */
    struct rv_tool_source mcp;           /* with MCP servers */
    rv_mcp_pool *attached;               /* their connections, on the engine's own loop; NULL: they are not; borrowed */
    struct rv_tool_source *sources[4];   /* borrowed: they are the members above */
    struct rv_tool_set set;
};

struct rv_exec {
    rv_exec *prev, *next; /* in the list of the engine */
    rv_engine *engine;    /* NULL: it is gone; borrowed */
    uint64_t number;      /* the order of starting */
    struct rv_exec_opts opts;
    rv_log *log;                      /* the engine's, with the run's id; owned; NULL: there is none */
    struct rv_catalog under, catalog; /* of the capabilities; what the core decides by: `tools` as a catalog */
    struct run_tools tools;
    struct tool_records played;           /* tools that its script answers for */
    bool *scripted;                       /* per stage; owned */
    json_object *scripted_inner;          /* names of stages inside of stages; owned; NULL: none */
    struct rv_conversation *conversation; /* of a run that goes on; owned; NULL: none, or the caller's */
    rv_run *run;                          /* owned */
    struct rv_effects effects;
    struct rv_turn *unkept; /* rows of a turn that the journal refused; owned */
    struct call *calls;     /* owned */
    bool over, cancel_asked;
    bool hands_over;                 /* another process is to go on with it: see handover.c */
    struct own_journal *own;         /* NULL: the journal is the caller's; owned */
    bool is_opening;                 /* the store thread opens it: there is no rv_run yet */
    bool is_freed;                   /* the caller freed it while a step was being written */
    struct write write;              /* the step being kept */
    bool is_keeping;                 /* a step is being written: the core gets no event, and the effects wait */
    bool is_broken;                  /* it broke meanwhile, by rc and err: it ends when the step is durable */
    struct subscribers *subscribers; /* of its capabilities; NULL: they have none; owned */
    bool is_held;                    /* it is over, and waits for them before on_ended is told */
    bool is_untold;                  /* it is over, and on_ended has not been told */
    bool is_end_told;                /* `done` was told, and no event since */
    bool is_unkept;                  /* its journal refused a step */
    bool is_answer;                  /* the step at hand tells an answer, which may be refused */
    bool is_stuck;                   /* what broke it would break it each time: see stuck.c */
    bool is_given_up;                /* it was ended for that, or could not be */
    bool is_rowless;                 /* it ends without rows of its session: those are refused */
    bool recovers;                   /* the effects at hand were asked for by another process */
    int64_t under_way_until_us;      /* that process may still live, and be in a call until then; 0: it is dead */
    bool answers;                    /* interrupts are answered by the script */
    int64_t n_asked;          /* questions of branches that the host was told of, or will be at the end of the turn */
    int64_t expiry_us;        /* of the question that is waited for while the run works; 0: none is */
    bool is_asking;           /* at the end of this turn */
    json_object *told;        /* ids of open questions that on_question was told, as keys; owned; NULL: none */
    int n_published;          /* events of capabilities */
    unsigned near;            /* bits of the bounds (rv_run_collect_bounds()) that the log has as nearly used up */
    char *refused;            /* by a quota: why it hands over; owned; NULL: it was not */
    int64_t refused_until_us; /* with refused: when the quota may allow it */
    int64_t hoped_until_us;   /* its lease ran out before this renewal: perhaps another process has it; 0: no */
    int64_t last_us;          /* the core was told this time; what it is told next is not older */
    int64_t ahead_us; /* its time is so far before this process's: the clock went back since its journal was written */
    struct kept_replies *kept; /* of the script, to calls under way when the process died; owned; NULL: none */
    enum rv_run_status status;
    int rc;      /* why it broke */
    rv_err *err; /* owned */
};

/* --- exec.c --- */

/** The time that the core of that run is told now. */
int64_t exec_now_us(rv_exec *x);
/** When a time that its core has named comes, by the engine's clock. */
int64_t exec_due_us(const rv_exec *x, int64_t run_us);
/** A run of e with everything but its rv_run. */
RV_MUST_CHECK int exec_new(rv_engine *e, const struct rv_exec_opts *opts, rv_exec **out, rv_err **err);
void exec_bind_log(rv_exec *x, const char *run); /* once its id is known */
/** Tell the core, and the journal. Performs nothing: the effects wait in x->effects. */
RV_MUST_CHECK int exec_step(rv_exec *x, const struct rv_event *ev, rv_err **err);
/** Have the effects at hand performed in the next turn. */
RV_MUST_CHECK int exec_begin(rv_exec *x, rv_err **err);
void exec_end(rv_exec *x);       /* it is over; on_ended is told at the end of the turn */
void exec_tell_over(rv_exec *x); /* it was held; the same */
/** Break a run: it is over, rv_engine_wait() reports rc. Takes err. */
void exec_break(rv_exec *x, int rc, rv_err *err);

/* --- observe.c: what observers and logs are told --- */

bool engine_observes(const rv_exec *x); /* the caller wants the observable events */
void engine_observe(rv_exec *x, const struct rv_effect *e);
void engine_observe_bounds(rv_exec *x); /* logs, once each, of which bounds of the run 80 % are used */
/** False: the stream is to be held. */
bool engine_delta_tell(struct call *c, const struct rv_llm_delta *d);
/** Pass on the parts of a whole answer that were not sent as pieces: its text, calls, usage and end. */
void engine_delta_tell_rest(struct call *c);
/** A provider handed out a piece. */
void engine_delta_piece(struct call *c, bool is_thinking, rv_str text);

/* --- subscribers.c --- */

/** On failure engine_subscribers_stop() is still needed. */
RV_MUST_CHECK int engine_subscribers_init(rv_exec *x, rv_err **err);
void engine_subscribers_stop(rv_exec *x); /* gives up what is under way; not for a run whose engine is gone */
/** There are some: they are told. */
void engine_subscribers_tell(rv_exec *x, enum rv_emit_kind kind, rv_str line);
/** The run is over: does it wait for them? Then it is_held until engine_subscribers_let_go() says true. */
bool engine_subscribers_hold(rv_exec *x);
bool engine_subscribers_let_go(rv_exec *x);
void engine_subscribers_go_on(rv_exec *x); /* the run that is held goes on */

/* --- tools.c --- */

/** The sources of a run; borrows o. e NULL: for a look at the catalog only. t stays where it is. */
void engine_run_tools_init(struct run_tools *t, const struct rv_exec_opts *o, rv_engine *e);
void engine_run_tools_fini(struct run_tools *t);
/** Call a tool, or find out whether it was called by a process that died. */
RV_MUST_CHECK int engine_call_tool(struct call *c, struct rv_effect *e, rv_err **err);
/** The probe has answered (or failed): true when that settles the call; else it is made now. */
bool engine_call_probed(struct call *c);
void engine_call_forget_asked(struct call *c);

/* --- scripted.c --- */

/** The name by which scripts and messages know who makes the call: the agent's, else the stage's. */
const char *engine_effect_who(const struct rv_pipeline *p, const struct rv_effect *e);
/** The first stage of the branch of a group that it belongs to; ptr NULL: of the main branch. Borrowed from e. */
rv_str engine_effect_branch(const struct rv_effect *e);
bool engine_script_plays(const rv_exec *x, const struct rv_effect *e);
/** Have the script answer the call. */
RV_MUST_CHECK int engine_call_script(struct call *c, const struct rv_effect *e, rv_err **err);
/** Say when a scripted call's next part is due, or its timeout. */
void engine_call_schedule(struct call *c);

/* For a run that is continued: the answers that its script gave before to calls which were under way. */
struct kept_replies *engine_kept_new(void); /* NULL: no memory */
void engine_kept_free(struct kept_replies *kept);
/** Have the script answer this call as it did before. A reply that it lacks is reported again when the call is made. */
RV_MUST_CHECK int engine_kept_ask(rv_exec *x, const struct rv_effect *e, rv_err **err);
/** The script's reply to that call, once. False: there is none. */
bool engine_kept_take(rv_exec *x, int64_t call_id, struct rv_script_reply *out);

/* --- keep.c: steps that the store thread keeps, and leases --- */

/** The thread of a store whose writes wait, for an engine on a given loop. */
RV_MUST_CHECK int engine_writer_start(rv_engine *e, rv_err **err);
/** Write the step that the effects at hand belong to: now, or by the store thread (is_keeping); then they are performed
 * when it is durable. */
RV_MUST_CHECK int engine_keep(rv_exec *x, const struct rv_event *ev, rv_err **err);
void engine_keep_wait(rv_exec *x); /* blocks while the step is written; its effects are not performed */
/** Renew what is due, and cancel what others asked to be cancelled. */
void engine_leases_tick(rv_engine *e);
void engine_leases_fini(rv_engine *e);            /* blocks while the store thread works on them */
int64_t engine_leases_due_us(const rv_engine *e); /* when it is to be called next; RV_NEVER: not at all */
/** Check whether this run may begin an effect that must not be done twice. RV_E_STATE: its lease has run out. */
RV_MUST_CHECK int engine_lease_check(const rv_exec *x, rv_err **err);

/* --- handover.c: runs that another process goes on with --- */
void engine_handovers_tick(rv_engine *e); /* end those that have nothing under way */

/* --- own.c: journals that runs have for themselves --- */

void engine_writer_stop(rv_engine *e); /* blocks until all is written */
/** scope and run are copied. NULL: no memory. */
struct own_journal *engine_own_new(rv_exec *x, const struct rv_store_scope *scope, const char *run);
void engine_own_orphan(struct own_journal *o); /* its run is freed while the store thread opens it */
void engine_own_unlink(struct own_journal *o); /* the store thread has done what was asked */
/** Give up the journal and free o: on the store thread, if there is one. */
void engine_own_end(struct own_journal *o);
/** Copy the answer for the time when the journal is open. RV_E_STATE: there is one. */
RV_MUST_CHECK int engine_own_answer(struct own_journal *o, const struct rv_response *response, rv_err **err);

/* --- perform.c --- */

/** Ask the capability. */
RV_MUST_CHECK int engine_call_capability(rv_exec *x, struct call *c, const struct rv_effect *e, rv_err **err);
/** Perform the effects of a step. Breaks the run when memory is short. */
void exec_perform(rv_exec *x);

/* --- model.c: models over HTTP --- */

/** Ask the provider of the call's role. */
RV_MUST_CHECK int engine_model_ask(struct call *c, json_object *request, rv_err **err);
/** It is due: a wait is over, or the deadline has come. True: the call is answered. */
bool engine_model_due(struct call *c);
void engine_model_read_on(struct call *c); /* if its stream was held */
void engine_model_free(struct model_call *m);
void engine_models_fini(rv_engine *e); /* connections and what the runs share; before the loop goes */

/* --- ask.c: agents that are asked --- */

struct rv_tool_source *engine_ask_tools_init(struct ask_tools *t, const struct rv_exec_opts *o, rv_log *log);
/** The context of the agent that makes the call; an asked agent has its own name in it. Borrows from the run. */
struct rv_context engine_call_who(const struct call *c);
/** The context of the call in the form that tools receive: JSON text, the caller's. NULL: no memory. */
char *engine_call_context(const struct call *c);

/* --- loop.c: the engine on a uv loop --- */

RV_MUST_CHECK int engine_loop_ensure(rv_engine *e, rv_err **err);
struct uv_loop_s *engine_loop_uv(struct shell_loop *l);
/** One pass of the loop. waits: it may sleep until something is due, or happens. */
RV_MUST_CHECK int engine_loop_run(rv_engine *e, bool waits, rv_err **err);
void engine_loop_wake(void *loop);           /* any thread */
void engine_loop_hold(struct shell_loop *l); /* a run goes on: a given loop stays alive */
void engine_loop_free(struct shell_loop *l);

/** RV_E_STATE when another engine watches already. */
RV_MUST_CHECK int engine_signals_watch(rv_engine *e, rv_err **err);
void engine_signals_unwatch(rv_engine *e); /* puts back what was in force; nothing to do when e does not watch */

#endif

/* The shell around the pure core: performs effects and feeds results back.
 *
 * Threads. The loop thread owns engines, runs and envelopes. It is the thread of the uv loop that the caller gives
 * (opts.loop), or else the thread that calls rv_engine_wait(). Worker threads, created when calls need them, run
 * capability code that may block. On a given loop a store thread commits steps with its own handle of the store, so the
 * loop thread never waits for a disk. A run that waits holds no thread. When a call ignores its deadline, the core
 * receives a timeout, another worker takes the place of the stuck one, and neither other runs nor the exit wait for it.
 *
 * With a journal every step is durable before its effects are performed. rv_engine_continue() continues a run whose
 * process died.
 *
 * With virtual_time the same engine runs in simulated time: delays cost nothing, answers are ordered by due time and
 * call id, and the result does not depend on the number of workers. */
#ifndef RV_ENGINE_H
#define RV_ENGINE_H

#include "coreengine/model/provider/provider.h"
#include "coreengine/run/run.h"
#include "coreengine/store/journal/journal.h"
#include "coreengine/tools/mcp/mcp.h"
#include "coreengine/tools/plugin/plugin.h"
#include "coreengine/tools/script/script.h"

#define RV_ENGINE_MAX_PARALLEL 64  /* stages of a batch at once, when nothing is said: the same on every machine */
#define RV_EXIT_AT_ONCE        130 /* status after a second SIGINT: 128 and the signal, as shells count */

typedef struct rv_engine rv_engine; /* loop thread only, but for rv_engine_cancel_all */
typedef struct rv_exec rv_exec;     /* one run in an engine */

struct rv_engine_opts {
    size_t workers;         /* worker threads at most, started when they are needed; 0: 64 */
    int64_t worker_idle_ms; /* after which a worker without work leaves; 0: 10 s */
    bool virtual_time;
    int64_t virtual_start_us; /* where simulated time begins */
    /** The loop to run on; borrowed, and not with virtual_time. The engine keeps it alive only while a run goes on.
     * NULL: a loop of its own, which runs in rv_engine_wait(). */
    struct uv_loop_s *loop;
    bool handle_signals;        /* SIGINT and SIGTERM cancel all runs; a second one exits with 130 at once */
    struct rv_clock clock;      /* real time; zeroed: the system's */
    rv_log *log;                /* borrowed; may be NULL */
    rv_store *store;            /* of the journals of its runs; borrowed; NULL: none. Leases are renewed there */
    const char *owner;          /* of the leases; borrowed; with a store */
    int64_t lease_us;           /* 0: RV_LEASE_DEFAULT_US */
    bool traces;                /* spans of its runs go to a collector: requests of calls name them */
    struct rv_provider_env env; /* where providers find keys and addresses; zeroed: the process's environment */
};
/** opts is copied, what it points to is borrowed and outlives the engine. On a given loop with a store it starts the
 *  store thread.
 *  @return RV_E_INVALID (a loop and simulated time), RV_E_STATE (another engine of the process handles the signals),
 *  RV_E_THREADS, RV_E_FILES, RV_E_NOMEM, what opening the store again says */
RV_MUST_CHECK int rv_engine_new(const struct rv_engine_opts *opts, rv_engine **out, rv_err **err);
/** Ends what runs. Does not wait for calls that ignore their cancellation (their memory is then left to the process, or
 *  freed when they come back after all). Waits for the store thread to commit the steps that it has. Runs may be freed
 *  before or after. A given loop must run once more, to close the handles. Not from a callback. */
void rv_engine_free(rv_engine *e);
/** On a given loop: the same without waiting. Free the runs first. The engine goes when the store thread has written
 * all that it has; on_closed, which may be NULL, then comes on the loop. */
void rv_engine_close(rv_engine *e, void (*on_closed)(void *self), void *self);
/** Wait at most that long until no capability code runs any more. False: some does, and the plugins must be left alone.
 */
bool rv_engine_settle(rv_engine *e, int64_t wait_ms);
/** No call that was given up runs capability code any more: what only runs that are freed used may be unloaded. */
bool rv_engine_is_settled(const rv_engine *e);
/** Ask every run to end, as rv_exec_cancel(). Any thread. */
void rv_engine_cancel_all(rv_engine *e);
/** Look now for runs that another process asked to cancel, and not with the next of the looks every 250 ms. */
void rv_engine_check_cancels(rv_engine *e);
/** Forget all requests to cancel that were made until now; call it before new work begins. */
void rv_engine_forget_cancel(rv_engine *e);
/** Whether there was one since. */
bool rv_engine_is_cancelled(const rv_engine *e);
int64_t rv_engine_now_us(const rv_engine *e); /* real or simulated */
rv_log *rv_engine_log(const rv_engine *e);    /* as it was made; borrowed; NULL: nothing is logged */

/* The call that a piece of an answer belongs to. */
struct rv_delta_from {
    int stage; /* of the run's pipeline */
    int64_t call_id;
    const struct rv_origin *origin; /* of a delegated agent; borrowed from the run; NULL: the stage's own */
    bool is_muted;                  /* people are not to be shown this piece: see child_text; hooks look at it first */
};

/* Callbacks of a run; each may be NULL. The engine calls them on the loop thread, and only while the loop runs: on a
 * given loop never before the function that caused them has returned. All may cancel runs. */
struct rv_observer {
    /** An observable event, and its line of JSON; borrowed. A run that breaks ends with `error` and `done`, too:
     * without seq, as no journal has them. */
    void (*on_event)(void *self, const struct rv_effect *e, rv_str line);
    /** A piece of what a model says. False: a stream that comes over HTTP is held until rv_exec_read_on(), and the
     * server with it, as soon as the part that has arrived is told. The time counts. The answer of a stage's structured
     * agent is one piece of text, its object; what the models of structured agents say on the way there, and their
     * calls of the output's tool, are not told. */
    bool (*on_delta)(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d);
    /** q (borrowed) is open: the run waits for its answer, or a branch of the run does while others still run. Called
     * once for each question. May call rv_exec_answer(). */
    void (*on_question)(void *self, rv_exec *x, const struct rv_pending *q);
    /** The run is over, or waits for an answer that on_question did not give; rc and err (borrowed) as rv_engine_wait()
     * reports them. May free the run, answer it and start others. */
    void (*on_ended)(void *self, rv_exec *x, int rc, const rv_err *err);
    void *self; /* borrowed; outlives the run */
};

/* The part of a service that may block: it runs on the thread of the call that asks. */
struct rv_service_job {
    /** The answer, JSON text of an object, is appended. Everything it needs is its own: run and engine may be gone. */
    int (*run)(struct rv_service_job *j, rv_buf *answer, rv_err **err);
    void (*free)(struct rv_service_job *j); /* any thread, also when it never ran */
};
/* The services that the program answers, not the engine; coreengine/tools/source.h has the names of all. */
struct rv_exec_services {
    /** On the loop thread; does not block. args: an object, borrowed. RV_E_NOT_FOUND: this program does not answer it;
     * RV_E_INVALID, RV_E_NOMEM. */
    int (*make)(void *self, const struct rv_service_ask *ask, json_object *args, struct rv_service_job **out,
                rv_err **err);
    void *self; /* borrowed; outlives the run */
};

/* What the model calls of a run may take: the store is asked before each, see coreengine/store/users.h. The run needs
 * a journal. What it points to is borrowed, and outlives the run. */
struct rv_exec_quotas {
    const char *tenant, *user;           /* as in struct rv_quota_ask */
    const struct rv_quota_limit *limits; /* in force as long as this process has the run */
    size_t n_limits;
    bool hands_over; /* a call that is refused for a while is not made, and the run is handed over: rv_exec_refused();
                        else such a call fails, and ends the run by quota_exceeded */
};

struct rv_exec_opts { /* what it points to is borrowed, and outlives the run, but for the journal with takes_journal */
    const struct rv_pipeline *pipeline;
    rv_plugins *plugins; /* may be NULL */
    rv_script *script;   /* may be NULL */
    rv_mcp_tools *mcp;   /* tools of MCP servers; may be NULL. Attached to the engine's loop by a call */
    rv_journal *journal; /* NULL: nothing is kept */
    bool takes_journal;  /* the run frees its journal, also when it is not begun: on a given loop on the store thread */
    const char *tenant;  /* its calls of tools count for those of this tenant only; NULL: the default one */
    const struct rv_conversation *conversation; /* NULL: none; of a run that goes on: its journal's */
    /** The document of an agent that another one asks, appended to text; may be NULL: none can be asked. Errors become
     * the answer of the call. */
    int (*find_agent)(void *self, const struct rv_context *context, const char *name, rv_buf *text, rv_err **err);
    void *find_self;
    const struct rv_exec_quotas *quotas;     /* NULL: none */
    const struct rv_exec_services *services; /* NULL: only the services of the engine itself are answered */
    const struct rv_catalog *catalog; /* the catalog that the core uses; NULL: that of the plugins and the script */
    enum rv_rules rules; /* that the run began with; NEWEST: it begins now. Of a run with a journal: the journal's */
    int mode;            /* enum rv_run_mode or RV_UNSET */
    bool use_mocks;
    bool holds;              /* its lease does not end while it waits for a person: rv_exec_answer() may follow */
    bool answer_from_script; /* interrupts are answered by the script while it has answers: the run goes on */
    enum rv_saves saves;
    size_t max_parallel; /* stages of a batch at once; 0: 64, whatever the number of workers */
    struct rv_observer observer;
    /* For recordings and traces, all of them with self: */
    /** Each piece as the model gave it, also those that on_delta is not told, and nothing else; may be NULL. */
    void (*on_piece)(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d);
    /** The exact body that is sent to a provider, or the request that one of a capability gets, once for each attempt;
     * may be NULL. */
    void (*on_payload)(void *self, int64_t call_id, const char *provider, rv_str body);
    void (*on_state)(void *self, rv_str state);              /* each SAVE; may be NULL */
    void (*on_input)(void *self, const struct rv_event *ev); /* each event before the core gets it */
    /* each effect before it is performed: a trace */
    void (*on_effect)(void *self, const struct rv_effects *all, const struct rv_effect *e);
    /** The run is freed, and needs nothing more of what it borrows; may be NULL: then rv_exec_free() waits for a step
     * that the store thread writes. */
    void (*on_free)(void *self);
    void *self;
};
#define RV_EXEC_OPTS_INIT ((struct rv_exec_opts){.mode = RV_UNSET})

/** List the obstacles for a new run: stages that neither a mock nor the script answers for, and that have no model, or
 * no tool at all. Errors among findings, with the place of the key. rv_engine_start() refuses such a run, too.
 */
RV_MUST_CHECK int rv_exec_check(const struct rv_exec_opts *opts, rv_findings *findings, rv_err **err);
/** Begin a run. env is taken on every path. response NULL: start; else the answer to the envelope's pending interrupt,
 * and the errors of rv_run_step for an answer apply. Does not wait on a given loop: its first step is
 * kept by another thread. Of the callbacks only on_input is called before this returns and, on a loop of the engine's
 * own, on_event when the journal refuses the first step. */
RV_MUST_CHECK int rv_engine_start(rv_engine *e, const struct rv_exec_opts *opts, rv_envelope *env,
                                  const struct rv_response *response, rv_exec **out, rv_err **err);
/** Continue a run whose journal was opened (opts->journal, in the engine's store): this call replays the journal; then
 * the engine makes those calls again whose answers are missing, with the same keys. A non_idempotent tool call that was
 * started is not made again: its probe is asked, if it has one, and else the run asks a person (agent_review,
 * data.reason outcome_unknown). response: answers an interrupt of a run that waits; NULL for a run that did not wait.
 * opts->mode, use_mocks, max_parallel, answer_from_script and the stages a script plays are the journal's.
 * A run that waits with a question that has expired goes on by that, without an answer.
 *  @return RV_E_STATE: it is over, or waits and there is no answer; RV_E_TIMEOUT: there is one, and a question has
 *  expired, which comes first; what rv_journal_replay() and, for an answer, rv_run_step() say */
RV_MUST_CHECK int rv_engine_continue(rv_engine *e, const struct rv_exec_opts *opts, const struct rv_store_scope *scope,
                                     const struct rv_response *response, rv_exec **out, rv_err **err);
/** The same, to end it as cancelled. */
RV_MUST_CHECK int rv_engine_continue_cancel(rv_engine *e, const struct rv_exec_opts *opts,
                                            const struct rv_store_scope *scope, rv_exec **out, rv_err **err);
/* A run that goes on. Borrowed for the call. */
struct rv_engine_resume {
    const char *run;
    const struct rv_response *response; /* answers an interrupt; NULL: none */
    bool cancels;                       /* it is ended as cancelled */
};
/** rv_journal_open() and one of these two, for a run that has its own journal (opts->journal is NULL): on a given loop
 * the store thread takes the run over, and this call does not wait. Until then a cancellation, and an answer if none is
 * given here, wait too. What keeps the run from going on comes with on_ended. */
RV_MUST_CHECK int rv_engine_open(rv_engine *e, const struct rv_exec_opts *opts, const struct rv_store_scope *scope,
                                 const struct rv_engine_resume *what, rv_exec **out, rv_err **err);
/** Run the loop until that run is over (or waits for an answer): the helper of programs that have nothing else to do.
 * Not from a callback. RV_E_NOMEM; RV_E_FILES: no loop of its own; RV_E_INTERNAL: the run waits for nothing;
 * RV_E_INVALID, RV_E_TIMEOUT for an answer of the script that does not fit its interrupt (the run is then over, as
 * interrupted). */
RV_MUST_CHECK int rv_engine_wait(rv_engine *e, rv_exec *x, rv_err **err);
/** Answer a question of a run. When the run waits (its status is interrupted), it continues in this engine; with a
 * journal that needs opts.holds, otherwise open its journal again and call rv_engine_continue(). While other branches
 * still run, questions of branches are answered by id, in any order; the core is told in the next turn, and a question
 * that is withdrawn until then is logged. RV_E_STATE: there is no open question, or it was withdrawn or has an answer.
 * What rv_run_step() reports: the answer does not fit, and the question stays open. */
RV_MUST_CHECK int rv_exec_answer(rv_exec *x, const struct rv_response *response, rv_err **err);
/** Would the question that the run waits with take that answer? Nothing changes. As rv_exec_answer(). */
RV_MUST_CHECK int rv_exec_check_answer(const rv_exec *x, const struct rv_response *response, rv_err **err);
void rv_exec_read_on(rv_exec *x); /* streams that on_delta held go on */
void rv_exec_cancel(rv_exec *x);  /* asks; rv_engine_wait then ends soon. A run that waits for an answer still waits */
/** Bring a run with a journal to a point where another process can go on with it. Calls under way may end; of those
 * that the run asks for from now on, only what must not be repeated is made here. When nothing is under way, the run is
 * over in this engine: on_ended comes with rc 0, and rv_exec_is_handed_over(). Free the run then, which gives up its
 * lease. A run that ends or pauses before that does so as always. */
void rv_exec_hand_over(rv_exec *x);
bool rv_exec_is_handed_over(const rv_exec *x);
/** Of a run that was handed over by a quota: when it may go on, and why (borrowed from the run). 0: by none. */
int64_t rv_exec_refused(const rv_exec *x, const char **why);
/** Log that a limit is nearly used up: 80 %. */
void rv_engine_log_near_quota(rv_log *log, const struct rv_quota_limit *l);
/** Is a call under way that must not be repeated? A run that is freed meanwhile leaves it unknown whether it happened.
 */
bool rv_exec_is_unrepeatable(const rv_exec *x);
/** Tell on_event that the run ends here, by err: unless `done` was told. For a caller whose own part of a step failed.
 */
void rv_exec_tell_end(rv_exec *x, const rv_err *err);
/** That event, `error` or `done`, of a run that never began. env NULL: it has no state yet, and nothing is `used`. */
void rv_engine_write_unkept_end(enum rv_emit_kind kind, const rv_envelope *env, const struct rv_envelope_used *used,
                                int64_t now_us, const rv_err *why, rv_buf *line);
bool rv_exec_has_ended(const rv_exec *x);
int64_t rv_exec_last_seq(const rv_exec *x); /* number of its last event so far; 0: none */
enum rv_run_status rv_exec_status(const rv_exec *x);
const rv_envelope *
rv_exec_envelope(const rv_exec *x); /* borrowed; NULL once it was stolen, or lost to want of memory */
/** Why a stage failed last, with the lines of reeve that found it; NULL: none failed in this process. Borrowed. */
const rv_err *rv_exec_failure(const rv_exec *x);
/** Rows of the session's turn that the journal refused, and the run ended by it; borrowed. NULL: there are none. */
const struct rv_turn *rv_exec_unkept(const rv_exec *x);
rv_envelope *rv_exec_steal_envelope(rv_exec *x); /* once it is over or waits; NULL before, and if it was stolen */
void rv_exec_free(rv_exec *x); /* cancels if under way; waits for the commit of its step, unless there is on_free */

/** Bring the script to where it stood after it answered that effect of a run of the pipeline, if it answers it at all.
 * For callers that replay a journal. scripted: as in struct rv_journal_begin. */
RV_MUST_CHECK int rv_engine_pass_script(rv_script *script, const struct rv_pipeline *p, const bool *scripted,
                                        const struct rv_effect *e, rv_err **err);

/** Health of the run's tools, as its engine has called them: {status, tools}, the worst status that is known, and an
 *  array of {tool, status, success_rate, calls, breaker_open, errors}, the latter the kinds of errors that count
 * against it as [{error_type, message, count}], most frequent first. Calls of other runs count if the same source
 * answers with the same credentials, for the same tenant; calls that a script answers count for their run only. */
void rv_exec_write_health(const rv_exec *x, rv_jw *w);

#endif

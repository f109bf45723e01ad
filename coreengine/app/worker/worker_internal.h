/* Shared by the files of this folder. */
#ifndef RV_WORK_INTERNAL_H
#define RV_WORK_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "coreengine/app/app_internal.h"
#include "coreengine/app/memory.h"
#include "coreengine/app/work.h"
#include "coreengine/base/base.h"

/* The prefix of ids of runs that handle tasks of other types: such a run is continued by its task. */
#define RV_WORK_JOB_PREFIX "job_"

/* --- worker.c --- */
struct rv_worker_stop {
    pthread_mutex_t lock;  /* guards is_wanted, has_news and `wake`; leaf */
    pthread_cond_t wanted; /* is_wanted became true */
    bool is_wanted;
    bool has_news;
    void *wake; /* of the worker, while it works; borrowed */
};

/* --- needs.c --- */
/** As it is written: "label:gpu". */
RV_MUST_CHECK int app_needs_add(struct rv_needs *needs, const char *text, rv_err **err);

/* --- submit.c --- */
/* The payload of a task of type `run`. */
struct rv_work_payload {
    const char *run; /* borrowed from json, as the texts of the answer */
    bool has_answer;
    struct rv_response answer;
    const char *trace; /* of who asked for the run; NULL: not told; borrowed from json */
    bool trusts_trace;
    json_object *json; /* owned */
};
RV_MUST_CHECK int app_work_read_payload(rv_str payload, struct rv_work_payload *out, rv_err **err);
void app_work_payload_fini(struct rv_work_payload *p);
/** rv_app_enqueue() for a row, not before due_us. */
RV_MUST_CHECK int app_work_enqueue_row(rv_store *store, const struct rv_run_row *row, const struct rv_response *answer,
                                       int64_t due_us, bool *is_new, rv_err **err);

/* --- a task that a worker has claimed, until it has told the store how that ended --- */
enum work_end {
    WORK_RUNS,   /* it goes on */
    WORK_DONE,   /* completed, with `result` */
    WORK_FAILED, /* this attempt, by `error` */
    WORK_FATAL,  /* every attempt would fail so */
    WORK_BACK,   /* handed back: the next worker goes on */
    WORK_LATER,  /* its run is tried again at later_us */
    WORK_QUOTA,  /* a quota allows it at later_us again, by `error` */
    WORK_LEFT,   /* the store is not told, as after a crash */
};
struct work_job;
struct work_taker;
struct work_handler {
    const char *type, *tool; /* tool NULL: a pipeline; borrowed from the options */
    struct rv_app_loaded loaded;
    /* of the worker itself (own.c): does the task, j->end tells; WORK_RUNS: a run does it. NULL: as given */
    int (*own)(struct work_taker *t, struct work_job *j, rv_err **err);
    bool dreams; /* such a run is a dreaming */
    /* of the worker itself; NULL: as of every handler */
    int (*make)(struct work_taker *t, struct work_job *j, const char *id, rv_err **err); /* keeps the run of that id */
    void (*result)(struct work_job *j, enum rv_run_status status, const rv_envelope *env); /* j->end and its texts */
    int (*keep)(rv_store *store, const struct work_job *j, rv_err **err); /* part of completing the task */
};
/* A summary that is written (own.c). */
struct work_summary {
    const char *moment, *agent; /* borrowed from the payload */
    rv_buf text, said;          /* what the agent is told, and said */
    char hash[RV_HASH_MAX];     /* of the text */
};
/* Belongs to the dispatcher's thread or to the loop's, one after the other. */
struct work_job {
    struct work_job *next; /* of the list that it is in */
    struct work_job *next_held;
    struct rv_task_row task; /* owned */
    struct rv_app app;       /* for its tenant */
    struct rv_work_payload payload;
    const struct work_handler *handler; /* NULL: a task of type `run`; borrowed from the worker */
    json_object *asked;                 /* payload of a task that the worker handles by itself; owned */
    struct rv_app_dream dream;          /* what it says, borrowed from asked */
    struct work_summary summary;
    char run[RV_STORE_MAX_ID + 1];
    bool cancels;     /* the run is opened to be ended */
    bool answers;     /* the payload's answer is for the question that it waits with */
    bool owes_answer; /* that answer may be for a question that the run asks again when it waits the next time */
    bool is_apart;    /* it crashed the processes that went on with it: it gets a process of its own */
    int64_t crashes;  /* how many in a row */
    struct rv_app_loaded loaded;
    rv_journal *journal; /* of the run that was taken over; owned; NULL: the engine has it, or there is none */
    struct rv_catalog catalog;
    struct rv_app_limits limits; /* of its tenant and user */
    struct rv_app_services services;
    rv_exec *exec;                    /* the loop's; owned */
    char stream[RV_STORE_MAX_ID + 1]; /* of its client, that this process writes now; "": none */
    rv_app_stream *log;               /* the loop's; owned */
    bool ends_stream;                 /* it has no more lines, not even of another process */
    struct work_apart *apart;         /* the loop's: its process; owned */
    struct work_hook *hook;    /* what a receiver is told in place of a run (hook_internal.h); owned; NULL: none */
    struct rv_worker *worker;  /* borrowed */
    atomic_bool cancel_wanted; /* the task is to be cancelled; the dispatcher's thread sets it */
    bool is_cancelled;         /* by the loop */
    bool waits;                /* its run does, for an answer */
    bool is_told;              /* the store has its end */
    int refusal;               /* what the store last said to its end; 0: not asked, or taken */
    enum work_end end;
    int64_t later_us;
    rv_buf result;
    rv_buf error;
};
/* Jobs are owned by the list that they are in. */
struct work_list {
    struct work_job *first, **end;
};
void app_work_list_init(struct work_list *l);
void app_work_list_add(struct work_list *l, struct work_job *j);
struct work_job *app_work_list_take(struct work_list *l); /* all of them, by `next` */
void app_work_job_free(struct work_job *j);
/** The job ends as `end` says, by err, which is taken. */
void app_work_fail(struct work_job *j, enum work_end end, rv_err *err);
/** Refusals of a store that it may take back by itself, such as a full disk; RV_E_NOMEM is not among them. */
bool app_work_may_pass(int rc);
/** How it ends when its run stops with an error: a store that cannot be reached is not a failure of the task. */
enum work_end app_work_end_of(const struct work_job *j, int rc);
/** The same of a run that had begun: one that another process took over since is not a failure either; what it comes to
 * is told there. */
enum work_end app_work_end_of_run(const struct work_job *j, int rc);
/** Its run is over and did not do it: this attempt failed by that text. */
void app_work_not_done(struct work_job *j, const char *text);
/** It ends as done, with {"status": "ok", "run": ID, "run_status": status}. */
void app_work_done(struct work_job *j, const char *run_status);

/* --- take.c, on the dispatcher's thread: from a claimed task to a run that can go on --- */
/* What it points to is borrowed from the worker. */
struct work_taker {
    rv_store *store;
    const char *owner;
    int64_t lease_us;
    const struct work_handler *handlers;
    size_t n_handlers;
    const rv_quotas *quotas;
    bool writes_streams;
    int64_t patience_us; /* for owners that are ending */
    const struct rv_worker_opts *opts;
};
/** j->end says whether there is anything left to do. */
void app_work_take_up(struct work_taker *t, struct work_job *j);

/* --- handler.c --- */
/** Load the pipelines of all handlers. RV_E_INVALID. */
RV_MUST_CHECK int app_work_handlers_load(const struct rv_app *app, const struct rv_worker_handler *given, size_t n,
                                         struct work_handler **out, rv_err **err);
void app_work_handlers_free(struct work_handler *handlers, size_t n);
/** Find the run of the task, or make it; j->run is its id. *status: of that run. */
RV_MUST_CHECK int app_work_handler_run(struct work_taker *t, struct work_job *j, struct rv_run_row *out, rv_err **err);
/** An object is the result, or says by its member `status` that the task failed. */
void app_work_take_object(struct work_job *j, json_object *o);
/** Of a run that went on in a process of its own, which has ended: its row in the store says how the job ends. */
void app_work_find_end(rv_store *store, struct work_job *j);
/** What its task has as a result: j->end, result and error. */
void app_work_handler_result(struct work_job *j, enum rv_run_status status, const rv_envelope *env);

/* --- own.c, on the dispatcher's thread --- */
const struct work_handler *app_work_own_handler(const char *type); /* NULL: there is none */
/** What a handler of the worker itself does before any run: nothing is left to do, unless j->end is WORK_RUNS. */
RV_MUST_CHECK int app_work_own(struct work_taker *t, struct work_job *j, rv_err **err);

/* --- tell.c, on the dispatcher's thread --- */
/** What rv_store_complete_task() and its like say: RV_E_STATE when the worker lost the task. */
RV_MUST_CHECK int app_work_tell_end(rv_store *store, struct work_job *j, rv_err **err);
/** To be called when the store has the end: a run that waits, and was asked to cancel in the last moment before, gets a
 * task for that. */
RV_MUST_CHECK int app_work_cancel_waiting(rv_store *store, const struct work_job *j, rv_err **err);

/** The same in one transaction for those of a list (by `next`) that are done: is_told of each that the store took. */
void app_work_tell_done(rv_store *store, struct work_job *first);
void app_work_log_end(const struct work_job *j); /* on the loop */

/* --- sweep.c, on the dispatcher's thread --- */
/* Where the next part of a list of runs begins: behind the last one of the part before. */
struct work_mark {
    char id[RV_STORE_MAX_ID + 1]; /* "": with the first */
    int64_t at_us;
    int64_t n; /* of the part */
};
/* Zero at first, and then what the sweep before left. */
struct work_sweep {
    struct work_mark left, expired;
};
/** Queue the runs that no process drives, some of them; the next call goes on behind them. *n: how many. */
RV_MUST_CHECK int app_work_sweep(rv_store *store, struct work_sweep *at, int64_t now_us, int64_t *n, rv_err **err);

/* --- offers.c --- */
/** The capabilities on the path of app, each looked at in a process of its own, and the labels. */
RV_MUST_CHECK int app_work_offers(const struct rv_app *app, const char *const *labels, size_t n_labels,
                                  struct rv_needs *out, rv_err **err);

/* --- dispatcher.c: the thread that talks to the store --- */
struct rv_worker {                     /* what does not change while it works */
    const struct rv_worker_opts *opts; /* borrowed */
    struct rv_app app;
    char owner[RV_OWNER_MAX];
    int64_t lease_us;
    size_t n_max;
    struct rv_needs offers;
    struct work_handler *handlers; /* owned */
    rv_quotas *quotas;             /* owned; NULL: none */
    rv_app_handles *asked;         /* owned: handles of the store for what capabilities ask */
    rv_engine *engine;             /* for rv_engine_is_settled(); borrowed */
};
struct work_dispatcher;
/** w lives as long as the dispatcher, which has a handle of the store of its own. wake is called on its thread.
 * RV_E_STATE: the store keeps everything in memory. */
RV_MUST_CHECK int app_work_dispatcher_new(struct rv_worker *w, const rv_store *store, void (*wake)(void *self),
                                          void *self, struct work_dispatcher **out, rv_err **err);
void app_work_dispatcher_tell(struct work_dispatcher *d);  /* something was queued, or is to be cancelled */
void app_work_dispatcher_drain(struct work_dispatcher *d); /* it claims nothing new */
void app_work_dispatcher_give(struct work_dispatcher *d, struct work_job *j); /* it has ended */
struct work_job *app_work_dispatcher_take(struct work_dispatcher *d);         /* those to begin, by `next` */
bool app_work_dispatcher_is_empty(struct work_dispatcher *d);                 /* it holds no task */
/** True when it holds no task and there was none to be claimed: from then on it claims none, and is only to be freed.
 */
bool app_work_dispatcher_end_if_idle(struct work_dispatcher *d);
/** True once after something was announced that may be a request to cancel a run. */
bool app_work_dispatcher_heard_cancel(struct work_dispatcher *d);
void app_work_dispatcher_free(
    struct work_dispatcher *d); /* waits until the store was told what it was given; NULL is fine */

/* --- apart.c, on the loop: a run in a process of its own --- */
struct uv_loop_s;
/** on_exit comes on the loop: by what signal it ended (0: none), and with what status. */
RV_MUST_CHECK int app_work_apart_begin(struct work_job *j, struct uv_loop_s *loop,
                                       void (*on_exit)(struct work_job *j, int status, int number), rv_err **err);
void app_work_apart_kill(struct work_job *j);

#endif

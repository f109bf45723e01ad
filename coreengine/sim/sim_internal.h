/* Shared by the files of the simulation. Everything of one seed belongs to one thread. */
#ifndef RV_SIM_INTERNAL_H
#define RV_SIM_INTERNAL_H

#include "config/analysis/analysis.h"
#include "coreengine/sim/sim_values_internal.h"
#include "coreengine/sim/sim_watch_internal.h"
#include "coreengine/store/journal/journal.h"

#define SIM_T0_US         INT64_C(1700000000000000) /* when every run begins: 2023-11-14T22:13:20Z */
#define SIM_MAX_TEXT      ((size_t)64 << 20)        /* one reply, request or line: as RV_STATE_MAX_BYTES */
#define SIM_MAX_TRACE     ((size_t)4 << 20)         /* bytes: a person reads its end; a longer one is cut */
#define SIM_MAX_PROCESSES 100                       /* of one run; then it is left alone */
#define SIM_SHOWN         160                       /* bytes of a text in a trace */
#define SIM_MAX_BROKEN    4096                      /* bytes that say what is wrong: a screen for a person */
#define SIM_ASK_AGENT     "ask_agent"

/* --- the parts of a seed --- */
struct sim_seed;

/* The outcome that is planned for a call. */
struct sim_outcome {
    bool failed, retryable;
    const char *error_type; /* static */
    rv_buf text;            /* reply, or the error's text */
    rv_buf partial;         /* MODEL, failed: what had come */
    rv_buf calls;           /* MODEL: tools it asks for; llm.tool_calls shows it */
    struct rv_llm_answer llm;
    bool takes_effect; /* TOOL: the world changes */
};
/* A call that is under way, or a timer. */
struct sim_call {
    int64_t call_id, due_us, effect_us, visit, attempt;
    enum rv_effect_kind kind; /* CALL_*, ARM_TIMER */
    int stage, effect_class;
    char *name, *key; /* owned; NULL for a timer */
    char *who;        /* owned; whose it is: "stage", or "stage > agent > agent"; NULL for a timer */
    bool is_agents;   /* of an agent that was asked */
    struct sim_outcome outcome;
    bool landed; /* its effect happened */
};

/* world.c: what is outside and stays when a process dies */
struct sim_key {
    char *key, *tool, *args; /* owned */
    int effect_class;
    int64_t visit;     /* of the first call */
    int64_t asked;     /* performed so often */
    int64_t asked_us;  /* when the core asked for it last */
    int64_t effects;   /* that happened */
    int64_t last_call; /* call id */
    bool finished;     /* the journal has a successful result of the call */
    bool released;     /* a person saw that it did not happen: it may be called once more */
    bool settled;      /* a person saw that it did: it may not */
};
struct sim_world {
    struct sim_key *keys; /* owned */
    size_t n, cap;
    int64_t *finished; /* ids of calls whose answer is journaled; owned */
    size_t n_finished, cap_finished;
};
void sim_world_fini(struct sim_world *w);
struct sim_key *sim_world_find(struct sim_world *w, const char *key);
void sim_world_effect(struct sim_seed *s, struct sim_call *c);
RV_MUST_CHECK int sim_world_finished(struct sim_seed *s, const struct rv_event *ev, rv_err **err);
/** The calls under way go on without their process, or not. */
void sim_world_orphaned(struct sim_seed *s);

/* ledger.c: what was journaled, as the processes saw it when they wrote it */
struct sim_entry {
    int64_t seq;          /* of the step's first record, its event */
    uint64_t acts, state; /* event and effects; state dict */
};
struct sim_ledger {
    struct sim_entry *entries; /* owned */
    size_t n, cap, at;         /* at: where a replay is */
    struct rv_hash hash;       /* over all events and effects */
    rv_buf text;               /* of one step; reused */
};
RV_MUST_CHECK int sim_ledger_add(struct sim_seed *s, const struct rv_event *ev, int64_t seq, rv_err **err);
/** on_step of a replay; self is the seed. */
RV_MUST_CHECK int sim_ledger_compare(void *self, const struct rv_record *record, const struct rv_event *ev,
                                     const struct rv_effects *effects, const rv_run *run, rv_err **err);
/** Replay the journal as a whole and up to some record, and compare. */
RV_MUST_CHECK int sim_ledger_verify(struct sim_seed *s, rv_err **err);

/* session.c: the conversation that a run belongs to, and the rows that are kept for it */
struct sim_row {
    char *id, *parent, *call; /* owned; NULL: none */
    int type;                 /* enum rv_message_type */
};
struct sim_session {
    bool exists;
    struct rv_conversation conversation; /* its history is owned */
    int64_t n_before;                    /* rows of earlier turns */
    struct sim_row *rows;                /* that journaled steps have kept; owned */
    size_t n_rows, cap_rows;
    struct rv_usage kept; /* what the turns say that they took */
    bool *has_turn;       /* per stage; owned */
    int64_t n_agents;     /* that ended below stages that join it */
    int64_t n_answers;    /* rows with what such agents said */
};
/** Perhaps the run is a turn of a conversation. */
RV_MUST_CHECK int sim_session_begin(struct sim_seed *s, rv_err **err);
void sim_session_agent_ended(struct sim_seed *s, int stage);
RV_MUST_CHECK int sim_session_step(struct sim_seed *s, rv_err **err);
/** The store has the rows of the journaled steps and no others, and a next turn could be told of them. */
RV_MUST_CHECK int sim_session_verify(struct sim_seed *s, rv_err **err);
void sim_session_fini(struct sim_session *c);

/* For tests: makes the simulated process do wrong. */
struct sim_tamper {
    int (*after_replay)(void *self, struct sim_seed *s, struct rv_replayed *r, rv_err **err); /* may be NULL */
    void *self;                                                                               /* borrowed */
};

struct sim_seed {
    const struct rv_sim_opts *opts;       /* borrowed, as all up to tally */
    const struct rv_sim_subject *subject; /* borrowed */
    struct sim_hints *hints;              /* borrowed from struct sim_setup */
    const struct rv_proof *proof;         /* borrowed */
    const struct sim_tamper *tamper;      /* borrowed; NULL: none */
    struct rv_sim_report *tally;          /* of the thread; borrowed */
    uint64_t seed;
    struct sim_tape tape;
    uint32_t rates[RV_N_SIM_FAULTS]; /* per mille */
    bool *scripted;                  /* per stage; borrowed from the thread; NULL: none */
    json_object *scripted_inner;     /* names of stages inside of stages; borrowed the same way; NULL: none */
    int64_t now_us, last_event_us, n_steps;

    rv_store *store;             /* owned */
    rv_journal *journal;         /* NULL while no process runs it; owned */
    rv_run *run;                 /* owned */
    struct rv_replayed replayed; /* what the run borrows from when it comes out of a journal; its own run is NULL */
    rv_journal *ghost;           /* of a process that was taken for dead; NULL: none; owned */
    char run_id[RV_ID_MAX], owner[32];
    int64_t n_owners;
    struct rv_effects fx;

    struct sim_call *calls; /* owned */
    size_t n_calls, cap_calls;
    struct sim_world world;
    struct sim_ledger ledger;
    struct sim_watch watch;
    struct sim_session session;
    char **answered; /* ids of interrupts whose answer is journaled; owned */
    size_t n_answered, cap_answered;
    char *asked_key; /* owned; of the call that an answer under way is about; NULL: none */
    bool is_parked;  /* it waits for an answer that does not come */

    bool is_broken;
    enum rv_sim_invariant invariant;
    rv_buf broken; /* what is wrong */
    rv_buf *trace; /* NULL: not wanted; borrowed */
};

/* process.c: the simulated process */
RV_MUST_CHECK int sim_process_begin(struct sim_seed *s, rv_err **err);
/** One event for the core, journaled and acted on; the process may die on the way. *refused (may be NULL): the code of
 *  an answer that was not accepted; then nothing happened. */
RV_MUST_CHECK int sim_process_step(struct sim_seed *s, const struct rv_event *ev, int *refused, rv_err **err);
RV_MUST_CHECK int sim_process_crash(struct sim_seed *s, rv_err **err);
/** Time has passed, and the process has kept its lease meanwhile. */
RV_MUST_CHECK int sim_process_renew(struct sim_seed *s, rv_err **err);
/** Another process takes over: recovery, or an answer. */
RV_MUST_CHECK int sim_process_open(struct sim_seed *s, rv_err **err);
/** Free the journals of the seed, and roll back what it wrote. */
void sim_process_leave_store(struct sim_seed *s);
void sim_process_fini(struct sim_seed *s);

/* world.c: calls under way */
RV_MUST_CHECK int sim_call_start(struct sim_seed *s, struct rv_effect *e, rv_err **err);
RV_MUST_CHECK int sim_timer_start(struct sim_seed *s, const struct rv_effect *e, rv_err **err);
void sim_call_cancel(struct sim_seed *s, int64_t call_id);
void sim_calls_drop(struct sim_seed *s);        /* all */
size_t sim_call_next(const struct sim_seed *s); /* index of what is due first; n_calls > 0 */
/** Take the call out and make its event; the texts live until the call is freed. */
struct sim_call sim_call_take(struct sim_seed *s, size_t at, struct rv_event *ev);
void sim_call_fini(struct sim_call *c);

/* output.c, model.c, answers.c */
RV_MUST_CHECK int sim_output(struct sim_seed *s, int stage, struct sim_rng *r, json_object **out, rv_err **err);
RV_MUST_CHECK int sim_model_answer(struct sim_seed *s, const struct rv_effect *e, struct sim_outcome *o, rv_err **err);
RV_MUST_CHECK int sim_tool_answer(struct sim_seed *s, const struct rv_effect *e, struct sim_outcome *o, rv_err **err);
RV_MUST_CHECK int sim_hook_answer(struct sim_seed *s, const struct rv_effect *e, struct sim_outcome *o, rv_err **err);
/** Arguments of ask_agent; self: who asks. */
RV_MUST_CHECK int sim_ask_arguments(struct sim_seed *s, const char *self, struct sim_rng *r, rv_buf *text,
                                    rv_err **err);
void sim_outcome_fail(struct sim_outcome *o, const char *type, bool retryable, const char *text);
/** The script's answer, if it has one. */
RV_MUST_CHECK int sim_script_answer(struct sim_seed *s, const struct rv_effect *e, enum rv_script_kind kind,
                                    struct sim_outcome *o, bool *found, rv_err **err);

/* people.c */
/** The run waits: answer it, or park it without an answer. */
RV_MUST_CHECK int sim_people(struct sim_seed *s, rv_err **err);
/** An answer is in the journal. */
RV_MUST_CHECK int sim_people_answered(struct sim_seed *s, const struct rv_event *ev, rv_err **err);

/* trace.c: what goes wrong; and what happens in plain words, if a trace is wanted */
/** An invariant does not hold. The first one counts. */
void sim_break(struct sim_seed *s, enum rv_sim_invariant inv, const char *fmt, ...) RV_PRINTF(3, 4);
/** An engine call failed that must not: out of memory goes up, anything else breaks the invariant. Takes *err. */
RV_MUST_CHECK int sim_unexpected(struct sim_seed *s, enum rv_sim_invariant inv, int rc, const char *what, rv_err **err);
void sim_injected(struct sim_seed *s, enum rv_sim_fault fault);
/** Perhaps one of these, by this run's rates, and noted: its number from 1; 0: none. At most SIM_MAX_KINDS. */
#define SIM_MAX_KINDS 4 /* no place of the simulation chooses among more: their rates are on the stack */
size_t sim_inject(struct sim_seed *s, const enum rv_sim_fault *kinds, size_t n);
void sim_say(struct sim_seed *s, const char *fmt, ...) RV_PRINTF(2, 3);
void sim_say_event(struct sim_seed *s, const struct rv_event *ev, const struct sim_call *c);
void sim_say_effects(struct sim_seed *s);
/** Members of an observable event; "" and 0: it has none. */
const char *sim_text(json_object *line, const char *key);
int64_t sim_number(json_object *line, const char *key);
const char *sim_stage_name(const struct sim_seed *s, int stage);
/** The owner of an effect: "stage", or "stage > agent > agent". The caller's; NULL: no memory. */
char *sim_who(const struct sim_seed *s, const struct rv_effect *e);

/* seed.c */
struct sim_setup { /* what a thread needs to run a seed; borrowed, where nothing else is said */
    const struct rv_sim_opts *opts;
    const struct rv_sim_subject *subject;
    struct sim_hints *hints; /* owned */
    struct rv_proof proof;
    const struct sim_tamper *tamper;
    bool *scripted;              /* owned; NULL: none */
    json_object *scripted_inner; /* owned; NULL: none */
    /* Owned. All that a seed writes is one group, which is rolled back: the next seed finds the store empty, and with
     * its statements prepared. */
    rv_store *store;
};
/* Borrowed for the run. */
struct sim_try {
    uint64_t seed;
    const uint32_t *script; /* decisions; NULL: those of the seed */
    size_t n_script;
    rv_buf *trace;               /* gets what happens; NULL: it is not written */
    struct rv_sim_report *tally; /* gets what it reached */
};
/** One run. s is to be ended with sim_seed_fini() in any case. */
RV_MUST_CHECK int sim_once(const struct sim_setup *setup, const struct sim_try *of, struct sim_seed *s, rv_err **err);
void sim_seed_fini(struct sim_seed *s);

/* report.c */
/** The stages, and the routes that runs of the mode (enum rv_run_mode) may take. */
RV_MUST_CHECK int sim_places_new(const struct rv_pipeline *p, int mode, struct rv_sim_report *r, rv_err **err);
void sim_places_hit(struct rv_sim_report *r, enum rv_sim_place_kind kind, int stage, int64_t rule);

/* run.c */
RV_MUST_CHECK int sim_run_tampered(const struct rv_sim_opts *opts, const struct sim_tamper *tamper,
                                   struct rv_sim_report *out, rv_err **err);

#endif

/* Simulation: a pipeline of the user's own, driven through the pure core in virtual time, thousands of times, with
 * everything around it made up: models, tools, hooks, people, time, and a process that dies at any point.
 *
 * One seed is one run with all its crashes, recoveries and answers, against a journal in memory. The same seed does the
 * same on any build and with any number of threads. What must hold for every run is checked on the way (see
 * RV_SIM_INVARIANTS); a seed that breaks something is cut down to the fewest decisions that still break it. */
#ifndef RV_SIM_H
#define RV_SIM_H

#include "coreengine/run/run.h"
#include "coreengine/tools/script/script.h"

/* The faults that can happen. Each seed has some of them switched on, with rates of its own. */
#define RV_SIM_FAULTS(X)                                                                                               \
    X(MODEL_ERROR, "model-error", "a model is overloaded, limited or refuses")                                         \
    X(MODEL_TIMEOUT, "model-timeout", "a model does not answer in time")                                               \
    X(MODEL_REPLY, "model-reply", "a reply is cut off, empty, huge, no object, or lacks fields")                       \
    X(TOOL_ERROR, "tool-error", "a tool fails, with or without its effect")                                            \
    X(TOOL_TIMEOUT, "tool-timeout", "a tool does not answer in time, with or without its effect")                      \
    X(TOOL_REPLY, "tool-reply", "a tool's result does not fit its schema or is not a result")                          \
    X(HOOK_ERROR, "hook-error", "a hook, policy, mock or routing function fails or is late")                           \
    X(HOOK_REPLY, "hook-reply", "one of them answers what it must not")                                                \
    X(PERSON_ABSENT, "person-absent", "no person answers an interrupt")                                                \
    X(PERSON_LATE, "person-late", "the answer comes after the interrupt expired")                                      \
    X(PERSON_WRONG, "person-wrong", "an answer of the wrong kind comes first")                                         \
    X(PERSON_TWICE, "person-twice", "an interrupt is answered twice")                                                  \
    X(CANCEL, "cancel", "the run is cancelled")                                                                        \
    X(CRASH_BEFORE, "crash-before", "the process dies before a step is journaled")                                     \
    X(CRASH_AFTER, "crash-after", "the process dies after a step is journaled, before it is acted on")                 \
    X(CRASH_AMID, "crash-amid", "the process dies when some of a step was acted on")                                   \
    X(CRASH_IDLE, "crash-idle", "the process dies while calls are under way")                                          \
    X(ZOMBIE, "zombie", "a process that was taken for dead goes on writing")
#define RV_SIM_FAULT_CONST(n, t, m) RV_SIM_##n,
enum rv_sim_fault { RV_SIM_FAULTS(RV_SIM_FAULT_CONST) RV_N_SIM_FAULTS };
#define RV_SIM_ALL_FAULTS ((1u << RV_N_SIM_FAULTS) - 1) /* a bit for each */
/** A list "crash-idle,tool-error"; "crash" stands for all that begin so; "all", "none". RV_E_INVALID names the nearest.
 */
RV_MUST_CHECK int rv_sim_faults_of(rv_str text, unsigned *out, rv_err **err);

/* The properties that must hold for every run. */
#define RV_SIM_INVARIANTS(X)                                                                                           \
    X(BOUNDS, "bounds", "no bound of the pipeline is passed, and no number that was proven")                           \
    X(ONCE, "once", "a non_idempotent call takes effect at most once")                                                 \
    X(NO_REPEAT, "no-repeat", "no finished call is made again, and a repeat has the same key and arguments")           \
    X(ENDS, "ends", "a run ends or waits for an answer")                                                               \
    X(EVENTS, "events", "events are gapless and in order, and done is the last")                                       \
    X(ANSWERS, "answers", "an interrupt is answered once, in time, by an answer of its kind")                          \
    X(REPLAY, "replay", "the journal gives the same events, effects and state, byte for byte, as a whole and in part") \
    X(OUTPUTS, "outputs", "what a stage came up with is there when the run ends")                                      \
    X(OWNER, "owner", "who lost a run writes nothing to it")                                                           \
    X(AGENTS, "agents",                                                                                                \
      "an agent that is asked begins and ends once, within who asked it, and each call has one result")                \
    X(ROWS, "rows", "a kept turn is whole, its calls have their results, and it says what it took")                    \
    X(CORE, "core", "the core takes every event that fits")
#define RV_SIM_INVARIANT_CONST(n, t, m) RV_SIM_KEEPS_##n,
enum rv_sim_invariant { RV_SIM_INVARIANTS(RV_SIM_INVARIANT_CONST) RV_N_SIM_INVARIANTS };

/* An agent that may be asked by others. Texts are borrowed from the subject. */
struct rv_sim_agent {
    const char *name;
    rv_str document; /* ptr NULL: the document exists but is not usable */
};

/* The simulation of one thread. JSON trees are not to be shared between threads: each has its own of everything. */
struct rv_sim_subject {
    const struct rv_pipeline *pipeline; /* sound; borrowed, as all below */
    const struct rv_catalog *catalog;   /* specifications only: nothing in it is called. NULL: nothing is known */
    rv_script *script;                  /* answers what it has entries for; NULL: none */
    const char *const *tools;           /* that plans may name where a stage has no whitelist */
    size_t n_tools;
    const struct rv_sim_agent *agents; /* that ask_agent finds; no other is there */
    size_t n_agents;
};

/* What it points to is borrowed for the call. */
struct rv_sim_opts {
    const struct rv_sim_subject *subjects; /* the same pipeline, once per thread */
    size_t n_subjects;
    uint64_t first_seed;
    int64_t n_seeds;
    unsigned faults;   /* bits 1u << enum rv_sim_fault */
    int mode;          /* enum rv_run_mode or RV_UNSET */
    bool use_mocks;    /* stages with a mock handler are mocked */
    bool trace;        /* keep what happened, of the last seed, in plain words */
    int64_t max_steps; /* of one run; 0: RV_SIM_MAX_STEPS */
    void (*progress)(void *self, int64_t done, int64_t total); /* any thread, never two at once; may be NULL */
    void *self;
};
#define RV_SIM_MAX_STEPS 20000 /* events of a run: no sane run has more */
/* as `reeve sim` without options */
#define RV_SIM_OPTS_INIT ((struct rv_sim_opts){.n_seeds = 1000, .faults = RV_SIM_ALL_FAULTS, .mode = RV_UNSET})

/* A place that runs pass: a stage, or one of its exits. */
enum rv_sim_place_kind {
    RV_SIM_STAGE,
    RV_SIM_RULE,
    RV_SIM_FUNCTION,
    RV_SIM_DEFAULT,
    RV_SIM_NO_MATCH,
    RV_SIM_ERROR_ROUTE
};
struct rv_sim_place {
    enum rv_sim_place_kind kind;
    int stage, rule; /* rule: of RULE */
    int64_t hits;
};
struct rv_sim_failure {
    uint64_t seed;
    enum rv_sim_invariant invariant;
    char *text;                   /* what is wrong; owned */
    char *trace;                  /* the events that led to it, as text, shortened; owned */
    size_t n_decisions, n_before; /* left of how many */
};
struct rv_sim_report {
    int64_t n_seeds;                 /* that were run */
    int64_t by_status[RV_N_RUN];     /* how they ended */
    int64_t faults[RV_N_SIM_FAULTS]; /* injected */
    int64_t n_steps, n_calls, n_recoveries, n_answers, n_effects;
    int64_t n_asked;             /* calls of ask_agent */
    int64_t n_agents;            /* agents that began to work for another one */
    int64_t n_agents_ok;         /* that had an answer */
    int64_t max_depth;           /* one that is asked by a stage is 1 deep */
    int64_t n_agent_calls;       /* made by them */
    int64_t n_agent_faults;      /* faults of their calls, deaths and cancels while one of them was at work */
    int64_t n_turns, n_rows;     /* that were kept of conversations */
    struct rv_sim_place *places; /* owned */
    size_t n_places;
    char hash[RV_HASH_MAX]; /* over all events and effects of all seeds */
    int64_t elapsed_us;
    bool has_failure;
    struct rv_sim_failure failure; /* of the smallest seed that has one */
    char *trace;                   /* if it was asked for; owned */
};
/** Run the seeds; stops at a failure, which is a result. RV_E_INVALID (no subject, pipeline not sound), RV_E_NOMEM,
 *  RV_E_IO (no thread). */
RV_MUST_CHECK int rv_sim_run(const struct rv_sim_opts *opts, struct rv_sim_report *out, rv_err **err);
void rv_sim_report_fini(struct rv_sim_report *r);
void rv_sim_report_write_text(const struct rv_sim_report *r, const struct rv_pipeline *p, rv_buf *b);
void rv_sim_report_write_json(const struct rv_sim_report *r, const struct rv_pipeline *p, rv_jw *w);

#endif

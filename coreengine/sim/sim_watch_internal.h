/* Invariants on what the core says it does: its events, calls and timers, and the agents that are asked. */
#ifndef RV_SIM_WATCH_H
#define RV_SIM_WATCH_H

#include "coreengine/run/run.h"
#include "coreengine/sim/sim.h"

struct sim_seed;

/* --- agents that are asked, as events tell --- */
enum sim_asked_state { SIM_ASKED, SIM_AT_WORK, SIM_ENDED };
struct sim_asked { /* a call of ask_agent, and the agent that works for it */
    char *path;    /* owned: stage, visit and the ids of the calls down to this one */
    int64_t id;    /* one of a kind in a run */
    int stage;
    enum sim_asked_state state;
    bool has_result;
    int64_t until_us;     /* AT_WORK: none of its calls may take longer */
    struct rv_usage told; /* what events say that its own model calls took */
};
struct sim_open { /* a call or timer without an answer */
    int64_t call_id;
    int64_t asked;           /* id of the agent whose it is; 0: a stage's */
    int64_t worst_micro_usd; /* that a model call can cost; with a budget */
};

/* --- watch.c --- */
struct sim_watch {
    int64_t next_seq, last_call_id;
    int64_t n_visits, n_llm, n_loops;
    int64_t *visits; /* per stage: that began; owned */
    bool *is_open;   /* per stage: begun, not completed; owned */
    int64_t *edges;  /* n_agents * n_agents: taken; owned */
    int from, to;    /* the last decision of a sequential run; to -1: none */
    bool is_done;    /* since the last start or answer */
    bool has_begun;
    bool ends_waiting; /* the run is cancelled while it waits for a person: its branches end, and it does not begin */
    int64_t n_answers;
    struct rv_usage told;  /* what events say that model calls took */
    struct sim_open *open; /* ascending; owned */
    size_t n_open, cap_open;
    struct sim_asked *asked; /* of stages that have not ended; owned */
    size_t n_asked, cap_asked;
    int64_t last_asked; /* id */
    int64_t last_us;    /* of the event before */
};
RV_MUST_CHECK int sim_watch_init(struct sim_watch *w, const struct rv_pipeline *p, rv_err **err);
void sim_watch_fini(struct sim_watch *w);
RV_MUST_CHECK int sim_watch_step(struct sim_seed *s, const struct rv_event *ev, rv_err **err);
/** Parse an event line; the caller owns the result. NULL: the line is not JSON (sim_break() was called), or memory ran
 * out (the tape has it). */
json_object *sim_watch_parse(struct sim_seed *s, const struct rv_effect *e);
/** Check that these are the open calls. */
void sim_watch_recovered(struct sim_seed *s, const struct rv_effects *open);

/* --- watch_agents.c --- */
/** An event, or a call or timer (*id: of the agent whose it is, 0: a stage's). */
RV_MUST_CHECK int sim_asked_event(struct sim_seed *s, size_t at, rv_err **err);
RV_MUST_CHECK int sim_asked_call(struct sim_seed *s, const struct rv_effect *e, int64_t *id, rv_err **err);
void sim_asked_told(struct sim_seed *s, const struct rv_effect *e, const struct rv_usage *used);
/** A take-over moves deadlines. */
void sim_asked_recovered(struct sim_watch *w, int64_t gap_us);
/** At the end of a step: who has ended waits for nothing. */
void sim_asked_step_ended(struct sim_seed *s);
void sim_asked_fini(struct sim_watch *w);
bool sim_asked_at_work(const struct sim_watch *w);

#endif

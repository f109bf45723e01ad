/* A run under way whose every step is journaled, and what it looked like after each. Answers come from a seed: what is
 * answered first, failures, outcomes nobody knows, pauses, other processes that go on with it. */
#ifndef RV_TESTS_JOURNAL_LIVE_H
#define RV_TESTS_JOURNAL_LIVE_H

#include <check.h>

#include "coreengine/store/journal/journal.h"
#include "tests/kit/kit.h"

#define LIVE_T0       INT64_C(1700000000000000)
#define LIVE_MAX_TEXT ((size_t)256 << 20)
#define LIVE_RUN      "env_live"

/* After a step. */
struct shot {
    int64_t seq; /* of its last record */
    char *state, *open;
    size_t effects_len; /* of live.effects, up to here */
    int64_t now_us, n_events;
};
struct live_call {
    int64_t id, at_us;
    enum rv_effect_kind kind;
    enum rv_name_kind entry;
    char *json;
};
struct live {
    rv_store *store;
    rv_findings *findings;
    struct rv_pipeline *p;
    struct rv_catalog catalog;
    struct rv_journal_begin begin;
    rv_run *run;
    rv_journal *j;
    struct rv_rand_state bits;
    struct rv_rand rand;
    int64_t now_us;
    struct rv_effects fx;
    rv_buf effects;          /* every effect of the run as a line of JSON */
    struct live_call *calls; /* open ones */
    size_t n_calls;
    struct shot *shots;
    size_t n_shots;
    int64_t n_events;
    bool is_calm;                              /* no failures, no other processes, no cancel */
    int n_pauses;                              /* answered */
    void (*after)(void *self, struct live *l); /* each step; NULL: nothing */
    void *self;
};

extern const struct rv_catalog live_catalog; /* tools of every effect class; knows no entry and no prompt */
extern const char *const live_pipelines[];
extern const size_t live_n_pipelines;

/** A run of the pipeline in a fresh journal of the store, not begun. */
struct live *live_new(rv_store *store, const char *yaml, uint64_t seed, int mode);
void live_free(struct live *l);
/** One event: core, journal, shot. 0, or what the core or the journal said. */
int live_step(struct live *l, const struct rv_event *ev, rv_err **err);
/** Until it ends, or waits and the seed has it wait for ever; at most max_steps events. */
void live_go(struct live *l, int max_steps);
/** Another process goes on with it: the journal is given up and taken over. */
void live_hand_over(struct live *l);
int live_pick(struct live *l, int n);

/* Single steps (live_steps.c). */
void live_start(struct live *l);
/** To the first open call, with that reply. What live_step() says. */
int live_reply(struct live *l, const char *text, rv_err **err);
/** The code and a part of the message, or the test ends; takes the error. */
void live_must_say(int rc, int want, rv_err **err, const char *text);

/** The blob that runs are started with; its hash. */
const char *live_bundle(rv_store *store);
struct rv_store_scope live_scope(void);
char *live_state(const rv_run *run);
/** Open calls as lines of JSON. */
char *live_open_text(const struct rv_effects *open);

/* A replay and its effects as text. */
struct played {
    struct rv_replayed r;
    rv_buf effects;
    int n_told;
};
int play(struct live *l, int64_t upto, bool from_snapshot, struct played *out, rv_err **err);
void played_fini(struct played *p);
/** Replay up to that record and compare with what the run was then. */
void live_check_at(struct live *l, int64_t seq, bool from_snapshot);

#endif

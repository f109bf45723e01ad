/* Random graphs of stages as pipeline files, and runs of them against answers, orders and crashes drawn from a seed. */
#ifndef RV_TEST_GRAPHS_H
#define RV_TEST_GRAPHS_H

#include <check.h>

#include "config/analysis/analysis.h"
#include "coreengine/run/run.h"
#include "tests/kit/kit.h"

#define GRAPH_MAX_STAGES 9

/* --- generate.c --- */
struct dice {
    uint64_t state;
};
uint64_t dice_throw(struct dice *d);
int dice_pick(struct dice *d, int n);
bool dice_chance(struct dice *d, int percent);

/* What a graph may have in it. terminate: models answer with that outcome at times. */
struct graph_kinds {
    bool lists, asks, for_each, inner, terminate;
};
#define GRAPH_MAX_INNER 2
/* A pipeline file, and those that its stages run: in0.yaml, in1.yaml. The second one may run the first one. */
struct graph {
    rv_buf yaml, inner[GRAPH_MAX_INNER];
    int n_inner;
    char *story; /* owned; all of them, for messages */
};
/** Most of them are sound. */
void graph_write(struct dice *d, const struct graph_kinds *kinds, struct graph *out);
void graph_fini(struct graph *g);
/** NULL: it is not sound; *findings says why. */
struct rv_pipeline *graph_load(const struct graph *g, rv_findings *findings);

/* --- play.c --- */
enum play_order { PLAY_FIRST, PLAY_LAST, PLAY_ANY };
struct play_opts {
    uint64_t seed;         /* of the answers */
    uint64_t order_seed;   /* of the order */
    enum play_order order; /* which of the calls under way is done next */
    size_t max_parallel;
    int crash_at; /* after that many events another process goes on; -1: never */
    bool late;    /* results of calls that were given up come, too */
    bool terminate;
};
/* How a run ended. */
struct played {
    enum rv_run_status status;
    enum rv_reason reason;
    char *end; /* owned; outputs, state and reason as text */
    int64_t visits, calls, questions, answers;
    int n_events, n_late, n_groups, n_seen; /* n_seen: outputs of other branches that a branch saw, legally */
    int n_inner, n_inner_bounds;            /* visits inside; bounds of inner runs that were hit, or just met */
    int n_terminated, n_inner_terminated;   /* outputs that ended a run; those among them that ended an inner one */
    char *story;                            /* owned; events and effects, one a line */
};
/** Run the pipeline; everything that must hold in any order is checked on the way. */
void play(const struct rv_pipeline *p, const char *yaml, const struct play_opts *opts, struct played *out);
void played_fini(struct played *p);

void add_graphs_tests(Suite *suite);

#endif

/* What every test of the shell starts with: a pipeline and a script from text, one run through an engine, and what was
 * seen on the way. */
#ifndef RV_TESTS_SHELL_WORLD_H
#define RV_TESTS_SHELL_WORLD_H

#include <check.h>

#include "coreengine/engine/engine.h"

#define HANGS_MS 600000 /* what is not over by then hangs, however slow the machine */

struct world {
    struct rv_pipeline *pipeline;
    rv_script *script;
    rv_plugins *plugins;
    rv_engine *engine;
    rv_exec *exec;
    rv_journal *journal;                            /* with how.store */
    rv_buf events, effects, inputs, deltas, states; /* one line each */
    rv_buf pieces;                                  /* ids of the tool calls that deltas told */
    int64_t started_us;
    int spoils; /* the core is told nonsense instead of events of that kind, enum rv_event_kind; RV_UNSET: of none */
};

/* A store of which the at-th of the points whose name begins like that fails, once. */
struct breaker {
    const char *points; /* "": all */
    int at, seen;
    bool fired;
    int rc;         /* that it fails with; 0: RV_E_IO */
    char where[32]; /* the point that failed */
};
void world_break(rv_store *store, struct breaker *b);

/* A pipe. What waits `until` it is opened (tests/plugins/slow.c) goes on after gate_open(). */
struct gate {
    char *dir, *path;
    int fd;
};
void gate_init(struct gate *g);
void gate_open(struct gate *g);
/** Once nothing waits for it. */
void gate_fini(struct gate *g);

/* How to run; zeroed: simulated time, two workers. */
struct how {
    bool real_time, use_mocks, saves, no_answers, traces;
    size_t workers, max_parallel;
    int64_t worker_idle_ms;
    int mode;                        /* 0: the pipeline's; else enum rv_run_mode + 1 */
    const char *const *capabilities; /* NULL-terminated; found in the build */
    struct rv_clock clock;
    rv_log *log;
    int64_t start_us;                    /* 0: a fixed time */
    int64_t lease_us;                    /* 0: the default */
    rv_store *store;                     /* keep the run in it; borrowed; NULL: nowhere */
    const struct rv_exec_quotas *quotas; /* NULL: none */
    const struct rv_exec_services *services;
    const struct rv_conversation *conversation; /* NULL: none */
    bool cancels;                               /* world_continue() cancels the run */
    json_object *plan; /* output "plan" of the state that the run starts from; borrowed; NULL: none */
};

void world_load(struct world *w, const char *pipeline, const char *script, const char *const *capabilities);
/** An engine and a fresh envelope with fixed ids and that input, started. */
void world_start(struct world *w, const struct how *how, const char *input);
int world_try_start(struct world *w, const struct how *how, const char *input, rv_err **err); /* may fail */
/** Go on with the kept run as another process would: a new engine, the script from its beginning. What
 * rv_engine_continue says. */
int world_continue(struct world *w, const struct how *how, const char *run, const struct rv_response *response,
                   rv_err **err);
/** A run that is kept in the store and whose process dies at the n-th append (from 1; the run's making is none). */
void world_die(const struct how *how, const char *pipeline, const char *script, int n);
/** Its id. */
const char *world_run_id(void);
/** Everything of a run that must not depend on when which process did it; free() it. */
char *world_essence(const rv_envelope *env);
/** Load, start and wait; fails the test when that fails. */
void world_run(struct world *w, const struct how *how, const char *pipeline, const char *script);
void world_fini(struct world *w);

rv_envelope *world_envelope(const char *input, int64_t now_us);
/** Text of the state dict so far; free() it. */
char *world_state(const struct world *w);
/** The status word. */
const char *world_status(const struct world *w);
/** JSON text of an output, free() it; "absent" when there is none. */
char *world_output(const struct world *w, const char *key);
/** Names of the stages in the order they were started, separated by blanks; free() it. */
char *world_visited(const struct world *w);
/** Simulated or real milliseconds since the start. */
int64_t world_elapsed_ms(const struct world *w);
/** The first event line that contains all of it, or NULL. The line is cut out; free() it. */
char *world_event(const struct world *w, const char *a, const char *b);

#endif

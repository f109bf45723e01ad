/* Shared by the files of crash_workers: the queue under test, its workers, and what is done to them. */
#ifndef RV_TESTS_CRASH_WORKERS_H
#define RV_TESTS_CRASH_WORKERS_H

#include "coreengine/app/app.h"
#include "tests/kit/kit.h"
#include "tests/kit/postgres.h"

#define N_WORKERS 4
#define N_STEPS   5
#define N_TENANTS 2
#define N_ROUND   5  /* runs between two kills */
#define MAX_LINES 12 /* effects of them before the kill, at most */
#define LOOK_MS   1000

struct world {
    char *dir, *store, *effects, *pipeline;
    const char *reeve, *capabilities;
    rv_store *handle;
    pid_t workers[N_WORKERS];
    int n_runs, n_submitted, watch;
    struct {
        struct rv_app app;
        struct rv_app_loaded loaded;
    } of[N_TENANTS];
    const char *sync;
    struct rv_kit_postgres *server; /* NULL: none of its own */
    int64_t every_s;                /* between two troubles; 0: after so many effects */
    long n_kills, n_drained, n_ended, n_restarts, n_answers, n_effects;
    long n_refused; /* workers that ended because no server answered, and were started again */
    off_t seen;     /* of the file of effects */
    struct rv_rand_state state;
    struct rv_rand rand;
};

/* troubles.c */
/** Until something was written beside the store, or for a while; workers that ended are started again. */
void wait_for_change(struct world *w);
void start_worker(struct world *w, int i);
void drain_all(struct world *w); /* SIGTERM: each drains, and ends well */
/** A worker is killed, and another one started; or, with a server, what main() tells. */
void make_trouble(struct world *w);

#endif

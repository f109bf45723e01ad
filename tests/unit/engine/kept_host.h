/* A program that hosts an engine with a store, for tests of what the store thread does. The store's points tell which
 * thread passes them; one of them is a gate where the thread waits until the test opens it, as it would wait for a slow
 * disk. Where the loop waited for it, too, the test would never end. */
#ifndef RV_TESTS_SHELL_KEPT_HOST_H
#define RV_TESTS_SHELL_KEPT_HOST_H

#include <pthread.h>
#include <uv.h>

#include "tests/unit/engine/suites.h"

#define N_RUNS   12
#define STAGES   "name: kept\nagents: [{name: a, default_next: b}, {name: b}]"
#define TALKS    "name: talks\nagents: [{name: t, has_llm: true, model_role: m}]\nmodels: {m: scripted:x}"
#define WORDS    "models: {t: [{chunks: [a, b, c]}]}"
#define ASKS     "name: asks\nagents: [{name: ask, default_next: use}, {name: use}]"
#define QUESTION "stages: {ask: [{visit: 1, raise: {kind: clarification, question: which?}}, {output: {}}]}"

struct host {
    uv_loop_t loop;
    struct world w, talks;
    char *dir, url[512];
    rv_store *store;
    rv_engine *engine;
    struct {
        rv_exec *exec;
        rv_journal *journal;
        int rc;
    } runs[N_RUNS];
    bool holds;
    bool is_new;                         /* runs are made with their first step */
    const struct rv_exec_quotas *quotas; /* of runs that start; NULL: none */
    int n_over, n_events, n_deltas;
    pthread_t loop_thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    const char *gate; /* where the thread stops; NULL: nowhere */
    bool is_at_gate;
    const char *fails; /* with the second write that passes it, and n_more behind it */
    int n_more;
    int fails_with; /* 0: RV_E_IO */
    int n_passed;
    int n_writes, n_on_loop, n_begins, n_appends, n_renewals;
    int64_t ahead_us; /* of its clock */
    int n_freed, n_closed;
    char left[64]; /* the id of a run that another process left */
};

int host_at(void *self, const char *point, rv_err **err); /* the store's points */
void host_wait_for_gate(struct host *h);
void host_open_gate(struct host *h);
void host_on_event(void *self, const struct rv_effect *e, rv_str line);
void host_on_over(void *self, rv_exec *x, int rc, const rv_err *err);
int64_t host_now(void *self); /* its clock */
void host_new(struct host *h);
void host_fini(struct host *h);
rv_envelope *host_envelope(size_t i, int64_t now_us);
rv_journal *host_journal(struct host *h, const rv_envelope *env, int64_t now_us);
/** All journals first: what makes them is not looked at. */
void host_start_all(struct host *h, size_t from, size_t upto);

#endif

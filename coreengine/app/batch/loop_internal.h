/* The loop of a batch, shared by the file that turns it and the file of its lines. */
#ifndef RV_APP_BATCH_LOOP_INTERNAL_H
#define RV_APP_BATCH_LOOP_INTERNAL_H

#include <uv.h>

#include "coreengine/app/batch/batch_internal.h"
#include "coreengine/app/past.h"

#define BATCH_MAX_TEXT ((size_t)300 << 20) /* bytes of one result: an envelope and what is around it */

/* Room for a run that goes on. */
struct slot {
    struct batch *b; /* borrowed: it has the slot */
    struct batch_line line;
    rv_script *script; /* borrowed from the pool while the run goes on; NULL: none */
    rv_exec *exec;     /* owned */
    struct rv_app_limits limits;
    bool is_open, is_done, is_failure;
    rv_buf text; /* its result */
};
/* A batch that goes on. All is owned but opts and store. */
struct batch {
    const struct rv_app_batch *opts;
    struct rv_app_batch_sum sum;
    struct batch_reader reader;
    struct batch_seed seed;
    char bundle[RV_STORE_HASH_MAX], owner[RV_OWNER_MAX];
    rv_store *store;
    struct rv_app_run run; /* what all runs have in common; never driven */
    rv_quotas *quotas;
    struct rv_app_services services;
    struct rv_app_past past; /* the bundle of all of them; once a run is over before */
    rv_engine *engine;
    bool *scripted;
    json_object *inner;
    rv_script **scripts; /* those that no run has */
    size_t n_scripts, n_all;
    struct slot *slots;
    size_t n_slots, head, n_used; /* a ring */
    size_t n_running, held;
    int64_t patience_us;
    bool is_alone; /* a line that ended processes runs, and no other does */
    bool is_read;  /* to its end */
    bool is_stopping, hands_over, is_waiting;
    int rc;
    rv_err *why; /* it was stopped */
    uv_loop_t loop;
    uv_idle_t more;
    uv_timer_t tick;
    uv_poll_t input;
    uv_signal_t signals[2];
    bool has_input, is_closed;
};

/* --- batch.c --- */
/** Nothing new is begun; what goes on ends, or else comes to a point where another process can go on with it. */
void batch_stop(struct batch *b, bool lets_end);
/** Stop it by err, which is taken; the first one counts. */
void batch_fail(struct batch *b, int rc, rv_err *err);
/** After anything that changed: is there more to do now, something to wait for, or nothing left? */
void batch_tick(struct batch *b);

/* --- slot.c --- */
/** Begin the run of a line that was read, or go on with it, or read its result. False: not while other runs go on. */
bool batch_begin(struct slot *s);
/** The line cannot be a run: that is its result; any other failure stops the batch. Takes err. */
void batch_conclude_faulty(struct slot *s, int rc, rv_err *err);

#endif

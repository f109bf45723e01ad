/* Which branch of a run waits for which call: calls.c. */
#ifndef RV_RUN_CALLS_INTERNAL_H
#define RV_RUN_CALLS_INTERNAL_H

#include "coreengine/run/run.h"

struct branch;

/* Calls and timers under way, once there are groups. */
struct call_table {
    struct {
        int64_t id;
        struct branch *branch; /* borrowed; NULL: the place is free */
    } * items;                 /* owned */
    size_t cap, n;
};

/** The effects from that one on were asked for by the visit of the branch. */
RV_MUST_CHECK int run_calls_note(rv_run *run, struct branch *b, const struct rv_effects *out, size_t from,
                                 rv_err **err);
struct branch *run_calls_branch(rv_run *run, int64_t call_id); /* that waits for the call; NULL: none does */
void run_calls_answered(rv_run *run, int64_t call_id);
void run_calls_forget(rv_run *run, struct branch *b); /* before it is freed */
void run_calls_fini(struct call_table *t);

#endif

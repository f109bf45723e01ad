/* Questions that no one answered in time: which of a run are due, and when the next one is. A run that waits shows them
 * in its envelope; while other branches still run, each stands in the envelope of its branch. The shell tells the run
 * by an answer that says `expired`, with its time, before any other answer. */
#include "coreengine/run/run_internal.h"

#include <string.h>

/* Its envelope shows what it asks. */
static bool is_paused(const rv_run *run)
{
    return run->finished ? run->status == RV_RUN_INTERRUPTED : !run->started;
}

/* The envelope with the question that is due first; NULL: none is. */
static const rv_envelope *due_in(rv_run *run, int64_t now_us, rv_str *id, int64_t *expired_us)
{
    const rv_envelope *found = NULL;

    if (is_paused(run))
        return rv_envelope_find_due_ask(run->env, now_us, id, expired_us) ? run->env : NULL;
    for (struct branch *b = run->finished ? NULL : questions_first(run); b; b = run_branch_next(b)) {
        rv_str one;
        int64_t at_us;

        if (!run_branch_asks(b) || !rv_envelope_find_due_ask(b->env, now_us, &one, &at_us) ||
            (found && at_us >= *expired_us))
            continue;
        found = b->env;
        *id = one;
        *expired_us = at_us;
    }
    return found;
}

bool rv_run_find_due_question(rv_run *run, int64_t now_us, char id[RV_ID_MAX], struct rv_response *out)
{
    int64_t expired_us;
    rv_str which;

    if (!due_in(run, now_us, &which, &expired_us) || which.len >= RV_ID_MAX)
        return false;
    memcpy(id, which.ptr, which.len);
    id[which.len] = '\0';
    *out = (struct rv_response){.expired = true, .interrupt_id = rv_str_of(id)};
    return true;
}

int64_t rv_run_next_expiry(rv_run *run)
{
    int64_t next_us = 0;

    if (is_paused(run))
        return rv_envelope_next_expiry(run->env);
    for (struct branch *b = run->finished ? NULL : questions_first(run); b; b = run_branch_next(b)) {
        int64_t at_us = run_branch_asks(b) ? rv_envelope_next_expiry(b->env) : 0;

        next_us = at_us && (!next_us || at_us < next_us) ? at_us : next_us;
    }
    return next_us;
}

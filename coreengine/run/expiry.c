/* Questions that no one answered in time: which of a run are due, and when the next one is. The shell tells the run by
 * an answer that says `expired`, with its time, before any other answer. */
#include "coreengine/run/run_internal.h"

#include <string.h>

bool rv_run_due_question(const rv_run *run, int64_t now_us, char id[RV_ID_MAX], struct rv_response *out)
{
    int64_t expired_us;
    rv_str which;

    if (!run->finished || run->status != RV_RUN_INTERRUPTED ||
        !rv_envelope_due_ask(run->env, now_us, &which, &expired_us) || which.len >= RV_ID_MAX)
        return false;
    memcpy(id, which.ptr, which.len);
    id[which.len] = '\0';
    *out = (struct rv_response){.expired = true, .interrupt_id = rv_str_of(id)};
    return true;
}

int64_t rv_run_next_expiry(const rv_run *run)
{
    return run->finished && run->status == RV_RUN_INTERRUPTED ? rv_envelope_next_expiry(run->env) : 0;
}

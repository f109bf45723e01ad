/* Model calls that wait for money. Each stands where its visit does; when a call under way is over, or a bound stops a
 * run, all of them look again, in the order of the lists. */
#include "coreengine/run/run_internal.h"

#include <stdlib.h>

int run_find_short(rv_run *run, struct rv_short *out, rv_err **err)
{
    int rc = 0;

    for (struct branch *b = &run->main; b && rc == 0; b = run_branch_next(b))
        if (b->work)
            rc = run_work_find_short(b->work, out, err);
    for (size_t i = 0; i < run->n_begun && rc == 0; i++)
        if (run->batch_stages[run->batch[i]].work)
            rc = run_work_find_short(run->batch_stages[run->batch[i]].work, out, err);
    return rc;
}

static int look(rv_run *run, const struct rv_short *list, struct rv_effects *out, rv_err **err)
{
    struct rv_visit_shared *root = &run->shared;
    int rc = 0;

    for (size_t i = 0; i < list->n && rc == 0 && !run->finished; i++) {
        const struct rv_event ev = {
            .kind = RV_EVENT_TIMER, .now_us = out->now_us, .call_id = list->timers[i], .llm = RV_LLM_ANSWER_NONE};

        root->told_to_look = ev.call_id;
        rc = run_on_done(run, &ev, out, err); /* no effect where the call was cancelled meanwhile */
        root->told_to_look = 0;
    }
    return rc;
}

int run_look_for_money(rv_run *run, struct rv_effects *out, rv_err **err)
{
    struct rv_visit_shared *root = &run->shared;
    struct rv_short list = {0};
    int rc = 0;

    while (rc == 0 && root->looks_for_money && root->n_short > 0 && !run->finished) {
        root->looks_for_money = false;
        list.n = 0;
        rc = run_find_short(run, &list, err);
        if (rc == 0)
            rc = look(run, &list, out, err);
    }
    root->looks_for_money = false;
    free(list.timers);
    return rc;
}

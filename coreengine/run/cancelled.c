/* Where a run goes on when one of its questions is cancelled. A question of the key `ask` is taken as one that no one
 * answered in time, and the denial of a call is told to the model where its stage says so. Otherwise the stage fails
 * at which the branch stands: its error_next catches that, or its branch fails and the join decides. */
#include "coreengine/run/run_internal.h"

#include <stdlib.h>

#define MAX_TEXT (RV_CANCEL_MAX_REASON + 256) /* bytes of the message about it */

static const char *asker(const struct rv_interrupt *in)
{
    const char *stage = in->stage;

    if (!stage && json_object_is_type(in->data, json_type_object))
        stage = rv_json_text_or(in->data, "stage", stage);
    return stage;
}

/* -1: no stage is left that could fail. */
static int stage_that_fails(const rv_run *run, const struct branch *b, const struct rv_interrupt *in)
{
    const char *name = run->parallel ? asker(in) : rv_envelope_fields(b->env)->current_stage;
    int stage = name ? rv_pipeline_find_stage(run->pipeline, rv_str_of(name)) : -1;

    if (stage < 0 || (run->parallel && rv_envelope_is_completed(b->env, rv_str_of(name))))
        return -1;
    bool arrives = run->pipeline->agents[stage].join.wait != RV_WAIT_NOT && !b->joined;
    return !run->parallel && arrives ? -1 : stage;
}

static int end(rv_run *run, rv_str reason, struct rv_effects *out, rv_err **err)
{
    bool has_reason = rv_str_trim(reason).len > 0;
    rv_buf text = RV_BUF_INIT(MAX_TEXT);

    rv_buf_printf(&text, "the question was cancelled%s%.*s", has_reason ? ": " : "",
                  RV_STR_ARG(has_reason ? reason : RV_STR_LIT("")));
    int rc = rv_buf_check(&text, "reason", err);
    if (rc == 0)
        rc = run_fail(run, RV_RUN_TERMINATED, RV_REASON_USER_CANCELLED, rv_buf_cstr(&text), out, err);
    rv_buf_fini(&text);
    return rc;
}

int run_question_cancelled(rv_run *run, struct branch *b, rv_str reason, struct rv_effects *out, rv_err **err)
{
    const struct rv_interrupt in = rv_envelope_interrupt(b->env);

    if (rv_interrupt_is_ask(in.data))
        return rv_visit_on_answer(&run->shared, b->env, err);
    bool tells = rv_visit_asks_inside(&run->shared, b->env, &in);
    int rc = tells ? 0 : run_tells_denial(run, b, &tells, err);
    if (rc < 0 || tells)
        return rc; /* the stage is visited again, and the run inside, or its model, is told */
    int stage = stage_that_fails(run, b, &in);
    if (stage < 0)
        return end(run, reason, out, err);
    b->held = NULL; /* a list that an answer would have led to */
    free(b->held_taken);
    b->held_taken = NULL;
    rc = run_give_up(run, b, stage, "the question was cancelled", out, err);
    return rc < 0 ? rc : rv_visit_cancel_question(&run->shared, stage, b->env, reason, err);
}

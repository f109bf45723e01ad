/* A run that the engine cannot go on with. What only lacks memory, room or the store can be taken up again, here or by
 * another process. What the core or the journal refuses for what it is would be refused each time: such a run ends as
 * failed. Its journal is replayed to where the refused step began, and the core is told to end it with the reason. What
 * the store refuses may be the rows of a turn, which the end has, too: then the run ends without them. */
#include "coreengine/engine/stuck_internal.h"

#define MAX_WHY ((size_t)64 << 10) /* bytes of the reason in a journal: a chain of errors */

/* The refused step may have left the core in the middle of something. */
static int go_back(rv_exec *x, rv_err **err)
{
    const struct rv_store_scope scope = {.tenant = x->opts.tenant};
    const struct rv_replay_opts opts = {.pipeline = x->opts.pipeline,
                                        .catalog = &x->catalog,
                                        .without_events = true,
                                        .n_records = rv_journal_seq(x->opts.journal),
                                        .from_snapshot = true};
    struct rv_replayed r;

    int rc = rv_journal_replay(x->engine->opts.store, &scope, rv_journal_run(x->opts.journal), &opts, &r, err);
    if (rc < 0)
        return rc;
    bool is_over = rv_run_is_finished(r.run) && rv_run_status(r.run) != RV_RUN_INTERRUPTED;
    if (!is_over)
        exec_take_replayed(x, &r);
    rv_replayed_fini(&r);
    return is_over ? RV_FAIL(err, RV_E_STATE, "the run had ended before that step") : 0;
}

static int end(rv_exec *x, const rv_err *why, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_WHY);
    struct rv_event ev = {.kind = RV_EVENT_CANCEL, .failed = true};

    rv_effects_clear(&x->effects); /* of an end that was refused */
    int rc = go_back(x, err);
    if (rc == 0) {
        rv_err_write_chain(why, &text);
        rv_buf_printf(&text, " [%s]", rv_code_text(rv_err_code(why)));
        rc = rv_buf_check(&text, "the reason", err);
    }
    if (rc == 0) {
        rv_journal_forgive(x->opts.journal);
        x->is_unkept = false;
        ev.now_us = exec_now_us(x);
        ev.error = rv_buf_str(&text);
        rc = exec_step(x, &ev, err);
    }
    rv_buf_fini(&text);
    return rc;
}

void engine_stuck_end(rv_exec *x)
{
    rv_err *why = x->err, *other = NULL;
    int rc;

    x->err = NULL;
    do { /* or the store refuses the end later: then this function is called again */
        rv_err_free(other);
        other = NULL;
        x->is_rowless = x->is_given_up;
        x->is_given_up = true;
        x->is_stuck = false;
        rc = end(x, why, &other);
    } while (rc < 0 && x->is_stuck);
    if (rc < 0) {
        RV_LOG(x->log, ERROR, "run.unended", RV_F_ERR("error", other));
        rv_err_free(other);
        exec_break(x, rv_err_code(why), why);
        return;
    }
    RV_LOG(x->log, WARN, "run.stop", RV_F_ERR("error", why));
    rv_err_free(why);
    if (!x->is_keeping)
        exec_perform(x);
}

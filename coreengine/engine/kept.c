/* Steps that the store thread commits. Until a step is durable its effects are not performed and its run receives no
 * further event; calls and streams of the run continue. */
#include "coreengine/engine/engine_internal.h"

static rv_exec *run_of(struct write *w)
{
    return (rv_exec *)((char *)w - offsetof(rv_exec, write));
}

bool rv_keeps_aside(const rv_exec *x)
{
    const rv_engine *e = x->engine;

    return e->writer && x->opts.journal && !rv_store_in_group(e->opts.store);
}

int rv_writer_start(rv_engine *e, rv_err **err)
{
    rv_err *none = NULL;

    if (!e->opts.loop || !e->opts.store)
        return 0;
    int rc = rv_writer_new(e->opts.store, e->clock, rv_loop_wake, e->loop, &e->writer, &none);
    if (rc == RV_E_STATE) { /* it writes without waiting */
        rv_err_free(none);
        return 0;
    }
    if (rc < 0 && err)
        *err = none;
    else
        rv_err_free(none);
    return rc;
}

/* --- on the thread of the store --- */

static int write_step(struct write *w, rv_store *store, rv_err **err)
{
    return rv_journal_write(run_of(w)->opts.journal, store, err);
}

static void write_rest(struct write *w, rv_store *store)
{
    rv_journal_rest(run_of(w)->opts.journal, store);
}

/* --- on the loop --- */

/* The step was written, or not; what rv_journal_written() says. */
static int kept(rv_exec *x, rv_err **err)
{
    rv_err *failed = x->write.err;

    x->is_keeping = false;
    x->write.err = NULL;
    int rc = rv_journal_written(x->opts.journal, x->write.rc, &failed);
    if (rc == 0)
        rv_lease_proved(x);
    else
        rv_exec_unkept_by(x, &failed);
    *err = failed;
    return rc;
}

static void step_done(struct write *w)
{
    rv_exec *x = run_of(w);
    rv_err *err = NULL;

    int rc = kept(x, &err);
    if (x->is_broken) {
        rv_err_free(err);
        err = x->err;
        x->err = NULL;
        rv_exec_break(x, x->rc, err);
    } else if (rc < 0) {
        rv_exec_break(x, rc, err);
    } else {
        rv_calls_unpark(x);
        x->engine->any_cancel = x->engine->any_cancel || x->cancel_asked;
        rv_exec_perform(x);
    }
}

int rv_keep_aside(rv_exec *x, const struct rv_event *ev, rv_err **err)
{
    rv_journal *j = x->opts.journal;

    int rc = rv_journal_prepare(j, ev, &x->effects, x->run, err);
    if (rc < 0)
        return rc;
    x->write = (struct write){
        .write = write_step, .rest = write_rest, .done = step_done, .until_us = rv_journal_lease_until_us(j)};
    x->is_keeping = true;
    rv_writer_submit(x->engine->writer, &x->write);
    return 0;
}

void rv_keep_wait(rv_exec *x)
{
    rv_err *err = NULL;

    if (!x->is_keeping)
        return;
    rv_writer_wait_for(x->engine->writer, &x->write);
    RV_IGNORE(kept(x, &err), "the caller ends the run now");
    rv_err_free(err);
}

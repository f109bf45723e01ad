/* What makes a run durable: its steps on a given loop, which the store thread commits, and its lease. Until a step is
 * durable its effects are not performed and its run receives no further event; calls and streams of the run continue.
 *
 * Leases: this process says from time to time that it still runs its runs, and hears which ones are to be cancelled. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/stuck_internal.h"

#define LOOK_EVERY_US (250 * RV_US_PER_MS) /* for cancellations */
#define WALK_US       RV_US_PER_S          /* how old the knowledge of all leases may be */
#define RETRY_US      (500 * RV_US_PER_MS) /* after a failed renewal */
#define MAX_CANCELS   ((size_t)1 << 20)    /* bytes of ids; further runs are found by the next look */

/* --- leases --- */

static int64_t lease_us(const rv_engine *e)
{
    return e->opts.lease_us > 0 ? e->opts.lease_us : RV_LEASE_DEFAULT_US;
}

/* A run that is going on has a lease, and so has one that waits while the engine holds it. */
static bool has_lease(const rv_exec *x)
{
    bool waits = x->over && x->opts.holds && x->rc == 0 && x->status == RV_RUN_INTERRUPTED;

    return x->opts.journal && (!x->over || waits);
}

static bool keeps_leases(const rv_engine *e)
{
    if (!e->opts.store || e->opts.virtual_time)
        return false;
    for (const rv_exec *x = e->execs; x; x = x->next)
        if (has_lease(x))
            return true;
    return false;
}

/* Of the leases that last: when the first of them ends. RV_NEVER: none does. Those that begin later end later, so what
 * is known for a short time is right, or too early. */
static int64_t earliest_end(rv_engine *e, int64_t now_us)
{
    int64_t until_us = RV_NEVER;

    if (e->ends_us > now_us && e->ends_us != RV_NEVER && now_us >= e->walked_us && now_us < e->walked_us + WALK_US)
        return e->ends_us;
    for (const rv_exec *x = e->execs; x; x = x->next) {
        if (!has_lease(x))
            continue;
        int64_t this_us = rv_journal_lease_until_us(x->opts.journal);
        if (this_us > now_us && this_us < until_us) /* a run that is over does not limit the others */
            until_us = this_us;
    }
    e->ends_us = until_us;
    e->walked_us = now_us;
    return until_us;
}

static void limit_wait(rv_engine *e)
{
    int64_t now_us = rv_engine_now_us(e);

    if (!keeps_leases(e))
        return;
    int64_t until_us = earliest_end(e, now_us);
    int64_t left_ms = until_us == RV_NEVER ? 0 : (until_us - now_us) / RV_US_PER_MS;
    rv_store_set_wait(e->opts.store, left_ms > 0 ? left_ms : 1);
}

static void end_wait(const rv_engine *e)
{
    if (e->opts.store)
        rv_store_set_wait(e->opts.store, 0);
}

static void renewed(rv_engine *e, int64_t now_us, int64_t until_us, int rc, const rv_err *err)
{
    if (rc < 0) {
        /* no reason to stop yet: another write may succeed before the lease ends */
        RV_LOG(e->opts.log, WARN, "lease.renew_failed", RV_F_ERR("error", err));
        e->renew_at_us = now_us + RETRY_US;
        return;
    }
    for (rv_exec *x = e->execs; x; x = x->next) {
        if (!x->opts.journal)
            continue;
        if (now_us < rv_journal_lease_until_us(x->opts.journal)) {
            rv_journal_on_renewed(x->opts.journal, until_us);
            continue;
        }
        if (has_lease(x) && !x->hoped_until_us)
            RV_LOG(x->log, WARN, "lease.lost", RV_F_TEXT("reason", "it ran out before it was renewed"));
        x->hoped_until_us = until_us; /* unless another process took the run over meanwhile: its next step finds out */
    }
    e->renew_at_us = now_us + lease_us(e) / 3;
}

static void renew(rv_engine *e, int64_t now_us)
{
    int64_t until_us = now_us + lease_us(e);
    rv_err *err = NULL;

    limit_wait(e);
    int rc = rv_store_renew(e->opts.store, e->opts.owner, until_us, &err);
    end_wait(e);
    renewed(e, now_us, until_us, rc, err);
    rv_err_free(err);
}

/* The next look comes soon, so a store that keeps refusing is logged once for each reason. */
static void looked(rv_engine *e, int rc, const rv_err *err)
{
    if (rc < 0 && rc != e->looked)
        RV_LOG(e->opts.log, WARN, "cancels.unread", RV_F_ERR("error", err));
    e->looked = rc;
}

static int cancel_run(void *self, const char *run, rv_err **err)
{
    rv_engine *e = self;

    (void)err;
    for (rv_exec *x = e->execs; x; x = x->next)
        if (x->opts.journal && strcmp(rv_journal_run(x->opts.journal), run) == 0)
            rv_exec_cancel(x);
    return 0;
}

/* --- by the thread of the store --- */

/* A renewal, a look at cancellations, or both. */
struct lease_write {
    struct write write;
    rv_engine *engine; /* for the loop only */
    const char *owner;
    bool renews;
    int64_t now_us, until_us;
    rv_buf cancels; /* ids, each with a NUL behind it */
    bool has_looked;
    int looked; /* how; valid when has_looked */
    rv_err *why;
};

static struct lease_write *lease_write_of(struct write *w)
{
    return (struct lease_write *)((char *)w - offsetof(struct lease_write, write));
}

static int write_renewal(struct write *w, rv_store *store, rv_err **err)
{
    const struct lease_write *l = lease_write_of(w);

    return l->renews ? rv_store_renew(store, l->owner, l->until_us, err) : 0;
}

static int note_cancel(void *self, const char *run, rv_err **err)
{
    (void)err;
    rv_buf_add(self, run, strlen(run) + 1);
    return 0;
}

static void list_cancels(struct write *w, rv_store *store)
{
    struct lease_write *l = lease_write_of(w);

    l->looked = rv_store_list_cancels(store, l->owner, note_cancel, &l->cancels, &l->why);
    l->has_looked = true;
}

static void lease_write_free(struct lease_write *l)
{
    if (!l)
        return;
    rv_buf_fini(&l->cancels);
    rv_err_free(l->write.err);
    rv_err_free(l->why);
    free(l);
}

static void on_renewed(struct write *w)
{
    struct lease_write *l = lease_write_of(w);
    rv_engine *e = l->engine;
    rv_str ids = rv_buf_str(&l->cancels);

    e->lease_write = NULL;
    if (l->renews)
        renewed(e, l->now_us, l->until_us, w->rc, w->err);
    if (l->has_looked)
        looked(e, l->looked, l->why);
    for (size_t at = 0; at < ids.len; at += strlen(ids.ptr + at) + 1)
        RV_IGNORE(cancel_run(e, ids.ptr + at, NULL), "it cannot fail");
    lease_write_free(l);
}

/* False: there is no memory for it. */
static bool renew_aside(rv_engine *e, int64_t now_us, bool renews)
{
    struct lease_write *l = calloc(1, sizeof *l);

    if (!l)
        return false;
    *l = (struct lease_write){.write = {.write = write_renewal,
                                        .rest = list_cancels,
                                        .done = on_renewed,
                                        .until_us = earliest_end(e, now_us),
                                        .is_alone = !renews}, /* a look needs no transaction */
                              .engine = e,
                              .owner = e->opts.owner,
                              .renews = renews,
                              .now_us = now_us,
                              .until_us = now_us + lease_us(e),
                              .cancels = RV_BUF_INIT(MAX_CANCELS)};
    e->lease_write = l;
    engine_writer_submit(e->writer, &l->write);
    return true;
}

void engine_leases_fini(rv_engine *e)
{
    if (e->lease_write)
        engine_writer_wait_for(e->writer, &e->lease_write->write);
    lease_write_free(e->lease_write);
    e->lease_write = NULL;
}

static void look(rv_engine *e)
{
    rv_err *err = NULL;

    int rc = rv_store_list_cancels(e->opts.store, e->opts.owner, cancel_run, e, &err);
    looked(e, rc, err);
    rv_err_free(err);
}

static void maintain(rv_engine *e, int64_t now_us)
{
    bool renews = e->renew_at_us > 0 && now_us >= e->renew_at_us;

    if (e->renew_at_us == 0) /* the runs have just begun, and their leases with them */
        e->renew_at_us = now_us + lease_us(e) / 3;
    if (e->writer) {
        if ((renews || e->look_at_us > 0) && !renew_aside(e, now_us, renews))
            e->renew_at_us = now_us + RETRY_US;
    } else {
        if (renews)
            renew(e, now_us);
        if (e->look_at_us > 0)
            look(e);
    }
    e->look_at_us = now_us + LOOK_EVERY_US;
}

void engine_leases_tick(rv_engine *e)
{
    if (!e->opts.store || e->opts.virtual_time || e->lease_write)
        return;
    int64_t now_us = rv_engine_now_us(e);
    if ((now_us >= e->renew_at_us || now_us >= e->look_at_us) && keeps_leases(e))
        maintain(e, now_us);
}

int64_t engine_leases_due_us(const rv_engine *e)
{
    if (e->lease_write || !keeps_leases(e)) /* the loop is woken when the write under way is done */
        return RV_NEVER;
    return e->renew_at_us < e->look_at_us ? e->renew_at_us : e->look_at_us;
}

void rv_engine_check_cancels(rv_engine *e)
{
    e->look_at_us = e->look_at_us > 0 ? 1 : 0;
}

static void lease_proved(rv_exec *x)
{
    if (x->hoped_until_us > 0)
        rv_journal_on_renewed(x->opts.journal, x->hoped_until_us);
    x->hoped_until_us = 0;
}

int engine_lease_check(const rv_exec *x, rv_err **err)
{
    if (!x->opts.journal || x->engine->opts.virtual_time)
        return 0;
    if (rv_engine_now_us(x->engine) < rv_journal_lease_until_us(x->opts.journal))
        return 0;
    int rc = RV_FAIL(err, RV_E_STATE, "the lease on run \"%s\" ran out while this process stood still",
                     rv_journal_run(x->opts.journal));
    rv_err_set_hint(err, "another process may go on with it: `reeve runs show %s`", rv_journal_run(x->opts.journal));
    return rc;
}

/* --- steps --- */

static rv_exec *run_of(struct write *w)
{
    return (rv_exec *)((char *)w - offsetof(rv_exec, write));
}

static bool keeps_aside(const rv_exec *x)
{
    const rv_engine *e = x->engine;

    return e->writer && x->opts.journal && !rv_store_is_in_group(e->opts.store);
}

int engine_writer_start(rv_engine *e, rv_err **err)
{
    rv_err *none = NULL;

    if (!e->opts.loop || !e->opts.store)
        return 0;
    int rc = engine_writer_new(e->opts.store, e->clock, engine_loop_wake, e->loop, &e->writer, &none);
    if (rc == RV_E_STATE) { /* it writes without waiting */
        rv_err_free(none);
        return 0;
    }
    if (rc < 0)
        rv_err_pass(err, none);
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
    rv_journal_write_rest(run_of(w)->opts.journal, store);
}

/* --- on the loop --- */

/* The texts of a step that was not written are kept for the caller that waits for them. */
static void save_unkept(rv_exec *x)
{
    for (size_t i = 0; i < x->effects.n; i++) {
        struct rv_effect *e = &x->effects.items[i];
        if (e->kind != RV_EFFECT_KEEP)
            continue;
        rv_turn_free(x->unkept);
        x->unkept = e->turn;
        e->turn = NULL;
    }
}

static void unkept_by(rv_exec *x, int rc, rv_err **err)
{
    x->is_unkept = true;
    save_unkept(x);
    if (rc == RV_E_STATE)
        RV_LOG(x->log, WARN, "lease.lost", RV_F_TEXT("reason", "another process has the run"));
    if (!exec_note_stuck(x, rc, err ? *err : NULL))
        rv_err_set_hint(err,
                        "nothing was done that its journal does not have; `reeve runs recover %s` goes on with the run",
                        rv_journal_run(x->opts.journal));
}

/* The step was written, or failed. Returns what rv_journal_on_written() says. */
static int kept(rv_exec *x, rv_err **err)
{
    rv_err *failed = x->write.err;

    x->is_keeping = false;
    x->write.err = NULL;
    int rc = rv_journal_on_written(x->opts.journal, x->write.rc, &failed);
    if (rc == 0)
        lease_proved(x);
    else
        unkept_by(x, rc, &failed);
    rv_err_pass(err, failed);
    return rc;
}

static void step_done(struct write *w)
{
    rv_exec *x = run_of(w);
    rv_err *err = NULL;

    int rc = kept(x, &err);
    if (x->is_freed) {
        rv_err_free(err);
        rv_exec_free(x);
    } else if (x->is_broken) {
        rv_err_free(err);
        err = x->err;
        x->err = NULL;
        exec_break(x, x->rc, err);
    } else if (rc < 0) {
        exec_break(x, rc, err);
    } else {
        engine_calls_unpark(x);
        x->engine->any_cancel = x->engine->any_cancel || x->cancel_asked;
        exec_perform(x);
    }
}

static int keep_aside(rv_exec *x, const struct rv_event *ev, rv_err **err)
{
    rv_journal *j = x->opts.journal;

    int rc = rv_journal_prepare(j, ev, &x->effects, x->run, err);
    if (rc < 0)
        return rc;
    x->write = (struct write){
        .write = write_step, .rest = write_rest, .done = step_done, .until_us = rv_journal_lease_until_us(j)};
    x->is_keeping = true;
    engine_writer_submit(x->engine->writer, &x->write);
    return 0;
}

int engine_keep(rv_exec *x, const struct rv_event *ev, rv_err **err)
{
    int rc;

    if (keeps_aside(x)) {
        rc = keep_aside(x, ev, err);
    } else {
        limit_wait(x->engine);
        rc = rv_journal_step(x->opts.journal, ev, &x->effects, x->run, err);
        end_wait(x->engine);
        if (rc == 0)
            lease_proved(x);
    }
    if (rc < 0)
        unkept_by(x, rc, err);
    return rc;
}

void engine_keep_wait(rv_exec *x)
{
    rv_err *err = NULL;

    if (x->is_opening) {
        engine_writer_wait_for(x->engine->writer, &x->own->write);
        x->is_opening = false;
    }
    if (!x->is_keeping)
        return;
    engine_writer_wait_for(x->engine->writer, &x->write);
    RV_IGNORE(kept(x, &err), "the caller ends the run now");
    rv_err_free(err);
}

/* Leases: this process says from time to time that it still runs its runs, and hears which ones are to be cancelled. */
#include <string.h>

#include "coreengine/shell/shell_internal.h"

#define LOOK_EVERY_US INT64_C(250000) /* for cancellations */
#define RETRY_US      INT64_C(500000) /* after a failed renewal */

static int64_t lease_us(const rv_engine *e)
{
    return e->opts.lease_us > 0 ? e->opts.lease_us : RV_LEASE_DEFAULT_US;
}

static bool keeps_leases(const rv_engine *e)
{
    if (!e->opts.store || e->opts.virtual_time)
        return false;
    for (const rv_exec *x = e->execs; x; x = x->next)
        if (x->opts.journal && !x->over)
            return true;
    return false;
}

void rv_lease_limit_wait(const rv_engine *e)
{
    int64_t until_us = RV_NEVER, now_us = rv_engine_now_us(e);

    if (!keeps_leases(e))
        return;
    for (const rv_exec *x = e->execs; x; x = x->next) {
        if (!x->opts.journal || x->over)
            continue;
        int64_t this_us = rv_journal_lease_until_us(x->opts.journal);
        until_us = this_us > now_us && this_us < until_us ? this_us : until_us; /* one that is over limits no other */
    }
    int64_t left_ms = until_us == RV_NEVER ? 0 : (until_us - now_us) / 1000;
    rv_store_set_wait(e->opts.store, left_ms > 0 ? left_ms : 1);
}

void rv_lease_free_wait(const rv_engine *e)
{
    if (e->opts.store)
        rv_store_set_wait(e->opts.store, 0);
}

static void renew(rv_engine *e, int64_t now_us)
{
    int64_t until_us = now_us + lease_us(e);
    rv_err *err = NULL;

    rv_lease_limit_wait(e);
    int rc = rv_store_renew(e->opts.store, e->opts.owner, until_us, &err);
    rv_lease_free_wait(e);
    if (rc < 0) {
        /* no reason to stop yet: another write may succeed before the lease ends */
        RV_LOG(e->opts.log, WARN, "lease.renew_failed", RV_F_TEXT("error", rv_err_text(err)));
        rv_err_free(err);
        e->renew_at_us = now_us + RETRY_US;
        return;
    }
    for (rv_exec *x = e->execs; x; x = x->next) {
        if (!x->opts.journal)
            continue;
        if (now_us < rv_journal_lease_until_us(x->opts.journal))
            rv_journal_renewed(x->opts.journal, until_us);
        else
            x->hoped_until_us = until_us; /* unless it was taken over meanwhile: the next step will tell */
    }
    e->renew_at_us = now_us + lease_us(e) / 3;
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

void rv_leases_tend(rv_engine *e)
{
    if (!e->opts.store || e->opts.virtual_time)
        return;
    int64_t now_us = rv_engine_now_us(e);
    if (now_us < e->renew_at_us && now_us < e->look_at_us)
        return;
    if (!keeps_leases(e))
        return;
    if (e->renew_at_us == 0) /* the leases are as young as the runs */
        e->renew_at_us = now_us + lease_us(e) / 3;
    else if (now_us >= e->renew_at_us)
        renew(e, now_us);
    if (e->look_at_us > 0)
        RV_IGNORE(rv_store_list_cancels(e->opts.store, e->opts.owner, cancel_run, e, NULL), "asked again soon");
    e->look_at_us = now_us + LOOK_EVERY_US;
}

int64_t rv_leases_due_us(const rv_engine *e)
{
    if (!keeps_leases(e))
        return RV_NEVER;
    return e->renew_at_us < e->look_at_us ? e->renew_at_us : e->look_at_us;
}

void rv_lease_proved(rv_exec *x)
{
    if (x->hoped_until_us > 0)
        rv_journal_renewed(x->opts.journal, x->hoped_until_us);
    x->hoped_until_us = 0;
}

int rv_lease_check(const rv_exec *x, rv_err **err)
{
    if (!x->opts.journal || x->engine->opts.virtual_time)
        return 0;
    if (rv_engine_now_us(x->engine) < rv_journal_lease_until_us(x->opts.journal))
        return 0;
    int rc = RV_FAIL(err, RV_E_STATE, "the lease on run \"%s\" ran out while this process stood still",
                     rv_journal_run(x->opts.journal));
    rv_err_hint(err, "another process may go on with it: `reeve runs show %s`", rv_journal_run(x->opts.journal));
    return rc;
}

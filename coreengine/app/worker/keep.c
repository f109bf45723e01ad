/* A worker in the process of a server. What it opens at its start may be lacking for a while: descriptors, threads,
 * room, a database. The server goes on without it meanwhile; runs wait in the queue. */
#include "coreengine/app/worker/worker_internal.h"
#include "coreengine/base/base.h"

#define AGAIN_US (500 * RV_US_PER_MS) /* between two attempts to start */

/* The server itself opened the same things before. */
static bool may_come_back(int rc)
{
    return rv_code_is_scarce(rc) || rc == RV_E_TIMEOUT || rc == RV_E_IO || rc == RV_E_UNAVAILABLE;
}

/* False: the worker is to end. */
static bool wait_for_next(struct rv_worker_stop *stop)
{
    const struct timespec until = rv_deadline_in(AGAIN_US);

    pthread_mutex_lock(&stop->lock);
    while (!stop->is_wanted && pthread_cond_timedwait(&stop->wanted, &stop->lock, &until) == 0) {
    }
    bool goes_on = !stop->is_wanted;
    pthread_mutex_unlock(&stop->lock);
    return goes_on;
}

int rv_worker_keep(const struct rv_worker_opts *opts, struct rv_worker_done *out, rv_err **err)
{
    for (;;) {
        rv_err *why = NULL;
        int rc = rv_worker_run(opts, out, &why);

        if (rc == 0)
            return 0;
        if (!may_come_back(rc)) {
            rv_err_pass(err, why);
            return rc;
        }
        opts->on_waits(opts->self_event, why);
        rv_err_free(why);
        if (!wait_for_next(opts->stop))
            return 0;
    }
}

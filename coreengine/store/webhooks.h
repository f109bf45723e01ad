/* Webhooks: who is told when a run ends or waits for an answer. The task that tells it is queued by the same
 * transaction that ends the run or lets it wait: none is lost, and none is queued for what was rolled back. Its id
 * follows from the run and the record, so that a receiver knows one that comes twice. */
#ifndef RV_STORE_WEBHOOKS_H
#define RV_STORE_WEBHOOKS_H

#include "coreengine/store/handle.h"

#define RV_WEBHOOK_TASK       "webhook" /* type of its tasks: {run, n, event, at, status, interrupts?} */
#define RV_WEBHOOK_PREFIX     "hook_"   /* of their ids */
#define RV_WEBHOOK_MAX        4         /* of one run */
#define RV_WEBHOOK_MAX_URL    2000      /* bytes */
#define RV_WEBHOOK_MAX_SECRET 512       /* bytes */
#define RV_WEBHOOK_RETRIES    8         /* of one delivery: with doubling waits about a day */

#define RV_WEBHOOK_ENDED       1 /* "run.ended" */
#define RV_WEBHOOK_INTERRUPTED 2 /* "run.interrupted" */

struct rv_webhook {
    const char *url, *secret; /* of the row: owned by `own` */
    int64_t events;           /* bits */
    char *own;                /* NULL when the texts are borrowed */
};
void rv_webhook_fini(struct rv_webhook *w);
/** The n-th of a run, from 0: set when the run is made, in its group. RV_E_NOT_FOUND (no such run), RV_E_INVALID,
 *  RV_E_EXISTS. */
RV_MUST_CHECK int rv_store_add_webhook(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t n,
                                       const struct rv_webhook *hook, rv_err **err);
/** RV_E_NOT_FOUND: the run is gone, or has none of that number. out owns its texts. */
RV_MUST_CHECK int rv_store_get_webhook(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t n,
                                       struct rv_webhook *out, rv_err **err);

#endif

/* The worker in the process of the server: one thread that does what is queued. */
#ifndef RV_SERVER_WORKER_INTERNAL_H
#define RV_SERVER_WORKER_INTERNAL_H

#include "coreengine/server/server_internal.h"

struct srv_worker;

/** A worker that does nothing yet; s outlives it, and s->worker_stop is set. fallen: it has ended by itself, for a
 * reason that another attempt would meet again; on the worker's thread. *out is NULL where the server is to have none.
 */
RV_MUST_CHECK int srv_worker_new(struct srv_server *s, void (*fallen)(struct srv_server *s), struct srv_worker **out,
                                 rv_err **err);
/** A worker that cannot start for want of something that may come back is started again and again. NULL is fine. */
RV_MUST_CHECK int srv_worker_start(struct srv_worker *w, rv_err **err);
void srv_worker_stop(struct srv_worker *w); /* it drains; NULL is fine */
/** Wait for its end, if it was started, and free it. *n_left: as of rv_worker_run(). Errors: why it ended by itself.
 * NULL is fine. */
RV_MUST_CHECK int srv_worker_join(struct srv_worker *w, int64_t *n_left, rv_err **err);

#endif

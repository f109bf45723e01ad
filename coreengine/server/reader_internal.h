/* A loop that reads the store for clients that watch: a loop, a handle of the store and a timer on a thread of its own.
 */
#ifndef RV_SERVER_READER_INTERNAL_H
#define RV_SERVER_READER_INTERNAL_H

#include "coreengine/server/server_internal.h"

struct srv_reader {
    struct srv_loop loop;
    struct srv_server *server; /* borrowed */
    rv_store *store;           /* owned */
    uv_timer_t timer;          /* its data: `self` */
    void (*end_all)(void *self);
    void *self;              /* borrowed */
    struct srv_message stop; /* told without memory: without it the process would not end */
    atomic_bool is_stopped;
};
/** Its thread goes when this succeeds. *is_open: it has to be closed, also when this failed. end_all: on its thread,
 * when it stops; the clients that are left go. */
RV_MUST_CHECK int srv_reader_open(struct srv_reader *r, struct srv_server *s, void (*end_all)(void *self), void *self,
                                  bool *is_open, rv_err **err);
void srv_reader_stop(struct srv_reader *r);  /* from any thread */
void srv_reader_close(struct srv_reader *r); /* waits for its thread */

#endif

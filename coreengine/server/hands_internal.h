/* The threads that work at requests. */
#ifndef RV_SERVER_HANDS_INTERNAL_H
#define RV_SERVER_HANDS_INTERNAL_H

#include "coreengine/server/server_internal.h"

struct srv_hands;

/** s outlives it. */
RV_MUST_CHECK int srv_hands_new(struct srv_server *s, struct srv_hands **out, rv_err **err);
/** On the loop: a thread does srv_call_work(), and c->worked is opened by the loop of the server. */
void srv_hands_do(struct srv_hands *h, struct srv_call *c);
/** On the thread that works at c: it waits for another server, and another thread may take its place.
 * @return false: too many wait already */
bool srv_hands_wait(struct srv_hands *h, struct srv_call *c);
/** Wait until all calls are done, and free it; their messages are in the loop of the server. NULL is fine. */
void srv_hands_free(struct srv_hands *h);

#endif

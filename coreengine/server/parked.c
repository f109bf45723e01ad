/* Turns that wait for an answer: they keep their chats. */
#include "coreengine/server/turns_internal.h"

#define MAX_PARKED 1000 /* turns that wait for an answer, with their chats: in memory; the oldest is read again */

void srv_turn_park(struct turn *t)
{
    struct turn *oldest = NULL;

    if (t->all->n_parked >= MAX_PARKED)
        for (struct turn *o = t->all->turns; o; o = o->next)
            oldest = o->is_parked ? o : oldest;
    if (oldest)
        srv_turn_end(oldest);
    t->is_parked = true;
    t->all->n_parked++;
    srv_turn_end_grace(t);
}

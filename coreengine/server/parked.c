/* Turns that wait for an answer: they keep their chats, and no process drives their runs. */
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

int srv_turn_check_wanted(const struct turn *parked, rv_err **err)
{
    const struct rv_store_scope scope = {parked->ask->tenant, parked->ask->user};
    struct rv_run_row row;

    int rc = rv_store_get_run(parked->all->base.store, &scope, parked->ask->run, &row, err);
    if (rc < 0)
        return rc;
    rc = row.cancel_requested ? rv_app_fail_cancelled(err) : 0;
    rv_run_row_fini(&row);
    return rc;
}

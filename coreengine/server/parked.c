/* Turns that wait for an answer: they keep their chats, and no process drives their runs. */
#include "coreengine/server/turns_internal.h"

#define MAX_PARKED 1000 /* turns that wait for an answer, with their chats: in memory; the oldest is read again */

/* An answer may come by another way than this chat, and a request to cancel the run may have come when its owner did
 * not look for one any more: then a worker goes on with it, at once. */
static void give_run_back(struct turn *t)
{
    const struct rv_store_scope scope = {t->ask->tenant, t->ask->user};
    rv_store *store = t->all->base.store;
    bool is_wanted = false;
    rv_err *err = NULL;

    int rc = rv_chat_release(rv_app_user_chat_chat(t->user_chat), &err);
    if (rc == 0)
        rc = rv_app_is_to_be_cancelled(store, &scope, t->ask->run, &is_wanted, &err);
    if (rc == 0 && is_wanted)
        rc = rv_app_enqueue(store, &scope, t->ask->run, NULL, NULL, &err);
    if (rc < 0)
        RV_LOG(t->all->app.log, WARN, "turn.held", RV_F_TEXT("run_id", t->ask->run), RV_F_ERR("error", err));
    rv_err_free(err);
}

void srv_turn_park(struct turn *t)
{
    struct turn *oldest = NULL;

    give_run_back(t);
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

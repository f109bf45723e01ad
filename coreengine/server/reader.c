/* A loop that reads the store for clients that watch. */
#include "coreengine/server/reader_internal.h"

#include <stddef.h>

int srv_reader_open(struct srv_reader *r, struct srv_server *s, void (*end_all)(void *self), void *self, bool *is_open,
                    rv_err **err)
{
    r->server = s;
    r->end_all = end_all;
    r->self = self;
    int rc = srv_loop_open(&r->loop, err);
    *is_open = rc == 0;
    if (rc < 0)
        return rc;
    uv_timer_init(&r->loop.own, &r->timer);
    r->timer.data = self;
    rc = rv_app_store_open(&s->app, RV_APP_STORE_MAKE, &r->store, err);
    return rc < 0 ? rc : srv_loop_go(&r->loop, err);
}

static void on_stop(struct srv_message *l)
{
    struct srv_reader *r = (struct srv_reader *)((char *)l - offsetof(struct srv_reader, stop));

    r->end_all(r->self);
    if (r->loop.is_closed)
        return;
    uv_close((uv_handle_t *)&r->timer, NULL);
    srv_loop_close(&r->loop);
}

void srv_reader_stop(struct srv_reader *r)
{
    if (atomic_exchange(&r->is_stopped, true))
        return;
    r->stop.open = on_stop;
    srv_loop_post(&r->loop, &r->stop);
}

void srv_reader_close(struct srv_reader *r)
{
    srv_loop_join(&r->loop);
    srv_loop_fini(&r->loop);
    rv_store_close(r->store);
}

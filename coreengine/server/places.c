/* Handles of the store for the threads of the pool. */
#include <stdlib.h>

#include "coreengine/server/server_internal.h"

int srv_desk_take(struct srv_server *s, struct srv_desk **out, rv_err **err)
{
    pthread_mutex_lock(&s->desk_lock);
    struct srv_desk *d = s->desks;
    if (d)
        s->desks = d->next;
    pthread_mutex_unlock(&s->desk_lock);
    if (!d) {
        d = calloc(1, sizeof *d);
        if (!d)
            return RV_FAIL(err, RV_E_NOMEM, "open the store");
        int rc = rv_app_sources_open(&s->app, RV_APP_STORE_MAKE, &d->sources, err);
        if (rc < 0) {
            free(d);
            return rc;
        }
    }
    *out = d;
    return 0;
}

void srv_desk_give(struct srv_server *s, struct srv_desk *d)
{
    pthread_mutex_lock(&s->desk_lock);
    d->next = s->desks;
    s->desks = d;
    pthread_mutex_unlock(&s->desk_lock);
}

void srv_desks_close(struct srv_server *s)
{
    for (struct srv_desk *d = s->desks, *next; d; d = next) {
        next = d->next;
        rv_app_sources_fini(&d->sources);
        free(d);
    }
}

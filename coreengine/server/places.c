/* Handles of the store for the threads of the pool. */
#include <stdlib.h>

#include "coreengine/server/server_internal.h"

int srv_handles_take(struct srv_server *s, struct srv_handles **out, rv_err **err)
{
    pthread_mutex_lock(&s->handles_lock);
    struct srv_handles *d = s->free_handles;
    if (d)
        s->free_handles = d->next;
    pthread_mutex_unlock(&s->handles_lock);
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

void srv_handles_give(struct srv_server *s, struct srv_handles *d)
{
    pthread_mutex_lock(&s->handles_lock);
    d->next = s->free_handles;
    s->free_handles = d;
    pthread_mutex_unlock(&s->handles_lock);
}

void srv_handles_close(struct srv_server *s)
{
    for (struct srv_handles *d = s->free_handles, *next; d; d = next) {
        next = d->next;
        rv_app_sources_fini(&d->sources);
        free(d);
    }
}

/* Handles of the store for the threads that work at requests. */
#include <stdlib.h>

#include "coreengine/server/server_internal.h"

#define MAX_FREE 16 /* that are kept open: each has a handle of the store; while many requests wait, there are more */

int srv_handles_take(struct srv_server *s, struct srv_handles **out, rv_err **err)
{
    pthread_mutex_lock(&s->handles_lock);
    struct srv_handles *d = s->free_handles;
    if (d) {
        s->free_handles = d->next;
        s->n_free_handles--;
    }
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

static void close_handles(struct srv_handles *d)
{
    rv_app_sources_fini(&d->sources);
    free(d);
}

void srv_handles_give(struct srv_server *s, struct srv_handles *d)
{
    pthread_mutex_lock(&s->handles_lock);
    bool is_kept = s->n_free_handles < MAX_FREE;
    if (is_kept) {
        d->next = s->free_handles;
        s->free_handles = d;
        s->n_free_handles++;
    }
    pthread_mutex_unlock(&s->handles_lock);
    if (!is_kept)
        close_handles(d);
}

void srv_handles_close(struct srv_server *s)
{
    for (struct srv_handles *d = s->free_handles, *next; d; d = next) {
        next = d->next;
        close_handles(d);
    }
}

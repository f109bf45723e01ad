/* Handles of a store that one ask leaves to the next, on whatever thread that is: opening a store takes time, and so
 * does reading what the first search needs. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/services/services_internal.h"
#include "coreengine/store/store.h"

#define MAX_IDLE 4 /* more handles are closed when their asks end: each keeps an index of its own in memory */

struct idle {
    rv_store *store;
    char *path; /* owned: what it was opened by */
};
struct rv_app_handles {
    pthread_mutex_t lock; /* guards the number of users, is_closed and the idle handles; leaf */
    size_t n_users;       /* the owner, and asks under way */
    bool is_closed;       /* the owner is gone: nothing is kept any more */
    struct idle idle[MAX_IDLE];
    size_t n_idle; /* the one that was used last is the last */
};

rv_app_handles *rv_app_handles_new(void)
{
    rv_app_handles *h = calloc(1, sizeof *h);

    if (!h)
        return NULL;
    pthread_mutex_init(&h->lock, NULL);
    h->n_users = 1;
    return h;
}

void app_handles_keep(rv_app_handles *h)
{
    pthread_mutex_lock(&h->lock);
    h->n_users++;
    pthread_mutex_unlock(&h->lock);
}

void app_handles_leave(rv_app_handles *h)
{
    pthread_mutex_lock(&h->lock);
    bool is_last = --h->n_users == 0;
    pthread_mutex_unlock(&h->lock);
    if (!is_last)
        return;
    pthread_mutex_destroy(&h->lock);
    free(h);
}

static void close_idle(struct idle *i)
{
    rv_store_close(i->store);
    free(i->path);
}

void rv_app_handles_free(rv_app_handles *h)
{
    struct idle idle[MAX_IDLE];

    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    size_t n = h->n_idle;
    memcpy(idle, h->idle, n * sizeof *idle);
    h->n_idle = 0;
    h->is_closed = true;
    pthread_mutex_unlock(&h->lock);
    for (size_t i = 0; i < n; i++)
        close_idle(&idle[i]);
    app_handles_leave(h);
}

void rv_app_services_fini(struct rv_app_services *s)
{
    if (!s->shares)
        rv_app_handles_free(s->handles);
    s->handles = NULL;
}

int app_handles_take(rv_app_handles *h, const struct rv_app *app, rv_store **out, rv_err **err)
{
    struct idle found = {NULL, NULL};

    pthread_mutex_lock(&h->lock);
    for (size_t i = h->n_idle; i-- > 0 && !found.store;)
        if (strcmp(h->idle[i].path, app->store) == 0) {
            found = h->idle[i];
            h->n_idle--;
            memmove(&h->idle[i], &h->idle[i + 1], (h->n_idle - i) * sizeof *h->idle);
        }
    pthread_mutex_unlock(&h->lock);
    if (found.store) {
        free(found.path);
        *out = found.store;
        return 0;
    }
    int rc = rv_app_store_open(app, RV_APP_STORE_CHANGE, out, err);
    if (rc == 0)
        rv_store_reveal(*out, true); /* who asks is a tool of an agent */
    return rc;
}

/* After some failures the state of a handle is unknown: it is closed, and the next ask opens another one. */
static bool is_sound(const rv_store *store, int rc)
{
    static const int answers[] = {0,          RV_E_INVALID, RV_E_NOT_FOUND, RV_E_DENIED, RV_E_EXISTS,
                                  RV_E_PARSE, RV_E_LIMIT,   RV_E_QUOTA,     RV_E_TOOL};

    if (rv_store_is_in_group(store))
        return false;
    for (size_t i = 0; i < RV_COUNT(answers); i++)
        if (rc == answers[i])
            return true;
    return false;
}

void app_handles_give_take(rv_app_handles *h, const struct rv_app *app, rv_store *store, int rc)
{
    struct idle i = {store, is_sound(store, rc) ? rv_str_dup(rv_str_of(app->store)) : NULL};
    bool is_kept = false;

    pthread_mutex_lock(&h->lock);
    if (i.path && !h->is_closed && h->n_idle < MAX_IDLE) {
        h->idle[h->n_idle++] = i;
        is_kept = true;
    }
    pthread_mutex_unlock(&h->lock);
    if (!is_kept)
        close_idle(&i);
}

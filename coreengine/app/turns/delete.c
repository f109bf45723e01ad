/* A session is deleted: what still runs in it is asked to end, in the same write. */
#include <stdlib.h>

#include "coreengine/app/turns/chat.h"

#define MAX_RUNS ((size_t)10000)

struct unfinished {
    char **ids;
    size_t n, cap;
};

static int note(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct unfinished *u = self;

    if (u->n == u->cap) {
        size_t cap = u->cap ? u->cap * 2 : 4;
        char **ids = cap <= MAX_RUNS ? realloc(u->ids, cap * sizeof *ids) : NULL;
        if (!ids)
            return RV_FAIL(err, RV_E_NOMEM, "list the runs of a session");
        u->ids = ids;
        u->cap = cap;
    }
    u->ids[u->n] = rv_str_dup(rv_str_of(row->id));
    return u->ids[u->n++] ? 0 : RV_FAIL(err, RV_E_NOMEM, "list the runs of a session");
}

static int delete_with_runs(rv_store *store, const struct rv_store_scope *owner, const char *id, int64_t now_us,
                            struct unfinished *u, rv_err **err)
{
    const struct rv_run_filter filter = {
        .statuses = 1u << RV_RUN_READY | 1u << RV_RUN_RUNNING | 1u << RV_RUN_INTERRUPTED, .session = id};
    int rc = rv_store_delete_session(store, owner, id, now_us, err);

    if (rc == 0)
        rc = rv_store_list_runs(store, owner, &filter, note, u, err);
    for (size_t i = 0; i < u->n && rc == 0; i++)
        rc = rv_store_request_cancel(store, owner, u->ids[i], now_us, err);
    return rc;
}

int rv_chat_delete_session(rv_store *store, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                           size_t *n_cancelled, rv_err **err)
{
    struct rv_session_row row = {0};
    struct unfinished u = {0};
    int rc = rv_store_get_session(store, scope, id, &row, err);

    if (rc < 0)
        return rc;
    const struct rv_store_scope owner = {row.tenant, row.user};
    rc = rv_store_begin(store, err);
    if (rc == 0) {
        rc = delete_with_runs(store, &owner, id, now_us, &u, err);
        if (rc < 0)
            rv_store_rollback(store);
        else
            rc = rv_store_commit(store, err);
    }
    if (rc == 0 && n_cancelled)
        *n_cancelled = u.n;
    for (size_t i = 0; i < u.n; i++)
        free(u.ids[i]);
    free(u.ids);
    rv_session_row_fini(&row);
    return rc;
}

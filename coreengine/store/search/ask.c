/* Carrying out a statement that others wrote: its arguments, and the driver that does it. */
#include "coreengine/store/search.h"

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/search/ask_internal.h"

int rv_store_ask(rv_store *s, const struct rv_store_scope *scope, const struct rv_store_ask *ask,
                 struct rv_store_asked *out, rv_err **err)
{
    struct rv_store_scope sc;
    struct rv_store_asked got = {false, false};
    struct rv_asking_rows rows = {.ask = ask, .out = &got};
    int rc = store_check_scope(scope, &sc, err);

    if (rc == 0 && s->in_group)
        rc = RV_FAIL(err, RV_E_STATE, "a statement cannot be part of a group");
    if (rc == 0 && (ask->max_rows < 1 || ask->max_ms < 1 || ask->max_cell < 4))
        rc = RV_FAIL(err, RV_E_INVALID, "a statement needs limits of its rows, time and cells");
    if ((rc = store_enter_read(s, rc, "ask", err)) != 0)
        return rc;
    vault_look_again(s->sql);
    rc = vault_is_used(s->sql, &rows.hides, err);
    if (rc == 0)
        rc = s->sql->driver->ask(s->sql, &sc, &rows, err);
    if (rc == 0)
        *out = got;
    return store_leave_read(s, rc, err);
}

/* Whose a session is, where someone acts for all users. */
#include "coreengine/app/memory.h"
#include "coreengine/base/base.h"

int rv_app_check_session_owner(rv_store *store, const struct rv_store_scope *scope, const char *session, rv_err **err)
{
    const struct rv_store_scope own = {scope->tenant, ""}, *const scopes[] = {&own, scope};
    struct rv_session_row row;
    rv_err *cause = NULL;
    int rc = RV_E_NOT_FOUND;

    if (scope->user)
        return 0;
    for (size_t i = 0; i < RV_COUNT(scopes) && rc == RV_E_NOT_FOUND; i++) {
        rv_err_free(cause);
        cause = NULL;
        rc = rv_store_identify_session(store, scopes[i], session, &row, &cause);
    }
    if (rc < 0 && rc != RV_E_NOT_FOUND)
        return rv_err_pass(err, cause);
    rv_err_free(cause);
    if (rc < 0) /* it begins */
        return 0;
    rc = row.user[0] ? RV_FAIL(err, RV_E_STATE, "session \"%.100s\" is of user \"%.100s\"", row.id, row.user) : 0;
    rv_session_row_fini(&row);
    return rc;
}

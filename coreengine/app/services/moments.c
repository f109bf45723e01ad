/* The service `moments.put`: a moment of this user with the session that goes with it. */
#include "coreengine/app/memory.h"
#include "coreengine/app/past.h"
#include "coreengine/app/services/services_internal.h"

int app_moments_put(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"moment", "session", "description"};
    struct rv_app_moment_session what = {
        .moment = rv_json_get_obj(a->args, "moment"), .now_us = rv_app_now_us(), .rand = rv_rand_system()};
    char session[RV_STORE_MAX_ID + 1];
    json_object *row = NULL;
    const char *id = NULL;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    if (rc == 0 && !what.moment)
        rc = RV_FAIL(err, RV_E_INVALID, "it needs \"moment\", an object");
    if (rc == 0)
        rc = app_ask_text(a, "session", false, &what.session, err);
    if (rc == 0)
        rc = app_ask_text(a, "description", false, &what.description, err);
    if (rc == 0)
        rc = rv_app_moment_session(a->store, &a->app.scope, &what, session, &row, err);
    if (rc == 0 && !rv_json_get_text(row, "id", &id))
        rc = RV_FAIL(err, RV_E_INTERNAL, "a moment without an id");
    if (rc == 0) {
        rv_jw_kv_text(w, "id", id);
        rv_jw_kv_text(w, "session", session);
    }
    json_object_put(row);
    return rc;
}

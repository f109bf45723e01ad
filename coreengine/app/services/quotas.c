/* The service `quotas.take`: what a tool does counts against the plan of the user, before it does it. */
#include <string.h>

#include "coreengine/app/app_internal.h"
#include "coreengine/app/past.h"
#include "coreengine/app/services/services_internal.h"

int app_quotas_take(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"kind"};
    struct rv_app_limits limits;
    const char *kind = NULL;
    rv_quotas *quotas = NULL;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    (void)w; /* a command */
    if (rc == 0)
        rc = app_ask_text(a, "kind", true, &kind, err);
    if (rc == 0 && strcmp(kind, rv_quota_kind_word(RV_QUOTA_WEB_SEARCHES)) != 0)
        rc = RV_FAIL(err, RV_E_INVALID, "\"kind\" has to be \"%s\": all else is counted by the engine",
                     rv_quota_kind_word(RV_QUOTA_WEB_SEARCHES));
    if (rc == 0)
        rc = rv_app_quotas_open(&a->app, &quotas, err);
    if (rc < 0)
        return rc;
    rv_app_limits_set(&limits, quotas, a->app.scope.tenant, a->app.scope.user);
    rc = rv_app_limits_count(&limits, a->store, RV_QUOTA_WEB_SEARCHES, rv_app_now_us(), NULL, err);
    rv_quotas_free(quotas);
    return rc;
}

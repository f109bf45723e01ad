/* The service `quotas.take`: what a tool does counts against the plan of the user, before it does it. It counts once
 * for a call, however often the engine makes the call: after a crash, or when a person has it made again. */
#include <stdio.h>
#include <string.h>

#include "coreengine/app/app_internal.h"
#include "coreengine/app/past.h"
#include "coreengine/app/services/services_internal.h"

#define NAME_HEX 32 /* digits of a hash that make a name which fits (RV_STORE_MAX_ID) */

/* One name for what is taken under that key. A name has no more than the store takes as an id. */
static int name_of(const struct app_ask *a, const char *kind, char out[RV_HASH_MAX], rv_err **err)
{
    const char *given = NULL, *parts[] = {a->app.scope.tenant, a->app.scope.user, kind, a->key, NULL};
    char hash[RV_HASH_MAX];
    struct rv_hash h;
    int rc = app_ask_text(a, "key", false, &given, err);

    if (rc == 0 && !given && !*a->key)
        rc = RV_FAIL(err, RV_E_INVALID, "it needs \"key\": the call that asks has none, and may be made again");
    if (rc < 0)
        return rc;
    parts[4] = given;
    rv_hash_init(&h);
    for (size_t i = 0; i < RV_COUNT(parts); i++) {
        rv_hash_add(&h, rv_str_of(parts[i] ? parts[i] : ""));
        rv_hash_add(&h, RV_STR_LIT("\n"));
    }
    rv_hash_finish_hex(&h, hash);
    snprintf(out, RV_HASH_MAX, "take-%.*s", NAME_HEX, hash);
    return 0;
}

int app_quotas_take(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"kind", "key"};
    struct rv_app_limits limits;
    const char *kind = NULL;
    char name[RV_HASH_MAX];
    rv_quotas *quotas = NULL;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    (void)w; /* a command */
    if (rc == 0)
        rc = app_ask_text(a, "kind", true, &kind, err);
    if (rc == 0 && strcmp(kind, rv_quota_kind_text(RV_QUOTA_WEB_SEARCHES)) != 0)
        rc = RV_FAIL(err, RV_E_INVALID, "\"kind\" has to be \"%s\": all else is counted by the engine",
                     rv_quota_kind_text(RV_QUOTA_WEB_SEARCHES));
    if (rc == 0)
        rc = name_of(a, kind, name, err);
    if (rc == 0)
        rc = rv_app_quotas_open(&a->app, &quotas, err);
    if (rc < 0)
        return rc;
    app_limits_set(&limits, quotas, a->app.scope.tenant, a->app.scope.user);
    limits.once = name;
    rc = app_limits_count(&limits, a->store, RV_QUOTA_WEB_SEARCHES, rv_app_now_us(), NULL, err);
    rv_quotas_free(quotas);
    return rc;
}

/* The limits that are in force for one run or task, and what is counted before it begins. */
#include "coreengine/app/app_internal.h"

#include <stdio.h>
#include <string.h>

void app_limits_set(struct rv_app_limits *l, const rv_quotas *q, const char *tenant, const char *user)
{
    l->exec = (struct rv_exec_quotas){.tenant = l->tenant, .user = l->user, .limits = l->limits};
    l->once = NULL;
    if (!q)
        return;
    snprintf(l->tenant, sizeof l->tenant, "%s", tenant ? tenant : RV_STORE_TENANT);
    snprintf(l->user, sizeof l->user, "%s", user ? user : "");
    l->exec.n_limits = rv_quotas_collect_limits(q, l->tenant, l->user, l->limits);
}

const struct rv_exec_quotas *app_limits_exec(const struct rv_app_limits *l)
{
    return l->exec.n_limits > 0 ? &l->exec : NULL;
}

int app_limits_refuse(const struct rv_app_limits *l, rv_err **err)
{
    int rc = RV_FAIL(err, RV_E_INVALID, "plan \"%s\" has limits, and what a run uses is counted in a store",
                     l->limits[0].plan);

    rv_err_set_hint(err, "keep the run in a store");
    return rc;
}

int app_limits_count(struct rv_app_limits *l, rv_store *store, enum rv_quota_kind kind, int64_t now_us, rv_log *log,
                     rv_err **err)
{
    struct rv_quota_ask ask = {
        .tenant = l->tenant, .user = l->user, .limits = l->limits, .n_limits = l->exec.n_limits, .now_us = now_us};
    struct rv_quota_answer answer = {0};
    bool any = false;

    l->again_us = 0;
    for (size_t i = 0; i < ask.n_limits; i++)
        any = any || l->limits[i].kind == kind;
    if (!any)
        return 0;
    ask.counts[kind] = 1;
    if (l->once) {
        ask.run = l->once;
        ask.fence = ask.call_id = 1;
    }
    int rc = rv_store_reserve(store, &ask, &answer, err);
    if (rc == RV_E_QUOTA)
        l->again_us = answer.again_us;
    for (size_t i = 0; rc == 0 && i < ask.n_limits; i++)
        if (answer.near & UINT64_C(1) << i)
            rv_engine_log_near_quota(log, &ask.limits[i]);
    return rc;
}

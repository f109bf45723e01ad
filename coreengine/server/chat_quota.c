/* A turn that no quota leaves room for is refused before it begins, with the time at which it may fit. A quota that
 * runs out within a turn ends that turn. */
#include <stdio.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/server/chats_internal.h"

struct look {
    const struct rv_quota_limit *limits;
    size_t n;
    bool is_tenants;
    int64_t now_us;
    /* what refuses, the one that does so for longest */
    const struct rv_quota_limit *full;
    int64_t used, again_us;
};

/* A turn asks a model at least once. */
static bool counts(const struct rv_quota_limit *l)
{
    return l->kind == RV_QUOTA_TOKENS || l->kind == RV_QUOTA_COST || l->kind == RV_QUOTA_MODEL_CALLS;
}

static int64_t again(const struct rv_usage_row *row)
{
    return row->is_rate ? row->end_us - (row->end_us - row->start_us) * (RV_RATE_BUCKETS - 1) / RV_RATE_BUCKETS
                        : row->end_us;
}

static int look_at(void *self, const struct rv_usage_row *row, rv_err **err)
{
    struct look *k = self;

    (void)err;
    if (row->is_tenants != k->is_tenants)
        return RV_STORE_ENOUGH; /* the tenant's own come first, and a user has none of them */
    for (size_t i = 0; i < k->n; i++) {
        const struct rv_quota_limit *l = &k->limits[i];
        if (!counts(l) || l->is_tenants != row->is_tenants || l->kind != row->kind || l->span != row->span ||
            l->is_rate != row->is_rate || row->used + row->reserved < l->limit)
            continue;
        int64_t at = again(row) > k->now_us ? again(row) : k->now_us + RV_US_PER_S;
        if (k->full && k->again_us >= at)
            continue;
        k->full = l;
        k->used = row->used + row->reserved;
        k->again_us = at;
    }
    return 0;
}

static int look(struct look *k, struct srv_call *c, bool is_tenants, rv_err **err)
{
    const struct rv_store_scope scope = {c->who.tenant, is_tenants ? NULL : c->who.user};

    k->is_tenants = is_tenants;
    int rc = rv_store_list_usage(c->store, &scope, k->now_us, look_at, k, err);
    return rc == RV_STORE_ENOUGH ? 0 : rc;
}

/* p8 has an object as detail. */
static int write_details(struct srv_call *c, const struct look *k, rv_err **err)
{
    c->details = json_object_new_object();
    if (!c->details)
        return RV_FAIL(err, RV_E_NOMEM, "refuse a turn");
    return RV_SET(c->details, err, RV_M_TEXT("error", "chat_token_quota_exceeded"), RV_M_INT("used", k->used),
                  RV_M_INT("limit", k->full->limit), RV_M_TEXT("message", c->refusal->detail));
}

static int refuse(struct srv_call *c, const struct look *k, rv_err **err)
{
    rv_buf why = RV_BUF_INIT(1024);

    rv_buf_printf(&why, "plan \"%s\" allows %s", k->full->plan, k->full->is_tenants ? "the tenant " : "");
    rv_quota_write(k->full, k->full->limit, &why);
    rv_buf_puts(&why, ", and ");
    rv_quota_write_amount(k->full->kind, k->used, &why);
    rv_buf_puts(&why, " are used");
    int rc = rv_buf_check(&why, "why a turn is refused", err);
    if (rc == 0) {
        rv_refuse_quota(c->refusal, rv_buf_cstr(&why), k->again_us, k->now_us);
        c->is_refused = true;
        rc = write_details(c, k, err);
    }
    rv_buf_fini(&why);
    return rc;
}

int srv_chat_quota(struct srv_call *c, rv_err **err)
{
    const struct rv_quotas *q = srv_turns_quotas(c->server->turns);
    struct rv_quota_limit limits[RV_QUOTA_MAX_LIMITS];
    struct look k = {.limits = limits, .now_us = srv_now_us()};

    k.n = q ? rv_quotas_collect_limits(q, c->who.tenant, c->who.user, limits) : 0;
    if (k.n == 0)
        return 0;
    int rc = look(&k, c, true, err);
    if (rc == 0)
        rc = look(&k, c, false, err);
    return rc == 0 && k.full ? refuse(c, &k, err) : rc;
}

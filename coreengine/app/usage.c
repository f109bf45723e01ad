/* What users may use and have used: the limits of the plans beside the counters of the store. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/upkeep.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAMES ((size_t)64 << 20) /* bytes of users in a list: some 300,000 ids of RV_STORE_MAX_ID */

struct counter {
    struct rv_usage_row row; /* its texts are nowhere */
    size_t user;             /* where its name begins in `names` */
    bool is_shown;
};
struct usage {
    rv_buf names;             /* of users, each with a NUL behind it */
    struct counter *counters; /* owned */
    size_t n, cap;
    size_t *users; /* where the names of different users begin; owned */
    size_t n_users, cap_users;
    int64_t now_us;
    void (*each)(void *self, const struct rv_app_usage *row); /* gets the rows */
    void *self;                                               /* handed to it */
    int rc;
};

static const char *name_at(const struct usage *u, size_t at)
{
    return rv_buf_cstr(&u->names) + at;
}

static size_t user_of(struct usage *u, const char *user)
{
    for (size_t i = u->n_users; i-- > 0;)
        if (strcmp(name_at(u, u->users[i]), user) == 0)
            return u->users[i];
    size_t at = u->names.len;
    rv_buf_add(&u->names, user, strlen(user) + 1);
    if (u->names.rc < 0 || !rv_has_room(&u->users, &u->cap_users, u->n_users + 1, sizeof *u->users))
        u->rc = RV_E_NOMEM;
    else
        u->users[u->n_users++] = at;
    return at;
}

static int note_counter(void *self, const struct rv_usage_row *row, rv_err **err)
{
    struct usage *u = self;

    if (!rv_has_room(&u->counters, &u->cap, u->n + 1, sizeof *u->counters))
        return RV_FAIL(err, RV_E_NOMEM, "list what was used");
    struct counter *c = &u->counters[u->n++];
    *c = (struct counter){.row = *row};
    c->user = row->is_tenants ? 0 : user_of(u, row->user);
    return u->rc < 0 ? RV_FAIL(err, u->rc, "list what was used") : 0;
}

static void note_user(void *self, const char *user)
{
    user_of(self, user);
}

static bool counts(const struct usage *u, const struct counter *c, const char *user, const struct rv_quota_limit *l)
{
    const struct rv_usage_row *r = &c->row;

    return r->is_tenants == l->is_tenants && r->is_rate == l->is_rate && r->kind == l->kind && r->span == l->span &&
           (l->is_tenants || strcmp(name_at(u, c->user), user) == 0);
}

static struct rv_app_usage row_of(const struct counter *c, const char *user)
{
    return (struct rv_app_usage){.user = user,
                                 .is_tenants = c->row.is_tenants,
                                 .is_rate = c->row.is_rate,
                                 .kind = c->row.kind,
                                 .span = c->row.span,
                                 .used = c->row.used,
                                 .reserved = c->row.reserved,
                                 .end_us = c->row.is_rate ? 0 : c->row.end_us};
}

/* The limits of one user, or of the tenant, and then what is counted without one. */
static void show(struct usage *u, const struct rv_quota_limit *limits, size_t n, bool is_tenants, const char *user)
{
    for (size_t i = 0; i < n; i++) {
        const struct rv_quota_limit *l = &limits[i];
        struct rv_app_usage row = {
            .user = user, .is_tenants = is_tenants, .is_rate = l->is_rate, .kind = l->kind, .span = l->span};
        int64_t start_us;
        if (l->is_tenants != is_tenants)
            continue;
        if (!l->is_rate)
            rv_quota_find_period(l->span, u->now_us, &start_us, &row.end_us);
        for (size_t k = 0; k < u->n; k++)
            if (counts(u, &u->counters[k], user, l)) {
                row = row_of(&u->counters[k], user);
                u->counters[k].is_shown = true;
            }
        row.limit = l->limit;
        row.plan = l->plan;
        u->each(u->self, &row);
    }
    for (size_t k = 0; k < u->n; k++) {
        const struct counter *c = &u->counters[k];
        bool is_own = c->row.is_tenants == is_tenants && (is_tenants || strcmp(name_at(u, c->user), user) == 0);
        const struct rv_app_usage row = row_of(c, user);
        if (is_own && !c->is_shown)
            u->each(u->self, &row);
    }
}

static void show_all(struct usage *u, const rv_quotas *q, const struct rv_store_scope *scope)
{
    struct rv_quota_limit limits[RV_QUOTA_MAX_LIMITS];

    if (!scope->user)
        show(u, limits, rv_quotas_collect_limits(q, scope->tenant, NULL, limits), true, "");
    for (size_t i = 0; i < u->n_users; i++) {
        const char *user = name_at(u, u->users[i]);
        show(u, limits, rv_quotas_collect_limits(q, scope->tenant, user, limits), false, user);
    }
}

int rv_app_list_usage(const struct rv_app_usage_of *of, void (*each)(void *self, const struct rv_app_usage *row),
                      void *self, rv_err **err)
{
    const struct rv_store_scope *scope = of->scope;
    struct usage u = {.names = RV_BUF_INIT(MAX_NAMES), .now_us = of->now_us, .each = each, .self = self};
    int rc = 0;

    if (scope->user)
        user_of(&u, scope->user);
    else
        rv_quotas_list_users(of->quotas, scope->tenant, note_user, &u);
    if (of->store)
        rc = rv_store_list_usage(of->store, scope, of->now_us, note_counter, &u, err);
    if (rc == 0 && u.rc < 0)
        rc = RV_FAIL(err, u.rc, "list what was used");
    if (rc == 0)
        show_all(&u, of->quotas, scope);
    rv_buf_fini(&u.names);
    free(u.counters);
    free(u.users);
    return rc;
}

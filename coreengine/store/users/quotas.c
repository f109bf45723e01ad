/* Counters of quotas and windows of rates: checked, reserved, settled. */
#include <inttypes.h>
#include <string.h>

#include "coreengine/store/store_internal.h"

#define MAX_TEXT  ((size_t)2048) /* bytes of a refusal: names, amounts and times */
#define MAX_PRUNE 100000         /* rows in one transaction: others wait for its end; more is an error of the caller */
#define SOON_US   (2 * RV_US_PER_S) /* until what is reserved may have been settled */

/* --- arguments --- */

static int check_amounts(const char *what, const int64_t amounts[RV_N_QUOTA], rv_err **err)
{
    for (int i = 0; i < RV_N_QUOTA; i++)
        if (amounts[i] < 0 || amounts[i] > RV_STORE_MAX_NUMBER / 4)
            return RV_FAIL(err, RV_E_INVALID, "%" PRId64 " %s is not an amount to %s", amounts[i],
                           rv_quota_kind_text((enum rv_quota_kind)i), what);
    return 0;
}

static int check_hold(const char *run, int64_t fence, int64_t call_id, rv_err **err)
{
    int rc = store_check_id("run", run, err);

    if (rc == 0 && (fence < 1 || call_id < 1))
        rc = RV_FAIL(err, RV_E_INVALID, "a reservation of run \"%s\" needs a fence and a call", run);
    return rc;
}

static int check_ask(const struct rv_quota_ask *ask, rv_err **err)
{
    int rc = store_check_id("tenant", ask->tenant, err);

    if (rc == 0 && ask->user[0])
        rc = store_check_id("user", ask->user, err);
    if (rc == 0 && ask->n_limits > RV_QUOTA_MAX_LIMITS)
        rc = RV_FAIL(err, RV_E_INVALID, "%zu limits are more than %d", ask->n_limits, RV_QUOTA_MAX_LIMITS);
    for (size_t i = 0; rc == 0 && i < ask->n_limits; i++) {
        const struct rv_quota_limit *l = &ask->limits[i];
        if (l->limit < 1 || l->limit > RV_QUOTA_MAX_LIMIT || !store_quota_has_span(l->is_rate, l->span))
            rc = RV_FAIL(err, RV_E_INVALID, "limit %zu of %" PRId64 " %s is not one", i, l->limit,
                         rv_quota_kind_text(l->kind));
    }
    if (rc == 0)
        rc = check_amounts("count", ask->counts, err);
    if (rc == 0)
        rc = check_amounts("reserve", ask->reserves, err);
    if (rc == 0 && ask->run)
        rc = check_hold(ask->run, ask->fence, ask->call_id, err);
    return rc < 0 ? rc : store_check_time("the time", ask->now_us, err);
}

/* --- one counter --- */

static void bind_counter(rv_sql_stmt *stmt, const struct rv_quota_ask *ask, const struct rv_quota_limit *l)
{
    store_sql_text(stmt, 1, ask->tenant);
    sql_int(stmt, 2, l->is_tenants);
    store_sql_text(stmt, 3, l->is_tenants ? "" : ask->user);
    store_sql_text(stmt, 4, rv_quota_kind_text(l->kind));
    store_sql_text(stmt, 5, rv_quota_span_text(l->span));
}

static void note_near(const struct rv_quota_limit *l, size_t at, int64_t before, int64_t after,
                      struct rv_quota_answer *out)
{
    int64_t near = l->limit - l->limit / 5; /* 80 % */

    if (before < near && after >= near)
        out->near |= UINT64_C(1) << at;
}

static void write_refusal(const struct rv_quota_ask *ask, const struct rv_quota_limit *l,
                          const struct rv_quota_answer *a, rv_buf *out)
{
    char time[RV_TIME_MAX];

    rv_buf_puts(out, "quota exceeded: ");
    if (l->is_tenants)
        rv_buf_printf(out, "tenant \"%s\"", ask->tenant);
    else if (ask->user[0])
        rv_buf_printf(out, "user \"%s\"", ask->user);
    else
        rv_buf_puts(out, "a caller without a user");
    rv_buf_puts(out, " may use ");
    rv_quota_write(l, l->limit, out);
    rv_buf_printf(out, " (plan \"%s\"); used: ", l->plan ? l->plan : "");
    rv_quota_write_amount(l->kind, a->used, out);
    if (a->reserved > 0) {
        rv_buf_puts(out, ", of which reserved for calls under way: ");
        rv_quota_write_amount(l->kind, a->reserved, out);
    }
    rv_buf_puts(out, "; needed: ");
    rv_quota_write_amount(l->kind, a->wanted, out);
    if (a->again_us == 0) {
        rv_buf_puts(out, ", which never fits");
        return;
    }
    rv_time_format(a->again_us + 999999, time); /* rounded up to whole seconds, which are enough for people */
    rv_buf_printf(out, "; fits again at %.*sZ%s", (int)strlen("2026-01-01T00:00:00"), time,
                  a->is_crowded ? ", when calls under way are over" : "");
}

static int refuse(const struct rv_quota_ask *ask, const struct rv_quota_limit *l, const struct rv_quota_answer *a,
                  rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);

    write_refusal(ask, l, a, &text);
    int rc = rv_buf_check(&text, "refusal", err);
    if (rc == 0)
        rc = RV_FAIL(err, RV_E_QUOTA, "%s", rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return rc;
}

/* A row of FIND_USAGE; zeros when there is none. */
static int find_usage(struct sql_store *st, const struct rv_quota_ask *ask, const struct rv_quota_limit *l,
                      int64_t start_us, int64_t out[3], rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_FIND_USAGE);

    bind_counter(stmt, ask, l);
    sql_int(stmt, 6, start_us);
    int rc = sql_step(stmt, "look at a quota", err);
    for (int i = 0; i < 3; i++)
        out[i] = rc == 1 ? sql_int_at(stmt, i) : 0;
    sql_done(stmt);
    if (rc == 1)
        rc = store_check_numbers(st, "quota", rv_quota_kind_text(l->kind), out, 3, err);
    return rc;
}

static int add_hold(struct sql_store *st, const struct rv_quota_ask *ask, int64_t usage, int64_t amount, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_HOLD);

    store_sql_text(stmt, 1, ask->run);
    sql_int(stmt, 2, ask->fence);
    sql_int(stmt, 3, ask->call_id);
    sql_int(stmt, 4, usage);
    sql_int(stmt, 5, amount);
    return sql_run(stmt, "reserve", err);
}

/* What is counted once, however often the call is made: a reservation of nothing, which is never settled, says so. */
static bool is_once(const struct rv_quota_ask *ask)
{
    for (int i = 0; i < RV_N_QUOTA; i++)
        if (ask->reserves[i] > 0)
            return false;
    return ask->run != NULL;
}

static int take_quota(struct sql_store *st, const struct rv_quota_ask *ask, size_t at, struct rv_quota_answer *out,
                      rv_err **err)
{
    const struct rv_quota_limit *l = &ask->limits[at];
    int64_t n = ask->counts[l->kind], held = ask->run ? ask->reserves[l->kind] : 0, start_us, end_us, row[3];
    int64_t n_rows = 0;

    rv_quota_find_period(l->span, ask->now_us, &start_us, &end_us);
    rv_sql_stmt *stmt = sql_use(st, SQL_RESERVE);
    bind_counter(stmt, ask, l);
    sql_int(stmt, 6, start_us);
    sql_int(stmt, 7, end_us);
    sql_int(stmt, 8, n);
    sql_int(stmt, 9, held);
    sql_int(stmt, 10, l->limit);
    int rc = sql_run_counted(stmt, &n_rows, "reserve", err);
    if (rc == 0)
        rc = find_usage(st, ask, l, start_us, row, err);
    if (rc < 0)
        return rc;
    if (n_rows > 0) {
        note_near(l, at, row[1] + row[2] - n - held, row[1] + row[2], out);
        return held > 0 || is_once(ask) ? add_hold(st, ask, row[0], held, err) : 0;
    }
    bool never = n + held > l->limit;
    *out = (struct rv_quota_answer){.at = at,
                                    .used = row[1] + row[2],
                                    .reserved = row[2],
                                    .wanted = n + held,
                                    .again_us = never ? 0 : end_us,
                                    .is_crowded = !never && row[1] + n + held <= l->limit};
    if (out->is_crowded && ask->now_us + SOON_US < end_us)
        out->again_us = ask->now_us + SOON_US;
    return refuse(ask, l, out, err);
}

/* The row is locked: SQLite has one writer, and elsewhere the insertion locks it. */
static int lock_rate(struct sql_store *st, const struct rv_quota_ask *ask, const struct rv_quota_limit *l, int64_t *key,
                     struct rv_rate_window *w, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_LOCK_RATE);
    int64_t n = 0;

    bind_counter(stmt, ask, l);
    sql_int(stmt, 6, ask->now_us + store_rate_us(l->span));
    int rc = sql_run_counted(stmt, &n, "count", err);
    if (rc < 0)
        return rc;
    stmt = sql_use(st, SQL_FIND_RATE);
    bind_counter(stmt, ask, l);
    rc = sql_step(stmt, "look at a rate", err);
    if (rc == 1) {
        *key = sql_int_at(stmt, 0);
        rc = store_rate_read(st, stmt, 1, w, err);
    } else if (rc == 0) {
        rc = store_damaged(st, err, "the window of a rate is gone");
    }
    sql_done(stmt);
    return rc;
}

static int take_rate(struct sql_store *st, const struct rv_quota_ask *ask, size_t at, struct rv_quota_answer *out,
                     rv_err **err)
{
    const struct rv_quota_limit *l = &ask->limits[at];
    struct rv_rate_window w = {0};
    int64_t key = 0, n = ask->counts[l->kind];
    int rc = lock_rate(st, ask, l, &key, &w, err);

    if (rc < 0)
        return rc;
    store_rate_move(&w, l->span, ask->now_us);
    int64_t before = store_rate_count(&w);
    if (before + n > l->limit) {
        *out = (struct rv_quota_answer){
            .at = at, .used = before, .wanted = n, .again_us = store_rate_fits_us(&w, l->span, l->limit, n)};
        return refuse(ask, l, out, err);
    }
    w.n[w.head % RV_RATE_BUCKETS] += n;
    note_near(l, at, before, before + n, out);
    rv_sql_stmt *stmt = sql_use(st, SQL_SET_RATE);
    sql_int(stmt, 1, key);
    sql_int(stmt, 2, w.head);
    for (int i = 0; i < RV_RATE_BUCKETS; i++)
        sql_int(stmt, 3 + i, w.n[i]);
    return sql_run(stmt, "count", err);
}

/* --- reserving --- */

static int has_hold(struct sql_store *st, const struct rv_quota_ask *ask, bool *out, rv_err **err)
{
    *out = false;
    if (!ask->run)
        return 0;
    rv_sql_stmt *stmt = sql_use(st, SQL_HAS_HOLD);
    store_sql_text(stmt, 1, ask->run);
    sql_int(stmt, 2, ask->fence);
    sql_int(stmt, 3, ask->call_id);
    int rc = sql_step(stmt, "look for a reservation", err);
    *out = rc == 1 && sql_int_at(stmt, 0) > 0;
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

/* Rates before quotas, each in the order of the limits. */
static int take_all(struct sql_store *st, const struct rv_quota_ask *ask, struct rv_quota_answer *out, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < ask->n_limits; i++)
        if (ask->limits[i].is_rate && ask->counts[ask->limits[i].kind] > 0)
            rc = take_rate(st, ask, i, out, err);
    for (size_t i = 0; rc == 0 && i < ask->n_limits; i++)
        if (!ask->limits[i].is_rate && ask->counts[ask->limits[i].kind] + ask->reserves[ask->limits[i].kind] > 0)
            rc = take_quota(st, ask, i, out, err);
    return rc;
}

/* A request that is refused changes nothing, neither the counters nor the group that it is part of. */
static int reserve(struct sql_store *st, const struct rv_quota_ask *ask, struct rv_quota_answer *out, rv_err **err)
{
    bool held = false;

    *out = (struct rv_quota_answer){0};
    int rc = sql_begin_part(st, err);
    if (rc < 0)
        return rc;
    rc = has_hold(st, ask, &held, err);
    if (rc == 0 && !held)
        rc = take_all(st, ask, out, err);
    return sql_end_part(st, rc, err);
}

int rv_store_reserve(rv_store *s, const struct rv_quota_ask *ask, struct rv_quota_answer *out, rv_err **err)
{
    struct rv_quota_ask whole = *ask;

    whole.tenant = ask->tenant ? ask->tenant : RV_STORE_TENANT;
    whole.user = ask->user ? ask->user : "";
    int rc = store_enter_write(s, check_ask(&whole, err), "reserve", err);
    if (rc != 0)
        return rc;
    do
        rc = reserve(s->sql, &whole, out, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

/* --- settling --- */

struct held {
    int64_t usage, amount;
    int kind;
};

/* Takes the statement. */
static int read_holds(struct sql_store *st, rv_sql_stmt *stmt, struct held list[RV_QUOTA_MAX_LIMITS], size_t *n,
                      rv_err **err)
{
    bool lacked = false;
    int rc;

    *n = 0;
    while ((rc = sql_step(stmt, "look for reservations", err)) == 1) {
        struct held h = {sql_int_at(stmt, 0), sql_int_at(stmt, 1),
                         store_quota_kind_of(rv_str_of(sql_text_at(stmt, 2, &lacked)))};
        if (lacked || h.kind < 0 || *n == RV_QUOTA_MAX_LIMITS) {
            rc = lacked ? RV_FAIL(err, RV_E_NOMEM, "look for reservations")
                        : store_damaged(st, err, "the reservations of a call are damaged");
            break;
        }
        list[(*n)++] = h;
    }
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

static int settle_one(struct sql_store *st, const struct held *h, int64_t used, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_SETTLE);

    sql_int(stmt, 1, h->usage);
    sql_int(stmt, 2, used);
    sql_int(stmt, 3, h->amount);
    return sql_run(stmt, "settle", err);
}

static rv_sql_stmt *use_holds(struct sql_store *st, enum sql_id id, const char *run, int64_t fence, int64_t call_id)
{
    rv_sql_stmt *stmt = sql_use(st, id);

    store_sql_text(stmt, 1, run);
    sql_int(stmt, 2, fence);
    sql_int(stmt, 3, call_id);
    return stmt;
}

/* used NULL: as much as was reserved. The rows of the call are locked first: who has them settles them. */
static int settle(struct sql_store *st, const struct rv_settlement *c, int64_t *n, rv_err **err)
{
    struct held list[RV_QUOTA_MAX_LIMITS];
    size_t n_held = 0;
    int rc = read_holds(st, use_holds(st, SQL_HOLDS, c->run, c->fence, c->call_id), list, &n_held, err);

    for (size_t i = 0; rc == 0 && i < n_held; i++)
        rc = settle_one(st, &list[i], c->used ? c->used[list[i].kind] : list[i].amount, err);
    if (rc == 0 && n_held > 0)
        rc = sql_run(use_holds(st, SQL_DROP_HOLDS, c->run, c->fence, c->call_id), "settle", err);
    *n += (int64_t)n_held;
    return rc;
}

/* 1: there is such a call. */
static int find_left(struct sql_store *st, const char *run, int64_t before, int64_t *fence, int64_t *call_id,
                     rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_HOLD_LEFT);

    store_sql_text(stmt, 1, run);
    sql_int(stmt, 2, before);
    int rc = sql_step(stmt, "look for reservations", err);
    if (rc == 1) {
        *fence = sql_int_at(stmt, 0);
        *call_id = sql_int_at(stmt, 1);
    }
    sql_done(stmt);
    return rc;
}

static int settle_left(struct sql_store *st, const char *run, int64_t before, int64_t *n, rv_err **err)
{
    struct rv_settlement c = {.run = run};
    int rc;

    while ((rc = find_left(st, run, before, &c.fence, &c.call_id, err)) == 1) {
        rc = settle(st, &c, n, err);
        if (rc < 0)
            break;
    }
    return rc;
}

/* call_id 0: all of earlier fences. */
static int settle_part(struct sql_store *st, const struct rv_settlement *c, int64_t *n, rv_err **err)
{
    int rc = sql_begin_part(st, err);

    *n = 0;
    if (rc < 0)
        return rc;
    rc = c->call_id > 0 ? settle(st, c, n, err) : settle_left(st, c->run, c->fence, n, err);
    return sql_end_part(st, rc, err);
}

static int settle_in(rv_store *s, int rc, const char *op, const struct rv_settlement *c, int64_t *n, rv_err **err)
{
    int64_t changed = 0;

    rc = store_enter_write(s, rc, op, err);
    if (rc != 0)
        return rc;
    do
        rc = settle_part(s->sql, c, &changed, err);
    while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && n)
        *n = changed;
    return rc;
}

int rv_store_settle(rv_store *s, const struct rv_settlement *call, int64_t *n, rv_err **err)
{
    int rc = check_hold(call->run, call->fence, call->call_id, err);

    if (rc == 0)
        rc = check_amounts("settle", call->used, err);
    return settle_in(s, rc, "settle", call, n, err);
}

int rv_store_settle_left(rv_store *s, const char *run, int64_t fence, int64_t *n, rv_err **err)
{
    const struct rv_settlement all = {.run = run, .fence = fence};

    return settle_in(s, check_hold(run, fence, 1, err), "settle left", &all, n, err);
}

/* --- upkeep --- */

static int prune(struct sql_store *st, int64_t before_us, int64_t now_us, int64_t max, int64_t *n, rv_err **err)
{
    const enum sql_id ids[] = {SQL_PRUNE_USAGE, SQL_PRUNE_RATES};
    const int64_t upto_us[] = {before_us, now_us};
    int rc = 0;

    *n = 0;
    for (size_t i = 0; rc == 0 && i < RV_COUNT(ids); i++) {
        rv_sql_stmt *stmt = sql_use(st, ids[i]);
        int64_t n_rows = 0;
        sql_int(stmt, 1, upto_us[i]);
        sql_int(stmt, 2, max);
        rc = sql_run_counted(stmt, &n_rows, "forget what was used", err);
        *n += n_rows;
    }
    return rc;
}

int rv_store_prune_usage(rv_store *s, int64_t before_us, int64_t now_us, int64_t max, int64_t *n, rv_err **err)
{
    int64_t pruned = 0;
    int rc = store_check_time("the time", before_us, err);

    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    if (rc == 0 && (max < 1 || max > MAX_PRUNE))
        rc = RV_FAIL(err, RV_E_INVALID, "%" PRId64 " is not a number of counters to forget at once", max);
    rc = store_enter_write(s, rc, "prune usage", err);
    if (rc != 0)
        return rc;
    do
        rc = prune(s->sql, before_us, now_us, max, &pruned, err);
    while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && n)
        *n = pruned;
    return rc;
}

/* Words of quotas, and what users and tenants have used of them. */
#include <inttypes.h>
#include <string.h>

#include "coreengine/store/store_internal.h"

/* --- words --- */

const char *rv_quota_kind_text(enum rv_quota_kind kind)
{
#define X(name, word, one, many) [RV_QUOTA_##name] = (word),
    static const char *const words[] = {RV_QUOTA_KINDS(X)};
#undef X
    return words[kind];
}

const char *rv_quota_span_text(enum rv_quota_span span)
{
#define X(name, word) [RV_SPAN_##name] = (word),
    static const char *const words[] = {RV_QUOTA_SPANS(X)};
#undef X
    return words[span];
}

int store_quota_kind_of(rv_str word)
{
    for (int i = 0; i < RV_N_QUOTA; i++)
        if (rv_str_is(word, rv_quota_kind_text((enum rv_quota_kind)i)))
            return i;
    return RV_UNSET;
}

static int span_of(rv_str word)
{
    for (int i = 0; i < RV_N_SPAN; i++)
        if (rv_str_is(word, rv_quota_span_text((enum rv_quota_span)i)))
            return i;
    return RV_UNSET;
}

void rv_quota_write_amount(enum rv_quota_kind kind, int64_t amount, rv_buf *out)
{
#define X(name, word, one, many) [RV_QUOTA_##name] = {(one), (many)},
    static const char *const units[][2] = {RV_QUOTA_KINDS(X)};
#undef X
    if (kind == RV_QUOTA_COST)
        rv_buf_printf(out, "$%" PRId64 ".%06d", amount / 1000000, (int)(amount % 1000000));
    else
        rv_buf_printf(out, "%" PRId64 " %s", amount, units[kind][amount != 1]);
}

void rv_quota_write(const struct rv_quota_limit *limit, int64_t amount, rv_buf *out)
{
    rv_quota_write_amount(limit->kind, amount, out);
    rv_buf_printf(out, limit->span == RV_SPAN_HOUR ? " an %s" : " a %s", rv_quota_span_text(limit->span));
}

bool store_quota_has_span(bool is_rate, enum rv_quota_span span)
{
    if (is_rate)
        return span == RV_SPAN_MINUTE || span == RV_SPAN_HOUR || span == RV_SPAN_DAY;
    return span == RV_SPAN_DAY || span == RV_SPAN_WEEK || span == RV_SPAN_MONTH;
}

int store_rate_read(struct sql_store *st, rv_sql_stmt *stmt, int first, struct rv_rate_window *w, rv_err **err)
{
    w->head = sql_int_at(stmt, first);
    for (int i = 0; i < RV_RATE_BUCKETS; i++)
        w->n[i] = sql_int_at(stmt, first + 1 + i);
    int rc = store_check_numbers(st, "rate", "window", &w->head, 1, err);
    return rc < 0 ? rc : store_check_numbers(st, "rate", "window", w->n, RV_RATE_BUCKETS, err);
}

int64_t store_rate_us(enum rv_quota_span span)
{
    return INT64_C(1000000) * (span == RV_SPAN_MINUTE ? 60 : span == RV_SPAN_HOUR ? 3600 : 86400);
}

/* --- reading --- */

typedef int each_usage(void *self, const struct rv_usage_row *row, rv_err **err);

/* Which counters are listed: of rates, or of quotas. */
struct listing {
    const struct rv_store_scope *scope;
    bool is_rate;
    int64_t now_us;
};

static int row_of(struct sql_store *st, rv_sql_stmt *stmt, const struct listing *l, struct rv_usage_row *out,
                  rv_err **err)
{
    bool lacked = false;
    const char *user = sql_text_at(stmt, 0, &lacked);
    int kind = store_quota_kind_of(rv_str_of(sql_text_at(stmt, 2, &lacked)));
    int span = span_of(rv_str_of(sql_text_at(stmt, 3, &lacked)));

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "list what was used");
    if (!user || kind < 0 || span < 0 || !store_quota_has_span(l->is_rate, (enum rv_quota_span)span))
        return store_damaged(st, err, "a counter of a quota is damaged");
    *out = (struct rv_usage_row){.tenant = l->scope->tenant,
                                 .user = user,
                                 .is_tenants = sql_int_at(stmt, 1) != 0,
                                 .is_rate = l->is_rate,
                                 .kind = (enum rv_quota_kind)kind,
                                 .span = (enum rv_quota_span)span};
    if (l->is_rate) {
        struct rv_rate_window w;
        int rc = store_rate_read(st, stmt, 4, &w, err);
        if (rc < 0)
            return rc;
        store_rate_move(&w, out->span, l->now_us);
        out->used = store_rate_count(&w);
        out->end_us = l->now_us;
        out->start_us = l->now_us - store_rate_us(out->span);
        return 0;
    }
    int64_t *numbers[] = {&out->start_us, &out->end_us, &out->used, &out->reserved};
    for (int i = 0; i < 4; i++)
        *numbers[i] = sql_int_at(stmt, 4 + i);
    return 0;
}

static int list(struct sql_store *st, const struct listing *l, each_usage *each, void *self, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, l->is_rate ? SQL_RATES : SQL_USAGE);
    struct rv_usage_row row;
    int rc;

    store_sql_text(stmt, 1, l->scope->tenant);
    store_sql_text(stmt, 2, l->scope->user);
    sql_int(stmt, 3, l->now_us);
    while ((rc = sql_step(stmt, "list what was used", err)) == 1) {
        rc = row_of(st, stmt, l, &row, err);
        if (rc == 0)
            rc = each(self, &row, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_usage(rv_store *s, const struct rv_store_scope *scope, int64_t now_us,
                        int (*each)(void *self, const struct rv_usage_row *row, rv_err **err), void *self, rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scope(scope, &sc, err);

    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    rc = store_enter_read(s, rc, "list usage", err);
    if (rc != 0)
        return rc;
    rc = list(s->sql, &(struct listing){&sc, false, now_us}, each, self, err);
    if (rc == 0)
        rc = list(s->sql, &(struct listing){&sc, true, now_us}, each, self, err);
    return store_leave_read(s, rc, err);
}

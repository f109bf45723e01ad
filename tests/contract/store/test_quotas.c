/* Quotas and rates: what is allowed, counted, reserved, settled and shown. */
#include "tests/contract/store/quotas.h"

#include "coreengine/store/store_internal.h"

#define DAY_S  86400
#define HOUR_S 3600
/* T0 is Tuesday, 2023-11-14 22:13:20. */
#define MIDNIGHT (DAY_S - (22 * HOUR_S + 13 * 60 + 20)) /* seconds after T0 */

static const struct rv_quota_limit tokens_a_day = {
    .kind = RV_QUOTA_TOKENS, .span = RV_SPAN_DAY, .limit = 100, .plan = "free"};
static const struct rv_quota_limit runs_a_minute = {
    .kind = RV_QUOTA_RUNS, .span = RV_SPAN_MINUTE, .is_rate = true, .limit = 3, .plan = "free"};

static struct rv_quota_ask tokens(const char *user, int64_t n, int64_t call, int64_t second)
{
    return (struct rv_quota_ask){.user = user,
                                 .limits = &tokens_a_day,
                                 .n_limits = 1,
                                 .reserves[RV_QUOTA_TOKENS] = n,
                                 .run = "r1",
                                 .fence = 1,
                                 .call_id = call,
                                 .now_us = AT(second)};
}

/* A limit can be used up, but not passed; what a call did not use is free again. */
/* Proves p8-data.18/check: A use that equals the limit is allowed, one more is not */
START_TEST(a_limit_can_be_reached_and_not_passed)
{
    struct world world, *w = &world;
    struct rv_quota_answer a;

    world_open(w, _i);
    struct rv_quota_ask ask = tokens("ann", 60, 1, 0);
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    ck_assert_uint_eq(a.near, 0);
    ask = tokens("ann", 41, 2, 1);
    SAYS(
        RV_E_QUOTA,
        "quota exceeded: user \"ann\" may use 100 tokens a day (plan \"free\"); used: 60 tokens, of which reserved for "
        "calls under way: 60 tokens; needed: 41 tokens; fits again at 2023-11-14T22:13:23Z, when calls under way are "
        "over",
        rv_store_reserve(w->s, &ask, &a, &w->err));
    ck_assert(a.is_crowded);
    ask = tokens("ann", 40, 2, 1);
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    ck_assert_uint_eq(a.near, 1);
    USAGE("ann", 1, "ann tokens day 0+100");
    OK(rv_store_settle(w->s, &(struct rv_settlement){"r1", 1, 1, (int64_t[RV_N_QUOTA]){10}}, NULL, &w->err));
    USAGE("ann", 1, "ann tokens day 10+40");
    OK(rv_store_settle(w->s, &(struct rv_settlement){"r1", 1, 2, (int64_t[RV_N_QUOTA]){50}}, NULL,
                       &w->err)); /* more than was thought */
    USAGE("ann", 1, "ann tokens day 60+0");
    ask = tokens("ann", 41, 3, 2);
    SAYS(RV_E_QUOTA, "used: 60 tokens; needed: 41 tokens; fits again at 2023-11-15T00:00:00Z",
         rv_store_reserve(w->s, &ask, &a, &w->err));
    ck_assert_int_eq(a.again_us, AT(MIDNIGHT));
    ask = tokens("ann", 101, 3, 2);
    SAYS(RV_E_QUOTA, "needed: 101 tokens, which never fits", rv_store_reserve(w->s, &ask, &a, &w->err));
    ck_assert_int_eq(a.again_us, 0);
    world_close(w);
}
END_TEST

START_TEST(a_reservation_is_settled_once_and_by_its_owner)
{
    struct world world, *w = &world;
    struct rv_quota_answer a;
    int64_t n = 0;

    world_open(w, _i);
    struct rv_quota_ask ask = tokens("ann", 30, 1, 0);
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    OK(rv_store_reserve(w->s, &ask, &a, &w->err)); /* the same call again */
    USAGE("ann", 0, "ann tokens day 0+30");
    OK(rv_store_settle(w->s, &(struct rv_settlement){"r1", 2, 1, (int64_t[RV_N_QUOTA]){7}}, &n, &w->err));
    ck_assert_int_eq(n, 0); /* another owner's */
    OK(rv_store_settle(w->s, &(struct rv_settlement){"r1", 1, 1, (int64_t[RV_N_QUOTA]){7}}, &n, &w->err));
    ck_assert_int_eq(n, 1);
    OK(rv_store_settle(w->s, &(struct rv_settlement){"r1", 1, 1, (int64_t[RV_N_QUOTA]){7}}, &n, &w->err));
    ck_assert_int_eq(n, 0);
    USAGE("ann", 0, "ann tokens day 7+0");
    world_close(w);
}
END_TEST

START_TEST(what_a_dead_owner_reserved_counts_as_used_once)
{
    struct world world, *w = &world;
    struct rv_quota_answer a;
    int64_t n = 0;

    world_open(w, _i);
    for (int64_t call = 1; call <= 3; call++) {
        struct rv_quota_ask ask = tokens("ann", 10, call, 0);
        OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    }
    OK(rv_store_settle_left(w->s, "r1", 1, &n, &w->err));
    ck_assert_int_eq(n, 0); /* none before the first */
    struct rv_quota_ask again = tokens("ann", 20, 3, 1);
    again.fence = 2;
    OK(rv_store_settle_left(w->s, "r1", 2, &n, &w->err));
    ck_assert_int_eq(n, 3);
    OK(rv_store_reserve(w->s, &again, &a, &w->err));
    USAGE("ann", 1, "ann tokens day 30+20");
    OK(rv_store_settle_left(w->s, "r1", 2, &n, &w->err));
    OK(rv_store_settle(w->s, &(struct rv_settlement){"r1", 1, 3, (int64_t[RV_N_QUOTA]){9}}, NULL,
                       &w->err)); /* the dead one speaks up */
    USAGE("ann", 1, "ann tokens day 30+20");
    world_close(w);
}
END_TEST

/* Without a reservation a call is remembered for as long as its period is. */
START_TEST(what_a_call_counts_is_counted_once)
{
    static const struct rv_quota_limit searches[] = {
        {.kind = RV_QUOTA_WEB_SEARCHES, .span = RV_SPAN_DAY, .limit = 2, .plan = "free"},
        {.kind = RV_QUOTA_WEB_SEARCHES, .span = RV_SPAN_MINUTE, .is_rate = true, .limit = 50, .plan = "free"},
    };
    struct rv_quota_ask ask = {.user = "ann",
                               .limits = searches,
                               .n_limits = RV_COUNT(searches),
                               .counts[RV_QUOTA_WEB_SEARCHES] = 1,
                               .run = "take-1",
                               .fence = 1,
                               .call_id = 1,
                               .now_us = AT(0)};
    const int64_t after_us = AT(3 * DAY_S);
    struct world world, *w = &world;
    struct rv_quota_answer a;

    world_open(w, _i);
    for (int i = 0; i < 3; i++)
        OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    USAGE("ann", 0, "ann web_searches day 1+0 ann web_searches minute 1+0");
    ask.run = "take-2";
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    ask.run = "take-3";
    FAILS(RV_E_QUOTA, rv_store_reserve(w->s, &ask, &a, &w->err));
    FAILS(RV_E_QUOTA, rv_store_reserve(w->s, &ask, &a, &w->err)); /* what was refused is not remembered */
    ask.run = "take-1";
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    USAGE("ann", 0, "ann web_searches day 2+0 ann web_searches minute 2+0");
    ask.now_us = AT(MIDNIGHT);
    OK(rv_store_reserve(w->s, &ask, &a, &w->err)); /* the same call, a day later */
    USAGE("ann", MIDNIGHT, "");
    ask.run = "take-3";
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    USAGE("ann", MIDNIGHT, "ann web_searches day 1+0 ann web_searches minute 1+0");
    OK(rv_store_prune_usage(w->s, after_us, after_us, 100, NULL, &w->err));
    ask.now_us = after_us;
    OK(rv_store_reserve(w->s, &ask, &a, &w->err)); /* forgotten with its period */
    USAGE("ann", 3 * DAY_S, "ann web_searches day 1+0 ann web_searches minute 1+0");
    world_close(w);
}
END_TEST

START_TEST(a_new_period_begins_with_nothing_used)
{
    struct world world, *w = &world;
    struct rv_quota_answer a;
    struct rv_quota_limit limits[] = {tokens_a_day, tokens_a_day, tokens_a_day};

    world_open(w, _i);
    limits[1].span = RV_SPAN_WEEK;
    limits[1].limit = 250;
    limits[2].span = RV_SPAN_MONTH;
    limits[2].limit = 10000;
    struct rv_quota_ask ask = {
        .user = "ann", .limits = limits, .n_limits = 3, .counts[RV_QUOTA_TOKENS] = 100, .now_us = AT(MIDNIGHT) - 1};
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    USAGE("ann", MIDNIGHT - 1, "ann tokens day 100+0 ann tokens month 100+0 ann tokens week 100+0");
    FAILS(RV_E_QUOTA, rv_store_reserve(w->s, &ask, &a, &w->err));
    ask.now_us++;
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    ask.now_us = AT(MIDNIGHT + DAY_S);
    SAYS(RV_E_QUOTA,
         "250 tokens a week (plan \"free\"); used: 200 tokens; needed: 100 tokens; fits again at "
         "2023-11-20T00:00:00Z",
         rv_store_reserve(w->s, &ask, &a, &w->err));                                /* Monday */
    USAGE("ann", MIDNIGHT + DAY_S, "ann tokens month 200+0 ann tokens week 200+0"); /* nothing of the day stays */
    ask.now_us = AT(MIDNIGHT + 5 * DAY_S);
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    USAGE("ann", MIDNIGHT + 5 * DAY_S, "ann tokens day 100+0 ann tokens month 300+0 ann tokens week 100+0");
    world_close(w);
}
END_TEST

/* A reservation is given back to the period that it was taken from. */
START_TEST(a_call_over_midnight_counts_where_it_began)
{
    struct world world, *w = &world;
    struct rv_quota_answer a;

    world_open(w, _i);
    struct rv_quota_ask ask = tokens("ann", 80, 1, MIDNIGHT - 1);
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    ask = tokens("ann", 80, 2, MIDNIGHT);
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    OK(rv_store_settle(w->s, &(struct rv_settlement){"r1", 1, 1, (int64_t[RV_N_QUOTA]){5}}, NULL, &w->err));
    USAGE("ann", MIDNIGHT, "ann tokens day 0+80");
    USAGE("ann", MIDNIGHT - 1, "ann tokens day 5+0");
    world_close(w);
}
END_TEST

static int count_run(struct world *w, const char *user, int64_t second, struct rv_quota_answer *a)
{
    const struct rv_quota_ask ask = {
        .user = user, .limits = &runs_a_minute, .n_limits = 1, .counts[RV_QUOTA_RUNS] = 1, .now_us = AT(second)};
    return rv_store_reserve(w->s, &ask, a, &w->err);
}

/* T0 is two seconds into a tenth of a minute. */
START_TEST(a_rate_is_a_window_that_moves_in_tenths)
{
    struct world world, *w = &world;
    struct rv_quota_answer a;

    world_open(w, _i);
    OK(count_run(w, "ann", 0, &a));
    OK(count_run(w, "ann", 30, &a));
    OK(count_run(w, "ann", 30, &a));
    ck_assert_uint_eq(a.near, 1);
    SAYS(RV_E_QUOTA,
         "may use 3 runs a minute (plan \"free\"); used: 3 runs; needed: 1 run; fits again at "
         "2023-11-14T22:14:18Z",
         count_run(w, "ann", 57, &a));
    ck_assert_int_eq(a.again_us, AT(58));
    OK(count_run(w, "bob", 57, &a)); /* has a window of his own */
    OK(count_run(w, "ann", 58, &a));
    FAILS(RV_E_QUOTA, count_run(w, "ann", 58, &a));
    ck_assert_int_eq(a.again_us, AT(88));
    FAILS(RV_E_QUOTA, count_run(w, "ann", 20, &a)); /* the clock went back: nothing is forgotten */
    OK(count_run(w, "ann", 100000, &a));
    USAGE("ann", 100000, "ann runs minute 1+0");
    world_close(w);
}
END_TEST

/* Proves 8.6/rates: Rates are windows of ten parts a user and an operation: minute, hour and day are tested in that
 * order, and only what all allow is counted */
START_TEST(only_what_all_windows_allow_is_counted)
{
    struct world world, *w = &world;
    struct rv_quota_answer a;
    struct rv_quota_limit limits[] = {runs_a_minute, runs_a_minute, runs_a_minute, tokens_a_day};

    world_open(w, _i);
    limits[1].span = RV_SPAN_HOUR;
    limits[1].limit = 4;
    limits[2].span = RV_SPAN_DAY;
    limits[2].limit = 6;
    limits[3].kind = RV_QUOTA_RUNS;
    struct rv_quota_ask ask = {.user = "ann", .limits = limits, .n_limits = 4, .counts[RV_QUOTA_RUNS] = 1};
    for (int i = 0; i < 4; i++) {
        ask.now_us = AT(i * 60);
        OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    }
    SAYS(RV_E_QUOTA, "4 runs an hour", rv_store_reserve(w->s, &ask, &a, &w->err));
    ck_assert_uint_eq(a.at, 1);
    USAGE("ann", 180, "ann runs day 4+0 ann runs day 4+0 ann runs hour 4+0 ann runs minute 1+0");
    for (int i = 1; i <= 2; i++) {
        ask.now_us = AT(i * 2 * HOUR_S);
        OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    }
    SAYS(RV_E_QUOTA, "6 runs a day", rv_store_reserve(w->s, &ask, &a, &w->err));
    world_close(w);
}
END_TEST

/* Proves p8-data.18/tenants: Neither a user nor a tenant can use up, or see, the quotas of another */
START_TEST(users_and_tenants_have_counters_of_their_own)
{
    struct world world, *w = &world;
    struct rv_quota_answer a;
    struct rv_quota_limit limits[] = {tokens_a_day, tokens_a_day};

    world_open(w, _i);
    limits[0].is_tenants = true;
    limits[0].limit = 150;
    struct rv_quota_ask ask = {.user = "ann", .limits = limits, .n_limits = 2, .now_us = T0};
    ask.counts[RV_QUOTA_TOKENS] = 100;
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    SAYS(RV_E_QUOTA, "tenant \"default\" may use 150", rv_store_reserve(w->s, &ask, &a, &w->err));
    ask.counts[RV_QUOTA_TOKENS] = 50;
    SAYS(RV_E_QUOTA, "user \"ann\" may use 100", rv_store_reserve(w->s, &ask, &a, &w->err));
    ask.user = "bob"; /* what the tenant's counter took for ann's refused call is given back */
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    FAILS(RV_E_QUOTA, rv_store_reserve(w->s, &ask, &a, &w->err));
    ask.tenant = "other";
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    ask.user = NULL;
    OK(rv_store_reserve(w->s, &ask, &a, &w->err)); /* without a user: one more */
    USAGE(NULL, 0, "= tokens day 150+0 ann tokens day 100+0 bob tokens day 50+0");
    USAGE("ann", 0, "ann tokens day 100+0");
    usage_is(w, &(const struct rv_store_scope){"other", NULL}, T0,
             "= tokens day 100+0 - tokens day 50+0 bob tokens day 50+0", __LINE__);
    usage_is(w, &(const struct rv_store_scope){"other", "ann"}, T0, "", __LINE__);
    world_close(w);
}
END_TEST

START_TEST(a_refusal_within_a_group_leaves_the_rest_of_it)
{
    struct world world, *w = &world;
    struct rv_quota_answer a;

    world_open(w, _i);
    struct rv_quota_ask ask = tokens("ann", 60, 1, 0), more = tokens("ann", 60, 2, 0);
    OK(rv_store_begin(w->s, &w->err));
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    FAILS(RV_E_QUOTA, rv_store_reserve(w->s, &more, &a, &w->err));
    OK(rv_store_commit(w->s, &w->err));
    USAGE("ann", 0, "ann tokens day 0+60");
    OK(rv_store_begin(w->s, &w->err));
    OK(rv_store_settle(w->s, &(struct rv_settlement){"r1", 1, 1, (int64_t[RV_N_QUOTA]){0}}, NULL, &w->err));
    rv_store_rollback(w->s);
    USAGE("ann", 0, "ann tokens day 0+60");
    world_close(w);
}
END_TEST

/* Proves W48: Limits are the caller's at the time of each question, a limit of 0 is none, and idle windows are freed */
START_TEST(periods_and_windows_that_are_over_are_forgotten)
{
    struct world world, *w = &world;
    struct rv_quota_answer a;
    int64_t n = 0;

    world_open(w, _i);
    struct rv_quota_ask ask = tokens("ann", 60, 1, 0);
    OK(rv_store_reserve(w->s, &ask, &a, &w->err));
    OK(count_run(w, "ann", 0, &a));
    OK(count_run(w, "bob", 100, &a));
    OK(rv_store_prune_usage(w->s, AT(59), AT(59), 100, &n, &w->err));
    ck_assert_int_eq(n, 0);
    OK(rv_store_prune_usage(w->s, AT(60), AT(60), 100, &n, &w->err));
    ck_assert_int_eq(n, 1); /* ann's window */
    OK(rv_store_prune_usage(w->s, AT(MIDNIGHT), AT(MIDNIGHT), 100, &n, &w->err));
    ck_assert_int_eq(n, 2);
    OK(rv_store_settle(w->s, &(struct rv_settlement){"r1", 1, 1, (int64_t[RV_N_QUOTA]){60}}, &n, &w->err));
    ck_assert_int_eq(n, 0); /* its reservation went with the day */
    world_close(w);
}
END_TEST

START_TEST(arguments_that_are_none_are_refused)
{
    struct world world, *w = &world;
    struct rv_quota_answer a;
    struct rv_quota_limit bad[] = {tokens_a_day, tokens_a_day, tokens_a_day, runs_a_minute};

    world_open(w, _i);
    bad[0].limit = 0;
    bad[1].limit = RV_QUOTA_MAX_LIMIT + 1;
    bad[2].span = RV_SPAN_MINUTE;
    bad[3].span = RV_SPAN_MONTH;
    for (size_t i = 0; i < RV_COUNT(bad); i++) {
        struct rv_quota_ask ask = {.limits = &bad[i], .n_limits = 1, .now_us = T0};
        SAYS(RV_E_INVALID, "limit 0 of", rv_store_reserve(w->s, &ask, &a, &w->err));
    }
    struct rv_quota_ask ask = tokens("ann", -1, 1, 0);
    SAYS(RV_E_INVALID, "-1 tokens", rv_store_reserve(w->s, &ask, &a, &w->err));
    ask = tokens("ann", 1, 0, 0);
    SAYS(RV_E_INVALID, "needs a fence and a call", rv_store_reserve(w->s, &ask, &a, &w->err));
    ask = tokens("ann", 1, 1, 0);
    ask.now_us = -1;
    FAILS(RV_E_INVALID, rv_store_reserve(w->s, &ask, &a, &w->err));
    ask = tokens("ann", 1, 1, 0);
    ask.n_limits = RV_QUOTA_MAX_LIMITS + 1;
    FAILS(RV_E_INVALID, rv_store_reserve(w->s, &ask, &a, &w->err));
    FAILS(RV_E_INVALID,
          rv_store_settle(w->s, &(struct rv_settlement){"r1", 0, 1, (int64_t[RV_N_QUOTA]){0}}, NULL, &w->err));
    FAILS(RV_E_INVALID,
          rv_store_settle(w->s, &(struct rv_settlement){"r1", 1, 1, (int64_t[RV_N_QUOTA]){-1}}, NULL, &w->err));
    FAILS(RV_E_INVALID, rv_store_prune_usage(w->s, T0, T0, 0, NULL, &w->err));
    USAGE(NULL, 0, "");
    world_close(w);
}
END_TEST

/* --- time: against a calendar that counts days --- */

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month] + (month == 1 && leap);
}

static void period_is(enum rv_quota_span span, int64_t now_us, int64_t first_day, int64_t after_day)
{
    int64_t start_us, end_us;

    rv_quota_find_period(span, now_us, &start_us, &end_us);
    ck_assert_int_eq(start_us, first_day * DAY_S * S);
    ck_assert_int_eq(end_us, after_day * DAY_S * S);
}

/* Proves p8-data.18/period: A period is a day, a week from Monday or a month of the calendar, in UTC */
START_TEST(periods_begin_at_midnight_on_mondays_and_on_the_first)
{
    int64_t day = 0, monday = -3; /* 1970-01-01 was a Thursday */

    for (int year = 1970; year < 2405; year++)
        for (int month = 0; month < 12; month++) {
            int64_t first = day, after = day + days_in(year, month);
            for (; day < after; day++) {
                monday += day == monday + 7 ? 7 : 0;
                const int64_t moments[] = {day * DAY_S * S, day * DAY_S * S + 12345, (day + 1) * DAY_S * S - 1};
                for (size_t i = 0; i < RV_COUNT(moments) && day % (int64_t)rv_kit_stride(11) == 0; i++) {
                    period_is(RV_SPAN_DAY, moments[i], day, day + 1);
                    period_is(RV_SPAN_WEEK, moments[i], monday, monday + 7);
                    period_is(RV_SPAN_MONTH, moments[i], first, after);
                }
            }
        }
}
END_TEST

/* A window against a list of times: what it counts is never less than what happened in the last nine tenths, nor more
 * than in the last ten; and it says when one more fits. */
START_TEST(a_window_counts_the_last_nine_to_ten_tenths)
{
    static const int64_t lengths[] = {60 * S, 3600 * S, INT64_C(86400) * S};
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 11);
    int64_t times[300], length = lengths[_i], now_us = T0;
    enum rv_quota_span span = _i == 0 ? RV_SPAN_MINUTE : _i == 1 ? RV_SPAN_HOUR : RV_SPAN_DAY;
    struct rv_rate_window w = {0};

    for (int n = 0; n < 300; n++) {
        int64_t least = 0, most = 0;
        now_us += (int64_t)rv_rand_below(rand, (uint64_t)(length / 7));
        store_rate_move(&w, span, now_us);
        for (int i = 0; i < n; i++) {
            least += times[i] > now_us - length / 10 * 9;
            most += times[i] > now_us - length;
        }
        ck_assert_int_ge(store_rate_count(&w), least);
        ck_assert_int_le(store_rate_count(&w), most);
        int64_t limit = 1 + (int64_t)rv_rand_below(rand, 8), fits_us = store_rate_fits_us(&w, span, limit, 1);
        if (store_rate_count(&w) + 1 > limit) {
            struct rv_rate_window later = w;
            store_rate_move(&later, span, fits_us - 1);
            ck_assert_int_gt(store_rate_count(&later) + 1, limit);
            store_rate_move(&later, span, fits_us);
            ck_assert_int_le(store_rate_count(&later) + 1, limit);
        }
        ck_assert_int_eq(store_rate_fits_us(&w, span, limit, limit + 1), 0);
        w.n[w.head % RV_RATE_BUCKETS]++;
        times[n] = now_us;
    }
}
END_TEST

Suite *quotas_suite(void)
{
    Suite *s = suite_create("quotas");
    TCase *tc = tcase_create("quotas");

    ADD(tc, a_limit_can_be_reached_and_not_passed);
    ADD(tc, a_reservation_is_settled_once_and_by_its_owner);
    ADD(tc, what_a_call_counts_is_counted_once);
    ADD(tc, what_a_dead_owner_reserved_counts_as_used_once);
    ADD(tc, a_new_period_begins_with_nothing_used);
    ADD(tc, a_call_over_midnight_counts_where_it_began);
    ADD(tc, a_rate_is_a_window_that_moves_in_tenths);
    ADD(tc, only_what_all_windows_allow_is_counted);
    ADD(tc, users_and_tenants_have_counters_of_their_own);
    ADD(tc, a_refusal_within_a_group_leaves_the_rest_of_it);
    ADD(tc, periods_and_windows_that_are_over_are_forgotten);
    ADD(tc, arguments_that_are_none_are_refused);
    if (first_store_impl == 0) /* no store has a part in it */
        tcase_add_test(tc, periods_begin_at_midnight_on_mondays_and_on_the_first);
    tcase_add_loop_test(tc, a_window_counts_the_last_nine_to_ten_tenths, 0, 3);
    suite_add_tcase(s, tc);
    return s;
}

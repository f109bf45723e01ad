/* Periods of quotas and windows of rates, in UTC. Nothing here reads a clock. */
#include "coreengine/store/store_internal.h"

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* --- calendar --- */

/* Days from 1970-01-01 to the first of a month; months count from year 0. A year begins in March here, so that the leap
 * day is its last. */
static int64_t month_day(int64_t month)
{
    int64_t y = floor_div(month - 2, 12), m = month - 2 - y * 12;
    int64_t days = y * 365 + floor_div(y, 4) - floor_div(y, 100) + floor_div(y, 400) + (153 * m + 2) / 5;

    return days - 719468;
}

/* The month, counted from year 0, that a day is in. */
static int64_t month_of(int64_t day)
{
    int64_t month = floor_div((day + 719528) * 4800, 146097); /* off by one at most, in either direction */

    while (month_day(month) > day)
        month--;
    while (month_day(month + 1) <= day)
        month++;
    return month;
}

void rv_quota_find_period(enum rv_quota_span span, int64_t now_us, int64_t *start_us, int64_t *end_us)
{
    int64_t day = floor_div(now_us, RV_US_PER_DAY), first = day, after = day + 1;

    if (span == RV_SPAN_WEEK) {
        first = day - (day + 3 - floor_div(day + 3, 7) * 7); /* day 0 was a Thursday */
        after = first + 7;
    } else if (span == RV_SPAN_MONTH) {
        int64_t month = month_of(day);
        first = month_day(month);
        after = month_day(month + 1);
    }
    *start_us = first * RV_US_PER_DAY;
    *end_us = after * RV_US_PER_DAY;
}

/* --- windows that move --- */

static int64_t tenth_us(enum rv_quota_span span)
{
    return (span == RV_SPAN_MINUTE ? 60 * RV_US_PER_S
            : span == RV_SPAN_HOUR ? 3600 * RV_US_PER_S
                                   : RV_US_PER_DAY) /
           RV_RATE_BUCKETS;
}

void store_rate_move(struct rv_rate_window *w, enum rv_quota_span span, int64_t now_us)
{
    int64_t head = floor_div(now_us, tenth_us(span));

    if (head - w->head >= RV_RATE_BUCKETS)
        w->head = head - RV_RATE_BUCKETS;
    for (; w->head < head; w->head++)
        w->n[(w->head + 1) % RV_RATE_BUCKETS] = 0;
}

int64_t store_rate_count(const struct rv_rate_window *w)
{
    int64_t sum = 0;

    for (size_t i = 0; i < RV_RATE_BUCKETS; i++)
        sum += w->n[i];
    return sum;
}

int64_t store_rate_fits_us(const struct rv_rate_window *w, enum rv_quota_span span, int64_t limit, int64_t n)
{
    int64_t sum = store_rate_count(w), tenth = w->head - RV_RATE_BUCKETS + 1;

    if (n > limit)
        return 0;
    for (; sum + n > limit && tenth <= w->head; tenth++)
        sum -= w->n[(tenth + RV_RATE_BUCKETS) % RV_RATE_BUCKETS];
    return (tenth - 1 + RV_RATE_BUCKETS) * tenth_us(span);
}

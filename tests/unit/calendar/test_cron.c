/* The next match: by a table, with what happens where clocks change, and by random expressions against a count of all
 * minutes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/calendar/calendar.h"
#include "coreengine/calendar/calendar_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/calendar/suites.h"

#define BERLIN      "Europe/Berlin"
#define HOWE        "Australia/Lord_Howe"
#define MAX_MATCHES 8

static const struct {
    const char *text, *zone, *after;
    const char *matches[MAX_MATCHES]; /* one after the other */
} rows[] = {
    /* plain days */
    {"0 9 * * *", "UTC", "2026-11-23T09:00:00Z", {"2026-11-24T09:00:00Z", "2026-11-25T09:00:00Z"}},
    {"0 9 * * *", "UTC", "2026-11-23T08:59:59.999999Z", {"2026-11-23T09:00:00Z"}},
    {"0 9 * * MON-FRI", BERLIN, "2026-11-27T09:00:00+01:00", {"2026-11-30T09:00:00+01:00"}},
    {"*/15 9-10 * * *",
     "UTC",
     "2026-11-23T09:31:00Z",
     {"2026-11-23T09:45:00Z", "2026-11-23T10:00:00Z", "2026-11-23T10:15:00Z", "2026-11-23T10:30:00Z",
      "2026-11-23T10:45:00Z", "2026-11-24T09:00:00Z"}},
    {"59 23 31 12 *", "UTC", "2026-12-31T23:59:00Z", {"2027-12-31T23:59:00Z"}},
    {"0 0 1 * *", "UTC", "2026-01-31T12:00:00Z", {"2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"}},
    {"0 0 31 * *", "UTC", "2026-01-31T12:00:00Z", {"2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"}},
    {"@weekly", "UTC", "2026-11-23T00:00:00Z", {"2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z"}},
    {"@hourly", "Asia/Kolkata", "2026-11-23T00:00:00Z", {"2026-11-23T06:00:00+05:30", "2026-11-23T07:00:00+05:30"}},
    /* a fixed time in the gap: once, at its end */
    {"30 2 * * *", BERLIN, "2026-03-28T12:00:00+01:00", {"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
    {"0,30 2 * * *", BERLIN, "2026-03-28T12:00:00+01:00", {"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"}},
    {"0 2,3 * * *", BERLIN, "2026-03-28T12:00:00+01:00", {"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"}},
    {"15 2 * * *", HOWE, "2026-10-03T12:00:00+10:30", {"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
    {"0 0 * * *",
     "Africa/Cairo",
     "2026-04-23T12:00:00+02:00",
     {"2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"}},
    {"0 12 * * *",
     "Pacific/Apia",
     "2011-12-29T12:00:00-10:00",
     {"2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"}},
    /* a fixed time in the overlap: the first one */
    {"30 2 * * *", BERLIN, "2026-10-24T12:00:00+02:00", {"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
    {"30 2 * * *", BERLIN, "2026-10-25T02:10:00+01:00", {"2026-10-26T02:30:00+01:00"}},
    {"0 2,3 * * *", BERLIN, "2026-10-25T02:10:00+01:00", {"2026-10-25T03:00:00+01:00"}},
    {"45 1 * * *", HOWE, "2026-04-04T12:00:00+11:00", {"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"}},
    {"0 0 * * *",
     "America/Havana",
     "2026-10-31T12:00:00-04:00",
     {"2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"}},
    /* a repeating one: what is there, each time that it is there */
    {"*/30 * * * *",
     BERLIN,
     "2026-10-25T01:30:00+02:00",
     {"2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00",
      "2026-10-25T02:30:00+01:00", "2026-10-25T03:00:00+01:00"}},
    {"*/30 * * * *",
     BERLIN,
     "2026-03-29T01:00:00+01:00",
     {"2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"}},
    {"0 */2 * * *", BERLIN, "2026-03-29T00:00:00+01:00", {"2026-03-29T04:00:00+02:00", "2026-03-29T06:00:00+02:00"}},
    {"0 */2 * * *",
     BERLIN,
     "2026-10-25T01:00:00+02:00",
     {"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T04:00:00+01:00"}},
    {"*/30 2 * * *", BERLIN, "2026-03-28T12:00:00+01:00", {"2026-03-30T02:00:00+02:00"}},
    {"*/30 2 * * *",
     BERLIN,
     "2026-10-24T12:00:00+02:00",
     {"2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00",
      "2026-10-25T02:30:00+01:00", "2026-10-26T02:00:00+01:00"}},
    {"15 * * * *", HOWE, "2026-10-04T01:00:00+10:30", {"2026-10-04T01:15:00+10:30", "2026-10-04T03:15:00+11:00"}},
    {"0 * * * *",
     "Pacific/Apia",
     "2011-12-29T22:30:00-10:00",
     {"2011-12-29T23:00:00-10:00", "2011-12-31T00:00:00+14:00"}},
    /* day and weekday */
    {"0 0 */2 * 1",
     "UTC",
     "2026-11-21T00:00:00Z",
     {"2026-11-23T00:00:00Z", "2026-11-25T00:00:00Z", "2026-11-27T00:00:00Z", "2026-11-29T00:00:00Z",
      "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"}},
    {"0 0 13 * FRI",
     "UTC",
     "2026-11-10T00:00:00Z",
     {"2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z", "2026-12-04T00:00:00Z",
      "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z"}},
    {"0 0 13 * *", "UTC", "2026-11-10T00:00:00Z", {"2026-11-13T00:00:00Z", "2026-12-13T00:00:00Z"}},
    {"0 0 * * FRI", "UTC", "2026-11-10T00:00:00Z", {"2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"}},
    /* 29 February */
    {"0 0 29 2 *", "UTC", "2026-11-23T00:00:00Z", {"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
    {"0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", {"2104-02-29T00:00:00Z", "2108-02-29T00:00:00Z"}},
    {"59 23 29 2 *", BERLIN, "2096-02-29T23:59:00+01:00", {"2104-02-29T23:59:00+01:00"}},
    {"*/59 23 29 2 *", BERLIN, "2096-02-29T23:59:00+01:00", {"2104-02-29T23:00:00+01:00"}},
    /* before 1970, and when offsets were not of whole minutes */
    {"0 12 * * *", BERLIN, "1890-01-01T00:00:00Z", {"1890-01-01T11:06:32Z"}},
    {"* * * * *", BERLIN, "1890-01-01T11:06:32Z", {"1890-01-01T11:07:32Z"}},
    {"30 23 31 12 *", "UTC", "0001-01-01T00:00:00Z", {"0001-12-31T23:30:00Z"}},
};

START_TEST(matches_follow_the_table)
{
    const rv_zone *zone = zone_named(rows[_i].zone);
    int64_t at = instant(rows[_i].after);
    struct rv_cron cron;

    ck_assert_int_eq(rv_cron_parse(rv_str_of(rows[_i].text), NULL, &cron, NULL), 0);
    for (size_t i = 0; i < MAX_MATCHES && rows[_i].matches[i]; i++) {
        char shown[RV_TIME_MAX];
        ck_assert_int_eq(rv_cron_next(&cron, zone, at, &at, NULL), 0);
        rv_zone_format(zone, at, shown);
        ck_assert_msg(at == instant(rows[_i].matches[i]), "%s, %zu: %s, not %s", rows[_i].text, i, shown,
                      rows[_i].matches[i]);
    }
}
END_TEST

/* Dates that no year has cannot be written; a set of them can. */
START_TEST(no_match_within_eight_years_is_an_error)
{
    struct rv_cron never;
    rv_err *err = NULL;
    int64_t at = 7;

    ck_assert_int_eq(rv_cron_parse(RV_STR_LIT("0 0 29 2 *"), NULL, &never, NULL), 0);
    never.days = UINT32_C(1) << 30;
    for (int i = 0; i < 2; i++) {
        never.has_fixed_times = i;
        ck_assert_int_eq(rv_cron_next(&never, zone_named(BERLIN), instant("2026-11-23T12:00:00Z"), &at, &err),
                         RV_E_NOT_FOUND);
        ck_assert_str_eq(rv_err_text(err), "no time matches the cron expression within 8 years after "
                                           "2026-11-23T13:00:00+01:00");
        ck_assert_int_eq(at, 7);
        rv_err_free(err);
        err = NULL;
    }
}
END_TEST

START_TEST(there_is_no_match_after_the_year_9999)
{
    static const char *const texts[] = {"0 0 1 1 *", "* * * * *"};
    struct rv_cron cron;
    int64_t at;

    for (size_t i = 0; i < RV_COUNT(texts); i++) {
        ck_assert_int_eq(rv_cron_parse(rv_str_of(texts[i]), NULL, &cron, NULL), 0);
        ck_assert_int_eq(rv_cron_next(&cron, rv_zone_utc(), instant("9999-12-31T23:59:00Z"), &at, NULL),
                         RV_E_NOT_FOUND);
        ck_assert_int_eq(rv_cron_next(&cron, zone_named(BERLIN), INT64_MAX, &at, NULL), RV_E_NOT_FOUND);
        ck_assert_int_eq(rv_cron_next(&cron, zone_named(BERLIN), INT64_MIN, &at, NULL), 0);
        ck_assert(at >= instant("0001-01-01T00:00:00Z") && at < instant("0002-01-02T00:00:00Z"));
    }
}
END_TEST

/* --- random expressions --- */

static const char *const zones[] = {
    "UTC",
    BERLIN,
    "America/New_York",
    HOWE,
    "America/Havana",
    "Africa/Casablanca",
    "Asia/Tehran",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "America/St_Johns",
    "Africa/Cairo",
    "Antarctica/Troll",
    "America/Asuncion",
    "Asia/Gaza",
};

static void put_random_field(rv_buf *b, struct rv_rand r, int min, int max)
{
    int n = max - min + 1, low = min + (int)rv_rand_below(r, (uint64_t)n);

    switch (rv_rand_below(r, 6)) {
    case 0:
    case 1:
        rv_buf_puts(b, "* ");
        break;
    case 2:
        rv_buf_printf(b, "*/%d ", 1 + (int)rv_rand_below(r, (uint64_t)n));
        break;
    case 3:
        rv_buf_printf(b, "%d-%d ", low, low + (int)rv_rand_below(r, (uint64_t)(max - low + 1)));
        break;
    case 4:
        rv_buf_printf(b, "%d,%d ", low, min + (int)rv_rand_below(r, (uint64_t)n));
        break;
    default:
        rv_buf_printf(b, "%d ", low);
    }
}

static void random_cron(struct rv_rand r, rv_buf *text, struct rv_cron *out)
{
    int rc;

    do {
        rv_buf_clear(text);
        put_random_field(text, r, 0, 59);
        if (rv_rand_below(r, 2)) /* many at night, when clocks change */
            rv_buf_printf(text, "%d ", (int)rv_rand_below(r, 4));
        else
            put_random_field(text, r, 0, 23);
        put_random_field(text, r, 1, 31);
        put_random_field(text, r, 1, 12);
        put_random_field(text, r, 0, 7);
        rc = rv_cron_parse(rv_buf_str(text), NULL, out, NULL);
        ck_assert(rc == 0 || rc == RV_E_INVALID); /* 31 2 */
    } while (rc < 0);
}

static int64_t random_instant_s(struct rv_rand r, const rv_zone *zone)
{
    int64_t t_s = INT64_C(200000000) + (int64_t)rv_rand_below(r, 4000000000);

    if (rv_rand_below(r, 4)) {
        struct zone_span span = calendar_zone_span_at(zone, t_s);
        if (span.from_s > 200000000)
            t_s = span.from_s + (int64_t)rv_rand_below(r, 2 * 86400) - 86400 - 43200;
    }
    return t_s;
}

/* Does the expression name this minute on the clocks? Written apart from the code that searches. */
static bool names_minute(const struct rv_cron *c, int64_t local_min)
{
    char text[RV_TIME_MAX];
    int month, day, hour, minute, weekday = (int)((local_min / 1440 + 4) % 7);
    bool day_fits, weekday_fits;

    rv_time_format(local_min * 60 * 1000000, text);
    month = (text[5] - '0') * 10 + text[6] - '0';
    day = (text[8] - '0') * 10 + text[9] - '0';
    hour = (text[11] - '0') * 10 + text[12] - '0';
    minute = (text[14] - '0') * 10 + text[15] - '0';
    day_fits = c->days >> day & 1;
    weekday_fits = c->weekdays >> weekday & 1;
    if (!(c->minutes >> minute & 1) || !(c->hours >> hour & 1) || !(c->months >> month & 1))
        return false;
    if (c->any_day && c->any_weekday)
        return true;
    if (c->any_day)
        return weekday_fits;
    return c->any_weekday ? day_fits : day_fits || weekday_fits;
}

static int64_t clock_minute(const rv_zone *zone, int64_t t_s)
{
    return (t_s + rv_zone_offset_s(zone, t_s * 1000000)) / 60;
}

/* The first match after t_s, found by looking at every minute up to last_s: the clocks show a named time, or, with
 * fixed times, they show or pass one that they never did before. 0: none. */
static int64_t next_by_counting(const struct rv_cron *c, const rv_zone *zone, int64_t t_s, int64_t last_s)
{
    int64_t latest = clock_minute(zone, t_s);

    for (int64_t s = t_s - 2 * 86400; s < t_s; s += 60)
        if (clock_minute(zone, s) > latest)
            latest = clock_minute(zone, s);
    for (int64_t s = t_s - t_s % 60 + 60; s <= last_s; s += 60) {
        int64_t now = clock_minute(zone, s);
        if (!c->has_fixed_times && names_minute(c, now))
            return s;
        while (latest < now)
            if (names_minute(c, ++latest) && c->has_fixed_times)
                return s;
    }
    return 0;
}

START_TEST(matches_are_those_that_counting_finds)
{
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 2026);
    rv_buf text = RV_BUF_INIT(256);
    int n = rv_kit_sample(400, 10000), n_found = 0;

    for (int i = 0; i < n; i++) {
        const rv_zone *zone = zone_named(zones[rv_rand_below(r, RV_COUNT(zones))]);
        struct rv_cron cron;
        int64_t t_s, last_s, next_us, counted_s;

        random_cron(r, &text, &cron);
        t_s = random_instant_s(r, zone);
        ck_assert_int_eq(rv_cron_next(&cron, zone, t_s * 1000000, &next_us, NULL), 0);
        last_s = next_us / 1000000 - t_s > 10 * 86400 ? t_s + 10 * 86400 : next_us / 1000000;
        counted_s = next_by_counting(&cron, zone, t_s, last_s);
        n_found += counted_s != 0;
        ck_assert_msg(counted_s == 0 ? next_us / 1000000 > last_s : counted_s * 1000000 == next_us,
                      "%s in %s after %lld: %lld, counted %lld", rv_buf_cstr(&text), rv_zone_name(zone), (long long)t_s,
                      (long long)next_us / 1000000, (long long)counted_s);
    }
    ck_assert_int_gt(n_found, n / 4);
    rv_buf_fini(&text);
}
END_TEST

START_TEST(each_match_comes_after_the_one_before)
{
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 7);
    rv_buf text = RV_BUF_INIT(256);
    int n = rv_kit_sample(2000, 100000);

    for (int i = 0; i < n; i++) {
        const rv_zone *zone = zone_named(zones[rv_rand_below(r, RV_COUNT(zones))]);
        struct rv_cron cron;
        int64_t us;

        random_cron(r, &text, &cron);
        us = random_instant_s(r, zone) * 1000000 + (int64_t)rv_rand_below(r, 1000000);
        for (int k = 0; k < 8; k++) {
            int64_t before = us, again;
            ck_assert_int_eq(rv_cron_next(&cron, zone, before, &us, NULL), 0);
            ck_assert_msg(us > before, "%s in %s after %lld", rv_buf_cstr(&text), rv_zone_name(zone),
                          (long long)before);
            ck_assert_int_eq(rv_cron_next(&cron, zone, before + (us - before) / 2, &again, NULL), 0);
            ck_assert_int_eq(again, us); /* there is none between */
        }
    }
    rv_buf_fini(&text);
}
END_TEST

TCase *cron_case(void)
{
    TCase *tc = tcase_create("cron");

    tcase_add_loop_test(tc, matches_follow_the_table, 0, RV_COUNT(rows));
    tcase_add_test(tc, no_match_within_eight_years_is_an_error);
    tcase_add_test(tc, there_is_no_match_after_the_year_9999);
    tcase_add_test(tc, matches_are_those_that_counting_finds);
    tcase_add_test(tc, each_match_comes_after_the_one_before);
    return tc;
}

/* Times of schedules that fire once: forms, zones, errors with places. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/calendar/calendar.h"
#include "tests/kit/kit.h"
#include "tests/unit/calendar/suites.h"

#define BERLIN "Europe/Berlin"
#define NOW    "2026-03-01T12:00:00Z"

static const struct {
    const char *text, *zone, *at, *local;
} good[] = {
    {"2026-04-15", "UTC", "2026-04-15T00:00:00Z", "2026-04-15T00:00:00Z"},
    {"2026-04-15", BERLIN, "2026-04-14T22:00:00Z", "2026-04-15T00:00:00Z"},
    {"2026-04-15T15:00", "UTC", "2026-04-15T15:00:00Z", "2026-04-15T15:00:00Z"},
    {"2026-04-15 15:00", BERLIN, "2026-04-15T13:00:00Z", "2026-04-15T15:00:00Z"},
    {"2026-04-15t15:00:01", BERLIN, "2026-04-15T13:00:01Z", "2026-04-15T15:00:01Z"},
    {" 2026-04-15T15:00:01.5\n", "UTC", "2026-04-15T15:00:01.5Z", "2026-04-15T15:00:01.5Z"},
    {"2026-04-15T15:00:01.123456789Z", BERLIN, "2026-04-15T15:00:01.123456Z", "2026-04-15T15:00:01.123456Z"},
    {"2026-04-15T15:00Z", BERLIN, "2026-04-15T15:00:00Z", "2026-04-15T15:00:00Z"},
    {"2026-04-15T15:00+05:30", BERLIN, "2026-04-15T09:30:00Z", "2026-04-15T15:00:00Z"},
    {"2026-04-15T15:00:00-11:00", "UTC", "2026-04-16T02:00:00Z", "2026-04-15T15:00:00Z"},
    {"20260415T150000", BERLIN, "2026-04-15T13:00:00Z", "2026-04-15T15:00:00Z"},
    {"20260415T150000Z", BERLIN, "2026-04-15T15:00:00Z", "2026-04-15T15:00:00Z"},
    {"2028-02-29", "UTC", "2028-02-29T00:00:00Z", "2028-02-29T00:00:00Z"},
    {"2026-10-25T02:30", BERLIN, "2026-10-25T00:30:00Z", "2026-10-25T02:30:00Z"}, /* the first of two */
    {"2026-03-29T02:30+01:00", BERLIN, "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"},
    {"2026-03-01T12:00:00.000001Z", "UTC", "2026-03-01T12:00:00.000001Z", "2026-03-01T12:00:00.000001Z"},
};

START_TEST(a_time_is_an_instant_and_what_clocks_show)
{
    struct rv_when got;
    rv_err *err = NULL;

    ck_assert_msg(rv_when_parse(rv_str_of(good[_i].text), zone_named(good[_i].zone), instant(NOW), NULL, &got, &err) ==
                      0,
                  "%s", rv_err_text(err));
    ck_assert_int_eq(got.us, instant(good[_i].at));
    ck_assert_int_eq(got.local_us, instant(good[_i].local));
}
END_TEST

static const struct {
    const char *text;
    int rc, col;
    const char *message, *hint; /* parts */
} bad[] = {
    {"", RV_E_PARSE, 1, "it ends where year, four digits, is expected", "use a form such as"},
    {"tomorrow", RV_E_PARSE, 1, "year, four digits, is expected here", "use a form such as"},
    {"26-04-15", RV_E_PARSE, 3, "year, four digits, is expected here", NULL},
    {"2026", RV_E_PARSE, 5, "it ends where \"-\" is expected", NULL},
    {"2026-4-15", RV_E_PARSE, 7, "month, two digits, is expected here", "2026-04-15T09:30"},
    {"2026/04/15", RV_E_PARSE, 5, "month, two digits, is expected here", NULL},
    {"2026-13-01", RV_E_INVALID, 6, "month 13 does not exist (01 to 12)", "the nearest is 12"},
    {"0000-01-01", RV_E_INVALID, 1, "year 0000 does not exist (0001 to 9999)", "the nearest is 0001"},
    {"2026-04-00", RV_E_INVALID, 9, "day 00 does not exist (01 to 31)", "the nearest is 01"},
    {"2026-02-29", RV_E_INVALID, 9, "this month has 28 days", "its last day is 2026-02-28"},
    {"2026-04-31T10:00", RV_E_INVALID, 9, "this month has 30 days", "its last day is 2026-04-30"},
    {"2026-04-15X", RV_E_PARSE, 11, "\"T\" and a time is expected here", NULL},
    {"2026-04-15T", RV_E_PARSE, 12, "it ends where hour, two digits, is expected", NULL},
    {"2026-04-15T9:00", RV_E_PARSE, 13, "hour, two digits, is expected here", NULL},
    {"2026-04-15T24:00", RV_E_INVALID, 12, "hour 24 does not exist (00 to 23)", "the nearest is 23"},
    {"2026-04-15T10", RV_E_PARSE, 14, "it ends where \":\" is expected", NULL},
    {"2026-04-15T10:60", RV_E_INVALID, 15, "minute 60 does not exist (00 to 59)", "59"},
    {"2026-04-15T10:00:60", RV_E_INVALID, 18, "second 60 does not exist", "59"},
    {"2026-04-15T10:00:00.", RV_E_PARSE, 21, "it ends where a digit is expected", NULL},
    {"2026-04-15T10:00:00.1234567890", RV_E_PARSE, 30, "Z, an offset such as +02:00, or the end is expected here",
     NULL},
    {"2026-04-15T10:00+2", RV_E_PARSE, 19, "it ends where hour", NULL},
    {"2026-04-15T10:00+0200", RV_E_PARSE, 20, "\":\" is expected here", NULL},
    {"2026-04-15T10:00+24:00", RV_E_INVALID, 18, "hour 24 does not exist", NULL},
    {"2026-04-15T10:00Z!", RV_E_PARSE, 18, "the end is expected here", NULL},
    {"2026-04-15T10:00 Europe/Berlin", RV_E_PARSE, 17, "Z, an offset such as +02:00, or the end", NULL},
    {"20260415", RV_E_PARSE, 9, "it ends where \"T\" and a time is expected", NULL},
    {"20260415T15", RV_E_PARSE, 12, "it ends where minute", NULL},
    {"20260431T150000", RV_E_INVALID, 7, "this month has 30 days", "2026-04-30"},
    {"  2026-03-29T02:30", RV_E_INVALID, 3, "the clocks of Europe/Berlin are set forward past it",
     "the first time after the gap is 2026-03-29T03:00:00+02:00"},
    {"2026-03-01T12:00:00Z", RV_E_STATE, 1, "it is in the past; now is 2026-03-01T13:00:00+01:00",
     "the next full minute is 2026-03-01T13:01:00+01:00"},
    {"1999-01-01", RV_E_STATE, 1, "it is in the past", NULL},
    {"9999-12-31T23:59:59-00:01", RV_E_INVALID, 1, "it does not exist in the calendar", NULL},
    {"0001-01-01T00:00:00+00:01", RV_E_INVALID, 1, "it does not exist in the calendar", NULL},
};

START_TEST(a_wrong_time_is_one_error_with_its_place)
{
    struct rv_when got = {7, 7};
    rv_err *err = NULL;

    ck_assert_int_eq(rv_when_parse(rv_str_of(bad[_i].text), zone_named(BERLIN), instant(NOW), NULL, &got, &err),
                     bad[_i].rc);
    ck_assert_msg(strstr(rv_err_text(err), bad[_i].message) != NULL, "%s", rv_err_text(err));
    ck_assert_msg(rv_err_src(err).col == bad[_i].col, "%s: col %d", bad[_i].text, rv_err_src(err).col);
    if (bad[_i].hint)
        ck_assert_msg(rv_err_hint_text(err) && strstr(rv_err_hint_text(err), bad[_i].hint), "%s",
                      rv_err_hint_text(err));
    ck_assert_int_eq(got.us, 7); /* written only on success */
    rv_err_free(err);
}
END_TEST

TCase *when_case(void)
{
    TCase *tc = tcase_create("when");

    tcase_add_loop_test(tc, a_time_is_an_instant_and_what_clocks_show, 0, RV_COUNT(good));
    tcase_add_loop_test(tc, a_wrong_time_is_one_error_with_its_place, 0, RV_COUNT(bad));
    return tc;
}

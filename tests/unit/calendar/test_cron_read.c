/* Cron expressions, text to sets: what is accepted means what it should; what is not gets one error with its place. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/calendar/calendar.h"
#include "tests/kit/kit.h"
#include "tests/unit/calendar/suites.h"

#define ALL_MINUTES  ((UINT64_C(1) << 60) - 1)
#define ALL_HOURS    ((UINT32_C(1) << 24) - 1)
#define ALL_DAYS     UINT32_C(0xfffffffe)
#define ALL_MONTHS   0x1ffe
#define ALL_WEEKDAYS 0x7f
#define BIT(n)       (UINT64_C(1) << (n))

static const struct {
    const char *text;
    struct rv_cron want;
} good[] = {
    {"* * * * *", {ALL_MINUTES, ALL_HOURS, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, false}},
    {"5 4 3 2 1", {BIT(5), BIT(4), BIT(3), BIT(2), BIT(1), false, false, true}},
    {"\t 05\t04  03 02 01 ", {BIT(5), BIT(4), BIT(3), BIT(2), BIT(1), false, false, true}},
    {"0,59 0,23 1,31 1,12 0,6",
     {BIT(0) | BIT(59), BIT(0) | BIT(23), BIT(1) | BIT(31), BIT(1) | BIT(12), BIT(0) | BIT(6), false, false, true}},
    {"10-12 1-3 1-2 1-2 1-2",
     {BIT(10) | BIT(11) | BIT(12), BIT(1) | BIT(2) | BIT(3), BIT(1) | BIT(2), BIT(1) | BIT(2), BIT(1) | BIT(2), false,
      false, true}},
    {"0 0 1 1 7", {BIT(0), BIT(0), BIT(1), BIT(1), BIT(0), false, false, true}},
    {"0 0 1 1 5-7", {BIT(0), BIT(0), BIT(1), BIT(1), BIT(5) | BIT(6) | BIT(0), false, false, true}},
    {"0 0 1 1 0-7", {BIT(0), BIT(0), BIT(1), BIT(1), ALL_WEEKDAYS, false, false, true}},
    {"0 0 1 1 FRI-SUN", {BIT(0), BIT(0), BIT(1), BIT(1), BIT(5) | BIT(6) | BIT(0), false, false, true}},
    {"0 0 1 1 sun-tue", {BIT(0), BIT(0), BIT(1), BIT(1), BIT(0) | BIT(1) | BIT(2), false, false, true}},
    {"0 0 1 1 SUN-SUN", {BIT(0), BIT(0), BIT(1), BIT(1), BIT(0), false, false, true}},
    {"0 0 1 Jan,dEc mon,WED", {BIT(0), BIT(0), BIT(1), BIT(1) | BIT(12), BIT(1) | BIT(3), false, false, true}},
    {"*/20 */8 */10 */4 */3",
     {BIT(0) | BIT(20) | BIT(40), BIT(0) | BIT(8) | BIT(16), BIT(1) | BIT(11) | BIT(21) | BIT(31),
      BIT(1) | BIT(5) | BIT(9), BIT(0) | BIT(3) | BIT(6), false, false, false}},
    {"5-20/7 0 * * *", {BIT(5) | BIT(12) | BIT(19), BIT(0), ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, true}},
    {"0 */6 * * *",
     {BIT(0), BIT(0) | BIT(6) | BIT(12) | BIT(18), ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, false}},
    {"3,*/30 1 * * *", {BIT(3) | BIT(0) | BIT(30), BIT(1), ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, false}},
    {"*/60 */24 */31 */12 */7", {BIT(0), BIT(0), BIT(1), BIT(1), BIT(0), false, false, false}},
    {"0 0 1-31 * *", {BIT(0), BIT(0), ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, false, true, true}},
    {"@hourly", {BIT(0), ALL_HOURS, ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, false}},
    {"@daily", {BIT(0), BIT(0), ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, true}},
    {"@midnight", {BIT(0), BIT(0), ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS, true, true, true}},
    {" @Weekly ", {BIT(0), BIT(0), ALL_DAYS, ALL_MONTHS, BIT(0), true, false, true}},
    {"@monthly", {BIT(0), BIT(0), BIT(1), ALL_MONTHS, ALL_WEEKDAYS, false, true, true}},
    {"@yearly", {BIT(0), BIT(0), BIT(1), BIT(1), ALL_WEEKDAYS, false, true, true}},
    {"@annually", {BIT(0), BIT(0), BIT(1), BIT(1), ALL_WEEKDAYS, false, true, true}},
    {"0 0 29 2 *", {BIT(0), BIT(0), BIT(29), BIT(2), ALL_WEEKDAYS, false, true, true}},
    {"0 0 31 2 1", {BIT(0), BIT(0), BIT(31), BIT(2), BIT(1), false, false, true}}, /* Mondays of February */
    {"0 0 31 2,3 *", {BIT(0), BIT(0), BIT(31), BIT(2) | BIT(3), ALL_WEEKDAYS, false, true, true}},
};

START_TEST(an_expression_becomes_sets)
{
    const struct rv_cron *want = &good[_i].want;
    struct rv_cron got;
    rv_err *err = NULL;

    ck_assert_msg(rv_cron_parse(rv_str_of(good[_i].text), NULL, &got, &err) == 0, "%s", rv_err_text(err));
    ck_assert_uint_eq(got.minutes, want->minutes);
    ck_assert_uint_eq(got.hours, want->hours);
    ck_assert_uint_eq(got.days, want->days);
    ck_assert_uint_eq(got.months, want->months);
    ck_assert_uint_eq(got.weekdays, want->weekdays);
    ck_assert_int_eq(got.any_day, want->any_day);
    ck_assert_int_eq(got.any_weekday, want->any_weekday);
    ck_assert_int_eq(got.has_fixed_times, want->has_fixed_times);
}
END_TEST

static const struct {
    const char *text;
    int rc, col;
    const char *message, *hint; /* parts */
} bad[] = {
    {"", RV_E_PARSE, 1, "0 fields instead of five: minute, hour, day, month, weekday", "write \"* * * * *\""},
    {"   ", RV_E_PARSE, 4, "0 fields", "write \"* * * * *\""},
    {"0 9", RV_E_PARSE, 4, "\"0 9\": 2 fields instead of five", "write \"0 9 * * *\""},
    {"0 9 * * * *", RV_E_PARSE, 11, "6 fields instead of five", "seconds and years are not supported"},
    {"0 0 0 * * * 2026", RV_E_PARSE, 11, "7 fields instead of five", "seconds and years"},
    {"60 * * * *", RV_E_INVALID, 1, "minute 60 is out of range (0 to 59)", "the nearest minute is 59"},
    {"0 24 * * *", RV_E_INVALID, 3, "hour 24 is out of range (0 to 23)", "the nearest hour is 23"},
    {"0 0 0 * *", RV_E_INVALID, 5, "day 0 is out of range (1 to 31)", "the nearest day is 1"},
    {"0 0 1,32 * *", RV_E_INVALID, 7, "day 32 is out of range (1 to 31)", "the nearest day is 31"},
    {"0 0 1 13 *", RV_E_INVALID, 7, "month 13 is out of range", "the nearest month is 12"},
    {"0 0 * * 8", RV_E_INVALID, 9, "weekday 8 is out of range (0 to 7)", "the nearest weekday is 7"},
    {"99999999999999999999 * * * *", RV_E_INVALID, 1, "is out of range (0 to 59)", "59"},
    {"*/0 * * * *", RV_E_INVALID, 3, "step 0 of the field minute is out of range (1 to 60)", "the nearest step is 1"},
    {"*/90 * * * *", RV_E_INVALID, 3, "step 90 of the field minute is out of range", "begins again with each hour"},
    {"0 */25 * * *", RV_E_INVALID, 5, "step 25 of the field hour", "begins again with each day"},
    {"0 0 */32 * *", RV_E_INVALID, 7, "step 32 of the field day", "begins again with each month"},
    {"0 0 1 */13 *", RV_E_INVALID, 9, "step 13 of the field month", "begins again with each year"},
    {"0 0 * * */8", RV_E_INVALID, 11, "step 8 of the field weekday", "begins again with each week"},
    {"*/ * * * *", RV_E_PARSE, 3, "\"/\" is followed by a number", NULL},
    {"*/x * * * *", RV_E_PARSE, 3, "\"/\" is followed by a number", NULL},
    {"*/5x * * * *", RV_E_PARSE, 3, "\"/\" is followed by a number", NULL},
    {"*/5/2 * * * *", RV_E_PARSE, 3, "\"/\" is followed by a number", NULL},
    {"5/15 * * * *", RV_E_PARSE, 2, "a step follows \"*\" or a range, not the single minute 5", "write 5-59/15"},
    {"0 0 * * MON/2", RV_E_PARSE, 12, "not the single weekday 1", "write 1-6/2"},
    {"1,,2 * * * *", RV_E_PARSE, 3, "a number is missing in the field minute (0 to 59)", NULL},
    {"1, * * * *", RV_E_PARSE, 3, "a number is missing", NULL},
    {"1- * * * *", RV_E_PARSE, 3, "a number is missing", NULL},
    {"-1 * * * *", RV_E_PARSE, 1, "a number is missing", NULL},
    {"1-2-3 * * * *", RV_E_PARSE, 3, "\"2-3\" is not a value of the field minute", NULL},
    {"** * * * *", RV_E_PARSE, 1, "\"**\" is not a value of the field minute (0 to 59)", "a field is * or a list"},
    {"? * * * *", RV_E_PARSE, 1, "\"?\" is not a value of the field minute", "write *"},
    {"0 0 L * *", RV_E_PARSE, 5, "\"L\" is not a value of the field day (1 to 31)", "a field is * or a list"},
    {"0 0 1W * *", RV_E_PARSE, 5, "\"1W\" is not a value of the field day", NULL},
    {"0 0 * * 1#2", RV_E_PARSE, 9, "\"1#2\" is not a value of the field weekday (0 to 7, or SUN to SAT)", NULL},
    {"0 0 * * monday", RV_E_PARSE, 9, "\"monday\" is not a value of the field weekday", "write MON"},
    {"0 0 * JANUARY *", RV_E_PARSE, 7, "\"JANUARY\" is not a value of the field month (1 to 12, or JAN to DEC)",
     "write JAN"},
    {"0 0 * MRA *", RV_E_PARSE, 7, "\"MRA\" is not a value of the field month", "write MA"},
    {"0 MON * * *", RV_E_PARSE, 3, "\"MON\" is not a value of the field hour", NULL},
    {"0 22-2 * * *", RV_E_INVALID, 3, "range 22-2 of the field hour goes backwards", "write 22-23,0-2"},
    {"0 23-0 * * *", RV_E_INVALID, 3, "range 23-0", "write 23,0"},
    {"0 22-0 * * *", RV_E_INVALID, 3, "range 22-0", "write 22-23,0"},
    {"0 23-1 * * *", RV_E_INVALID, 3, "range 23-1", "write 23,0-1"},
    {"0 0 * * FRI-MON", RV_E_INVALID, 9, "range FRI-MON of the field weekday goes backwards", "write 5-7,1"},
    {"0 0 * * SAT-TUE", RV_E_INVALID, 9, "range SAT-TUE", "write 6-7,1-2"},
    {"0 0 * * 5-0", RV_E_INVALID, 9, "range 5-0", "write 5-7"},
    {"0 0 * * 7-1", RV_E_INVALID, 9, "range 7-1", "write 7,1"},
    {"0 0 * * 7-0", RV_E_INVALID, 9, "range 7-0", "write 7"},
    {"0 0 31 2 *", RV_E_INVALID, 5, "day 31 never comes in the month 2", "the last day there is 29"},
    {"0 0 31 APR,6 *", RV_E_INVALID, 5, "day 31 never comes in the months APR,6", "the last day there is 30"},
    {"0 0 30,31 2 *", RV_E_INVALID, 5, "day 30 never comes in the month 2", "29"},
    {"@reboot", RV_E_INVALID, 1, "a schedule fires at times, and @reboot does not name one", "@hourly"},
    {"@dayly", RV_E_PARSE, 1, "unknown macro \"@dayly\"", "did you mean @daily?"},
    {"  @every", RV_E_PARSE, 3, "unknown macro \"@every\"", NULL},
    {"@minutely5", RV_E_PARSE, 1, "unknown macro", "@hourly, @daily, @weekly, @monthly, @yearly or five fields"},
    {"@daily 5", RV_E_PARSE, 8, "a macro has no fields behind it", NULL},
    {"@", RV_E_PARSE, 1, "unknown macro \"@\"", NULL},
    {"\xc3\xa4 * * * *", RV_E_PARSE, 1, "\"\xc3\xa4\" is not a value of the field minute", NULL},
    {"* \xc3\xa4,x * * *", RV_E_PARSE, 3, "\"\xc3\xa4\" is not a value of the field hour", NULL},
    {"*\n* * * *", RV_E_PARSE, 10, "4 fields", NULL},
};

START_TEST(a_wrong_expression_is_one_error_with_its_place)
{
    struct rv_cron got = {0};
    rv_err *err = NULL;

    ck_assert_int_eq(rv_cron_parse(rv_str_of(bad[_i].text), NULL, &got, &err), bad[_i].rc);
    ck_assert_msg(strstr(rv_err_text(err), bad[_i].message) != NULL, "%s", rv_err_text(err));
    ck_assert_msg(rv_err_src(err).col == bad[_i].col, "%s: col %d", bad[_i].text, rv_err_src(err).col);
    if (bad[_i].hint)
        ck_assert_msg(rv_err_hint_text(err) && strstr(rv_err_hint_text(err), bad[_i].hint), "%s",
                      rv_err_hint_text(err));
    ck_assert_uint_eq(got.minutes, 0); /* written only on success */
    rv_err_free(err);
}
END_TEST

START_TEST(the_place_is_that_of_the_file)
{
    struct rv_src src = {"jobs.yaml", 7, 12};
    struct rv_cron got;
    rv_err *err = NULL;
    char *text;

    ck_assert_int_eq(rv_cron_parse(RV_STR_LIT(" 0 25 * * *"), &src, &got, &err), RV_E_INVALID);
    text = rv_kit_err_take(err);
    ck_assert_str_eq(text, "cron expression \"0 25 * * *\": hour 25 is out of range (0 to 23)  [invalid_argument]"
                           "  (jobs.yaml:7:15)\n  hint: the nearest hour is 23\n");
    free(text);
}
END_TEST

START_TEST(a_long_text_is_refused)
{
    static char text[RV_CRON_MAX_TEXT + 2];
    struct rv_cron got;
    rv_err *err = NULL;

    for (size_t i = 0; i < sizeof text - 9; i += 2)
        memcpy(text + i, "5,", 2);
    memcpy(text + RV_CRON_MAX_TEXT - 10, "5 * * * *", 10);
    ck_assert_int_eq(rv_cron_parse(rv_str_of(text), NULL, &got, &err), 0);
    memset(text, '5', RV_CRON_MAX_TEXT + 1);
    ck_assert_int_eq(rv_cron_parse(rv_str_of(text), NULL, &got, &err), RV_E_LIMIT);
    ck_assert_msg(strstr(rv_err_text(err), "more than 1024 bytes") != NULL, "%s", rv_err_text(err));
    rv_err_free(err);
}
END_TEST

TCase *cron_read_case(void)
{
    TCase *tc = tcase_create("cron_read");

    tcase_add_loop_test(tc, an_expression_becomes_sets, 0, RV_COUNT(good));
    tcase_add_loop_test(tc, a_wrong_expression_is_one_error_with_its_place, 0, RV_COUNT(bad));
    tcase_add_test(tc, the_place_is_that_of_the_file);
    tcase_add_test(tc, a_long_text_is_refused);
    return tc;
}

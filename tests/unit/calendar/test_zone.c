/* Zones in memory: bytes, rules, offsets, and times that the clocks skip or show twice. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/calendar/calendar_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/calendar/suites.h"

static const struct {
    const char *name;
    bool is_good;
} names[] = {
    {"UTC", true},
    {"Europe/Berlin", true},
    {"America/Argentina/Buenos_Aires", true},
    {"Etc/GMT+12", true},
    {"America/Port-au-Prince", true},
    {"EST5EDT", true},
    {"", false},
    {"/etc/passwd", false},
    {"Europe/../../etc/passwd", false},
    {"..", false},
    {"Europe/", false},
    {"Europe//Berlin", false},
    {"Europe/Berlin ", false},
    {"Europe\nBerlin", false},
    {"Z\xc3\xbcrich", false},
    {"right/Europe/Berlin", false},
    {"rights", true},
    {"0123456789012345678901234567890123456789012345678901234567890123", true},
    {"01234567890123456789012345678901234567890123456789012345678901234", false},
};

START_TEST(names_are_relative_paths_of_plain_letters)
{
    rv_err *err = NULL;
    int rc = rv_zone_check_name(rv_str_of(names[_i].name), &err);

    ck_assert_int_eq(rc, names[_i].is_good ? 0 : RV_E_INVALID);
    ck_assert((err == NULL) == names[_i].is_good);
    ck_assert(names[_i].is_good || rv_err_hint_text(err));
    rv_err_free(err);
}
END_TEST

START_TEST(utc_needs_no_file)
{
    int64_t us[2];
    char text[RV_TIME_MAX];

    ck_assert_str_eq(rv_zone_name(rv_zone_utc()), "UTC");
    ck_assert_int_eq(rv_zone_offset_s(rv_zone_utc(), INT64_MAX), 0);
    ck_assert_int_eq(rv_zone_offset_s(rv_zone_utc(), INT64_MIN), 0);
    ck_assert_int_eq(rv_zone_from_local(rv_zone_utc(), 1234567, us), 1);
    ck_assert_int_eq(us[0], 1234567);
    rv_zone_format(rv_zone_utc(), instant("2026-03-29T01:00:00.999Z"), text);
    ck_assert_str_eq(text, "2026-03-29T01:00:00Z");
    rv_zone_free(NULL);
}
END_TEST

/* --- files --- */

#define RULE "\nCET-1CEST,M3.5.0,M10.5.0/3\n"
/* -1 h, from 1970-01-01 0 h, from 1970-01-02 +1 h, then as the rule says */
#define PLAIN .changes = {{0, 1}, {86400, 2}}, .n_changes = 2, .offsets = {-3600, 0, 3600}, .n_offsets = 3, .rule = RULE

static const struct {
    const char *fault; /* NULL: none */
    struct tzif file;
} files[] = {
    {NULL, {PLAIN}},
    {NULL, {.version = '4', PLAIN}},
    {NULL, {.n_offsets = 1, .rule = "\n\n"}},
    {NULL, {.n_offsets = 1, .rule = RULE}},
    {"version 1", {.version = '1', PLAIN}},
    {"version 1", {.version = '\x01', PLAIN}},
    {"leap seconds", {.n_leaps = 1, PLAIN}},
    {"number of offsets", {.n_offsets = 0, .rule = "\n\n"}},
    {"25 and 26 hours", {.n_offsets = 1, .offsets = {26 * 3600}, .rule = "\n\n"}},
    {NULL, {.n_offsets = 1, .offsets = {26 * 3600 - 1}, .rule = "\n\n"}},
    {"25 and 26 hours", {.n_offsets = 1, .offsets = {-25 * 3600}, .rule = "\n\n"}},
    {NULL, {.n_offsets = 1, .offsets = {1 - 25 * 3600}, .rule = "\n\n"}},
    {"not in the file", {.changes = {{0, 1}}, .n_changes = 1, .n_offsets = 1, .rule = "\n\n"}},
    {"not in order", {.changes = {{0, 0}, {0, 0}}, .n_changes = 2, .n_offsets = 1, .rule = "\n\n"}},
    {"not in order", {.changes = {{INT64_MIN, 0}}, .n_changes = 1, .n_offsets = 1, .rule = "\n\n"}},
    {"not in order", {.changes = {{INT64_MAX, 0}}, .n_changes = 1, .n_offsets = 1, .rule = "\n\n"}},
    {NULL, {.changes = {{-(INT64_C(1) << 59), 0}}, .n_changes = 1, .n_offsets = 1, .rule = "\n\n"}},
    {"rule for later years", {.n_offsets = 1, .rule = ""}},
    {"rule for later years", {.n_offsets = 1, .rule = "\n"}},
    {"rule for later years", {.n_offsets = 1, .rule = "CET-1\n"}},
    {"rule for later years", {.n_offsets = 1, .rule = "\nCET-1"}},
    {"rule for later years", {.n_offsets = 1, .rule = "\nCET\n"}},
};

START_TEST(a_file_is_read_or_refused_with_a_reason)
{
    rv_str bytes = tzif_bytes(&files[_i].file);
    rv_zone *zone = NULL;
    rv_err *err = NULL;
    int rc = rv_zone_parse(RV_STR_LIT("Test/Zone"), bytes, &zone, &err);

    ck_assert_int_eq(rc, files[_i].fault ? RV_E_PARSE : 0);
    if (files[_i].fault)
        ck_assert_msg(strstr(rv_err_text(err), files[_i].fault) != NULL, "%s", rv_err_text(err));
    else
        ck_assert_str_eq(rv_zone_name(zone), "Test/Zone");
    rv_err_free(err);
    rv_zone_free(zone);
    free((char *)bytes.ptr);
}
END_TEST

START_TEST(a_file_that_is_cut_off_is_refused)
{
    static const struct tzif file = {PLAIN};
    rv_str bytes = tzif_bytes(&file);
    rv_zone *zone = NULL;

    for (size_t n = 0; n < bytes.len; n++)
        ck_assert_int_eq(rv_zone_parse(RV_STR_LIT("X"), (rv_str){bytes.ptr, n}, &zone, NULL), RV_E_PARSE);
    ck_assert_int_eq(rv_zone_parse(RV_STR_LIT("X"), (rv_str){bytes.ptr, RV_ZONE_MAX_BYTES + 1}, &zone, NULL),
                     RV_E_LIMIT);
    ck_assert_int_eq(rv_zone_parse(RV_STR_LIT(".."), bytes, &zone, NULL), RV_E_INVALID);
    free((char *)bytes.ptr);
}
END_TEST

START_TEST(changes_come_before_the_rule)
{
    static const struct tzif file = {PLAIN};
    static const struct {
        int64_t s;
        int offset_s;
    } at[] = {{INT64_MIN / 1000000, -3600}, {-1, -3600}, {0, 0}, {86399, 0}, {86400, 3600}, {INT64_C(1785000000), 7200},
              {INT64_MAX / 1000000, 7200}};
    rv_str bytes = tzif_bytes(&file);
    rv_zone *zone;

    ck_assert_int_eq(rv_zone_parse(RV_STR_LIT("X"), bytes, &zone, NULL), 0);
    for (size_t i = 0; i < RV_COUNT(at); i++) {
        int offset_s = rv_zone_offset_s(zone, at[i].s * 1000000);
        ck_assert_msg(offset_s == at[i].offset_s || at[i].s > INT64_C(1) << 40, "%zu: %d", i, offset_s);
    }
    ck_assert_int_eq(rv_zone_offset_s(zone, -1), -3600); /* microseconds are rounded down */
    rv_zone_free(zone);
    free((char *)bytes.ptr);
}
END_TEST

/* --- rules --- */

static const char *const good_rules[] = {
    "UTC0",
    "<+01>-1",
    "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1",
    "IST-1GMT0,M10.5.0,M3.5.0/1",
    "EST5EDT,M3.2.0,M11.1.0",
    "AAA-24:59:59BBB+24,J1/167:59:59,365/-167",
    "EST5EDT4:30,0/0,J365/25",
};
static const char *const bad_rules[] = {
    "",
    "0",
    "CE-1",
    "<+01-1",
    "<+0 1>-1",
    "CET",
    "CET-25",
    "CET-1:60",
    "CET-1:30:",
    "CET-1:30:60",
    "CET-1 ",
    "CET-1CEST",
    "CET-1CEST,M3.5.0",
    "CET-1CEST,M3.5.0,M10.5.0,",
    "CET-1CEST,M0.5.0,M10.5.0",
    "CET-1CEST,M13.5.0,M10.5.0",
    "CET-1CEST,M3.0.0,M10.5.0",
    "CET-1CEST,M3.6.0,M10.5.0",
    "CET-1CEST,M3.5.7,M10.5.0",
    "CET-1CEST,M3.5,M10.5.0",
    "CET-1CEST,J0,J60",
    "CET-1CEST,J366,J60",
    "CET-1CEST,1,366",
    "CET-1CEST,1/168,2",
    "CET-1CEST,1/-168,2",
    "CET-1CEST,1/x,2",
    "CET-1CE,1,2",
    "CET-99999999999999999999",
};

START_TEST(rules_are_those_of_rfc_9636)
{
    struct zone_rule rule;

    for (size_t i = 0; i < RV_COUNT(good_rules); i++)
        ck_assert_msg(calendar_zone_rule_parse(rv_str_of(good_rules[i]), &rule), "%s", good_rules[i]);
    for (size_t i = 0; i < RV_COUNT(bad_rules); i++)
        ck_assert_msg(!calendar_zone_rule_parse(rv_str_of(bad_rules[i]), &rule), "%s", bad_rules[i]);
}
END_TEST

static const struct {
    const char *rule, *at;
    int offset_s;
} by_rule[] = {
    {"CET-1CEST,M3.5.0,M10.5.0/3", "2500-03-28T00:59:59Z", 3600},
    {"CET-1CEST,M3.5.0,M10.5.0/3", "2500-03-28T01:00:00Z", 7200},
    {"CET-1CEST,M3.5.0,M10.5.0/3", "2500-10-31T00:59:59Z", 7200},
    {"CET-1CEST,M3.5.0,M10.5.0/3", "2500-10-31T01:00:00Z", 3600},
    {"NZST-12NZDT,M9.5.0,M4.1.0/3", "2027-01-01T00:00:00Z",
     13 * 3600}, /* the start is later in the year than the end */
    {"NZST-12NZDT,M9.5.0,M4.1.0/3", "2026-07-01T00:00:00Z", 12 * 3600},
    {"IST-1GMT0,M10.5.0,M3.5.0/1", "2026-01-01T00:00:00Z", 0}, /* "daylight-saving" time behind the standard */
    {"IST-1GMT0,M10.5.0,M3.5.0/1", "2026-07-01T00:00:00Z", 3600},
    {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T00:59:59Z", -7200}, /* the evening before, as in Nuuk */
    {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T01:00:00Z", -3600},
    {"IST-2IDT,M3.4.4/26,M10.5.0", "2026-03-26T23:59:59Z", 7200}, /* the Friday after the fourth Thursday */
    {"IST-2IDT,M3.4.4/26,M10.5.0", "2026-03-27T00:00:00Z", 10800},
    {"AAA0BBB,J60/0,J300/0", "2028-03-01T00:00:00Z", 3600}, /* day 60 is always 1 March */
    {"AAA0BBB,J60/0,J300/0", "2028-02-29T23:59:59Z", 0},
    {"AAA0BBB,59/0,300/0", "2028-02-29T00:00:00Z", 3600}, /* day 59 is 29 February of leap years */
    {"AAA0BBB,59/0,300/0", "2027-02-28T23:59:59Z", 0},
    {"EST5EDT,0/0,J365/25", "2026-01-01T05:00:00Z", -4 * 3600}, /* all year: it never ends */
    {"EST5EDT,0/0,J365/25", "2026-01-01T04:59:59Z", -4 * 3600},
    {"EST5EDT,0/0,J365/25", "2026-07-01T05:00:00Z", -4 * 3600},
};

START_TEST(a_rule_gives_the_offset_of_any_year)
{
    struct zone_rule rule;
    int64_t at_s = instant(by_rule[_i].at) / 1000000;
    struct zone_span span;

    ck_assert(calendar_zone_rule_parse(rv_str_of(by_rule[_i].rule), &rule));
    span = calendar_zone_rule_span(&rule, at_s);
    ck_assert_int_eq(span.offset_s, by_rule[_i].offset_s);
    ck_assert(span.from_s <= at_s && at_s < span.until_s);
}
END_TEST

/* --- local times --- */

static const struct {
    const char *zone, *local; /* as if it were UTC */
    int n;
    const char *first, *last;
} locals[] = {
    {"Europe/Berlin", "2026-03-29T01:59:59.999999Z", 1, "2026-03-29T01:59:59.999999+01:00", NULL},
    {"Europe/Berlin", "2026-03-29T02:00:00Z", 0, "2026-03-29T03:00:00+02:00", NULL},
    {"Europe/Berlin", "2026-03-29T02:59:59.999999Z", 0, "2026-03-29T03:00:00+02:00", NULL},
    {"Europe/Berlin", "2026-03-29T03:00:00Z", 1, "2026-03-29T03:00:00+02:00", NULL},
    {"Europe/Berlin", "2026-10-25T01:59:59Z", 1, "2026-10-25T01:59:59+02:00", NULL},
    {"Europe/Berlin", "2026-10-25T02:00:00.5Z", 2, "2026-10-25T02:00:00.5+02:00", "2026-10-25T02:00:00.5+01:00"},
    {"Europe/Berlin", "2026-10-25T03:00:00Z", 1, "2026-10-25T03:00:00+01:00", NULL},
    {"Australia/Lord_Howe", "2026-10-04T02:15:00Z", 0, "2026-10-04T02:30:00+11:00", NULL},
    {"Australia/Lord_Howe", "2026-04-05T01:45:00Z", 2, "2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30"},
    {"Pacific/Apia", "2011-12-30T12:00:00Z", 0, "2011-12-31T00:00:00+14:00", NULL}, /* a day that Samoa skipped */
    {"Pacific/Kwajalein", "1993-08-21T12:00:00Z", 0, "1993-08-22T00:00:00+12:00", NULL},
    {"America/Juneau", "1867-10-19T12:00:00Z", 2, "1867-10-19T12:00:00+15:02", "1867-10-19T12:00:00-08:57"},
    {"Asia/Kolkata", "2026-01-01T00:00:00Z", 1, "2026-01-01T00:00:00+05:30", NULL},
    {"UTC", "2026-01-01T00:00:00Z", 1, "2026-01-01T00:00:00Z", NULL},
};

START_TEST(local_times_are_skipped_shown_once_or_twice)
{
    int64_t us[2] = {0, 0};
    int n = rv_zone_from_local(zone_named(locals[_i].zone), instant(locals[_i].local), us);

    ck_assert_int_eq(n, locals[_i].n);
    if (strncmp(locals[_i].local, "1867", 4) == 0) { /* the offsets were not of whole minutes */
        ck_assert_int_eq(us[1] - us[0], INT64_C(86400) * 1000000);
        return;
    }
    ck_assert_int_eq(us[0], instant(locals[_i].first));
    if (n == 2)
        ck_assert_int_eq(us[1], instant(locals[_i].last));
}
END_TEST

START_TEST(times_at_the_ends_of_the_range_do_no_harm)
{
    char text[RV_TIME_MAX];
    int64_t us[2];

    rv_zone_format(zone_named("Asia/Tokyo"), INT64_MAX, text);
    ck_assert_str_eq(text, "9999-12-31T23:59:59+09:00");
    rv_zone_format(zone_named("America/New_York"), INT64_MIN, text);
    ck_assert_str_eq(text, "0001-01-01T00:00:00-04:56:02");
    ck_assert_int_eq(rv_zone_from_local(zone_named("Europe/Berlin"), INT64_MAX, us), 1);
    ck_assert_int_eq(rv_zone_from_local(zone_named("Europe/Berlin"), INT64_MIN, us), 1);
}
END_TEST

static const struct {
    const char *zone, *at, *shown;
} formats[] = {
    {"Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00"},
    {"America/St_Johns", "2026-01-01T00:00:00.75Z", "2025-12-31T20:30:00-03:30"},
    {"Asia/Kathmandu", "2026-01-01T00:00:00Z", "2026-01-01T05:45:00+05:45"},
    {"Europe/Berlin", "1890-01-01T00:00:00Z", "1890-01-01T00:53:28+00:53:28"},
    {"Africa/Monrovia", "1960-01-01T00:00:00Z", "1959-12-31T23:15:30-00:44:30"},
    {"Etc/UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00+00:00"},
};

START_TEST(a_time_is_shown_with_its_offset)
{
    char text[RV_TIME_MAX];

    rv_zone_format(zone_named(formats[_i].zone), instant(formats[_i].at), text);
    ck_assert_str_eq(text, formats[_i].shown);
}
END_TEST

TCase *zone_case(void)
{
    TCase *tc = tcase_create("zone");

    tcase_add_loop_test(tc, names_are_relative_paths_of_plain_letters, 0, RV_COUNT(names));
    tcase_add_test(tc, utc_needs_no_file);
    tcase_add_loop_test(tc, a_file_is_read_or_refused_with_a_reason, 0, RV_COUNT(files));
    tcase_add_test(tc, a_file_that_is_cut_off_is_refused);
    tcase_add_test(tc, changes_come_before_the_rule);
    tcase_add_test(tc, rules_are_those_of_rfc_9636);
    tcase_add_loop_test(tc, a_rule_gives_the_offset_of_any_year, 0, RV_COUNT(by_rule));
    tcase_add_loop_test(tc, local_times_are_skipped_shown_once_or_twice, 0, RV_COUNT(locals));
    tcase_add_test(tc, times_at_the_ends_of_the_range_do_no_harm);
    tcase_add_loop_test(tc, a_time_is_shown_with_its_offset, 0, RV_COUNT(formats));
    return tc;
}

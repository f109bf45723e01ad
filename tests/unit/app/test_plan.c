/* When schedules fire: the instants of a text, which of those that were missed is fired, and what a change keeps. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

static int64_t at(const char *time)
{
    int64_t us = 0;

    if (time)
        ck_assert_msg(rv_time_parse(rv_str_of(time), &us, NULL) == 0, "%s", time);
    return us;
}

static const struct {
    const char *cron, *zone; /* cron NULL: once */
    const char *next, *now;  /* the schedule stands at next */
    const char *planned, *since, *then;
    bool is_late;
} plans[] = {
    /* in time, or a little late */
    {"0 9 * * *", "UTC", "2026-05-04T09:00:00Z", "2026-05-04T09:00:00Z", "2026-05-04T09:00:00Z", "2026-05-04T09:00:00Z",
     "2026-05-05T09:00:00Z", false},
    {"0 9 * * *", "UTC", "2026-05-04T09:00:00Z", "2026-05-04T20:59:59Z", "2026-05-04T09:00:00Z", "2026-05-04T09:00:00Z",
     "2026-05-05T09:00:00Z", false},
    /* several were missed: once, for the last */
    {"*/10 * * * *", "UTC", "2026-05-04T09:00:00Z", "2026-05-04T09:35:00Z", "2026-05-04T09:30:00Z",
     "2026-05-04T09:00:00Z", "2026-05-04T09:40:00Z", false},
    /* down for days: what is less than 24 hours late counts, not how long the process was away */
    {"0 9 * * *", "UTC", "2026-05-01T09:00:00Z", "2026-05-04T20:00:00Z", "2026-05-04T09:00:00Z", "2026-05-01T09:00:00Z",
     "2026-05-05T09:00:00Z", false},
    {"0 9 * * *", "UTC", "2026-05-01T09:00:00Z", "2026-05-05T08:59:59Z", "2026-05-04T09:00:00Z", "2026-05-01T09:00:00Z",
     "2026-05-05T09:00:00Z", false},
    {"* * * * *", "UTC", "2016-05-01T09:00:00Z", "2026-05-05T08:59:59Z", "2026-05-05T08:59:00Z", "2016-05-01T09:00:00Z",
     "2026-05-05T09:00:00Z", false},
    /* 24 hours are too late, a microsecond less is not */
    {"0 9 1 * *", "UTC", "2026-05-01T09:00:00Z", "2026-05-02T09:00:00Z", "2026-05-01T09:00:00Z", "2026-05-01T09:00:00Z",
     "2026-06-01T09:00:00Z", true},
    {"0 9 1 * *", "UTC", "2026-05-01T09:00:00Z", "2026-05-02T08:59:59.999999Z", "2026-05-01T09:00:00Z",
     "2026-05-01T09:00:00Z", "2026-06-01T09:00:00Z", false},
    {"0 9 1 * *", "UTC", "2026-05-01T09:00:00Z", "2026-09-20T09:00:00Z", "2026-05-01T09:00:00Z", "2026-05-01T09:00:00Z",
     "2026-10-01T09:00:00Z", true},
    /* once */
    {NULL, "UTC", "2026-05-01T09:00:00Z", "2026-05-01T09:00:01Z", "2026-05-01T09:00:00Z", "2026-05-01T09:00:00Z", NULL,
     false},
    {NULL, "UTC", "2026-05-01T09:00:00Z", "2026-05-02T09:00:00Z", "2026-05-01T09:00:00Z", "2026-05-01T09:00:00Z", NULL,
     true},
    /* clocks are set forward in Berlin: 02:30 is fired at 03:00, once */
    {"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z",
     "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", false},
    /* and back: 02:30 the first time, not the second; what repeats, twice */
    {"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:45:00Z", "2026-10-25T00:30:00Z",
     "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z", false},
    {"*/30 2 * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T01:10:00Z", "2026-10-25T01:00:00Z",
     "2026-10-25T00:00:00Z", "2026-10-25T01:30:00Z", false},
    /* a day of 23 hours */
    {"0 12 * * *", "Europe/Berlin", "2026-03-28T11:00:00Z", "2026-03-29T09:59:59Z", "2026-03-28T11:00:00Z",
     "2026-03-28T11:00:00Z", "2026-03-29T10:00:00Z", false},
};

START_TEST(the_last_missed_time_is_fired_once_unless_it_is_a_day_late)
{
    struct rv_schedule_row row = {.is_once = !plans[_i].cron,
                                  .expr = plans[_i].cron ? plans[_i].cron : "2026-05-01T09:00",
                                  .zone = plans[_i].zone,
                                  .next_us = at(plans[_i].next)};
    struct rv_app_times t;
    struct rv_app_plan p;

    ck_assert_int_eq(rv_app_times_build(&row, NULL, &t, NULL), 0);
    ck_assert_int_eq(rv_app_times_plan(&t, row.next_us, at(plans[_i].now), &p, NULL), 0);
    ck_assert_int_eq(p.planned_us, at(plans[_i].planned));
    ck_assert_int_eq(p.since_us, at(plans[_i].since));
    ck_assert_int_eq(p.next_us, at(plans[_i].then));
    ck_assert_int_eq(p.is_late, plans[_i].is_late);
    rv_app_times_fini(&t);
}
END_TEST

static const struct {
    struct rv_app_when when;
    int code;
    const char *text, *place;
} wrong[] = {
    {{.cron = "0 9 * *"}, RV_E_PARSE, "4 fields", "--cron:1:"},
    {{.cron = "0 24 * * *"}, RV_E_INVALID, "hour 24", "--cron:1:3"},
    {{.cron = "0 9 * * *", .zone = "Europe/Berln"}, RV_E_NOT_FOUND, "Europe/Berlin", ""},
    {{.at = "2026-05-04T08:00"}, RV_E_STATE, "in the past", "--at:1:1"},
    {{.at = "2026-05-04T25:00"}, RV_E_INVALID, "25", "--at:1:12"},
    {{.at = "2026-03-29T02:30", .zone = "Europe/Berlin"}, RV_E_INVALID, "", "--at:1:"},
};

START_TEST(what_is_wrong_is_said_with_its_place)
{
    struct rv_app_times t;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_app_times_open(&wrong[_i].when, at("2026-03-01T09:00:00Z"), &t, &err),
                     wrong[_i].code == RV_E_STATE ? 0 : wrong[_i].code);
    if (wrong[_i].code == RV_E_STATE) { /* not yet */
        rv_app_times_fini(&t);
        ck_assert_int_eq(rv_app_times_open(&wrong[_i].when, at("2026-05-04T09:00:00Z"), &t, &err), RV_E_STATE);
    }
    char *text = rv_kit_err_take(err);
    ck_assert_msg(strstr(text, wrong[_i].text) && strstr(text, wrong[_i].place), "%s", text);
    free(text);
}
END_TEST

START_TEST(a_time_is_next_until_it_has_come)
{
    const struct rv_app_when when = {.at = "2026-05-04T11:00", .zone = "Europe/Berlin"};
    struct rv_app_times t;
    int64_t us = -1;

    ck_assert_int_eq(rv_app_times_open(&when, at("2026-05-04T08:59:59Z"), &t, NULL), 0);
    ck_assert_int_eq(rv_app_times_next(&t, at("2026-05-04T08:59:59Z"), &us, NULL), 0);
    ck_assert_int_eq(us, at("2026-05-04T09:00:00Z"));
    ck_assert_int_eq(rv_app_times_next(&t, us, &us, NULL), 0);
    ck_assert_int_eq(us, 0);
    rv_app_times_fini(&t);
}
END_TEST

/* --- changes --- */

/* A schedule of minutes that fired once and owes a firing of an hour ago. */
static rv_store *with_owed(int64_t *owed_us)
{
    const int64_t created_us = rv_app_now_us() - 7200 * INT64_C(1000000);
    const struct rv_schedule_row row = {.id = "sched_a",
                                        .user = "u",
                                        .name = "a",
                                        .expr = "* * * * *",
                                        .zone = "UTC",
                                        .type = "news",
                                        .max_retries = RV_UNSET,
                                        .created_us = created_us,
                                        .next_us = created_us + 1};
    const struct rv_new_task task = {.id = "t", .type = "news", .max_retries = RV_UNSET, .now_us = created_us + 1};
    const struct rv_fire f = {.id = row.id,
                              .expected_us = row.next_us,
                              .next_us = created_us + 3600 * INT64_C(1000000),
                              .now = {.planned_us = row.next_us, .since_us = row.next_us, .at_us = row.next_us},
                              .task = &task};
    rv_store *s = NULL;
    bool is_mine = false;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &s, NULL), 0);
    ck_assert_int_eq(rv_store_add_schedule(s, &row, NULL), 0);
    ck_assert_int_eq(rv_store_fire_schedule(s, &f, &is_mine, NULL), 0);
    ck_assert(is_mine);
    *owed_us = f.next_us;
    return s;
}

static int count_firing(void *self, const struct rv_firing *f, rv_err **err)
{
    (void)f;
    (void)err;
    ++*(int64_t *)self;
    return 0;
}

static const struct {
    struct rv_app_when when;
    bool owes;
} changes[] = {{{.cron = NULL}, true},
               {{.cron = "* * * * *", .zone = "UTC"}, true}, /* what it says already */
               {{.cron = "*/5 * * * *"}, false},
               {{.zone = "Europe/Berlin"}, false},
               {{.at = "2100-01-01"}, false}};

START_TEST(what_is_owed_stays_unless_the_times_change)
{
    const struct rv_store_scope scope = {NULL, "u"};
    const int64_t priority = -1;
    struct rv_schedule_row row;
    int64_t owed_us, n = 0;
    rv_store *s = with_owed(&owed_us);
    rv_err *err = NULL;

    int rc = rv_app_change_schedule(s, &scope, "a", &changes[_i].when, &priority, &err);
    ck_assert_msg(rc == 0, "%s", rv_kit_err_take(err));
    ck_assert_int_eq(rv_store_get_schedule(s, &scope, "a", &row, NULL), 0);
    ck_assert_int_eq(row.next_us == owed_us, changes[_i].owes);
    ck_assert(changes[_i].owes || row.next_us > row.updated_us);
    ck_assert_int_eq(row.priority, -1);
    ck_assert(row.n_fired == 1 && row.last_us > 0);
    ck_assert_str_eq(row.user, "u");
    rv_schedule_row_fini(&row);
    ck_assert_int_eq(rv_store_list_firings(s, &scope, &(const struct rv_firing_filter){.word = "a", .limit = 0},
                                           count_firing, &n, NULL),
                     0);
    ck_assert_int_eq(n, 1);
    rv_store_close(s);
}
END_TEST

TCase *plan_case(void)
{
    TCase *tc = tcase_create("plan");

    tcase_add_loop_test(tc, the_last_missed_time_is_fired_once_unless_it_is_a_day_late, 0, RV_COUNT(plans));
    tcase_add_loop_test(tc, what_is_wrong_is_said_with_its_place, 0, RV_COUNT(wrong));
    tcase_add_test(tc, a_time_is_next_until_it_has_come);
    tcase_add_loop_test(tc, what_is_owed_stays_unless_the_times_change, 0, RV_COUNT(changes));
    return tc;
}

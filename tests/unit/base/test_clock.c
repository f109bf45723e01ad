#include "coreengine/base/base.h"
#include "tests/unit/base/suites.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static time_t stepped_s, slept_s; /* of the system's clocks, in the process of one test */

/* In place of the C library's: the time is set, or the machine sleeps, in no time. */
int clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, id, t);

    if (rc == 0 && id == CLOCK_REALTIME)
        t->tv_sec += stepped_s + slept_s;
    if (rc == 0 && id == CLOCK_BOOTTIME)
        t->tv_sec += slept_s;
    return rc;
}

START_TEST(the_system_clock_tells_wall_time_and_never_goes_back)
{
    struct rv_clock clock = rv_clock_system();
    const int64_t from_s = time(NULL), before_s = clock.now_us(clock.self) / 1000000, to_s = time(NULL);
    int64_t before = clock.now_us(clock.self);
    int i;

    ck_assert(from_s - 1 <= before_s && before_s <= to_s + 1); /* a second: time() reads a coarser clock */
    for (i = 0; i < 10000; i++) {
        int64_t now = clock.now_us(clock.self);
        ck_assert_int_ge(now, before);
        before = now;
    }
}
END_TEST

static const struct {
    const char *what;
    time_t slept_s, stepped_s, ahead_s;
} steps[] = {
    {"nothing", 0, 0, 0},
    {"the machine slept", 3600, 0, 3600},
    {"the time is set forward, a second ago", 1, 3600, 3601},
    {"it slept, and the time is set back", 3600, -1800, 3600},
    {"the time is set back", 0, -3600, 0},
};

static bool follows(size_t i)
{
    struct rv_clock clock = rv_clock_system();
    int64_t before_us = clock.now_us(clock.self);

    slept_s = steps[i].slept_s;
    stepped_s = steps[i].stepped_s;
    int64_t us = clock.now_us(clock.self) - before_us - steps[i].ahead_s * RV_US_PER_S;
    stepped_s -= 1800; /* what it has followed is kept */
    int64_t later_us = clock.now_us(clock.self) - before_us - steps[i].ahead_s * RV_US_PER_S;
    return us >= 0 && us < RV_US_PER_MIN && later_us >= us && later_us < RV_US_PER_MIN;
}

/* In a process of its own: the clock of this one would stay ahead. */
START_TEST(the_system_clock_follows_sleeps_and_steps_forward)
{
    int status = -1;
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(follows((size_t)_i) ? 0 : 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0, "%s", steps[_i].what);
}
END_TEST

START_TEST(a_seed_fixes_the_numbers)
{
    struct rv_rand_state a_state, b_state, c_state;
    struct rv_rand a = rv_rand_seeded(&a_state, 1), b = rv_rand_seeded(&b_state, 1), c = rv_rand_seeded(&c_state, 2);
    uint64_t first = rv_rand_u64(a);
    unsigned char bytes[20];

    ck_assert_uint_eq(first, rv_rand_u64(b));
    ck_assert_uint_ne(first, rv_rand_u64(c));
    ck_assert_uint_eq(first, UINT64_C(0xb3f2af6d0fc710c5)); /* recorded runs depend on the sequence */
    a.fill(a.self, bytes, sizeof bytes);
    ck_assert_uint_ne(rv_rand_u64(a), 0);
}
END_TEST

START_TEST(below_is_uniform_and_in_range)
{
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 42);
    int counts[6] = {0}, i;

    for (i = 0; i < 60000; i++)
        counts[rv_rand_below(r, 6)]++;
    for (i = 0; i < 6; i++)
        ck_assert(counts[i] > 9500 && counts[i] < 10500);
    ck_assert_uint_eq(rv_rand_below(r, 1), 0);
}
END_TEST

START_TEST(ids_are_prefix_and_sixteen_digits)
{
    struct rv_rand_state state;
    char id[RV_ID_MAX], other[RV_ID_MAX];

    rv_id_make(rv_rand_seeded(&state, 7), "env_", id);
    ck_assert_uint_eq(strlen(id), 20);
    ck_assert_int_eq(strncmp(id, "env_", 4), 0);
    ck_assert_uint_eq(strspn(id + 4, "0123456789abcdef"), 16);
    rv_id_make(rv_rand_system(), "12345678", id);
    rv_id_make(rv_rand_system(), "12345678", other);
    ck_assert_uint_eq(strlen(id), 24);
    ck_assert_str_ne(id, other);
}
END_TEST

static const struct {
    int64_t us;
    const char *text;
} times[] = {
    {0, "1970-01-01T00:00:00.000000Z"},
    {-1, "1969-12-31T23:59:59.999999Z"},
    {INT64_C(951782400000000), "2000-02-29T00:00:00.000000Z"},
    {INT64_C(1795295100123456), "2026-11-21T21:05:00.123456Z"},
    {INT64_C(4102444799999999), "2099-12-31T23:59:59.999999Z"},
    {INT64_C(-62135596800000000), "0001-01-01T00:00:00.000000Z"},
    {INT64_C(253402300799999999), "9999-12-31T23:59:59.999999Z"},
};

START_TEST(times_are_written_and_read_back)
{
    char text[RV_TIME_MAX];
    int64_t us = 1;

    rv_time_format(times[_i].us, text);
    ck_assert_str_eq(text, times[_i].text);
    ck_assert_int_eq(rv_time_parse(rv_str_of(text), &us, NULL), 0);
    ck_assert_int_eq(us, times[_i].us);
}
END_TEST

START_TEST(years_out_of_range_are_clamped)
{
    char text[RV_TIME_MAX];

    rv_time_format(INT64_MIN, text);
    ck_assert_str_eq(text, "0001-01-01T00:00:00.000000Z");
    rv_time_format(INT64_MAX, text);
    ck_assert_str_eq(text, "9999-12-31T23:59:59.999999Z");
}
END_TEST

static const struct {
    const char *text;
    int rc;
    int64_t us;
} readings[] = {
    {"1970-01-01T00:00:01Z", 0, 1000000},
    {"1970-01-01t00:00:01z", 0, 1000000},
    {"1970-01-01 01:00:01+01:00", 0, 1000000},
    {"1969-12-31T18:30:01-05:30", 0, 1000000},
    {"1970-01-01T00:00:00.5Z", 0, 500000},
    {"1970-01-01T00:00:00.123456789Z", 0, 123456},
    {"1972-06-30T23:59:60Z", 0, INT64_C(78796800000000)},
    {"1972-06-30T19:59:60.5-04:00", 0, INT64_C(78796800500000)},
    {"1970-01-01T00:00:60Z", RV_E_PARSE, 0}, /* leap seconds are at the end of a day of UTC */
    {"1972-06-30T23:59:60+01:00", RV_E_PARSE, 0},
    {"1970-01-01T00:00:00.Z", RV_E_PARSE, 0},
    {"1970-01-01T00:00:00.1234567890Z", RV_E_PARSE, 0},
    {"1970-01-01T00:00:00", RV_E_PARSE, 0},
    {"1970-01-01T00:00Z", RV_E_PARSE, 0},
    {"1970-01-01", RV_E_PARSE, 0},
    {"1970-02-29T00:00:00Z", RV_E_PARSE, 0},
    {"1900-02-29T00:00:00Z", RV_E_PARSE, 0},
    {"2000-02-30T00:00:00Z", RV_E_PARSE, 0},
    {"1970-13-01T00:00:00Z", RV_E_PARSE, 0},
    {"1970-00-01T00:00:00Z", RV_E_PARSE, 0},
    {"1970-01-00T00:00:00Z", RV_E_PARSE, 0},
    {"0000-01-01T00:00:00Z", RV_E_PARSE, 0},
    {"0001-01-01T00:00:00Z", 0, INT64_C(-62135596800000000)},
    {"0001-01-01T00:00:00+00:01", RV_E_PARSE, 0},
    {"9999-12-31T23:59:59.999999Z", 0, INT64_C(253402300799999999)},
    {"9999-12-31T23:59:59-00:01", RV_E_PARSE, 0},
    {"9999-12-31T23:59:60Z", RV_E_PARSE, 0},
    {"1970-01-01T24:00:00Z", RV_E_PARSE, 0},
    {"1970-01-01T00:60:00Z", RV_E_PARSE, 0},
    {"1970-01-01T00:00:61Z", RV_E_PARSE, 0},
    {"1970-01-01T00:00:00+24:00", RV_E_PARSE, 0},
    {"1970-01-01T00:00:00+0100", RV_E_PARSE, 0},
    {"1970-01-01T00:00:00Z ", RV_E_PARSE, 0},
    {"+970-01-01T00:00:00Z", RV_E_PARSE, 0},
    {"", RV_E_PARSE, 0},
};

START_TEST(times_are_read_strictly)
{
    int64_t us = 0, read_us = 4711;

    ck_assert_int_eq(rv_time_parse(rv_str_of(readings[_i].text), &us, NULL), readings[_i].rc);
    ck_assert(rv_time_read(rv_str_of(readings[_i].text), &read_us) == (readings[_i].rc == 0));
    ck_assert_int_eq(read_us, readings[_i].rc == 0 ? us : 4711);
    ck_assert_int_eq(us, readings[_i].us);
}
END_TEST

/* NULL: it is not a UUID. */
static const struct {
    const char *text, *lower;
} uuids[] = {
    {"01234567-89ab-4cde-8f01-23456789abcd", "01234567-89ab-4cde-8f01-23456789abcd"},
    {"01234567-89AB-4CDE-8F01-23456789ABCD", "01234567-89ab-4cde-8f01-23456789abcd"},
    {"01234567-89ab-4cde-8f01-23456789abc", NULL},
    {"01234567-89ab-4cde-8f01-23456789abcd0", NULL},
    {"0123456789ab-4cde-8f01-23456789abcd-", NULL},
    {"01234567-89ab-4cde-8f01-23456789abcg", NULL},
    {"", NULL},
};

START_TEST(uuids_are_read_in_either_case_and_nothing_else_is)
{
    char out[RV_UUID_MAX] = "as before";

    ck_assert(rv_uuid_read(rv_str_of(uuids[_i].text), out) == (uuids[_i].lower != NULL));
    ck_assert(rv_uuid_read(rv_str_of(uuids[_i].text), NULL) == (uuids[_i].lower != NULL));
    ck_assert_str_eq(out, uuids[_i].lower ? uuids[_i].lower : "as before");
}
END_TEST

START_TEST(a_uuid_is_made_of_random_bytes_with_version_and_variant)
{
    struct rv_rand_state state;
    char first[RV_UUID_MAX], second[RV_UUID_MAX];

    for (uint64_t seed = 0; seed < 20; seed++) {
        struct rv_rand r = rv_rand_seeded(&state, seed);
        rv_uuid_make(r, first);
        rv_uuid_make(r, second);
        ck_assert(rv_uuid_read(rv_str_of(first), NULL));
        ck_assert_str_ne(first, second);
        ck_assert_int_eq(first[14], '4');
        ck_assert_ptr_nonnull(strchr("89ab", first[19]));
    }
}
END_TEST

static const struct {
    const char *text;
    int64_t us; /* -1: it is not a day */
} days[] = {
    {"1970-01-02", RV_US_PER_DAY},
    {"2024-02-29", 1709164800 * RV_US_PER_S},
    {"2026-02-29", -1},
    {"2026-13-01", -1},
    {"2026-02-2", -1},
    {"2026-02-24 ", -1},
    {"2026-02-24T00:00:00Z", -1},
    {"2026/02/24", -1},
    {"", -1},
};

START_TEST(days_are_read_strictly)
{
    int64_t us = -1;

    ck_assert(rv_day_parse(rv_str_of(days[_i].text), &us) == (days[_i].us != -1));
    ck_assert_int_eq(us, days[_i].us);
}
END_TEST

TCase *clock_case(void)
{
    TCase *tc = tcase_create("clock");

    tcase_add_test(tc, the_system_clock_tells_wall_time_and_never_goes_back);
    tcase_add_loop_test(tc, the_system_clock_follows_sleeps_and_steps_forward, 0, RV_COUNT(steps));
    tcase_add_test(tc, a_seed_fixes_the_numbers);
    tcase_add_test(tc, below_is_uniform_and_in_range);
    tcase_add_test(tc, ids_are_prefix_and_sixteen_digits);
    tcase_add_loop_test(tc, times_are_written_and_read_back, 0, RV_COUNT(times));
    tcase_add_test(tc, years_out_of_range_are_clamped);
    tcase_add_loop_test(tc, times_are_read_strictly, 0, RV_COUNT(readings));
    tcase_add_loop_test(tc, days_are_read_strictly, 0, RV_COUNT(days));
    tcase_add_loop_test(tc, uuids_are_read_in_either_case_and_nothing_else_is, 0, RV_COUNT(uuids));
    tcase_add_test(tc, a_uuid_is_made_of_random_bytes_with_version_and_variant);
    return tc;
}

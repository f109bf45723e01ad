/* Every zone of the system, compared with the C library: the offset at instants from 1906 to 2191, each third of them
 * close to a change; and local times, compared with those offsets.
 *
 * The C library takes its zone from the environment, for the whole process, so a child asks it. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "coreengine/calendar/calendar_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/calendar/suites.h"

#define DIR_OF_ZONES "/usr/share/zoneinfo"
#define FIRST_S      (INT64_C(-64) * 365 * 86400) /* about 1906 */
#define LAST_S       (INT64_C(221) * 36525 * 864) /* about 2191 */
#define MAX_NAMES    2000
#define MIN_NAMES    300

static char *names[MAX_NAMES];
static size_t n_names;

/* The files below a folder; posix/ and right/ have them all once more. */
static void find_names(const char *below)
{
    char path[1024], name[512];
    struct dirent *e;
    struct stat st;
    DIR *d;

    (void)snprintf(path, sizeof path, "%s/%s", DIR_OF_ZONES, below);
    d = opendir(path);
    if (!d)
        rv_kit_die("no %s; the package is tzdata", path);
    while ((e = readdir(d))) {
        if (strchr(e->d_name, '.') || strcmp(e->d_name, "posix") == 0 || strcmp(e->d_name, "right") == 0)
            continue;
        (void)snprintf(name, sizeof name, "%s%s%s", below, *below ? "/" : "", e->d_name);
        (void)snprintf(path, sizeof path, "%s/%s", DIR_OF_ZONES, name);
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            find_names(name);
        else if (stat(path, &st) == 0 && strcmp(name, "leapseconds") != 0 && n_names < MAX_NAMES)
            names[n_names++] = strdup(name);
    }
    closedir(d);
}

/* The i-th sample: anywhere, or within two seconds of a change. */
static int64_t sample_s(const rv_zone *zone, struct rv_rand r, int i)
{
    int64_t t_s = FIRST_S + (int64_t)rv_rand_below(r, (uint64_t)(LAST_S - FIRST_S));

    if (i % 3 == 0) {
        struct zone_span span = calendar_zone_span_at(zone, t_s);
        if (span.from_s >= FIRST_S)
            t_s = span.from_s + (int64_t)rv_rand_below(r, 5) - 2;
    }
    return t_s;
}

/* In the child. The differences, printed. */
static int compare_offsets(const char *name, int n_samples)
{
    const rv_zone *zone = zone_named(name);
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 9);
    int n_bad = 0;

    (void)setenv("TZ", name, 1);
    tzset();
    for (int i = 0; i < n_samples; i++) {
        time_t t = (time_t)sample_s(zone, r, i);
        struct tm tm;
        if (!localtime_r(&t, &tm) || tm.tm_gmtoff != rv_zone_offset_s(zone, (int64_t)t * 1000000)) {
            if (n_bad++ < 3)
                (void)fprintf(stderr, "%s: at %lld the C library has %ld, we have %d\n", name, (long long)t,
                              tm.tm_gmtoff, rv_zone_offset_s(zone, (int64_t)t * 1000000));
        }
    }
    return n_bad;
}

START_TEST(offsets_are_those_of_the_c_library)
{
    int n_samples = rv_kit_sample(3000, 30000), status;
    pid_t child;

    find_names("");
    ck_assert_uint_ge(n_names, MIN_NAMES);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        int n_bad = 0;
        for (size_t i = 0; i < n_names; i++)
            n_bad += compare_offsets(names[i], n_samples);
        _exit(n_bad ? 1 : 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    for (size_t i = 0; i < n_names; i++)
        free(names[i]);
    n_names = 0;
}
END_TEST

/* The instants that show a local time, by trying every offset that the zone has around it. */
static int instants_by_trying(const rv_zone *zone, int64_t local_s, int64_t out_s[8])
{
    int n = 0;

    for (int64_t t_s = local_s - ZONE_MAX_OFFSET_S; t_s < local_s - ZONE_MIN_OFFSET_S; t_s += 600) {
        int64_t at_s = local_s - rv_zone_offset_s(zone, t_s * 1000000);
        bool is_new = at_s + rv_zone_offset_s(zone, at_s * 1000000) == local_s;
        for (int i = 0; i < n; i++)
            is_new = is_new && out_s[i] != at_s;
        if (is_new && n < 8)
            out_s[n++] = at_s;
    }
    return n;
}

static void check_local(const rv_zone *zone, int64_t local_s)
{
    int64_t tried[8], us[2] = {0, 0};
    int n = rv_zone_from_local(zone, local_s * 1000000, us), n_tried = instants_by_trying(zone, local_s, tried);

    ck_assert_msg(n == (n_tried > 2 ? 2 : n_tried), "%s, local %lld: %d and %d", rv_zone_name(zone), (long long)local_s,
                  n, n_tried);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(us[i] / 1000000 + rv_zone_offset_s(zone, us[i]), local_s);
    ck_assert(n < 2 || us[0] < us[1]);
    if (n == 0) {
        ck_assert_int_lt(us[0] / 1000000 - 1 + rv_zone_offset_s(zone, us[0] - 1), local_s);
        ck_assert_int_gt(us[0] / 1000000 + rv_zone_offset_s(zone, us[0]), local_s);
    }
}

START_TEST(local_times_fit_the_offsets)
{
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 10);
    int n_samples = rv_kit_sample(15, 300);

    find_names("");
    for (size_t i = 0; i < n_names; i++) {
        const rv_zone *zone = zone_named(names[i]);
        for (int k = 0; k < n_samples; k++) {
            int64_t t_s = sample_s(zone, r, k);
            check_local(zone, t_s + rv_zone_offset_s(zone, t_s * 1000000) + (int64_t)rv_rand_below(r, 7200) - 3600);
        }
        free(names[i]);
    }
    n_names = 0;
}
END_TEST

TCase *system_case(void)
{
    TCase *tc = tcase_create("system");

    tcase_add_test(tc, offsets_are_those_of_the_c_library);
    tcase_add_test(tc, local_times_fit_the_offsets);
    return tc;
}

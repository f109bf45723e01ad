/* Months of schedules in seconds: processes look at simulated times, miss some, stand still and look at once, and what
 * was queued is compared with what a list of all matches says. Threads stand for processes: each has its own handle. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "tests/integration/schedules/suites.h"
#include "tests/kit/kit.h"
#include "tests/kit/postgres.h"
#include "tests/kit/suites.h"

#define MINUTE      INT64_C(60000000)
#define DAY         (24 * 60 * MINUTE)
#define T0          INT64_C(1774569600000000) /* 2026-03-27, two days before the clocks of Berlin are set forward */
#define MAX_LOOKS   1000
#define N_THREADS   4
#define MAX_PLANNED 200000 /* of 2,000 days */

static const struct {
    const char *cron, *zone, *tenant;
} given[] = {
    {"*/20 * * * *", "UTC", "north"},
    {"30 2 * * *", "Europe/Berlin", "north"},
    {"*/30 2 * * *", "Europe/Berlin", "south"},
    {"0 9 * * MON-FRI", "America/New_York", "south"},
    {"0 */5 * * *", "Australia/Lord_Howe", "north"},
    {"15 0 1 * *", "Asia/Kathmandu", "south"},
};
#define N_GIVEN (int)RV_COUNT(given)

static const char *const places[] = {"sqlite", "postgres"};

struct world {
    char *dir, *url;
    rv_store *stores[N_THREADS];
    rv_zones *zones[N_THREADS];
    struct rv_app app;
    rv_log *log;
    struct rv_rand_state state;
    struct rv_rand rand;
};

static void must(int rc, rv_err *err, const char *what)
{
    if (rc < 0)
        rv_kit_die("%s: %s", what, err ? rv_err_text(err) : "failed");
}

static void set_up(struct world *w, int place, uint64_t seed)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    rv_err *err = NULL;

    *w = (struct world){.dir = rv_kit_tmpdir()};
    w->rand = rv_rand_seeded(&w->state, seed);
    w->url = place ? rv_kit_postgres_url(rv_kit_postgres()) : rv_kit_path(w->dir, "store.db");
    for (int i = 0; i < N_THREADS; i++) {
        must(rv_store_open(w->url, &opts, &w->stores[i], &err), err, "open");
        w->zones[i] = rv_zones_new(NULL);
    }
}

static void tear_down(struct world *w)
{
    rv_err *err = NULL;

    must(rv_store_check(w->stores[0], &err), err, "check");
    for (int i = 0; i < N_THREADS; i++) {
        rv_store_close(w->stores[i]);
        rv_zones_free(w->zones[i]);
    }
    rv_kit_tmpdir_remove(w->dir);
    free(w->url);
}

/* --- the schedules, and all their instants --- */

struct expected {
    int64_t *us; /* matches after T0 */
    int n, at;
    int64_t *fired; /* those that should have been fired */
    int n_fired, n_skipped;
};

static void add(struct world *w, int i, struct expected *e, int64_t end_us)
{
    char id[40], name[40];
    struct rv_schedule_row row = {.id = id,
                                  .tenant = given[i].tenant,
                                  .name = name,
                                  .expr = given[i].cron,
                                  .zone = given[i].zone,
                                  .type = "news",
                                  .payload = RV_STR_LIT("{\"a\": 1}"),
                                  .max_retries = RV_UNSET,
                                  .created_us = T0};
    struct rv_app_times t;
    rv_err *err = NULL;
    int64_t us = T0;

    snprintf(id, sizeof id, "sched_%d", i);
    snprintf(name, sizeof name, "s%d", i);
    *e = (struct expected){.us = calloc(MAX_PLANNED, sizeof *e->us), .fired = calloc(MAX_PLANNED, sizeof *e->us)};
    must(rv_app_times_build(&row, NULL, &t, &err), err, "times");
    while (us <= end_us + 2 * DAY) {
        must(rv_app_times_next(&t, us, &us, &err), err, "next");
        e->us[e->n++] = us;
        if (e->n == MAX_PLANNED)
            rv_kit_die("too many matches");
    }
    rv_app_times_fini(&t);
    row.next_us = e->us[0];
    must(rv_store_add_schedule(w->stores[0], &row, &err), err, "add");
}

/* What a look at that time should do. */
static void expect(struct expected *e, int64_t now_us)
{
    int last = -1;

    while (e->us[e->at] <= now_us)
        last = e->at++;
    if (last < 0)
        return;
    if (now_us - e->us[last] < DAY)
        e->fired[e->n_fired++] = e->us[last];
    else
        e->n_skipped++;
}

/* --- what was queued --- */

struct queued {
    const struct expected *all; /* of all schedules */
    int seen[N_GIVEN];
    const char *tenant;
};

static int see(void *self, const struct rv_task_row *row, rv_err **err)
{
    struct queued *q = self;
    char planned[RV_TIME_MAX], key[100];

    (void)err;
    ck_assert_str_eq(row->type, "news");
    ck_assert_ptr_nonnull(row->key);
    int i = row->key[strlen("sched_")] - '0';
    ck_assert_str_eq(given[i].tenant, q->tenant);
    ck_assert_int_lt(q->seen[i], q->all[i].n_fired);
    rv_time_format(q->all[i].fired[q->seen[i]++], planned); /* in the order in which they were queued */
    snprintf(key, sizeof key, "sched_%d/%s", i, planned);
    ck_assert_str_eq(row->key, key);
    ck_assert_ptr_nonnull(strstr(row->payload.ptr, planned));
    return 0;
}

static void compare(struct world *w, const struct expected *all)
{
    static const char *const tenants[] = {"north", "south"};
    const struct rv_task_filter oldest = {.oldest_first = true};
    struct queued q = {.all = all};
    rv_err *err = NULL;

    for (size_t t = 0; t < RV_COUNT(tenants); t++) {
        const struct rv_store_scope scope = {tenants[t], NULL};
        q.tenant = tenants[t];
        must(rv_store_list_tasks(w->stores[0], &scope, &oldest, see, &q, &err), err, "list");
    }
    for (int i = 0; i < N_GIVEN; i++) {
        const struct rv_store_scope scope = {given[i].tenant, NULL};
        struct rv_schedule_row row;
        char name[40];
        ck_assert_int_eq(q.seen[i], all[i].n_fired);
        snprintf(name, sizeof name, "s%d", i);
        must(rv_store_get_schedule(w->stores[0], &scope, name, &row, &err), err, "get");
        ck_assert_int_eq(row.n_fired, all[i].n_fired);
        ck_assert_int_eq(row.n_skipped, all[i].n_skipped);
        ck_assert_int_eq(row.next_us, all[i].us[all[i].at]);
        ck_assert_ptr_null(row.error);
        rv_schedule_row_fini(&row);
    }
}

/* --- threads that look at the same time --- */

struct looker {
    struct world *w;
    int i;
    int64_t now_us;
    struct rv_app_fired fired;
};

static void *look(void *self)
{
    struct looker *l = self;
    rv_err *err = NULL;

    must(rv_app_fire_due(&l->w->app, l->w->stores[l->i],
                         &(const struct rv_firing_round){.zones = l->w->zones[l->i], .now_us = l->now_us, .max = 99},
                         &l->fired, &err),
         err, "fire");
    return NULL;
}

static int64_t look_together(struct world *w, int n, int64_t now_us)
{
    struct looker lookers[N_THREADS];
    pthread_t threads[N_THREADS];
    int64_t n_done = 0;

    for (int i = 0; i < n; i++) {
        lookers[i] = (struct looker){.w = w, .i = i, .now_us = now_us};
        if (pthread_create(&threads[i], NULL, look, &lookers[i]) != 0)
            rv_kit_die("no thread");
    }
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(lookers[i].fired.n_failed, 0);
        n_done += lookers[i].fired.n_fired + lookers[i].fired.n_skipped;
    }
    return n_done;
}

/* From a look to the next: mostly minutes, sometimes hours, seldom days. */
static int64_t pause_us(struct world *w)
{
    uint64_t kind = rv_rand_below(w->rand, 200);

    return (int64_t)rv_rand_below(w->rand, (uint64_t)(kind == 0 ? 5 * DAY : kind < 10 ? DAY / 2 : 40 * MINUTE)) + 1;
}

static void live(int place, uint64_t seed, int days)
{
    const int64_t end_us = T0 + days * DAY;
    struct expected all[N_GIVEN];
    struct world w;
    int64_t n_fired = 0;

    set_up(&w, place, seed);
    for (int i = 0; i < N_GIVEN; i++)
        add(&w, i, &all[i], end_us);
    for (int64_t now_us = T0; now_us < end_us; now_us += pause_us(&w)) {
        int64_t before = 0, after = 0;
        for (int i = 0; i < N_GIVEN; i++) {
            before += all[i].n_fired + all[i].n_skipped;
            expect(&all[i], now_us);
            after += all[i].n_fired + all[i].n_skipped;
        }
        int64_t n = look_together(&w, 1 + (int)rv_rand_below(w.rand, N_THREADS), now_us);
        for (int again = 0; n < after - before && again < MAX_LOOKS; again++)
            n += look_together(&w, 1, now_us); /* the transaction of one who came late may still lock the row */
        ck_assert_int_eq(n, after - before);
    }
    compare(&w, all);
    for (int i = 0; i < N_GIVEN; i++) {
        n_fired += all[i].n_fired;
        free(all[i].us);
        free(all[i].fired);
    }
    printf("%s: %d days, %lld firings\n", places[place], days, (long long)n_fired);
    ck_assert_int_gt(n_fired, 20 * days);
    tear_down(&w);
}

START_TEST(each_time_is_fired_once_by_one_of_the_processes)
{
    live(_i, 1, _i ? 30 : rv_kit_sample(90, 2000));
}
END_TEST

/* --- one tenant with very many --- */

START_TEST(a_tenant_with_thousands_of_schedules_does_not_delay_another)
{
    const int n = rv_kit_sample(3000, 20000);
    struct rv_app_fired fired;
    struct world w;
    rv_err *err = NULL;
    char id[40], name[40];
    struct rv_schedule_row row = {.id = id,
                                  .name = name,
                                  .expr = "* * * * *",
                                  .zone = "UTC",
                                  .type = "news",
                                  .max_retries = RV_UNSET,
                                  .created_us = T0,
                                  .next_us = T0 + 1};

    set_up(&w, _i, 1);
    must(rv_store_begin(w.stores[0], &err), err, "begin");
    for (int i = 0; i < n; i++) {
        row.tenant = i == n - 1 ? "south" : "north";
        row.next_us = T0 + i + 1; /* that of the other tenant is the last to be due */
        snprintf(id, sizeof id, "sched_%d", i);
        snprintf(name, sizeof name, "s%d", i);
        must(rv_store_add_schedule(w.stores[0], &row, &err), err, "add");
    }
    must(rv_store_commit(w.stores[0], &err), err, "commit");
    must(rv_app_fire_due(&w.app, w.stores[0],
                         &(const struct rv_firing_round){.zones = w.zones[0], .now_us = T0 + n, .max = 8}, &fired,
                         &err),
         err, "fire");
    ck_assert_int_eq(fired.n_fired, 8);
    snprintf(name, sizeof name, "s%d", n - 1);
    must(rv_store_get_schedule(w.stores[0], &(struct rv_store_scope){"south", NULL}, name, &row, &err), err, "get");
    ck_assert_int_eq(row.n_fired, 1);
    rv_schedule_row_fini(&row);
    tear_down(&w);
}
END_TEST

/* --- what cannot be fired --- */

START_TEST(a_damaged_schedule_is_put_off_and_says_why)
{
    const struct rv_store_scope scope = {NULL, NULL};
    struct rv_schedule_row row = {.id = "sched_a",
                                  .name = "a",
                                  .expr = "* * * * *",
                                  .zone = "Mars/Olympus",
                                  .type = "news",
                                  .max_retries = RV_UNSET,
                                  .created_us = T0,
                                  .next_us = T0 + 1},
                           got;
    struct rv_app_fired fired;
    struct world w;
    rv_err *err = NULL;

    set_up(&w, _i, 1);
    must(rv_store_add_schedule(w.stores[0], &row, &err), err, "add");
    row.id = "sched_b";
    row.name = "b";
    row.zone = "UTC";
    must(rv_store_add_schedule(w.stores[0], &row, &err), err, "add");
    must(rv_app_fire_due(&w.app, w.stores[0],
                         &(const struct rv_firing_round){.zones = w.zones[0], .now_us = T0 + 2, .max = 8}, &fired,
                         &err),
         err, "fire");
    ck_assert_int_eq(fired.n_fired, 1);
    ck_assert_int_eq(fired.n_failed, 1);
    must(rv_store_get_schedule(w.stores[0], &scope, "a", &got, &err), err, "get");
    ck_assert_ptr_nonnull(strstr(got.error, "Mars/Olympus"));
    ck_assert_int_eq(got.next_us, T0 + 1);
    ck_assert_int_ge(got.look_us, T0 + 2 + RV_SCHEDULE_RETRY_US);
    rv_schedule_row_fini(&got);
    must(rv_app_fire_due(&w.app, w.stores[0],
                         &(const struct rv_firing_round){.zones = w.zones[0], .now_us = T0 + 3, .max = 8}, &fired,
                         &err),
         err, "fire");
    ck_assert_int_eq(fired.n_fired + fired.n_failed + fired.n_lost, 0);
    tear_down(&w);
}
END_TEST

static Suite *clock_suite(void)
{
    Suite *suite = suite_create("schedules");
    TCase *tc = tcase_create("clock");

    tcase_add_loop_test(tc, each_time_is_fired_once_by_one_of_the_processes, 0, (int)RV_COUNT(places));
    tcase_add_loop_test(tc, a_tenant_with_thousands_of_schedules_does_not_delay_another, 0, (int)RV_COUNT(places));
    tcase_add_loop_test(tc, a_damaged_schedule_is_put_off_and_says_why, 0, (int)RV_COUNT(places));
    suite_add_tcase(suite, tc);
    return suite;
}

int main(void)
{
    static Suite *(*const suites[])(void) = {clock_suite, points_suite};

    rv_kit_postgres();
    return rv_kit_run_suites(suites, RV_COUNT(suites));
}

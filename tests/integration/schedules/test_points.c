/* A firing that fails at each point where it speaks with its store, or whose success is not told: the next look leaves
 * one run and one firing. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "tests/integration/schedules/suites.h"
#include "tests/kit/kit.h"
#include "tests/kit/postgres.h"

#define LATER (2 * RV_SCHEDULE_RETRY_US) /* when one that failed is looked at again */

static const struct rv_store_scope everyone = {NULL, NULL};

struct world {
    char *dir, *url, *pipeline, *script;
    struct rv_app app;
    rv_store *store;
    rv_zones *zones;
    int n_points, fail_at; /* at the n-th point from 1; 0: nowhere */
};

static void must(int rc, rv_err *err, const char *what)
{
    if (rc < 0)
        rv_kit_die("%s: %s", what, err ? rv_err_text(err) : "failed");
}

static int at(void *self, const char *point, rv_err **err)
{
    struct world *w = self;

    return ++w->n_points == w->fail_at ? RV_FAIL(err, RV_E_IO, "fault at %s", point) : 0;
}

static void set_up(struct world *w, int place)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    rv_err *err = NULL;

    *w = (struct world){.dir = rv_kit_tmpdir(), .app = {.capability = "", .keeps_log_level = true}};
    w->url = place ? rv_kit_postgres_url(rv_kit_postgres()) : rv_kit_path(w->dir, "store.db");
    w->pipeline = rv_kit_path(w->dir, "p.yaml");
    w->script = rv_kit_path(w->dir, "s.yaml");
    rv_kit_write(w->pipeline, "name: small\nagents:\n  - {name: a, output_key: a}\n");
    rv_kit_write(w->script, "stages:\n  a: [{output: {final_response: hi}}]\n");
    must(rv_store_open(w->url, &opts, &w->store, &err), err, "open");
    w->zones = rv_zones_new(NULL);
}

static void tear_down(struct world *w)
{
    rv_err *err = NULL;

    must(rv_store_check(w->store, &err), err, "check");
    rv_store_close(w->store);
    rv_zones_free(w->zones);
    rv_kit_tmpdir_remove(w->dir);
    free(w->url);
    free(w->pipeline);
    free(w->script);
}

/* Adds it; gives when it fires first. */
static int64_t add(struct world *w, const char *name)
{
    const struct rv_app_load_opts opts = {.script = w->script, .keeps = true};
    const struct rv_app_schedule s = {.name = name, .when = {.cron = "@yearly"}};
    struct rv_app_loaded loaded;
    struct rv_app_run run = {.app = &w->app, .loaded = &loaded, .mode = RV_UNSET, .store = w->store};
    struct rv_next_tasks next;
    char id[RV_ID_MAX];
    rv_err *err = NULL;

    must(rv_app_load(&w->app, w->pipeline, &opts, &loaded, &err), err, "load");
    json_object *state = rv_kit_json("{'raw_input': 'x'}");
    must(rv_app_schedule_runs(&run, state, &s, id, &err), err, "add");
    json_object_put(state);
    rv_app_run_fini(&run);
    rv_app_loaded_fini(&loaded);
    must(rv_store_next_tasks(w->store, NULL, 0, &next, &err), err, "next");
    return next.fires_us;
}

struct made {
    int n;
    char run[RV_STORE_MAX_ID + 1];
};

static int see(void *self, const struct rv_firing *f, rv_err **err)
{
    struct made *m = self;

    (void)err;
    ck_assert_ptr_nonnull(f->made);
    m->n++;
    memcpy(m->run, f->made, strlen(f->made) + 1);
    return 0;
}

/* One firing, its run, its task, and no other runs and tasks. */
static void look_after(struct world *w, const char *name, int64_t n_runs)
{
    struct rv_store_stats stats;
    struct made made = {.n = 0};
    struct rv_run_row row;
    rv_err *err = NULL;

    must(rv_store_list_firings(w->store, &everyone, &(const struct rv_firing_filter){.word = name, .limit = 0}, see,
                               &made, &err),
         err, "firings");
    ck_assert_int_eq(made.n, 1);
    must(rv_store_get_run(w->store, &everyone, made.run, &row, &err), err, "run");
    ck_assert_int_eq(row.status, RV_RUN_READY);
    rv_run_row_fini(&row);
    must(rv_store_read_stats(w->store, &stats, &err), err, "stats");
    ck_assert_int_eq(stats.runs, n_runs);
    ck_assert_int_eq(stats.tasks, n_runs);
}

START_TEST(a_firing_that_fails_anywhere_is_made_up_for_once)
{
    struct rv_app_fired fired;
    struct world w;
    char name[40];
    int n = 0, n_failed = 0;

    set_up(&w, _i);
    for (int k = 1;; k++) {
        rv_err *err = NULL;
        snprintf(name, sizeof name, "s%d", k);
        int64_t now_us = add(&w, name);
        w.n_points = 0;
        w.fail_at = k;
        rv_store_set_faults(w.store, (struct rv_store_faults){at, &w});
        int rc = rv_app_fire_due(&w.app, w.store,
                                 &(const struct rv_firing_round){.zones = w.zones, .now_us = now_us, .max = 9}, &fired,
                                 &err);
        rv_store_set_faults(w.store, (struct rv_store_faults){NULL, NULL});
        bool was_whole = w.n_points < k;
        n_failed += rc < 0 || fired.n_failed > 0;
        rv_err_free(err);
        err = NULL;
        must(rv_app_fire_due(&w.app, w.store,
                             &(const struct rv_firing_round){.zones = w.zones, .now_us = now_us + LATER, .max = 9},
                             &fired, &err),
             err, "fire again");
        look_after(&w, name, ++n);
        must(rv_store_delete_schedule(w.store, &everyone, name, &err), err, "delete");
        if (was_whole)
            break;
    }
    ck_assert_int_ge(n_failed, 10);
    ck_assert_int_eq(n_failed, n - 1);
    printf("%s: %d points of failure\n", _i ? "postgres" : "sqlite", n - 1);
    tear_down(&w);
}
END_TEST

Suite *points_suite(void)
{
    Suite *suite = suite_create("points");
    TCase *tc = tcase_create("points");

    tcase_add_loop_test(tc, a_firing_that_fails_anywhere_is_made_up_for_once, 0, 2);
    suite_add_tcase(suite, tc);
    return suite;
}

/* Each allocation of schedules fails once: adding one of a pipeline and one of tasks, firing both, changing one,
 * telling programs of them. No crash, no leak; the code is RV_E_NOMEM, or a firing that had no memory is put off. Each
 * firing that went well left one run or one task. */
#include <check.h>
#include <stdlib.h>

#include "coreengine/app/app.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static const char pipeline[] = "name: small\nagents:\n  - {name: a, output_key: a}\n";
static const char script[] = "stages:\n  a: [{output: {final_response: hi}}]\n";
static const struct rv_store_scope scope = {NULL, NULL};

/* Check's own assertions allocate, so what a scenario finds wrong is kept until the allocator is disarmed. */
static int broken_line;
#define must(holds)                                                                                                    \
    do {                                                                                                               \
        if (!(holds) && broken_line == 0)                                                                              \
            broken_line = __LINE__;                                                                                    \
    } while (0)

static int add_runs(const struct rv_app *app, rv_store *store, const char *pipeline_path, const char *script_path,
                    rv_err **err)
{
    const struct rv_app_load_opts opts = {.script = script_path, .keeps = true};
    const struct rv_app_schedule s = {.name = "runs", .when = {.cron = "*/5 * * * *", .zone = "Europe/Berlin"}};
    struct rv_app_loaded loaded;
    struct rv_app_run run = {.app = app, .loaded = &loaded, .mode = RV_UNSET, .store = store};
    char id[RV_ID_MAX];

    int rc = rv_app_load(app, pipeline_path, &opts, &loaded, err);
    if (rc < 0)
        return rc;
    json_object *state = json_object_new_object();
    rc = state ? rv_json_set_text(state, "raw_input", "x", err) : RV_FAIL(err, RV_E_NOMEM, "make a state");
    if (rc == 0)
        rc = rv_app_schedule_runs(&run, state, &s, id, err);
    json_object_put(state);
    rv_app_run_fini(&run);
    rv_app_loaded_fini(&loaded);
    return rc;
}

static int add_tasks(const struct rv_app *app, rv_store *store, rv_err **err)
{
    static const char *const labels[] = {"gpu"};
    const struct rv_app_schedule s = {
        .name = "tasks", .when = {.cron = "*/5 * * * *"}, .labels = labels, .n_labels = 1, .user = "u"};
    char id[RV_ID_MAX];

    return rv_app_schedule_tasks(
        app, store, &(struct rv_app_scheduled_task){"note", RV_STR_LIT("{\"a\": 1}"), RV_UNSET}, &s, id, err);
}

static int fire(const struct rv_app *app, rv_store *store, rv_err **err)
{
    rv_zones *zones = rv_zones_new(NULL);
    struct rv_app_fired fired = {0};
    struct rv_store_stats stats;
    struct rv_next_tasks next;

    int rc = zones ? rv_store_next_tasks(store, NULL, 0, &next, err) : RV_FAIL(err, RV_E_NOMEM, "zones");
    if (rc == 0)
        rc = rv_app_fire_due(app, store,
                             &(const struct rv_firing_round){.zones = zones, .now_us = next.fires_us, .max = 9}, &fired,
                             err);
    rv_zones_free(zones);
    if (rc == 0 && rv_store_read_stats(store, &stats, NULL) == 0)
        must(stats.tasks == fired.n_fired && stats.runs <= fired.n_fired);
    if (rc == 0 && fired.n_failed > 0)
        rc = RV_FAIL(err, RV_E_NOMEM, "it was put off");
    must(rc < 0 || fired.n_fired == 2);
    return rc;
}

static int tell(rv_store *store, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1 << 16);
    rv_jw w = rv_jw_on(&text);
    struct rv_schedule_row row = {0};
    struct rv_app_times times = {0};
    struct rv_app_schedule_view v = {.row = &row, .times = &times, .n_times = 2};

    int rc = rv_store_get_schedule(store, &scope, "runs", &row, err);
    if (rc == 0)
        rc = rv_app_times_build(&row, NULL, &times, err);
    if (rc == 0)
        rc = rv_app_build_firings(store, &scope, &row, 0, &v.firings, err);
    if (rc == 0)
        rc = rv_app_schedule_write(&v, &w, err);
    if (rc == 0)
        rc = rv_buf_check(&text, "schedule", err);
    json_object_put(v.firings);
    rv_app_times_fini(&times);
    rv_schedule_row_fini(&row);
    rv_buf_fini(&text);
    return rc;
}

static int live(const char *pipeline_path, const char *script_path)
{
    const struct rv_app app = {.capability = "", .keeps_log_level = true};
    rv_store *store = NULL;
    rv_err *err = NULL;

    int rc = rv_store_open("memory:", NULL, &store, &err);
    if (rc == 0)
        rc = add_runs(&app, store, pipeline_path, script_path, &err);
    if (rc == 0)
        rc = add_tasks(&app, store, &err);
    if (rc == 0)
        rc = fire(&app, store, &err);
    if (rc == 0)
        rc = rv_app_change_schedule(store, &scope, "runs", &(struct rv_app_when){.zone = "Asia/Tokyo"}, NULL, &err);
    if (rc == 0)
        rc = tell(store, &err);
    must((rc < 0) == (err != NULL));
    must(rc == 0 || rv_err_is(err, RV_E_NOMEM));
    rv_store_close(store);
    rv_err_free(err);
    return rc;
}

START_TEST(any_allocation_of_a_schedule_may_fail)
{
    char *dir = rv_kit_tmpdir(), *pipeline_path = rv_kit_path(dir, "p.yaml"), *script_path = rv_kit_path(dir, "s.yaml");
    size_t n, n_lived = 0, n_tried = 0;

    rv_kit_write(pipeline_path, pipeline);
    rv_kit_write(script_path, script);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(live(pipeline_path, script_path), 0);
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 160 + 1);
    ck_assert_int_eq(broken_line, 0);
    for (n = rv_kit_first(step);; n += step) {
        rv_fault_arm(n);
        int rc = live(pipeline_path, script_path);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(broken_line == 0, "allocation %zu: broken at line %d", n, broken_line);
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %d", n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
        n_lived += rc == 0;
        n_tried++;
    }
    ck_assert_msg(!rv_fault_works() || (n_tried > 100 && n_lived < n_tried / 10), "%zu tried, %zu done without",
                  n_tried, n_lived);
    free(pipeline_path);
    free(script_path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* A name that is taken is refused, and the group that it is part of goes on. Where that refusal cannot be undone the
 * group is given up, and the error is that of the undoing alone. */
START_TEST(a_group_that_is_given_up_says_what_for)
{
    const struct rv_schedule_row row = {.id = "sched_a",
                                        .name = "a",
                                        .expr = "* * * * *",
                                        .zone = "UTC",
                                        .type = "note",
                                        .max_retries = RV_UNSET,
                                        .created_us = 1,
                                        .next_us = 2};
    size_t n_given_up = 0;
    bool any = true;

    for (size_t n = 0; any; n++) {
        rv_store *store = NULL;
        rv_err *err = NULL;
        ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
        ck_assert_int_eq(rv_store_begin(store, NULL), 0);
        ck_assert_int_eq(rv_store_add_schedule(store, &row, NULL), 0);
        rv_fault_arm(n);
        int rc = rv_store_add_schedule(store, &row, &err);
        any = rv_fault_disarm();
        ck_assert_msg(rc == RV_E_EXISTS || (any && rc == RV_E_NOMEM), "allocation %zu: %d", n, rc);
        ck_assert_msg(rc == RV_E_EXISTS || !rv_err_is(err, RV_E_EXISTS), "allocation %zu: told as the refusal", n);
        n_given_up += rc == RV_E_NOMEM;
        rv_err_free(err);
        rv_store_close(store);
    }
    ck_assert(!rv_fault_works() || n_given_up > 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_schedules");
    TCase *tc = tcase_create("schedules");

    tcase_add_test(tc, any_allocation_of_a_schedule_may_fail);
    tcase_add_test(tc, a_group_that_is_given_up_says_what_for);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}

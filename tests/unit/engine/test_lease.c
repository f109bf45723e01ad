/* Leases in real time: kept while a run goes on, noticed when they ran out or somebody wants the run to end. The
 * store's fault points move the clock where a process is to stand still, and stand for what other processes do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"

#define START_US INT64_C(1700000000000000)
#define SECOND   INT64_C(1000000)
#define SHORT_US INT64_C(90000) /* a lease that a call of a part of a second outlives */

static const char *const capabilities[] = {"slow", "effects", NULL};
static const struct rv_store_scope all = {NULL, NULL};

#define PIPELINE                                                                                                       \
    "name: one\nagents:\n  - {name: p, default_next: t}\n"                                                             \
    "  - {name: t, has_tools: true, tool_access: all, plan_from: p, timeout_seconds: 3000}\n"                          \
    "execution: {tool_timeout: 2000}\n"
#define SCRIPT "stages: {p: [{output: {steps: [{tool: %s, parameters: {%s}}]}}]}"

/* A store in a file, whose points the test watches, and a clock. */
struct process {
    char *dir, *path;
    rv_store *store, *other; /* the other process's handle */
    int64_t real_us, us;     /* real 0: the clock stands at us */
    int n_renewals, n_looks, n_appends;
    int64_t jump_at_append, jump_us; /* after the n-th append the process stands still for so long */
    bool no_renewals, is_stolen;     /* until the lease has run out; then somebody else has the run */
    bool is_wanted;                  /* somebody else would take it */
    int cancel_at_look;
    int refused_looks; /* so many looks before that fail */
    rv_log *log;
    int opens_at;      /* renewals, after which the call that waits for a gate goes on */
    struct gate *gate; /* is opened by the first renewal that succeeds when another process has the run */
    char script[256];
};

static int64_t process_now(void *self)
{
    const struct process *f = self;
    const struct rv_clock real = rv_clock_system();

    return f->real_us ? f->us + (real.now_us(real.self) - f->real_us) : f->us;
}

/* Somebody else becomes the owner as soon as that is possible. */
static bool steal(struct process *f)
{
    const struct rv_store_claim claim = {
        .owner = "other/1", .now_us = process_now(f), .until_us = process_now(f) + 1000 * SECOND};
    int64_t fence;

    return rv_store_claim(f->other, &all, world_run_id(), &claim, &fence, NULL) == 0;
}

static void open_gate(const struct process *f)
{
    char gate[512];

    snprintf(gate, sizeof gate, "%s.go", f->path);
    rv_kit_write(gate, "");
}

static int watch(void *self, const char *point, rv_err **err)
{
    struct process *f = self;

    if (strcmp(point, "append.done") == 0 && ++f->n_appends == f->jump_at_append)
        f->us += f->jump_us;
    if (strcmp(point, "list_cancels") == 0 && ++f->n_looks == f->cancel_at_look)
        ck_assert_int_eq(rv_store_request_cancel(f->other, &all, world_run_id(), process_now(f), NULL), 0);
    if (strcmp(point, "list_cancels") == 0 && f->n_looks <= f->refused_looks)
        return RV_FAIL(err, RV_E_IO, "no look");
    if (strcmp(point, "renew") != 0)
        return 0;
    f->n_renewals++;
    if (f->opens_at && f->n_renewals >= f->opens_at && f->n_looks > 0)
        open_gate(f);
    if (f->no_renewals && f->is_wanted && !f->is_stolen)
        f->is_stolen = steal(f);
    bool fails = f->no_renewals && (f->is_wanted ? !f->is_stolen : f->n_renewals == 1);
    if (f->gate && f->gate->fd < 0 && !fails)
        gate_open(f->gate);
    if (!fails)
        return 0;
    RV_FAIL(err, RV_E_IO, "no renewal");
    return RV_WRAP(err, RV_E_IO, "renew the leases");
}

static void process_new(struct process *f, const char *tool, const char *parameters)
{
    char url[512];

    *f = (struct process){.dir = rv_kit_tmpdir(), .us = START_US};
    f->path = rv_kit_path(f->dir, "world");
    char *file = rv_kit_path(f->dir, "runs");
    snprintf(url, sizeof url, "sqlite:%s", file);
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    ck_assert_int_eq(rv_store_open(url, &opts, &f->store, NULL), 0);
    ck_assert_int_eq(rv_store_open(url, &opts, &f->other, NULL), 0);
    snprintf(f->script, sizeof f->script, SCRIPT, tool, parameters);
    setenv("REEVE_CRASH_EFFECTS", f->path, 1);
    free(file);
}

static void let_time_pass(struct process *f)
{
    const struct rv_clock real = rv_clock_system();

    f->us = process_now(f);
    f->real_us = real.now_us(real.self);
}

static struct how real_time(struct process *f)
{
    return (struct how){.capabilities = capabilities,
                        .real_time = true,
                        .lease_us = f->real_us ? SHORT_US : 0,
                        .clock = {.now_us = process_now, .self = f},
                        .log = f->log,
                        .store = f->store};
}

static void process_fini(struct process *f, struct world *w)
{
    rv_store_set_faults(f->store, (struct rv_store_faults){0});
    world_fini(w);
    rv_store_close(f->store);
    rv_store_close(f->other);
    unsetenv("REEVE_CRASH_EFFECTS");
    free(f->path);
    rv_kit_tmpdir_remove(f->dir);
}

/* Starts and waits; the code, and what it says. */
static int run(struct process *f, struct world *w, char **text)
{
    const struct how how = real_time(f);
    rv_err *err = NULL;

    world_load(w, PIPELINE, f->script, capabilities);
    rv_store_set_faults(f->store, (struct rv_store_faults){watch, f});
    world_start(w, &how, "what is it?");
    int rc = rv_engine_wait(w->engine, w->exec, &err);
    *text = rc < 0 ? rv_kit_err_take(err) : NULL;
    return rc;
}

static const struct {
    const char *tool;
    int64_t stands_still_us;
    bool runs;
} stops[] = {
    {"append_line", 14 * SECOND, true},    {"append_line", 15 * SECOND, false}, {"append_line", 900 * SECOND, false},
    {"append_probed", 15 * SECOND, false}, {"set_flag", 15 * SECOND, true},     {"read_counter", 15 * SECOND, true},
};

/* Proves 8.2/save */
START_TEST(who_stood_still_longer_than_its_lease_begins_nothing_that_must_not_be_done_twice)
{
    struct process f;
    struct world w;
    char *text = NULL;

    process_new(&f, stops[_i].tool, "text: it");
    f.jump_at_append = 2; /* the plan was noted down, and with it that the tool is about to be called */
    f.jump_us = stops[_i].stands_still_us;
    ck_assert_int_eq(run(&f, &w, &text), stops[_i].runs ? 0 : RV_E_STATE);
    if (!stops[_i].runs)
        ck_assert_msg(strstr(text, "ran out while this process stood still") != NULL, "%s", text);
    ck_assert((access(f.path, F_OK) == 0) == stops[_i].runs);
    free(text);
    process_fini(&f, &w);
}
END_TEST

START_TEST(a_long_call_keeps_its_lease)
{
    struct process f;
    struct world w;
    struct rv_run_row row;
    char *text = NULL;

    process_new(&f, "wait_and_set", "text: it");
    f.opens_at = 3;
    let_time_pass(&f);
    ck_assert_msg(run(&f, &w, &text) == 0, "%s", text);
    ck_assert_str_eq(world_status(&w), "completed");
    ck_assert_int_ge(f.n_renewals, 3);
    ck_assert_int_ge(f.n_looks, 1);
    ck_assert_int_eq(rv_store_get_run(f.store, &all, world_run_id(), &row, NULL), 0);
    ck_assert_ptr_null(row.owner); /* and gives it up at the end */
    rv_run_row_fini(&row);
    process_fini(&f, &w);
}
END_TEST

START_TEST(a_cancel_asked_for_by_another_process_is_heard)
{
    struct process f;
    struct world w;
    char *text = NULL;

    process_new(&f, "wait_and_set", "text: it"); /* for ever */
    f.cancel_at_look = 1;
    let_time_pass(&f);
    ck_assert_msg(run(&f, &w, &text) == 0, "%s", text);
    ck_assert_str_eq(world_status(&w), "cancelled");
    process_fini(&f, &w);
}
END_TEST

/* The lines with that text. */
static size_t count_lines(const struct rv_kit_log *log, const char *text)
{
    size_t n = 0;

    for (size_t i = 0; i < log->n_lines; i++)
        n += strstr(log->lines[i], text) != NULL;
    return n;
}

START_TEST(looks_that_the_store_refuses_are_said_once)
{
    struct rv_kit_log log;
    struct process f;
    struct world w;
    char *text = NULL;

    process_new(&f, "wait_and_set", "text: it"); /* it ends when cancelled */
    rv_kit_log_init(&log, RV_LOG_WARN, RV_LOG_JSON);
    f.log = log.log;
    f.refused_looks = 2;
    f.cancel_at_look = 3;
    let_time_pass(&f);
    ck_assert_msg(run(&f, &w, &text) == 0, "%s", text);
    ck_assert_str_eq(world_status(&w), "cancelled");
    ck_assert_uint_eq(count_lines(&log, "cancels.unread"), 1);
    ck_assert_uint_eq(count_lines(&log, "no look"), 1);
    process_fini(&f, &w);
    rv_kit_log_fini(&log);
}
END_TEST

START_TEST(a_lease_that_ran_out_is_not_believed_to_be_renewed)
{
    struct gate gate;
    struct process f;
    struct world w;
    char until[200];
    rv_err *err = NULL;

    /* The process that made the call died. The next one asks the probe; meanwhile its renewals fail, a third one takes
     * the run over, and a renewal of what is left succeeds again. The probe says that nothing happened. */
    gate_init(&gate);
    snprintf(until, sizeof until, "until: '%s'", gate.path);
    process_new(&f, "hesitate", until);
    f.gate = &gate;
    const struct how dead = {.capabilities = capabilities, .store = f.store};
    world_die(&dead, PIPELINE, f.script, 3);
    f.us += 100 * SECOND;
    f.no_renewals = f.is_wanted = true;
    let_time_pass(&f);
    const struct how how = real_time(&f);
    world_load(&w, PIPELINE, f.script, capabilities);
    rv_store_set_faults(f.store, (struct rv_store_faults){watch, &f});
    ck_assert_int_eq(world_continue(&w, &how, world_run_id(), NULL, NULL), 0);
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, &err), RV_E_STATE);
    char *text = rv_kit_err_take(err);
    ck_assert(f.is_stolen);
    ck_assert_msg(strstr(text, "ran out while this process stood still") != NULL, "%s", text);
    free(text);
    process_fini(&f, &w);
    gate_fini(&gate);
}
END_TEST

START_TEST(a_lease_that_ran_out_is_good_again_once_a_step_could_be_noted_down)
{
    struct rv_kit_log log;
    struct process f;
    struct world w;
    char *text = NULL;

    process_new(&f, "wait_and_set", "");
    rv_kit_log_init(&log, RV_LOG_WARN, RV_LOG_JSON);
    f.log = log.log;
    f.opens_at = 2;
    snprintf(f.script, sizeof f.script,
             "stages: {p: [{output: {steps: [{tool: wait_and_set, parameters: {text: first}},"
             " {tool: append_line, parameters: {text: it}}]}}]}");
    f.no_renewals = true;
    let_time_pass(&f);
    ck_assert_msg(run(&f, &w, &text) == 0, "%s", text);
    ck_assert_int_ge(f.n_renewals, 2); /* the first failed, and the next came when the lease was over */
    text = rv_kit_read(f.path);
    ck_assert_msg(strstr(text, "\tit\n") != NULL, "%s", text);
    free(text);
    const char *line = rv_kit_log_find(&log, "lease.renew_failed"); /* with its causes */
    ck_assert_ptr_nonnull(line);
    ck_assert_msg(strstr(line, "renew the leases") && strstr(line, "no renewal"), "%s", line);
    process_fini(&f, &w);
    rv_kit_log_fini(&log);
}
END_TEST

Suite *lease_suite(void)
{
    Suite *s = suite_create("lease");
    TCase *tc = tcase_create("lease");

    tcase_add_loop_test(tc, who_stood_still_longer_than_its_lease_begins_nothing_that_must_not_be_done_twice, 0,
                        RV_COUNT(stops));
    tcase_add_test(tc, a_long_call_keeps_its_lease);
    tcase_add_test(tc, a_cancel_asked_for_by_another_process_is_heard);
    tcase_add_test(tc, looks_that_the_store_refuses_are_said_once);
    tcase_add_test(tc, a_lease_that_ran_out_is_not_believed_to_be_renewed);
    tcase_add_test(tc, a_lease_that_ran_out_is_good_again_once_a_step_could_be_noted_down);
    suite_add_tcase(s, tc);
    return s;
}

/* Each allocation of the engine's part of an ask fails once: the bus, its handlers, the answers, the job of the
 * program. No crash, no hang; the run ends, and what its tool was told is an answer or a failure. Workers, which ask,
 * and the thread of the loop free what the other one made, so blocks are not counted here. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/engine.h"
#include "coreengine/engine/services_internal.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define START_US 1700000000000000

static const char pipeline[] = "name: one\nagents:\n  - {name: p, default_next: t}\n"
                               "  - {name: t, has_tools: true, tool_access: all, plan_from: p}\n";
#define PLAN(service, args)                                                                                            \
    "stages: {p: [{output: {steps: [{tool: ask, parameters: {service: " service ", args: " args "}}]}}]}"

static const struct {
    const char *script, *told; /* a part of what the tool is told when nothing fails */
} asks[] = {
    {PLAN("engine.tools", "{}"), "\"name\":\"ask\""},
    {PLAN("engine.health", "{}"), "\"status\":\"unknown\",\"tools\":["},
    {PLAN("events.publish", "{name: a.b, data: {x: [1, {y: z}]}}"), "success"},
    {PLAN("events.publish", "{name: a, date: {}}"), "there is no argument"},
    {PLAN("tasks.add", "{type: mail}"), "of the program"},
    {PLAN("tasks.ad", "{}"), "tasks.ad"},
};

static int run_job(struct rv_service_job *j, rv_buf *answer, rv_err **err)
{
    (void)j;
    rv_buf_puts(answer, "{\"from\":\"a job of the program\"}");
    return rv_buf_check(answer, "answer", err);
}

static void free_job(struct rv_service_job *j)
{
    free(j);
}

static int make(void *self, const struct rv_service_ask *ask, json_object *args, struct rv_service_job **out,
                rv_err **err)
{
    struct rv_service_job *j = malloc(sizeof *j);

    (void)self;
    (void)ask;
    (void)args;
    if (!j)
        return RV_FAIL(err, RV_E_NOMEM, "make a job");
    *j = (struct rv_service_job){run_job, free_job};
    *out = j;
    return 0;
}

/* Appends the state of the run at its end. */
static int drive(rv_plugins *plugins, const struct rv_pipeline *p, rv_script *script, rv_buf *state, rv_err **err)
{
    const struct rv_engine_opts opts = {.virtual_time = true, .virtual_start_us = START_US, .workers = 1};
    const struct rv_exec_services services = {make, NULL};
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("x")};
    struct rv_exec_opts x_opts = RV_EXEC_OPTS_INIT;
    struct rv_rand_state rand;
    rv_envelope *env = NULL;
    rv_engine *e = NULL;
    rv_exec *x = NULL;

    x_opts.pipeline = p;
    x_opts.plugins = plugins;
    x_opts.script = script;
    x_opts.services = &services;
    int rc = rv_envelope_new(&seed, rv_rand_seeded(&rand, 1), START_US, &env, err);
    if (rc == 0)
        rc = rv_engine_new(&opts, &e, err);
    if (rc < 0)
        rv_envelope_free(env);
    if (rc == 0)
        rc = rv_engine_start(e, &x_opts, env, NULL, &x, err);
    if (rc == 0)
        rc = rv_engine_wait(e, x, err);
    if (rc == 0) {
        rv_envelope_write_state(rv_exec_envelope(x), state);
        rc = rv_buf_check(state, "state", err);
    }
    rv_exec_free(x);
    rv_engine_free(e);
    return rc;
}

static int scenario(rv_plugins *plugins, const struct rv_pipeline *p, const char *text, rv_buf *state)
{
    rv_findings *f = rv_findings_new();
    rv_script *script = NULL;
    rv_yaml *doc = NULL;
    rv_err *err = NULL;

    int rc = f ? rv_yaml_parse(rv_str_of(text), "s.yaml", f, &doc, &err) : RV_E_NOMEM;
    if (rc == 0)
        rc = rv_script_read_node(rv_yaml_root(doc), f, &script, &err);
    if (rc == 0)
        rc = drive(plugins, p, script, state, &err);
    rv_script_free(script);
    rv_yaml_free(doc);
    rv_findings_free(f);
    rv_err_free(err);
    return rc;
}

START_TEST(any_allocation_of_the_loop_may_fail)
{
    static const char *const dirs[] = {HOSTILE_DIR};
    const struct rv_plugins_opts opts = {.dirs = dirs, .n_dirs = 1, .base_dir = "."};
    const struct rv_capability_config which = {.name = "asker"};
    rv_findings *f = rv_findings_new();
    struct rv_pipeline *p = NULL;
    rv_plugins *plugins = NULL;
    rv_buf state;
    size_t n, n_whole = 0, n_tried = 0;

    rv_buf_init(&state, 1 << 22);
    ck_assert_int_eq(rv_plugins_new(&opts, &plugins, NULL), 0);
    ck_assert_int_eq(rv_plugins_load(plugins, &which, NULL), 0);
    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(pipeline), "p.yaml", ".", f, &p, NULL), 0);
    ck_assert_uint_eq(rv_findings_n_errors(f), 0);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(scenario(plugins, p, asks[_i].script, &state), 0);
    rv_fault_disarm();
    ck_assert_msg(strstr(rv_buf_cstr(&state), asks[_i].told) != NULL, "%s", rv_buf_cstr(&state));
    const size_t step = rv_kit_step(rv_fault_count() / 120 + 1);
    for (n = rv_kit_first(step);; n += step) {
        rv_buf_clear(&state);
        state.rc = 0;
        rv_fault_arm(n);
        int rc = scenario(plugins, p, asks[_i].script, &state);
        if (!rv_fault_disarm())
            break;
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "%s, allocation %zu: %s", asks[_i].script, n, rv_code_text(rc));
        n_tried++;
        n_whole += rc == 0 && strstr(rv_buf_cstr(&state), asks[_i].told) != NULL;
    }
    ck_assert(n_tried > 50 || !rv_fault_works());
    ck_assert_uint_le(n_whole, n_tried / 2);
    rv_buf_fini(&state);
    rv_plugins_free(plugins);
    rv_pipeline_free(p);
    rv_findings_free(f);
}
END_TEST

/* --- the side of the worker --- */

struct loop {
    struct asks *asks;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool is_woken, is_over;
};

static void on_wake(void *self)
{
    struct loop *l = self;

    pthread_mutex_lock(&l->lock);
    l->is_woken = true;
    pthread_cond_signal(&l->woken);
    pthread_mutex_unlock(&l->lock);
}

static void free_nothing(struct rv_service_job *j)
{
    (void)j;
}

/* Gives each ask a job, and tells what the job has answered. */
static void *loop_thread(void *self)
{
    static struct rv_service_job job = {run_job, free_nothing};
    struct loop *l = self;
    enum ask_state was;
    struct ask *a;

    for (;;) {
        pthread_mutex_lock(&l->lock);
        while (!l->is_woken && !l->is_over)
            pthread_cond_wait(&l->woken, &l->lock);
        bool is_over = l->is_over;
        l->is_woken = false;
        pthread_mutex_unlock(&l->lock);
        while ((a = asks_take(l->asks, &was)))
            if (was == ASK_NEW) {
                asks_run(l->asks, a, &job);
            } else {
                rv_err *why = a->why;
                a->why = NULL;
                asks_done(l->asks, a, why);
            }
        if (is_over)
            return NULL;
    }
}

static int ask_once(struct loop *l)
{
    const struct rv_service_ask q = {.service = "tasks.add",
                                     .args = RV_STR_LIT("{\"type\": \"mail\"}"),
                                     .capability = "c",
                                     .entry = "e",
                                     .kind = "tool",
                                     .run_id = "r",
                                     .stage = "s",
                                     .user_id = "u",
                                     .session_id = "",
                                     .key = "",
                                     .until_us = INT64_MAX};
    struct rv_tool_work work = {.call_id = 1};
    rv_buf answer;
    rv_err *err = NULL;

    rv_buf_init(&answer, 1 << 16);
    int rc = asks_put(l->asks, &work, &q, &answer, &err);
    if (rc == 0)
        rc = rv_buf_check(&answer, "answer", &err);
    if (rc == 0 && !strstr(rv_buf_cstr(&answer), "a job of the program"))
        rc = RV_E_INTERNAL;
    rv_buf_fini(&answer);
    rv_err_free(err);
    return rc;
}

START_TEST(any_allocation_of_the_worker_may_fail)
{
    struct loop l = {.is_over = false};
    pthread_t thread;
    size_t n;

    pthread_mutex_init(&l.lock, NULL);
    pthread_cond_init(&l.woken, NULL);
    l.asks = asks_new(on_wake, &l);
    ck_assert_ptr_nonnull(l.asks);
    ck_assert_int_eq(pthread_create(&thread, NULL, loop_thread, &l), 0);
    for (n = 0;; n++) {
        rv_fault_arm(n);
        int rc = ask_once(&l);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM, "allocation %zu: %s", n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
    }
    ck_assert(n >= 3 || !rv_fault_works()); /* the ask, the answer of the job, a copy for the caller */
    pthread_mutex_lock(&l.lock);
    l.is_over = true;
    pthread_cond_signal(&l.woken);
    pthread_mutex_unlock(&l.lock);
    pthread_join(thread, NULL);
    asks_free(l.asks);
    pthread_cond_destroy(&l.woken);
    pthread_mutex_destroy(&l.lock);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_asks");
    TCase *tc = tcase_create("asks");

    tcase_add_loop_test(tc, any_allocation_of_the_loop_may_fail, 0, RV_COUNT(asks));
    tcase_add_test(tc, any_allocation_of_the_worker_may_fail);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}

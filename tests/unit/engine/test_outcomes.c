/* What becomes of a call that was under way when the process died: by its effect class, its probe, or a person. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"

#define START_US INT64_C(1700000000000000)
#define HOUR_US  INT64_C(3600000000)

static const char *const capabilities[] = {"hello", "slow", "probes", "effects", NULL};
static const struct rv_store_scope all = {NULL, NULL};

#define PIPELINE                                                                                                       \
    "name: one\nagents:\n  - {name: p, default_next: t}\n"                                                             \
    "  - {name: t, has_tools: true, tool_access: all, plan_from: p}\n"                                                 \
    "execution: {tool_timeout: %s, require_confirmation_for_destructive: false}\n"
#define SCRIPT "stages: {p: [{output: {steps: [{tool: %s, parameters: {%s}}]}}]}"

struct life {
    struct how how;
    struct world w;
    char pipeline[512], script[512];
    struct gate gate;
};

static rv_store *memory(void)
{
    rv_store *store = NULL;

    ck_assert_int_eq(rv_store_open("memory:", &(struct rv_store_opts){0}, &store, NULL), 0);
    return store;
}

/* The process dies when the tool has answered: nobody has noted it down. NULL as parameters: what is slow waits for the
 * gate. */
static void die_after_the_call(struct life *l, const char *tool, const char *parameters)
{
    char until[200];

    *l = (struct life){.how = {.capabilities = capabilities, .store = memory()}};
    gate_init(&l->gate);
    snprintf(until, sizeof until, "until: '%s'", l->gate.path);
    if (!parameters)
        parameters = until;
    snprintf(l->pipeline, sizeof l->pipeline, PIPELINE, "30");
    snprintf(l->script, sizeof l->script, SCRIPT, tool, parameters);
    world_die(&l->how, l->pipeline, l->script, 3); /* start, the plan, the tool's answer */
}

static void go_on(struct life *l, const struct rv_response *answer)
{
    rv_err *err = NULL;

    world_load(&l->w, l->pipeline, l->script, capabilities);
    int rc = world_continue(&l->w, &l->how, world_run_id(), answer, &err);
    if (rc == 0)
        rc = rv_engine_wait(l->w.engine, l->w.exec, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? rv_kit_err_take(err) : "");
}

static void end(struct life *l)
{
    gate_open(&l->gate);
    world_fini(&l->w);
    gate_fini(&l->gate);
    rv_store_close(l->how.store);
}

/* --- who can tell --- */

static const struct {
    const char *tool, *parameters;
    const char *output; /* a part of the stage's; NULL: a person is asked */
} calls[] = {
    {"happened", "", "\"data\":{\"line\":7}"},
    {"empty_result", "", "\"data\":{}"},
    {"did_not", "", "\"data\":{\"from\":\"tool\"}"},
    {"can_not_tell", "", NULL},
    {"fails", "", NULL},
    {"silent", "", NULL},
    {"garbage", "", NULL},
    {"word", "", NULL},
    {"no_result", "", NULL},
    {"unprobed", "", NULL},
    {"echoes", "x: 1", "\"arguments\":{\"x\":1}"}, /* the probe sees the arguments as they were sent */
    {"echoes", "x: 1", "\"stage\":\"t\",\"started_at\":\"2023-11-14T22:13:20"}, /* and when that was */
    {"greet", "name: Ada", "Ada"},                                              /* safe: called again */
    {"doze", "ms: 1", "\"slept\":true"},
    {"hesitate", "ms: 1", "\"from\":\"tool\""},
};
static const int64_t gaps[] = {0, HOUR_US, 365 * 24 * HOUR_US};

START_TEST(a_call_under_way_is_settled_by_its_class_and_its_probe)
{
    int row = _i / (int)RV_COUNT(gaps);
    struct life l;

    die_after_the_call(&l, calls[row].tool, calls[row].parameters);
    l.how.start_us = START_US + gaps[_i % (int)RV_COUNT(gaps)]; /* however late the other process comes */
    go_on(&l, NULL);
    char *state = world_state(&l.w);
    if (calls[row].output) {
        ck_assert_msg(strcmp(world_status(&l.w), "completed") == 0 && strstr(state, calls[row].output), "%s", state);
    } else {
        ck_assert_str_eq(world_status(&l.w), "interrupted");
        ck_assert_ptr_nonnull(strstr(state, "\"reason\":\"outcome_unknown\""));
    }
    free(state);
    end(&l);
}
END_TEST

START_TEST(a_probe_that_hangs_until_the_deadline_leaves_it_to_a_person)
{
    struct life l;

    die_after_the_call(&l, "hesitate", NULL);
    snprintf(l.pipeline, sizeof l.pipeline, PIPELINE, "0.05");
    l.how.start_us = START_US + HOUR_US;
    l.how.real_time = _i;
    go_on(&l, NULL);
    ck_assert_str_eq(world_status(&l.w), "interrupted");
    char *state = world_state(&l.w);
    ck_assert_ptr_nonnull(strstr(state, "\"reason\":\"outcome_unknown\""));
    ck_assert_ptr_null(strstr(state, "TimeoutError"));
    free(state);
    end(&l);
}
END_TEST

static const struct {
    const char *tool, *parameters, *timeout, *status;
} bounds[] = {
    {"dither", "ms: 1", "30", "completed"},  /* in time: it did not happen */
    {"falter", NULL, "30", "interrupted"},   /* later than the probe says it will be, whatever the tool has */
    {"dither", NULL, "0.05", "interrupted"}, /* nor does it get more than the tool has left */
};

START_TEST(a_probe_has_its_own_time)
{
    struct life l;

    die_after_the_call(&l, bounds[_i / 2].tool, bounds[_i / 2].parameters);
    snprintf(l.pipeline, sizeof l.pipeline, PIPELINE, bounds[_i / 2].timeout);
    l.how.start_us = START_US + HOUR_US;
    l.how.real_time = _i % 2;
    go_on(&l, NULL);
    ck_assert_str_eq(world_status(&l.w), bounds[_i / 2].status);
    char *state = world_state(&l.w);
    ck_assert_ptr_null(strstr(state, "TimeoutError"));
    free(state);
    end(&l);
}
END_TEST

/* --- how often it really happened --- */

static const struct {
    const char *tool, *decision;
    int n_happened;
    const char *status;
} effects[] = {
    {"read_counter", NULL, 2, "completed"},          {"set_flag", NULL, 2, "completed"},
    {"append_probed", NULL, 1, "completed"},         {"append_line", "happened", 1, "completed"},
    {"append_line", "not_happened", 2, "completed"}, {"append_line", "fail", 1, "failed"},
};

static int count(const char *text, const char *part)
{
    int n = 0;

    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        n++;
    return n;
}

START_TEST(the_outside_world_is_changed_as_often_as_the_class_allows)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "world"), mark[64], key[200];
    const struct rv_response answer = {.decision = rv_str_of(effects[_i].decision ? effects[_i].decision : "")};
    struct life l;

    setenv("REEVE_CRASH_EFFECTS", path, 1);
    die_after_the_call(&l, effects[_i].tool, "text: it");
    l.how.start_us = START_US + HOUR_US;
    go_on(&l, NULL);
    if (effects[_i].decision) {
        ck_assert_str_eq(world_status(&l.w), "interrupted");
        world_fini(&l.w);
        go_on(&l, &answer);
    }
    ck_assert_str_eq(world_status(&l.w), effects[_i].status);
    char *world = rv_kit_read(path);
    snprintf(mark, sizeof mark, "%s\t", effects[_i].tool);
    ck_assert_int_eq(count(world, mark), effects[_i].n_happened);
    const char *from = strchr(world, '\t') + 1;
    snprintf(key, sizeof key, "%.*s", (int)strcspn(from, "\t"), from);
    ck_assert_int_eq(count(world, key), effects[_i].n_happened); /* always under the same key */
    free(world);
    end(&l);
    unsetenv("REEVE_CRASH_EFFECTS");
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* Proves 7.10/recover */
START_TEST(several_deaths_in_a_row_take_no_time_from_a_call)
{
    struct life l;

    die_after_the_call(&l, "doze", "ms: 1");
    for (int n = 1; n < 4; n++) { /* each life goes on, makes the call, and dies before it has noted the answer */
        struct breaker b = {.points = "append", .at = 4}; /* the new owner, the recovery, the answer */
        l.how.start_us = START_US + n * HOUR_US;
        world_load(&l.w, l.pipeline, l.script, capabilities);
        world_break(l.how.store, &b);
        ck_assert_int_eq(world_continue(&l.w, &l.how, world_run_id(), NULL, NULL), 0);
        ck_assert_int_eq(rv_engine_wait(l.w.engine, l.w.exec, NULL), RV_E_IO);
        ck_assert(b.fired);
        const char *asked = strstr(rv_buf_cstr(&l.w.effects), "\"deadline_us\":");
        ck_assert_ptr_nonnull(asked);
        ck_assert_int_eq(strtoll(asked + 14, NULL, 10), START_US + n * HOUR_US + 30000000);
        world_break(l.how.store, NULL);
        world_fini(&l.w);
    }
    l.how.start_us = START_US + 4 * HOUR_US;
    go_on(&l, NULL);
    ck_assert_str_eq(world_status(&l.w), "completed");
    char *output = world_output(&l.w, "t");
    ck_assert_msg(strstr(output, "\"slept\":true") != NULL, "%s", output);
    free(output);
    end(&l);
}
END_TEST

/* Proves 7.9/thread */
START_TEST(a_run_that_waits_takes_an_answer_and_nothing_else)
{
    const struct rv_response wrong = {.has_approved = true, .approved = true};
    struct life l;
    rv_err *err = NULL;

    die_after_the_call(&l, "unprobed", "");
    go_on(&l, NULL);
    world_fini(&l.w);
    world_load(&l.w, l.pipeline, l.script, capabilities);
    ck_assert_int_eq(world_continue(&l.w, &l.how, world_run_id(), _i ? &wrong : NULL, &err),
                     _i ? RV_E_INVALID : RV_E_STATE);
    rv_err_free(err);
    world_fini(&l.w);
    struct rv_run_row row;
    ck_assert_int_eq(rv_store_get_run(l.how.store, &all, world_run_id(), &row, NULL), 0);
    ck_assert_int_eq(row.status, RV_RUN_INTERRUPTED); /* and still waits */
    ck_assert_int_eq(row.n_pending, 1);
    rv_run_row_fini(&row);
    const struct rv_response right = {.decision = RV_STR_LIT("not_happened")};
    go_on(&l, &right);
    ck_assert_str_eq(world_status(&l.w), "completed");
    end(&l);
}
END_TEST

Suite *outcomes_suite(void)
{
    Suite *s = suite_create("outcomes");
    TCase *tc = tcase_create("outcomes");

    tcase_add_loop_test(tc, a_call_under_way_is_settled_by_its_class_and_its_probe, 0,
                        RV_COUNT(calls) * RV_COUNT(gaps));
    tcase_add_loop_test(tc, a_probe_that_hangs_until_the_deadline_leaves_it_to_a_person, 0, 2);
    tcase_add_loop_test(tc, a_probe_has_its_own_time, 0, 2 * RV_COUNT(bounds));
    tcase_add_loop_test(tc, the_outside_world_is_changed_as_often_as_the_class_allows, 0, RV_COUNT(effects));
    tcase_add_test(tc, several_deaths_in_a_row_take_no_time_from_a_call);
    tcase_add_loop_test(tc, a_run_that_waits_takes_an_answer_and_nothing_else, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}

/* A run whose process died at any point of its journal goes on elsewhere and ends as if nothing had happened. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"

static const struct rv_store_scope all = {NULL, NULL};
static const char *const capabilities[] = {"hello", NULL};

/* Scripts without repetition: a reply that is asked for twice shows. */
static const struct {
    const char *pipeline, *script, *answer;
} runs[] = {
    {"name: s\nagents: [{name: a, default_next: b}, {name: b}]", NULL, NULL},
    {"name: l\nmodels: {default: scripted}\nagents:\n"
     "  - {name: a, has_llm: true, model_role: default, max_retries: 2, default_next: b}\n"
     "  - {name: b, has_llm: true, model_role: default}\n",
     "repeat: false\nmodels: {a: [{error: {kind: overloaded}}, {json: {ok: 1}}], b: [{json: {two: 2}}]}", NULL},
    {"name: p\ndefault_run_mode: parallel\nmodels: {default: scripted}\nagents:\n"
     "  - {name: a, has_llm: true, model_role: default}\n  - {name: b, has_llm: true, model_role: default}\n"
     "  - {name: c, has_llm: true, model_role: default, requires: [a, b]}\n",
     "repeat: false\nmodels: {a: [{json: {n: 1}, delay_ms: 20}], b: [{json: {n: 2}, delay_ms: 10}], c: [{json: {n: "
     "3}}]}",
     NULL},
    {"name: f\nagents: [{name: a, post_process: hello.greet_user, default_next: b}, {name: b}]", NULL, NULL},
    {"name: q\nagents: [{name: ask, default_next: after}, {name: after}]",
     "repeat: false\nstages: {ask: [{raise: {kind: clarification, question: which?}, outcome: clarify}, {output: "
     "{done: 1}}], after: [{output: {x: 1}}]}\nanswers: [{text: this, delay_ms: 5}]",
     "this"},
    {"name: t\nagents:\n  - {name: plan, default_next: act}\n"
     "  - {name: act, has_tools: true, tool_access: all, allowed_tools: [note, look], default_next: end}\n",
     "repeat: false\nstages: {plan: [{output: {steps: [{tool: note, parameters: {n: 1}}, {tool: look}, {tool: "
     "note}]}}]}\n"
     "tools: {note: [{result: {n: 1}}, {result: {n: 2}}], look: [{result: {seen: true}}]}",
     NULL},
};

static char *uninterrupted(int i)
{
    struct how how = {.capabilities = capabilities};
    struct world w;

    world_run(&w, &how, runs[i].pipeline, runs[i].script);
    char *text = world_essence(rv_exec_envelope(w.exec));
    world_fini(&w);
    return text;
}

/* --- one life after another --- */

#define MAX_LIVES 8
#define START_US  INT64_C(1700000000000000)
#define GAP_US    INT64_C(3600000000) /* longer than any lease, and than any call may take */

struct fate {
    int i;
    int64_t gap_us; /* from the start of a life to that of the next */
    rv_store *store;
    struct breaker breaker;
    int n_lives;
};

/* What the store has of the run; false: nothing. Passes no fault point. */
static bool look(struct fate *f, struct rv_run_row *row)
{
    world_break(f->store, NULL);
    int rc = rv_store_get_run(f->store, &all, world_run_id(), row, NULL);
    ck_assert(rc == 0 || rc == RV_E_NOT_FOUND);
    if (rc == 0 && row->owner && f->gap_us < 0) /* its owner is known to be dead, whatever the clock says */
        ck_assert_int_eq(rv_store_release(f->store, world_run_id(), row->fence, NULL), 0);
    world_break(f->store, &f->breaker);
    return rc == 0;
}

/* One process that starts the run, goes on with it, or answers it, until it is over or the process dies. */
static void live(struct fate *f)
{
    const struct how how = {
        .capabilities = capabilities, .store = f->store, .start_us = START_US + f->n_lives++ * f->gap_us};
    const struct rv_response answer = {.text = rv_str_of(runs[f->i].answer ? runs[f->i].answer : "")};
    struct rv_run_row row = {0};
    struct world w;
    rv_err *err = NULL;
    int rc;

    world_load(&w, runs[f->i].pipeline, runs[f->i].script, capabilities);
    bool was_dead = f->breaker.fired;
    if (look(f, &row))
        rc = world_continue(&w, &how, world_run_id(), row.status == RV_RUN_INTERRUPTED ? &answer : NULL, &err);
    else
        rc = world_try_start(&w, &how, "what is it?", &err);
    rv_run_row_fini(&row);
    size_t n_performed = w.effects.len;
    if (rc == 0)
        rc = rv_engine_wait(w.engine, w.exec, &err);
    else
        ck_assert_uint_eq(n_performed, 0);         /* nothing of a step that was not noted down */
    ck_assert_int_lt(world_elapsed_ms(&w), 60000); /* nothing waits for a clock to catch up */
    ck_assert_msg(rc == 0 || (f->breaker.fired && !was_dead), "life %d, %s: %s", f->n_lives, f->breaker.where,
                  rc < 0 ? rv_kit_err_take(err) : "");
    rv_err_free(err);
    world_fini(&w);
}

/* What the journal says the run came to. */
static char *journaled(struct fate *f)
{
    struct world w;
    struct rv_replayed r;
    rv_err *err = NULL;

    world_load(&w, runs[f->i].pipeline, runs[f->i].script, capabilities);
    const struct rv_catalog under = rv_plugins_catalog(w.plugins);
    const struct rv_catalog catalog = w.script ? rv_script_catalog(w.script, &under) : under;
    const struct rv_replay_opts opts = {.pipeline = w.pipeline, .catalog = &catalog};
    int rc = rv_journal_replay(f->store, &all, world_run_id(), &opts, &r, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? rv_kit_err_take(err) : "");
    char *text = world_essence(rv_run_envelope(r.run));
    rv_replayed_fini(&r);
    world_fini(&w);
    return text;
}

/* The n-th fault point of all lives together fails. False: there were fewer. */
static bool survive(int i, int n, int64_t gap_us, const char *want)
{
    struct fate f = {.i = i, .gap_us = gap_us, .breaker = {.points = "", .at = n}};
    struct rv_run_row row = {0};

    ck_assert_int_eq(rv_store_open("memory:", &(struct rv_store_opts){0}, &f.store, NULL), 0);
    world_break(f.store, &f.breaker);
    for (bool over = false; !over;) {
        ck_assert_int_lt(f.n_lives, MAX_LIVES);
        live(&f);
        over = look(&f, &row) && rv_run_status_is_final(row.status);
        rv_run_row_fini(&row);
    }
    world_break(f.store, NULL);
    char *got = journaled(&f);
    ck_assert_msg(strcmp(got, want) == 0, "point %d (%s):\n%s\n%s", n, f.breaker.where, got, want);
    free(got);
    rv_store_close(f.store);
    return f.breaker.fired;
}

/* Proves 7.9/thread: A run is kept under its id at every step, and another process loads, answers and keeps it by
 * that id. A step that can not be kept stops the run instead of being logged and ignored */
START_TEST(a_run_whose_process_died_at_any_point_ends_as_if_it_had_not)
{
    char *want = uninterrupted(_i);
    int n = 0;

    while (survive(_i, n, GAP_US, want))
        n++;
    ck_assert_int_ge(n, 6); /* a blob, the run, its end: each before and after */
    free(want);
}
END_TEST

START_TEST(nor_does_it_matter_when_the_clock_went_back_meanwhile)
{
    char *want = uninterrupted(_i);
    int n = 0;

    while (survive(_i, n, -GAP_US, want))
        n++;
    ck_assert_int_ge(n, 6);
    free(want);
}
END_TEST

/* Dies at its n-th append, and the process that goes on with it at the m-th point of its own. */
static void die_twice(int i, int n, const char *want)
{
    const int step = (int)rv_kit_stride(4);

    for (int m = n % step;; m += step) {
        struct fate f = {.i = i, .gap_us = GAP_US, .breaker = {.points = "append", .at = n}};
        struct rv_run_row row = {0};
        bool second = false;

        ck_assert_int_eq(rv_store_open("memory:", &(struct rv_store_opts){0}, &f.store, NULL), 0);
        world_break(f.store, &f.breaker);
        for (bool over = false; !over;) {
            ck_assert_int_lt(f.n_lives, MAX_LIVES);
            live(&f);
            over = look(&f, &row) && rv_run_status_is_final(row.status);
            rv_run_row_fini(&row);
            if (f.n_lives == 1)
                f.breaker = (struct breaker){.points = "", .at = m};
            second = f.n_lives > 1 && f.breaker.fired;
        }
        world_break(f.store, NULL);
        char *got = journaled(&f);
        ck_assert_msg(strcmp(got, want) == 0, "points %d, %d (%s):\n%s\n%s", n, m, f.breaker.where, got, want);
        free(got);
        rv_store_close(f.store);
        if (!second)
            return;
    }
}

START_TEST(nor_does_it_matter_when_the_next_one_dies_as_well)
{
    char *want = uninterrupted(_i);

    for (size_t step = rv_kit_step(4), n = (size_t)_i % step; n < 8; n += step)
        die_twice(_i, (int)n, want);
    free(want);
}
END_TEST

/* --- performed only when noted down --- */

/* What a run performs whose n-th append fails, before or after it took effect; *fired false: there are fewer. */
static char *performed(int i, int n, bool after, bool *fired)
{
    struct breaker b = {.points = "append", .at = 2 * n + after};
    struct how how = {.capabilities = capabilities};
    struct world w;

    ck_assert_int_eq(rv_store_open("memory:", &(struct rv_store_opts){0}, &how.store, NULL), 0);
    world_load(&w, runs[i].pipeline, runs[i].script, capabilities);
    world_break(how.store, &b);
    int rc = world_try_start(&w, &how, "what is it?", NULL);
    if (rc == 0)
        rc = rv_engine_wait(w.engine, w.exec, NULL);
    ck_assert_int_eq(rc, b.fired ? RV_E_IO : 0);
    *fired = b.fired;
    char *text = rv_str_dup(rv_buf_str(&w.effects));
    world_break(how.store, NULL);
    world_fini(&w);
    rv_store_close(how.store);
    return text;
}

START_TEST(nothing_of_a_step_is_performed_that_could_not_be_noted_down)
{
    bool fired = false;
    char *whole = performed(_i, 1000, false, &fired);
    size_t len = 0;
    int n = 0;

    ck_assert(!fired);
    for (fired = true; fired; n++) {
        char *before = performed(_i, n, false, &fired), *after = performed(_i, n, true, &fired);
        ck_assert_str_eq(before, after);
        ck_assert(strncmp(before, whole, strlen(before)) == 0);
        /* all of the steps before, each of which had something done, and nothing of this one */
        ck_assert(n == 0 ? before[0] == '\0' : strlen(before) > len);
        len = strlen(before);
        free(before);
        free(after);
    }
    ck_assert_uint_eq(len, strlen(whole));
    ck_assert_int_gt(n, 1);
    free(whole);
}
END_TEST

/* --- a journal so long that it is entered at a snapshot --- */

#define LONG_STEPS 1100 /* a call and its answer are two records: more than 2048 */
#define LONG                                                                                                           \
    "name: long\nexecution: {max_plan_steps: 2000}\nagents:\n"                                                         \
    "  - {name: act, has_tools: true, tool_access: all, allowed_tools: [greet], default_next: ask}\n"                  \
    "  - {name: ask, default_next: after, ask: {question: Well?, expires_seconds: 1}, on_answer: {yes: after, "        \
    "timeout: late}}\n"                                                                                                \
    "  - {name: after, default_next: end}\n  - {name: late, default_next: end}\n"

static json_object *long_plan(void)
{
    json_object *plan = json_object_new_object(), *steps = json_object_new_array();

    for (int i = 0; i < LONG_STEPS; i++)
        ck_assert_int_eq(json_object_array_add(steps, rv_kit_json("{'tool': 'greet', 'parameters': {'name': 'a'}}")),
                         0);
    ck_assert_int_eq(json_object_object_add(plan, "steps", steps), 0);
    return plan;
}

/* The run waits, and its process is gone. */
static void wait_long(struct how *how)
{
    struct world w;

    ck_assert_int_eq(rv_store_open("memory:", &(struct rv_store_opts){0}, &how->store, NULL), 0);
    how->capabilities = capabilities;
    how->start_us = START_US;
    how->plan = long_plan();
    world_run(&w, how, LONG, NULL);
    ck_assert_str_eq(world_status(&w), "interrupted");
    ck_assert_int_gt(rv_journal_seq(w.journal), 2048);
    world_fini(&w);
    json_object_put(how->plan);
    how->plan = NULL;
}

static const struct {
    const char *answer; /* NULL: none */
    int64_t after_us;
    int rc;
    const char *visited;
} late[] = {
    {"yes", 1000, 0, "after"},
    {NULL, 2000000, 0, "late"},
    {"yes", 2000000, RV_E_TIMEOUT, NULL},
    {NULL, 1000, RV_E_STATE, NULL},
};

START_TEST(a_long_run_that_waits_is_answered_and_expires_elsewhere)
{
    const struct rv_response answer = {.choice = rv_str_of(late[_i].answer ? late[_i].answer : "")};
    struct how how = {0};
    struct world w;
    rv_err *err = NULL;

    wait_long(&how);
    how.start_us = START_US + late[_i].after_us;
    world_load(&w, LONG, NULL, capabilities);
    int rc = world_continue(&w, &how, world_run_id(), late[_i].answer ? &answer : NULL, &err);
    ck_assert_msg(rc == late[_i].rc, "%s", rc < 0 ? rv_kit_err_take(err) : "it was taken");
    rv_err_free(err);
    if (rc == 0) {
        ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, NULL), 0);
        ck_assert_str_eq(world_status(&w), "completed");
        char *visited = world_visited(&w);
        ck_assert_str_eq(visited, late[_i].visited);
        free(visited);
    }
    world_fini(&w);
    rv_store_close(how.store);
}
END_TEST

Suite *recover_suite(void)
{
    Suite *s = suite_create("recover");
    TCase *tc = tcase_create("recover");

    tcase_add_loop_test(tc, a_run_whose_process_died_at_any_point_ends_as_if_it_had_not, 0, RV_COUNT(runs));
    tcase_add_loop_test(tc, nor_does_it_matter_when_the_clock_went_back_meanwhile, 0, RV_COUNT(runs));
    tcase_add_loop_test(tc, nor_does_it_matter_when_the_next_one_dies_as_well, 0, RV_COUNT(runs));
    tcase_add_loop_test(tc, nothing_of_a_step_is_performed_that_could_not_be_noted_down, 0, RV_COUNT(runs));
    tcase_add_loop_test(tc, a_long_run_that_waits_is_answered_and_expires_elsewhere, 0, RV_COUNT(late));
    suite_add_tcase(s, tc);
    return s;
}

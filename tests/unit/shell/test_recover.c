/* A run whose process died at any point of its journal goes on elsewhere and ends as if nothing had happened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/shell/suites.h"

static const char *const capabilities[] = {"hello", "slow", NULL};

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
    {"name: f\nagents: [{name: a, pre_process: slow.doze, default_next: b}, {name: b}]", NULL, NULL},
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

struct breaker {
    int at, seen; /* the at-th of the points fails */
    bool fired;
};

static int fail_at(void *self, const char *point, rv_err **err)
{
    struct breaker *b = self;

    if (strncmp(point, "append", 6) != 0 || b->seen++ != b->at)
        return 0;
    b->fired = true;
    return RV_FAIL(err, RV_E_IO, "the process dies at %s", point);
}

/* Everything that must not depend on when which process did it. */
static char *essence(const struct world *w)
{
    const rv_envelope *env = rv_exec_envelope(w->exec);
    rv_buf b = RV_BUF_INIT(1 << 20);
    json_object *outputs = NULL;

    ck_assert_int_eq(rv_envelope_outputs(env, &outputs, NULL), 0);
    rv_buf_printf(&b, "%s %lld %s ", world_status(w), (long long)rv_envelope_fields(env)->agent_hop_count,
                  rv_envelope_fields(env)->termination_reason ? rv_envelope_fields(env)->termination_reason : "");
    rv_json_write(outputs, &b);
    json_object_put(outputs);
    return rv_buf_steal(&b, NULL);
}

static char *uninterrupted(int i)
{
    struct how how = {.capabilities = capabilities};
    struct world w;

    world_run(&w, &how, runs[i].pipeline, runs[i].script);
    char *text = essence(&w);
    world_fini(&w);
    return text;
}

/* One life until the n-th point, another one after it. False: it did not get that far. */
static bool die_and_recover(int i, int n, const char *want)
{
    struct breaker b = {.at = n};
    struct how how = {.capabilities = capabilities};
    struct rv_run_row row;
    struct world w;
    rv_err *err = NULL;
    char run[64];
    const struct rv_store_scope all = {NULL, NULL};
    const struct rv_response answer = {.text = rv_str_of(runs[i].answer ? runs[i].answer : "")};

    ck_assert_int_eq(rv_store_open("memory:", &(struct rv_store_opts){0}, &how.store, &err), 0);
    world_load(&w, runs[i].pipeline, runs[i].script, capabilities);
    rv_store_set_faults(how.store, (struct rv_store_faults){fail_at, &b});
    bool started = false;
    {
        rv_envelope *env = world_envelope("what is it?", 0);
        snprintf(run, sizeof run, "%s", rv_envelope_fields(env)->envelope_id);
        rv_envelope_free(env);
    }
    if (n >= 2) { /* the first append is part of the start, which this test's world requires to succeed */
        world_start(&w, &how, "what is it?");
        started = true;
        int rc = rv_engine_wait(w.engine, w.exec, &err);
        ck_assert_msg((rc < 0) == b.fired, "point %d: %d", n, rc);
        rv_err_free(err);
        err = NULL;
    }
    bool fired = b.fired;
    world_fini(&w);
    rv_store_set_faults(how.store, (struct rv_store_faults){0});
    if (started && fired) {
        ck_assert_int_eq(rv_store_get_run(how.store, &all, run, &row, NULL), 0);
        bool over = rv_run_status_is_final(row.status), waits = row.status == RV_RUN_INTERRUPTED;
        rv_run_row_fini(&row);
        if (!over) {
            world_load(&w, runs[i].pipeline, runs[i].script, capabilities);
            int rc = world_continue(&w, &how, run, waits ? &answer : NULL, &err);
            ck_assert_msg(rc == 0, "point %d: %s", n, rc < 0 ? rv_kit_err_take(err) : "");
            rc = rv_engine_wait(w.engine, w.exec, &err);
            ck_assert_msg(rc == 0, "point %d: %s", n, rc < 0 ? rv_kit_err_take(err) : "");
            char *got = essence(&w);
            ck_assert_msg(strcmp(got, want) == 0, "point %d:\n%s\n%s", n, got, want);
            free(got);
            world_fini(&w);
        }
    }
    rv_store_close(how.store);
    return n < 2 || fired;
}

START_TEST(a_run_that_died_at_any_point_ends_as_if_it_had_not)
{
    char *want = uninterrupted(_i);
    int n = 0;

    while (die_and_recover(_i, n, want))
        n++;
    ck_assert_int_gt(n, 1);
    free(want);
}
END_TEST

Suite *recover_suite(void)
{
    Suite *s = suite_create("recover");
    TCase *tc = tcase_create("recover");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_run_that_died_at_any_point_ends_as_if_it_had_not, 0, RV_COUNT(runs));
    suite_add_tcase(s, tc);
    return s;
}

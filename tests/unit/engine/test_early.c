/* A question of a branch is told, and answered, while other branches still run. Rule: graph 7. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"

#define GROUP                                                                                                          \
    "name: early\nmodels: {m: scripted}\nagents:\n  - {name: open, default_next: [a, b, slow]}\n"                      \
    "  - {name: a, ask: {question: A?}, default_next: a2}\n  - {name: a2, default_next: meet}\n"                       \
    "  - {name: b, ask: {question: B?}, default_next: b2}\n  - {name: b2, default_next: meet}\n"                       \
    "  - {name: slow, has_llm: true, model_role: m, default_next: meet}\n  - {name: meet, join: all}\n"
#define SLOW "models: {slow: [{json: {v: 1}, delay_ms: 1000}]}"

struct seen {
    char ids[4][RV_ID_MAX], events[1000];
    int n_asked, n_over;
    int wanted;       /* answers when so many were asked, the last one first; 0: never */
    const char *with; /* the choice */
};

static void answer_all(struct seen *s, rv_exec *x)
{
    for (int i = s->n_asked; i-- > 0;) {
        const struct rv_response r = {.interrupt_id = rv_str_of(s->ids[i]), .choice = rv_str_of(s->with)};
        rv_err *err = NULL;

        ck_assert_int_eq(rv_exec_answer(x, &r, NULL), 0);
        ck_assert_int_eq(rv_exec_answer(x, &r, &err), RV_E_STATE); /* it is on its way */
        ck_assert_ptr_nonnull(strstr(rv_err_text(err), "has an answer already"));
        rv_err_free(err);
    }
}

static void on_question(void *self, rv_exec *x, const struct rv_pending *q)
{
    struct seen *s = self;

    ck_assert_int_lt(s->n_asked, 4);
    snprintf(s->ids[s->n_asked++], RV_ID_MAX, "%s", q->id);
    if (s->n_asked == s->wanted)
        answer_all(s, x);
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct seen *s = self;
    char *text = rv_str_dup(line);
    json_object *json = rv_kit_json(text);
    const char *stage = "";
    size_t len = strlen(s->events);

    if (e->emit == RV_EMIT_STAGE_STARTED || e->emit == RV_EMIT_LLM_RESULT) {
        RV_IGNORE(!rv_json_get_text(json, "stage", &stage), "it has one");
        snprintf(s->events + len, sizeof s->events - len, "%s%s ", stage, e->emit == RV_EMIT_LLM_RESULT ? "!" : "");
    }
    json_object_put(json);
    free(text);
}

static void on_ended(void *self, rv_exec *x, int rc, const rv_err *err)
{
    (void)x;
    (void)err;
    ck_assert_int_eq(rc, 0);
    ((struct seen *)self)->n_over++;
}

static struct rv_observer observer(struct seen *s)
{
    return (struct rv_observer){.on_event = on_event, .on_question = on_question, .on_ended = on_ended, .self = s};
}

static rv_exec *start(struct world *w, rv_engine **e, struct seen *s)
{
    const struct rv_engine_opts opts = {.virtual_time = true, .virtual_start_us = 1700000000000000, .workers = 1};
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    rv_exec *out = NULL;

    world_load(w, GROUP, SLOW, NULL);
    ck_assert_int_eq(rv_engine_new(&opts, e, NULL), 0);
    x.pipeline = w->pipeline;
    x.script = w->script;
    x.observer = observer(s);
    ck_assert_int_eq(rv_engine_start(*e, &x, world_envelope("x", rv_engine_now_us(*e)), NULL, &out, NULL), 0);
    return out;
}

START_TEST(questions_are_answered_while_a_call_of_another_branch_is_under_way)
{
    struct seen s = {.wanted = 2, .with = "yes"};
    struct world w;
    rv_engine *e = NULL;

    rv_exec *x = start(&w, &e, &s);
    ck_assert_int_eq(rv_engine_wait(e, x, NULL), 0);
    ck_assert_int_eq(rv_exec_status(x), RV_RUN_COMPLETED);
    ck_assert_str_eq(s.events, "open a b slow b2 a2 slow! meet "); /* the later question was answered first */
    ck_assert_int_eq(s.n_asked, 2);
    ck_assert_int_eq(s.n_over, 1);
    rv_exec_free(x);
    rv_engine_free(e);
    world_fini(&w);
}
END_TEST

START_TEST(what_does_not_fit_is_refused_and_the_question_stays_open)
{
    static const struct {
        const char *id, *choice;
        int code;
    } bad[] = {{"int_unknown", "yes", RV_E_NOT_FOUND}, {NULL, "perhaps", RV_E_INVALID}, {NULL, NULL, RV_E_INVALID}};
    struct seen s = {0};
    struct world w;
    rv_engine *e = NULL;

    rv_exec *x = start(&w, &e, &s);
    ck_assert_int_eq(rv_engine_wait(e, x, NULL), 0);
    ck_assert_int_eq(rv_exec_status(x), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(s.n_asked, 2); /* each once, though the run has paused since */
    for (size_t i = 0; i < RV_COUNT(bad); i++) {
        const struct rv_response r = {.interrupt_id = rv_str_of(bad[i].id), .choice = rv_str_of(bad[i].choice)};
        ck_assert_int_eq(rv_exec_answer(x, &r, NULL), bad[i].code);
    }
    const struct rv_response one = {.interrupt_id = rv_str_of(s.ids[1]), .choice = RV_STR_LIT("no")};
    ck_assert_int_eq(rv_exec_answer(x, &one, NULL), 0);
    const struct rv_response other = {.choice = RV_STR_LIT("no")};
    const struct rv_response odd = {.choice = RV_STR_LIT("perhaps")};
    ck_assert_int_eq(rv_exec_answer(x, &odd, NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_exec_answer(x, &other, NULL), 0); /* before the first one was performed */
    ck_assert_int_eq(rv_engine_wait(e, x, NULL), 0);
    ck_assert_int_eq(rv_exec_status(x), RV_RUN_COMPLETED);
    rv_exec_free(x);
    rv_engine_free(e);
    world_fini(&w);
}
END_TEST

START_TEST(a_call_that_was_not_asked_for_yet_has_no_question)
{
    const struct rv_response r = {.choice = RV_STR_LIT("yes")};
    struct seen s = {.wanted = 2, .with = "yes"};
    struct world w;
    rv_engine *e = NULL;

    rv_exec *x = start(&w, &e, &s);
    ck_assert_int_eq(rv_engine_wait(e, x, NULL), 0);
    ck_assert_int_eq(rv_exec_answer(x, &r, NULL), RV_E_STATE); /* the run is over */
    rv_exec_free(x);
    rv_engine_free(e);
    world_fini(&w);
}
END_TEST

/* No one answers `a` in time: its branch goes on while the call is under way. */
START_TEST(a_question_of_a_branch_expires_while_others_run)
{
    const struct rv_engine_opts opts = {.virtual_time = true, .virtual_start_us = 1700000000000000, .workers = 1};
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    struct seen s = {0};
    rv_engine *e = NULL;
    rv_exec *run = NULL;
    struct world w;

    world_load(&w,
               "name: late\nmodels: {m: scripted}\nagents:\n  - {name: open, default_next: [a, slow]}\n"
               "  - {name: a, ask: {question: A?, expires_seconds: 1}, on_answer: {timeout: a2}, default_next: meet}\n"
               "  - {name: a2, default_next: meet}\n"
               "  - {name: slow, has_llm: true, model_role: m, default_next: meet}\n  - {name: meet, join: all}\n",
               "models: {slow: [{json: {v: 1}, delay_ms: 5000}]}", NULL);
    ck_assert_int_eq(rv_engine_new(&opts, &e, NULL), 0);
    x.pipeline = w.pipeline;
    x.script = w.script;
    x.observer = observer(&s);
    ck_assert_int_eq(rv_engine_start(e, &x, world_envelope("x", rv_engine_now_us(e)), NULL, &run, NULL), 0);
    ck_assert_int_eq(rv_engine_wait(e, run, NULL), 0);
    ck_assert_int_eq(rv_exec_status(run), RV_RUN_COMPLETED);
    ck_assert_str_eq(s.events, "open a slow a2 slow! meet ");
    rv_exec_free(run);
    rv_engine_free(e);
    world_fini(&w);
}
END_TEST

/* A stage that runs a pipeline has a second; the call inside would take an hour. Rule: graph 15. */
START_TEST(an_inner_pipeline_ends_when_the_time_of_its_stage_does)
{
    const struct rv_engine_opts opts = {.virtual_time = true, .virtual_start_us = 1700000000000000, .workers = 1};
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    rv_findings *findings = rv_findings_new();
    char *dir = rv_kit_tmpdir(), path[600];
    struct rv_pipeline *p = NULL;
    rv_script *script = NULL;
    rv_engine *e = NULL;
    rv_exec *run = NULL;

    snprintf(path, sizeof path, "%s/inner.yaml", dir);
    rv_kit_write(path, "name: inner\nmodels: {m: scripted}\nagents:\n"
                       "  - {name: fork, default_next: [x, y]}\n"
                       "  - {name: x, has_llm: true, model_role: m, default_next: meet}\n"
                       "  - {name: y, has_llm: true, model_role: m, default_next: meet}\n"
                       "  - {name: meet, join: all}\n");
    ck_assert_int_eq(rv_pipeline_parse(RV_STR_LIT("name: t\nagents:\n"
                                                  "  - {name: sub, pipeline: inner.yaml, timeout_seconds: 1, "
                                                  "error_next: late}\n"
                                                  "  - {name: late, set: {code: error.code}}\n"),
                                       "t.yaml", dir, findings, &p, NULL),
                     0);
    ck_assert(p && p->is_sound);
    ck_assert_int_eq(
        rv_script_parse(RV_STR_LIT("models: {sub/x: [{json: {}, delay_ms: 3600000}], sub/y: [{json: {}}]}"), "s.yaml",
                        findings, &script, NULL),
        0);
    ck_assert_int_eq(rv_engine_new(&opts, &e, NULL), 0);
    x.pipeline = p;
    x.script = script;
    ck_assert_int_eq(rv_engine_start(e, &x, world_envelope("x", rv_engine_now_us(e)), NULL, &run, NULL), 0);
    ck_assert_int_eq(rv_engine_wait(e, run, NULL), 0);
    ck_assert_int_eq(rv_engine_now_us(e) - opts.virtual_start_us, 1000000);
    char *said = rv_kit_text(rv_envelope_output(rv_exec_envelope(run), RV_STR_LIT("late"), NULL));
    ck_assert_str_eq(said, "{\"code\":\"TimeoutError\"}");
    free(said);
    rv_exec_free(run);
    rv_engine_free(e);
    rv_script_free(script);
    rv_pipeline_free(p);
    rv_findings_free(findings);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* --- with a journal --- */

/* The process dies at its second record: questions are open, and a call is under way. */
START_TEST(an_answer_to_a_run_whose_process_died_is_told_after_its_recovery)
{
    struct how how = {.start_us = 1700000000000000};
    const struct rv_response yes = {.choice = RV_STR_LIT("yes")};
    const struct rv_store_scope all = {0};
    struct rv_run_row row = {0};
    struct world w;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &how.store, NULL), 0);
    world_die(&how, GROUP, SLOW, 2);
    how.start_us += INT64_C(3600000000);
    world_load(&w, GROUP, SLOW, NULL);
    ck_assert_int_eq(world_continue(&w, &how, world_run_id(), &yes, NULL), 0);
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, NULL), 0);
    ck_assert_int_eq(rv_exec_status(w.exec), RV_RUN_INTERRUPTED); /* for the other one */
    ck_assert_int_eq(rv_store_get_run(how.store, &all, world_run_id(), &row, NULL), 0);
    ck_assert_int_eq(row.n_pending, 1);
    rv_run_row_fini(&row);
    char *visited = world_visited(&w);
    ck_assert_str_eq(visited, "a2");
    free(visited);
    world_fini(&w);
    world_load(&w, GROUP, SLOW, NULL); /* a third process goes on with it, and replays the answer before the pause */
    how.start_us += INT64_C(3600000000);
    ck_assert_int_eq(world_continue(&w, &how, world_run_id(), &yes, NULL), 0);
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, NULL), 0);
    ck_assert_int_eq(rv_exec_status(w.exec), RV_RUN_COMPLETED);
    world_fini(&w);
    rv_store_close(how.store);
}
END_TEST

Suite *early_suite(void)
{
    Suite *suite = suite_create("early");
    TCase *tc = tcase_create("early");

    tcase_add_test(tc, questions_are_answered_while_a_call_of_another_branch_is_under_way);
    tcase_add_test(tc, what_does_not_fit_is_refused_and_the_question_stays_open);
    tcase_add_test(tc, a_call_that_was_not_asked_for_yet_has_no_question);
    tcase_add_test(tc, a_question_of_a_branch_expires_while_others_run);
    tcase_add_test(tc, an_inner_pipeline_ends_when_the_time_of_its_stage_does);
    tcase_add_test(tc, an_answer_to_a_run_whose_process_died_is_told_after_its_recovery);
    suite_add_tcase(suite, tc);
    return suite;
}

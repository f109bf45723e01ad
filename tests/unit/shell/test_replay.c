/* What was recorded plays back to the same bytes, without script, capability or clock. */
#include "tests/unit/shell/suites.h"

#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"

static const char *const capabilities[] = {"hello", "slow", NULL};

static const struct {
    const char *pipeline, *script;
    bool scripted_all; /* stages of the script, for the run's options */
} runs[] = {
    {"name: s\nagents: [{name: a, default_next: b}, {name: b}]", NULL, false},
    {"name: l\nmodels: {default: scripted}\nagents:\n  - {name: a, has_llm: true, model_role: default, max_retries: "
     "2}\n",
     "models: {a: [{error: {kind: overloaded}}, {json: {ok: 1}, usage: {input_tokens: 3, output_tokens: 4}}]}", false},
    {"name: p\ndefault_run_mode: parallel\nmodels: {default: scripted}\nagents:\n"
     "  - {name: a, has_llm: true, model_role: default}\n  - {name: b, has_llm: true, model_role: default}\n"
     "  - {name: c, requires: [a, b]}\n",
     "models: {a: [{json: {}, delay_ms: 20}], b: [{json: {x: 'q\"\\u00e9'}, delay_ms: 10}]}", false},
    {"name: f\nagents: [{name: a, pre_process: slow.doze}, {name: b, error_next: a}]", NULL, false},
};

/* The live run's catalog knows the tools of plugins; a replay is given the same. */
START_TEST(a_recording_plays_back_to_the_same_effects_and_state)
{
    struct how how = {.capabilities = capabilities, .saves = true};
    struct world w;
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    struct rv_catalog catalog;
    rv_buf effects = RV_BUF_INIT(1 << 24), state = RV_BUF_INIT(1 << 24);
    rv_err *err = NULL;
    char *live;
    bool flags[16];

    world_run(&w, &how, runs[_i].pipeline, runs[_i].script);
    live = world_state(&w);
    catalog = rv_plugins_catalog(w.plugins);
    opts.saves = true;
    opts.max_parallel = 64;
    if (w.script) {
        rv_script_stages(w.script, w.pipeline, flags);
        opts.scripted_stages = flags;
    }
    int rc = rv_replay(w.pipeline, &catalog, &opts, world_envelope("what is it?", w.started_us), rv_buf_str(&w.inputs),
                       &effects, &state, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? rv_kit_err_take(err) : "");
    ck_assert_str_eq(rv_buf_cstr(&effects), rv_buf_cstr(&w.effects));
    ck_assert_str_eq(rv_buf_cstr(&state), live);
    rv_buf_fini(&effects);
    rv_buf_fini(&state);
    free(live);
    world_fini(&w);
}
END_TEST

START_TEST(a_recording_goes_on_after_an_answer)
{
    static const char pipeline[] = "name: q\nagents: [{name: ask}]";
    static const char script[] =
        "stages: {ask: [{raise: {kind: clarification, question: which?}, outcome: clarify}, {output: {done: 1}}]}\n"
        "answers: [{text: this, data: {n: 1}, delay_ms: 5}]";
    struct how how = {0};
    struct world w;
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    rv_buf effects = RV_BUF_INIT(1 << 24), state = RV_BUF_INIT(1 << 24);
    const bool flags[1] = {true};
    char *live;

    world_run(&w, &how, pipeline, script);
    live = world_state(&w);
    opts.scripted_stages = flags;
    ck_assert_int_eq(rv_replay(w.pipeline, &rv_catalog_empty, &opts, world_envelope("what is it?", w.started_us),
                               rv_buf_str(&w.inputs), &effects, &state, NULL),
                     0);
    ck_assert_str_eq(rv_buf_cstr(&effects), rv_buf_cstr(&w.effects));
    ck_assert_str_eq(rv_buf_cstr(&state), live);
    rv_buf_fini(&effects);
    rv_buf_fini(&state);
    free(live);
    world_fini(&w);
}
END_TEST

static const struct {
    const char *recording;
    int rc;
    const char *text;
} broken[] = {
    {"{\"event\":\"start\",\"now_us\":1}\n\n{\"event\":", RV_E_PARSE, "line 3 of the recording"},
    {"{\"event\":\"starts\",\"now_us\":1}\n", RV_E_INVALID, "line 1 of the recording"},
    {"{\"event\":\"tool_done\",\"now_us\":1,\"call_id\":1,\"reply\":\"\"}\n", RV_E_STATE, "line 1 of the recording"},
};

START_TEST(a_broken_recording_names_its_line)
{
    struct world w;
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    rv_buf effects = RV_BUF_INIT(1 << 20), state = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;
    char *text;

    world_load(&w, "name: s\nagents: [{name: a}]", NULL, NULL);
    ck_assert_int_eq(rv_replay(w.pipeline, &rv_catalog_empty, &opts, world_envelope("x", 1),
                               rv_str_of(broken[_i].recording), &effects, &state, &err),
                     broken[_i].rc);
    text = rv_kit_err_take(err);
    ck_assert_msg(strstr(text, broken[_i].text), "%s", text);
    free(text);
    rv_buf_fini(&effects);
    rv_buf_fini(&state);
    world_fini(&w);
}
END_TEST

Suite *replay_suite(void)
{
    Suite *suite = suite_create("replay");
    TCase *tc = tcase_create("replay");

    tcase_set_timeout(tc, 30);
    tcase_add_loop_test(tc, a_recording_plays_back_to_the_same_effects_and_state, 0, RV_COUNT(runs));
    tcase_add_test(tc, a_recording_goes_on_after_an_answer);
    tcase_add_loop_test(tc, a_broken_recording_names_its_line, 0, RV_COUNT(broken));
    suite_add_tcase(suite, tc);
    return suite;
}

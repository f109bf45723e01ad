/* What was recorded plays back to the same bytes, without script, capability or clock. */
#include "tests/unit/engine/suites.h"

#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"

static const char *const capabilities[] = {"hello", "late", NULL};

static const struct {
    const char *pipeline, *script;
} runs[] = {
    {"name: s\nagents: [{name: a, default_next: b}, {name: b}]", NULL},
    {"name: l\nmodels: {default: scripted}\nagents:\n  - {name: a, has_llm: true, model_role: default, max_retries: "
     "2}\n",
     "models: {a: [{error: {kind: overloaded}}, {json: {ok: 1}, usage: {input_tokens: 3, output_tokens: 4}}]}"},
    {"name: p\ndefault_run_mode: parallel\nmodels: {default: scripted}\nagents:\n"
     "  - {name: a, has_llm: true, model_role: default}\n  - {name: b, has_llm: true, model_role: default}\n"
     "  - {name: c, requires: [a, b]}\n",
     "models: {a: [{json: {}, delay_ms: 20}], b: [{json: {x: 'q\"\\u00e9'}, delay_ms: 10}]}"},
    {"name: f\nagents: [{name: a, pre_process: late.hook}, {name: b, error_next: a}]", NULL},
    {"name: q\nagents: [{name: ask}]",
     "stages: {ask: [{raise: {kind: clarification, question: which?}, outcome: clarify}, {output: {done: 1}}]}\n"
     "answers: [{text: this, data: {n: 1}, delay_ms: 5}]"},
};

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    (void)record;
    (void)ev;
    (void)run;
    (void)err;
    for (size_t i = 0; effects && i < effects->n; i++) {
        rv_jw w = rv_jw_on(self);
        rv_effect_write_json(effects, &effects->items[i], &w);
        rv_buf_putc(self, '\n');
    }
    return 0;
}

/* The live run's catalog knows the tools of plugins; a replay is given the same. */
/* Proves 11.1: Everything that is iterated has a defined order
 * Proves 11.2/replay */
START_TEST(a_journal_plays_back_to_the_same_effects_and_state)
{
    const struct rv_store_scope all = {NULL, NULL};
    struct how how = {.capabilities = capabilities};
    struct world w;
    struct rv_catalog catalog;
    struct rv_replayed replayed;
    rv_buf effects = RV_BUF_INIT(1 << 24), state = RV_BUF_INIT(1 << 24);
    rv_err *err = NULL;

    ck_assert_int_eq(rv_store_open("memory:", &(struct rv_store_opts){0}, &how.store, NULL), 0);
    world_run(&w, &how, runs[_i].pipeline, runs[_i].script);
    char *live = world_state(&w);
    catalog = rv_plugins_catalog(w.plugins);
    const struct rv_replay_opts opts = {
        .pipeline = w.pipeline, .catalog = &catalog, .on_step = on_step, .self = &effects};
    int rc = rv_journal_replay(how.store, &all, rv_journal_run(w.journal), &opts, &replayed, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? rv_kit_err_take(err) : "");
    rv_envelope_write_state(rv_run_envelope(replayed.run), &state);
    ck_assert_str_eq(rv_buf_cstr(&effects), rv_buf_cstr(&w.effects));
    ck_assert_str_eq(rv_buf_cstr(&state), live);
    rv_replayed_fini(&replayed);
    rv_buf_fini(&effects);
    rv_buf_fini(&state);
    free(live);
    world_fini(&w);
    rv_store_close(how.store);
}
END_TEST

Suite *replay_suite(void)
{
    Suite *suite = suite_create("replay");
    TCase *tc = tcase_create("replay");

    tcase_add_loop_test(tc, a_journal_plays_back_to_the_same_effects_and_state, 0, RV_COUNT(runs));
    suite_add_tcase(suite, tc);
    return suite;
}

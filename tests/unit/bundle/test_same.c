/* Every pipeline of the project out of its bundle: explained the same, and told the same, it does the same. */
#include "tests/unit/bundle/world.h"

#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/engine.h"

#define LINES    ((size_t)64 << 20)
#define START_US 1700000000000000

static const char *const paths[] = {"ask-docs", "clarify", "confirm",  "error-route",
                                    "hooks",    "loop",    "parallel", "policies"};

static void load(struct world *w, const char *name)
{
    rv_buf path = RV_BUF_INIT(4096);

    rv_buf_printf(&path, RV_SOURCE_DIR "/pipelines/%s.yaml", name);
    setenv("REEVE_MODEL", "openai:gpt", 1); /* ask-docs has an optional role */
    world_load(w, rv_buf_cstr(&path));
    rv_buf_fini(&path);
}

START_TEST(it_is_explained_the_same)
{
    struct world w;
    char *text, *want, *got;

    load(&w, paths[_i]);
    text = world_bundle(&w, NULL);
    unsetenv("REEVE_MODEL");
    rv_bundle *b = world_open(text, true);
    want = world_explained(w.pipeline);
    got = world_explained(rv_bundle_pipeline(b));
    ck_assert_str_eq(want, got);
    ck_assert_str_eq(w.pipeline->dir, rv_bundle_pipeline(b)->dir);
    rv_bundle_free(b);
    free(want);
    free(got);
    free(text);
    world_fini(&w);
}
END_TEST

/* --- What a run was told, and what it asked for --- */

struct recording {
    const struct rv_pipeline *pipeline;
    rv_buf inputs, effects; /* JSON lines */
    rv_buf state;
    size_t n_fits;
};

static void on_input(void *self, const struct rv_event *ev)
{
    struct recording *r = self;
    rv_jw w = rv_jw_on(&r->inputs);

    rv_event_write_json(ev, &w);
    rv_buf_putc(&r->inputs, '\n');
}

static void add_effect(struct recording *r, const struct rv_effects *all, const struct rv_effect *e)
{
    rv_jw w = rv_jw_on(&r->effects);

    rv_effect_write_json(all, e, &w);
    rv_buf_putc(&r->effects, '\n');
}

static void on_effect(void *self, const struct rv_effects *all, const struct rv_effect *e)
{
    add_effect(self, all, e);
}

/* Wherever a run stands, it fits the pipeline that it is of. */
static void on_state(void *self, rv_str text)
{
    struct recording *r = self;
    struct rv_rand_state seed;
    json_object *state = NULL;
    rv_envelope *env = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_json_parse(text, NULL, &state, NULL), 0);
    ck_assert_int_eq(rv_envelope_load(state, rv_rand_seeded(&seed, 1), START_US, &env, NULL), 0);
    if (!rv_envelope_fields(env)->terminated) { /* by a bound, which was passed then */
        ck_assert_msg(rv_bundle_fits(r->pipeline, env, &err) == 0, "%s", rv_err_text(err));
        r->n_fits++;
    }
    rv_envelope_free(env);
    json_object_put(state);
}

static void recording_fini(struct recording *r)
{
    rv_buf_fini(&r->inputs);
    rv_buf_fini(&r->effects);
    rv_buf_fini(&r->state);
}

static struct recording recording_new(void)
{
    return (struct recording){.inputs = RV_BUF_INIT(LINES), .effects = RV_BUF_INIT(LINES), .state = RV_BUF_INIT(LINES)};
}

static rv_envelope *envelope(const struct rv_test_config *test)
{
    const char *input = "how is an error wrapped?";
    struct rv_envelope_seed seed = {.user_id = RV_STR_LIT("ada")};
    struct rv_rand_state state;
    rv_envelope *env = NULL;

    if (test && test->input) {
        (void)!rv_json_get_text(test->input, "raw_input", &input);
        seed.metadata = rv_json_get_obj(test->input, "metadata");
    }
    seed.raw_input = rv_str_of(input);
    ck_assert_int_eq(rv_envelope_new(&seed, rv_rand_seeded(&state, 7), START_US, &env, NULL), 0);
    return env;
}

/* Run it in an engine, with its capabilities and script. False: it cannot begin, for want of a script. */
static bool record(const struct world *w, const struct rv_test_config *test, struct recording *r)
{
    const struct rv_engine_opts opts = {.workers = 2, .virtual_time = true, .virtual_start_us = START_US};
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    rv_engine *engine = NULL;
    rv_exec *exec = NULL;

    r->pipeline = x.pipeline = w->pipeline;
    x.plugins = w->plugins;
    x.script = w->script;
    x.answer_from_script = w->script != NULL;
    x.saves = RV_SAVES_EACH;
    x.on_input = on_input;
    x.on_effect = on_effect;
    x.on_state = on_state;
    x.self = r;
    ck_assert_int_eq(rv_engine_new(&opts, &engine, NULL), 0);
    int rc = rv_engine_start(engine, &x, envelope(test), NULL, &exec, NULL);
    if (rc == RV_E_INVALID && !w->script) {
        rv_engine_free(engine);
        return false;
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(rv_engine_wait(engine, exec, NULL), 0);
    rv_envelope_write_state(rv_exec_envelope(exec), &r->state);
    rv_exec_free(exec);
    ck_assert(rv_engine_settle(engine, 600000));
    rv_engine_free(engine);
    return true;
}

static void play_line(rv_run *run, rv_str line, struct recording *r)
{
    struct rv_effects fx = {0};
    struct rv_event ev;
    json_object *json = NULL;

    ck_assert_int_eq(rv_json_parse(line, NULL, &json, NULL), 0);
    ck_assert_int_eq(rv_event_read_json(json, &ev, NULL), 0);
    ck_assert_int_eq(rv_run_step(run, &ev, &fx, NULL), 0);
    for (size_t i = 0; i < fx.n; i++)
        add_effect(r, &fx, &fx.items[i]);
    rv_effects_fini(&fx);
    json_object_put(json);
}

/* Tell a new run of that pipeline what the first one was told. */
static void play(const struct rv_pipeline *p, const struct rv_catalog *catalog, rv_script *script,
                 const struct rv_test_config *test, const struct recording *from, struct recording *r)
{
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    bool *flags = calloc(p->n_agents, sizeof *flags);
    rv_run *run = NULL;

    opts.saves = RV_SAVES_EACH;
    opts.max_parallel = 64;
    if (script) {
        rv_script_mark_stages(script, p, flags);
        opts.scripted_stages = flags;
        opts.is_script_blind = rv_script_is_blind(script);
    }
    ck_assert_int_eq(rv_run_new(p, catalog, &opts, envelope(test), &run, NULL), 0);
    for (const char *at = rv_buf_cstr(&from->inputs); *at; at = strchr(at, '\n') + 1)
        play_line(run, (rv_str){at, strcspn(at, "\n")}, r);
    rv_envelope_write_state(rv_run_envelope(run), &r->state);
    rv_run_free(run);
    free(flags);
}

static void add_script(struct world *w, const struct rv_test_config *test)
{
    rv_findings *f = rv_findings_new();
    rv_script *s = NULL;

    if (test && test->inline_script)
        ck_assert_int_eq(rv_script_read_node(test->inline_script, f, &s, NULL), 0);
    else if (test && test->script)
        ck_assert_int_eq(rv_script_read(test->script, f, &s, NULL), 0);
    ck_assert_uint_eq(rv_findings_n_errors(f), 0);
    if (s)
        world_script(w, s);
    rv_findings_free(f);
}

/* Each test of each pipeline, and a run without any. False: the pipeline has no such test. */
static bool try_test(const char *name, size_t which, size_t *n_calls, size_t *n_fits)
{
    struct world w;
    struct recording live = recording_new(), again = recording_new();
    const struct rv_test_config *test;
    bool exists;
    char *text;

    load(&w, name);
    exists = which <= w.pipeline->n_tests;
    test = which < w.pipeline->n_tests ? &w.pipeline->tests[which] : NULL;
    if (exists) {
        add_script(&w, test);
        text = world_bundle(&w, NULL);
    }
    if (exists && !record(&w, test, &live)) {
        free(text);
    } else if (exists) {
        unsetenv("REEVE_MODEL");
        rv_bundle *b = world_open(text, true);
        struct rv_catalog catalog = rv_bundle_catalog(b);
        play(rv_bundle_pipeline(b), &catalog, rv_bundle_script(b), test, &live, &again);
        ck_assert_str_eq(rv_buf_cstr(&again.effects), rv_buf_cstr(&live.effects));
        ck_assert_str_eq(rv_buf_cstr(&again.state), rv_buf_cstr(&live.state));
        for (const char *at = rv_buf_cstr(&live.effects); (at = strstr(at, "\"call_id\"")) != NULL; at++)
            ++*n_calls;
        *n_fits += live.n_fits;
        rv_bundle_free(b);
        free(text);
    }
    recording_fini(&live);
    recording_fini(&again);
    world_fini(&w);
    return exists;
}

START_TEST(told_the_same_it_does_the_same)
{
    size_t n = 0, n_calls = 0, n_fits = 0;

    while (try_test(paths[_i], n, &n_calls, &n_fits))
        n++;
    ck_assert_uint_gt(n, 1);
    ck_assert_uint_gt(n_calls, 0);
    ck_assert_uint_gt(n_fits, 0);
}
END_TEST

Suite *same_suite(void)
{
    Suite *suite = suite_create("bundle_same");
    TCase *tc = tcase_create("same");

    tcase_add_loop_test(tc, it_is_explained_the_same, 0, RV_COUNT(paths));
    tcase_add_loop_test(tc, told_the_same_it_does_the_same, 0, RV_COUNT(paths));
    suite_add_tcase(suite, tc);
    return suite;
}

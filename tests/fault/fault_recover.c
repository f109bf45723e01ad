/* Every allocation of two lives of a run fails once: one process starts it and dies in the middle, the next one goes on
 * with it and answers what it waits for. No crash, no leak, RV_E_NOMEM, unless the run itself could go on without. */
#include <check.h>
#include <stdlib.h>

#include "coreengine/engine/engine.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define START_US INT64_C(1700000000000000)
#define RUN      "env_1"

static const char pipeline_text[] = "name: small\nmodels: {default: scripted}\nagents:\n"
                                    "  - {name: plan, default_next: act}\n"
                                    "  - {name: act, has_tools: true, tool_access: all, default_next: judge}\n"
                                    "  - {name: judge, has_llm: true, model_role: default, default_next: end}\n";
static const char script_text[] =
    "repeat: false\nstages: {plan: [{output: {steps: [{tool: look, parameters: {q: x}}, {tool: look}]}}]}\n"
    "models: {judge: [{json: {outcome: clarify, question: which?}}, {json: {verdict: good}}]}\n"
    "tools: {look: {risk: read_only, calls: [{result: {n: 1}}, {result: {n: 2}}]}}\n";
static const struct rv_store_scope all = {NULL, NULL};

struct parts {
    struct rv_pipeline *pipeline;
    const struct rv_node *script;
};

static int journal(rv_store *store, const struct rv_pipeline *p, const bool *flags, rv_err **err)
{
    json_object *state = NULL, *script_at = NULL;
    struct rv_rand_state rand;
    rv_envelope *env = NULL;
    char hash[RV_STORE_HASH_MAX];

    int rc = rv_json_parse(RV_STR_LIT("{\"envelope_id\":\"" RUN "\"}"), NULL, &state, err);
    if (rc == 0)
        rc = rv_envelope_load(state, rv_rand_seeded(&rand, 1), START_US, &env, err);
    json_object_put(state);
    if (rc == 0)
        rc = rv_store_put_blob(store, RV_STR_LIT("{}"), hash, err);
    if (rc == 0)
        rc = rv_json_parse(RV_STR_LIT("{\"tools\":{\"look\":0}}"), NULL, &script_at, err);
    const struct rv_journal_start start = {.bundle = hash,
                                           .pipeline = p,
                                           .begin = {.mode = RV_UNSET,
                                                     .has_script = true,
                                                     .max_parallel = RV_ENGINE_MAX_PARALLEL,
                                                     .scripted = flags,
                                                     .script_at = script_at},
                                           .env = env,
                                           .now_us = START_US};
    if (rc == 0)
        rc = rv_journal_create(store, &start, NULL, err);
    json_object_put(script_at);
    rv_envelope_free(env);
    return rc;
}

/* One life, and the run is not touched again for a minute. */
static int live(const struct parts *parts, rv_store *store, int n, const struct rv_response *answer, bool *over,
                rv_err **err)
{
    const struct rv_engine_opts opts = {
        .virtual_time = true, .virtual_start_us = START_US + n * 60000000, .workers = 1, .store = store, .owner = "me"};
    struct rv_exec_opts x_opts = RV_EXEC_OPTS_INIT;
    rv_findings *f = rv_findings_new();
    rv_script *script = NULL;
    rv_journal *j = NULL;
    rv_engine *e = NULL;
    rv_exec *x = NULL;

    int rc = f ? rv_script_read_node(parts->script, f, &script, err) : RV_E_NOMEM;
    if (rc == 0)
        rc = rv_engine_new(&opts, &e, err);
    if (rc == 0)
        rc = rv_journal_open(store, &all, RUN, &(struct rv_journal_claim){.owner = "me", .now_us = rv_engine_now_us(e)},
                             &j, err);
    x_opts.pipeline = parts->pipeline;
    x_opts.script = script;
    x_opts.journal = j;
    if (rc == 0)
        rc = rv_engine_continue(e, &x_opts, &all, answer, &x, err);
    if (rc == 0 && n > 0) /* the first life dies with all it has asked for */
        rc = rv_engine_wait(e, x, err);
    *over = rc == 0 && rv_exec_has_ended(x) && rv_exec_status(x) == RV_RUN_COMPLETED;
    rv_exec_free(x);
    rv_engine_free(e);
    rv_journal_free(j);
    rv_script_free(script);
    rv_findings_free(f);
    return rc;
}

static const bool flags[] = {true, false, false};

struct reader {
    const struct parts *parts;
    rv_script *script;
};

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct reader *r = self;
    int rc = 0;

    (void)record;
    (void)run;
    for (size_t i = 0; ev && i < effects->n && rc == 0; i++)
        rc = rv_engine_pass_script(r->script, r->parts->pipeline, flags, &effects->items[i], err);
    return rc;
}

/* Who reads the run brings its script to where it stands, and takes down its place. */
static int follow(const struct parts *parts, rv_store *store, rv_err **err)
{
    rv_findings *f = rv_findings_new();
    struct reader reader = {.parts = parts};
    rv_follower *follower = NULL;
    json_object *at = NULL;

    int rc = f ? rv_script_read_node(parts->script, f, &reader.script, err) : RV_E_NOMEM;
    if (rc == 0) {
        const struct rv_catalog catalog = rv_script_catalog(reader.script, &rv_catalog_empty);
        const struct rv_replay_opts opts = {
            .pipeline = parts->pipeline, .catalog = &catalog, .on_step = on_step, .self = &reader};
        rc = rv_journal_follow(store, &all, RUN, &opts, &follower, err);
        if (rc == 0)
            rc = rv_follower_feed(follower, err);
        rv_follower_free(follower);
    }
    if (rc == 0)
        rc = rv_script_build_position(reader.script, &at, err);
    if (rc == 0)
        rc = rv_script_set_position(reader.script, at, err);
    json_object_put(at);
    rv_script_free(reader.script);
    rv_findings_free(f);
    return rc;
}

static int scenario(const struct parts *parts, bool *over)
{
    const struct rv_response answer = {.text = RV_STR_LIT("this")};
    rv_store *store = NULL;
    rv_err *err = NULL;

    *over = false;
    int rc = rv_store_open("memory:", NULL, &store, &err);
    if (rc == 0)
        rc = journal(store, parts->pipeline, flags, &err);
    for (int n = 0; rc == 0 && n < 3; n++)
        rc = live(parts, store, n, n == 2 ? &answer : NULL, over, &err);
    if (rc == 0)
        rc = follow(parts, store, &err);
    rv_store_close(store);
    rv_err_free(err);
    return rc;
}

START_TEST(any_allocation_may_fail)
{
    rv_findings *f = rv_findings_new();
    struct parts parts = {0};
    rv_yaml *doc = NULL;
    bool over = false;
    size_t n, n_lived = 0;

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(pipeline_text), "p.yaml", ".", f, &parts.pipeline, NULL), 0);
    ck_assert_int_eq(rv_yaml_parse(rv_str_of(script_text), "s.yaml", f, &doc, NULL), 0);
    ck_assert_uint_eq(rv_findings_n_errors(f), 0);
    parts.script = rv_yaml_root(doc);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(scenario(&parts, &over), 0);
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 200 + 1);
    ck_assert(over);

    for (n = rv_kit_first(step);; n += step) {
        rv_fault_arm(n);
        int rc = scenario(&parts, &over);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || (rc == 0 && over), "allocation %zu: %d", n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
        n_lived += rc == 0;
    }
    ck_assert(n > 100 || !rv_fault_works());
    ck_assert_uint_le(n_lived, n / 20); /* an unwatched tool, a lease that ends by itself */
    rv_yaml_free(doc);
    rv_pipeline_free(parts.pipeline);
    rv_findings_free(f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_recover");
    TCase *tc = tcase_create("recover");

    tcase_add_test(tc, any_allocation_may_fail);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}

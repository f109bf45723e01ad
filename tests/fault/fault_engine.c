/* Every allocation of loading a script, starting a run, driving it to its end and dumping its state fails once: no
 * crash, no leak, and the code is RV_E_NOMEM, unless the run itself could go on without. */
#include <check.h>
#include <stdlib.h>

#include "coreengine/engine/engine.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define START_US 1700000000000000

static const char sequential[] = "name: small\nmodels: {default: scripted}\nagents:\n"
                                 "  - {name: plan, default_next: act}\n"
                                 "  - {name: act, has_tools: true, tool_access: all, default_next: judge}\n"
                                 "  - name: judge\n    has_llm: true\n    model_role: default\n    max_retries: 1\n"
                                 "    routing_rules: [{condition: verdict, value: again, target: plan}]\n"
                                 "    default_next: end\n";
static const char sequential_script[] =
    "stages: {plan: [{output: {steps: [{tool: look, parameters: {q: x}}]}}]}\n"
    "models:\n  judge:\n    - {error: {kind: overloaded}}\n    - {json: {verdict: again}}\n"
    "    - {chunks: ['{', '}'], delay_ms: 5}\n"
    "tools: {look: {risk: destructive, description: d, input_schema: {type: object}, calls: [{result: {n: 1}}]}}\n"
    "answers: [{approved: true, data: {x: 1}}, {approved: true}]\n";

static const char parallel[] = "name: wide\ndefault_run_mode: parallel\nmodels: {default: scripted}\nagents:\n"
                               "  - {name: a, has_llm: true, model_role: default}\n"
                               "  - {name: b, error_next: d}\n  - {name: c, requires: [a]}\n  - {name: d}\n";
static const char parallel_script[] = "models: [{stage: a, json: {x: 1}, delay_ms: 7}]\n"
                                      "stages: [{stage: b, error: no}, {stage: d, output: {}}]\n";

static const struct {
    const char *pipeline, *script;
    bool saves;
} scenarios[] = {{sequential, sequential_script, true}, {parallel, parallel_script, false}};

struct seen {
    size_t n;
};

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct seen *seen = self;
    (void)e;
    seen->n += line.len;
}

static void on_text(void *self, rv_str text)
{
    struct seen *seen = self;
    seen->n += text.len;
}

static int drive(rv_engine *e, const struct rv_pipeline *p, rv_script *script, bool saves, rv_err **err)
{
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("x")};
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    struct rv_rand_state rand;
    rv_buf state = RV_BUF_INIT(1 << 24);
    struct seen seen = {0};
    rv_envelope *env = NULL;
    rv_exec *x = NULL;

    opts.pipeline = p;
    opts.script = script;
    opts.answer_from_script = true;
    opts.saves = saves ? RV_SAVES_SOME : RV_SAVES_NONE;
    opts.observer.on_event = on_event;
    opts.on_state = on_text;
    opts.self = opts.observer.self = &seen;
    int rc = rv_envelope_new(&seed, rv_rand_seeded(&rand, 1), START_US, &env, err);
    if (rc == 0)
        rc = rv_engine_start(e, &opts, env, NULL, &x, err);
    if (rc == 0)
        rc = rv_engine_wait(e, x, err);
    if (rc == 0) {
        rv_envelope_write_state(rv_exec_envelope(x), &state);
        rc = rv_buf_check(&state, "state", err);
    }
    if (rc == 0) {
        rv_jw w = rv_jw_on(&state);
        rv_exec_write_health(x, &w);
        rc = rv_buf_check(&state, "health", err);
    }
    rv_exec_free(x);
    rv_buf_fini(&state);
    return rc;
}

/* What is missing without the script becomes findings; with it, nothing is. */
static int check(const struct rv_pipeline *p, rv_script *script, rv_findings *f, rv_err **err)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_findings *missing = rv_findings_new();

    opts.pipeline = p;
    int rc = missing ? rv_exec_check(&opts, missing, err) : RV_FAIL(err, RV_E_NOMEM, "check");
    rv_findings_free(missing);
    opts.script = script;
    return rc == 0 ? rv_exec_check(&opts, f, err) : rc;
}

static int scenario(const struct rv_pipeline *p, const struct rv_node *node, bool saves)
{
    const struct rv_engine_opts opts = {.virtual_time = true, .virtual_start_us = START_US, .workers = 1};
    rv_findings *f = rv_findings_new();
    rv_script *script = NULL;
    rv_engine *e = NULL;
    rv_err *err = NULL;

    int rc = f ? rv_script_read_node(node, f, &script, &err) : RV_E_NOMEM;
    if (rc == 0)
        rv_script_check(script, p, f);
    if (rc == 0)
        rc = rv_findings_check(f, &err);
    if (rc == 0)
        rc = check(p, script, f, &err);
    if (rc == 0 && rv_findings_n_errors(f) > 0)
        rc = RV_E_INVALID;
    if (rc == 0)
        rc = rv_engine_new(&opts, &e, &err);
    if (rc == 0)
        rc = drive(e, p, script, saves, &err);
    rv_engine_free(e);
    rv_script_free(script);
    rv_findings_free(f);
    rv_err_free(err);
    return rc;
}

/* Proves 11.5/engine */
START_TEST(any_allocation_may_fail)
{
    rv_findings *f = rv_findings_new();
    struct rv_pipeline *p = NULL;
    rv_yaml *doc = NULL;
    size_t n, n_lived = 0;

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(scenarios[_i].pipeline), "p.yaml", ".", f, &p, NULL), 0);
    ck_assert_int_eq(rv_yaml_parse(rv_str_of(scenarios[_i].script), "s.yaml", f, &doc, NULL), 0);
    ck_assert_uint_eq(rv_findings_n_errors(f), 0);
    const struct rv_node *node = rv_yaml_root(doc);
    ck_assert_int_eq(scenario(p, node, scenarios[_i].saves), 0);

    for (n = 0;; n++) {
        rv_fault_arm(n);
        int rc = scenario(p, node, scenarios[_i].saves);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %d", n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
        n_lived += rc == 0;
    }
    ck_assert(n > 100 || !rv_fault_works());
    ck_assert_uint_le(n_lived, n / 20); /* an unwatched tool, a warning without a hint */
    rv_yaml_free(doc);
    rv_pipeline_free(p);
    rv_findings_free(f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_engine");
    TCase *tc = tcase_create("shell");

    tcase_add_loop_test(tc, any_allocation_may_fail, 0, RV_COUNT(scenarios));
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}

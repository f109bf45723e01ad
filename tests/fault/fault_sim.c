/* Every allocation of a simulation fails once, with crashes, recoveries and answers: no crash, no leak, RV_E_NOMEM; or
 * the simulated process took it for the death it was to die, and all is well. */
#include <check.h>
#include <string.h>

#include "coreengine/sim/sim.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static const struct {
    const char *pipeline;
    uint64_t seed;
    int64_t n_seeds;
} cases[] = {{RV_SOURCE_DIR "/tests/sim/effects.yaml", 10, 3},
             {RV_SOURCE_DIR "/tests/sim/branches.yaml", 10, 3},
             {RV_SOURCE_DIR "/tests/sim/asks.yaml", 10, 1}};

#define N_AGENTS 3
static struct rv_sim_agent agents[N_AGENTS] = {{.name = "asker"}, {.name = "counter"}, {.name = "helper"}};

static int find_agent(void *self, const char *name, rv_str *text, const char **place, rv_err **err)
{
    (void)self;
    for (size_t i = 0; i < N_AGENTS; i++)
        if (strcmp(agents[i].name, name) == 0) {
            *text = agents[i].document;
            *place = name;
            return 0;
        }
    return RV_FAIL(err, RV_E_NOT_FOUND, "there is no agent \"%s\"", name);
}

static void load_agents(rv_buf documents[N_AGENTS])
{
    rv_buf path = RV_BUF_INIT(4096);

    for (size_t i = 0; i < N_AGENTS; i++) {
        documents[i] = RV_BUF_INIT(RV_JSON_MAX_BYTES);
        rv_buf_clear(&path);
        rv_buf_printf(&path, "%s/tests/sim/agents/%s.yaml", RV_SOURCE_DIR, agents[i].name);
        ck_assert_int_eq(rv_file_read(rv_buf_cstr(&path), &documents[i], NULL), 0);
        agents[i].document = rv_buf_str(&documents[i]);
    }
    rv_buf_fini(&path);
}

START_TEST(every_failed_allocation_of_a_simulation_is_reported)
{
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    rv_script *script = NULL;
    struct rv_sim_opts o = RV_SIM_OPTS_INIT;
    const struct rv_agent_source source = {find_agent, NULL};
    rv_buf documents[N_AGENTS];
    struct rv_sim_report r;

    load_agents(documents);
    ck_assert_int_eq(rv_pipeline_load(cases[_i].pipeline, findings, &p, NULL), 0);
    ck_assert_int_eq(rv_pipeline_bind_agents(p, &source, findings, NULL), 0);
    ck_assert_int_eq(rv_script_read_node(p->tests[0].inline_script, findings, &script, NULL), 0);
    const struct rv_catalog catalog = rv_script_catalog(script, &rv_catalog_empty);
    const struct rv_sim_subject subject = {.pipeline = p, .catalog = &catalog, .agents = agents, .n_agents = N_AGENTS};
    o.subjects = &subject;
    o.n_subjects = 1;
    o.first_seed = cases[_i].seed;
    o.n_seeds = cases[_i].n_seeds;
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(rv_sim_run(&o, &r, NULL), 0);
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 100 + 1);
    ck_assert_int_gt(r.n_recoveries, 0);
    ck_assert(r.n_agents > 0 || strstr(cases[_i].pipeline, "asks") == NULL);
    rv_sim_report_fini(&r);

    for (size_t n = rv_kit_first(step);; n += step) {
        rv_err *err = NULL;
        rv_fault_arm(n);
        int rc = rv_sim_run(&o, &r, &err);
        bool failure = rc == 0 && r.has_failure;
        if (rc == 0)
            rv_sim_report_fini(&r);
        rv_err_free(err);
        bool fired = rv_fault_disarm();
        ck_assert_msg(rc == 0 || rc == RV_E_NOMEM, "allocation %zu: code %d", n, rc);
        ck_assert_msg(!failure, "allocation %zu breaks an invariant", n);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks are lost", n, rv_fault_balance());
        if (!fired)
            break;
    }
    for (size_t i = 0; i < N_AGENTS; i++)
        rv_buf_fini(&documents[i]);
    rv_script_free(script);
    rv_pipeline_free(p);
    rv_findings_free(findings);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_sim");
    TCase *tc = tcase_create("fault");

    tcase_add_loop_test(tc, every_failed_allocation_of_a_simulation_is_reported, 0, (int)RV_COUNT(cases));
    suite_add_tcase(s, tc);
    return rv_kit_run(s);
}

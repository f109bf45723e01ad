/* Every allocation of proofs, warnings, dependents and graphs fails once: the code is RV_E_NOMEM and nothing leaks. */
#include <check.h>

#include "tests/kit/fault.h"
#include "tests/kit/suites.h"
#include "tests/unit/config_analysis/world.h"

static int prove(const struct rv_pipeline *p, int mode)
{
    struct rv_proof proof = {0};
    rv_err *err = NULL;
    int rc = rv_pipeline_prove(p, (enum rv_run_mode)mode, &proof, &err);

    if ((rc == 0) != (err == NULL)) /* no ck_assert here: it allocates too */
        rc = RV_E_INTERNAL;
    rv_proof_fini(&proof);
    rv_err_free(err);
    return rc;
}

static int lint(const struct rv_pipeline *p, int mode)
{
    rv_findings *findings = rv_findings_new();
    int rc;

    (void)mode;
    if (!findings)
        return RV_E_NOMEM;
    rv_pipeline_lint(p, findings);
    rc = rv_findings_check(findings, NULL);
    if (rc == 0 && rv_findings_n(findings) < 3)
        rc = RV_E_INTERNAL;
    rv_findings_free(findings);
    return rc;
}

static int link_stages(const struct rv_pipeline *p, int mode)
{
    int rc = config_pipeline_link((struct rv_pipeline *)(uintptr_t)p, NULL);

    (void)mode;
    config_links_fini(&p->internal->links);
    return rc;
}

static int draw(const struct rv_pipeline *p, int format)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    int rc;

    rv_pipeline_write_graph(p, (enum rv_graph_format)format, &text);
    rc = text.rc;
    rv_buf_fini(&text);
    return rc;
}

static const struct {
    int (*run)(const struct rv_pipeline *p, int how);
    int how;
} scenarios[] = {
    {prove, RV_MODE_SEQUENTIAL},
    {prove, RV_MODE_PARALLEL},
    {lint, 0},
    {link_stages, 0},
    {draw, RV_GRAPH_ASCII},
    {draw, RV_GRAPH_MERMAID},
    {draw, RV_GRAPH_DOT},
    {draw, RV_GRAPH_SVG},
    {draw, RV_GRAPH_JSON},
};

static struct world *sample(void)
{
    struct world *w = world_new(6);

    world_llm(w, 0, 1);
    world_llm(w, 2, 0);
    world_error(w, 1, 3);
    world_rule(w, 2, "again", "true", 0);
    world_rule(w, 2, "again", "true", 1);
    world_when(w, 2, "output.ask", RV_TARGET_CLARIFICATION);
    world_limit(w, 2, 0, 1);
    world_limit(w, 0, 3, 1);
    world_default(w, 3, RV_TARGET_END);
    world_require(w, 4, 1);
    return w;
}

START_TEST(every_allocation_may_fail)
{
    struct world *w = sample();

    ck_assert_int_eq(scenarios[_i].run(&w->p, scenarios[_i].how), 0);
    for (size_t n = 0;; n++) {
        int rc;

        rv_fault_arm(n);
        rc = scenarios[_i].run(&w->p, scenarios[_i].how);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM, "allocation %zu: %d", n, rc);
        ck_assert_int_eq(rv_fault_balance(), 0);
    }
    world_free(w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_config_analysis");
    TCase *tc = tcase_create("fault");

    tcase_add_loop_test(tc, every_allocation_may_fail, 0, RV_COUNT(scenarios));
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}

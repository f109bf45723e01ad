/* Every allocation of a run in one call fails once: no crash, no leak, and the code is RV_E_NOMEM, unless the run can
 * go on without. */
#include <check.h>
#include <stdlib.h>

#include "coreengine/app/app.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static const char pipeline[] = "name: small\nmodels: {default: scripted}\nagents:\n"
                               "  - {name: a, has_llm: true, model_role: default}\n"
                               "response: {output_key: a, field: text}\n";
static const char script[] = "models: {a: [{json: {text: hi}}]}\n";

static int scenario(const char *pipeline_path, const char *script_path)
{
    const struct rv_app app = {.no_store = true, .capability = ""};
    struct rv_app_job job = RV_APP_JOB_INIT;
    struct rv_app_result result = {0};
    rv_err *err = NULL;

    job.pipeline = pipeline_path;
    job.script = script_path;
    job.input = "x";
    int rc = rv_app_run(&app, &job, &result, &err);
    if (rc == 0 && result.status != RV_RUN_COMPLETED) /* a stage had no memory: the run says so */
        rc = RV_E_NOMEM;
    rv_app_result_fini(&result);
    rv_err_free(err);
    return rc;
}

START_TEST(any_allocation_may_fail)
{
    char *dir = rv_kit_tmpdir(), *pipeline_path = rv_kit_path(dir, "p.yaml"), *script_path = rv_kit_path(dir, "s.yaml");
    size_t n, n_lived = 0;

    rv_kit_write(pipeline_path, pipeline);
    rv_kit_write(script_path, script);
    ck_assert_int_eq(scenario(pipeline_path, script_path), 0);
    for (n = 0;; n++) {
        rv_fault_arm(n);
        int rc = scenario(pipeline_path, script_path);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %d", n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
        n_lived += rc == 0;
    }
    ck_assert(n > 100 || !rv_fault_works());
    ck_assert_uint_le(n_lived, n / 20);
    free(pipeline_path);
    free(script_path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_app");
    TCase *tc = tcase_create("app");

    tcase_add_test(tc, any_allocation_may_fail);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}

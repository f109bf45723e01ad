/* The pipeline of one combination of a matrix: loaded once more, with the model and the prompts that the test names. */
#include <string.h>

#include "coreengine/app/testing/testing_internal.h"

int app_test_load_variant(const struct rv_app *app, const struct rv_app_loaded *l, const struct rv_test_config *test,
                          const struct rv_test_opts *how, struct rv_app_loaded *out, rv_err **err)
{
    const struct rv_app_load_opts opts = {.tests = true,
                                          .connects = how->is_live,
                                          .model = test->place.model ? test->place.model : how->variant,
                                          .place = &test->place};
    struct rv_app_loaded loaded;

    if (!test->place.model && !test->place.prompts)
        return 0;
    if (test->place.model && how->variant) {
        int refused = RV_FAIL(err, RV_E_INVALID, "its matrix names the models to ask");
        rv_err_set_hint(err, "run it without --model, or leave out the axis \"model\"");
        return refused;
    }
    int rc = rv_app_load(app, l->pipeline->file, &opts, &loaded, err);
    if (rc < 0)
        return rc;
    rc = rv_findings_raise_first_error(loaded.findings, err);
    if (rc == 0 && loaded.pipeline->n_tests != l->pipeline->n_tests) /* someone is writing it, or its cases */
        rc = RV_FAIL(err, RV_E_STATE, "\"%s\" has changed since it was loaded", l->pipeline->file);
    if (rc < 0) {
        rv_app_loaded_fini(&loaded);
        return rc;
    }
    *out = loaded;
    return 1;
}

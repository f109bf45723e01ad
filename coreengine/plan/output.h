/* Results of tools become the outputs that templates reference. A result is hostile: one that is not formed as a result
 * is a failure of that call, with a code. */
#ifndef RV_PLAN_OUTPUT_H
#define RV_PLAN_OUTPUT_H

#include <stdlib.h>
#include <string.h>

#include "coreengine/base/json.h"

enum rv_output_check { RV_OUTPUT_STRICT, RV_OUTPUT_WARN, RV_OUTPUT_OFF, RV_N_OUTPUT_CHECKS };

/* What a tool promises about its outputs. */
struct rv_output_promise {
    bool has_schema;
    enum rv_output_check check;
    const void *schema; /* borrowed; what `fits` is asked with */
    /** 0: the value fits. RV_E_NOMEM, or any other failure: it does not, and *err says why. NULL: everything fits. */
    int (*fits)(const void *schema, json_object *value, rv_err **err);
};

struct rv_output {
    json_object *value; /* owned; of a success, NULL is a JSON null; of a failure always NULL */
    const char *code;   /* static; of a failure: tool_error, invalid_result, missing_structured_content,
                           output_schema_violation; NULL: a success */
    char *text;         /* owned; why it failed, or of a success a warning, else NULL */
};

/** The output of one result of `tools/call`: {content?, structuredContent?, isError?}.
 *  @param out filled in any case; rv_output_fini() it. It shares what it holds with result.
 *  @return 0 (also for a failed call), RV_E_NOMEM */
RV_MUST_CHECK int rv_output_of(json_object *result, const struct rv_output_promise *promise, struct rv_output *out,
                               rv_err **err);
static inline void rv_output_fini(struct rv_output *out)
{
    json_object_put(out->value);
    free(out->text);
    memset(out, 0, sizeof *out);
}

#endif

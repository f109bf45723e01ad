/* Results of tools as text: for the model that goes on, for one that sums up, for people, and as the answer when no
 * model gives one. */
#ifndef RV_PLAN_FORMAT_H
#define RV_PLAN_FORMAT_H

#include "coreengine/base/json.h"

enum rv_plan_result_format {
    RV_RESULT_MODEL,     /* a line each, at most 500 bytes of text */
    RV_RESULT_SYNTHESIS, /* a section each with summary and details, at most 1,000 bytes of text */
    RV_RESULT_DISPLAY,   /* a numbered line each, at most 200 bytes of text */
    RV_RESULT_FALLBACK,  /* the whole texts of those that succeeded */
    RV_N_RESULT_FORMATS
};

struct rv_plan_result {
    rv_str tool;
    json_object *result; /* borrowed; of `tools/call`. What is not formed as one has no text */
};

/** Append the results.
 *  @param limit bytes of each text; 0: that of the format. A longer text ends with "...", at a whole character */
void rv_plan_results_write(enum rv_plan_result_format format, const struct rv_plan_result *results, size_t n,
                           size_t limit, rv_buf *out);

#endif

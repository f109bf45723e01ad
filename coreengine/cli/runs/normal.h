/* Records of two runs made comparable: ids and moments that differ only because the runs do become the same words. */
#ifndef RV_CLI_NORMAL_H
#define RV_CLI_NORMAL_H

#include "coreengine/cli/runs/runs.h"

/* The ids that one run has named so far, by order of appearance. */
typedef struct rv_normal rv_normal;
rv_normal *rv_normal_new(void); /* NULL on out of memory */
void rv_normal_free(rv_normal *n);
/** A record's JSON with "env_#1" for an id and "<time>" for a moment; n NULL: as it is. *out is yours. */
RV_MUST_CHECK int rv_normal_record(rv_normal *n, rv_str json, json_object **out, rv_err **err);

/** Where two trees differ first, as a path ("value.outputs.plan"), and what stands there. False: they are equal. */
struct rv_difference {
    rv_buf path;
    json_object *a, *b; /* borrowed; NULL: JSON null, or absent */
    bool a_absent, b_absent;
};
bool rv_first_difference(json_object *a, json_object *b, struct rv_difference *out);

#endif

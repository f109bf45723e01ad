/* The arguments of a planned call, with its references replaced by the outputs of earlier calls. Each string is read
 * once: what an output holds is never read as a template. */
#ifndef RV_PLAN_RESOLVE_H
#define RV_PLAN_RESOLVE_H

#include <stdlib.h>
#include <string.h>

#include "coreengine/base/json.h"
#include "coreengine/plan/argument.h"

/* An earlier call. */
struct rv_plan_step_output {
    bool usable;        /* it succeeded */
    json_object *value; /* borrowed; NULL: null */
    /* Borrowed: the id of its artifact, which is found as artifact_id where the value has no such member. NULL: none */
    json_object *artifact_id; /* borrowed */
};

struct rv_plan_resolution {
    json_object
        *arguments;   /* owned, an object; it shares values with the outputs: read only. NULL: the call must not run */
    const char *code; /* static; why not: unresolved_reference, invalid_template_syntax, embedded_reference,
                         too_many_references, too_large */
    char *argument;   /* owned; where, like "list[0].id" */
    char *text;       /* owned; the string as the plan has it */
    char *reason;     /* owned; for people and models: what is missing, or how it is written */
};

/** Resolve the arguments of the call behind outputs[0..n).
 *  @param arguments an object of at most 64 levels
 *  @param out filled in any case; rv_plan_resolution_fini() it
 *  @return 0 (also when a reference has no value), RV_E_NOMEM */
RV_MUST_CHECK int rv_plan_resolve(json_object *arguments, const struct rv_plan_step_output *outputs, size_t n,
                                  struct rv_plan_resolution *out, rv_err **err);
/** The value that a reference has, borrowed.
 *  @param reason why it has none, for people and models
 *  @return whether it has one */
bool rv_plan_step_look_up(const struct rv_plan_step_output *outputs, size_t n, const struct rv_plan_ref *ref,
                          json_object **out, rv_buf *reason);
static inline void rv_plan_resolution_fini(struct rv_plan_resolution *r)
{
    json_object_put(r->arguments);
    free(r->argument);
    free(r->text);
    free(r->reason);
    memset(r, 0, sizeof *r);
}

#endif

/* A question that a person cancelled, with a reason: the stage that waits with it fails when it is visited next, so
 * that its error_next, or the join of its branch, decides how the run goes on. */
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

#define CANCELLED "cancelled_question" /* kind of suspended work */

bool rv_visit_is_cancelled(const struct rv_visit_shared *shared, int stage, const rv_envelope *env)
{
    return visit_kept(shared, stage, env, CANCELLED) != NULL;
}

int rv_visit_cancel_question(const struct rv_visit_shared *shared, int stage, rv_envelope *env, rv_str reason,
                             rv_err **err)
{
    json_object *kept = json_object_new_object();
    int rc = RV_SET(kept, err, RV_M_TEXT("kind", CANCELLED), RV_M_STR("reason", reason.ptr ? reason : RV_STR_LIT("")));

    if (rc == 0)
        rc = rv_envelope_set_suspended(env, rv_str_of(shared->pipeline->agents[stage].name), kept, err);
    json_object_put(kept);
    return rc;
}

int visit_fail_cancelled(rv_visit *v, rv_str reason, rv_err **err)
{
    bool has_reason = rv_str_trim(reason).len > 0;

    return rv_visit_fail(v, rv_error_question_cancelled, err, "the question of stage \"%s\" was cancelled%s%.*s",
                         v->agent->name, has_reason ? ": " : "", RV_STR_ARG(has_reason ? reason : RV_STR_LIT("")));
}

int visit_take_cancellation(rv_visit *v, rv_err **err)
{
    json_object *kept = json_object_get(visit_kept(v->shared, v->agent->index, v->env, CANCELLED)), *reason = NULL;

    json_object_object_get_ex(kept, "reason", &reason);
    int rc = rv_envelope_set_suspended(v->env, rv_str_of(v->agent->name), NULL, err);
    if (rc == 0)
        rc = visit_fail_cancelled(v, rv_json_str(reason), err);
    json_object_put(kept);
    return rc;
}

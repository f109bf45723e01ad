/* A visit that plans and waits for a person in the middle of its plan: what is kept beside the steps and the
 * conversation (suspend.c), and how the visit takes it up again. The catalog and what the planner is told are made
 * again from the pipeline, which a run keeps. */
#include "coreengine/agent/tools_internal.h"

#define KEPT "planned"

int agent_planned_keep(const rv_visit *v, json_object *kept, rv_err **err)
{
    const struct planned *p = v->planned;
    json_object *own = json_object_new_object();
    int rc = rv_json_set_take(kept, KEPT, own, err);

    if (rc == 0)
        rc = RV_SET(own, err, RV_M_INT("repairs", p->repairs), RV_M_INT("replans", p->replans),
                    RV_M_INT("left_us", p->until_us - v->now_us), RV_M_INT("turns_at", (int64_t)p->turns_at));
    if (rc == 0)
        rc = visit_keep_copy(own, "plan", p->plan, err);
    if (rc == 0)
        rc = visit_keep_copy(own, "steps", p->steps, err);
    return rc == 0 ? visit_keep_copy(own, "results", p->results, err) : rc;
}

/* A count that was written here. */
static bool take(json_object *own, const char *key, int64_t *out)
{
    return rv_json_get_int(own, key, out) && *out >= 0 && *out <= RV_USAGE_MAX;
}

static int copy_list(json_object *from, json_object **to, rv_err **err)
{
    json_object *copy = NULL;
    int rc = rv_json_dup(from, &copy, err);

    if (rc < 0)
        return rc;
    json_object_put(*to);
    *to = copy;
    return 0;
}

int planned_resume(rv_visit *v, json_object *kept, bool *is_whole, rv_err **err)
{
    struct planned *p = v->planned;
    json_object *own = rv_json_get_obj(kept, KEPT), *plan = own ? rv_json_get_obj(own, "plan") : NULL;
    json_object *steps = own ? rv_json_get_arr(own, "steps") : NULL,
                *results = own ? rv_json_get_arr(own, "results") : NULL;
    int64_t turns_at = 0, left_us = 0;

    *is_whole = plan && steps && results && json_object_array_length(steps) == json_object_array_length(results) &&
                take(own, "repairs", &p->repairs) && take(own, "replans", &p->replans) &&
                take(own, "turns_at", &turns_at) && rv_json_get_int(own, "left_us", &left_us);
    if (!*is_whole)
        return 0;
    int rc = copy_list(plan, &p->plan, err);
    if (rc == 0)
        rc = copy_list(steps, &p->steps, err);
    if (rc == 0)
        rc = copy_list(results, &p->results, err);
    p->turns_at = (size_t)turns_at;
    p->until_us = v->now_us + (left_us > 0 ? left_us : 0);
    p->part = PLANNED_EXECUTE;
    return rc;
}

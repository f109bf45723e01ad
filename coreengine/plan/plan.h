/* Plans of models: a direct answer, or tool calls in the order in which they run. Everything in a reply is hostile
 * until it was read here: size, depth and number of calls have caps, and a plan that breaks a rule is an outcome that
 * the model is told about. */
#ifndef RV_PLAN_PLAN_H
#define RV_PLAN_PLAN_H

#include "coreengine/base/json.h"
#include "coreengine/plan/error_type.h"

#define RV_PLAN_TOOL      "__planning__"    /* the tool that a planner calls once */
#define RV_PLAN_MAX_BYTES ((size_t)1 << 20) /* of one plan as text */
#define RV_PLAN_MAX_DEPTH 64                /* of one plan */
#define RV_PLAN_MAX_CALLS 16                /* unless the caller says otherwise */

/* A reply of the planner, borrowed. */
struct rv_plan_reply {
    rv_str text;
    json_object *calls; /* NULL, or a list of {name: string, arguments: object | string of JSON} in order */
    bool truncated;     /* it was cut at the limit of tokens */
};

struct rv_plan_call {
    rv_str tool;             /* borrowed from the plan */
    json_object *arguments;  /* owned, an object; NULL: the model gave something else */
    const char *actual_type; /* static; what the model gave instead of an object, else NULL */
    /* As the model gave them, borrowed from the plan; NULL: not given. rv_plan_validate() reads them. */
    json_object *after;      /* indices of calls that have to run before this one */
    json_object *on_failure; /* "halt", which is the default, or "continue"; borrowed */
    bool continues;          /* on_failure is "continue": only calls that need this one are skipped when it fails */
};

struct rv_plan {
    bool direct;                /* content is the answer; else calls are to run */
    rv_str content;             /* of a direct answer; borrowed from the plan */
    rv_str reasoning;           /* "" if none */
    struct rv_plan_call *calls; /* owned */
    size_t n_calls;
    bool duplicate_keys;           /* an object had two equal keys: the last one counts */
    enum rv_plan_error_type fault; /* PLAN_MALFORMED, EMPTY_PLAN, TOO_MANY_CALLS or NONE */
    const char *reason;        /* of PLAN_MALFORMED: json, type, missing_field, multiple, truncated, empty; static */
    char *detail;              /* owned; for people */
    size_t n_given, max_calls; /* of too_many_calls */
    json_object *root;         /* owned; what the texts above are borrowed from */
};

/** Read a reply. A bad plan is not a failure: out->fault says what is wrong, and none of its calls may run.
 *  @param max_calls 0: RV_PLAN_MAX_CALLS
 *  @param out filled in any case; rv_plan_fini() it. It copies nothing of reply->text that is plain text: that has to
 *         outlive it
 *  @return 0, RV_E_NOMEM */
RV_MUST_CHECK int rv_plan_parse(const struct rv_plan_reply *reply, size_t max_calls, struct rv_plan *out, rv_err **err);
void rv_plan_fini(struct rv_plan *plan);

#endif

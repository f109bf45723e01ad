/* Is a plan sound? A pure function of the plan and the catalog that finds every error before any tool runs, and which
 * calls need which. */
#ifndef RV_PLAN_VALIDATE_H
#define RV_PLAN_VALIDATE_H

#include "coreengine/plan/plan.h"
#include "coreengine/plan/planner.h"

#define RV_PLAN_MAX_ERRORS 500 /* listed of one plan: one reply of a megabyte could hold 100,000 */

/* One error. Which of the fields below `type` count is a matter of the type; texts live as long as the check. */
struct rv_plan_error {
    size_t tool_index;    /* of the call that contains the problem */
    const char *argument; /* path inside its arguments, such as outer.list[0].id; "": the whole call */
    rv_str template;      /* the string as written, borrowed from the plan; "": not about one */
    enum rv_plan_error_type type;
    size_t referenced_index;
    size_t max_index;    /* the largest index that may be referenced here; SIZE_MAX: there is none */
    size_t count, max;   /* of too_many_calls, too_many_references */
    const char *tool;    /* the tool that the type is about; the source of a type_mismatch */
    const char *subject; /* the missing or unknown name, the field, the option, the type that was given, the reason */
    const char *text;    /* message or detail, for people */
    const char *source_type, *target_tool, *target_argument, *target_type; /* of type_mismatch */
    const char *const *names; /* fields, tools, candidates or arguments that there are */
    size_t n_names;
};

/* What a call needs before it may run. Lists live as long as the check. */
struct rv_plan_needs {
    const size_t *calls; /* indices of earlier calls of this plan, ascending: its references and its `after` */
    size_t n;
    const size_t *all; /* these, and what they need in turn; ascending */
    size_t n_all;
    size_t n_refs;     /* references in its arguments */
    size_t n_deferred; /* of them, those that only the run can check */
    size_t n_optional; /* of them, those to a field that need not be there: not required, or a place in a list */
};

/* A call of an earlier round, whose result stands. Its index is its place in the list; the calls of the plan come
 * after it. */
struct rv_plan_done {
    const char *tool;         /* visible name; borrowed */
    bool usable;              /* it succeeded */
    json_object *value;       /* borrowed: its output; NULL: null */
    json_object *artifact_id; /* borrowed: as in struct rv_plan_step_output */
};
struct rv_plan_rules {
    bool defer_unschematized; /* a reference to an output without a schema is checked when it runs, not an error */
    const struct rv_plan_done *done; /* borrowed for the call */
    size_t n_done;
};

/* Lists live in its arena. */
struct rv_plan_check {
    const struct rv_plan_error *errors; /* by call, then by place in its arguments as written */
    size_t n_errors;
    size_t n_more; /* errors that were not listed */
    /* Of each call; NULL if the plan has a fault. */
    const struct rv_plan_tool *const *tools; /* NULL: unknown */
    const struct rv_plan_needs *needs;       /* complete only of a plan without errors */
    size_t n_calls, n_done;
    rv_arena *arena; /* owned */
};

/** Check a plan. Without errors it may run, as far as can be told beforehand.
 *  @param plan borrowed, as the catalog, until rv_plan_check_fini(); a plan with a fault has that error only. A direct
 *         answer has none
 *  @param rules NULL: the defaults
 *  @param out filled in any case; rv_plan_check_fini() it
 *  @return 0 (also for a plan with errors), RV_E_LIMIT, RV_E_NOMEM */
RV_MUST_CHECK int rv_plan_validate(const struct rv_plan *plan, const rv_plan_catalog *catalog,
                                   const struct rv_plan_rules *rules, struct rv_plan_check *out, rv_err **err);
void rv_plan_check_fini(struct rv_plan_check *check);

/** {tool_index, argument, template, error: {type, ...}} */
void rv_plan_error_write_json(const struct rv_plan_error *error, rv_jw *out);
/** For people and models: "Plan validation failed:", then a line "- ..." for each error. */
void rv_plan_check_write_text(const struct rv_plan_check *check, rv_buf *out);

#endif

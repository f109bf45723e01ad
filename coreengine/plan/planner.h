/* What a planner is given: the schema of its one tool, and the block of text that explains plans and lists the tools.
 */
#ifndef RV_PLAN_PLANNER_H
#define RV_PLAN_PLANNER_H

#include "coreengine/plan/catalog.h"

#define RV_PLANNER_MAX_DESCRIPTION 1024 /* bytes of the description of a tool that a planner sees */

struct rv_planner_opts {
    size_t max_calls;       /* of a plan; 0: RV_PLAN_MAX_CALLS */
    size_t max_description; /* bytes; 0: RV_PLANNER_MAX_DESCRIPTION */
    bool any_of;            /* the provider reads anyOf: the schema has the arguments of each tool */
    bool has_options;       /* calls may have `after` and `on_failure` */
    bool defers;            /* outputs without a schema may be referenced */
    size_t n_done;          /* results of earlier rounds: calls of the plan are numbered from here */
};

/** G5: the input schema of the tool RV_PLAN_TOOL. A catalog without tools offers the direct answer only.
 *  @param opts NULL: the defaults
 *  @param out owned; it shares parts of the tools' schemas: read only
 *  @return 0, RV_E_NOMEM */
RV_MUST_CHECK int rv_plan_schema(const rv_plan_catalog *catalog, const struct rv_planner_opts *opts, json_object **out,
                                 rv_err **err);
/** The block for the system prompt of the planner. Texts of servers in it are short and without control characters. */
void rv_plan_brief(const rv_plan_catalog *catalog, const struct rv_planner_opts *opts, rv_buf *out);
/** The fields of an output that references may name, as the block has them: [{path, type}]; in a path, "[n]" stands for
 *  any index. At most 100 fields, and only those of four levels. */
void rv_plan_fields_write(json_object *schema, rv_jw *w);

#endif

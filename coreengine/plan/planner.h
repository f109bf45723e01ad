/* What a planner is given, and whether the plan that it made is sound. */
#ifndef RV_PLAN_PLANNER_H
#define RV_PLAN_PLANNER_H

#include "coreengine/plan/calls.h"
#include "coreengine/tools/tools.h"

/* What a planner is given: the schema of its one tool, and the block of text that explains plans and lists the tools.
 */

/* --- The tools that a plan may use: of all servers in one list, each with the name by which plans call it. --- */

#define RV_PLAN_MAX_TOOLS     10000 /* of one catalog: more than all prompts of all providers could hold */
#define RV_PLAN_MAX_TOOL_NAME 128   /* bytes of a bare name, as MCP has it */

/* A catalog owns what its tools point to, but `owner`; of a tool that is given to it, all is copied. */
struct rv_plan_tool {
    const char *name;        /* at its server */
    const char *server;      /* NULL: a tool without a server */
    const char *description; /* NULL: none */
    json_object *input;      /* the schema of its arguments as declared; NULL: none, anything is accepted */
    json_object *output;     /* the schema of its outputs as declared; NULL: none */
    /* The effective hints: what policies may count on. */
    bool read_only, destructive, idempotent;
    bool denied;  /* by the configuration: it is dropped */
    bool is_http; /* called by HTTP: its header annotations have to be sound */
    bool is_full; /* its server is in its name: what stands behind the first dot means it as a bare name does */
    void *owner;  /* the caller's; not looked at */
    /* Set by the catalog. */
    const char *visible;                           /* the name in prompts and plans */
    const char *qualified;                         /* server.name; of a tool without a server its name */
    const rv_schema *input_schema, *output_schema; /* compiled; NULL: none */
};

/* A tool that is not in the catalog. Texts are in the arena of the catalog. */
struct rv_plan_drop {
    const char *name, *server; /* server NULL: none */
    const char *reason;        /* static: denied, reserved_name, bad_name, bad_input_schema, bad_output_schema,
                                  bad_header, duplicate, name_conflict */
    const char *detail;        /* for people */
};

/* Constant once it is made; one thread's. */
typedef struct rv_plan_catalog {
    const struct rv_plan_tool *tools; /* by visible name, in the order of bytes; in the arena */
    size_t n;
    const struct rv_plan_drop *drops; /* in no order; in the arena */
    size_t n_drops;
    rv_arena *arena;             /* what all texts here live in; owned */
    struct rv_plan_names *names; /* of rv_plan_find(); owned */
    rv_schema **schemas;         /* owned */
    size_t n_schemas;
} rv_plan_catalog;

/** A catalog of tools in any order. One bad tool is a drop, not a failure.
 *  @param tools copied: texts too, and schemas as references; owners have to outlive the catalog
 *  @return 0, RV_E_LIMIT (more than RV_PLAN_MAX_TOOLS), RV_E_NOMEM */
RV_MUST_CHECK int rv_plan_catalog_new(const struct rv_plan_tool *tools, size_t n, rv_plan_catalog **out, rv_err **err);
void rv_plan_catalog_free(rv_plan_catalog *catalog);

/** The tool that a plan calls by this name: its visible or qualified name, or a bare name that one server has.
 *  @param n_candidates NULL, or set to the number of tools that it may mean: 0, 1, or more of an ambiguous one
 *  @return NULL: unknown or ambiguous */
const struct rv_plan_tool *rv_plan_find(const rv_plan_catalog *catalog, rv_str name, size_t *n_candidates);
/** Candidate i < n_candidates, by visible name in the order of bytes. */
const struct rv_plan_tool *rv_plan_candidate_at(const rv_plan_catalog *catalog, rv_str name, size_t i);

#define RV_PLANNER_MAX_DESCRIPTION 1024 /* bytes of a tool's description that a planner sees: it sees all tools */

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
RV_MUST_CHECK int rv_plan_build_schema(const rv_plan_catalog *catalog, const struct rv_planner_opts *opts,
                                       json_object **out, rv_err **err);
/** The block for the system prompt of the planner. Texts of servers in it are short and without control characters. */
void rv_plan_write_brief(const rv_plan_catalog *catalog, const struct rv_planner_opts *opts, rv_buf *out);
/** The fields of an output that references may name, as the block has them: [{path, type}]; in a path, "[n]" stands for
 *  any index. At most 100 fields, and only those of four levels. */
void rv_plan_fields_write(json_object *schema, rv_jw *w);

/* Is a plan sound? A pure function of the plan and the catalog that finds every error before any tool runs, and which
 * calls need which. */

#define RV_PLAN_MAX_ERRORS 500 /* listed of one plan: one reply of a megabyte could hold 100,000 */

/* One error. Which of the fields below `type` count is a matter of the type; texts are in the arena of the check. */
struct rv_plan_error {
    size_t tool_index;    /* of the call that contains the problem */
    const char *argument; /* path inside its arguments, such as outer.list[0].id; "": the whole call */
    rv_str written;       /* the string as written, borrowed from the plan; "": not about one */
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

/* What a call needs before it may run. Lists are in the arena of the check. */
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

/* Lists are in its arena. */
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

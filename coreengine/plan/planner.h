/* What a planner is given: the schema of its one tool, and the block of text that explains plans and lists the tools.
 */
#ifndef RV_PLAN_PLANNER_H
#define RV_PLAN_PLANNER_H

#include "coreengine/tools/tools.h"

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
    void *owner;  /* the caller's; not looked at */
    /* Set by the catalog. */
    const char *visible;                           /* the name in prompts and plans */
    const char *qualified;                         /* server.name; of a tool without a server its name */
    const rv_schema *input_schema, *output_schema; /* compiled; NULL: none */
};

/* A tool that is not in the catalog. Texts live as long as the catalog. */
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
const struct rv_plan_tool *rv_plan_candidate(const rv_plan_catalog *catalog, rv_str name, size_t i);

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

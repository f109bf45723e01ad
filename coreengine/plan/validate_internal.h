/* What the files of the validation share. */
#ifndef RV_PLAN_VALIDATE_INTERNAL_H
#define RV_PLAN_VALIDATE_INTERNAL_H

#include "coreengine/plan/plan.h"
#include "coreengine/plan/planner.h"
#include "coreengine/plan/shape_internal.h"

#define RV_PLAN_MAX_PATH ((size_t)2 << 10) /* bytes of a path in an error: a model wrote it; a longer one is cut */

/* Where a value is in the arguments. What it points to is borrowed. */
struct rv_place {
    const struct rv_place *up; /* NULL: the arguments themselves */
    const char *key;           /* NULL: an item of a list */
    size_t i;
    int depth;
    size_t order; /* of the value in the document: containers before their members */
};

struct rv_plan_placed_error {
    struct rv_plan_error e;
    size_t order, number;
};

/* A check that goes on. What it points to is borrowed, or in the arena, unless it says owned. */
struct rv_validation {
    const struct rv_plan *plan;
    const rv_plan_catalog *catalog;
    const struct rv_plan_rules *rules;
    struct rv_plan_check *out;
    rv_arena *arena;
    struct rv_plan_placed_error *errors; /* owned */
    size_t n, cap;
    const struct rv_plan_tool **tools;
    struct rv_plan_needs *needs;
    bool *needed;      /* by this call, of each call */
    json_object *hole; /* in the place of a string with references */
    struct rv_shape_names *names;
    const char **tool_names; /* NULL: not listed yet */
    /* Of this call. */
    size_t call; /* its place in the plan */
    const struct rv_plan_tool *tool;
    size_t order;
    size_t n_refs; /* of the plan so far */
    int rc;
    rv_err **err;
};

/* validate.c */
/** The text of a buffer, kept; of an overlong one its beginning. Ends the buffer. */
const char *validation_keep(struct rv_validation *c, rv_buf *text);
/** A new error about a string of this call, or NULL: there are enough, or memory was short. */
struct rv_plan_error *validation_add(struct rv_validation *c, enum rv_plan_error_type type, const struct rv_place *at,
                                     rv_str template);
/** The same about a value with that place in the document, with neither argument nor template. */
struct rv_plan_error *validation_add_plain(struct rv_validation *c, enum rv_plan_error_type type, size_t order);
int validation_no_memory(struct rv_validation *c);
const char *const *validation_names(struct rv_validation *c, const struct rv_shape_names *names);
/** Append a step of a path: ".key" or "[i]". */
void validation_write_step(const char *key, size_t i, rv_buf *out);

/* literals.c */
/** V10: its arguments, with holes for references, fit the input schema. */
void validation_check_literals(struct rv_validation *c, json_object *arguments);

/* references.c */
/** V2 to V8 of one reference in the string at a place of this call. */
void validation_check_ref(struct rv_validation *c, const struct rv_place *at, rv_str template, bool whole,
                          const struct rv_plan_ref *ref);

#endif

/* What a schema says about a place in its values: which fields there are, and of which types they may be. Where a
 * schema does not say, anything may be there. */
#ifndef RV_PLAN_SHAPE_INTERNAL_H
#define RV_PLAN_SHAPE_INTERNAL_H

#include "coreengine/plan/plan.h"
#include "coreengine/tools/tools.h"

/* A number is an integer or another number. */
enum rv_shape_type {
    RV_SHAPE_STRING = 1,
    RV_SHAPE_INTEGER = 2,
    RV_SHAPE_FRACTION = 4,
    RV_SHAPE_BOOLEAN = 8,
    RV_SHAPE_ARRAY = 16,
    RV_SHAPE_OBJECT = 32,
    RV_SHAPE_NULL = 64,
};
#define RV_SHAPE_NUMBER (RV_SHAPE_INTEGER | RV_SHAPE_FRACTION)
#define RV_SHAPE_ANY    127u /* all of them */

#define RV_SHAPE_MAX_SCHEMAS 16  /* alternatives that are told apart: pairs are compared; of more all may be */
#define RV_SHAPE_MAX_NAMES   100 /* fields listed of a place: as many as brief.c tells a model of one tool */

struct rv_shape {
    json_object *root;                          /* of the document; where references begin; borrowed, as schemas */
    json_object *schemas[RV_SHAPE_MAX_SCHEMAS]; /* borrowed */
    size_t n;
    bool is_any;      /* anything may be there, whatever the schemas say */
    bool is_optional; /* a conforming value may have nothing there */
    unsigned types;   /* of enum rv_shape_type, when there are no schemas: 0 then means that schemas count */
};
/* The fields of a place, for messages; in the order of the schema, each once. Borrowed from the schema. */
struct rv_shape_names {
    const char *items[RV_SHAPE_MAX_NAMES];
    size_t n;
};

/** The fields that are declared of a place. */
void shape_names(const struct rv_shape *shape, struct rv_shape_names *names);
/** Add the keys of an object that are not there yet. */
void shape_note_names(struct rv_shape_names *names, json_object *properties);

struct rv_shape plan_shape_of(json_object *schema); /* NULL: anything */
/** One step down; false: there is no such field, and names has those that there are. */
bool shape_step(const struct rv_shape *from, const struct rv_plan_accessor *a, struct rv_shape *to,
                struct rv_shape_names *names);
/** The items of the lists that may be there; false: nothing is declared about them. */
bool shape_items(const struct rv_shape *shape, struct rv_shape *to);
/** Does the schema say what kind of artifact its values are? */
const char *shape_artifact_type(json_object *schema);

/** The types of a value: one bit. */
unsigned shape_types_of(json_object *value);

/* How a value of one shape fits another one. */
enum rv_shape_fit { RV_SHAPE_FITS, RV_SHAPE_MAY_FIT, RV_SHAPE_NEVER_FITS };
enum rv_shape_fit shape_compare(const struct rv_shape *source, const struct rv_shape *target);
/** "string or null", "array of integer", "any". */
void shape_write(const struct rv_shape *shape, rv_buf *out);

#endif

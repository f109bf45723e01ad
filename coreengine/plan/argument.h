/* References in the arguments of planned calls: "$0.output.items[0].id" as a whole string, "${0.output.id}" inside one.
 * A malformed reference is an error: it never reaches a tool as text. */
#ifndef RV_PLAN_ARGUMENT_H
#define RV_PLAN_ARGUMENT_H

#include "coreengine/base/buf.h"
#include "coreengine/plan/error_type.h"

#define RV_PLAN_MAX_REFS 256 /* in the arguments of one call */

enum rv_plan_accessor_kind {
    RV_ACCESSOR_NAME,  /* .name: a key; of digits also a place in a list */
    RV_ACCESSOR_INDEX, /* [3]: a place in a list */
    RV_ACCESSOR_KEY,   /* ["a key"]: a key */
};
struct rv_plan_accessor {
    enum rv_plan_accessor_kind kind;
    rv_str key;                    /* of NAME and KEY; ends with NUL */
    size_t index;                  /* of INDEX, and of a NAME of digits; SIZE_MAX: none, or too large for any list */
    struct rv_plan_accessor *next; /* in the arena */
};

struct rv_plan_ref {
    size_t call;                   /* index of the call in the plan, at most 2^31 - 1 */
    struct rv_plan_accessor *path; /* in the arena */
};

struct rv_plan_piece {
    rv_str text;                   /* as it is, borrowed from the string; unless there is a ref */
    const struct rv_plan_ref *ref; /* NULL: text; in the arena */
    struct rv_plan_piece *next;    /* in the arena */
};

struct rv_plan_argument {
    enum rv_plan_error_type fault; /* INVALID_TEMPLATE_SYNTAX, EMBEDDED_REFERENCE, TOO_MANY_REFERENCES or NONE */
    bool whole;                    /* one reference and nothing else: the value keeps its type */
    size_t n_refs;
    struct rv_plan_piece *first; /* NULL: the empty string, or a fault; in the arena */
};

/** Read one string.
 *  @param arena owns what out points to
 *  @return 0 (also for a fault), RV_E_NOMEM */
RV_MUST_CHECK int rv_plan_argument_read(rv_str text, rv_arena *arena, struct rv_plan_argument *out, rv_err **err);

#endif

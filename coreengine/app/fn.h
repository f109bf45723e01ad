/* Functions of the engine by name: each pure rule as a filter from one JSON value to another. */
#ifndef RV_APP_FN_H
#define RV_APP_FN_H

#include "coreengine/app/app.h"

#define RV_FN_MAX_BYTES RV_STATE_MAX_BYTES       /* of one input */
#define RV_FN_MAX_DEPTH (RV_STATE_MAX_DEPTH + 4) /* states may be wrapped */
#define RV_FN_MAX_REPLY ((size_t)256 << 20)      /* of one answer */
#define RV_FN_MAX_WORDS 10000                    /* of a list of words */

/* What it points to is static. */
struct rv_fn {
    const char *name, *takes, *gives, *doc;
    int (*call)(json_object *in, rv_jw *out, rv_err **err); /* writes exactly one value */
};
/** All of them, in the order of the list. */
#define RV_FN_MAX 128
size_t rv_fn_all(const struct rv_fn *out[RV_FN_MAX]);
/** RV_E_INVALID, with a hint: there is none of that name. */
RV_MUST_CHECK int rv_fn_find(const char *name, const struct rv_fn **out, rv_err **err);
/** The result for an input, appended to body as JSON text. RV_E_PARSE, RV_E_INVALID (the input does not have the shape
 *  that `takes` describes), and what the function says. */
RV_MUST_CHECK int rv_fn_call(const struct rv_fn *f, rv_str input, rv_buf *body, rv_err **err);
void rv_fn_write_reference(rv_buf *b); /* docs/reference/functions.md */

#endif

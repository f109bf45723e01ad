/* Pure rules as JSON filters: one table row each. The shape of the input is text that people read (`reeve fn --list`)
 * and that input is checked by, so a filter finds what it was promised.
 *
 * A shape is "{key: type, key?: type}" or one type for the whole input. Types: word (a string without NUL), string,
 * int, number, bool, object, list, words (a list of words), any; "a|b" is either. An optional key may be null. */
#ifndef RV_APP_FN_INTERNAL_H
#define RV_APP_FN_INTERNAL_H

#include "coreengine/app/app_internal.h"
#include "coreengine/app/check.h"

/* What it points to is static. */
struct rv_fn_group {
    const struct rv_fn *items;
    size_t n;
};
extern const struct rv_fn_group app_fn_group_words, app_fn_group_tools, app_fn_group_pipelines, app_fn_group_runs,
    app_fn_group_agents, app_fn_group_calendar, app_fn_group_text, app_fn_group_rem, app_fn_group_pages,
    app_fn_group_plans, app_fn_group_planning;

/* input.c */
/** Check that the input has that shape. RV_E_INVALID names the key, the value that was found, and the legal values. */
RV_MUST_CHECK int app_fn_check_shape(const char *shape, json_object *in, rv_err **err);
/** The word or string under key; ptr NULL if absent. */
rv_str app_fn_str(json_object *in, const char *key);
bool app_fn_flag(json_object *in, const char *key);
/** The value under key whatever its type; NULL for null or absent. */
json_object *app_fn_any(json_object *in, const char *key);
/** The words of a checked list, borrowed; free() the array. Absent: n 0. */
RV_MUST_CHECK int app_fn_words(json_object *in, const char *key, const char ***out, size_t *n, rv_err **err);
/** `now` (RFC 3339) and `seed` of the input, else the system's clock and randomness. */
struct rv_fn_source {
    int64_t now_us;
    struct rv_rand rand;
    struct rv_rand_state state;
};
RV_MUST_CHECK int app_fn_source(json_object *in, struct rv_fn_source *out, rv_err **err);
/** The envelope of a state dict (may be partial). */
RV_MUST_CHECK int app_fn_envelope(json_object *state, json_object *in, rv_envelope **out, rv_err **err);
/** A sound pipeline from its JSON form. */
RV_MUST_CHECK int app_fn_pipeline(json_object *config, struct rv_pipeline **out, rv_err **err);

#endif

/* What a model wrote as the arguments of a call, where a wire wants an object back. */
#include "coreengine/wire/wire_internal.h"

int rv_body_write_arguments(rv_str text, rv_jw *w, rv_err **err)
{
    static const struct rv_json_opts opts = {
        .max_bytes = RV_LLM_MAX_REPLY, .allow_duplicates = true, .big_ints_as_double = true, .what = "arguments"};
    json_object *arguments = NULL;
    int rc = rv_json_parse(text, &opts, &arguments, NULL);

    if (json_object_is_type(arguments, json_type_object)) {
        rv_jw_value(w, arguments);
    } else {
        rv_jw_obj(w);
        rv_jw_obj_end(w);
    }
    json_object_put(arguments);
    return rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "no memory for the arguments of a tool call") : 0;
}

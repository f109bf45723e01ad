/* Arguments of calls as values: of a reply that has them so, and for a wire that wants them back so. */
#include "coreengine/model/wire/wire_internal.h"

int rv_body_write_arguments(rv_str text, rv_jw *w, rv_err **err)
{
    static const struct rv_json_opts opts = {
        .max_bytes = RV_LLM_MAX_REPLY, .allow_duplicates = true, .what = "arguments"};
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

int rv_reader_arguments_object(rv_wire_reader *r, struct wire_call *c, json_object *arguments, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    int rc = 0;

    rv_json_write(arguments, &text);
    if (text.rc == RV_E_LIMIT)
        rv_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the reply is longer than %zu bytes", RV_LLM_MAX_REPLY);
    else
        rc = rv_buf_check(&text, "the arguments of a tool call", err);
    if (rc == 0 && !r->is_broken)
        rc = rv_reader_arguments(r, c, rv_buf_str(&text), err);
    rv_buf_fini(&text);
    return rc;
}

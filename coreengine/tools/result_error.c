/* Errors that a tool reports in its reply: the call went well, and its JSON says that the tool failed. */
#include <string.h>

#include "coreengine/tools/tools_internal.h"

json_object *rv_tool_reported_error(rv_str reply)
{
    json_object *raw = NULL, *standard = NULL;
    const char *status = NULL;

    /* Without one of these words it cannot; looking is cheaper than parsing. */
    if (!reply.len || (!memmem(reply.ptr, reply.len, "\"status\"", 8) && !memmem(reply.ptr, reply.len, "\"error\"", 7)))
        return NULL;
    if (rv_json_parse(reply, NULL, &raw, NULL) < 0 || rv_tool_result_normalize(raw, &standard, NULL) < 0 ||
        !rv_json_get_text(standard, "status", &status) || strcmp(status, "error") != 0) {
        json_object_put(standard);
        standard = NULL;
    }
    json_object_put(raw);
    return standard;
}

bool rv_tool_is_callers_fault(const char *type)
{
    static const char *const types[] = {"NotFoundError", "ValidationError", "AccessDenied", "InvalidStep"};

    for (size_t i = 0; i < RV_COUNT(types); i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

bool rv_tool_reply_reports_error(rv_str reply)
{
    json_object *standard = rv_tool_reported_error(reply);
    json_object *error = rv_json_get_obj(standard, "error");
    const char *type = "";

    bool reports =
        standard && (!error || !rv_json_get_text(error, "error_type", &type) || !rv_tool_is_callers_fault(type));
    json_object_put(standard);
    return reports;
}

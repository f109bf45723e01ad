/* Standard results: {status, data?, error?, message?} with error {error_type, message, details?, recoverable}. Checking
 * them, and the cheap way of building JSON objects that this module's hot path uses. */
#include "coreengine/tools/tools_internal.h"

#include <limits.h>

/* --- building --- */

static int put(json_object *obj, const char *key, json_object *val, rv_err **err)
{
    if (json_object_object_add_ex(obj, key, val, JSON_C_OBJECT_ADD_KEY_IS_NEW | JSON_C_OBJECT_KEY_IS_CONSTANT) < 0) {
        json_object_put(val); /* a failed add did not take it */
        return RV_FAIL(err, RV_E_NOMEM, "no memory for field \"%s\" of a tool result", key);
    }
    return 0;
}

int rv_tool_put_take(json_object *obj, const char *key, json_object *val, rv_err **err)
{
    if (!val)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for field \"%s\" of a tool result", key);
    return put(obj, key, val, err);
}

int rv_tool_put_null(json_object *obj, const char *key, rv_err **err)
{
    return put(obj, key, NULL, err);
}

int rv_tool_put_ref(json_object *obj, const char *key, json_object *val, rv_err **err)
{
    return put(obj, key, json_object_get(val), err);
}

int rv_tool_put_str(json_object *obj, const char *key, rv_str s, rv_err **err)
{
    if (s.len > INT_MAX - 1) /* json-c counts in int */
        return RV_FAIL(err, RV_E_LIMIT, "field \"%s\" of a tool result is longer than %d bytes", key, INT_MAX - 1);
    return rv_tool_put_take(obj, key, json_object_new_string_len(s.len ? s.ptr : "", (int)s.len), err);
}

int rv_tool_put_text_of(json_object *obj, const char *key, json_object *val, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_TOOL_MAX_TEXT);
    int rc;

    if (json_object_is_type(val, json_type_string))
        return rv_tool_put_ref(obj, key, val, err);
    rv_json_write(val, &text);
    rc = rv_buf_check(&text, "the text form of a value", err);
    if (rc == 0)
        rc = rv_tool_put_str(obj, key, (rv_str){text.ptr, text.len}, err);
    rv_buf_fini(&text);
    return rc;
}

int rv_tool_data_object(json_object *data, json_object **out, rv_err **err)
{
    json_object *wrapped;
    int rc;

    if (json_object_is_type(data, json_type_object)) {
        *out = json_object_get(data);
        return 0;
    }
    wrapped = json_object_new_object();
    if (!wrapped)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for the data of a tool result");
    rc = rv_tool_put_ref(wrapped, "value", data, err);
    if (rc < 0)
        json_object_put(wrapped);
    else
        *out = wrapped;
    return rc;
}

/* --- results --- */

static int check_error(json_object *error, rv_err **err)
{
    json_object *details = NULL;
    const char *text;
    bool recoverable;

    if (!json_object_is_type(error, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "tool result: \"error\" must be an object, found %s",
                       rv_json_type_text(error));
    if (!rv_json_get_text(error, "error_type", &text) || !text[0])
        return RV_FAIL(err, RV_E_INVALID, "tool result: \"error\" needs the text \"error_type\"");
    if (!rv_json_get_text(error, "message", &text))
        return RV_FAIL(err, RV_E_INVALID, "tool result: \"error\" needs the text \"message\"");
    if (!rv_json_get_bool(error, "recoverable", &recoverable))
        return RV_FAIL(err, RV_E_INVALID, "tool result: \"error\" needs the boolean \"recoverable\"");
    if (json_object_object_get_ex(error, "details", &details) && details &&
        !json_object_is_type(details, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "tool result: \"error.details\" must be an object, found %s",
                       rv_json_type_text(details));
    return 0;
}

int rv_tool_result_validate(json_object *result, rv_err **err)
{
    json_object *status = NULL, *error = NULL, *field = NULL;
    enum rv_tool_status s;
    int rc;

    if (!json_object_is_type(result, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "tool result must be an object, found %s", rv_json_type_text(result));
    json_object_object_get_ex(result, "status", &status);
    json_object_object_get_ex(result, "error", &error);
    if (!json_object_is_type(status, json_type_string))
        return RV_FAIL(err, RV_E_INVALID, "tool result: \"status\" must be text, found %s", rv_json_type_text(status));
    rc = rv_tool_status_of(rv_json_str(status), &s, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "tool result: \"status\"");
    if (s == RV_TOOL_STATUS_ERROR && !error)
        return RV_FAIL(err, RV_E_INVALID, "tool result: status error needs an \"error\"");
    if (s == RV_TOOL_STATUS_SUCCESS && error)
        return RV_FAIL(err, RV_E_INVALID, "tool result: status success must not have an \"error\"");
    if (error) {
        rc = check_error(error, err);
        if (rc < 0)
            return rc;
    }
    if (json_object_object_get_ex(result, "data", &field) && field && !json_object_is_type(field, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "tool result: \"data\" must be an object, found %s",
                       rv_json_type_text(field));
    if (json_object_object_get_ex(result, "message", &field) && field && !json_object_is_type(field, json_type_string))
        return RV_FAIL(err, RV_E_INVALID, "tool result: \"message\" must be text, found %s", rv_json_type_text(field));
    return 0;
}

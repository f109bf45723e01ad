/* One entry of a tool stage's `results`: the same keys whether the step ran, failed or was refused. Shares the
 * parameters and data with its sources. On the hot path. */
#include "coreengine/tools/tools_internal.h"

static int fill_error(const struct rv_step_result *s, json_object *error, rv_err **err)
{
    json_object *from = rv_json_get_obj(s->standard, "error"), *v, *details = NULL;
    bool recoverable = s->recoverable;
    int rc;

    /* A failed result without details has no text of its own. */
    if (s->error_type || !from || !json_object_object_get_ex(from, "error_type", &v))
        rc = rv_tool_put_str(error, "type", rv_str_of(s->error_type ? s->error_type : "ToolError"), err);
    else
        rc = rv_tool_put_ref(error, "type", v, err);
    if (rc < 0)
        return rc;
    if (s->error_type || !from || !json_object_object_get_ex(from, "message", &v))
        rc = rv_tool_put_str(error, "message", s->error_type ? s->error_message : RV_STR_LIT("Unknown error"), err);
    else
        rc = rv_tool_put_ref(error, "message", v, err);
    if (rc < 0)
        return rc;
    if (!s->error_type) {
        RV_IGNORE(rv_json_get_bool(from, "recoverable", &recoverable), "absent: the caller's word");
        details = rv_json_get_obj(from, "details");
    }
    rc = rv_tool_put_take(error, "recoverable", json_object_new_boolean(recoverable), err);
    if (rc < 0)
        return rc;
    return details ? rv_tool_put_ref(error, "details", details, err)
                   : rv_tool_put_take(error, "details", json_object_new_object(), err);
}

static int put_error(const struct rv_step_result *s, json_object *result, rv_err **err)
{
    json_object *error = json_object_new_object();
    int rc = error ? fill_error(s, error, err) : RV_FAIL(err, RV_E_NOMEM, "no memory for a step's error");

    if (rc < 0) {
        json_object_put(error);
        return rc;
    }
    return rv_tool_put_take(result, "error", error, err);
}

/* Of a success always; of a failure the part that it got done, if any. */
static int put_data(const struct rv_step_result *s, bool failed, json_object *result, rv_err **err)
{
    json_object *data = NULL, *held = NULL;
    int rc;

    if (!json_object_object_get_ex(s->standard, "data", &data))
        return failed ? 0 : rv_tool_put_take(result, "data", json_object_new_object(), err);
    if (failed && !data)
        return 0;
    rc = rv_tool_data_object(data, &held, err);
    return rc == 0 ? rv_tool_put_take(result, "data", held, err) : rc;
}

static int fill(const struct rv_step_result *s, json_object *result, rv_err **err)
{
    json_object *status = NULL;
    bool failed = s->error_type || !json_object_object_get_ex(s->standard, "status", &status) ||
                  !rv_str_eq(rv_json_str(status), RV_STR_LIT("success"));
    int rc = rv_tool_put_str(result, "step_id", s->step_id, err);

    if (rc == 0)
        rc = rv_tool_put_str(result, "tool", s->tool, err);
    if (rc == 0)
        rc = s->parameters ? rv_tool_put_ref(result, "parameters", s->parameters, err)
                           : rv_tool_put_take(result, "parameters", json_object_new_object(), err);
    if (rc == 0)
        rc = rv_tool_put_str(result, "status", failed ? RV_STR_LIT("error") : RV_STR_LIT("success"), err);
    if (rc == 0)
        rc = rv_tool_put_take(result, "execution_time_ms", json_object_new_int64(s->execution_ms), err);
    if (rc == 0)
        rc = put_data(s, failed, result, err);
    if (rc == 0 && failed)
        rc = put_error(s, result, err);
    return rc;
}

int rv_tool_step_result(const struct rv_step_result *s, json_object **out, rv_err **err)
{
    json_object *result = json_object_new_object();
    int rc = result ? fill(s, result, err) : RV_FAIL(err, RV_E_NOMEM, "no memory for a step's result");

    if (rc < 0)
        json_object_put(result);
    else
        *out = result;
    return rc;
}

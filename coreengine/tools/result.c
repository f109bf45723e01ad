/* Standard results: {status, data?, error?, message?} with error {error_type, message, details?, recoverable}. Checking
 * them, and the cheap way of building JSON objects that this module's hot path uses. */
#include <limits.h>
#include <string.h>

#include "coreengine/tools/tools_internal.h"
#include "envelope/envelope.h"

/* --- building --- */

static int put(json_object *obj, const char *key, json_object *val, rv_err **err)
{
    if (json_object_object_add_ex(obj, key, val, JSON_C_OBJECT_ADD_KEY_IS_NEW | JSON_C_OBJECT_KEY_IS_CONSTANT) < 0) {
        json_object_put(val); /* a failed add did not take it */
        return RV_FAIL(err, RV_E_NOMEM, "no memory for field \"%s\" of a tool result", key);
    }
    return 0;
}

int tools_tool_put_take(json_object *obj, const char *key, json_object *val, rv_err **err)
{
    if (!val)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for field \"%s\" of a tool result", key);
    return put(obj, key, val, err);
}

int tools_tool_put_null(json_object *obj, const char *key, rv_err **err)
{
    return put(obj, key, NULL, err);
}

int tools_tool_put_ref(json_object *obj, const char *key, json_object *val, rv_err **err)
{
    return put(obj, key, json_object_get(val), err);
}

int tools_tool_put_str(json_object *obj, const char *key, rv_str s, rv_err **err)
{
    if (s.len > INT_MAX - 1) /* json-c counts in int */
        return RV_FAIL(err, RV_E_LIMIT, "field \"%s\" of a tool result is longer than %d bytes", key, INT_MAX - 1);
    return tools_tool_put_take(obj, key, json_object_new_string_len(s.len ? s.ptr : "", (int)s.len), err);
}

int tools_tool_put_text_of(json_object *obj, const char *key, json_object *val, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_TOOL_MAX_TEXT);
    int rc;

    if (json_object_is_type(val, json_type_string))
        return tools_tool_put_ref(obj, key, val, err);
    rv_json_write(val, &text);
    rc = rv_buf_check(&text, "the text form of a value", err);
    if (rc == 0)
        rc = tools_tool_put_str(obj, key, (rv_str){text.ptr, text.len}, err);
    rv_buf_fini(&text);
    return rc;
}

int tools_tool_data_object(json_object *data, json_object **out, rv_err **err)
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
    rc = tools_tool_put_ref(wrapped, "value", data, err);
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

/* --- Errors that a tool reports in its reply: the call went well, and its JSON says that the tool failed --- */

json_object *rv_tool_build_reported_error(rv_str reply)
{
    json_object *raw = NULL, *standard = NULL;
    const char *status = NULL;

    /* Without one of these words it cannot; looking is cheaper than parsing. */
    if (!reply.len || (!memmem(reply.ptr, reply.len, "\"status\"", 8) && !memmem(reply.ptr, reply.len, "\"error\"", 7)))
        return NULL;
    if (rv_json_parse(reply, NULL, &raw,
                      RV_CODE_ONLY("a reply that is not JSON reports no error; the core judges it")) < 0 ||
        rv_tool_result_normalize(
            raw, &standard, RV_CODE_ONLY("a reply that is not an object reports no error; the core judges it")) < 0 ||
        !rv_json_get_text(standard, "status", &status) || strcmp(status, "error") != 0) {
        json_object_put(standard);
        standard = NULL;
    }
    json_object_put(raw);
    return standard;
}

bool rv_tool_is_callers_fault(const char *type)
{
    static const char *const types[] = {rv_error_not_found, rv_error_validation, rv_error_access_denied,
                                        rv_error_invalid_step};

    for (size_t i = 0; i < RV_COUNT(types); i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

bool rv_tool_reply_reports_error(rv_str reply)
{
    json_object *standard = rv_tool_build_reported_error(reply);
    json_object *error = rv_json_get_obj(standard, "error");
    const char *type = "";

    bool reports =
        standard && (!error || !rv_json_get_text(error, "error_type", &type) || !rv_tool_is_callers_fault(type));
    json_object_put(standard);
    return reports;
}

/* Any tool's answer as a standard result. Tools say success and failure in many ways; this is the one place that knows
 * them. An object that is a standard result already passes as it is, so normalising twice changes nothing; a bare
 * {status: success} without data is an answer like any other. On the hot path. */

#define MAX_STATUS_WORD 16 /* bytes: longer than any word below; a longer status is none of them */

/* The keys that matter, looked up once. */
struct raw {
    json_object *whole, *status, *data, *error, *message, *content;
    bool has_status, has_data, has_error, has_message, has_content;
    int n_keys;
};

static struct raw look(json_object *whole)
{
    struct raw r = {.whole = whole, .n_keys = json_object_object_length(whole)};

    r.has_status = json_object_object_get_ex(whole, "status", &r.status);
    r.has_data = json_object_object_get_ex(whole, "data", &r.data);
    r.has_error = json_object_object_get_ex(whole, "error", &r.error);
    r.has_message = json_object_object_get_ex(whole, "message", &r.message);
    r.has_content = json_object_object_get_ex(whole, "content", &r.content);
    return r;
}

/* An error that says nothing is none: null, false, "". */
static bool says_error(const struct raw *r)
{
    if (!r->has_error || !r->error)
        return false;
    if (json_object_is_type(r->error, json_type_boolean))
        return json_object_get_boolean(r->error);
    return !json_object_is_type(r->error, json_type_string) || rv_json_str(r->error).len > 0;
}

static bool is_failure(const struct raw *r)
{
    static const struct {
        const char *word;
        bool is_failure;
    } words[] = {
        {"success", false}, {"completed", false}, {"ok", false},    {"error", true},     {"failed", true},
        {"failure", true},  {"timeout", true},    {"denied", true}, {"cancelled", true},
    };
    rv_str status = rv_str_trim(rv_json_str(r->status)); /* the text form of any other type is none of the words */
    char lower[MAX_STATUS_WORD];
    size_t i;

    if (status.len && status.len <= sizeof lower) {
        for (i = 0; i < status.len; i++)
            lower[i] = rv_ascii_lower(status.ptr[i]);
        for (i = 0; i < RV_COUNT(words); i++)
            if (rv_str_is((rv_str){lower, status.len}, words[i].word))
                return words[i].is_failure;
    }
    return says_error(r);
}

/* Has the object the keys of a standard result and no others, and content under them? */
static bool has_standard_keys(const struct raw *r)
{
    return r->n_keys == r->has_status + r->has_data + r->has_error + r->has_message + r->has_content && r->has_status &&
           (!r->has_message || json_object_is_type(r->message, json_type_string));
}

static bool is_error_details(json_object *error)
{
    json_object *details;
    const char *text;
    bool recoverable;

    return rv_json_get_text(error, "error_type", &text) && text[0] && rv_json_get_text(error, "message", &text) &&
           rv_json_get_bool(error, "recoverable", &recoverable) &&
           (!json_object_object_get_ex(error, "details", &details) || !details || rv_json_get_obj(error, "details"));
}

enum shape { SHAPE_OTHER, SHAPE_STANDARD, SHAPE_STANDARD_BUT_DATA };

static enum shape shape_of(const struct raw *r)
{
    rv_str status = rv_json_str(r->status);
    bool data_is_object = json_object_is_type(r->data, json_type_object);

    if (!has_standard_keys(r))
        return SHAPE_OTHER;
    if (r->has_content) /* any other list of that name is a member of the tool's own */
        return rv_str_eq(status, RV_STR_LIT("success")) && data_is_object && !r->has_error &&
                       rv_tool_is_content(r->content)
                   ? SHAPE_STANDARD
                   : SHAPE_OTHER;
    if (rv_str_eq(status, RV_STR_LIT("success")) && r->has_data && !r->has_error)
        return data_is_object ? SHAPE_STANDARD : SHAPE_STANDARD_BUT_DATA;
    if (rv_str_eq(status, RV_STR_LIT("error")) && is_error_details(r->error) && (!r->has_data || data_is_object))
        return SHAPE_STANDARD;
    return SHAPE_OTHER;
}

static int put_message(const struct raw *r, json_object *result, rv_err **err)
{
    return json_object_is_type(r->message, json_type_string) ? tools_tool_put_ref(result, "message", r->message, err)
                                                             : 0;
}

static int fill_success(const struct raw *r, enum shape shape, json_object *result, rv_err **err)
{
    json_object *data = NULL;
    int rc = tools_tool_put_str(result, "status", RV_STR_LIT("success"), err);

    if (rc == 0)
        rc = tools_tool_data_object(shape == SHAPE_STANDARD_BUT_DATA ? r->data : r->whole, &data, err);
    if (rc == 0)
        rc = tools_tool_put_take(result, "data", data, err);
    return rc == 0 ? put_message(r, result, err) : rc;
}

static bool is_recoverable(const struct raw *r)
{
    bool yes = false;

    if (!rv_json_get_bool(r->error, "recoverable", &yes))
        yes = rv_json_bool_or(r->whole, "recoverable", yes);
    return yes;
}

/* Of an error without text of its own. */
static int put_fallback_text(const struct raw *r, json_object *details, rv_err **err)
{
    if (json_object_is_type(r->message, json_type_string))
        return tools_tool_put_ref(details, "message", r->message, err);
    if (says_error(r))
        return tools_tool_put_text_of(details, "message", r->error, err);
    return tools_tool_put_str(details, "message", RV_STR_LIT("Unknown error"), err);
}

static json_object *text_under(json_object *obj, const char *key)
{
    json_object *v = NULL;

    json_object_object_get_ex(obj, key, &v);
    return json_object_is_type(v, json_type_string) ? v : NULL;
}

static int fill_details(const struct raw *r, json_object *details, rv_err **err)
{
    bool is_object = json_object_is_type(r->error, json_type_object);
    json_object *type = text_under(is_object ? r->error : r->whole, is_object ? "type" : "error_type");
    json_object *text = is_object ? text_under(r->error, "message") : says_error(r) ? r->error : NULL;
    int rc;

    rc = rv_json_str(type).len ? tools_tool_put_ref(details, "error_type", type, err)
                               : tools_tool_put_str(details, "error_type", rv_str_of(rv_error_tool), err);
    if (rc == 0)
        rc = json_object_is_type(text, json_type_string) ? tools_tool_put_ref(details, "message", text, err)
                                                         : put_fallback_text(r, details, err);
    if (rc == 0 && is_object)
        rc = tools_tool_put_ref(details, "details", r->error, err);
    if (rc == 0)
        rc = tools_tool_put_take(details, "recoverable", json_object_new_boolean(is_recoverable(r)), err);
    return rc;
}

static int fill_failure(const struct raw *r, json_object *result, rv_err **err)
{
    json_object *details;
    int rc = tools_tool_put_str(result, "status", RV_STR_LIT("error"), err);

    if (rc == 0 && json_object_is_type(r->data, json_type_object))
        rc = tools_tool_put_ref(result, "data", r->data, err);
    if (rc < 0)
        return rc;
    details = json_object_new_object();
    rc = details ? fill_details(r, details, err) : RV_FAIL(err, RV_E_NOMEM, "no memory for error details");
    if (rc < 0) {
        json_object_put(details);
        return rc;
    }
    rc = tools_tool_put_take(result, "error", details, err);
    return rc == 0 ? put_message(r, result, err) : rc;
}

int rv_tool_result_normalize(json_object *raw, json_object **out, rv_err **err)
{
    json_object *result;
    enum shape shape;
    struct raw r;
    int rc;

    if (!json_object_is_type(raw, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "tool result must be an object, found %s", rv_json_type_text(raw));
    r = look(raw);
    shape = shape_of(&r);
    if (shape == SHAPE_STANDARD) {
        *out = json_object_get(raw);
        return 0;
    }
    result = json_object_new_object();
    if (!result)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a tool result");
    rc = is_failure(&r) ? fill_failure(&r, result, err) : fill_success(&r, shape, result, err);
    if (rc < 0)
        json_object_put(result);
    else
        *out = result;
    return rc;
}

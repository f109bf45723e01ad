/* Any tool's answer as a standard result. Tools say success and failure in many ways; this is the one place that knows
 * them. An object that is a standard result already passes as it is, so normalising twice changes nothing; a bare
 * {status: success} without data is an answer like any other. On the hot path. */
#include "coreengine/tools/tools_internal.h"

#define MAX_STATUS_WORD 16 /* longer than any word below */

/* The keys that matter, looked up once. */
struct raw {
    json_object *whole, *status, *data, *error, *message;
    bool has_status, has_data, has_error, has_message;
    int n_keys;
};

static struct raw look(json_object *whole)
{
    struct raw r = {.whole = whole, .n_keys = json_object_object_length(whole)};

    r.has_status = json_object_object_get_ex(whole, "status", &r.status);
    r.has_data = json_object_object_get_ex(whole, "data", &r.data);
    r.has_error = json_object_object_get_ex(whole, "error", &r.error);
    r.has_message = json_object_object_get_ex(whole, "message", &r.message);
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
        for (i = 0; i < status.len; i++) {
            char c = status.ptr[i];
            lower[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        }
        for (i = 0; i < RV_COUNT(words); i++)
            if (rv_str_is((rv_str){lower, status.len}, words[i].word))
                return words[i].is_failure;
    }
    return says_error(r);
}

/* Has the object the keys of a standard result and no others, and content under them? */
static bool has_standard_keys(const struct raw *r)
{
    return r->n_keys == r->has_status + r->has_data + r->has_error + r->has_message && r->has_status &&
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
    if (rv_str_eq(status, RV_STR_LIT("success")) && r->has_data && !r->has_error)
        return data_is_object ? SHAPE_STANDARD : SHAPE_STANDARD_BUT_DATA;
    if (rv_str_eq(status, RV_STR_LIT("error")) && is_error_details(r->error) && (!r->has_data || data_is_object))
        return SHAPE_STANDARD;
    return SHAPE_OTHER;
}

static int put_message(const struct raw *r, json_object *result, rv_err **err)
{
    return json_object_is_type(r->message, json_type_string) ? rv_tool_put_ref(result, "message", r->message, err) : 0;
}

static int fill_success(const struct raw *r, enum shape shape, json_object *result, rv_err **err)
{
    json_object *data = NULL;
    int rc = rv_tool_put_str(result, "status", RV_STR_LIT("success"), err);

    if (rc == 0)
        rc = rv_tool_data_object(shape == SHAPE_STANDARD_BUT_DATA ? r->data : r->whole, &data, err);
    if (rc == 0)
        rc = rv_tool_put_take(result, "data", data, err);
    return rc == 0 ? put_message(r, result, err) : rc;
}

static bool is_recoverable(const struct raw *r)
{
    bool yes = false;

    if (!rv_json_get_bool(r->error, "recoverable", &yes))
        RV_IGNORE(rv_json_get_bool(r->whole, "recoverable", &yes), "absent means no");
    return yes;
}

/* Of an error without text of its own. */
static int put_fallback_text(const struct raw *r, json_object *details, rv_err **err)
{
    if (json_object_is_type(r->message, json_type_string))
        return rv_tool_put_ref(details, "message", r->message, err);
    if (says_error(r))
        return rv_tool_put_text_of(details, "message", r->error, err);
    return rv_tool_put_str(details, "message", RV_STR_LIT("Unknown error"), err);
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

    rc = rv_json_str(type).len ? rv_tool_put_ref(details, "error_type", type, err)
                               : rv_tool_put_str(details, "error_type", RV_STR_LIT("ToolError"), err);
    if (rc == 0)
        rc = json_object_is_type(text, json_type_string) ? rv_tool_put_ref(details, "message", text, err)
                                                         : put_fallback_text(r, details, err);
    if (rc == 0 && is_object)
        rc = rv_tool_put_ref(details, "details", r->error, err);
    if (rc == 0)
        rc = rv_tool_put_take(details, "recoverable", json_object_new_boolean(is_recoverable(r)), err);
    return rc;
}

static int fill_failure(const struct raw *r, json_object *result, rv_err **err)
{
    json_object *details;
    int rc = rv_tool_put_str(result, "status", RV_STR_LIT("error"), err);

    if (rc == 0 && json_object_is_type(r->data, json_type_object))
        rc = rv_tool_put_ref(result, "data", r->data, err);
    if (rc < 0)
        return rc;
    details = json_object_new_object();
    rc = details ? fill_details(r, details, err) : RV_FAIL(err, RV_E_NOMEM, "no memory for error details");
    if (rc < 0) {
        json_object_put(details);
        return rc;
    }
    rc = rv_tool_put_take(result, "error", details, err);
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

/* Refusals over HTTP before a stream: one body that serves readers of problem+json, of p8's `detail` and of OpenAI's
 * `error`. */
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/protocols/protocols_internal.h"

static const struct {
    int status;
    const char *code, *type; /* type: of OpenAI's error */
} kinds[] = {
    {400, "invalid_argument", "invalid_request_error"},
    {401, "unauthenticated", "authentication_error"},
    {403, "permission_denied", "permission_error"},
    {404, "not_found", "not_found_error"},
    {405, "method_not_allowed", "invalid_request_error"},
    {406, "not_acceptable", "invalid_request_error"},
    {408, "timeout", "timeout_error"},
    {409, "failed_precondition", "conflict_error"},
    {413, "resource_exhausted", "invalid_request_error"},
    {414, "uri_too_long", "invalid_request_error"},
    {415, "unsupported_media_type", "invalid_request_error"},
    {421, "misdirected_request", "invalid_request_error"},
    {422, "invalid_argument", "invalid_request_error"},
    {429, "quota_exceeded", "rate_limit_error"},
    {431, "resource_exhausted", "invalid_request_error"},
    {500, "internal_error", "server_error"},
    {501, "not_implemented", "server_error"},
    {502, "provider_error", "server_error"},
    {503, "unavailable", "server_error"},
    {504, "timeout", "server_error"},
    {507, "disk_full", "server_error"},
};

static size_t row_of(int status)
{
    size_t general = 0;

    for (size_t i = 0; i < RV_COUNT(kinds); i++) {
        if (kinds[i].status == status)
            return i;
        if (kinds[i].status == (status >= 500 ? 500 : 400))
            general = i;
    }
    return general;
}

const char *rv_protocol_fault_type(enum rv_protocol_family family)
{
    return family == RV_FAMILY_PROBLEM ? "application/problem+json" : "application/json";
}

void rv_protocol_fault_write(enum rv_protocol_family family, const struct rv_protocol_fault *fault, rv_buf *out)
{
    size_t row = row_of(fault->status);
    const char *reason = rv_http_reason(fault->status);
    const char *title = reason ? reason : rv_http_reason(kinds[row].status);
    const char *code = fault->code ? fault->code : kinds[row].code;
    const char *detail = fault->detail ? fault->detail : title;
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "type", "about:blank");
    rv_jw_kv_text(&w, "title", title);
    rv_jw_kv_int(&w, "status", fault->status);
    if (family == RV_FAMILY_P8 && fault->details)
        rv_jw_kv_value(&w, "detail", fault->details);
    else
        rv_jw_kv_text(&w, "detail", detail);
    rv_jw_kv_text(&w, "code", code);
    if (fault->request_id)
        rv_jw_kv_text(&w, "request_id", fault->request_id);
    rv_jw_key(&w, "error");
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "message", detail);
    rv_jw_kv_text(&w, "type", kinds[row].type);
    rv_jw_kv_text(&w, "param", fault->param && fault->param[0] ? fault->param : NULL);
    rv_jw_kv_text(&w, "code", code);
    rv_jw_obj_end(&w);
    rv_jw_obj_end(&w);
}

int rv_protocol_status(int code)
{
    switch ((enum rv_code)code) { /* without default: a new code is given its status here */
    case RV_E_INVALID:
    case RV_E_PARSE:
    case RV_E_VERSION:
        return 400;
    case RV_E_DENIED:
        return 403;
    case RV_E_NOT_FOUND:
        return 404;
    case RV_E_EXISTS:
    case RV_E_STATE:
    case RV_E_CANCELLED:
        return 409;
    case RV_E_LIMIT:
        return 413;
    case RV_E_QUOTA:
        return 429;
    case RV_E_PROVIDER:
    case RV_E_TOOL:
        return 502;
    case RV_E_UNAVAILABLE:
    case RV_E_FILES:
    case RV_E_THREADS:
        return 503;
    case RV_E_TIMEOUT:
        return 504;
    case RV_E_DISK:
        return 507;
    case RV_E_NOMEM:
    case RV_E_IO:
    case RV_E_PLUGIN:
    case RV_E_INTERNAL:
        break;
    }
    return 500;
}

void proto_write_failure(json_object *event, rv_buf *out)
{
    const char *error = proto_member(event, "error"), *type = proto_member(event, "error_type");
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "status", "error");
    rv_jw_kv_text(&w, "error", error ? error : "the call failed");
    if (type)
        rv_jw_kv_text(&w, "error_type", type);
    rv_jw_obj_end(&w);
}

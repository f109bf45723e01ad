/* Refusals over HTTP before a stream: one body that serves readers of problem+json, of p8's `detail` and of OpenAI's
 * `error`. */
#include <string.h>

#include "coreengine/protocols/protocols_internal.h"

static const struct {
    int status;
    const char *title, *code, *type; /* type: of OpenAI's error */
} titles[] = {
    {400, "Bad Request", "invalid_argument", "invalid_request_error"},
    {401, "Unauthorized", "unauthenticated", "authentication_error"},
    {403, "Forbidden", "permission_denied", "permission_error"},
    {404, "Not Found", "not_found", "not_found_error"},
    {405, "Method Not Allowed", "method_not_allowed", "invalid_request_error"},
    {406, "Not Acceptable", "not_acceptable", "invalid_request_error"},
    {408, "Request Timeout", "timeout", "timeout_error"},
    {409, "Conflict", "failed_precondition", "conflict_error"},
    {413, "Content Too Large", "resource_exhausted", "invalid_request_error"},
    {414, "URI Too Long", "uri_too_long", "invalid_request_error"},
    {415, "Unsupported Media Type", "unsupported_media_type", "invalid_request_error"},
    {421, "Misdirected Request", "misdirected_request", "invalid_request_error"},
    {422, "Unprocessable Content", "invalid_argument", "invalid_request_error"},
    {429, "Too Many Requests", "quota_exceeded", "rate_limit_error"},
    {431, "Request Header Fields Too Large", "resource_exhausted", "invalid_request_error"},
    {500, "Internal Server Error", "internal_error", "server_error"},
    {501, "Not Implemented", "not_implemented", "server_error"},
    {502, "Bad Gateway", "provider_error", "server_error"},
    {503, "Service Unavailable", "unavailable", "server_error"},
    {504, "Gateway Timeout", "timeout", "server_error"},
    {507, "Insufficient Storage", "disk_full", "server_error"},
};

static size_t row_of(int status)
{
    size_t general = 0;

    for (size_t i = 0; i < RV_COUNT(titles); i++) {
        if (titles[i].status == status)
            return i;
        if (titles[i].status == (status >= 500 ? 500 : 400))
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
    const char *code = fault->code ? fault->code : titles[row].code;
    const char *detail = fault->detail ? fault->detail : titles[row].title;
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "type", "about:blank");
    rv_jw_kv_text(&w, "title", titles[row].title);
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
    rv_jw_kv_text(&w, "type", titles[row].type);
    rv_jw_kv_text(&w, "param", fault->param && fault->param[0] ? fault->param : NULL);
    rv_jw_kv_text(&w, "code", code);
    rv_jw_obj_end(&w);
    rv_jw_obj_end(&w);
}

int rv_protocol_status(int code)
{
    static const struct {
        int code, status;
    } statuses[] = {
        {RV_E_INVALID, 400}, {RV_E_PARSE, 400},   {RV_E_LIMIT, 413},   {RV_E_NOT_FOUND, 404},   {RV_E_EXISTS, 409},
        {RV_E_STATE, 409},   {RV_E_DENIED, 403},  {RV_E_TIMEOUT, 504}, {RV_E_CANCELLED, 409},   {RV_E_PROVIDER, 502},
        {RV_E_TOOL, 502},    {RV_E_VERSION, 400}, {RV_E_QUOTA, 429},   {RV_E_UNAVAILABLE, 503}, {RV_E_DISK, 507},
        {RV_E_FILES, 503},   {RV_E_THREADS, 503},
    };

    for (size_t i = 0; i < RV_COUNT(statuses); i++)
        if (statuses[i].code == code)
            return statuses[i].status;
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

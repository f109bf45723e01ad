/* What Anthropic's errors mean, whether they are the body of an answer or come in the middle of a stream. */
#include <string.h>

#include "coreengine/model/wire/anthropic_internal.h"

/* Data, not code: what the types of errors mean here. */
static const struct {
    const char *type;
    enum rv_llm_error kind;
    bool is_final; /* repeating cannot help although the kind would allow it */
} error_types[] = {
    {"invalid_request_error", RV_LLM_ERROR_BAD_REQUEST, true},
    {"authentication_error", RV_LLM_ERROR_AUTH, true},
    {"permission_error", RV_LLM_ERROR_AUTH, true},
    {"billing_error", RV_LLM_ERROR_RATE_LIMITED, true},
    {"not_found_error", RV_LLM_ERROR_BAD_REQUEST, true},
    {"request_too_large", RV_LLM_ERROR_CONTEXT_TOO_LONG, true},
    {"rate_limit_error", RV_LLM_ERROR_RATE_LIMITED, false},
    {"api_error", RV_LLM_ERROR_OVERLOADED, false},
    {"timeout_error", RV_LLM_ERROR_TIMEOUT, false},
    {"overloaded_error", RV_LLM_ERROR_OVERLOADED, false},
};

/* Bad requests whose words tell more than their type. */
static const struct {
    const char *words;
    enum rv_llm_error kind;
} bad_requests[] = {
    {"prompt is too long", RV_LLM_ERROR_CONTEXT_TOO_LONG}, {"exceed context limit", RV_LLM_ERROR_CONTEXT_TOO_LONG},
    {"context window", RV_LLM_ERROR_CONTEXT_TOO_LONG},     {"maximum context length", RV_LLM_ERROR_CONTEXT_TOO_LONG},
    {"content filtering", RV_LLM_ERROR_CONTENT_FILTER},    {"credit balance", RV_LLM_ERROR_RATE_LIMITED},
};

void rv_anthropic_fault(json_object *body, int status, int *kind, bool *retryable, rv_buf *text)
{
    json_object *error = body ? rv_json_get_obj(body, "error") : NULL;
    json_object *details = error ? rv_json_get_obj(error, "details") : NULL;
    rv_str type = error ? rv_wire_text(error, "type") : (rv_str){NULL, 0}, message;

    (void)status; /* says what its type says again */
    if (!error)
        return;
    for (size_t i = 0; i < RV_COUNT(error_types); i++) {
        if (!rv_str_is(type, error_types[i].type))
            continue;
        *kind = (int)error_types[i].kind;
        *retryable = !error_types[i].is_final;
    }
    if (details && rv_wire_text(details, "error_code").len && *kind == RV_LLM_ERROR_RATE_LIMITED)
        *retryable = false; /* the limit of what may be spent, not of how fast */
    message = rv_wire_text(error, "message");
    rv_buf_add_str(text, message.len ? message : type);
    for (size_t i = 0; *kind == RV_LLM_ERROR_BAD_REQUEST && i < RV_COUNT(bad_requests); i++)
        if (strcasestr(rv_buf_cstr(text), bad_requests[i].words))
            *kind = (int)bad_requests[i].kind;
}

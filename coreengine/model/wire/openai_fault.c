/* OpenAI Chat Completions: what its error objects mean. The same object comes as the body of a bad status and in the
 * middle of a stream. */
#include <string.h>
#include <strings.h>

#include "coreengine/model/wire/wire_internal.h"

/* Words of `code` or `type`. Where there is a status it says more than the plain types do. */
static const struct {
    const char *word;
    enum rv_llm_error kind;
    bool retryable, needs_no_status;
} words[] = {
    {"context_length_exceeded", RV_LLM_ERROR_CONTEXT_TOO_LONG, false, false},
    {"exceed_context_size_error", RV_LLM_ERROR_CONTEXT_TOO_LONG, false, false},
    {"insufficient_quota", RV_LLM_ERROR_RATE_LIMITED, false, false},
    {"billing_hard_limit_reached", RV_LLM_ERROR_RATE_LIMITED, false, false},
    {"billing_not_active", RV_LLM_ERROR_RATE_LIMITED, false, false},
    {"content_filter", RV_LLM_ERROR_CONTENT_FILTER, false, false},
    {"content_policy_violation", RV_LLM_ERROR_CONTENT_FILTER, false, false},
    {"ResponsibleAIPolicyViolation", RV_LLM_ERROR_CONTENT_FILTER, false, false},
    {"invalid_api_key", RV_LLM_ERROR_AUTH, false, false},
    {"rate_limit_exceeded", RV_LLM_ERROR_RATE_LIMITED, true, true},
    {"rate_limit_error", RV_LLM_ERROR_RATE_LIMITED, true, true},
    {"authentication_error", RV_LLM_ERROR_AUTH, false, true},
    {"permission_error", RV_LLM_ERROR_AUTH, false, true},
    {"timeout", RV_LLM_ERROR_TIMEOUT, true, true},
    {"server_error", RV_LLM_ERROR_OVERLOADED, true, true},
    {"invalid_request_error", RV_LLM_ERROR_BAD_REQUEST, false, true},
};

/* Servers that have no code for it say it in one of these ways. */
static const char *const too_long[] = {"maximum context length", "context size", "context window", "context length"};

static bool apply_word(rv_str word, int status, int *kind, bool *retryable)
{
    for (size_t i = 0; word.len && i < RV_COUNT(words); i++) {
        if (rv_str_is(word, words[i].word) && (status == 0 || !words[i].needs_no_status)) {
            *kind = (int)words[i].kind;
            *retryable = words[i].retryable;
            return true;
        }
    }
    return false;
}

static bool contains(rv_str text, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= text.len; i++)
        if (strncasecmp(text.ptr + i, word, n) == 0)
            return true;
    return false;
}

static void apply_message(rv_str message, int *kind, bool *retryable)
{
    for (size_t i = 0; *kind == RV_LLM_ERROR_BAD_REQUEST && i < RV_COUNT(too_long); i++) {
        if (contains(message, too_long[i])) {
            *kind = RV_LLM_ERROR_CONTEXT_TOO_LONG;
            *retryable = false;
        }
    }
}

void rv_openai_fault(json_object *body, int status, int *kind, bool *retryable, rv_buf *text)
{
    json_object *error = rv_json_get_obj(body, "error");
    rv_str message, code, type;
    int64_t number = 0;

    if (!error) { /* an error that is a text, or no "error" at all */
        message = rv_wire_text(body, "error");
        if (!message.len)
            message = rv_wire_text(body, "message");
        if (!message.len)
            message = rv_wire_text(body, "detail");
        error = body;
    } else {
        message = rv_wire_text(error, "message");
    }
    code = rv_wire_text(error, "code");
    type = rv_wire_text(error, "type");
    if (status == 0 && rv_json_get_int(error, "code", &number) && number >= 400 && number < 600) {
        status = (int)number;
        *kind = (int)rv_fault_kind(status, retryable);
    }
    if (!apply_word(code, status, kind, retryable) && !apply_word(type, status, kind, retryable))
        apply_message(message, kind, retryable);
    rv_buf_add_str(text, message);
    if (code.len || type.len)
        rv_buf_printf(text, message.len ? " (%.*s)" : "%.*s", RV_STR_ARG(code.len ? code : type));
}

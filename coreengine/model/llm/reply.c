/* A reply while it is put together, and what its failures mean. */
#include "coreengine/model/llm/llm.h"

#define MAX_ERROR  ((size_t)64 << 10) /* what a provider says went wrong */
#define MAX_OPAQUE ((size_t)4 << 20)  /* what it wants back with a turn */

void rv_llm_reply_init(struct rv_llm_reply *r)
{
    *r = (struct rv_llm_reply){.text = RV_BUF_INIT(RV_LLM_MAX_REPLY),
                               .error = RV_BUF_INIT(MAX_ERROR),
                               .tool_calls = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY),
                               .opaque = RV_BUF_INIT(MAX_OPAQUE),
                               .answer = RV_LLM_ANSWER_NONE,
                               .code = RV_FAILURE_NONE};
}

void rv_llm_reply_fini(struct rv_llm_reply *r)
{
    rv_buf_fini(&r->text);
    rv_buf_fini(&r->error);
    rv_buf_fini(&r->tool_calls);
    rv_buf_fini(&r->opaque);
}

struct rv_llm_answer rv_llm_reply_answer(const struct rv_llm_reply *r)
{
    struct rv_llm_answer answer = r->answer;

    answer.tool_calls = rv_buf_str(&r->tool_calls);
    answer.opaque = rv_buf_str(&r->opaque);
    return answer;
}

void rv_llm_reply_fail_at(struct rv_llm_reply *r, enum rv_llm_error kind, const char *c_file, int c_line,
                          const char *fmt, ...)
{
    va_list args;

    r->failed = true;
    r->retryable = rv_llm_error_is_retryable(kind);
    r->answer.error_kind = (int)kind;
    r->code = rv_llm_error_code((int)kind);
    rv_buf_clear(&r->error);
    va_start(args, fmt);
    rv_buf_vprintf(&r->error, fmt, args);
    va_end(args);
    r->c_file = c_file;
    r->c_line = c_line;
}

bool rv_llm_error_is_retryable(enum rv_llm_error kind)
{
    return kind == RV_LLM_ERROR_RATE_LIMITED || kind == RV_LLM_ERROR_OVERLOADED || kind == RV_LLM_ERROR_TIMEOUT ||
           kind == RV_LLM_ERROR_CONNECTION || kind == RV_LLM_ERROR_PROTOCOL;
}

const char *rv_llm_error_type(int kind)
{
    if (kind == RV_LLM_ERROR_TIMEOUT)
        return "TimeoutError";
    return kind == RV_LLM_ERROR_CANCELLED ? "CancelledError" : "LLMError";
}

enum rv_failure rv_llm_error_code(int kind)
{
    static const enum rv_failure codes[] = {
        [RV_LLM_ERROR_RATE_LIMITED] = RV_FAILURE_MODEL_RATE_LIMITED,
        [RV_LLM_ERROR_OVERLOADED] = RV_FAILURE_MODEL_OVERLOADED,
        [RV_LLM_ERROR_TIMEOUT] = RV_FAILURE_MODEL_TIMED_OUT,
        [RV_LLM_ERROR_CONNECTION] = RV_FAILURE_MODEL_NO_CONNECTION,
        [RV_LLM_ERROR_PROTOCOL] = RV_FAILURE_MODEL_BAD_ANSWER,
        [RV_LLM_ERROR_BAD_REQUEST] = RV_FAILURE_MODEL_BAD_REQUEST,
        [RV_LLM_ERROR_AUTH] = RV_FAILURE_MODEL_REFUSED,
        [RV_LLM_ERROR_CONTEXT_TOO_LONG] = RV_FAILURE_MODEL_CONTEXT_TOO_LONG,
        [RV_LLM_ERROR_CONTENT_FILTER] = RV_FAILURE_MODEL_CONTENT_FILTER,
        [RV_LLM_ERROR_CANCELLED] = RV_FAILURE_CANCELLED,
    };

    return kind >= 0 && (size_t)kind < RV_COUNT(codes) ? codes[kind] : RV_FAILURE_MODEL_FAILED;
}

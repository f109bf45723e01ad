/* A visit fails: the error is recorded and the phase becomes PHASE_FAILED; end_failure.c does what follows from it.
 * Which code a failure has. */
#include "coreengine/agent/agent_internal.h"

#include <stdlib.h>
#include <string.h>

/* Where only the type is known. Types that capabilities made up are failures of a tool, hook or mock. */
static enum rv_failure failure_of_stage(const char *type)
{
    static const struct {
        const char *type;
        enum rv_failure code;
    } codes[] = {
        {"LLMError", RV_FAILURE_MODEL_FAILED},        {"LimitError", RV_FAILURE_LIMIT_REACHED},
        {"ParseError", RV_FAILURE_OUTPUT_UNREADABLE}, {"ValidationError", RV_FAILURE_OUTPUT_INVALID},
        {"HookError", RV_FAILURE_HOOK_FAILED},        {"PolicyError", RV_FAILURE_POLICY_FAILED},
        {"TimeoutError", RV_FAILURE_STAGE_TIMED_OUT}, {"CancelledError", RV_FAILURE_CANCELLED},
        {"ToolError", RV_FAILURE_TOOL_FAILED},
    };

    for (size_t i = 0; i < RV_COUNT(codes); i++)
        if (strcmp(codes[i].type, type) == 0)
            return codes[i].code;
    return RV_FAILURE_STAGE_FAILED;
}

enum rv_failure rv_failure_of_tool(const char *type)
{
    static const struct {
        const char *type;
        enum rv_failure code;
    } codes[] = {
        {"TimeoutError", RV_FAILURE_TOOL_TIMED_OUT},   {"NotFoundError", RV_FAILURE_TOOL_NOT_FOUND},
        {"AccessDenied", RV_FAILURE_TOOL_NOT_ALLOWED}, {"ValidationError", RV_FAILURE_TOOL_INVALID},
        {"InvalidStep", RV_FAILURE_TOOL_INVALID},      {"AgentError", RV_FAILURE_AGENT_FAILED},
    };

    for (size_t i = 0; type && i < RV_COUNT(codes); i++)
        if (strcmp(codes[i].type, type) == 0)
            return codes[i].code;
    return RV_FAILURE_TOOL_FAILED;
}

enum rv_failure rv_event_failure(const struct rv_event *ev)
{
    bool is_timeout = ev->error_type && strcmp(ev->error_type, "TimeoutError") == 0;
    enum rv_failure code;

    if (ev->code && rv_failure_of(rv_str_of(ev->code), &code, NULL) == 0)
        return code;
    if (ev->kind == RV_EVENT_TOOL_DONE)
        return rv_failure_of_tool(ev->error_type);
    if (ev->kind == RV_EVENT_HOOK_DONE)
        return is_timeout ? RV_FAILURE_HOOK_TIMED_OUT : RV_FAILURE_HOOK_FAILED;
    return ev->llm.error_kind < 0 && is_timeout ? RV_FAILURE_MODEL_TIMED_OUT : rv_llm_error_code(ev->llm.error_kind);
}

void rv_visit_write_code(const rv_visit *v, enum rv_failure code, rv_jw *w)
{
    if (v->shared->rules >= RV_RULES_3 && code != RV_FAILURE_NONE)
        rv_jw_kv_text(w, "code", rv_failure_text(code));
}

int rv_visit_fail_at(rv_visit *v, enum rv_failure code, const char *type, const char *c_file, int c_line, rv_err **err,
                     const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    va_list ap;

    va_start(ap, fmt);
    rv_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    free(v->error_text);
    v->error_text = rv_buf_steal(&text, NULL);
    rv_buf_fini(&text);
    if (!v->error_text)
        return RV_FAIL(err, RV_E_NOMEM, "report the failure of stage \"%s\"", v->agent->name);
    rv_err_free(v->failure);
    v->failure = NULL;
    RV_IGNORE(rv_err_new_at(&v->failure, RV_E_STATE, c_file, c_line, NULL, "%s", v->error_text), "looked at below");
    if (rv_err_is(v->failure, RV_E_NOMEM))
        return RV_FAIL(err, RV_E_NOMEM, "report the failure of stage \"%s\"", v->agent->name);
    v->code = code != RV_FAILURE_NONE ? code : failure_of_stage(type);
    v->error_type = type;
    v->failed_in = v->phase;
    v->phase = PHASE_FAILED;
    return 0;
}

void rv_visit_fail_by(rv_visit *v, const struct rv_event *ev)
{
    if (!ev->causes)
        return;
    rv_err_add_causes(&v->failure, *ev->causes);
    *ev->causes = NULL;
}

int rv_visit_fail_cause(rv_visit *v, const char *type, rv_err *cause, rv_err **err)
{
    if (rv_err_is(cause, RV_E_NOMEM)) {
        if (err)
            *err = cause;
        else
            rv_err_free(cause);
        return RV_E_NOMEM;
    }
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    struct rv_src place = {NULL, 0, 0};
    for (const rv_err *link = cause; link; link = rv_err_cause(link)) {
        struct rv_src src = rv_err_src(link);
        if (link != cause)
            rv_buf_puts(&text, ": ");
        rv_buf_puts(&text, rv_err_text(link));
        if (src.file)
            place = src;
    }
    if (place.file)
        rv_buf_printf(&text, " (%s:%d:%d)", place.file, place.line, place.col);
    int rc = rv_buf_check(&text, "error text", err);
    if (rc == 0)
        rc = rv_visit_fail(v, type, err, "%s", rv_buf_cstr(&text));
    rv_buf_fini(&text);
    if (rc == 0) {
        rv_err_free(v->failure);
        v->failure = cause;
    } else {
        rv_err_free(cause);
    }
    return rc;
}

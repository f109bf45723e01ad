/* Types of errors: words that name what failed, in events, states, journals, and what models and capabilities are told.
 * A capability may give its own, so a type is a text; reeve's own are in this list, and code names them by it. */
#ifndef RV_ERROR_TYPES_H
#define RV_ERROR_TYPES_H

#include <stdbool.h>
#include <string.h>

#define RV_ERROR_TYPES(X)                                                                                              \
    X(timeout, "TimeoutError", "it had no more time")                                                                  \
    X(cancelled, "CancelledError", "it was stopped, or no longer wanted")                                              \
    X(processing, "ProcessingError", "the stage itself")                                                               \
    X(llm, "LLMError", "the model, or its provider")                                                                   \
    X(parse, "ParseError", "the model's reply cannot be read")                                                         \
    X(validation, "ValidationError", "arguments, parameters or fields are not as declared")                            \
    X(hook, "HookError", "a hook")                                                                                     \
    X(policy, "PolicyError", "a policy said no, or did not answer")                                                    \
    X(limit, "LimitError", "a limit")                                                                                  \
    X(tool, "ToolError", "the tool said so")                                                                           \
    X(agent, "AgentError", "the agent that was asked")                                                                 \
    X(execution, "ExecutionError", "the tool failed without saying how")                                               \
    X(not_found, "NotFoundError", "what was called is not there")                                                      \
    X(access_denied, "AccessDenied", "the agent may not call it")                                                      \
    X(invalid_step, "InvalidStep", "the step of the model is not one")                                                 \
    X(expression, "ExpressionError", "an expression")                                                                  \
    X(template, "TemplateError", "a template")                                                                         \
    X(join, "JoinError", "a join that was not satisfied")                                                              \
    X(exists, "ExistsError", "it is there already")                                                                    \
    X(unavailable, "UnavailableError", "what it needs is not there now")                                               \
    X(conflict, "ConflictError", "another change came first")                                                          \
    X(provider, "ProviderError", "the provider of a service")                                                          \
    X(question_cancelled, "QuestionCancelledError", "a person cancelled the question")

/* The words: rv_error_timeout, ... */
#define RV_ERROR_TYPE_DECLARE(name, text, meaning) extern const char rv_error_##name[];
RV_ERROR_TYPES(RV_ERROR_TYPE_DECLARE)
#undef RV_ERROR_TYPE_DECLARE

/** type NULL: there is none. */
static inline bool rv_error_is(const char *type, const char *word)
{
    return type && strcmp(type, word) == 0;
}

#endif

/* The words of the field, each list written once: constant, wire text, meaning. The lists make the enums, both
 * conversions, the reference page and the `fn` filters. Unknown text is an error that names the nearest word. */
#ifndef RV_TERMS_H
#define RV_TERMS_H

#include "coreengine/base/base.h"
#include "envelope/failures.h"
#include "envelope/tasks.h"

#define RV_OUTCOMES(X)                                                                                                 \
    X(SUCCESS, "success", "done, go on")                                                                               \
    X(ERROR, "error", "failed")                                                                                        \
    X(CLARIFY, "clarify", "the user must answer a question")                                                           \
    X(CONFIRM, "confirm", "the user must approve")                                                                     \
    X(REPLAN, "replan", "plan again")                                                                                  \
    X(LOOP_BACK, "loop_back", "go back to an earlier stage")                                                           \
    X(TERMINATE, "terminate", "stop the pipeline")                                                                     \
    X(SKIP, "skip", "the stage did nothing")                                                                           \
    X(PARTIAL, "partial", "done in part")

#define RV_TOOL_STATUSES(X)                                                                                            \
    X(SUCCESS, "success", "the tool did it")                                                                           \
    X(ERROR, "error", "the tool failed")

#define RV_EFFECT_CLASSES(X)                                                                                           \
    X(SAFE, "safe", "changes nothing; may run any number of times")                                                    \
    X(IDEMPOTENT, "idempotent", "repeating it leaves the same state")                                                  \
    X(NON_IDEMPOTENT, "non_idempotent", "repeating it does it again")

#define RV_RISKS(X)                                                                                                    \
    X(READ_ONLY, "read_only", "reads only")                                                                            \
    X(WRITE, "write", "changes something")                                                                             \
    X(DESTRUCTIVE, "destructive", "may destroy something")                                                             \
    X(LOW, "low", "severity low")                                                                                      \
    X(MEDIUM, "medium", "severity medium")                                                                             \
    X(HIGH, "high", "severity high")                                                                                   \
    X(CRITICAL, "critical", "severity critical")

#define RV_TOOL_CATEGORIES(X)                                                                                          \
    X(READ, "read", "by operation: reads")                                                                             \
    X(WRITE, "write", "by operation: writes")                                                                          \
    X(EXECUTE, "execute", "by operation: executes")                                                                    \
    X(NETWORK, "network", "by operation: uses the network")                                                            \
    X(SYSTEM, "system", "by operation: touches the system")                                                            \
    X(UNIFIED, "unified", "by organisation: one front")                                                                \
    X(COMPOSITE, "composite", "by organisation: made of others")                                                       \
    X(RESILIENT, "resilient", "by organisation: retries by itself")                                                    \
    X(STANDALONE, "standalone", "by organisation: on its own")                                                         \
    X(INTERNAL, "internal", "by organisation: for the engine")

#define RV_SEVERITIES(X)                                                                                               \
    X(CRITICAL, "critical", "loading stops")                                                                           \
    X(ERROR, "error", "the file cannot be used")                                                                       \
    X(WARNING, "warning", "probably not what was meant")

#define RV_REASONS(X)                                                                                                  \
    X(COMPLETED, "completed", "the end was reached")                                                                   \
    X(MAX_ITERATIONS, "max_iterations_exceeded", "too many loop-backs")                                                \
    X(MAX_LLM_CALLS, "max_llm_calls_exceeded", "no model call left")                                                   \
    X(MAX_HOPS, "max_agent_hops_exceeded", "no stage visit left")                                                      \
    X(MAX_LOOP, "max_loop_exceeded", "an edge was used too often")                                                     \
    X(MAX_VISITS, "max_stage_visits_exceeded", "a stage was visited too often")                                        \
    X(MAX_ITEMS, "max_items_exceeded", "a list had more elements than max_items")                                      \
    X(USER_CANCELLED, "user_cancelled", "a person said no or stopped it")                                              \
    X(TOOL_FAILED, "tool_failed_fatally", "a stage failed and nothing caught it")                                      \
    X(LLM_FAILED, "llm_failed_fatally", "a model stage failed and nothing caught it")                                  \
    X(EXPRESSION, "expression_failed", "an expression failed and nothing caught it")                                   \
    X(TEMPLATE, "template_failed", "a prompt or question could not be rendered and nothing caught it")                 \
    X(JOIN, "join_failed", "a join was not satisfied and nothing caught it")                                           \
    X(POLICY, "policy_violation", "a policy denied it")                                                                \
    X(BUDGET, "budget_exceeded", "the money for the run is used up")                                                   \
    X(QUOTA, "quota_exceeded", "a quota or a rate of the user or the tenant does not allow it now")                    \
    X(BREAK, "break_requested", "a stage broke off the run on purpose")

/* The class of a terminal reason. */
#define RV_REASON_CLASSES(X)                                                                                           \
    X(COMPLETED, "completed", "the run did what it was to do: completed, break_requested")                             \
    X(BOUNDS_EXCEEDED, "bounds_exceeded", "a bound stopped it: the reasons that end in _exceeded")                     \
    X(FAILED, "failed", "a failure, a denial or a person stopped it: the other reasons")

#define RV_INTERRUPT_KINDS(X)                                                                                          \
    X(CLARIFICATION, "clarification", "a question to the user")                                                        \
    X(CONFIRMATION, "confirmation", "an approval is needed")                                                           \
    X(AGENT_REVIEW, "agent_review", "a person must review")                                                            \
    X(CHECKPOINT, "checkpoint", "a planned stop")                                                                      \
    X(RESOURCE_EXHAUSTED, "resource_exhausted", "a resource is used up")                                               \
    X(TIMEOUT, "timeout", "something took too long")                                                                   \
    X(SYSTEM_ERROR, "system_error", "the system has a fault")

#define RV_INTERRUPT_STATUSES(X)                                                                                       \
    X(PENDING, "pending", "not answered")                                                                              \
    X(RESOLVED, "resolved", "answered")                                                                                \
    X(EXPIRED, "expired", "too late to answer")                                                                        \
    X(CANCELLED, "cancelled", "no answer wanted any more")

#define RV_RUN_MODES(X)                                                                                                \
    X(SEQUENTIAL, "sequential", "one stage at a time, by routing")                                                     \
    X(PARALLEL, "parallel", "all ready stages at once, by dependencies")

#define RV_JOINS(X)                                                                                                    \
    X(ALL, "all", "wait for every one")                                                                                \
    X(ANY, "any", "one is enough")

#define RV_TOOL_ACCESSES(X)                                                                                            \
    X(NONE, "none", "no tool")                                                                                         \
    X(READ, "read", "tools that only read")                                                                            \
    X(WRITE, "write", "tools that read or write, none that destroys")                                                  \
    X(ALL, "all", "every tool")

#define RV_AGENT_CAPABILITIES(X)                                                                                       \
    X(LLM, "llm", "calls a model")                                                                                     \
    X(TOOLS, "tools", "executes a plan of tools")                                                                      \
    X(POLICIES, "policies", "asks policies")                                                                           \
    X(SERVICE, "service", "hooks do the work")

#define RV_VERDICTS(X)                                                                                                 \
    X(PROCEED, "proceed", "go on")                                                                                     \
    X(LOOP_BACK, "loop_back", "go back")                                                                               \
    X(ADVANCE, "advance", "next stage of the work")                                                                    \
    X(ESCALATE, "escalate", "ask a person")

#define RV_APPROVALS(X)                                                                                                \
    X(APPROVED, "approved", "allowed")                                                                                 \
    X(DENIED, "denied", "forbidden")                                                                                   \
    X(PENDING, "pending", "not decided")

#define RV_OPERATION_STATUSES(X)                                                                                       \
    X(SUCCESS, "success", "done")                                                                                      \
    X(ERROR, "error", "failed")                                                                                        \
    X(NOT_FOUND, "not_found", "no such thing")                                                                         \
    X(TIMEOUT, "timeout", "took too long")                                                                             \
    X(VALIDATION_ERROR, "validation_error", "bad input")                                                               \
    X(PARTIAL, "partial", "done in part")                                                                              \
    X(INVALID_PARAMETERS, "invalid_parameters", "bad parameters")

#define RV_HEALTHS(X)                                                                                                  \
    X(HEALTHY, "healthy", "works")                                                                                     \
    X(DEGRADED, "degraded", "works badly")                                                                             \
    X(UNHEALTHY, "unhealthy", "does not work")                                                                         \
    X(UNKNOWN, "unknown", "too few calls to tell")

#define RV_HISTORY_STATUSES(X)                                                                                         \
    X(RUNNING, "running", "not finished")                                                                              \
    X(SUCCESS, "success", "finished")                                                                                  \
    X(ERROR, "error", "failed")                                                                                        \
    X(SKIPPED, "skipped", "did not run, or did nothing")

#define RV_MESSAGE_CATEGORIES(X)                                                                                       \
    X(EVENT, "event", "something happened")                                                                            \
    X(QUERY, "query", "a question with one answer")                                                                    \
    X(COMMAND, "command", "something to be done")

/* The kinds of error between the engine and a model: every provider's errors, in one list. */
#define RV_LLM_ERRORS(X)                                                                                               \
    X(RATE_LIMITED, "rate_limited", "too many requests, or a quota is used up")                                        \
    X(OVERLOADED, "overloaded", "the model is busy or its server has a fault; may be tried again")                     \
    X(TIMEOUT, "timeout", "no answer in time; may be tried again")                                                     \
    X(CONNECTION, "connection", "no connection, or it broke; may be tried again")                                      \
    X(PROTOCOL, "protocol", "the answer could not be understood; may be tried again")                                  \
    X(BAD_REQUEST, "bad_request", "the request is refused as wrong")                                                   \
    X(AUTH, "auth", "the key is missing or refused")                                                                   \
    X(CONTEXT_TOO_LONG, "context_too_long", "the prompt is too long for the model")                                    \
    X(CONTENT_FILTER, "content_filter", "the provider will not answer that")                                           \
    X(CANCELLED, "cancelled", "nobody wants the answer any more")

/* Why a model stopped. */
#define RV_FINISH_REASONS(X)                                                                                           \
    X(STOP, "stop", "it had said everything")                                                                          \
    X(LENGTH, "length", "the longest reply was reached: it is cut off")                                                \
    X(TOOL_CALLS, "tool_calls", "it wants tools to be called")                                                         \
    X(CONTENT_FILTER, "content_filter", "the provider cut it off")                                                     \
    X(REFUSAL, "refusal", "the model will not answer")                                                                 \
    X(PAUSE, "pause", "the provider wants to be asked to go on")                                                       \
    X(OTHER, "other", "for a reason that is not known here")

/* The outcome of a run. `ready` has not run yet, `running` is between a start and an end. */
#define RV_RUN_STATUSES(X)                                                                                             \
    X(READY, "ready", "not started")                                                                                   \
    X(RUNNING, "running", "under way")                                                                                 \
    X(COMPLETED, "completed", "the end was reached")                                                                   \
    X(INTERRUPTED, "interrupted", "waits for an answer")                                                               \
    X(TERMINATED, "terminated", "a bound, limit, denial or stage stopped it")                                          \
    X(FAILED, "failed", "a failure that nothing caught")                                                               \
    X(CANCELLED, "cancelled", "the caller cancelled")

/* RV_TERM_TYPES lists every word list once more: enum tag, constant prefix, list, kind in messages. */
#define RV_TERM_TYPES(T)                                                                                               \
    T(outcome, OUTCOME, RV_OUTCOMES, "outcome")                                                                        \
    T(tool_status, TOOL_STATUS, RV_TOOL_STATUSES, "tool status")                                                       \
    T(effect_class, EFFECT, RV_EFFECT_CLASSES, "effect class")                                                         \
    T(risk, RISK, RV_RISKS, "risk level")                                                                              \
    T(tool_category, CATEGORY, RV_TOOL_CATEGORIES, "tool category")                                                    \
    T(severity, SEVERITY, RV_SEVERITIES, "severity")                                                                   \
    T(reason, REASON, RV_REASONS, "terminal reason")                                                                   \
    T(reason_class, REASON_CLASS, RV_REASON_CLASSES, "class of terminal reasons")                                      \
    T(interrupt_kind, INTERRUPT, RV_INTERRUPT_KINDS, "interrupt kind")                                                 \
    T(interrupt_status, INTERRUPT_STATUS, RV_INTERRUPT_STATUSES, "interrupt status")                                   \
    T(run_mode, MODE, RV_RUN_MODES, "run mode")                                                                        \
    T(join, JOIN, RV_JOINS, "join strategy")                                                                           \
    T(tool_access, ACCESS, RV_TOOL_ACCESSES, "tool access")                                                            \
    T(agent_capability, AGENT, RV_AGENT_CAPABILITIES, "agent capability")                                              \
    T(verdict, VERDICT, RV_VERDICTS, "loop verdict")                                                                   \
    T(approval, APPROVAL, RV_APPROVALS, "risk approval")                                                               \
    T(operation_status, OPERATION, RV_OPERATION_STATUSES, "operation status")                                          \
    T(health, HEALTH, RV_HEALTHS, "health status")                                                                     \
    T(history_status, HISTORY, RV_HISTORY_STATUSES, "history status")                                                  \
    T(message_category, MESSAGE_CATEGORY, RV_MESSAGE_CATEGORIES, "message category")                                   \
    T(run_status, RUN, RV_RUN_STATUSES, "run status")                                                                  \
    T(llm_error, LLM_ERROR, RV_LLM_ERRORS, "model error kind")                                                         \
    T(finish_reason, FINISH, RV_FINISH_REASONS, "finish reason")                                                       \
    T(failure, FAILURE, RV_FAILURES, "failure code")                                                                   \
    T(task_status, TASK, RV_TASK_STATUSES, "task status")                                                              \
    T(task_tier, TASK_TIER, RV_TASK_TIERS, "task tier")                                                                \
    T(task_event_kind, TASK_EVENT, RV_TASK_EVENTS, "task event")

/* Enums: RV_OUTCOME_SUCCESS, ..., RV_N_OUTCOME. Value -1 (RV_UNSET) means "not set" wherever a field allows that. */
#define RV_UNSET                       (-1)
#define RV_TERM_CONST_OUTCOME(n, t, m) RV_OUTCOME_##n,
enum rv_outcome { RV_OUTCOMES(RV_TERM_CONST_OUTCOME) RV_N_OUTCOME };
#define RV_TERM_CONST_TOOL_STATUS(n, t, m) RV_TOOL_STATUS_##n,
enum rv_tool_status { RV_TOOL_STATUSES(RV_TERM_CONST_TOOL_STATUS) RV_N_TOOL_STATUS };
#define RV_TERM_CONST_EFFECT(n, t, m) RV_EFFECT_##n,
enum rv_effect_class { RV_EFFECT_CLASSES(RV_TERM_CONST_EFFECT) RV_N_EFFECT };
#define RV_TERM_CONST_RISK(n, t, m) RV_RISK_##n,
enum rv_risk { RV_RISKS(RV_TERM_CONST_RISK) RV_N_RISK };
#define RV_TERM_CONST_CATEGORY(n, t, m) RV_CATEGORY_##n,
enum rv_tool_category { RV_TOOL_CATEGORIES(RV_TERM_CONST_CATEGORY) RV_N_CATEGORY };
#define RV_TERM_CONST_SEVERITY(n, t, m) RV_SEVERITY_##n,
enum rv_severity { RV_SEVERITIES(RV_TERM_CONST_SEVERITY) RV_N_SEVERITY };
#define RV_TERM_CONST_REASON(n, t, m) RV_REASON_##n,
enum rv_reason { RV_REASON_NONE = RV_UNSET, RV_REASONS(RV_TERM_CONST_REASON) RV_N_REASON };
#define RV_TERM_CONST_REASON_CLASS(n, t, m) RV_REASON_CLASS_##n,
enum rv_reason_class {
    RV_REASON_CLASS_NONE = RV_UNSET,
    RV_REASON_CLASSES(RV_TERM_CONST_REASON_CLASS) RV_N_REASON_CLASS
};
#define RV_TERM_CONST_INTERRUPT(n, t, m) RV_INTERRUPT_##n,
enum rv_interrupt_kind { RV_INTERRUPT_KINDS(RV_TERM_CONST_INTERRUPT) RV_N_INTERRUPT };
#define RV_TERM_CONST_INTERRUPT_STATUS(n, t, m) RV_INTERRUPT_STATUS_##n,
enum rv_interrupt_status { RV_INTERRUPT_STATUSES(RV_TERM_CONST_INTERRUPT_STATUS) RV_N_INTERRUPT_STATUS };
#define RV_TERM_CONST_MODE(n, t, m) RV_MODE_##n,
enum rv_run_mode { RV_MODE_UNSET = RV_UNSET, RV_RUN_MODES(RV_TERM_CONST_MODE) RV_N_MODE };
#define RV_TERM_CONST_JOIN(n, t, m) RV_JOIN_##n,
enum rv_join { RV_JOINS(RV_TERM_CONST_JOIN) RV_N_JOIN };
#define RV_TERM_CONST_ACCESS(n, t, m) RV_ACCESS_##n,
enum rv_tool_access { RV_ACCESS_UNSET = RV_UNSET, RV_TOOL_ACCESSES(RV_TERM_CONST_ACCESS) RV_N_ACCESS };
#define RV_TERM_CONST_AGENT(n, t, m) RV_AGENT_##n,
enum rv_agent_capability { RV_AGENT_CAPABILITIES(RV_TERM_CONST_AGENT) RV_N_AGENT };
#define RV_TERM_CONST_VERDICT(n, t, m) RV_VERDICT_##n,
enum rv_verdict { RV_VERDICTS(RV_TERM_CONST_VERDICT) RV_N_VERDICT };
#define RV_TERM_CONST_APPROVAL(n, t, m) RV_APPROVAL_##n,
enum rv_approval { RV_APPROVALS(RV_TERM_CONST_APPROVAL) RV_N_APPROVAL };
#define RV_TERM_CONST_OPERATION(n, t, m) RV_OPERATION_##n,
enum rv_operation_status { RV_OPERATION_STATUSES(RV_TERM_CONST_OPERATION) RV_N_OPERATION };
#define RV_TERM_CONST_HEALTH(n, t, m) RV_HEALTH_##n,
enum rv_health { RV_HEALTHS(RV_TERM_CONST_HEALTH) RV_N_HEALTH };
#define RV_TERM_CONST_HISTORY(n, t, m) RV_HISTORY_##n,
enum rv_history_status { RV_HISTORY_STATUSES(RV_TERM_CONST_HISTORY) RV_N_HISTORY };
#define RV_TERM_CONST_MESSAGE_CATEGORY(n, t, m) RV_MESSAGE_CATEGORY_##n,
enum rv_message_category { RV_MESSAGE_CATEGORIES(RV_TERM_CONST_MESSAGE_CATEGORY) RV_N_MESSAGE_CATEGORY };
#define RV_TERM_CONST_RUN(n, t, m) RV_RUN_##n,
enum rv_run_status { RV_RUN_STATUSES(RV_TERM_CONST_RUN) RV_N_RUN };
#define RV_TERM_CONST_LLM_ERROR(n, t, m) RV_LLM_ERROR_##n,
enum rv_llm_error { RV_LLM_ERRORS(RV_TERM_CONST_LLM_ERROR) RV_N_LLM_ERROR };
#define RV_TERM_CONST_FINISH(n, t, m) RV_FINISH_##n,
enum rv_finish_reason { RV_FINISH_REASONS(RV_TERM_CONST_FINISH) RV_N_FINISH };

/* const char *rv_outcome_text(enum rv_outcome): wire text; NULL for a value outside the list (RV_UNSET too).
 * int rv_outcome_of(rv_str, enum rv_outcome *, rv_err **): exact match; RV_E_INVALID quotes the text, lists the legal
 * words, and hints the nearest. The same pair for every type of RV_TERM_TYPES. */
#define RV_TERM_DECLARE(tag, prefix, list, kind)                                                                       \
    const char *rv_##tag##_text(enum rv_##tag v);                                                                      \
    RV_MUST_CHECK int rv_##tag##_of(rv_str text, enum rv_##tag *out, rv_err **err);
RV_TERM_TYPES(RV_TERM_DECLARE)

/* The same tables by name, for `fn`, the schema and the docs. Texts are static. */
struct rv_term {
    const char *text, *meaning;
};
/* What it points to is static. */
struct rv_term_list {
    const char *name; /* "outcome", ... */
    const char *kind; /* "outcome", "tool status", ... as messages say it */
    const struct rv_term *terms;
    size_t n;
};
const struct rv_term_list *rv_term_lists(size_t *n);

/* Truth tables and mappings. */
bool rv_outcome_is_terminal(enum rv_outcome o);
bool rv_outcome_is_success(enum rv_outcome o);
bool rv_outcome_requires_loop(enum rv_outcome o);
/** Trims and lower-cases, then only the two words. */
RV_MUST_CHECK int rv_tool_status_parse(rv_str text, enum rv_tool_status *out, rv_err **err);
enum rv_effect_class rv_effect_class_of_risk(enum rv_risk risk);
enum rv_reason_class rv_reason_class_for(enum rv_reason reason); /* RV_UNSET of RV_REASON_NONE; its text is NULL */
bool rv_risk_needs_confirmation(enum rv_risk risk);

#endif

/* Why a stage, a call or a run failed: stable codes, finer than error types and terminal reasons, and what to do about
 * each. The same code stands in events, in the state, in results and in what the program prints. */
#ifndef RV_FAILURES_H
#define RV_FAILURES_H

#include "coreengine/base/base.h"

/* R(X, constant, whose, wire text, meaning, what to do). Whose it is: of the SERVER, whose text may name hosts, files
 * and settings and is not for clients; or of the REQUEST and what it asks for, whose text a client may see. */
#define RV_FAILURE_ROWS(R, X)                                                                                          \
    R(X, MODEL_NO_KEY, SERVER, "model_no_key", "no key for the model's provider is set",                               \
      "set the variable that the text names, or api_key of the role")                                                  \
    R(X, MODEL_REFUSED, SERVER, "model_refused", "the provider refused the key (HTTP 401, 403, 407)",                  \
      "check the key and what it may do")                                                                              \
    R(X, MODEL_NO_CONNECTION, SERVER, "model_no_connection", "no connection to the provider, or it broke",             \
      "check base_url, the network and the proxy")                                                                     \
    R(X, MODEL_RATE_LIMITED, SERVER, "model_rate_limited", "the provider's rate limit or quota is used up",            \
      "wait, lower requests_per_minute or max_concurrent, or raise the quota at the provider")                         \
    R(X, MODEL_OVERLOADED, SERVER, "model_overloaded", "the provider is overloaded or has a fault",                    \
      "try later, or give the role a fallback")                                                                        \
    R(X, MODEL_TIMED_OUT, SERVER, "model_timed_out", "the model did not answer in time",                               \
      "raise the timeout that the text names")                                                                         \
    R(X, MODEL_BAD_ANSWER, SERVER, "model_bad_answer", "the provider's answer could not be read",                      \
      "the text says what is wrong with the answer; check base_url if another server than the provider's answers")     \
    R(X, MODEL_BAD_REQUEST, SERVER, "model_bad_request", "the provider refused the request as wrong",                  \
      "check the model's name and the options of the role")                                                            \
    R(X, MODEL_CONTEXT_TOO_LONG, REQUEST, "model_context_too_long", "the prompt is too long for the model",            \
      "shorten the prompt or the tool results, or choose a model with a longer context")                               \
    R(X, MODEL_CONTENT_FILTER, REQUEST, "model_content_filter", "a content filter stopped the prompt or the reply",    \
      "change the prompt")                                                                                             \
    R(X, MODEL_DECLINED, REQUEST, "model_declined", "the model declined to answer", "change the prompt")               \
    R(X, MODEL_FAILED, SERVER, "model_failed", "a model call failed for another reason",                               \
      "--debug-payload FILE keeps the request, which can be sent by hand")                                             \
    R(X, OUTPUT_UNREADABLE, REQUEST, "output_unreadable", "the reply has no JSON object, or is cut off or not UTF-8",  \
      "ask for a JSON object in the prompt, set output_mode: text for plain text, raise max_tokens, or set "           \
      "output_schema")                                                                                                 \
    R(X, OUTPUT_MISSING_FIELD, REQUEST, "output_missing_field", "the output lacks a required field",                   \
      "name the field in the prompt, raise max_repairs, or remove it from the required fields")                        \
    R(X, OUTPUT_INVALID, REQUEST, "output_invalid", "the output breaks output_schema, or states an unknown outcome",   \
      "describe the output in the prompt, or raise max_repairs")                                                       \
    R(X, TOOL_FAILED, REQUEST, "tool_failed", "a tool failed", "")                                                     \
    R(X, TOOL_TIMED_OUT, REQUEST, "tool_timed_out", "a tool did not answer in time", "raise tool_timeout")             \
    R(X, TOOL_NOT_FOUND, REQUEST, "tool_not_found", "no such tool or agent, or the tool did not find its object",      \
      "check the name; `reeve inspect` lists the tools")                                                               \
    R(X, TOOL_NOT_ALLOWED, REQUEST, "tool_not_allowed", "the stage may not call the tool",                             \
      "change tool_access or allowed_tools")                                                                           \
    R(X, TOOL_INVALID, REQUEST, "tool_invalid", "the arguments or the answer of a tool do not fit its schema", "")     \
    R(X, AGENT_FAILED, REQUEST, "agent_failed", "an asked agent failed, or may not be asked", "")                      \
    R(X, HOOK_FAILED, SERVER, "hook_failed", "a hook, mock handler or routing function failed", "")                    \
    R(X, HOOK_TIMED_OUT, SERVER, "hook_timed_out",                                                                     \
      "a capability's hook, mock handler, policy or routing function did not answer in time",                          \
      "raise timeout_ms of its specification if it has one, else timeout_seconds of the stage, or make it faster")     \
    R(X, PLUGIN_FAILED, SERVER, "plugin_failed", "a capability broke its contract",                                    \
      "tell the author of the capability")                                                                             \
    R(X, POLICY_DENIED, REQUEST, "policy_denied", "a policy denied it", "")                                            \
    R(X, POLICY_FAILED, SERVER, "policy_failed", "a policy failed, or its answer is not a decision", "")               \
    R(X, LIMIT_REACHED, REQUEST, "limit_reached", "a limit of the stage or the run was reached",                       \
      "raise the setting that the text names; if it names none, give the stage less to work on")                       \
    R(X, QUOTA_EXCEEDED, REQUEST, "quota_exceeded",                                                                    \
      "a quota or a rate of the user or the tenant does not allow it now",                                             \
      "wait until the time that the text names, or give the user another plan")                                        \
    R(X, STAGE_TIMED_OUT, REQUEST, "stage_timed_out", "the visit took longer than timeout_seconds",                    \
      "raise timeout_seconds of the stage, or execution.agent_timeout")                                                \
    R(X, EXPRESSION_FAILED, SERVER, "expression_failed", "an expression of the stage could not be evaluated",          \
      "change what the text names (has(outputs.plan.steps) tests for a value that can be missing), or name an "        \
      "error_next")                                                                                                    \
    R(X, TEMPLATE_FAILED, SERVER, "template_failed", "a prompt or a question could not be rendered",                   \
      "check the name, or give it a fallback, as in {{note | default \"-\"}}")                                         \
    R(X, JOIN_FAILED, REQUEST, "join_failed", "fewer branches arrived at a join than it waits for",                    \
      "lower the number in `join`, or name an error_next of the join")                                                 \
    R(X, SCRIPT_NO_ENTRY, SERVER, "script_no_entry", "the script has no entry for the call",                           \
      "add an entry that matches the call, or check its matchers")                                                     \
    R(X, STAGE_FAILED, SERVER, "stage_failed", "the stage stated an error, or its work failed in another way", "")     \
    R(X, ENGINE_FAILED, SERVER, "engine_failed", "the engine could not go on with the run, nor could another attempt", \
      "report the text and the records that `reeve runs events RUN --records` prints")                                 \
    R(X, QUESTION_CANCELLED, REQUEST, "question_cancelled", "the question that the stage waited with was cancelled",   \
      "name an error_next of the stage to go on without an answer")                                                    \
    R(X, CANCELLED, REQUEST, "cancelled", "the run was cancelled", "")                                                 \
    R(X, DISK_FULL, SERVER, "disk_full", "the disk or its quota is full, or a file would exceed the largest size",     \
      "make room on the disk, or raise its quota or `ulimit -f`")                                                      \
    R(X, NO_DESCRIPTORS, SERVER, "no_descriptors", "the process or the system cannot open more files and sockets",     \
      "raise `ulimit -n`, or lower the number of runs or workers of the process")                                      \
    R(X, NO_THREADS, SERVER, "no_threads", "the system does not start more threads or processes",                      \
      "raise `ulimit -u` or pids.max of the group of processes, or lower the number of workers")

#define RV_FAILURE_WORD(X, name, whose, text, meaning, remedy) X(name, text, meaning)
#define RV_FAILURES(X)                                         RV_FAILURE_ROWS(RV_FAILURE_WORD, X)

#define RV_TERM_CONST_FAILURE(n, t, m) RV_FAILURE_##n,
enum rv_failure { RV_FAILURE_NONE = -1, RV_FAILURES(RV_TERM_CONST_FAILURE) RV_N_FAILURE };
/** What to do about it: one line, or "" where the text of the failure alone can say it; NULL: RV_FAILURE_NONE. */
const char *rv_failure_remedy(enum rv_failure f);
/** What the machine had run out of where the chain of an error says so (rv_code_is_scarce()); else RV_FAILURE_NONE. */
enum rv_failure rv_failure_of_err(const rv_err *err);

#endif

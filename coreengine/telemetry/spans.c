/* The table of spans: names, kinds, and the attributes with the members of events that they come from. run.c makes
 * spans by it, and reference.c the page about them. */
#include "coreengine/telemetry/telemetry_internal.h"

const struct span_row telemetry_span_rows[] = {
    [SPAN_RUN] = {"invoke_workflow", "PIPELINE", RV_SPAN_INTERNAL, "a run, until it ends or waits for an answer"},
    [SPAN_STAGE] = {"reeve.stage", "STAGE", RV_SPAN_INTERNAL, "a visit of a stage"},
    [SPAN_AGENT] = {"invoke_agent", "AGENT", RV_SPAN_INTERNAL, "an agent that is asked by another one"},
    [SPAN_MODEL] = {"chat", "MODEL", RV_SPAN_CLIENT, "a call of a model, with its retries; MODEL unknown: its role"},
    [SPAN_TOOL] = {"execute_tool", "TOOL", RV_SPAN_INTERNAL, "a call of a tool"},
};
RV_EACH_HAS_ROW(telemetry_span_rows, N_SPANS);

/* Kinds of spans, as a set. */
#define RUN    (1u << SPAN_RUN)
#define STAGE  (1u << SPAN_STAGE)
#define AGENT  (1u << SPAN_AGENT)
#define MODEL  (1u << SPAN_MODEL)
#define TOOL   (1u << SPAN_TOOL)
#define USED   (RUN | STAGE | AGENT | MODEL)
#define VISITS (STAGE | AGENT)

const struct attr_row telemetry_attr_rows[] = {
    {RUN, "gen_ai.operation.name", "", FROM_WORD, "invoke_workflow", "the operation"},
    {AGENT, "gen_ai.operation.name", "", FROM_WORD, "invoke_agent", "the operation"},
    {MODEL, "gen_ai.operation.name", "", FROM_WORD, "chat", "the operation"},
    {TOOL, "gen_ai.operation.name", "", FROM_WORD, "execute_tool", "the operation"},
    {RUN, "gen_ai.workflow.name", "", FROM_TEXT, "pipeline", "name of the pipeline"},
    {RUN, "gen_ai.conversation.id", "", FROM_TEXT, "session_id", "the session"},
    {RUN, "reeve.run.id", "", FROM_RUN, "", "the run"},
    {RUN, "reeve.run.status", "", FROM_TEXT_AT_END, "status", "how the run ended"},
    {RUN, "reeve.run.terminal_reason", "", FROM_TEXT_AT_END, "terminal_reason", "the bound or decision that ended it"},
    {STAGE, "reeve.stage.name", "", FROM_TEXT, "stage", "name of the stage"},
    {STAGE, "reeve.stage.visit", "", FROM_INT, "visit", "number of the visit, from 1"},
    {STAGE, "reeve.stage.path", "", FROM_TEXT, "path", "branch of a group or list"},
    {AGENT, "gen_ai.agent.name", "", FROM_TEXT, "agent", "name of the agent"},
    {VISITS, "reeve.outcome", "", FROM_TEXT_AT_END, "outcome", "outcome of the visit"},
    {MODEL, "gen_ai.provider.name", "", FROM_PROVIDER, "model", "the provider, in the words of the conventions"},
    {MODEL, "gen_ai.request.model", "", FROM_MODEL, "model", "the model that was asked"},
    {MODEL, "gen_ai.response.finish_reasons", "", FROM_LIST, "finish_reason", "why the model stopped"},
    {MODEL, "gen_ai.response.time_to_first_chunk", "", FROM_MS, "first_token_ms", "seconds until the first piece"},
    {MODEL, "reeve.model.role", "", FROM_TEXT, "role", "role of the model in the pipeline"},
    {MODEL, "reeve.model.attempts", "", FROM_INT_AT_END, "attempts", "requests that were made"},
    {MODEL, "reeve.cost_micro_usd", "", FROM_INT_AT_END, "cost_micro_usd", "cost in millionths of a dollar"},
    {TOOL, "gen_ai.tool.name", "", FROM_TEXT, "tool", "name of the tool"},
    {TOOL, "gen_ai.tool.type", "", FROM_WORD, "function", "the type"},
    {TOOL, "gen_ai.tool.call.id", "", FROM_TEXT, "step_id", "id of the call"},
    {USED, "gen_ai.usage.input_tokens", "", FROM_USAGE, "input_tokens", "input tokens, cached ones included"},
    {USED, "gen_ai.usage.output_tokens", "", FROM_USAGE, "output_tokens", "output tokens, of reasoning included"},
    {USED, "gen_ai.usage.cache_read.input_tokens", "", FROM_USAGE, "cached_tokens", "input tokens from a cache"},
    {USED, "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_write.input_tokens", FROM_USAGE,
     "cache_write_tokens", "input tokens that were written to a cache"},
    {USED, "gen_ai.usage.reasoning.output_tokens", "", FROM_USAGE, "reasoning_tokens", "output tokens of reasoning"},
};
const size_t telemetry_n_attr_rows = RV_COUNT(telemetry_attr_rows);

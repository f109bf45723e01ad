/* Keys of one stage, told by a driven run. */
#include "tests/unit/keys/rows.h"

#define R         "models: {r: scripted, s: scripted}\n"
#define LLM       "has_llm: true, model_role: r"
#define HEAD      "name: t\nmax_llm_calls: 50\nmax_agent_hops: 50\n" R
#define ONE(keys) HEAD "agents: [{name: a, stage_order: 1, " LLM ", " keys "}]\n"
#define TWO(keys)                                                                                                      \
    HEAD "agents:\n  - {name: a, stage_order: 1, default_next: b, " LLM "}\n  - {name: b, stage_order: 2, " LLM        \
         ", " keys "}\n"
#define SIDE(keys)                                                                                                     \
    HEAD "default_run_mode: parallel\nagents:\n  - {name: a, stage_order: 1, " LLM ", error_next: end}\n"              \
         "  - {name: b, stage_order: 2, " LLM "}\n  - {name: c, stage_order: 3, " keys "}\n"
#define CHAIN(keys)                                                                                                    \
    HEAD "default_run_mode: parallel\nagents:\n  - {name: a, stage_order: 1}\n"                                        \
         "  - {name: b, stage_order: 2, requires: [a]}\n  - {name: c, stage_order: 3, " keys "}\n"
#define TOOLS(keys)                                                                                                    \
    HEAD "agents:\n  - {name: plan, stage_order: 1, default_next: x, " LLM "}\n  - {name: x, stage_order: 2, " keys    \
         "}\n"
#define STEPS(tool)                                                                                                    \
    {                                                                                                                  \
        "llm:plan", "{'steps':[{'tool':'" tool "'}]}", true, 0                                                         \
    }
#define SCHEMA      "{type: object, required: [n], properties: {n: {type: integer}}}"
#define CALLS(keys) ONE("has_tools: true, tool_access: all, " keys)
#define BUSY                                                                                                           \
    {                                                                                                                  \
        "llm:a", "?Busy:later", false, 0                                                                               \
    }

static const struct key_row rows[] = {
    {"agent.name", "b", "c", "name: t\nagents: [{name: @, stage_order: 1}]\n"},
    {"agent.stage_order", "0", "9", TWO("output_key: o") "  - {name: c, stage_order: @, " LLM "}\n"},
    {"agent.requires", "[a]", "[b]", SIDE("requires: @"), {{"llm:a", "!:no", true, 0}}},
    {"agent.after", "[a]", "[b]", CHAIN("after: @")},
    {"agent.join_strategy", "all", "any", SIDE("requires: [a, b], join_strategy: @"), {{"llm:a", "!:no", true, 0}}},
    {"agent.has_llm", "true", "false", HEAD "agents: [{name: a, stage_order: 1, model_role: r, has_llm: @}]\n"},
    {"agent.has_tools", "true", "false", TOOLS("tool_access: all, has_tools: @"), {STEPS("read")}},
    {"agent.has_policies",
     "true, policies: [x.p]",
     "false",
     HEAD "agents: [{name: a, stage_order: 1, " LLM ", has_policies: @}]\n",
     {{"policy:x.p", "{'decision':'deny'}", true, 0}}},
    {"agent.policies",
     "[x.p]",
     "[x.q]",
     ONE("has_policies: true, policies: @"),
     {{"policy:x.p", "{'decision':'deny'}", true, 0}}},
    {"agent.tool_access", "read", "all", TOOLS("has_tools: true, tool_access: @"), {STEPS("put")}},
    {"agent.allowed_tools",
     "[read]",
     "[put]",
     TOOLS("has_tools: true, tool_access: all, allowed_tools: @"),
     {STEPS("put")}},
    {"agent.client_tools", "[]", "[{name: f}]", ONE("client_tools: @")},
    {"client_tool.name", "f", "g", ONE("client_tools: [{name: @}]")},
    {"client_tool.description", "d", "e", ONE("client_tools: [{name: f, description: @}]")},
    {"client_tool.parameters", "{type: object}", "{type: object, required: [n]}",
     ONE("client_tools: [{name: f, parameters: @}]")},
    {"agent.tool_choice", "auto", "required", ONE("client_tools: [{name: f}], tool_choice: @")},
    {"agent.model_role", "r", "s", HEAD "agents: [{name: a, stage_order: 1, has_llm: true, model_role: @}]\n"},
    {"agent.prompt_key", "p", "q", "prompts: {p: one, q: two}\n" ONE("prompt_key: @")},
    {"agent.system_key", "p", "q", "prompts: {p: one, q: two}\n" ONE("system_key: @")},
    {"agent.examples", "[]", "[{user: u, assistant: a}]", ONE("examples: @")},
    {"agent.attachments", "[]", "[\"'https://x.y/z.png'\"]", ONE("attachments: @")},
    {"example.user", "u", "v", ONE("examples: [{user: @, assistant: a}]")},
    {"example.assistant", "a", "b", ONE("examples: [{user: u, assistant: @}]")},
    {"agent.temperature", "0.5", "null", ONE("temperature: @")},
    {"agent.max_tokens", "5", "6", ONE("max_tokens: @")},
    {"agent.output_key", "o", "p", ONE("output_key: @")},
    {"agent.output_mode", "json", "text", ONE("output_mode: @"), {{"llm:a", "{'n':1}", true, 0}}},
    {"agent.output_schema", SCHEMA, "{type: object}", ONE("output_schema: @"), {{"llm:a", "{'n':'x'}", true, 0}}},
    {"agent.output_via",
     "prompt",
     "tool",
     ONE("output_schema: " SCHEMA ", output_via: @"),
     {{"llm:a", "{'n':1}", true, 0}}},
    {"agent.max_repairs",
     "0",
     "1",
     ONE("output_schema: " SCHEMA ", max_repairs: @"),
     {{"llm:a", "{'n':'x'}", true, 0}}},
    {"agent.required_output_fields", "[n]", "[m]", ONE("required_output_fields: @"), {{"llm:a", "{'n':1}", true, 0}}},
    {"agent.routing_rules",
     "[]",
     "[{condition: v, value: 1, target: a}]",
     TWO("max_visits: 1, routing_rules: @"),
     {{"llm:b", "{'v':1}", false, 0}}},
    {"agent.default_next", "end", "b",
     HEAD "agents: [{name: a, stage_order: 1, default_next: @}, {name: b, stage_order: 2, " LLM "}]\n"},
    {"agent.error_next",
     "end",
     "b",
     HEAD "agents: [{name: a, stage_order: 1, " LLM ", error_next: @}, {name: b, stage_order: 2, " LLM "}]\n",
     {{"llm:a", "!:no", true, 0}}},
    {"agent.routing_function", "x.f", "x.g", ONE("routing_function: @")},
    {"agent.timeout_seconds", "5", "6", ONE("timeout_seconds: @")},
    {"agent.max_retries", "0", "1", ONE("max_retries: @"), {BUSY}},
    {"agent.max_visits",
     "1",
     "2",
     TWO("max_visits: @, routing_rules: [{condition: v, value: 1, target: a}]"),
     {{"llm:b", "{'v':1}", false, 0}}},
    {"agent.plan_from", "plan", "other", TOOLS("has_tools: true, tool_access: all, plan_from: @"), {STEPS("read")}},
    {"agent.pre_process", "x.f", "x.g", ONE("pre_process: @")},
    {"agent.post_process", "x.f", "x.g", ONE("post_process: @")},
    {"agent.before_model", "x.f", "[x.f, x.g]", ONE("before_model: @")},
    {"agent.after_model", "[x.f]", "x.g", ONE("after_model: @")},
    {"agent.before_tool", "x.f", "x.g", TOOLS("has_tools: true, tool_access: all, before_tool: @"), {STEPS("read")}},
    {"agent.after_tool", "x.f", "[x.g]", TOOLS("has_tools: true, tool_access: all, after_tool: @"), {STEPS("read")}},
    {"agent.max_context_tokens", "1000", "1", ONE("max_context_tokens: @")},
    {"agent.mock_handler", "x.f", "x.g", ONE("mock: true, mock_handler: @")},
    {"agent.mock", "true", "false", ONE("mock_handler: x.f, mock: @")},
};

const struct key_rows key_rows_stage = {rows, RV_COUNT(rows), key_tell_run};

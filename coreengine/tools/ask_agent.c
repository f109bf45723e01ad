/* The engine's own tool: a model asks another agent with it. Its calls look the agent's document up; the core then runs
 * the agent as a visit within the visit that asked. */
#include "coreengine/tools/tools.h"

const struct rv_tool_info rv_tool_ask_agent = {
    .name = RV_TOOL_ASK_AGENT,
    .description = "Ask another agent. It works on its own, with its own tools, and answers with its result.",
    .category = RV_UNSET,
    .risk = RV_RISK_READ_ONLY, /* looking an agent up changes nothing; what it does is judged call by call */
    .effect = RV_EFFECT_SAFE,
};
const char rv_tool_ask_agent_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"agent_name\":{\"type\":\"string\",\"description\":\"Name of the agent to ask\"},"
    "\"input_text\":{\"type\":\"string\",\"description\":\"What it is asked: all that it needs to know\"},"
    "\"input_data\":{\"type\":\"object\",\"description\":\"Data that goes with the question\"},"
    "\"user_id\":{\"type\":\"string\",\"description\":\"For whom; only the present user can be named\"},"
    "\"timeout_seconds\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"How long it may take\"},"
    "\"structured_output_override\":{\"type\":\"boolean\","
    "\"description\":\"Have it answer as an object, or in words, whatever it does otherwise\"}},"
    "\"required\":[\"agent_name\",\"input_text\"],\"additionalProperties\":false}";

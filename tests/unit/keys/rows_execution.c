/* Keys of the `execution` section, that a driven run tells: the same pipeline and answers, with and without another
 * value. */
#include "tests/unit/keys/rows.h"

#define MODEL  "models: {r: scripted}\n"
#define LLM    "has_llm: true, model_role: r"
#define PLAN   "{'steps':[{'tool':'read'},{'tool':'read'}]}"
#define BOUNDS "max_iterations: 9\nmax_llm_calls: 50\nmax_agent_hops: 50\n"
#define JUDGE                                                                                                          \
    "agents:\n  - {name: p, stage_order: 1, default_next: c}\n  - {name: c, stage_order: 2, " LLM ", routing_rules: "  \
    "[{condition: v, value: 1, target: p}]}\n" MODEL BOUNDS
#define ARBITER                                                                                                        \
    "agents:\n  - {name: plan, stage_order: 1, " LLM ", default_next: arbiter}\n"                                      \
    "  - {name: arbiter, stage_order: 2, " LLM "}\n" MODEL
#define TOOLS                                                                                                          \
    "agents:\n  - {name: plan, stage_order: 1, " LLM ", default_next: x}\n"                                            \
    "  - {name: x, stage_order: 2, has_tools: true, tool_access: all, max_retries: 1, "                                \
    "routing_rules: [{condition: all_succeeded, value: false, target: plan}]}\n" MODEL BOUNDS
#define ONE "agents:\n  - {name: a, stage_order: 1, max_retries: 3, " LLM "}\n" MODEL
#define ROUTER                                                                                                         \
    "agents:\n  - {name: a, stage_order: 1, routing_function: x.where, default_next: b}\n"                             \
    "  - {name: b, stage_order: 2}\n"
#define KNOB(rest) "name: t\n" rest "execution: {@}\n"

static const struct key_row rows[] = {
    {"execution.max_plan_steps", "", "max_plan_steps: 1", KNOB(TOOLS), {{"llm:plan", PLAN, true, 0}}},
    {"execution.max_tool_retries",
     "",
     "max_tool_retries: 0",
     KNOB(TOOLS),
     {{"llm:plan", PLAN, true, 0}, {"tool:read", "?Busy:later", false, 0}}},
    {"execution.max_llm_retries", "", "max_llm_retries: 0", KNOB(ONE), {{"llm:a", "?Busy:later", false, 0}}},
    /* Proves 4.6/max_loop_iterations */
    {"execution.max_loop_iterations", "", "max_loop_iterations: 1", KNOB(JUDGE), {{"llm:c", "{'v':1}", true, 0}}},
    /* Proves 4.6/max_replan_iterations */
    {"execution.max_replan_iterations",
     "",
     "max_replan_iterations: 1",
     KNOB(JUDGE),
     {{"llm:c", "{'v':1,'outcome':'replan'}", true, 0}}},
    /* Proves 4.6/max_loop_back_rejections */
    {"execution.max_loop_back_rejections",
     "",
     "max_loop_back_rejections: 1",
     KNOB(JUDGE),
     {{"llm:c", "{'v':1,'verdict':'loop_back'}", true, 0}}},
    {"execution.llm_timeout", "", "llm_timeout: 7", KNOB(ONE), {{"llm:a", "{}", true, 0}}},
    {"execution.executor_timeout", "", "executor_timeout: 7", KNOB(TOOLS), {{"llm:plan", PLAN, true, 0}}},
    {"execution.tool_timeout", "", "tool_timeout: 7", KNOB(TOOLS), {{"llm:plan", PLAN, true, 0}}},
    {"execution.agent_timeout", "", "agent_timeout: 7", KNOB(ONE), {{"llm:a", "{}", true, 0}}},
    /* Proves 4.6/clarification_threshold */
    {"execution.clarification_threshold",
     "",
     "clarification_threshold: 0.2",
     KNOB(ONE),
     {{"llm:a", "{'confidence':0.5,'clarification_question':'which'}", true, 0}}},
    /* Proves 4.6/high_confidence_threshold */
    {"execution.high_confidence_threshold",
     "",
     "high_confidence_threshold: 0.2",
     KNOB(ARBITER),
     {{"llm:plan", "{'confidence':0.5,'steps':[{'tool':'read'}]}", true, 0}}},
    {"execution.llm_seed", "", "llm_seed: 7", KNOB(ONE), {{"llm:a", "{}", true, 0}}},
    {"execution.require_confirmation_for_destructive",
     "",
     "require_confirmation_for_destructive: false",
     KNOB(TOOLS),
     {{"llm:plan", "{'steps':[{'tool':'wipe'}]}", true, 0}}},
    /* Proves 4.6/replan_on_partial_success */
    {"execution.replan_on_partial_success",
     "",
     "replan_on_partial_success: false",
     KNOB(TOOLS),
     {{"llm:plan", PLAN, true, 0}, {"tool:read", "!:no", false, 0}}},
    /* Proves 4.6/strict_transition_validation */
    {"execution.strict_transition_validation",
     "",
     "strict_transition_validation: false",
     KNOB(ROUTER),
     {{"route:x.where", "{'next':'nowhere'}", true, 0}}},
    /* Proves 4.6/enable_idempotency */
    {"execution.enable_idempotency", "", "enable_idempotency: false", KNOB(TOOLS), {{"llm:plan", PLAN, true, 0}}},
    /* Proves 4.6/idempotency_ttl_ms */
    {"execution.idempotency_ttl_ms",
     "",
     "idempotency_ttl_ms: 500",
     KNOB(TOOLS),
     {{"llm:plan", PLAN, true, 0}, {"tool:read", "?Busy:later", false, 0}}},
    /* Proves 4.6/enforce_idempotency_for_tools */
    {"execution.enforce_idempotency_for_tools",
     "",
     "enforce_idempotency_for_tools: false",
     KNOB(TOOLS),
     {{"llm:plan", PLAN, true, 0}}},
    /* Proves 4.6/enforce_idempotency_for_agents */
    {"execution.enforce_idempotency_for_agents",
     "",
     "enforce_idempotency_for_agents: true",
     KNOB(ONE),
     {{"llm:a", "{}", true, 0}}},
    /* Proves 4.6/meta_validation_enabled */
    {"execution.meta_validation_enabled",
     "",
     "meta_validation_enabled: false",
     KNOB(ONE),
     {{"llm:a", "{'outcome':'replan','verdict':'proceed'}", true, 0}}},
    /* Proves 4.6/meta_validation_delay */
    {"execution.meta_validation_delay",
     "",
     "meta_validation_delay: 3",
     KNOB(ONE),
     {{"llm:a", "{'outcome':'replan','verdict':'proceed'}", true, 0}}},
    {"execution.enable_loop_back", "", "enable_loop_back: false", KNOB(JUDGE), {{"llm:c", "{'v':1}", true, 0}}},
    /* Proves 4.6/enable_arbiter */
    {"execution.enable_arbiter",
     "",
     "enable_arbiter: false",
     KNOB(ARBITER),
     {{"llm:plan", "{'steps':[{'tool':'wipe'}]}", true, 0}}},
    /* Proves 4.6/skip_arbiter_for_read_only */
    {"execution.skip_arbiter_for_read_only",
     "",
     "skip_arbiter_for_read_only: false",
     KNOB(ARBITER),
     {{"llm:plan", PLAN, true, 0}}},
};

const struct key_rows key_rows_execution = {rows, RV_COUNT(rows), key_tell_run};

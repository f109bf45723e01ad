/* Keys of a pipeline, and of the small tables below it, that a driven run tells. */
#include "tests/unit/keys/rows.h"

#define R    "models: {r: scripted}\n"
#define LLM  "has_llm: true, model_role: r"
#define LONG "max_iterations: 9\nmax_llm_calls: 50\nmax_agent_hops: 50\n"
#define ONE  "name: t\n" R "agents: [{name: a, stage_order: 1, " LLM "}]\n"
#define TWO  R "agents: [{name: a, stage_order: 1, " LLM ", default_next: b}, {name: b, stage_order: 2, " LLM "}]\n"
#define LOOP(n)                                                                                                        \
    "name: t\n" R n "agents:\n  - {name: plan, stage_order: 1, " LLM ", default_next: critic}\n"                       \
    "  - {name: critic, stage_order: 2, " LLM ", routing_rules: [{condition: v, value: 1, target: plan}]}\n"
#define AGAIN                                                                                                          \
    {                                                                                                                  \
        "llm:critic", "{'v':1}", false, 0                                                                              \
    }
#define EVER                                                                                                           \
    {                                                                                                                  \
        "llm:critic", "{'v':1}", true, 0                                                                               \
    }
#define WAITS(kind)                                                                                                    \
    "{'envelope_id':'e','request_id':'q','session_id':'s','current_stage':'a','stage_order':['a','b'],"                \
    "'interrupt_pending':true,'interrupt':{'kind':'" kind                                                              \
    "','id':'int_1','question':'q','message':'m','data':{},'created_at':'2023-11-14T22:13:20Z'}}"
#define GOALS                                                                                                          \
    "{'envelope_id':'e','request_id':'q','session_id':'s','all_goals':['x','y'],'remaining_goals':['x','y'],"          \
    "'goal_completion_status':{'x':'pending','y':'pending'},'max_stages':5}"
#define RULE(r)                                                                                                        \
    "name: t\n" R "agents:\n  - {name: a, stage_order: 1, " LLM ", default_next: b, routing_rules: [" r                \
    "]}\n  - {name: b, stage_order: 2}\n  - {name: c, stage_order: 3}\n"
#define COSTS(usd)                                                                                                     \
    "name: t\nbudget: {usd: " usd "}\nmodels: {r: {model: scripted:x, price: {input: 1000, output: 1000}}}\n"          \
    "agents: [{name: a, stage_order: 1, " LLM "}]\n"

static const struct key_row rows[] = {
    {"pipeline.name", "t", "u", "name: @\nagents: [{name: a, stage_order: 1}]\n"},
    {"pipeline.agents", "a", "b", "name: t\nagents: [{name: @, stage_order: 1}]\n"},
    {"pipeline.default_run_mode", "sequential", "parallel",
     "name: t\ndefault_run_mode: @\nagents: [{name: a, stage_order: 1}, {name: b, stage_order: 2}]\n"},
    {"pipeline.max_iterations", "2", "1", LOOP("max_iterations: @\nmax_llm_calls: 50\nmax_agent_hops: 50\n"), {EVER}},
    {"pipeline.max_llm_calls", "1", "2", "name: t\nmax_llm_calls: @\n" TWO},
    {"pipeline.max_agent_hops", "1", "2", "name: t\nmax_agent_hops: @\n" TWO},
    {"pipeline.budget", "{usd: 0.001}", "{usd: 100}",
     "name: t\nbudget: @\nmodels: {r: {model: scripted:x, price: {input: 1000, output: 1000}}}\n"
     "agents: [{name: a, stage_order: 1, " LLM "}]\n"},
    {"budget.usd", "0.001", "100", COSTS("@")},
    {"pipeline.default_timeout_seconds", "5", "6", "default_timeout_seconds: @\n" ONE},
    {"pipeline.edge_limits", "1", "2", LOOP(LONG "edge_limits: [{from: critic, to: plan, max_count: @}]\n"), {EVER}},
    {"edge_limit.from", "critic", "plan", LOOP(LONG "edge_limits: [{from: @, to: plan, max_count: 1}]\n"), {EVER}},
    {"edge_limit.to", "plan", "critic", LOOP(LONG "edge_limits: [{from: critic, to: @, max_count: 1}]\n"), {EVER}},
    {"edge_limit.max_count", "1", "2", LOOP(LONG "edge_limits: [{from: critic, to: plan, max_count: @}]\n"), {EVER}},
    {"pipeline.clarification_resume_stage", "a", "b", "name: t\nclarification_resume_stage: @\n" TWO,
     .state = WAITS("clarification")},
    {"pipeline.confirmation_resume_stage",
     "a",
     "b",
     "name: t\nconfirmation_resume_stage: @\n" TWO,
     {{"llm:a", "{'outcome':'confirm'}", false, 0}}},
    {"pipeline.agent_review_resume_stage", "a", "b", "name: t\nagent_review_resume_stage: @\n" TWO,
     .state = WAITS("agent_review")},
    {"pipeline.agent_review_reject_stage", "a", "b", "name: t\nagent_review_reject_stage: @\n" TWO, .with = "reject",
     .state = WAITS("agent_review")},
    {"pipeline.prompts", "yes", "no",
     "name: t\nprompts: {p: say @}\n" R "agents: [{name: a, stage_order: 1, " LLM ", prompt_key: p}]\n"},
    {"pipeline.execution", "7", "8", "execution: {llm_timeout: @}\n" ONE},
    {"pipeline.state", "[]", "[{key: plan}]", LOOP(LONG "state: @\n"), {AGAIN}},
    {"state_field.key", "plan", "critic", LOOP(LONG "state: [{key: @}]\n"), {AGAIN}},
    {"state_field.merge", "replace", "append", LOOP(LONG "state: [{key: plan, merge: @}]\n"), {AGAIN}},
    {"pipeline.retry_archive", "[plan]", "[]", LOOP(LONG "retry_archive: @\n"), {AGAIN}},
    {"pipeline.retry_clear",
     "[plan]",
     "[critic]",
     LOOP(LONG "retry_clear: @\n"),
     {AGAIN, {"llm:plan", "{'n':1}", false, 0}, {"llm:plan", "!:no", false, 0}}},
    {"pipeline.mock", "true", "false",
     "name: t\nmock: @\n" R "agents: [{name: a, stage_order: 1, " LLM ", mock_handler: x.m}]\n"},
    {"model.temperature", "0.1", "0.2",
     "name: t\nmodels: {r: {model: scripted:x, temperature: @}}\nagents: [{name: a, " LLM "}]\n"},
    {"model.max_tokens", "5", "6",
     "name: t\nmodels: {r: {model: scripted:x, max_tokens: @}}\nagents: [{name: a, " LLM "}]\n"},
    {"rule.condition", "v", "w", RULE("{condition: @, value: 1, target: c}"), {{"llm:a", "{'v':1}", false, 0}}},
    {"rule.value", "1", "2", RULE("{condition: v, value: @, target: c}"), {{"llm:a", "{'v':1}", false, 0}}},
    {"rule.when", "true", "false", RULE("{when: '@', target: c}"), {{"llm:a", "{'v':1}", false, 0}}},
    {"rule.target", "c", "end", RULE("{condition: v, value: 1, target: @}"), {{"llm:a", "{'v':1}", false, 0}}},
};

const struct key_rows key_rows_pipeline = {rows, RV_COUNT(rows), key_tell_run};

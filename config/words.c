/* Keys of other tools (LangGraph, Docker Agent, promptfoo, CI systems), and keys in a wrong place of the file: what to
 * write here. Words are in small letters, without "_" and "-". */
#include "config/config_internal.h"

#define STAGE_RULES "`routing_rules: [{when: EXPRESSION, target: STAGE}]`"

static const struct rv_key_word pipeline_words[] = {
    {"stages steps nodes tasks jobs", "did you mean \"agents\"?"},
    {"edges transitions conditionaledges links routes flow",
     "a stage says what follows it: `default_next: STAGE`, with conditions " STAGE_RULES},
    {"entrypoint entry start startat initial initialstate",
     "a run begins with the stage of the lowest `stage_order`, else with the first of `agents`"},
    {"finishpoint finish end", "a stage ends the run with `default_next: end`"},
    {"recursionlimit maxsteps maxvisits maxstages", "visits of stages are limited by `max_agent_hops`"},
    {"maxturns maxrequests requestlimit maxcalls", "model calls are limited by `max_llm_calls`"},
    {"maxcost maxcostusd maxusd budgetusd costlimit usd maxbudget costusd cost",
     "the cost of a run is limited by `budget: {usd: NUMBER}`"},
    {"maxtokens tokenlimit maxtotaltokens tokens tokenbudget",
     "tokens are limited in a stage: a reply by `max_tokens`, a visit by `limits: {total_tokens_limit: NUMBER}`"},
    {"timeout timeoutseconds timeoutms deadline", "did you mean \"default_timeout_seconds\"?"},
    {"checkpointer checkpoints checkpoint persistence",
     "reeve keeps every run without a key; `reeve run --store PLACE` says where"},
    {"interruptbefore interruptafter humanintheloop approvals", "a stage asks a person with `ask: {question: TEXT}`"},
    {"channels reducers stateschema", "outputs of loops are gathered by `state: [{key: OUTPUT, merge: append}]`"},
    {"providers provider model llm llms defaultmodel",
     "write `models: {default: PROVIDER:MODEL}`, and `model_role: default` in a stage"},
    {"tools toolsets functions plugins",
     "tools come from `capabilities` and `mcp_servers`; a stage names them in `allowed_tools`"},
    {"mcp mcpserver", "did you mean \"mcp_servers\"?"},
    {"vars variables input parameters args",
     "the input is `reeve run --input TEXT`, {{raw_input}} in a prompt; `inputs` names what a calling pipeline gives"},
    {"output outputs result answer", "the answer of a run is `response: {output_key: OUTPUT, field: FIELD}`"},
    {"defaulttest scenarios evaluateoptions", "write it into each of `tests`; `cases` and `matrix` repeat a test"},
    {"version apiversion kind", "leave it out: the file has no version"},
    {"schedule schedules cron on trigger triggers", "`reeve schedules add` runs a pipeline at times"},
    {"env environment secrets", "write ${env:NAME} where the value belongs, in `models`, `mcp_servers` or a `config`"},
    {0},
};
static const struct rv_key_word agent_words[] = {
    {"id key title", "did you mean \"name\"?"},
    {"model llm", "write `model_role: ROLE`, and `models: {ROLE: PROVIDER:MODEL}` beside `agents`"},
    {"prompt prompts messages userprompt userprompttemplate template question",
     "write `prompt_key: KEY`, and `prompts: {KEY: TEXT}` beside `agents`"},
    {"instruction instructions system systemprompt systemmessage persona",
     "write `system_key: KEY`, and `prompts: {KEY: TEXT}` beside `agents`"},
    {"tools toolsets functions", "write `has_tools: true` and `allowed_tools: [TOOL]`"},
    {"subagents handoffs delegates transferto",
     "agents ask others with the tool ask_agent of their documents; `agent: NAME` makes one a stage"},
    {"next goto then to target edges edge transition transitions onsuccess",
     "write `default_next: STAGE`, with conditions " STAGE_RULES},
    {"if when condition conditions conditionaledges switch branches cases", "write " STAGE_RULES},
    {"dependson needs dependencies waitfor upstream", "did you mean \"requires\"?"},
    {"onerror onfailure fallback catch iferror", "did you mean \"error_next\"?"},
    {"type kind", "a stage is what its keys say: has_llm, has_tools, agent, ask, set or pipeline"},
    {"description", "a stage has no description; write a comment: # TEXT"},
    {"foreach map loop each withitems iterate over", "write `for_each: EXPRESSION` and `max_items: NUMBER`"},
    {"subgraph workflow uses include import call", "write `pipeline: FILE`"},
    {"responseformat outputtype schema outputformat jsonschema", "did you mean \"output_schema\"?"},
    {"retry retries maxattempts", "did you mean \"max_retries\"?"},
    {"timeout timeoutms deadline", "did you mean \"timeout_seconds\"?"},
    {"maxturns maxsteps maxiterations recursionlimit",
     "`max_rounds` limits the replies of a visit that call tools, `max_visits` the visits of a run"},
    {"budget usd maxcost maxcostusd maxusd costlimit", "write `budget: {usd: NUMBER}` beside `agents`, for the whole "
                                                       "run; `limits` counts requests and tokens of a visit"},
    {"humaninput approval interrupt interruptbefore confirm", "write `ask: {question: TEXT}`"},
    {"run command script code function handler",
     "code is a hook or a tool of a capability: `post_process: CAPABILITY.HOOK`"},
    {"input", "a prompt has the input of the run as {{raw_input}}; `inputs` belongs to `pipeline`"},
    {"output", "did you mean \"output_key\"?"},
    {0},
};
static const struct rv_key_word rule_words[] = {
    {"if conditionexpression expression expr test", "did you mean \"when\"?"},
    {"next goto then to stage defaultnext", "did you mean \"target\"?"},
    {"field key", "did you mean \"condition\"?"},
    {"equals is eq matches", "did you mean \"value\"?"},
    {"else default otherwise", "where no rule matches, `default_next` of the stage decides"},
    {0},
};
static const struct rv_key_word budget_words[] = {
    {"maxusd maxcost cost dollars limit max amount costusd maxcostusd money price", "did you mean \"usd\"?"},
    {"tokens maxtokens totaltokens maxllmcalls llmcalls requests calls",
     "a budget is in US dollars; beside it `max_llm_calls` limits model calls, in a stage `limits` tokens"},
    {"perrun perday daily monthly perminute", "a budget is for each run; limits by day and user are quotas: `--quotas FILE`"},
    {0},
};
static const struct rv_key_word test_words[] = {
    {"description title id", "did you mean \"name\"?"},
    {"vars variables rawinput prompt inputs", "write `input: {raw_input: TEXT}`; `cases` has a table of them"},
    {"assert assertions asserts expected expectations should", "did you mean \"expect\"?"},
    {"provider providers model models mocks replies", "`script: {models: {STAGE: [{text: TEXT}]}}` answers for a "
                                                      "model; `matrix: {model: [PROVIDER:MODEL]}` asks several"},
    {"threshold passrate", "did you mean \"min_pass_rate\"?"},
    {"repeat repetitions runs", "write `reeve test --repeat NUMBER`"},
    {0},
};
static const struct rv_key_word expect_words[] = {
    {"contains icontains containsall includes", "did you mean \"response_contains\"?"},
    {"equals is eq text answer value", "did you mean \"response\"?"},
    {"notcontains startswith regex matches javascript python containsany containsjson",
     "write an expression: `that: [\"response.matches('REGEX')\"]`"},
    {"llmrubric rubric geval modelgraded factuality", "did you mean \"judge\"?"},
    {"cost maxcost usd maxusd", "write `that: [\"run.usd <= NUMBER\"]`"},
    {"latency duration maxlatency timeout", "did you mean \"max_duration_ms\"?"},
    {"stages path visits route", "did you mean \"visited\"?"},
    {"tools tool calls toolscalled toolcall", "did you mean \"tool_calls\"?"},
    {"outputs", "did you mean \"output\"?"},
    {"isjson jsonschema", "did you mean \"schema\"?"},
    {0},
};
static const struct rv_key_word server_words[] = {
    {"args arguments", "write program and arguments as one list: `command: [PROGRAM, ARGUMENT]`"},
    {"type transport", "`command` starts a program, `url` connects over HTTP"},
    {"remote endpoint uri serverurl address", "did you mean \"url\"?"},
    {"timeout timeoutseconds", "did you mean \"timeout_ms\"?"},
    {"include tool allowedtools", "did you mean \"allow\"?"},
    {"exclude deniedtools disabledtools", "did you mean \"deny\"?"},
    {0},
};
static const struct rv_key_word model_words[] = {
    {"name modelname id", "did you mean \"model\"?"},
    {"endpoint url apibase uri", "did you mean \"base_url\"?"},
    {"token key", "did you mean \"api_key\"?"},
    {"topp topk seed stop frequencypenalty presencepenalty reasoningeffort parameters",
     "write it into `extra_body`, as the provider calls it"},
    {"timeout timeoutms", "did you mean \"idle_timeout_ms\", \"first_byte_timeout_ms\" or \"connect_timeout_ms\"?"},
    {0},
};

const struct rv_key_word *rv_words_of_keys(const struct rv_key *keys)
{
    const struct {
        const struct rv_key_table *table;
        const struct rv_key_word *words;
    } all[] = {{&rv_pipeline_table, pipeline_words}, {&rv_agent_table, agent_words},
               {&rv_rule_table, rule_words},         {&rv_budget_table, budget_words},
               {&rv_test_table, test_words},         {&rv_test_expect_table, expect_words},
               {&rv_mcp_server_table, server_words}, {&rv_model_table, model_words}};

    for (size_t i = 0; i < RV_COUNT(all); i++)
        if (all[i].table->keys == keys)
            return all[i].words;
    return NULL;
}

/* Every row of rule 4.3, and the agent rules of 4.1: the whole print, with places. A text has no other fault, so each
 * case also shows that one fault gives one finding. */
#include "tests/unit/config/world.h"

#define HEAD "name: x\nagents:\n"

static const struct {
    const char *rule, *text, *want;
} cases[] = {
    /* 4.3 row 1 */
    /* Proves 4.2/name: `name`: text, required
     * Proves 4.3/1: A pipeline needs a name */
    {"4.3/1", "agents: []\n",
     "t.yaml:1:1: error: pipeline: name is required\n"
     "  hint: add `name:`, the pipeline's name\n"},
    {"4.3/1", "name: ''\n", "t.yaml:1:7: error: pipeline: name is required but empty\n"},
    /* row 3, and 4.1 */
    /* Proves 4.1/name: An agent without a name is an error that says the name is required. `name`: text, required,
     * unique; the stage's name
     * Proves 4.3/3: Each agent must be valid by itself */
    {"4.3/3", HEAD "  - {stage_order: 1}\n",
     "t.yaml:3:5: error: agent: name is required\n"
     "  hint: add `name:` with one word\n"},
    {"4.3/3", HEAD "  - {name: ''}\n", "t.yaml:3:12: error: agent: name is required but empty\n"},
    {"4.3/3", HEAD "  - just text\n",
     "t.yaml:3:5: error: agent: must be a map, not string \"just text\"\n"
     "  hint: keys here, among 67: name, agent, structured_output, joins_session, child_text; "
     "`reeve docs reference pipelines` lists them\n"},
    {"keys", HEAD "  - {name: a, language_of_model: 1}\n",
     "t.yaml:3:15: error: agent \"a\": unknown key \"language_of_model\"\n"
     "  hint: keys here, among 67: before_model, stage_order, after_model, model_role, output_mode; "
     "`reeve docs reference pipelines` lists them\n"},
    /* Proves 4.1/role: has_llm without model_role is an error naming the agent and both keys; a role that `models`
     * does not list is one too
     * Proves 4.1/model_role */
    {"4.1", HEAD "  - {name: a, has_llm: true}\n",
     "t.yaml:3:12: error: agent \"a\": has_llm needs a model_role\n"
     "  hint: name a role of models, for example model_role: default\n"},
    {"4.1", HEAD "  - {name: a, has_llm: true, model_role: ''}\n",
     "t.yaml:3:42: error: agent \"a\": has_llm needs a model_role\n"
     "  hint: name a role of models, for example model_role: default\n"},
    {"4.1", HEAD "  - {name: a, has_llm: true, model_role: 5}\n",
     "t.yaml:3:42: error: agent \"a\": model_role must be a string, not integer 5\n  hint: put it in quotes: \"5\"\n"},
    {"4.1", "models: {defualt: 'a:b'}\n" HEAD "  - {name: a, has_llm: true, model_role: default}\n",
     "t.yaml:4:42: error: agent \"a\": model_role names \"default\", which is not a role of models\n"
     "  hint: did you mean \"defualt\"? roles: defualt\n"},
    {"4.1", HEAD "  - {name: a, has_llm: true, model_role: anything}\n",
     ""}, /* no models at all: a script may answer */
    /* row 4 */
    /* Proves 4.3/4: Two agents of one name are an error that says duplicate and the name
     * Proves 4.1/name */
    {"4.3/4", HEAD "  - {name: a}\n  - {name: b}\n  - {name: a}\n",
     "t.yaml:5:12: error: duplicate agent name \"a\"; the first one is on line 3\n"
     "  hint: give each agent a name of its own\n"},
    {"4.3/4", HEAD "  - {name: a, stage_order: 2}\n  - {name: a, stage_order: 1}\n",
     "t.yaml:4:12: error: duplicate agent name \"a\"; the first one is on line 3\n"
     "  hint: give each agent a name of its own\n"},
    /* row 5 */
    /* Proves 4.3/5: A rule leads to a stage, end, clarification or confirmation
     * Proves W21 */
    {"4.3/5", HEAD "  - name: plan\n    routing_rules: [{condition: a, value: 1, target: plna}]\n",
     "t.yaml:4:54: error: stage \"plan\": rule 1 has the target \"plna\", which is not a stage\n"
     "  hint: did you mean \"plan\"? targets: plan, end, clarification, confirmation\n"},
    {"4.3/5",
     HEAD "  - name: a\n    routing_rules:\n      - {condition: a, value: 1, target: end}\n"
          "      - {condition: a, value: 2, target: clarification}\n"
          "      - {condition: a, value: 3, target: confirmation}\n      - {condition: a, value: 4, target: a}\n",
     ""},
    /* row 6 */
    /* Proves 4.3/6: default_next is empty or such a target */
    {"4.3/6", HEAD "  - {name: planner}\n  - name: plan\n    default_next: exectuor\n  - {name: executor}\n",
     "t.yaml:5:19: error: stage \"plan\": default_next names \"exectuor\", which is not a stage\n"
     "  hint: did you mean \"executor\"? targets: planner, plan, executor, end, clarification, confirmation\n"},
    {"4.3/6", HEAD "  - {name: a, default_next: __end__}\n",
     "t.yaml:3:29: error: stage \"a\": default_next names \"__end__\", which is not a stage\n"
     "  hint: targets: a, end, clarification, confirmation\n"},
    /* row 7 */
    /* Proves 4.3/7: requires names known stages and never the agent itself */
    {"4.3/7", HEAD "  - {name: a, requires: [b]}\n",
     "t.yaml:3:26: error: stage \"a\": requires names \"b\", which is not a stage\n  hint: stages: a\n"},
    {"4.3/7", HEAD "  - {name: a, requires: [end]}\n",
     "t.yaml:3:26: error: stage \"a\": requires names \"end\", which is not a stage\n  hint: stages: a\n"},
    {"4.3/7", HEAD "  - {name: a, requires: [a]}\n",
     "t.yaml:3:26: error: stage \"a\": it cannot require itself\n  hint: take its own name out of the list\n"},
    /* row 8 */
    /* Proves 4.3/8: after names known stages and never the agent itself */
    {"4.3/8", HEAD "  - {name: a}\n  - {name: b, after: [a, c]}\n",
     "t.yaml:4:26: error: stage \"b\": after names \"c\", which is not a stage\n  hint: stages: a, b\n"},
    {"4.3/8", HEAD "  - {name: a, after: [a]}\n",
     "t.yaml:3:23: error: stage \"a\": it cannot be after itself\n  hint: take its own name out of the list\n"},
    /* error_next */
    /* Proves 4.3/error_next: error_next is empty or such a target
     * Proves 4.3/resume: Resume stages (and the reject stage) are empty or known stages, not end
     * Proves 4.3/edges: Edge limits join known stages, count at least 1 and name no pair twice
     * Proves 4.3/outputs: No two agents share an output key
     * Proves 4.3/reserved: end, start, clarification, confirmation and __end__ are no names for agents
     * Proves W19: Error routes, resume stages, edge limits, output keys and reserved names are checked at load
     * Proves 4.2/resume, 10/validation */
    {"W19", HEAD "  - {name: a, error_next: b}\n",
     "t.yaml:3:27: error: stage \"a\": error_next names \"b\", which is not a stage\n"
     "  hint: targets: a, end, clarification, confirmation\n"},
    {"W19", HEAD "  - {name: a, error_next: end}\n", ""},
    /* resume stages */
    {"W19", "clarification_resume_stage: end\n" HEAD "  - {name: a}\n",
     "t.yaml:1:29: error: clarification_resume_stage names \"end\", which is not a stage\n  hint: stages: a\n"},
    {"W19", "confirmation_resume_stage: b\n" HEAD "  - {name: a}\n",
     "t.yaml:1:28: error: confirmation_resume_stage names \"b\", which is not a stage\n  hint: stages: a\n"},
    {"W19", "agent_review_resume_stage: b\nagent_review_reject_stage: c\n" HEAD "  - {name: a}\n",
     "t.yaml:1:28: error: agent_review_resume_stage names \"b\", which is not a stage\n  hint: stages: a\n"
     "t.yaml:2:28: error: agent_review_reject_stage names \"c\", which is not a stage\n  hint: stages: a\n"},
    {"W19", "clarification_resume_stage: ''\n" HEAD "  - {name: a}\n", ""},
    /* edge limits */
    {"W19", HEAD "  - {name: a}\nedge_limits: [{from: a, to: end, max_count: 1}]\n",
     "t.yaml:4:29: error: edge limit: to names \"end\", which is not a stage\n  hint: stages: a\n"},
    {"W19", HEAD "  - {name: a}\nedge_limits: [{from: b, to: a, max_count: 1}]\n",
     "t.yaml:4:22: error: edge limit: from names \"b\", which is not a stage\n  hint: stages: a\n"},
    {"W19", HEAD "  - {name: a}\nedge_limits: [{from: a, to: a, max_count: 0}]\n",
     "t.yaml:4:43: error: edge limit: max_count must be at least 1, not 0\n"
     "  hint: the nearest legal value is 1\n"},
    {"W19",
     HEAD "  - {name: a}\nedge_limits:\n  - {from: a, to: a, max_count: 1}\n  - {from: a, to: a, max_count: 2}\n",
     "t.yaml:6:5: error: edge limit: the way from \"a\" to \"a\" is limited twice; the first time on line 5\n"
     "  hint: keep one of them\n"},
    {"W19", HEAD "  - {name: a}\nedge_limits: [{from: a, to: a}]\n",
     "t.yaml:4:15: error: edge limit: max_count is required\n"
     "  hint: add `max_count:`, how often a run may go this way; once more ends it\n"},
    /* output keys */
    {"W19", HEAD "  - {name: a}\n  - {name: b, output_key: a}\n",
     "t.yaml:4:27: error: agents \"a\" and \"b\" share the output_key \"a\"\n"
     "  hint: give each agent an output_key of its own; a stage behind them can take the one that is there: "
     "set: {text: \"has(outputs.a) ? outputs.a.text : outputs.b.text\"}\n"},
    {"W19", HEAD "  - {name: a, output_key: b}\n  - {name: b}\n",
     "t.yaml:4:12: error: agents \"a\" and \"b\" share the output_key \"b\"\n"
     "  hint: give each agent an output_key of its own; a stage behind them can take the one that is there: "
     "set: {text: \"has(outputs.a) ? outputs.a.text : outputs.b.text\"}\n"},
    /* reserved names */
    {"W19",
     HEAD "  - {name: end}\n  - {name: start}\n  - {name: clarification}\n  - {name: confirmation}\n"
          "  - {name: __end__}\n",
     "t.yaml:3:12: error: stage \"end\": the name is reserved for the engine\n  hint: choose another name\n"
     "t.yaml:4:12: error: stage \"start\": the name is reserved for the engine\n  hint: choose another name\n"
     "t.yaml:5:12: error: stage \"clarification\": the name is reserved for the engine\n  hint: choose another name\n"
     "t.yaml:6:12: error: stage \"confirmation\": the name is reserved for the engine\n  hint: choose another name\n"
     "t.yaml:7:12: error: stage \"__end__\": the name is reserved for the engine\n  hint: choose another name\n"},
    /* names that would break a line of output */
    {"names",
     HEAD "  - {name: \"a\\nb\"}\n  - {name: \"\\e[31m\"}\n  - {name: \"\\u202eab\"}\n  - {name: \"\\x9bab\"}\n",
     "t.yaml:3:12: error: stage \"a\\nb\": the name has a control character\n"
     "  hint: choose a name of one line without control characters\n"
     "t.yaml:4:12: error: stage \"\\x1b[31m\": the name has a control character\n"
     "  hint: choose a name of one line without control characters\n"
     "t.yaml:5:12: error: stage \"\\u202eab\": the name has a control character\n"
     "  hint: choose a name of one line without control characters\n"
     "t.yaml:6:12: error: stage \"\\x9bab\": the name has a control character\n"
     "  hint: choose a name of one line without control characters\n"},
    {"names",
     HEAD "  - {name: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
          "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx}\n",
     "t.yaml:3:12: error: stage: the name has 129 bytes, the limit is 128\n  hint: choose a shorter one\n"},
    /* bounds */
    /* Proves 4.3/bounds: Bounds and timeouts are positive, max_retries is not negative; the finding has key and
     * value
     * Proves 10/validation: Bounds are positive, keys unique, targets exist
     * Proves W17 */
    {"W17", "name: x\nmax_iterations: 0\nmax_llm_calls: -1\nmax_agent_hops: 0\ndefault_timeout_seconds: 0\n",
     "t.yaml:2:17: error: pipeline \"x\": max_iterations must be at least 1, not 0\n"
     "  hint: left out, it is 3\n"
     "t.yaml:3:16: error: pipeline \"x\": max_llm_calls must be at least 1, not -1\n"
     "  hint: left out, it is 10\n"
     "t.yaml:4:17: error: pipeline \"x\": max_agent_hops must be at least 1, not 0\n"
     "  hint: left out, it is 21\n"
     "t.yaml:5:26: error: pipeline \"x\": default_timeout_seconds must be at least 1, not 0\n"
     "  hint: left out, it is 300\n"},
    {"W17", HEAD "  - {name: a, timeout_seconds: -1, max_retries: -2, max_visits: 0}\n",
     "t.yaml:3:32: error: agent \"a\": timeout_seconds must be at least 0, not -1\n"
     "  hint: left out, it is 0\n"
     "t.yaml:3:49: error: agent \"a\": max_retries must be at least 0, not -2\n"
     "  hint: left out, it is 0\n"
     "t.yaml:3:65: error: agent \"a\": max_visits must be at least 1, not 0\n"
     "  hint: the nearest legal value is 1\n"},
    /* cycles */
    /* Proves 4.3/cycles: requires and after have no cycle; one cycle is named with the place of each step
     * Proves W20: A dependency cycle is an error at load */
    {"W20", HEAD "  - {name: a, requires: [c]}\n  - {name: b, after: [a]}\n  - {name: c, requires: [b]}\n",
     "t.yaml:3:26: error: dependency cycle: \"a\" requires \"c\" (3:26), \"c\" requires \"b\" (5:26), \"b\" is after "
     "\"a\" (4:23)\n  hint: take one of them out: none of these stages could ever start\n"},
    {"W20", HEAD "  - {name: a}\n  - {name: b, requires: [a]}\n  - {name: c, requires: [a, b], after: [b]}\n", ""},
    {"W20", HEAD "  - {name: a}\n  - {name: b, default_next: a}\n", ""}, /* cycles of routing are legal */
    /* strictness */
    /* Proves 4.3/strict: Unknown keys, unknown words and wrong types are errors with the path of the key
     * Proves W40: Loading is strict: unknown keys, words and types are refused with file, line and column; the
     * schema that editors use judges alike */
    {"W40", "name: x\nagent: []\n",
     "t.yaml:2:1: error: pipeline \"x\": unknown key \"agent\"\n"
     "  hint: did you mean \"agents\"?\n"},
    {"W40", HEAD "  - {name: a, max_retrys: 1}\n",
     "t.yaml:3:15: error: agent \"a\": unknown key \"max_retrys\"\n  hint: did you mean \"max_retries\"?\n"},
    {"W40", HEAD "  - {name: a, join_strategy: both}\n",
     "t.yaml:3:30: error: agent \"a\": join_strategy is \"both\", which is not a valid join strategy\n  hint: legal: "
     "all, "
     "any\n"},
    {"W40", HEAD "  - {name: a, has_llm: 'true'}\n",
     "t.yaml:3:24: error: agent \"a\": has_llm must be a boolean, not string \"true\"\n"
     "  hint: booleans are written true and false\n"},
    {"W40", HEAD "  - name: a\n    routing_rules: [{conditon: a, value: 1, target: end}]\n",
     "t.yaml:4:22: error: agent \"a\": unknown key \"routing_rules[0].conditon\"\n"
     "  hint: did you mean \"condition\"?\n"},
    {"W40", "name: x\nexecution: {llm_timout: 3}\n",
     "t.yaml:2:13: error: pipeline \"x\": unknown key \"execution.llm_timout\"\n"
     "  hint: did you mean \"llm_timeout\"?\n"},
    {"W40", "name: x\nagents: {a: 1}\n",
     "t.yaml:2:9: error: pipeline \"x\": agents must be a list of maps with a name, not map\n"
     "  hint: begin each item with `- ` and write its name inside: `- name: a`\n"},
    {"W40", "name: x\nagents: {a: 1}\nclarification_resume_stage: a\nstate: [{key: a}]\n", /* nothing follows from it */
     "t.yaml:2:9: error: pipeline \"x\": agents must be a list of maps with a name, not map\n"
     "  hint: begin each item with `- ` and write its name inside: `- name: a`\n"},
    {"W40", "- name: x\n",
     "t.yaml:1:1: error: a pipeline must be a map, not list\n"
     "  hint: begin with \"name:\" and \"agents:\"\n"},
    {"W40", "", "t.yaml:1:1: error: the file is empty\n  hint: begin with \"name:\" and \"agents:\"\n"},
    /* rules */
    {"5.8", HEAD "  - name: a\n    routing_rules: [{condition: a, value: 1, when: 'true', target: end}]\n",
     "t.yaml:4:21: error: agent \"a\": rule 1 has \"when\" and \"condition\"\n"
     "  hint: split it into two rules, or say both in \"when\"\n"},
    {"5.8", HEAD "  - name: a\n    routing_rules: [{condition: a, target: end}]\n",
     "t.yaml:4:21: error: agent \"a\": rule 1 has \"condition\" but no \"value\"\n"
     "  hint: write \"value: null\" to compare with null\n"},
    {"5.8", HEAD "  - name: a\n    routing_rules: [{target: end}]\n",
     "t.yaml:4:21: error: agent \"a\": rule 1 has neither \"condition\" with \"value\" nor \"when\"\n"
     "  hint: write its target as default_next of the stage, which counts where no rule matches\n"},
    {"when", HEAD "  - name: a\n    routing_rules: [{when: \"outptu.x == 1\", target: end}]\n",
     "t.yaml:4:29: error: agent \"a\": rule 1: \"when\": unknown variable \"outptu\"\n"
     "  hint: did you mean \"output\"?\n"},
    {"when",
     HEAD "  - name: a\n    routing_rules:\n      - when: |\n          output.x == 1 &&\n            foo\n"
          "        target: end\n",
     "t.yaml:7:13: error: agent \"a\": rule 1: \"when\": unknown variable \"foo\"\n"
     "  hint: variables here: output, outputs, envelope, metadata, state, interrupt, models, group, error, item, "
     "index, inputs\n"},
    {"when", HEAD "  - name: a\n    routing_rules: [{when: 1 + 1, target: end}]\n",
     "t.yaml:4:28: error: agent \"a\": rule 1: \"when\" is never true or false\n"
     "  hint: compare it with something: a condition is true or false\n"},
    /* warnings */
    /* Proves 4.3/warnings: Policies on without a policy, tools on without access, model and tools together, a stage
     * that leads to itself without max_visits: warnings of the file; the first is an error of whatever is run (5.1) */
    {"warn", HEAD "  - {name: a, has_policies: true}\n",
     "t.yaml:3:5: warning: agent \"a\": has_policies is set but no policy is named\n  hint: list them under "
     "policies\n"},
    {"warn", HEAD "  - {name: a, has_tools: true}\n",
     "t.yaml:3:5: warning: agent \"a\": has_tools is set but no tool may be used: no access is given\n"
     "  hint: set tool_access or allowed_tools\n"},
    {"warn", HEAD "  - {name: a, has_llm: true, model_role: r, has_tools: true, tool_access: all}\n", ""},
    {"warn", HEAD "  - {name: a, has_llm: true, model_role: r, has_tools: true}\n",
     "t.yaml:3:5: warning: agent \"a\": has_llm and has_tools are set but the model is offered no tool: no access is "
     "given\n"
     "  hint: set tool_access or allowed_tools\n"},
    {"warn", HEAD "  - {name: a, default_next: a}\n",
     "t.yaml:3:29: warning: stage \"a\": default_next names the stage itself, so only the bounds of the pipeline end "
     "the loop\n  hint: set max_visits\n"},
    {"warn", HEAD "  - {name: a, default_next: a, max_visits: 3}\n", ""},
    /* Hooks around calls */
    {"hooks", HEAD "  - {name: a, has_llm: true, model_role: r, before_model: c.x, after_model: [c.x, c.y]}\n", ""},
    {"hooks", HEAD "  - {name: a, before_model: 5}\n",
     "t.yaml:3:29: error: agent \"a\": before_model must be the name of a hook or a list of names, not integer 5\n"},
    {"hooks", HEAD "  - {name: a, has_tools: true, tool_access: all, after_tool: [c.x, 5]}\n",
     "t.yaml:3:68: error: agent \"a\": after_tool[1] must be a string, not integer 5\n"
     "  hint: put it in quotes: \"5\"\n"},
    {"hooks", HEAD "  - {name: a, has_tools: true, tool_access: all, before_tool: ''}\n",
     "t.yaml:3:63: error: agent \"a\": before_tool: the name of a hook is empty\n  hint: write capability.name\n"},
    {"hooks", HEAD "  - {name: a, before_model: c.x}\n",
     "t.yaml:3:29: warning: agent \"a\": before_model is never asked, since the stage makes no such calls\n"
     "  hint: set has_llm, or leave it out\n"},
    {"hooks", HEAD "  - {name: a, has_llm: true, model_role: r, after_tool: [c.x, c.y]}\n",
     "t.yaml:3:58: warning: agent \"a\": after_tool is never asked, since the stage makes no such calls\n"
     "  hint: set has_tools, or leave it out\n"},
    {"hooks", HEAD "  - {name: a, has_llm: true, model_role: r, max_context_tokens: 0}\n",
     "t.yaml:3:65: error: agent \"a\": max_context_tokens must be at least 1, not 0\n"
     "  hint: the nearest legal value is 1\n"},
};

START_TEST(one_fault_gives_one_finding_with_place_and_hint)
{
    expect_findings(cases[_i].text, cases[_i].want);
}
END_TEST

/* Proves 4.3/all: Every fault of a file is found in one pass, with severity and place, once */
START_TEST(all_faults_come_in_one_pass)
{
    expect_findings(
        "name: x\nmax_llm_calls: 0\nagents:\n  - {name: a, default_next: zz, requires: [qq]}\n"
        "  - {name: a, defualt_next: a}\nedge_limits: [{from: yy, to: a, max_count: 1}]\n",
        "t.yaml:2:16: error: pipeline \"x\": max_llm_calls must be at least 1, not 0\n"
        "  hint: left out, it is 10\n"
        "t.yaml:4:29: error: stage \"a\": default_next names \"zz\", which is not a stage\n"
        "  hint: targets: a, end, clarification, confirmation\n"
        "t.yaml:4:44: error: stage \"a\": requires names \"qq\", which is not a stage\n  hint: stages: a\n"
        "t.yaml:5:12: error: duplicate agent name \"a\"; the first one is on line 4\n"
        "  hint: give each agent a name of its own\n"
        "t.yaml:5:15: error: agent \"a\": unknown key \"defualt_next\"\n  hint: did you mean \"default_next\"?\n"
        "t.yaml:6:22: error: edge limit: from names \"yy\", which is not a stage\n  hint: stages: a\n");
}
END_TEST

TCase *rules_case(void)
{
    TCase *tc = tcase_create("rules");

    tcase_add_loop_test(tc, one_fault_gives_one_finding_with_place_and_hint, 0, RV_COUNT(cases));
    tcase_add_test(tc, all_faults_come_in_one_pass);
    return tc;
}

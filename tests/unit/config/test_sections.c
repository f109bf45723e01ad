/* The sections around the agents: models, prompts, capabilities, execution (rule 4.6, W23), state, tests. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/config/world.h"

static const struct {
    const char *text, *want;
} cases[] = {
    /* models */
    {"name: x\nmodels: {a: gpt}\n", "t.yaml:2:13: error: model \"a\": must be provider:model, not \"gpt\"\n"
                                    "  hint: for example \"openai:gpt-4.1-mini\", or \"scripted\"\n"},
    {"name: x\nmodels: {a: 'p:'}\n", "t.yaml:2:13: error: model \"a\": must be provider:model, not \"p:\"\n"
                                     "  hint: for example \"openai:gpt-4.1-mini\", or \"scripted\"\n"},
    {"name: x\nmodels: {a: [1]}\n", "t.yaml:2:13: error: model \"a\": must be a string or a map, not list\n"
                                    "  hint: for example \"openai:gpt-4.1-mini\"\n"},
    {"name: x\nmodels: {a: {temperature: 1}}\n", "t.yaml:2:13: error: model \"a\": model is required\n"
                                                 "  hint: for example model: openai:gpt-4.1-mini\n"},
    {"name: x\nmodels: {a: {model: 'p:m', temperature: 3}}\n",
     "t.yaml:2:41: error: model \"a\": temperature is out of range\n  hint: legal: 0 to 2\n"},
    {"name: x\nmodels: {a: {model: 'p:m', price: {input: 1}}}\n",
     "t.yaml:2:35: error: model \"a\": price.output is required\n"
     "  hint: add `output:`, US dollars for a million tokens of output\n"},
    {"name: x\nmodels: {a: {model: 'p:m', price: {input: 1, output: 2, free: 3}, base_ulr: u}}\n",
     "t.yaml:2:57: error: model \"a\": unknown key \"price.free\"\n  hint: keys here: input, output, cached, "
     "cache_write\n"
     "t.yaml:2:67: error: model \"a\": unknown key \"base_ulr\"\n  hint: did you mean \"base_url\"?\n"},
    {"name: x\nmodels: 1\nagents: [{name: a, has_llm: true, model_role: r}]\n",
     "t.yaml:2:9: error: pipeline \"x\": models must be a map from role to model, not integer 1\n"
     "  hint: write a map: {ROLE: value}\n"},
    /* prompts (5.5) */
    {"name: x\nprompts: {a: 1}\n",
     "t.yaml:2:14: error: prompt \"a\": must be a text or a map with \"file\", not integer\n"
     "  hint: write {file: path} for a text file\n"},
    {"name: x\nprompts:\n  a: |\n    one\n    two {{raw_input\n",
     "t.yaml:5:9: error: prompt \"a\": \"{{raw_input\" is not followed by \"}}\"\n"
     "  hint: a placeholder is a path, such as {{plan.goal}}; write \\{{ for two braces that are text\n"},
    {"name: x\nprompts: {a: {file: nowhere/x.md}}\n",
     "t.yaml:2:21: error: prompt \"a\": cannot open \"nowhere/x.md\": No such file or directory\n"
     "  hint: paths start at the folder of the pipeline\n"},
    {"name: x\nprompts: {a: {file: /dev/zero}}\n",
     "t.yaml:2:21: error: prompt \"a\": \"/dev/zero\" is not a regular file\n"},
    {"name: x\nagents: [{name: s, prompt_key: a}]\nprompts:\n  a: |\n    Hi {{raw_input}}\n    and {{oops.x}} "
     "{{s.y}}\n",
     "t.yaml:6:9: error: prompt \"a\": {{oops.x}} can have no value: nothing is called \"oops\"\n"
     "  hint: names: s, raw_input, user_id, session_id, metadata, iteration, loop_feedback, prior_plans, "
     "interrupt_response, outputs, state, stage_context\n"},
    {"name: x\nagents: [{name: s, prompt_key: a}]\nprompts: {a: \"{{outputs.z}}\"}\n",
     "t.yaml:3:15: error: prompt \"a\": {{outputs.z}} names the output \"z\", which no stage makes\n"
     "  hint: output keys: s\n"},
    {"name: x\nagents: [{name: s}]\nprompts: {a: \"{{zz}}\"}\n", /* no stage uses it */
     "t.yaml:3:15: warning: prompt \"a\": {{zz}} can have no value: nothing is called \"zz\"\n"
     "  hint: names: s, raw_input, user_id, session_id, metadata, iteration, loop_feedback, prior_plans, "
     "interrupt_response, outputs, state, stage_context\n"},
    {"name: x\nagents: [{name: s, prompt_key: a}]\nprompts:\n  a: \"{{raw_input}} {{user_id}} {{session_id}} "
     "{{metadata.k}} "
     "{{iteration}} {{loop_feedback}} {{prior_plans}} {{interrupt_response}} {{outputs}} {{outputs.s.x}} {{state.q}} "
     "{{stage_context}} {{s}}\"\n",
     ""},
    /* capabilities */
    {"name: x\ncapabilities: [1, {}, {name: a, path: b}, {name: ''}, {name: c, isolation: jail}]\n",
     "t.yaml:2:16: error: pipeline \"x\": \"capabilities[0]\" must be a name or a map, not integer\n"
     "t.yaml:2:19: error: capability: \"name\" or \"path\" is required\n"
     "t.yaml:2:23: error: capability \"a\": \"name\" and \"path\" exclude each other\n"
     "t.yaml:2:50: error: capability: the name of a capability is empty\n"
     "t.yaml:2:76: error: capability \"c\": isolation is \"jail\", which is not a valid isolation\n"
     "  hint: legal: none, process\n"},
    /* execution (4.6, W23) */
    {"name: x\nexecution: {max_plan_steps: many}\n",
     "t.yaml:2:29: error: pipeline \"x\": execution.max_plan_steps must be an integer, not string \"many\"\n"
     "  hint: write a whole number, without unit or quotes\n"},
    {"name: x\nexecution: {llm_timeout: 0, tool_timeout: '3', log_level: Loud, clarification_threshold: 2}\n",
     "t.yaml:2:26: error: pipeline \"x\": execution.llm_timeout must be at least 0.001, not 0\n"
     "  hint: left out, it is 120\n"
     "t.yaml:2:43: error: pipeline \"x\": execution.tool_timeout must be a number, not string \"3\"\n"
     "  hint: write the number without quotes\n"
     "t.yaml:2:59: error: pipeline \"x\": execution.log_level is \"Loud\", which is not a log level\n"
     "  hint: legal: TRACE, DEBUG, INFO, WARN, ERROR, OFF\n"
     "t.yaml:2:90: error: pipeline \"x\": execution.clarification_threshold must be at most 1, not 2\n"
     "  hint: left out, it is 0.7\n"},
    /* state and lists of output keys */
    {"name: x\nagents: [{name: a}]\nstate: [{key: a}, {key: a}, {key: b}, {key: a, merge: add}]\n",
     "t.yaml:3:19: error: state field \"a\" is declared twice; the first time on line 3\n  hint: keep one of them\n"
     "t.yaml:3:29: warning: state field \"b\" is not the output key of a stage, so nothing is gathered in it\n"
     "t.yaml:3:39: error: state field \"a\" is declared twice; the first time on line 3\n  hint: keep one of them\n"
     "t.yaml:3:55: error: state field: merge is \"add\", which is not a valid way to merge\n"
     "  hint: legal: replace, append, merge_dict\n"},
    {"name: x\nagents: [{name: a, plan_from: q}]\nretry_clear: [a, b]\nresponse: {output_key: c}\n",
     "t.yaml:2:31: warning: stage \"a\": plan_from names \"q\", which is not the output key of a stage\n"
     "t.yaml:3:18: warning: retry_clear names \"b\", which is not the output key of a stage\n"
     "t.yaml:4:24: warning: response.output_key names \"c\", which is not the output key of a stage\n"},
    /* tests */
    {"name: x\nagents: [{name: a}]\ntests:\n  - expect: {visited: [a, b], status: done, errors: [{agent: c}], output: "
     "{d: 1}}\n"
     "  - {name: t, expect: {errors: -1, response_contains: 1, interrupt: pause}, input: {text: hi}, mode: fast}\n"
     "  - {name: u, script: 5}\n"
     "  - {name: v, expect: {output: {}, response_contains: [], that: []}}\n",
     "t.yaml:4:5: error: test: name is required\n  hint: add `name:`, what the test shows\n"
     "t.yaml:4:27: error: test \"\": expect.visited names \"b\", which is not a stage\n  hint: stages: a\n"
     "t.yaml:4:39: error: test: expect.status is \"done\", which is not a valid run status\n"
     "  hint: legal: ready, running, completed, interrupted, terminated, failed, cancelled\n"
     "t.yaml:4:62: error: test \"\": expect.errors names \"c\", which is not a stage\n  hint: stages: a\n"
     "t.yaml:4:76: warning: test \"\": expect.output names \"d\", which is not the output key of a stage\n"
     "t.yaml:5:32: error: test \"t\": expect.errors must be a count or a list of maps, not integer -1\n"
     "t.yaml:5:55: error: test \"t\": expect.response_contains must be a string or a list of strings, not integer 1\n"
     "t.yaml:5:69: error: test \"t\": expect.interrupt is \"pause\", which is not a valid interrupt kind\n"
     "  hint: legal: clarification, confirmation, agent_review, checkpoint, resource_exhausted, timeout, system_error\n"
     "t.yaml:5:85: error: test \"t\": unknown key \"input.text\"\n"
     "  hint: keys here: raw_input, user_id, session_id, metadata\n"
     "t.yaml:5:102: error: test \"t\": mode is \"fast\", which is not a valid run mode\n  hint: legal: sequential, "
     "parallel\n"
     "t.yaml:6:5: warning: test \"u\" compares nothing: it has no `expect`  [test_compares_nothing]\n"
     "  hint: say what the run must come to, for example `expect: {status: completed}`\n"
     "t.yaml:6:23: error: test \"u\": script must be a path or a map, not integer 5\n"
     "t.yaml:7:23: warning: test \"v\" compares nothing: its `expect` has nothing to compare  [test_compares_nothing]\n"
     "  hint: say what the run must come to, for example `expect: {status: completed}`\n"},
    {"name: x\ntests: [{name: t, script: nowhere.yaml, expect: {errors: []}}]\n", ""}, /* reading it is an error */
};

/* Proves W23 */
START_TEST(faults_of_a_section_are_found)
{
    expect_findings(cases[_i].text, cases[_i].want);
}
END_TEST

START_TEST(models_are_split_and_keep_what_their_provider_takes)
{
    struct loaded l = load_clean("name: x\n"
                                 "models:\n"
                                 "  default: openai:gpt:4\n"
                                 "  play: scripted\n"
                                 "  judge: {provider: p, model: 'm:x', temperature: 0, max_tokens: 8, base_url: u,\n"
                                 "          price: {input: 3, output: 15.5}, options: {nested: {a: [1]}}}\n");
    const struct rv_model_config *m = rv_pipeline_find_model(l.p, RV_STR_LIT("default"));

    ck_assert_str_eq(m->provider, "openai");
    ck_assert_str_eq(m->model, "gpt:4"); /* at the first colon */
    ck_assert_ptr_null(m->options);
    ck_assert(!m->has_price && !m->has_temperature);
    m = rv_pipeline_find_model(l.p, RV_STR_LIT("play"));
    ck_assert_str_eq(m->provider, "scripted");
    ck_assert_str_eq(m->model, "");
    m = rv_pipeline_find_model(l.p, RV_STR_LIT("judge"));
    ck_assert_str_eq(m->provider, "p");
    ck_assert_str_eq(m->model, "m:x");
    ck_assert(m->has_temperature && m->has_max_tokens && m->has_price);
    ck_assert_int_eq(m->price.input, 3000000);
    ck_assert_int_eq(m->price.output, 15500000);
    ck_assert_int_eq(m->price.cached, RV_UNSET);
    ck_assert_int_eq(json_object_object_length(m->options), 2);
    loaded_fini(&l);
}
END_TEST

/* Proves 4.6: Global knobs have their defaults; times are seconds in the file, whole or fractional; llm_seed is set
 * only when given
 * Proves 4.6/max_plan_steps: `max_plan_steps` is 20 unless given
 * Proves 4.6/max_tool_retries: `max_tool_retries` is 2 unless given
 * Proves 4.6/max_llm_retries: `max_llm_retries` is 3 unless given
 * Proves 4.6/max_loop_iterations: `max_loop_iterations` is 10 unless given, and changes what a run does
 * Proves 4.6/llm_timeout: `llm_timeout` is 120 s unless given
 * Proves 4.6/executor_timeout: `executor_timeout` is 60 s unless given
 * Proves 4.6/tool_timeout: `tool_timeout` is 30 s unless given
 * Proves 4.6/agent_timeout: `agent_timeout` is 300 s unless given
 * Proves 4.6/clarification_threshold: `clarification_threshold` is 0.7 unless given, and changes what a run does
 * Proves 4.6/high_confidence_threshold: `high_confidence_threshold` is 0.9 unless given, and changes what a run
 * does
 * Proves 4.6/meta_validation_enabled: `meta_validation_enabled` is true unless given, and changes what a run does
 * Proves 4.6/meta_validation_delay: `meta_validation_delay` is 0.5 s unless given, and changes what a run does
 * Proves 4.6/require_confirmation_for_destructive: `require_confirmation_for_destructive` is true unless given
 * Proves 4.6/max_replan_iterations: `max_replan_iterations` is 3 unless given, and changes what a run does
 * Proves 4.6/max_loop_back_rejections: `max_loop_back_rejections` is 2 unless given, and changes what a run does
 * Proves 4.6/replan_on_partial_success: `replan_on_partial_success` is true unless given, and changes what a run
 * does
 * Proves 4.6/llm_seed: `llm_seed` is unset unless given
 * Proves 4.6/strict_transition_validation: `strict_transition_validation` is true unless given, and changes what a
 * run does
 * Proves 4.6/enable_idempotency: `enable_idempotency` is true unless given, and changes what a run does
 * Proves 4.6/idempotency_ttl_ms: `idempotency_ttl_ms` is 3600000 unless given, and changes what a run does
 * Proves 4.6/enforce_idempotency_for_tools: `enforce_idempotency_for_tools` is true unless given, and changes what
 * a run does
 * Proves 4.6/enforce_idempotency_for_agents: `enforce_idempotency_for_agents` is false unless given, and changes
 * what a run does
 * Proves 4.6/log_level: `log_level` is INFO unless given
 * Proves 4.6/enable_loop_back: `enable_loop_back` is true unless given
 * Proves 4.6/enable_arbiter: `enable_arbiter` is true unless given, and changes what a run does
 * Proves 4.6/skip_arbiter_for_read_only: `skip_arbiter_for_read_only` is true unless given, and changes what a run
 * does
 * Proves W23: Execution config accepts integers for floats, whole floats for integers; any other type is an error */
START_TEST(execution_has_its_defaults_and_takes_integers_for_floats) /* rule 4.6, W23 */
{
    struct loaded l = load_clean("name: x\n");
    const struct rv_execution_config *e = &l.p->execution;

    ck_assert_int_eq(e->max_plan_steps, 20);
    ck_assert_int_eq(e->max_tool_retries, 2);
    ck_assert_int_eq(e->max_llm_retries, 3);
    ck_assert_int_eq(e->max_loop_iterations, 10);
    ck_assert_int_eq(e->max_replan_iterations, 3);
    ck_assert_int_eq(e->max_loop_back_rejections, 2);
    ck_assert_int_eq(e->llm_timeout_ms, 120000);
    ck_assert_int_eq(e->executor_timeout_ms, 60000);
    ck_assert_int_eq(e->tool_timeout_ms, 30000);
    ck_assert_int_eq(e->agent_timeout_ms, 300000);
    ck_assert_int_eq(e->meta_validation_delay_ms, 500);
    ck_assert_int_eq(e->idempotency_ttl_ms, 3600000);
    ck_assert_double_eq(e->clarification_threshold, 0.7);
    ck_assert_double_eq(e->high_confidence_threshold, 0.9);
    ck_assert(e->require_confirmation_for_destructive && e->replan_on_partial_success && e->enable_loop_back);
    ck_assert(e->strict_transition_validation && e->enable_idempotency && e->enforce_idempotency_for_tools);
    ck_assert(!e->enforce_idempotency_for_agents && e->meta_validation_enabled && e->enable_arbiter);
    ck_assert(e->skip_arbiter_for_read_only && !e->has_llm_seed && !e->has_tool_timeout);
    ck_assert_str_eq(e->log_level, "INFO");
    loaded_fini(&l);
    l = load_clean("name: x\nexecution: {llm_timeout: 5, tool_timeout: 0.25, llm_seed: 0, enable_loop_back: false,\n"
                   "            max_plan_steps: 3.0, log_level: WARN, high_confidence_threshold: 1}\n");
    e = &l.p->execution;
    ck_assert_int_eq(e->llm_timeout_ms, 5000);
    ck_assert_int_eq(e->tool_timeout_ms, 250);
    ck_assert(e->has_llm_timeout && e->has_tool_timeout && !e->has_agent_timeout);
    ck_assert(e->has_llm_seed && e->llm_seed == 0);
    ck_assert(!e->enable_loop_back);
    ck_assert_int_eq(e->max_plan_steps, 3);
    ck_assert_int_eq(e->max_tool_retries, 2);
    ck_assert_str_eq(e->log_level, "WARN");
    ck_assert_double_eq(e->high_confidence_threshold, 1);
    loaded_fini(&l);
}
END_TEST

START_TEST(tests_keep_their_input_and_expectations)
{
    struct loaded l = load_clean("name: x\nagents: [{name: a}]\ntests:\n"
                                 "  - name: t\n    mode: parallel\n    mock: true\n"
                                 "    input: {raw_input: hi, metadata: {k: 1}}\n"
                                 "    script: {models: {a: [{text: x}]}}\n"
                                 "    envelope: {iteration: 2}\n"
                                 "    expect: {status: completed, visited: [a, a], response_contains: [x], errors: 0,\n"
                                 "             output: {a: {text: x}}, interrupt: confirmation, max_duration_ms: 10}\n"
                                 "  - {name: bare, expect: {iteration: 0}}\n");
    const struct rv_test_config *t = &l.p->tests[0];
    char *text = rv_kit_text(t->expect);

    ck_assert_uint_eq(l.p->n_tests, 2);
    ck_assert_int_eq(t->mode, RV_MODE_PARALLEL);
    ck_assert(t->mock && t->inline_script && !t->script);
    ck_assert_int_eq(t->script_src.line, 8);
    ck_assert_str_eq(text,
                     "{\"status\":\"completed\",\"visited\":[\"a\",\"a\"],\"response_contains\":[\"x\"],\"errors\":0,"
                     "\"output\":{\"a\":{\"text\":\"x\"}},\"interrupt\":\"confirmation\",\"max_duration_ms\":10}");
    ck_assert_ptr_nonnull(t->input);
    ck_assert_ptr_nonnull(t->envelope);
    ck_assert_ptr_nonnull(l.p->tests[1].expect); /* never NULL */
    free(text);
    loaded_fini(&l);
}
END_TEST

TCase *sections_case(void)
{
    TCase *tc = tcase_create("sections");

    tcase_add_loop_test(tc, faults_of_a_section_are_found, 0, RV_COUNT(cases));
    tcase_add_test(tc, models_are_split_and_keep_what_their_provider_takes);
    tcase_add_test(tc, execution_has_its_defaults_and_takes_integers_for_floats);
    tcase_add_test(tc, tests_keep_their_input_and_expectations);
    return tc;
}

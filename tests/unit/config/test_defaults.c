/* Rules 4.1, 4.2, 4.4, W17, W18: what is left out, the order of stages, and looking things up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/config/world.h"

/* Proves 4.1: An agent that leaves keys out gets the documented defaults; output_key defaults to the name,
 * join_strategy to all, an absent whitelist is not an empty one, a temperature of 0 counts as given
 * Proves 4.1/stage_order: `stage_order`: whole number, 0; lower runs first, the lowest is the entry
 * Proves 4.1/requires: `requires`: list, empty; stages that must have completed (parallel mode)
 * Proves 4.1/after: `after`: list, empty; order only
 * Proves 4.1/join_strategy: `join_strategy`: all; how `requires` is joined
 * Proves 4.1/flags: `has_llm`, `has_tools`, `has_policies`: false; what the stage does
 * Proves 4.1/tool_access: `tool_access`: unset, which is not the same as none
 * Proves 4.1/allowed_tools: `allowed_tools`: a list, or a map from name to true or false; unset differs from empty
 * Proves 4.1/model_role: `model_role`: empty; a role of `models`
 * Proves 4.1/prompt_key: `prompt_key`: empty; a key of `prompts` or a prompt of a capability
 * Proves 4.1/temperature: `temperature`: unset; 0 counts as given
 * Proves 4.1/max_tokens: `max_tokens`: unset; replaces the 2000 that hold otherwise
 * Proves 4.1/output_key: `output_key`: the name; where the output is stored
 * Proves 4.1/required_output_fields: `required_output_fields`: empty; fields the output must have
 * Proves 4.1/routing_rules: `routing_rules`: empty; `{condition, value, target}` or `{when, target}`
 * Proves 4.1/default_next: `default_next`: empty, which means the end
 * Proves 4.1/error_next: `error_next`: empty; where a failure leads
 * Proves 4.1/timeout_seconds: `timeout_seconds`: 0, which means the pipeline's
 * Proves 4.1/max_retries: `max_retries`: 0; further attempts
 * Proves 4.2: A pipeline that leaves bounds and timeouts out gets 3 iterations, 10 model calls, 21 hops, 300
 * seconds; no run mode acts as sequential
 * Proves 4.2/agents: `agents`: list, empty
 * Proves 4.2/mode: `default_run_mode`: unset, acts as sequential
 * Proves 4.2/bounds: `max_iterations` 3, `max_llm_calls` 10, `max_agent_hops` 21
 * Proves 4.2/timeout: `default_timeout_seconds`: 300
 * Proves 4.2/edge_limits: `edge_limits`: list of `{from, to, max_count}`, empty
 * Proves 4.2/resume: `clarification_resume_stage`, `confirmation_resume_stage`, `agent_review_resume_stage`: empty
 * Proves W17: Left-out bounds get their defaults; zero and negative ones are errors */
START_TEST(left_out_keys_get_their_defaults) /* rules 4.1, 4.2, W17 */
{
    struct loaded l = load_clean("name: x\nagents:\n  - name: a\n");
    const struct rv_agent *a = &l.p->agents[0];

    ck_assert_int_eq(l.p->max_iterations, 3);
    ck_assert_int_eq(l.p->max_llm_calls, 10);
    ck_assert_int_eq(l.p->max_agent_hops, 21);
    ck_assert_int_eq(l.p->default_timeout_seconds, 300);
    ck_assert_int_eq(l.p->default_run_mode, RV_UNSET);
    ck_assert_str_eq(l.p->clarification_resume_stage, "");
    ck_assert_str_eq(l.p->confirmation_resume_stage, "");
    ck_assert_str_eq(l.p->agent_review_resume_stage, "");
    ck_assert_uint_eq(l.p->n_edge_limits, 0);
    ck_assert_ptr_null(l.p->response.output_key);
    ck_assert(!l.p->retry_clear.is_set && !l.p->mock);
    ck_assert_str_eq(l.p->dir, ".");

    ck_assert_int_eq(a->order.stage_order, 0);
    ck_assert_int_eq(a->order.join, RV_JOIN_ALL);
    ck_assert(!a->has_llm && !a->has_tools && !a->has_policies && !a->model.has_temperature &&
              !a->model.has_max_tokens);
    ck_assert_int_eq(a->tools.access, RV_UNSET);
    ck_assert(!a->tools.allowed.is_set); /* unset is not the same as empty */
    ck_assert_str_eq(a->output.key, "a");
    ck_assert_str_eq(a->model.role, "");
    ck_assert_str_eq(a->tools.plan_from, "plan");
    ck_assert_int_eq(a->output.mode, RV_OUTPUT_JSON);
    ck_assert_int_eq(a->routing.default_target, RV_TARGET_NONE);
    ck_assert_int_eq(a->routing.error_target, RV_TARGET_NONE);
    ck_assert_int_eq(a->limits.timeout_seconds, 300);
    ck_assert_int_eq(a->limits.max_retries, 0);
    ck_assert_int_eq(a->limits.max_visits, 0);
    ck_assert_int_eq(a->output.state_merge, RV_UNSET);
    loaded_fini(&l);
}
END_TEST

/* Proves W21: clarification and confirmation are targets that resolve at load
 * Proves 4.1, 4.1/requires, 4.1/after, 4.1/join_strategy, 4.1/flags, 4.1/tool_access, 4.1/allowed_tools,
 * 4.1/prompt_key, 4.1/temperature, 4.1/max_tokens, 4.1/output_key, 4.1/required_output_fields, 4.1/routing_rules,
 * 4.1/default_next, 4.1/error_next, 4.1/timeout_seconds, 4.1/max_retries */
START_TEST(given_keys_are_read)
{
    struct loaded l = load_clean("name: x\n"
                                 "mock: true\n"
                                 "default_timeout_seconds: 20\n"
                                 "default_run_mode: parallel\n"
                                 "state: [{key: out, merge: merge_dict}]\n"
                                 "retry_clear: []\n"
                                 "response: {output_key: out}\n"
                                 "agents:\n"
                                 "  - {name: b}\n"
                                 "  - name: a\n"
                                 "    requires: [b]\n"
                                 "    after: [b]\n"
                                 "    join_strategy: any\n"
                                 "    has_tools: true\n"
                                 "    tool_access: write\n"
                                 "    allowed_tools: {x: true, y: false, z: true}\n"
                                 "    temperature: 0\n"
                                 "    max_tokens: 5\n"
                                 "    output_key: out\n"
                                 "    output_mode: text\n"
                                 "    timeout_seconds: 7\n"
                                 "    max_visits: 4\n"
                                 "    routing_rules:\n"
                                 "      - {condition: verdict, value: null, target: clarification}\n"
                                 "      - {when: 'output.n > 1', target: confirmation}\n"
                                 "    default_next: b\n"
                                 "    error_next: end\n");
    const struct rv_agent *a = &l.p->agents[1];

    ck_assert_int_eq(l.p->default_run_mode, RV_MODE_PARALLEL);
    ck_assert(l.p->retry_clear.is_set && l.p->retry_clear.n == 0);
    ck_assert_ptr_nonnull(rv_pipeline_reset_rules(l.p).retry_clear);
    ck_assert_ptr_null(rv_pipeline_reset_rules(l.p).retry_archive);
    ck_assert_str_eq(l.p->response.output_key, "out");
    ck_assert_str_eq(l.p->response.field, "final_response");
    ck_assert_int_eq(a->order.join, RV_JOIN_ANY);
    ck_assert_int_eq(a->tools.access, RV_ACCESS_WRITE);
    ck_assert_uint_eq(a->tools.allowed.n, 2); /* false is not listed */
    ck_assert_str_eq(a->tools.allowed.items[1], "z");
    ck_assert(a->model.has_temperature && a->model.temperature == 0); /* 0 counts as set */
    ck_assert(a->model.has_max_tokens && a->model.max_tokens == 5);
    ck_assert_int_eq(a->output.mode, RV_OUTPUT_TEXT);
    ck_assert_int_eq(a->limits.timeout_seconds, 7);
    ck_assert_int_eq(l.p->agents[0].limits.timeout_seconds, 20);
    ck_assert_int_eq(a->limits.max_visits, 4);
    ck_assert_int_eq(a->output.state_merge, RV_MERGE_DICT);
    ck_assert(a->hooks.mock);
    ck_assert_int_eq(a->order.required_index[0], 0);
    ck_assert_int_eq(a->order.after_index[0], 0);
    ck_assert_uint_eq(a->routing.n_rules, 2);
    ck_assert_str_eq(a->routing.rules[0].condition, "verdict");
    ck_assert_ptr_null(a->routing.rules[0].value);
    ck_assert_ptr_null(a->routing.rules[0].when);
    ck_assert_int_eq(a->routing.rules[0].target, RV_TARGET_CLARIFICATION); /* W21: a legal target, raised at run time */
    ck_assert_ptr_nonnull(a->routing.rules[1].when);
    ck_assert_ptr_null(a->routing.rules[1].condition);
    ck_assert_int_eq(a->routing.rules[1].target, RV_TARGET_CONFIRMATION);
    ck_assert_int_eq(a->routing.default_target, 0);
    ck_assert_int_eq(a->routing.error_target, RV_TARGET_END);
    loaded_fini(&l);
}
END_TEST

/* Proves 4.3/2: Agents are sorted by stage_order; equal ones keep the order of the file
 * Proves W18: Sorting is stable and done on a copy
 * Proves 4.1/stage_order */
START_TEST(stages_are_sorted_and_ties_keep_the_order_of_the_file) /* rule 4.3 row 2, W18 */
{
    rv_buf b = RV_BUF_INIT(1 << 20);
    struct loaded l;

    rv_buf_puts(&b, "name: x\nagents:\n  - {name: last, stage_order: 5}\n");
    for (int i = 0; i < 200; i++)
        rv_buf_printf(&b, "  - {name: s%d, stage_order: %d}\n", i, i % 2);
    rv_buf_puts(&b, "  - {name: first, stage_order: -1}\n");
    l = load_clean(rv_buf_cstr(&b));
    ck_assert_uint_eq(l.p->n_agents, 202);
    ck_assert_str_eq(l.p->stage_names[0], "first");
    ck_assert_str_eq(l.p->stage_names[201], "last");
    for (int i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i < 100 ? i * 2 : (i - 100) * 2 + 1);
        ck_assert_str_eq(l.p->stage_names[i + 1], name);
        ck_assert_int_eq(l.p->agents[i + 1].index, i + 1);
        ck_assert_int_eq(rv_pipeline_find_stage(l.p, rv_str_of(name)), i + 1);
    }
    loaded_fini(&l);
    rv_buf_fini(&b);
}
END_TEST

/* Proves 4.1/dependencies: What a stage depends on is `requires` and then `after`; whoever names it in either is
 * its dependent
 * Proves 4.4: Stage order, a stage by name, dependents in stage order, the limit of an edge (0: none)
 * Proves 4.2/edge_limits, W22 */
START_TEST(queries_find_stages_targets_and_limits) /* rule 4.4 */
{
    struct loaded l = load_clean("name: x\n"
                                 "agents:\n"
                                 "  - {name: a}\n"
                                 "  - {name: b, requires: [a]}\n"
                                 "  - {name: c, after: [a], requires: [a]}\n"
                                 "edge_limits:\n"
                                 "  - {from: a, to: b, max_count: 3}\n"
                                 "  - {from: b, to: b, max_count: 1}\n"
                                 "models: {r: 'p:m'}\n"
                                 "prompts: {k: hello}\n");
    size_t n = 0;
    const int *dependents = rv_pipeline_dependents(l.p, 0, &n);

    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(dependents[0], 1);
    ck_assert_int_eq(dependents[1], 2);
    rv_pipeline_dependents(l.p, 2, &n);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(rv_pipeline_find_stage(l.p, RV_STR_LIT("c")), 2);
    ck_assert_int_eq(rv_pipeline_find_stage(l.p, RV_STR_LIT("end")), -1);
    ck_assert_int_eq(rv_pipeline_find_target(l.p, RV_STR_LIT("end")), RV_TARGET_END);
    ck_assert_int_eq(rv_pipeline_find_target(l.p, RV_STR_LIT("")), RV_TARGET_NONE);
    ck_assert_int_eq(rv_pipeline_find_target(l.p, RV_STR_LIT("zz")), RV_TARGET_UNKNOWN);
    ck_assert_str_eq(rv_pipeline_target_name(l.p, RV_TARGET_CONFIRMATION), "confirmation");
    ck_assert_str_eq(rv_pipeline_target_name(l.p, 1), "b");
    ck_assert_int_eq(rv_pipeline_edge_limit(l.p, 0, 1), 3);
    ck_assert_int_eq(rv_pipeline_edge_limit(l.p, 1, 1), 1);
    ck_assert_int_eq(rv_pipeline_edge_limit(l.p, 1, 0), 0); /* unlimited */
    ck_assert_str_eq(rv_pipeline_find_model(l.p, RV_STR_LIT("r"))->model, "m");
    ck_assert_ptr_null(rv_pipeline_find_model(l.p, RV_STR_LIT("q")));
    ck_assert_ptr_nonnull(rv_pipeline_find_prompt(l.p, RV_STR_LIT("k"))->compiled);
    ck_assert_ptr_null(rv_pipeline_find_prompt(l.p, RV_STR_LIT("q")));
    loaded_fini(&l);
}
END_TEST

START_TEST(files_are_loaded_from_their_folder)
{
    char *dir = rv_kit_tmpdir();
    char *path = rv_kit_path(dir, "p.yaml");
    char *prompt = rv_kit_path(dir, "p.txt");
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_pipeline_load(path, findings, &p, &err), RV_E_NOT_FOUND);
    ck_assert_ptr_null(p);
    rv_err_free(err);
    rv_kit_write(path, "name: x\nprompts: {k: {file: p.txt}}\ncapabilities: [c/x.so, files]\n");
    rv_kit_write(prompt, "hello {{raw_input}}");
    ck_assert_int_eq(rv_pipeline_load(path, findings, &p, NULL), 0);
    ck_assert_uint_eq(rv_findings_n(findings), 0);
    ck_assert_str_eq(p->file, path);
    ck_assert_str_eq(p->dir, dir);
    ck_assert_str_eq(p->prompts[0].file, prompt);
    ck_assert_uint_eq(rv_template_n_placeholders(p->prompts[0].compiled), 1);
    ck_assert_ptr_eq(strstr(p->capabilities[0].name, dir), p->capabilities[0].name);
    ck_assert_str_eq(p->capabilities[1].name, "files");
    rv_pipeline_free(p);
    rv_findings_free(findings);
    free(path);
    free(prompt);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

TCase *defaults_case(void)
{
    TCase *tc = tcase_create("defaults");

    tcase_add_test(tc, left_out_keys_get_their_defaults);
    tcase_add_test(tc, given_keys_are_read);
    tcase_add_test(tc, stages_are_sorted_and_ties_keep_the_order_of_the_file);
    tcase_add_test(tc, queries_find_stages_targets_and_limits);
    tcase_add_test(tc, files_are_loaded_from_their_folder);
    return tc;
}

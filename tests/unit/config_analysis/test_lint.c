/* Warnings beyond validation. */
#include "tests/unit/config_analysis/suites.h"
#include "tests/unit/config_analysis/world.h"

static struct rv_prompt_config prompts[] = {{.key = "plan", .key_src = {"p.yaml", 40, 3}}};
static struct rv_model_config models[] = {{.role = "default", .src = {"p.yaml", 50, 3}},
                                          {.role = "judge", .src = {"p.yaml", 51, 3}}};

static void clean(struct world *w)
{
    world_error(w, 0, 2);
}
static void clean_review(struct world *w)
{
    world_llm(w, 0, 0);
    world_rule(w, 1, "verdict", "\"loop_back\"", 0);
    world_rule(w, 1, "verdict", "\"proceed\"", 2);
    world_rule(w, 1, "verdict", "null", 2);
    world_rule(w, 1, "outcome", "\"success\"", 2);
    world_limit(w, 1, 0, 2);
}
static void unreachable(struct world *w)
{
    world_default(w, 0, 2);
}
static void reached_by_error_route(struct world *w)
{
    unreachable(w);
    world_error(w, 2, 1);
}
static void reached_by_function(struct world *w)
{
    unreachable(w);
    world_function(w, 2);
}
static void reached_by_resume(struct world *w)
{
    unreachable(w);
    w->p.clarification_resume_stage = "s1";
    ck_assert_int_eq(rv_index_add(&w->p.stage_index, RV_STR_LIT("s1"), 1), 0);
}
static void reached_by_hidden_rule_only(struct world *w)
{
    world_default(w, 0, RV_TARGET_END);
    world_rule(w, 0, "go", "1", 2);
    world_rule(w, 0, "go", "1.0", 1);
}
static void unreachable_in_parallel(struct world *w)
{
    world_default(w, 0, RV_TARGET_END);
    w->p.default_run_mode = RV_MODE_PARALLEL;
}
static void no_way_out(struct world *w)
{
    world_rule(w, 0, "done", "true", RV_TARGET_END);
    world_default(w, 2, 1);
}
static void two_ways_round(struct world *w)
{
    world_rule(w, 0, "again", "true", 0);
    world_default(w, 0, 2);
    world_default(w, 2, 1);
    world_default(w, 1, 2);
}
static void all_the_way_round(struct world *w)
{
    world_default(w, 2, 0);
}
static void asks_for_ever(struct world *w)
{
    world_default(w, 2, RV_TARGET_CLARIFICATION);
}
static void a_yes_ends_it(struct world *w)
{
    world_default(w, 2, RV_TARGET_CONFIRMATION);
}
static void a_yes_reaches(struct world *w) /* nothing but the approval leads to s1 */
{
    world_when(w, 0, "true", RV_TARGET_CONFIRMATION);
    world_limit(w, 0, 1, 1);
    world_llm(w, 0, 0);
}
static void asks_a_model_again(struct world *w)
{
    world_rule(w, 1, "ask", "true", RV_TARGET_CLARIFICATION);
    world_error(w, 1, RV_TARGET_CONFIRMATION);
    world_llm(w, 1, 0);
}
static void asks_a_model_so_often(struct world *w)
{
    asks_a_model_again(w);
    w->agents[1].limits.max_visits = 3;
}
static void approves_what_is_made_again(struct world *w)
{
    asks_a_model_so_often(w);
    world_rule(w, 1, "ask", "1", RV_TARGET_CONFIRMATION);
    w->p.confirmation_resume_stage = "s1";
    ck_assert_int_eq(rv_index_add(&w->p.stage_index, RV_STR_LIT("s1"), 1), 0);
}
static void asks_and_goes_on(struct world *w)
{
    world_default(w, 2, RV_TARGET_END);
    world_default(w, 1, RV_TARGET_CONFIRMATION);
    w->p.confirmation_resume_stage = "s2";
    ck_assert_int_eq(rv_index_add(&w->p.stage_index, RV_STR_LIT("s2"), 2), 0);
}
static void repeated_when(struct world *w)
{
    world_when(w, 0, "output.a > 1", 2);
    world_when(w, 0, "output.a > 1", RV_TARGET_END);
}
static void always_true(struct world *w)
{
    world_when(w, 0, " true ", 1);
    world_rule(w, 0, "a", "1", 2);
}
static void stops_by_outcome(struct world *w)
{
    world_rule(w, 0, "outcome", "\"clarify\"", 2);
    world_rule(w, 0, "outcome", "\"again\"", 2);
    world_rule(w, 0, "outcome", "\"replan\"", 0);
    world_rule(w, 0, "outcome", "7", 2);
}
static void limit_without_edge(struct world *w)
{
    world_limit(w, 0, 2, 1);
    world_limit(w, 0, 1, 1);
}
static void unused_prompt(struct world *w)
{
    w->p.prompts = prompts;
    w->p.n_prompts = 1;
}
static void used_prompt(struct world *w)
{
    unused_prompt(w);
    w->agents[1].model.prompt_key = "plan";
}
static void unused_models(struct world *w)
{
    w->p.models = models;
    w->p.n_models = 2;
}
static void used_models(struct world *w)
{
    unused_models(w);
    world_llm(w, 0, 0);
    world_llm(w, 1, 0);
    w->agents[1].model.role = "judge";
}
static void model_as_fallback(struct world *w)
{
    static const struct rv_model_config *judge[] = {&models[1]};
    static const char *names[] = {"judge"};

    unused_models(w);
    world_llm(w, 0, 0);
    models[0].fallback = (struct rv_str_list){.items = names, .n = 1};
    models[0].fallback_models = judge;
}
static void parallel_ignores(struct world *w)
{
    world_rule(w, 1, "a", "1", 2);
    world_function(w, 2);
    world_limit(w, 0, 1, 1);
    w->p.default_run_mode = RV_MODE_PARALLEL;
}
static void few_hops(struct world *w)
{
    w->p.max_agent_hops = 2;
}
static void few_hops_with_short_cut(struct world *w)
{
    few_hops(w);
    world_error(w, 0, 2);
}
static void few_calls(struct world *w)
{
    for (int i = 0; i < 3; i++)
        world_llm(w, i, 0);
    w->p.max_llm_calls = 2;
}
static void few_calls_in_parallel(struct world *w)
{
    few_calls(w);
    few_hops(w);
    unreachable_in_parallel(w);
    for (int i = 0; i < 3; i++)
        world_default(w, i, RV_TARGET_END);
}
static void enough_calls_without_an_arbiter(struct world *w)
{
    few_calls(w);
    w->agents[2].output.key = "arbiter";
    w->p.execution.enable_arbiter = false;
}
static void enough_calls_where_hooks_answer(struct world *w)
{
    few_calls(w);
    unreachable_in_parallel(w);
    for (int i = 0; i < 3; i++)
        world_default(w, i, RV_TARGET_END);
    w->agents[1].hooks.before_model.n = 1;
}
static void unsound(struct world *w)
{
    unreachable(w);
    w->p.is_sound = false;
}

#define MAX_WANT 5
static const struct {
    const char *name;
    void (*build)(struct world *w);
    const char *want[MAX_WANT]; /* text of each warning, in this order */
} rows[] = {
    {"nothing to say", clean, {NULL}},
    {"nothing to say about different tests", clean_review, {NULL}},
    {"unreachable stage", unreachable, {"stage \"s1\" is never reached: no route leads to it from \"s0\""}},
    {"error routes reach", reached_by_error_route, {NULL}},
    {"routing functions reach all", reached_by_function, {NULL}},
    {"resume stages are reached", reached_by_resume, {NULL}},
    {"a rule that never matches reaches nothing",
     reached_by_hidden_rule_only,
     {"stage \"s0\": rule 2 never matches, since rule 1 has the same test",
      "stage \"s1\" is never reached: no route leads to it from \"s0\""}},
    {"parallel runs need no routes",
     unreachable_in_parallel,
     {"stage \"s1\": default_next is not used in parallel mode"}},
    {"no way out", no_way_out, {"the cycle s1 -> s2 -> s1 never leads to \"end\""}},
    {"two cycles, and stages that lead to one",
     two_ways_round,
     {"the cycle s0 -> s0 never leads to \"end\"", "the cycle s1 -> s2 -> s1 never leads to \"end\""}},
    {"a cycle of all", all_the_way_round, {"the cycle s0 -> s1 -> s2 -> s0 never leads to \"end\""}},
    {"asks for ever", asks_for_ever, {"the cycle s2 -> s2 never leads to \"end\""}},
    {"a yes ends it", a_yes_ends_it, {NULL}},
    {"a yes goes along default_next", a_yes_reaches, {NULL}},
    {"an answer leads back to a model",
     asks_a_model_again,
     {"stage \"s1\": an answer to its question leads back to stage \"s1\", whose model can ask again, as often as "
      "max_agent_hops (21) allows",
      "stage \"s1\": an answer to its question leads back to stage \"s1\", whose model can ask again, as often as "
      "max_agent_hops (21) allows"}},
    {"as often as max_visits allows", asks_a_model_so_often, {NULL}},
    {"what was approved is made again",
     approves_what_is_made_again,
     {"stage \"s1\": a yes to its confirmation leads back to stage \"s1\", whose model answers again: that answer may "
      "differ from what was approved, and can ask again"}},
    {"asks and goes on", asks_and_goes_on, {NULL}},
    {"the same expression twice",
     repeated_when,
     {"stage \"s0\": rule 2 never matches, since rule 1 has the same test"}},
    {"rules after true",
     always_true,
     {"stage \"s0\": rule 2 is never looked at, since rule 1 always matches",
      "stage \"s0\": default_next is never used, since rule 1 always matches"}},
    {"outcomes that stop (5.9)",
     stops_by_outcome,
     {"stage \"s0\": rule 1 is never followed, since outcome \"clarify\" stops the stage there",
      "stage \"s0\": rule 2 never matches, since a stage whose outcome is \"again\" fails"}},
    {"limit without an edge",
     limit_without_edge,
     {"edge limit \"s0\" to \"s2\" limits nothing: no route of \"s0\" leads there"}},
    {"unused prompt", unused_prompt, {"prompt \"plan\" is never used: no stage has it as prompt_key or system_key"}},
    {"used prompt", used_prompt, {NULL}},
    {"unused models",
     unused_models,
     {"model \"default\" is never used: no stage with has_llm has it as model_role",
      "model \"judge\" is never used: no stage with has_llm has it as model_role"}},
    {"used models", used_models, {NULL}},
    {"a fallback is used", model_as_fallback, {NULL}},
    {"what parallel mode does not use (7.7)",
     parallel_ignores,
     {"stage \"s0\": default_next is not used in parallel mode",
      "stage \"s1\": routing_rules are not used in parallel mode",
      "stage \"s1\": default_next is not used in parallel mode",
      "stage \"s2\": routing_function is not used in parallel mode", "edge_limits are not used in parallel mode"}},
    {"too few hops", few_hops, {"no run reaches \"end\": the shortest way visits 3 stages, and max_agent_hops is 2"}},
    {"enough hops for a short cut", few_hops_with_short_cut, {NULL}},
    {"too few calls",
     few_calls,
     {"no run reaches \"end\": the cheapest way makes 3 model calls, and max_llm_calls is 2"}},
    {"too few of both in parallel",
     few_calls_in_parallel,
     {"no run can be complete: it has 3 stages, and max_agent_hops is 2",
      "no run can be complete: 3 stages call a model, and max_llm_calls is 2"}},
    {"enough calls without an arbiter", enough_calls_without_an_arbiter, {NULL}},
    {"enough calls where hooks answer", enough_calls_where_hooks_answer, {NULL}},
    {"nothing about a pipeline with errors", unsound, {NULL}},
};

/* Proves 5.8/lint: First match wins, so a rule with the test of an earlier one (1 equals 1.0), or after one that is
 * always true, is never followed: a warning, and no edge in proofs
 * Proves 5.9/lint: Rules on an outcome that stops the stage, or on a text that is no outcome, lead nowhere: a
 * warning
 * Proves W03/lint: Configured resume stages count as reached, and a question that resumes elsewhere leads on
 * Proves 5.8/lint2, 7.7/lint */
START_TEST(lint_warns_about_what_was_hardly_meant)
{
    struct world *w = world_new(3);
    rv_findings *findings = rv_findings_new();
    rv_buf text = RV_BUF_INIT(1 << 16);
    size_t n = 0;

    ck_assert_ptr_nonnull(findings);
    rows[_i].build(w);
    rv_pipeline_lint(&w->p, findings);
    rv_findings_write_text(findings, false, &text);
    while (n < MAX_WANT && rows[_i].want[n])
        n++;
    ck_assert_msg(rv_findings_n(findings) == n, "%s:\n%s", rows[_i].name, rv_buf_cstr(&text));
    for (size_t i = 0; i < n; i++) {
        ck_assert_str_eq(rv_findings_at(findings, i).text, rows[_i].want[i]);
        ck_assert_int_eq(rv_findings_at(findings, i).severity, RV_SEVERITY_WARNING);
    }
    rv_buf_fini(&text);
    rv_findings_free(findings);
    rv_index_fini(&w->p.stage_index);
    world_free(w);
}
END_TEST

/* Proves 8.4/lint */
START_TEST(warnings_carry_the_place)
{
    struct world *w = world_new(3);
    rv_findings *findings = rv_findings_new();

    unreachable(w);
    unused_prompt(w);
    w->agents[1].places.name = (struct rv_src){"p.yaml", 12, 5};
    rv_pipeline_lint(&w->p, findings);
    ck_assert_uint_eq(rv_findings_n(findings), 2);
    ck_assert_int_eq(rv_findings_at(findings, 0).src.line, 40);
    ck_assert_int_eq(rv_findings_at(findings, 1).src.line, 12);
    ck_assert_int_eq(rv_findings_at(findings, 1).src.col, 5);
    ck_assert_ptr_nonnull(rv_findings_at(findings, 1).hint);
    rv_findings_free(findings);
    world_free(w);
}
END_TEST

void add_lint_tests(Suite *suite)
{
    TCase *tc = tcase_create("lint");

    tcase_add_loop_test(tc, lint_warns_about_what_was_hardly_meant, 0, RV_COUNT(rows));
    tcase_add_test(tc, warnings_carry_the_place);
    suite_add_tcase(suite, tc);
}

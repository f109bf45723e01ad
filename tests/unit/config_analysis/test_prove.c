/* Proved bounds of pipelines whose answer can be worked out on paper (rules 3.4, 7.4, 7.6, 7.7, W04, W06, W16, W22). */
#include <stdio.h>
#include <string.h>

#include "tests/unit/config_analysis/suites.h"
#include "tests/unit/config_analysis/world.h"

struct want {
    int64_t visits, calls;
    bool visits_exact, llm_exact;
    const char *visits_path; /* NULL: not looked at */
};

static void straight(struct world *w)
{
    world_llm(w, 1, 0);
}
static void self_loop(struct world *w)
{
    world_rule(w, 0, "again", "true", 0);
}
static void self_loop_limited(struct world *w)
{
    self_loop(w);
    world_limit(w, 0, 0, 1);
}
static void self_loop_visited_twice(struct world *w)
{
    self_loop(w);
    w->agents[0].limits.max_visits = 2;
}
static void loop_back_off(struct world *w)
{
    self_loop(w);
    w->p.execution.enable_loop_back = false;
}
/* planner, executor, critic, writer: the critic sends back to the planner. */
static void review(struct world *w)
{
    world_llm(w, 0, 0);
    world_llm(w, 2, 0);
    world_rule(w, 2, "verdict", "\"loop_back\"", 0);
}
static void review_limited(struct world *w)
{
    review(w);
    world_limit(w, 2, 0, 2);
}
static void review_few_calls(struct world *w)
{
    review(w);
    w->p.max_llm_calls = 4;
}
static void review_retries(struct world *w)
{
    review(w);
    w->p.max_llm_calls = 100;
    world_llm(w, 2, 4);
    w->p.execution.max_llm_retries = 4;
}
static void review_capped_retries(struct world *w)
{
    review_retries(w);
    w->p.execution.max_llm_retries = 2;
}
/* Three stages that ask a model, of two calls; an arbiter that takes no part gives its call back. */
static void arbiter_without_part(struct world *w)
{
    for (int i = 0; i < 3; i++)
        world_llm(w, i, 0);
    w->p.max_llm_calls = 2;
    w->agents[1].output.key = RV_ARBITER;
    w->p.execution.enable_arbiter = false;
}
static void arbiter_takes_part(struct world *w)
{
    arbiter_without_part(w);
    w->p.execution.enable_arbiter = true;
}
/* The second stage always goes back, but not with a partial result. */
static void back_unless_partial(struct world *w)
{
    world_when(w, 1, "true", 0);
    world_limit(w, 1, 0, 1);
    w->p.execution.replan_on_partial_success = false;
}
static void review_when(struct world *w)
{
    world_llm(w, 0, 0);
    world_llm(w, 2, 0);
    world_when(w, 2, "output.confidence < 0.5", 0);
}
static void review_two_fields(struct world *w)
{
    review_when(w);
    world_when(w, 2, "output.kind == 'draft' && output.score >= 7", 1);
    world_when(w, 2, "output.kind in ['a', 'b']", 2);
}
static void review_never(struct world *w)
{
    review_when(w);
    world_when(w, 0, "output.n < 0 && output.n > 0", 3);
    world_default(w, 0, RV_TARGET_END);
}
static void review_state(struct world *w)
{
    world_llm(w, 0, 0);
    world_llm(w, 2, 0);
    world_when(w, 2, "state.confidence < 0.5", 0);
}
static void review_mocked(struct world *w)
{
    review(w);
    w->p.max_llm_calls = 4;
    for (int i = 0; i < 4; i++) {
        w->agents[i].hooks.mock = true;
        w->agents[i].hooks.mock_handler = "demo.mock";
    }
}
static void error_route(struct world *w)
{
    world_default(w, 0, RV_TARGET_END);
    world_error(w, 0, 2);
}
static void error_before_the_call(struct world *w)
{
    w->p.max_llm_calls = 1;
    world_llm(w, 0, 0);
    world_llm(w, 1, 0);
    world_error(w, 0, 1);
}
static void error_in_the_first_hook(struct world *w)
{
    error_before_the_call(w);
    w->agents[0].hooks.pre_process = "demo.before";
}
static void answered_by_a_hook(struct world *w)
{
    w->p.max_llm_calls = 1;
    world_llm(w, 0, 0);
    world_llm(w, 1, 0);
    world_llm(w, 2, 0);
    w->agents[0].hooks.before_model.n = 1;
}
static void asks(struct world *w)
{
    world_default(w, 0, RV_TARGET_CLARIFICATION);
}
static void never_matches(struct world *w)
{
    world_default(w, 0, RV_TARGET_END);
    world_rule(w, 0, "a", "1", RV_TARGET_END);
    world_rule(w, 0, "a", "1.0", 1);
    world_default(w, 1, RV_TARGET_END);
}
static void stops_by_outcome(struct world *w)
{
    world_default(w, 0, RV_TARGET_END);
    world_rule(w, 0, "outcome", "\"terminate\"", 1);
    world_default(w, 1, RV_TARGET_END);
}
static void anywhere(struct world *w)
{
    world_function(w, 1);
}
static void endless_hops(struct world *w)
{
    self_loop(w);
    w->p.max_agent_hops = 1000000000;
}
static void endless(struct world *w)
{
    self_loop(w);
    w->p.max_agent_hops = w->p.max_iterations = 1000000000;
    world_llm(w, 0, 1000000000);
}
static void nothing(struct world *w)
{
    (void)w;
}
static const struct {
    const char *name;
    int n;
    void (*build)(struct world *w);
    struct want want;
} rows[] = {
    {"no stage", 0, nothing, {0, 0, true, true, ""}},
    {"one way", 3, straight, {3, 1, true, true, "0 1 2"}},
    {"hops cut a long way", 40, straight, {21, 1, true, true, NULL}},
    {"a self-edge is a loop-back (W04)", 2, self_loop, {5, 0, true, true, "0 0 0 0 1"}},
    {"an edge limit counts (7.4)", 2, self_loop_limited, {3, 0, true, true, "0 0 1"}},
    {"max_visits counts", 2, self_loop_visited_twice, {3, 0, true, true, "0 0 1"}},
    {"an arbiter takes no part", 3, arbiter_without_part, {3, 2, true, true, "0 1 2"}},
    {"an arbiter takes part", 3, arbiter_takes_part, {2, 2, true, true, "0 1"}},
    {"a partial result goes on", 4, back_unless_partial, {6, 0, true, true, "0 1 0 1 2 3"}},
    {"no loop-back when it is off (W23)", 2, loop_back_off, {2, 0, true, true, "0 1"}},
    {"n loop-backs, n + 1 passes (3.4)", 4, review, {13, 8, true, true, "0 1 2 0 1 2 0 1 2 0 1 2 3"}},
    {"an edge limit of two", 4, review_limited, {10, 6, true, true, "0 1 2 0 1 2 0 1 2 3"}},
    /* The last stage calls no model: it still runs when the budget is used up (W06). */
    {"the model budget stops model stages only", 4, review_few_calls, {7, 4, true, true, "0 1 2 0 1 2 3"}},
    {"each attempt is a call (W16)", 4, review_retries, {13, 24, true, true, NULL}},
    {"the pipeline caps retries (W23)", 4, review_capped_retries, {13, 16, true, true, NULL}},
    {"some output makes an expression true", 4, review_when, {13, 8, true, true, "0 1 2 0 1 2 0 1 2 0 1 2 3"}},
    {"and several of them", 4, review_two_fields, {13, 8, true, true, "0 1 2 0 1 2 0 1 2 0 1 2 3"}},
    {"an expression may never be true", 4, review_never, {2, 1, false, true, "0 3"}},
    {"nor depend on the output", 4, review_state, {13, 8, false, false, "0 1 2 0 1 2 0 1 2 0 1 2 3"}},
    {"mocks call no model", 4, review_mocked, {13, 0, true, true, NULL}},
    {"a failure may be routed", 3, error_route, {2, 0, true, true, "0 2"}},
    {"a stage may fail before its call", 3, error_before_the_call, {3, 1, false, true, NULL}},
    {"its first hook can", 3, error_in_the_first_hook, {3, 1, true, true, "0 1 2"}},
    {"a hook may answer in place of the model", 3, answered_by_a_hook, {2, 1, true, true, "0 1"}},
    {"a question ends the run for now", 2, asks, {1, 0, true, true, "0"}},
    {"a repeated rule never matches", 2, never_matches, {1, 0, true, true, "0"}},
    {"stopping outcomes do not route", 2, stops_by_outcome, {2, 0, false, true, NULL}},
    {"a routing function may go anywhere", 3, anywhere, {9, 0, false, true, "0 1 0 1 0 1 0 1 2"}},
    {"many hops", 2, endless_hops, {5, 0, true, true, "0 0 0 0 1"}},
    {"too many layers to search", 2, endless, {1000000000, 10, false, false, ""}},
};

static const char *path_text(const int *path, size_t n, char *out, size_t size)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < n && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, i ? " %d" : "%d", path[i]);
    return out;
}

/* Proves 3.4/lint: N loop-backs give N + 1 passes; hops and model calls are never passed. As bounds proved from the
 * file
 * Proves 5.3/lint: Every stage may fail; error_next is an edge
 * Proves 5.8/lint2: A routing function may lead to every stage
 * Proves 7.4/lint: A limit of N lets an edge be used N times, forward or back; loop-backs count first. In proofs
 * Proves 7.6/lint: The model budget stops only stages that call a model; mocked ones do not. In proofs
 * Proves 10/max-visits: A stage is visited at most max_visits times. In proofs
 * Proves W04/lint: A self-edge is a loop-back: counted and limited. In proofs
 * Proves W16/lint: Each attempt of a visit is a model call; a visit is one hop. In proofs
 * Proves W23/lint: execution.max_llm_retries caps max_retries; enable_loop_back false makes a loop-back end the
 * run. In proofs
 * Proves 5.8/lint, 5.9/lint */
START_TEST(sequential_bound_is_known)
{
    struct world *w = world_new(rows[_i].n);
    struct want want = rows[_i].want;
    struct rv_proof proof = {0};
    char text[512];

    rows[_i].build(w);
    ck_assert_int_eq(rv_pipeline_prove(&w->p, RV_MODE_SEQUENTIAL, &proof, NULL), 0);
    ck_assert_msg(proof.max_visits == want.visits && proof.max_llm_calls == want.calls, "%s: %d visits, %d calls",
                  rows[_i].name, (int)proof.max_visits, (int)proof.max_llm_calls);
    ck_assert_msg(proof.visits_exact == want.visits_exact && proof.llm_exact == want.llm_exact, "%s: exact %d %d",
                  rows[_i].name, proof.visits_exact, proof.llm_exact);
    path_text(proof.visits_path, proof.n_visits_path, text, sizeof(text));
    ck_assert_msg(!want.visits_path || strcmp(text, want.visits_path) == 0, "%s: %s", rows[_i].name, text);
    rv_proof_fini(&proof);
    world_free(w);
}
END_TEST

/* Proves 7.6/lint */
START_TEST(mocked_visits_leave_the_model_budget_out)
{
    struct world *w = world_new(4);
    struct rv_proof proof = {0};

    review_few_calls(w);
    ck_assert_int_eq(rv_pipeline_prove(&w->p, RV_MODE_UNSET, &proof, NULL), 0);
    ck_assert_int_eq(proof.max_visits, 7);
    ck_assert_int_eq(proof.max_mocked_visits, 13);
    rv_proof_fini(&proof);
    world_free(w);
}
END_TEST

START_TEST(path_is_cut_after_a_fixed_number_of_stages)
{
    struct world *w = world_new(200);
    struct rv_proof proof = {0};

    w->p.max_agent_hops = 1000;
    ck_assert_int_eq(rv_pipeline_prove(&w->p, RV_MODE_SEQUENTIAL, &proof, NULL), 0);
    ck_assert_int_eq(proof.max_visits, 200);
    ck_assert(proof.visits_exact);
    ck_assert_uint_eq(proof.n_visits_path, RV_PROOF_MAX_PATH);
    rv_proof_fini(&proof);
    world_free(w);
}
END_TEST

/* --- Parallel --- */
static void fan(struct world *w)
{
    for (int i = 1; i < 4; i++)
        world_require(w, i, 0);
    for (int i = 1; i < 4; i++)
        world_require(w, 4, i);
    world_llm(w, 1, 1);
    world_llm(w, 2, 0);
}
static void fan_few_hops(struct world *w)
{
    fan(w);
    w->p.max_agent_hops = 3;
}
static void fan_few_calls(struct world *w)
{
    fan(w);
    w->p.max_llm_calls = 1;
}
static void fan_error_route(struct world *w)
{
    fan(w);
    world_error(w, 1, 4);
}
static void fan_loops(struct world *w)
{
    fan(w);
    world_rule(w, 4, "again", "true", 0); /* not looked at */
}
static const struct {
    const char *name;
    void (*build)(struct world *w);
    struct want want;
} parallel_rows[] = {
    {"each stage once (7.7)", fan, {5, 3, true, true, "0 1 2 3 4"}},
    {"a hop is reserved for each stage", fan_few_hops, {3, 3, true, true, "0 1 2"}},
    /* Stage 2 gets no call, so the join never starts; that both calls' stages could fail is not looked into. */
    {"a call is reserved for each model stage", fan_few_calls, {4, 1, false, true, "0 1 3"}},
    {"an error route runs no stage twice", fan_error_route, {5, 3, true, true, "0 1 2 3 4"}},
    {"routing is not used", fan_loops, {5, 3, true, true, "0 1 2 3 4"}},
};

/* Proves 7.7/lint: In parallel runs only dependencies count, each stage runs once, hop and call are reserved per
 * stage. In proofs; unused routing is a warning */
START_TEST(parallel_bound_is_known)
{
    struct world *w = world_new(5);
    struct want want = parallel_rows[_i].want;
    struct rv_proof proof = {0};
    char text[512];

    parallel_rows[_i].build(w);
    w->p.default_run_mode = RV_MODE_PARALLEL;
    ck_assert_int_eq(rv_pipeline_prove(&w->p, RV_MODE_UNSET, &proof, NULL), 0);
    ck_assert_msg(proof.max_visits == want.visits && proof.max_llm_calls == want.calls, "%s: %d visits, %d calls",
                  parallel_rows[_i].name, (int)proof.max_visits, (int)proof.max_llm_calls);
    ck_assert_msg(proof.visits_exact == want.visits_exact && proof.llm_exact == want.llm_exact, "%s: exact %d %d",
                  parallel_rows[_i].name, proof.visits_exact, proof.llm_exact);
    path_text(proof.visits_path, proof.n_visits_path, text, sizeof(text));
    ck_assert_msg(!want.visits_path || strcmp(text, want.visits_path) == 0, "%s: %s", parallel_rows[_i].name, text);
    rv_proof_fini(&proof);
    world_free(w);
}
END_TEST

/* --- Size; `tests/bench/growth` counts what such a proof costs --- */
static void loops_everywhere(struct world *w)
{
    for (int i = 0; i < WORLD_STAGES; i++) {
        if (i % 3 == 0)
            world_llm(w, i, 2);
        if (i % 7 == 0)
            world_rule(w, i, "again", "true", i / 2);
        world_error(w, i, (i * 37 + 11) % WORLD_STAGES);
    }
    for (int i = 0; i < 6; i++)
        world_limit(w, i * 7, i * 7 / 2, 2);
}
static void many_bounds(struct world *w)
{
    loops_everywhere(w);
    w->p.max_agent_hops = w->p.max_iterations = w->p.max_llm_calls = 100000;
}
static void functions_everywhere(struct world *w)
{
    loops_everywhere(w);
    for (int i = 0; i < WORLD_STAGES; i++)
        world_function(w, i);
}
static void (*const large[])(struct world *w) = {loops_everywhere, many_bounds, functions_everywhere};

START_TEST(large_pipelines_are_proved)
{
    struct world *w = world_new(WORLD_STAGES);
    struct rv_proof proof = {0};

    large[_i](w);
    ck_assert_int_eq(rv_pipeline_prove(&w->p, RV_MODE_SEQUENTIAL, &proof, NULL), 0);
    ck_assert_int_le(proof.max_visits, w->p.max_agent_hops);
    ck_assert_int_le(proof.max_llm_calls, w->p.max_llm_calls);
    ck_assert_int_gt(proof.max_visits, 20);
    rv_proof_fini(&proof);
    world_free(w);
}
END_TEST

/* A stage that could come back only by an output that it cannot have, and some that can. */
#define AGAIN(keys, rule)                                                                                              \
    "name: t\nmodels: {r: scripted}\nagents:\n  - {name: a, " keys ", routing_rules: [{" rule ", target: a}], "        \
    "default_next: end}\n"
#define MODEL "has_llm: true, model_role: r, "
static const struct {
    const char *yaml;
    bool is_exact;
} forms[] = {
    {AGAIN("set: {v: '1'}", "condition: v, value: 2"), false},
    {AGAIN("set: {v: '1'}", "when: output.v == 2"), false},
    {AGAIN(MODEL "output_mode: text", "condition: verdict, value: again"), false},
    {AGAIN(MODEL "output_mode: text", "when: output.verdict == 'again'"), false},
    {AGAIN(MODEL "output_mode: text", "condition: response, value: again"), true},
    {AGAIN(MODEL "output_mode: text, post_process: x.y", "condition: verdict, value: again"), true},
    {AGAIN(MODEL "output_mode: json", "condition: verdict, value: again"), true},
    {AGAIN(MODEL "output_schema: {type: object, properties: {verdict: {enum: [again, good]}}}",
           "condition: verdict, value: again"),
     true},
    {AGAIN(MODEL "output_schema: {type: object, properties: {verdict: {enum: [good]}}}",
           "condition: verdict, value: again"),
     false},
    {AGAIN(MODEL "output_schema: {type: object, properties: {v: {}}, additionalProperties: false}",
           "condition: verdict, value: again"),
     false},
    {"name: t\nagents:\n  - {name: a, set: {v: '1'}, error_next: a}\n", false},
    {"name: t\nagents:\n  - {name: a, set: {v: '1'}, pre_process: x.y, error_next: a}\n", true},
};

START_TEST(a_number_is_exact_only_by_outputs_that_there_can_be)
{
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    struct rv_proof proof;

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(forms[_i].yaml), "t.yaml", ".", findings, &p, NULL), 0);
    ck_assert_uint_eq(rv_findings_n_errors(findings), 0);
    ck_assert_int_eq(rv_pipeline_prove(p, RV_MODE_SEQUENTIAL, &proof, NULL), 0);
    ck_assert_int_eq(proof.max_visits, 4); /* no bound is smaller for that */
    ck_assert_int_eq(proof.visits_exact, forms[_i].is_exact);
    rv_proof_fini(&proof);
    rv_pipeline_free(p);
    rv_findings_free(findings);
}
END_TEST

void add_prove_tests(Suite *suite)
{
    TCase *tc = tcase_create("prove");

    tcase_add_loop_test(tc, sequential_bound_is_known, 0, RV_COUNT(rows));
    tcase_add_test(tc, mocked_visits_leave_the_model_budget_out);
    tcase_add_test(tc, path_is_cut_after_a_fixed_number_of_stages);
    tcase_add_loop_test(tc, parallel_bound_is_known, 0, RV_COUNT(parallel_rows));
    tcase_add_loop_test(tc, large_pipelines_are_proved, 0, RV_COUNT(large));
    tcase_add_loop_test(tc, a_number_is_exact_only_by_outputs_that_there_can_be, 0, RV_COUNT(forms));
    suite_add_tcase(suite, tc);
}

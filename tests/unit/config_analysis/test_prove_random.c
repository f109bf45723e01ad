/* Proofs against trying everything, on thousands of small random pipelines: no bound is ever exceeded, an exact one is
 * reached, and every path that is shown can be walked. */
#include <stdio.h>

#include "tests/kit/kit.h"
#include "tests/unit/config_analysis/oracle.h"
#include "tests/unit/config_analysis/suites.h"

#define SEEDS 10

/* A stage, the end, or a special target. */
static int pick_target(uint64_t *state, int n)
{
    int i = pick(state, n + 2);

    return i < n ? i : i == n ? RV_TARGET_END : chance(state, 50) ? RV_TARGET_CLARIFICATION : RV_TARGET_END;
}

static void add_rules(struct world *w, uint64_t *state, int stage, int n)
{
    static const char *const values[] = {"1", "2", "1.0", "3"};
    static const char *const texts[] = {"output.a", "state.b", "true"};
    int n_rules = pick(state, 3);

    for (int i = 0; i < n_rules; i++) {
        if (chance(state, 25))
            world_when(w, stage, texts[pick(state, 3)], pick_target(state, n));
        else
            world_rule(w, stage, chance(state, 60) ? "x" : "y", values[pick(state, 4)], pick_target(state, n));
    }
}

static void add_limits(struct world *w, uint64_t *state, int n)
{
    int n_limits = pick(state, 4);

    for (int i = 0; i < n_limits; i++) {
        int from = pick(state, n), to = pick(state, n);
        bool is_new = true;

        for (size_t j = 0; j < w->p.n_edge_limits; j++)
            is_new &= w->limits[j].from != from || w->limits[j].to != to;
        if (is_new)
            world_limit(w, from, to, 1 + pick(state, 3));
    }
}

static struct world *random_world(uint64_t *state)
{
    int n = 1 + pick(state, 5);
    struct world *w = world_new(n);

    w->p.max_iterations = 1 + pick(state, 4);
    w->p.max_llm_calls = 1 + pick(state, 5);
    w->p.max_agent_hops = 1 + pick(state, 7);
    w->p.execution.max_llm_retries = 1 + pick(state, 3);
    w->p.execution.enable_loop_back = !chance(state, 10);
    for (int s = 0; s < n; s++) {
        if (chance(state, 50))
            world_llm(w, s, pick(state, 3));
        if (chance(state, 40))
            world_default(w, s, pick_target(state, n));
        if (chance(state, 40))
            world_error(w, s, pick_target(state, n));
        if (chance(state, 30))
            w->agents[s].hooks.pre_process = "hooks.before";
        w->agents[s].hooks.before_model.n = chance(state, 10);
        if (chance(state, 10)) {
            w->agents[s].hooks.mock = chance(state, 70);
            w->agents[s].hooks.mock_handler = "hooks.mock";
        }
        if (chance(state, 20))
            w->agents[s].limits.max_visits = 1 + pick(state, 3);
        if (chance(state, 4))
            world_function(w, s);
        add_rules(w, state, s, n);
    }
    add_limits(w, state, n);
    return w;
}

static void print_world(const struct world *w, rv_buf *b)
{
    rv_buf_printf(b, "iterations %d calls %d hops %d loop_back %d\n", (int)w->p.max_iterations, (int)w->p.max_llm_calls,
                  (int)w->p.max_agent_hops, w->p.execution.enable_loop_back);
    for (size_t s = 0; s < w->p.n_agents; s++) {
        const struct rv_agent *a = &w->agents[s];

        rv_buf_printf(b, "s%zu llm %d+%d mock %d pre %d before %d max_visits %d fn %d default %d error %d\n", s,
                      a->has_llm, (int)a->limits.max_retries, a->hooks.mock, a->hooks.pre_process[0] != 0,
                      (int)a->hooks.before_model.n, (int)a->limits.max_visits, a->routing.function[0] != 0,
                      a->routing.default_target, a->routing.error_target);
        for (size_t i = 0; i < a->routing.n_rules; i++)
            rv_buf_printf(b, "  %s = %s -> %d\n",
                          a->routing.rules[i].when ? rv_expr_text(a->routing.rules[i].when)
                                                   : a->routing.rules[i].condition,
                          a->routing.rules[i].when ? "" : json_object_get_string(a->routing.rules[i].value),
                          a->routing.rules[i].target);
    }
    for (size_t i = 0; i < w->p.n_edge_limits; i++)
        rv_buf_printf(b, "limit %d -> %d: %d\n", w->limits[i].from, w->limits[i].to, (int)w->limits[i].max_count);
}

#define CK(test, ...)                                                                                                  \
    do {                                                                                                               \
        if (!(test)) {                                                                                                 \
            rv_buf text = RV_BUF_INIT(1 << 16);                                                                        \
            print_world(w, &text);                                                                                     \
            rv_buf_printf(&text, __VA_ARGS__);                                                                         \
            ck_abort_msg("%s\n%s", #test, rv_buf_cstr(&text));                                                         \
        }                                                                                                              \
    } while (0)

/* Every step is an edge that some output takes, and no bound or limit stops it. */
static void check_path(const struct world *w, const int *path, size_t n)
{
    int64_t visits[ORACLE_STAGES] = {0}, loops = 0;

    for (size_t i = 0; i < n; i++) {
        CK(path[i] >= 0 && (size_t)path[i] < w->p.n_agents, "step %zu", i);
        visits[path[i]]++;
        if (w->agents[path[i]].limits.max_visits > 0)
            CK(visits[path[i]] <= w->agents[path[i]].limits.max_visits, "step %zu", i);
        loops += i > 0 && path[i] <= path[i - 1];
        for (size_t j = 0; i > 0 && j < w->p.n_edge_limits; j++) {
            int64_t uses = 0;

            for (size_t k = 1; k <= i; k++)
                uses += path[k - 1] == w->limits[j].from && path[k] == w->limits[j].to;
            CK(uses <= w->limits[j].max_count, "step %zu", i);
        }
    }
    CK(n == 0 || path[0] == 0, "starts at %d", path[0]);
    CK(loops <= w->p.max_iterations, "%d loop-backs", (int)loops);
    CK((int64_t)n <= w->p.max_agent_hops, "%zu stages", n);
}

static void check_sequential(const struct world *w, int *n_exact)
{
    struct oracle_answer any = oracle_sequential(w, ORACLE_ANYTHING);
    struct oracle_answer yes = oracle_sequential(w, ORACLE_SURE_TRUE), no = oracle_sequential(w, ORACLE_SURE_FALSE);
    struct oracle_answer mocked = oracle_sequential(w, ORACLE_MOCKED);
    struct rv_proof proof = {0};

    ck_assert_int_eq(rv_pipeline_prove(&w->p, RV_MODE_SEQUENTIAL, &proof, NULL), 0);
    CK(proof.max_visits == any.visits, "bound %d", (int)proof.max_visits);
    CK(proof.max_llm_calls == any.calls, "bound %d", (int)proof.max_llm_calls);
    CK(proof.max_mocked_visits == mocked.visits, "bound %d", (int)proof.max_mocked_visits);
    if (proof.visits_exact) {
        CK(yes.visits == proof.max_visits && no.visits == proof.max_visits, "bound %d", (int)proof.max_visits);
        CK((int64_t)proof.n_visits_path == proof.max_visits, "path of %zu", proof.n_visits_path);
    }
    if (proof.llm_exact)
        CK(yes.calls == proof.max_llm_calls && no.calls == proof.max_llm_calls, "bound %d", (int)proof.max_llm_calls);
    check_path(w, proof.visits_path, proof.n_visits_path);
    check_path(w, proof.llm_path, proof.n_llm_path);
    *n_exact += proof.visits_exact + proof.llm_exact;
    rv_proof_fini(&proof);
}

/* Proves 3.4/lint, 7.4/lint */
START_TEST(sequential_bounds_are_what_trying_everything_finds)
{
    uint64_t state = 1000u + (uint64_t)_i;
    int n_exact = 0, n = rv_kit_sample(1000, 4000);

    for (int i = 0; i < n; i++) {
        struct world *w = random_world(&state);

        check_sequential(w, &n_exact);
        world_free(w);
    }
    ck_assert_msg(n_exact > n, "only %d of %d bounds were shown exact", n_exact, 2 * n);
}
END_TEST

static void check_parallel(const struct world *w, int *n_exact)
{
    struct oracle_answer best = oracle_parallel(w, false), mocked = oracle_parallel(w, true);
    struct rv_proof proof = {0};

    ck_assert_int_eq(rv_pipeline_prove(&w->p, RV_MODE_PARALLEL, &proof, NULL), 0);
    CK(proof.max_visits >= best.visits, "bound %d", (int)proof.max_visits);
    CK(proof.max_llm_calls >= best.calls, "bound %d", (int)proof.max_llm_calls);
    CK(proof.max_mocked_visits >= mocked.visits, "bound %d", (int)proof.max_mocked_visits);
    CK(!proof.visits_exact || proof.max_visits == best.visits, "bound %d", (int)proof.max_visits);
    CK(!proof.llm_exact || proof.max_llm_calls == best.calls, "bound %d", (int)proof.max_llm_calls);
    *n_exact += proof.visits_exact + proof.llm_exact;
    rv_proof_fini(&proof);
}

/* Proves 7.7/lint */
START_TEST(parallel_bounds_hold_against_trying_everything)
{
    uint64_t state = 2000u + (uint64_t)_i;
    int n_exact = 0, n = rv_kit_sample(1000, 4000);

    for (int i = 0; i < n; i++) {
        struct world *w = random_world(&state);

        for (int s = 1; s < (int)w->p.n_agents; s++) {
            w->agents[s].order.join = chance(&state, 30) ? RV_JOIN_ANY : RV_JOIN_ALL;
            if (chance(&state, 50))
                world_require(w, s, pick(&state, s));
            if (chance(&state, 30))
                world_after(w, s, pick(&state, s));
            if (chance(&state, 60))
                world_error(w, s, RV_TARGET_NONE);
        }
        if (chance(&state, 50)) { /* else what default_next and rules name runs beside the others */
            for (int s = 0; s < (int)w->p.n_agents; s++)
                world_default(w, s, RV_TARGET_NONE);
            config_pipeline_mark_fallbacks(&w->p);
        }
        check_parallel(w, &n_exact);
        world_free(w);
    }
    ck_assert_msg(n_exact > n / 4, "only %d of %d bounds were shown exact", n_exact, 2 * n);
}
END_TEST

void add_prove_random_tests(Suite *suite)
{
    TCase *tc = tcase_create("prove_random");

    tcase_add_loop_test(tc, sequential_bounds_are_what_trying_everything_finds, 0, SEEDS);
    tcase_add_loop_test(tc, parallel_bounds_hold_against_trying_everything, 0, SEEDS);
    suite_add_tcase(suite, tc);
}

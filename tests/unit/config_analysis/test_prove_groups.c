/* Bounds of pipelines with groups: figures that can be worked out on paper, and thousands of small random graphs
 * against trying everything (graph 14, 17). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/analysis/group_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/config_analysis/group_oracle.h"
#include "tests/unit/config_analysis/suites.h"
#include "tests/unit/config_analysis/world.h"

#define MAX_LISTS    8
#define MAX_BRANCHES 4
#define SEEDS        10

/* A world with room for lists. */
struct groups {
    struct world *w;
    struct rv_branch_target targets[MAX_LISTS][MAX_BRANCHES];
    size_t n_lists;
    struct rv_answer_route answers[GROUP_ORACLE_STAGES][2];
    rv_template *question;
    rv_expr *always;
};

static void groups_init(struct groups *g, int n)
{
    memset(g, 0, sizeof *g);
    g->w = world_new(n);
    g->w->p.has_groups = true;
    ck_assert_int_eq(rv_template_compile(RV_STR_LIT("?"), NULL, &g->question, NULL), 0);
    ck_assert_int_eq(rv_expr_compile(RV_STR_LIT("state.b"), NULL, NULL, 0, &g->always, NULL), 0);
}

static void groups_fini(struct groups *g)
{
    world_free(g->w);
    rv_template_free(g->question);
    rv_expr_free(g->always);
}

/* whens: bits of the branches that have one. */
static struct rv_branches make_list(struct groups *g, const int *targets, size_t n, unsigned whens)
{
    struct rv_branches list = {.items = g->targets[g->n_lists++], .n = n, .is_list = true};

    ck_assert(g->n_lists <= MAX_LISTS && n <= MAX_BRANCHES);
    for (size_t i = 0; i < n; i++)
        list.items[i] = (struct rv_branch_target){
            .name = g->w->names[targets[i]], .target = targets[i], .when = whens >> i & 1 ? g->always : NULL};
    return list;
}

static void fork_at(struct groups *g, int stage, const int *targets, size_t n, unsigned whens)
{
    struct rv_agent_routing *r = &g->w->agents[stage].routing;

    r->branches = make_list(g, targets, n, whens);
    r->default_target = RV_TARGET_LIST;
    r->default_next = "";
}

static void join_at(struct groups *g, int stage, int wait, int64_t count, int failures)
{
    g->w->agents[stage].join = (struct rv_agent_join){.wait = wait, .count = count, .failures = failures};
}

/* --- On paper --- */

static struct rv_proof prove(const struct groups *g)
{
    struct rv_proof proof = {0};

    group_oracle_levels(&g->w->p);
    ck_assert_int_eq(rv_pipeline_prove(&g->w->p, RV_MODE_SEQUENTIAL, &proof, NULL), 0);
    return proof;
}

#define B2(a, b) ((const int[]){(a), (b)}), 2

/* s0 -> [s1, s2] -> s3 (join) -> end: graph 16, without its questions. */
static void diamond(struct groups *g)
{
    groups_init(g, 4);
    fork_at(g, 0, B2(1, 2), 0);
    world_default(g->w, 1, 3);
    join_at(g, 3, RV_WAIT_ALL, 0, RV_FAILURES_DRAIN);
}

START_TEST(a_group_counts_all_its_branches)
{
    struct groups g;

    diamond(&g);
    struct rv_proof proof = prove(&g);
    ck_assert_int_eq(proof.max_visits, 4);
    ck_assert(proof.visits_exact && proof.llm_exact);
    groups_fini(&g);
}
END_TEST

START_TEST(each_pass_of_a_loop_around_a_group_counts_it_again)
{
    struct groups g;

    diamond(&g);
    world_rule(g.w, 3, "again", "true", 0);
    g.w->p.max_iterations = 2;
    struct rv_proof proof = prove(&g);
    ck_assert_int_eq(proof.max_visits, 12);
    ck_assert(proof.visits_exact);
    groups_fini(&g);
}
END_TEST

START_TEST(branches_share_loop_backs)
{
    struct groups g;

    diamond(&g);
    world_rule(g.w, 1, "again", "true", 1);
    world_rule(g.w, 2, "again", "true", 2);
    g.w->p.max_iterations = 3;
    struct rv_proof proof = prove(&g);
    ck_assert_int_eq(proof.max_visits, 7);
    groups_fini(&g);
}
END_TEST

START_TEST(branches_share_model_calls_in_list_order)
{
    struct groups g;

    diamond(&g);
    world_llm(g.w, 1, 0);
    world_llm(g.w, 2, 0);
    g.w->p.max_llm_calls = 1;
    struct rv_proof proof = prove(&g);
    ck_assert_int_eq(proof.max_visits, 2); /* s0 and s1: the first visit of s2 ends the run */
    ck_assert_int_eq(proof.max_llm_calls, 1);
    groups_fini(&g);
}
END_TEST

START_TEST(a_branch_that_may_be_left_out_leaves_its_call_to_the_others)
{
    struct groups g;

    diamond(&g);
    fork_at(&g, 0, B2(1, 2), 1);
    world_llm(g.w, 1, 0);
    world_llm(g.w, 2, 0);
    g.w->p.max_llm_calls = 1;
    struct rv_proof proof = prove(&g);
    ck_assert_int_ge(proof.max_visits, 3); /* s0, s2, s3 */
    ck_assert(!proof.visits_exact);        /* whether its `when` can be false is not known */
    groups_fini(&g);
}
END_TEST

START_TEST(losers_of_a_race_count_as_far_as_they_came)
{
    struct groups g;

    groups_init(&g, 5); /* s0 -> [s1, s2 -> s3] -> s4 (first) */
    fork_at(&g, 0, B2(1, 2), 0);
    world_default(g.w, 1, 4);
    join_at(&g, 4, RV_WAIT_COUNT, 1, RV_FAILURES_DRAIN);
    struct rv_proof proof = prove(&g);
    ck_assert_int_eq(proof.max_visits, 5);
    groups_fini(&g);
}
END_TEST

START_TEST(a_join_that_is_not_satisfied_goes_on_by_its_error_route)
{
    struct groups g;

    groups_init(&g, 6); /* s0 -> [s1, s2] -> s3 (all), or by its error to s4 -> s5; no branch may end well twice */
    fork_at(&g, 0, B2(1, 2), 0);
    world_default(g.w, 1, 3);
    join_at(&g, 3, RV_WAIT_ALL, 0, RV_FAILURES_DRAIN);
    world_default(g.w, 3, RV_TARGET_END);
    world_error(g.w, 3, 4);
    struct rv_proof proof = prove(&g);
    ck_assert_int_eq(proof.max_visits, 6);
    ck_assert(proof.visits_exact);
    groups_fini(&g);
}
END_TEST

START_TEST(a_join_that_fails_fast_goes_on_while_a_branch_never_ends)
{
    struct groups g;

    groups_init(&g, 5); /* s0 -> [s1, s2], s2 -> s2 whatever happens, s3 (fast) fails to s4 */
    fork_at(&g, 0, B2(1, 2), 0);
    world_default(g.w, 1, 3);
    world_default(g.w, 2, 2);
    world_error(g.w, 2, 2);
    join_at(&g, 3, RV_WAIT_ALL, 0, RV_FAILURES_FAST);
    world_error(g.w, 3, 4);
    g.w->p.max_iterations = 2;
    struct rv_proof proof = prove(&g);
    ck_assert_int_eq(proof.max_visits, 7);
    groups_fini(&g);
}
END_TEST

START_TEST(elements_and_questions_are_counted)
{
    struct groups g;

    diamond(&g);
    g.w->agents[1].each.list = g.always;
    g.w->agents[1].each.max_items = 5;
    world_llm(g.w, 1, 1);
    g.w->p.max_llm_calls = 20;
    g.w->agents[3].ask.question = g.question;
    struct rv_proof proof = prove(&g);
    ck_assert_int_eq(proof.max_visits, 9);
    ck_assert_int_eq(proof.max_llm_calls, 10);
    ck_assert_int_eq(proof.max_questions, 1);
    groups_fini(&g);
}
END_TEST

/* --- Against trying everything --- */

/* Which stage opens the group that a stage belongs to, and where the branches of a fork meet; -1: none. */
struct plan {
    int n, context[GROUP_ORACLE_STAGES], join_of[GROUP_ORACLE_STAGES];
    bool is_join[GROUP_ORACLE_STAGES], is_fork[GROUP_ORACLE_STAGES];
};

static struct plan make_plan(uint64_t *state)
{
    struct plan p = {.n = 3 + pick(state, GROUP_ORACLE_STAGES - 2)};
    int n_forks = 0;

    for (int s = 0; s < p.n; s++) {
        p.context[s] = p.join_of[s] = -1;
        int fork = s > 0 ? pick(state, s) : -1; /* it belongs to a group of that stage, if that is a fork */
        if (s > 0 && chance(state, 70) && !p.is_join[fork] && (p.is_fork[fork] || n_forks < 2)) {
            n_forks += !p.is_fork[fork];
            p.is_fork[fork] = true;
            p.context[s] = fork;
        } else if (s > 1 && chance(state, 30)) {
            p.context[s] = p.context[pick(state, s)];
        }
        for (int f = 0; f < s && !p.is_fork[s]; f++) {
            if (!p.is_fork[f] || p.join_of[f] >= 0 || p.context[s] != p.context[f] || !chance(state, 50))
                continue;
            p.join_of[f] = s;
            p.is_join[s] = true;
            break;
        }
    }
    return p;
}

static int pick_target(const struct plan *p, uint64_t *state, int from, bool may_miss)
{
    int targets[GROUP_ORACLE_STAGES + 3], n = 0, fork = p->context[from];

    for (int s = 0; s < p->n; s++)
        if (!p->is_join[s] && p->context[s] == fork)
            targets[n++] = s;
    if (fork >= 0 && p->join_of[fork] > from)
        for (int i = 0; i < 3; i++)
            targets[n++] = p->join_of[fork];
    targets[n++] = RV_TARGET_END;
    if (may_miss)
        targets[n++] = RV_TARGET_NONE;
    return targets[pick(state, n)];
}

/* False: no stage of its group comes after it. */
static bool add_fork(struct groups *g, const struct plan *p, uint64_t *state, int fork, struct rv_branches *out)
{
    int first[GROUP_ORACLE_STAGES], n = 0;

    for (int s = fork + 1; s < p->n; s++)
        if (p->context[s] == fork && !p->is_join[s])
            first[n++] = s;
    while (n > 3 || (n > 1 && chance(state, 20))) {
        int out_of = pick(state, n--);
        memmove(first + out_of, first + out_of + 1, (size_t)(n - out_of) * sizeof *first);
    }
    if (n > 0)
        *out = make_list(g, first, (size_t)n, chance(state, 30) ? (unsigned)pick(state, 8) : 0);
    return n > 0;
}

/* n_branches: of the shortest list that it joins. */
static void add_join(struct groups *g, uint64_t *state, int stage, size_t n_branches)
{
    static const int failures[] = {RV_FAILURES_DRAIN, RV_FAILURES_FAST, RV_FAILURES_COLLECT};
    int kind = pick(state, 5);

    if (kind < 3)
        join_at(g, stage, RV_WAIT_ALL, 0, failures[kind]);
    else if (kind == 3)
        join_at(g, stage, RV_WAIT_ANY, 0, RV_FAILURES_DRAIN);
    else
        join_at(g, stage, RV_WAIT_COUNT, n_branches > 1 ? 1 + chance(state, 40) : 1, RV_FAILURES_DRAIN);
}

static void add_stage(struct groups *g, const struct plan *p, uint64_t *state, int s)
{
    struct rv_agent *a = &g->w->agents[s];
    struct rv_branches list;

    world_default(g->w, s, pick_target(p, state, s, false));
    if (p->is_fork[s] && add_fork(g, p, state, s, &list)) {
        if (chance(state, 80)) {
            a->routing.branches = list;
            a->routing.default_target = RV_TARGET_LIST;
        } else {
            world_when(g->w, s, "state.b", RV_TARGET_END);
            a->routing.rules[0].target = RV_TARGET_LIST;
            a->routing.rules[0].branches = list;
        }
    }
    if (chance(state, 35))
        world_when(g->w, s, "output.a", pick_target(p, state, s, false));
    world_error(g->w, s, chance(state, 40) ? pick_target(p, state, s, true) : RV_TARGET_NONE);
    if (chance(state, 40))
        world_llm(g->w, s, pick(state, 2));
    if (chance(state, 15))
        a->limits.max_visits = 1 + pick(state, 2);
    if (!a->has_llm && chance(state, 8)) {
        a->each.list = g->always;
        a->each.max_items = 1 + pick(state, 2);
    } else if (chance(state, 15)) {
        static const char *const choices[] = {"yes", "no"};
        a->ask.question = g->question;
        a->ask.routes = g->answers[s];
        for (int i = 0, n = pick(state, 3); i < n; i++)
            a->ask.routes[a->ask.n_routes++] =
                (struct rv_answer_route){.choice = choices[i], .target = pick_target(p, state, s, false)};
    }
}

static size_t shortest_list(const struct groups *g, const struct plan *p, int join)
{
    size_t n = MAX_BRANCHES;

    for (int s = 0; s < p->n; s++) {
        const struct rv_agent_routing *r = &g->w->agents[s].routing;
        const struct rv_branches *list = r->default_target == RV_TARGET_LIST ? &r->branches
                                         : r->n_rules > 0                    ? &r->rules[0].branches
                                                                             : NULL;
        if (p->join_of[s] == join && list && list->is_list && list->n < n)
            n = list->n;
    }
    return n;
}

static void random_groups(struct groups *g, uint64_t *state)
{
    struct plan p = make_plan(state);
    int n_limits = pick(state, 3);

    groups_init(g, p.n);
    g->w->p.max_iterations = 1 + pick(state, 2);
    g->w->p.max_llm_calls = 1 + pick(state, 5);
    g->w->p.max_agent_hops = 3 + pick(state, 10);
    for (int s = 0; s < p.n; s++)
        add_stage(g, &p, state, s);
    for (int s = 0; s < p.n; s++)
        if (p.is_join[s])
            add_join(g, state, s, shortest_list(g, &p, s));
    for (int i = 0; i < n_limits; i++) {
        int from = pick(state, p.n), to = pick(state, p.n);
        bool is_new = true;

        for (size_t k = 0; k < g->w->p.n_edge_limits; k++)
            is_new = is_new && (g->w->limits[k].from != from || g->w->limits[k].to != to);
        if (is_new)
            world_limit(g->w, from, to, 1 + pick(state, 2));
    }
}

static void print_targets(const struct rv_branches *list, int target, rv_buf *b)
{
    rv_buf_printf(b, " %d", target);
    for (size_t i = 0; target == RV_TARGET_LIST && i < list->n; i++)
        rv_buf_printf(b, "%s%d%s", i ? " " : "[", list->items[i].target, list->items[i].when ? "?" : "");
}

static void print_groups(const struct groups *g, rv_buf *b)
{
    const struct rv_pipeline *p = &g->w->p;

    rv_buf_printf(b, "iterations %d calls %d hops %d\n", (int)p->max_iterations, (int)p->max_llm_calls,
                  (int)p->max_agent_hops);
    for (size_t s = 0; s < p->n_agents; s++) {
        const struct rv_agent *a = &p->agents[s];

        rv_buf_printf(b, "s%zu llm %d+%d max_visits %d each %d join %d,%d,%d error %d default", s, a->has_llm,
                      (int)a->limits.max_retries, (int)a->limits.max_visits, (int)a->each.max_items, a->join.wait,
                      (int)a->join.count, a->join.failures, a->routing.error_target);
        print_targets(&a->routing.branches, a->routing.default_target, b);
        rv_buf_puts(b, " rules");
        for (size_t i = 0; i < a->routing.n_rules; i++)
            print_targets(&a->routing.rules[i].branches, a->routing.rules[i].target, b);
        if (a->ask.question)
            rv_buf_puts(b, " asks");
        for (size_t i = 0; i < a->ask.n_routes; i++)
            rv_buf_printf(b, " %s:%d", a->ask.routes[i].choice, a->ask.routes[i].target);
        rv_buf_putc(b, '\n');
    }
    for (size_t i = 0; i < p->n_edge_limits; i++)
        rv_buf_printf(b, "limit %d -> %d: %d\n", p->edge_limits[i].from, p->edge_limits[i].to,
                      (int)p->edge_limits[i].max_count);
}

#define CK(test, ...)                                                                                                  \
    do {                                                                                                               \
        if (!(test)) {                                                                                                 \
            rv_buf text = RV_BUF_INIT(1 << 16);                                                                        \
            print_groups(g, &text);                                                                                    \
            rv_buf_printf(&text, __VA_ARGS__);                                                                         \
            ck_abort_msg("%s\n%s", #test, rv_buf_cstr(&text));                                                         \
        }                                                                                                              \
    } while (0)

struct tally {
    int n_tried, n_lists, n_equal, n_exact, n_left;
};

/* The most that can be, when max_llm_calls does not bind. */
static struct group_oracle_answer with_calls_enough(const struct groups *g)
{
    int64_t calls = g->w->p.max_llm_calls;

    g->w->p.max_llm_calls = 200;
    struct group_oracle_answer most = group_oracle(&g->w->p, false);
    g->w->p.max_llm_calls = calls;
    return most;
}

static void check(const struct groups *g, struct tally *tally)
{
    struct group_oracle_answer most = group_oracle(&g->w->p, false), mocked = group_oracle(&g->w->p, true);
    struct group_oracle_answer free = with_calls_enough(g);
    struct rv_proof proof = prove(g);
    bool is_cut = most.visits == g->w->p.max_agent_hops; /* max_agent_hops may come before the other bounds */
    /* A visit that ends before its model call may borrow the call of a sibling: then the proof is an upper bound. */
    bool is_equal = g->n_lists == 0 || (most.visits == free.visits && most.questions == free.questions);

    if (!most.is_whole || !mocked.is_whole || !free.is_whole) {
        tally->n_left++;
        return;
    }
    tally->n_tried++;
    tally->n_lists += g->n_lists > 0;
    tally->n_equal += is_equal;
    CK(is_equal ? proof.max_visits == most.visits : proof.max_visits >= most.visits, "proof %d, tried %d",
       (int)proof.max_visits, (int)most.visits);
    CK(proof.max_mocked_visits == mocked.visits, "proof %d, tried %d", (int)proof.max_mocked_visits,
       (int)mocked.visits);
    CK(is_cut ? proof.max_llm_calls >= most.calls : proof.max_llm_calls == most.calls, "proof %d, tried %d",
       (int)proof.max_llm_calls, (int)most.calls);
    CK(is_equal && !is_cut ? proof.max_questions == most.questions : proof.max_questions >= most.questions,
       "proof %d, tried %d", (int)proof.max_questions, (int)most.questions);
    CK(!proof.visits_exact || proof.max_visits == most.visits, "proof %d, tried %d", (int)proof.max_visits,
       (int)most.visits);
    CK(!proof.llm_exact || proof.max_llm_calls == most.calls, "proof %d", (int)proof.max_llm_calls);
    tally->n_exact += proof.visits_exact;
}

/* Proves graph 17 (4) */
START_TEST(bounds_of_groups_are_what_trying_everything_finds)
{
    uint64_t state = 3000u + (uint64_t)_i;
    struct tally tally = {0};
    int n = rv_kit_sample(100, 1500);

    for (int i = 0; i < n; i++) {
        struct groups g;

        random_groups(&g, &state);
        check(&g, &tally);
        groups_fini(&g);
    }
    if (getenv("GRAPHS_SHOW"))
        printf("%d tried, %d with lists, %d have to be equal, %d shown exact, %d too large\n", tally.n_tried,
               tally.n_lists, tally.n_equal, tally.n_exact, tally.n_left);
    ck_assert_msg(tally.n_lists > n / 3, "%d of %d have a list", tally.n_lists, n);
    ck_assert_msg(tally.n_left <= n / 20, "%d of %d are too large", tally.n_left, n);
    ck_assert_msg(tally.n_equal > n / 2, "%d of %d have to be equal", tally.n_equal, n);
    ck_assert_msg(tally.n_exact > n / 4, "%d of %d are shown exact", tally.n_exact, n);
}
END_TEST

void add_prove_groups_tests(Suite *suite)
{
    TCase *tc = tcase_create("prove_groups");

    tcase_add_test(tc, a_group_counts_all_its_branches);
    tcase_add_test(tc, each_pass_of_a_loop_around_a_group_counts_it_again);
    tcase_add_test(tc, branches_share_loop_backs);
    tcase_add_test(tc, branches_share_model_calls_in_list_order);
    tcase_add_test(tc, a_branch_that_may_be_left_out_leaves_its_call_to_the_others);
    tcase_add_test(tc, losers_of_a_race_count_as_far_as_they_came);
    tcase_add_test(tc, a_join_that_is_not_satisfied_goes_on_by_its_error_route);
    tcase_add_test(tc, a_join_that_fails_fast_goes_on_while_a_branch_never_ends);
    tcase_add_test(tc, elements_and_questions_are_counted);
    tcase_add_loop_test(tc, bounds_of_groups_are_what_trying_everything_finds, 0, SEEDS);
    suite_add_tcase(suite, tc);
}

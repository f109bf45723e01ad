/* Thousands of random graphs, each run in several orders, with several crashes (graph 17).
 *
 * GRAPHS_SEED=N in the environment draws others, GRAPHS_SHOW=1 tells what was drawn, GRAPHS_DRY=1 runs none. */
#include "tests/unit/graphs/graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS 10

struct tally {
    int n, n_sound, n_lists, n_equal, n_crashes, n_late, n_answers, n_bound, n_failed, n_groups, n_seen;
    int n_inner, n_inner_bounds, n_terminated, n_inner_terminated;
};

/* Time decides who wins a count, and which failure ends a group at once. */
static bool races(const struct rv_pipeline *p)
{
    for (size_t i = 0; i < p->n_agents; i++)
        if (p->agents[i].join.wait == RV_WAIT_COUNT || p->agents[i].join.failures == RV_FAILURES_FAST)
            return true;
    return false;
}

/* Something is under way at the same time as something else. */
static bool is_concurrent(const struct rv_pipeline *p)
{
    for (size_t i = 0; i < p->n_agents; i++)
        if (p->has_groups || p->agents[i].each.list)
            return true;
    return false;
}

static bool has_list_that_stops(const struct rv_pipeline *p)
{
    for (size_t i = 0; i < p->n_agents; i++)
        if (p->agents[i].each.list && p->agents[i].each.on_error == RV_ITEM_FAIL)
            return true;
    return false;
}

static bool any_of(const struct rv_pipeline *p, bool (*is)(const struct rv_pipeline *p))
{
    size_t n;
    struct rv_pipeline *const *inner = rv_pipeline_inner(p, &n);
    bool found = is(p);

    for (size_t i = 0; i < n; i++)
        found = found || is(inner[i]);
    return found;
}

static bool is_bound(enum rv_reason reason)
{
    return reason == RV_REASON_MAX_ITERATIONS || reason == RV_REASON_MAX_LLM_CALLS || reason == RV_REASON_MAX_HOPS ||
           reason == RV_REASON_MAX_LOOP || reason == RV_REASON_MAX_VISITS;
}

/* What an output that ends a run leaves to time: the visits beside it. With a failing element or inside of an inner run
 * it may even be left out. */
static bool is_left_to_time(const struct rv_pipeline *p, const struct played *a)
{
    return a->n_terminated > 0 && any_of(p, is_concurrent) &&
           (a->n_inner_terminated > 0 || any_of(p, has_list_that_stops));
}

/* Equal ends in every order, or bounds in both. */
static void compare(const struct rv_pipeline *p, const char *yaml, const struct played *a, const struct played *b,
                    const char *what, struct tally *tally)
{
    if (any_of(p, races) || is_bound(a->reason) || is_bound(b->reason) || a->n_inner_bounds > 0 ||
        b->n_inner_bounds > 0 || is_left_to_time(p, a) || is_left_to_time(p, b))
        return;
    tally->n_equal++;
    bool same = (a->n_terminated > 0 || b->n_terminated > 0) && any_of(p, is_concurrent)
                    ? a->status == b->status && a->reason == b->reason
                    : strcmp(a->end, b->end) == 0;
    if (!same)
        rv_kit_die("%s: ends differ\n%s\n--- first\n%s\n%s\n--- second\n%s\n%s", what, yaml, a->end, a->story, b->end,
                   b->story);
}

static void count(struct tally *tally, const struct played *played)
{
    tally->n_late += played->n_late;
    tally->n_groups += played->n_groups;
    tally->n_seen += played->n_seen;
    tally->n_answers += (int)played->answers;
    tally->n_bound += is_bound(played->reason);
    tally->n_failed += played->status == RV_RUN_FAILED;
    tally->n_inner += played->n_inner > 0;
    tally->n_inner_bounds += played->n_inner_bounds > 0;
    tally->n_terminated += played->n_terminated > 0;
    tally->n_inner_terminated += played->n_inner_terminated > 0;
}

static void check_graph(const struct rv_pipeline *p, const char *yaml, const struct graph_kinds *kinds, struct dice *d,
                        struct tally *tally)
{
    struct play_opts opts = {.seed = dice_throw(d),
                             .order = PLAY_FIRST,
                             .max_parallel = 8,
                             .crash_at = -1,
                             .late = true,
                             .terminate = kinds->terminate};
    struct played plain, other;

    play(p, yaml, &opts, &plain);
    count(tally, &plain);
    opts.max_parallel = 1;
    opts.order = PLAY_LAST;
    play(p, yaml, &opts, &other);
    compare(p, yaml, &plain, &other, "last call first", tally);
    played_fini(&other);
    opts.max_parallel = 0;
    opts.order = PLAY_ANY;
    for (int i = 0; i < 2; i++) {
        opts.order_seed = dice_throw(d);
        play(p, yaml, &opts, &other);
        compare(p, yaml, &plain, &other, "any order", tally);
        tally->n_late += other.n_late;
        played_fini(&other);
    }
    for (int k = 1; k <= plain.n_events; k += 1 + plain.n_events / 6) {
        opts.crash_at = k;
        play(p, yaml, &opts, &other);
        compare(p, yaml, &plain, &other, "a crash", tally);
        tally->n_crashes++;
        played_fini(&other);
    }
    played_fini(&plain);
}

static void check_one(struct dice *d, const struct graph_kinds *kinds, struct tally *tally)
{
    rv_findings *findings = rv_findings_new();
    struct graph g;

    graph_write(d, kinds, &g);
    tally->n++;
    struct rv_pipeline *p = graph_load(&g, findings);
    if (p) {
        tally->n_sound++;
        tally->n_lists += p->has_groups;
        if (!getenv("GRAPHS_DRY"))
            check_graph(p, g.story, kinds, d, tally);
    } else if (getenv("GRAPHS_SHOW")) {
        rv_buf b = RV_BUF_INIT(1 << 20);
        rv_findings_write_text(findings, false, &b);
        puts(rv_buf_cstr(&b));
        rv_buf_fini(&b);
    }
    rv_pipeline_free(p);
    graph_fini(&g);
    rv_findings_free(findings);
}

/* The samples of the sanitizers are too small to have something of everything. */
static bool is_small(const struct tally *t)
{
    return t->n < 20;
}

static struct tally check_many(uint64_t seed, const struct graph_kinds *kinds, int n)
{
    const char *other = getenv("GRAPHS_SEED"); /* other graphs: for large counts in slices */
    struct dice d = {seed + (other ? strtoull(other, NULL, 10) * 1000000 : 0)};
    struct tally tally = {0};

    for (int i = 0; i < n; i++)
        check_one(&d, kinds, &tally);
    if (getenv("GRAPHS_SHOW"))
        printf(
            "%d groups, %d outputs seen, %d graphs, %d sound, %d with lists, %d equal ends, %d crashes, %d late, %d "
            "answers, %d bounds, %d failed, %d with inner visits, %d inner bounds, %d terminated, %d of them inside\n",
            tally.n_groups, tally.n_seen, tally.n, tally.n_sound, tally.n_lists, tally.n_equal, tally.n_crashes,
            tally.n_late, tally.n_answers, tally.n_bound, tally.n_failed, tally.n_inner, tally.n_inner_bounds,
            tally.n_terminated, tally.n_inner_terminated);
    ck_assert(is_small(&tally) || tally.n_sound > n / 2);
    return tally;
}

START_TEST(runs_without_lists_keep_what_must_hold)
{
    const struct graph_kinds kinds = {.lists = false};
    struct tally t = check_many(91000u + (uint64_t)_i, &kinds, rv_kit_sample(40, 500));

    ck_assert(is_small(&t) || (t.n_equal > 0 && t.n_crashes > 0));
}
END_TEST

START_TEST(runs_with_questions_keep_what_must_hold)
{
    const struct graph_kinds kinds = {.asks = true};
    struct tally t = check_many(92000u + (uint64_t)_i, &kinds, rv_kit_sample(20, 250));

    ck_assert(is_small(&t) || (t.n_equal > 0 && t.n_answers > 0));
}
END_TEST

START_TEST(runs_with_elements_keep_what_must_hold)
{
    const struct graph_kinds kinds = {.for_each = true};
    struct tally t = check_many(94000u + (uint64_t)_i, &kinds, rv_kit_sample(20, 250));

    ck_assert(is_small(&t) || t.n_equal > 0);
}
END_TEST

START_TEST(runs_with_lists_keep_what_must_hold)
{
    const struct graph_kinds kinds = {.lists = true};
    struct tally t = check_many(93000u + (uint64_t)_i, &kinds, rv_kit_sample(40, 1000));

    ck_assert(is_small(&t) || (t.n_equal > 0 && t.n_lists > t.n / 3));
}
END_TEST

START_TEST(runs_with_inner_pipelines_keep_what_must_hold)
{
    const struct graph_kinds kinds = {.inner = true, .asks = _i % 2 == 1, .terminate = _i % 3 == 2};
    struct tally t = check_many(96000u + (uint64_t)_i, &kinds, rv_kit_sample(20, 250));

    ck_assert(is_small(&t) || (t.n_equal > 0 && t.n_inner > t.n / 10));
}
END_TEST

START_TEST(runs_that_outputs_end_keep_what_must_hold)
{
    const struct graph_kinds kinds = {.lists = true, .terminate = true};
    struct tally t = check_many(97000u + (uint64_t)_i, &kinds, rv_kit_sample(40, 250));

    ck_assert(is_small(&t) || (t.n_equal > 0 && t.n_terminated > 0));
}
END_TEST

START_TEST(runs_with_everything_keep_what_must_hold)
{
    const struct graph_kinds kinds = {
        .lists = true, .asks = true, .for_each = true, .inner = true, .terminate = _i % 2 == 1};
    struct tally t = check_many(95000u + (uint64_t)_i, &kinds, rv_kit_sample(40, 1000));

    ck_assert(is_small(&t) || (t.n_equal > 0 && t.n_answers > 0 && t.n_groups > 0));
}
END_TEST

/* Two branches come the same way, and the limit of a stage or an edge allows one of them. */
static const struct {
    const char *yaml;
    enum rv_reason reason;
} limited[] = {
    {"name: t\nagents:\n  - {name: s0, pre_process: x.pre, default_next: [s1, s2]}\n"
     "  - {name: s1, pre_process: x.pre, default_next: s3}\n  - {name: s2, pre_process: x.pre, default_next: s3}\n"
     "  - {name: s3, max_visits: 1, pre_process: x.pre, default_next: s4}\n"
     "  - {name: s4, join: {wait: all, merge: {s3: replace}}}\n",
     RV_REASON_MAX_VISITS},
    {"name: t\nedge_limits: [{from: s2, to: s3, max_count: 1}]\nagents:\n"
     "  - {name: s0, pre_process: x.pre, default_next: [s1, s2]}\n"
     "  - {name: s1, pre_process: x.pre, default_next: s2}\n  - {name: s2, pre_process: x.pre, default_next: s3}\n"
     "  - {name: s3, pre_process: x.pre, default_next: s4}\n"
     "  - {name: s4, join: {wait: all, merge: {s2: replace, s3: replace}}}\n",
     RV_REASON_MAX_LOOP},
};

START_TEST(limits_hold_over_all_branches)
{
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    struct played played;
    int n_stopped = 0;

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(limited[_i].yaml), "graph.yaml", ".", findings, &p, NULL), 0);
    ck_assert(p && p->is_sound);
    for (uint64_t seed = 1; seed <= 20; seed++) { /* in some of them hooks fail */
        const struct play_opts opts = {.seed = seed, .order = PLAY_FIRST, .crash_at = -1};
        play(p, limited[_i].yaml, &opts, &played);
        ck_assert_int_ne(played.status, RV_RUN_COMPLETED);
        n_stopped += played.reason == limited[_i].reason;
        played_fini(&played);
    }
    ck_assert_int_gt(n_stopped, 5);
    rv_pipeline_free(p);
    rv_findings_free(findings);
}
END_TEST

void add_graphs_tests(Suite *suite)
{
    const struct {
        const char *name; /* for CK_RUN_CASE */
        const TTest *test;
        int n;
    } cases[] = {
        {"plain", runs_without_lists_keep_what_must_hold, SEEDS},
        {"questions", runs_with_questions_keep_what_must_hold, SEEDS},
        {"lists", runs_with_lists_keep_what_must_hold, SEEDS},
        {"elements", runs_with_elements_keep_what_must_hold, SEEDS},
        {"inner", runs_with_inner_pipelines_keep_what_must_hold, SEEDS},
        {"terminate", runs_that_outputs_end_keep_what_must_hold, SEEDS},
        {"everything", runs_with_everything_keep_what_must_hold, SEEDS},
        {"limits", limits_hold_over_all_branches, RV_COUNT(limited)},
    };

    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        TCase *tc = tcase_create(cases[i].name);
        tcase_add_loop_test(tc, cases[i].test, 0, cases[i].n);
        suite_add_tcase(suite, tc);
    }
}

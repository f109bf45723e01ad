/* Thousands of random graphs, each run in several orders, with several crashes (graph 17). */
#include "tests/unit/graphs/graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS 10

struct tally {
    int n, n_sound, n_lists, n_equal, n_crashes, n_late, n_answers, n_bound, n_failed, n_groups, n_seen;
};

/* Time decides who wins a count, and which failure ends a group at once. */
static bool is_racing(const struct rv_pipeline *p)
{
    for (size_t i = 0; i < p->n_agents; i++)
        if (p->agents[i].join.wait == RV_WAIT_COUNT || p->agents[i].join.failures == RV_FAILURES_FAST)
            return true;
    return false;
}

static bool is_bound(enum rv_reason reason)
{
    return reason == RV_REASON_MAX_ITERATIONS || reason == RV_REASON_MAX_LLM_CALLS || reason == RV_REASON_MAX_HOPS ||
           reason == RV_REASON_MAX_LOOP || reason == RV_REASON_MAX_VISITS;
}

/* Equal ends in every order, or bounds in both. */
static void compare(const struct rv_pipeline *p, const char *yaml, const struct played *a, const struct played *b,
                    const char *what, struct tally *tally)
{
    if (is_racing(p) || is_bound(a->reason) || is_bound(b->reason))
        return;
    if (a->calls >= p->max_llm_calls || b->calls >= p->max_llm_calls) /* a retry may be left out for want of a call */
        return;
    tally->n_equal++;
    if (strcmp(a->end, b->end) != 0)
        rv_kit_die("%s: ends differ\n%s\n--- first\n%s\n%s\n--- second\n%s\n%s", what, yaml, a->end, a->story, b->end,
                   b->story);
}

static void check_graph(const struct rv_pipeline *p, const char *yaml, struct dice *d, struct tally *tally)
{
    struct play_opts opts = {
        .seed = dice_throw(d), .order = PLAY_FIRST, .max_parallel = 8, .crash_at = -1, .late = true};
    struct played plain, other;

    play(p, yaml, &opts, &plain);
    tally->n_late += plain.n_late;
    tally->n_groups += plain.n_groups;
    tally->n_seen += plain.n_seen;
    tally->n_answers += (int)plain.answers;
    tally->n_bound += is_bound(plain.reason);
    tally->n_failed += plain.status == RV_RUN_FAILED;
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

static void check_one(struct dice *d, const struct graph_kinds *kinds, rv_buf *yaml, struct tally *tally)
{
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;

    graph_write(d, kinds, yaml);
    tally->n++;
    if (rv_pipeline_parse(rv_buf_str(yaml), "graph.yaml", ".", findings, &p, NULL) < 0)
        rv_kit_die("not read:\n%s", rv_buf_cstr(yaml));
    if (p && p->is_sound) {
        tally->n_sound++;
        tally->n_lists += p->has_groups;
        if (!getenv("GRAPHS_DRY"))
            check_graph(p, rv_buf_cstr(yaml), d, tally);
    } else if (getenv("GRAPHS_SHOW")) {
        rv_buf b = RV_BUF_INIT(1 << 20);
        rv_findings_write_text(findings, false, &b);
        puts(rv_buf_cstr(&b));
        rv_buf_fini(&b);
    }
    rv_pipeline_free(p);
    rv_findings_free(findings);
}

static struct tally check_many(uint64_t seed, const struct graph_kinds *kinds, int n)
{
    rv_buf yaml = RV_BUF_INIT(1 << 16);
    struct dice d = {seed};
    struct tally tally = {0};

    for (int i = 0; i < n; i++)
        check_one(&d, kinds, &yaml, &tally);
    rv_buf_fini(&yaml);
    if (getenv("GRAPHS_SHOW"))
        printf("%d groups, %d outputs seen, %d graphs, %d sound, %d with lists, %d equal ends, %d crashes, %d late, %d "
               "answers, %d bounds, %d "
               "failed\n",
               tally.n_groups, tally.n_seen, tally.n, tally.n_sound, tally.n_lists, tally.n_equal, tally.n_crashes,
               tally.n_late, tally.n_answers, tally.n_bound, tally.n_failed);
    ck_assert_int_gt(tally.n_sound, n / 2);
    return tally;
}

/* The samples of the sanitizers are too small to have something of everything. */
static bool is_small(const struct tally *t)
{
    return t->n < 20;
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

START_TEST(runs_with_everything_keep_what_must_hold)
{
    const struct graph_kinds kinds = {.lists = true, .asks = true, .for_each = true};
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
    TCase *tc = tcase_create("graphs");

    tcase_add_loop_test(tc, runs_without_lists_keep_what_must_hold, 0, SEEDS);
    tcase_add_loop_test(tc, runs_with_questions_keep_what_must_hold, 0, SEEDS);

    tcase_add_loop_test(tc, runs_with_lists_keep_what_must_hold, 0, SEEDS);
    tcase_add_loop_test(tc, runs_with_elements_keep_what_must_hold, 0, SEEDS);
    tcase_add_loop_test(tc, runs_with_everything_keep_what_must_hold, 0, SEEDS);
    tcase_add_loop_test(tc, limits_hold_over_all_branches, 0, RV_COUNT(limited));
    suite_add_tcase(suite, tc);
}

/* Random pipelines, random answers, in memory and in a file: a replay stands where the run stood, at the end and on the
 * way. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/journal/live.h"
#include "tests/unit/journal/suites.h"

#define SEEDS     4
#define IN_SQLITE 10 /* of them in a file */

static int pick(struct rv_rand r, int n)
{
    return (int)rv_rand_below(r, (uint64_t)n);
}

static bool chance(struct rv_rand r, int percent)
{
    return pick(r, 100) < percent;
}

static const char *target(struct rv_rand r, int n, char text[16])
{
    int i = pick(r, n + 3);

    if (i >= n)
        return i == n ? "clarification" : i == n + 1 ? "confirmation" : "end";
    snprintf(text, 16, "s%d", i);
    return text;
}

static void write_stage(struct rv_rand r, rv_buf *b, int stage, int n)
{
    char text[16];
    bool llm = chance(r, 55), tools = !llm && chance(r, 50);

    rv_buf_printf(b, "  - name: s%d\n    stage_order: %d\n", stage, stage);
    if (llm)
        rv_buf_printf(b, "    has_llm: true\n    model_role: r\n    max_retries: %d\n", pick(r, 3));
    if (tools)
        rv_buf_printf(b, "    has_tools: true\n    tool_access: all\n    plan_from: s%d\n    max_retries: %d\n",
                      pick(r, n), pick(r, 2));
    if (chance(r, 60))
        rv_buf_printf(b, "    default_next: %s\n", target(r, n, text));
    if (chance(r, 40))
        rv_buf_printf(b, "    error_next: %s\n", target(r, n, text));
    if (chance(r, 15))
        rv_buf_printf(b, "    timeout_seconds: %d\n", 1 + pick(r, 20));
    if (chance(r, 20))
        rv_buf_puts(b, "    pre_process: x.pre\n");
    if (chance(r, 20))
        rv_buf_puts(b, "    post_process: x.post\n");
    if (chance(r, 15))
        rv_buf_puts(b, "    has_policies: true\n    policies: [x.p, x.q]\n");
    if (chance(r, 10))
        rv_buf_puts(b, "    mock_handler: x.mock\n    mock: true\n");
    if (chance(r, 10))
        rv_buf_puts(b, "    routing_function: x.route\n");
    if (llm && chance(r, 25))
        rv_buf_puts(b, "    before_model: [x.around, x.around]\n    after_model: x.around\n");
    if (tools && chance(r, 35))
        rv_buf_puts(b, "    before_tool: x.around\n    after_tool: [x.around]\n");
    if (stage > 0 && chance(r, 50))
        rv_buf_printf(b, "    requires: [s%d]\n", pick(r, stage));
    if (chance(r, 50))
        rv_buf_printf(b, "    routing_rules: [{condition: v, value: %d, target: %s}]\n", pick(r, 4),
                      target(r, n, text));
}

static void write_pipeline(struct rv_rand r, rv_buf *b)
{
    int n = 1 + pick(r, 6);

    rv_buf_clear(b);
    rv_buf_printf(b, "name: t\nmodels: {r: scripted}\nmax_iterations: %d\nmax_llm_calls: %d\nmax_agent_hops: %d\n",
                  1 + pick(r, 4), 2 + pick(r, 8), 2 + pick(r, 14));
    if (chance(r, 30))
        rv_buf_printf(b, "state: [{key: s%d, merge: append}]\n", pick(r, n));
    rv_buf_puts(b, "agents:\n");
    for (int s = 0; s < n; s++)
        write_stage(r, b, s, n);
}

static void check_one(rv_store *store, const char *yaml, uint64_t seed, int mode)
{
    const struct rv_store_scope scope = live_scope();
    struct live *l = live_new(store, yaml, seed, mode);

    live_go(l, 60);
    int64_t n = rv_journal_seq(l->j);
    live_check_at(l, n, false);
    for (int i = 0; i < 4; i++)
        live_check_at(l, 1 + live_pick(l, (int)n), false);
    rv_journal_free(l->j);
    l->j = NULL;
    ck_assert_int_eq(rv_store_delete_run(store, &scope, LIVE_RUN, NULL, l->now_us, NULL), 0);
    live_free(l);
}

static void check_many(const char *url, uint64_t seed, int n)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    struct rv_rand_state bits;
    struct rv_rand r = rv_rand_seeded(&bits, seed);
    rv_buf yaml = RV_BUF_INIT(1 << 16);
    rv_store *store = NULL;

    ck_assert_int_eq(rv_store_open(url, &opts, &store, NULL), 0);
    for (int i = 0; i < n; i++) {
        write_pipeline(r, &yaml);
        check_one(store, rv_buf_cstr(&yaml), rv_rand_u64(r), RV_MODE_SEQUENTIAL);
        check_one(store, rv_buf_cstr(&yaml), rv_rand_u64(r), RV_MODE_PARALLEL);
    }
    rv_buf_fini(&yaml);
    rv_store_close(store);
}

START_TEST(random_pipelines_replay)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "runs.db");

    check_many("memory:", 500u + (uint64_t)_i, rv_kit_sample(240, 600));
    check_many(path, 900u + (uint64_t)_i, IN_SQLITE);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

TCase *random_case(void)
{
    TCase *tc = tcase_create("random");

    tcase_add_loop_test(tc, random_pipelines_replay, 0, SEEDS);
    return tc;
}

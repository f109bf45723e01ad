/* Thousands of random pipelines against random answers and failures. Whatever comes: the run ends, no bound and no
 * proof is exceeded, batches are exactly the ready stages, and a recording replays. The driver checks order, saving and
 * loading. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/run/drive.h"
#include "tests/unit/run/suites.h"

#if defined(__SANITIZE_ADDRESS__)
#define PIPELINES 150
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PIPELINES 150
#endif
#endif
#ifndef PIPELINES
#define PIPELINES 1250 /* for each of the seeds */
#endif
#define SEEDS      10
#define MAX_STAGES 8

struct luck {
    struct rv_rand_state state;
    struct rv_rand rand;
};

static int pick(struct luck *l, int n)
{
    return (int)rv_rand_below(l->rand, (uint64_t)n);
}

static bool chance(struct luck *l, int percent)
{
    return pick(l, 100) < percent;
}

/* --- pipelines --- */

static const char *target(struct luck *l, int n, char text[16])
{
    int i = pick(l, n + 3);

    if (i >= n)
        return i == n ? "clarification" : i == n + 1 && chance(l, 30) ? "confirmation" : "end";
    snprintf(text, 16, "s%d", i);
    return text;
}

static void write_list(struct luck *l, rv_buf *b, const char *key, int below)
{
    rv_buf_printf(b, "    %s: [s%d", key, pick(l, below));
    rv_buf_puts(b, "]\n");
}

static void write_requires(struct luck *l, rv_buf *b, int stage)
{
    int a = pick(l, stage), c = pick(l, stage);

    if (a == c)
        rv_buf_printf(b, "    requires: [s%d]\n", a);
    else
        rv_buf_printf(b, "    requires: [s%d, s%d]\n", a, c);
    if (chance(l, 30))
        rv_buf_puts(b, "    join_strategy: any\n");
}

static void write_rules(struct luck *l, rv_buf *b, int n)
{
    char text[16];
    int n_rules = pick(l, 4);

    if (n_rules)
        rv_buf_puts(b, "    routing_rules:\n");
    for (int i = 0; i < n_rules; i++) {
        if (chance(l, 25))
            rv_buf_printf(b, "      - {when: '%s', target: %s}\n",
                          chance(l, 50) ? "output.v > 1" : "envelope.iteration < 2", target(l, n, text));
        else
            rv_buf_printf(b, "      - {condition: v, value: %d, target: %s}\n", pick(l, 4), target(l, n, text));
    }
}

static void write_stage(struct luck *l, rv_buf *b, int stage, int n)
{
    char text[16];
    bool llm = chance(l, 45), tools = !llm && chance(l, 30);

    rv_buf_printf(b, "  - name: s%d\n    stage_order: %d\n", stage, chance(l, 90) ? stage : 0);
    if (llm)
        rv_buf_printf(b, "    has_llm: true\n    model_role: r\n    max_retries: %d\n", pick(l, 4));
    if (tools)
        rv_buf_printf(b, "    has_tools: true\n    tool_access: %s\n    plan_from: s%d\n    max_retries: %d\n",
                      chance(l, 60) ? "all" : "read", pick(l, n), pick(l, 2));
    if (chance(l, 60))
        rv_buf_printf(b, "    default_next: %s\n", target(l, n, text));
    if (chance(l, 40))
        rv_buf_printf(b, "    error_next: %s\n", target(l, n, text));
    if (chance(l, 15))
        rv_buf_printf(b, "    max_visits: %d\n", 1 + pick(l, 3));
    if (chance(l, 15))
        rv_buf_printf(b, "    timeout_seconds: %d\n", 1 + pick(l, 20));
    if (chance(l, 20))
        rv_buf_puts(b, "    pre_process: x.pre\n");
    if (chance(l, 20))
        rv_buf_puts(b, "    post_process: x.post\n");
    if (chance(l, 15))
        rv_buf_puts(b, "    has_policies: true\n    policies: [x.p, x.q]\n");
    if (chance(l, 10))
        rv_buf_puts(b, "    mock_handler: x.mock\n    mock: true\n");
    if (chance(l, 10))
        rv_buf_puts(b, "    routing_function: x.route\n");
    if (chance(l, 15))
        rv_buf_puts(b, "    required_output_fields: [v]\n");
    if (stage > 0 && chance(l, 55))
        write_requires(l, b, stage);
    if (stage > 0 && chance(l, 25))
        write_list(l, b, "after", stage);
    write_rules(l, b, n);
}

static void write_pipeline(struct luck *l, rv_buf *b)
{
    int n = 1 + pick(l, MAX_STAGES - 1), from = pick(l, n), to = pick(l, n);

    rv_buf_clear(b);
    rv_buf_printf(b, "name: t\nmodels: {r: scripted}\nmax_iterations: %d\nmax_llm_calls: %d\nmax_agent_hops: %d\n",
                  1 + pick(l, 4), 1 + pick(l, 6), 1 + pick(l, 14));
    if (chance(l, 10))
        rv_buf_puts(b, "execution: {enable_loop_back: false}\n");
    if (chance(l, 40))
        rv_buf_printf(b, "edge_limits:\n  - {from: s%d, to: s%d, max_count: %d}\n", from, to, 1 + pick(l, 2));
    if (chance(l, 30))
        rv_buf_printf(b, "state: [{key: s%d, merge: append}]\n", pick(l, n));
    rv_buf_puts(b, "agents:\n");
    for (int s = 0; s < n; s++)
        write_stage(l, b, s, n);
}

/* --- answers --- */

static const char *const outputs[] = {
    "{'v':0}",
    "{'v':1}",
    "{'v':2}",
    "{'v':3.0}",
    "{}",
    "{'v':1,'outcome':'replan','feedback':'f'}",
    "{'v':2,'outcome':'skip'}",
    "{'v':1,'outcome':'loop_back'}",
    "{'v':'x'}",
    "{'steps':[{'tool':'read'},{'tool':'wipe'},5],'v':1}",
    "{'steps':[{'tool':'read'}]}",
    "{'steps':7,'v':2}",
    "think {not json} {'v':3}",
};
static const char *const rare[] = {
    "{'v':1,'outcome':'clarify'}",
    "{'v':1,'outcome':'confirm'}",
    "{'v':1,'outcome':'terminate'}",
    "{'v':1,'outcome':'error'}",
    "{'v':1,'outcome':'odd'}",
    "no object",
    "{'v':",
    "[1]",
    "null",
    "",
    "7",
    "!:bad",
    "?:busy",
    "!TimeoutError:late",
    "!CancelledError:stop",
};
static const char *const hooks[] = {
    "",
    "{}",
    "{'envelope':{'metadata':{'k':1}}}",
    "{'envelope':{'max_agent_hops':1000,'max_llm_calls':1000,'max_iterations':1000}}",
    "{'envelope':{'outputs':{'s0':{'v':2}}}}",
    "{'envelope':{'current_stage':'s1','terminated':false}}",
    "{'output':{'v':1}}",
    "{'envelope':{'completed_stage_set':{},'failed_stages':{}}}",
};

static const char *answer(struct drive *d, const struct drive_call *c, bool *handled)
{
    struct luck *l = d->answer_self;

    *handled = true;
    if (chance(l, 12))
        return rare[pick(l, RV_COUNT(rare))];
    if (c->kind == RV_EFFECT_CALL_HOOK && c->entry == RV_NAME_POLICY)
        return chance(l, 80)   ? "{'decision':'allow'}"
               : chance(l, 50) ? "{'decision':'confirm'}"
                               : "{'decision':'deny'}";
    if (c->kind == RV_EFFECT_CALL_HOOK && c->entry == RV_NAME_ROUTE)
        return chance(l, 40)   ? "{'next':'s0'}"
               : chance(l, 50) ? "{'next':'end'}"
               : chance(l, 50) ? "{}"
                               : "{'terminate':'t'}";
    if (c->kind == RV_EFFECT_CALL_HOOK && c->entry == RV_NAME_HOOK)
        return hooks[pick(l, RV_COUNT(hooks))];
    return outputs[pick(l, RV_COUNT(outputs))];
}

/* --- batches against the definition of readiness (4.5) --- */

struct batches {
    const struct rv_pipeline *p;
    enum rv_stage_state states[MAX_STAGES];
    bool forced[MAX_STAGES], failed_now[MAX_STAGES], bounded;
};

static int stage_in(const struct rv_pipeline *p, json_object *line)
{
    const char *name = NULL;
    return rv_json_get_text(line, "stage", &name) ? rv_pipeline_stage(p, rv_str_of(name)) : -1;
}

static void end_batch(struct batches *b)
{
    for (size_t i = 0; i < b->p->n_agents; i++) {
        int to = b->p->agents[i].error_target;
        if (b->failed_now[i] && to >= 0 && b->states[to] == RV_STAGE_WAITING)
            b->forced[to] = true;
        b->failed_now[i] = false;
    }
}

static void check_batch(struct batches *b, json_object *line)
{
    json_object *names = rv_json_get_arr(line, "stages");
    int ready[MAX_STAGES];
    bool expected[MAX_STAGES] = {false};
    size_t n_expected = 0;

    end_batch(b);
    ck_assert_msg(!b->bounded, "a batch after a bound kept stages out");
    for (size_t i = 0, n = rv_pipeline_ready(b->p, b->states, ready); i < n; i++)
        expected[ready[i]] = true;
    for (size_t i = 0; i < b->p->n_agents; i++) {
        expected[i] |= b->forced[i] && b->states[i] == RV_STAGE_WAITING;
        n_expected += expected[i];
    }
    for (size_t i = 0; i < json_object_array_length(names); i++) {
        int s = rv_pipeline_stage(b->p, rv_json_str(json_object_array_get_idx(names, i)));
        ck_assert_msg(s >= 0 && expected[s], "stage %d starts but is not ready", s);
        expected[s] = false;
        b->states[s] = RV_STAGE_ACTIVE;
    }
    b->bounded = json_object_array_length(names) < n_expected;
}

static void check_batches(struct drive *d)
{
    struct batches b = {.p = d->p};
    const char *at = rv_buf_cstr(&d->lines);

    while (*at) {
        size_t len = strcspn(at, "\n");
        json_object *line = NULL;
        const char *type = NULL, *status = NULL;
        ck_assert_int_eq(rv_json_parse((rv_str){at, len}, NULL, &line, NULL), 0);
        ck_assert(rv_json_get_text(line, "type", &type));
        int s = stage_in(b.p, line);
        if (strcmp(type, "parallel_batch") == 0) {
            check_batch(&b, line);
        } else if (strcmp(type, "stage_skipped") == 0) {
            end_batch(&b);
            ck_assert_int_eq(b.states[s], RV_STAGE_WAITING);
            b.states[s] = RV_STAGE_SKIPPED;
        } else if (strcmp(type, "stage_completed") == 0) {
            ck_assert_int_eq(b.states[s], RV_STAGE_ACTIVE);
            ck_assert(rv_json_get_text(line, "status", &status));
            b.failed_now[s] = strcmp(status, "error") == 0;
            b.states[s] = b.failed_now[s] ? RV_STAGE_FAILED : RV_STAGE_COMPLETED;
        }
        json_object_put(line);
        at += len + (at[len] == '\n');
    }
    if (rv_run_status(d->run) == RV_RUN_COMPLETED)
        for (size_t i = 0; i < b.p->n_agents; i++)
            ck_assert_int_ne(b.states[i], RV_STAGE_WAITING);
}

/* --- the property --- */

static const struct drive_tool tools[] = {{"read", RV_RISK_READ_ONLY, NULL, NULL, 0},
                                          {"wipe", RV_RISK_CRITICAL, NULL, NULL, 0}};

static int64_t number(struct drive *d, const char *path)
{
    return strtoll(drive_state(d, path), NULL, 10);
}

static void resume_some(struct drive *d, struct luck *l)
{
    for (int i = 0; i < 3 && rv_run_status(d->run) == RV_RUN_INTERRUPTED; i++) {
        struct rv_response r = {.text = RV_STR_LIT("x"),
                                .has_approved = true,
                                .approved = chance(l, 80),
                                .decision = RV_STR_LIT("approve")};
        ck_assert_int_eq(drive_resume(d, &r, NULL), 0);
        ck_assert_int_le(number(d, "agent_hop_count"), d->p->max_agent_hops);
        ck_assert_int_le(number(d, "llm_call_count"), d->p->max_llm_calls);
    }
}

static void check_one(struct luck *l, const char *yaml, enum rv_run_mode mode)
{
    struct drive *d = drive_new(yaml, tools, RV_COUNT(tools));
    struct rv_proof proof = {0};

    d->opts.mode = mode;
    d->opts.max_parallel = chance(l, 30) ? (size_t)(1 + pick(l, 3)) : 0;
    d->answer = answer;
    d->answer_self = l;
    d->jitter = 1 + rv_rand_u64(l->rand) / 2;
    ck_assert_int_eq(rv_pipeline_prove(d->p, mode, &proof, NULL), 0);
    drive_run(d);
    ck_assert_msg((int64_t)d->n_visits <= proof.max_visits, "%zu visits, %d proved for\n%s\n%s", d->n_visits,
                  (int)proof.max_visits, yaml, drive_story(d));
    ck_assert_msg((int64_t)d->n_llm <= proof.max_llm_calls, "%zu calls, %d proved for\n%s\n%s", d->n_llm,
                  (int)proof.max_llm_calls, yaml, drive_story(d));
    ck_assert_int_eq(number(d, "agent_hop_count"), (int64_t)d->n_visits);
    ck_assert_int_ge(number(d, "llm_call_count"), (int64_t)d->n_llm);
    ck_assert_int_le(number(d, "llm_call_count"), d->p->max_llm_calls);
    if (mode == RV_MODE_PARALLEL)
        check_batches(d);
    if (chance(l, 10))
        ck_assert(drive_replays(d, NULL));
    resume_some(d, l);
    rv_proof_fini(&proof);
    drive_free(d);
}

START_TEST(no_run_escapes_its_bounds)
{
    struct luck l;
    rv_buf yaml = RV_BUF_INIT(1 << 16);

    l.rand = rv_rand_seeded(&l.state, 77000u + (uint64_t)_i);
    for (int i = 0; i < PIPELINES; i++) {
        write_pipeline(&l, &yaml);
        ck_assert_int_eq(rv_buf_check(&yaml, "yaml", NULL), 0);
        check_one(&l, rv_buf_cstr(&yaml), RV_MODE_SEQUENTIAL);
        check_one(&l, rv_buf_cstr(&yaml), RV_MODE_PARALLEL);
    }
    rv_buf_fini(&yaml);
}
END_TEST

TCase *random_case(void)
{
    TCase *tc = tcase_create("random");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, no_run_escapes_its_bounds, 0, SEEDS);
    return tc;
}

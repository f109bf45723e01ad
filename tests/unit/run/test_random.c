/* Thousands of random pipelines against random answers, failures, outcomes that nobody knows, crashes and people who
 * answer in any order. Whatever comes: the run ends or waits, no bound and no proof is exceeded, batches are exactly
 * the ready stages, numbers go on across pauses, and a recording replays. The driver checks order, saving and loading.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/analysis/analysis.h"
#include "tests/kit/drive.h"
#include "tests/unit/run/suites.h"

#define SEEDS      10
#define MAX_STAGES 8
#define BEGINS                                                                                                         \
    "{'envelope_id':'env_1','outputs':{'plan':{'steps':[{'tool':'read'},{'tool':'wipe','parameters':{'n':1}},"         \
    "{'tool':'wipe'}]}}}"

struct luck {
    struct rv_rand_state state;
    struct rv_rand rand;
    int n_answered, n_queued, n_unknown, n_crashes; /* a test that meets none of these proves nothing */
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
    bool llm = chance(l, 45), tools = !llm && chance(l, 55);

    rv_buf_printf(b, "  - name: s%d\n    stage_order: %d\n", stage, chance(l, 90) ? stage : 0);
    if (llm)
        rv_buf_printf(b, "    has_llm: true\n    model_role: r\n    max_retries: %d\n", pick(l, 4));
    if (tools)
        rv_buf_printf(b, "    has_tools: true\n    tool_access: %s\n    max_retries: %d\n",
                      chance(l, 70) ? "all" : "read", pick(l, 2));
    if (tools && chance(l, 40)) /* else it has the plan that all runs begin with */
        rv_buf_printf(b, "    plan_from: s%d\n", pick(l, n));
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
    if (llm && chance(l, 25))
        rv_buf_puts(b, "    before_model: [x.bm, x.any]\n    after_model: x.any\n");
    if (tools && chance(l, 35))
        rv_buf_puts(b, "    before_tool: x.bt\n    after_tool: [x.at, x.any]\n");
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
    "{'v':1,'outcome':'replan','verdict':'advance'}",
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

static const char *const around[] = {
    "",
    "{'action':'continue'}",
    "{'action':'replace','request':{'prompt':'other'}}",
    "{'action':'replace','reply':{'output':{'v':2}}}",
    "{'action':'replace','arguments':{'k':1}}",
    "{'action':'replace','result':{'data':{'k':1}}}",
    "{'action':'answer','reply':{'output':{'v':3}}}",
    "{'action':'answer','result':{'data':{}}}",
    "{'action':'block','reason':'no'}",
};

/* Most that is said of a call fits the place. */
static const char *around_call(struct luck *l, const char *name)
{
    if (chance(l, 40))
        return "";
    if (chance(l, 8))
        return around[pick(l, RV_COUNT(around))];
    if (strcmp(name, "x.bm") == 0)
        return chance(l, 60) ? around[2] : around[6];
    if (strcmp(name, "x.bt") == 0)
        return chance(l, 60) ? around[4] : chance(l, 50) ? around[7] : around[8];
    return strcmp(name, "x.at") == 0 ? around[5] : around[1];
}

static const char *answer(struct drive *d, const struct drive_call *c, bool *handled)
{
    struct luck *l = d->answer_self;

    *handled = true;
    if (c->kind == RV_EFFECT_CALL_TOOL && chance(l, 15))
        return "#";
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
    if (c->kind == RV_EFFECT_CALL_HOOK && c->entry == RV_NAME_HOOK && !strstr(c->name, "x.p"))
        return around_call(l, c->name);
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
    return rv_json_get_text(line, "stage", &name) ? rv_pipeline_find_stage(p, rv_str_of(name)) : -1;
}

static void end_batch(struct batches *b)
{
    for (size_t i = 0; i < b->p->n_agents; i++) {
        int to = b->p->agents[i].routing.error_target;
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
    for (size_t i = 0, n = rv_pipeline_collect_ready(b->p, b->states, ready); i < n; i++)
        expected[ready[i]] = true;
    for (size_t i = 0; i < b->p->n_agents; i++) {
        expected[i] |= b->forced[i] && b->states[i] == RV_STAGE_WAITING;
        n_expected += expected[i];
    }
    for (size_t i = 0; i < json_object_array_length(names); i++) {
        int s = rv_pipeline_find_stage(b->p, rv_json_str(json_object_array_get_idx(names, i)));
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

/* --- pauses and crashes --- */

static void check_bounds(struct drive *d)
{
    ck_assert_int_eq(number(d, "agent_hop_count"), (int64_t)d->n_visits);
    ck_assert_int_ge(number(d, "llm_call_count"), (int64_t)d->n_llm);
    ck_assert_int_le(number(d, "agent_hop_count"), d->p->max_agent_hops);
    ck_assert_int_le(number(d, "llm_call_count"), d->p->max_llm_calls);
    ck_assert_int_le(number(d, "iteration"), d->p->max_iterations + 1); /* the loop that is too many ends the run */
}

/* Some of it in another process. */
static void pump_with_crashes(struct drive *d, struct luck *l)
{
    while (!d->finished) {
        if (chance(l, 10)) {
            drive_recover(d, pick(l, 20000000));
            l->n_crashes++;
        }
        drive_pump_one(d);
    }
}

/* Where the state has what waits: the pending one or one of the queue. */
static const char *some_question(struct drive *d, struct luck *l, char place[40])
{
    int n = (int)number(d, "metadata.queued_interrupts.n"), i = pick(l, n + 1);

    if (i == 0)
        return "interrupt";
    snprintf(place, 40, "metadata.queued_interrupts.%d", i - 1);
    return place;
}

/* What a person might say to the question there; the texts live in `id`. */
static struct rv_response some_answer(struct drive *d, struct luck *l, const char *place, char id[64])
{
    static const char *const words[2][3] = {{"approve", "reject", "modify"}, {"happened", "not_happened", "fail"}};
    char path[80];

    snprintf(path, sizeof path, "%s.data.reason", place);
    bool asks_outcome = strcmp(drive_state(d, path), "\"outcome_unknown\"") == 0;
    l->n_unknown += asks_outcome;
    l->n_answered++;
    l->n_queued += strcmp(place, "interrupt") != 0;
    snprintf(path, sizeof path, "%s.id", place);
    const char *text = drive_state(d, path);
    snprintf(id, 64, "%.*s", (int)strlen(text) - 2, text + 1);
    struct rv_response r = {.text = RV_STR_LIT("x"),
                            .has_approved = true,
                            .approved = chance(l, 85),
                            .decision = rv_str_of(words[asks_outcome][pick(l, 3)]),
                            .interrupt_id = rv_str_of(id)};
    if (strcmp(place, "interrupt") == 0 && chance(l, 50))
        r.interrupt_id = (rv_str){NULL, 0};
    return r;
}

/* Answered in any order, in this run or in one made from its state; *from becomes the state it was made from. */
static void answer_some(struct drive *d, struct luck *l, char **from)
{
    for (int i = 0; i < 8 && rv_run_status(d->run) == RV_RUN_INTERRUPTED; i++) {
        char place[40], id[64];
        struct rv_response r = some_answer(d, l, some_question(d, l, place), id);
        const struct rv_response wrong = {.text = RV_STR_LIT("x"), .interrupt_id = RV_STR_LIT("int_of_nobody")};
        if (chance(l, 20))
            ck_assert_int_eq(drive_go_on(d, &wrong, NULL), RV_E_NOT_FOUND);
        if (chance(l, 5)) {
            drive_cancel(d);
            ck_assert_int_eq(rv_run_status(d->run), RV_RUN_CANCELLED);
            break;
        }
        if (chance(l, 40)) {
            free(*from);
            *from = drive_dump(rv_run_envelope(d->run));
            drive_reload(d);
        }
        const struct rv_event ev = {.kind = RV_EVENT_ANSWER, .now_us = d->now_us, .response = r};
        drive_must_step(d, &ev);
        pump_with_crashes(d, l);
        check_bounds(d);
    }
}

static void check_one(struct luck *l, const char *yaml, enum rv_run_mode mode)
{
    struct drive *d = drive_new(yaml, tools, RV_COUNT(tools));
    struct rv_proof proof = {0};
    char *from = rv_str_dup(RV_STR_LIT(BEGINS));

    drive_envelope(d, from);
    d->keeps_numbers = true;
    d->opts.mode = mode;
    d->opts.max_parallel = chance(l, 30) ? (size_t)(1 + pick(l, 3)) : 0;
    d->answer = answer;
    d->answer_self = l;
    d->jitter = 1 + rv_rand_u64(l->rand) / 2;
    ck_assert_int_eq(rv_pipeline_prove(d->p, mode, &proof, NULL), 0);
    drive_start(d);
    pump_with_crashes(d, l);
    ck_assert_msg((int64_t)d->n_visits <= proof.max_visits, "%zu visits, %d proved for\n%s\n%s", d->n_visits,
                  (int)proof.max_visits, yaml, drive_story(d));
    ck_assert_msg((int64_t)d->n_llm <= proof.max_llm_calls, "%zu calls, %d proved for\n%s\n%s", d->n_llm,
                  (int)proof.max_llm_calls, yaml, drive_story(d));
    check_bounds(d);
    ck_assert(rv_run_status(d->run) != RV_RUN_INTERRUPTED || rv_pipeline_max_answers(d->p) > 0);
    if (mode == RV_MODE_PARALLEL)
        check_batches(d);
    answer_some(d, l, &from);
    if (chance(l, 10))
        ck_assert(drive_replays(d, from));
    free(from);
    rv_proof_fini(&proof);
    drive_free(d);
}

/* Proves 7.6/never: Random pipelines with outputs chosen to hurt never exceed a bound or its proof */
START_TEST(no_run_escapes_its_bounds)
{
    struct luck l = {0};
    rv_buf yaml = RV_BUF_INIT(1 << 16);
    int n = rv_kit_sample(240, 1250);

    l.rand = rv_rand_seeded(&l.state, 77000u + (uint64_t)_i);
    for (int i = 0; i < n; i++) {
        write_pipeline(&l, &yaml);
        ck_assert_int_eq(rv_buf_check(&yaml, "yaml", NULL), 0);
        check_one(&l, rv_buf_cstr(&yaml), RV_MODE_SEQUENTIAL);
        check_one(&l, rv_buf_cstr(&yaml), RV_MODE_PARALLEL);
    }
    ck_assert_msg(l.n_answered > n / 4 && l.n_queued >= n / 100 - 1 && l.n_unknown >= n / 50 && l.n_crashes > n / 3,
                  "%d answers, %d queued, %d unknown, %d crashes", l.n_answered, l.n_queued, l.n_unknown, l.n_crashes);
    rv_buf_fini(&yaml);
}
END_TEST

TCase *random_case(void)
{
    TCase *tc = tcase_create("random");

    tcase_add_loop_test(tc, no_run_escapes_its_bounds, 0, SEEDS);
    return tc;
}

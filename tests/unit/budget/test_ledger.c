/* A thousand runs at once in one engine, with budgets, models that fail in every way and tell of their tokens or not,
 * and a process that dies again and again. Whatever comes: no run spends more than its budget, nothing stays set aside,
 * and what the observable events say adds up to what the run's state says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/engine.h"
#include "coreengine/run/run_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/budget/suites.h"

#define RUNS     1000
#define SEEDS    3
#define LIVES    5 /* of the process; the last one does not die */
#define START_US INT64_C(1700000000000000)
#define GAP_US   INT64_C(3600000000) /* from one life to the next: longer than any lease */
#define MAX_IN   1000                /* tokens of a request: its hidden ones alone are more */
#define MAX_OUT  200                 /* max_tokens of every stage */

static const struct rv_store_scope all = {NULL, NULL};

#define MODELS                                                                                                         \
    "models: {r: {model: 'openai:gpt-x', price: {input: 1, output: 2, cached: 0.5}, fallback: [f]}, f: {model: "       \
    "'openai:gpt-y', price: {input: 3, output: 4}}}\n"
#define STAGE "has_llm: true, model_role: r, max_tokens: 200, has_tools: true, tool_access: all"
#define TEXT  STAGE ", output_mode: text"

/* In micro-USD a call is at most about 6,000: some runs can pay all they ask for, some none. */
static const struct {
    const char *budget, *rest;
} pipelines[] = {
    {"0.05", "agents: [{name: a, " TEXT ", max_retries: 2, default_next: b}, {name: b, " TEXT ", default_next: end}]"},
    {"0.02", "agents: [{name: a, " TEXT ", max_retries: 2, error_next: b, default_next: b}, {name: b, " TEXT "}]"},
    {"0.03", "default_run_mode: parallel\nagents: [{name: a, " TEXT ", max_retries: 1}, {name: b, " TEXT
             ", error_next: d}, {name: c, " TEXT "}, {name: d, requires: [a, b], " TEXT "}]"},
    {"0.01", "default_run_mode: parallel\nagents: [{name: a, " TEXT ", error_next: d}, {name: b, " TEXT
             ", max_retries: 2, error_next: d}, {name: d}]"},
    {"0.004", "agents: [{name: a, " TEXT ", max_retries: 2}]"},
    {"1", "max_llm_calls: 5\nagents: [{name: a, " TEXT ", max_retries: 3, default_next: a}]"},
    {"0.04", "agents: [{name: a, " STAGE ", output_schema: {type: object, required: [v]}, "
             "max_retries: 1, max_repairs: 3}]"},
};
#define KINDS RV_COUNT(pipelines)

struct world {
    struct rv_rand_state state;
    struct rv_rand rand;
    struct rv_pipeline *pipelines[KINDS];
    rv_store *store;
    int64_t dies_in; /* writes until the process dies; < 0: it does not */
    bool is_dead;
    size_t n_deaths, n_ended, n_over_budget, n_tool_rounds, n_estimated, n_made_again;
};

struct life {
    char id[64];
    rv_script *script;
    rv_journal *journal;
    rv_exec *exec;
    char *text; /* of its script */
    bool is_over;
};

static int pick(struct world *w, int n)
{
    return (int)rv_rand_below(w->rand, (uint64_t)n);
}

/* --- what models say --- */

static void write_usage(struct world *w, rv_buf *b)
{
    int input = pick(w, MAX_IN + 1);

    if (pick(w, 5) == 0)
        return; /* not told */
    rv_buf_printf(b, ", usage: {input_tokens: %d, output_tokens: %d, cached_tokens: %d}", input, pick(w, MAX_OUT + 1),
                  pick(w, input + 1));
}

static void write_error(struct world *w, rv_buf *b)
{
    enum rv_llm_error kind = (enum rv_llm_error)pick(w, RV_N_LLM_ERROR);

    if (kind == RV_LLM_ERROR_CANCELLED) /* nobody asked for that */
        kind = RV_LLM_ERROR_OVERLOADED;
    if (pick(w, 3) == 0)
        rv_buf_puts(b, ", text: half");
    rv_buf_printf(b, ", error: {kind: %s%s}", rv_llm_error_text(kind), pick(w, 2) ? ", billed: true" : "");
}

static void write_entry(struct world *w, rv_buf *b)
{
    int what = pick(w, 10);

    rv_buf_printf(b, "{delay_ms: %d", pick(w, 4) ? pick(w, 2000) : pick(w, 200000)); /* some come too late */
    if (what < 3) {
        write_error(w, b);
    } else if (what < 7) {
        rv_buf_puts(b, ", tool_calls: [");
        for (int n = 1 + pick(w, 3); n > 0; n--)
            rv_buf_printf(b, "{name: %s}%s", pick(w, 4) ? "look" : "gone", n > 1 ? ", " : "");
        rv_buf_puts(b, "]");
    } else if (what < 9) {
        rv_buf_puts(b, ", json: {v: 1}");
    } else {
        rv_buf_printf(b, ", text: '%s', finish_reason: %s", pick(w, 2) ? "no" : "", pick(w, 2) ? "length" : "pause");
    }
    write_usage(w, b);
    if (what >= 3 && pick(w, 5) == 0)
        rv_buf_puts(b, ", answered_by: f");
    rv_buf_puts(b, "}");
}

static char *make_script(struct world *w)
{
    rv_buf b = RV_BUF_INIT(1 << 20);

    rv_buf_puts(&b, "models:\n");
    for (char stage = 'a'; stage <= 'd'; stage++) {
        rv_buf_printf(&b, "  %c: [", stage);
        for (int n = 1 + pick(w, 5); n > 0; n--) {
            write_entry(w, &b);
            rv_buf_puts(&b, n > 1 ? ", " : "]\n");
        }
    }
    rv_buf_printf(&b, "tools: {look: [{result: {n: 1}, delay_ms: %d}, {error: missing}, {result: {}}]}\n",
                  pick(w, 900));
    return rv_buf_steal(&b, NULL);
}

/* --- lives of the process --- */

static int write_fails(void *self, const char *point, rv_err **err)
{
    struct world *w = self;

    (void)point;
    if (!w->is_dead && w->dies_in >= 0 && w->dies_in-- == 0) {
        w->is_dead = true;
        w->n_deaths++;
    }
    return w->is_dead ? RV_FAIL(err, RV_E_IO, "the process is dead") : 0;
}

static void must(int rc, rv_err *err, const char *what)
{
    char *text = rc < 0 ? rv_kit_err_take(err) : NULL;
    ck_assert_msg(rc == 0, "%s: %s", what, text);
}

static void load_script(struct life *l)
{
    rv_findings *f = rv_findings_new();
    rv_err *err = NULL;

    must(rv_script_parse(rv_str_of(l->text), "s.yaml", f, &l->script, &err), err, "script");
    ck_assert_msg(l->script && rv_findings_n_errors(f) == 0, "%s", l->text);
    rv_findings_free(f);
}

static void create(struct world *w, struct life *l, const struct rv_pipeline *p, rv_envelope *env)
{
    char hash[RV_STORE_HASH_MAX];
    bool flags[8] = {false};
    rv_err *err = NULL;
    struct rv_journal_start start = {.pipeline = p, .env = env, .owner = "test/1", .bundle = hash, .now_us = START_US};

    must(rv_store_put_blob(w->store, RV_STR_LIT("{}"), hash, &err), err, "blob");
    start.begin = (struct rv_journal_begin){
        .mode = RV_UNSET, .has_script = true, .scripted = flags, .max_parallel = RV_ENGINE_MAX_PARALLEL};
    must(rv_journal_create(w->store, &start, &l->journal, &err), err, "journal");
}

/* Begin the run, or go on with it. */
static void begin(struct world *w, rv_engine *e, struct life *l, const struct rv_pipeline *p, bool is_first,
                  int64_t now_us)
{
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    struct rv_run_row row = {0};
    rv_err *err = NULL;

    load_script(l);
    x.pipeline = p;
    x.script = l->script;
    if (is_first) {
        const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("what is it?")};
        rv_envelope *env = NULL;
        must(rv_envelope_new(&seed, w->rand, now_us, &env, &err), err, "envelope");
        snprintf(l->id, sizeof l->id, "%s", rv_envelope_fields(env)->envelope_id);
        create(w, l, p, env);
        x.journal = l->journal;
        must(rv_engine_start(e, &x, env, NULL, &l->exec, &err), err, "start");
        return;
    }
    must(rv_store_get_run(w->store, &all, l->id, &row, &err), err, "row");
    if (row.owner)
        must(rv_store_release(w->store, l->id, row.fence, &err), err, "release");
    rv_run_row_fini(&row);
    int opened = rv_journal_open(w->store, &all, l->id, &(struct rv_journal_claim){.owner = "test/1", .now_us = now_us},
                                 &l->journal, &err);
    if (opened == RV_E_STATE) { /* it was over, and died before anybody heard */
        l->is_over = true;
        rv_err_free(err);
        return;
    }
    must(opened, err, "open");
    x.journal = l->journal;
    int rc = rv_engine_continue(e, &x, &all, NULL, &l->exec, &err);
    if (rc == RV_E_STATE) { /* it was over, and died before anybody heard */
        l->is_over = true;
        rv_err_free(err);
    } else {
        must(rc, err, "continue");
    }
}

static void live(struct world *w, struct life *lives, int n)
{
    const int64_t now_us = START_US + n * GAP_US;
    const struct rv_engine_opts opts = {
        .workers = 1, .virtual_time = true, .virtual_start_us = now_us, .store = w->store, .owner = "test/1"};
    rv_engine *e = NULL;
    rv_err *err = NULL;

    must(rv_engine_new(&opts, &e, &err), err, "engine");
    for (int i = 0; i < RUNS; i++)
        if (!lives[i].is_over)
            begin(w, e, &lives[i], w->pipelines[(size_t)i % KINDS], n == 0, now_us);
    w->is_dead = false;
    w->dies_in = n + 1 < LIVES ? 300 + pick(w, 3500) : -1;
    for (int i = 0; i < RUNS; i++) {
        struct life *l = &lives[i];
        if (l->exec && !l->is_over) {
            int rc = rv_engine_wait(e, l->exec, &err);
            ck_assert_msg(rc == 0 || w->is_dead, "run %d: %s\n%s", i, rc < 0 ? rv_kit_err_take(err) : "", l->text);
            rv_err_free(err);
            err = NULL;
            l->is_over = rc == 0;
        }
    }
    for (int i = 0; i < RUNS; i++) {
        rv_exec_free(lives[i].exec);
        lives[i].exec = NULL;
    }
    w->is_dead = false;
    w->dies_in = -1;
    rv_engine_free(e);
    for (int i = 0; i < RUNS; i++) {
        rv_journal_free(lives[i].journal);
        rv_script_free(lives[i].script);
        lives[i].journal = NULL;
        lives[i].script = NULL;
    }
}

/* --- the books --- */

struct books {
    int64_t told, by_stage; /* micro-USD */
    size_t n_results, n_lost;
};

static void read_line(struct books *b, rv_str line)
{
    json_object *json = NULL, *usage;
    const char *type = NULL;
    int64_t cost = 0;

    must(rv_json_parse(line, NULL, &json, NULL), NULL, "line");
    ck_assert(rv_json_get_text(json, "type", &type));
    bool has_cost = rv_json_get_int(json, "cost_micro_usd", &cost);
    if (strcmp(type, "llm_result") == 0 || strcmp(type, "warning") == 0) {
        b->told += has_cost ? cost : 0;
        b->n_lost += has_cost && type[0] == 'w';
    }
    usage = strcmp(type, "stage_completed") == 0 ? rv_json_get_obj(json, "usage") : NULL;
    if (usage && rv_json_get_int(usage, "cost_micro_usd", &cost))
        b->by_stage += cost;
    json_object_put(json);
}

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    (void)record;
    (void)err;
    for (size_t i = 0; ev && i < effects->n; i++)
        if (effects->items[i].kind == RV_EFFECT_EMIT)
            read_line(self, rv_effect_text(effects, &effects->items[i]));
    if (ev && run->pipeline->has_budget) { /* at every moment */
        ck_assert_int_ge(run->shared.reserved_micro_usd, 0);
        ck_assert_int_le(run->shared.spent_micro_usd + run->shared.reserved_micro_usd, run->pipeline->budget_micro_usd);
    }
    return 0;
}

static void audit(struct world *w, struct life *l, const struct rv_pipeline *p)
{
    const struct rv_catalog *under = &rv_catalog_empty;
    struct books b = {0};
    struct rv_replayed r;
    rv_err *err = NULL;

    load_script(l);
    const struct rv_catalog catalog = rv_script_catalog(l->script, under);
    const struct rv_replay_opts opts = {.pipeline = p, .catalog = &catalog, .on_step = on_step, .self = &b};
    must(rv_journal_replay(w->store, &all, l->id, &opts, &r, &err), err, "replay");
    const struct rv_envelope_fields *f = rv_envelope_fields(r.run->env);
    ck_assert_msg(rv_run_is_finished(r.run) && rv_run_status(r.run) != RV_RUN_INTERRUPTED, "%s\n%s",
                  rv_run_status_text(rv_run_status(r.run)), l->text);
    ck_assert_int_eq(r.run->shared.reserved_micro_usd, 0);
    ck_assert_int_eq(r.run->shared.spent_micro_usd, f->usage.cost_micro_usd);
    ck_assert_int_le(f->usage.cost_micro_usd, p->budget_micro_usd);
    ck_assert_int_eq(b.told, f->usage.cost_micro_usd);
    ck_assert_int_eq(b.by_stage, f->usage.cost_micro_usd);
    w->n_ended++;
    w->n_over_budget += f->terminal_reason == RV_REASON_BUDGET;
    w->n_estimated += f->usage.estimated;
    w->n_made_again += b.n_lost;
    w->n_tool_rounds += f->usage.calls > 1;
    rv_replayed_fini(&r);
    rv_script_free(l->script);
    l->script = NULL;
}

/* Proves 12.4/books: Under a thousand runs with failures and deaths by chance none spends more than its budget, and
 * the books balance */
START_TEST(no_run_spends_more_than_its_budget_and_the_books_balance)
{
    struct world w = {.dies_in = -1};
    struct life *lives = calloc(RUNS, sizeof *lives);
    rv_findings *findings = rv_findings_new();
    rv_err *err = NULL;

    w.rand = rv_rand_seeded(&w.state, 100 + (uint64_t)_i);
    must(rv_store_open("memory:", NULL, &w.store, &err), err, "store");
    rv_store_set_faults(w.store, (struct rv_store_faults){write_fails, &w});
    for (size_t k = 0; k < KINDS; k++) {
        rv_buf yaml = RV_BUF_INIT(1 << 16);
        rv_buf_printf(&yaml, "name: t\n" MODELS "budget: {usd: %s}\n%s\n", pipelines[k].budget, pipelines[k].rest);
        must(rv_pipeline_parse(rv_buf_str(&yaml), "p.yaml", ".", findings, &w.pipelines[k], &err), err, "pipeline");
        ck_assert_msg(w.pipelines[k] && w.pipelines[k]->is_sound, "%s", rv_buf_cstr(&yaml));
        rv_buf_fini(&yaml);
    }
    for (int i = 0; i < RUNS; i++)
        lives[i].text = make_script(&w);
    for (int n = 0; n < LIVES; n++)
        live(&w, lives, n);
    for (int i = 0; i < RUNS; i++)
        audit(&w, &lives[i], w.pipelines[(size_t)i % KINDS]);
    ck_assert_uint_eq(w.n_ended, RUNS);
    ck_assert_uint_ge(w.n_deaths, 3); /* a test that meets none of these proves nothing */
    ck_assert_uint_gt(w.n_over_budget, RUNS / 20);
    ck_assert_uint_gt(w.n_tool_rounds, RUNS / 5);
    ck_assert_uint_gt(w.n_estimated, RUNS / 20);
    ck_assert_uint_gt(w.n_made_again, 100);
    for (int i = 0; i < RUNS; i++)
        free(lives[i].text);
    for (size_t k = 0; k < KINDS; k++)
        rv_pipeline_free(w.pipelines[k]);
    rv_findings_free(findings);
    rv_store_close(w.store);
    free(lives);
}
END_TEST

TCase *ledger_case(void)
{
    TCase *tc = tcase_create("ledger");

    tcase_add_loop_test(tc, no_run_spends_more_than_its_budget_and_the_books_balance, 0,
                        SEEDS / (int)rv_kit_stride(SEEDS));
    return tc;
}

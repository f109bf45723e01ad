/* Every allocation of writing, taking over and replaying a journal fails once: no crash, no leak, RV_E_NOMEM. */
#include <check.h>
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"
#include "tests/kit/catalog.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define T0 INT64_C(1700000000000000)

/* Stages side by side that both pause; a plan of tools. */
static const char yaml[] =
    "name: t\ndefault_run_mode: parallel\nmodels: {r: scripted}\nagents:\n"
    "  - {name: a, stage_order: 1, has_llm: true, model_role: r, output_key: plan, max_retries: 1}\n"
    "  - {name: b, stage_order: 2, has_llm: true, model_role: r}\n"
    "  - {name: g, stage_order: 3, requires: [a], has_tools: true, tool_access: all}\n"
    "  - {name: h, stage_order: 4, requires: [a], has_tools: true, tool_access: all}\n";

static const struct rv_tool_info tools[] = {
    {.name = "read", .description = "", .risk = RV_RISK_READ_ONLY, .effect = RV_UNSET, .category = RV_UNSET},
    {.name = "wipe", .description = "", .risk = RV_RISK_DESTRUCTIVE, .effect = RV_UNSET, .category = RV_UNSET},
};
static struct rv_kit_tools tool_list = {tools, RV_COUNT(tools)};
static const struct rv_catalog catalog = RV_KIT_CATALOG(&tool_list);
static const struct rv_store_scope scope = {0};
static struct rv_pipeline *pipeline;
static int n_steps, n_pauses; /* of the last scenario: proves that it got somewhere */

#define MAX_CALLS 64
struct world {
    rv_store *store;
    rv_run *run;
    rv_journal *j;
    struct rv_effects fx;
    struct rv_effect calls[MAX_CALLS];
    size_t n_calls, next;
    int64_t now_us;
    char id[64];
};

static int step(struct world *w, const struct rv_event *ev, rv_err **err)
{
    rv_effects_clear(&w->fx);
    int rc = rv_run_step(w->run, ev, &w->fx, err);
    if (rc == 0)
        rc = rv_journal_step(w->j, ev, &w->fx, w->run, err);
    n_steps += rc == 0;
    for (size_t i = 0; rc == 0 && i < w->fx.n && w->n_calls < MAX_CALLS; i++)
        if (journal_effect_is_call(&w->fx.items[i]) || w->fx.items[i].kind == RV_EFFECT_ARM_TIMER)
            w->calls[w->n_calls++] = w->fx.items[i];
    return rc;
}

static int answer_call(struct world *w, rv_err **err)
{
    const struct rv_effect *c = &w->calls[w->next++];
    struct rv_event ev = {.call_id = c->call_id, .now_us = w->now_us += 3000000};

    if (c->kind == RV_EFFECT_ARM_TIMER) {
        ev.kind = RV_EVENT_TIMER;
    } else if (c->kind == RV_EFFECT_CALL_TOOL) {
        ev.kind = RV_EVENT_TOOL_DONE;
        ev.reply = RV_STR_LIT("{\"data\":[1],\"status\":\"ok\"}");
    } else {
        ev.kind = RV_EVENT_LLM_DONE;
        ev.failed = c->call_id == 1;
        ev.retryable = true;
        ev.error = RV_STR_LIT("busy \xff");
        ev.reply = RV_STR_LIT("{\"steps\":[{\"tool\":\"read\",\"parameters\":{\"x\":1}},{\"tool\":\"wipe\"}]}");
    }
    return step(w, &ev, err);
}

/* Another process takes the run and answers. */
static int answer_pause(struct world *w, rv_err **err)
{
    struct rv_event ev = {.kind = RV_EVENT_ANSWER,
                          .now_us = w->now_us += 1000,
                          .response = {.has_approved = true, .approved = true, .text = RV_STR_LIT("yes")}};

    rv_journal_free(w->j);
    w->j = NULL;
    n_pauses++;
    int rc = rv_journal_open(w->store, &scope, w->id, &(struct rv_journal_claim){.owner = "there", .now_us = w->now_us},
                             &w->j, err);
    return rc == 0 ? step(w, &ev, err) : rc;
}

static int begin(struct world *w, rv_err **err)
{
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("hi")};
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    char hash[RV_STORE_HASH_MAX];
    struct rv_rand_state bits;
    rv_envelope *env = NULL;
    const bool scripted[8] = {false};
    struct rv_journal_start start = {.bundle = hash,
                                     .pipeline = pipeline,
                                     .begin = {.mode = RV_MODE_PARALLEL, .scripted = scripted},
                                     .owner = "here",
                                     .now_us = T0};

    int rc = rv_store_open("memory:", NULL, &w->store, err);
    if (rc == 0)
        rc = rv_store_put_blob(w->store, RV_STR_LIT("b"), hash, err);
    if (rc == 0)
        rc = rv_envelope_new(&seed, rv_rand_seeded(&bits, 3), T0, &env, err);
    if (rc < 0)
        return rc;
    memcpy(w->id, rv_envelope_fields(env)->envelope_id, strlen(rv_envelope_fields(env)->envelope_id) + 1);
    start.env = env;
    rc = rv_journal_create(w->store, &start, &w->j, err);
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    opts.mode = RV_MODE_PARALLEL;
    return rv_run_new(pipeline, &catalog, &opts, env, &w->run, err);
}

static int show(void *self, const struct rv_record *r, rv_err **err)
{
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);

    (void)self;
    rv_record_write_json(r, &w);
    int rc = rv_buf_check(&b, "record", err);
    rv_buf_fini(&b);
    return rc;
}

static int replay(struct world *w, bool from_snapshot, rv_err **err)
{
    const struct rv_replay_opts opts = {.pipeline = pipeline, .catalog = &catalog, .from_snapshot = from_snapshot};
    struct rv_replayed r;

    int rc = rv_journal_replay(w->store, &scope, w->id, &opts, &r, err);
    if (rc == 0)
        rv_replayed_fini(&r);
    return rc;
}

static int count_takeovers(struct world *w, rv_err **err)
{
    struct rv_run_row row = {0};
    int64_t n = 0;

    int rc = rv_store_get_run(w->store, &scope, w->id, &row, err);
    if (rc == 0)
        rc = rv_journal_count_takeovers(w->store, &scope, &row, &n, err);
    rv_run_row_fini(&row);
    return rc;
}

static int tell(struct world *w, rv_err **err)
{
    struct rv_event ev = {.kind = RV_EVENT_START, .now_us = w->now_us = T0};

    int rc = begin(w, err);
    if (rc == 0)
        rc = step(w, &ev, err);
    while (rc == 0 && w->n_calls < MAX_CALLS) {
        if (rv_run_status(w->run) == RV_RUN_INTERRUPTED && n_pauses < 3)
            rc = answer_pause(w, err);
        else if (!rv_run_is_finished(w->run) && w->next < w->n_calls)
            rc = answer_call(w, err);
        else
            break;
    }
    return rc;
}

static int scenario(void)
{
    struct world w = {0};
    struct rv_journal_begin b = {0};
    rv_err *err = NULL;

    n_steps = n_pauses = 0;
    int rc = tell(&w, &err);
    if (rc == 0)
        rc = replay(&w, false, &err);
    if (rc == 0)
        rc = journal_snapshot_put(
            w.store, &scope, &(struct snapshot_new){w.id, 1 + n_pauses, rv_journal_seq(w.j), w.now_us, w.run}, &err);
    if (rc == 0)
        rc = replay(&w, true, &err);
    if (rc == 0)
        rc = rv_journal_read_begin(w.store, &scope, w.id, pipeline, &b, &err);
    if (rc == 0)
        rv_journal_begin_fini(&b);
    if (rc == 0)
        rc = count_takeovers(&w, &err);
    if (rc == 0)
        rc = rv_store_read(w.store, &scope, &(struct rv_record_range){.run = w.id, .from = 1}, show, NULL, &err);
    rv_journal_free(w.j);
    rv_run_free(w.run);
    rv_effects_fini(&w.fx);
    rv_store_close(w.store);
    rv_err_free(err);
    return rc;
}

START_TEST(every_allocation_may_fail_once)
{
    rv_findings *findings = rv_findings_new();
    size_t n, n_survived = 0;

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(yaml), "t.yaml", ".", findings, &pipeline, NULL), 0);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(scenario(), 0); /* also sets up what libraries keep */
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 200 + 1);
    ck_assert_int_ge(n_pauses, 2);
    ck_assert_int_ge(n_steps, 10);
    for (n = rv_kit_first(step);; n += step) {
        rv_fault_arm(n);
        int rc = scenario();
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %d", n, rc);
        n_survived += rc == 0; /* SQLite does without some */
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu leaks %ld", n, rv_fault_balance());
    }
    ck_assert_msg(!rv_fault_works() || n_survived < n / 10, "%zu allocations, %zu done without", n, n_survived);
    rv_pipeline_free(pipeline);
    rv_findings_free(findings);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_journal");
    TCase *tc = tcase_create("journal");

    tcase_add_test(tc, every_allocation_may_fail_once);
    suite_add_tcase(s, tc);
    return rv_kit_run(s);
}

/* Which pipelines a run may go on with, and what is said when it may not. */
#include "tests/unit/bundle/world.h"

#include <stdlib.h>
#include <string.h>

/* The run of all tests here: it stands at `work`, with a call that waits for approval. */
static const char state_text[] =
    "{'current_stage': 'work', 'stage_order': ['plan', 'work', 'check'], 'iteration': 2, 'llm_call_count': 4,"
    " 'agent_hop_count': 6, 'active_stages': {'work': true}, 'completed_stage_set': {'plan': true},"
    " 'failed_stages': {'try': 'it broke'}, 'stage_visits': {'plan': 3, 'work': 3},"
    " 'edge_traversals': [{'from': 'work', 'to': 'plan', 'count': 2}], 'interrupt_pending': true,"
    " 'interrupt': {'kind': 'confirmation', 'id': 'int_1', 'message': 'may it?', 'data': {'stage': 'work'},"
    "               'created_at': '2026-01-01T00:00:00Z'},"
    " 'metadata': {'queued_interrupts': [{'kind': 'clarification', 'id': 'int_2', 'stage': 'check'}]},"
    " 'suspended': {'work': {'kind': 'confirmation_gate', 'at': 1, 'steps': [{'tool': 'x'}, {'tool': 'wipe'}],"
    "                        'results': []},"
    "               'check': {'kind': 'policy', 'policy': 'guard.no_secrets'}}}";

#define PLAN  "  - {name: plan, default_next: work}\n"
#define WORK  "  - {name: work, has_tools: true, tool_access: all, allowed_tools: [wipe], default_next: check}\n"
#define LAST  "  - {name: work, has_tools: true, tool_access: all, allowed_tools: [wipe]}\n"
#define CHECK "  - {name: check, has_policies: true, policies: [guard.no_secrets]}\n"
#define TRY   "  - {name: try}\n"
#define ALL   "agents:\n" PLAN WORK CHECK TRY
#define STILL "max_llm_calls: 4\nmax_agent_hops: 6\nmax_iterations: 2\n"

static const struct {
    const char *pipeline, *says; /* NULL: it fits */
} cases[] = {
    {STILL ALL, NULL},
    {STILL ALL "  - {name: more}\nprompts: {p: new}\n", NULL},
    {STILL ALL "edge_limits: [{from: work, to: plan, max_count: 2}]\n", NULL},
    {STILL "agents:\n" WORK CHECK TRY, "stage \"plan\", which is completed, is gone"},
    {STILL "agents:\n" PLAN WORK CHECK, "stage \"try\", which failed, is gone"},
    {STILL "agents:\n" PLAN LAST TRY,
     "stage \"check\", which has suspended work, is gone; stage \"check\", which asked interrupt \"int_2\", is gone"},
    {STILL "agents:\n  - {name: plan}\n" CHECK TRY,
     "stage \"work\", where the run stands, is gone; stage \"work\", which is active, is gone; stage \"work\", which "
     "has suspended work, is gone; stage \"work\", which asked interrupt \"int_1\", is gone"},
    {STILL "agents:\n" PLAN "  - {name: work}\n" CHECK TRY,
     "stage \"work\" stopped between the calls of its tools, but has_tools is not set any more"},
    {STILL "agents:\n" PLAN "  - {name: work, has_tools: true, tool_access: all, allowed_tools: [x]}\n" CHECK TRY,
     "stage \"work\" stopped at a call of tool \"wipe\", which it may not make any more (allowed_tools does not list "
     "it)"},
    {STILL "agents:\n" PLAN WORK "  - {name: check}\n" TRY,
     "stage \"check\" waits for an answer to policy \"guard.no_secrets\", which it does not ask any more"},
    {"max_iterations: 1\n" ALL, "iteration 2 exceeds max_iterations 1"},
    {"max_llm_calls: 3\n" ALL, "llm_call_count 4 exceeds max_llm_calls 3"},
    {"max_agent_hops: 5\n" ALL, "agent_hop_count 6 exceeds max_agent_hops 5"},
    {STILL ALL "edge_limits: [{from: work, to: plan, max_count: 1}]\n",
     "the way from \"work\" to \"plan\" was taken 2 times, which exceeds its max_count 1"},
    {STILL "agents:\n  - {name: plan, max_visits: 2}\n" WORK CHECK TRY,
     "stage \"plan\" was visited 3 times, which exceeds its max_visits 2"},
};

static rv_envelope *envelope_of(const char *state)
{
    json_object *json = rv_kit_json(state);
    struct rv_rand_state seed;
    rv_envelope *env = NULL;
    rv_err *err = NULL;
    int rc = rv_envelope_load(json, rv_rand_seeded(&seed, 1), 1700000000000000, &env, &err);

    ck_assert_msg(rc == 0, "%s", rc < 0 ? rv_kit_err_take(err) : "");
    json_object_put(json);
    return env;
}

START_TEST(every_reason_is_named)
{
    struct world w;
    rv_envelope *env = envelope_of(state_text);
    rv_buf text = RV_BUF_INIT(1 << 16);
    rv_err *err = NULL;

    rv_buf_printf(&text, "name: t\n%s", cases[_i].pipeline);
    world_parse(&w, rv_buf_cstr(&text), "dir");
    int rc = rv_bundle_fits(w.pipeline, env, &err);
    if (cases[_i].says) {
        rv_buf want = RV_BUF_INIT(1 << 16);
        rv_buf_printf(&want, "the run does not fit pipeline \"dir/p.yaml\": %s", cases[_i].says);
        ck_assert_int_eq(rc, RV_E_STATE);
        ck_assert_str_eq(rv_err_text(err), rv_buf_cstr(&want));
        ck_assert_ptr_nonnull(rv_err_hint_text(err));
        rv_buf_fini(&want);
    } else {
        ck_assert_msg(rc == 0, "%s", rv_err_text(err));
    }
    rv_err_free(err);
    rv_buf_fini(&text);
    rv_envelope_free(env);
    world_fini(&w);
}
END_TEST

START_TEST(paused_visits_do_not_count_twice)
{
    static const char state[] =
        "{'current_stage': 'a', 'stage_visits': {'a': 3}, 'processing_history': ["
        "{'agent': 'a', 'stage_order': 1, 'started_at': '2026-01-01T00:00:00Z', 'status': 'skipped'},"
        "{'agent': 'a', 'stage_order': 1, 'started_at': '2026-01-01T00:00:00Z', 'status': 'success'},"
        "{'agent': 'b', 'stage_order': 1, 'started_at': '2026-01-01T00:00:00Z', 'status': 'skipped'}]}";
    struct world w;
    rv_envelope *env = envelope_of(state);

    world_parse(&w, "name: t\nagents: [{name: a, max_visits: 2}]\n", ".");
    ck_assert_int_eq(rv_bundle_fits(w.pipeline, env, NULL), 0);
    world_fini(&w);
    world_parse(&w, "name: t\nagents: [{name: a, max_visits: 1}]\n", ".");
    ck_assert_int_eq(rv_bundle_fits(w.pipeline, env, NULL), RV_E_STATE);
    world_fini(&w);
    rv_envelope_free(env);
}
END_TEST

START_TEST(a_fresh_envelope_fits_anything)
{
    struct world w;
    rv_envelope *env = envelope_of("{}");

    world_parse(&w, "name: t\nagents: [{name: a}]\n", ".");
    ck_assert_int_eq(rv_bundle_fits(w.pipeline, env, NULL), 0);
    rv_envelope_free(env);
    world_fini(&w);
}
END_TEST

START_TEST(many_reasons_are_counted)
{
    struct world w;
    rv_buf state = RV_BUF_INIT(1 << 16);
    rv_err *err = NULL;

    rv_buf_puts(&state, "{'completed_stage_set': {");
    for (int i = 0; i < 100; i++)
        rv_buf_printf(&state, "%s'gone_%d': true", i ? "," : "", i);
    rv_buf_puts(&state, "}}");
    rv_envelope *env = envelope_of(rv_buf_cstr(&state));
    world_parse(&w, "name: t\nagents: [{name: a}]\n", ".");
    ck_assert_int_eq(rv_bundle_fits(w.pipeline, env, &err), RV_E_STATE);
    ck_assert_msg(strstr(rv_err_text(err), "; and 76 more"), "%s", rv_err_text(err));
    rv_err_free(err);
    rv_envelope_free(env);
    rv_buf_fini(&state);
    world_fini(&w);
}
END_TEST

Suite *fits_suite(void)
{
    Suite *suite = suite_create("bundle_fits");
    TCase *tc = tcase_create("fits");

    tcase_add_loop_test(tc, every_reason_is_named, 0, RV_COUNT(cases));
    tcase_add_test(tc, paused_visits_do_not_count_twice);
    tcase_add_test(tc, a_fresh_envelope_fits_anything);
    tcase_add_test(tc, many_reasons_are_counted);
    suite_add_tcase(suite, tc);
    return suite;
}

/* Stages that plan their tool calls: keys, their defaults, and what contradicts them. */
#include "config/analysis/analysis.h"
#include "tests/unit/config/world.h"

#define AGENT(keys) "name: x\nagents:\n  - {name: a, has_llm: true, model_role: r, " keys "}\n"
#define PLANNED     "has_tools: true, allowed_tools: [t], strategy: planned"

static const struct {
    const char *text, *want;
} cases[] = {
    {AGENT("strategy: planed"),
     "t.yaml:3:55: error: agent \"a\": strategy is \"planed\", which is not a valid strategy\n"
     "  hint: did you mean \"planned\"? legal: auto, planned, standard\n"},
    {AGENT("strategy: planned"), "t.yaml:3:55: error: agent \"a\": strategy is planned, and no model of the stage has "
                                 "tools\n  hint: set has_llm and has_tools\n"},
    {AGENT(PLANNED ", plan: {max_calls: 129}"),
     "t.yaml:3:119: error: agent \"a\": plan.max_calls must be at most 128, not 129\n  hint: left out, it is 16\n"},
    {AGENT(PLANNED ", execute: {retries: 1}"),
     "t.yaml:3:111: error: agent \"a\": unknown key \"execute.retries\"\n"
     "  hint: keys here: parallelism, max_total_ms, call_timeout_ms, confirm, confirmer\n"},
    {AGENT(PLANNED ", client_tools: [{name: c}]"),
     "t.yaml:3:115: error: agent \"a\": client_tools cannot be in a plan: strategy is planned\n"
     "  hint: leave one of the two out\n"},
    {AGENT(PLANNED ", required_output_fields: [x]"),
     "t.yaml:3:126: error: agent \"a\": required_output_fields are fields of the response, which is a text: strategy "
     "is planned\n  hint: give an output_schema\n"},
    {AGENT(PLANNED ", max_rounds: 3"),
     "t.yaml:3:113: warning: agent \"a\": max_rounds has no effect: the stage plans all of its tool calls at once\n"
     "  hint: leave it out; see plan\n"},
    {AGENT("has_tools: true, allowed_tools: [t], plan: {max_calls: 3}"),
     "t.yaml:3:88: warning: agent \"a\": plan has no effect: the stage does not plan its tool calls\n"
     "  hint: write strategy: planned, or leave it out\n"},
    {"name: x\nmcp_servers: {s: {command: [x]}}\nagents:\n"
     "  - {name: a, has_llm: true, model_role: r, has_tools: true, allowed_tools: [s.find], max_rounds: 3}\n",
     "t.yaml:4:99: warning: agent \"a\": max_rounds has no effect: the stage plans all of its tool calls at once\n"
     "  hint: write strategy: standard, or leave it out\n"},
    {"name: x\nmcp_servers: {s: {command: [x], elicitation: true}, t: {command: [x]}}\nagents:\n"
     "  - {name: a, has_llm: true, model_role: r, has_tools: true, allowed_tools: [s.find]}\n"
     "  - {name: b, has_llm: true, model_role: r, has_tools: true, allowed_tools: [t.find]}\n"
     "  - {name: c, has_llm: true, model_role: r, has_tools: true, allowed_tools: [s.find], execute: {confirmer: "
     "person}}\n"
     "  - {name: d, has_llm: true, model_role: r, has_tools: true, allowed_tools: [s.find], strategy: standard}\n",
     "t.yaml:4:5: warning: agent \"a\": MCP server \"s\" may ask a person (elicitation), and a stage that plans has "
     "none "
     "without a confirmer: such calls fail\n"
     "  hint: add execute: {confirmer: person}, or strategy: standard\n"},
};

START_TEST(what_contradicts_a_plan_is_found)
{
    expect_findings(cases[_i].text, cases[_i].want);
}
END_TEST

/* Proves plan.P5 */
START_TEST(a_stage_that_plans_has_its_defaults)
{
    struct loaded l = load_clean(AGENT(PLANNED));
    const struct rv_agent_planning *p = &l.p->agents[0].planning;

    ck_assert_int_eq(p->strategy, RV_STRATEGY_PLANNED);
    ck_assert_int_eq(p->max_calls, 16);
    ck_assert_int_eq(p->max_repairs, 0);
    ck_assert_int_eq(p->max_replans, 0);
    ck_assert(p->accept_native_calls);
    ck_assert_int_eq(p->unschematized, RV_UNSCHEMATIZED_REJECT);
    ck_assert_int_eq(p->parallelism, 1);
    ck_assert_int_eq(p->max_total_ms, 300000);
    ck_assert_int_eq(p->call_timeout_ms, 30000);
    ck_assert_int_eq(p->confirm, RV_CONFIRMS_DECLARED);
    ck_assert_int_eq(p->confirmer, RV_CONFIRMER_NONE);
    ck_assert_int_eq(p->max_output_bytes, 16384);
    ck_assert_int_eq(p->max_summary_bytes, 65536);
    ck_assert_int_eq(l.p->agents[0].on_denied, RV_DENIED_TELL_MODEL);
    loaded_fini(&l);
}
END_TEST

START_TEST(a_stage_does_not_plan_unless_it_says_so)
{
    struct loaded l = load_clean(AGENT("has_tools: true, allowed_tools: [t]"));

    ck_assert(!rv_plans(&l.p->agents[0].planning));
    ck_assert_int_eq(l.p->agents[0].planning.strategy, RV_STRATEGY_AUTO);
    ck_assert_int_eq(l.p->agents[0].on_denied, RV_DENIED_END_RUN);
    loaded_fini(&l);
}
END_TEST

#define SERVERS                                                                                                        \
    "mcp_servers: {s: {command: [x]}, t: {command: [x], tools: {one: {read_only: true}}, allow: [one, two]}}\n"
#define STAGE(keys)                                                                                                    \
    "name: x\n" SERVERS "agents:\n  - {name: a, has_llm: true, model_role: r, has_tools: true" keys "}\n"

static const struct {
    const char *text;
    bool plans;
} autos[] = {
    {STAGE(""), true}, /* all tools: those of the servers, too */
    {STAGE(", allowed_tools: [x, s.find]"), true},
    {STAGE(", allowed_tools: [one]"), true},
    {STAGE(", allowed_tools: [two]"), true},
    {STAGE(", allowed_tools: [x, sfind, u.find]"), false},
    {STAGE(", allowed_tools: []"), false},
    {STAGE(", strategy: auto, allowed_tools: [s.find]"), true},
    {STAGE(", strategy: standard, allowed_tools: [s.find]"), false},
    {STAGE(", strategy: planned, allowed_tools: [x]"), true},
    {STAGE(", client_tools: [{name: c}]"), false},
    {STAGE(", required_output_fields: [f]"), false},
    {STAGE(", required_output_fields: [f], output_schema: {type: object}"), true},
    {"name: x\n" SERVERS "agents:\n  - {name: a, has_llm: true, model_role: r}\n", false},
    {"name: x\nagents:\n  - {name: a, has_llm: true, model_role: r, has_tools: true, tool_access: all}\n", false},
};

START_TEST(without_a_strategy_a_stage_with_mcp_servers_plans)
{
    struct loaded l = load_text(autos[_i].text, ".");

    ck_assert_ptr_nonnull(l.p);
    ck_assert_int_eq(rv_plans(&l.p->agents[0].planning), autos[_i].plans);
    ck_assert_int_eq(l.p->agents[0].on_denied, autos[_i].plans ? RV_DENIED_TELL_MODEL : RV_DENIED_END_RUN);
    loaded_fini(&l);
}
END_TEST

/* What is proved is what the strategy asks for at most. */
START_TEST(the_model_calls_of_auto_are_proved)
{
    static const struct {
        const char *text;
        int64_t calls;
    } rows[] = {
        {"max_llm_calls: 100\n" STAGE(", allowed_tools: [s.find]"), 2},
        {"max_llm_calls: 100\n" STAGE(", allowed_tools: [s.find], strategy: standard, max_rounds: 7"),
         9}, /* one since it may contradict itself */
    };

    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        struct loaded l = load_text(rows[i].text, ".");
        struct rv_proof proof;
        ck_assert_ptr_nonnull(l.p);
        ck_assert_int_eq(rv_pipeline_prove(l.p, RV_MODE_SEQUENTIAL, &proof, NULL), 0);
        ck_assert_int_eq(proof.max_llm_calls, rows[i].calls);
        rv_proof_fini(&proof);
        loaded_fini(&l);
    }
}
END_TEST

static const struct {
    const char *keys;
    int64_t calls;
} proofs[] = {
    {PLANNED, 2},
    {PLANNED ", plan: {max_repairs: 2}", 4},
    {PLANNED ", plan: {max_replans: 2}", 4},
    {PLANNED ", plan: {max_repairs: 1, max_replans: 2}", 7},
    {PLANNED ", output_schema: {type: object}", 3},
    {PLANNED ", max_retries: 1", 4},
};

START_TEST(the_model_calls_of_a_plan_are_proved)
{
    rv_buf text = RV_BUF_INIT(4096);

    rv_buf_printf(&text, "name: x\nmax_llm_calls: 100\nagents:\n  - {name: a, has_llm: true, model_role: r, %s}\n",
                  proofs[_i].keys);
    struct loaded l = load_clean(rv_buf_cstr(&text));
    struct rv_proof proof;
    ck_assert_int_eq(rv_pipeline_prove(l.p, RV_MODE_SEQUENTIAL, &proof, NULL), 0);
    ck_assert_int_eq(proof.max_llm_calls, proofs[_i].calls);
    rv_proof_fini(&proof);
    rv_buf_fini(&text);
    loaded_fini(&l);
}
END_TEST

TCase *planning_case(void)
{
    TCase *tc = tcase_create("planning");

    tcase_add_loop_test(tc, what_contradicts_a_plan_is_found, 0, RV_COUNT(cases));
    tcase_add_test(tc, a_stage_that_plans_has_its_defaults);
    tcase_add_test(tc, a_stage_does_not_plan_unless_it_says_so);
    tcase_add_loop_test(tc, without_a_strategy_a_stage_with_mcp_servers_plans, 0, RV_COUNT(autos));
    tcase_add_test(tc, the_model_calls_of_auto_are_proved);
    tcase_add_loop_test(tc, the_model_calls_of_a_plan_are_proved, 0, RV_COUNT(proofs));
    return tc;
}

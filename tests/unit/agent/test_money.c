/* What model calls cost a run: set aside before, settled after, never above the budget, and carried over pauses, other
 * processes and saved states. Prices here make a token of input 1 micro-USD and one of output 2. The driver checks that
 * nothing stays set aside, that the run spent what its state says, and that it is within the budget. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/run/run_internal.h"
#include "tests/unit/agent/suites.h"
#include "tests/unit/run/drive.h"

#define HIDDEN 1024 /* as in coreengine/model/llm/money.c */
#define HEAD                                                                                                           \
    "name: t\nmodels: {r: {model: 'openai:gpt-x', price: {input: 1, output: 2}, fallback: [f]}, f: {model: "           \
    "'openai:gpt-y', price: {input: 3, output: 4, cached: 1}}}\n%s\nagents:\n  - name: a\n    has_llm: true\n    "     \
    "model_role: r\n    has_tools: true\n    tool_access: all\n    output_mode: text\n    max_tokens: 100\n    %s\n"
#define STATE "{'envelope_id':'env_1','raw_input':'what is it?'}"

static const struct drive_tool tools[] = {{"read", RV_RISK_READ_ONLY, NULL, NULL, 0},
                                          {"wipe", RV_RISK_DESTRUCTIVE, NULL, NULL, 0}};

static struct drive *stage(const char *budget, const char *more)
{
    rv_buf yaml = RV_BUF_INIT(1 << 16);

    rv_buf_printf(&yaml, HEAD, budget, more);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), tools, RV_COUNT(tools));
    drive_envelope(d, STATE);
    rv_buf_fini(&yaml);
    return d;
}

/* Of the dearer of the two models. */
static int64_t worst(const struct drive_call *c)
{
    return 3 * ((int64_t)strlen(c->request) + HIDDEN) + 4 * 100;
}

static int64_t spent(const struct drive *d)
{
    return rv_envelope_fields(rv_run_envelope(d->run))->usage.cost_micro_usd;
}

static int64_t reserved(const struct drive *d)
{
    return d->run->shared.reserved_micro_usd;
}

#define WORST (-1)
static const struct {
    const char *reply, *more;
    int64_t cost;
    bool estimated;
} bills[] = {
    {"x", "{'usage':{'input_tokens':10,'output_tokens':3}}", 16, false},
    {"x", "{'usage':{'input_tokens':10,'output_tokens':3},'answered_by':'f'}", 42, false},
    {"x", "{'usage':{'input_tokens':10,'cached_tokens':4,'output_tokens':3},'answered_by':'f'}", 34, false},
    {"x", "{'usage':{'input_tokens':10,'output_tokens':3},'answered_by':'nobody'}", 16, false},
    {"x", "{'usage':{'input_tokens':0,'output_tokens':0}}", 0, false},
    {"x", NULL, WORST, true},
    {"!:refused", NULL, 0, false},
    {"!:cut", "{'billed':true}", WORST, true},
    {"!:cut", "{'usage':{'input_tokens':10,'output_tokens':3},'billed':true}", WORST, true},
};

/* Proves 12.4/settle: A call is settled with what is known of it, at the price of whoever answered; what nobody
 * told counts as the worst case, marked */
START_TEST(a_call_is_settled_with_what_is_known_of_it)
{
    const struct drive_said said[] = {{"llm:a", .reply = bills[_i].reply, .more = bills[_i].more}};
    bool has_budget = _i % 2;
    struct drive *d = stage(has_budget ? "budget: {usd: 0.01}" : "", "");

    drive_talk(d, said, 1);
    drive_start(d);
    ck_assert_int_eq(reserved(d), has_budget ? worst(&d->calls[0]) : 0);
    drive_pump(d);
    int64_t want = bills[_i].cost == WORST ? worst(&d->calls[0]) : bills[_i].cost;
    ck_assert_int_eq(spent(d), want);
    ck_assert(rv_envelope_fields(rv_run_envelope(d->run))->usage.estimated == bills[_i].estimated);
    int64_t told = 0;
    RV_IGNORE(!rv_json_get_int(drive_line(d, "llm_result", 0), "cost_micro_usd", &told), "0 is left out");
    ck_assert_int_eq(told, want);
    ck_assert(drive_replays(d, STATE));
    drive_free(d);
}
END_TEST

/* Proves 12.4/reserve: The worst case of a call is set aside before it is made; what does not fit is not made */
START_TEST(a_call_that_the_budget_can_not_pay_is_not_made)
{
    struct drive *d = stage("budget: {usd: 0.0001}", "");

    ck_assert_int_eq(drive_run(d), RV_RUN_TERMINATED);
    ck_assert_uint_eq(d->n_llm, 0);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"budget_exceeded\"");
    const char *text = drive_state(d, "termination_reason");
    ck_assert_msg(strstr(text, "raise budget.usd, or lower max_tokens") != NULL, "%s", text);
    drive_free(d);
    d = stage("budget: {usd: 0.0001}", "error_next: b\n  - {name: b}");
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    drive_free(d);
}
END_TEST

/* Proves 12.4/reserve */
START_TEST(a_loop_ends_when_the_next_call_can_not_be_paid)
{
    struct drive *d = stage("budget: {usd: 0.01}", "");

    DRIVE_TALK(
        d, {"llm:a", .calls = "c1 read", .more = "{'usage':{'input_tokens':900,'output_tokens':100}}", .stays = true});
    ck_assert_int_eq(drive_run(d), RV_RUN_TERMINATED);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"budget_exceeded\"");
    ck_assert_int_eq(spent(d), (int64_t)d->n_llm * 1100);
    ck_assert_uint_gt(d->n_llm, 2);
    ck_assert(drive_replays(d, STATE));
    drive_free(d);
}
END_TEST

START_TEST(a_stage_out_of_time_gives_back_what_was_set_aside)
{
    struct drive *d = stage("budget: {usd: 1}", "timeout_seconds: 1");

    DRIVE_TALK(d, {"llm:a", .calls = "c1 read", .more = "{'usage':{'input_tokens':1,'output_tokens':1}}"},
               {"tool:read", .reply = "{}", .latency_us = 1000000});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED); /* the driver looks for what is still set aside */
    ck_assert_int_eq(spent(d), 3);
    drive_free(d);
}
END_TEST

/* Proves 12.4/settle */
START_TEST(a_cancelled_call_counts_as_charged_for)
{
    struct drive *d = stage("budget: {usd: 1}", "");

    drive_start(d);
    drive_cancel(d);
    ck_assert_int_eq(spent(d), worst(&d->calls[0]));
    int64_t told = 0;
    ck_assert(rv_json_get_int(drive_line(d, "warning", 0), "cost_micro_usd", &told));
    ck_assert_int_eq(told, spent(d));
    ck_assert(drive_replays(d, STATE));
    drive_free(d);
}
END_TEST

/* Proves 12.4/share */
START_TEST(a_call_that_died_with_its_process_is_charged_and_made_again)
{
    struct drive *d = stage("budget: {usd: 1}", "");

    DRIVE_TALK(d, {"llm:a", .reply = "x", .more = "{'usage':{'input_tokens':1,'output_tokens':1}}"});
    drive_start(d);
    int64_t once = worst(&d->calls[0]);
    drive_recover(d, 5000000);
    drive_recover(d, 5000000);
    ck_assert_int_eq(spent(d), 2 * once);
    ck_assert_int_eq(reserved(d), once);
    drive_pump(d);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_int_eq(spent(d), 2 * once + 3);
    ck_assert_str_eq(drive_state(d, "usage.calls"), "3");
    ck_assert(drive_replays(d, STATE));
    drive_free(d);
}
END_TEST

/* Proves 12.4/repeat */
START_TEST(a_call_that_can_not_be_paid_twice_is_not_made_again)
{
    struct drive *d = stage("budget: {usd: 0.006}", _i ? "error_next: b\n  - {name: b}" : "");

    drive_start(d);
    ck_assert_int_lt(worst(&d->calls[0]), 6000);
    ck_assert_int_gt(2 * worst(&d->calls[0]), 6000);
    drive_recover(d, 5000000);
    ck_assert_uint_eq(d->n_cancelled, 1);
    ck_assert(d->finished);
    ck_assert_int_eq(rv_run_status(d->run), _i ? RV_RUN_COMPLETED : RV_RUN_TERMINATED);
    ck_assert_int_eq(spent(d), worst(&d->calls[0]));
    ck_assert(drive_replays(d, STATE));
    drive_free(d);
}
END_TEST

/* Proves 12.4/share */
START_TEST(what_was_spent_is_remembered_over_a_pause)
{
    struct drive *d = stage("budget: {usd: 0.009}", "");

    DRIVE_TALK(d, {"llm:a", .calls = "c1 wipe", .more = "{'usage':{'input_tokens':7000,'output_tokens':1}}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_TERMINATED);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"budget_exceeded\"");
    ck_assert_int_eq(spent(d), 7002);
    drive_free(d);
}
END_TEST

/* Proves 12.4/share: Stages side by side share the budget; pauses and crashes forget nothing */
START_TEST(stages_side_by_side_share_the_budget)
{
    struct drive *d = drive_new("name: t\ndefault_run_mode: parallel\nbudget: {usd: 0.004}\nmodels: {r: {model: "
                                "'openai:gpt-x', price: {input: 1, output: 2}}}\nagents:\n"
                                "  - {name: a, has_llm: true, model_role: r, max_tokens: 500}\n"
                                "  - {name: b, has_llm: true, model_role: r, max_tokens: 500, error_next: d}\n"
                                "  - {name: c, has_llm: true, model_role: r, max_tokens: 500, error_next: d}\n"
                                "  - {name: d, requires: [a]}\n",
                                NULL, 0);

    DRIVE_TALK(d, {"llm:a", .reply = "{}", .more = "{'usage':{'input_tokens':1,'output_tokens':1}}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(d->n_llm, 1); /* nothing was left to be set aside for the others */
    ck_assert_int_eq(spent(d), 3);
    drive_free(d);
}
END_TEST

START_TEST(prices_without_a_budget_can_be_as_high_as_they_like)
{
    struct drive *d =
        drive_new("name: t\ndefault_run_mode: parallel\nmodels: {r: {model: 'openai:gpt-x', price: "
                  "{input: 1000000, output: 1000000}}}\nagents:\n"
                  "  - {name: a, has_llm: true, model_role: r}\n  - {name: b, has_llm: true, model_role: r}\n"
                  "  - {name: c, has_llm: true, model_role: r}\n",
                  NULL, 0);

    DRIVE_TALK(d, {"llm:a", .reply = "{}",
                   .more = "{'usage':{'input_tokens':4503599627370496,'output_tokens':4503599627370496}}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    drive_free(d);
}
END_TEST

TCase *money_case(void)
{
    TCase *tc = tcase_create("money");

    tcase_add_loop_test(tc, a_call_is_settled_with_what_is_known_of_it, 0, RV_COUNT(bills));
    tcase_add_test(tc, a_call_that_the_budget_can_not_pay_is_not_made);
    tcase_add_test(tc, a_loop_ends_when_the_next_call_can_not_be_paid);
    tcase_add_test(tc, a_stage_out_of_time_gives_back_what_was_set_aside);
    tcase_add_test(tc, a_cancelled_call_counts_as_charged_for);
    tcase_add_test(tc, a_call_that_died_with_its_process_is_charged_and_made_again);
    tcase_add_loop_test(tc, a_call_that_can_not_be_paid_twice_is_not_made_again, 0, 2);
    tcase_add_test(tc, what_was_spent_is_remembered_over_a_pause);
    tcase_add_test(tc, stages_side_by_side_share_the_budget);
    tcase_add_test(tc, prices_without_a_budget_can_be_as_high_as_they_like);
    return tc;
}

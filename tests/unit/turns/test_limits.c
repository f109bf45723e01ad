/* Limits that hold for a turn and everything below it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/run/run_internal.h"
#include "tests/unit/turns/room.h"

#define TOOLS                "tools: [ask_agent, read, look, put, send, wipe, action]\n"
#define ASK(id, agent, text) id " ask_agent {\"agent_name\":\"" agent "\",\"input_text\":\"" text "\"}"

static struct room *done(const struct scene *s)
{
    struct room *r = room_new(s, NULL);

    room_start(r);
    room_go(r);
    return r;
}

/* --- what ends a turn, or an asked agent --- */

static const struct {
    struct scene scene;
    enum rv_run_status status;
    const char *reason, *says; /* in the rows */
    size_t n_requests;         /* of models */
} cases[] = {
    {{.name = "request_limit",
      .parent = TOOLS "limits: {request_limit: 2}\n",
      .lines = {{.to = "parent", .text = "", .calls = "a read {}"},
                {.to = "parent", .text = "", .calls = "b read {}"},
                {.to = "parent", .text = "x"}}},
     RV_RUN_FAILED,
     "llm_failed",
     "limits.request_limit (2)",
     2},
    /* Proves p8.W3: `max_iterations` is a cap on requests */
    {{.name = "max_iterations",
      .parent = TOOLS "max_iterations: 1\n",
      .lines = {{.to = "parent", .text = "", .calls = "a read {}"}, {.to = "parent", .text = "x"}}},
     RV_RUN_FAILED,
     "llm_failed",
     "would exceed max_iterations (1)",
     1},
    {{.name = "tool_calls_limit",
      .parent = TOOLS "limits: {tool_calls_limit: 2}\n",
      .lines = {{.to = "parent", .text = "", .calls = "a read {} | b look {}"},
                {.to = "parent", .text = "", .calls = "c read {}"},
                {.to = "parent", .text = "x"}}},
     RV_RUN_FAILED,
     "llm_failed",
     "limits.tool_calls_limit is 2",
     2},
    {{.name = "total tokens",
      .parent = TOOLS "limits: {total_tokens_limit: 10}\n",
      .lines = {{.to = "parent", .text = "", .calls = "a read {}", .in = 4, .out = 4},
                {.to = "parent", .text = "x", .in = 2, .out = 1}}},
     RV_RUN_FAILED,
     "llm_failed",
     "limits.total_tokens_limit allows 10",
     2},
    {{.name = "input tokens",
      .parent = TOOLS "limits: {input_tokens_limit: 5}\n",
      .lines = {{.to = "parent", .text = "x", .in = 6, .out = 1}}},
     RV_RUN_FAILED,
     "llm_failed",
     "limits.input_tokens_limit allows 5",
     1},
    {{.name = "output tokens",
      .parent = TOOLS "limits: {output_tokens_limit: 5}\n",
      .lines = {{.to = "parent", .text = "x", .in = 6, .out = 6}}},
     RV_RUN_FAILED,
     "llm_failed",
     "limits.output_tokens_limit allows 5",
     1},
    {{.name = "just within",
      .parent = TOOLS "limits: {total_tokens_limit: 10, request_limit: 2, tool_calls_limit: 1}\n",
      .lines = {{.to = "parent", .text = "", .calls = "a read {}", .in = 4, .out = 4},
                {.to = "parent", .text = "x", .in = 1, .out = 1}}},
     RV_RUN_COMPLETED,
     "completed",
     "assistant[parent] x",
     2},
    {{.name = "an asked agent's own limits fail it alone",
      .parent = TOOLS,
      .agents = {"child", "tools: [read]\nlimits: {request_limit: 1}\n"},
      .lines = {{.to = "parent", .text = "", .calls = ASK("a", "child", "x")},
                {.to = "child", .text = "", .calls = "b read {}"},
                {.to = "parent", .text = "as well"}}},
     RV_RUN_COMPLETED,
     "completed",
     "\"error\":\"agent \\\"child\\\": the next request would exceed",
     3},
    /* Proves p8.W14 */
    {{.name = "model calls are shared",
      .keys = "max_llm_calls: 3\n",
      .parent = TOOLS,
      .agents = {"child", "tools: [read]\n"},
      .lines = {{.to = "parent", .text = "", .calls = ASK("a", "child", "x")},
                {.to = "child", .text = "", .calls = "b read {}"},
                {.to = "child", .text = "", .calls = "c read {}"}}},
     RV_RUN_TERMINATED,
     "max_llm_calls_exceeded",
     "all that max_llm_calls (3) allows were made",
     3},
    {{.name = "nobody may be asked",
      .keys = "max_delegation_depth: 0\n",
      .parent = TOOLS,
      .agents = {"child", "\n"},
      .lines = {{.to = "parent", .text = "", .calls = ASK("a", "child", "x")}, {.to = "parent", .text = "alone"}}},
     RV_RUN_COMPLETED,
     "completed",
     "agents already ask each other 0 deep (parent), and max_delegation_depth is 0",
     2},
    /* Proves p8.W18 */
    {{.name = "nobody is asked within itself too often",
      .keys = "max_delegation_repeats: 1\n",
      .parent = TOOLS,
      .lines = {{.to = "parent", .text = "", .calls = ASK("a", "parent", "x")}, {.to = "parent", .text = "alone"}}},
     RV_RUN_COMPLETED,
     "completed",
     "it is at work already (parent), and max_delegation_repeats is 1",
     2},
    {{.name = "as often as may be",
      .keys = "max_delegation_repeats: 2\nmax_delegation_depth: 5\n",
      .parent = TOOLS,
      .lines = {{.to = "parent", .text = "", .calls = ASK("a", "parent", "x")},
                {.to = "parent", .text = "", .calls = ASK("a", "parent", "y")},
                {.to = "parent", .text = "down"},
                {.to = "parent", .text = "up"}}},
     RV_RUN_COMPLETED,
     "completed",
     "it is at work already (parent > parent), and max_delegation_repeats is 2",
     4},
    /* Proves p8.W18 */
    {{.name = "time for an asked agent",
      .parent = TOOLS,
      .agents = {"child", "\n"},
      .lines = {{.to = "parent",
                 .text = "",
                 .calls = "a ask_agent {\"agent_name\":\"child\",\"input_text\":\"x\",\"timeout_seconds\":2}"},
                {.to = "child", .text = "late", .takes_us = 5000000},
                {.to = "parent", .text = "alone"}}},
     RV_RUN_COMPLETED,
     "completed",
     "\"error\":\"Agent 'child' timed out after 2s\"",
     3},
    /* Proves remlight.19/17 */
    {{.name = "time for one below it",
      .parent = TOOLS,
      .agents = {"one", "tools: [ask_agent]\n", "two", "\n"},
      .lines = {{.to = "parent",
                 .text = "",
                 .calls = "a ask_agent {\"agent_name\":\"one\",\"input_text\":\"x\",\"timeout_seconds\":2}"},
                {.to = "one",
                 .text = "",
                 .calls = "a ask_agent {\"agent_name\":\"two\",\"input_text\":\"x\",\"timeout_seconds\":60}"},
                {.to = "two", .text = "late", .takes_us = 5000000},
                {.to = "parent", .text = "alone"}}},
     RV_RUN_COMPLETED,
     "completed",
     "\"error\":\"Agent 'one' timed out after 2s\"",
     4},
    {{.name = "time for the asking one",
      .stage = ", timeout_seconds: 1",
      .parent = TOOLS,
      .agents = {"child", "\n"},
      .lines = {{.to = "parent", .text = "", .calls = ASK("a", "child", "x")},
                {.to = "child", .text = "late", .takes_us = 5000000}}},
     RV_RUN_FAILED,
     "llm_failed",
     "tool_response[parent](failed) "
     "{\"status\":\"error\",\"output\":\"\",\"text_response\":\"\",\"agent_schema\":\"child\","
     "\"error\":\"Agent 'child' timed out after 1s\"",
     2},
    {{.name = "the default time",
      .keys = "execution: {delegation_timeout: 3}\n",
      .parent = TOOLS,
      .agents = {"child", "\n"},
      .lines = {{.to = "parent", .text = "", .calls = ASK("a", "child", "x")},
                {.to = "child", .text = "late", .takes_us = 5000000},
                {.to = "parent", .text = "alone"}}},
     RV_RUN_COMPLETED,
     "completed",
     "timed out after 3s",
     3},
};

/* Proves p8.W2: Limits of document, stage and settings hold wherever the agent works; the error has a type of its
 * own and names the key
 * Proves remlight.19/16: Below an agent, too: depth, repeats, model calls, money and time are bounded and shared;
 * tokens are bounded for each agent by itself
 * Proves p8.8 */
START_TEST(it_holds)
{
    struct room *r = done(&cases[_i].scene);
    const char *name = cases[_i].scene.name;

    ck_assert_msg(rv_run_status(r->run) == cases[_i].status, "%s: %s", name, rv_run_status_text(rv_run_status(r->run)));
    char *rows = room_rows(r), *state = room_state(r);
    ck_assert_msg(strstr(rows, cases[_i].says) || strstr(room_output(r, "errors"), cases[_i].says) ||
                      strstr(state, cases[_i].says),
                  "%s:\n%s\n%s", name, rows, state);
    ck_assert_msg(room_count(rv_buf_cstr(&r->events), "\"type\":\"llm_call_start\"") == cases[_i].n_requests, "%s:\n%s",
                  name, rv_buf_cstr(&r->events));
    if (cases[_i].status != RV_RUN_COMPLETED)
        ck_assert_msg(strstr(room_output(r, "terminal_reason"), cases[_i].reason), "%s: %s", name,
                      room_output(r, "terminal_reason"));
    if (cases[_i].status != RV_RUN_COMPLETED && (strstr(cases[_i].says, "limits.") || strstr(cases[_i].says, "max_")))
        ck_assert_msg(strstr(rv_buf_cstr(&r->events), "\"error_type\":\"LimitError\""), "%s: %s", name,
                      rv_buf_cstr(&r->events)); /* p8 W2: who reads it can tell a bound from a provider's failure */
    free(rows);
    free(state);
    room_check_replay(r);
    room_free(r);
}
END_TEST

/* --- money --- */

#define PRICED "models: {default: {model: 'openai:gpt-x', price: {input: 1, output: 2}}}\nbudget: {usd: %d.%06d}\n"

static const struct scene paid = {
    .name = "paid",
    .parent = TOOLS "max_tokens: 100\n",
    .agents = {"child", "tools: [ask_agent, read]\nmax_tokens: 3000\n", "other", "max_tokens: 1000\n"},
    .lines = {{.to = "parent",
               .text = "",
               .calls = ASK("a", "child", "x") " | " ASK("b", "other", "y"),
               .in = 900,
               .out = 90},
              {.to = "child", .text = "", .calls = ASK("c", "other", "z"), .in = 1000, .out = 2900},
              {.to = "other", .text = "one", .in = 1000, .out = 900},
              {.to = "other", .text = "two", .in = 1000, .out = 900},
              {.to = "child", .text = "three", .in = 1000, .out = 2900},
              {.to = "parent", .text = "four", .in = 900, .out = 90}}};

static int64_t spent(const struct room *r)
{
    return rv_envelope_fields(rv_run_envelope(r->run))->usage.cost_micro_usd;
}

static void check_money(const struct room *r, int64_t budget)
{
    ck_assert_int_eq(r->run->shared.reserved_micro_usd, 0);
    ck_assert_int_eq(r->run->shared.spent_micro_usd, spent(r));
    ck_assert_msg(spent(r) <= budget, "%lld of %lld", (long long)spent(r), (long long)budget);
}

static void price(struct scene *s, char keys[200], int64_t budget)
{
    ck_assert_int_lt(snprintf(keys, 200, PRICED, (int)(budget / 1000000), (int)(budget % 1000000)), 200);
    s->keys = keys;
}

/* Proves p8.W14, remlight.19/16 */
START_TEST(whoever_is_asked_spends_from_the_same_purse)
{
    size_t n_refused = 0, n_whole = 0, n_failed = 0;

    for (int64_t budget = 1000; budget <= 61000; budget += 1500) {
        struct scene s = paid;
        char keys[200];
        price(&s, keys, budget);
        struct room *r = done(&s);
        char *rows = room_rows(r);
        bool refused = strstr(rows, "the next model call may cost") != NULL;
        bool ok = rv_run_status(r->run) == RV_RUN_COMPLETED;
        check_money(r, budget);
        n_refused += ok && refused;
        n_whole += ok && !refused;
        n_failed += !ok;
        free(rows);
        room_free(r);
    }
    ck_assert_uint_gt(n_refused, 2); /* the agent that was asked could not pay, and its parent could */
    ck_assert_uint_gt(n_whole, 2);
    ck_assert_uint_gt(n_failed, 0);
}
END_TEST

/* A model call under way when the process dies counts as charged for: then an asked agent may have nothing left. */
START_TEST(a_death_costs_and_nobody_stands_still)
{
    size_t n_broke = 0;

    for (int64_t budget = 10000; budget <= 61000; budget += 3000) {
        struct scene s = paid;
        char keys[200];
        price(&s, keys, budget);
        struct room *calm = done(&s);
        for (size_t step = 1; step < calm->n_steps; step++) {
            struct room *r = room_new(&s, NULL);
            room_start(r);
            for (size_t i = 1; i < step; i++)
                ck_assert(room_answer(r));
            room_die(r);
            n_broke += !r->finished && r->n_calls == 0; /* that would be a run that nobody wakes */
            if (!r->finished)
                room_go(r);
            check_money(r, budget);
            room_check_replay(r);
            room_free(r);
        }
        room_free(calm);
    }
    ck_assert_uint_eq(n_broke, 0);
}
END_TEST

Suite *limits_suite(void)
{
    Suite *s = suite_create("limits");
    TCase *tc = tcase_create("limits");

    tcase_add_loop_test(tc, it_holds, 0, RV_COUNT(cases));
    tcase_add_test(tc, whoever_is_asked_spends_from_the_same_purse);
    tcase_add_test(tc, a_death_costs_and_nobody_stands_still);
    suite_add_tcase(s, tc);
    return s;
}

/* Whole runs with scripts, in simulated time. */
#include "tests/unit/engine/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"

#define LOOP                                                                                                           \
    "name: loop\nmax_iterations: 5\nmodels: {default: scripted}\n"                                                     \
    "agents:\n"                                                                                                        \
    "  - {name: plan, has_llm: true, model_role: default, default_next: judge}\n"                                      \
    "  - name: judge\n    has_llm: true\n    model_role: default\n"                                                    \
    "    routing_rules: [{condition: verdict, value: again, target: plan}]\n"                                          \
    "    default_next: write\n"                                                                                        \
    "  - {name: write, default_next: end}\n"                                                                           \
    "edge_limits: [{from: judge, to: plan, max_count: 2}]\n"

#define FAN                                                                                                            \
    "name: fan\ndefault_run_mode: parallel\nmodels: {default: scripted}\nagents:\n"                                    \
    "  - {name: split}\n"                                                                                              \
    "  - {name: left, has_llm: true, model_role: default, requires: [split]}\n"                                        \
    "  - {name: right, has_llm: true, model_role: default, requires: [split]}\n"                                       \
    "  - {name: join, requires: [left, right]}\n"

#define TOOLS                                                                                                          \
    "name: tools\nagents:\n"                                                                                           \
    "  - {name: plan, default_next: act}\n"                                                                            \
    "  - {name: act, has_tools: true, tool_access: all, max_retries: 2, default_next: end}\n"

#define ERRORS                                                                                                         \
    "name: errors\nagents:\n"                                                                                          \
    "  - {name: work, default_next: end, error_next: help}\n  - {name: help, default_next: end}\n"

#define ONE_LLM                                                                                                        \
    "name: one\nmodels: {default: scripted, judge: 'anthropic:claude-x'}\nagents:\n"                                   \
    "  - {name: ask, has_llm: true, model_role: default, default_next: end}\n"
#define ONE_JUDGE                                                                                                      \
    "name: one\nmodels: {judge: 'anthropic:claude-x'}\nagents:\n"                                                      \
    "  - {name: ask, has_llm: true, model_role: judge, default_next: end}\n"

#define GATE                                                                                                           \
    "name: gate\nagents:\n  - {name: plan, default_next: act}\n"                                                       \
    "  - {name: act, has_tools: true, tool_access: all, default_next: end}\n"
#define WIPE                                                                                                           \
    "stages: {plan: [{output: {steps: [{tool: wipe}]}}]}\n"                                                            \
    "tools: {wipe: {risk: destructive, description: d, calls: [{result: {gone: 1}}]}}\n"

static const struct {
    const char *name, *pipeline, *script, *status, *visited, *output_key, *output;
    int64_t ms;
} cases[] = {
    {"service stages need nothing", "name: s\nagents: [{name: a, default_next: b}, {name: b}]", NULL, "completed",
     "a b", "a", "{}", 0},
    {"7.4: a loop-back repeats while the script says so", LOOP,
     "models: {plan: [{json: {n: 1}}, {json: {n: 2}}], judge: [{json: {verdict: again}}, {json: {verdict: ok}}]}",
     "completed", "plan judge plan judge write", "plan", "{\"n\":2}", 0},
    {"7.4: the edge limit ends a loop that never stops", LOOP,
     "models: {plan: [{json: {n: 1}}], judge: [{json: {verdict: again}}]}", "terminated",
     "plan judge plan judge plan judge", "judge", "{\"verdict\":\"again\"}", 0},
    {"7.7: branches run side by side and join", FAN,
     "models: {left: [{json: {l: 1}, delay_ms: 300}], right: [{json: {r: 2}, delay_ms: 200}]}", "completed",
     "split left right join", "left", "{\"l\":1}", 300},
    {"6.1: a scripted tool stage", TOOLS,
     "stages: {plan: [{output: {steps: [{tool: look, step_id: s1, parameters: {q: x}}]}}]}\n"
     "tools: {look: [{result: {hits: 3}, delay_ms: 40}]}",
     "completed", "plan act", "act",
     "{\"results\":[{\"step_id\":\"s1\",\"tool\":\"look\",\"parameters\":{\"q\":\"x\"},\"status\":\"success\","
     "\"execution_time_ms\":40,\"data\":{\"hits\":3}}],\"total_time_ms\":40,\"all_succeeded\":true}",
     40},
    {"5.3: an error route is taken", ERRORS, "stages: {work: [{error: broken}], help: [{output: {ok: true}}]}",
     "completed", "work help", "help", "{\"ok\":true}", 0},
    {"7.5: an unrouted failure ends the run", ERRORS,
     "stages: {work: [{error: broken}], help: [{error: {type: ValidationError, message: worse}}]}", "failed",
     "work help", "help", "absent", 0},
    {"5.9: an outcome of the script", ERRORS, "stages: {work: [{output: {reason: enough}, outcome: terminate}]}",
     "terminated", "work", "work", "{\"reason\":\"enough\",\"outcome\":\"terminate\"}", 0},
    {"W16: a failed model call is tried again after a second, then two",
     "name: r\nmodels: {default: scripted}\nagents:\n"
     "  - {name: ask, has_llm: true, model_role: default, max_retries: 2}\n",
     "models: {ask: [{error: {kind: overloaded}}, {text: no object here, delay_ms: 5}, {json: {ok: 1}, delay_ms: 7}]}",
     "completed", "ask", "ask", "{\"ok\":1}", 3012},
    {"W16: what can not be mended is not tried again",
     "name: r\nmodels: {default: scripted}\nagents:\n"
     "  - {name: ask, has_llm: true, model_role: default, max_retries: 2}\n",
     "models: {ask: [{error: {kind: auth}}, {json: {ok: 1}}]}", "failed", "ask", "ask", "absent", 0},
    {"W16: a stage has a deadline", "name: t\nagents: [{name: slow, timeout_seconds: 2}]",
     "stages: {slow: [{output: {late: 1}, delay_ms: 60000}]}", "failed", "slow", "slow", "absent", 2000},
    {"6.1: the gate asks, the script approves", GATE, WIPE "answers: [{approved: true, delay_ms: 5000}]", "completed",
     "plan act act", "act",
     "{\"results\":[{\"step_id\":\"step_0\",\"tool\":\"wipe\",\"parameters\":{},\"status\":\"success\","
     "\"execution_time_ms\":0,\"data\":{\"gone\":1}}],\"total_time_ms\":0,\"all_succeeded\":true}",
     5000},
    {"7.10: the script denies", GATE, WIPE "answers: [{approved: false}]", "terminated", "plan act", "act", "absent",
     0},
    {"7.2: without an answer the run waits", GATE, WIPE, "interrupted", "plan act", "act", "absent", 0},
    {"3.6: a raised clarification is answered", "name: q\nagents: [{name: ask}]",
     "stages: {ask: [{raise: {kind: clarification, question: which?}, outcome: clarify}, {output: {done: 1}}]}\n"
     "answers: [{text: PostgreSQL}]",
     "completed", "ask ask", "ask", "{\"done\":1}", 0},
    {"a script finds in a stage what an earlier one gave", "name: s\nagents: [{name: a, default_next: b}, {name: b}]",
     "stages: {a: [{output: {it: red}}], b: [{contains: red, output: {seen: 1}}, {output: {seen: 0}}]}", "completed",
     "a b", "b", "{\"seen\":1}", 0},
    {"10: tools that nobody offered are not ignored", ONE_LLM,
     "models: {ask: [{json: {a: 1}, tool_calls: [{name: look}]}]}", "failed", "ask", "ask", "absent", 0},
    {"5.6: chunks are one reply", ONE_LLM, "models: {ask: [{chunks: ['{\"a\"', ': 1', '}'], delay_ms: 20}]}",
     "completed", "ask", "ask", "{\"a\":1}", 60},
};

/* Proves 7.4/engine: Loop-backs and edge limits through the engine
 * Proves 7.5/engine: An unrouted failure ends the run as failed
 * Proves 7.7/engine: Parallel branches overlap (time is the longest) and join; same bytes for 1 and 8 workers
 * Proves 7.10/engine: Scripted approval, denial, clarification, no answer, unfit answer
 * Proves W06/engine: (cost) a tool or service stage needs no provider
 * Proves W16/engine: Back-off 1 s then 2 s, retryable kinds only, stage deadline in time
 * Proves W24/engine: A scripted or mocked stage needs no provider and no capability; mocks by option and by stage
 * Proves 8.1/engine */
START_TEST(runs)
{
    struct how how = {0};
    struct world w;
    char *visited, *output;

    world_run(&w, &how, cases[_i].pipeline, cases[_i].script);
    visited = world_visited(&w);
    output = world_output(&w, cases[_i].output_key);
    ck_assert_msg(strcmp(world_status(&w), cases[_i].status) == 0, "%s: %s\n%s", cases[_i].name, world_status(&w),
                  rv_buf_cstr(&w.events));
    ck_assert_msg(strcmp(visited, cases[_i].visited) == 0, "%s: %s", cases[_i].name, visited);
    ck_assert_msg(strcmp(output, cases[_i].output) == 0, "%s: %s", cases[_i].name, output);
    ck_assert_msg(world_elapsed_ms(&w) == cases[_i].ms, "%s: %lld ms", cases[_i].name, (long long)world_elapsed_ms(&w));
    free(visited);
    free(output);
    world_fini(&w);
}
END_TEST

/* What a stage's failure says. */
static const struct {
    const char *pipeline, *script, *type, *text;
} failures[] = {
    {ONE_JUDGE, NULL, "LLMError",
     "model role \\\"judge\\\" is anthropic:claude-x, which takes real time, and this run's time is simulated"},
    {ONE_LLM, "models: {ask: [{tool_calls: [{name: look, arguments: {}}, {name: find}]}]}", "LLMError",
     "asked for tools (look, find), and the stage offers none: set has_tools and allowed_tools"},
    {ONE_LLM, "models: [{stage: ask, visit: 2, text: x}]", "LLMError",
     "no model reply for stage \\\"ask\\\", visit 1, prompt \\\"Process the following request"},
    {ONE_JUDGE, "tools: {x: [{result: {}}]}", "LLMError", "anthropic:claude-x, which takes real time"},
    {ONE_LLM, "models: {ask: [{error: {kind: rate_limited, status: 429, retry_after_ms: 500}}]}", "LLMError",
     "rate limited (status 429) (retry after 500 ms)"},
    {ONE_LLM, "models: {ask: [{error: {kind: timeout, message: too slow}}]}", "TimeoutError", "too slow"},
    {ONE_LLM, "models: {ask: [{text: x, delay_ms: 600000}]}", "TimeoutError",
     "model role \\\"default\\\" did not answer within 120000 ms: raise execution.llm_timeout"},
    {"name: l\nmodels: {default: scripted}\nagents: [{name: ask, has_llm: true, model_role: default, timeout_seconds: "
     "5}]",
     "models: {ask: [{text: x, delay_ms: 600000}]}", "TimeoutError",
     "did not answer within 5000 ms: that was left of the 5 s for stage \\\"ask\\\"; raise its timeout_seconds"},
    {"name: l\nexecution: {agent_timeout: 0.2}\nmodels: {default: scripted}\n"
     "agents: [{name: ask, has_llm: true, model_role: default}]",
     "models: {ask: [{text: x, delay_ms: 600000}]}", "TimeoutError",
     "within 200 ms: that was left of 200 ms for stage \\\"ask\\\"; raise execution.agent_timeout"},
    {ERRORS, "stages: {help: [{error: never}], work: [{error: {type: PolicyError, message: not allowed}}]}",
     "PolicyError", "not allowed"},
    {"name: h\nagents: [{name: a, pre_process: hello.count}]", NULL, "HookError",
     "no capability is loaded that has hook \\\"hello.count\\\""},
};

/* Proves 8.1/engine: Provider, executor and clock are replaceable; what no provider answers fails with a reason
 * Proves W16/engine */
START_TEST(failures_say_why)
{
    struct how how = {0};
    struct world w;
    char *line, type[64];

    world_run(&w, &how, failures[_i].pipeline, failures[_i].script);
    snprintf(type, sizeof type, "\"error_type\":\"%s\"", failures[_i].type);
    line = world_state(&w);
    ck_assert_msg(strstr(line, type) && strstr(line, failures[_i].text), "%s", line);
    free(line);
    world_fini(&w);
}
END_TEST

/* Proves 7.8/engine: `done` is last and sent once, on a stopped run too
 * Proves 7.8: One event per finished stage, failing ones too, and one end marker on every path, last; a slow reader
 * blocks nobody
 * Proves 10/stream: A typed stream of events with fixed order
 * Proves W41: The stream has the output by its own key, before clearing, for every stage; errors are told
 * Proves 7.11, 8.5/lifecycle */
START_TEST(rule_7_8_done_is_last_and_once)
{
    struct how how = {0};
    struct world w;
    const char *done, *text;

    world_run(&w, &how, LOOP, "models: {plan: [{json: {n: 1}}], judge: [{json: {verdict: again}}]}");
    text = rv_buf_cstr(&w.events);
    done = strstr(text, "\"type\":\"done\"");
    ck_assert_ptr_nonnull(done);
    ck_assert_ptr_null(strstr(done + 1, "\"type\":"));
    ck_assert_ptr_nonnull(strstr(done, "\"terminal_reason\":\"max_loop_exceeded\""));
    world_fini(&w);
}
END_TEST

static size_t n_lines(const rv_buf *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++)
        n += b->ptr[i] == '\n';
    return n;
}

/* Proves 7.9/engine: State is handed out after each stage and at the end
 * Proves W43/engine: Failed and stopped runs are saved too
 * Proves 7.9/save */
START_TEST(rule_7_9_state_is_saved_after_each_stage_and_at_the_end)
{
    struct how how = {.saves = true};
    struct world w;
    char *state;

    world_run(&w, &how, ERRORS, "stages: {work: [{error: broken}], help: [{output: {ok: true}}]}");
    ck_assert_uint_ge(n_lines(&w.states), 3);
    state = world_state(&w);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&w.states), state)); /* the last one is the final state */
    free(state);
    world_fini(&w);
}
END_TEST

START_TEST(chunks_arrive_one_after_the_other)
{
    struct how how = {0};
    struct world w;

    world_run(&w, &how, ONE_LLM, "models: {ask: [{chunks: ['{\"a\"', ': 1}'], delay_ms: 20}]}");
    ck_assert_str_eq(rv_buf_cstr(&w.deltas), "0@20 {\"a\"\n0@40 : 1}\n");
    world_fini(&w);
}
END_TEST

/* What a run has so far grows with it. A script that looks for no text is not shown it. */
START_TEST(a_script_is_shown_what_it_looks_for)
{
    static const char *const scripts[] = {"stages: {work: [{error: broken}], help: [{output: {}}]}",
                                          "stages: {work: [{error: broken}], help: [{contains: '{', output: {}}]}"};
    struct how how = {.traces = true};
    struct world w;

    for (int sees = 0; sees < 2; sees++) {
        world_run(&w, &how, ERRORS, scripts[sees]);
        const char *help = strstr(rv_buf_cstr(&w.effects), "\"stage\":\"help\",\"visit\":1");
        ck_assert_ptr_nonnull(help);
        ck_assert_ptr_nonnull(strstr(help, "\"raw_input\""));
        ck_assert_int_eq(strstr(help, "\"outputs\"") != NULL, sees);
        world_fini(&w);
    }
}
END_TEST

/* Proves 10/metrics: Each visit tells its duration and model calls, each model call its tokens, the run the sums */
START_TEST(usage_is_reported)
{
    struct how how = {0};
    struct world w;
    char *line;

    world_run(&w, &how, ONE_LLM, "models: {ask: [{json: {}, usage: {input_tokens: 90, output_tokens: 4}}]}");
    line = world_event(&w, "llm_result", "\"input_tokens\":90,\"output_tokens\":4");
    ck_assert_ptr_nonnull(line);
    free(line);
    world_fini(&w);
}
END_TEST

/* Proves 7.10/engine */
START_TEST(an_answer_that_does_not_fit_is_an_error_and_the_run_stays_interrupted)
{
    struct how how = {0};
    struct world w;
    rv_err *err = NULL;

    world_load(&w, GATE, WIPE "answers: [{text: yes please}]", NULL);
    world_start(&w, &how, "x");
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, &err), RV_E_INVALID);
    ck_assert_str_eq(world_status(&w), "interrupted");
    ck_assert(rv_envelope_has_interrupt(rv_exec_envelope(w.exec)));
    rv_err_free(err);
    world_fini(&w);
}
END_TEST

/* Proves 7.2/cancelled: cancelled: the caller asked
 * Proves 7.8/engine */
START_TEST(a_cancelled_run_ends_as_cancelled)
{
    struct how how = {0};
    struct world w;

    world_load(&w, FAN, "models: {left: [{json: {}, delay_ms: 10}], right: [{json: {}, delay_ms: 10}]}", NULL);
    world_start(&w, &how, "x");
    rv_exec_cancel(w.exec);
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, NULL), 0);
    ck_assert_str_eq(world_status(&w), "cancelled");
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&w.events), "\"type\":\"done\""));
    world_fini(&w);
}
END_TEST

/* Proves 11.4/engine: Jobs own their data; an engine may be freed before its runs */
START_TEST(an_engine_may_go_before_its_runs)
{
    struct how how = {0};
    struct world w;

    world_load(&w, FAN, "models: {left: [{json: {}}], right: [{json: {}}]}", NULL);
    world_start(&w, &how, "x");
    rv_engine_free(w.engine);
    w.engine = NULL;
    ck_assert(rv_exec_has_ended(w.exec));
    world_fini(&w);
}
END_TEST

START_TEST(several_runs_share_an_engine)
{
    struct how how = {0};
    struct world w;
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_exec *second = NULL;
    rv_envelope *env;

    world_load(&w, FAN, "models: {left: [{json: {}, delay_ms: 50}], right: [{json: {}, delay_ms: 10}]}", NULL);
    world_start(&w, &how, "x");
    opts.pipeline = w.pipeline;
    opts.script = w.script;
    ck_assert_int_eq(
        rv_engine_start(w.engine, &opts, world_envelope("y", rv_engine_now_us(w.engine)), NULL, &second, NULL), 0);
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, NULL), 0);
    ck_assert_int_eq(rv_engine_wait(w.engine, second, NULL), 0);
    ck_assert_int_eq(world_elapsed_ms(&w), 50);
    ck_assert_int_eq(rv_exec_status(second), RV_RUN_COMPLETED);
    env = rv_exec_steal_envelope(second);
    ck_assert_ptr_null(rv_exec_envelope(second));
    rv_envelope_free(env);
    rv_exec_free(second);
    world_fini(&w);
}
END_TEST

Suite *runs_suite(void)
{
    Suite *suite = suite_create("runs");
    TCase *tc = tcase_create("runs");

    tcase_add_loop_test(tc, runs, 0, RV_COUNT(cases));
    tcase_add_loop_test(tc, failures_say_why, 0, RV_COUNT(failures));
    tcase_add_test(tc, rule_7_8_done_is_last_and_once);
    tcase_add_test(tc, rule_7_9_state_is_saved_after_each_stage_and_at_the_end);
    tcase_add_test(tc, chunks_arrive_one_after_the_other);
    tcase_add_test(tc, a_script_is_shown_what_it_looks_for);
    tcase_add_test(tc, usage_is_reported);
    tcase_add_test(tc, an_answer_that_does_not_fit_is_an_error_and_the_run_stays_interrupted);
    tcase_add_test(tc, a_cancelled_run_ends_as_cancelled);
    tcase_add_test(tc, an_engine_may_go_before_its_runs);
    tcase_add_test(tc, several_runs_share_an_engine);
    suite_add_tcase(suite, tc);
    return suite;
}

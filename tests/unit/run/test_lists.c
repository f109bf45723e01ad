/* Lists and inner pipelines, whatever the order in which calls end (graph 8.1, 10), and lists that a model may send. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/run/suites.h"

#define N_ORDERS 60

static const char inner[] = "name: i\nmodels: {m: scripted}\ninputs: [w]\nagents:\n"
                            "  - {name: x, has_llm: true, model_role: m, prompt_key: p, default_next: y}\n"
                            "  - {name: y, has_llm: true, model_role: m, prompt_key: p}\n"
                            "prompts: {p: 'about {{inputs.w}}'}\n";
#define HEAD                                                                                                           \
    "name: t\nmodels: {r: scripted}\nmax_llm_calls: 99\nmax_agent_hops: 99\nagents:\n"                                 \
    "  - {name: l, set: {v: \"[0, 1, 2, 3, 4, 5, 6]\"}, default_next: e}\n"
static const char *const pipelines[] = {
    HEAD "  - {name: e, for_each: outputs.l.v, max_items: 9, max_parallel: 3, on_item_error: collect, has_llm: true,"
         " model_role: r, prompt_key: p, max_retries: 1, default_next: f}\n"
         "  - {name: f, set: {n: size(outputs.e.results)}}\nprompts: {p: 'about {{item}}'}\n",
    HEAD
    "  - {name: e, for_each: outputs.l.v, max_items: 9, max_parallel: 4, on_item_error: skip, pipeline: inner.yaml,"
    " inputs: {w: item}, default_next: f}\n"
    "  - {name: f, set: {n: size(outputs.e.results)}}\n",
    HEAD "  - {name: e, for_each: outputs.l.v, max_items: 9, max_parallel: 2, has_llm: true, model_role: r,"
         " prompt_key: p, error_next: f}\n"
         "  - {name: f, set: {n: 1}}\nprompts: {p: 'about {{item}}'}\n",
};

/* By what is asked, not by when. */
static const char *reply(struct drive *d, const struct drive_call *c, bool *handled)
{
    static char text[64];
    const char *prompt = drive_request(c, "prompt");
    long n = strtol(prompt + strcspn(prompt, "0123456789"), NULL, 10);

    (void)d;
    *handled = true;
    if (n == 2)
        return "!:no";
    if (n == 4 && c->attempt == 1)
        return "?:busy";
    snprintf(text, sizeof text, "{'v':%ld}", n * 10);
    return text;
}

static char *outcome(const char *yaml, uint64_t jitter)
{
    json_object *files = json_object_new_object();
    rv_buf all = RV_BUF_INIT((size_t)1 << 20);

    json_object_object_add(files, "inner.yaml", json_object_new_string(inner));
    struct drive *d = drive_new_of(yaml, files, NULL, 0);
    json_object_put(files);
    d->answer = reply;
    d->jitter = jitter;
    d->opts.saves = RV_SAVES_NONE;
    drive_envelope(d, NULL);
    rv_buf_printf(&all, "%s", rv_run_status_text(drive_run(d)));
    rv_buf_printf(&all, " %s", drive_state(d, "outputs"));
    rv_buf_printf(&all, " %s", drive_state(d, "terminal_reason"));
    rv_buf_printf(&all, " %s", drive_state(d, "stage_visits"));
    drive_free(d);
    return rv_buf_steal(&all, NULL);
}

START_TEST(an_outcome_does_not_depend_on_the_order_of_answers)
{
    char *first = outcome(pipelines[_i], 0);

    for (uint64_t jitter = 1; jitter <= N_ORDERS; jitter++) {
        char *other = outcome(pipelines[_i], jitter);
        ck_assert_msg(strcmp(first, other) == 0, "order %d:\n%s\nand\n%s", (int)jitter, first, other);
        free(other);
    }
    free(first);
}
END_TEST

static const struct {
    const char *list, *want;
} hostile[] = {
    {"null", "\"completed\""},   {"[]", "\"completed\""},
    {"'text'", "\"completed\""}, {"{'0':1}", "\"completed\""},
    {"17", "\"completed\""},     {"[null,[],{},[[[[[[[[[[]]]]]]]]]],'\\u0000',-0.0,1e308,{'item':1}]", "\"completed\""},
};

START_TEST(what_a_model_sends_as_a_list_fails_the_stage_at_worst)
{
    static const char yaml[] = "name: t\nmodels: {r: scripted}\nmax_agent_hops: 30\nagents:\n"
                               "  - {name: l, has_llm: true, model_role: r, default_next: e}\n"
                               "  - {name: e, for_each: outputs.l.v, max_items: 9, set: {i: item, n: index},"
                               " error_next: f}\n"
                               "  - {name: f, set: {caught: true}}\n";
    char text[256];

    struct drive *d = drive_new(yaml, NULL, 0);
    snprintf(text, sizeof text, "{'v':%s}", hostile[_i].list);
    const struct drive_answer answers[] = {{"llm:l", text, false, 0}};
    drive_answers(d, answers, 1);
    drive_envelope(d, NULL);
    drive_run(d);
    ck_assert_str_eq(drive_state(d, "status"), hostile[_i].want);
    drive_free(d);
}
END_TEST

/* --- the work of a stage is done once more, since its output contradicts itself --- */

static const struct drive_tool pays[] = {{"pay", RV_RISK_WRITE, NULL, NULL, 0}};
#define PAYING(first)                                                                                                  \
    "name: i\nagents:\n"                                                                                               \
    "  - {name: plan, set: {steps: [{tool: \"'pay'\"}]}, default_next: act}\n"                                         \
    "  - {name: act, has_tools: true, tool_access: all" first "}\n"                                                    \
    "  - {name: more, has_tools: true, tool_access: all, ask: {question: sure?}, on_answer: {yes: rest, no: end}}\n"   \
    "  - {name: rest, has_tools: true, tool_access: all}\n"
static const char *const paying[] = {PAYING(", ask: {question: ok?}, on_answer: {yes: more, no: end}"),
                                     PAYING(", default_next: rest")};
static const char around[] = "name: m\nagents:\n"
                             "  - {name: deep, pipeline: inner.yaml, outputs: {outcome: \"'loop_back'\", verdict: "
                             "\"'proceed'\"}, default_next: last,"
                             " error_next: last}\n"
                             "  - {name: last, set: {outcome: \"'loop_back'\", verdict: \"'proceed'\"}}\n";
#define TWICE(file)                                                                                                    \
    "name: t\nmax_agent_hops: 99\nagents:\n"                                                                           \
    "  - {name: s, pipeline: " file ", outputs: {outcome: \"'loop_back'\", verdict: \"'proceed'\"}, error_next: e}\n"  \
    "  - {name: e, set: {v: 1}}\n"
static const char *const repeating[] = {TWICE("inner.yaml"), TWICE("around.yaml")};
#define N_REPEATING 4 /* each of them with each inner pipeline */

START_TEST(work_that_is_done_again_has_other_keys_and_other_questions)
{
    json_object *files = json_object_new_object();
    const struct rv_response yes = {.choice = RV_STR_LIT("yes")};
    char *asked[16] = {NULL};
    size_t n = 0;

    json_object_object_add(files, "inner.yaml", json_object_new_string(paying[_i / 2]));
    json_object_object_add(files, "around.yaml", json_object_new_string(around));
    struct drive *d = drive_new_of(repeating[_i % 2], files, pays, RV_COUNT(pays));
    json_object_put(files);
    drive_envelope(d, NULL);
    for (drive_run(d); rv_run_status(d->run) == RV_RUN_INTERRUPTED && n < RV_COUNT(asked); n++) {
        asked[n] = rv_str_dup(rv_str_of(drive_state(d, "interrupt.id")));
        for (size_t i = 0; i < n; i++)
            ck_assert_msg(strcmp(asked[i], asked[n]) != 0, "questions %zu and %zu are %s", i, n, asked[n]);
        ck_assert_int_eq(drive_go_on(d, &yes, NULL), 0);
    }
    ck_assert_msg(rv_run_status(d->run) == RV_RUN_COMPLETED && drive_n_calls(d, RV_EFFECT_CALL_TOOL) > 3,
                  "%zu questions\n%s", n, drive_story(d));
    for (size_t i = 0; i < d->n_calls; i++)
        for (size_t j = 0; d->calls[i].key && j < i; j++)
            ck_assert_msg(!d->calls[j].key || strcmp(d->calls[i].key, d->calls[j].key) != 0,
                          "calls %zu and %zu have the key %s", j, i, d->calls[i].key);
    while (n > 0)
        free(asked[--n]);
    drive_free(d);
}
END_TEST

/* --- a stage inside has the name of the stage around it --- */

static const char named[] =
    "name: i\nagents:\n"
    "  - {name: s, set: {v: 1}, routing_rules: [{condition: v, value: 1, target: confirmation}], default_next: r}\n"
    "  - {name: r, set: {v: 2}}\n";
static const char *const same_names[] = {
    "name: t\nagents:\n  - {name: s, pipeline: inner.yaml}\n",
    "name: t\nagents:\n  - {name: f, set: {v: 1}, default_next: [s, b]}\n"
    "  - {name: s, pipeline: inner.yaml, default_next: j}\n  - {name: b, set: {v: 1}, default_next: j}\n"
    "  - {name: j, join: all, set: {v: 1}}\n",
};

START_TEST(an_approval_is_for_the_stage_inside_that_asked)
{
    const struct rv_response yes = {.has_approved = true, .approved = true};
    json_object *files = json_object_new_object();

    json_object_object_add(files, "inner.yaml", json_object_new_string(named));
    struct drive *d = drive_new_of(same_names[_i], files, NULL, 0);
    json_object_put(files);
    drive_envelope(d, NULL);
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(drive_go_on(d, &yes, NULL), 0);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.s.r.v"), "2");
    drive_free(d);
}
END_TEST

TCase *lists_case(void)
{
    TCase *tc = tcase_create("lists");

    tcase_add_loop_test(tc, an_outcome_does_not_depend_on_the_order_of_answers, 0, RV_COUNT(pipelines));
    tcase_add_loop_test(tc, what_a_model_sends_as_a_list_fails_the_stage_at_worst, 0, RV_COUNT(hostile));
    tcase_add_loop_test(tc, work_that_is_done_again_has_other_keys_and_other_questions, 0, N_REPEATING);
    tcase_add_loop_test(tc, an_approval_is_for_the_stage_inside_that_asked, 0, RV_COUNT(same_names));
    return tc;
}

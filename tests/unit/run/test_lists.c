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
    int n = prompt[0] == '"' ? atoi(prompt + strcspn(prompt, "0123456789")) : 0;

    (void)d;
    *handled = true;
    if (n == 2)
        return "!:no";
    if (n == 4 && c->attempt == 1)
        return "?:busy";
    snprintf(text, sizeof text, "{'v':%d}", n * 10);
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

TCase *lists_case(void)
{
    TCase *tc = tcase_create("lists");

    tcase_add_loop_test(tc, an_outcome_does_not_depend_on_the_order_of_answers, 0, RV_COUNT(pipelines));
    tcase_add_loop_test(tc, what_a_model_sends_as_a_list_fails_the_stage_at_worst, 0, RV_COUNT(hostile));
    return tc;
}

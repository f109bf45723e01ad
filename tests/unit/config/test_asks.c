/* Questions of stages: the findings with their places, and what is not a fault. Rules: graph 7 and 13. */
#include "tests/unit/config/world.h"

#define A(keys)   "name: t\nagents:\n  - {name: a, default_next: b, " keys "}\n  - {name: b}\n"
#define LLM(keys) "name: t\nmodels: {m: scripted}\nagents:\n  - {name: a, has_llm: true, model_role: m, " keys "}\n"

static const struct {
    const char *text, *want;
} cases[] = {
    {A("ask: {question: q}, on_answer: {yes: b, no: end}"), ""},
    {A("ask: {question: q, options: [x, y]}, on_answer: {x: b}"), ""},
    {A("ask: {question: q, options: text}, on_answer: {text: b}"), ""},
    {A("ask: {question: q, expires_seconds: 5}, on_answer: {timeout: b}"), ""},
    {LLM("has_tools: true, tool_access: all, on_denied: tell_model"), ""},
    {A("ask: {question: q}, on_answer: {yse: b}"),
     "t.yaml:3:64: error: stage \"a\": on_answer has \"yse\", which is not a choice of the question\n"
     "  hint: did you mean \"yes\"? choices: yes, no\n"},
    {A("ask: {question: q, options: text}, on_answer: {yes: b}"),
     "t.yaml:3:79: error: stage \"a\": on_answer has \"yes\", which is not a choice of the question\n"
     "  hint: choices: text\n"},
    {A("on_answer: {yes: b}"), "t.yaml:3:43: error: stage \"a\": on_answer needs a question: the stage has no ask\n"
                               "  hint: add ask: {question: ...}\n"},
    {A("ask: {question: q}, on_answer: {timeout: b}"),
     "t.yaml:3:64: warning: stage \"a\": on_answer has a route for timeout, which is never taken\n"
     "  hint: add expires_seconds to ask, or leave this route out: a question without it never expires\n"},
    {A("ask: {question: q, options: [a, timeout]}"),
     "t.yaml:3:64: error: stage \"a\": the choice \"timeout\" means that no one answered in time, and no person can "
     "choose it\n  hint: give it another word\n"},
    {A("ask: {question: q}, for_each: \"[1]\", max_items: 1"),
     "t.yaml:3:37: error: stage \"a\": a stage with for_each cannot ask a person  [bad_for_each]\n"
     "  hint: ask in the stage that follows\n"},
    {A("on_denied: tell_model"),
     "t.yaml:3:43: error: stage \"a\": on_denied is tell_model, and no model calls tools here\n"
     "  hint: it is for stages with has_llm and has_tools\n"},
    {LLM("on_denied: tell_model"),
     "t.yaml:4:56: error: stage \"a\": on_denied is tell_model, and no model calls tools here\n"
     "  hint: it is for stages with has_llm and has_tools\n"},
    {"default_run_mode: parallel\n" A("ask: {question: q}, on_answer: {yes: b}"),
     "t.yaml:4:63: warning: stage \"a\": on_answer leads nowhere when stages run as soon as they are ready\n"
     "  hint: stages that need the answer see it in the output\n"},
    /* the answer is a field of the output, whatever its schema says */
    {LLM("ask: {question: q}, output_schema: {type: object, additionalProperties: false, properties: {n: {}}}, "
         "routing_rules: [{when: \"outputs.a.answer.choice == 'no'\", target: end}]"),
     ""},
};

START_TEST(a_question_that_cannot_be_answered_so_is_a_finding)
{
    expect_findings(cases[_i].text, cases[_i].want);
}
END_TEST

TCase *asks_case(void)
{
    TCase *tc = tcase_create("asks");

    tcase_add_loop_test(tc, a_question_that_cannot_be_answered_so_is_a_finding, 0, RV_COUNT(cases));
    return tc;
}

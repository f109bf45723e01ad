/* Rule 5.1: a run in which a stage has nobody to ask does not begin, and the refusal names stage, key and place. */
#include <stdio.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"
#include "tests/unit/engine/world.h"

#define ASKS    "agents: [{name: a, has_llm: true, model_role: fast}]"
#define PLAYED  "models: {fast: scripted}\n" ASKS
#define LEFT    "models: {fast: {model: '${env:RV_NO_SUCH_MODEL}', optional: true}}\n"
#define WORKS   "agents: [{name: a, has_tools: true, tool_access: all}]"
#define MOCKED  "agents: [{name: a, has_llm: true, model_role: fast, mock_handler: hello.mock, mock: true}]"
#define ANSWERS "models: {a: [{json: {n: 1}}]}"

static const struct {
    const char *pipeline, *script, *text; /* text "": nothing is wrong */
} cases[] = {
    {ASKS, NULL, "p.yaml:2:47: error: agent \"a\": model_role \"fast\" resolves to no model\n  hint: name one"},
    {ASKS, ANSWERS, ""},
    {ASKS, "stages: {a: [{output: {n: 1}}]}", ""},
    {ASKS, "tools: {x: [{result: {}}]}", "model_role \"fast\" resolves to no model"},
    {PLAYED, NULL,
     "p.yaml:3:47: error: agent \"a\": model_role \"fast\" is played by a script, and the run has no script"},
    {PLAYED, ANSWERS, ""},
    {"models: {fast: 'openai:gpt-x'}\n" ASKS, NULL, ""},
    {LEFT ASKS, NULL,
     "model_role \"fast\" is left out, because the variable RV_NO_SUCH_MODEL is not set\n  hint: set the variable"},
    {LEFT ASKS, ANSWERS, ""},
    {LEFT "agents: [{name: a, has_llm: true, model_role: fast, error_next: end}]", NULL, ""},
    {MOCKED, NULL, ""},
    {WORKS, NULL,
     "p.yaml:2:17: error: agent \"a\": has_tools is on, and the run has no tools at all\n  hint: name a capability"},
    {WORKS, "tools: {x: [{result: {}}]}", ""},
    {WORKS, "stages: {a: [{output: {}}]}", ""},
    {"agents: [{name: a}]", NULL, ""},
};

static void load(struct world *w, int i)
{
    char text[512];

    snprintf(text, sizeof text, "name: p\n%s\n", cases[i].pipeline);
    world_load(w, text, cases[i].script, NULL);
}

/* Proves 5.1/checks: A stage that calls models needs a model, a stage that runs tools needs a source of tools, a
 * stage with policies needs one bound, or nothing is run; mocked and scripted stages need neither model nor tools.
 * Access that allows nothing is a warning (4.3), and its steps are denied (6.1) */
START_TEST(what_nothing_answers_for_is_found)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_findings *f = rv_findings_new();
    rv_buf text = RV_BUF_INIT(4096);
    struct world w;

    load(&w, _i);
    opts.pipeline = w.pipeline;
    opts.script = w.script;
    ck_assert_int_eq(rv_exec_check(&opts, f, NULL), 0);
    rv_findings_write_text(f, false, &text);
    ck_assert_msg(cases[_i].text[0] ? strstr(rv_buf_cstr(&text), cases[_i].text) != NULL : text.len == 0, "%s",
                  rv_buf_cstr(&text));
    rv_buf_fini(&text);
    rv_findings_free(f);
    world_fini(&w);
}
END_TEST

/* Proves 5.1/checks */
START_TEST(a_run_of_it_does_not_begin)
{
    struct how how = {0};
    rv_err *err = NULL;
    struct world w;

    load(&w, _i);
    int rc = world_try_start(&w, &how, "x", &err);
    ck_assert_int_eq(rc, cases[_i].text[0] ? RV_E_INVALID : 0);
    ck_assert_ptr_null(cases[_i].text[0] ? w.exec : NULL);
    ck_assert_uint_eq(w.events.len, 0);
    rv_err_free(err);
    world_fini(&w);
}
END_TEST

Suite *bound_suite(void)
{
    Suite *suite = suite_create("shell_bound");
    TCase *tc = tcase_create("bound");

    tcase_add_loop_test(tc, what_nothing_answers_for_is_found, 0, RV_COUNT(cases));
    tcase_add_loop_test(tc, a_run_of_it_does_not_begin, 0, RV_COUNT(cases));
    suite_add_tcase(suite, tc);
    return suite;
}

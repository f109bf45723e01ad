/* The hooks that answer a question, each with the envelope that the stage before it would leave. */
#include "tests/unit/files/sandbox.h"

#include <string.h>

static const struct {
    const char *args;
    int64_t attempt, max_results;
    const char *query;
} plans[] = {
    {"{\"envelope\": {\"raw_input\": \"How are errors reported?\"}}", 1, 8, "errors reported"},
    {"{\"envelope\": {\"raw_input\": \"How are errors reported?\", \"iteration\": 1}}", 2, 16,
     "errors fail failur fault exception reported"},
    {"{\"envelope\": {\"raw_input\": \"How are errors reported?\", \"iteration\": 2}}", 3, 24, "reported"},
    {"{\"envelope\": {\"raw_input\": \"How are errors reported?\", \"iteration\": 9}}", 3, 24, "reported"},
};

START_TEST(each_attempt_searches_wider)
{
    struct sandbox s;
    json_object *reply;

    sandbox_begin(&s, NULL);
    reply = sandbox_ask(&s, "files.plan_search", plans[_i].args);
    ck_assert_int_eq(int_at(reply, "output.attempt"), plans[_i].attempt);
    ck_assert_str_eq(text_at(reply, "output.query"), plans[_i].query);
    ck_assert_str_eq(text_at(reply, "output.steps.0.tool"), "search_files");
    ck_assert_str_eq(text_at(reply, "output.steps.0.parameters.query"), plans[_i].query);
    ck_assert_int_eq(int_at(reply, "output.steps.0.parameters.max_results"), plans[_i].max_results);
    sandbox_end(&s);
}
END_TEST

START_TEST(a_question_without_words_plans_no_step)
{
    struct sandbox s;

    sandbox_begin(&s, NULL);
    sandbox_ask(&s, "files.plan_search", "{\"envelope\": {\"raw_input\": \"What is it?\"}}");
    ck_assert_uint_eq(json_object_array_length(at(s.json, "output.steps")), 0);
    sandbox_ask(&s, "files.plan_search", "{\"envelope\": {}}");
    ck_assert_uint_eq(json_object_array_length(at(s.json, "output.steps")), 0);
    sandbox_end(&s);
}
END_TEST

#define HIT(text)                                                                                                      \
    "{\"path\": \"docs/errors.md\", \"line\": 3, \"end_line\": 4, \"heading\": \"\", \"snippet\": \"" text "\"}"
#define JUDGE(question, iteration, hits)                                                                               \
    "{\"envelope\": {\"raw_input\": \"" question "\", \"iteration\": " iteration                                       \
    ", \"outputs\": {\"search\": {\"results\": [{\"data\": {\"hits\": [" hits "]}}]}}}}"

static const struct {
    const char *args, *verdict, *coverage;
    size_t n_steps;
} judgements[] = {
    {JUDGE("error codes", "0", HIT("an error has a code")), "proceed", "1.00", 1},
    {JUDGE("error codes", "0", HIT("an error") "," HIT("a code")), "proceed", "0.75", 2},
    {JUDGE("error codes", "0", HIT("an error")), "loop_back", "0.50", 0},
    {JUDGE("error codes", "1", HIT("an error")), "loop_back", "0.50", 0},
    {JUDGE("error codes", "2", HIT("an error")), "nothing", "0.50", 0},
    {JUDGE("error codes of zebras, always", "2", HIT("an error always has a code")), "proceed", "0.75", 1},
    {JUDGE("error codes", "0", HIT("a failure has a code")), "loop_back", "0.50", 0},
    {JUDGE("error codes", "1", HIT("a failure has a code")), "proceed", "1.00", 1}, /* near words count when widened */
    {JUDGE("error codes", "2", ""), "nothing", "0.00", 0},
    {JUDGE("error codes", "0", ""), "loop_back", "0.00", 0},
    {JUDGE("green ideas sleep", "2", HIT("green") "," HIT("ideas")), "nothing", "0.50", 0},
    {JUDGE("what is it", "0", ""), "nothing", "0.00", 0},
    {"{\"envelope\": {\"raw_input\": \"error\", \"iteration\": 2, \"outputs\": {\"search\": {\"results\": []}}}}",
     "nothing", "0.00", 0},
    {"{\"envelope\": {\"raw_input\": \"error\", \"iteration\": 2, \"outputs\": {}}}", "nothing", "0.00", 0},
};

START_TEST(coverage_decides_the_verdict)
{
    struct sandbox s;
    json_object *reply;
    rv_buf coverage = RV_BUF_INIT(64);

    sandbox_begin(&s, NULL);
    reply = sandbox_ask(&s, "files.judge_coverage", judgements[_i].args);
    rv_json_write(at(reply, "output.coverage"), &coverage);
    ck_assert_str_eq(rv_buf_cstr(&coverage), judgements[_i].coverage);
    ck_assert_str_eq(text_at(reply, "output.verdict"), judgements[_i].verdict);
    ck_assert_uint_eq(json_object_array_length(at(reply, "output.steps")), judgements[_i].n_steps);
    ck_assert_int_eq(at(reply, "output.feedback") != NULL, strcmp(judgements[_i].verdict, "loop_back") == 0);
    rv_buf_fini(&coverage);
    sandbox_end(&s);
}
END_TEST

START_TEST(feedback_names_what_is_missing)
{
    struct sandbox s;

    sandbox_begin(&s, NULL);
    sandbox_ask(&s, "files.judge_coverage", JUDGE("error codes of zebras", "0", HIT("an error")));
    ck_assert_str_eq(text_at(s.json, "output.feedback"), "no passage has: codes, zebras");
    ck_assert_str_eq(text_at(s.json, "output.missing.1"), "zebras");
    sandbox_end(&s);
}
END_TEST

#define READ                                                                                                           \
    "{\"status\": \"success\", \"data\": {\"path\": \"docs/errors.md\", \"lines\": [{\"line\": 3, \"text\": "          \
    "\"  Some words.\"}, {\"line\": 4, \"text\": \"An error has\"}, {\"line\": 5, \"text\": \"a code. More.\"}]}}"

START_TEST(the_answer_quotes_the_lines_that_fit)
{
    struct sandbox s;

    sandbox_begin(&s, NULL);
    sandbox_ask(&s, "files.write_answer",
                "{\"envelope\": {\"raw_input\": \"error code\", \"outputs\": {\"read\": {\"results\": [" READ
                ", {\"status\": \"error\"}]}}}}");
    ck_assert_str_eq(text_at(s.json, "output.final_response"),
                     "The files say:\n\ndocs/errors.md:4: \"An error has a code. More.\"");
    sandbox_end(&s);
}
END_TEST

START_TEST(a_draft_of_a_model_stands_above_the_quotes)
{
    struct sandbox s;
    const char *text;

    sandbox_begin(&s, NULL);
    sandbox_ask(
        &s, "files.write_answer",
        "{\"envelope\": {\"raw_input\": \"error code\", \"outputs\": {\"draft\": {\"response\": \"It has one.\"}, "
        "\"read\": {\"results\": [" READ "]}}}}");
    text = text_at(s.json, "output.final_response");
    ck_assert_ptr_eq(strstr(text, "It has one.\n\nFrom the files:\n\n"), text);
    sandbox_end(&s);
}
END_TEST

START_TEST(nothing_found_is_said_plainly)
{
    struct sandbox s;

    sandbox_begin(&s, NULL);
    sandbox_ask(&s, "files.write_answer",
                "{\"envelope\": {\"raw_input\": \"purple okapis\", \"outputs\": {\"judge\": {\"attempt\": 3}}}}");
    ck_assert_str_eq(text_at(s.json, "output.final_response"),
                     "Nothing was found about this in the files (3 searches for purple, okapis).");
    ck_assert_uint_eq(json_object_array_length(at(s.json, "output.quotes")), 0);
    ck_assert(!json_object_get_boolean(at(s.json, "output.found")));
    sandbox_ask(&s, "files.write_answer", "{\"envelope\": {\"raw_input\": \"what is it?\"}}");
    ck_assert_ptr_nonnull(strstr(text_at(s.json, "output.final_response"), "no word that could be looked for"));
    sandbox_end(&s);
}
END_TEST

TCase *hooks_case(void)
{
    TCase *tc = tcase_create("hooks");

    tcase_add_loop_test(tc, each_attempt_searches_wider, 0, RV_COUNT(plans));
    tcase_add_test(tc, a_question_without_words_plans_no_step);
    tcase_add_loop_test(tc, coverage_decides_the_verdict, 0, RV_COUNT(judgements));
    tcase_add_test(tc, feedback_names_what_is_missing);
    tcase_add_test(tc, the_answer_quotes_the_lines_that_fit);
    tcase_add_test(tc, a_draft_of_a_model_stands_above_the_quotes);
    tcase_add_test(tc, nothing_found_is_said_plainly);
    return tc;
}

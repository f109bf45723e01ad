/* Ids of tool calls: no two of a visit are alike, whatever a provider calls them. */
#include "tests/unit/agent/suites.h"
#include "tests/unit/run/drive.h"

static const char pipeline[] = "name: t\nmodels: {r: 'openai:gpt-x'}\nagents:\n  - name: a\n    has_llm: true\n"
                               "    model_role: r\n    has_tools: true\n    output_mode: text\n    tool_access: all\n";
static const char pipeline_asks[] =
    "name: t\nmodels: {r: 'openai:gpt-x'}\nagents:\n  - name: a\n    has_llm: true\n    model_role: r\n"
    "    max_repairs: 2\n    output_schema: {type: object, required: [n], properties: {n: {type: integer}}}\n";
static const struct drive_tool tools[] = {{"put", RV_RISK_WRITE, NULL, NULL, 0},
                                          {"look", RV_RISK_READ_ONLY, NULL, NULL, 0}};
static const char start[] = "{'envelope_id':'env_1','raw_input':'what is it?'}";

static struct drive *driven(const char *yaml)
{
    struct drive *d = drive_new(yaml, tools, RV_COUNT(tools));

    drive_envelope(d, start);
    return d;
}

static const char *in_request(const struct drive *d, size_t n, const char *path)
{
    const struct drive_call *c = drive_call_at(d, RV_EFFECT_CALL_LLM, n);

    ck_assert_msg(c != NULL, "the model was not asked %zu times", n + 1);
    return drive_request(c, path);
}

START_TEST(an_id_that_comes_again_is_another_one)
{
    struct drive *d = driven(pipeline);

    DRIVE_TALK(d, {"llm:a", .calls = "call_1 look {} | call_3 put {}"}, {"tool:look", .reply = "{'v':1}"},
               {"tool:put", .reply = "{'n':1}"}, {"llm:a", .calls = "call_1 look {} | call_4 put {}"},
               {"tool:look", .reply = "{'v':2}"}, {"tool:put", .reply = "{'n':2}"},
               {"llm:a", .calls = "call_1 look {}"}, {"tool:look", .reply = "{'v':3}"}, {"llm:a", .reply = "it is so"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(in_request(d, 1, "turns.0.tool_calls.0.id"), "\"call_1\"");
    ck_assert_str_eq(in_request(d, 2, "turns.3.tool_calls.0.id"), "\"call_4\"");
    ck_assert_str_eq(in_request(d, 2, "turns.4.tool_call_id"), "\"call_4\"");
    ck_assert_str_eq(in_request(d, 2, "turns.3.tool_calls.1.id"), "\"call_5\"");
    ck_assert_str_eq(in_request(d, 2, "turns.5.tool_call_id"), "\"call_5\"");
    ck_assert_str_eq(in_request(d, 3, "turns.6.tool_calls.0.id"), "\"call_6\"");
    ck_assert(drive_replays(d, start));
    drive_free(d);
}
END_TEST

START_TEST(so_is_that_of_an_answer_which_did_not_fit)
{
    struct drive *d = driven(pipeline_asks);

    DRIVE_TALK(d, {"llm:a", .calls = "call_1 final_result {}"}, {"llm:a", .calls = "call_1 final_result {}"},
               {"llm:a", .calls = "call_1 final_result {'n':1}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(in_request(d, 2, "turns.0.tool_calls.0.id"), "\"call_1\"");
    ck_assert_str_eq(in_request(d, 2, "turns.2.tool_calls.0.id"), "\"call_2\"");
    ck_assert_str_eq(in_request(d, 2, "turns.3.tool_call_id"), "\"call_2\"");
    ck_assert(drive_replays(d, start));
    drive_free(d);
}
END_TEST

TCase *ids_case(void)
{
    TCase *tc = tcase_create("ids");

    tcase_add_test(tc, an_id_that_comes_again_is_another_one);
    tcase_add_test(tc, so_is_that_of_an_answer_which_did_not_fit);
    return tc;
}

/* Structured output: what a model may hand over and how, what it is told when that does not fit, and how often. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/suites.h"
#include "tests/unit/run/drive.h"

#define HEAD "name: t\nmodels: {r: 'openai:gpt-x'}\nagents:\n  - name: a\n    has_llm: true\n    model_role: r\n    "
#define SCHEMA                                                                                                         \
    "output_schema: {type: object, required: [n], additionalProperties: false, properties: {n: {type: integer}, "      \
    "s: {type: string}, m: {type: [string, 'null']}, o: {$ref: '#/$defs/o'}, l: {type: array, items: {$ref: "          \
    "'#/$defs/o'}}}, $defs: {o: {type: object, properties: {x: {type: integer}}}}}\n    "
#define STATE "{'envelope_id':'env_1','raw_input':'what is it?'}"

static const struct drive_tool tools[] = {{"read", RV_RISK_READ_ONLY, NULL, NULL, 0}};

static struct drive *stage(const char *more)
{
    rv_buf yaml = RV_BUF_INIT(1 << 16);

    rv_buf_printf(&yaml, "%s%s%s\n", HEAD, SCHEMA, more);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), tools, RV_COUNT(tools));
    drive_envelope(d, STATE);
    rv_buf_fini(&yaml);
    return d;
}

static const struct {
    const char *reply, *calls, *want; /* want NULL: it does not fit */
} outputs[] = {
    {"{'n':1}", NULL, "{\"n\":1}"},
    {"So: {'n':1}", NULL, "{\"n\":1}"},
    {NULL, "c1 final_result {'n':1}", "{\"n\":1}"},
    {"words", "c1 final_result {'n':1}", "{\"n\":1}"},
    {NULL, "c1 final_result {'n':1} | c2 final_result {'n':2}", "{\"n\":1}"},
    {NULL, "c1 read {} | c2 final_result {'n':1}", "{\"n\":1}"}, /* the other call is not made */
    {"{'n':1,'s':null}", NULL, "{\"n\":1}"},                     /* null for what may be left out */
    {"{'n':1,'m':null}", NULL, "{\"n\":1,\"m\":null}"},
    {"{'n':1,'o':{'x':null},'l':[{'x':null},{'x':2}]}", NULL, "{\"n\":1,\"o\":{},\"l\":[{},{\"x\":2}]}"},
    {"{'n':null}", NULL, NULL},
    {"{'n':'1'}", NULL, NULL},
    {"{'n':1,'y':1}", NULL, NULL},
    {"{'n':1,'y':null}", NULL, NULL},
    {"[1]", NULL, NULL},
    {"", NULL, NULL},
    {"no", NULL, NULL},
    {NULL, "c1 final_result {'n':", NULL},
    {NULL, "c1 final_result [1]", NULL},
    {NULL, "c1 final_result", NULL},
};

/* Proves 10/format: A response schema per stage that is handed to the provider, and checked here in any case
 * Proves 12.1/fit: The output fits its schema, or the stage fails
 * Proves 12.1/strict */
START_TEST(an_output_has_to_fit)
{
    const struct drive_said said[] = {{"llm:a", .reply = outputs[_i].reply, .calls = outputs[_i].calls, .stays = true}};
    struct drive *d = stage("max_repairs: 0\n    has_tools: true\n    tool_access: all");

    drive_talk(d, said, 1);
    ck_assert_int_eq(drive_run(d), outputs[_i].want ? RV_RUN_COMPLETED : RV_RUN_FAILED);
    ck_assert_uint_eq(d->n_llm, 1);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 0);
    ck_assert_str_eq(drive_state(d, "outputs.a"), outputs[_i].want ? outputs[_i].want : "absent");
    if (!outputs[_i].want) {
        ck_assert_str_eq(drive_state(d, "errors.0.error_type"), "\"ParseError\"");
        ck_assert(strstr(drive_state(d, "errors.0.error"), "after 0 of max_repairs (0) repairs: raise it") != NULL);
        ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"llm_failed_fatally\"");
    }
    ck_assert(drive_replays(d, STATE));
    drive_free(d);
}
END_TEST

static const struct {
    const char *reply, *calls, *turns;
} repairs[] = {
    {"{'n':'x'}", NULL,
     "[{\"role\":\"assistant\",\"content\":\"{\\\"n\\\":\\\"x\\\"}\"},{\"role\":\"user\",\"content\":\"This does not "
     "fit the schema of the answer: *. Correct it and answer again.\"}]"},
    {"", NULL,
     "[{\"role\":\"user\",\"content\":\"This does not fit the schema of the answer: no JSON object found: the model "
     "reply is empty. Correct it and answer again.\"}]"},
    {NULL, "c1 final_result {'n':'x'}",
     "[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c1\",\"name\":\"final_result\",\"arguments\":\"{\\\"n\\\":"
     "\\\"x\\\"}\"}]},{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"name\":\"final_result\",\"content\":\"This does not "
     "fit the schema of the answer: *. Correct it and answer again.\",\"is_error\":true}]"},
    {NULL, "c0 read {} | c1 final_result {'n':'x'} | c2 final_result {'n':1}",
     "[{\"role\":\"assistant\",\"tool_calls\":*},{\"role\":\"tool\",\"tool_call_id\":\"c0\",\"name\":\"read\","
     "\"content\":\"Not called: a final answer was given as well.\",\"is_error\":true},{\"role\":\"tool\","
     "\"tool_call_id\":\"c1\",\"name\":\"final_result\",\"content\":\"This does not fit the schema of the answer: *. "
     "Correct it and answer again.\",\"is_error\":true},{\"role\":\"tool\",\"tool_call_id\":\"c2\",\"name\":"
     "\"final_result\",\"content\":\"Not called: a final answer was given as well.\",\"is_error\":true}]"},
};

/* Both are the same but for what stands where want has a star. */
static bool matches(const char *got, const char *want)
{
    while (*want) {
        size_t n = strcspn(want, "*");
        const char *next = want + n + 1;
        if (strncmp(got, want, n) != 0)
            return false;
        if (!want[n])
            return got[n] == '\0';
        size_t m = strcspn(next, "*");
        char *part = rv_str_dup((rv_str){next, m});
        got = strstr(got + n, part);
        free(part);
        if (!got)
            return false;
        want = next;
    }
    return *got == '\0';
}

/* Proves 12.1/repair: The model is told all that does not fit, where, and asked again; nothing is repaired in
 * silence; repairs are bounded */
START_TEST(the_model_is_told_what_does_not_fit)
{
    const struct drive_said said[] = {{"llm:a", .reply = repairs[_i].reply, .calls = repairs[_i].calls},
                                      {"llm:a", .reply = "{'n':2}"}};
    struct drive *d = stage("has_tools: true\n    tool_access: all");

    drive_talk(d, said, RV_COUNT(said));
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.a"), "{\"n\":2}");
    const char *turns = drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, 1), "turns");
    ck_assert_msg(matches(turns, repairs[_i].turns), "%s\nwanted %s", turns, repairs[_i].turns);
    ck_assert_int_eq(drive_call_at(d, RV_EFFECT_CALL_LLM, 1)->attempt, 1); /* a repair is no retry */
    ck_assert_msg(strstr(drive_story(d), "llm_result:a retry:a llm_call_start:a") != NULL, "%s", drive_story(d));
    ck_assert(drive_replays(d, STATE));
    drive_free(d);
}
END_TEST

/* Proves 12.1/repair */
START_TEST(repairs_are_bounded)
{
    struct drive *d = stage("max_repairs: 2\n    max_retries: 3");

    DRIVE_TALK(d, {"llm:a", .reply = "no", .stays = true});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_uint_eq(d->n_llm, 3);
    ck_assert(strstr(drive_state(d, "errors.0.error"), "after 2 of max_repairs (2)") != NULL);
    drive_free(d);
    d = stage("max_repairs: 1\n    error_next: b\n  - {name: b}");
    DRIVE_TALK(d, {"llm:a", .reply = "no", .stays = true});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(d->n_llm, 2);
    drive_free(d);
}
END_TEST

START_TEST(required_fields_are_asked_for_as_the_schema_is)
{
    struct drive *d = stage("required_output_fields: [s]");

    DRIVE_TALK(d, {"llm:a", .reply = "{'n':1,'s':null}"}, {"llm:a", .reply = "{'n':1,'s':'x'}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.a"), "{\"n\":1,\"s\":\"x\"}");
    const char *text = drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, 1), "turns.1.content");
    ck_assert_msg(strstr(text, "required field \\\"s\\\" is missing") != NULL, "%s", text);
    drive_free(d);
}
END_TEST

/* All of it at once: a model that mends one fault after the other runs out of repairs. */
/* Proves 12.1/repair */
START_TEST(every_fault_is_told_with_its_place)
{
    static const char *const faults[] = {"/l/0/x: expected integer, found string \\\"a\\\"",
                                         "/l/1/x: expected integer, found boolean",
                                         "(root): missing required property \\\"n\\\"",
                                         "(root): unknown property \\\"y\\\"",
                                         "required field \\\"s\\\" is missing",
                                         "required field \\\"m\\\" is missing"};
    struct drive *d = stage("required_output_fields: [n, s, m]");

    DRIVE_TALK(d, {"llm:a", .reply = "{'y':1,'l':[{'x':'a'},{'x':true}]}"},
               {"llm:a", .reply = "{'n':1,'s':'x','m':null,'l':[]}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    const char *text = drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, 1), "turns.1.content");
    for (size_t i = 0; i < RV_COUNT(faults); i++)
        ck_assert_msg(strstr(text, faults[i]) != NULL, "%s\nin %s", faults[i], text);
    drive_free(d);
}
END_TEST

/* Proves 12.1/repair */
START_TEST(a_cut_off_answer_is_told_as_one)
{
    struct drive *d = stage("max_tokens: 9");

    DRIVE_TALK(d, {"llm:a", .reply = "{'n':1", .more = "{'finish_reason':'length'}"}, {"llm:a", .reply = "{'n':1}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    const char *text = drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, 1), "turns.1.content");
    ck_assert_msg(strstr(text, "cut off at max_tokens (9)") != NULL, "%s", text);
    drive_free(d);
}
END_TEST

/* Proves 12/well-formed */
START_TEST(tools_and_an_output_tool_go_together)
{
    struct drive *d = stage("has_tools: true\n    tool_access: all\n    output_via: tool");

    DRIVE_TALK(d, {"llm:a", .calls = "c1 read {}"}, {"llm:a", .calls = "c2 final_result {}"},
               {"llm:a", .calls = "c3 read {}"}, {"llm:a", .calls = "c4 final_result {'n':7}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.a"), "{\"n\":7}");
    ck_assert_str_eq(drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, 0), "output.via"), "\"tool\"");
    ck_assert_str_eq(drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, 3), "turns.n"), "6");
    ck_assert(drive_replays(d, STATE));
    drive_free(d);
}
END_TEST

START_TEST(tools_are_asked_for_though_none_are_offered)
{
    struct drive *d = stage("max_bad_calls: 1");

    DRIVE_TALK(d, {"llm:a", .calls = "c1 read {}", .stays = true});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_uint_eq(d->n_llm, 2);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 0);
    drive_free(d);
}
END_TEST

TCase *structured_case(void)
{
    TCase *tc = tcase_create("structured");

    tcase_add_loop_test(tc, an_output_has_to_fit, 0, RV_COUNT(outputs));
    tcase_add_loop_test(tc, the_model_is_told_what_does_not_fit, 0, RV_COUNT(repairs));
    tcase_add_test(tc, repairs_are_bounded);
    tcase_add_test(tc, required_fields_are_asked_for_as_the_schema_is);
    tcase_add_test(tc, every_fault_is_told_with_its_place);
    tcase_add_test(tc, a_cut_off_answer_is_told_as_one);
    tcase_add_test(tc, tools_and_an_output_tool_go_together);
    tcase_add_test(tc, tools_are_asked_for_though_none_are_offered);
    return tc;
}

/* Model stages: output_schema and what goes with it, limits of a visit. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/config/world.h"

#define AGENT(keys) "name: x\nagents:\n  - {name: a, has_llm: true, model_role: r, " keys "}\n"

static const struct {
    const char *text, *want;
} cases[] = {
    {AGENT("output_schema: 1"), "t.yaml:3:60: error: agent \"a\": output_schema must be a map, not integer 1\n"
                                "  hint: write a map: {key: value}\n"},
    {AGENT("output_schema: {type: array}"), "t.yaml:3:60: error: agent \"a\": output_schema must describe an object\n  "
                                            "hint: write \"type: object\" at its top\n"},
    {AGENT("output_schema: {file: 1}"),
     "t.yaml:3:67: error: agent \"a\": output_schema.file must be a string, not integer 1\n"
     "  hint: put it in quotes: \"1\"\n"},
    {AGENT("output_schema: {file: nowhere.json}"),
     "t.yaml:3:67: error: agent \"a\": output_schema: cannot open \"nowhere.json\": No such file or directory\n"
     "  hint: paths start at the folder of the pipeline\n"},
    {AGENT("output_schema: {type: object}, output_mode: text"),
     "t.yaml:3:60: error: agent \"a\": output_schema needs output_mode json, not text\n  hint: leave one of the two "
     "out\n"},
    {"name: x\nagents: [{name: a, output_schema: {type: object}}]\n",
     "t.yaml:2:35: error: agent \"a\": output_schema is for the reply of a model, and has_llm is not set\n"
     "  hint: set has_llm, or leave it out\n"},
    {AGENT("output_via: nativ, output_schema: {type: object}"),
     "t.yaml:3:57: error: agent \"a\": output_via is \"nativ\", which is not a valid way to structured output\n"
     "  hint: did you mean \"native\"? legal: auto, native, tool, prompt\n"},
    {AGENT("output_via: tool"),
     "t.yaml:3:57: warning: agent \"a\": output_via says how to come to an output that nothing describes\n"
     "  hint: give an output_schema\n"},
    {AGENT("max_repairs: 11, max_rounds: 0, max_bad_calls: -1"),
     "t.yaml:3:58: error: agent \"a\": max_repairs must be at most 10, not 11\n  hint: left out, it is 1\n"
     "t.yaml:3:74: error: agent \"a\": max_rounds must be at least 1, not 0\n  hint: left out, it is 10\n"
     "t.yaml:3:92: error: agent \"a\": max_bad_calls must be at least 0, not -1\n  hint: left out, it is 3\n"},
    {AGENT("limits: {request_limit: 0, token_limit: 1}"),
     "t.yaml:3:69: error: agent \"a\": limits.request_limit must be at least 1, not 0\n"
     "  hint: the nearest legal value is 1\n"
     "t.yaml:3:72: error: agent \"a\": unknown key \"limits.token_limit\"\n"
     "  hint: keys here: request_limit, tool_calls_limit, input_tokens_limit, output_tokens_limit, "
     "total_tokens_limit\n"},
};

/* Proves 12.1/load */
START_TEST(faults_of_model_stages_are_found)
{
    expect_findings(cases[_i].text, cases[_i].want);
}
END_TEST

START_TEST(a_model_stage_has_its_defaults)
{
    struct loaded l = load_clean("name: x\nagents: [{name: a, has_llm: true, model_role: r}]\n");
    const struct rv_agent *a = &l.p->agents[0];

    ck_assert_ptr_null(a->output.schema);
    ck_assert_int_eq(a->output.via, RV_OUTPUT_VIA_AUTO);
    ck_assert_int_eq(a->limits.max_repairs, RV_LLM_DEFAULT_REPAIRS);
    ck_assert_int_eq(a->limits.max_rounds, RV_LLM_DEFAULT_ROUNDS);
    ck_assert_int_eq(a->limits.max_bad_calls, RV_LLM_DEFAULT_BAD_CALLS);
    ck_assert_int_eq(a->limits.llm.request_limit, 0);
    ck_assert_int_eq(a->limits.llm.total_tokens_limit, 0);
    ck_assert_int_eq(a->limits.max_context_tokens, 0);
    ck_assert_uint_eq(a->hooks.before_model.n + a->hooks.after_tool.n, 0);
    loaded_fini(&l);
}
END_TEST

START_TEST(limits_are_kept_each_in_its_place)
{
    struct loaded l =
        load_clean(AGENT("output_via: prompt, output_schema: {type: object}, max_repairs: 0, max_rounds: 1000, "
                         "max_bad_calls: 100, limits: {request_limit: 1, tool_calls_limit: 2, input_tokens_limit: 3, "
                         "output_tokens_limit: 4, total_tokens_limit: 5}, max_context_tokens: 6"));
    const struct rv_agent *a = &l.p->agents[0];

    ck_assert_int_eq(a->output.via, RV_OUTPUT_VIA_PROMPT);
    ck_assert_int_eq(a->limits.max_repairs, 0);
    ck_assert_int_eq(a->limits.max_rounds, 1000);
    ck_assert_int_eq(a->limits.max_bad_calls, 100);
    ck_assert_int_eq(a->limits.llm.request_limit, 1);
    ck_assert_int_eq(a->limits.llm.tool_calls_limit, 2);
    ck_assert_int_eq(a->limits.llm.input_tokens_limit, 3);
    ck_assert_int_eq(a->limits.llm.output_tokens_limit, 4);
    ck_assert_int_eq(a->limits.llm.total_tokens_limit, 5);
    ck_assert_int_eq(a->limits.max_context_tokens, 6);
    loaded_fini(&l);
}
END_TEST

START_TEST(a_schema_in_a_file_is_kept_with_the_prompts)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "s.json");
    static const char schema[] =
        "{\"type\": \"object\",\n \"properties\": {\"a\": {\"type\": \"number\", \"minimum\": 1.50}}}";

    rv_kit_write(path, schema);
    struct loaded l =
        load_text(AGENT("output_schema: {file: s.json}, prompt_key: p") "  - {name: b, has_llm: true, "
                                                                        "model_role: r, output_schema: {file: "
                                                                        "s.json}}\nprompts: {p: {file: s.json}}\n",
                  dir);
    size_t n;
    const struct rv_text_file *files = rv_pipeline_files(l.p, &n);

    ck_assert_str_eq(l.findings, "");
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(files[0].path, path);
    ck_assert_str_eq(files[0].text.ptr, schema);
    ck_assert_str_eq(json_object_to_json_string_ext(l.p->agents[1].output.schema, JSON_C_TO_STRING_PLAIN),
                     "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\",\"minimum\":1.50}}}");
    loaded_fini(&l);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

static const struct {
    const char *text, *want;
} files[] = {
    {"[1]", "s.json:1:1: error: agent \"a\": output_schema must be a map, not list\n"},
    {"", "s.json:1:1: error: agent \"a\": output_schema must be a map, not an empty file\n"},
    {"{\"type\": \"object\",\n \"type\": \"object\"}", "s.json:2:2: "},
};

START_TEST(faults_of_a_schemas_file_have_their_place_there)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "s.json");

    rv_kit_write(path, files[_i].text);
    struct loaded l = load_text(AGENT("output_schema: {file: s.json}"), dir);
    ck_assert_msg(strstr(l.findings, files[_i].want), "%s", l.findings);
    ck_assert_msg(l.n_errors == 1, "%s", l.findings);
    loaded_fini(&l);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

TCase *outputs_case(void)
{
    TCase *tc = tcase_create("outputs");

    tcase_add_loop_test(tc, faults_of_model_stages_are_found, 0, RV_COUNT(cases));
    tcase_add_test(tc, a_model_stage_has_its_defaults);
    tcase_add_test(tc, limits_are_kept_each_in_its_place);
    tcase_add_test(tc, a_schema_in_a_file_is_kept_with_the_prompts);
    tcase_add_loop_test(tc, faults_of_a_schemas_file_have_their_place_there, 0, RV_COUNT(files));
    return tc;
}

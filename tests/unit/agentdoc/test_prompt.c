/* The first layer, byte by byte (p8 2): the golden documents, their modes, and values as Python writes them. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agentdoc/suites.h"

#define HEAD   "name: a\ndescription: d\n"
#define FOLDER "agent_prompts"

static char *prompt_of(const struct rv_agentdoc *d, int structured)
{
    rv_buf out = RV_BUF_INIT(1 << 20);

    ck_assert_int_eq(rv_agentdoc_write_prompt(d, structured, &out, NULL), 0);
    rv_buf_putc(&out, ' ');
    rv_buf_truncate(&out, out.len - 1);
    return rv_buf_steal(&out, NULL);
}

static int is_document(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 5 && strcmp(entry->d_name + len - 5, ".yaml") == 0;
}

/* Proves p8.2: The system prompt, byte for byte, with Tool Notes and Thinking Structure */
START_TEST(prompts_are_those_of_the_golden_files)
{
    struct dirent **entries = NULL;
    int n = scandir(RV_SOURCE_DIR "/tests/golden/" FOLDER, &entries, is_document, alphasort);
    bool same = true;

    ck_assert_int_ge(n, 28);
    for (int i = 0; i < n; i++) {
        char *path = rv_kit_path(RV_SOURCE_DIR "/tests/golden/" FOLDER, entries[i]->d_name);
        char *text = rv_kit_read(path);
        struct rv_agentdoc *d = doc_of(text);
        char *prompt = prompt_of(d, RV_UNSET);
        rv_buf name = RV_BUF_INIT(1 << 10);

        rv_buf_printf(&name, FOLDER "/%.*s.prompt.txt", (int)strlen(entries[i]->d_name) - 5, entries[i]->d_name);
        same = rv_kit_golden(rv_buf_cstr(&name), prompt) && same;
        rv_buf_fini(&name);
        free(prompt);
        rv_agentdoc_free(d);
        free(text);
        free(path);
        free(entries[i]);
    }
    free(entries);
    ck_assert(same);
}
END_TEST

/* p8 2.1: the contract counts the bytes. */
static const struct {
    const char *file;
    size_t size;
} sizes[] = {{"e1.yaml", 538}, {"e2.yaml", 478}, {"e3.yaml", 415}};

/* Proves p8.2 */
START_TEST(the_examples_of_the_contract_have_its_sizes)
{
    char *path = rv_kit_path(RV_SOURCE_DIR "/tests/golden/" FOLDER, sizes[_i].file);
    char *text = rv_kit_read(path);
    struct rv_agentdoc *d = doc_of(text);
    char *prompt = prompt_of(d, RV_UNSET);

    ck_assert_uint_eq(strlen(prompt), sizes[_i].size);
    free(prompt);
    rv_agentdoc_free(d);
    free(text);
    free(path);
}
END_TEST

/* Proves p8.3 */
START_TEST(the_fourth_example_is_without_a_structure)
{
    char *text = rv_kit_read(RV_SOURCE_DIR "/tests/golden/" FOLDER "/e4.yaml");
    struct rv_agentdoc *d = doc_of(text);
    char *prompt = prompt_of(d, RV_UNSET);

    ck_assert_str_eq(prompt, "Score the essay.\n\n## Tool Notes\n- **rubric**: Look up the rubric");
    free(prompt);
    rv_agentdoc_free(d);
    free(text);
}
END_TEST

static const struct {
    const char *text;
    int structured;
    bool has_structure, is_structured;
} modes[] = {
    {HEAD "properties: {a: {}}", RV_UNSET, true, false},
    {HEAD "properties: {a: {}}", 0, true, false},
    {HEAD "properties: {a: {}}", 1, false, true},
    {HEAD "properties: {a: {}}\nstructured_output: true", RV_UNSET, false, true},
    {HEAD "properties: {a: {}}\nstructured_output: true", 0, true, false}, /* remlight 4: the override, both ways */
    {HEAD "properties: {a: {}}\nstructured_output: true", 1, false, true},
    {HEAD "structured_output: true", RV_UNSET, false, false}, /* p8 3: plain text without a structure */
    {HEAD "properties: {}", 1, false, false},
};

/* Proves remlight.5: Text and structured mode; the switch can be overridden for one call or stage */
START_TEST(the_mode_is_the_document_s_unless_the_caller_says_otherwise)
{
    struct rv_agentdoc *d = doc_of(modes[_i].text);
    char *prompt = prompt_of(d, modes[_i].structured);

    ck_assert((strstr(prompt, "## Thinking Structure") != NULL) == modes[_i].has_structure);
    ck_assert(rv_agentdoc_is_structured(d, modes[_i].structured) == modes[_i].is_structured);
    free(prompt);
    rv_agentdoc_free(d);
}
END_TEST

START_TEST(the_prompt_is_appended)
{
    struct rv_agentdoc *d = doc_of(HEAD);
    rv_buf out = RV_BUF_INIT(16);

    rv_buf_puts(&out, "before ");
    ck_assert_int_eq(rv_agentdoc_write_prompt(d, RV_UNSET, &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "before d");
    rv_buf_puts(&out, "012345678");
    ck_assert_int_eq(rv_agentdoc_write_prompt(d, RV_UNSET, &out, NULL), RV_E_LIMIT);
    rv_buf_fini(&out);
    rv_agentdoc_free(d);
}
END_TEST

/* What Python 3 answers to str() of these. */
static const struct {
    const char *json, *want;
} values[] = {
    {"\"it's\"", "it's"},
    {"[\"a\"]", "['a']"},
    {"[\"it's\"]", "[\"it's\"]"},
    {"[\"\\\"\"]", "['\"']"},
    {"[\"'\\\"\"]", "['\\'\"']"},
    {"[\"\\\\ \\n\\r\\t\\u0007\\u007f\\u0085\\u00a0\\u00ad\"]", "['\\\\ \\n\\r\\t\\x07\\x7f\\x85\\xa0\\xad']"},
    {"[\"\\u200b\\u2028\\ue000\\ufeff\\ufffd\"]", "['\\u200b\\u2028\\ue000\\ufeff\xef\xbf\xbd']"},
    {"[\"\\ud83d\\ude00\\udb80\\udc00\"]", "['\xf0\x9f\x98\x80\\U000f0000']"},
    {"{\"a\":{\"b\":[]},\"c\":{}}", "{'a': {'b': []}, 'c': {}}"},
    {"[true,false,null,1,-1]", "[True, False, None, 1, -1]"},
    {"18446744073709551615", "18446744073709551615"},
    {"1.0", "1.0"},
    {"-0.0", "-0.0"},
    {"0e9", "0.0"},
    {"100.0", "100.0"},
    {"1e2", "100.0"},
    {"0.1", "0.1"},
    {"1.10", "1.1"},
    {"123.456", "123.456"},
    {"0.0001", "0.0001"},
    {"0.00001", "1e-05"},
    {"0.000012", "1.2e-05"},
    {"1e15", "1000000000000000.0"},
    {"9007199254740993.0", "9007199254740992.0"},
    {"1e16", "1e+16"},
    {"1.5e16", "1.5e+16"},
    {"123456789012345678.0", "1.2345678901234568e+17"},
    {"1e22", "1e+22"},
    {"1e100", "1e+100"},
    {"1.7976931348623157e308", "1.7976931348623157e+308"},
    {"2.2250738585072014e-308", "2.2250738585072014e-308"},
    {"5e-324", "5e-324"},
    {"1e-310", "1e-310"},
    {"0.30000000000000004", "0.30000000000000004"},
};

/* Proves p8.2 */
START_TEST(values_are_written_as_python_does)
{
    json_object *v = rv_kit_json(values[_i].json);
    rv_buf out = RV_BUF_INIT(1 << 10);

    agentdoc_python_str(v, &out);
    ck_assert_str_eq(rv_buf_cstr(&out), values[_i].want);
    rv_buf_fini(&out);
    json_object_put(v);
}
END_TEST

TCase *prompt_case(void)
{
    TCase *tc = tcase_create("prompt");

    tcase_add_test(tc, prompts_are_those_of_the_golden_files);
    tcase_add_loop_test(tc, the_examples_of_the_contract_have_its_sizes, 0, RV_COUNT(sizes));
    tcase_add_test(tc, the_fourth_example_is_without_a_structure);
    tcase_add_loop_test(tc, the_mode_is_the_document_s_unless_the_caller_says_otherwise, 0, RV_COUNT(modes));
    tcase_add_test(tc, the_prompt_is_appended);
    tcase_add_loop_test(tc, values_are_written_as_python_does, 0, RV_COUNT(values));
    return tc;
}

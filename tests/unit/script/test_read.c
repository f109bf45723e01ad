/* Reading is strict and keeps places. */
#include "tests/unit/script/suites.h"

#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"

static const struct {
    const char *text, *finding; /* the beginning of the first finding */
} faults[] = {
    {"modles: {}", "s.yaml:1:1: error: script: unknown key \"modles\"\n  hint: did you mean \"models\"?"},
    {"[]", "s.yaml:1:1: error: script: must be a map, not list"},
    {"models: 3", "s.yaml:1:9: error: script: models must be a map from name to entries, or a list"},
    {"models: {a: {text: x}}", "s.yaml:1:13: error: script: a must be a list of entries, one per call, not map"},
    {"models: {a: []}", "s.yaml:1:13: error: script: a has no entries"},
    {"models: {a: [{}]}", "s.yaml:1:14: error: model reply \"a\": has no reply"},
    {"models: {a: [{text: x, json: 1}]}", "s.yaml:1:14: error: model reply \"a\": says its reply in more than one way"},
    {"models: {a: [{txt: x}]}",
     "s.yaml:1:15: error: model reply \"a\": unknown key \"txt\"\n  hint: did you mean \"text\"?"},
    {"models: {a: [{error: {kind: rate_limit}}]}",
     "s.yaml:1:29: error: model reply \"a\": error.kind is "
     "\"rate_limit\", which is not a valid model error kind\n  hint: did you mean "
     "\"rate_limited\"?"},
    {"models: {a: [{error: {kind: timeout, status: 9}}]}",
     "s.yaml:1:46: error: model reply \"a\": error.status must be at least 100"},
    {"models: {a: [{error: 3}]}",
     "s.yaml:1:22: error: model reply \"a\": error must be a text or a map, not integer 3"},
    {"models: {a: [{text: x, delay_ms: -1}]}", "s.yaml:1:34: error: model reply \"a\": delay_ms must be at least 0"},
    {"models: {a: [{tool_calls: [{}]}]}", "s.yaml:1:28: error: model reply \"a\": tool_calls.name is required"},
    {"models: {a: [{tool_calls: []}]}",
     "s.yaml:1:27: error: model reply \"a\": tool_calls must be a list of {name, arguments}, at least one and at "
     "most 128"},
    {"models: {a: [{tool_calls: [t]}]}", "s.yaml:1:28: error: model reply \"a\": must be a map"},
    {"models: {a: [{tool_calls: [{name: t, args: {}}]}]}",
     "s.yaml:1:38: error: model reply \"a\": unknown key \"tool_calls.args\"\n  hint: "},
    {"models: {a: [{tool_calls: [{name: t, arguments: [1]}]}]}",
     "s.yaml:1:49: error: model reply \"a\": tool_calls.arguments must be a map or a text, not list"},
    {"models: {a: [{tool_calls: [{name: t, id: x}, {name: t, id: x}]}]}",
     "s.yaml:1:46: error: model reply \"a\": tool_calls: id \"x\" is used twice\n  hint: leave the id out"},
    {"models: {a: [{tool_calls: [{name: t}], error: no}]}",
     "s.yaml:1:14: error: model reply \"a\": has both an error and tool calls"},
    {"models: {a: [{json: 1, error: no}]}",
     "s.yaml:1:14: error: model reply \"a\": says its reply in more than one way"},
    {"models: {a: [{text: x, chunks: []}]}",
     "s.yaml:1:14: error: model reply \"a\": says its reply in more than one way"},
    {"models: {a: [{text: 3}]}",
     "s.yaml:1:21: error: model reply \"a\": text must be a string, not integer 3\n  hint: put it in quotes: \"3\""},
    {"models: {a: [{chunks: x}]}",
     "s.yaml:1:23: error: model reply \"a\": chunks must be a list of texts and maps, not string \"x\""},
    {"models: {a: [{chunks: [[x]]}]}",
     "s.yaml:1:24: error: model reply \"a\": a chunk must be a text or a map, not list"},
    {"models: {a: [{chunks: [{txt: x}]}]}", "s.yaml:1:25: error: model reply \"a\": unknown key \"chunks.txt\""},
    {"models: {a: [{chunks: [{text: x, thinking: y}]}]}",
     "s.yaml:1:24: error: model reply \"a\": chunks: a chunk has either text or thinking"},
    {"models: {a: [{chunks: [{text: x, delay_ms: -1}]}]}",
     "s.yaml:1:44: error: model reply \"a\": chunks.delay_ms must be at least 0"},
    {"models: {a: [{text: x, finish_reason: stopp}]}",
     "s.yaml:1:39: error: model reply \"a\": finish_reason: unknown finish reason \"stopp\": legal are stop, "},
    {"models: {a: [{text: x, usage: {input: 3}}]}",
     "s.yaml:1:32: error: model reply \"a\": unknown key \"usage.input\""},
    {"models: {a: [{text: x, opaque: '[1]'}]}",
     "s.yaml:1:32: error: model reply \"a\": opaque must be a map, or a JSON object as text"},
    {"models: {a: [{text: x, attempts: 0}]}", "s.yaml:1:34: error: model reply \"a\": attempts must be at least 1"},
    {"stages: [{stage: a, ouput: {}}]",
     "s.yaml:1:21: error: stage entry: unknown key \"ouput\"\n  hint: did you mean \"output\"?\n"},
    {"stages: {a: [{}]}", "s.yaml:1:14: error: stage entry \"a\": says nothing"},
    {"stages: {a: [{output: 3}]}", "s.yaml:1:23: error: stage entry \"a\": output must be a map, not integer 3"},
    {"stages: {a: [{outcome: fine}]}",
     "s.yaml:1:24: error: stage entry \"a\": outcome is \"fine\", which is not a valid outcome"},
    {"stages: {a: [{raise: {question: x}}]}", "s.yaml:1:22: error: stage entry \"a\": raise.kind is required"},
    {"stages: {a: [{error: {type: Oops, message: x}}]}",
     "s.yaml:1:29: error: stage entry \"a\": error.type is \"Oops\""},
    {"stages: {a: [{error: x, output: {}}]}", "s.yaml:1:14: error: stage entry \"a\": has both an error and an output"},
    {"stages: [{output: {}}]", "s.yaml:1:10: error: script: an entry of a flat list of stages needs `stage`"},
    {"tools: {t: [{}]}", "s.yaml:1:13: error: tool entry \"t\": has neither a result nor an error"},
    {"hooks: {c.h: [{}]}",
     "s.yaml:1:15: error: hook entry \"c.h\": has neither a reply nor an error\n  hint: reply: {...}"},
    {"hooks: {c.h: [{reply: {}, error: x}]}", "s.yaml:1:15: error: hook entry \"c.h\": has both a reply and an error"},
    {"hooks: {c.h: [{reply: [1]}]}", "s.yaml:1:23: error: hook entry \"c.h\": reply must be a map, not list"},
    {"hooks: {c.h: [{result: {}}]}", "s.yaml:1:16: error: hook entry \"c.h\": unknown key \"result\""},
    {"hooks: [{reply: {}}]", "s.yaml:1:9: error: script: an entry of a flat list of hooks needs `hook`"},
    {"hooks: 3", "s.yaml:1:8: error: script: hooks must be a map from name to entries, or a list of entries with "},
    {"tools: {t: [{result: {}, error: x}]}", "s.yaml:1:13: error: tool entry \"t\": has both a result and an error"},
    {"tools: [{result: {}}]", "s.yaml:1:9: error: script: an entry of a flat list of tools needs `tool`"},
    {"tools: {t: {risk: harmless, calls: [{result: {}}]}}",
     "s.yaml:1:19: error: tool \"t\": risk is \"harmless\", which is not a valid risk level"},
    {"tools: {t: {risk: write}}", "s.yaml:1:12: error: tool \"t\": calls is required"},
    {"tools: {t: {input_schema: {type: 7}, calls: [{result: {}}]}}", "s.yaml:1:27: error: schema of t: /type: "},
    {"answers: {text: x}", "s.yaml:1:10: error: script: answers must be a list of answers"},
    {"answers: [{decision: maybe}]",
     "s.yaml:1:22: error: answer: decision is \"maybe\", which is not a valid decision"},
    {"answers: [{approved: 1}]", "s.yaml:1:22: error: answer: approved must be a boolean"},
    {"repeat: never", "s.yaml:1:9: error: script: repeat must be a boolean"},
};

/* Proves 11.5/engine */
START_TEST(faults_name_their_place)
{
    char *findings;
    rv_script *s = script_of(faults[_i].text, &findings);

    ck_assert_ptr_null(s);
    ck_assert_msg(strncmp(findings, faults[_i].finding, strlen(faults[_i].finding)) == 0, "%s", findings);
    free(findings);
}
END_TEST

START_TEST(all_faults_are_found_in_one_pass)
{
    char *findings;
    rv_script *s = script_of("models: {a: [{}], b: [{txt: 1}]}\nstages: 3\nanswers: [{appruved: true}]\n", &findings);

    ck_assert_ptr_null(s);
    ck_assert_ptr_nonnull(strstr(findings, "s.yaml:1:14: "));
    ck_assert_ptr_nonnull(strstr(findings, "s.yaml:1:24: "));
    ck_assert_ptr_nonnull(strstr(findings, "s.yaml:2:9: "));
    ck_assert_ptr_nonnull(strstr(findings, "s.yaml:3:12: "));
    free(findings);
}
END_TEST

START_TEST(a_file_is_read_and_an_empty_one_refused)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "s.yaml");
    rv_findings *f = rv_findings_new();
    rv_script *s = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_script_read(path, f, &s, &err), RV_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "read script"));
    rv_err_free(err);
    rv_kit_write(path, "# nothing\n");
    ck_assert_int_eq(rv_script_read(path, f, &s, NULL), 0);
    ck_assert_ptr_null(s);
    ck_assert_uint_eq(rv_findings_n_errors(f), 1);
    rv_kit_write(path, "models: {a: [{json: *nobody}]}\n");
    ck_assert_int_eq(rv_script_read(path, f, &s, NULL), 0);
    ck_assert_ptr_null(s);
    ck_assert_uint_eq(rv_findings_n_errors(f), 2);
    rv_kit_write(path, "models: {a: [{text: hi}]}\n");
    ck_assert_int_eq(rv_script_read(path, f, &s, NULL), 0);
    ck_assert_ptr_nonnull(s);
    rv_script_free(s);
    rv_findings_free(f);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

START_TEST(the_schema_is_a_schema_that_accepts_what_is_read)
{
    static const char text[] =
        "{'models': {'a': [{'text': 'x', 'delay_ms': 3, 'finish_reason': 'length'}, {'chunks': ['a', {'thinking': 'b',"
        " 'delay_ms': 1}], 'error': {'kind': 'timeout', 'retryable': false, 'billed': true}}], 'b': [{'error': {'kind':"
        " 'timeout'}}, {'tool_calls': [{'name': 't', 'arguments': '{'}, {'name': 'u', 'id': 'x', 'arguments': {}}],"
        " 'usage': {'cached_tokens': 3}, 'opaque': {}, 'answered_by': 'r', 'attempts': 2, 'finish_reason': null}]},"
        " 'tools': {'t': {'risk': 'write', 'calls': [{'result': {}}]}, 'u': [{'error': 'no'}]},"
        " 'stages': [{'stage': 's', 'output': {}}], 'answers': [{'approved': true}], 'repeat': false}";
    static const char *const bad[] = {
        "{'models': {'a': [{'txt': 'x'}]}}",
        "{'models': {'a': [{'chunks': [{'txt': 'x'}]}]}}",
        "{'models': {'a': [{'tool_calls': [{'names': 'x'}]}]}}",
        "{'models': {'a': [{'error': {'kind': 'unheard_of'}}]}}",
        "{'models': {'a': [{'error': {'kind': null}}]}}",
        "{'models': {'a': [{'finish_reason': 'unheard_of'}]}}",
    };
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);
    rv_schema *schema = NULL;
    rv_err *err = NULL;

    rv_script_write_schema(&w);
    ck_assert_int_eq(b.rc, 0);
    json_object *json = rv_kit_json(rv_buf_cstr(&b)), *good = rv_kit_json(text);
    int rc = rv_schema_compile(json, "script", &schema, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? rv_kit_err_take(err) : "");
    rc = rv_schema_check(schema, good, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? rv_kit_err_take(err) : "");
    for (size_t i = 0; i < RV_COUNT(bad); i++) {
        json_object *wrong = rv_kit_json(bad[i]);
        ck_assert_msg(rv_schema_check(schema, wrong, NULL) == RV_E_INVALID, "%s", bad[i]);
        json_object_put(wrong);
    }
    rv_schema_free(schema);
    json_object_put(json);
    json_object_put(good);
    rv_buf_fini(&b);
}
END_TEST

Suite *read_suite(void)
{
    Suite *suite = suite_create("read");
    TCase *tc = tcase_create("read");

    tcase_add_loop_test(tc, faults_name_their_place, 0, RV_COUNT(faults));
    tcase_add_test(tc, all_faults_are_found_in_one_pass);
    tcase_add_test(tc, a_file_is_read_and_an_empty_one_refused);
    tcase_add_test(tc, the_schema_is_a_schema_that_accepts_what_is_read);
    suite_add_tcase(suite, tc);
    return suite;
}

/* What a role says of its model: the keys of its provider, fallbacks, and the budget that needs prices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/analysis/analysis.h"
#include "tests/unit/config/world.h"

#define MODEL(keys) "name: x\nmodels: {a: {model: 'p:m', " keys "}}\n"

static const struct {
    const char *text, *want;
} cases[] = {
    {MODEL("api_kye: x"),
     "t.yaml:2:28: error: model \"a\": unknown key \"api_kye\"\n  hint: did you mean \"api_key\"?\n"},
    {MODEL("max_attempts: 21, idle_timeout_ms: 0"),
     "t.yaml:2:42: error: model \"a\": max_attempts is out of range\n  hint: legal: 1 to 20\n"
     "t.yaml:2:63: error: model \"a\": idle_timeout_ms is out of range\n  hint: legal: 1 to 3600000\n"},
    {MODEL("base_url: 1"), "t.yaml:2:38: error: model \"a\": base_url must be a string, not integer\n"},
    {MODEL("headers: [a]"), "t.yaml:2:37: error: model \"a\": headers must be a map of strings, not list\n"
                            "  hint: write a map: {key: value}\n"},
    {MODEL("headers: {a: 1}"), "t.yaml:2:41: error: model \"a\": headers.a must be a string, not integer\n"},
    {MODEL("extra_body: x"), "t.yaml:2:40: error: model \"a\": extra_body must be a map, not string\n"
                             "  hint: write a map: {key: value}\n"},
    {MODEL("quirks: {no_tool: true, no_sampling: 1}"),
     "t.yaml:2:37: error: model \"a\": unknown key \"quirks.no_tool\"\n  hint: did you mean \"no_tools\"?\n"
     "t.yaml:2:65: error: model \"a\": quirks.no_sampling must be a boolean, not integer\n"},
    {MODEL("options: {proxy: p, mine: 1}"),
     "t.yaml:2:38: error: model \"a\": options.proxy is a key of the model itself\n"
     "  hint: write it beside \"options\"\n"},
    {MODEL("options: 1"), "t.yaml:2:37: error: model \"a\": options must be a map, not integer\n"
                          "  hint: write a map: {key: value}\n"},
    {MODEL("price: {input: -1, output: 2}"),
     "t.yaml:2:43: error: model \"a\": price.input is out of range\n  hint: legal: 0 to 1000000\n"},
    {MODEL("max_request_bytes: 0"),
     "t.yaml:2:47: error: model \"a\": max_request_bytes is out of range\n  hint: legal: 1 to 1000000000\n"},
    /* fallbacks */
    {"name: x\nmodels: {a: {model: 'p:m', fallback: [b, a]}, bb: 'p:n'}\n",
     "t.yaml:2:39: error: model \"a\": fallback names \"b\", which is not a role of models\n"
     "  hint: did you mean \"bb\"? roles: a, bb\n"
     "t.yaml:2:42: error: model \"a\": it cannot be its own fallback\n"},
    {"name: x\nmodels: {a: {model: 'p:m', fallback: [b]}, b: {model: 'p:n', fallback: [c]}, c: {model: 'p:o', "
     "fallback: [a]}}\n",
     "t.yaml:2:107: error: model \"c\": its fallback \"a\" leads back to it\n  hint: leave one of them out\n"},
    {"name: x\nmodels: {a: {model: 'p:m', fallback: [c, b]}, b: {model: 'p:n', fallback: [c]}, c: 'p:o'}\n", ""},
    {"name: x\nmodels: {a: {model: 'p:m', fallback: [b]}, b: 'c.p:n', d: {model: 'c.p:m', fallback: [b], max_attempts: "
     "2, base_url: u}}\n",
     "t.yaml:2:39: warning: model \"a\": its fallback \"b\" is not asked: a capability answers for it\n"
     "  hint: leave it out; error_next of a stage can lead to one that asks it\n"
     "t.yaml:2:76: warning: model \"d\": reeve does not keep to fallback where a capability's provider answers\n"
     "  hint: max_retries of the stage asks it again, and error_next leads elsewhere\n"
     "t.yaml:2:91: warning: model \"d\": reeve does not keep to max_attempts where a capability's provider answers\n"
     "  hint: the capability has to see to it itself\n"},
    /* a budget */
    {"name: x\nbudget: 1\n", "t.yaml:2:9: error: pipeline \"x\": budget must be a map, not integer 1\n"
                             "  hint: write a map: {usd: 1}\n"},
    {"name: x\nbudget: {}\n", "t.yaml:2:9: error: pipeline \"x\": budget.usd is required\n"
                              "  hint: add `usd:`, US dollars, a micro-dollar at least; what is less is left out\n"},
    {"name: x\nbudget: {usd: -1}\n", "t.yaml:2:15: error: pipeline \"x\": budget.usd must be at least 0, not -1\n  "
                                     "hint: the nearest legal value is 0\n"},
    {"name: x\nbudget: {usd: 0.0000009}\n",
     "t.yaml:2:15: error: pipeline \"x\": budget.usd must be at least 0.000001, not 0.0000009\n"
     "  hint: write what one run may cost in US dollars, such as 0.5, or leave `budget` out\n"},
    {"name: x\nbudget: {usd: 1}\nmodels: {a: {model: 'p:m', fallback: [b]}, b: scripted, c: 'p:m', d: 'ollama:q'}\n"
     "agents: [{name: s, has_llm: true, model_role: a}, {name: t, has_llm: true, model_role: d}]\n",
     "t.yaml:3:10: error: model \"a\": there is a budget, and what this model costs is not known\n"
     "  hint: say it, in US dollars for a million tokens: price: {input: 0.4, output: 1.6}\n"
     "t.yaml:3:44: error: model \"b\": there is a budget, and what this model costs is not known\n"
     "  hint: say it, in US dollars for a million tokens: price: {input: 0.4, output: 1.6}\n"},
};

/* Proves 12.4/prices */
START_TEST(faults_of_models_are_found)
{
    expect_findings(cases[_i].text, cases[_i].want);
}
END_TEST

START_TEST(a_provider_gets_all_its_keys_in_one_map)
{
    setenv("RV_TEST_SECRET", "s3cr3t", 1);
    struct loaded l = load_clean(
        "name: x\nmodels:\n  a: {model: 'openai:m', base_url: 'http://h/${env:RV_TEST_SECRET}', api_key: "
        "'${env:RV_TEST_SECRET}', organization: o, project: p,\n"
        "      api_version: v, headers: {x: 'y ${env:RV_TEST_SECRET}'}, extra_body: {n: [1]}, quirks: {no_tools: "
        "true},\n"
        "      connect_timeout_ms: 1, first_byte_timeout_ms: 2, idle_timeout_ms: 3, max_attempts: 4.0,\n"
        "      max_retry_wait_ms: 0, max_concurrent: 5, requests_per_minute: 6, tokens_per_minute: 7, ca_file: c,\n"
        "      proxy: q, options: {mine: {k: '${env:RV_TEST_SECRET}'}}, temperature: 0, optional: false}\n");

    ck_assert_str_eq(
        json_object_to_json_string_ext(l.p->models[0].options, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE),
        "{\"base_url\":\"http://h/s3cr3t\",\"api_key\":\"s3cr3t\",\"organization\":\"o\",\"project\":\"p\","
        "\"api_version\":\"v\",\"headers\":{\"x\":\"y s3cr3t\"},\"extra_body\":{\"n\":[1]},\"quirks\":{\"no_tools\":"
        "true},\"connect_timeout_ms\":1,\"first_byte_timeout_ms\":2,\"idle_timeout_ms\":3,\"max_attempts\":4,"
        "\"max_retry_wait_ms\":0,\"max_concurrent\":5,\"requests_per_minute\":6,\"tokens_per_minute\":7,"
        "\"ca_file\":\"c\",\"proxy\":\"q\",\"mine\":{\"k\":\"s3cr3t\"}}");
    loaded_fini(&l);
}
END_TEST

START_TEST(fallbacks_are_found_and_those_left_out_are_left_out)
{
    unsetenv("RV_TEST_MISSING");
    struct loaded l = load_clean("name: x\nmodels:\n  a: {model: 'p:m', fallback: [gone, c]}\n"
                                 "  gone: {model: 'p:m', api_key: '${env:RV_TEST_MISSING}', optional: true}\n"
                                 "  c: 'p:n'\n");
    const struct rv_model_config *a = rv_pipeline_find_model(l.p, RV_STR_LIT("a"));

    ck_assert_uint_eq(a->fallback.n, 1);
    ck_assert_str_eq(a->fallback.items[0], "c");
    ck_assert_ptr_eq(a->fallback_models[0], rv_pipeline_find_model(l.p, RV_STR_LIT("c")));
    loaded_fini(&l);
}
END_TEST

static const struct {
    const char *usd;
    int64_t micro;
} budgets[] = {
    {"0.50", 500000}, {"0.57", 570000},  {"0.29", 290000},           {"1.1", 1100000},        {"1e-6", 1},
    {"0.0000019", 1}, {"4.35", 4350000}, {"1000000", 1000000000000}, {"33.333333", 33333333}, {"0.9999999", 999999},
};

START_TEST(a_budget_is_rounded_down_to_micro_dollars)
{
    char text[128];

    snprintf(text, sizeof text, "name: x\nbudget: {usd: %s}\n", budgets[_i].usd);
    struct loaded l = load_clean(text);
    ck_assert(l.p->has_budget);
    ck_assert_int_eq(l.p->budget_micro_usd, budgets[_i].micro);
    ck_assert_int_eq(l.p->budget_src.line, 2);
    loaded_fini(&l);
}
END_TEST

START_TEST(lint_warns_of_keys_that_are_written_out)
{
    setenv("RV_TEST_SECRET", "s3cr3t", 1);
    struct loaded l = load_clean(
        "name: x\nmodels:\n  a: {model: 'p:m', api_key: abc, headers: {Authorization: 'Bearer z', x: y}}\n"
        "  b: {model: 'p:m', api_key: 'x${env:RV_TEST_SECRET}', headers: {x-api-key: '${env:RV_TEST_SECRET}'}}\n"
        "agents: [{name: s, has_llm: true, model_role: a}, {name: t, has_llm: true, model_role: b}]\n");
    rv_findings *findings = rv_findings_new();
    rv_buf b = RV_BUF_INIT(1 << 16);

    rv_pipeline_lint(l.p, findings);
    rv_findings_sort(findings);
    rv_findings_write_text(findings, false, &b);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b),
                                 "t.yaml:3:30: warning: model \"a\": api_key is written out: everybody who has the "
                                 "file, or a store with its runs, has the key\n"
                                 "  hint: write ${env:NAME} or ${file:path}\n"
                                 "t.yaml:3:60: warning: model \"a\": the header Authorization is written out: "
                                 "everybody who has the file, or a store with its runs, has the key\n"));
    ck_assert_ptr_null(strstr(rv_buf_cstr(&b), "model \"b\""));
    rv_findings_free(findings);
    rv_buf_fini(&b);
    loaded_fini(&l);
}
END_TEST

TCase *models_case(void)
{
    TCase *tc = tcase_create("models");

    tcase_add_loop_test(tc, faults_of_models_are_found, 0, RV_COUNT(cases));
    tcase_add_test(tc, a_provider_gets_all_its_keys_in_one_map);
    tcase_add_test(tc, fallbacks_are_found_and_those_left_out_are_left_out);
    tcase_add_loop_test(tc, a_budget_is_rounded_down_to_micro_dollars, 0, RV_COUNT(budgets));
    tcase_add_test(tc, lint_warns_of_keys_that_are_written_out);
    return tc;
}

/* Probes: "did the call with this key happen?", asked in the engine's process and in another one. */
#include <string.h>

#include "tests/unit/plugin/suites.h"

#define N_HOMES 2 /* in the engine's process, and in one of its own */

static rv_plugins *probes_at(int home)
{
    rv_plugins *p = new_set(NULL);

    if (home)
        must_isolate(p, "probes");
    else
        must_load(p, "probes");
    return p;
}

static const struct {
    const char *tool;
    int rc;
    const char *says; /* the whole answer, or a part of the error */
} answers[] = {
    {"happened", 0, "{\"happened\": true, \"result\": {\"line\": 7}}"},
    {"did_not", 0, "{\"happened\": false}"},
    {"can_not_tell", 0, "{}"},
    {"empty_result", 0, "{\"happened\": true, \"result\": {}}"},
    {"no_result", RV_E_PLUGIN, "happened, but no \"result\""},
    {"null_result", RV_E_PLUGIN, "a \"result\" that is not an object but null"},
    {"list_result", RV_E_PLUGIN, "a \"result\" that is not an object but array"},
    {"result_of_nothing", RV_E_PLUGIN, "a \"result\" of a call that did not happen"},
    {"result_alone", RV_E_PLUGIN, "a \"result\" of a call that did not happen"},
    {"word", RV_E_PLUGIN, "\"happened\" that is neither true nor false"},
    {"null_word", RV_E_PLUGIN, "\"happened\" that is neither true nor false"},
    {"other_member", RV_E_PLUGIN, "unknown member \"hapened\""},
    {"garbage", RV_E_PLUGIN, "not JSON"},
    {"not_object", RV_E_PLUGIN, "a value of type array, not an object"},
    {"silent", RV_E_PLUGIN, "without an answer"},
    {"fails", RV_E_TOOL, "the log can not be read"},
    {"unprobed", RV_E_NOT_FOUND, "no probe \"unprobed\""},
    {"hapened", RV_E_NOT_FOUND, "did you mean \"happened\"?"},
    {"probes.happened", RV_E_NOT_FOUND, "no probe \"probes.happened\""},
};

START_TEST(a_probe_has_three_answers_and_all_else_is_an_error)
{
    int row = _i / N_HOMES;
    rv_plugins *p = probes_at(_i % N_HOMES);
    rv_buf out = RV_BUF_INIT(4096);
    rv_err *err = NULL;

    ck_assert_int_eq(call_entry(p, RV_NAME_PROBE, answers[row].tool, "{\"key\": \"k\"}", &out, &err), answers[row].rc);
    if (answers[row].rc == 0) {
        ck_assert_str_eq(rv_buf_cstr(&out), answers[row].says);
    } else {
        ck_assert_uint_eq(out.len, 0);
        ck_assert_msg(strstr(error_text(err), answers[row].says) != NULL, "%s", error_text(err));
    }
    rv_err_free(err);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_probe_is_asked_by_its_tools_name_with_the_key_of_the_call)
{
    const struct rv_plugin_call call = {
        .kind = RV_NAME_PROBE,
        .name = "echoes",
        .args = RV_STR_LIT("{\"key\": \"k1\", \"arguments\": {\"a\": 1}, \"stage\": \"s\"}"),
        .idempotency_key = "k1"};
    rv_plugins *p = probes_at(_i);
    rv_buf out = RV_BUF_INIT(4096);

    ck_assert_int_eq(rv_plugins_call(p, &call, &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out),
                     "{\"happened\": true, \"result\": {\"name\": \"echoes\", \"key\": \"k1\", \"args\": "
                     "{\"key\": \"k1\", \"arguments\": {\"a\": 1}, \"stage\": \"s\"}}}");
    rv_buf_clear(&out);
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "echoes", "{}", &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"from\": \"tool\"}"); /* the same name is the tool's too */
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(the_catalog_says_which_tools_have_a_probe)
{
    rv_plugins *p = probes_at(_i);
    struct rv_catalog catalog = rv_plugins_catalog(p);
    rv_buf text = RV_BUF_INIT((size_t)1 << 20);
    rv_jw w = rv_jw_on(&text);
    const struct rv_entry_info *probe;
    json_object *all = NULL, *list;

    ck_assert(catalog.tool(catalog.self, RV_STR_LIT("happened"))->has_probe);
    ck_assert(catalog.tool(catalog.self, RV_STR_LIT("echoes"))->has_probe);
    ck_assert(!catalog.tool(catalog.self, RV_STR_LIT("unprobed"))->has_probe);
    probe = catalog.entry(catalog.self, RV_NAME_PROBE, RV_STR_LIT("happened"));
    ck_assert_ptr_nonnull(probe);
    ck_assert_int_eq(probe->timeout_ms, 500);
    ck_assert_ptr_null(catalog.entry(catalog.self, RV_NAME_PROBE, RV_STR_LIT("unprobed")));

    rv_plugins_write_json(p, &w);
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&text), NULL, &all, NULL), 0);
    list = rv_json_get_arr(json_object_array_get_idx(all, 0), "probes");
    ck_assert_uint_eq(json_object_array_length(list), 19);
    list = json_object_array_get_idx(list, 18);
    ck_assert(rv_str_is(rv_json_str(json_object_object_get(list, "name")), "echoes"));
    json_object_put(all);
    rv_buf_fini(&text);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_probe_that_dies_or_hangs_costs_its_answer_and_nothing_else)
{
    static const struct {
        const char *tool;
        int rc;
        const char *says;
    } faults[] = {{"die", RV_E_PLUGIN, "probe \"die\" of capability \"probes\""},
                  {"hang", RV_E_TIMEOUT, "no answer in time"}};
    struct rv_plugin_call call = {.kind = RV_NAME_PROBE, .args = RV_STR_LIT("{}")};
    rv_plugins *p = probes_at(1);
    rv_buf out = RV_BUF_INIT(4096);

    for (size_t i = 0; i < RV_COUNT(faults); i++) {
        rv_err *err = NULL;
        call.name = faults[i].tool;
        call.timeout_ms = faults[i].rc == RV_E_TIMEOUT ? 50 : 0;
        ck_assert_int_eq(rv_plugins_call(p, &call, &out, &err), faults[i].rc);
        ck_assert_msg(strstr(error_text(err), faults[i].says) != NULL, "%s", error_text(err));
        rv_err_free(err);
        ck_assert_uint_eq(out.len, 0);
        ck_assert_int_eq(call_entry(p, RV_NAME_PROBE, "did_not", "{}", &out, NULL), 0);
        rv_buf_clear(&out);
    }
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

Suite *probe_suite(void)
{
    Suite *s = suite_create("plugin probe");
    TCase *tc = tcase_create("probe");

    tcase_add_loop_test(tc, a_probe_has_three_answers_and_all_else_is_an_error, 0, N_HOMES * (int)RV_COUNT(answers));
    tcase_add_loop_test(tc, a_probe_is_asked_by_its_tools_name_with_the_key_of_the_call, 0, N_HOMES);
    tcase_add_loop_test(tc, the_catalog_says_which_tools_have_a_probe, 0, N_HOMES);
    tcase_add_test(tc, a_probe_that_dies_or_hangs_costs_its_answer_and_nothing_else);
    suite_add_tcase(s, tc);
    return s;
}

/* Chained tools: the output of a structured agent goes to a tool, once, and is never lost. */
#include "tests/unit/chat/world.h"

#include <stdlib.h>
#include <string.h>

#define EXTRACT                                                                                                        \
    "type: object\nname: extract\ndescription: Extract.\nstructured_output: true\nchained_tool: save\n"                \
    "properties: {name: {type: string}, n: {type: integer}}\nrequired: [name]\n"

/* Proves p8.17: The chained tool gets the output once, without a further request; its rows follow the answer
 * Proves p8.W35: The chain is the same in a chat, a stage and a delegation, and is told by events */
START_TEST(the_tool_gets_the_output_and_rows_follow_the_answer) /* p8 17, W35, W36 */
{
    const char *files[] = {"extract.yaml", EXTRACT, NULL};
    struct world w;
    world_init(&w,
               "models:\n"
               "  extract:\n"
               "    - tool_calls: [{id: f1, name: final_result, arguments: {name: ada, n: 3}}]\n"
               "tools:\n"
               "  save: [{result: {saved: 1}}]\n",
               files);
    world_chat(&w, "extract", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "ada is 3");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    ck_assert_str_eq(t.text.ptr, "{\"name\":\"ada\",\"n\":3}");
    ck_assert_ptr_nonnull(t.chained);
    char *rows = world_rows(&w, true);
    char *at = strstr(rows, "tool_call[extract] {\"name\":\"save\"");
    ck_assert_msg(at != NULL, "%s", rows);
    ck_assert_ptr_nonnull(
        strstr(at, "\"arguments\":{\"name\":\"ada\",\"n\":3}}\ntool_response[extract] {\"saved\":1} "));
    *at = '\0';
    ck_assert_str_eq(rows,
                     "user ada is 3\n"
                     "tool_call[extract] {\"name\":\"final_result\",\"id\":\"f1\",\"arguments\":{\"name\":\"ada\","
                     "\"n\":3}}\n"
                     "tool_response[extract] Final result processed. {\"name\":\"final_result\",\"id\":\"f1\"}\n"
                     "assistant[extract] {\"name\":\"ada\",\"n\":3}\n");
    free(rows);
    world_fini(&w);
}
END_TEST

/* Proves p8.W36: The tool is called once, with what fits; whatever fails, the output stands */
START_TEST(a_failing_tool_loses_nothing)
{
    const char *files[] = {"extract.yaml", EXTRACT, NULL};
    struct world w;
    world_init(&w,
               "models:\n"
               "  extract: [{json: {name: ada}}]\n"
               "tools:\n"
               "  save: [{error: disk on fire}]\n",
               files);
    world_chat(&w, "extract", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "ada");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    ck_assert_str_eq(t.text.ptr, "{\"name\":\"ada\"}");
    const char *status = NULL;
    ck_assert(rv_json_get_text(t.chained, "status", &status));
    ck_assert_str_eq(status, "error");
    world_fini(&w);
}
END_TEST

/* The breaker is open when the answer comes: the chained call does not start, and its result says why. The answer
 * itself is the seventh result. */
START_TEST(a_tool_that_the_breaker_refuses_is_not_called)
{
    const char *files[] = {"extract.yaml", EXTRACT "tools: [save]\n", NULL};
    struct world w;
    const char *status = NULL;

    world_init(&w,
               "models:\n"
               "  extract:\n"
               "    - tool_calls: [{id: a, name: save}, {id: b, name: save}, {id: c, name: save}, {id: d, name: save}, "
               "{id: e, name: save}]\n"
               "    - tool_calls: [{id: f1, name: final_result, arguments: {name: ada}}]\n"
               "tools:\n"
               "  save: [{error: disk on fire}]\n",
               files);
    world_chat(&w, "extract", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "ada");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    ck_assert_str_eq(t.text.ptr, "{\"name\":\"ada\"}");
    ck_assert(rv_json_get_text(t.chained, "status", &status));
    ck_assert_str_eq(status, "error");
    ck_assert_msg(t.chained_error && strstr(t.chained_error, "tool \"save\" is blocked"), "%s", t.chained_error);
    char *started = world_events(&w, "tool_call_start"), *results = world_events(&w, "tool_result");
    size_t n_started = 0, n_results = 0;
    for (const char *at = started; (at = strchr(at, '\n')); at++)
        n_started++;
    for (const char *at = results; (at = strchr(at, '\n')); at++)
        n_results++;
    ck_assert_msg(n_started == 5 && n_results == 7, "%s%s", started, results);
    free(started);
    free(results);
    world_fini(&w);
}
END_TEST

/* Proves p8.W37: A declared map renames members of the output; one that can not fit the chained tool is found when
 * it is loaded */
START_TEST(an_output_that_can_not_fit_is_refused_before_anything_is_asked) /* p8 W37 */
{
    static const struct {
        const char *map, *wants;
    } cases[] = {
        {"", "it needs \"name\""},
        {"chained_map: {title: name}\n", "it needs \"fields\""},
        {"chained_map: {title: name, data: fields}\n", NULL},
    };
    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        rv_buf doc = RV_BUF_INIT(4096);
        rv_chat *chat = NULL;
        rv_err *err = NULL;
        struct world w;

        rv_buf_printf(&doc,
                      "type: object\nname: x\ndescription: d\nstructured_output: true\nchained_tool: "
                      "keep_record\nproperties: {title: {type: string}, data: {type: object}}\n%s",
                      cases[i].map);
        const char *files[] = {"x.yaml", rv_buf_cstr(&doc), NULL};
        world_init(&w, NULL, files);
        world_chat(&w, "sample-agent", NULL, "alice");
        struct rv_chat_opts opts = w.opts;
        opts.agent = "x";
        int rc = rv_chat_new(&opts, &chat, &err);
        ck_assert_int_eq(rc, cases[i].wants ? RV_E_INVALID : 0);
        char *text = rv_kit_err_take(err);
        if (cases[i].wants)
            ck_assert_msg(strstr(text, cases[i].wants) != NULL, "%s", text);
        free(text);
        rv_chat_free(chat);
        world_fini(&w);
        rv_buf_fini(&doc);
    }
}
END_TEST

/* A null goes along as the agent gave it; but where the tool's schema has a parameter that may be left out and is no
 * null, it is left out. The rows have the output as it is. */
/* Proves p8.17/null */
START_TEST(a_null_is_left_out_where_the_tool_takes_none) /* p8 17 */
{
    const char *files[] = {"x.yaml",
                           "type: object\nname: x\ndescription: d\nstructured_output: true\nchained_tool: action\n"
                           "properties: {type: {type: string}, payload: {type: object}}\nrequired: [type]\n",
                           NULL};
    struct world w;
    world_init(&w,
               "models:\n"
               "  x:\n"
               "    - tool_calls: [{id: f, name: final_result, arguments: {type: decision, payload: null}}]\n",
               files);
    world_chat(&w, "x", NULL, "alice");
    struct rv_chat_turn t = world_say(&w, "decide");
    ck_assert_msg(t.status == RV_RUN_COMPLETED, "%s", t.error);
    const char *status = NULL;
    ck_assert(rv_json_get_text(t.chained, "status", &status));
    ck_assert_msg(strcmp(status, "success") == 0, "%s", json_object_to_json_string(t.chained));
    ck_assert(rv_str_is(t.text, "{\"type\":\"decision\",\"payload\":null}"));
    char *rows = world_rows(&w, true);
    ck_assert_msg(strstr(rows, "\"arguments\":{\"type\":\"decision\",\"payload\":null}}\ntool_response[x] {\"_action"),
                  "%s", rows);
    free(rows);
    world_fini(&w);
}
END_TEST

Suite *chain_suite(void)
{
    Suite *s = suite_create("chain");
    TCase *tc = tcase_create("chain");

    tcase_add_test(tc, the_tool_gets_the_output_and_rows_follow_the_answer);
    tcase_add_test(tc, a_failing_tool_loses_nothing);
    tcase_add_test(tc, a_tool_that_the_breaker_refuses_is_not_called);
    tcase_add_test(tc, a_null_is_left_out_where_the_tool_takes_none);
    tcase_add_test(tc, an_output_that_can_not_fit_is_refused_before_anything_is_asked);
    suite_add_tcase(s, tc);
    return s;
}

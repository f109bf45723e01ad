/* What events tell of tool calls: ids, which deltas share whatever the provider wrote, and results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"

#define ASKS                                                                                                           \
    "name: t\nagents:\n  - {name: ask, has_llm: true, model_role: m, prompt_key: p, has_tools: true, tool_access: "    \
    "all, output_mode: text}\n"                                                                                        \
    "models: {m: {model: \"openai:x\"}}\nprompts: {p: go}\n"

/* The `step_id` of each event of that type, each followed by a blank. */
static void ids_of(const struct world *w, const char *type, rv_buf *out)
{
    static const char key[] = "\"step_id\":\"";
    const char *line = rv_buf_cstr(&w->events);

    for (const char *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        const char *at = memmem(line, (size_t)(end - line), type, strlen(type));
        const char *id = at ? memmem(line, (size_t)(end - line), key, sizeof key - 1) : NULL;
        if (id)
            rv_buf_printf(out, "%.*s ", (int)strcspn(id + sizeof key - 1, "\""), id + sizeof key - 1);
    }
}

static const struct {
    const char *first, *second, *ids; /* tool calls of two replies; how they are known */
} rows[] = {
    {"{id: a, name: look}, {id: b, name: look}", "{id: c, name: look}", "a b c "},
    {"{id: a, name: look}, {id: b, name: look}", "{id: b, name: look}, {id: a, name: look}", "a b call_3 call_4 "},
    {"{id: call_1, name: look}, {id: call_2, name: look}", "{id: call_1, name: look}, {id: call_2, name: look}",
     "call_1 call_2 call_3 call_4 "},
    {"{id: call_3, name: look}, {id: a, name: look}", "{id: a, name: look}, {id: call_3, name: look}",
     "call_3 a call_4 call_5 "},
    {"{name: look}, {name: look}", "{name: look}", "call_1 call_2 call_3 "},
};

START_TEST(deltas_and_events_name_a_call_alike)
{
    struct how how = {0};
    struct world w;
    char script[1024];
    rv_buf starts = RV_BUF_INIT(4096), results = RV_BUF_INIT(4096);

    snprintf(script, sizeof script,
             "models:\n  ask:\n    - {tool_calls: [%s]}\n    - {tool_calls: [%s]}\n    - {text: done}\n"
             "tools: {look: [{result: {}}]}\n",
             rows[_i].first, rows[_i].second);
    world_run(&w, &how, ASKS, script);
    ck_assert_str_eq(world_status(&w), "completed");
    ids_of(&w, "\"type\":\"tool_call_start\"", &starts);
    ids_of(&w, "\"type\":\"tool_result\"", &results);
    ck_assert_str_eq(rv_buf_cstr(&starts), rows[_i].ids);
    ck_assert_str_eq(rv_buf_cstr(&results), rows[_i].ids);
    ck_assert_str_eq(rv_buf_cstr(&w.pieces), rows[_i].ids);
    rv_buf_fini(&starts);
    rv_buf_fini(&results);
    world_fini(&w);
}
END_TEST

/* {"t":"x..."} has 8 bytes beside its x. */
static const struct {
    int bytes;
    bool is_whole;
} results[] = {{100, true}, {16384, true}, {16385, false}, {200000, false}};

START_TEST(an_event_has_a_result_or_refers_to_it)
{
    struct how how = {0};
    struct world w;
    int bytes = results[_i].bytes;
    rv_buf script = RV_BUF_INIT(1 << 20), result = RV_BUF_INIT(1 << 20), want = RV_BUF_INIT(1 << 20);
    char sha256[RV_HASH_MAX];

    rv_buf_puts(&result, "{\"t\":\"");
    for (int i = 8; i < bytes; i++)
        rv_buf_putc(&result, 'x');
    rv_buf_puts(&result, "\"}");
    rv_hash_format(rv_buf_str(&result), sha256);
    rv_buf_printf(&script,
                  "models:\n  ask: [{tool_calls: [{id: a, name: look}]}, {text: done}]\n"
                  "tools: {look: [{result: %s}]}\n",
                  rv_buf_cstr(&result));
    world_run(&w, &how, ASKS, rv_buf_cstr(&script));
    char *told = world_event(&w, "\"type\":\"tool_result\"", "\"call_id\":2");
    if (results[_i].is_whole)
        rv_buf_printf(&want, "\"result\":%s", rv_buf_cstr(&result));
    else
        rv_buf_printf(&want, "\"result_ref\":{\"call_id\":2,\"bytes\":%d,\"sha256\":\"%s\"}", bytes, sha256);
    ck_assert_msg(told && strstr(told, rv_buf_cstr(&want)), "%.600s", told);
    ck_assert(!strstr(told, "\"result\":") == !results[_i].is_whole);
    free(told);
    rv_buf_fini(&script);
    rv_buf_fini(&result);
    rv_buf_fini(&want);
    world_fini(&w);
}
END_TEST

Suite *call_ids_suite(void)
{
    Suite *suite = suite_create("call_ids");
    TCase *tc = tcase_create("call_ids");

    tcase_add_loop_test(tc, deltas_and_events_name_a_call_alike, 0, RV_COUNT(rows));
    tcase_add_loop_test(tc, an_event_has_a_result_or_refers_to_it, 0, RV_COUNT(results));
    suite_add_tcase(suite, tc);
    return suite;
}

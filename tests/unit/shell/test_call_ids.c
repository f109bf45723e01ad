/* Deltas and events name a tool call by the same id, whatever its provider called it. */
#include <stdio.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/shell/suites.h"

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

Suite *call_ids_suite(void)
{
    Suite *suite = suite_create("call_ids");
    TCase *tc = tcase_create("call_ids");

    tcase_add_loop_test(tc, deltas_and_events_name_a_call_alike, 0, RV_COUNT(rows));
    suite_add_tcase(suite, tc);
    return suite;
}

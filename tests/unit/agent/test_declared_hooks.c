/* Hooks of stages that are declared agents: around the chained tool, and around a call that asks another agent, whose
 * own calls are not the stage's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/suites.h"
#include "tests/unit/run/drive.h"

#define FIRST "{'envelope_id':'env_1','raw_input':'what is it?'}"
#define FINDER                                                                                                         \
    "type: object\nname: finder\ndescription: You find.\nstructured_output: true\nchained_tool: save\n"                \
    "properties: {name: {type: string}}\nrequired: [name]\n"
#define ASKER "type: object\nname: asker\ndescription: You ask.\ntools: [{name: ask_agent}]\n"
#define CHILD "type: object\\nname: child\\ndescription: You answer.\\n"

static const struct drive_tool tools[] = {
    {"save", RV_RISK_READ_ONLY, "{'type':'object','required':['name']}", NULL, 0}};

static int find(void *self, const char *name, rv_str *text, const char **place, rv_err **err)
{
    (void)self;
    (void)err;
    *text = strcmp(name, "finder") == 0 ? RV_STR_LIT(FINDER) : RV_STR_LIT(ASKER);
    *place = "here";
    return 0;
}

static struct drive *declared(const char *stage)
{
    const struct rv_agent_source source = {find, NULL};
    rv_findings *f = rv_findings_new();
    char yaml[1000];

    snprintf(yaml, sizeof yaml, "name: t\nmodels: {default: 'openai:x'}\nagents:\n  - {%s}\n", stage);
    struct drive *d = drive_new(yaml, tools, 1);
    ck_assert_int_eq(rv_pipeline_bind_agents(d->p, &source, f, NULL), 0);
    ck_assert_uint_eq(rv_findings_n_errors(f), 0);
    rv_findings_free(f);
    drive_envelope(d, FIRST);
    return d;
}

static const struct {
    const char *before, *after;
    const char *sent, *chained; /* sent NULL: the tool is not called */
} chains[] = {
    {"", "", "{\"name\":\"ada\"}", "{\"ok\":true}"},
    {"{'action':'replace','arguments':{'name':'bob'}}", "", "{\"name\":\"bob\"}", "{\"ok\":true}"},
    {"", "{'action':'replace','result':{'ok':1}}", "{\"name\":\"ada\"}", "{\"ok\":1}"},
    {"{'action':'answer','result':{'ok':2}}", "", NULL, "{\"ok\":2}"},
    {"{'action':'answer','result':{'ok':2}}", "{'action':'replace','result':{'ok':3}}", NULL, "{\"ok\":3}"},
    {"{'action':'block','reason':'no'}", "", NULL,
     "{\"status\":\"error\",\"error\":\"hook \\\"x.b\\\" blocked it: no\"}"},
    {"", "{'action':'block','reason':'no'}", "{\"name\":\"ada\"}",
     "{\"status\":\"error\",\"error\":\"hook \\\"x.a\\\" blocked it: no\"}"},
};

/* Proves 10/inner-hooks */
START_TEST(a_chained_call_has_hooks)
{
    struct drive *d = declared("agent: finder, before_tool: x.b, after_tool: [x.a]");
    const struct drive_said said[] = {{"llm:finder", .reply = NULL, .calls = "c final_result {'name':'ada'}"},
                                      {"hook:x.b", .reply = chains[_i].before},
                                      {"tool:save", .reply = "{'ok':true}"},
                                      {"hook:x.a", .reply = chains[_i].after}};

    drive_talk(d, said, RV_COUNT(said));
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.finder"), "{\"name\":\"ada\"}");
    ck_assert_str_eq(drive_state(d, "outputs.finder_chained"), chains[_i].chained);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), chains[_i].sent != NULL);
    if (chains[_i].sent)
        ck_assert_str_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->request, chains[_i].sent);
    ck_assert_str_eq(drive_request(drive_call_at(d, RV_EFFECT_CALL_HOOK, 0), "tool"), "\"save\"");
    ck_assert(drive_replays(d, FIRST));
    drive_free(d);
}
END_TEST

/* No failure of a chained call loses the output; what a hook must not say fails the visit all the same. */
START_TEST(a_hook_of_a_chained_call_is_not_believed)
{
    static const char *const lies[] = {"[]", "{'action':'replace','arguments':{'nam':1}}", "{'action':'perhaps'}",
                                       "!:it broke"};

    for (size_t i = 0; i < RV_COUNT(lies); i++) {
        struct drive *d = declared("agent: finder, before_tool: x.b");
        const struct drive_said said[] = {{"llm:finder", .reply = NULL, .calls = "c final_result {'name':'ada'}"},
                                          {"hook:x.b", .reply = lies[i]}};
        drive_talk(d, said, 2);
        ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
        ck_assert_str_eq(drive_state(d, "errors.0.error_type"), "\"HookError\"");
        ck_assert_ptr_nonnull(strstr(drive_state(d, "errors.0.error"), "x.b"));
        ck_assert_str_eq(drive_state(d, "outputs.finder"), "{\"name\":\"ada\"}");
        drive_free(d);
    }
}
END_TEST

/* The call that asks an agent is a tool call; the calls of that agent are its own, and no hook of the stage sees them.
 */
START_TEST(asking_an_agent_has_hooks)
{
    struct drive *d = declared("agent: asker, before_model: x.m, before_tool: x.b, after_tool: x.a");
    const struct drive_said said[] = {
        {"llm:asker", .reply = NULL, .calls = "c1 ask_agent {'agent_name':'child','input_text':'q'}"},
        {"hook:x.b", .reply = "{'action':'replace','arguments':{'agent_name':'child','input_text':'changed'}}"},
        {"tool:ask_agent", .reply = "{'agent_document':'" CHILD "'}"},
        {"llm:asker", .reply = "from the child"},
        {"hook:x.a", .reply = "{'action':'replace','result':{'data':{'text_response':'guarded'}}}"},
        {"llm:asker", .reply = "so"},
    };

    drive_talk(d, said, RV_COUNT(said));
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_ptr_nonnull(strstr(drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, 1), "prompt"), "changed"));
    ck_assert_ptr_nonnull(strstr(drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, 2), "turns.1.content"), "guarded"));
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_HOOK), 4); /* two requests of the stage, one tool call */
    ck_assert(drive_replays(d, FIRST));
    drive_free(d);
}
END_TEST

START_TEST(an_agent_that_a_hook_blocks_is_not_asked)
{
    struct drive *d = declared("agent: asker, before_tool: x.b");

    DRIVE_TALK(d, {"llm:asker", .reply = NULL, .calls = "c1 ask_agent {'agent_name':'child','input_text':'q'}"},
               {"hook:x.b", .reply = "{'action':'block','reason':'alone'}"}, {"llm:asker", .reply = "so"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 0);
    ck_assert_ptr_nonnull(strstr(drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, 1), "turns.1.content"), "alone"));
    ck_assert(drive_replays(d, FIRST));
    drive_free(d);
}
END_TEST

TCase *declared_hooks_case(void)
{
    TCase *tc = tcase_create("declared_hooks");

    tcase_add_loop_test(tc, a_chained_call_has_hooks, 0, RV_COUNT(chains));
    tcase_add_test(tc, a_hook_of_a_chained_call_is_not_believed);
    tcase_add_test(tc, asking_an_agent_has_hooks);
    tcase_add_test(tc, an_agent_that_a_hook_blocks_is_not_asked);
    return tc;
}

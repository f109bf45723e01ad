/* Hooks of stages that are declared agents: around the chained tool, and around a call that asks another agent, whose
 * own calls are not the stage's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/agent/suites.h"

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

/* A tool that says so needs a person as one does that destroys; the older rules did not look. */
START_TEST(a_chained_call_that_needs_a_person_is_not_made)
{
    struct drive *d = declared("agent: finder");
    json_object *confirm = rv_kit_json("{'question':'Save it?'}");
    const struct drive_said said[] = {{"llm:finder", .reply = NULL, .calls = "c final_result {'name':'ada'}"},
                                      {"tool:save", .reply = "{'ok':true}"}};

    d->tools[0].confirm = confirm;
    d->opts.rules = _i == 0 ? RV_RULES_NEWEST : RV_RULES_9;
    drive_talk(d, said, RV_COUNT(said));
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), (size_t)_i);
    drive_free(d);
    json_object_put(confirm);
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

/* --- what is kept of a turn --- */

struct told {
    enum rv_event_kind kind;
    int64_t call_id;
    const char *reply, *fails, *calls; /* fails NULL: it does not; calls NULL: none */
};

static const struct {
    const char *hook;
    struct told events[4];
    const char *has, *has_not; /* of the rows */
} turns[] = {
    {"after_model: x.h",
     {{RV_EVENT_START, 0, NULL, NULL, NULL},
      {RV_EVENT_LLM_DONE, 1, "a secret", NULL, NULL},
      {RV_EVENT_HOOK_DONE, 2, "{'action':'replace','reply':{'text':'clean'}}", NULL, NULL}},
     "\"content\":\"clean\"",
     "a secret"},
    {"after_model: x.h",
     {{RV_EVENT_START, 0, NULL, NULL, NULL},
      {RV_EVENT_LLM_DONE, 1, "a secret", NULL, NULL},
      {RV_EVENT_HOOK_DONE, 2, "{'action':'block','reason':'no'}", NULL, NULL}},
     "PolicyError",
     "a secret"},
    {"after_model: x.h",
     {{RV_EVENT_START, 0, NULL, NULL, NULL}, {RV_EVENT_LLM_DONE, 1, "a secret", "the line is down", NULL}},
     "the line is down",
     "a secret"},
    {"after_model: x.h",
     {{RV_EVENT_START, 0, NULL, NULL, NULL}, {RV_EVENT_CANCEL, 0, "[{'call_id':1,'text':'a secret'}]", NULL, NULL}},
     "cancelled",
     "a secret"},
    {"max_retries: 0, after_model: x.h",
     {{RV_EVENT_START, 0, NULL, NULL, NULL}, {RV_EVENT_LLM_DONE, 1, "a secret", NULL, "[7]"}},
     "list of at most",
     "a secret"},
    {"before_model: x.h",
     {{RV_EVENT_START, 0, NULL, NULL, NULL},
      {RV_EVENT_HOOK_DONE, 1, "{'action':'answer','reply':{'text':'clean'}}", NULL, NULL}},
     "\"content\":\"clean\"",
     "openai:x"},
    {"before_tool: x.h",
     {{RV_EVENT_START, 0, NULL, NULL, NULL}, {RV_EVENT_LLM_DONE, 1, "so", NULL, NULL}},
     "openai:x",
     "a secret"},
};

/* The rows of a session have what hooks let pass: no words that they changed or never saw, and no model that was not
 * asked. */
START_TEST(what_hooks_keep_back_is_not_kept)
{
    const struct rv_conversation c = {.context = {.user_id = "u", .tenant_id = "default", .session_id = "s"},
                                      .keeps = true,
                                      .history_opts = RV_HISTORY_OPTS_INIT};
    rv_buf stage = RV_BUF_INIT(1000), rows = RV_BUF_INIT(1 << 20);
    struct rv_effects fx = {0};
    rv_run *run = NULL;

    rv_buf_printf(&stage, "agent: asker, %s", turns[_i].hook);
    struct drive *d = declared(rv_buf_cstr(&stage));
    d->opts.conversation = &c;
    ck_assert_int_eq(rv_run_new(d->p, &d->catalog, &d->opts, d->env, &run, NULL), 0);
    d->env = NULL; /* the run's */
    for (size_t i = 0; i < RV_COUNT(turns[0].events) && (i == 0 || turns[_i].events[i].kind); i++) {
        const struct told *t = &turns[_i].events[i];
        rv_buf reply = RV_BUF_INIT(1000);
        for (const char *p = t->reply; p && *p; p++)
            rv_buf_putc(&reply, *p == '\'' ? '"' : *p);
        struct rv_event ev = {.kind = t->kind,
                              .now_us = DRIVE_T0 + (int64_t)i,
                              .call_id = t->call_id,
                              .reply = rv_buf_str(&reply),
                              .failed = t->fails != NULL,
                              .error = rv_str_of(t->fails ? t->fails : ""),
                              .llm = RV_LLM_ANSWER_NONE};
        ev.llm.tool_calls = rv_str_of(t->calls ? t->calls : "");
        ck_assert_int_eq(rv_run_step(run, &ev, &fx, NULL), 0);
        for (size_t k = 0; k < fx.n; k++)
            if (fx.items[k].kind == RV_EFFECT_KEEP) {
                rv_jw w = rv_jw_on(&rows);
                rv_effect_write_json(&fx, &fx.items[k], &w);
            }
        rv_effects_clear(&fx);
        rv_buf_fini(&reply);
    }
    ck_assert_msg(strstr(rv_buf_cstr(&rows), turns[_i].has) != NULL, "%s", rv_buf_cstr(&rows));
    ck_assert_msg(strstr(rv_buf_cstr(&rows), turns[_i].has_not) == NULL, "%s", rv_buf_cstr(&rows));
    rv_effects_fini(&fx);
    rv_run_free(run);
    drive_free(d);
    rv_buf_fini(&stage);
    rv_buf_fini(&rows);
}
END_TEST

TCase *declared_hooks_case(void)
{
    TCase *tc = tcase_create("declared_hooks");

    tcase_add_loop_test(tc, a_chained_call_has_hooks, 0, RV_COUNT(chains));
    tcase_add_loop_test(tc, a_chained_call_that_needs_a_person_is_not_made, 0, 2);
    tcase_add_test(tc, a_hook_of_a_chained_call_is_not_believed);
    tcase_add_test(tc, asking_an_agent_has_hooks);
    tcase_add_test(tc, an_agent_that_a_hook_blocks_is_not_asked);
    tcase_add_loop_test(tc, what_hooks_keep_back_is_not_kept, 0, RV_COUNT(turns));
    return tc;
}

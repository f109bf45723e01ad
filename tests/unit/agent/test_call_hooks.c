/* Hooks around model calls and tool calls: what each action does at each place, and that what they leave is what is
 * sent, kept and told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/call_hooks.h"
#include "tests/unit/agent/suites.h"

static void ends(struct drive *d)
{
    ck_assert_msg(drive_replays(d, FIRST), "%s", drive_story(d));
    drive_free(d);
}

/* --- before a model --- */

static const struct {
    const char *reply, *path, *want; /* of the request that is sent; NULL: none is */
    const char *output, *error;
} before_models[] = {
    {"", "system", "absent", "{\"response\":\"hm\"}", NULL},
    {"{}", "options.num_predict", "2000", "{\"response\":\"hm\"}", NULL},
    {"{'action':'continue'}", "role", "\"r\"", "{\"response\":\"hm\"}", NULL},
    {"{'action':'replace','request':{'prompt':'other'}}", "prompt", "\"other\"", "{\"response\":\"hm\"}", NULL},
    {"{'action':'replace','request':{'system':'be kind'}}", "system", "\"be kind\"", "{\"response\":\"hm\"}", NULL},
    {"{'action':'replace','request':{'options':{'temperature':0.5}}}", "options.temperature", "0.5",
     "{\"response\":\"hm\"}", NULL},
    {"{'action':'replace','request':{'options':{'temperature':null,'num_predict':5,'seed':7}}}", "options",
     "{\"num_predict\":5,\"num_ctx\":16384,\"seed\":7}", "{\"response\":\"hm\"}", NULL},
    {"{'action':'replace','request':{'history':[{'role':'user','content':'hi'},{'role':'assistant','content':'ho'}]}}",
     "history.1.content", "\"ho\"", "{\"response\":\"hm\"}", NULL},
    {"{'action':'replace','request':{'history':[]}}", "history", "absent", "{\"response\":\"hm\"}", NULL},
    {"{'action':'answer','reply':{'text':'mine'}}", NULL, NULL, "{\"response\":\"mine\"}", NULL},
    {"{'action':'answer','reply':{'output':{'v':1}}}", NULL, NULL, "{\"response\":\"{\\\"v\\\":1}\"}", NULL},
    {"{'action':'block','reason':'not today'}", NULL, NULL, "absent",
     "blocked the model call of agent \\\"a\\\": not today"},
};

/* Proves 10/inner-hooks: Hooks of a stage look at each model call and each tool call, before and after it, one after
 * the other in the order of their list: each lets it go on, changes it, answers in its place, or blocks it */
START_TEST(a_hook_before_a_model_decides_what_is_asked)
{
    struct drive *d = call_hooks_start(MODEL "before_model: x.h\n");
    struct drive_answer answers[] = {{"hook:x.h", before_models[_i].reply, false, 0}, {"llm:a", "hm", false, 0}};

    drive_answers(d, answers, 2);
    drive_run(d);
    ck_assert_str_eq(drive_request(&d->calls[0], "hook"), "\"before_model\"");
    ck_assert_str_eq(drive_request(&d->calls[0], "request.options.num_predict"), "2000");
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_LLM), before_models[_i].path != NULL);
    if (before_models[_i].path)
        ck_assert_str_eq(drive_request(call_hooks_asked(d, 0), before_models[_i].path), before_models[_i].want);
    ck_assert_str_eq(drive_state(d, "outputs.a"), before_models[_i].output);
    if (before_models[_i].error) {
        ck_assert_str_eq(drive_state(d, "errors.0.error_type"), "\"PolicyError\"");
        ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"policy_violation\"");
        ck_assert_ptr_nonnull(strstr(drive_state(d, "errors.0.error"), before_models[_i].error));
    }
    ends(d);
}
END_TEST

/* An answer costs nothing and leaves the call to those that need it. */
START_TEST(an_answer_in_place_of_a_model_costs_no_call_and_no_money)
{
    struct drive *d =
        call_hooks_start(MODEL "before_model: x.h\n    default_next: b\n  - {name: b, has_llm: true, model_role: r, "
                               "output_mode: text}\nmax_llm_calls: 1\n");

    DRIVE_ANSWERS(d, {"hook:x.h", "{'action':'answer','reply':{'text':'cached'}}", false, 0},
                  {"llm:b", "asked", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.a"), "{\"response\":\"cached\"}");
    ck_assert_str_eq(drive_state(d, "outputs.b"), "{\"response\":\"asked\"}");
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "1");
    ck_assert_str_eq(drive_state(d, "processing_history.0.llm_calls"), "0");
    ck_assert_str_eq(drive_state(d, "usage.calls"), "1");
    ck_assert_ptr_null(drive_line(d, "llm_result", 1));
    ends(d);
}
END_TEST

/* What the next request may cost is set aside when hooks have left it: an expensive one may be made cheap enough. */
START_TEST(money_is_set_aside_after_the_hooks)
{
    const char *yaml = "name: t\nmodels: {r: {model: 'openai:x', price: {input: 1, output: 100}}}\nbudget: {usd: 0.1}\n"
                       "agents:\n  - {name: a, has_llm: true, model_role: r, output_mode: text, before_model: x.h}\n";
    struct drive *d = call_hooks_start(yaml);

    DRIVE_ANSWERS(d, {"hook:x.h", "{'action':'replace','request':{'options':{'num_predict':10}}}", false, 0},
                  {"llm:a", "hm", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_TERMINATED); /* max_tokens says what a call can cost */
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_LLM), 0);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_HOOK), 1);
    ends(d);
    d = call_hooks_start(yaml);
    DRIVE_ANSWERS(d, {"hook:x.h", "{'action':'answer','reply':{'text':'free'}}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ends(d);
}
END_TEST

/* Attempts of one request have the same bytes, so hooks look at it once. */
START_TEST(hooks_look_once_at_a_request_that_is_tried_again)
{
    struct drive *d = call_hooks_start(MODEL "before_model: x.h\n    max_retries: 2\n");

    DRIVE_ANSWERS(d, {"hook:x.h", "{'action':'replace','request':{'prompt':'other'}}", false, 0},
                  {"llm:a", "?Busy:later", false, 0}, {"llm:a", "hm", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_HOOK), 1);
    ck_assert_str_eq(drive_request(call_hooks_asked(d, 1), "prompt"), "\"other\"");
    ends(d);
}
END_TEST

/* A reply of a hook that cannot be used is asked for again as often as one of the model, and takes no call. */
START_TEST(a_useless_answer_of_a_hook_takes_no_model_call)
{
    struct drive *d =
        call_hooks_start("name: t\nmodels: {r: 'openai:x'}\nmax_llm_calls: 1\nagents:\n"
                         "  - {name: a, has_llm: true, model_role: r, max_retries: 2, before_model: x.h}\n");

    DRIVE_ANSWERS(d, {"hook:x.h", "{'action':'answer','reply':{'text':'no json'}}", false, 0},
                  {"hook:x.h", "{'action':'answer','reply':{'text':'nor this'}}", false, 0},
                  {"llm:a", "{'v':1}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.a"), "{\"v\":1}");
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_HOOK), 3);
    ends(d);
}
END_TEST

/* --- after a model --- */

static const struct {
    const char *reply, *output, *error;
} after_models[] = {
    {"", "{\"response\":\"hm\"}", NULL},
    {"{'action':'continue'}", "{\"response\":\"hm\"}", NULL},
    {"{'action':'replace','reply':{'text':'ah'}}", "{\"response\":\"ah\"}", NULL},
    {"{'action':'replace','reply':{'output':{'v':[1]}}}", "{\"response\":\"{\\\"v\\\":[1]}\"}", NULL},
    {"{'action':'block','reason':'rude'}", "absent", "blocked the reply of agent \\\"a\\\": rude"},
};

START_TEST(a_hook_after_a_model_decides_what_it_said)
{
    struct drive *d = call_hooks_start(MODEL "after_model: [x.h]\n");
    const struct drive_said said[] = {{"hook:x.h", .reply = after_models[_i].reply},
                                      {"llm:a", .reply = "hm", .more = "{'finish_reason':'stop'}"}};

    drive_talk(d, said, 2);
    drive_run(d);
    ck_assert_str_eq(drive_request(&d->calls[1], "hook"), "\"after_model\"");
    ck_assert_str_eq(drive_request(&d->calls[1], "reply"), "{\"text\":\"hm\",\"finish_reason\":\"stop\"}");
    ck_assert_str_eq(drive_state(d, "outputs.a"), after_models[_i].output);
    ck_assert_str_eq(drive_state(d, "usage.calls"), "1"); /* it was asked, and is paid for */
    if (after_models[_i].error)
        ck_assert_ptr_nonnull(strstr(drive_state(d, "errors.0.error"), after_models[_i].error));
    json_object *line = drive_line(d, "llm_result", 0);
    ck_assert(line && !json_object_object_get_ex(line, "preview", NULL)); /* not before hooks have looked */
    ends(d);
}
END_TEST

/* People are not shown pieces that hooks have not looked at. */
START_TEST(pieces_of_a_reply_that_hooks_look_at_are_muted)
{
    static const char *const hooks[] = {"before_model: x.h\n", "after_model: x.h\n"};
    const struct rv_event begin = {.kind = RV_EVENT_START, .now_us = DRIVE_T0};
    const struct rv_event passed = {.kind = RV_EVENT_HOOK_DONE, .call_id = 1, .now_us = DRIVE_T0};

    for (size_t h = 0; h < RV_COUNT(hooks); h++) {
        rv_buf yaml = RV_BUF_INIT(4096);
        struct rv_effects fx = {0};
        rv_run *run = NULL;
        bool found = false;
        rv_buf_printf(&yaml, "%s%s", MODEL, hooks[h]);
        struct drive *d = call_hooks_start(rv_buf_cstr(&yaml));
        ck_assert_int_eq(rv_run_new(d->p, &d->catalog, &d->opts, d->env, &run, NULL), 0);
        d->env = NULL; /* the run's */
        ck_assert_int_eq(rv_run_step(run, &begin, &fx, NULL), 0);
        if (h == 0) {
            rv_effects_clear(&fx);
            ck_assert_int_eq(rv_run_step(run, &passed, &fx, NULL), 0);
        }
        for (size_t i = 0; i < fx.n; i++)
            if (fx.items[i].kind == RV_EFFECT_CALL_LLM) {
                found = true;
                ck_assert_int_eq(fx.items[i].is_hidden, h == 1);
            }
        ck_assert(found);
        rv_effects_fini(&fx);
        rv_run_free(run);
        drive_free(d);
        rv_buf_fini(&yaml);
    }
}
END_TEST

START_TEST(a_hook_may_give_the_object_of_a_structured_stage)
{
    struct drive *d =
        call_hooks_start("name: t\nmodels: {r: 'openai:x'}\nagents:\n  - {name: a, has_llm: true, model_role: r, "
                         "after_model: x.h, output_schema: {type: object, required: [v], properties: {v: {type: "
                         "integer}}}}\n");

    DRIVE_TALK(d, {"llm:a", .calls = "c1 final_result {'v':1}"},
               {"hook:x.h", .reply = "{'action':'replace','reply':{'output':{'v':'x'}}}"}, /* has to fit, too */
               {"llm:a", .calls = "c1 final_result {'v':1}"},
               {"hook:x.h", .reply = "{'action':'replace','reply':{'output':{'v':2}}}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.a"), "{\"v\":2}");
    ck_assert_str_eq(drive_request(&d->calls[1], "reply.tool_calls.0.name"), "\"final_result\"");
    ends(d);
}
END_TEST

START_TEST(other_words_leave_the_calls_of_a_reply)
{
    struct drive *d = call_hooks_start(TOOLS "after_model: x.h\n");

    DRIVE_TALK(d, {"llm:a", .reply = "secret", .calls = "c1 read {'n':1}"},
               {"hook:x.h", .reply = "{'action':'replace','reply':{'text':'clean'}}"}, {"tool:read", .reply = "{}"},
               {"llm:a", .reply = "done"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_request(call_hooks_asked(d, 1), "turns.0.content"), "\"clean\"");
    ck_assert_str_eq(drive_request(call_hooks_asked(d, 1), "turns.0.tool_calls.0.id"), "\"c1\"");
    ends(d);
}
END_TEST

/* --- around a tool --- */

static const struct {
    const char *reply, *sent; /* the arguments; NULL: the tool is not called */
    const char *told;         /* what the model is told */
} before_tools[] = {
    {"", "{\"n\":1}", "{\"x\":1}"},
    {"{'action':'replace','arguments':{'n':7}}", "{\"n\":7}", "{\"x\":1}"},
    {"{'action':'replace','arguments':{}}", "{}", "{\"x\":1}"},
    {"{'action':'answer','result':{'data':{'y':2}}}", NULL, "{\"y\":2}"},
    {"{'action':'answer','result':{'status':'error','error':'none'}}", NULL,
     "{\"error\":{\"type\":\"ToolError\",\"message\":\"none\"}}"},
    {"{'action':'block','reason':'no n'}", NULL,
     "{\"error\":{\"type\":\"AccessDenied\",\"message\":\"hook \\\"x.h\\\" blocked tool \\\"read\\\": no n\"}}"},
};

/* Proves 10/inner-hooks */
START_TEST(a_hook_before_a_tool_decides_what_is_called)
{
    struct drive *d = call_hooks_start(TOOLS "before_tool: x.h\n");
    const struct drive_said said[] = {{"llm:a", .calls = "c1 read {'n':1}"},
                                      {"hook:x.h", .reply = before_tools[_i].reply},
                                      {"tool:read", .reply = "{'data':{'x':1}}"},
                                      {"llm:a", .reply = "so"}};

    drive_talk(d, said, RV_COUNT(said));
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    const struct drive_call *hook = drive_call_at(d, RV_EFFECT_CALL_HOOK, 0);
    ck_assert_str_eq(drive_request(hook, "tool"), "\"read\"");
    ck_assert_str_eq(drive_request(hook, "step_id"), "\"c1\"");
    ck_assert_str_eq(drive_request(hook, "arguments"), "{\"n\":1}");
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), before_tools[_i].sent != NULL);
    if (before_tools[_i].sent)
        ck_assert_str_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->request, before_tools[_i].sent);
    json_object *told = NULL;
    json_object *turns = rv_kit_json(call_hooks_asked(d, 1)->request);
    json_object_object_get_ex(json_object_array_get_idx(rv_json_get_arr(turns, "turns"), 1), "content", &told);
    ck_assert_str_eq(json_object_get_string(told), before_tools[_i].told);
    json_object_put(turns);
    ends(d);
}
END_TEST

static const struct {
    const char *tool, *reply, *told;
} after_tools[] = {
    {"{'data':{'x':1}}", "", "{\"x\":1}"},
    {"{'data':{'x':1}}", "{'action':'replace','result':{'data':{'x':0}}}", "{\"x\":0}"},
    {"{'data':{'x':1}}", "{'action':'replace','result':{'v':3}}", "{\"v\":3}"},
    {"{'data':{'x':1}}", "{'action':'replace','result':{'status':'failed','error':'hidden'}}",
     "{\"error\":{\"type\":\"ToolError\",\"message\":\"hidden\"}}"},
    {"{'data':{'x':1}}", "{'action':'block','reason':'private'}",
     "{\"error\":{\"type\":\"AccessDenied\",\"message\":\"hook \\\"x.h\\\" blocked the result of tool \\\"read\\\": "
     "private\"}}"},
    {"!:broke", "", "{\"error\":{\"type\":\"ExecutionError\",\"message\":\"broke\"}}"},
    {"!:broke", "{'action':'replace','result':{'data':{'x':'old'}}}", "{\"x\":\"old\"}"},
};

START_TEST(a_hook_after_a_tool_decides_what_came_of_it)
{
    struct drive *d = call_hooks_start(TOOLS "after_tool: x.h\n");
    const struct drive_said said[] = {{"llm:a", .calls = "c1 read {'n':1}"},
                                      {"tool:read", .reply = after_tools[_i].tool},
                                      {"hook:x.h", .reply = after_tools[_i].reply},
                                      {"llm:a", .reply = "so"}};

    drive_talk(d, said, RV_COUNT(said));
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    const struct drive_call *hook = drive_call_at(d, RV_EFFECT_CALL_HOOK, 0);
    ck_assert_str_eq(drive_request(hook, "hook"), "\"after_tool\"");
    ck_assert_str_eq(drive_request(hook, "arguments"), "{\"n\":1}");
    if (after_tools[_i].tool[0] == '!')
        ck_assert_str_eq(drive_request(hook, "error.message"), "\"broke\"");
    else
        ck_assert_str_eq(drive_request(hook, "result"), "{\"x\":1}");
    json_object *told = NULL, *turns = rv_kit_json(call_hooks_asked(d, 1)->request);
    json_object_object_get_ex(json_object_array_get_idx(rv_json_get_arr(turns, "turns"), 1), "content", &told);
    ck_assert_str_eq(json_object_get_string(told), after_tools[_i].told);
    json_object_put(turns);
    json_object *line = drive_line(d, "tool_result", 0);
    int64_t id = 0;
    ck_assert(rv_json_get_int(line, "call_id", &id) && id == drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->call_id);
    ends(d);
}
END_TEST

/* A result that a hook gives is held to the tool's rules. */
START_TEST(a_result_of_a_hook_has_to_fit_the_tool)
{
    struct drive *d = call_hooks_start(TOOLS "after_tool: x.h\n");

    DRIVE_TALK(d, {"llm:a", .calls = "c1 put {}"}, {"tool:put", .reply = "{'n':1}"},
               {"hook:x.h", .reply = "{'action':'replace','result':{'m':1}}"}, {"llm:a", .reply = "so"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_ptr_nonnull(strstr(drive_request(call_hooks_asked(d, 1), "turns.1.content"), "ValidationError"));
    ends(d);
}
END_TEST

/* A model that asks for blocked calls again and again is stopped, as one that asks for tools it may not call. */
START_TEST(a_model_that_repeats_blocked_calls_is_stopped)
{
    for (int beside = 0; beside < 2; beside++) {
        struct drive *d = call_hooks_start(TOOLS "before_tool: x.h\n    max_bad_calls: 1\n");
        const struct drive_said said[] = {
            {"llm:a", .calls = beside ? "c1 read {} | c2 read {}" : "c1 put {}", .stays = true},
            {"hook:x.h", .reply = "{'action':'block','reason':'no'}", .stays = true}};
        drive_talk(d, said, 2);
        ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
        ck_assert_str_eq(drive_state(d, "errors.0.error_type"), "\"LimitError\"");
        ck_assert_ptr_nonnull(strstr(drive_state(d, "errors.0.error"), "blocked tool"));
        ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 0);
        ends(d);
    }
}
END_TEST

/* --- several hooks, several calls --- */

START_TEST(each_hook_sees_what_those_before_it_left)
{
    struct drive *d =
        call_hooks_start(TOOLS "before_model: [x.a, x.b]\n    after_model: [x.a, x.b]\n    before_tool: [x.a, x.b]\n"
                               "    after_tool: [x.a, x.b]\n");

    DRIVE_TALK(d, {"hook:x.a", .reply = "{'action':'replace','request':{'prompt':'p1'}}"}, {"hook:x.b", .reply = "{}"},
               {"llm:a", .reply = "r0", .calls = "c1 read {'n':1}"},
               {"hook:x.a", .reply = "{'action':'replace','reply':{'text':'r1'}}"}, {"hook:x.b", .reply = "{}"},
               {"hook:x.a", .reply = "{'action':'replace','arguments':{'n':2}}"}, {"hook:x.b", .reply = "{}"},
               {"tool:read", .reply = "{'data':{'x':1}}"},
               {"hook:x.a", .reply = "{'action':'replace','result':{'data':{'x':2}}}"}, {"hook:x.b", .reply = "{}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    static const struct {
        size_t n;
        const char *path, *want;
    } seen[] = {{1, "request.prompt", "\"p1\""},
                {3, "reply.text", "\"r1\""},
                {5, "arguments", "{\"n\":2}"},
                {7, "arguments", "{\"n\":2}"},
                {7, "result", "{\"x\":2}"}};
    for (size_t i = 0; i < RV_COUNT(seen); i++)
        ck_assert_str_eq(drive_request(drive_call_at(d, RV_EFFECT_CALL_HOOK, seen[i].n), seen[i].path), seen[i].want);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_HOOK), 12); /* the second round has no tools */
    ends(d);
}
END_TEST

/* The first hook that answers or blocks is the last that is asked on that side; those after the call still look. */
START_TEST(an_answer_ends_the_hooks_before_a_call_and_goes_to_those_after_it)
{
    struct drive *d =
        call_hooks_start(TOOLS "before_model: [x.a, x.b]\n    after_model: x.c\n    before_tool: [x.d, x.e]\n"
                               "    after_tool: x.f\n");

    DRIVE_TALK(d, {"llm:a", .calls = "c1 read {}"},
               {"hook:x.d", .reply = "{'action':'answer','result':{'data':{'x':1}}}"},
               {"hook:x.f", .reply = "{'action':'replace','result':{'data':{'x':2}}}"}, {"hook:x.a", .reply = "{}"},
               {"hook:x.a", .reply = "{'action':'answer','reply':{'text':'a'}}"}, {"hook:x.c", .reply = "{}"},
               {"hook:x.c", .reply = "{'action':'replace','reply':{'text':'c'}}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.a"), "{\"response\":\"c\"}");
    ck_assert_str_eq(drive_request(drive_call_at(d, RV_EFFECT_CALL_HOOK, 5), "request.turns.1.content"),
                     "\"{\\\"x\\\":2}\"");
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_HOOK), 7);
    ends(d);
}
END_TEST

/* Calls side by side have their hooks side by side, each with its own changes, and results in the order of the calls.
 */
START_TEST(calls_side_by_side_have_hooks_of_their_own)
{
    struct drive *d = call_hooks_start(TOOLS "before_tool: [x.b]\n    after_tool: [x.a]\n    max_retries: 1\n");

    DRIVE_TALK(d, {"llm:a", .calls = "c1 read {'n':1} | c2 read {'n':2} | c3 read {'n':3}"},
               {"hook:x.b", .reply = "{'action':'replace','arguments':{'n':10}}", .latency_us = 9000},
               {"hook:x.b", .reply = "{'action':'block','reason':'two'}"},
               {"hook:x.b", .reply = "{'action':'answer','result':{'data':{'x':3}}}", .latency_us = 4000},
               {"hook:x.a", .reply = "{'action':'replace','result':{'data':{'x':30}}}"},
               {"tool:read", .reply = "?Busy:later"}, {"tool:read", .reply = "{'data':{'x':1}}"},
               {"hook:x.a", .reply = "{'action':'replace','result':{'data':{'x':100}}}"}, {"llm:a", .reply = "so"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_request(call_hooks_asked(d, 1), "turns.1.content"), "\"{\\\"x\\\":100}\"");
    ck_assert_ptr_nonnull(strstr(drive_request(call_hooks_asked(d, 1), "turns.2.content"), "AccessDenied"));
    ck_assert_str_eq(drive_request(call_hooks_asked(d, 1), "turns.3.content"), "\"{\\\"x\\\":30}\"");
    ck_assert_str_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 1)->request, "{\"n\":10}"); /* the second attempt, too */
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_HOOK), 5);
    ends(d);
}
END_TEST

/* The plan of a tool stage stays what it is in the envelope; the results say what was sent. */
START_TEST(the_steps_of_a_plan_have_hooks)
{
    struct drive *d = drive_new("name: t\nagents:\n  - {name: a, has_tools: true, tool_access: all, before_tool: x.b, "
                                "after_tool: x.a}\n",
                                call_hooks_tools, CALL_HOOKS_TOOLS);

    drive_envelope(d, "{'outputs':{'plan':{'steps':[{'tool':'put','parameters':{'n':1}},{'tool':'none'},"
                      "{'tool':'read'}]}}}");
    DRIVE_ANSWERS(d, {"hook:x.b", "{'action':'replace','arguments':{'n':5}}", false, 0},
                  {"tool:put", "{'n':5}", false, 0}, {"hook:x.b", "{'action':'block','reason':'no'}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.plan.steps.0.parameters"), "{\"n\":1}");
    ck_assert_str_eq(drive_state(d, "outputs.a.results.0.parameters"), "{\"n\":5}");
    ck_assert_str_eq(drive_state(d, "outputs.a.results.1.error.type"), "\"NotFoundError\"");
    ck_assert_str_eq(drive_state(d, "outputs.a.results.2.error.type"), "\"AccessDenied\"");
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_HOOK), 3); /* what cannot be called is shown to none */
    drive_free(d);
}
END_TEST

/* What stands in for a stage makes none of its calls, so no hook around them is asked. A script that plays only its
 * model or its tools leaves the hooks as they are: they are asked around what it says. */
START_TEST(a_mocked_stage_asks_no_hooks_around_calls)
{
    struct drive *d =
        call_hooks_start(TOOLS "before_model: x.h\n    after_tool: x.h\n    mock_handler: x.mock\n    mock: true\n");

    DRIVE_ANSWERS(d, {"mock:x.mock", "{'response':'played'}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_HOOK), 1); /* the mock */
    ends(d);
}
END_TEST

/* --- people --- */

/* A person approves what hooks left, and exactly that is called: hooks do not look again. */
START_TEST(a_person_approves_what_hooks_have_left)
{
    struct drive *d = call_hooks_start(TOOLS "before_tool: x.b\n    after_tool: x.a\n");

    DRIVE_TALK(d, {"llm:a", .calls = "c1 wipe {'all':true}"},
               {"hook:x.b", .reply = "{'action':'replace','arguments':{'all':false}}"},
               {"tool:wipe", .reply = "{'data':{'x':1}}"},
               {"hook:x.a", .reply = "{'action':'replace','result':{'data':{'x':2}}}"}, {"llm:a", .reply = "so"});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "interrupt.data.parameters"), "{\"all\":false}");
    drive_forget_calls(d);
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->request, "{\"all\":false}");
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_HOOK), 1);
    ck_assert_str_eq(drive_request(call_hooks_asked(d, 0), "turns.1.content"), "\"{\\\"x\\\":2}\"");
    drive_free(d);
}
END_TEST

/* The outcome is unknown: the call is called again with the same arguments, or what a person says goes to the hooks. */
START_TEST(a_call_of_unknown_outcome_keeps_its_arguments)
{
    static const char *const decisions[] = {"not_happened", "happened"};

    for (size_t i = 0; i < RV_COUNT(decisions); i++) {
        const struct rv_response response = {.decision = rv_str_of(decisions[i])};
        struct drive *d = call_hooks_start(TOOLS "before_tool: x.b\n    after_tool: x.a\n");
        rv_err *err = NULL;
        DRIVE_TALK(d, {"llm:a", .calls = "c1 put {'n':1}"},
                   {"hook:x.b", .reply = "{'action':'replace','arguments':{'n':2}}"}, {"tool:put", .reply = "#"},
                   {"tool:put", .reply = "{'n':2}"}, {"hook:x.a", .reply = "{'action':'replace','result':{'n':3}}"},
                   {"llm:a", .reply = "so"});
        ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
        ck_assert_str_eq(drive_state(d, "interrupt.data.parameters"), "{\"n\":2}");
        drive_forget_calls(d);
        ck_assert_int_eq(drive_resume(d, &response, &err), 0);
        ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
        ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), i == 0);
        if (i == 0)
            ck_assert_str_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->request, "{\"n\":2}");
        ck_assert_str_eq(drive_request(call_hooks_asked(d, 0), "turns.1.content"), "\"{\\\"n\\\":3}\"");
        drive_free(d);
    }
}
END_TEST

TCase *call_hooks_case(void)
{
    TCase *tc = tcase_create("call_hooks");

    tcase_add_loop_test(tc, a_hook_before_a_model_decides_what_is_asked, 0, RV_COUNT(before_models));
    tcase_add_test(tc, an_answer_in_place_of_a_model_costs_no_call_and_no_money);
    tcase_add_test(tc, money_is_set_aside_after_the_hooks);
    tcase_add_test(tc, hooks_look_once_at_a_request_that_is_tried_again);
    tcase_add_test(tc, a_useless_answer_of_a_hook_takes_no_model_call);
    tcase_add_loop_test(tc, a_hook_after_a_model_decides_what_it_said, 0, RV_COUNT(after_models));
    tcase_add_test(tc, pieces_of_a_reply_that_hooks_look_at_are_muted);
    tcase_add_test(tc, a_hook_may_give_the_object_of_a_structured_stage);
    tcase_add_test(tc, other_words_leave_the_calls_of_a_reply);
    tcase_add_loop_test(tc, a_hook_before_a_tool_decides_what_is_called, 0, RV_COUNT(before_tools));
    tcase_add_loop_test(tc, a_hook_after_a_tool_decides_what_came_of_it, 0, RV_COUNT(after_tools));
    tcase_add_test(tc, a_result_of_a_hook_has_to_fit_the_tool);
    tcase_add_test(tc, a_model_that_repeats_blocked_calls_is_stopped);
    tcase_add_test(tc, each_hook_sees_what_those_before_it_left);
    tcase_add_test(tc, an_answer_ends_the_hooks_before_a_call_and_goes_to_those_after_it);
    tcase_add_test(tc, calls_side_by_side_have_hooks_of_their_own);
    tcase_add_test(tc, the_steps_of_a_plan_have_hooks);
    tcase_add_test(tc, a_mocked_stage_asks_no_hooks_around_calls);
    tcase_add_test(tc, a_person_approves_what_hooks_have_left);
    tcase_add_test(tc, a_call_of_unknown_outcome_keeps_its_arguments);
    return tc;
}

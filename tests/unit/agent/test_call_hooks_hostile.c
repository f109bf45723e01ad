/* Hooks around calls that say what they must not, and processes that die while one is asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/call_hooks.h"
#include "tests/unit/agent/suites.h"

/* --- hostile answers --- */

static const char *const lies[] = {
    "[]",
    "7",
    "{",
    "{} {}",
    "\xff",
    "{'action':'\xff'}",
    "!:it broke",
    "!TimeoutError:late",
    "{'action':'perhaps'}",
    "{'action':7}",
    "{'action':null}",
    "{'aktion':'continue'}",
    "{'output':{}}",
    "{'envelope':{'metadata':{'k':1}}}",
    "{'action':'continue','reason':'x'}",
    "{'action':'replace'}",
    "{'action':'answer'}",
    "{'action':'block'}",
    "{'action':'block','reason':''}",
    "{'action':'block','reason':' '}",
    "{'action':'block','reason':5}",
    "{'action':'block','reason':'x','more':1}",
    "{'action':'continue','action':'block'}",
};
static const char *const lies_of[4][24] = {
    {
        "{'action':'replace','request':7}",
        "{'action':'replace','request':{'role':'other'}}",
        "{'action':'replace','request':{'model':'dear'}}",
        "{'action':'replace','request':{'tools':[]}}",
        "{'action':'replace','request':{'prompt':7}}",
        "{'action':'replace','request':{'system':null}}",
        "{'action':'replace','request':{'options':7}}",
        "{'action':'replace','request':{'options':{'temperature':3}}}",
        "{'action':'replace','request':{'options':{'num_predict':1000000}}}",
        "{'action':'replace','request':{'options':{'num_predict':0}}}",
        "{'action':'replace','request':{'options':{'seed':'x'}}}",
        "{'action':'replace','request':{'options':{'num_ctx':1}}}",
        "{'action':'replace','request':{'turns':{}}}",
        "{'action':'replace','request':{'turns':[7]}}",
        "{'action':'replace','request':{'turns':[{'role':'system','content':'x'}]}}",
        "{'action':'replace','request':{'turns':[{'role':'tool','tool_call_id':'c','name':'n','content':''}]}}",
        "{'action':'replace','request':{'turns':[{'role':'assistant','tool_calls':[{'id':'c','name':'n','arguments':''}"
        "]}]}}",
        "{'action':'replace','request':{'history':[{'role':'user','content':'x','more':1}]}}",
        "{'action':'replace','request':{'history':[{'role':'assistant'}]}}",
        "{'action':'replace','request':{'history':[{'role':'assistant','tool_calls':[{'id':'c','name':'n','arguments':{"
        "}}]}]}}",
        "{'action':'answer','reply':{}}",
        "{'action':'answer','reply':{'text':'x','output':{}}}",
        "{'action':'answer','reply':{'text':{}}}",
        "{'action':'answer','result':{}}",
    },
    {
        "{'action':'answer','reply':{'text':'x'}}",
        "{'action':'replace','reply':7}",
        "{'action':'replace','reply':{}}",
        "{'action':'replace','reply':{'output':[]}}",
        "{'action':'replace','reply':{'text':null}}",
        "{'action':'replace','reply':{'tool_calls':[]}}",
        "{'action':'replace','request':{}}",
    },
    {
        "{'action':'replace','arguments':[]}",
        "{'action':'replace','arguments':{'n':'x'}}",
        "{'action':'replace','arguments':{'m':1}}",
        "{'action':'replace','result':{}}",
        "{'action':'answer','result':[]}",
        "{'action':'answer','reply':{'text':'x'}}",
    },
    {
        "{'action':'answer','result':{}}",
        "{'action':'replace','result':'x'}",
        "{'action':'replace','arguments':{}}",
    },
};
static const char *const sides[] = {"before_model", "after_model", "before_tool", "after_tool"};

static void lie(const char *side, const char *reply, bool beside)
{
    rv_buf yaml = RV_BUF_INIT(1 << 16);

    rv_buf_printf(&yaml, "%s%s: [x.h, x.i]\n", TOOLS, side);
    struct drive *d = call_hooks_start(rv_buf_cstr(&yaml));
    const struct drive_said said[] = {
        {"llm:a", .reply = "hm", .calls = beside ? "c1 read {} | c2 read {}" : "c1 read {}"},
        {"hook:x.h", .reply = reply}};
    drive_talk(d, said, 2);
    ck_assert_msg(drive_run(d) == RV_RUN_FAILED, "%s: %s", side, reply);
    bool late = strncmp(reply, "!Timeout", 8) == 0;
    ck_assert_msg(strcmp(drive_state(d, "errors.0.error_type"), late ? "\"TimeoutError\"" : "\"HookError\"") == 0,
                  "%s: %s: %s", side, reply, drive_state(d, "errors"));
    for (size_t i = 0; i < d->n_calls; i++) /* nothing is asked after it */
        ck_assert_msg(strcmp(d->calls[i].name ? d->calls[i].name : "", "x.i") != 0, "%s: %s", side, reply);
    ck_assert_msg(strstr(drive_state(d, "errors.0.error"), "x.h") != NULL, "%s", drive_state(d, "errors.0.error"));
    drive_free(d);
    rv_buf_fini(&yaml);
}

/* Proves 5.2/garbage */
START_TEST(anything_else_that_a_hook_says_fails_the_visit_and_names_it)
{
    for (size_t i = 0; i < RV_COUNT(lies); i++) {
        lie(sides[_i], lies[i], false);
        lie(sides[_i], lies[i], true);
    }
    for (size_t i = 0; i < RV_COUNT(lies_of[0]) && lies_of[_i][i]; i++) {
        lie(sides[_i], lies_of[_i][i], false);
        lie(sides[_i], lies_of[_i][i], true);
    }
}
END_TEST

START_TEST(a_reason_without_measure_is_cut)
{
    size_t n = (size_t)1 << 20;
    rv_buf reply = RV_BUF_INIT((size_t)2 << 20);

    rv_buf_puts(&reply, "{\"action\":\"block\",\"reason\":\"");
    for (size_t i = 0; i < n; i++)
        rv_buf_putc(&reply, 'e');
    rv_buf_puts(&reply, "\"}");
    struct drive *d = call_hooks_start(TOOLS "before_tool: x.h\n");
    const struct drive_said said[] = {{"llm:a", .reply = NULL, .calls = "c1 read {}"},
                                      {"hook:x.h", .reply = rv_buf_cstr(&reply)}};
    drive_talk(d, said, 2);
    drive_run(d);
    ck_assert_uint_lt(strlen(drive_request(call_hooks_asked(d, 1), "turns.1.content")), 4000);
    drive_free(d);
    rv_buf_fini(&reply);
}
END_TEST

/* --- recovery --- */

/* Another process takes over while each call in turn is under way: it is made again, and the end is the same. */
START_TEST(a_run_goes_on_wherever_its_process_died)
{
    static const struct drive_said said[] = {
        {"llm:a", .reply = "r", .calls = "c1 read {'n':1} | c2 read {'n':2}"},
        {"llm:a", .calls = "c3 put {'n':3}"},
        {"llm:a", .reply = "so"},
        {"tool:put", .reply = "{'n':1}"},
        {"tool:read", .reply = "{'data':{'x':1}}", .stays = true},
        {"hook:x.bt", .reply = "{'action':'replace','arguments':{'n':5}}", .stays = true},
        {"hook:x.at", .reply = "{'action':'replace','result':{'n':6}}", .stays = true},
        {"hook:x.bm", .reply = "{'action':'replace','request':{'system':'s'}}", .stays = true},
    };
    const char *yaml = TOOLS "before_model: x.bm\n    after_model: x.am\n    before_tool: x.bt\n    after_tool: x.at\n"
                             "    timeout_seconds: 100\n";
    char *want = NULL;

    for (int at = 0; at < 60; at++) {
        struct drive *d = call_hooks_start(yaml);
        drive_talk(d, said, RV_COUNT(said));
        drive_start(d);
        for (int i = 0; i < at && !d->finished; i++)
            drive_pump_one(d);
        bool was_over = d->finished;
        if (!was_over && at > 0)
            drive_recover(d, 5000000);
        drive_pump(d);
        ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
        ck_assert_str_eq(drive_request(call_hooks_asked(d, 2), "system"), "\"s\"");
        const char *turns = drive_request(call_hooks_asked(d, 2), "turns");
        if (!want)
            want = rv_str_dup(rv_str_of(turns));
        ck_assert_str_eq(turns, want);
        ck_assert(drive_replays(d, FIRST));
        drive_free(d);
        if (was_over)
            break;
        ck_assert_int_lt(at, 59);
    }
    free(want);
}
END_TEST

TCase *call_hooks_hostile_case(void)
{
    TCase *tc = tcase_create("call_hooks_hostile");

    tcase_add_loop_test(tc, anything_else_that_a_hook_says_fails_the_visit_and_names_it, 0, RV_COUNT(sides));
    tcase_add_test(tc, a_reason_without_measure_is_cut);
    tcase_add_test(tc, a_run_goes_on_wherever_its_process_died);
    return tc;
}

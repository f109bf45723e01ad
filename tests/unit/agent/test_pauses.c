/* Model stages that wait for a person in the middle of their tool loop, are cancelled, or run side by side. Whatever
 * comes between, nothing is called twice, and the conversation goes on as if nobody had waited. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/suites.h"
#include "tests/unit/run/drive.h"

#define HEAD                                                                                                           \
    "name: t\nmodels: {r: 'openai:gpt-x'}\nprompts: {p: 'Do {{raw_input}}'}\n"                                         \
    "agents:\n  - name: a\n    has_llm: true\n    model_role: r\n    has_tools: true\n    tool_access: all\n    "      \
    "output_mode: text\n    prompt_key: p\n    "
#define STATE "{'envelope_id':'env_1','raw_input':'it'}"

static const struct drive_tool tools[] = {
    {"read", RV_RISK_READ_ONLY, NULL, NULL, 0},
    {"put", RV_RISK_WRITE, NULL, NULL, 0},
    {"wipe", RV_RISK_DESTRUCTIVE, NULL, NULL, 0},
};

static struct drive *stage(const char *more)
{
    rv_buf yaml = RV_BUF_INIT(1 << 16);

    rv_buf_printf(&yaml, "%s%s\n", HEAD, more);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), tools, RV_COUNT(tools));
    drive_envelope(d, STATE);
    rv_buf_fini(&yaml);
    return d;
}

static size_t n_called(const struct drive *d, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < d->n_calls; i++)
        n += d->calls[i].kind == RV_EFFECT_CALL_TOOL && strcmp(d->calls[i].name, name) == 0;
    return n;
}

static const char turns[] =
    "[{\"role\":\"assistant\",\"content\":\"hm\",\"tool_calls\":[{\"id\":\"c1\",\"name\":\"read\",\"arguments\":\"\"},"
    "{\"id\":\"c2\",\"name\":\"wipe\",\"arguments\":\"{\\\"n\\\":1}\"},{\"id\":\"c3\",\"name\":\"wipe\",\"arguments\":"
    "\"{\\\"n\\\":2}\"},{\"id\":\"c4\",\"name\":\"read\",\"arguments\":\"\"}]},{\"role\":\"tool\",\"tool_call_id\":"
    "\"c1\",\"name\":\"read\",\"content\":\"{\\\"v\\\":1}\"},{\"role\":\"tool\",\"tool_call_id\":\"c2\",\"name\":"
    "\"wipe\",\"content\":\"{\\\"v\\\":2}\"},{\"role\":\"tool\",\"tool_call_id\":\"c3\",\"name\":\"wipe\",\"content\":"
    "\"{\\\"v\\\":3}\"},{\"role\":\"tool\",\"tool_call_id\":\"c4\",\"name\":\"read\",\"content\":\"{\\\"v\\\":4}\"}]";

/* Each pause is answered in the same run, or in one made from its saved state. */
/* Proves 12/pause: A call that needs approval stops the turn there; nothing is done twice when it goes on, and a no
 * makes no call */
START_TEST(a_destructive_call_waits_for_approval_and_nothing_else_is_done_twice)
{
    struct drive *d = stage("");
    const struct rv_response yes = {.has_approved = true, .approved = true};
    bool reloads = _i;
    char *prompt = NULL;

    d->keeps_numbers = true;
    DRIVE_TALK(d,
               {"llm:a", .reply = "hm", .calls = "c1 read | c2 wipe {'n':1} | c3 wipe {'n':2} | c4 read",
                .more = "{'usage':{'input_tokens':7,'output_tokens':2}}"},
               {"llm:a", .calls = "c5 put {}", .more = "{'usage':{'input_tokens':9,'output_tokens':2}}"},
               {"llm:a", .reply = "done"}, {"tool:read", .reply = "{'v':1}"}, {"tool:wipe", .reply = "{'v':2}"},
               {"tool:wipe", .reply = "{'v':3}"}, {"tool:read", .reply = "{'v':4}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    prompt = rv_str_dup(rv_str_of(drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, 0), "prompt")));
    size_t read = 0, wiped = 0, asked = 1;
    for (int pause = 0; pause < 2; pause++) {
        ck_assert_str_eq(drive_state(d, "interrupt.kind"), "\"confirmation\"");
        ck_assert_str_eq(drive_state(d, "interrupt.data.parameters"), pause ? "{\"n\":2}" : "{\"n\":1}");
        ck_assert_str_eq(drive_state(d, "llm_call_count"), "1"); /* going on counts no model call */
        ck_assert_str_eq(drive_state(d, "usage.input_tokens"), "7");
        read = reloads ? read + n_called(d, "read") : n_called(d, "read");
        wiped = reloads ? wiped + n_called(d, "wipe") : n_called(d, "wipe");
        ck_assert_uint_eq(read, 1);
        ck_assert_uint_eq(wiped, (size_t)pause);
        ck_assert_int_eq(reloads ? drive_resume(d, &yes, NULL) : drive_go_on(d, &yes, NULL), 0);
    }
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    if (reloads)
        asked = 0;
    ck_assert_str_eq(drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, asked), "turns"), turns);
    ck_assert_str_eq(drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, asked), "prompt"), prompt);
    ck_assert_str_eq(drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, asked + 1), "turns.n"), "7");
    ck_assert_uint_eq(n_called(d, "wipe"), reloads ? 1 : 2);
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "3");
    ck_assert_str_eq(drive_state(d, "usage.input_tokens"), "16");
    ck_assert_str_eq(drive_state(d, "suspended"), "{}");
    if (!reloads)
        ck_assert(drive_replays(d, STATE));
    free(prompt);
    drive_free(d);
}
END_TEST

/* Proves 12/pause */
START_TEST(a_denied_call_is_not_made)
{
    struct drive *d = stage("");

    DRIVE_TALK(d, {"llm:a", .calls = "c1 wipe {}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(drive_approve(d, false), RV_RUN_TERMINATED);
    ck_assert_uint_eq(d->n_calls, 0);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"user_cancelled\"");
    drive_free(d);
}
END_TEST

static const struct {
    const char *decision, *data;
    enum rv_run_status status;
    size_t n_put;
    const char *content;
} words[] = {
    {"happened", "{'v':8}", RV_RUN_COMPLETED, 1, "\"{\\\"v\\\":8}\""},
    {"happened", NULL, RV_RUN_COMPLETED, 1, "\"{}\""},
    {"not_happened", NULL, RV_RUN_COMPLETED, 2, "\"{\\\"v\\\":9}\""},
    {"fail", NULL, RV_RUN_FAILED, 1, NULL},
};

START_TEST(a_person_says_what_became_of_a_call_that_nobody_knows_about)
{
    struct drive *d = stage("");
    json_object *data = words[_i].data ? rv_kit_json(words[_i].data) : NULL;
    const struct rv_response word = {.decision = rv_str_of(words[_i].decision), .data = data};

    DRIVE_TALK(d, {"llm:a", .calls = "c1 read | c2 put {}"}, {"llm:a", .reply = "done"}, {"tool:put", .reply = "#"},
               {"tool:put", .reply = "{'v':9}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "interrupt.kind"), "\"agent_review\"");
    ck_assert_int_eq(drive_go_on(d, &word, NULL), 0);
    ck_assert_int_eq(rv_run_status(d->run), words[_i].status);
    ck_assert_uint_eq(n_called(d, "put"), words[_i].n_put);
    ck_assert_uint_eq(n_called(d, "read"), 1);
    if (words[_i].n_put == 2)
        ck_assert_str_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 1)->key, drive_call_at(d, RV_EFFECT_CALL_TOOL, 2)->key);
    if (words[_i].content) {
        const struct drive_call *again = drive_call_at(d, RV_EFFECT_CALL_LLM, 1);
        ck_assert_str_eq(drive_request(again, "turns.2.content"), words[_i].content);
        ck_assert_str_eq(drive_request(again, "prompt"), "\"Do it\"");
    }
    ck_assert(drive_replays(d, STATE));
    json_object_put(data);
    drive_free(d);
}
END_TEST

/* Proves 12/cancel: A cancelled or ended visit cancels every call under way */
START_TEST(a_cancelled_visit_cancels_every_call)
{
    struct drive *d = stage("max_retries: 1");

    DRIVE_TALK(d, {"llm:a", .calls = "c1 read | c2 read | c3 read | c4 read"}, {"tool:read", .reply = "?:busy"},
               {"tool:read", .reply = "{}"});
    drive_start(d);
    for (int i = 0; i < 3; i++)
        drive_pump_one(d);
    drive_cancel(d); /* two under way, one waits for its timer, one has answered */
    ck_assert_uint_eq(d->n_cancelled, 3);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_CANCELLED);
    ck_assert(drive_replays(d, STATE));
    drive_free(d);
}
END_TEST

#define PARALLEL                                                                                                       \
    "name: t\ndefault_run_mode: parallel\nmodels: {r: {model: 'openai:gpt-x', price: {input: 1, output: 2}}}\n"        \
    "budget: {usd: 1}\nagents:\n"                                                                                      \
    "  - {name: a, has_llm: true, model_role: r, has_tools: true, tool_access: all}\n"                                 \
    "  - {name: b, has_llm: true, model_role: r, has_tools: true, tool_access: all}\n"

START_TEST(two_stages_use_tools_side_by_side)
{
    struct drive *d = drive_new(PARALLEL, tools, RV_COUNT(tools));

    drive_envelope(d, STATE);
    DRIVE_TALK(d, {"llm:a", .calls = "c1 read | c2 put", .more = "{'usage':{'input_tokens':10,'output_tokens':1}}"},
               {"llm:b", .calls = "c1 read | c2 read", .more = "{'usage':{'input_tokens':100,'output_tokens':1}}"},
               {"llm:a", .reply = "{'v':1}", .more = "{'usage':{'input_tokens':1000,'output_tokens':1}}"},
               {"llm:b", .reply = "{'v':2}", .more = "{'usage':{'input_tokens':10000,'output_tokens':1}}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "usage"),
                     "{\"calls\":4,\"input_tokens\":11110,\"output_tokens\":4,\"cost_micro_usd\":11118}");
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "4");
    ck_assert_str_eq(drive_state(d, "outputs"), "{\"a\":{\"v\":1},\"b\":{\"v\":2}}");
    ck_assert(drive_replays(d, STATE));
    drive_free(d);
}
END_TEST

/* Proves 12/pause */
START_TEST(stages_side_by_side_wait_for_people_and_go_on)
{
    struct drive *d = drive_new(PARALLEL, tools, RV_COUNT(tools));
    const struct rv_response yes = {.has_approved = true, .approved = true};

    drive_envelope(d, STATE);
    DRIVE_TALK(d, {"llm:a", .calls = "c1 read | c2 wipe {'n':1}"}, {"llm:b", .calls = "c1 wipe {'n':2}"},
               {"llm:a", .reply = "{'v':1}"}, {"llm:b", .reply = "{'v':2}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_uint_eq(n_called(d, "wipe"), 0);
    ck_assert_int_eq(drive_go_on(d, &yes, NULL), 0);
    ck_assert_int_eq(drive_go_on(d, &yes, NULL), 0);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_uint_eq(n_called(d, "wipe"), 2);
    ck_assert_uint_eq(n_called(d, "read"), 1);
    ck_assert_str_eq(drive_state(d, "outputs"), "{\"a\":{\"v\":1},\"b\":{\"v\":2}}");
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "4");
    ck_assert(drive_replays(d, STATE));
    drive_free(d);
}
END_TEST

/* --- states that the engine did not write --- */

static const char *const torn[] = {
    "'steps':[{'step_id':'c1','tool':'wipe'}],'results':[],'at':0,'talk':{}",
    "'steps':[{'step_id':'c1','tool':'wipe'}],'results':[],'at':0,'talk':{'prompt':7,'turns':{}}",
    "'steps':[{'step_id':'c1','tool':'wipe'}],'results':[],'at':0,'talk':{'prompt':'p','turns':[7]}",
    "'steps':[{'step_id':'c1','tool':'wipe'}],'results':[],'at':0,'talk':{'prompt':'p','turns':[{'role':'assistant',"
    "'tool_calls':[]}]}",
    "'steps':[{'step_id':'c1','tool':'wipe'}],'results':[{}],'at':0,'talk':{'prompt':'p','turns':[{'role':'assistant',"
    "'tool_calls':[{'id':'c1','name':'wipe','arguments':''}]}]}",
    "'steps':[{'step_id':'c1','tool':'wipe'}],'results':[{}],'at':1,'talk':{'prompt':'p','turns':[{'role':'assistant',"
    "'tool_calls':[{'id':'c1','name':'wipe','arguments':''}]}]}",
};

/* Proves 12/well-formed */
START_TEST(a_torn_conversation_begins_anew)
{
    rv_buf state = RV_BUF_INIT(4096);
    struct drive *d = stage("");

    rv_buf_printf(
        &state,
        "{'current_stage':'a','stage_order':['a'],"
        "'interrupt':{'kind':'confirmation','id':'int_1','message':'m','data':{},"
        "'created_at':'2023-11-14T22:13:20Z','response':{'approved':true,'received_at':'2023-11-14T22:13:20Z'}},"
        "'suspended':{'a':{'kind':'confirmation_gate','interrupt_id':'int_1',%s}}}",
        torn[_i]);
    drive_envelope(d, rv_buf_cstr(&state));
    DRIVE_TALK(d, {"llm:a", .reply = "done"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(n_called(d, "wipe"), 0);
    ck_assert_str_eq(drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, 0), "turns"), "absent");
    drive_free(d);
    rv_buf_fini(&state);
}
END_TEST

TCase *pauses_case(void)
{
    TCase *tc = tcase_create("pauses");

    tcase_add_loop_test(tc, a_destructive_call_waits_for_approval_and_nothing_else_is_done_twice, 0, 2);
    tcase_add_test(tc, a_denied_call_is_not_made);
    tcase_add_loop_test(tc, a_person_says_what_became_of_a_call_that_nobody_knows_about, 0, RV_COUNT(words));
    tcase_add_test(tc, a_cancelled_visit_cancels_every_call);
    tcase_add_test(tc, two_stages_use_tools_side_by_side);
    tcase_add_test(tc, stages_side_by_side_wait_for_people_and_go_on);
    tcase_add_loop_test(tc, a_torn_conversation_begins_anew, 0, RV_COUNT(torn));
    return tc;
}

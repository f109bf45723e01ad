/* Tasks of 2025-11-25: the client asks for one where the tool needs it, asks how it is, and then for its result. And
 * tasks of 2026-07-28 that ask a person. */
#include "tests/unit/mcp/peer.h"

#include <stdio.h>

#define CAN(tasks)   "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}," tasks "}}"
#define TASKS        "\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}"
#define TASK(more)   "{\"task\":{\"taskId\":\"t 1\",\"status\":\"working\",\"ttl\":null" more "}}"
#define TOLD(status) "{\"taskId\":\"t 1\",\"status\":\"" status "\",\"pollInterval\":2000}"
#define FORM         "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}"

static void begin(struct peer *p, const char *answer, bool elicits)
{
    const struct rv_mcp_client_opts opts = {.server = "s", .era = RV_MCP_ERA_LEGACY, .elicits = elicits};

    *p = (struct peer){.now_us = SECOND};
    ck_assert_int_eq(rv_mcp_client_new(&opts, p->now_us, &p->client, NULL), 0);
    peer_drain(p);
    peer_answer(p, answer);
    ck_assert_int_eq(p->n_ready, 1);
}

static int64_t call(struct peer *p, bool needs_task, bool is_repeatable)
{
    json_object *params = NULL;
    int64_t id;

    ck_assert_int_eq(rv_json_parse(RV_STR_LIT("{\"name\":\"a\"}"), NULL, &params, NULL), 0);
    const struct rv_mcp_ask ask = {.method = "tools/call",
                                   .params = params,
                                   .needs_task = needs_task,
                                   .is_repeatable = is_repeatable,
                                   .wants_progress = true,
                                   .timeout_us = 60 * SECOND};
    ck_assert_int_eq(rv_mcp_client_ask(p->client, &ask, p->now_us, &id, NULL), 0);
    json_object_put(params);
    peer_drain(p);
    return id;
}

/* Until it is asked how the task is. */
static void poll(struct peer *p)
{
    peer_wait_until(p, p->now_us);
    peer_wait_until(p, p->now_us + 2 * SECOND);
    ck_assert_str_eq(p->method, "tasks/get");
}

static const struct {
    const char *answer;
    bool needs_task, asks_for_one;
} wishes[] = {
    {CAN(TASKS), true, true},
    {CAN(TASKS), false, false},
    {CAN("\"tasks\":{\"requests\":{}}"), true, false},
    {CAN("\"tasks\":{}"), true, false},
    {CAN("\"logging\":{}"), true, false},
    {"{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}," TASKS "}}", true, false},
};
START_TEST(a_task_is_asked_for_where_the_tool_needs_it_and_the_server_has_them)
{
    struct peer p;

    begin(&p, wishes[_i].answer, false);
    call(&p, wishes[_i].needs_task, false);
    ck_assert_int_eq(strstr(p.sent, "\"task\":{}") != NULL, wishes[_i].asks_for_one);
    peer_answer(&p, "{\"content\":[7]}"); /* the server answers at once all the same */
    ck_assert_str_eq(p.result, "{\"content\":[7]}");
    peer_end(&p);
}
END_TEST

START_TEST(a_task_has_its_result_when_it_is_over)
{
    static const char *const ends[] = {TOLD("completed"), TOLD("failed")};
    struct peer p;

    begin(&p, CAN(TASKS), false);
    int64_t ask = call(&p, true, false), token = p.sent_id;
    peer_answer(&p, TASK(",\"pollInterval\":2000"));
    peer_wait_until(&p, p.now_us);
    int n_sent = p.n_sent;
    peer_wait_until(&p, p.now_us + 2 * SECOND - 1);
    ck_assert_int_eq(p.n_sent, n_sent);
    peer_wait_until(&p, p.now_us + 1);
    ck_assert_str_eq(p.method, "tasks/get");
    ck_assert_ptr_nonnull(strstr(p.sent, "\"params\":{\"taskId\":\"t 1\"}"));
    peer_say(&p,
             "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%d,"
             "\"progress\":3}}",
             (int)token); /* the token of the call is that of its task */
    ck_assert_int_eq(p.n_progress, 1);
    peer_answer(&p, TOLD("working"));
    poll(&p);
    peer_answer(&p, ends[_i]);
    ck_assert_str_eq(p.method, "tasks/result");
    ck_assert_int_eq(p.n_done, 0);
    peer_answer(&p, "{\"content\":[7],\"isError\":true}");
    ck_assert_int_eq(p.n_done, 1);
    ck_assert(p.done_ask == ask);
    ck_assert_str_eq(p.result, "{\"content\":[7],\"isError\":true}");
    peer_end(&p);
}
END_TEST

static const struct {
    const char *told, *code, *text;
    bool is_cancelled;
} ends[] = {
    {TOLD("cancelled"), "rejected", "cancelled the task", false},
    {TOLD("input_required"), "input_required", "asks for input", true},
    {TOLD("odd"), "invalid_answer", "unknown status", false},
    {"{\"status\":7}", "invalid_answer", "no status", false},
};
START_TEST(a_task_that_has_no_result_fails_its_call)
{
    struct peer p;

    begin(&p, CAN(TASKS), false);
    call(&p, true, false);
    peer_answer(&p, TASK(""));
    poll(&p);
    peer_answer(&p, ends[_i].told);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert_str_eq(p.code, ends[_i].code);
    ck_assert_ptr_nonnull(strstr(p.text, ends[_i].text));
    ck_assert(!p.is_unsent);
    ck_assert_int_eq(strcmp(p.method, "tasks/cancel") == 0, ends[_i].is_cancelled);
    peer_end(&p);
}
END_TEST

START_TEST(a_task_is_cancelled_where_the_server_can_do_it)
{
    struct peer p;

    for (int i = 0; i < 2; i++) {
        begin(&p, i ? CAN(TASKS) : CAN("\"tasks\":{\"requests\":{\"tools\":{\"call\":{}}}}"), false);
        int64_t ask = call(&p, true, false);
        peer_answer(&p, TASK(""));
        peer_wait_until(&p, p.now_us);
        int n_sent = p.n_sent;
        ck_assert_int_eq(rv_mcp_client_give_up(p.client, ask, NULL), 0);
        peer_drain(&p);
        ck_assert_int_eq(p.n_sent, n_sent + i);
        ck_assert(i == 0 || strstr(p.sent, "\"method\":\"tasks/cancel\",\"params\":{\"taskId\":\"t 1\"}}"));
        peer_end(&p);
    }
}
END_TEST

START_TEST(a_task_asks_a_person_while_its_result_is_waited_for)
{
    static const char question[] =
        "{\"jsonrpc\":\"2.0\",\"id\":\"e1\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"who?\","
        "\"requestedSchema\":" FORM ",\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"t 1\"}}}}";
    struct peer p;

    for (int repeatable = 0; repeatable < 2; repeatable++) {
        begin(&p, CAN(TASKS), true);
        int64_t ask = call(&p, true, repeatable);
        peer_answer(&p, TASK(""));
        call(&p, false, false); /* another call: the task says whose the question is */
        poll(&p);
        peer_answer(&p, TOLD("input_required"));
        ck_assert_str_eq(p.method, "tasks/result");
        peer_say(&p, "%s", question);
        ck_assert(p.n_done == repeatable && (!repeatable || (p.asks && p.done_ask == ask)));
        if (!repeatable) {
            ck_assert_ptr_nonnull(strstr(p.sent, "\"action\":\"cancel\""));
            ck_assert_ptr_nonnull(strstr(p.sent, "related-task\":{\"taskId\":\"t 1\"}"));
        }
        peer_end(&p);
    }
}
END_TEST

/* --- 2026-07-28: a task that asks --- */

#define NEW_TASK "{\"resultType\":\"task\",\"taskId\":\"t 1\",\"status\":\"working\"}"
#define ASKS(requests)                                                                                                 \
    "{\"resultType\":\"complete\",\"taskId\":\"t 1\",\"status\":\"input_required\",\"pollIntervalMs\":2000,"           \
    "\"inputRequests\":{" requests "}}"
#define A_FORM                                                                                                         \
    "\"a\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"who?\",\"requestedSchema\":" FORM "}}"
#define ROOTS "\"r\":{\"method\":\"roots/list\"}"
#define ANSWERED                                                                                                       \
    "{\"round\":1,\"state\":{\"roots\":[\"r\"],\"task\":\"t "                                                          \
    "1\"},\"answers\":[{\"round\":1,\"key\":\"a\",\"message\":\"who?\","                                               \
    "\"schema\":" FORM ",\"action\":\"accept\",\"content\":{\"name\":\"x\"}}]}"

static void begin_modern(struct peer *p, bool elicits, const char *input)
{
    json_object *roots = NULL, *given = NULL, *params = NULL;
    int64_t id;

    ck_assert_int_eq(rv_json_parse(RV_STR_LIT("[{\"uri\":\"file:///a\",\"name\":\"a\"}]"), NULL, &roots, NULL), 0);
    ck_assert_int_eq(rv_json_parse(RV_STR_LIT("{\"name\":\"a\"}"), NULL, &params, NULL), 0);
    if (input)
        ck_assert_int_eq(rv_json_parse(rv_str_of(input), NULL, &given, NULL), 0);
    const struct rv_mcp_client_opts opts = {
        .server = "s", .era = RV_MCP_ERA_MODERN, .elicits = elicits, .roots = roots};
    const struct rv_mcp_ask ask = {.method = "tools/call", .params = params, .input = given, .timeout_us = 60 * SECOND};
    *p = (struct peer){.now_us = SECOND};
    ck_assert_int_eq(rv_mcp_client_new(&opts, p->now_us, &p->client, NULL), 0);
    peer_drain(p);
    ck_assert_int_eq(rv_mcp_client_ask(p->client, &ask, p->now_us, &id, NULL), 0); /* its era is found out later */
    peer_answer(p, DISCOVERED);
    json_object_put(roots);
    json_object_put(params);
    json_object_put(given);
}

START_TEST(a_question_of_a_task_ends_the_call_and_its_answer_goes_to_the_task)
{
    struct peer p;

    begin_modern(&p, true, NULL);
    peer_answer(&p, NEW_TASK);
    poll(&p);
    peer_answer(&p, ASKS(A_FORM "," ROOTS));
    ck_assert(p.asks && p.n_done == 1);
    ck_assert_str_eq(p.method, "tasks/get"); /* and not tasks/cancel */
    ck_assert_ptr_nonnull(strstr(p.result, "\"state\":{\"roots\":[\"r\"],\"task\":\"t 1\"}"));
    peer_end(&p);

    begin_modern(&p, true, ANSWERED);
    ck_assert_str_eq(p.method, "tasks/update");
    ck_assert_ptr_nonnull(strstr(p.sent, "\"taskId\":\"t 1\""));
    ck_assert_ptr_nonnull(strstr(p.sent, "\"a\":{\"action\":\"accept\",\"content\":{\"name\":\"x\"}}"));
    ck_assert_ptr_nonnull(strstr(p.sent, "\"r\":{\"roots\":[{"));
    ck_assert_ptr_null(strstr(p.sent, "\"name\":\"a\",\"_meta\"")); /* nothing of the call */
    peer_answer(&p, "{\"resultType\":\"complete\"}");
    poll(&p);
    ck_assert_ptr_null(strstr(p.sent, "inputResponses"));
    peer_answer(&p, ASKS(A_FORM)); /* the server has not looked at the answer yet */
    ck_assert_int_eq(p.n_done, 0);
    poll(&p);
    peer_answer(
        &p, "{\"resultType\":\"complete\",\"taskId\":\"t 1\",\"status\":\"completed\",\"result\":{\"content\":[7]}}");
    ck_assert_str_eq(p.result, "{\"content\":[7]}");
    peer_end(&p);
}
END_TEST

START_TEST(a_task_gets_the_roots_at_once_and_not_without_end)
{
    struct peer p;

    begin_modern(&p, false, NULL);
    peer_answer(&p, NEW_TASK);
    for (int i = 0; i <= RV_MCP_MAX_ROUNDS; i++) {
        ck_assert_int_eq(p.n_done, 0);
        poll(&p);
        ck_assert_ptr_null(strstr(p.sent, "inputResponses"));
        peer_answer(&p, ASKS(ROOTS));
        if (i == RV_MCP_MAX_ROUNDS)
            break;
        ck_assert_str_eq(p.method, "tasks/update");
        ck_assert_ptr_nonnull(strstr(p.sent, "\"inputResponses\":{\"r\":{\"roots\":[{"));
        peer_answer(&p, "{\"resultType\":\"complete\"}");
    }
    ck_assert_str_eq(p.code, "invalid_answer");
    peer_end(&p);
}
END_TEST

static const struct {
    bool elicits;
    const char *told;
} too_much[] = {
    {false, ASKS(A_FORM)},
    {true, ASKS(A_FORM ",\"m\":{\"method\":\"sampling/createMessage\",\"params\":{}}")},
    {true, ASKS("\"a\":7")},
    {true, ASKS("")},
    {true, "{\"resultType\":\"complete\",\"taskId\":\"t 1\",\"status\":\"input_required\",\"pollIntervalMs\":2000}"},
};
START_TEST(a_task_that_asks_for_too_much_is_cancelled)
{
    struct peer p;

    begin_modern(&p, too_much[_i].elicits, NULL);
    peer_answer(&p, NEW_TASK);
    poll(&p);
    peer_answer(&p, too_much[_i].told);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert_str_eq(p.code, "input_required");
    ck_assert_str_eq(p.method, "tasks/cancel");
    peer_end(&p);
}
END_TEST

TCase *client_task_case(void)
{
    TCase *tc = tcase_create("client_task");

    tcase_add_loop_test(tc, a_task_is_asked_for_where_the_tool_needs_it_and_the_server_has_them, 0,
                        (int)RV_COUNT(wishes));
    tcase_add_loop_test(tc, a_task_has_its_result_when_it_is_over, 0, 2);
    tcase_add_loop_test(tc, a_task_that_has_no_result_fails_its_call, 0, (int)RV_COUNT(ends));
    tcase_add_test(tc, a_task_is_cancelled_where_the_server_can_do_it);
    tcase_add_test(tc, a_task_asks_a_person_while_its_result_is_waited_for);
    tcase_add_test(tc, a_question_of_a_task_ends_the_call_and_its_answer_goes_to_the_task);
    tcase_add_test(tc, a_task_gets_the_roots_at_once_and_not_without_end);
    tcase_add_loop_test(tc, a_task_that_asks_for_too_much_is_cancelled, 0, (int)RV_COUNT(too_much));
    return tc;
}

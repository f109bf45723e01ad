/* What a server sends by itself, time limits, and the end of a connection. */
#include "tests/unit/mcp/peer.h"

#include <stdio.h>

/* --- what the server sends by itself --- */

START_TEST(a_ping_is_answered_and_any_other_request_is_refused)
{
    struct peer p;

    peer_be_legacy(&p);
    peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":\"p1\",\"method\":\"ping\"}");
    ck_assert_str_eq(p.sent, "{\"jsonrpc\":\"2.0\",\"id\":\"p1\",\"result\":{}}");
    peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"sampling/createMessage\",\"params\":{}}");
    ck_assert_ptr_nonnull(strstr(p.sent, "\"id\":9,\"error\":{\"code\":-32601"));
    int n = p.n_sent;
    peer_say(&p, "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}"); /* a notification is never answered */
    ck_assert_int_eq(p.n_sent, n);
    peer_end(&p);
    peer_be_modern(&p);
    n = p.n_sent;
    peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}"); /* its revision forbids requests */
    ck_assert_int_eq(p.n_sent, n);
    peer_end(&p);
}
END_TEST

/* Proves mcp.M10: Each tools/call has a progress token of its own, and progress only grows. */
START_TEST(progress_only_grows_and_belongs_to_an_open_request)
{
    static const char fmt[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":"
        "%lld,\"progress\":%s}}";
    static const char *const values[] = {"1", "0.5", "1", "\"9\"", "1.5", "null", "2"};
    struct peer p;

    peer_be_legacy(&p);
    peer_call(&p);
    ck_assert_ptr_nonnull(strstr(p.sent, "\"_meta\":{\"progressToken\":"));
    for (size_t i = 0; i < RV_COUNT(values); i++)
        peer_say(&p, fmt, (long long)p.sent_id, values[i]);
    ck_assert_int_eq(p.n_progress, 3);
    ck_assert(p.progress > 1.9);
    peer_say(&p, fmt, (long long)p.sent_id + 1, "5");
    ck_assert_int_eq(p.n_progress, 3);
    peer_answer(&p, "{\"content\":[]}");
    peer_say(&p, fmt, (long long)p.sent_id, "3");
    ck_assert_int_eq(p.n_progress, 3);
    peer_end(&p);
}
END_TEST

/* Proves plan.X8 */
START_TEST(progress_does_not_move_the_limit_of_a_request)
{
    struct peer p;

    peer_be_legacy(&p);
    peer_ask_for(&p, "tools/call", "{\"name\":\"a\"}", NULL, 5 * SECOND);
    for (int i = 1; i < 5; i++) {
        peer_wait_until(&p, p.now_us + SECOND);
        peer_say(&p,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%lld,"
                 "\"progress\":%d,\"total\":9,\"message\":\"m\"}}",
                 (long long)p.sent_id, i);
    }
    ck_assert_int_eq(p.n_done, 0);
    peer_wait_until(&p, p.now_us + SECOND);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert(p.is_timeout);
    peer_end(&p);
}
END_TEST

START_TEST(changes_are_told_once_until_they_are_looked_at)
{
    const char text[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}";
    struct peer p;

    peer_be_legacy(&p);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(rv_mcp_client_on_message(p.client, rv_str_of(text), NULL), 0);
    peer_drain(&p);
    ck_assert_int_eq(p.n_changed, 1);
    peer_say(&p, "%s", text);
    ck_assert_int_eq(p.n_changed, 2);
    peer_end(&p);
}
END_TEST

START_TEST(notes_about_a_bad_server_are_bounded)
{
    struct peer p;

    peer_be_legacy(&p);
    for (int i = 0; i < 1000; i++)
        peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}", 5000 + i);
    ck_assert_int_eq(p.n_notes, 50);
    peer_end(&p);
}
END_TEST

/* --- time and the end --- */

START_TEST(a_request_that_is_not_answered_in_time_is_cancelled)
{
    struct peer p;

    peer_be_legacy(&p);
    peer_call(&p);
    int64_t id = p.sent_id;
    ck_assert(rv_mcp_client_due_us(p.client) == p.now_us + 10 * SECOND);
    peer_wait_until(&p, p.now_us + 10 * SECOND - 1);
    ck_assert_int_eq(p.n_done, 0);
    peer_wait_until(&p, p.now_us + 1);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert(p.is_timeout && !p.is_unsent);
    ck_assert_str_eq(p.method, "notifications/cancelled");
    ck_assert_int_eq(p.n_forgotten, 1);
    char want[64];
    snprintf(want, sizeof want, "\"requestId\":%lld", (long long)id);
    ck_assert_ptr_nonnull(strstr(p.sent, want));
    peer_end(&p);
}
END_TEST

/* What is not JSON is the answer of the only request; of several it is the reason that each of them gives. */
START_TEST(an_answer_that_cannot_be_read_is_told)
{
    static const char unreadable[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":Infinity}}";
    struct peer p;

    peer_begin(&p, RV_MCP_ERA_LEGACY, false);
    peer_say(&p, "%s", unreadable);
    ck_assert_int_eq(p.n_dead, 1); /* it was that of `initialize` */
    ck_assert_str_eq(p.code, "bad_message");
    peer_end(&p);
    peer_be_legacy(&p);
    peer_call(&p);
    peer_say(&p, "%s", unreadable);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert_str_eq(p.code, "bad_message");
    ck_assert_msg(strstr(p.text, "found 'I'") != NULL, "%s", p.text);
    peer_call(&p);
    peer_call(&p);
    peer_say(&p, "%s", unreadable);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert_int_eq(p.n_notes, 1);
    peer_call(&p); /* this one came later */
    peer_wait_until(&p, p.now_us + 10 * SECOND - 1);
    ck_assert_int_eq(p.n_done, 1);
    peer_wait_until(&p, p.now_us + 1);
    ck_assert_int_eq(p.n_done, 4);
    ck_assert_str_eq(p.code, "timed_out");
    ck_assert_str_eq(p.text, "the server did not answer in time");
    peer_end(&p);
    peer_be_legacy(&p);
    peer_call(&p);
    peer_say(&p, "{broken");
    peer_wait_until(&p, p.now_us + 10 * SECOND);
    ck_assert_msg(strstr(p.text, "in time; meanwhile it sent what is not a message: ") != NULL, "%s", p.text);
    peer_end(&p);
    peer_begin(&p, RV_MCP_ERA_LEGACY, false);
    peer_say(&p, "{broken");
    peer_wait_until(&p, p.now_us + 30 * SECOND);
    ck_assert_msg(strstr(p.text, "in time; meanwhile it sent what is not a message: ") != NULL, "%s", p.text);
    peer_end(&p);
}
END_TEST

START_TEST(a_request_that_is_given_up_is_not_told)
{
    struct peer p;

    peer_be_legacy(&p);
    int64_t ask = peer_call(&p);
    ck_assert_int_eq(rv_mcp_client_give_up(p.client, ask, NULL), 0);
    ck_assert_int_eq(rv_mcp_client_give_up(p.client, ask, NULL), 0);
    peer_drain(&p);
    ck_assert_str_eq(p.method, "notifications/cancelled");
    peer_answer(&p, "{\"content\":[]}");
    ck_assert_int_eq(p.n_done, 0);
    peer_end(&p);
}
END_TEST

START_TEST(over_http_closing_the_stream_cancels_a_modern_request)
{
    struct peer p;

    peer_begin(&p, RV_MCP_ERA_UNKNOWN, true);
    peer_answer(&p, DISCOVERED);
    int64_t ask = peer_call(&p);
    int n = p.n_sent;
    ck_assert_int_eq(rv_mcp_client_give_up(p.client, ask, NULL), 0);
    peer_drain(&p);
    ck_assert_int_eq(p.n_sent, n);
    ck_assert_int_eq(p.n_forgotten, 1);
    peer_end(&p);
}
END_TEST

/* Proves mcp.M3: The end of a server fails all pending calls at once with server_exited; standard input and output
 * tolerate noise, and long lines are refused. */
START_TEST(a_dead_link_ends_all_requests)
{
    const struct rv_mcp_failure f = {.fault = RV_MCP_FAULT_SERVER_EXITED, .text = "status 3", .retryable = true};
    struct peer p;

    peer_be_legacy(&p);
    peer_call(&p);
    peer_call(&p);
    ck_assert_int_eq(rv_mcp_client_on_failure(p.client, 0, &f, p.now_us, NULL), 0);
    peer_drain(&p);
    ck_assert_int_eq(p.n_done, 2);
    ck_assert_int_eq(p.n_dead, 1);
    ck_assert_str_eq(p.code, "server_exited");
    ck_assert(rv_mcp_client_is_dead(p.client));
    ck_assert_int_eq(rv_mcp_client_on_message(p.client, RV_STR_LIT("{}"), NULL), 0);
    ck_assert_ptr_null(rv_mcp_client_next(p.client));
    peer_end(&p);
}
END_TEST

START_TEST(too_many_open_requests_are_refused)
{
    struct peer p;
    int64_t ask;

    peer_be_legacy(&p);
    for (int i = 0; i < RV_MCP_MAX_ASKS; i++)
        peer_call(&p);
    ck_assert_int_eq(rv_mcp_client_ask(p.client, &(struct rv_mcp_ask){.method = "ping"}, 0, &ask, NULL), RV_E_LIMIT);
    peer_end(&p);
}
END_TEST

/* --- tasks --- */

#define TASK(more)         "{\"resultType\":\"task\",\"taskId\":\"t 1\",\"status\":\"working\"" more "}"
#define TOLD(status, more) "{\"resultType\":\"complete\",\"taskId\":\"t 1\",\"status\":\"" status "\"" more "}"

START_TEST(a_task_is_asked_for_until_it_is_over)
{
    struct peer p;

    peer_be_modern(&p);
    ck_assert_ptr_null(strstr(p.sent, "tasks/get"));
    int64_t ask = peer_ask_for(&p, "tools/call", "{\"name\":\"a\"}", NULL, 60 * SECOND);
    ck_assert_ptr_nonnull(strstr(p.sent, "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}"));
    int64_t call_id = p.sent_id;
    peer_answer(&p, TASK(",\"pollIntervalMs\":2000"));
    ck_assert_int_eq(p.n_done, 0);
    peer_wait_until(&p, p.now_us); /* the interval begins */
    int n_sent = p.n_sent;
    peer_wait_until(&p, p.now_us + 2 * SECOND - 1);
    ck_assert_int_eq(p.n_sent, n_sent);
    peer_wait_until(&p, p.now_us + 1);
    ck_assert_str_eq(p.method, "tasks/get");
    ck_assert_ptr_nonnull(strstr(p.sent, "\"taskId\":\"t 1\""));
    ck_assert_ptr_null(strstr(p.sent, "\"name\":\"a\""));
    ck_assert_int_ne(p.sent_id, call_id);
    peer_wait_until(&p, p.now_us + 20 * SECOND); /* one question at a time */
    ck_assert_int_eq(p.n_sent, n_sent + 1);
    peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"content\":[],\"resultType\":\"complete\"}}",
             (int)call_id);
    ck_assert_int_eq(p.n_done, 0); /* the call itself was answered before */
    peer_answer(&p, TOLD("working", ",\"pollIntervalMs\":1"));
    peer_wait_until(&p, p.now_us);
    peer_wait_until(&p, p.now_us + SECOND / 10 - 1); /* not sooner, whatever the server says */
    ck_assert_int_eq(p.n_sent, n_sent + 1);
    peer_wait_until(&p, p.now_us + 1);
    ck_assert_int_eq(p.n_sent, n_sent + 2);
    peer_answer(&p, TOLD("completed", ",\"result\":{\"content\":[7]}"));
    ck_assert_int_eq(p.n_done, 1);
    ck_assert(p.done_ask == ask);
    ck_assert_str_eq(p.result, "{\"content\":[7]}");
    peer_end(&p);
}
END_TEST

static const struct {
    const char *begun, *told, *code, *text;
    bool is_cancelled; /* the server is told */
} task_ends[] = {
    {TASK(""), TOLD("failed", ",\"error\":{\"code\":-5,\"message\":\"no luck\"}"), "rejected", "error -5: no luck",
     false},
    {TASK(""), TOLD("failed", ""), "invalid_answer", "has no error", false},
    {TASK(""), TOLD("failed", ",\"error\":{\"code\":99999999999,\"message\":\"\"}"), "invalid_answer", "has no error",
     false},
    {TASK(""), TOLD("cancelled", ""), "rejected", "cancelled the task", false},
    {TASK(""), TOLD("completed", ""), "invalid_answer", "has no result", false},
    {TASK(""), TOLD("completed", ",\"result\":[]"), "invalid_answer", "has no result", false},
    {TASK(""), TOLD("input_required", ""), "input_required", "asks for input", true},
    {TASK(""), TOLD("odd", ""), "invalid_answer", "unknown status", false},
    {TASK(""), "{\"resultType\":\"complete\"}", "invalid_answer", "no status", false},
    {TASK(""), TASK(""), "invalid_answer", "does not fit the request", false},
    {"{\"resultType\":\"task\"}", NULL, "invalid_answer", "taskId", false},
    {"{\"resultType\":\"task\",\"taskId\":\"\"}", NULL, "invalid_answer", "taskId", false},
    {"{\"resultType\":\"task\",\"taskId\":7}", NULL, "invalid_answer", "taskId", false},
    {"{\"resultType\":\"task\",\"taskId\":\"a\\u0000b\"}", NULL, "invalid_answer", "taskId", false},
};

START_TEST(a_task_that_does_not_complete_fails_its_call)
{
    struct peer p;

    peer_be_modern(&p);
    peer_call(&p);
    peer_answer(&p, task_ends[_i].begun);
    if (task_ends[_i].told) {
        peer_wait_until(&p, p.now_us);
        peer_wait_until(&p, p.now_us + SECOND);
        ck_assert_str_eq(p.method, "tasks/get");
        peer_answer(&p, task_ends[_i].told);
    }
    ck_assert_int_eq(p.n_done, 1);
    ck_assert_str_eq(p.code, task_ends[_i].code);
    ck_assert_ptr_nonnull(strstr(p.text, task_ends[_i].text));
    ck_assert(!p.is_unsent);
    ck_assert_int_eq(strcmp(p.method, "tasks/cancel") == 0, task_ends[_i].is_cancelled);
    peer_end(&p);
}
END_TEST

START_TEST(a_task_ends_with_the_time_of_its_call_and_with_the_caller)
{
    struct peer p;

    for (int i = 1; i < 3; i++) { /* at the limit; given up */
        peer_be_modern(&p);
        int64_t ask = peer_ask_for(&p, "tools/call", "{\"name\":\"a\"}", NULL, 5 * SECOND);
        peer_answer(&p, TASK(",\"pollIntervalMs\":10000"));
        peer_wait_until(&p, p.now_us);
        if (i == 2)
            ck_assert_int_eq(rv_mcp_client_give_up(p.client, ask, NULL), 0);
        else
            peer_wait_until(&p, p.now_us + 5 * SECOND);
        peer_drain(&p);
        ck_assert_str_eq(p.method, "tasks/cancel");
        ck_assert_ptr_nonnull(strstr(p.sent, "\"taskId\":\"t 1\""));
        ck_assert_int_eq(p.n_done, i < 2);
        ck_assert(i == 2 || (p.is_timeout && !p.is_unsent));
        peer_answer(&p, "{\"resultType\":\"complete\"}"); /* of tasks/cancel: nothing follows */
        ck_assert_int_eq(p.n_notes, 0);
        ck_assert(rv_mcp_client_due_us(p.client) == INT64_MAX);
        peer_end(&p);
    }
}
END_TEST

TCase *client_end_case(void)
{
    TCase *tc = tcase_create("client_end");

    tcase_add_test(tc, a_ping_is_answered_and_any_other_request_is_refused);
    tcase_add_test(tc, progress_only_grows_and_belongs_to_an_open_request);
    tcase_add_test(tc, progress_does_not_move_the_limit_of_a_request);
    tcase_add_test(tc, changes_are_told_once_until_they_are_looked_at);
    tcase_add_test(tc, notes_about_a_bad_server_are_bounded);
    tcase_add_test(tc, a_request_that_is_not_answered_in_time_is_cancelled);
    tcase_add_test(tc, an_answer_that_cannot_be_read_is_told);
    tcase_add_test(tc, a_request_that_is_given_up_is_not_told);
    tcase_add_test(tc, over_http_closing_the_stream_cancels_a_modern_request);
    tcase_add_test(tc, a_dead_link_ends_all_requests);
    tcase_add_test(tc, too_many_open_requests_are_refused);
    tcase_add_test(tc, a_task_is_asked_for_until_it_is_over);
    tcase_add_loop_test(tc, a_task_that_does_not_complete_fails_its_call, 0, (int)RV_COUNT(task_ends));
    tcase_add_test(tc, a_task_ends_with_the_time_of_its_call_and_with_the_caller);
    return tc;
}

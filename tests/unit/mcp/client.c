/* The client's side of a connection against a peer that the test plays: both eras, lists, answers. */
#include "tests/unit/mcp/peer.h"

#include <stdio.h>

/* --- eras --- */

/* Proves mcp.M1: The client speaks 2026-07-28, and 2025-11-25 to 2024-11-05 with servers that want a handshake. */
START_TEST(a_server_that_answers_discover_is_modern)
{
    struct peer p;

    peer_begin(&p, RV_MCP_ERA_UNKNOWN, false);
    ck_assert_str_eq(p.method, "server/discover");
    ck_assert(p.is_modern);
    ck_assert_ptr_nonnull(strstr(p.sent, "io.modelcontextprotocol/protocolVersion\":\"2026-07-28"));
    ck_assert_ptr_nonnull(strstr(p.sent, "io.modelcontextprotocol/clientCapabilities\":{\"extensions\":"));
    peer_answer(&p, DISCOVERED);
    ck_assert_int_eq(p.n_ready, 1);
    ck_assert_int_eq(rv_mcp_client_version(p.client), RV_MCP_2026_07_28);
    peer_call(&p);
    ck_assert_ptr_nonnull(strstr(p.sent, "io.modelcontextprotocol/clientInfo"));
    ck_assert_ptr_nonnull(strstr(p.sent, "\"progressToken\":2"));
    peer_answer(&p, "{\"resultType\":\"complete\",\"content\":[]}");
    ck_assert_int_eq(p.n_done, 1);
    peer_end(&p);
}
END_TEST

START_TEST(an_error_and_silence_mean_an_older_server)
{
    struct peer p;

    peer_begin(&p, RV_MCP_ERA_UNKNOWN, false);
    if (_i == 0)
        peer_say_of(&p, NO_METHOD);
    else
        peer_wait_until(&p, 3 * SECOND);
    ck_assert_str_eq(p.method, "initialize");
    ck_assert_str_eq(p.version, "2025-11-25");
    ck_assert(!p.is_modern);
    peer_answer(&p, INITIALIZED);
    ck_assert_str_eq(p.method, "notifications/initialized");
    ck_assert_str_eq(p.version, "2025-06-18");
    ck_assert_int_eq(p.n_ready, 1);
    peer_call(&p);
    ck_assert_ptr_null(strstr(p.sent, "io.modelcontextprotocol"));
    peer_end(&p);
}
END_TEST

/* A server that took its time to start: what it says to `initialize` no longer matters. */
START_TEST(a_late_answer_of_the_new_era_still_counts)
{
    struct peer p;

    peer_begin(&p, RV_MCP_ERA_UNKNOWN, false);
    peer_call(&p);
    peer_wait_until(&p, 3 * SECOND);
    ck_assert_str_eq(p.method, "initialize");
    peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" DISCOVERED "}");
    ck_assert_int_eq(p.n_ready, 1);
    ck_assert_int_eq(rv_mcp_client_era(p.client), RV_MCP_ERA_MODERN);
    ck_assert_str_eq(p.method, "tools/call");
    peer_say(&p, _i ? "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32602,\"message\":\"no version\"}}"
                    : "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":" INITIALIZED "}");
    ck_assert_int_eq(p.n_dead, 0);
    ck_assert_int_eq(p.n_ready, 1);
    ck_assert_int_eq(rv_mcp_client_era(p.client), RV_MCP_ERA_MODERN);
    peer_wait_until(&p, 200 * SECOND);
    ck_assert_int_eq(p.n_dead, 0);
    peer_end(&p);
}
END_TEST

START_TEST(a_late_answer_of_the_old_era_changes_nothing)
{
    struct peer p;

    peer_begin(&p, RV_MCP_ERA_UNKNOWN, false);
    peer_wait_until(&p, 3 * SECOND);
    peer_say(&p, _i ? "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}"
                    : "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2031\"]}}");
    ck_assert_int_eq(p.n_ready, 0);
    peer_answer(&p, INITIALIZED);
    ck_assert_int_eq(rv_mcp_client_era(p.client), RV_MCP_ERA_LEGACY);
    peer_end(&p);
    peer_begin(&p, RV_MCP_ERA_UNKNOWN, false);
    peer_wait_until(&p, 3 * SECOND);
    peer_answer(&p, INITIALIZED); /* it is of the old era then, whatever it says later */
    peer_say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" DISCOVERED "}");
    ck_assert_int_eq(rv_mcp_client_era(p.client), RV_MCP_ERA_LEGACY);
    peer_end(&p);
}
END_TEST

static const char *const refusals[] = {
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2031-01-01\"]}}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"no\",\"data\":{\"supported\":[\"2031\"]}}}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"no\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32021,\"message\":\"no\"}}",
};
START_TEST(a_modern_server_is_never_asked_to_initialize)
{
    struct peer p;

    peer_begin(&p, RV_MCP_ERA_UNKNOWN, false);
    peer_call(&p);
    peer_say(&p, "%s", refusals[_i]);
    ck_assert_int_eq(p.n_dead, 1);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert(p.is_unsent);
    ck_assert_int_eq(p.n_sent, 1);
    ck_assert_int_eq(rv_mcp_client_due_us(p.client), INT64_MAX);
    peer_end(&p);
}
END_TEST

#define LISTED "\"error\":{\"code\":-32022,\"message\":\"no\",\"data\":{\"supported\":[\"2026-07-28\"]}}}"
START_TEST(a_server_that_refuses_the_revision_that_it_lists_is_asked_once_more)
{
    struct peer p;

    peer_begin(&p, RV_MCP_ERA_UNKNOWN, false);
    peer_say(&p, "%s", "{\"jsonrpc\":\"2.0\",\"id\":1," LISTED);
    ck_assert_int_eq(p.n_sent, 2);
    ck_assert_str_eq(p.method, "server/discover");
    ck_assert_int_eq(p.n_dead, 0);
    if (_i == 0) {
        peer_answer(&p, "{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{}}");
        ck_assert(rv_mcp_client_is_ready(p.client));
    } else {
        peer_say(&p, "%s", "{\"jsonrpc\":\"2.0\",\"id\":2," LISTED);
        ck_assert_int_eq(p.n_sent, 2);
        ck_assert_int_eq(p.n_dead, 1);
        ck_assert_str_eq(p.code, "unsupported_version");
    }
    peer_end(&p);
}
END_TEST

START_TEST(a_legacy_server_of_an_unknown_revision_is_refused)
{
    struct peer p;

    peer_begin(&p, RV_MCP_ERA_LEGACY, false);
    peer_answer(&p, "{\"protocolVersion\":\"1999-01-01\",\"capabilities\":{}}");
    ck_assert_int_eq(p.n_dead, 1);
    ck_assert_str_eq(p.code, "unsupported_version");
    ck_assert_ptr_nonnull(strstr(p.text, "1999-01-01"));
    peer_end(&p);
}
END_TEST

static const struct {
    int status;
    const char *body, *method;
    int n_dead;
} statuses[] = {
    {400, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32022,\"message\":\"\",\"data\":{\"supported\":[]}}}",
     "server/discover", 1},
    {400, "nothing", "initialize", 0},
    {404, "", "initialize", 0},
    {405, "", "initialize", 0},
    {500, "", "server/discover", 1},
};
START_TEST(the_status_of_http_decides_the_era)
{
    struct peer p;

    peer_begin(&p, RV_MCP_ERA_UNKNOWN, true);
    const struct rv_mcp_failure f = {.fault = RV_MCP_FAULT_HTTP_STATUS,
                                     .status = statuses[_i].status,
                                     .text = "status",
                                     .body = rv_str_of(statuses[_i].body)};
    ck_assert_int_eq(rv_mcp_client_on_failure(p.client, p.sent_id, &f, p.now_us, NULL), 0);
    peer_drain(&p);
    ck_assert_str_eq(p.method, statuses[_i].method);
    ck_assert_int_eq(p.n_dead, statuses[_i].n_dead);
    peer_end(&p);
}
END_TEST

START_TEST(asks_wait_for_the_handshake_and_fail_with_it)
{
    struct peer p;

    peer_begin(&p, RV_MCP_ERA_LEGACY, false);
    peer_call(&p);
    ck_assert_str_eq(p.method, "initialize");
    peer_answer(&p, INITIALIZED);
    ck_assert_str_eq(p.method, "tools/call");
    peer_end(&p);
    peer_begin(&p, RV_MCP_ERA_LEGACY, false);
    peer_ask_for(&p, "tools/list", NULL, "tools", 0);
    peer_wait_until(&p, 40 * SECOND);
    ck_assert_int_eq(p.n_dead, 1);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert_str_eq(p.code, "timed_out");
    ck_assert_int_eq(rv_mcp_client_ask(p.client, &(struct rv_mcp_ask){.method = "ping"}, 0, &(int64_t){0}, NULL),
                     RV_E_STATE);
    peer_end(&p);
}
END_TEST

START_TEST(a_session_that_expired_is_begun_again_and_the_request_sent_once_more)
{
    const struct rv_mcp_failure f = {
        .fault = RV_MCP_FAULT_SESSION_EXPIRED, .status = 404, .text = "gone", .is_unsent = true};
    struct peer p;

    peer_be_legacy(&p);
    peer_call(&p);
    ck_assert_int_eq(rv_mcp_client_on_failure(p.client, p.sent_id, &f, p.now_us, NULL), 0);
    peer_drain(&p);
    ck_assert_str_eq(p.method, "initialize");
    peer_answer(&p, INITIALIZED);
    ck_assert_str_eq(p.method, "tools/call");
    ck_assert_int_eq(rv_mcp_client_on_failure(p.client, p.sent_id, &f, p.now_us, NULL), 0);
    peer_drain(&p);
    ck_assert_int_eq(p.n_done, 1); /* not without end */
    ck_assert_str_eq(p.code, "session_expired");
    peer_end(&p);
}
END_TEST

START_TEST(a_request_that_was_sent_before_its_session_expired_is_not_sent_once_more)
{
    const struct rv_mcp_failure f = {.fault = RV_MCP_FAULT_SESSION_EXPIRED, .status = 404, .text = "gone"};
    struct peer p;

    peer_be_legacy(&p);
    peer_call(&p);
    ck_assert_int_eq(rv_mcp_client_on_failure(p.client, p.sent_id, &f, p.now_us, NULL), 0);
    peer_drain(&p);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert_str_eq(p.code, "session_expired");
    peer_end(&p);
}
END_TEST

/* --- lists --- */

START_TEST(a_list_has_all_of_its_pages)
{
    struct peer p;

    peer_be_legacy(&p);
    int64_t ask = peer_ask_for(&p, "tools/list", NULL, "tools", 0);
    peer_answer(&p, "{\"tools\":[1],\"nextCursor\":\"\"}"); /* an empty cursor is a cursor */
    ck_assert_ptr_nonnull(strstr(p.sent, "\"cursor\":\"\""));
    peer_answer(&p, "{\"tools\":[2,3],\"nextCursor\":\"b\"}");
    peer_answer(&p, "{\"tools\":[],\"nextCursor\":null}");
    ck_assert_int_eq(p.n_done, 1);
    ck_assert(p.done_ask == ask);
    ck_assert_str_eq(p.result, "[1,2,3]");
    peer_end(&p);
}
END_TEST

static const struct {
    const char *first, *second;
    int64_t ttl_ms;
} ttls[] = {
    {"", "", 0},
    {",\"ttlMs\":500", ",\"ttlMs\":900", 500},
    {",\"ttlMs\":900", ",\"ttlMs\":500", 500},
    {",\"ttlMs\":900", "", 0},
    {"", ",\"ttlMs\":900", 0},
    {",\"ttlMs\":-1", ",\"ttlMs\":900", 0},
    {",\"ttlMs\":\"900\"", ",\"ttlMs\":900", 0},
    {",\"ttlMs\":900", ",\"ttlMs\":null", 0},
    {",\"ttlMs\":900", ",\"ttlMs\":1.5", 0},
    {",\"ttlMs\":9007199254740993", ",\"ttlMs\":9007199254740993", 9007199254740993},
    {",\"ttlMs\":1e3", ",\"ttlMs\":900", 0},
};

START_TEST(a_list_is_fresh_as_long_as_its_shortest_page)
{
    char page[200];
    struct peer p;

    peer_be_modern(&p);
    peer_ask_for(&p, "tools/list", NULL, "tools", 0);
    snprintf(page, sizeof page, "{\"tools\":[1],\"nextCursor\":\"a\"%s}", ttls[_i].first);
    peer_answer(&p, page);
    snprintf(page, sizeof page, "{\"tools\":[2]%s}", ttls[_i].second);
    peer_answer(&p, page);
    ck_assert_str_eq(p.result, "[1,2]");
    ck_assert_int_eq(p.ttl_ms, ttls[_i].ttl_ms);
    peer_end(&p);
}
END_TEST

/* Proves mcp.M2: A list of more than 64 pages, or with a cursor that comes twice, is an error. */
START_TEST(a_list_that_does_not_end_fails)
{
    struct peer p;
    int pages = 0;

    peer_be_legacy(&p);
    peer_ask_for(&p, "tools/list", NULL, "tools", 0);
    for (; p.n_done == 0; pages++) {
        char page[100];
        ck_assert_int_lt(pages, 100);
        snprintf(page, sizeof page, "{\"tools\":[],\"nextCursor\":\"%d\"}", _i == 0 ? pages : pages % 3);
        peer_answer(&p, page);
    }
    ck_assert_str_eq(p.code, "too_many_pages");
    ck_assert_int_eq(pages, _i == 0 ? RV_MCP_MAX_PAGES : 4);
    peer_end(&p);
}
END_TEST

/* --- answers --- */

static const struct {
    const char *text; /* @: the id of the request */
    const char *code; /* "": the result counts; NULL: nothing happens */
} answers[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"content\":[]}}", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"@\",\"result\":{}}", NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":@1,\"result\":{}}", NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":-@,\"result\":{}}", NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":7}", "bad_message"},
    {"{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{},\"error\":{}}", "bad_message"},
    {"{\"id\":@,\"result\":{}}", "bad_message"},
    {"{\"jsonrpc\":\"2.0\",\"id\":@,\"error\":{\"code\":-32602,\"message\":\"no\"}}", "rejected"},
    {"[{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{}}]", NULL},
    {"starting up @", NULL},
    {"{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"a\":NaN}}", "bad_message"}, /* not strict JSON */
    {"{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"a\":1,\"a\":2}}", "bad_message"},
    {"{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"a\":\"\\ud800\"}}", ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":@,\"result\":{\"a\":\"\xff\"}}", "bad_message"},
    {"{\"jsonrpc\":\"2.0\",\"id\":@,\"error\":{\"code\":1,\"message\":\"a\",}}", "bad_message"},
    {"{\"level\": info, \"id\": @}", NULL}, /* what programs print */
    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"result\":NaN}}", NULL},
};
START_TEST(each_answer_ends_its_request_or_nothing)
{
    struct peer p;

    peer_be_legacy(&p);
    peer_call(&p);
    peer_say_of(&p, answers[_i].text);
    ck_assert_int_eq(p.n_done, answers[_i].code != NULL);
    if (answers[_i].code)
        ck_assert_str_eq(p.code, answers[_i].code);
    peer_answer(&p, "{\"late\":true}");
    ck_assert_int_eq(p.n_done, 1); /* once, whatever comes */
    peer_end(&p);
}
END_TEST

static const struct {
    const char *result, *code;
} kinds[] = {
    {"{\"resultType\":\"input_required\",\"inputRequests\":{\"a\":{\"method\":\"elicitation/create\"}}}",
     "input_required"},
    {"{\"resultType\":\"input_required\"}", "invalid_answer"},
    {"{\"resultType\":\"input_required\",\"requestState\":7}", "invalid_answer"},
    {"{\"resultType\":\"tasks\",\"taskId\":\"t\"}", "invalid_answer"},
    {"{\"resultType\":[]}", "invalid_answer"},
    {"{\"resultType\":\"complete\"}", ""},
    {"{}", ""},
};
START_TEST(a_modern_result_has_a_type)
{
    struct peer p;

    peer_be_modern(&p);
    peer_call(&p);
    peer_answer(&p, kinds[_i].result);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert_str_eq(p.code, kinds[_i].code);
    peer_end(&p);
}
END_TEST

START_TEST(a_request_is_sent_again_with_its_state_a_bounded_number_of_times)
{
    struct peer p;
    int n = 0;

    peer_be_modern(&p);
    peer_call(&p);
    for (; p.n_done == 0; n++) {
        int64_t before = p.sent_id;
        ck_assert_int_lt(n, 50);
        peer_answer(&p, "{\"resultType\":\"input_required\",\"requestState\":\"s1\"}");
        ck_assert(p.n_done || p.sent_id > before);
        ck_assert(p.n_done || strstr(p.sent, "\"requestState\":\"s1\""));
    }
    ck_assert_int_eq(n, RV_MCP_MAX_ROUNDS + 1);
    ck_assert_str_eq(p.code, "invalid_answer");
    peer_end(&p);
}
END_TEST

TCase *client_case(void)
{
    TCase *tc = tcase_create("client");

    tcase_add_test(tc, a_server_that_answers_discover_is_modern);
    tcase_add_loop_test(tc, an_error_and_silence_mean_an_older_server, 0, 2);
    tcase_add_loop_test(tc, a_late_answer_of_the_new_era_still_counts, 0, 2);
    tcase_add_loop_test(tc, a_late_answer_of_the_old_era_changes_nothing, 0, 2);
    tcase_add_loop_test(tc, a_modern_server_is_never_asked_to_initialize, 0, RV_COUNT(refusals));
    tcase_add_loop_test(tc, a_server_that_refuses_the_revision_that_it_lists_is_asked_once_more, 0, 2);
    tcase_add_test(tc, a_legacy_server_of_an_unknown_revision_is_refused);
    tcase_add_loop_test(tc, the_status_of_http_decides_the_era, 0, RV_COUNT(statuses));
    tcase_add_test(tc, asks_wait_for_the_handshake_and_fail_with_it);
    tcase_add_test(tc, a_session_that_expired_is_begun_again_and_the_request_sent_once_more);
    tcase_add_test(tc, a_request_that_was_sent_before_its_session_expired_is_not_sent_once_more);
    tcase_add_test(tc, a_list_has_all_of_its_pages);
    tcase_add_loop_test(tc, a_list_is_fresh_as_long_as_its_shortest_page, 0, (int)RV_COUNT(ttls));
    tcase_add_loop_test(tc, a_list_that_does_not_end_fails, 0, 2);
    tcase_add_loop_test(tc, each_answer_ends_its_request_or_nothing, 0, RV_COUNT(answers));
    tcase_add_loop_test(tc, a_modern_result_has_a_type, 0, RV_COUNT(kinds));
    tcase_add_test(tc, a_request_is_sent_again_with_its_state_a_bounded_number_of_times);
    return tc;
}

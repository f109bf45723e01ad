/* A link over HTTP: what a server is sent, and what its answers become. */
#include <string.h>

#include "tests/unit/mcp_web/scene.h"

#define RESPONSE "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}"
#define NOTICE   "{\"jsonrpc\":\"2.0\",\"method\":\"progress\"}"
#define JSON     HEAD("200 OK", "application/json") "\r\n" RESPONSE
#define EVENTS   HEAD("200 OK", "text/event-stream") "\r\n"
#define ACCEPTED "HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
#define INIT                                                                                                           \
    {                                                                                                                  \
        {"POST /mcp HTTP", "!ession-Id", "!Protocol-Version"},                                                         \
            HEAD("200 OK", "application/json") "Mcp-Session-Id: s1\r\n\r\n" RESPONSE                                   \
    }

static const struct rv_mcp_send init = {.id = 7, .method = "initialize", .version = "2025-11-25", .body = {"{1}", 3}};
static const struct rv_mcp_send ready = {
    .method = "notifications/initialized", .version = "2025-11-25", .body = {"{}", 2}};
static const struct rv_mcp_send call = {
    .id = 7, .method = "tools/call", .version = "2025-11-25", .body = {"{call}", 6}};
static const struct rv_mcp_send modern = {
    .id = 7, .method = "tools/call", .name = "add", .version = "2026-07-28", .is_modern = true, .body = {"{call}", 6}};

/* --- one request --- */

static const struct {
    const char *what;
    bool is_modern;
    struct turn turns[6];
    const char *log; /* "*" at the end: the beginning only */
} requests[] = {
    {"a response",
     true,
     {{{"POST /mcp HTTP", "X-Key: k1", "Mcp-Method: tools/call", "Mcp-Name: add", "\r\n\r\n{call}", "!ession-Id"},
       JSON}},
     "message 7\n"},
    {"events before the response",
     true,
     {{{"POST"}, EVENTS ": hello\n\ndata: " NOTICE "\n\ndata: " RESPONSE "\n\ndata: " NOTICE "\n\n"}},
     "message progress\nmessage 7\n*"},
    {"a stream that ends",
     true,
     {{{"POST"}, EVENTS "id: 1\ndata:\n\n"}},
     "failed 7 connection_lost 200 the stream ended*"},
    {"no answer",
     true,
     {{{"POST"}, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: application/json\r\n\r\n{"}},
     "failed 7 connection_lost*"},
    {"no HTTP", true, {{{"POST"}, "SMTP\r\n\r\n"}}, "failed 7 *"},
    {"an error",
     true,
     {{{"POST"}, HEAD("400 Bad", "application/json") "\r\n{}"}},
     "failed 7 http_status 400 the server answered with HTTP 400\n"},
    {"a redirect to the same server",
     true,
     {{{"POST /mcp HTTP"}, HEAD("307 T", "text/plain") "Location: /other\r\n\r\n"},
      {{"POST /other HTTP", "X-Key: k1", "{call}"}, JSON}},
     "message 7\n"},
    {"a redirect to another server",
     true,
     {{{"POST"}, HEAD("308 P", "text/plain") "Location: http://127.0.0.2:PORT/mcp\r\n\r\n"}},
     "failed 7 not_allowed 0 unsent the server redirects to another origin, which is not followed\n"},
    {"a redirect that changes the method",
     true,
     {{{"POST"}, HEAD("302 F", "text/plain") "Location: /other\r\n\r\n"}},
     "failed 7 http_status 302*"},
    {"redirects in a circle",
     true,
     {{{"POST"}, HEAD("307 T", "text/plain") "Location: /mcp\r\n\r\n"},
      {{"POST"}, HEAD("307 T", "text/plain") "Location: /mcp\r\n\r\n"},
      {{"POST"}, HEAD("307 T", "text/plain") "Location: /mcp\r\n\r\n"},
      {{"POST"}, HEAD("307 T", "text/plain") "Location: /mcp\r\n\r\n"}},
     "failed 7 http_status 0 more than 3 redirects\n"},
    {"a stream that continues",
     false,
     {{{"POST", "{call}"}, EVENTS "retry: 1\nid: a1\ndata:\n\n"},
      {{"GET /mcp HTTP", "Last-Event-ID: a1", "Accept: text/event-stream", "X-Key: k1", "!{call}"},
       EVENTS "id: a2\ndata: " NOTICE "\n\n"},
      {{"GET /mcp HTTP", "Last-Event-ID: a2"}, EVENTS "data: " RESPONSE "\n\n"}},
     "message progress\nmessage 7\n"},
    {"a stream that cannot continue",
     false,
     {{{"POST"}, EVENTS "retry: 1\nid: a1\ndata:\n\n"}, {{"GET"}, HEAD("405 No", "text/plain") "\r\n"}},
     "failed 7 http_status 405 the server answered with HTTP 405\n"},
    {"a stream that continues elsewhere",
     false,
     {{{"POST"}, EVENTS "retry: 1\nid: a1\ndata:\n\n"},
      {{"GET"}, HEAD("307 T", "text/plain") "Location: http://127.0.0.2:PORT/mcp\r\n\r\n"}},
     "failed 7 not_allowed 0 the server redirects to another origin, which is not followed\n"},
};

static void check_log(const char *what, const rv_buf *log, const char *want)
{
    size_t n = strlen(want);
    bool is_start = n && want[n - 1] == '*';

    ck_assert_msg(is_start ? strncmp(rv_buf_cstr(log), want, n - 1) == 0 : strcmp(rv_buf_cstr(log), want) == 0,
                  "%s: %s, not %s", what, rv_buf_cstr(log), want);
}

START_TEST(a_request_ends_with_its_response_or_says_why_not)
{
    struct scene s;
    size_t n = 0;

    while (n < RV_COUNT(requests[_i].turns) && requests[_i].turns[n].answer)
        n++;
    scene_open(&s, requests[_i].turns, n, NULL);
    scene_send(&s, requests[_i].is_modern ? &modern : &call);
    bool fails = strstr(requests[_i].log, "failed") != NULL;
    size_t messages = 0;
    for (const char *p = requests[_i].log; (p = strstr(p, "message ")); p++)
        messages++;
    scene_run(&s, messages, fails);
    check_log(requests[_i].what, &s.log, requests[_i].log);
    scene_close(&s);
}
END_TEST

/* --- a session --- */

START_TEST(a_session_is_named_until_it_ends)
{
    static const struct turn turns[] = {
        INIT,
        {{"POST", "Mcp-Session-Id: s1", "MCP-Protocol-Version: 2025-11-25"}, ACCEPTED},
        {{"GET /mcp HTTP", "Mcp-Session-Id: s1", "!Last-Event-ID"}, HEAD("405 No", "text/plain") "\r\n"},
        {{"POST", "Mcp-Session-Id: s1", "{call}"}, HEAD("404 Gone", "text/plain") "\r\n"},
        {{"POST", "!ession-Id", "{1}"}, HEAD("200 OK", "application/json") "Mcp-Session-Id: s2\r\n\r\n" RESPONSE},
        {{"POST", "Mcp-Session-Id: s2"}, JSON},
        {{"DELETE /mcp HTTP", "Mcp-Session-Id: s2", "X-Key: k1"}, ACCEPTED},
    };
    struct scene s;

    scene_open(&s, turns, RV_COUNT(turns), NULL);
    scene_send(&s, &init);
    scene_run(&s, 1, 0);
    scene_send(&s, &ready);
    while (s.at < 3)
        uv_run(&s.loop, UV_RUN_ONCE);
    scene_send(&s, &call);
    scene_run(&s, 1, 1);
    scene_send(&s, &init);
    scene_run(&s, 2, 1);
    scene_send(&s, &call);
    scene_run(&s, 3, 1);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&s.log), "failed 7 session_expired 404 unsent"));
    scene_close(&s);
}
END_TEST

/* The server has the request, and may have carried it out before it forgot the session. */
START_TEST(a_session_that_ends_under_a_call_does_not_mean_that_nothing_was_done)
{
    static const struct turn turns[] = {
        INIT,
        {{"POST", "Mcp-Session-Id: s1", "{call}"}, EVENTS "retry: 1\nid: a1\ndata:\n\n"},
        {{"GET", "Mcp-Session-Id: s1", "Last-Event-ID: a1"}, HEAD("404 Gone", "text/plain") "\r\n"},
        {{"DELETE"}, ACCEPTED},
    };
    struct scene s;

    scene_open(&s, turns, RV_COUNT(turns), NULL);
    scene_send(&s, &init);
    scene_run(&s, 1, 0);
    scene_send(&s, &call);
    scene_run(&s, 1, 1);
    check_log("", &s.log,
              "message 7\nfailed 7 connection_lost 404 the server does not know the session any more (HTTP 404)\n");
    scene_close(&s);
}
END_TEST

START_TEST(the_servers_own_stream_brings_messages_and_comes_back)
{
    static const struct turn turns[] = {
        INIT,
        {{"POST"}, ACCEPTED},
        {{"GET /mcp HTTP", "!Last-Event-ID"}, EVENTS "retry: 1\nid: 5\ndata: " NOTICE "\n\n"},
        {{"GET /mcp HTTP", "Last-Event-ID: 5"}, EVENTS "data: " NOTICE "\n\n"},
        {{"GET /mcp HTTP", "Last-Event-ID: 5"}, NULL}, /* it stays open, and is closed with the link */
        {{"DELETE"}, ACCEPTED},
    };
    struct scene s;

    scene_open(&s, turns, RV_COUNT(turns), NULL);
    scene_send(&s, &init);
    scene_run(&s, 1, 0);
    scene_send(&s, &ready);
    scene_run(&s, 3, 0);
    while (s.at < 5)
        uv_run(&s.loop, UV_RUN_ONCE);
    ck_assert_str_eq(rv_buf_cstr(&s.log), "message 7\nmessage progress\nmessage progress\n");
    scene_close(&s);
}
END_TEST

START_TEST(a_stream_that_always_ends_is_given_up)
{
    static struct turn turns[10] = {{{"POST"}, EVENTS "retry: 0\nid: a1\ndata:\n\n"}};
    struct scene s;

    for (size_t i = 1; i < RV_COUNT(turns); i++)
        turns[i] = (struct turn){{"GET", "Last-Event-ID: a1"}, EVENTS "retry: 0\n\n"};
    scene_open(&s, turns, 9, NULL);
    scene_send(&s, &call);
    scene_run(&s, 0, 1);
    check_log("", &s.log, "failed 7 connection_lost 0 the stream ended again and again without the response\n");
    scene_close(&s);
}
END_TEST

/* A call that is sent with the end of the handshake comes after the stream, or when there is not going to be one. */
static const struct {
    const char *name;
    struct turn turns[5];
} asking[] = {
    {"a stream", {INIT, {{"POST", "\n{}"}, ACCEPTED}, {{"GET"}, EVENTS ": open\n\n"}, {{"POST", "{call}"}, JSON}}},
    {"no stream",
     {INIT, {{"POST", "\n{}"}, ACCEPTED}, {{"GET"}, HEAD("405 No", "text/plain") "\r\n"}, {{"POST", "{call}"}, JSON}}},
    {"a silent one", {INIT, {{"POST", "\n{}"}, ACCEPTED}, {{"GET"}, NULL}, {{"POST", "{call}"}, JSON}}},
    {"no handshake", {INIT, {{"POST", "\n{}"}, HEAD("500 No", "text/plain") "\r\n"}, {{"POST", "{call}"}, JSON}}},
};
START_TEST(requests_wait_for_the_stream_of_a_server_that_asks)
{
    struct turn turns[6];
    struct scene s;
    size_t n = 0;

    while (n < RV_COUNT(asking[_i].turns) && asking[_i].turns[n].want[0]) {
        turns[n] = asking[_i].turns[n];
        n++;
    }
    turns[n++] = (struct turn){{"DELETE"}, ACCEPTED};
    scene_open_asking(&s, turns, n);
    scene_send(&s, &init);
    scene_run(&s, 1, 0);
    scene_send(&s, &ready);
    scene_send(&s, &call);
    while (s.at < 3)
        uv_run(&s.loop, UV_RUN_ONCE);
    if (!turns[2].answer)
        time_passes(2); /* that it has for its stream */
    scene_run(&s, 2, 0);
    check_log(asking[_i].name, &s.log, "message 7\nmessage 7\n");
    scene_close(&s);
}
END_TEST

START_TEST(a_request_that_waits_for_the_stream_can_be_cancelled)
{
    static const struct turn turns[] = {
        INIT, {{"POST", "\n{}"}, ACCEPTED}, {{"GET"}, EVENTS ": open\n\n"}, {{"DELETE"}, ACCEPTED}};
    struct scene s;

    scene_open_asking(&s, turns, RV_COUNT(turns));
    scene_send(&s, &init);
    scene_run(&s, 1, 0);
    scene_send(&s, &ready);
    scene_send(&s, &call);
    rv_mcp_link_cancel(&s.link, 7);
    while (s.at < 3)
        uv_run(&s.loop, UV_RUN_ONCE);
    scene_close(&s);
}
END_TEST

/* --- cancelling --- */

START_TEST(a_cancel_closes_the_connection)
{
    static const struct turn turns[] = {{{"POST"}, NULL}};
    struct scene s;

    scene_open(&s, turns, 1, NULL);
    scene_send(&s, &modern);
    scene_turns(&s);
    ck_assert_uint_eq(s.server.n_open, 1);
    rv_mcp_link_cancel(&s.link, 8); /* none of ours */
    rv_mcp_link_cancel(&s.link, 7);
    while (s.server.n_open)
        uv_run(&s.loop, UV_RUN_ONCE);
    ck_assert_str_eq(rv_buf_cstr(&s.log), "");
    scene_close(&s);
}
END_TEST

START_TEST(a_cancel_from_within_a_message_is_the_end)
{
    static const struct turn turns[] = {
        {{"POST"}, EVENTS "data: " NOTICE "\n\ndata: " NOTICE "\n\ndata: " RESPONSE "\n\n"}};
    struct scene s;

    scene_open(&s, turns, 1, NULL);
    s.cancels_in_message = true;
    scene_send(&s, &modern);
    scene_run(&s, 1, 0);
    while (s.server.n_open)
        uv_run(&s.loop, UV_RUN_ONCE);
    ck_assert_str_eq(rv_buf_cstr(&s.log), "message progress\n");
    scene_close(&s);
}
END_TEST

START_TEST(a_link_closes_while_requests_are_under_way)
{
    static const struct turn turns[] = {INIT, {{"POST"}, NULL}, {{"DELETE"}, ACCEPTED}};
    struct scene s;

    scene_open(&s, turns, RV_COUNT(turns), NULL);
    scene_send(&s, &init);
    scene_run(&s, 1, 0);
    scene_send(&s, &call);
    while (s.at < 2)
        uv_run(&s.loop, UV_RUN_ONCE);
    scene_close(&s);
}
END_TEST

static const struct rv_mcp_send stop = {
    .method = "notifications/cancelled", .version = "2025-11-25", .body = {"{stop 7}", 8}};
static const struct rv_mcp_send stop_task = {
    .id = 9, .method = "tasks/cancel", .version = "2025-11-25", .body = {"{stop a task}", 13}};

/* The session ends behind what cancels something, even of a server that does not take it. */
static const struct {
    const struct rv_mcp_send *message;
    bool is_taken;
    struct turn turns[4];
} last_words[] = {
    {&stop, true, {INIT, {{"POST"}, NULL}, {{"{stop 7}", "Session-Id: s1"}, ACCEPTED}, {{"DELETE"}, ACCEPTED}}},
    {&stop_task, true, {INIT, {{"POST"}, NULL}, {{"{stop a task}"}, JSON}, {{"DELETE"}, ACCEPTED}}},
    {&stop_task, false, {INIT, {{"POST"}, NULL}, {{"{stop a task}"}, EVENTS "id: 1\n\n"}, {{"DELETE"}, ACCEPTED}}},
    {&stop_task, false, {INIT, {{"POST"}, NULL}, {{"{stop a task}"}, NULL}, {{"DELETE"}, ACCEPTED}}},
};

START_TEST(what_cancels_arrives_though_the_link_closes)
{
    struct scene s;

    scene_open(&s, last_words[_i].turns, 4, NULL);
    scene_send(&s, &init);
    scene_run(&s, 1, 0);
    scene_send(&s, &call);
    while (s.at < 2)
        uv_run(&s.loop, UV_RUN_ONCE);
    scene_send(&s, last_words[_i].message);
    scene_leave(&s);
    while (s.at < 3)
        uv_run(&s.loop, UV_RUN_ONCE);
    if (!last_words[_i].is_taken)
        time_passes(2); /* that it has */
    scene_left(&s);
    ck_assert_uint_eq(s.n_messages + s.n_failed, 1);
}
END_TEST

/* Nothing waits for the answer: without a limit its place would be taken for as long as the link lives. */
START_TEST(a_cancel_that_is_never_answered_is_given_up)
{
    static const struct turn turns[] = {INIT, {{"POST", "{stop a task}"}, NULL}, {{"DELETE"}, ACCEPTED}};
    struct scene s;

    scene_open(&s, turns, RV_COUNT(turns), NULL);
    scene_send(&s, &init);
    scene_run(&s, 1, 0);
    scene_send(&s, &stop_task);
    while (s.at < 2)
        uv_run(&s.loop, UV_RUN_ONCE);
    time_passes(31);
    scene_run(&s, 1, 1);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&s.log), " timed_out "));
    scene_close(&s);
}
END_TEST

/* --- where it may go --- */

static const struct {
    const char *url, *allowed;
    int rc;
} places[] = {
    {"http://127.0.0.1:1/", "", 0},
    {"ftp://127.0.0.1/", "", RV_E_INVALID},
    {"nonsense", "", RV_E_INVALID},
    {"http://u:p@127.0.0.1/", "", RV_E_DENIED},
    {"http://127.0.0.1/", "*bad*/99", RV_E_PARSE},
};

START_TEST(an_address_is_checked_when_the_link_is_opened)
{
    uv_loop_t loop;
    struct rv_mcp_link link = {.ops = NULL};
    const struct rv_mcp_web_opts opts = {.loop = &loop, .url = places[_i].url, .allowed = places[_i].allowed};

    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(rv_mcp_web_open(&opts, &link, NULL), places[_i].rc);
    rv_mcp_link_close(&link, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

static bool is_allowed(const char *url, const char *host, const char *ip, int port)
{
    struct sockaddr_in peer;
    rv_egress *e = NULL;
    const char *why;

    ck_assert_int_eq(rv_mcp_web_make_egress(url, "", &e, NULL), 0);
    ck_assert_int_eq(uv_ip4_addr(ip, port, &peer), 0);
    bool is = rv_egress_allows(e, rv_str_of(host), port, (const struct sockaddr *)&peer, &why);
    rv_egress_free(e);
    return is;
}

START_TEST(a_private_address_has_to_be_written_as_one)
{
    ck_assert(is_allowed("http://127.0.0.1:8080/mcp", "127.0.0.1", "127.0.0.1", 8080));
    ck_assert(!is_allowed("http://127.0.0.1:8080/mcp", "127.0.0.1", "127.0.0.1", 22));
    ck_assert(is_allowed("http://localhost:8080/mcp", "localhost", "127.0.0.1", 8080));
    ck_assert(is_allowed("https://a.example/mcp", "a.example", "93.184.216.34", 443));
    ck_assert(!is_allowed("https://a.example/mcp", "a.example", "10.0.0.1", 443)); /* a name that leads there */
    ck_assert(!is_allowed("https://a.example/mcp", "a.example", "169.254.169.254", 80));
}
END_TEST

START_TEST(a_message_above_the_limit_is_not_sent)
{
    struct scene s;
    struct rv_mcp_send m = modern;

    scene_open(&s, NULL, 0, NULL);
    m.body.len = RV_MCP_MAX_MESSAGE + 1;
    ck_assert_int_eq(rv_mcp_link_send(&s.link, &m, NULL), RV_E_LIMIT);
    scene_close(&s);
}
END_TEST

TCase *link_case(void)
{
    TCase *c = tcase_create("link");

    tcase_add_loop_test(c, a_request_ends_with_its_response_or_says_why_not, 0, RV_COUNT(requests));
    tcase_add_test(c, a_session_is_named_until_it_ends);
    tcase_add_test(c, a_session_that_ends_under_a_call_does_not_mean_that_nothing_was_done);
    tcase_add_test(c, the_servers_own_stream_brings_messages_and_comes_back);
    tcase_add_test(c, a_stream_that_always_ends_is_given_up);
    tcase_add_loop_test(c, requests_wait_for_the_stream_of_a_server_that_asks, 0, RV_COUNT(asking));
    tcase_add_test(c, a_request_that_waits_for_the_stream_can_be_cancelled);
    tcase_add_test(c, a_cancel_closes_the_connection);
    tcase_add_test(c, a_cancel_from_within_a_message_is_the_end);
    tcase_add_test(c, a_link_closes_while_requests_are_under_way);
    tcase_add_loop_test(c, what_cancels_arrives_though_the_link_closes, 0, RV_COUNT(last_words));
    tcase_add_test(c, a_cancel_that_is_never_answered_is_given_up);
    tcase_add_loop_test(c, an_address_is_checked_when_the_link_is_opened, 0, RV_COUNT(places));
    tcase_add_test(c, a_private_address_has_to_be_written_as_one);
    tcase_add_test(c, a_message_above_the_limit_is_not_sent);
    return c;
}

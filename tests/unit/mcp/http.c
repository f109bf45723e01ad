/* Streamable HTTP, the pure part: headers by era, and what answers mean. */
#include <json-c/json_tokener.h>
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/mcp/mcp.h"
#include "tests/unit/mcp/suites.h"

/* --- headers --- */

static const struct {
    const char *value, *want;
} values[] = {
    {"us-west1", "us-west1"},
    {"", ""},
    {"a b", "a b"},
    {"Hello, \xE4\xB8\x96\xE7\x95\x8C", "=?base64?SGVsbG8sIOS4lueVjA==?="},
    {" padded ", "=?base64?IHBhZGRlZCA=?="},
    {"line1\nline2", "=?base64?bGluZTEKbGluZTI=?="},
    {"=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
    {"=?base64?", "=?base64?"}, /* not the whole sentinel */
    {"=?BASE64?x?=", "=?BASE64?x?="},
    {"a\tb", "=?base64?YQli?="},
};

/* Proves mcp.M4: An event has at most 16 MiB, an answer is matched by its id, names of headers have no case, and values
 * that cannot stand in a header are encoded */
START_TEST(a_value_is_sent_as_it_is_or_encoded)
{
    rv_buf b = RV_BUF_INIT(1000);

    rv_mcp_header_write_value(rv_str_of(values[_i].value), &b);
    ck_assert_str_eq(rv_buf_cstr(&b), values[_i].want);
    rv_buf_fini(&b);
}
END_TEST

static void check_headers(const struct rv_mcp_headers *h, const char *want)
{
    rv_buf b = RV_BUF_INIT(10000);

    for (size_t i = 0; i < h->n; i++)
        rv_buf_printf(&b, "%s\n", h->lines[i]);
    ck_assert_str_eq(rv_buf_cstr(&b), want);
    rv_buf_fini(&b);
}

#define USUAL "Content-Type: application/json\nAccept: application/json, text/event-stream\n"
static const struct {
    struct rv_mcp_send m;
    const char *session, *want;
} posts[] = {
    {{.method = "initialize", .version = "2025-11-25"}, "old", USUAL},
    {{.method = "tools/list", .version = "2025-06-18"},
     "s-1",
     USUAL "MCP-Protocol-Version: 2025-06-18\nMcp-Session-Id: s-1\n"},
    {{.method = "tools/list", .version = "2025-06-18"}, "", USUAL "MCP-Protocol-Version: 2025-06-18\n"},
    {{.method = NULL, .version = "2025-06-18"}, "s-1", USUAL "MCP-Protocol-Version: 2025-06-18\nMcp-Session-Id: s-1\n"},
    {{.method = "tools/call", .name = "add", .version = "2026-07-28", .is_modern = true},
     "s-1", /* of another era: not sent */
     USUAL "MCP-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\nMcp-Name: add\n"},
    {{.method = "resources/read", .name = "caf\xC3\xA9://x", .version = "2026-07-28", .is_modern = true},
     "",
     USUAL "MCP-Protocol-Version: 2026-07-28\nMcp-Method: resources/read\nMcp-Name: =?base64?Y2Fmw6k6Ly94?=\n"},
};

START_TEST(the_era_decides_which_headers_a_message_has)
{
    struct rv_mcp_headers h = {.n = 0};

    ck_assert_int_eq(rv_mcp_headers_build(&posts[_i].m, posts[_i].session, &h, NULL), 0);
    check_headers(&h, posts[_i].want);
    rv_mcp_headers_fini(&h);
}
END_TEST

START_TEST(mirrored_arguments_are_encoded_and_names_are_tokens)
{
    struct rv_mcp_headers h = {.n = 0};
    json_object *further = json_tokener_parse("{\"Mcp-Param-City\": \"K\xC3\xB6ln\"}");
    struct rv_mcp_send m = {.method = "tools/call", .version = "2026-07-28", .is_modern = true, .headers = further};
    rv_err *err = NULL;

    ck_assert_int_eq(rv_mcp_headers_build(&m, "", &h, NULL), 0);
    ck_assert_str_eq(h.lines[h.n - 1], "Mcp-Param-City: =?base64?S8O2bG4=?=");
    ck_assert_int_eq(rv_mcp_headers_add(&h, "A B", RV_STR_LIT("x"), &err), RV_E_INVALID);
    rv_err_free(err);
    err = NULL;
    ck_assert_int_eq(rv_mcp_headers_add(&h, "A", RV_STR_LIT("x\r\nB: y"), &err), RV_E_INVALID);
    rv_err_free(err);
    while (h.n < RV_MCP_MAX_HTTP_HEADERS) {
        char name[8];
        snprintf(name, sizeof name, "A%zu", h.n);
        ck_assert_int_eq(rv_mcp_headers_add(&h, name, RV_STR_LIT("x"), NULL), 0);
    }
    ck_assert_int_eq(rv_mcp_headers_add(&h, "A", RV_STR_LIT("x"), NULL), RV_E_LIMIT);
    rv_mcp_headers_fini(&h);
    json_object_put(further);
}
END_TEST

/* Which of two a server believes is up to the server. */
START_TEST(a_header_takes_the_place_of_one_of_the_same_name)
{
    struct rv_mcp_headers h = {.n = 0}, more = {.n = 0};

    ck_assert_int_eq(rv_mcp_headers_add(&h, "X-User-Id", RV_STR_LIT("of the model"), NULL), 0);
    ck_assert_int_eq(rv_mcp_headers_add(&h, "Accept", RV_STR_LIT("a"), NULL), 0);
    ck_assert_int_eq(rv_mcp_headers_add(&h, "x-user-id", RV_STR_LIT("ada"), NULL), 0);
    ck_assert_int_eq(rv_mcp_headers_add(&more, "accept", RV_STR_LIT("b"), NULL), 0);
    ck_assert_int_eq(rv_mcp_headers_add(&more, "Accept-Language", RV_STR_LIT("de"), NULL), 0);
    ck_assert_int_eq(rv_mcp_headers_copy(&more, &h, NULL), 0);
    ck_assert_uint_eq(h.n, 3);
    ck_assert_str_eq(h.lines[0], "x-user-id: ada");
    ck_assert_str_eq(h.lines[1], "accept: b");
    ck_assert_str_eq(h.lines[2], "Accept-Language: de");
    rv_mcp_headers_fini(&h);
    rv_mcp_headers_fini(&more);
}
END_TEST

START_TEST(streams_name_the_event_that_they_continue_after)
{
    struct rv_mcp_headers h = {.n = 0};

    ck_assert_int_eq(rv_mcp_headers_build_stream("2025-11-25", "s", "7", &h, NULL), 0);
    check_headers(&h,
                  "Accept: text/event-stream\nMCP-Protocol-Version: 2025-11-25\nMcp-Session-Id: s\nLast-Event-ID: 7\n");
    rv_mcp_headers_fini(&h);
    ck_assert_int_eq(rv_mcp_headers_build_stream("2025-11-25", "s", "", &h, NULL), 0);
    check_headers(&h, "Accept: text/event-stream\nMCP-Protocol-Version: 2025-11-25\nMcp-Session-Id: s\n");
    rv_mcp_headers_fini(&h);
    ck_assert_int_eq(rv_mcp_headers_build_stream("2025-11-25", "s", NULL, &h, NULL), 0);
    check_headers(&h, "MCP-Protocol-Version: 2025-11-25\nMcp-Session-Id: s\n");
    rv_mcp_headers_fini(&h);
}
END_TEST

START_TEST(a_session_is_visible_ascii)
{
    char out[RV_MCP_MAX_SESSION + 1];

    ck_assert(rv_mcp_session_read(RV_STR_LIT("1868a90c-5f"), out));
    ck_assert_str_eq(out, "1868a90c-5f");
    ck_assert(!rv_mcp_session_read(RV_STR_LIT(""), out));
    ck_assert(!rv_mcp_session_read(RV_STR_LIT("a b"), out));
    ck_assert(!rv_mcp_session_read(RV_STR_LIT("\xC3\xA9"), out));
}
END_TEST

/* --- answers --- */

#define RESPONSE "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}"
#define OTHER    "{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}}"
#define NOTICE   "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}"
#define REQUEST  "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}"
#define JSON     "application/json"
#define EVENTS   "text/event-stream"

enum { SESSION = 1, MODERN = 2, CUT = 4, STREAM = 8 };
static const struct {
    const char *what;
    int64_t id;
    int status;
    const char *type, *challenge, *body;
    int flags;
    int n_messages;
    enum rv_mcp_verdict verdict;
    enum rv_mcp_fault fault;
    bool is_unsent;
} answers[] = {
    {"json", 7, 200, JSON, "", RESPONSE, 0, 1, RV_MCP_OVER, 0, 0},
    {"json with a parameter", 7, 200, "Application/JSON; charset=utf-8", "", RESPONSE, 0, 1, RV_MCP_OVER, 0, 0},
    {"json of another request", 7, 200, JSON, "", OTHER, 0, 1, RV_MCP_FAILED, RV_MCP_FAULT_BAD_MESSAGE, 0},
    {"json that is a request", 7, 200, JSON, "", REQUEST, 0, 1, RV_MCP_FAILED, RV_MCP_FAULT_BAD_MESSAGE, 0},
    {"no json", 7, 200, JSON, "", "<html>", 0, 1, RV_MCP_FAILED, RV_MCP_FAULT_BAD_MESSAGE, 0},
    {"json that is cut", 7, 200, JSON, "", "{\"jso", CUT, 0, RV_MCP_FAILED, RV_MCP_FAULT_CONNECTION_LOST, 0},
    {"a page", 7, 200, "text/html", "", "<html>", 0, 0, RV_MCP_FAILED, RV_MCP_FAULT_BAD_MESSAGE, 0},
    {"no type", 7, 200, "", "", RESPONSE, 0, 0, RV_MCP_FAILED, RV_MCP_FAULT_BAD_MESSAGE, 0},
    {"accepted without an answer", 7, 202, "", "", "", 0, 0, RV_MCP_FAILED, RV_MCP_FAULT_BAD_MESSAGE, 0},
    {"a notification is accepted", 0, 202, "", "", "", 0, 0, RV_MCP_OVER, 0, 0},
    {"a notification is answered", 0, 200, JSON, "", RESPONSE, 0, 0, RV_MCP_OVER, 0, 0},
    {"events", 7, 200, EVENTS, "", "data: " NOTICE "\n\ndata: " RESPONSE "\n\n", 0, 2, RV_MCP_OVER, 0, 0},
    {"events of another name", 7, 200, EVENTS, "",
     "event: x\ndata: " RESPONSE "\n\nevent: message\ndata: " RESPONSE "\n\n", 0, 1, RV_MCP_OVER, 0, 0},
    {"events without the response", 7, 200, EVENTS, "", "data: " OTHER "\n\n", 0, 1, RV_MCP_FAILED,
     RV_MCP_FAULT_CONNECTION_LOST, 0},
    {"a stream that can continue", 7, 200, EVENTS, "", "id: 1\ndata:\n\n", 0, 0, RV_MCP_CONTINUE, 0, 0},
    {"and one that breaks", 7, 200, EVENTS, "", "id: 1\n\ndata: " NOTICE "\n\n", CUT, 1, RV_MCP_CONTINUE, 0, 0},
    {"but none of the modern era", 7, 200, EVENTS, "", "id: 1\ndata:\n\n", MODERN, 0, RV_MCP_FAILED,
     RV_MCP_FAULT_CONNECTION_LOST, 0},
    {"the server's own stream", 0, 200, EVENTS, "", "data: " NOTICE "\n\n", STREAM, 1, RV_MCP_CONTINUE, 0, 0},
    {"which it may not have", 0, 405, "", "", "", STREAM, 0, RV_MCP_FAILED, RV_MCP_FAULT_HTTP_STATUS, 1},
    {"no token", 7, 401, JSON, "Bearer", "{}", 0, 0, RV_MCP_FAILED, RV_MCP_FAULT_UNAUTHORIZED, 1},
    {"too small a scope", 7, 403, JSON, "Bearer error=\"insufficient_scope\", scope=\"a\"", "{}", 0, 0, RV_MCP_FAILED,
     RV_MCP_FAULT_UNAUTHORIZED, 1},
    {"forbidden", 7, 403, JSON, "", "{}", 0, 0, RV_MCP_FAILED, RV_MCP_FAULT_HTTP_STATUS, 1},
    {"a session that is over", 7, 404, "", "", "", SESSION, 0, RV_MCP_FAILED, RV_MCP_FAULT_SESSION_EXPIRED, 1},
    {"a method that is unknown", 7, 404, JSON, "", "{}", SESSION | MODERN, 0, RV_MCP_FAILED, RV_MCP_FAULT_HTTP_STATUS,
     0},
    {"an address that is wrong", 7, 404, "", "", "", 0, 0, RV_MCP_FAILED, RV_MCP_FAULT_HTTP_STATUS, 0},
    {"another era", 7, 400, JSON, "", "{}", 0, 0, RV_MCP_FAILED, RV_MCP_FAULT_HTTP_STATUS, 0},
    {"a server that is busy", 7, 503, "", "", "", 0, 0, RV_MCP_FAILED, RV_MCP_FAULT_HTTP_STATUS, 0},
};

static void count(void *self, rv_str json)
{
    (void)json;
    ++*(int *)self;
}

/* Proves mcp.M4 */
START_TEST(an_answer_means_what_its_status_type_and_end_say)
{
    for (size_t step = 1; step < 2000; step += 1500) {
        rv_str body = rv_str_of(answers[_i].body);
        int flags = answers[_i].flags, n = 0;
        const struct rv_mcp_head head = {answers[_i].status, rv_str_of(answers[_i].type),
                                         rv_str_of(answers[_i].challenge), flags & SESSION, flags & MODERN};
        struct rv_mcp_answer a;
        struct rv_mcp_failure f;
        rv_buf text = RV_BUF_INIT(1024);
        rv_mcp_answer_init(&a, answers[_i].id, flags & STREAM, count, &n);
        ck_assert_int_eq(rv_mcp_answer_on_head(&a, &head, NULL), 0);
        for (size_t at = 0; at < body.len; at += step)
            ck_assert_int_eq(
                rv_mcp_answer_read(&a, (rv_str){body.ptr + at, step < body.len - at ? step : body.len - at}, NULL), 0);
        enum rv_mcp_verdict verdict = rv_mcp_answer_end(&a, flags & CUT, &text, &f);
        ck_assert_msg(verdict == answers[_i].verdict, "%s: %d", answers[_i].what, (int)verdict);
        ck_assert_msg(n == answers[_i].n_messages, "%s: %d messages", answers[_i].what, n);
        if (verdict == RV_MCP_FAILED) {
            ck_assert_msg(f.fault == answers[_i].fault, "%s: %s", answers[_i].what, rv_mcp_fault_code(f.fault));
            ck_assert_msg(f.is_unsent == answers[_i].is_unsent, "%s", answers[_i].what);
            ck_assert_uint_gt(strlen(f.text), 10);
        }
        rv_mcp_answer_fini(&a);
        rv_buf_fini(&text);
    }
}
END_TEST

/* Proves mcp.M4 */
START_TEST(an_answer_is_bounded)
{
    enum { PIECE = 1 << 20, LINE = 1 << 14 };
    static const char *const types[] = {JSON, EVENTS, EVENTS};
    char *piece = malloc(PIECE);

    for (size_t i = 0; i < RV_COUNT(types); i++) {
        const struct rv_mcp_head head = {.status = 200, .content_type = rv_str_of(types[i])};
        struct rv_mcp_answer a;
        int rc = 0, n = 0;
        size_t sent = 0;
        memset(piece, i == 2 ? ':' : 'x', PIECE); /* one event without end, or comments and no event without end */
        for (size_t k = 0; i == 2 && k < PIECE; k += LINE)
            piece[k] = '\n';
        rv_mcp_answer_init(&a, 7, false, count, &n);
        ck_assert_int_eq(rv_mcp_answer_on_head(&a, &head, NULL), 0);
        while (rc == 0 && sent < RV_MCP_MAX_STREAM + 2 * (size_t)PIECE) {
            rc = rv_mcp_answer_read(&a, (rv_str){piece, PIECE}, NULL);
            sent += PIECE;
        }
        ck_assert_int_eq(rc, RV_E_LIMIT);
        ck_assert_uint_le(sent, i == 2 ? RV_MCP_MAX_STREAM + PIECE : RV_MCP_MAX_MESSAGE + PIECE);
        rv_mcp_answer_fini(&a);
    }
    free(piece);
}
END_TEST

START_TEST(the_body_of_a_failure_is_cut)
{
    static char body[RV_MCP_MAX_FAILURE + 1000];
    const struct rv_mcp_head head = {.status = 400};
    struct rv_mcp_answer a;
    struct rv_mcp_failure f;
    rv_buf text = RV_BUF_INIT(1024);
    int n = 0;

    memset(body, 'x', sizeof body);
    rv_mcp_answer_init(&a, 7, false, count, &n);
    ck_assert_int_eq(rv_mcp_answer_on_head(&a, &head, NULL), 0);
    ck_assert_int_eq(rv_mcp_answer_read(&a, (rv_str){body, sizeof body}, NULL), 0);
    ck_assert_int_eq(rv_mcp_answer_end(&a, false, &text, &f), RV_MCP_FAILED);
    ck_assert_uint_eq(f.body.len, RV_MCP_MAX_FAILURE);
    ck_assert_int_eq(f.status, 400);
    rv_mcp_answer_fini(&a);
    rv_buf_fini(&text);
}
END_TEST

/* --- challenges --- */

static const struct {
    const char *value, *name, *want;
} challenges[] = {
    {"Bearer resource_metadata=\"https://a/b\", scope=\"x y\"", "scope", "x y"},
    {"Bearer resource_metadata=\"https://a/b\", scope=\"x y\"", "resource_metadata", "https://a/b"},
    {"bearer Scope=x", "scope", "x"},
    {"Bearer scope = \"a\\\"b\"", "scope", "a\"b"},
    {"Basic realm=\"x\", Bearer error=\"insufficient_scope\"", "error", "insufficient_scope"},
    {"Basic scope=\"x\"", "scope", NULL},
    {"Negotiate abc==, Bearer scope=x", "scope", "x"},
    {"Bearer", "scope", NULL},
    {"", "scope", NULL},
    {"Bearer scope=", "scope", ""},
    {"Bearer scope=\"open", "scope", "open"},
    {"Bearer ,,,=,scope=x", "scope", NULL},
    {"Bearer description=\"scope=y\", scope=x", "scope", "x"},
};

START_TEST(parameters_of_a_challenge_are_found)
{
    rv_buf b = RV_BUF_INIT(100);
    bool has = rv_mcp_challenge_read(rv_str_of(challenges[_i].value), challenges[_i].name, &b);

    ck_assert_msg(has == (challenges[_i].want != NULL), "%s", challenges[_i].value);
    if (has)
        ck_assert_str_eq(rv_buf_cstr(&b), challenges[_i].want);
    rv_buf_fini(&b);
}
END_TEST

TCase *http_case(void)
{
    TCase *c = tcase_create("http");

    tcase_add_loop_test(c, a_value_is_sent_as_it_is_or_encoded, 0, RV_COUNT(values));
    tcase_add_loop_test(c, the_era_decides_which_headers_a_message_has, 0, RV_COUNT(posts));
    tcase_add_test(c, mirrored_arguments_are_encoded_and_names_are_tokens);
    tcase_add_test(c, a_header_takes_the_place_of_one_of_the_same_name);
    tcase_add_test(c, streams_name_the_event_that_they_continue_after);
    tcase_add_test(c, a_session_is_visible_ascii);
    tcase_add_loop_test(c, an_answer_means_what_its_status_type_and_end_say, 0, RV_COUNT(answers));
    tcase_add_test(c, an_answer_is_bounded);
    tcase_add_test(c, the_body_of_a_failure_is_cut);
    tcase_add_loop_test(c, parameters_of_a_challenge_are_found, 0, RV_COUNT(challenges));
    return c;
}

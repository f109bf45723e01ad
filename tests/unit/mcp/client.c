/* The client's side of a connection against a peer that the test plays: both eras, lists, failures, time. */
#include "coreengine/mcp/client.h"

#include "tests/unit/mcp/suites.h"

#include <stdio.h>
#include <stdlib.h>

#define SECOND ((int64_t)1000000)

/* A client, and the last thing that it said of each kind. */
struct peer {
    rv_mcp_client *client;
    int64_t now_us;
    int64_t sent_id;  /* of the last request that was sent */
    char sent[40000]; /* the last message that was sent */
    char method[64];  /* of it; "": an answer */
    char version[32]; /* told to the transport with it */
    bool is_modern;
    int n_sent, n_done, n_ready, n_dead, n_changed, n_notes, n_forgotten, n_progress;
    int64_t done_ask;
    char result[4000], code[64], text[5000]; /* of the last DONE or DEAD */
    bool is_unsent, is_timeout;
    double progress;
};

static void take(struct peer *p, const struct rv_mcp_out *o)
{
    rv_buf b = RV_BUF_INIT(sizeof p->result - 1);

    switch (o->kind) {
    case RV_MCP_OUT_SEND:
        p->n_sent++;
        p->sent_id = o->send.id ? o->send.id : p->sent_id;
        ck_assert_uint_lt(o->send.body.len, sizeof p->sent);
        snprintf(p->sent, sizeof p->sent, "%.*s", RV_STR_ARG(o->send.body));
        ck_assert_ptr_null(strchr(p->sent, '\n'));
        snprintf(p->method, sizeof p->method, "%s", o->send.method ? o->send.method : "");
        snprintf(p->version, sizeof p->version, "%s", o->send.version);
        p->is_modern = o->send.is_modern;
        break;
    case RV_MCP_OUT_DONE:
        p->n_done++;
        p->done_ask = o->ask;
        rv_json_write(o->result, &b);
        snprintf(p->result, sizeof p->result, "%s", o->result ? rv_buf_cstr(&b) : "");
        /* fallthrough */
    case RV_MCP_OUT_DEAD:
        p->n_dead += o->kind == RV_MCP_OUT_DEAD;
        snprintf(p->code, sizeof p->code, "%s", o->trouble.code ? o->trouble.code : "");
        snprintf(p->text, sizeof p->text, "%s", o->trouble.text ? o->trouble.text : "");
        p->is_unsent = o->trouble.is_unsent;
        p->is_timeout = o->trouble.is_timeout;
        break;
    case RV_MCP_OUT_PROGRESS:
        p->n_progress++;
        p->progress = o->progress;
        break;
    case RV_MCP_OUT_READY:
        p->n_ready++;
        break;
    case RV_MCP_OUT_CHANGED:
        p->n_changed++;
        break;
    case RV_MCP_OUT_NOTE:
        p->n_notes++;
        break;
    case RV_MCP_OUT_FORGET:
        p->n_forgotten++;
        break;
    }
    rv_buf_fini(&b);
}

static void drain(struct peer *p)
{
    const struct rv_mcp_out *o;

    while ((o = rv_mcp_client_next(p->client)) != NULL)
        take(p, o);
}

static void say(struct peer *p, const char *fmt, ...) RV_PRINTF(2, 3);
static void say(struct peer *p, const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT((size_t)1 << 20);
    va_list args;

    va_start(args, fmt);
    rv_buf_vprintf(&text, fmt, args);
    va_end(args);
    ck_assert_int_eq(rv_mcp_client_message(p->client, rv_buf_str(&text), p->now_us, NULL), 0);
    rv_buf_fini(&text);
    drain(p);
}

/* With the id of the last request in the place of @. */
static void say_of(struct peer *p, const char *text)
{
    rv_buf b = RV_BUF_INIT(1000);

    for (; *text; text++) {
        if (*text == '@')
            rv_buf_printf(&b, "%lld", (long long)p->sent_id);
        else
            rv_buf_putc(&b, *text);
    }
    say(p, "%s", rv_buf_cstr(&b));
    rv_buf_fini(&b);
}

static void answer(struct peer *p, const char *result)
{
    say(p, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":%s}", (long long)p->sent_id, result);
}

static void wait_until(struct peer *p, int64_t now_us)
{
    p->now_us = now_us;
    ck_assert_int_eq(rv_mcp_client_tick(p->client, now_us, NULL), 0);
    drain(p);
}

static void begin(struct peer *p, enum rv_mcp_era era, bool is_http)
{
    const struct rv_mcp_client_opts opts = {.server = "s", .era = era, .is_http = is_http};

    *p = (struct peer){.now_us = SECOND};
    ck_assert_int_eq(rv_mcp_client_new(&opts, p->now_us, &p->client, NULL), 0);
    drain(p);
}

#define INITIALIZED "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}}}"
#define DISCOVERED  "{\"supportedVersions\":[\"2030-01-01\",\"2026-07-28\"],\"capabilities\":{\"tools\":{}}}"
#define NO_METHOD   "{\"jsonrpc\":\"2.0\",\"id\":@,\"error\":{\"code\":-32601,\"message\":\"no\"}}"

static void be_legacy(struct peer *p)
{
    begin(p, RV_MCP_ERA_LEGACY, false);
    answer(p, INITIALIZED);
    ck_assert_int_eq(p->n_ready, 1);
}

static void be_modern(struct peer *p)
{
    begin(p, RV_MCP_ERA_UNKNOWN, false);
    answer(p, DISCOVERED);
    ck_assert_int_eq(p->n_ready, 1);
}

static int64_t ask_for(struct peer *p, const char *method, const char *params, const char *list, int64_t timeout_us)
{
    json_object *value = NULL;
    int64_t ask = 0;

    if (params)
        ck_assert_int_eq(rv_json_parse(rv_str_of(params), NULL, &value, NULL), 0);
    const struct rv_mcp_ask a = {
        .method = method, .params = value, .list = list, .timeout_us = timeout_us, .wants_progress = !list};
    ck_assert_int_eq(rv_mcp_client_ask(p->client, &a, p->now_us, &ask, NULL), 0);
    json_object_put(value);
    drain(p);
    return ask;
}

static int64_t call(struct peer *p)
{
    return ask_for(p, "tools/call", "{\"name\":\"t\",\"arguments\":{\"a\":1}}", NULL, 10 * SECOND);
}

static void end(struct peer *p)
{
    rv_mcp_client_free(p->client);
}

/* --- eras --- */

/* Proves mcp.M1: The client speaks 2026-07-28, and 2025-11-25 to 2024-11-05 with servers that want a handshake. */
START_TEST(a_server_that_answers_discover_is_modern)
{
    struct peer p;

    begin(&p, RV_MCP_ERA_UNKNOWN, false);
    ck_assert_str_eq(p.method, "server/discover");
    ck_assert(p.is_modern);
    ck_assert_ptr_nonnull(strstr(p.sent, "io.modelcontextprotocol/protocolVersion\":\"2026-07-28"));
    ck_assert_ptr_nonnull(strstr(p.sent, "io.modelcontextprotocol/clientCapabilities\":{}"));
    answer(&p, DISCOVERED);
    ck_assert_int_eq(p.n_ready, 1);
    ck_assert_int_eq(rv_mcp_client_version(p.client), RV_MCP_2026_07_28);
    call(&p);
    ck_assert_ptr_nonnull(strstr(p.sent, "io.modelcontextprotocol/clientInfo"));
    ck_assert_ptr_nonnull(strstr(p.sent, "\"progressToken\":2"));
    answer(&p, "{\"resultType\":\"complete\",\"content\":[]}");
    ck_assert_int_eq(p.n_done, 1);
    end(&p);
}
END_TEST

START_TEST(an_error_and_silence_mean_an_older_server)
{
    struct peer p;

    begin(&p, RV_MCP_ERA_UNKNOWN, false);
    if (_i == 0)
        say_of(&p, NO_METHOD);
    else
        wait_until(&p, 3 * SECOND);
    ck_assert_str_eq(p.method, "initialize");
    ck_assert_str_eq(p.version, "2025-11-25");
    ck_assert(!p.is_modern);
    answer(&p, INITIALIZED);
    ck_assert_str_eq(p.method, "notifications/initialized");
    ck_assert_str_eq(p.version, "2025-06-18");
    ck_assert_int_eq(p.n_ready, 1);
    call(&p);
    ck_assert_ptr_null(strstr(p.sent, "io.modelcontextprotocol"));
    end(&p);
}
END_TEST

START_TEST(a_late_answer_to_discover_changes_nothing)
{
    struct peer p;

    begin(&p, RV_MCP_ERA_UNKNOWN, false);
    wait_until(&p, 3 * SECOND);
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" DISCOVERED "}");
    ck_assert_int_eq(p.n_ready, 0);
    answer(&p, INITIALIZED);
    ck_assert_int_eq(rv_mcp_client_era(p.client), RV_MCP_ERA_LEGACY);
    end(&p);
}
END_TEST

static const char *const refusals[] = {
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2031-01-01\"]}}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"no\",\"data\":{\"supported\":[\"2031-01-"
    "01\"]}}}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"no\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32021,\"message\":\"no\"}}",
};
START_TEST(a_modern_server_is_never_asked_to_initialize)
{
    struct peer p;

    begin(&p, RV_MCP_ERA_UNKNOWN, false);
    call(&p);
    say(&p, "%s", refusals[_i]);
    ck_assert_int_eq(p.n_dead, 1);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert(p.is_unsent);
    ck_assert_int_eq(p.n_sent, 1);
    ck_assert_int_eq(rv_mcp_client_due_us(p.client), INT64_MAX);
    end(&p);
}
END_TEST

START_TEST(a_legacy_server_of_an_unknown_revision_is_refused)
{
    struct peer p;

    begin(&p, RV_MCP_ERA_LEGACY, false);
    answer(&p, "{\"protocolVersion\":\"1999-01-01\",\"capabilities\":{}}");
    ck_assert_int_eq(p.n_dead, 1);
    ck_assert_str_eq(p.code, "unsupported_version");
    ck_assert_ptr_nonnull(strstr(p.text, "1999-01-01"));
    end(&p);
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

    begin(&p, RV_MCP_ERA_UNKNOWN, true);
    const struct rv_mcp_failure f = {.fault = RV_MCP_FAULT_HTTP_STATUS,
                                     .status = statuses[_i].status,
                                     .text = "status",
                                     .body = rv_str_of(statuses[_i].body)};
    ck_assert_int_eq(rv_mcp_client_failed(p.client, p.sent_id, &f, p.now_us, NULL), 0);
    drain(&p);
    ck_assert_str_eq(p.method, statuses[_i].method);
    ck_assert_int_eq(p.n_dead, statuses[_i].n_dead);
    end(&p);
}
END_TEST

START_TEST(asks_wait_for_the_handshake_and_fail_with_it)
{
    struct peer p;

    begin(&p, RV_MCP_ERA_LEGACY, false);
    call(&p);
    ck_assert_str_eq(p.method, "initialize");
    answer(&p, INITIALIZED);
    ck_assert_str_eq(p.method, "tools/call");
    end(&p);
    begin(&p, RV_MCP_ERA_LEGACY, false);
    ask_for(&p, "tools/list", NULL, "tools", 0);
    wait_until(&p, 40 * SECOND);
    ck_assert_int_eq(p.n_dead, 1);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert_str_eq(p.code, "timed_out");
    ck_assert_int_eq(rv_mcp_client_ask(p.client, &(struct rv_mcp_ask){.method = "ping"}, 0, &(int64_t){0}, NULL),
                     RV_E_STATE);
    end(&p);
}
END_TEST

START_TEST(a_session_that_expired_is_begun_again_and_the_request_sent_once_more)
{
    const struct rv_mcp_failure f = {
        .fault = RV_MCP_FAULT_SESSION_EXPIRED, .status = 404, .text = "gone", .is_unsent = true};
    struct peer p;

    be_legacy(&p);
    call(&p);
    ck_assert_int_eq(rv_mcp_client_failed(p.client, p.sent_id, &f, p.now_us, NULL), 0);
    drain(&p);
    ck_assert_str_eq(p.method, "initialize");
    answer(&p, INITIALIZED);
    ck_assert_str_eq(p.method, "tools/call");
    ck_assert_int_eq(rv_mcp_client_failed(p.client, p.sent_id, &f, p.now_us, NULL), 0);
    drain(&p);
    ck_assert_int_eq(p.n_done, 1); /* not without end */
    ck_assert_str_eq(p.code, "session_expired");
    end(&p);
}
END_TEST

/* --- lists --- */

START_TEST(a_list_has_all_of_its_pages)
{
    struct peer p;

    be_legacy(&p);
    int64_t ask = ask_for(&p, "tools/list", NULL, "tools", 0);
    answer(&p, "{\"tools\":[1],\"nextCursor\":\"\"}"); /* an empty cursor is a cursor */
    ck_assert_ptr_nonnull(strstr(p.sent, "\"cursor\":\"\""));
    answer(&p, "{\"tools\":[2,3],\"nextCursor\":\"b\"}");
    answer(&p, "{\"tools\":[],\"nextCursor\":null}");
    ck_assert_int_eq(p.n_done, 1);
    ck_assert(p.done_ask == ask);
    ck_assert_str_eq(p.result, "[1,2,3]");
    end(&p);
}
END_TEST

/* Proves mcp.M2: A list of more than 64 pages, or with a cursor that comes twice, is an error. */
START_TEST(a_list_that_does_not_end_fails)
{
    struct peer p;
    int pages = 0;

    be_legacy(&p);
    ask_for(&p, "tools/list", NULL, "tools", 0);
    for (; p.n_done == 0; pages++) {
        char page[100];
        ck_assert_int_lt(pages, 100);
        snprintf(page, sizeof page, "{\"tools\":[],\"nextCursor\":\"%d\"}", _i == 0 ? pages : pages % 3);
        answer(&p, page);
    }
    ck_assert_str_eq(p.code, "too_many_pages");
    ck_assert_int_eq(pages, _i == 0 ? RV_MCP_MAX_PAGES : 4);
    end(&p);
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
};
START_TEST(each_answer_ends_its_request_or_nothing)
{
    struct peer p;

    be_legacy(&p);
    call(&p);
    say_of(&p, answers[_i].text);
    ck_assert_int_eq(p.n_done, answers[_i].code != NULL);
    if (answers[_i].code)
        ck_assert_str_eq(p.code, answers[_i].code);
    answer(&p, "{\"late\":true}");
    ck_assert_int_eq(p.n_done, 1); /* once, whatever comes */
    end(&p);
}
END_TEST

static const struct {
    const char *result, *code;
} kinds[] = {
    {"{\"resultType\":\"input_required\",\"inputRequests\":{\"a\":{\"method\":\"elicitation/create\"}}}",
     "input_required"},
    {"{\"resultType\":\"input_required\"}", "invalid_answer"},
    {"{\"resultType\":\"input_required\",\"requestState\":7}", "invalid_answer"},
    {"{\"resultType\":\"task\",\"taskId\":\"t\"}", "invalid_answer"},
    {"{\"resultType\":[]}", "invalid_answer"},
    {"{\"resultType\":\"complete\"}", ""},
    {"{}", ""},
};
START_TEST(a_modern_result_has_a_type)
{
    struct peer p;

    be_modern(&p);
    call(&p);
    answer(&p, kinds[_i].result);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert_str_eq(p.code, kinds[_i].code);
    end(&p);
}
END_TEST

START_TEST(a_request_is_sent_again_with_its_state_a_bounded_number_of_times)
{
    struct peer p;
    int n = 0;

    be_modern(&p);
    call(&p);
    for (; p.n_done == 0; n++) {
        int64_t before = p.sent_id;
        ck_assert_int_lt(n, 50);
        answer(&p, "{\"resultType\":\"input_required\",\"requestState\":\"s1\"}");
        ck_assert(p.n_done || p.sent_id > before);
        ck_assert(p.n_done || strstr(p.sent, "\"requestState\":\"s1\""));
    }
    ck_assert_int_eq(n, RV_MCP_MAX_ROUNDS + 1);
    ck_assert_str_eq(p.code, "invalid_answer");
    end(&p);
}
END_TEST

/* --- what the server sends by itself --- */

START_TEST(a_ping_is_answered_and_any_other_request_is_refused)
{
    struct peer p;

    be_legacy(&p);
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":\"p1\",\"method\":\"ping\"}");
    ck_assert_str_eq(p.sent, "{\"jsonrpc\":\"2.0\",\"id\":\"p1\",\"result\":{}}");
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"sampling/createMessage\",\"params\":{}}");
    ck_assert_ptr_nonnull(strstr(p.sent, "\"id\":9,\"error\":{\"code\":-32601"));
    int n = p.n_sent;
    say(&p, "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}"); /* a notification is never answered */
    ck_assert_int_eq(p.n_sent, n);
    end(&p);
    be_modern(&p);
    n = p.n_sent;
    say(&p, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}"); /* its revision forbids requests */
    ck_assert_int_eq(p.n_sent, n);
    end(&p);
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

    be_legacy(&p);
    call(&p);
    ck_assert_ptr_nonnull(strstr(p.sent, "\"_meta\":{\"progressToken\":"));
    for (size_t i = 0; i < RV_COUNT(values); i++)
        say(&p, fmt, (long long)p.sent_id, values[i]);
    ck_assert_int_eq(p.n_progress, 3);
    ck_assert(p.progress > 1.9);
    say(&p, fmt, (long long)p.sent_id + 1, "5");
    ck_assert_int_eq(p.n_progress, 3);
    answer(&p, "{\"content\":[]}");
    say(&p, fmt, (long long)p.sent_id, "3");
    ck_assert_int_eq(p.n_progress, 3);
    end(&p);
}
END_TEST

START_TEST(changes_are_told_once_until_they_are_looked_at)
{
    const char text[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}";
    struct peer p;

    be_legacy(&p);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(rv_mcp_client_message(p.client, rv_str_of(text), p.now_us, NULL), 0);
    drain(&p);
    ck_assert_int_eq(p.n_changed, 1);
    say(&p, "%s", text);
    ck_assert_int_eq(p.n_changed, 2);
    end(&p);
}
END_TEST

START_TEST(notes_about_a_bad_server_are_bounded)
{
    struct peer p;

    be_legacy(&p);
    for (int i = 0; i < 1000; i++)
        say(&p, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}", 5000 + i);
    ck_assert_int_eq(p.n_notes, 50);
    end(&p);
}
END_TEST

/* --- time and the end --- */

START_TEST(a_request_that_is_not_answered_in_time_is_cancelled)
{
    struct peer p;

    be_legacy(&p);
    call(&p);
    int64_t id = p.sent_id;
    ck_assert(rv_mcp_client_due_us(p.client) == p.now_us + 10 * SECOND);
    wait_until(&p, p.now_us + 10 * SECOND - 1);
    ck_assert_int_eq(p.n_done, 0);
    wait_until(&p, p.now_us + 1);
    ck_assert_int_eq(p.n_done, 1);
    ck_assert(p.is_timeout && !p.is_unsent);
    ck_assert_str_eq(p.method, "notifications/cancelled");
    ck_assert_int_eq(p.n_forgotten, 1);
    char want[64];
    snprintf(want, sizeof want, "\"requestId\":%lld", (long long)id);
    ck_assert_ptr_nonnull(strstr(p.sent, want));
    end(&p);
}
END_TEST

START_TEST(a_request_that_is_given_up_is_not_told)
{
    struct peer p;

    be_legacy(&p);
    int64_t ask = call(&p);
    ck_assert_int_eq(rv_mcp_client_give_up(p.client, ask, NULL), 0);
    ck_assert_int_eq(rv_mcp_client_give_up(p.client, ask, NULL), 0);
    drain(&p);
    ck_assert_str_eq(p.method, "notifications/cancelled");
    answer(&p, "{\"content\":[]}");
    ck_assert_int_eq(p.n_done, 0);
    ck_assert_uint_eq(rv_mcp_client_n_asks(p.client), 0);
    end(&p);
}
END_TEST

START_TEST(over_http_closing_the_stream_cancels_a_modern_request)
{
    struct peer p;

    begin(&p, RV_MCP_ERA_UNKNOWN, true);
    answer(&p, DISCOVERED);
    int64_t ask = call(&p);
    int n = p.n_sent;
    ck_assert_int_eq(rv_mcp_client_give_up(p.client, ask, NULL), 0);
    drain(&p);
    ck_assert_int_eq(p.n_sent, n);
    ck_assert_int_eq(p.n_forgotten, 1);
    end(&p);
}
END_TEST

/* Proves mcp.M3: The end of a server fails all pending calls at once with server_exited; standard input and output
 * tolerate noise, and long lines are refused. */
START_TEST(a_dead_link_ends_all_requests)
{
    const struct rv_mcp_failure f = {.fault = RV_MCP_FAULT_SERVER_EXITED, .text = "status 3", .retryable = true};
    struct peer p;

    be_legacy(&p);
    call(&p);
    call(&p);
    ck_assert_int_eq(rv_mcp_client_failed(p.client, 0, &f, p.now_us, NULL), 0);
    drain(&p);
    ck_assert_int_eq(p.n_done, 2);
    ck_assert_int_eq(p.n_dead, 1);
    ck_assert_str_eq(p.code, "server_exited");
    ck_assert(rv_mcp_client_is_dead(p.client));
    ck_assert_int_eq(rv_mcp_client_message(p.client, RV_STR_LIT("{}"), p.now_us, NULL), 0);
    ck_assert_ptr_null(rv_mcp_client_next(p.client));
    end(&p);
}
END_TEST

START_TEST(too_many_open_requests_are_refused)
{
    struct peer p;
    int64_t ask;

    be_legacy(&p);
    for (int i = 0; i < RV_MCP_MAX_ASKS; i++)
        call(&p);
    ck_assert_int_eq(rv_mcp_client_ask(p.client, &(struct rv_mcp_ask){.method = "ping"}, 0, &ask, NULL), RV_E_LIMIT);
    end(&p);
}
END_TEST

TCase *client_case(void)
{
    TCase *tc = tcase_create("client");

    tcase_add_test(tc, a_server_that_answers_discover_is_modern);
    tcase_add_loop_test(tc, an_error_and_silence_mean_an_older_server, 0, 2);
    tcase_add_test(tc, a_late_answer_to_discover_changes_nothing);
    tcase_add_loop_test(tc, a_modern_server_is_never_asked_to_initialize, 0, RV_COUNT(refusals));
    tcase_add_test(tc, a_legacy_server_of_an_unknown_revision_is_refused);
    tcase_add_loop_test(tc, the_status_of_http_decides_the_era, 0, RV_COUNT(statuses));
    tcase_add_test(tc, asks_wait_for_the_handshake_and_fail_with_it);
    tcase_add_test(tc, a_session_that_expired_is_begun_again_and_the_request_sent_once_more);
    tcase_add_test(tc, a_list_has_all_of_its_pages);
    tcase_add_loop_test(tc, a_list_that_does_not_end_fails, 0, 2);
    tcase_add_loop_test(tc, each_answer_ends_its_request_or_nothing, 0, RV_COUNT(answers));
    tcase_add_loop_test(tc, a_modern_result_has_a_type, 0, RV_COUNT(kinds));
    tcase_add_test(tc, a_request_is_sent_again_with_its_state_a_bounded_number_of_times);
    tcase_add_test(tc, a_ping_is_answered_and_any_other_request_is_refused);
    tcase_add_test(tc, progress_only_grows_and_belongs_to_an_open_request);
    tcase_add_test(tc, changes_are_told_once_until_they_are_looked_at);
    tcase_add_test(tc, notes_about_a_bad_server_are_bounded);
    tcase_add_test(tc, a_request_that_is_not_answered_in_time_is_cancelled);
    tcase_add_test(tc, a_request_that_is_given_up_is_not_told);
    tcase_add_test(tc, over_http_closing_the_stream_cancels_a_modern_request);
    tcase_add_test(tc, a_dead_link_ends_all_requests);
    tcase_add_test(tc, too_many_open_requests_are_refused);
    return tc;
}

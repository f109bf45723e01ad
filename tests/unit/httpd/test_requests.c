/* Requests that are right, and their answers. */
#include "tests/unit/httpd/world.h"

#include <stdlib.h>

static struct world w;

static void setup(void)
{
    world_init(&w);
    world_listen(&w);
}

static void teardown(void)
{
    world_fini(&w);
}

static char *ask(const char *text)
{
    return world_ask(&w, rv_str_of(text));
}

static void must_have(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part), "\"%s\" is not in: %s", part, text);
}

START_TEST(answers_a_get_as_a_whole)
{
    char *got = ask("GET /hello HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: abc-1\r\n\r\n");

    ck_assert_str_eq(got, "HTTP/1.1 200 OK\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\nX-Request-Id: abc-1\r\n"
                          "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
    free(got);
    ck_assert_str_eq(rv_buf_cstr(&w.access), "GET /hello 200 0 whole\n");
    ck_assert_int_eq(w.n_freed, 1);
}
END_TEST

START_TEST(tells_the_handler_all_of_a_request)
{
    char *got = ask("PUT /a%2Fb/%C3%A4/?x=1+2&y=%26&z&&=e HTTP/1.1\r\nHost: LocalHost:80\r\nX-B:  c d \t\r\nX-b: "
                    "e\r\nContent-Length: 3\r\n\r\nabc");

    ck_assert_str_eq(body_of(got), "PUT /a%2Fb/%C3%A4/\nhost localhost:80\npeer 127.0.0.1 tls 0 id "
                                   "req_853b559647364cea\nsegment a/b\nsegment \xc3\xa4\nsegment \nquery x=1 "
                                   "2\nquery y=&\nquery z=\nquery =e\nfield host=localhost:80\nfield x-b=c d\nfield "
                                   "x-b=e\nfield content-length=3\nbody 3 abc");
    free(got);
}
END_TEST

START_TEST(keeps_the_connection_for_the_next_request)
{
    struct client c;

    client_open(&w, &c);
    for (int i = 0; i < 3; i++)
        client_text(&c, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client_text(&c, "POST /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab");
    ck_assert_uint_eq(n_answers(rv_buf_cstr(&c.got)), 4);
    ck_assert(!c.is_over);
    client_text(&c, "GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: foo, Close\r\n\r\n");
    ck_assert_uint_eq(n_answers(rv_buf_cstr(&c.got)), 5);
    must_have(rv_buf_cstr(&c.got), "Connection: close\r\n");
    ck_assert(c.is_over);
    client_close(&c);
}
END_TEST

START_TEST(reads_a_request_that_comes_byte_by_byte)
{
    const char *text = "POST /x?y HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "3\r\nabc\r\n10;ext=1\r\n0123456789abcdef\r\n0\r\n\r\n";
    struct client c;

    client_open(&w, &c);
    for (const char *p = text; *p; p++)
        client_send(&c, (rv_str){p, 1});
    must_have(rv_buf_cstr(&c.got), "body 19 abc0123456789abcdef");
    ck_assert(c.is_over); /* after a chunked body */
    client_close(&c);
}
END_TEST

START_TEST(leaves_the_body_of_an_answer_to_head_out)
{
    char *got = ask("HEAD /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");

    must_have(got, "Content-Length: 5\r\n");
    ck_assert_str_eq(body_of(got), "");
    free(got);
    got = ask("HEAD /taken/1000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    must_have(got, "Content-Length: 1000\r\n");
    ck_assert_str_eq(body_of(got), "");
    free(got);
    got = ask("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ck_assert_int_eq(status_of(got), 204);
    ck_assert_ptr_null(strstr(got, "Content-Length"));
    free(got);
}
END_TEST

START_TEST(closes_behind_an_answer_to_http_1_0)
{
    struct client c;

    client_open(&w, &c);
    client_text(&c, "GET /hello HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
    ck_assert_int_eq(status_of(rv_buf_cstr(&c.got)), 200);
    ck_assert(c.is_over);
    client_close(&c);
}
END_TEST

START_TEST(asks_for_a_body_that_waits_to_be_asked_for)
{
    struct client c;

    client_open(&w, &c);
    client_text(&c, "POST /x HTTP/1.1\r\nHost: localhost\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n");
    ck_assert_str_eq(rv_buf_cstr(&c.got), "HTTP/1.1 100 Continue\r\n\r\n");
    client_text(&c, "a"); /* in pieces */
    client_text(&c, "bc");
    must_have(rv_buf_cstr(&c.got), "body 3 abc");
    client_close(&c);
}
END_TEST

START_TEST(refuses_a_body_before_it_comes)
{
    static const char *const heads[] = {
        "POST /denied HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 30\r\n\r\n",
        "POST /small HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: localhost\r\nExpect: other\r\nContent-Length: 11\r\n\r\n",
    };
    static const int statuses[] = {401, 413, 417};
    struct client c;

    client_open(&w, &c);
    client_text(&c, heads[_i]);
    ck_assert_int_eq(status_of(rv_buf_cstr(&c.got)), statuses[_i]);
    must_have(rv_buf_cstr(&c.got), "Connection: close\r\n");
    ck_assert(c.is_over);
    client_close(&c);
}
END_TEST

START_TEST(answers_one_of_several_requests_sent_at_once)
{
    struct client c;

    client_open(&w, &c);
    client_text(&c, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ck_assert_uint_eq(n_answers(rv_buf_cstr(&c.got)), 1);
    must_have(rv_buf_cstr(&c.got), "Connection: close\r\n");
    ck_assert(c.is_over); /* the client repeats the second one elsewhere */
    client_close(&c);
    client_open(&w, &c);
    client_text(&c, "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client_text(&c, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    rv_httpd_reply(w.x, &(struct rv_httpd_answer){.status = 200});
    client_look(&c);
    ck_assert_uint_eq(n_answers(rv_buf_cstr(&c.got)), 1);
    ck_assert(c.is_over);
    client_close(&c);
}
END_TEST

START_TEST(sends_large_answers_of_any_owner)
{
    static const char *const paths[] = {"bytes/20000000", "taken/20000000"};
    char text[100];
    struct client c;

    (void)snprintf(text, sizeof text, "GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n", paths[_i]);
    client_open(&w, &c);
    client_text(&c, text);
    ck_assert_uint_eq(strlen(body_of(rv_buf_cstr(&c.got))), 20000000);
    client_text(&c, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ck_assert_uint_eq(n_answers(rv_buf_cstr(&c.got)), 2);
    client_close(&c);
}
END_TEST

START_TEST(never_sends_a_head_that_breaks_the_rules)
{
    static const char *const kinds[] = {"value", "name", "own", "status", "body", "type"};
    char text[100];

    w.log.n_expected = 1;
    (void)snprintf(text, sizeof text, "GET /bad/%s HTTP/1.1\r\nHost: localhost\r\n\r\n", kinds[_i]);
    char *got = ask(text);
    ck_assert_int_eq(status_of(got), 500);
    ck_assert_ptr_null(strstr(got, "Set-Cookie"));
    free(got);
    ck_assert_ptr_nonnull(rv_kit_log_find(&w.log, "answer.invalid"));
}
END_TEST

START_TEST(answers_for_a_handler_that_gives_up)
{
    w.log.n_expected = 1;
    char *got = ask("GET /drop HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ck_assert_int_eq(status_of(got), 500);
    free(got);
}
END_TEST

START_TEST(takes_only_well_formed_request_ids)
{
    static const char *const ids[] = {"a b", "", "x\"y", "a\r\nX-Request-Id: b"};
    char text[200];

    (void)snprintf(text, sizeof text, "GET /x HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: %s\r\n\r\n", ids[_i]);
    char *got = ask(text);
    must_have(got, "\r\nX-Request-Id: req_853b559647364cea\r\n");
    free(got);
}
END_TEST

START_TEST(ignores_offers_of_other_protocols)
{
    char *got = ask("GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: "
                    "h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n");

    ck_assert_int_eq(status_of(got), 200);
    free(got);
    got = ask("POST /x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: "
              "2\r\n\r\nab");
    must_have(got, "body 2 ab");
    free(got);
}
END_TEST

TCase *requests_case(void)
{
    TCase *tc = tcase_create("requests");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, answers_a_get_as_a_whole);
    tcase_add_test(tc, tells_the_handler_all_of_a_request);
    tcase_add_test(tc, keeps_the_connection_for_the_next_request);
    tcase_add_test(tc, reads_a_request_that_comes_byte_by_byte);
    tcase_add_test(tc, leaves_the_body_of_an_answer_to_head_out);
    tcase_add_test(tc, closes_behind_an_answer_to_http_1_0);
    tcase_add_test(tc, asks_for_a_body_that_waits_to_be_asked_for);
    tcase_add_loop_test(tc, refuses_a_body_before_it_comes, 0, 3);
    tcase_add_test(tc, answers_one_of_several_requests_sent_at_once);
    tcase_add_loop_test(tc, sends_large_answers_of_any_owner, 0, 2);
    tcase_add_loop_test(tc, never_sends_a_head_that_breaks_the_rules, 0, 6);
    tcase_add_test(tc, answers_for_a_handler_that_gives_up);
    tcase_add_loop_test(tc, takes_only_well_formed_request_ids, 0, 4);
    tcase_add_test(tc, ignores_offers_of_other_protocols);
    return tc;
}

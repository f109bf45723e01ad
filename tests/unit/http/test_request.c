/* What a server gets to see, and what is refused before anything is sent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "world.h"

static struct world w;

static void set_up(void)
{
    world_init(&w);
    w.server.answer = RV_STR_LIT("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

static void tear_down(void)
{
    world_fini(&w);
}

START_TEST(a_request_is_sent_as_asked)
{
    const char *headers[] = {"Content-Type: application/json", "Authorization: Bearer k", "X-B: 2", "X-Empty:"};
    struct rv_http_request req = get(&w, "/v1/chat?x=1");
    char want[400];
    struct call c = {0};

    req.method = "POST";
    req.headers = headers;
    req.n_headers = RV_COUNT(headers);
    req.body = RV_STR_LIT("{\"a\":1}");
    fetch(&w, &c, &req);
    ck_assert_int_eq(c.end.fault, RV_HTTP_OK);
    const char *encodings = strstr(rv_buf_cstr(&w.server.last), "Accept-Encoding: ");
    ck_assert_ptr_nonnull(encodings);
    snprintf(
        want, sizeof want,
        "POST /v1/chat?x=1 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: reeve/" REEVE_VERSION
        "\r\nAccept: */*\r\n%.*s\r\nContent-Type: application/json\r\nAuthorization: Bearer k\r\nX-B: 2\r\nX-Empty:\r\n"
        "Content-Length: 7\r\n\r\n{\"a\":1}",
        w.server.port, (int)strcspn(encodings, "\r"), encodings);
    ck_assert_str_eq(rv_buf_cstr(&w.server.last), want);
}
END_TEST

static const struct {
    const char *method;
    size_t body;
} methods[] = {{"GET", 0}, {"POST", 0}, {"POST", 1}, {"POST", 3000000}, {"DELETE", 0}, {"PUT", 100}, {"PATCH", 70000}};

START_TEST(bodies_of_any_size_arrive_without_asking_for_leave)
{
    struct rv_http_request req = get(&w, "/");
    char *body = malloc(methods[_i].body + 1), line[40];
    struct call c = {0};

    ck_assert_ptr_nonnull(body);
    for (size_t i = 0; i < methods[_i].body; i++)
        body[i] = (char)('a' + i % 26);
    req.method = methods[_i].method;
    req.body = (rv_str){body, methods[_i].body};
    fetch(&w, &c, &req);
    ck_assert_int_eq(c.end.fault, RV_HTTP_OK);
    rv_str got = rv_buf_str(&w.server.last);
    ck_assert_uint_gt(got.len, methods[_i].body);
    ck_assert(rv_str_eq((rv_str){got.ptr + got.len - methods[_i].body, methods[_i].body}, req.body));
    snprintf(line, sizeof line, "%s / HTTP/1.1\r\n", methods[_i].method);
    ck_assert(strncmp(got.ptr, line, strlen(line)) == 0);
    ck_assert_ptr_null(strstr(got.ptr, "Expect"));
    ck_assert_ptr_null(strstr(got.ptr, "Content-Type"));
    snprintf(line, sizeof line, "Content-Length: %zu\r\n", methods[_i].body);
    if (methods[_i].body > 0 || strcmp(req.method, "POST") == 0)
        ck_assert_ptr_nonnull(strstr(got.ptr, line));
    free(body);
}
END_TEST

static const struct {
    const char *method, *url, *header, *want;
} refused[] = {
    {"GET", NULL, "X-A: 1\r\nX-B: 2", "header \"X-A\" of the request has a control character in it"},
    {"GET", NULL, "Authorization: secret\nX: y",
     "header \"Authorization\" of the request has a control character in it"},
    {"GET", NULL, "X-A: \x01", "header \"X-A\" of the request has a control character in it"},
    {"GET", NULL, "secret", "header 1 of the request is not of the form \"Name: value\""},
    {"GET", NULL, ": secret", "header 1 of the request is not of the form \"Name: value\""},
    {"GET", NULL, "X A: secret", "header 1 of the request is not of the form \"Name: value\""},
    {"GET", NULL, "X-A\r\n: secret", "header 1 of the request is not of the form \"Name: value\""},
    {"GET", NULL, "", "header 1 of the request is not of the form \"Name: value\""},
    {"GET /x HTTP/1.1\r\nX:", NULL, NULL, "the method of the request is not a word"},
    {"", NULL, NULL, "the method of the request is not a word"},
    {"GET", "", NULL, "the address of the request is not one of http:// or https://"},
    {"GET", "127.0.0.1/", NULL, "the address of the request is not one of http:// or https://"},
    {"GET", "file:///etc/passwd", NULL, "the address of the request is not one of http:// or https://"},
    {"GET", "ftp://127.0.0.1/", NULL, "the address of the request is not one of http:// or https://"},
    {"GET", "http://", NULL, "the address of the request is not one of http:// or https://"},
    {"GET", "http://127.0.0.1:99999/", NULL, "the address of the request is not one of http:// or https://"},
    {"GET", "http://127.0.0.1/a b", NULL, "the address of the request is not one of http:// or https://"},
    {"GET", "http://127.0.0.1/\r\nX: y", NULL, "the address of the request is not one of http:// or https://"},
};

START_TEST(what_can_not_be_sent_is_refused)
{
    struct rv_http_request req = get(&w, "/");
    struct rv_http_events events = {0};
    rv_http_call *call = NULL;
    rv_err *err = NULL;

    req.method = refused[_i].method;
    if (refused[_i].url)
        req.url = refused[_i].url;
    req.headers = &refused[_i].header;
    req.n_headers = refused[_i].header ? 1 : 0;
    ck_assert_int_eq(rv_http_start(w.http, &req, &events, &call, &err), RV_E_INVALID);
    ck_assert_ptr_null(call);
    ck_assert_str_eq(rv_err_text(err), refused[_i].want);
    rv_err_free(err);
    uv_run(&w.loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(w.server.n_connections, 0);
}
END_TEST

/* The test's server stands in for the proxy: it sees whole addresses. */
START_TEST(the_proxy_of_the_environment_is_used_unless_told_otherwise)
{
    struct rv_http_request req = get(&w, "/");
    struct call by_env = {0}, by_request = {0}, none = {0};
    char proxy[60];

    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", w.server.port);
    ck_assert_int_eq(unsetenv("no_proxy") | unsetenv("NO_PROXY") | setenv("http_proxy", proxy, 1), 0);
    req.url = "http://model.invalid/v1";
    req.proxy = NULL;
    fetch(&w, &by_env, &req);
    ck_assert_msg(by_env.end.fault == RV_HTTP_OK, "%s", by_env.text);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&w.server.last), "GET http://model.invalid/v1 HTTP/1.1\r\n"));

    ck_assert_int_eq(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    req.proxy = proxy;
    fetch(&w, &by_request, &req);
    ck_assert_int_eq(by_request.end.fault, RV_HTTP_OK);

    req = get(&w, "/direct");
    fetch(&w, &none, &req);
    ck_assert_int_eq(none.end.fault, RV_HTTP_OK);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&w.server.last), "GET /direct HTTP/1.1\r\n"));
    ck_assert_int_eq(unsetenv("http_proxy"), 0);
}
END_TEST

TCase *request_case(void)
{
    TCase *tc = tcase_create("request");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_request_is_sent_as_asked);
    tcase_add_loop_test(tc, bodies_of_any_size_arrive_without_asking_for_leave, 0, RV_COUNT(methods));
    tcase_add_loop_test(tc, what_can_not_be_sent_is_refused, 0, RV_COUNT(refused));
    tcase_add_test(tc, the_proxy_of_the_environment_is_used_unless_told_otherwise);
    return tc;
}

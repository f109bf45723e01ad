/* Servers that are not there, break off, or do not speak HTTP. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "world.h"

static struct world w;

static void set_up(void)
{
    world_init(&w);
}

static void tear_down(void)
{
    world_fini(&w);
}

/* (The very last byte, a line feed, is not missed.) */
static const char whole[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";

START_TEST(a_connection_that_breaks_anywhere_is_a_cut)
{
    for (size_t n = 0; n < sizeof whole - 2; n++) {
        struct rv_http_request req = get(&w, "/");
        struct call c = {0};

        w.server.answer = (rv_str){whole, n};
        w.server.after = CLOSE;
        fetch(&w, &c, &req);
        ck_assert_msg(c.end.fault == RV_HTTP_CUT || (n < 9 && c.end.fault == RV_HTTP_BAD_ANSWER), "%zu: %d %s", n,
                      c.end.fault, c.text);
        ck_assert(c.end.was_sent);
        ck_assert_uint_le(c.body.len, 5);
        call_fini(&c);
    }
}
END_TEST

static const struct {
    const char *answer;
    enum rv_http_fault fault;
} garbage[] = {
    {"SSH-2.0-OpenSSH_9.2\r\n", RV_HTTP_BAD_ANSWER},
    {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 is not http", RV_HTTP_BAD_ANSWER},
    {"HTTP/1.1 2x0 OK\r\n\r\n", RV_HTTP_BAD_ANSWER},
    {"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n", RV_HTTP_BAD_ANSWER},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", RV_HTTP_CUT},
    {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", RV_HTTP_BAD_ANSWER},
    {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\nnot packed", RV_HTTP_BAD_ANSWER},
    {"HTTP/1.1 200 OK\r\nContent-Encoding: unheard-of\r\nContent-Length: 1\r\n\r\n.", RV_HTTP_BAD_ANSWER},
    {"HTTP/1.1 100 Continue\r\n\r\n", RV_HTTP_CUT},
    {"{\"error\": \"json without a head\"}\n", RV_HTTP_BAD_ANSWER},
};

START_TEST(what_is_not_http_is_a_bad_answer)
{
    struct call c = {0};

    fetch_answer(&w, &c, garbage[_i].answer, CLOSE);
    ck_assert_msg(c.end.fault == garbage[_i].fault, "%d: %s", c.end.fault, c.text);
    ck_assert(c.end.was_sent);
    call_fini(&c);
}
END_TEST

START_TEST(a_refused_port_is_unreachable_and_nothing_was_sent)
{
    struct rv_http_request req = get(&w, "/secret?key=secret");
    const char *headers[] = {"Authorization: Bearer secret"};
    struct call c = {0};
    char origin[40];

    req.headers = headers;
    req.n_headers = 1;
    server_stop_listening(&w.server);
    uv_run(&w.loop, UV_RUN_NOWAIT);
    fetch(&w, &c, &req);
    ck_assert_int_eq(c.end.fault, RV_HTTP_UNREACHABLE);
    ck_assert(!c.end.was_sent);
    ck_assert_int_eq(c.end.connect_us, 0);
    ck_assert_int_eq(c.end.first_byte_us, 0);
    snprintf(origin, sizeof origin, "127.0.0.1:%d: no connection: ", w.server.port);
    ck_assert_msg(strstr(c.text, origin) == c.text, "%s", c.text);
    ck_assert_ptr_null(strstr(c.text, "secret"));
}
END_TEST

START_TEST(a_proxy_that_is_not_there_is_unreachable)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {0};

    req.proxy = "http://127.0.0.1:1";
    fetch(&w, &c, &req);
    ck_assert_int_eq(c.end.fault, RV_HTTP_UNREACHABLE);
    ck_assert(!c.end.was_sent);
    ck_assert_uint_eq(w.server.n_connections, 0);
}
END_TEST

START_TEST(without_descriptors_a_call_ends_and_the_next_one_works)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {0}, again = {0};
    struct rlimit old, none;

    w.server.answer = RV_STR_LIT("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    int next = dup(0);
    close(next);
    none = (struct rlimit){(rlim_t)next, old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    fetch(&w, &c, &req);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    ck_assert_msg(c.end.fault == RV_HTTP_LOCAL, "%d: %s", c.end.fault, c.text);
    ck_assert_ptr_nonnull(strstr(c.text, strerror(EMFILE)));
    ck_assert(!c.end.was_sent);

    fetch(&w, &again, &req);
    ck_assert_int_eq(again.end.fault, RV_HTTP_OK);
}
END_TEST

TCase *broken_case(void)
{
    TCase *tc = tcase_create("broken");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_connection_that_breaks_anywhere_is_a_cut);
    tcase_add_loop_test(tc, what_is_not_http_is_a_bad_answer, 0, RV_COUNT(garbage));
    tcase_add_test(tc, a_refused_port_is_unreachable_and_nothing_was_sent);
    tcase_add_test(tc, a_proxy_that_is_not_there_is_unreachable);
    tcase_add_test(tc, without_descriptors_a_call_ends_and_the_next_one_works);
    return tc;
}

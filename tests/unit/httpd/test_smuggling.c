/* Requests that two readers may read differently, one a row: each is refused, and the connection with it, so that what
 * follows is never taken for a request of its own. */
#include "tests/unit/httpd/world.h"

#include <stdlib.h>

#define GET    "GET /x HTTP/1.1\r\nHost: localhost\r\n"
#define POST   "POST /x HTTP/1.1\r\nHost: localhost\r\n"
#define HIDDEN "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"

static const struct row {
    const char *name;
    rv_str bytes;
    int status;
} rows[] = {
    /* what llhttp 8.1 lets through */
    {"CR and a byte end an empty value", RV_STR_LIT(POST "X:\rATransfer-Encoding: chunked\r\n\r\n"), 400},
    {"CR in a value", RV_STR_LIT(GET "X: a\rb\r\n\r\n"), 400},
    {"LF after the request line", RV_STR_LIT("GET /x HTTP/1.1\nHost: localhost\r\n\r\n"), 400},
    {"LF after a field", RV_STR_LIT(GET "X: a\nY: b\r\n\r\n"), 400},
    {"CRLF LF as the end of the head", RV_STR_LIT(GET "X: a\r\n\n"), 400},
    {"LF LF as the end of the head", RV_STR_LIT("GET /x HTTP/1.1\nHost: localhost\n\n"), 400},
    {"CR CR LF", RV_STR_LIT("GET /x HTTP/1.1\r\r\nHost: localhost\r\n\r\n"), 400},
    {"empty lines first", RV_STR_LIT("\r\n\r\n" GET "\r\n"), 400},
    {"0 CRLF LF as the last chunk", RV_STR_LIT(POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\n"), 400},
    {"0 LF CRLF as the last chunk", RV_STR_LIT(POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\n\r\n"), 400},
    {"a folded field", RV_STR_LIT(GET "X: a\r\n b\r\n\r\n"), 400},
    {"a folded coding", RV_STR_LIT(POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"), 400},
    {"a folded first field", RV_STR_LIT("GET /x HTTP/1.1\r\n Host: localhost\r\n\r\n"), 400},
    {"a space before the colon", RV_STR_LIT(GET "X-A : b\r\n\r\n"), 400},
    {"a tab in a name", RV_STR_LIT(GET "X\tA: b\r\n\r\n"), 400},
    {"an empty name", RV_STR_LIT(GET ": b\r\n\r\n"), 400},
    {"no colon", RV_STR_LIT(GET "X\r\n\r\n"), 400},
    {"no Host", RV_STR_LIT("GET /x HTTP/1.1\r\nX: y\r\n\r\n"), 400},
    {"no field", RV_STR_LIT("GET /x HTTP/1.1\r\n\r\n"), 400},
    {"two Hosts", RV_STR_LIT(GET "Host: localhost\r\n\r\n"), 400},
    {"Host with a path", RV_STR_LIT("GET /x HTTP/1.1\r\nHost: localhost/x\r\n\r\n"), 400},
    {"Host with a user", RV_STR_LIT("GET /x HTTP/1.1\r\nHost: a@localhost\r\n\r\n"), 400},
    {"Host with a comma", RV_STR_LIT("GET /x HTTP/1.1\r\nHost: localhost, evil\r\n\r\n"), 400},
    {"an empty Host", RV_STR_LIT("GET /x HTTP/1.1\r\nHost:\r\n\r\n"), 400},
    {"Host with a port that is not a number", RV_STR_LIT("GET /x HTTP/1.1\r\nHost: localhost:8o\r\n\r\n"), 400},
    {"TE in HTTP/1.0", RV_STR_LIT("POST /x HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
     400},
    {"gzip, chunked", RV_STR_LIT(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 501},
    {",chunked", RV_STR_LIT(POST "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"), 501},
    {"gzip", RV_STR_LIT(POST "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n"), 501},
    {"identity", RV_STR_LIT(POST "Transfer-Encoding: identity\r\n\r\n"), 501},
    {"chunked twice", RV_STR_LIT(POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"), 501},
    {"chunked;q=1", RV_STR_LIT(POST "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"), 501},
    {"xchunked", RV_STR_LIT(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), 501},
    {"chunked in quotes", RV_STR_LIT(POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"), 501},
    {"two codings", RV_STR_LIT(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400},
    {"a compressed body", RV_STR_LIT(POST "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"), 415},
    {"a compressed body in chunks",
     RV_STR_LIT(POST "Content-Encoding: br\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), 415},
    {"two codings of a body",
     RV_STR_LIT(POST "Content-Encoding: identity\r\nContent-Encoding: x\r\nContent-Length: 3\r\n\r\nabc"), 415},
    {"HTTP/0.9", RV_STR_LIT("GET /x\r\n\r\n"), 400},
    {"no version", RV_STR_LIT("GET /x \r\nHost: localhost\r\n\r\n"), 400},
    {"HTTP/2.0", RV_STR_LIT("GET /x HTTP/2.0\r\nHost: localhost\r\n\r\n"), 505},
    {"HTTP/1.2", RV_STR_LIT("GET /x HTTP/1.2\r\nHost: localhost\r\n\r\n"), 505},
    {"HTTP/0.9 as a version", RV_STR_LIT("GET /x HTTP/0.9\r\nHost: localhost\r\n\r\n"), 505},
    {"HTTP/1.10", RV_STR_LIT("GET /x HTTP/1.10\r\nHost: localhost\r\n\r\n"), 400},
    {"http/1.1", RV_STR_LIT("GET /x http/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"RTSP", RV_STR_LIT("DESCRIBE /x RTSP/1.0\r\nHost: localhost\r\n\r\n"), 501},
    {"ICE", RV_STR_LIT("SOURCE /x ICE/1.0\r\nHost: localhost\r\n\r\n"), 501},
    {"the preface of HTTP/2", RV_STR_LIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 501},
    {"a method in lower case", RV_STR_LIT("get /x HTTP/1.1\r\nHost: localhost\r\n\r\n"), 501},
    {"an unknown method", RV_STR_LIT("BREW /x HTTP/1.1\r\nHost: localhost\r\n\r\n"), 501},
    {"CONNECT", RV_STR_LIT("CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405},
    {"TRACE", RV_STR_LIT("TRACE /x HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405},
    {"two spaces", RV_STR_LIT("GET  /x HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"a space in the target", RV_STR_LIT("GET /x y HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"a tab in the target", RV_STR_LIT("GET /x\ty HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"8 bits in the target", RV_STR_LIT("GET /\xc3\xa4 HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"< in the target", RV_STR_LIT("GET /<x> HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"a quote in the target", RV_STR_LIT("GET /\"x HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"a backslash in the target", RV_STR_LIT("GET /..\\x HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"a fragment", RV_STR_LIT("GET /x#y HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"%00", RV_STR_LIT("GET /x%00y HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"%00 in the query", RV_STR_LIT("GET /x?y=%00 HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"..", RV_STR_LIT("GET /x/../y HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"%2e%2e", RV_STR_LIT("GET /x/%2e%2E/y HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {".", RV_STR_LIT("GET /. HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"//", RV_STR_LIT("GET //x HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"% without digits", RV_STR_LIT("GET /%4 HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"%c3%28, which is not UTF-8", RV_STR_LIT("GET /%c3%28 HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"%ff in the query", RV_STR_LIT("GET /?%ff HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"*", RV_STR_LIT("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"no slash", RV_STR_LIT("GET x HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"no target", RV_STR_LIT("GET  HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"another host in the target", RV_STR_LIT("GET http://evil/x HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"another scheme in the target", RV_STR_LIT("GET file://localhost/x HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"a host alone as the target", RV_STR_LIT("GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"a trailer", RV_STR_LIT(POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n"), 400},
    {"Content-Length as a trailer",
     RV_STR_LIT(POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nContent-Length: 1\r\n\r\n"), 400},
    /* what llhttp refuses, too */
    {"CL and TE", RV_STR_LIT(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400},
    {"TE and CL", RV_STR_LIT(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"), 400},
    {"two equal CL", RV_STR_LIT(POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), 400},
    {"two CL", RV_STR_LIT(POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"), 400},
    {"a list as CL", RV_STR_LIT(POST "Content-Length: 3, 3\r\n\r\nabc"), 400},
    {"+3 as CL", RV_STR_LIT(POST "Content-Length: +3\r\n\r\nabc"), 400},
    {"-3 as CL", RV_STR_LIT(POST "Content-Length: -3\r\n\r\nabc"), 400},
    {"hex as CL", RV_STR_LIT(POST "Content-Length: 0x3\r\n\r\nabc"), 400},
    {"an empty CL", RV_STR_LIT(POST "Content-Length:\r\n\r\nabc"), 400},
    {"CL above 2^64", RV_STR_LIT(POST "Content-Length: 18446744073709551619\r\n\r\nabc"), 400},
    {"CL with a space inside", RV_STR_LIT(POST "Content-Length: 3 3\r\n\r\nabc"), 400},
    {"a space before the colon of CL", RV_STR_LIT(POST "Content-Length : 3\r\n\r\nabc"), 400},
    {"NUL in a value", RV_STR_LIT(GET "X: a\0b\r\n\r\n"), 400},
    {"NUL in the target", RV_STR_LIT("GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400},
    {"DEL in a value", RV_STR_LIT(GET "X: a\x7f\r\n\r\n"), 400},
    {"a signed chunk", RV_STR_LIT(POST "Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n"), 400},
    {"a chunk with a space", RV_STR_LIT(POST "Transfer-Encoding: chunked\r\n\r\n 3\r\nabc\r\n0\r\n\r\n"), 400},
    {"0x3 as a chunk", RV_STR_LIT(POST "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n"), 400},
    {"LF behind the size", RV_STR_LIT(POST "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n"), 400},
    {"a chunk above 2^64", RV_STR_LIT(POST "Transfer-Encoding: chunked\r\n\r\n10000000000000003\r\nabc\r\n0\r\n\r\n"),
     400},
    {"a chunk with a wrong end", RV_STR_LIT(POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n"), 400},
    {"an empty size", RV_STR_LIT(POST "Transfer-Encoding: chunked\r\n\r\n\r\nabc\r\n0\r\n\r\n"), 400},
    {"TLS", RV_STR_LIT("\x16\x03\x01\x02\x00\x01"), 400},
};

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

/* Sends bytes, and behind them a request that must not be answered. */
static void check(const struct row *r, size_t step)
{
    struct client c;

    client_open(&w, &c);
    for (size_t at = 0; at < r->bytes.len && !c.is_over; at += step)
        client_send(&c, (rv_str){r->bytes.ptr + at, step < r->bytes.len - at ? step : r->bytes.len - at});
    if (!c.is_over)
        client_text(&c, HIDDEN);
    ck_assert_msg(status_of(rv_buf_cstr(&c.got)) == r->status, "%s: not %d: %s", r->name, r->status,
                  rv_buf_cstr(&c.got));
    ck_assert_msg(n_answers(rv_buf_cstr(&c.got)) == 1, "%s: more than one answer: %s", r->name, rv_buf_cstr(&c.got));
    ck_assert_msg(c.is_over, "%s: the connection goes on", r->name);
    client_close(&c);
}

START_TEST(refuses_what_can_be_read_in_two_ways)
{
    struct rv_httpd_counts counts;

    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        check(&rows[i], rows[i].bytes.len);
        check(&rows[i], 1);
    }
    rv_httpd_copy_counts(w.server, &counts);
    ck_assert_uint_eq(counts.refused, 2 * RV_COUNT(rows));
    ck_assert_ptr_null(strstr(rv_buf_cstr(&w.access), "/hello"));
}
END_TEST

/* The opposite: what must pass. */
START_TEST(takes_what_can_be_read_in_one_way)
{
    static const rv_str right[] = {
        RV_STR_LIT("GET http://localhost/x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        RV_STR_LIT("GET HTTP://LOCALHOST:80/x HTTP/1.1\r\nHost: localhost:80\r\n\r\n"),
        RV_STR_LIT("GET /x?a={b}|[c]^`~!$'()*,;:@ HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        RV_STR_LIT("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"),
        RV_STR_LIT("GET / HTTP/1.1\r\nHost: 127.1.2.3\r\n\r\n"),
        RV_STR_LIT("GET / HTTP/1.1\r\nhOsT:localhost\r\nX:\r\nY: \t \r\nZ: \xc3\xa4\xff\r\n\r\n"),
        RV_STR_LIT("GET / HTTP/1.1\r\nHost: localhost\r\nX: a, \"b\\\"c\"; d=e\tf\r\n\r\n"),
        RV_STR_LIT("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"),
        RV_STR_LIT("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0003\r\n\r\nabc"),
        RV_STR_LIT("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        RV_STR_LIT("DELETE /a/b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
                   "Chunked\r\n\r\n00A;a=b\r\n0123456789\r\n0\r\n\r\n"),
    };

    for (size_t i = 0; i < RV_COUNT(right); i++) {
        char *got = world_ask(&w, right[i]);
        ck_assert_msg(status_of(got) == 200, "%s\n%s", right[i].ptr, got);
        free(got);
    }
}
END_TEST

static char *ask_host(const char *host)
{
    char text[200];

    (void)snprintf(text, sizeof text, "GET /hello HTTP/1.1\r\nHost: %s\r\n\r\n", host);
    return world_ask(&w, rv_str_of(text));
}

START_TEST(answers_for_loopback_names_only_on_loopback)
{
    static const char *const ours[] = {"localhost",    "LOCALHOST:1", "localhost.",
                                       "127.0.0.1:80", "127.255.0.1", "[::1]"};
    static const char *const others[] = {
        "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0", "xlocalhost"};

    for (size_t i = 0; i < RV_COUNT(ours); i++) {
        char *got = ask_host(ours[i]);
        ck_assert_msg(status_of(got) == 200, "%s: %s", ours[i], got);
        free(got);
    }
    for (size_t i = 0; i < RV_COUNT(others); i++) {
        char *got = ask_host(others[i]);
        ck_assert_msg(status_of(got) == 421, "%s: %s", others[i], got);
        free(got);
    }
}
END_TEST

START_TEST(answers_for_the_hosts_that_it_is_given)
{
    static const char *const names[] = {"reeve.example", "10.0.0.1"};
    char *got;

    world_fini(&w);
    world_init(&w);
    w.opts.hosts = names;
    w.opts.n_hosts = 2;
    world_listen(&w);
    got = ask_host("Reeve.Example:443");
    ck_assert_int_eq(status_of(got), 200);
    free(got);
    got = ask_host("localhost");
    ck_assert_int_eq(status_of(got), 421);
    free(got);
}
END_TEST

TCase *smuggling_case(void)
{
    TCase *tc = tcase_create("smuggling");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, refuses_what_can_be_read_in_two_ways);
    tcase_add_test(tc, takes_what_can_be_read_in_one_way);
    tcase_add_test(tc, answers_for_loopback_names_only_on_loopback);
    tcase_add_test(tc, answers_for_the_hosts_that_it_is_given);
    return tc;
}

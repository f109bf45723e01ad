/* Limits of time, each on its own. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

#define MS 1000

static struct world w;

static void set_up(void)
{
    world_init(&w);
}

static void tear_down(void)
{
    world_fini(&w);
}

static void expect(struct call *c, enum rv_http_fault fault, int64_t at_least_us)
{
    ck_assert_msg(c->end.fault == fault, "%d: %s", c->end.fault, c->text);
    ck_assert_int_ge(c->end.total_us, at_least_us);
}

/* Proves 12.3/times: Connecting, the first byte, silence and the whole each have their limit, and the error names
 * its key */
START_TEST(a_server_that_never_answers)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {0};

    req.first_byte_us = 50 * MS;
    time_stands();
    begin(&w, &c, &req);
    run_until(&w, &w.server.n_requests, 1);
    time_passes(50 * MS);
    run_all(&w);
    expect(&c, RV_HTTP_FIRST_BYTE_TIME, 50 * MS);
    ck_assert(c.end.was_sent);
    ck_assert_int_gt(c.end.connect_us, 0);
    ck_assert_int_eq(c.end.first_byte_us, 0);
    ck_assert_ptr_nonnull(strstr(c.text, ": no answer within 50 ms"));
}
END_TEST

START_TEST(an_interim_answer_is_not_the_first_byte)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {0};

    req.first_byte_us = 40 * MS;
    w.server.answer = RV_STR_LIT("HTTP/1.1 102 Processing\r\n\r\n");
    fetch(&w, &c, &req);
    expect(&c, RV_HTTP_FIRST_BYTE_TIME, 40 * MS);
    ck_assert_uint_eq(c.n_heads, 0);
}
END_TEST

static const char *const halves[] = {
    "HTTP/1.1 200 OK\r\nContent-Le",
    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
};

/* Proves 12.3/times */
START_TEST(an_answer_that_stops)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {0};

    req.idle_us = 40 * MS;
    req.first_byte_us = 10000 * MS;
    w.server.answer = rv_str_of(halves[_i]);
    fetch(&w, &c, &req);
    if (_i == 0) /* half a line is not seen: it is no answer yet */
        expect(&c, RV_HTTP_IDLE_TIME, 40 * MS);
    else
        expect(&c, RV_HTTP_IDLE_TIME, c.end.first_byte_us + 40 * MS);
    ck_assert(c.end.was_sent);
    call_fini(&c);
}
END_TEST

#define IDLE  (200 * MS)
#define TOTAL (600 * MS)

/* The head of an answer has come; then a byte comes now and then, and the client reads each. Each gap is shorter than
 * one limit, all together are as long as the other. */
static void come_slowly(struct call *c, rv_str head, const char *byte)
{
    struct rv_http_request req = get(&w, "/");

    time_stands();
    req.idle_us = IDLE;
    req.total_us = TOTAL;
    w.server.answer = head;
    begin(&w, c, &req);
    run_until(&w, &c->n_heads, 1);
    for (int64_t us = 0; us < TOTAL; us += IDLE / 4) {
        server_write(&w.server, byte);
        run_until_read(&w);
        time_passes(IDLE / 4);
    }
    run_all(&w);
    expect(c, RV_HTTP_TOTAL_TIME, TOTAL);
    ck_assert_int_eq(c->end.total_us, TOTAL);
}

START_TEST(a_slow_answer_that_goes_on_is_not_idle)
{
    struct call c = {0};

    come_slowly(&c, RV_STR_LIT("HTTP/1.1 200 OK\r\n\r\n"), ".");
    ck_assert_uint_eq(c.body.len, TOTAL / (IDLE / 4));
    call_fini(&c);
}
END_TEST

/* A packed answer whose name of the file within never ends: bytes come, no part does. */
START_TEST(bytes_that_unpack_to_nothing_are_not_silence)
{
    struct call c = {0};

    come_slowly(&c,
                RV_STR_LIT("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
                           "\x1f\x8b\x08\x08\x01\x01\x01\x01\x02\x03"),
                "x");
    ck_assert_uint_eq(c.n_parts, 0);
}
END_TEST

/* Proves 12.3/times */
START_TEST(an_endless_answer)
{
    static char many[4096];
    struct rv_http_request req = get(&w, "/");
    struct call c = {0};

    w.server.answer = RV_STR_LIT("HTTP/1.1 200 OK\r\n\r\n");
    w.server.more = (rv_str){memset(many, 'x', sizeof many), sizeof many};
    w.server.after = ENDLESS;
    if (_i == 0) {
        req.max_body = 100000;
        fetch(&w, &c, &req);
        ck_assert_int_eq(c.end.fault, RV_HTTP_TOO_LARGE);
        ck_assert_uint_le(c.body.len, 100000);
    } else {
        req.total_us = 50 * MS;
        fetch(&w, &c, &req);
        expect(&c, RV_HTTP_TOTAL_TIME, 50 * MS);
    }
    call_fini(&c);
}
END_TEST

/* A port whose queue of connections is full: the next one is neither taken nor refused. */
START_TEST(a_server_that_does_not_take_the_connection)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), fillers[8];
    struct rv_http_request req;
    struct call c = {0};
    char url[60];

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 0), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    for (size_t i = 0; i < RV_COUNT(fillers); i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        ck_assert(connect(fillers[i], (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS);
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    req = (struct rv_http_request){.method = "GET", .url = url, .proxy = "", .connect_us = 50 * MS};
    if (_i == 1)
        req = (struct rv_http_request){.method = "GET", .url = url, .proxy = "", .total_us = 50 * MS};
    fetch(&w, &c, &req);
    expect(&c, _i == 0 ? RV_HTTP_CONNECT_TIME : RV_HTTP_TOTAL_TIME, 49 * MS);
    ck_assert(!c.end.was_sent);
    ck_assert_int_eq(c.end.connect_us, 0);
    for (size_t i = 0; i < RV_COUNT(fillers); i++)
        close(fillers[i]);
    close(listener);
}
END_TEST

/* Many calls with limits in no order, some taken out of their middle: they end in order. They all start at one moment.
 */
static struct call calls[60];
static int64_t latest_us;

static int64_t limit_of(const struct call *c)
{
    return (200 + (c - calls) * 37 % 60 * 5) * MS;
}

static void check_order(struct call *c)
{
    ck_assert_int_gt(limit_of(c), latest_us);
    latest_us = limit_of(c);
}

START_TEST(limits_of_many_calls_come_up_in_order)
{
    struct rv_http_request req = get(&w, "/");
    size_t n_ends = 0;

    time_stands();
    latest_us = 0;
    for (size_t i = 0; i < RV_COUNT(calls); i++) {
        calls[i] = (struct call){.on_end = check_order};
        req.total_us = limit_of(&calls[i]);
        begin(&w, &calls[i], &req);
    }
    run_until(&w, &w.server.n_requests, RV_COUNT(calls)); /* from here each has its place */
    for (size_t i = 0; i < RV_COUNT(calls); i += 3)
        cancel(&calls[i]);
    time_passes(1000 * MS);
    run_all(&w);
    for (size_t i = 0; i < RV_COUNT(calls); i++) {
        n_ends += calls[i].n_ends;
        if (i % 3 != 0)
            expect(&calls[i], RV_HTTP_TOTAL_TIME, limit_of(&calls[i]));
    }
    ck_assert_uint_eq(n_ends, 40);
}
END_TEST

TCase *limits_case(void)
{
    TCase *tc = tcase_create("limits");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_server_that_never_answers);
    tcase_add_test(tc, an_interim_answer_is_not_the_first_byte);
    tcase_add_loop_test(tc, an_answer_that_stops, 0, RV_COUNT(halves));
    tcase_add_test(tc, a_slow_answer_that_goes_on_is_not_idle);
    tcase_add_test(tc, bytes_that_unpack_to_nothing_are_not_silence);
    tcase_add_loop_test(tc, an_endless_answer, 0, 2);
    tcase_add_loop_test(tc, a_server_that_does_not_take_the_connection, 0, 2);
    tcase_add_test(tc, limits_of_many_calls_come_up_in_order);
    return tc;
}

/* Limits of bytes, numbers and time, each just kept and just broken. */
#include "tests/unit/httpd/world.h"

#include <stdlib.h>
#include <unistd.h>

#define S INT64_C(1000000)

static struct world w;
static struct client c;
static rv_buf text;

static void setup(void)
{
    world_init(&w);
    rv_buf_init(&text, (size_t)64 << 20);
}

static void listen_now(void)
{
    world_listen(&w);
    client_open(&w, &c);
}

static void teardown(void)
{
    client_close(&c);
    rv_buf_fini(&text);
    world_fini(&w);
}

static void again(void)
{
    client_close(&c);
    client_open(&w, &c);
    rv_buf_clear(&text);
}

static void put(char byte, size_t n)
{
    while (n-- > 0)
        rv_buf_putc(&text, byte);
}

/* Sends the text; the status of the answer. */
static int ask(void)
{
    client_send(&c, rv_buf_str(&text));
    return status_of(rv_buf_cstr(&c.got));
}

START_TEST(limits_the_head)
{
    listen_now();
    for (size_t over = 0; over < 2; over++) {
        rv_buf_puts(&text, "GET /hello HTTP/1.1\r\nHost: localhost\r\nX: ");
        put('x', w.opts.limits.max_head - text.len - 4 + over);
        rv_buf_puts(&text, "\r\n\r\n");
        ck_assert_int_eq(ask(), over ? 431 : 200);
        again();
    }
    rv_buf_puts(&text, "GET /hello HTTP/1.1\r\nHost: localhost\r\nX: ");
    put('x', 1000000); /* without an end */
    ck_assert_int_eq(ask(), 431);
    again();
    rv_buf_puts(&text, "GET /hello HTTP/1.1\r\nHost: localhost\r\n");
    for (int i = 0; i < 100000; i++)
        rv_buf_puts(&text, "X: y\r\n");
    ck_assert_int_eq(ask(), 431);
    ck_assert_uint_eq(n_answers(rv_buf_cstr(&c.got)), 1);
}
END_TEST

START_TEST(limits_the_number_of_fields)
{
    listen_now();
    for (size_t over = 0; over < 2; over++) {
        rv_buf_puts(&text, "GET /hello HTTP/1.1\r\nHost: localhost\r\n");
        for (size_t i = 0; i < w.opts.limits.max_fields - 1 + over; i++)
            rv_buf_printf(&text, "X-%zu: y\r\n", i);
        rv_buf_puts(&text, "\r\n");
        ck_assert_int_eq(ask(), over ? 431 : 200);
        again();
    }
}
END_TEST

START_TEST(limits_the_target)
{
    listen_now();
    for (size_t over = 0; over < 2; over++) {
        rv_buf_puts(&text, "GET /");
        put('x', w.opts.limits.max_target - 1 + over);
        rv_buf_puts(&text, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
        ck_assert_int_eq(ask(), over ? 414 : 200);
        again();
    }
    rv_buf_puts(&text, "GET /");
    put('x', 100000);
    ck_assert_int_eq(ask(), 414);
}
END_TEST

START_TEST(limits_bodies_by_route)
{
    static const struct {
        const char *path;
        size_t max;
    } routes[] = {{"small", 10}, {"x", (size_t)1 << 20}, {"large", (size_t)10 << 20}};

    listen_now();
    for (size_t over = 0; over < 2; over++) {
        rv_buf_printf(&text, "POST /%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", routes[_i].path,
                      routes[_i].max + over);
        put('x', routes[_i].max + over);
        ck_assert_int_eq(ask(), over ? 413 : 200);
        again();
        rv_buf_printf(&text, "POST /%s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n",
                      routes[_i].path, routes[_i].max + over);
        put('x', routes[_i].max + over);
        rv_buf_puts(&text, "\r\n0\r\n\r\n");
        ck_assert_int_eq(ask(), over ? 413 : 200);
        again();
    }
}
END_TEST

START_TEST(limits_what_chunks_say_about_themselves)
{
    static const char *const extensions[] = {"a", "a=b;", "0"};

    listen_now();
    rv_buf_printf(&text, "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%s",
                  _i < 2 ? "3;" : "");
    for (int i = 0; i < 100000; i++)
        rv_buf_puts(&text, extensions[_i]);
    rv_buf_puts(&text, _i < 2 ? "\r\nabc\r\n0\r\n\r\n" : "3\r\nabc\r\n0\r\n\r\n");
    ck_assert_int_eq(ask(), 400);
    again();
    rv_buf_puts(&text, "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 50000; i++) /* small chunks alone are right */
        rv_buf_puts(&text, "1\r\nx\r\n");
    rv_buf_puts(&text, "0\r\n\r\n");
    ck_assert_int_eq(ask(), 200);
}
END_TEST

START_TEST(closes_a_connection_that_never_speaks)
{
    struct rv_httpd_counts counts;

    listen_now();
    world_pass(&w, 10 * S - 1);
    client_look(&c);
    ck_assert(!c.is_over);
    world_pass(&w, 1);
    client_look(&c);
    ck_assert(c.is_over);
    ck_assert_str_eq(rv_buf_cstr(&c.got), "");
    rv_httpd_copy_counts(w.server, &counts);
    ck_assert_uint_eq(counts.connections, 0);
    ck_assert_uint_eq(counts.dropped, 1);
}
END_TEST

START_TEST(limits_the_time_of_a_head)
{
    listen_now();
    client_text(&c, "GET /hello HTTP/1.1\r\n");
    for (int i = 0; i < 9; i++) { /* a byte a second does not help */
        world_pass(&w, S);
        client_text(&c, "X");
    }
    ck_assert(!c.is_over);
    world_pass(&w, S);
    client_look(&c);
    ck_assert_int_eq(status_of(rv_buf_cstr(&c.got)), 408);
    ck_assert(c.is_over);
}
END_TEST

START_TEST(limits_the_time_of_a_second_head_from_its_first_byte)
{
    listen_now();
    client_text(&c, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    world_pass(&w, 70 * S);
    client_text(&c, "GET /hello HTTP/1.1\r\n");
    world_pass(&w, 9 * S);
    client_look(&c);
    ck_assert(!c.is_over);
    world_pass(&w, 1 * S);
    client_look(&c);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&c.got), "408 Request Timeout"));
}
END_TEST

START_TEST(limits_the_time_between_requests)
{
    listen_now();
    client_text(&c, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    world_pass(&w, 75 * S - 1);
    client_look(&c);
    ck_assert(!c.is_over);
    world_pass(&w, 1);
    client_look(&c);
    ck_assert(c.is_over);
    ck_assert_uint_eq(n_answers(rv_buf_cstr(&c.got)), 1);
}
END_TEST

START_TEST(limits_how_slowly_a_body_comes)
{
    listen_now();
    client_text(&c, "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
    put('x', 2048);
    for (int i = 0; i < 20; i++) { /* twice as fast as it has to be */
        world_pass(&w, 1 * S);
        client_send(&c, rv_buf_str(&text));
    }
    ck_assert_str_eq(rv_buf_cstr(&c.got), "");
    world_pass(&w, 20 * S - 1); /* 40 KiB last for 40 seconds */
    client_look(&c);
    ck_assert_str_eq(rv_buf_cstr(&c.got), "");
    world_pass(&w, 1);
    client_look(&c);
    ck_assert_int_eq(status_of(rv_buf_cstr(&c.got)), 408);
    again();
    client_text(&c, "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nab");
    world_pass(&w, 10 * S - 1);
    client_look(&c);
    ck_assert_str_eq(rv_buf_cstr(&c.got), "");
    world_pass(&w, 1);
    client_look(&c);
    ck_assert_int_eq(status_of(rv_buf_cstr(&c.got)), 408);
}
END_TEST

START_TEST(limits_how_long_a_client_takes_nothing)
{
    listen_now();
    client_text(&c, "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
    rv_httpd_begin(w.x, &(struct rv_httpd_answer){.status = 200});
    put('x', 250000);
    while (rv_httpd_write(w.x, rv_buf_str(&text)) == 0) {
    }
    char room[50000];
    world_pass(&w, 59 * S);
    while (read(c.fd, room, sizeof room) > 0) { /* what there is */
    }
    world_run(&w);
    ck_assert(!rv_httpd_is_gone(w.x));
    while (rv_httpd_write(w.x, rv_buf_str(&text)) == 0) {
    }
    world_pass(&w, 1 * S); /* 60 seconds since the first byte that waited */
    ck_assert(!rv_httpd_is_gone(w.x));
    /* On a busy machine the system moves bytes to the client's side later, perhaps all of them: then more are written.
     */
    for (int i = 0; i < 50 && !strstr(rv_buf_cstr(&w.told), "gone:"); i++) {
        while (rv_httpd_write(w.x, rv_buf_str(&text)) == 0) {
        }
        world_pass(&w, 60 * S);
    }
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&w.told), "gone:slow "));
}
END_TEST

START_TEST(limits_the_connections_of_a_peer)
{
    struct client more;

    w.opts.limits.max_per_peer = 2;
    listen_now();
    client_open(&w, &more);
    char *got = world_ask(&w, RV_STR_LIT("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    ck_assert_int_eq(status_of(got), 429);
    ck_assert_ptr_nonnull(strstr(got, "\r\nRetry-After: 1\r\n"));
    ck_assert_ptr_nonnull(strstr(got, "\r\nX-Request-Id: req_"));
    ck_assert_ptr_nonnull(strstr(body_of(got), "this address has all the connections"));
    free(got);
    client_close(&more);
    got = world_ask(&w, RV_STR_LIT("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    ck_assert_int_eq(status_of(got), 200);
    free(got);
}
END_TEST

static bool is_proxy(void *self, const struct rv_address *peer)
{
    (void)self;
    return rv_address_is_loopback(peer);
}

START_TEST(does_not_limit_the_connections_of_a_proxy)
{
    w.opts.limits.max_per_peer = 1;
    w.opts.handler.is_proxy = is_proxy;
    listen_now();
    char *got = world_ask(&w, RV_STR_LIT("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    ck_assert_int_eq(status_of(got), 200);
    free(got);
}
END_TEST

START_TEST(limits_all_connections)
{
    w.opts.limits.max_connections = 1;
    listen_now();
    char *got = world_ask(&w, RV_STR_LIT("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    ck_assert_int_eq(status_of(got), 503);
    ck_assert_ptr_nonnull(strstr(got, "\r\nRetry-After: 1\r\n"));
    ck_assert_ptr_nonnull(strstr(body_of(got), "the server has all the connections"));
    free(got);
    client_text(&c, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ck_assert_int_eq(status_of(rv_buf_cstr(&c.got)), 200);
}
END_TEST

START_TEST(limits_the_memory_of_all_bodies)
{
    struct client held, reading;
    struct rv_httpd_counts counts;

    w.opts.limits.max_bodies = 300000;
    listen_now();
    put('x', 90000);
    client_open(&w, &held);
    client_text(&held, "POST /later HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000\r\n\r\n");
    client_send(&held, rv_buf_str(&text)); /* whole, without an answer */
    client_open(&w, &reading);
    client_text(&reading, "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90001\r\n\r\n");
    client_send(&reading, rv_buf_str(&text)); /* but for the last byte */
    client_text(&c, "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000\r\n\r\n");
    client_send(&c, rv_buf_str(&text));
    ck_assert_int_eq(status_of(rv_buf_cstr(&c.got)), 503);
    rv_httpd_copy_counts(w.server, &counts);
    ck_assert_uint_eq(counts.dropped, 1);
    client_close(&reading);
    rv_httpd_begin(w.x, &(struct rv_httpd_answer){.status = 200}); /* lets its body go */
    for (int i = 0; i < 5; i++) {
        client_close(&c);
        client_open(&w, &c);
        client_text(&c, "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90000\r\n\r\n");
        client_send(&c, rv_buf_str(&text));
        ck_assert_int_eq(status_of(rv_buf_cstr(&c.got)), 200);
    }
    rv_httpd_end(w.x);
    client_close(&held);
}
END_TEST

/* A client that sends and sends while it is answered is not read without end. */
START_TEST(limits_what_comes_during_an_answer)
{
    listen_now();
    client_text(&c, "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
    put('x', 1000);
    size_t sent = 0;
    for (int i = 0; i < 100000; i++) {
        ssize_t n = write(c.fd, text.ptr, text.len);
        if (n < 0)
            break;
        sent += (size_t)n;
        c.n_sent += (uint64_t)n;
        uv_run(&w.loop, UV_RUN_NOWAIT);
    }
    ck_assert_uint_lt(sent, 50000000);
    rv_httpd_reply(w.x, &(struct rv_httpd_answer){.status = 200, .body = RV_STR_LIT("y")});
    client_look(&c);
    ck_assert_int_eq(status_of(rv_buf_cstr(&c.got)), 200);
    ck_assert(c.is_over);
}
END_TEST

START_TEST(refuses_limits_that_make_no_sense)
{
    rv_httpd *s = NULL;
    rv_err *err = NULL;
    struct rv_httpd_opts opts = w.opts;

    opts.limits.max_head = 10;
    ck_assert_int_eq(rv_httpd_new(&opts, &s, &err), RV_E_INVALID);
    rv_err_free(err);
    err = NULL;
    opts = w.opts;
    opts.limits.head_us = 0;
    ck_assert_int_eq(rv_httpd_new(&opts, &s, &err), RV_E_INVALID);
    rv_err_free(err);
    listen_now();
}
END_TEST

TCase *limits_case(void)
{
    TCase *tc = tcase_create("limits");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, limits_the_head);
    tcase_add_test(tc, limits_the_number_of_fields);
    tcase_add_test(tc, limits_the_target);
    tcase_add_loop_test(tc, limits_bodies_by_route, 0, 3);
    tcase_add_loop_test(tc, limits_what_chunks_say_about_themselves, 0, 3);
    tcase_add_test(tc, closes_a_connection_that_never_speaks);
    tcase_add_test(tc, limits_the_time_of_a_head);
    tcase_add_test(tc, limits_the_time_of_a_second_head_from_its_first_byte);
    tcase_add_test(tc, limits_the_time_between_requests);
    tcase_add_test(tc, limits_how_slowly_a_body_comes);
    tcase_add_test(tc, limits_how_long_a_client_takes_nothing);
    tcase_add_test(tc, limits_the_connections_of_a_peer);
    tcase_add_test(tc, does_not_limit_the_connections_of_a_proxy);
    tcase_add_test(tc, limits_all_connections);
    tcase_add_test(tc, limits_the_memory_of_all_bodies);
    tcase_add_test(tc, limits_what_comes_during_an_answer);
    tcase_add_test(tc, refuses_limits_that_make_no_sense);
    return tc;
}

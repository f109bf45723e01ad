/* Many calls: connections used again, in parallel, cancelled at any time, started and cancelled from callbacks. */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define MS 1000

static struct world w;

static const char hello[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
static const char stalled[] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";

static void set_up(void)
{
    world_init(&w);
    w.server.answer = rv_str_of(hello);
}

static void tear_down(void)
{
    world_fini(&w);
}

START_TEST(one_connection_serves_a_hundred_requests)
{
    for (int i = 0; i < 100; i++) {
        struct rv_http_request req = get(&w, "/");
        struct call c = {0};

        req.method = "POST";
        req.body = RV_STR_LIT("body");
        fetch(&w, &c, &req);
        ck_assert_int_eq(c.end.fault, RV_HTTP_OK);
        ck_assert_str_eq(rv_buf_cstr(&c.body), "hello");
        call_fini(&c);
    }
    ck_assert_uint_eq(w.server.n_requests, 100);
    ck_assert_uint_eq(w.server.n_connections, 1);
}
END_TEST

START_TEST(a_kept_connection_that_the_server_closed_is_replaced)
{
    for (int i = 0; i < 10; i++) {
        struct rv_http_request req = get(&w, "/");
        struct call c = {0};

        req.method = "POST";
        req.body = RV_STR_LIT("body");
        fetch(&w, &c, &req);
        ck_assert_msg(c.end.fault == RV_HTTP_OK, "%s", c.text);
        call_fini(&c);
        server_hang_up(&w.server);
    }
    ck_assert_uint_eq(w.server.n_connections, 10);
}
END_TEST

START_TEST(two_hundred_run_side_by_side_and_their_connections_are_kept)
{
    static struct call calls[200];
    struct rv_http_request req = get(&w, "/");

    for (int round = 0; round < 2; round++) {
        memset(calls, 0, sizeof calls);
        for (size_t i = 0; i < RV_COUNT(calls); i++)
            begin(&w, &calls[i], &req);
        run_all(&w);
        for (size_t i = 0; i < RV_COUNT(calls); i++) {
            ck_assert_msg(calls[i].end.fault == RV_HTTP_OK, "%s", calls[i].text);
            ck_assert_str_eq(rv_buf_cstr(&calls[i].body), "hello");
            call_fini(&calls[i]);
        }
    }
    ck_assert_uint_eq(w.server.n_requests, 400);
    ck_assert_uint_le(w.server.n_connections, 200 + (200 - 64)); /* as many as are kept by default are not made again */
    ck_assert_uint_le(w.server.n_open, 200);
}
END_TEST

/* Many are in use, few may be kept: one that becomes free while the many are busy is still kept. */
START_TEST(connections_in_use_do_not_count_among_those_kept)
{
    static struct call busy[10];
    struct rv_http_request req = get(&w, "/");

    rv_http_free(w.http);
    ck_assert_int_eq(rv_http_new(&(struct rv_http_opts){.loop = &w.loop, .max_connections = 2}, &w.http, NULL), 0);
    w.server.answer = rv_str_of(stalled);
    for (size_t i = 0; i < RV_COUNT(busy); i++) {
        begin(&w, &busy[i], &req);
        run_until(&w, &busy[i].n_parts, 1);
    }
    w.server.answer = rv_str_of(hello);
    for (int i = 0; i < 10; i++) {
        struct call c = {0};

        begin(&w, &c, &req);
        run_until(&w, &c.n_ends, 1);
        call_fini(&c);
    }
    ck_assert_uint_eq(w.server.n_connections, RV_COUNT(busy) + 1);
    for (size_t i = 0; i < RV_COUNT(busy); i++) {
        cancel(&busy[i]);
        call_fini(&busy[i]);
    }
}
END_TEST

static int family_of(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;

    return getsockname(fd, (struct sockaddr *)&address, &len) == 0 ? address.ss_family : AF_UNSPEC;
}

START_TEST(child_processes_do_not_get_connections)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {0};
    int n_sockets = 0;

    w.server.answer = rv_str_of(stalled);
    begin(&w, &c, &req);
    run_until(&w, &c.n_parts, 1);
    for (int fd = 0; fd < 256; fd++)
        if (family_of(fd) == AF_INET) {
            ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
            n_sockets++;
        }
    ck_assert_int_eq(n_sockets, 3); /* the server's two and ours */
    cancel(&c);
    call_fini(&c);
}
END_TEST

/* --- cancelling ----------------------------------------------------------------------------------------------------*/

START_TEST(cancelled_before_the_loop_ran)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {0};

    begin(&w, &c, &req);
    cancel(&c);
    uv_run(&w.loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(w.server.n_requests, 0);
    ck_assert_uint_eq(c.n_ends, 0);
}
END_TEST

START_TEST(cancelled_while_waiting_the_connection_is_closed)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {0};

    w.server.answer = _i == 0 ? RV_STR_LIT("") : rv_str_of(stalled);
    begin(&w, &c, &req);
    if (_i == 0)
        run_until(&w, &w.server.n_requests, 1);
    else
        run_until(&w, &c.n_parts, 1);
    cancel(&c);
    while (w.server.n_open > 0)
        uv_run(&w.loop, UV_RUN_ONCE);
    ck_assert_uint_eq(c.n_ends, 0);
    call_fini(&c);
}
END_TEST

START_TEST(cancelled_on_hold_and_after_resume)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {.hold_after = 1};

    w.server.answer = RV_STR_LIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n");
    begin(&w, &c, &req);
    run_until(&w, &c.n_parts, 1);
    if (_i == 1)
        resume(&c);
    cancel(&c);
    while (w.server.n_open > 0)
        uv_run(&w.loop, UV_RUN_ONCE);
    ck_assert_uint_eq(c.n_parts, 1);
    call_fini(&c);
}
END_TEST

START_TEST(the_client_goes_with_calls_under_way)
{
    static struct call calls[20];
    struct rv_http_request req = get(&w, "/");
    size_t n_heads = 0;

    w.server.answer = rv_str_of(stalled);
    for (size_t i = 0; i < RV_COUNT(calls); i++) {
        calls[i] = (struct call){.hold_after = i % 2};
        begin(&w, &calls[i], &req);
    }
    while (n_heads < RV_COUNT(calls) / 2) {
        uv_run(&w.loop, UV_RUN_ONCE);
        n_heads = 0;
        for (size_t i = 0; i < RV_COUNT(calls); i++)
            n_heads += calls[i].n_heads;
    }
    rv_http_free(w.http);
    w.http = NULL;
    for (size_t i = 0; i < RV_COUNT(calls); i++) {
        ck_assert_uint_eq(calls[i].n_ends, 0);
        call_fini(&calls[i]);
    }
}
END_TEST

/* --- from callbacks ------------------------------------------------------------------------------------------------*/

static void cancel_self(struct call *c)
{
    cancel(c);
}

static void cancel_self_at_end(struct call *c)
{
    rv_http_cancel(c->handle); /* too late, and allowed */
}

START_TEST(a_call_cancels_itself_from_its_own_callback)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {0};

    if (_i == 0)
        c.on_head = cancel_self;
    else if (_i == 1)
        c.on_body = cancel_self;
    else
        c.on_end = cancel_self_at_end;
    if (_i < 2)
        w.server.answer = rv_str_of(stalled);
    fetch(&w, &c, &req);
    uv_run(&w.loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(c.n_parts, _i == 0 ? 0 : 1);
    ck_assert_uint_eq(c.n_ends, _i < 2 ? 0 : 1);
    if (_i < 2)
        while (w.server.n_open > 0)
            uv_run(&w.loop, UV_RUN_ONCE);
    call_fini(&c);
}
END_TEST

static void cancel_other(struct call *c)
{
    if (c->other->handle)
        cancel(c->other);
    free(c->other->body_sent); /* borrowed only until then */
    c->other->body_sent = NULL;
}

/* And frees what that one was sending. */
START_TEST(a_call_cancels_another_from_its_callback)
{
    static const size_t sizes[] = {10, 100000, 4000000};
    struct rv_http_request req = get(&w, "/");
    size_t len = sizes[_i / 3];
    struct call a = {0}, b = {0};
    char *body = malloc(len);

    ck_assert_ptr_nonnull(body);
    a.other = &b;
    b.body_sent = body;
    if (_i % 3 == 0)
        a.on_head = cancel_other;
    else if (_i % 3 == 1)
        a.on_body = cancel_other;
    else
        a.on_end = cancel_other;
    begin(&w, &a, &req);
    req.method = "POST";
    req.body = (rv_str){memset(body, 'x', len), len};
    begin(&w, &b, &req);
    run_all(&w);
    ck_assert_int_eq(a.end.fault, RV_HTTP_OK);
    ck_assert_uint_le(b.n_ends, 1);
    ck_assert_ptr_null(b.body_sent);
    call_fini(&a);
    call_fini(&b);
}
END_TEST

START_TEST(a_call_that_another_cancelled_lets_its_connection_go)
{
    struct call a = {.on_body = cancel_other}, b = {0};
    struct rv_http_request req = get(&w, "/");

    w.server.answer = rv_str_of(stalled);
    a.other = &b;
    begin(&w, &b, &req);
    run_until(&w, &b.n_parts, 1);
    begin(&w, &a, &req);
    while (w.server.n_open != 1 || a.n_parts == 0)
        uv_run(&w.loop, UV_RUN_ONCE);
    cancel(&a);
    call_fini(&a);
    call_fini(&b);
}
END_TEST

static void start_other(struct call *c)
{
    struct rv_http_request req = get(&w, "/");

    begin(&w, c->other, &req);
}

START_TEST(a_call_starts_another_from_its_callback)
{
    struct call a = {0}, b = {0};
    struct rv_http_request req = get(&w, "/");

    a.other = &b;
    if (_i % 3 == 0)
        a.on_head = start_other;
    else if (_i % 3 == 1)
        a.on_body = start_other;
    else
        a.on_end = start_other;
    fetch(&w, &a, &req);
    ck_assert_int_eq(a.end.fault, RV_HTTP_OK);
    ck_assert_int_eq(b.end.fault, RV_HTTP_OK);
    ck_assert_str_eq(rv_buf_cstr(&b.body), "hello");
    ck_assert_uint_eq(b.n_ends, 1);
    call_fini(&a);
    call_fini(&b);
}
END_TEST

static void start_and_cancel_other(struct call *c)
{
    start_other(c);
    cancel(c->other);
}

START_TEST(a_call_that_was_started_in_a_callback_is_cancelled_there)
{
    struct call a = {.on_body = start_and_cancel_other}, b = {0};
    struct rv_http_request req = get(&w, "/");

    a.other = &b;
    fetch(&w, &a, &req);
    uv_run(&w.loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(a.end.fault, RV_HTTP_OK);
    ck_assert_uint_eq(b.n_heads + b.n_ends, 0);
    ck_assert_uint_eq(w.server.n_requests, 1);
    call_fini(&a);
}
END_TEST

TCase *life_case(void)
{
    TCase *tc = tcase_create("life");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, one_connection_serves_a_hundred_requests);
    tcase_add_test(tc, a_kept_connection_that_the_server_closed_is_replaced);
    tcase_add_test(tc, two_hundred_run_side_by_side_and_their_connections_are_kept);
    tcase_add_test(tc, connections_in_use_do_not_count_among_those_kept);
    tcase_add_test(tc, child_processes_do_not_get_connections);
    tcase_add_test(tc, cancelled_before_the_loop_ran);
    tcase_add_loop_test(tc, cancelled_while_waiting_the_connection_is_closed, 0, 2);
    tcase_add_loop_test(tc, cancelled_on_hold_and_after_resume, 0, 2);
    tcase_add_test(tc, the_client_goes_with_calls_under_way);
    tcase_add_loop_test(tc, a_call_cancels_itself_from_its_own_callback, 0, 3);
    tcase_add_loop_test(tc, a_call_cancels_another_from_its_callback, 0, 9);
    tcase_add_test(tc, a_call_that_another_cancelled_lets_its_connection_go);
    tcase_add_loop_test(tc, a_call_starts_another_from_its_callback, 0, 3);
    tcase_add_test(tc, a_call_that_was_started_in_a_callback_is_cancelled_there);
    return tc;
}

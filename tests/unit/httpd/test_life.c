/* Draining, the end of a server, listening, and the log of accesses. */
#include "tests/unit/httpd/world.h"

#include <stdlib.h>
#include <sys/socket.h>

#define S INT64_C(1000000)

static struct world w;
static int n_done;

static void setup(void)
{
    n_done = 0;
    world_init(&w);
    world_listen(&w);
}

static void teardown(void)
{
    world_fini(&w);
}

static void count_done(void *self)
{
    ++*(int *)self;
}

static void drain(int64_t deadline_us)
{
    rv_httpd_drain(w.server, deadline_us, count_done, &n_done);
    world_run(&w);
}

START_TEST(drains_at_once_when_there_is_nothing_to_wait_for)
{
    struct client c;

    client_open(&w, &c);
    client_text(&c, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    drain(10 * S);
    client_look(&c);
    ck_assert(c.is_over); /* it was idle */
    ck_assert_int_eq(n_done, 1);
    client_close(&c);
}
END_TEST

START_TEST(lets_a_stream_end_before_it_stops)
{
    struct client c;

    client_open(&w, &c);
    client_text(&c, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    drain(10 * S);
    ck_assert_str_eq(rv_buf_cstr(&w.told), "stop ");
    ck_assert_int_eq(n_done, 0);
    rv_httpd_send_event(w.x, &(struct rv_httpd_event){.data = RV_STR_LIT("last")});
    rv_httpd_end(w.x);
    client_look(&c);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&c.got), "data: last\n\n\r\n0\r\n\r\n"));
    ck_assert(c.is_over);
    client_close(&c);
    ck_assert_int_eq(n_done, 1);
    ck_assert_str_eq(rv_buf_cstr(&w.access), "GET  200 0 whole\n");
}
END_TEST

START_TEST(ends_what_is_left_at_the_deadline)
{
    struct client later, stream, body, idle;
    struct rv_httpd_counts counts;

    client_open(&w, &later);
    client_text(&later, "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client_open(&w, &stream);
    client_text(&stream, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client_open(&w, &body);
    client_text(&body, "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab");
    client_open(&w, &idle);
    drain(5 * S);
    world_pass(&w, 5 * S);
    client_look(&later);
    client_look(&stream);
    client_look(&body);
    ck_assert_int_eq(status_of(rv_buf_cstr(&later.got)), 503);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&later.got), "Retry-After: 5\r\n"));
    ck_assert_str_eq(body_of(rv_buf_cstr(&stream.got)), ""); /* cut: a last chunk would say that it is whole */
    ck_assert_int_eq(status_of(rv_buf_cstr(&body.got)), 503);
    ck_assert_str_eq(rv_buf_cstr(&w.told), "stop stop gone:stopped gone:stopped ");
    ck_assert(later.is_over && stream.is_over && body.is_over);
    ck_assert_int_eq(n_done, 0); /* the clients have not closed */
    world_pass(&w, 1 * S);
    ck_assert_int_eq(n_done, 1);
    rv_httpd_copy_counts(w.server, &counts);
    ck_assert_uint_eq(counts.connections + counts.exchanges + counts.streams, 0);
    client_close(&later);
    client_close(&stream);
    client_close(&body);
    client_close(&idle);
}
END_TEST

START_TEST(answers_a_last_request_while_it_drains)
{
    struct client c, next;

    client_open(&w, &c);
    client_open(&w, &next);
    client_text(&c, "GET /later HTTP/1.1\r\n");
    drain(5 * S);
    client_text(&c, "Host: localhost\r\n\r\n");
    ck_assert_str_eq(rv_buf_cstr(&w.told), "stop ");
    rv_httpd_reply(w.x, &(struct rv_httpd_answer){.status = 200});
    client_look(&c);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&c.got), "Connection: close\r\n"));
    ck_assert(c.is_over);
    client_close(&c);
    client_close(&next);
    ck_assert_int_eq(n_done, 1);
}
END_TEST

START_TEST(is_freed_with_exchanges_under_way)
{
    struct client later, stream;

    w.ends_on_gone = _i == 0;
    client_open(&w, &later);
    client_text(&later, "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
    rv_httpd_exchange *x = w.x;
    client_open(&w, &stream);
    client_text(&stream, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    rv_httpd_free(w.server);
    w.server = NULL;
    ck_assert_str_eq(rv_buf_cstr(&w.told), "gone:stopped gone:stopped ");
    if (_i == 1) {
        rv_httpd_write(w.x, RV_STR_LIT("x"));
        rv_httpd_end(w.x);
        rv_httpd_reply(x, &(struct rv_httpd_answer){.status = 200});
    }
    ck_assert_int_eq(w.n_freed, 2);
    client_close(&later);
    client_close(&stream);
}
END_TEST

START_TEST(is_freed_in_a_loop_that_runs_on)
{
    struct client c;

    world_fini(&w);
    world_init(&w);
    w.opts.runs_on = true;
    world_listen(&w);
    client_open(&w, &c);
    client_text(&c, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    rv_httpd_free(w.server);
    w.server = NULL;
    client_close(&c); /* which runs the loop */
}
END_TEST

START_TEST(stops_in_the_middle_of_a_head)
{
    struct client c;

    client_open(&w, &c);
    client_text(&c, "POST /stopped HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab");
    ck_assert(c.is_over);
    ck_assert_int_eq(w.n_freed, 1);
    client_close(&c);
}
END_TEST

static void must_fail(const struct rv_httpd_listen *at, int code)
{
    rv_err *err = NULL;
    int port = 0;

    ck_assert_int_eq(rv_httpd_listen(w.server, at, &port, &err), code);
    ck_assert_str_ne(rv_err_text(err), "");
    rv_err_free(err);
}

START_TEST(says_why_it_cannot_listen)
{
    must_fail(&(struct rv_httpd_listen){.address = "localhost"}, RV_E_INVALID);
    must_fail(&(struct rv_httpd_listen){.address = "127.0.0.1", .port = 70000}, RV_E_INVALID);
    must_fail(&(struct rv_httpd_listen){.address = "127.0.0.1", .port = w.port}, RV_E_EXISTS);
    must_fail(&(struct rv_httpd_listen){.address = "192.0.2.1"}, RV_E_INVALID);
    must_fail(&(struct rv_httpd_listen){.address = "127.0.0.1", .certificate = "/nowhere"}, RV_E_INVALID);
    char *got = world_ask(&w, RV_STR_LIT("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    ck_assert_int_eq(status_of(got), 200);
    free(got);
}
END_TEST

START_TEST(logs_each_access_once)
{
    struct client c;

    client_open(&w, &c);
    client_text(&c, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client_text(&c, "POST /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab");
    client_text(&c, "POST /denied HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab");
    client_close(&c);
    free(world_ask(&w, RV_STR_LIT("BREW /hello HTTP/1.1\r\nHost: localhost\r\n\r\n")));
    free(world_ask(&w, RV_STR_LIT("POST /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab")));
    ck_assert_str_eq(rv_buf_cstr(&w.access),
                     "GET /hello 200 0 whole\nPOST /hello 200 2 whole run_1\nPOST  401 0 whole\n"
                     "  501 0 whole\nPOST /hello 0 0 cut\n");
    ck_assert_int_eq(w.n_freed, 4);
}
END_TEST

static void refuse(void *self, const struct rv_httpd_refusal *why, rv_buf *body, const char **type)
{
    (void)self;
    rv_buf_printf(body, "{\"code\":\"%s\",\"status\":%d,\"id\":\"%s\"}", why->code, why->status, why->request_id);
    *type = "application/problem+json";
}

START_TEST(refuses_in_the_words_of_its_host)
{
    world_fini(&w);
    world_init(&w);
    w.opts.handler.on_refusal = refuse;
    world_listen(&w);
    char *got = world_ask(&w, RV_STR_LIT("GET /x HTTP/1.1\r\n\r\n"));
    ck_assert_ptr_nonnull(strstr(got, "Content-Type: application/problem+json\r\n"));
    ck_assert_str_eq(body_of(got), "{\"code\":\"bad_request\",\"status\":400,\"id\":\"req_853b559647364cea\"}");
    free(got);
}
END_TEST

/* Both in one look at the sockets: the stream is given up, and its client is found to have left. */
START_TEST(closes_once_what_breaks_and_ends_at_the_same_time)
{
    static const char drop[] = "GET /drop_last HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct client stream, other;

    client_open(&w, &stream);
    client_text(&stream, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client_open(&w, &other);
    ck_assert_int_eq(send(other.fd, drop, sizeof drop - 1, 0), (ssize_t)sizeof drop - 1);
    other.n_sent += sizeof drop - 1;
    ck_assert_int_eq(shutdown(stream.fd, SHUT_RDWR), 0);
    client_look(&other);
    ck_assert_int_eq(status_of(rv_buf_cstr(&other.got)), 200);
    ck_assert_str_eq(body_of(rv_buf_cstr(&other.got)), "dropped");
    client_close(&stream);
    client_close(&other);
    ck_assert_str_eq(rv_buf_cstr(&w.access), "GET  200 0 cut\nGET  200 0 whole\n");
}
END_TEST

TCase *life_case(void)
{
    TCase *tc = tcase_create("life");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, drains_at_once_when_there_is_nothing_to_wait_for);
    tcase_add_test(tc, lets_a_stream_end_before_it_stops);
    tcase_add_test(tc, ends_what_is_left_at_the_deadline);
    tcase_add_test(tc, answers_a_last_request_while_it_drains);
    tcase_add_loop_test(tc, is_freed_with_exchanges_under_way, 0, 2);
    tcase_add_test(tc, is_freed_in_a_loop_that_runs_on);
    tcase_add_test(tc, stops_in_the_middle_of_a_head);
    tcase_add_test(tc, says_why_it_cannot_listen);
    tcase_add_test(tc, logs_each_access_once);
    tcase_add_test(tc, refuses_in_the_words_of_its_host);
    tcase_add_test(tc, closes_once_what_breaks_and_ends_at_the_same_time);
    return tc;
}

/* Answers that come in pieces: chunks, server-sent events, slow readers, clients that leave. */
#include "tests/unit/httpd/world.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct world w;
static struct client c;

static void setup(void)
{
    world_init(&w);
    world_listen(&w);
    client_open(&w, &c);
}

static void teardown(void)
{
    client_close(&c);
    world_fini(&w);
}

static void ask(const char *path)
{
    char text[200];

    (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a\r\n\r\n", path);
    client_text(&c, text);
}

/* What came since the last look. */
static const char *news(void)
{
    rv_buf_clear(&c.got);
    client_look(&c);
    return rv_buf_cstr(&c.got);
}

static size_t emit(const char *data, const char *name, const char *id)
{
    struct rv_httpd_event ev = {.data = rv_str_of(data), .name = rv_str_of(name), .id = rv_str_of(id)};

    return rv_httpd_send_event(w.x, &ev);
}

START_TEST(sends_chunks_as_they_are_written)
{
    ask("/stream");
    ck_assert_str_eq(rv_buf_cstr(&c.got), "HTTP/1.1 200 OK\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\nX-Request-Id: "
                                          "a\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n");
    ck_assert_uint_eq(rv_httpd_write(w.x, RV_STR_LIT("hello")), 0);
    ck_assert_str_eq(news(), "5\r\nhello\r\n");
    ck_assert_uint_eq(rv_httpd_write(w.x, RV_STR_LIT("")), 0); /* not the last chunk */
    ck_assert_str_eq(news(), "");
    ck_assert_str_eq(rv_buf_cstr(&w.access), "");
    rv_httpd_end(w.x);
    ck_assert_str_eq(news(), "0\r\n\r\n");
    ck_assert_str_eq(rv_buf_cstr(&w.access), "GET  200 0 whole\n");
    ask("/hello"); /* on the same connection */
    ck_assert_uint_eq(n_answers(rv_buf_cstr(&c.got)), 1);
}
END_TEST

START_TEST(streams_to_old_and_to_curious_clients)
{
    client_text(&c, "GET /stream HTTP/1.0\r\nHost: localhost\r\n\r\n");
    ck_assert_ptr_null(strstr(rv_buf_cstr(&c.got), "chunked"));
    rv_httpd_write(w.x, RV_STR_LIT("hello"));
    ck_assert_str_eq(news(), "hello");
    rv_httpd_end(w.x);
    ck_assert_str_eq(news(), "");
    ck_assert(c.is_over);
    client_close(&c);
    client_open(&w, &c);
    client_text(&c, "HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    rv_httpd_write(w.x, RV_STR_LIT("hello"));
    rv_httpd_end(w.x);
    client_look(&c);
    ck_assert_str_eq(body_of(rv_buf_cstr(&c.got)), "");
    ask("/hello");
    ck_assert_uint_eq(n_answers(rv_buf_cstr(&c.got)), 2);
}
END_TEST

START_TEST(frames_events)
{
    ask("/events?retry");
    ck_assert_str_eq(rv_buf_cstr(&c.got),
                     "HTTP/1.1 200 OK\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\nX-Request-Id: a\r\nContent-Type: "
                     "text/event-stream; charset=utf-8\r\nCache-Control: no-cache, no-transform\r\nX-Accel-Buffering: "
                     "no\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "f\r\n:\nretry: 2000\n\n\r\n");
    emit("{}", "", "");
    ck_assert_str_eq(news(), "a\r\ndata: {}\n\n\r\n");
    emit("{\"a\":1}", "x", "12");
    ck_assert_str_eq(news(), "1f\r\nevent: x\ndata: {\"a\":1}\nid: 12\n\n\r\n");
    emit("a\nb\r\nc\rd\n", "", "");
    ck_assert_str_eq(news(), "28\r\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n\r\n");
    emit("", "", "");
    ck_assert_str_eq(news(), "8\r\ndata: \n\n\r\n");
    rv_httpd_end(w.x);
}
END_TEST

START_TEST(never_sends_an_event_that_breaks_its_frame)
{
    static const struct {
        const char *name, *id;
    } bad[] = {{"a\nb", ""}, {"a\rb", ""}, {"", "1\n2"}, {"", "1 2"}, {"", "\xc3\xa4"}};

    w.log.n_expected = 1;
    ask("/events");
    news();
    emit("x", bad[_i].name, bad[_i].id);
    ck_assert(rv_httpd_is_gone(w.x));
    ck_assert_str_eq(news(), "");
    ck_assert(c.is_over);
    ck_assert_str_eq(rv_buf_cstr(&w.told), "gone:failed ");
}
END_TEST

/* Proves p8.W40: A silent stream has heartbeats, its blocks have ids to go on from, and a slow reader is dropped */
START_TEST(keeps_a_silent_stream_of_events_alive)
{
    ask("/events");
    world_pass(&w, 14999999);
    ck_assert_ptr_nonnull(strstr(news(), ""));
    ck_assert_str_eq(rv_buf_cstr(&c.got), "");
    world_pass(&w, 1);
    ck_assert_str_eq(news(), "3\r\n:\n\n\r\n");
    world_pass(&w, 10000000);
    emit("x", "", "");
    ck_assert_str_eq(news(), "9\r\ndata: x\n\n\r\n");
    world_pass(&w, 14000000); /* since the event */
    ck_assert_str_eq(news(), "");
    world_pass(&w, 1000000);
    ck_assert_str_eq(news(), "3\r\n:\n\n\r\n");
    for (int i = 0; i < 100; i++) { /* for hours */
        world_pass(&w, 15000000);
        ck_assert_str_eq(news(), "3\r\n:\n\n\r\n");
    }
    rv_httpd_end(w.x);
}
END_TEST

START_TEST(sees_at_once_that_a_client_has_left)
{
    static const char *const paths[] = {"/later", "/stream", "/events"};

    ask(paths[_i]);
    client_close(&c);
    ck_assert_str_eq(rv_buf_cstr(&w.told), "gone:left ");
    ck_assert_int_eq(w.n_freed, 1);
    ck_assert_str_eq(rv_buf_cstr(&w.access), _i == 0 ? "GET  0 0 cut\n" : "GET  200 0 cut\n");
    client_open(&w, &c);
}
END_TEST

START_TEST(takes_a_half_closed_connection_for_a_client_that_has_left)
{
    ask("/later");
    ck_assert_int_eq(shutdown(c.fd, SHUT_WR), 0);
    world_run(&w);
    ck_assert_str_eq(rv_buf_cstr(&w.told), "gone:left ");
}
END_TEST

START_TEST(lets_a_handler_keep_an_exchange_whose_client_has_left)
{
    static const char *const paths[] = {"/later", "/stream", "/events"};

    w.ends_on_gone = false;
    ask(paths[_i]);
    client_close(&c);
    ck_assert(rv_httpd_is_gone(w.x));
    ck_assert_int_eq(w.n_freed, 0);
    ck_assert_uint_eq(rv_httpd_exchange_request(w.x)->n_segments, 1);
    if (_i > 0)
        ck_assert_uint_eq(rv_httpd_write(w.x, RV_STR_LIT("x")), 0);
    if (_i == 2)
        ck_assert_uint_eq(emit("x", "", ""), 0);
    if (_i == 0) {
        struct rv_httpd_answer a = {.status = 200, .body = {strdup("x"), 1}, .owner = RV_BODY_TAKEN};
        rv_httpd_reply(w.x, &a);
    } else {
        rv_httpd_end(w.x);
    }
    ck_assert_int_eq(w.n_freed, 1);
    client_open(&w, &c);
}
END_TEST

START_TEST(tells_a_watch_that_comes_late)
{
    struct rv_exchange_nothing {
        int unused;
    };
    const struct rv_httpd_watch none = {.self = &w};
    static rv_httpd_exchange *x;

    w.ends_on_gone = false;
    ask("/later");
    x = w.x;
    rv_httpd_watch(x, &none);
    client_close(&c);
    ck_assert_str_eq(rv_buf_cstr(&w.told), "");
    client_open(&w, &c);
    ask("/later"); /* whose watch is ours */
    ck_assert_ptr_ne(w.x, x);
    rv_httpd_reply(w.x, &(struct rv_httpd_answer){.status = 200});
    rv_httpd_drop(x);
}
END_TEST

START_TEST(tells_a_writer_when_to_go_on)
{
    char *bytes = malloc(100000);
    size_t sent = 0, unsent = 0;

    memset(bytes, 'x', 100000);
    ask("/stream");
    news();
    while ((unsent = rv_httpd_write(w.x, (rv_str){bytes, 100000})) == 0)
        sent += 100000;
    ck_assert_uint_gt(unsent, 0);
    ck_assert_uint_le(sent, 8000000); /* SO_SNDBUF and the client's buffer are bounded */
    world_run(&w);
    ck_assert_str_eq(rv_buf_cstr(&w.told), "");
    news();
    ck_assert_str_eq(rv_buf_cstr(&w.told), "drain ");
    ck_assert_uint_eq(rv_httpd_write(w.x, (rv_str){bytes, 10}), 0);
    rv_httpd_end(w.x);
    news();
    ck_assert_str_eq(rv_buf_cstr(&w.access), "GET  200 0 whole\n");
    free(bytes);
}
END_TEST

/* Proves p8.W40 */
START_TEST(drops_a_client_that_reads_too_slowly)
{
    char *bytes = malloc(100000);
    int n = 0;

    memset(bytes, 'x', 100000);
    ask("/stream");
    while (!rv_httpd_is_gone(w.x) && n++ < 10000)
        rv_httpd_write(w.x, (rv_str){bytes, 100000});
    ck_assert(rv_httpd_is_gone(w.x));
    ck_assert_str_eq(rv_buf_cstr(&w.told), ""); /* not from within */
    world_run(&w);
    ck_assert_str_eq(rv_buf_cstr(&w.told), "gone:slow ");
    free(bytes);
}
END_TEST

START_TEST(ends_when_the_handler_drops_a_stream)
{
    ask("/stream");
    rv_httpd_write(w.x, RV_STR_LIT("x"));
    rv_httpd_drop(w.x);
    client_look(&c);
    ck_assert(c.is_over);
    ck_assert_ptr_null(strstr(rv_buf_cstr(&c.got), "\r\n0\r\n"));
    ck_assert_str_eq(rv_buf_cstr(&w.told), "");
    ck_assert_int_eq(w.n_freed, 1);
}
END_TEST

/* Its end would be that of the stream. */
START_TEST(resets_the_connection_of_an_old_client_when_a_stream_is_dropped)
{
    client_text(&c, "GET /stream HTTP/1.0\r\nHost: localhost\r\n\r\n");
    rv_httpd_write(w.x, RV_STR_LIT("hello"));
    ck_assert_str_eq(news(), "hello");
    if (_i == 0)
        rv_httpd_drop(w.x);
    else
        rv_httpd_end(w.x);
    client_look(&c);
    ck_assert(c.is_over);
    ck_assert_int_eq(c.is_reset, _i == 0);
}
END_TEST

TCase *streams_case(void)
{
    TCase *tc = tcase_create("streams");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, sends_chunks_as_they_are_written);
    tcase_add_test(tc, streams_to_old_and_to_curious_clients);
    tcase_add_test(tc, frames_events);
    tcase_add_loop_test(tc, never_sends_an_event_that_breaks_its_frame, 0, 5);
    tcase_add_test(tc, keeps_a_silent_stream_of_events_alive);
    tcase_add_loop_test(tc, sees_at_once_that_a_client_has_left, 0, 3);
    tcase_add_test(tc, takes_a_half_closed_connection_for_a_client_that_has_left);
    tcase_add_loop_test(tc, lets_a_handler_keep_an_exchange_whose_client_has_left, 0, 3);
    tcase_add_test(tc, tells_a_watch_that_comes_late);
    tcase_add_test(tc, tells_a_writer_when_to_go_on);
    tcase_add_test(tc, drops_a_client_that_reads_too_slowly);
    tcase_add_test(tc, ends_when_the_handler_drops_a_stream);
    tcase_add_loop_test(tc, resets_the_connection_of_an_old_client_when_a_stream_is_dropped, 0, 2);
    return tc;
}

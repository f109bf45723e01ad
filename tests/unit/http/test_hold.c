/* A reader that is not ready holds its transfer, and the server feels it. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
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

static void on_silence(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
    uv_stop(timer->loop);
}

/* Runs the loop until for ms nothing was added to *n. */
static void run_until_still(const size_t *n, uint64_t ms)
{
    uv_timer_t timer;
    bool is_still = false;
    size_t before = *n;

    uv_timer_init(&w.loop, &timer);
    timer.data = &is_still;
    uv_timer_start(&timer, on_silence, ms, 0);
    while (!is_still) {
        uv_run(&w.loop, UV_RUN_ONCE);
        if (*n != before)
            uv_timer_start(&timer, on_silence, ms, 0);
        before = *n;
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&w.loop, UV_RUN_NOWAIT);
}

START_TEST(the_server_is_held_back_with_the_reader)
{
    static char many[65536];
    struct rv_http_request req = get(&w, "/");
    struct call c = {.hold_after = 1};

    time_stands();
    req.idle_us = 30 * MS; /* which the time on hold is not */
    w.server.answer = RV_STR_LIT("HTTP/1.1 200 OK\r\n\r\n");
    w.server.more = (rv_str){memset(many, 'x', sizeof many), sizeof many};
    w.server.after = ENDLESS;
    begin(&w, &c, &req);
    run_until(&w, &c.n_parts, 1);
    for (int i = 0; i < 3; i++) { /* at the first limit bytes may have come since the one before */
        time_passes(100 * MS);
        run_until_still(&w.server.n_written, 100);
    }
    size_t n_written = w.server.n_written, len = c.body.len;
    ck_assert_uint_eq(c.n_parts, 1);
    ck_assert_uint_eq(c.n_ends, 0);
    ck_assert_uint_lt(n_written, (size_t)64 << 20);

    c.hold_after = 0;
    resume(&c);
    ck_assert_uint_eq(c.n_parts, 1); /* not from within */
    run_until(&w, &w.server.n_written, n_written + 10000000);
    ck_assert_uint_gt(c.body.len, len);
    cancel(&c);
    call_fini(&c);
}
END_TEST

static const char *const answers[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\r\n0123456789",
};

/* Everything has arrived when the reader says hold: nothing more comes before it goes on, the end neither. */
START_TEST(nothing_comes_on_hold_even_when_all_is_here)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {.hold_after = 1};

    w.server.answer = rv_str_of(answers[_i]);
    w.server.after = _i == 2 ? CLOSE : KEEP;
    begin(&w, &c, &req);
    run_until(&w, &c.n_parts, 1);
    run_until_still(&c.n_parts, 30);
    ck_assert_uint_eq(c.n_parts, 1);
    ck_assert_uint_eq(c.n_ends, 0);
    c.hold_after = 0;
    resume(&c);
    resume(&c); /* once more is once */
    run_all(&w);
    ck_assert_msg(c.end.fault == RV_HTTP_OK, "%s", c.text);
    ck_assert_str_eq(rv_buf_cstr(&c.body), "0123456789");
    call_fini(&c);
}
END_TEST

/* Held after each part: a part, go on, a part... */
static void go_on(uv_timer_t *timer)
{
    struct call *c = timer->data;

    c->hold_after = c->n_parts + 1;
    if (c->handle)
        resume(c);
}

/* A large packed body: what libcurl had unpacked when it was told to hold comes in order, nothing twice. */
/* Proves 12.2/deltas */
START_TEST(held_at_every_part_the_body_is_whole)
{
    RV_AUTO(rv_buf_fini)
    rv_buf answer = RV_BUF_INIT(8 << 20), plain = RV_BUF_INIT(8 << 20), packed = RV_BUF_INIT(8 << 20);
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "body.gz"), command[400];
    struct rv_http_request req = get(&w, "/");
    struct call c = {.hold_after = 1};
    static uv_timer_t timer; /* it is closed by the loop, later */

    for (unsigned i = 0; i < 100000; i++)
        rv_buf_printf(&plain, "line %u\n", i * i % 977);
    snprintf(command, sizeof command, "gzip >'%s'", path);
    FILE *pipe = popen(command, "w");
    ck_assert_ptr_nonnull(pipe);
    ck_assert_uint_eq(fwrite(plain.ptr, 1, plain.len, pipe), plain.len);
    ck_assert_int_eq(pclose(pipe), 0);
    ck_assert_int_eq(rv_file_read(path, &packed, NULL), 0);
    rv_buf_printf(&answer, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", packed.len);
    rv_buf_add_str(&answer, rv_buf_str(&packed));

    w.server.answer = rv_buf_str(&answer);
    uv_timer_init(&w.loop, &timer);
    timer.data = &c;
    uv_timer_start(&timer, go_on, 1, 1);
    fetch(&w, &c, &req);
    uv_close((uv_handle_t *)&timer, NULL);
    ck_assert_int_eq(c.end.fault, RV_HTTP_OK);
    ck_assert_uint_gt(c.n_parts, 10);
    ck_assert(rv_str_eq(rv_buf_str(&c.body), rv_buf_str(&plain)));
    call_fini(&c);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

START_TEST(the_whole_time_counts_on_hold_too)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {.hold_after = 1};

    time_stands();
    req.total_us = 60 * MS;
    req.idle_us = 20 * MS;
    w.server.answer = rv_str_of(answers[_i]);
    begin(&w, &c, &req);
    run_until(&w, &c.n_parts, 1);
    time_passes(60 * MS);
    run_all(&w);
    ck_assert_int_eq(c.end.fault, RV_HTTP_TOTAL_TIME);
    ck_assert_int_ge(c.end.total_us, 60 * MS);
    call_fini(&c);
}
END_TEST

START_TEST(idleness_counts_again_after_hold)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {.hold_after = 1};

    time_stands();
    req.idle_us = 20 * MS;
    w.server.answer = RV_STR_LIT("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0");
    begin(&w, &c, &req);
    run_until(&w, &c.n_parts, 1);
    for (int i = 0; i < 3; i++) {
        time_passes(50 * MS);
        run_until_still(&c.n_ends, 50);
    }
    ck_assert_uint_eq(c.n_ends, 0);
    resume(&c);
    run_until_still(&c.n_ends, 50);
    ck_assert_uint_eq(c.n_ends, 0); /* the time before does not count */
    for (; c.n_ends == 0; time_passes(20 * MS))
        uv_run(&w.loop, UV_RUN_ONCE);
    ck_assert_int_eq(c.end.fault, RV_HTTP_IDLE_TIME);
    call_fini(&c);
}
END_TEST

TCase *hold_case(void)
{
    TCase *tc = tcase_create("hold");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, the_server_is_held_back_with_the_reader);
    tcase_add_loop_test(tc, nothing_comes_on_hold_even_when_all_is_here, 0, RV_COUNT(answers));
    tcase_add_test(tc, held_at_every_part_the_body_is_whole);
    tcase_add_loop_test(tc, the_whole_time_counts_on_hold_too, 0, RV_COUNT(answers));
    tcase_add_test(tc, idleness_counts_again_after_hold);
    return tc;
}

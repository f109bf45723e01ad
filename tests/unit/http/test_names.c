/* Names of hosts are resolved beside the loop, and nobody waits for a name that is not needed any more. */
#include <stdio.h>
#include <string.h>

#include "names.h"
#include "world.h"

#define MS 1000

static struct world w;
static char url[100];

static void set_up(void)
{
    world_init(&w);
    w.server.answer = RV_STR_LIT("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

static void tear_down(void)
{
    world_fini(&w);
}

static struct rv_http_request get_from(const char *host)
{
    struct rv_http_request req = get(&w, "/");

    snprintf(url, sizeof url, "http://%s:%d/", host, w.server.port);
    req.url = url;
    return req;
}

START_TEST(a_name_is_resolved)
{
    struct rv_http_request req = get_from("here.test");
    struct call c = {0};

    fetch(&w, &c, &req);
    ck_assert_msg(c.end.fault == RV_HTTP_OK, "%s", c.text);
}
END_TEST

START_TEST(a_name_that_nobody_knows_is_unreachable)
{
    struct rv_http_request req = get_from("nowhere.test");
    struct call c = {0};
    char want[200];

    fetch(&w, &c, &req);
    ck_assert_int_eq(c.end.fault, RV_HTTP_UNREACHABLE);
    ck_assert(!c.end.was_sent);
    snprintf(want, sizeof want, "nowhere.test:%d: no connection: Could not resolve host: nowhere.test", w.server.port);
    ck_assert_str_eq(c.text, want);
}
END_TEST

static void start_slow(struct call *slow, int64_t connect_us)
{
    struct rv_http_request req = get_from("slow.test");

    names_hold();
    req.connect_us = connect_us;
    begin(&w, slow, &req);
    while (names_waiting() == 0 && slow->n_ends == 0)
        uv_run(&w.loop, UV_RUN_NOWAIT);
}

START_TEST(others_go_on_while_a_name_is_resolved)
{
    struct call slow = {0}, quick = {0};
    struct rv_http_request req;

    start_slow(&slow, 0);
    req = get(&w, "/");
    begin(&w, &quick, &req);
    run_until(&w, &quick.n_ends, 1);
    ck_assert_int_eq(quick.end.fault, RV_HTTP_OK);
    ck_assert_uint_eq(slow.n_ends, 0);
    names_release();
    run_all(&w);
    ck_assert_msg(slow.end.fault == RV_HTTP_OK, "%s", slow.text);
}
END_TEST

/* Cancelled or out of time: the resolver still waits when the test goes on. */
START_TEST(nobody_waits_for_a_name_that_is_not_needed_any_more)
{
    struct call slow = {0};

    start_slow(&slow, _i == 0 ? 0 : 50 * MS);
    if (_i == 0)
        cancel(&slow);
    run_all(&w);
    ck_assert_uint_eq(names_waiting(), 1);
    if (_i == 1) {
        ck_assert_int_eq(slow.end.fault, RV_HTTP_CONNECT_TIME);
        ck_assert(!slow.end.was_sent);
        ck_assert_ptr_nonnull(strstr(slow.text, ": no connection within 50 ms"));
    }
    rv_http_free(w.http);
    w.http = NULL;
    ck_assert_uint_eq(names_waiting(), 1);
    names_release();
}
END_TEST

TCase *names_case(void)
{
    TCase *tc = tcase_create("names");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_name_is_resolved);
    tcase_add_test(tc, a_name_that_nobody_knows_is_unreachable);
    tcase_add_test(tc, others_go_on_while_a_name_is_resolved);
    tcase_add_loop_test(tc, nobody_waits_for_a_name_that_is_not_needed_any_more, 0, 2);
    return tc;
}

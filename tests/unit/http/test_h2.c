/* HTTP/2, where a server offers it over TLS: many calls on one connection that do not disturb each other. The server is
 * node's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "tests/kit/kit.h"
#include "world.h"

#define BODY "{\"a\": 1}"
#define DOTS "...................."

static struct world w;
static struct child server;
static char *dir, *key, *cert, url[60];

static void set_up(void)
{
    char *argv[] = {"node", RV_SOURCE_DIR "/tests/unit/http/h2.mjs", NULL, NULL, NULL};

    dir = rv_kit_tmpdir();
    make_certificate(dir, "server");
    argv[2] = key = rv_kit_path(dir, "server.key");
    argv[3] = cert = rv_kit_path(dir, "server.pem");
    child_start(&server, argv, "listening:");
    world_init(&w);
}

static void tear_down(void)
{
    world_fini(&w);
    child_stop(&server);
    rv_kit_tmpdir_remove(dir);
    free(key);
    free(cert);
}

static struct rv_http_request post(const char *path)
{
    snprintf(url, sizeof url, "https://127.0.0.1:%d%s", server.port, path);
    return (struct rv_http_request){
        .method = "POST", .url = url, .body = RV_STR_LIT(BODY), .ca_file = cert, .proxy = "", .idle_us = 5000000};
}

static void expect_whole(struct call *c)
{
    ck_assert_msg(c->end.fault == RV_HTTP_OK, "%s", c->text);
    ck_assert_int_eq(c->status, 200);
    ck_assert_str_eq(rv_buf_cstr(&c->body), BODY DOTS);
    ck_assert_ptr_nonnull(strstr(c->headers, "x-version=2.0;"));
    ck_assert_ptr_nonnull(strstr(c->headers, "x-sessions=1;"));
    call_fini(c);
}

START_TEST(calls_share_a_connection_and_leave_each_other_alone)
{
    struct rv_http_request req = post("/");
    struct call first = {0}, held = {.hold_after = 1}, cancelled = {0}, silent = {0}, others[5];

    fetch(&w, &first, &req);
    expect_whole(&first);

    begin(&w, &held, &req);
    begin(&w, &cancelled, &req);
    memset(others, 0, sizeof others);
    for (size_t i = 0; i < RV_COUNT(others); i++)
        begin(&w, &others[i], &req);
    run_until(&w, &cancelled.n_parts, 1);
    cancel(&cancelled);
    for (size_t i = 0; i < RV_COUNT(others); i++) {
        run_until(&w, &others[i].n_ends, 1);
        expect_whole(&others[i]);
    }
    run_until(&w, &held.n_parts, 1);
    ck_assert_uint_eq(held.n_ends, 0);
    held.hold_after = 0;
    resume(&held);
    run_all(&w);
    expect_whole(&held);
    call_fini(&cancelled);

    req = post("/silent");
    req.idle_us = 50000;
    time_stands();
    begin(&w, &silent, &req);
    run_until(&w, &silent.n_parts, 1);
    for (; silent.n_ends == 0; time_passes(50000))
        uv_run(&w.loop, UV_RUN_ONCE);
    ck_assert_int_eq(silent.end.fault, RV_HTTP_IDLE_TIME);
    ck_assert_ptr_nonnull(strstr(silent.headers, "x-sessions=1;"));
    call_fini(&silent);
}
END_TEST

START_TEST(a_server_that_dies_cuts_all_its_calls)
{
    struct rv_http_request req = post("/");
    struct call first = {0}, calls[5];

    fetch(&w, &first, &req);
    expect_whole(&first);
    req = post("/silent");
    memset(calls, 0, sizeof calls);
    for (size_t i = 0; i < RV_COUNT(calls); i++)
        begin(&w, &calls[i], &req);
    for (size_t i = 0; i < RV_COUNT(calls); i++)
        run_until(&w, &calls[i].n_parts, 1);
    child_kill(&server);
    run_all(&w);
    for (size_t i = 0; i < RV_COUNT(calls); i++) {
        ck_assert_msg(calls[i].end.fault == RV_HTTP_CUT, "%d: %s", calls[i].end.fault, calls[i].text);
        ck_assert(calls[i].end.was_sent);
        call_fini(&calls[i]);
    }
}
END_TEST

TCase *h2_case(void)
{
    TCase *tc = tcase_create("h2");

    if (system("command -v node >/dev/null") != 0) {
        puts("no node here: HTTP/2 is not tried");
        return tc;
    }
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, calls_share_a_connection_and_leave_each_other_alone);
    tcase_add_test(tc, a_server_that_dies_cuts_all_its_calls);
    return tc;
}

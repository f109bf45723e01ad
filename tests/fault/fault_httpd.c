/* Every allocation of a server's life fails once: requests, a body in pieces, an answer that has to wait, a stream of
 * events, a drain. There is an answer, a refusal or a closed connection, no crash and no leak, and the next connection
 * is served. The client allocates nothing. The loop is made and used before, because libuv gives up the process where
 * it cannot grow its tables. */
#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "coreengine/http/http.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define LARGE      3000000 /* more than sockets hold */
#define MAX_ROUNDS 3000

static uv_loop_t loop;
static char large[LARGE];

struct outcome {
    bool is_hello, is_body, is_large, is_event, is_done;
};

/* --- the handler --- */

static void on_gone(void *self, rv_httpd_exchange *x, enum rv_gone why)
{
    (void)self, (void)why;
    rv_httpd_drop(x);
}

static void reply(rv_httpd_exchange *x, rv_str body, enum rv_body_owner owner)
{
    const struct rv_httpd_field f = {RV_STR_LIT("X-A"), RV_STR_LIT("b")};
    struct rv_httpd_answer a = {
        .status = 200, .type = "text/plain", .fields = &f, .n_fields = 1, .body = body, .owner = owner};

    rv_httpd_reply(x, &a);
}

static void stream(rv_httpd_exchange *x)
{
    rv_httpd_begin_events(x, NULL, 1000);
    for (int i = 0; i < 3; i++)
        rv_httpd_send_event(x, &(struct rv_httpd_event){.data = RV_STR_LIT("a\nb"), .id = RV_STR_LIT("1")});
    rv_httpd_write(x, (rv_str){large, 400000});
    rv_httpd_end(x);
}

static void on_request(void *self, rv_httpd_exchange *x)
{
    const struct rv_httpd_watch watch = {.on_gone = on_gone, .self = self};
    const struct rv_httpd_request *req = rv_httpd_exchange_request(x);
    const char *what = req->n_segments > 0 ? req->segments[0].ptr : "-";

    rv_httpd_watch(x, &watch);
    if (what[0] == 'l') /* large */
        reply(x, (rv_str){large, LARGE}, RV_BODY_BORROWED);
    else if (what[0] == 'e') /* events */
        stream(x);
    else
        reply(x, req->body.len > 0 ? req->body : RV_STR_LIT("hello"), RV_BODY_BORROWED);
}

/* --- the client --- */

static int connect_to(int port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(fd, (struct sockaddr *)&at, sizeof at) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        rv_kit_die("connect");
    return fd;
}

/* Runs until the end of the connection, or until the bytes have `until` at their end; whether they have. */
static bool take(rv_httpd *s, int fd, const char *until)
{
    static char got[LARGE + 10000];
    size_t len = 0, n_until = strlen(until);

    for (int i = 0; i < MAX_ROUNDS; i++) {
        uv_run(&loop, UV_RUN_NOWAIT);
        rv_httpd_tick(s);
        ssize_t n = recv(fd, got + len, sizeof got - len, 0);
        len += n > 0 ? (size_t)n : 0;
        if (len >= n_until && memcmp(got + len - n_until, until, n_until) == 0)
            return true;
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        if (n < 0)
            (void)poll((struct pollfd[]){{fd, POLLIN, 0}, {uv_backend_fd(&loop), POLLIN, 0}}, 2, 1);
    }
    return false;
}

static bool ask(rv_httpd *s, int port, const char *first, const char *second, const char *until)
{
    int fd = connect_to(port);

    (void)!send(fd, first, strlen(first), MSG_NOSIGNAL);
    uv_run(&loop, UV_RUN_NOWAIT);
    (void)!send(fd, second, strlen(second), MSG_NOSIGNAL);
    bool is_well = take(s, fd, until);
    close(fd);
    for (int i = 0; i < 3; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    return is_well;
}

static void on_done(void *self)
{
    ((struct outcome *)self)->is_done = true;
}

static int scenario(struct outcome *o)
{
    static const char *const hosts[] = {"localhost", "a.example"};
    struct rv_httpd_opts opts = RV_HTTPD_OPTS_INIT;
    const struct rv_httpd_listen at = {.address = "127.0.0.1"};
    rv_httpd *s = NULL;
    rv_err *err = NULL;
    int port = 0;

    opts.loop = &loop;
    opts.hosts = hosts;
    opts.n_hosts = RV_COUNT(hosts);
    opts.handler.on_request = on_request;
    int rc = rv_httpd_new(&opts, &s, &err);
    if (rc == 0)
        rc = rv_httpd_listen(s, &at, &port, &err);
    if (rc == 0) {
        o->is_hello = ask(s, port, "GET /x?a=b HTTP/1.1\r\nHo", "st: localhost\r\n\r\n", "hello");
        o->is_body = ask(s, port, "PUT /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na",
                         "bc\r\n0\r\n\r\n", "abc");
        o->is_large = ask(s, port, "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n", "", "xyz");
        o->is_event = ask(s, port, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n", "", "0\r\n\r\n");
        rv_httpd_drain(s, 1000000, on_done, o);
        for (int i = 0; i < MAX_ROUNDS && !o->is_done; i++)
            uv_run(&loop, UV_RUN_NOWAIT);
    }
    if ((rc == 0) != (err == NULL)) /* no ck_assert here: it allocates too */
        rc = RV_E_INTERNAL;
    rv_httpd_free(s);
    while (uv_run(&loop, UV_RUN_NOWAIT) != 0) { /* a listener that could not listen is still closing */
    }
    rv_err_free(err);
    return rc;
}

static int n_served(const struct outcome *o)
{
    return o->is_hello + o->is_body + o->is_large + o->is_event;
}

START_TEST(any_allocation_may_fail)
{
    struct outcome first = {0};
    size_t n;

    ck_assert_int_eq(scenario(&first), 0);
    ck_assert_int_eq(n_served(&first), 4);
    for (n = 0;; n++) {
        struct outcome o = {0};

        rv_fault_arm(n);
        int rc = scenario(&o);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            ck_assert_int_eq(n_served(&o), 4);
            break;
        }
        ck_assert_msg(rc == 0 || rc == RV_E_NOMEM, "allocation %zu: %d", n, rc);
        ck_assert_msg(rc < 0 || (n_served(&o) >= 3 && o.is_done), "allocation %zu: %d of 4 served, done %d", n,
                      n_served(&o), o.is_done);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
    }
    ck_assert(!rv_fault_works() || n >= 20);
}
END_TEST

static void set_up(void)
{
    signal(SIGPIPE, SIG_IGN);
    memset(large, 'x', sizeof large);
    memcpy(large + LARGE - 3, "xyz", 3);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
}

int main(void)
{
    Suite *suite = suite_create("fault_httpd");
    TCase *tc = tcase_create("httpd");

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, any_allocation_may_fail);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}

/* https: a server is believed when its certificate is, and only then is anything sent. The server is that of the
 * openssl program, with certificates made for the test. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "tests/kit/kit.h"
#include "world.h"

static struct world w;
static char *dir;
static struct child server;

static char *file(const char *name)
{
    return rv_kit_path(dir, name);
}

/* Port 0 is any free one; the program prints which. */
static void start_server(void)
{
    char *key = file("server.key"), *cert = file("server.pem");
    char *argv[] = {"openssl", "s_server", "-accept", "127.0.0.1:0", "-key", key, "-cert", cert, "-www", NULL};

    child_start(&server, argv, "ACCEPT ");
    free(key);
    free(cert);
}

static void set_up(void)
{
    dir = rv_kit_tmpdir();
    make_certificate(dir, "server");
    make_certificate(dir, "other");
    start_server();
    world_init(&w);
}

static void tear_down(void)
{
    world_fini(&w);
    child_stop(&server);
    rv_kit_tmpdir_remove(dir);
}

static const struct {
    const char *host, *ca_file;
    enum rv_http_fault fault;
    const char *text;
} cases[] = {
    {"127.0.0.1", "server.pem", RV_HTTP_OK, ""},
    {"127.0.0.1", NULL, RV_HTTP_UNREACHABLE, "certificate"},
    {"127.0.0.1", "other.pem", RV_HTTP_UNREACHABLE, "certificate"},
    {"here.test", "server.pem", RV_HTTP_UNREACHABLE, "here.test"}, /* a certificate for another name */
    {"127.0.0.1", "missing.pem", RV_HTTP_LOCAL, "missing.pem"},
};

/* Proves 12.3/tls: Only a server with a trusted certificate is spoken to; redirections are not followed */
START_TEST(only_a_server_with_a_trusted_certificate_is_spoken_to)
{
    struct rv_http_request req = {.method = "GET", .proxy = ""};
    char *ca_file = cases[_i].ca_file ? file(cases[_i].ca_file) : NULL, url[100];
    struct call c = {0};

    snprintf(url, sizeof url, "https://%s:%d/", cases[_i].host, server.port);
    req.url = url;
    req.ca_file = ca_file;
    fetch(&w, &c, &req);
    ck_assert_msg(c.end.fault == cases[_i].fault, "%d: %s", c.end.fault, c.text);
    ck_assert_int_eq(c.end.was_sent, cases[_i].fault == RV_HTTP_OK);
    ck_assert_int_eq(c.status, cases[_i].fault == RV_HTTP_OK ? 200 : 0);
    ck_assert_msg(strstr(c.text, cases[_i].text) != NULL, "%s", c.text);
    call_fini(&c);
    free(ca_file);
}
END_TEST

/* A connection that was made for one who trusts the server is not given to one who does not. */
START_TEST(trust_is_not_shared_between_calls)
{
    struct rv_http_request req = {.method = "GET", .proxy = ""};
    char *ca_file = file("server.pem"), url[100];
    struct call trusting = {0}, other = {0};

    snprintf(url, sizeof url, "https://127.0.0.1:%d/", server.port);
    req.url = url;
    req.ca_file = ca_file;
    fetch(&w, &trusting, &req);
    ck_assert_int_eq(trusting.end.fault, RV_HTTP_OK);
    req.ca_file = NULL;
    fetch(&w, &other, &req);
    ck_assert_int_eq(other.end.fault, RV_HTTP_UNREACHABLE);
    call_fini(&trusting);
    free(ca_file);
}
END_TEST

START_TEST(a_server_without_tls_is_not_spoken_to)
{
    struct rv_http_request req = get(&w, "/");
    struct call c = {0};
    char url[100];

    w.server.answer = RV_STR_LIT("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    w.server.on_read = server_hang_up;
    snprintf(url, sizeof url, "https://127.0.0.1:%d/", w.server.port);
    req.url = url;
    fetch(&w, &c, &req);
    ck_assert_int_eq(c.end.fault, RV_HTTP_UNREACHABLE);
    ck_assert(!c.end.was_sent);
}
END_TEST

TCase *tls_case(void)
{
    TCase *tc = tcase_create("tls");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, only_a_server_with_a_trusted_certificate_is_spoken_to, 0, RV_COUNT(cases));
    tcase_add_test(tc, trust_is_not_shared_between_calls);
    tcase_add_test(tc, a_server_without_tls_is_not_spoken_to);
    return tc;
}

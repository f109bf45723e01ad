/* Where requests may go whose address a tool chose: addresses in every disguise, names that resolve to what is near,
 * and what a list of exceptions allows. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "coreengine/base/base.h"
#include "world.h"

static void fill(const char *address, struct sockaddr_storage *out)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        memcpy(out, &v4, sizeof v4);
    else if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1)
        memcpy(out, &v6, sizeof v6);
    else
        ck_abort_msg("%s is not an address", address);
}

static const struct {
    const char *address, *kind; /* NULL: public */
} addresses[] = {
    {"93.184.216.34", NULL},
    {"1.1.1.1", NULL},
    {"9.255.255.255", NULL},
    {"11.0.0.0", NULL},
    {"172.15.255.255", NULL},
    {"172.32.0.0", NULL},
    {"192.167.255.255", NULL},
    {"192.169.0.0", NULL},
    {"169.253.255.255", NULL},
    {"100.63.255.255", NULL},
    {"100.128.0.0", NULL},
    {"223.255.255.255", NULL},
    {"126.255.255.255", NULL},
    {"128.0.0.0", NULL},
    {"2606:4700:4700::1111", NULL},
    {"2a00:1450:4001::1", NULL},
    {"::ffff:1.1.1.1", NULL},
    {"64:ff9b::101:101", NULL},
    {"0.0.0.0", "an address of this network"},
    {"0.1.2.3", "an address of this network"},
    {"10.0.0.1", "a private address"},
    {"10.255.255.255", "a private address"},
    {"172.16.0.1", "a private address"},
    {"172.31.255.255", "a private address"},
    {"192.168.1.1", "a private address"},
    {"100.64.0.1", "an address of a provider's inner network"},
    {"100.100.100.200", "an address of a provider's inner network"},
    {"127.0.0.1", "a loopback address"},
    {"127.255.255.254", "a loopback address"},
    {"169.254.169.254", "a link-local address"},
    {"168.63.129.16", "an address of a cloud's metadata"},
    {"192.0.0.192", "a reserved address"},
    {"192.88.99.1", "a reserved address"},
    {"192.0.2.1", "an address for documentation"},
    {"198.51.100.1", "an address for documentation"},
    {"203.0.113.1", "an address for documentation"},
    {"198.18.0.1", "an address for benchmarks"},
    {"198.19.255.255", "an address for benchmarks"},
    {"224.0.0.1", "a multicast address"},
    {"240.0.0.1", "a reserved address"},
    {"255.255.255.255", "a reserved address"},
    {"::", "a reserved address"},
    {"::1", "a loopback address"},
    {"::127.0.0.1", "a reserved address"},
    {"::ffff:127.0.0.1", "a loopback address"},
    {"::ffff:10.0.0.1", "a private address"},
    {"::ffff:169.254.169.254", "a link-local address"},
    {"64:ff9b::7f00:1", "a loopback address"},
    {"64:ff9b::a9fe:a9fe", "a link-local address"},
    {"64:ff9b:1::1", "a reserved address"},
    {"100::1", "a reserved address"},
    {"2001::1", "a reserved address"},
    {"2001:1ff::1", "a reserved address"},
    {"2001:db8::1", "an address for documentation"},
    {"2002:7f00:1::", "an address that stands for another"},
    {"3fff::1", "an address for documentation"},
    {"fc00::1", "a private address"},
    {"fd00:ec2::254", "a private address"},
    {"fe80::1", "a link-local address"},
    {"febf::1", "a link-local address"},
    {"fec0::1", "a reserved address"},
    {"ff02::1", "a multicast address"},
    {"4000::1", "a reserved address"},
};

START_TEST(an_address_is_public_or_has_a_kind)
{
    struct sockaddr_storage peer;

    fill(addresses[_i].address, &peer);
    const char *kind = NULL;
    rv_egress *e = NULL;
    ck_assert_int_eq(rv_egress_new("", &e, NULL), 0);
    ck_assert_int_eq(rv_egress_allows(e, rv_str_of("x.test"), 443, (struct sockaddr *)&peer, &kind),
                     addresses[_i].kind == NULL);
    rv_egress_free(e);
    ck_assert_msg(addresses[_i].kind ? kind && strcmp(kind, addresses[_i].kind) == 0 : !kind, "%s: %s",
                  addresses[_i].address, kind ? kind : "public");
}
END_TEST

START_TEST(what_is_no_address_of_the_internet_is_never_allowed)
{
    struct sockaddr_un peer = {.sun_family = AF_UNIX};
    rv_egress *e = NULL;
    const char *why = NULL;

    ck_assert_int_eq(rv_egress_new("here.test, 0.0.0.0/0, [::]/0", &e, NULL), 0);
    ck_assert(!rv_egress_allows(e, rv_str_of("here.test"), 80, (struct sockaddr *)&peer, &why));
    ck_assert_str_eq(why, "no address of the internet");
    rv_egress_free(e);
}
END_TEST

static const struct {
    const char *rules, *host;
    int port;
    const char *peer;
    bool allowed;
} rules[] = {
    {NULL, "example.org", 80, "93.184.216.34", true},
    {"", "example.org", 443, "93.184.216.34", true},
    {"", "example.org", 22, "93.184.216.34", false},
    {"", "example.org", 8080, "93.184.216.34", false},
    {"example.org:8080", "example.org", 8080, "93.184.216.34", true},
    {"example.org:8080", "example.org", 8081, "93.184.216.34", false},
    {"example.org:8080", "EXAMPLE.org.", 8080, "10.0.0.1", true},
    {"example.org", "example.org", 22, "10.0.0.1", true},
    {"example.org", "evil.example.org", 80, "10.0.0.1", false},
    {"example.org", "example.org.evil.test", 80, "10.0.0.1", false},
    {"example.org", "xexample.org", 80, "10.0.0.1", false},
    {"10.1.0.0/16", "x.test", 5000, "10.1.255.255", true},
    {"10.1.0.0/16", "x.test", 5000, "10.2.0.0", false},
    {"10.1.0.0/16:5000", "x.test", 5000, "10.1.0.1", true},
    {"10.1.0.0/16:5000", "x.test", 5001, "10.1.0.1", false},
    {"10.1.0.0/16", "x.test", 80, "::ffff:10.1.0.1", true},
    {"10.1.2.3", "x.test", 80, "10.1.2.3", true},
    {"10.1.2.3", "x.test", 80, "10.1.2.2", false},
    {"10.0.0.0/9", "x.test", 80, "10.127.255.255", true},
    {"10.0.0.0/9", "x.test", 80, "10.128.0.0", false},
    {"[fd00::]/8", "x.test", 80, "fd12::1", true},
    {"[fd00::]/8:9000", "x.test", 9000, "fd12::1", true},
    {"[fd00::]/8:9000", "x.test", 9001, "fd12::1", false},
    {"fd00::/8", "x.test", 80, "fc00::1", false},
    {"::1", "x.test", 80, "::1", true},
    {"[::1]:8080", "x.test", 8080, "::1", true},
    {"[::1]:8080", "x.test", 80, "::1", false},
    {" a.test , , 127.0.0.1:1 ", "x.test", 1, "127.0.0.1", true},
    {"0.0.0.0/0", "x.test", 1, "127.0.0.1", true},
    {"0.0.0.0/0", "x.test", 80, "::1", false},
};

START_TEST(rules_allow_what_they_name_and_nothing_beside_it)
{
    struct sockaddr_storage peer;
    const char *why = NULL;
    rv_egress *e = NULL;

    fill(rules[_i].peer, &peer);
    ck_assert_int_eq(rv_egress_new(rules[_i].rules, &e, NULL), 0);
    ck_assert_int_eq(rv_egress_allows(e, rv_str_of(rules[_i].host), rules[_i].port, (struct sockaddr *)&peer, &why),
                     rules[_i].allowed);
    ck_assert_int_eq(why == NULL, rules[_i].allowed);
    rv_egress_free(e);
}
END_TEST

static const char *const bad_rules[] = {
    "10.0.0.0/33",  "10.0.0.0/-1", "10.0.0.0/x", "10.0.0", "999.1.1.1", "a b",     "http://x.test", "x.test:0",
    "x.test:65536", "x.test:",     "x.test/8",   "*.test", "[::1",      "::1/129", "ok.test,?"};

START_TEST(a_rule_that_says_nothing_is_refused)
{
    rv_egress *e = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_egress_new(bad_rules[_i], &e, &err), RV_E_PARSE);
    ck_assert_ptr_nonnull(rv_err_hint_text(err));
    rv_err_free(err);
}
END_TEST

/* --- through libcurl --- */

static struct world w;

static void set_up(void)
{
    world_init(&w);
    w.server.answer = RV_STR_LIT("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
}

static void tear_down(void)
{
    world_fini(&w);
}

/* Ways to write the address of the server of the test, %d is its port; all of them lead to 127.0.0.1 or ::1. */
static const char *const disguises[] = {
    "http://127.0.0.1:%d/",
    "http://127.1:%d/",
    "http://2130706433:%d/",
    "http://0x7f000001:%d/",
    "http://017700000001:%d/",
    "http://0x7f.1:%d/",
    "http://0177.0.0.1:%d/",
    "http://127.0.0.1.:%d/",
    "http://localhost:%d/",
    "http://LOCALHOST.:%d/",
    "http://here.test:%d/",
    "http://HERE.test:%d/",
    "http://0:%d/",
    "http://0.0.0.0:%d/",
    "http://[::1]:%d/",
    "http://[::ffff:127.0.0.1]:%d/",
    "http://[::]:%d/",
    "http://[0:0:0:0:0:ffff:7f00:1]:%d/",
    "http://%%31%%32%%37.0.0.1:%d/",
    "http://127%%2e0.0.1:%d/",
};

START_TEST(no_disguise_gets_to_what_is_near)
{
    char url[200];
    struct call c = {0};
    struct rv_http_request req = get(&w, "/");
    rv_egress *e = NULL;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(url, sizeof url, disguises[_i], w.server.port);
#pragma GCC diagnostic pop
    ck_assert_int_eq(rv_egress_new("", &e, NULL), 0);
    req.url = url;
    req.egress = e;
    fetch(&w, &c, &req);
    ck_assert_msg(c.end.fault != RV_HTTP_OK && !c.end.was_sent, "%s was asked", url);
    if (c.end.is_denied)
        ck_assert_msg(strstr(c.text, "not possible here: a") != NULL, "%s", c.text);
    else /* the name does not resolve here: that is as good */
        ck_assert_msg(strstr(c.text, "resolve") != NULL, "%s: %s", url, c.text);
    ck_assert_uint_eq(w.server.n_requests, 0);
    call_fini(&c);
    rv_egress_free(e);
}
END_TEST

static const char *const refused[] = {
    "http://user@127.0.0.1:%d/",
    "http://user:password@here.test:%d/",
    "http://1.1.1.1:80@127.0.0.1:%d/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:%d/",
    "ftp://here.test:%d/",
    "unix:///run/x.sock",
    "//127.0.0.1:%d/",
    "127.0.0.1:%d",
    "http:127.0.0.1",
    "",
};

START_TEST(an_address_with_a_user_or_another_scheme_is_refused)
{
    const struct rv_http_events events = {0};
    struct rv_http_request req = get(&w, "/");
    rv_http_call *c = NULL;
    rv_egress *e = NULL;
    char url[200];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(url, sizeof url, refused[_i], w.server.port);
#pragma GCC diagnostic pop
    ck_assert_int_eq(rv_egress_new("0.0.0.0/0", &e, NULL), 0);
    req.url = url;
    req.egress = e;
    int rc = rv_http_start(w.http, &req, &events, &c, NULL);
    ck_assert_msg(rc == (strchr(url, '@') ? RV_E_DENIED : RV_E_INVALID), "%s: %d", url, rc);
    rv_egress_free(e);
}
END_TEST

/* A connection that another request made and left open is not a way in, and neither is a proxy. */
START_TEST(connections_of_others_are_not_used)
{
    struct call first = {0}, second = {0}, third = {0};
    struct rv_http_request req = get(&w, "/");
    rv_egress *nothing = NULL, *this_one = NULL;
    char rule[40];

    snprintf(rule, sizeof rule, "127.0.0.1:%d", w.server.port);
    ck_assert_int_eq(rv_egress_new("", &nothing, NULL), 0);
    ck_assert_int_eq(rv_egress_new(rule, &this_one, NULL), 0);
    fetch(&w, &first, &req);
    ck_assert_int_eq(first.end.fault, RV_HTTP_OK);
    req.egress = nothing;
    fetch(&w, &second, &req);
    ck_assert(second.end.is_denied);
    ck_assert(strstr(second.text, "a loopback address"));
    req.egress = this_one;
    req.proxy = "http://127.0.0.1:1";
    fetch(&w, &third, &req);
    ck_assert_msg(third.end.fault == RV_HTTP_OK, "%s", third.text);
    ck_assert_uint_eq(w.server.n_requests, 2);
    call_fini(&first);
    call_fini(&second);
    call_fini(&third);
    rv_egress_free(nothing);
    rv_egress_free(this_one);
}
END_TEST

static const struct {
    const char *base, *location, *url; /* NULL: none */
    bool same_origin, is_safe;
} redirects[] = {
    {"https://a.test/x/y?z", "../w", "https://a.test/w", true, true},
    {"https://a.test/x", "//b.test/", "https://b.test/", false, true},
    {"https://a.test/x", "http://a.test/", "http://a.test/", false, false},
    {"http://a.test/x", "https://a.test/", "https://a.test/", false, true},
    {"http://a.test/x", "http://a.test:80/y", "http://a.test:80/y", true, true},
    {"http://a.test/x", "http://a.test:81/y", "http://a.test:81/y", false, true},
    {"http://a.test/x", "http://2130706433/", "http://127.0.0.1/", false, true},
    {"http://a.test/x", "file:///etc/passwd", NULL, false, false},
    {"http://a.test/x", "gopher://a.test/", NULL, false, false},
    {"http://a.test/x", "http://[bad/", NULL, false, false},
};

START_TEST(a_redirect_is_read_like_an_address)
{
    struct rv_http_redirect kind = {0};
    rv_buf out = RV_BUF_INIT(1000);

    int rc = rv_http_follow(w.http, redirects[_i].base, redirects[_i].location, &out, &kind, NULL);
    ck_assert_int_eq(rc, redirects[_i].url ? 0 : RV_E_INVALID);
    if (rc == 0) {
        ck_assert_str_eq(rv_buf_cstr(&out), redirects[_i].url);
        ck_assert_int_eq(kind.same_origin, redirects[_i].same_origin);
        ck_assert_int_eq(kind.is_safe, redirects[_i].is_safe);
    }
    rv_buf_fini(&out);
}
END_TEST

TCase *egress_case(void)
{
    TCase *tc = tcase_create("egress");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, an_address_is_public_or_has_a_kind, 0, RV_COUNT(addresses));
    tcase_add_test(tc, what_is_no_address_of_the_internet_is_never_allowed);
    tcase_add_loop_test(tc, rules_allow_what_they_name_and_nothing_beside_it, 0, RV_COUNT(rules));
    tcase_add_loop_test(tc, a_rule_that_says_nothing_is_refused, 0, RV_COUNT(bad_rules));
    tcase_add_loop_test(tc, no_disguise_gets_to_what_is_near, 0, RV_COUNT(disguises));
    tcase_add_loop_test(tc, an_address_with_a_user_or_another_scheme_is_refused, 0, RV_COUNT(refused));
    tcase_add_test(tc, connections_of_others_are_not_used);
    tcase_add_loop_test(tc, a_redirect_is_read_like_an_address, 0, RV_COUNT(redirects));
    return tc;
}

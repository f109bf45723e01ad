/* Addresses, networks, hosts, origins; the client behind proxies. */
#include "tests/unit/identity/world.h"

static const struct {
    const char *text, *out; /* NULL: not an address */
} addresses[] = {
    {"127.0.0.1", "127.0.0.1"},
    {" 10.1.2.3 ", "10.1.2.3"},
    {"10.1.2.3:443", "10.1.2.3"},
    {"::1", "::1"},
    {"[::1]:80", "::1"},
    {"[::1]", "::1"},
    {"fe80::1%eth0", "fe80::1"},
    {"::ffff:1.2.3.4", "1.2.3.4"},
    {"2001:DB8::1", "2001:db8::1"},
    {"", NULL},
    {"localhost", NULL},
    {"1.2.3", NULL},
    {"1.2.3.4.5", NULL},
    {"01.2.3.4", NULL},
    {"1.2.3.4:x", NULL},
    {"[::1", NULL},
    {"[::1]x", NULL},
    {"[::1]:", NULL},
    {"0x7f.1", NULL},
    {"unknown", NULL},
    {"1.2.3.4:123456", NULL},
};
START_TEST(an_address_is_read)
{
    char text[RV_IDENTITY_MAX_PEER] = "";
    struct rv_address a;

    bool ok = identity_address_read(rv_str_of(addresses[_i].text), &a);
    ck_assert_int_eq(ok, addresses[_i].out != NULL);
    if (ok) {
        rv_address_write(&a, text);
        ck_assert_str_eq(text, addresses[_i].out);
    }
}
END_TEST

static const struct {
    const char *network, *in, *out; /* in NULL: not a network */
} networks[] = {
    {"10.0.0.0/8", "10.255.0.1", "11.0.0.1"},
    {"10.0.0.7", "10.0.0.7", "10.0.0.8"},
    {"10.0.0.0/31", "10.0.0.1", "10.0.0.2"},
    {"0.0.0.0/0", "8.8.8.8", "::1"},
    {"fd00::/8", "fd12::1", "fe00::1"},
    {"::1", "::1", "127.0.0.1"},
    {"10.0.0.1/8", NULL, NULL},
    {"10.0.0.0/33", NULL, NULL},
    {"10.0.0.0/", NULL, NULL},
    {"10.0.0.0/8x", NULL, NULL},
    {"10.0.0.0/-1", NULL, NULL},
    {"fd00::/129", NULL, NULL},
    {"[::1]", NULL, NULL},
    {"10.0.0.1:80", NULL, NULL},
    {"::ffff:10.0.0.0/8", NULL, NULL},
    {"proxy", NULL, NULL},
    {"", NULL, NULL},
    {"/8", NULL, NULL},
};
START_TEST(a_network_has_its_addresses)
{
    struct rv_network n;
    struct rv_address in, out;

    ck_assert_int_eq(identity_network_read(rv_str_of(networks[_i].network), &n), networks[_i].in != NULL);
    if (!networks[_i].in)
        return;
    ck_assert(identity_address_read(rv_str_of(networks[_i].in), &in) &&
              identity_address_read(rv_str_of(networks[_i].out), &out));
    ck_assert(identity_network_has(&n, &in));
    ck_assert(!identity_network_has(&n, &out));
}
END_TEST

static const struct {
    const char *text;
    bool ok;
} hosts[] = {
    {"localhost", true},     {"LocalHost:8000", true},
    {"a.localhost", true},   {"127.0.0.1:8000", true},
    {"127.1.2.3", true},     {"[::1]:8000", true},
    {"evil.example", false}, {"localhost.evil.example", false},
    {"10.0.0.1", false},     {"", false},
    {".localhost", false},   {"localhost:x", false},
};
START_TEST(a_host_is_of_this_machine)
{
    ck_assert_int_eq(identity_host_is_local(rv_str_of(hosts[_i].text)), hosts[_i].ok);
}
END_TEST

static const struct {
    const char *text;
    bool ok;
} origins[] = {
    {"https://a.example", true},   {"http://localhost:3000", true},
    {"https://[::1]:8", true},     {"null", false},
    {"https://A.example", false},  {"https://a.example/", false},
    {"https://", false},           {"ftp://a.example", false},
    {"https://a.example:", false}, {"*", false},
    {"https://a b", false},        {"https://u@a", false},
};
START_TEST(a_nul_is_in_no_origin)
{
    ck_assert(identity_is_origin(RV_STR_LIT("https://a.example")));
    ck_assert(!identity_is_origin(RV_STR_LIT("https://a\0.example")));
}
END_TEST

START_TEST(an_origin_is_scheme_host_and_port)
{
    ck_assert_int_eq(identity_is_origin(rv_str_of(origins[_i].text)), origins[_i].ok);
}
END_TEST

static const struct {
    const char *peer, *forwarded, *second, *out;
} walks[] = {
    {"10.0.0.1", "8.8.8.8", NULL, "8.8.8.8"},
    {"9.9.9.9", "8.8.8.8", NULL, "9.9.9.9"},                     /* not a proxy, which could write anything */
    {"10.0.0.1", "1.1.1.1, 8.8.8.8, 10.0.0.2", NULL, "8.8.8.8"}, /* what the first untrusted one says is not believed */
    {"10.0.0.1", "1.1.1.1", "10.0.0.3", "1.1.1.1"},
    {"10.0.0.1", "8.8.8.8, garbage", NULL, "10.0.0.1"},
    {"10.0.0.1", "8.8.8.8,", NULL, "10.0.0.1"},
    {"10.0.0.1", "10.0.0.9", NULL, "10.0.0.9"},
    {"10.0.0.1", "", NULL, "10.0.0.1"},
    {"10.0.0.1", "[2001:db8::7]:4711", NULL, "2001:db8::7"},
    {"10.0.0.1", NULL, NULL, "10.0.0.1"},
};
START_TEST(the_client_is_the_last_one_that_is_not_a_proxy)
{
    struct rv_identity_opts opts = RV_IDENTITY_OPTS_INIT;
    char text[RV_IDENTITY_MAX_PEER];
    struct rv_address a;
    struct request r;
    rv_auth *g = NULL;
    bool is_tls;

    opts.trusted_proxies = "10.0.0.0/8";
    ck_assert_int_eq(rv_auth_new(&opts, T0_US, &g, NULL), 0);
    request_init(&r, "x-forwarded-proto", "https", NULL);
    if (walks[_i].forwarded)
        request_add(&r, "x-forwarded-for", walks[_i].forwarded);
    if (walks[_i].second)
        request_add(&r, "x-forwarded-for", walks[_i].second);
    r.caller.peer = walks[_i].peer;
    ck_assert(identity_caller_client(g, &r.caller, &a, &is_tls));
    rv_address_write(&a, text);
    ck_assert_str_eq(text, walks[_i].out);
    ck_assert_int_eq(is_tls, walks[_i].peer[0] == '1'); /* X-Forwarded-Proto counts from proxies only */
    rv_auth_free(g);
}
END_TEST

/* More hops than are read could hide the one that the proxy wrote. Then the client is unknown, which is not local. */
START_TEST(a_client_behind_too_many_hops_is_not_known)
{
    struct rv_identity_opts opts = RV_IDENTITY_OPTS_INIT;
    char line[64 * 16] = "8.8.8.8";
    struct rv_address a;
    struct request r;
    rv_auth *g = NULL;
    bool is_tls;

    opts.trusted_proxies = "10.0.0.0/8";
    ck_assert_int_eq(rv_auth_new(&opts, T0_US, &g, NULL), 0);
    request_init(&r, "host", "h", NULL);
    r.caller.peer = "10.0.0.1";
    if (_i == 0) {
        for (int i = 0; i < 33; i++)
            request_add(&r, "x-forwarded-for", "10.0.0.1");
        request_add(&r, "x-forwarded-for", "8.8.8.8");
    } else {
        for (int i = 0; i < 33; i++)
            memcpy(line + strlen(line), ", 10.0.0.2", sizeof ", 10.0.0.2");
        request_add(&r, "x-forwarded-for", line);
    }
    ck_assert(!identity_caller_client(g, &r.caller, &a, &is_tls));
    rv_auth_free(g);
}
END_TEST

/* Callers of this machine need no key before one is made. */
static const struct {
    const char *peer, *name, *value; /* a header of the request; NULL: none */
    bool is_here;
} callers[] = {
    {"127.0.0.1", NULL, NULL, true}, /* the proxy's machine itself */
    {"127.0.0.1", "x-forwarded-for", "127.0.0.1", true},
    {"127.0.0.1", "x-forwarded-for", "127.0.0.1, ::1", true},
    {"127.0.0.1", "x-forwarded-for", "203.0.113.9", false},
    {"127.0.0.1", "x-forwarded-for", "127.0.0.1, 203.0.113.9", false},
    {"127.0.0.1", "x-forwarded-for", "unknown", false},
    {"127.0.0.1", "x-forwarded-for", "_hidden", false},
    {"127.0.0.1", "x-forwarded-for", "8.8.8.8, unknown", false},
    {"127.0.0.1", "x-forwarded-for", "127.0.0.1,", false},
    {"127.0.0.1", "x-forwarded-for", "", false},
    {"127.0.0.1", "via", "1.1 proxy", false},
    {"127.0.0.1", "x-real-ip", "127.0.0.1", false},
    {"127.0.0.1", "forwarded", "for=127.0.0.1", false},
    {"::1", "x-forwarded-for", "127.0.0.1", false}, /* a proxy that is not trusted */
    {"::1", NULL, NULL, true},
    {"203.0.113.9", NULL, NULL, false},
};
START_TEST(a_caller_is_of_this_machine)
{
    struct rv_identity_opts opts = RV_IDENTITY_OPTS_INIT;
    struct request r;
    rv_auth *g = NULL;

    opts.trusted_proxies = "127.0.0.0/8";
    ck_assert_int_eq(rv_auth_new(&opts, T0_US, &g, NULL), 0);
    request_init(&r, NULL);
    if (callers[_i].name)
        request_add(&r, callers[_i].name, callers[_i].value);
    r.caller.peer = callers[_i].peer;
    ck_assert_int_eq(identity_caller_is_here(g, &r.caller), callers[_i].is_here);
    rv_auth_free(g);
}
END_TEST

static const struct {
    const char *line, *value; /* "!": several, NULL: none */
} cookies[] = {
    {"a=1; __Host-reeve=x; b=2", "x"},
    {"__Host-reeve=x=y", "x=y"},
    {"__Host-reeve=", ""},
    {"__host-reeve=x", NULL},
    {"x__Host-reeve=1", NULL},
    {"__Host-reeve", NULL},
    {";;=; ", NULL},
    {"__Host-reeve=1;__Host-reeve=2", "!"},
};
START_TEST(a_cookie_is_found)
{
    struct request r;
    rv_str value = {NULL, 0};

    request_init(&r, "cookie", cookies[_i].line, NULL);
    int there = identity_caller_cookie(&r.caller, RV_LOGIN_COOKIE, &value);
    if (!cookies[_i].value)
        ck_assert_int_eq(there, 0);
    else if (cookies[_i].value[0] == '!')
        ck_assert_int_eq(there, -1);
    else
        ck_assert(there == 1 && rv_str_is(value, cookies[_i].value));
}
END_TEST

TCase *net_case(void)
{
    TCase *tc = tcase_create("net");

    tcase_add_loop_test(tc, an_address_is_read, 0, RV_COUNT(addresses));
    tcase_add_loop_test(tc, a_network_has_its_addresses, 0, RV_COUNT(networks));
    tcase_add_loop_test(tc, a_host_is_of_this_machine, 0, RV_COUNT(hosts));
    tcase_add_test(tc, a_nul_is_in_no_origin);
    tcase_add_loop_test(tc, an_origin_is_scheme_host_and_port, 0, RV_COUNT(origins));
    tcase_add_loop_test(tc, the_client_is_the_last_one_that_is_not_a_proxy, 0, RV_COUNT(walks));
    tcase_add_loop_test(tc, a_client_behind_too_many_hops_is_not_known, 0, 2);
    tcase_add_loop_test(tc, a_caller_is_of_this_machine, 0, RV_COUNT(callers));
    tcase_add_loop_test(tc, a_cookie_is_found, 0, RV_COUNT(cookies));
    return tc;
}

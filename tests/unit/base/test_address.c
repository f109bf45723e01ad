/* Addresses: one form for both families, and what follows from it. */
#include "coreengine/base/base.h"
#include "tests/unit/base/suites.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

static const struct {
    const char *text, *written, *target;
    bool is_v4, is_loopback;
} addresses[] = {
    {"127.0.0.1", "127.0.0.1", "127.0.0.1", true, true},
    {"127.255.255.254", "127.255.255.254", "127.255.255.254", true, true},
    {"128.0.0.1", "128.0.0.1", "128.0.0.1", true, false},
    {"0.0.0.0", "0.0.0.0", "0.0.0.0", true, false},
    {"::1", "::1", "::1", false, true},
    {"::2", "::2", "::2", false, false},
    {"::", "::", "::", false, false},
    {"::ffff:127.0.0.1", "127.0.0.1", "127.0.0.1", true, true},
    {"::ffff:10.1.2.3", "10.1.2.3", "10.1.2.3", true, false},
    {"::fffe:7f00:1", "::fffe:7f00:1", "::fffe:7f00:1", false, false},
    {"::127.0.0.1", "::127.0.0.1", "::127.0.0.1", false, false},
    {"64:ff9b::7f00:1", "64:ff9b::7f00:1", "127.0.0.1", false, false}, /* a client that says so is not local */
    {"64:ff9b::a9fe:a9fe", "64:ff9b::a9fe:a9fe", "169.254.169.254", false, false},
    {"64:ff9b:1::7f00:1", "64:ff9b:1::7f00:1", "64:ff9b:1::7f00:1", false, false},
    {"2001:db8::7f00:1", "2001:db8::7f00:1", "2001:db8::7f00:1", false, false},
};

static struct rv_address read_address(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct rv_address a;

    bool is_v4 = inet_pton(AF_INET, text, &v4.sin_addr) == 1;
    ck_assert(is_v4 || inet_pton(AF_INET6, text, &v6.sin6_addr) == 1);
    ck_assert(rv_address_read(is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, &a));
    return a;
}

START_TEST(an_address_has_one_form)
{
    struct rv_address a = read_address(addresses[_i].text), target = rv_address_target(&a);
    char text[RV_ADDRESS_MAX];

    rv_address_write(&a, text);
    ck_assert_str_eq(text, addresses[_i].written);
    rv_address_write(&target, text);
    ck_assert_str_eq(text, addresses[_i].target);
    ck_assert_int_eq(rv_address_is_v4(&a), addresses[_i].is_v4);
    ck_assert_int_eq(rv_address_is_loopback(&a), addresses[_i].is_loopback);
}
END_TEST

START_TEST(another_family_has_none)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct rv_address a = {{1}};

    ck_assert(!rv_address_read((struct sockaddr *)&local, &a));
    ck_assert(!rv_address_is_v4(&a) && !rv_address_is_loopback(&a));
}
END_TEST

TCase *address_case(void)
{
    TCase *tc = tcase_create("address");

    tcase_add_loop_test(tc, an_address_has_one_form, 0, RV_COUNT(addresses));
    tcase_add_test(tc, another_family_has_none);
    return tc;
}

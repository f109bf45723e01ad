/* Addresses that are not for everybody, as a table, and the rules that allow some of them. */
#include "coreengine/model/http/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "coreengine/base/base.h"

#define MAX_HOST 253 /* bytes of a name in DNS, by RFC 1035; a longer one is refused */
#define MAX_ITEM 300 /* bytes of a host with its port: MAX_HOST, brackets, a colon and the port fit */

struct range {
    unsigned char bytes[16]; /* an IPv4 address takes the first four */
    int family, bits;
};
struct rule {
    char host[MAX_HOST + 1]; /* "": a range */
    struct range range;
    int port; /* 0: any */
};
struct rv_egress {
    struct rule rules[RV_EGRESS_MAX_RULES];
    size_t n;
};

/* The registries of special addresses of IANA, and the addresses at which clouds hand out secrets. */
static const struct {
    const char *address;
    int bits;
    const char *kind;
} special[] = {
    {"0.0.0.0", 8, "an address of this network"},
    {"10.0.0.0", 8, "a private address"},
    {"100.64.0.0", 10, "an address of a provider's inner network"},
    {"127.0.0.0", 8, "a loopback address"},
    {"168.63.129.16", 32, "an address of a cloud's metadata"},
    {"169.254.0.0", 16, "a link-local address"},
    {"172.16.0.0", 12, "a private address"},
    {"192.0.0.0", 24, "a reserved address"},
    {"192.0.2.0", 24, "an address for documentation"},
    {"192.31.196.0", 24, "a reserved address"},
    {"192.52.193.0", 24, "a reserved address"},
    {"192.88.99.0", 24, "a reserved address"},
    {"192.168.0.0", 16, "a private address"},
    {"192.175.48.0", 24, "a reserved address"},
    {"198.18.0.0", 15, "an address for benchmarks"},
    {"198.51.100.0", 24, "an address for documentation"},
    {"203.0.113.0", 24, "an address for documentation"},
    {"224.0.0.0", 4, "a multicast address"},
    {"240.0.0.0", 4, "a reserved address"},
    {"2001::", 23, "a reserved address"},
    {"2001:db8::", 32, "an address for documentation"},
    {"2002::", 16, "an address that stands for another"}, /* 6to4 */
    {"2620:4f:8000::", 48, "a reserved address"},
    {"3fff::", 20, "an address for documentation"},
    {"::1", 128, "a loopback address"},
    {"fc00::", 7, "a private address"},
    {"fe80::", 10, "a link-local address"},
    {"ff00::", 8, "a multicast address"},
};

static bool is_in(const struct range *r, int family, const unsigned char *bytes)
{
    int whole = r->bits / 8, rest = r->bits % 8;

    if (family != r->family || memcmp(bytes, r->bytes, (size_t)whole) != 0)
        return false;
    return rest == 0 || ((bytes[whole] ^ r->bytes[whole]) & (0xff00 >> rest) & 0xff) == 0;
}

static bool read_address(const char *text, struct range *out)
{
    if (inet_pton(AF_INET, text, out->bytes) == 1)
        out->family = AF_INET;
    else if (inet_pton(AF_INET6, text, out->bytes) == 1)
        out->family = AF_INET6;
    else
        return false;
    out->bits = out->family == AF_INET ? 32 : 128;
    return true;
}

/* The address that counts: an IPv4 address that is written as one of IPv6 is that IPv4 address. False: neither. */
static bool bytes_of(const struct sockaddr *peer, int *family, unsigned char out[16])
{
    struct rv_address a;

    if (!rv_address_read(peer, &a))
        return false;
    a = rv_address_target(&a);
    bool v4 = rv_address_is_v4(&a);
    *family = v4 ? AF_INET : AF_INET6;
    memcpy(out, v4 ? a.bytes + 12 : a.bytes, v4 ? 4 : 16);
    return true;
}

static const char *kind_of(int family, const unsigned char *bytes)
{
    for (size_t i = 0; i < RV_COUNT(special); i++) {
        struct range r;
        if (!read_address(special[i].address, &r))
            continue;
        r.bits = special[i].bits;
        if (is_in(&r, family, bytes))
            return special[i].kind;
    }
    if (family == AF_INET6 && (bytes[0] & 0xe0) != 0x20) /* all that is given out begins with 001 */
        return "a reserved address";
    return NULL;
}

/* --- rules --- */

/* ":8080" at the end, if it is there: is cut off. False: the port is invalid. */
static bool cut_port(char *item, int *port)
{
    char *colon = strrchr(item, ':'), *end;

    *port = 0;
    if (!colon || strchr(colon, ']') || (item[0] != '[' && strchr(item, ':') != colon)) /* none, or of IPv6 */
        return true;
    long n = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end || n < 1 || n > 65535)
        return false;
    *port = (int)n;
    *colon = '\0';
    return true;
}

/* "/16" at the end, if it is there: is cut off. */
static bool cut_bits(char *item, long *bits)
{
    char *slash = strchr(item, '/'), *end;

    *bits = -1;
    if (!slash)
        return true;
    *bits = strtol(slash + 1, &end, 10);
    if (end == slash + 1 || *end || *bits < 0)
        return false;
    *slash = '\0';
    return true;
}

static bool is_host(const char *text)
{
    size_t n = strlen(text);

    return n > 0 && n <= MAX_HOST &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == n &&
           strspn(text, "0123456789.") < n; /* else it is an address that is none */
}

static bool read_rule(char *item, struct rule *out)
{
    size_t n;
    long bits;

    *out = (struct rule){.port = 0};
    if (!cut_port(item, &out->port) || !cut_bits(item, &bits))
        return false;
    n = strlen(item);
    if (item[0] == '[' && n > 1 && item[n - 1] == ']') {
        item[n - 1] = '\0';
        item++;
    }
    if (!read_address(item, &out->range)) {
        if (bits >= 0 || !is_host(item))
            return false;
        memcpy(out->host, item, strlen(item) + 1);
        return true;
    }
    if (bits > out->range.bits)
        return false;
    if (bits >= 0)
        out->range.bits = (int)bits;
    return true;
}

static int add(rv_egress *e, rv_str item, rv_err **err)
{
    char text[MAX_ITEM];

    if (item.len == 0)
        return 0;
    if (e->n == RV_EGRESS_MAX_RULES)
        return RV_FAIL(err, RV_E_LIMIT, "more than %d allowed addresses", RV_EGRESS_MAX_RULES);
    snprintf(text, sizeof text, "%.*s", (int)(item.len < sizeof text ? item.len : sizeof text - 1), item.ptr);
    if (item.len < sizeof text && read_rule(text, &e->rules[e->n])) {
        e->n++;
        return 0;
    }
    int rc = RV_FAIL(err, RV_E_PARSE, "\"%.*s\" is neither a host nor a range of addresses",
                     (int)(item.len < 100 ? item.len : 100), item.ptr);
    rv_err_set_hint(err, "examples: db.internal, localhost:8080, 10.1.0.0/16, [fd00::]/8");
    return rc;
}

int rv_egress_new(const char *list, rv_egress **out, rv_err **err)
{
    rv_egress *e = calloc(1, sizeof *e);
    const char *at = list ? list : "";
    int rc = 0;

    if (!e)
        return RV_FAIL(err, RV_E_NOMEM, "read allowed addresses");
    while (rc == 0 && *at) {
        size_t n = strcspn(at, ",");
        rc = add(e, rv_str_trim((rv_str){at, n}), err);
        at += n + (at[n] == ',');
    }
    if (rc == 0)
        *out = e;
    else
        free(e);
    return rc;
}

void rv_egress_free(rv_egress *e)
{
    free(e);
}

static rv_str without_dot(rv_str host)
{
    return host.len > 0 && host.ptr[host.len - 1] == '.' ? (rv_str){host.ptr, host.len - 1} : host;
}

static bool fits(const struct rule *r, rv_str host, int port, int family, const unsigned char *bytes)
{
    rv_str mine = without_dot(rv_str_of(r->host));

    if (r->port && r->port != port)
        return false;
    if (mine.len)
        return mine.len == host.len && strncasecmp(mine.ptr, host.ptr, host.len) == 0;
    return is_in(&r->range, family, bytes);
}

bool rv_egress_allows(const rv_egress *e, rv_str host, int port, const struct sockaddr *peer, const char **why)
{
    unsigned char bytes[16];
    int family;

    if (!bytes_of(peer, &family, bytes)) {
        *why = "no address of the internet";
        return false;
    }
    *why = NULL;
    for (size_t i = 0; i < e->n; i++)
        if (fits(&e->rules[i], without_dot(host), port, family, bytes))
            return true;
    *why = kind_of(family, bytes);
    if (!*why && port != 80 && port != 443)
        *why = "a port other than 80 and 443";
    return !*why;
}

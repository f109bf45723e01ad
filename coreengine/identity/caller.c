/* Where a request comes from: headers, the client behind proxies, the page that sent it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "coreengine/identity/identity_internal.h"

#define MAX_HOPS 32 /* of X-Forwarded-For that are looked at: each proxy adds one, and clients write what they like */

int identity_caller_header(const struct rv_caller *c, const char *name, rv_str *out)
{
    rv_str second;

    if (!c->header(c->self, name, 0, out))
        return 0;
    *out = rv_str_trim(*out);
    return c->header(c->self, name, 1, &second) ? -1 : 1;
}

/* --- proxies --- */

bool rv_auth_has_proxy(const rv_auth *auth, const struct rv_address *a)
{
    for (size_t i = 0; i < auth->n_proxies; i++)
        if (identity_network_has(&auth->proxies[i], a))
            return true;
    return false;
}

bool identity_caller_is_proxy(const rv_auth *auth, const struct rv_caller *c)
{
    struct rv_address a;

    return identity_address_read(rv_str_of(c->peer), &a) && rv_auth_has_proxy(auth, &a);
}

/* The last element of a list with commas, which is taken off. */
static rv_str last_of(rv_str *list)
{
    size_t at = list->len;

    if (at == 0)
        return (rv_str){"", 0};
    while (at > 0 && list->ptr[at - 1] != ',')
        at--;
    rv_str last = {list->ptr + at, list->len - at};
    list->len = at > 0 ? at - 1 : 0;
    return rv_str_trim(last);
}

enum walk {
    WALK_NAMED,      /* the last address is the client: the nearest trusted proxy that could have said more did not */
    WALK_UNREADABLE, /* a trusted proxy wrote something else than an address: the client is not known */
    WALK_TOO_LONG,   /* there are more hops than are looked at */
};

/* From the nearest hop outwards, while hops are proxies that are trusted: each has said who was before it. */
static enum walk walk_back(const rv_auth *auth, const struct rv_caller *c, struct rv_address *at)
{
    struct rv_address before;
    size_t n = 0;
    rv_str list;

    while (n <= MAX_HOPS && c->header(c->self, "x-forwarded-for", n, &list))
        n++;
    if (n > MAX_HOPS)
        return WALK_TOO_LONG;
    for (int hops = 0; n > 0; n--) {
        if (!c->header(c->self, "x-forwarded-for", n - 1, &list) || list.len == 0)
            return rv_auth_has_proxy(auth, at) ? WALK_UNREADABLE : WALK_NAMED;
        while (list.len > 0) {
            if (!rv_auth_has_proxy(auth, at))
                return WALK_NAMED;
            if (hops++ == MAX_HOPS)
                return WALK_TOO_LONG;
            if (!identity_address_read(last_of(&list), &before))
                return WALK_UNREADABLE;
            *at = before;
        }
    }
    return WALK_NAMED;
}

static enum walk find_client(const rv_auth *auth, const struct rv_caller *c, struct rv_address *out, bool *is_tls)
{
    rv_str proto;

    *is_tls = c->is_tls;
    if (!identity_address_read(rv_str_of(c->peer), out))
        return WALK_TOO_LONG;
    if (!rv_auth_has_proxy(auth, out))
        return WALK_NAMED;
    if (identity_caller_header(c, "x-forwarded-proto", &proto) == 1)
        *is_tls = rv_str_is(last_of(&proto), "https");
    return walk_back(auth, c, out);
}

bool identity_caller_client(const rv_auth *auth, const struct rv_caller *c, struct rv_address *out, bool *is_tls)
{
    return find_client(auth, c, out, is_tls) != WALK_TOO_LONG;
}

static bool has_header(const struct rv_caller *c, const char *name)
{
    rv_str value;

    return c->header(c->self, name, 0, &value);
}

static bool is_in_list(const char *list, rv_str word)
{
    rv_str rest = rv_str_of(list), next;

    while ((next = identity_list_next(&rest)).len > 0)
        if (next.len == word.len && strncasecmp(next.ptr, word.ptr, word.len) == 0)
            return true;
    return false;
}

static rv_str without_port(rv_str host)
{
    for (size_t i = host.len; i > 0 && (rv_is_digit(host.ptr[i - 1]) || host.ptr[i - 1] == ':'); i--)
        if (host.ptr[i - 1] == ':')
            return (rv_str){host.ptr, i - 1};
    return host;
}

/* A page of a foreign name that leads to this machine (DNS rebinding) has that name in Host. A proxy passes on callers
 * from anywhere: one that is not trusted, or did not say in X-Forwarded-For from where, has no callers here. */
bool identity_caller_is_here(const rv_auth *auth, const struct rv_caller *c)
{
    static const char *const passed_on[] = {"forwarded", "x-forwarded-for", "x-real-ip", "via"};
    struct rv_address at;
    bool is_tls;
    rv_str host;

    if (find_client(auth, c, &at, &is_tls) != WALK_NAMED || !rv_address_is_loopback(&at))
        return false;
    bool is_told = identity_caller_is_proxy(auth, c) && has_header(c, "x-forwarded-for");
    for (size_t i = 0; i < RV_COUNT(passed_on) && !is_told; i++)
        if (has_header(c, passed_on[i]))
            return false;
    if (identity_caller_header(c, "host", &host) != 1)
        return false;
    return identity_host_is_local(host) || is_in_list(auth->hosts, host) || is_in_list(auth->hosts, without_port(host));
}

/* --- pages --- */

static bool is_own_origin(const struct rv_caller *c, rv_str origin)
{
    rv_str host;
    size_t scheme = origin.len > 8 && memcmp(origin.ptr, "https://", 8) == 0  ? 8
                    : origin.len > 7 && memcmp(origin.ptr, "http://", 7) == 0 ? 7
                                                                              : 0;

    if (scheme == 0 || identity_caller_header(c, "host", &host) != 1)
        return false;
    return host.len == origin.len - scheme && strncasecmp(host.ptr, origin.ptr + scheme, host.len) == 0;
}

/* Of those in the list exactly: neither "null", nor a name that only ends like one of them. */
static bool is_listed(const rv_auth *auth, rv_str origin)
{
    rv_str rest = rv_str_of(auth->origins), word;

    while ((word = identity_list_next(&rest)).len > 0)
        if (rv_str_eq(word, origin))
            return true;
    return false;
}

bool identity_caller_allows_origin(const rv_auth *auth, const struct rv_caller *c, rv_str origin)
{
    return is_own_origin(c, origin) || is_listed(auth, origin);
}

bool identity_caller_is_any_origin(const rv_auth *auth, const struct rv_caller *c, rv_str origin)
{
    return auth->any_origin && identity_is_origin(origin) && identity_caller_is_here(auth, c);
}

static bool is_reading(const struct rv_caller *c)
{
    return c->method &&
           (strcmp(c->method, "GET") == 0 || strcmp(c->method, "HEAD") == 0 || strcmp(c->method, "OPTIONS") == 0);
}

int identity_caller_check_site(const rv_auth *auth, const struct rv_caller *c, bool is_cookie,
                               struct rv_refusal *refusal)
{
    rv_str origin, site;

    if (is_reading(c))
        return 0;
    int has_origin = identity_caller_header(c, "origin", &origin),
        has_site = identity_caller_header(c, "sec-fetch-site", &site);
    if (has_origin != 0) {
        if (has_origin > 0 && (identity_caller_allows_origin(auth, c, origin) ||
                               (!is_cookie && identity_caller_is_any_origin(auth, c, origin))))
            return 0;
    } else if (has_site != 0) {
        if (has_site > 0 && (rv_str_is(site, "same-origin") || rv_str_is(site, "none")))
            return 0;
    } else if (!is_cookie) {
        return 0;
    }
    bool is_said = has_origin != 0 || has_site != 0;
    identity_refuse(
        refusal, 403, "origin_not_allowed",
        is_said ? "pages of this origin may not write here without a key: open the page at the address of the "
                  "server, send the key as \"Authorization: Bearer KEY\", or name the origin with --cors-origins"
                : "a browser sends the header Origin here, and it is missing: other programs need no login; they "
                  "send the key with each request, as \"Authorization: Bearer KEY\"");
    identity_refuse_reason(refusal, "a write without a key in its headers came from another origin");
    return RV_E_DENIED;
}

/* --- cookies --- */

int identity_caller_cookie(const struct rv_caller *c, const char *name, rv_str *out)
{
    size_t length = strlen(name);
    rv_str line;
    int found = 0;

    for (size_t i = 0; i < 8 && c->header(c->self, "cookie", i, &line); i++)
        while (line.len > 0) {
            const char *end = memchr(line.ptr, ';', line.len);
            rv_str pair = {line.ptr, end ? (size_t)(end - line.ptr) : line.len};
            size_t used = end ? pair.len + 1 : pair.len;
            line = (rv_str){line.ptr + used, line.len - used};
            pair = rv_str_trim(pair);
            if (pair.len <= length || memcmp(pair.ptr, name, length) != 0 || pair.ptr[length] != '=')
                continue;
            *out = (rv_str){pair.ptr + length + 1, pair.len - length - 1};
            found++;
        }
    return found > 1 ? -1 : found;
}

/* Addresses: checking them, putting a path below them, showing them. No general parser: what is not needed here is
 * libcurl's business. */
#include "coreengine/model/provider/provider_internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct parts {
    rv_str scheme, user, host, path, query; /* scheme with its "://"; path with its "/"; query without its "?" */
};

static rv_str until(rv_str *rest, const char *stops)
{
    size_t n = 0;

    while (n < rest->len && !(rest->ptr[n] && strchr(stops, rest->ptr[n])))
        n++;
    rv_str head = {rest->ptr, n};
    *rest = (rv_str){rest->ptr + n, rest->len - n};
    return head;
}

static bool starts_with(rv_str s, const char *prefix)
{
    size_t n = strlen(prefix);

    return s.len >= n && strncasecmp(s.ptr, prefix, n) == 0;
}

static struct parts split(rv_str url)
{
    struct parts p = {.scheme = {url.ptr, 0}};
    rv_str rest = url;

    if (starts_with(url, "https://"))
        p.scheme.len = 8;
    else if (starts_with(url, "http://"))
        p.scheme.len = 7;
    rest = (rv_str){url.ptr + p.scheme.len, url.len - p.scheme.len};
    p.host = until(&rest, "/?#");
    p.path = until(&rest, "?#");
    if (rest.len && rest.ptr[0] == '?') {
        rest = (rv_str){rest.ptr + 1, rest.len - 1};
        p.query = until(&rest, "#");
    }
    for (size_t i = p.host.len; i > 0; i--) /* a password may hold an "@" */
        if (p.host.ptr[i - 1] == '@') {
            p.user = (rv_str){p.host.ptr, i - 1};
            p.host = (rv_str){p.host.ptr + i, p.host.len - i};
            break;
        }
    while (p.path.len && p.path.ptr[p.path.len - 1] == '/')
        p.path.len--;
    return p;
}

int provider_url_check(rv_str url, rv_str *host, rv_err **err)
{
    struct parts p;

    if (url.len > RV_PROVIDER_MAX_VALUE)
        return RV_FAIL(err, RV_E_INVALID, "base_url has more than %zu bytes", RV_PROVIDER_MAX_VALUE);
    for (size_t i = 0; i < url.len; i++)
        if ((unsigned char)url.ptr[i] <= ' ' || (unsigned char)url.ptr[i] >= 0x7f)
            return RV_FAIL(err, RV_E_INVALID, "base_url has a blank, a line end or another byte that no address has");
    p = split(url);
    if (!p.scheme.len || !p.host.len || p.host.ptr[0] == ':') { /* shown without what may be a secret */
        RV_FAIL(err, RV_E_INVALID, "base_url is not an address");
        rv_err_set_hint(err, "an address looks like https://host/path or http://host:port/path");
        return RV_E_INVALID;
    }
    *host = p.host;
    return 0;
}

static char *taken(rv_arena *a, rv_buf *b)
{
    char *s = b->rc < 0 ? NULL : rv_arena_dup(a, rv_buf_str(b));

    rv_buf_fini(b);
    return s;
}

char *provider_url_of_host(rv_arena *a, rv_str text, int port)
{
    struct parts p = split(rv_str_trim(text));
    rv_buf b = RV_BUF_INIT(2 * RV_PROVIDER_MAX_VALUE);
    bool has_port = false;

    if (rv_str_is(p.scheme, "")) /* "host", "host:port", ":port" */
        rv_buf_puts(&b, "http://");
    rv_buf_add_str(&b, p.scheme);
    for (size_t i = 0; i < p.host.len; i++) /* not the colons of [::1] */
        has_port = p.host.ptr[i] == ']' ? false : has_port || p.host.ptr[i] == ':';
    rv_str name = p.host, rest = p.host;
    if (has_port)
        while (name.len && name.ptr[name.len - 1] != ':')
            name.len--;
    if (has_port)
        name.len--;
    rest = (rv_str){name.ptr + name.len, p.host.len - name.len};
    if (!name.len || rv_str_is(name, "0.0.0.0")) /* a listening address is not an address to connect to */
        rv_buf_puts(&b, "127.0.0.1");
    else
        rv_buf_add_str(&b, name);
    rv_buf_add_str(&b, rest);
    if (!has_port && !p.scheme.len)
        rv_buf_printf(&b, ":%d", port);
    rv_buf_add_str(&b, p.path);
    return taken(a, &b);
}

char *provider_url_join(rv_arena *a, rv_str base, const char *path, const char *query)
{
    struct parts p = split(base);
    rv_buf b = RV_BUF_INIT(4 * RV_PROVIDER_MAX_VALUE);

    rv_buf_add(&b, base.ptr, (size_t)(p.host.ptr + p.host.len - base.ptr));
    rv_buf_add_str(&b, p.path);
    /* Some bases are given with the version that the path begins with. */
    if (strncmp(path, "/v1/", 4) == 0 && p.path.len >= 3 && memcmp(p.path.ptr + p.path.len - 3, "/v1", 3) == 0)
        path += 3;
    rv_buf_puts(&b, path);
    if (p.query.len) {
        rv_buf_putc(&b, '?');
        rv_buf_add_str(&b, p.query);
    }
    if (query) {
        rv_buf_putc(&b, p.query.len ? '&' : '?');
        rv_buf_puts(&b, query);
    }
    return taken(a, &b);
}

char *provider_url_shown(rv_arena *a, rv_str url)
{
    struct parts p = split(url);
    rv_buf b = RV_BUF_INIT(2 * RV_PROVIDER_MAX_VALUE);

    rv_buf_add_str(&b, p.scheme);
    rv_buf_add_str(&b, p.host);
    rv_buf_add_str(&b, p.path);
    return taken(a, &b);
}

rv_str provider_url_user(rv_str url)
{
    return split(url).user;
}

rv_str provider_url_query(rv_str url)
{
    return split(url).query;
}

bool provider_url_is_bare(rv_str url)
{
    return split(url).path.len == 0;
}

char *provider_url_escape(rv_arena *a, const char *text)
{
    rv_buf b = RV_BUF_INIT(4 * RV_PROVIDER_MAX_VALUE);

    for (const char *c = text; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (plain || strchr("-._~", *c))
            rv_buf_putc(&b, *c);
        else
            rv_buf_printf(&b, "%%%02X", (unsigned)(unsigned char)*c);
    }
    return taken(a, &b);
}

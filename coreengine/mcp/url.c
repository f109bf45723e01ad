/* Addresses and forms: only what requests to servers need. */
#include <string.h>

#include "coreengine/mcp/mcp.h"

#include "coreengine/base/base.h"

bool rv_mcp_is_same_word(rv_str a, rv_str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (rv_ascii_lower(a.ptr[i]) != rv_ascii_lower(b.ptr[i]))
            return false;
    return true;
}

static rv_str rest(rv_str s, size_t n)
{
    return (rv_str){s.ptr + n, s.len - n};
}

static size_t until(rv_str s, const char *stops)
{
    size_t n = 0;

    while (n < s.len && (!s.ptr[n] || !strchr(stops, s.ptr[n])))
        n++;
    return n;
}

static bool is_clean(rv_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] > '~' || s.ptr[i] == '\\')
            return false;
    return true;
}

/* ":8080" or nothing. */
static bool read_port(rv_str s, int usual, int *out)
{
    int port = 0;

    *out = usual;
    if (s.len == 0)
        return true;
    if (s.ptr[0] != ':' || s.len > 6 || s.len == 1)
        return false;
    for (size_t i = 1; i < s.len; i++) {
        if (!rv_is_digit(s.ptr[i]))
            return false;
        port = port * 10 + s.ptr[i] - '0';
    }
    *out = port;
    return port > 0 && port < 65536;
}

bool rv_mcp_url_read(rv_str text, struct rv_mcp_url *out)
{
    struct rv_mcp_url u = {0};
    size_t scheme = 0;

    if (text.len > 8 && rv_mcp_is_same_word((rv_str){text.ptr, 8}, RV_STR_LIT("https://")))
        scheme = 8;
    else if (text.len > 7 && rv_mcp_is_same_word((rv_str){text.ptr, 7}, RV_STR_LIT("http://")))
        scheme = 7;
    if (!scheme || !is_clean(text))
        return false;
    u.is_https = scheme == 8;
    rv_str authority = rest(text, scheme);
    authority.len = until(authority, "/?#");
    rv_str after = rest(text, scheme + authority.len);
    size_t user = until(authority, "@");
    u.has_user = user < authority.len;
    rv_str place = u.has_user ? rest(authority, user + 1) : authority;
    size_t host = place.len && place.ptr[0] == '[' ? until(place, "]") + 1 : until(place, ":");
    if (host == 0 || host > place.len || !read_port(rest(place, host), u.is_https ? 443 : 80, &u.port))
        return false;
    u.host = (rv_str){place.ptr, host};
    u.origin = (rv_str){text.ptr, scheme + authority.len};
    u.path = (rv_str){after.ptr, until(after, "?#")};
    after = rest(after, u.path.len);
    u.query = (rv_str){after.ptr, until(after, "#")};
    u.has_fragment = u.query.len < after.len;
    *out = u;
    return true;
}

static bool is_v4(rv_str host)
{
    size_t dots = 0;

    for (size_t i = 0; i < host.len; i++) {
        if (!rv_is_digit(host.ptr[i]) && host.ptr[i] != '.')
            return false;
        dots += host.ptr[i] == '.';
    }
    return dots == 3;
}

static bool host_is(rv_str host, const char *name)
{
    return rv_mcp_is_same_word(host, rv_str_of(name));
}

bool rv_mcp_url_is_literal(const struct rv_mcp_url *u)
{
    return u->host.ptr[0] == '[' || is_v4(u->host) || host_is(u->host, "localhost");
}

bool rv_mcp_url_is_local(const struct rv_mcp_url *u)
{
    return host_is(u->host, "localhost") || host_is(u->host, "[::1]") ||
           (is_v4(u->host) && strncmp(u->host.ptr, "127.", 4) == 0);
}

bool rv_mcp_url_has_same_origin(const struct rv_mcp_url *a, const struct rv_mcp_url *b)
{
    return a->is_https == b->is_https && a->port == b->port && rv_mcp_is_same_word(a->host, b->host);
}

void rv_mcp_url_encode(rv_str text, rv_buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (rv_is_digit(c) || rv_is_letter(c) || (c && strchr("-._~", c)))
            rv_buf_putc(out, c);
        else
            rv_buf_printf(out, "%%%02X", (unsigned)(unsigned char)c);
    }
}

static bool decode(rv_str text, rv_buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            if (text.len - i < 3 || !rv_is_hex(text.ptr[i + 1]) || !rv_is_hex(text.ptr[i + 2]))
                return false;
            c = (char)(rv_hex_digit(text.ptr[i + 1]) << 4 | rv_hex_digit(text.ptr[i + 2]));
            i += 2;
        } else if (c == '+')
            c = ' ';
        rv_buf_putc(out, c);
    }
    return true;
}

bool rv_mcp_query_get(rv_str query, const char *name, rv_buf *out)
{
    while (query.len) {
        rv_str pair = {query.ptr, until(query, "&")};
        size_t n = until(pair, "=");
        query = rest(query, pair.len + (pair.len < query.len));
        if (n < pair.len && rv_str_is((rv_str){pair.ptr, n}, name))
            return decode(rest(pair, n + 1), out);
    }
    return false;
}

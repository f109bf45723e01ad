/* Addresses, networks, hosts and origins, as text and as bytes. */
#include <arpa/inet.h>
#include <string.h>

#include "coreengine/identity/identity_internal.h"

#define MAX_ADDRESS 64 /* bytes of one as text: IPv6 has 45 and a NUL; brackets and a port are cut off before */

static bool is_number(rv_str s, size_t max_digits)
{
    for (size_t i = 0; i < s.len; i++)
        if (!rv_is_digit(s.ptr[i]))
            return false;
    return s.len > 0 && s.len <= max_digits;
}

/* Without brackets and port; empty: it is not the text of an address. */
static rv_str without_port(rv_str text)
{
    const char *colon = rv_str_find(text, ':');

    if (text.len > 0 && text.ptr[0] == '[') {
        const char *end = memchr(text.ptr, ']', text.len);
        size_t n = end ? (size_t)(end - text.ptr) : 0;
        rv_str port = end ? (rv_str){end + 1, text.len - n - 1} : text;
        if (!end || (port.len > 0 && (port.ptr[0] != ':' || !is_number((rv_str){port.ptr + 1, port.len - 1}, 5))))
            return (rv_str){NULL, 0};
        return (rv_str){text.ptr + 1, n - 1};
    }
    if (!colon || memchr(colon + 1, ':', text.len - (size_t)(colon + 1 - text.ptr)))
        return text; /* no port, or an IPv6 address, which has one only with brackets */
    size_t n = (size_t)(colon - text.ptr);
    return is_number((rv_str){colon + 1, text.len - n - 1}, 5) ? (rv_str){text.ptr, n} : (rv_str){NULL, 0};
}

bool identity_address_read(rv_str text, struct rv_address *out)
{
    rv_str bare = without_port(rv_str_trim(text));
    char copy[MAX_ADDRESS];

    const char *zone = rv_str_find(bare, '%');
    if (zone)
        bare.len = (size_t)(zone - bare.ptr);
    if (bare.len == 0 || !identity_text_keep(bare, copy, sizeof copy))
        return false;
    unsigned char v4[4];
    if (inet_pton(AF_INET, copy, v4) == 1) {
        *out = rv_address_of_v4(v4);
        return true;
    }
    return inet_pton(AF_INET6, copy, out->bytes) == 1;
}

bool identity_network_has(const struct rv_network *n, const struct rv_address *a)
{
    size_t whole = (size_t)n->bits / 8;
    unsigned rest = (unsigned)n->bits % 8;

    if (memcmp(n->at.bytes, a->bytes, whole) != 0)
        return false;
    return rest == 0 || (n->at.bytes[whole] ^ a->bytes[whole]) >> (8 - rest) == 0;
}

bool identity_network_read(rv_str text, struct rv_network *out)
{
    const char *slash = rv_str_find(text, '/');
    rv_str at = {text.ptr, slash ? (size_t)(slash - text.ptr) : text.len};
    rv_str bits = {slash ? slash + 1 : NULL, slash ? text.len - at.len - 1 : 0};
    bool has_colon = rv_str_find(at, ':') != NULL, v4;
    char bare[MAX_ADDRESS];
    int n = 0;

    if (at.len == 0 || !identity_text_keep(at, bare, sizeof bare) || strpbrk(bare, "[]% ") ||
        !identity_address_read(at, &out->at) || (!has_colon != rv_address_is_v4(&out->at)))
        return false;
    v4 = rv_address_is_v4(&out->at);
    for (size_t i = 0; i < bits.len; i++)
        n = n < 1000 && rv_is_digit(bits.ptr[i]) ? n * 10 + bits.ptr[i] - '0' : 1000;
    if (slash && (bits.len == 0 || n > (v4 ? 32 : 128)))
        return false;
    out->bits = !slash ? 128 : v4 ? n + 96 : n;
    for (int i = out->bits; i < 128; i++)
        if (out->at.bytes[i / 8] >> (7 - i % 8) & 1)
            return false;
    return true;
}

/* --- hosts and origins --- */

static bool ends_with(rv_str s, const char *end)
{
    size_t n = strlen(end);

    return s.len > n && memcmp(s.ptr + s.len - n, end, n) == 0;
}

bool identity_host_is_local(rv_str host)
{
    rv_str name = without_port(host);
    struct rv_address a;
    char lower[MAX_ADDRESS];

    if (!identity_text_keep(name, lower, sizeof lower))
        return false;
    for (char *p = lower; *p; p++)
        *p = rv_ascii_lower(*p);
    if (strcmp(lower, "localhost") == 0 || ends_with(rv_str_of(lower), ".localhost"))
        return true;
    return identity_address_read(name, &a) && rv_address_is_loopback(&a);
}

/* And has more behind it. */
static bool starts_with(rv_str s, const char *start)
{
    size_t n = strlen(start);

    return s.len > n && memcmp(s.ptr, start, n) == 0;
}

bool identity_is_origin(rv_str text)
{
    size_t scheme = starts_with(text, "https://")  ? strlen("https://")
                    : starts_with(text, "http://") ? strlen("http://")
                                                   : 0;

    if (scheme == 0)
        return false;
    for (size_t i = scheme; i < text.len; i++) {
        char c = text.ptr[i];
        if (!rv_is_digit(c) && (c < 'a' || c > 'z') && !(c && strchr(".-:[]_", c)))
            return false;
    }
    return text.len <= 260 && text.ptr[text.len - 1] != ':';
}

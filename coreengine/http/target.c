/* The target of a request: path and query, each piece decoded once. No I/O.
 *
 * What has a second meaning to some reader is refused, not repaired: "." and "..", empty segments, NUL, bytes that are
 * not UTF-8 once decoded, characters that must be encoded. */
#include "coreengine/http/http_internal.h"

#include "coreengine/base/base.h"

#include <strings.h>

static bool bad(struct rv_httpd_fault *why, const char *detail)
{
    *why = (struct rv_httpd_fault){400, "bad_request", detail};
    return false;
}

static bool bad_target(struct rv_httpd_fault *why)
{
    return bad(why, "the request target has a character that must be percent-encoded");
}

/* Decodes a piece into *text, which moves on. */
static bool decode(rv_str piece, bool plus_is_space, char **text, rv_str *out, struct rv_httpd_fault *why)
{
    char *to = *text;

    for (size_t i = 0; i < piece.len; i++) {
        char c = piece.ptr[i];
        if (c == '+' && plus_is_space)
            c = ' ';
        if (piece.ptr[i] == '%') {
            int high = i + 2 < piece.len ? rv_hex_digit(piece.ptr[i + 1]) : -1,
                low = high < 0 ? -1 : rv_hex_digit(piece.ptr[i + 2]);
            if (low < 0)
                return bad(why, "the request target has a percent sign without two hex digits behind it");
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0')
            return bad(why, "the request target has an encoded NUL");
        *to++ = c;
    }
    *out = (rv_str){*text, (size_t)(to - *text)};
    *text = to;
    return rv_utf8_valid(*out, NULL) ? true : bad(why, "the request target is not UTF-8");
}

static rv_str piece_before(rv_str *rest, char end)
{
    const char *p = memchr(rest->ptr, end, rest->len);
    rv_str piece = {rest->ptr, p ? (size_t)(p - rest->ptr) : rest->len};

    rest->len -= piece.len + (p != NULL);
    rest->ptr += piece.len + (p != NULL);
    return piece;
}

static bool read_path(rv_str path, struct rv_httpd_request *req, rv_str *segments, char **text,
                      struct rv_httpd_fault *why)
{
    rv_str rest = {path.ptr + 1, path.len - 1};
    size_t n = 0;

    while (path.len > 1) {
        rv_str piece = piece_before(&rest, '/'), segment;
        bool is_last = piece.ptr + piece.len == path.ptr + path.len;
        if (!decode(piece, false, text, &segment, why))
            return false;
        if (rv_str_is(segment, ".") || rv_str_is(segment, ".."))
            return bad(why, "the path has a segment \".\" or \"..\"");
        if (segment.len == 0 && !is_last)
            return bad(why, "the path has an empty segment");
        segments[n++] = segment;
        if (is_last)
            break;
    }
    req->path = path;
    req->segments = segments;
    req->n_segments = n;
    return true;
}

static bool read_query(rv_str query, struct rv_httpd_request *req, struct rv_httpd_field *out, char **text,
                       struct rv_httpd_fault *why)
{
    size_t n = 0;

    while (query.len > 0) {
        rv_str value = piece_before(&query, '&');
        rv_str name = piece_before(&value, '=');
        if (name.ptr == value.ptr) /* "&&" */
            continue;
        if (!decode(name, true, text, &out[n].name, why) || !decode(value, true, text, &out[n].value, why))
            return false;
        n++;
    }
    req->query = out;
    req->n_query = n;
    return true;
}

/* "http://HOST" in front of the path: proxies may send it. The host has to be the one of the field. */
static bool take_origin(rv_str *target, rv_str host, struct rv_httpd_fault *why)
{
    size_t n = strncasecmp(target->ptr, "http://", target->len < 7 ? target->len : 7) == 0 ? 7 : 8;

    if (target->len <= n || (n == 8 && strncasecmp(target->ptr, "https://", 8) != 0))
        return bad(why, "the request target does not begin with a slash");
    rv_str rest = {target->ptr + n, target->len - n};
    size_t len = 0;
    while (len < rest.len && rest.ptr[len] != '/' && rest.ptr[len] != '?')
        len++;
    if (len != host.len || strncasecmp(rest.ptr, host.ptr, len) != 0)
        return bad(why, "the host of the request target is not that of the field Host");
    *target = (rv_str){rest.ptr + len, rest.len - len};
    return target->len > 0 && target->ptr[0] == '/' ? true : bad(why, "the request target has no path behind its host");
}

bool httpd_target_read(rv_str target, struct rv_httpd_request *req, rv_str *segments, struct rv_httpd_field *query,
                       char *text, struct rv_httpd_fault *why)
{
    for (size_t i = 0; i < target.len; i++)
        if (target.ptr[i] <= ' ' || target.ptr[i] > '~' || strchr("<>\"#\\", target.ptr[i]))
            return bad_target(why);
    if (target.len == 0)
        return bad(why, "the request has no target");
    if (target.ptr[0] != '/' && !take_origin(&target, req->host, why))
        return false;
    rv_str rest = target, path = piece_before(&rest, '?');
    return read_path(path, req, segments, &text, why) && read_query(rest, req, query, &text, why);
}

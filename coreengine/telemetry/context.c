/* Trace context of W3C: traceparent, tracestate, baggage. */
#include <string.h>

#include "coreengine/telemetry/telemetry_internal.h"

#define MAX_MEMBERS 32 /* of tracestate */

/* --- traceparent --- */

static bool is_zero(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

bool rv_trace_is_set(const struct rv_trace_context *c)
{
    return !is_zero(c->trace, sizeof c->trace) && !is_zero(c->span, sizeof c->span);
}

void rv_trace_begin(struct rv_rand rand, struct rv_trace_context *out)
{
    do {
        rand.fill(rand.self, out->trace, sizeof out->trace);
        rand.fill(rand.self, out->span, sizeof out->span);
    } while (!rv_trace_is_set(out));
    out->flags = RV_TRACE_SAMPLED;
}

static int digit(char c)
{
    return rv_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const char *text, unsigned char *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* "00-<32>-<16>-<2>"; a later version may have more behind it. */
bool rv_traceparent_read(rv_str text, struct rv_trace_context *out)
{
    const size_t length = RV_TRACEPARENT_MAX - 1;
    struct rv_trace_context c;
    unsigned char version;
    const char *p = text.ptr;

    *out = (struct rv_trace_context){.flags = 0};
    if (text.len < length || !read_hex(p, &version, 1) || version == 0xFF || p[2] != '-' || p[35] != '-' ||
        p[52] != '-' || !read_hex(p + 3, c.trace, sizeof c.trace) || !read_hex(p + 36, c.span, sizeof c.span) ||
        !read_hex(p + 53, &c.flags, 1) || !rv_trace_is_set(&c))
        return false;
    if (text.len > length && (version == 0 || p[length] != '-'))
        return false;
    c.flags &= RV_TRACE_SAMPLED;
    *out = c;
    return true;
}

void rv_traceparent_write(const struct rv_trace_context *c, char out[RV_TRACEPARENT_MAX])
{
    unsigned char flags = c->flags & RV_TRACE_SAMPLED;

    memcpy(out, "00-", 3);
    rv_hex(c->trace, sizeof c->trace, out + 3);
    out[35] = '-';
    rv_hex(c->span, sizeof c->span, out + 36);
    out[52] = '-';
    rv_hex(&flags, 1, out + 53);
    out[RV_TRACEPARENT_MAX - 1] = 0;
}

/* --- lists of members --- */

static rv_str next_member(rv_str *rest)
{
    const char *comma = memchr(rest->len ? rest->ptr : "", ',', rest->len);
    rv_str member = {rest->ptr, comma ? (size_t)(comma - rest->ptr) : rest->len};
    size_t used = comma ? member.len + 1 : member.len;

    *rest = (rv_str){rest->ptr + used, rest->len - used};
    return rv_str_trim(member);
}

/* The part before the first `at`, which it is cut off at; the rest is behind it. false: there is no such character. */
static bool cut(rv_str *text, char at, rv_str *behind)
{
    const char *p = memchr(text->len ? text->ptr : "", at, text->len);

    if (!p)
        return false;
    size_t n = (size_t)(p - text->ptr);
    *behind = (rv_str){p + 1, text->len - n - 1};
    text->len = n;
    return true;
}

/* --- tracestate --- */

static bool is_key_part(rv_str s, size_t max, bool digit_first)
{
    if (s.len == 0 || s.len > max || !((s.ptr[0] >= 'a' && s.ptr[0] <= 'z') || (digit_first && rv_is_digit(s.ptr[0]))))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!(s.ptr[i] >= 'a' && s.ptr[i] <= 'z') && !rv_is_digit(s.ptr[i]) && !strchr("_-*/", s.ptr[i]))
            return false;
    return true;
}

static bool is_state_key(rv_str key)
{
    rv_str system;

    if (!cut(&key, '@', &system))
        return is_key_part(key, 256, false);
    return is_key_part(key, 241, true) && is_key_part(system, 14, false);
}

static bool is_state_value(rv_str value)
{
    if (value.len == 0 || value.len > 256 || value.ptr[value.len - 1] == ' ')
        return false;
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] < ' ' || value.ptr[i] > '~' || value.ptr[i] == '=')
            return false;
    return true;
}

bool rv_tracestate_is_sound(rv_str text)
{
    rv_str keys[MAX_MEMBERS], value, rest = text;
    size_t n = 0;

    if (text.len == 0 || text.len > RV_TRACESTATE_MAX)
        return false;
    while (rest.len > 0) {
        rv_str key = next_member(&rest);
        if (key.len == 0) /* empty members are allowed */
            continue;
        if (n == MAX_MEMBERS || !cut(&key, '=', &value) || !is_state_key(key) || !is_state_value(value))
            return false;
        for (size_t i = 0; i < n; i++)
            if (rv_str_eq(keys[i], key))
                return false;
        keys[n++] = key;
    }
    return n > 0;
}

/* --- baggage --- */

static bool is_token(rv_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!rv_is_digit(s.ptr[i]) && !rv_is_letter(s.ptr[i]) && !strchr("!#$%&'*+-.^_`|~", s.ptr[i]))
            return false;
    return s.len > 0;
}

static bool is_baggage_value(rv_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c <= ' ' || c > '~' || c == '"' || c == ',' || c == ';' || c == '\\')
            return false;
        if (c == '%' && (s.len - i < 3 || !rv_is_hex(s.ptr[i + 1]) || !rv_is_hex(s.ptr[i + 2])))
            return false;
    }
    return true;
}

/* Name and value of a member; its properties have printable characters. */
static bool read_member(rv_str member, rv_str *name, rv_str *value)
{
    rv_str properties = {NULL, 0};

    cut(&member, ';', &properties);
    *name = member;
    if (!cut(name, '=', value))
        return false;
    *name = rv_str_trim(*name);
    *value = rv_str_trim(*value);
    for (size_t i = 0; i < properties.len; i++)
        if (properties.ptr[i] < ' ' || properties.ptr[i] > '~')
            return false;
    return is_token(*name) && is_baggage_value(*value);
}

void rv_baggage_copy(rv_str text, rv_buf *out)
{
    size_t before = out->len, n = 0;
    rv_str name, value;

    while (text.len > 0 && n < RV_BAGGAGE_MEMBERS) {
        rv_str member = next_member(&text);
        bool has_room = out->len - before + member.len + 1 <= RV_BAGGAGE_MAX;
        if (!has_room || !read_member(member, &name, &value))
            continue;
        if (n++ > 0)
            rv_buf_putc(out, ',');
        rv_buf_add_str(out, member);
    }
}

static void decode(rv_str value, rv_buf *out)
{
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        if (c == '%') { /* two digits follow: is_baggage_value() */
            char high = value.ptr[i + 1], low = value.ptr[i + 2];
            high = (char)(high >= 'A' && high <= 'F' ? high + 'a' - 'A' : high);
            low = (char)(low >= 'A' && low <= 'F' ? low + 'a' - 'A' : low);
            c = (char)(digit(high) << 4 | digit(low));
            i += 2;
        }
        rv_buf_putc(out, c);
    }
}

bool rv_baggage_find(rv_str text, const char *wanted, rv_buf *out)
{
    rv_str name, value;

    if (text.len > RV_BAGGAGE_MAX)
        return false;
    for (size_t n = 0; text.len > 0 && n < RV_BAGGAGE_MEMBERS; n++) {
        size_t before = out->len;
        if (!read_member(next_member(&text), &name, &value) || !rv_str_is(name, wanted))
            continue;
        decode(value, out);
        if (out->rc == 0 && rv_utf8_valid((rv_str){rv_buf_cstr(out) + before, out->len - before}, NULL))
            return true;
        rv_buf_truncate(out, before);
        return false;
    }
    return false;
}

/* Trace context of W3C: traceparent. */
#include <string.h>

#include "coreengine/base/hash.h"
#include "coreengine/telemetry/telemetry_internal.h"

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

void rv_trace_of_run(const char *run_id, unsigned char trace[16])
{
    char hash[RV_HASH_MAX];

    rv_hash_of(rv_str_of(run_id), hash);
    (void)read_hex(hash, trace, 16);
}

/* "00-<32>-<16>-<2>"; a later version may have more behind it. */
bool rv_traceparent_read(rv_str text, struct rv_trace_context *out)
{
    const size_t length = 55;
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

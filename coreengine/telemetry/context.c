/* Trace context of W3C: traceparent and tracestate, in and out; ids of traces and spans that follow from a run. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coreengine/base/base.h"
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

void rv_traceparent_write(const struct rv_trace_context *c, char out[RV_TRACEPARENT_MAX])
{
    memcpy(out, "00-", 3);
    rv_hex_make(c->trace, sizeof c->trace, out + 3);
    out[35] = '-';
    rv_hex_make(c->span, sizeof c->span, out + 36);
    memcpy(out + 52, c->flags & RV_TRACE_SAMPLED ? "-01" : "-00", sizeof "-00");
}

/* --- tracestate --- */

/* One member: "key=value"; the key may be "tenant@system". */
static bool is_member(rv_str m)
{
    const size_t max = 256; /* of a key and of a value, as the recommendation has it */
    const char *equals = m.len > 0 ? memchr(m.ptr, '=', m.len) : NULL;
    size_t n_key = equals ? (size_t)(equals - m.ptr) : 0, n_value = equals ? m.len - n_key - 1 : 0;

    if (n_key == 0 || n_key > max || n_value == 0 || n_value > max)
        return false;
    for (size_t i = 0; i < n_key; i++) {
        char c = m.ptr[i];
        bool is_lower = c >= 'a' && c <= 'z';
        if (!is_lower && !rv_is_digit(c) && (i == 0 || !c || !strchr("_-*/@", c)))
            return false;
    }
    for (size_t i = n_key + 1; i < m.len; i++)
        if (m.ptr[i] < 0x20 || m.ptr[i] > 0x7E || m.ptr[i] == '=' || m.ptr[i] == ',')
            return false;
    return true;
}

bool rv_tracestate_is_valid(rv_str text)
{
    const size_t max_members = 32;

    if (text.len == 0 || text.len > RV_TRACESTATE_MAX)
        return false;
    for (size_t n = 0, at = 0; at <= text.len; n++) {
        const char *end = at < text.len ? memchr(text.ptr + at, ',', text.len - at) : NULL;
        rv_str member = rv_str_trim((rv_str){text.ptr + at, end ? (size_t)(end - text.ptr) - at : text.len - at});
        if (n == max_members || !is_member(member))
            return false;
        at = end ? (size_t)(end - text.ptr) + 1 : text.len + 1;
    }
    return true;
}

/* --- ids that follow from the run --- */

static bool caller_of(const char *caller, struct rv_trace_context *out)
{
    return caller && rv_traceparent_read(rv_str_of(caller), out);
}

void rv_trace_of_run(const char *run, const char *caller, unsigned char trace[16])
{
    struct rv_trace_context c;
    char hash[RV_HASH_MAX];

    if (caller_of(caller, &c)) {
        memcpy(trace, c.trace, sizeof c.trace);
        return;
    }
    rv_hash_format(rv_str_of(run), hash);
    RV_IGNORE(!read_hex(hash, trace, 16), "a hash of ours is hexadecimal");
}

/* With its NUL: the parts stay apart. */
static void add_text(struct rv_hash *h, const char *text)
{
    rv_hash_add(h, (rv_str){text, strlen(text) + 1});
}

void rv_trace_make_span_id(const struct rv_trace_span *s, unsigned char span[8])
{
    char number[24], hex[RV_HASH_MAX];
    struct rv_hash h;

    rv_hash_init(&h);
    add_text(&h, s->run);
    add_text(&h, s->call_id > 0 ? "call" : "visit");
    if (s->call_id <= 0) {
        add_text(&h, s->path ? s->path : "");
        add_text(&h, s->stage);
        add_text(&h, s->asked_by ? s->asked_by : "");
    }
    snprintf(number, sizeof number, "%" PRId64, s->call_id > 0 ? s->call_id : s->visit);
    add_text(&h, number);
    rv_hash_finish_hex(&h, hex);
    RV_IGNORE(!read_hex(hex, span, 8), "a hash of ours is hexadecimal");
}

/* --- out --- */

bool rv_trace_make_headers(const char *run, int64_t call_id, const char *caller, const char *state, bool is_exported,
                           struct rv_trace_headers *out)
{
    struct rv_trace_context c = {.flags = RV_TRACE_SAMPLED};
    bool has_caller = caller_of(caller, &c);

    if (!has_caller && !is_exported)
        return false;
    if (!has_caller)
        rv_trace_of_run(run, NULL, c.trace);
    if (is_exported) /* else the caller's span is the nearest that there is */
        rv_trace_make_span_id(&(struct rv_trace_span){.run = run, .call_id = call_id}, c.span);
    rv_traceparent_write(&c, out->parent);
    out->state = has_caller && state && rv_tracestate_is_valid(rv_str_of(state)) ? state : NULL;
    return true;
}

/* How one tool has been doing: the last calls in a ring, a status from them, a breaker that blocks a tool that keeps
 * failing, and the kinds of errors it had. Sums are small: latencies are cut at record. */
#include "coreengine/tools/tools_internal.h"

#include <assert.h>
#include <string.h>

#define HEALTHY_PERCENT     95                             /* of calls that succeed, from which a tool is healthy */
#define DEGRADED_PERCENT    80                             /* below it a tool is unhealthy */
#define HEALTHY_LATENCY_MS  2000                           /* of a call on average, up to which a tool is healthy */
#define DEGRADED_LATENCY_MS 5000                           /* above it a tool is unhealthy */
#define MAX_LATENCY_MS      (INT64_MAX / RV_HEALTH_WINDOW) /* a full window must add up: no overflow */
#define MAX_LOOKED_AT       4096                           /* bytes of a message, for its head: blanks may come first */
#define ROOM                8                              /* for the longest that is added at once */

void rv_tool_health_note(struct rv_tool_health *h, int64_t now_us, bool ok, int64_t latency_ms)
{
    assert(h->next < RV_HEALTH_WINDOW);
    if (latency_ms < 0)
        latency_ms = 0;
    if (latency_ms > MAX_LATENCY_MS)
        latency_ms = MAX_LATENCY_MS;
    h->calls[h->next].at_us = now_us;
    h->calls[h->next].latency_ms = latency_ms;
    h->calls[h->next].ok = ok;
    h->next = (h->next + 1) % RV_HEALTH_WINDOW;
    if (h->n < RV_HEALTH_WINDOW)
        h->n++;
}

static size_t n_ok(const struct rv_tool_health *h)
{
    size_t i, n = 0;

    for (i = 0; i < h->n; i++)
        n += h->calls[i].ok;
    return n;
}

double rv_tool_health_success_rate(const struct rv_tool_health *h)
{
    return h->n ? (double)n_ok(h) / (double)h->n : 1.0;
}

enum rv_health rv_tool_health_status(const struct rv_tool_health *h)
{
    enum rv_health by_rate, by_latency;
    int64_t latency = 0, n = (int64_t)h->n;
    size_t i, ok = n_ok(h);

    if (h->n < RV_HEALTH_MIN_CALLS)
        return RV_HEALTH_UNKNOWN;
    for (i = 0; i < h->n; i++)
        latency += h->calls[i].latency_ms;
    /* In whole numbers, so that the borders are exact. */
    by_rate = ok * 100 >= HEALTHY_PERCENT * h->n    ? RV_HEALTH_HEALTHY
              : ok * 100 >= DEGRADED_PERCENT * h->n ? RV_HEALTH_DEGRADED
                                                    : RV_HEALTH_UNHEALTHY;
    by_latency = latency <= HEALTHY_LATENCY_MS * n    ? RV_HEALTH_HEALTHY
                 : latency <= DEGRADED_LATENCY_MS * n ? RV_HEALTH_DEGRADED
                                                      : RV_HEALTH_UNHEALTHY;
    return by_rate > by_latency ? by_rate : by_latency; /* the worse one comes later in the list */
}

bool rv_tool_breaker_open(const struct rv_tool_health *h, int64_t now_us)
{
    size_t i, n_errors = 0;

    /* A call from the future (the clock was set back) is recent. */
    for (i = 0; i < h->n; i++)
        n_errors += !h->calls[i].ok && h->calls[i].at_us >= now_us - RV_BREAKER_WINDOW_US;
    return n_errors >= RV_BREAKER_ERRORS;
}

/* --- Kinds of errors --- */

struct head {
    char text[RV_HEALTH_HEAD_MAX + ROOM];
    size_t len;
};

static bool is_word(char c)
{
    return rv_is_digit(c) || rv_is_letter(c);
}

static void add(struct head *h, const char *text)
{
    size_t n = strlen(text);

    if (h->len >= RV_HEALTH_HEAD_MAX)
        return;
    memcpy(h->text + h->len, text, n);
    h->len += n;
}

/* "0x7f3a" and "4be1" are numbers as a whole; in "12ms" only the digits are. */
static size_t add_word(struct head *h, rv_str s)
{
    size_t n = 0, n_hex = 0, n_digits = 0;

    while (n < s.len && is_word(s.ptr[n])) {
        n_hex += rv_is_hex(s.ptr[n]);
        n_digits += rv_is_digit(s.ptr[n++]);
    }
    if (n_digits && (n_hex == n || (n > 2 && n_hex == n - 1 && s.ptr[0] == '0' && s.ptr[1] == 'x'))) {
        add(h, "#");
        return n;
    }
    for (size_t i = 0; i < n; i++) {
        if (!rv_is_digit(s.ptr[i]))
            add(h, (char[]){s.ptr[i], 0});
        else if (i == 0 || !rv_is_digit(s.ptr[i - 1]))
            add(h, "#");
    }
    return n;
}

/* Bytes of a quoted part; 0: it begins none. An apostrophe stands within a word. */
static size_t quoted_len(rv_str s, size_t at)
{
    char quote = s.ptr[at];

    if ((quote != '"' && quote != '\'' && quote != '`') || (at > 0 && is_word(s.ptr[at - 1])))
        return 0;
    for (size_t i = at + 1; i < s.len; i++) {
        if (s.ptr[i] == '\\')
            i++;
        else if (s.ptr[i] == quote && (quote != '\'' || i + 1 == s.len || !is_word(s.ptr[i + 1])))
            return i + 1 - at;
    }
    return 0;
}

/* At most max bytes of text that JSON takes, with an end; out has room for them. */
static void put_text(char *out, size_t max, rv_str s)
{
    rv_str cut = rv_utf8_cut(s, max);
    size_t bad = 0;

    if (cut.len)
        memcpy(out, cut.ptr, cut.len);
    out[cut.len] = 0;
    while (!rv_utf8_valid((rv_str){out, cut.len}, &bad))
        out[bad] = '?';
    for (size_t i = 0; i < cut.len; i++)
        for (size_t n = rv_utf8_control(out + i, cut.len - i); n > 0; n--)
            out[i + n - 1] = ' ';
}

static void head_of(rv_str message, char out[RV_HEALTH_HEAD_MAX + 1])
{
    struct head h = {.len = 0};

    if (message.len > MAX_LOOKED_AT)
        message.len = MAX_LOOKED_AT;
    for (size_t i = 0; i < message.len && message.ptr[i] != '\n' && h.len < RV_HEALTH_HEAD_MAX;) {
        char c = message.ptr[i];
        size_t n = quoted_len(message, i);

        if (n > 0) {
            add(&h, (char[]){c, '.', '.', '.', c, 0});
            i += n;
        } else if (is_word(c)) {
            i += add_word(&h, (rv_str){message.ptr + i, message.len - i});
        } else {
            h.text[h.len++] = c;
            i++;
        }
    }
    put_text(out, RV_HEALTH_HEAD_MAX, (rv_str){h.text, h.len});
}

void rv_tool_health_note_error(struct rv_tool_health *h, rv_str type, rv_str message)
{
    struct rv_tool_error_kind noted = {.count = 0}, *kind = NULL;

    assert(h->n_errors <= RV_HEALTH_ERRORS);
    put_text(noted.type, RV_HEALTH_TYPE_MAX, type);
    head_of(message, noted.head);
    for (size_t i = 0; i < h->n_errors && !kind; i++)
        if (strcmp(h->errors[i].type, noted.type) == 0 && strcmp(h->errors[i].head, noted.head) == 0)
            kind = &h->errors[i];
    if (!kind && h->n_errors < RV_HEALTH_ERRORS) {
        kind = &h->errors[h->n_errors++];
        *kind = noted;
    } else if (!kind) {
        kind = &h->errors[0];
        for (size_t i = 1; i < h->n_errors; i++)
            if (h->errors[i].last < kind->last)
                kind = &h->errors[i];
        *kind = noted;
    }
    kind->count++;
    kind->last = ++h->n_noted;
}

static bool is_before(const struct rv_tool_error_kind *a, const struct rv_tool_error_kind *b)
{
    return a->count != b->count ? a->count > b->count : a->last > b->last;
}

void rv_tool_health_write_errors(const struct rv_tool_health *h, rv_jw *w)
{
    const struct rv_tool_error_kind *sorted[RV_HEALTH_ERRORS];

    for (size_t i = 0; i < h->n_errors; i++) {
        size_t at = i;
        for (; at > 0 && is_before(&h->errors[i], sorted[at - 1]); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = &h->errors[i];
    }
    rv_jw_arr(w);
    for (size_t i = 0; i < h->n_errors; i++) {
        rv_jw_obj(w);
        rv_jw_kv_text(w, "error_type", sorted[i]->type);
        rv_jw_kv_text(w, "message", sorted[i]->head);
        rv_jw_kv_int(w, "count", sorted[i]->count);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

/* Hints in the headers of an answer: how long to wait, whether to ask again, which limit is used up until when. Headers
 * are the server's text: a value that is not understood counts as missing. */
#include "coreengine/model/provider/provider_internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_DIGITS  15                                   /* of a number before its point; its microseconds fit then */
#define MAX_WAIT_US (INT64_C(366) * 86400 * RV_US_PER_S) /* "in the year 9999" says no more than "in a year" */

static rv_str value_of(const struct rv_http_head *head, const char *name)
{
    return rv_str_trim(rv_http_header(head, name));
}

/* A decimal number times `unit`, which is a power of ten up to a million; takes it off s. False: there is none. */
static bool take_number(rv_str *s, int64_t unit, int64_t *out)
{
    int64_t whole = 0, part = 0, scale = unit;
    size_t i = 0, n_whole, n_part = 0;

    for (; i < s->len && s->ptr[i] >= '0' && s->ptr[i] <= '9'; i++)
        if (i < MAX_DIGITS)
            whole = whole * 10 + (s->ptr[i] - '0');
    n_whole = i;
    if (i < s->len && s->ptr[i] == '.')
        for (i++; i < s->len && s->ptr[i] >= '0' && s->ptr[i] <= '9'; i++, n_part++) {
            scale /= 10; /* 0 once the digit is below a microsecond */
            part += (s->ptr[i] - '0') * scale;
        }
    if (n_whole + n_part == 0 || n_whole > MAX_DIGITS || whole > INT64_MAX / 4 / unit)
        return false;
    *s = (rv_str){s->ptr + i, s->len - i};
    *out = whole * unit + part;
    return true;
}

/* "12ms", "1s", "6m0s", "1h2m3.5s"; -1: none of these. */
static int64_t read_duration(rv_str text)
{
    static const struct {
        const char *unit;
        int64_t factor, digits; /* microseconds of one = factor times digits, a power of ten */
    } units[] = {{"ms", 1, 1000},        {"us", 1, 1},          {"h", 3600, RV_US_PER_S},
                 {"m", 60, RV_US_PER_S}, {"s", 1, RV_US_PER_S}, {"d", 86400, RV_US_PER_S}};
    int64_t sum = 0;

    if (!text.len)
        return -1;
    while (text.len) {
        rv_str rest = text;
        int64_t n = 0;
        size_t i, len = 0;
        if (!take_number(&rest, RV_US_PER_S, &n)) /* millionths of the unit */
            return -1;
        for (i = 0; i < RV_COUNT(units); i++) {
            len = strlen(units[i].unit);
            if (rest.len >= len && memcmp(rest.ptr, units[i].unit, len) == 0)
                break;
        }
        if (i == RV_COUNT(units))
            return -1;
        int64_t us = units[i].digits == RV_US_PER_S ? n : n / (RV_US_PER_S / units[i].digits);
        if (us > INT64_MAX / 4 / units[i].factor || sum > INT64_MAX / 4)
            return -1;
        sum += us * units[i].factor;
        text = (rv_str){rest.ptr + len, rest.len - len};
    }
    return sum;
}

/* --- Dates --- */

struct words {
    rv_str w[8];
    size_t n;
};

static struct words split(rv_str s)
{
    struct words out = {.n = 0};
    size_t i = 0;

    while (i < s.len && out.n < RV_COUNT(out.w)) {
        size_t start;
        while (i < s.len && strchr(" ,-", s.ptr[i]) && s.ptr[i])
            i++;
        for (start = i; i < s.len && !(s.ptr[i] && strchr(" ,-", s.ptr[i])); i++)
            ;
        if (i > start)
            out.w[out.n++] = (rv_str){s.ptr + start, i - start};
    }
    return out;
}

static int month_of(rv_str s)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    for (int i = 0; i < 12 && s.len == 3; i++)
        if (strncasecmp(s.ptr, months + 3 * i, 3) == 0)
            return i + 1;
    return 0;
}

static int number_of(rv_str s)
{
    int n = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || i >= 4)
            return -1;
        n = n * 10 + (s.ptr[i] - '0');
    }
    return s.len ? n : -1;
}

/* Any of the three date forms of HTTP. False: none of these. */
static bool read_date(rv_str text, int64_t *out_us)
{
    struct words p = split(text);
    rv_str day, month, year, time;
    char stamp[RV_TIME_MAX];
    int y, m, d;

    if (p.n == 6 && (rv_str_is(p.w[5], "GMT") || rv_str_is(p.w[5], "UTC"))) {
        /* Sun, 06 Nov 1994 08:49:37 GMT; Sunday, 06-Nov-94 08:49:37 GMT */
        day = p.w[1], month = p.w[2], year = p.w[3], time = p.w[4];
    } else if (p.n == 5) { /* Sun Nov  6 08:49:37 1994 */
        month = p.w[1], day = p.w[2], time = p.w[3], year = p.w[4];
    } else {
        return false;
    }
    y = number_of(year);
    m = month_of(month);
    d = number_of(day);
    if (year.len == 2 && y >= 0)
        y += y < 70 ? 2000 : 1900;
    if (y < 1 || !m || d < 1 || time.len != 8)
        return false;
    snprintf(stamp, sizeof stamp, "%04d-%02d-%02dT%.8sZ", y, m, d % 100, time.ptr);
    return d < 100 && rv_time_read(rv_str_of(stamp), out_us);
}

/* --- What is made of them --- */

static int64_t at_most(int64_t wait_us)
{
    return wait_us < MAX_WAIT_US ? wait_us : MAX_WAIT_US;
}

static int64_t retry_after(const struct rv_http_head *head, int64_t now_us)
{
    rv_str ms = value_of(head, "retry-after-ms"), s = value_of(head, "retry-after");
    int64_t us;

    if (ms.len && take_number(&ms, RV_US_PER_MS, &us) && !ms.len)
        return at_most(us);
    rv_str rest = s;
    if (s.len && take_number(&rest, RV_US_PER_S, &us) && !rest.len)
        return at_most(us);
    return read_date(s, &us) && us >= now_us ? at_most(us - now_us) : -1;
}

static bool is_used_up(rv_str remaining)
{
    int64_t n;

    return remaining.len && take_number(&remaining, 1, &n) && !remaining.len && n == 0;
}

static int64_t closed_until(const struct rv_http_head *head, int64_t now_us, int64_t max_wait_us)
{
    static const struct {
        const char *remaining, *reset;
    } limits[] = {
        {"x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"},
        {"x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"},
        {"anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"},
        {"anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"},
        {"anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"},
        {"anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"},
    };
    int64_t latest = 0;

    for (size_t i = 0; i < RV_COUNT(limits); i++) {
        rv_str reset = value_of(head, limits[i].reset);
        int64_t until;
        if (!is_used_up(value_of(head, limits[i].remaining)) || !reset.len)
            continue;
        if (!rv_time_read(reset, &until)) {
            int64_t wait = read_duration(reset);
            until = wait < 0 ? 0 : now_us + wait;
        }
        /* A daily limit does not stop the queue: the server answers the next request accordingly. */
        if (until > latest && until > now_us && until - now_us <= max_wait_us)
            latest = until;
    }
    return latest;
}

/* The text up to the first of `stops`, and only if every character can be shown. */
static void copy_shown(char *out, size_t size, rv_str s, const char *stops)
{
    size_t n = 0;

    while (n < s.len && n + 1 < size && !strchr(stops, s.ptr[n])) {
        if (s.ptr[n] <= ' ' || s.ptr[n] > '~') {
            n = 0;
            break;
        }
        n++;
    }
    memcpy(out, s.ptr ? s.ptr : "", n);
    out[n] = '\0';
}

void provider_hints_read(const struct rv_http_head *head, int64_t now_us, int64_t max_wait_us, struct rv_hints *out)
{
    static const char *const id_names[] = {"x-request-id", "request-id", "apim-request-id"};
    rv_str should = value_of(head, "x-should-retry"), id = {NULL, 0};

    *out = (struct rv_hints){.retry_after_us = retry_after(head, now_us), .should_retry = -1};
    if (rv_str_is(should, "true"))
        out->should_retry = 1;
    else if (rv_str_is(should, "false"))
        out->should_retry = 0;
    out->closed_until_us = closed_until(head, now_us, max_wait_us);
    for (size_t i = 0; i < RV_COUNT(id_names) && !id.len; i++)
        id = value_of(head, id_names[i]);
    copy_shown(out->request_id, sizeof out->request_id, id, "");
    rv_str location = value_of(head, "location"); /* with an "@" in it, it may name a user and a password */
    if (head->status >= 300 && head->status < 400 && location.len && !memchr(location.ptr, '@', location.len))
        copy_shown(out->location, sizeof out->location, location, "?#");
}

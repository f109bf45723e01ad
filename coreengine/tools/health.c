/* How one tool has been doing: the last calls in a ring, a status from them, and a breaker that blocks a tool that
 * keeps failing. Sums are small: latencies are cut at record. */
#include "coreengine/tools/tools_internal.h"

#include <assert.h>

#define HEALTHY_PERCENT     95
#define DEGRADED_PERCENT    80
#define HEALTHY_LATENCY_MS  2000
#define DEGRADED_LATENCY_MS 5000
#define MAX_LATENCY_MS      (INT64_MAX / RV_HEALTH_WINDOW) /* so that a full window adds up */

void rv_tool_health_record(struct rv_tool_health *h, int64_t now_us, bool ok, int64_t latency_ms)
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
    return rv_health_worst(by_rate, by_latency);
}

bool rv_tool_breaker_open(const struct rv_tool_health *h, int64_t now_us)
{
    size_t i, n_errors = 0;

    /* A call from the future (the clock was set back) is recent. */
    for (i = 0; i < h->n; i++)
        n_errors += !h->calls[i].ok && h->calls[i].at_us >= now_us - RV_BREAKER_WINDOW_US;
    return n_errors >= RV_BREAKER_ERRORS;
}

enum rv_health rv_health_worst(enum rv_health a, enum rv_health b)
{
    static const int badness[] = {
        [RV_HEALTH_HEALTHY] = 0, [RV_HEALTH_UNKNOWN] = 1, [RV_HEALTH_DEGRADED] = 2, [RV_HEALTH_UNHEALTHY] = 3};

    assert((unsigned)a < RV_COUNT(badness) && (unsigned)b < RV_COUNT(badness));
    return badness[a] >= badness[b] ? a : b;
}

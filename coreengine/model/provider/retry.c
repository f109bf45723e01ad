/* Whether a failed attempt is repeated, and after what wait: as the vendors' own clients do it. */
#include "coreengine/model/provider/provider_internal.h"

#include <stdio.h>

#define FIRST_WAIT_US (RV_US_PER_S / 2)
#define MAX_WAIT_US   (8 * RV_US_PER_S)

/* Doubles with each attempt; up to a quarter less, so that those who failed together do not come back together. */
static int64_t back_off(rv_exchange *x)
{
    int64_t wait = FIRST_WAIT_US;

    for (int64_t n = 1; n < x->role_attempts && wait < MAX_WAIT_US; n++)
        wait *= 2;
    if (wait > x->endpoint.call.max_retry_wait_us)
        wait = x->endpoint.call.max_retry_wait_us;
    return wait - (int64_t)rv_rand_below(x->rand, (uint64_t)(wait / 4 + 1));
}

static bool no_repeat(rv_exchange *x, const char *why)
{
    snprintf(x->why_no_repeat, sizeof x->why_no_repeat, "%s", why);
    return false;
}

bool rv_retry_wanted(rv_exchange *x)
{
    int64_t hint = x->hints.retry_after_us, wait;

    x->why_no_repeat[0] = '\0';
    if (!x->reply.retryable || x->role_attempts >= x->endpoint.call.max_attempts)
        return false;
    if (x->has_begun)
        return no_repeat(x, "a part of the answer was handed out already");
    if (x->opts.charged && x->attempt_may_be_billed)
        return no_repeat(x, "it may have been charged for, and there is a budget");
    wait = hint >= 0 && hint <= x->endpoint.call.max_retry_wait_us ? hint : back_off(x);
    if (x->opts.deadline_us && wait >= x->opts.deadline_us - x->now_us)
        return no_repeat(x, "the wait before it would pass the deadline");
    x->wait_until_us = x->now_us + wait;
    return true;
}

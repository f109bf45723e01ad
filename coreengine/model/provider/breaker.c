/* A breaker: a server that has failed several times in a row is left alone for a while, then one exchange tries it. */
#include "coreengine/model/provider/provider_internal.h"

#define WINDOW_US (30 * RV_US_PER_S) /* within which the failures in a row have to be */
#define OPEN_US   (10 * RV_US_PER_S)

bool rv_breaker_refuses(const struct rv_breaker *b, int64_t now_us)
{
    return b->is_open && (b->is_probed || now_us < b->probe_at_us);
}

void rv_breaker_failed(struct rv_breaker *b, int kind, int64_t now_us)
{
    int64_t oldest;

    b->failed_at[b->n_failures % RV_BREAKER_OPENS] = now_us;
    b->n_failures++;
    b->last_kind = kind;
    oldest = b->failed_at[b->n_failures % RV_BREAKER_OPENS];
    if (!b->is_open && (b->n_failures < RV_BREAKER_OPENS || now_us - oldest > WINDOW_US))
        return;
    b->is_open = true;
    b->probe_at_us = now_us + OPEN_US;
}

void rv_breaker_answered(struct rv_breaker *b)
{
    *b = (struct rv_breaker){.is_probed = b->is_probed};
}

/* What model calls cost, in whole micro-USD, always rounded up: a sum of calls is never less than the bill. */
#include "coreengine/model/llm/llm_internal.h"

#define MILLION       1000000
#define HIDDEN_TOKENS 1024 /* what a provider adds to a request unseen: templates, words about tools */

static int64_t count(int64_t n)
{
    return n > 0 ? n : 0;
}

static int64_t round_up(int64_t micro_millionths)
{
    return micro_millionths / MILLION + (micro_millionths % MILLION > 0);
}

int64_t rv_llm_cost(const struct rv_price *price, const struct rv_usage *usage)
{
    if (!price)
        return 0;
    int64_t input = count(usage->input_tokens), cached = count(usage->cached_tokens);
    int64_t written = count(usage->cache_write_tokens);

    if (price->cached == RV_UNSET || cached > input)
        cached = price->cached == RV_UNSET ? 0 : input;
    if (price->cache_write == RV_UNSET || written > input - cached)
        written = price->cache_write == RV_UNSET ? 0 : input - cached;
    int64_t sum = times(input - cached - written, price->input);
    sum = plus(sum, times(cached, count(price->cached)));
    sum = plus(sum, times(written, count(price->cache_write)));
    return round_up(plus(sum, times(count(usage->output_tokens), price->output)));
}

int64_t rv_llm_worst_cost(const struct rv_price *price, int64_t request_bytes, int64_t max_output_tokens)
{
    if (!price)
        return 0;
    int64_t dearest = price->input;

    if (price->cached > dearest)
        dearest = price->cached;
    if (price->cache_write > dearest)
        dearest = price->cache_write;
    return round_up(plus(times(plus(count(request_bytes), HIDDEN_TOKENS), dearest),
                         times(count(max_output_tokens), price->output)));
}

/* Shared by the files of llm only: sums of money that stay at the largest number. */
#ifndef RV_LLM_INTERNAL_H
#define RV_LLM_INTERNAL_H

#include "coreengine/model/llm/llm.h"

/* a * b, or the largest number. Both are 0 at least. */
static inline int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static inline int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

#endif

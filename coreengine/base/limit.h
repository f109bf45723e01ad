/* Limits. In texts: a message that states a limit is made from its constant, so that they cannot differ. Of sums: what
 * exceeds the type is its largest number. */
#ifndef RV_LIMIT_H
#define RV_LIMIT_H

#include <assert.h>
#include <stdint.h>

/** a + b, or the largest number; neither is negative. */
static inline int64_t rv_plus(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/** "64" of a constant that is defined as 64: for a text that is one literal. */
#define RV_LIMIT_TEXT(limit)  RV_LIMIT_TEXT_(limit)
#define RV_LIMIT_TEXT_(limit) #limit

static_assert(sizeof RV_LIMIT_TEXT(__LINE__) < sizeof "__LINE__", "the value of a constant, not its name");

#endif

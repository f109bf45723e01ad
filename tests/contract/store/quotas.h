/* What the tests of quotas share, beside world.h. Time is in seconds after T0. */
#ifndef RV_TESTS_STORE_QUOTAS_H
#define RV_TESTS_STORE_QUOTAS_H

#include "tests/contract/store/world.h"

#define S     INT64_C(1000000)
#define AT(s) (T0 + (s)*S)

/** "ann tokens day 10+40 ...": the counters of the scope at that time, used and reserved. "=": the tenant's, "-": those
 * without a user. */
void usage_is(struct world *w, const struct rv_store_scope *scope, int64_t now_us, const char *text, int line);
#define USAGE(user, second, text)                                                                                      \
    usage_is(w, &(const struct rv_store_scope){NULL, (user)}, AT(second), (text), __LINE__)

#endif

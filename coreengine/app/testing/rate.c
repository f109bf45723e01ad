/* Pass rates: how many runs of a test passed, and between which bounds the rate of all runs that could be made lies. */
#include <math.h>

#include "coreengine/app/testing.h"

#define Z_95 1.959963984540054 /* of the normal distribution: 95 % of the values lie between -Z and +Z */

bool rv_test_rate_holds(const struct rv_test_rate *r)
{
    return r->n > 0 && (double)r->n_passed / (double)r->n >= r->min;
}

/* Wilson's score interval: unlike that of the normal approximation it is right for few runs and for rates near 0 and 1.
 * E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927. */
void rv_test_rate_estimate_bounds(const struct rv_test_rate *r, double *low, double *high)
{
    if (r->n <= 0) {
        *low = 0;
        *high = 1;
        return;
    }
    double n = (double)r->n, p = (double)r->n_passed / n, z2 = Z_95 * Z_95, scale = 1 + z2 / n;
    double center = (p + z2 / (2 * n)) / scale;
    double half = Z_95 * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / scale;

    *low = r->n_passed == 0 ? 0 : center - half;
    *high = r->n_passed == r->n ? 1 : center + half;
}

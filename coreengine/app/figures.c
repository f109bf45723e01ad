/* Amounts as people read them: money, large counts. */
#include "coreengine/app/figures.h"

#include <inttypes.h>
#include <stdio.h>

#define MICRO 1000000

const char *rv_app_money(int64_t micro_usd, char out[RV_APP_MAX_MONEY])
{
    int n;

    if (micro_usd == INT64_MAX)
        return "more than can be counted";
    n = snprintf(out, RV_APP_MAX_MONEY, "$%" PRId64 ".%06d", micro_usd / MICRO, (int)(micro_usd % MICRO));
    while (n > 3 && out[n - 1] == '0' && out[n - 4] != '.')
        out[--n] = 0;
    while (n > 4 && out[n - 1] == '0' && out[n - 3] != '.')
        out[--n] = 0;
    return out;
}

void rv_app_write_count(rv_buf *b, int64_t n)
{
    char digits[32];
    size_t len = (size_t)snprintf(digits, sizeof digits, "%" PRId64, n);

    for (size_t i = 0; i < len; i++)
        rv_buf_printf(b, "%s%c", i > 0 && (len - i) % 3 == 0 ? "," : "", digits[i]);
}

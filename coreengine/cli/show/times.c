/* Spans of time and moments, as people read and write them. */
#include "coreengine/cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_US INT64_C(1000000)
#define MINUTE_US (60 * SECOND_US)
#define HOUR_US   (60 * MINUTE_US)
#define DAY_US    (24 * HOUR_US)

void rv_cli_write_duration(rv_buf *b, int64_t us)
{
    if (us < 0)
        us = 0;
    if (us < 1000)
        rv_buf_printf(b, "%lld us", (long long)us);
    else if (us < SECOND_US)
        rv_buf_printf(b, "%lld ms", (long long)(us / 1000));
    else
        rv_buf_printf(b, "%lld.%lld s", (long long)(us / SECOND_US), (long long)(us / 100000 % 10));
}

void rv_cli_write_age(rv_buf *b, int64_t us)
{
    static const struct {
        int64_t unit_us, below;
        const char *text;
    } units[] = {{SECOND_US, 100, "s"}, {MINUTE_US, 100, "min"}, {HOUR_US, 48, "h"}, {DAY_US, INT64_MAX, "d"}};
    size_t i = 0;

    while (us / units[i].unit_us >= units[i].below)
        i++;
    rv_buf_printf(b, "%lld %s", (long long)(us > 0 ? us / units[i].unit_us : 0), units[i].text);
}

void rv_cli_write_moment(rv_buf *b, int64_t us)
{
    char text[RV_TIME_MAX];

    rv_time_format(us, text); /* 2026-11-21T21:05:00.123456Z */
    rv_buf_printf(b, "%.10s %.8s", text, text + 11);
}

int rv_cli_parse_duration(const char *text, int64_t *out_us, rv_err **err)
{
    static const struct {
        const char *unit;
        int64_t us;
    } units[] = {{"s", SECOND_US}, {"min", MINUTE_US}, {"h", HOUR_US}, {"d", DAY_US}, {"w", 7 * DAY_US}};
    char *end = NULL;
    long long n = strtoll(text, &end, 10);

    for (size_t i = 0; end != text && i < RV_COUNT(units); i++)
        if (strcmp(end, units[i].unit) == 0 && n >= 0 && n <= INT64_MAX / units[i].us) {
            *out_us = n * units[i].us;
            return 0;
        }
    int rc = RV_FAIL(err, RV_E_INVALID, "invalid duration \"%s\"", text);
    rv_err_hint(err, "use a whole number and a unit, such as 90s, 15min, 12h, 30d or 4w");
    return rc;
}

int rv_cli_zone_minutes(void)
{
    time_t now = time(NULL);
    struct tm local;

    return localtime_r(&now, &local) ? (int)(local.tm_gmtoff / 60) : 0;
}

/* Any text as a cron expression and as a time: it is refused with a place, or it means instants that follow one
 * another.
 */
#include <stdlib.h>

#include "coreengine/calendar/calendar.h"
#include "tests/kit/fuzz.h"

/* 2026-03-28T12:00:00Z and 2026-10-24T12:00:00Z: clocks are set forward, or back, on the day after. */
static const int64_t starts_us[] = {INT64_C(1774699200000000), INT64_C(1792843200000000)};

static const rv_zone *berlin(void)
{
    static rv_zones *zones;
    const rv_zone *zone;

    if (!zones)
        zones = rv_zones_new(NULL);
    require(zones != NULL);
    return rv_zones_get(zones, RV_STR_LIT("Europe/Berlin"), &zone, NULL) == 0 ? zone : rv_zone_utc();
}

static void check_error(int rc, rv_err *err)
{
    require((rc == 0) == (err == NULL));
    require(rc == 0 || (rv_err_text(err)[0] && rv_err_src(err).line == 1 && rv_err_src(err).col > 0));
    rv_err_free(err);
}

static void check_cron(rv_str text)
{
    struct rv_cron cron = {0};
    rv_err *err = NULL;
    int rc = rv_cron_parse(text, NULL, &cron, &err);

    check_error(rc, err);
    if (rc < 0)
        return;
    require(cron.minutes && cron.hours && cron.days && cron.months && cron.weekdays);
    for (size_t i = 0; i < RV_COUNT(starts_us); i++) {
        int64_t us = starts_us[i];
        for (int k = 0; k < 4; k++) {
            int64_t before = us;
            require(rv_cron_next(&cron, berlin(), before, &us, NULL) == 0);
            require(us > before);
        }
    }
}

RV_FUZZ_TARGET(cron)
{
    rv_str text = {(const char *)data, size};
    struct rv_when when;
    rv_err *err = NULL;
    char shown[RV_TIME_MAX];
    int rc;

    check_cron(text);
    rc = rv_when_parse(text, berlin(), starts_us[0], NULL, &when, &err);
    check_error(rc, err);
    if (rc == 0) {
        require(when.us > starts_us[0]);
        rv_zone_format(berlin(), when.us, shown);
    }
    return 0;
}

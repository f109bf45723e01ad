/* Any bytes as a file of a time zone: they are refused, or they make a zone whose offsets and local times agree. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/calendar/calendar.h"
#include "coreengine/calendar/calendar_internal.h"
#include "tests/kit/fuzz.h"

#define STEP_S (INT64_C(1) << 33) /* 272 years */

static void check_instant(const rv_zone *zone, int64_t t_s)
{
    struct zone_span span = calendar_zone_span_at(zone, t_s);
    int64_t local_us, us[2] = {0, 0};
    int n;

    require(span.from_s <= t_s && t_s < span.until_s);
    require(span.offset_s > ZONE_MIN_OFFSET_S && span.offset_s < ZONE_MAX_OFFSET_S);
    require(rv_zone_offset_s(zone, t_s * RV_US_PER_S) == span.offset_s);
    local_us = (t_s + span.offset_s) * RV_US_PER_S;
    n = rv_zone_from_local(zone, local_us, us);
    require(n > 0 && us[0] <= t_s * RV_US_PER_S && (n == 1 || us[1] >= t_s * RV_US_PER_S));
    n = rv_zone_from_local(zone, local_us + 1800 * RV_US_PER_S, us);
    require(n > 0 || rv_zone_offset_s(zone, us[0]) > rv_zone_offset_s(zone, us[0] - 1));
}

static void check_cron(const rv_zone *zone, const char *text, int64_t us)
{
    struct rv_cron cron;

    require(rv_cron_parse(rv_str_of(text), NULL, &cron, NULL) == 0);
    for (int i = 0; i < 3; i++) {
        int64_t before = us;
        if (rv_cron_next(&cron, zone, before, &us, NULL) < 0)
            return;
        require(us > before);
    }
}

RV_FUZZ_TARGET(tzif)
{
    rv_zone *zone = NULL;
    rv_err *err = NULL;
    struct zone_rule rule;
    int rc = rv_zone_parse(RV_STR_LIT("Fuzz/Zone"), (rv_str){(const char *)data, size}, &zone, &err);

    require((rc == 0) == (zone != NULL) && (rc == 0) == (err == NULL));
    rv_err_free(err);
    if (calendar_zone_rule_parse((rv_str){(const char *)data, size}, &rule))
        for (int64_t t_s = 0; t_s < INT64_C(366) * 86400; t_s += 86399) {
            struct zone_span span = calendar_zone_rule_span(&rule, t_s);
            require(span.from_s <= t_s && t_s < span.until_s);
        }
    if (rc < 0)
        return 0;
    for (int64_t t_s = -2 * STEP_S; t_s <= 2 * STEP_S; t_s += STEP_S / 7)
        check_instant(zone, t_s);
    for (size_t i = 0; i < zone->n_changes && i < 20; i++) {
        int64_t at_s = zone->changes[i].at_s;
        if (at_s < -2 * STEP_S || at_s > 2 * STEP_S)
            continue;
        check_instant(zone, at_s - 1);
        check_instant(zone, at_s);
        check_cron(zone, "30 2 * * *", at_s * RV_US_PER_S - 3600 * RV_US_PER_S);
        check_cron(zone, "*/7 */5 * * *", at_s * RV_US_PER_S - 3600 * RV_US_PER_S);
    }
    rv_zone_free(zone);
    return 0;
}

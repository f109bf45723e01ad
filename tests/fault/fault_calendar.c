/* Each allocation of the calendar fails once: no crash, no leak, and the code says no memory. */
#include <stdlib.h>

#include "coreengine/calendar/calendar.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/suites.h"

/* Two zones, one of them asked for twice. */
static int get_zones(void)
{
    static const char *const names[] = {"Europe/Berlin", "Asia/Kathmandu", "Europe/Berlin", "UTC"};
    rv_zones *zones = rv_zones_new(NULL);
    int rc = zones ? 0 : RV_E_NOMEM;

    for (size_t i = 0; rc == 0 && i < RV_COUNT(names); i++) {
        const rv_zone *zone = NULL;
        rc = rv_zones_get(zones, rv_str_of(names[i]), &zone, NULL);
    }
    rv_zones_free(zones);
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {{"get_zones", get_zones}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 5);
}
END_TEST

/* An error is made without memory too; what is lost is its text. */
START_TEST(errors_need_no_memory)
{
    static const char *const texts[] = {"0 25 * * *", "0 22-2 * * *", "@dayly", "0 0 31 2 *"};
    size_t n_allocations = 1;

    for (size_t i = 0; i < RV_COUNT(texts); i++)
        for (size_t n = 0; n < n_allocations; n++) {
            struct rv_cron cron;
            rv_err *err = NULL;
            rv_fault_arm(n);
            int rc = rv_cron_parse(rv_str_of(texts[i]), NULL, &cron, &err);
            rv_err_free(err);
            (void)rv_fault_disarm();
            ck_assert(rc == RV_E_INVALID || rc == RV_E_PARSE);
            ck_assert(err != NULL && (!rv_fault_works() || rv_fault_balance() == 0));
            n_allocations = 2; /* the error, its hint */
        }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_calendar");
    TCase *c = tcase_create("loops");

    tcase_add_loop_test(c, every_allocation_may_fail, 0, RV_COUNT(scenarios));
    tcase_add_test(c, errors_need_no_memory);
    suite_add_tcase(s, c);
    return rv_kit_run(s);
}

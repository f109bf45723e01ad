#include "tests/kit/suites.h"
#include "tests/unit/calendar/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {zone_case,      zone_file_case, system_case,
                                            cron_read_case, cron_case,      when_case};

    return rv_kit_run_cases("calendar", cases, RV_COUNT(cases));
}

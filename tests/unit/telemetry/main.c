#include "coreengine/base/base.h"
#include "tests/kit/suites.h"
#include "tests/unit/telemetry/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {context_case, spans_case, metrics_case, settings_case};

    return rv_kit_run_cases("telemetry", cases, RV_COUNT(cases));
}

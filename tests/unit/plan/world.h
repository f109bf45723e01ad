/* Catalogs and plans from short texts. */
#ifndef RV_TESTS_UNIT_PLAN_WORLD_H
#define RV_TESTS_UNIT_PLAN_WORLD_H

#include "coreengine/plan/plan.h"
#include "tests/kit/kit.h"

/** A catalog of [{name, server?, in?, out?, description?, ro?, denied?, http?}]; JSON with single quotes does. */
rv_plan_catalog *make_catalog(const char *tools);
/** The plan of a list of calls; the text has to outlive it. */
struct rv_plan make_plan(const char *calls);
/** The errors of a plan, one a line: "CALL ARGUMENT TEMPLATE {error}", with single quotes; free() it. "ok": none. */
char *errors_of(const rv_plan_catalog *catalog, const char *calls, const struct rv_plan_rules *rules);
/** Is errors_of() that text? */
void expect_errors(const char *tools, const char *calls, const struct rv_plan_rules *rules, const char *want);

#endif

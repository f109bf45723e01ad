rv_fuzz(plan_validate SOURCES fuzz_plan_validate.c USES rv::plan)

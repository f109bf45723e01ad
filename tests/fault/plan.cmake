rv_test(fault_plan SOURCES fault_plan.c USES rv::plan rv::fault LABELS fault)

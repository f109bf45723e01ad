rv_test(fault_run SOURCES fault_run.c USES rv::run rv::kit rv::fault LABELS fault)

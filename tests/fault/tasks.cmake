rv_test(fault_tasks SOURCES fault_tasks.c USES rv::store rv::kit rv::fault LABELS fault)

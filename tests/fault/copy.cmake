rv_test(fault_copy SOURCES fault_copy.c USES rv::store rv::kit rv::fault LABELS fault)

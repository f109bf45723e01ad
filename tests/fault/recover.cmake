rv_test(fault_recover SOURCES fault_recover.c USES rv::engine rv::kit rv::fault LABELS fault)

rv_test(fault_recover SOURCES fault_recover.c USES rv::shell rv::kit rv::fault LABELS fault)

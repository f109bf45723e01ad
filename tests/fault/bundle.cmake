rv_test(fault_bundle SOURCES fault_bundle.c USES rv::journal rv::kit rv::fault LABELS fault)

rv_test(fault_store SOURCES fault_store.c USES rv::store rv::kit rv::fault LABELS fault)
